"""Causal pasts as bit masks (bit k: message k), and agreement on one order.

The causal past of a message is all that its sender knew when it sent it. `LEARNS` lists by
relation the steps after which a member knows a message. A reply has the past of the messages that
it replies to. `antecede.core.oracle.history` computes the same with sets and its own table.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from typing import Generic, NamedTuple, TypeVar

from antecede.core.protocols import Relation

SENT, ARRIVED, DELIVERED, RELEASED = range(4)
"""Steps of a message at a member. RELEASED: delivered without its causes."""
_OBTAINED = frozenset({SENT, DELIVERED, RELEASED})
LEARNS: Mapping[Relation, frozenset[int]] = {
    Relation.NONE: frozenset(),
    Relation.FIFO: frozenset({SENT}),
    Relation.BY_DELIVERY: _OBTAINED,
    Relation.BY_RECEIPT: _OBTAINED | {ARRIVED},
    Relation.BY_TOPIC: _OBTAINED | {ARRIVED},
    Relation.BY_REPLY: frozenset(),
    Relation.TOTAL: _OBTAINED,
}
"""Steps after which a member knows a message, by relation."""
Label = TypeVar("Label", bound=Hashable)


def compute_past(
    relation: Relation, sent: int, arrived: int, delivered: int, pasts: Sequence[int]
) -> int:
    """Return the past of a member's next message from masks of the steps there."""
    known = 0
    for kind, mask in ((SENT, sent), (ARRIVED, arrived), (DELIVERED, delivered)):
        known |= mask if kind in LEARNS[relation] else 0
    return include_pasts(known, pasts)


def include_pasts(known: int, pasts: Sequence[int]) -> int:
    """Return messages together with their pasts."""
    past = known
    for message in iter_bits(known):
        past |= pasts[message]
    return past


def iter_bits(mask: int) -> Iterator[int]:
    """Yield the positions of the set bits, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


class CausalPasts:
    """Causal pasts of the messages of a run, updated step by step."""

    def __init__(self, relation: Relation, members: int, bit: Sequence[int]) -> None:
        self.relation, self.bit = relation, bit
        """`bit`: mask by message; 0 for messages that are left out."""
        self.past = [0] * len(bit)
        self.immediate = [0] * len(bit)
        self.known, self.frontier = [0] * members, [0] * members
        """Known messages with their pasts, and the latest of them, by member."""
        self.known_after = LEARNS[relation]

    def follow(self, kind: int, member: int, message: int, parents: Sequence[int] = ()) -> None:
        """Add a step; `parents`: messages that this message replies to."""
        if kind == SENT and self.relation is Relation.BY_REPLY:
            above = direct = 0
            for parent in parents:
                above |= self.past[parent]
                direct |= self.bit[parent]
            self.past[message] = above | direct
            self.immediate[message] = direct & ~above
        elif kind == SENT:
            self.past[message] = self.known[member]
            self.immediate[message] = self.frontier[member]
        bit = self.bit[message]
        if kind in self.known_after and not (bit and self.known[member] & bit):
            self.known[member] |= self.past[message] | bit
            self.frontier[member] = self.frontier[member] & ~self.past[message] | bit


class Disagreement(NamedTuple, Generic[Label]):
    """Two members that deliver two messages in different orders."""

    member: int
    other_member: int
    first: Label
    """Delivered before `second` by `member`, after it by `other_member`."""
    second: Label


def find_disagreement(orders: Mapping[int, Sequence[Label]]) -> Disagreement[Label] | None:
    """Return two members that order two common messages differently; None: all agree."""
    places = {at: {label: place for place, label in enumerate(all_)} for at, all_ in orders.items()}
    for one, other in combinations(orders, 2):
        there = places[other]
        both = [label for label in orders[one] if label in there]
        for first, then in pairwise(both):
            if there[first] > there[then]:
                return Disagreement(one, other, first, then)
    return None
