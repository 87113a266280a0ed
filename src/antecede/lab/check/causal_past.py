"""Causal pasts of a run as bit masks: bit k stands for message k.

Theory of operation
-------------------
The past of a message is what its sender knew of when it sent it, with the pasts of that. By what a
member comes to know of a message depends on the relation: `LEARNS` says it for the explorer and the
simulator. Answers go by what they name instead. `antecede.core.oracle.history` says all of this
once more, with sets and a table of its own; tests hold the two together.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from typing import TypeVar

from antecede.core.protocols import Relation

SENT, ARRIVED, DELIVERED, RELEASED = range(4)
"""What happens to a message at a member; released: handed over, marked as lacking what came before
it."""
_HANDED = frozenset({SENT, DELIVERED, RELEASED})
LEARNS: Mapping[Relation, frozenset[int]] = {
    Relation.NONE: frozenset(),
    Relation.FIFO: frozenset({SENT}),
    Relation.BY_DELIVERY: _HANDED,
    Relation.BY_RECEIPT: _HANDED | {ARRIVED},
    Relation.BY_TOPIC: _HANDED | {ARRIVED},
    Relation.BY_REPLY: frozenset(),
    Relation.TOTAL: _HANDED,
}
"""Relation -> by what a member comes to know of a message."""
Label = TypeVar("Label", bound=Hashable)


def past_at(
    relation: Relation, sent: int, arrived: int, delivered: int, pasts: Sequence[int]
) -> int:
    """Return the past of what a member sends now, from masks of what happened there before.

    `pasts` are those of the messages so far.
    """
    masks = ((SENT, sent), (ARRIVED, arrived), (DELIVERED, delivered))
    known = 0
    for kind, mask in masks:
        known |= mask if kind in LEARNS[relation] else 0
    return past_of(known, pasts)


def past_of(known: int, pasts: Sequence[int]) -> int:
    """Return messages and the pasts of each."""
    past = known
    for message in bits(known):
        past |= pasts[message]
    return past


def bits(mask: int) -> Iterator[int]:
    """Yield the positions of the bits that are set, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


class CausalPasts:
    """Follows a run and says what is in the past of each message."""

    def __init__(self, relation: Relation, members: int, bit: Sequence[int]) -> None:
        self.relation, self.bit = relation, bit
        """`bit`: by message its mask; 0 for one that is not looked for."""
        self.past = [0] * len(bit)
        self.immediate = [0] * len(bit)
        """What of the past is in the past of nothing else of it."""
        self.known, self.frontier = [0] * members, [0] * members
        """By member: what it knows of, with the pasts; what of that is before nothing else."""
        self.learns = LEARNS[relation]

    def follow(self, kind: int, member: int, message: int, parents: Sequence[int] = ()) -> None:
        """Take in what happened; `parents` are what a message answers."""
        if kind == SENT:
            if self.relation is Relation.BY_REPLY:
                self._answer(message, parents)
            else:
                self.past[message] = self.known[member]
                self.immediate[message] = self.frontier[member]
        bit = self.bit[message]
        if kind in self.learns and not (bit and self.known[member] & bit):
            self.known[member] |= self.past[message] | bit
            self.frontier[member] = self.frontier[member] & ~self.past[message] | bit

    def _answer(self, message: int, parents: Sequence[int]) -> None:
        above = direct = 0
        for parent in parents:
            above |= self.past[parent]
            direct |= self.bit[parent]
        self.past[message] = above | direct
        self.immediate[message] = direct & ~above


def find_disagreement(
    orders: Mapping[int, Sequence[Label]],
) -> tuple[int, int, Label, Label] | None:
    """Return (a, b, x, y): a delivers x before y, b delivers y before x; None if there is none.

    `orders`: deliveries of each member, in its order. A message counts for two members only where
    both have delivered it.
    """
    places = {at: {label: place for place, label in enumerate(all_)} for at, all_ in orders.items()}
    for one, other in combinations(orders, 2):
        there = places[other]
        both = [label for label in orders[one] if label in there]
        for first, then in pairwise(both):
            if there[first] > there[then]:
                return one, other, first, then
    return None
