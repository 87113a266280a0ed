"""Checker of the search: causal pasts and deliveries as bit masks (bit k: label k).

Equivalent to `antecede.core.oracle.history` (tested on every path of small groups), and faster.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from antecede.core.protocols import Guarantee, Relation
from antecede.lab.check.causal_past import bits, find_disagreement, past_at, past_of
from antecede.lab.check.results import ASTRAY, DISAGREED, EARLY, STUCK, TWICE, UNNECESSARY, UNSENT


class Record(NamedTuple):
    """Part of a state that the checker needs."""

    done: tuple[int, ...]
    """Labels sent or delivered, by slot; in total order only delivered ones."""
    arrived: tuple[int, ...]
    pasts: tuple[int, ...]
    addressed: tuple[int, ...]
    """Labels sent to the member, by slot; in total order also its own."""
    shared: tuple[int, ...]
    """Earlier labels with a common topic of the member, at index slot * labels + label."""
    topics: tuple[int, ...]
    """Mask of topics by label; empty without topics."""
    duplicates: int
    losses: int = 0
    now_ns: int = 0
    orders: tuple[tuple[int, ...], ...] = ()
    """Labels in the order of delivery, by slot (total order only)."""


class Finding(NamedTuple):
    """Violation found at an action, by numbers."""

    what: str
    slot: int
    label: int
    missing: int = 0
    detail: str = ""


class Judge:
    """Checker of one group; `senders`: slots of members with an application.

    `ignored`: kinds of failures to ignore (constants of `lab.check.results`).
    """

    def __init__(
        self,
        relation: Relation,
        guarantees: Sequence[Guarantee],
        senders: Sequence[int],
        messages: int,
        ignored: frozenset[str],
    ) -> None:
        self.relation, self.guarantees, self.senders = relation, guarantees, senders
        self.messages = messages
        self.ignored = ignored
        self.index = {slot: index for index, slot in enumerate(senders)}

    def own(self, slot: int) -> int:
        """Return the mask of the labels that a member may send."""
        return ((1 << self.messages) - 1) << (self.index[slot] * self.messages)

    def sent(self, record: Record, slot: int) -> int:
        """Return the labels that a member has sent."""
        masks = record.addressed if self.relation is Relation.TOTAL else record.done
        return masks[slot] & self.own(slot)

    def is_sent(self, record: Record, label: int) -> bool:
        """Return True if a member has sent a label."""
        return any(mask >> label & 1 for mask in (*record.done, *record.addressed))

    def past(self, record: Record, slot: int, after: int) -> int:
        """Return the causal past of a member's next message, a reply to `after` (-1: none)."""
        if self.relation is Relation.BY_REPLY:
            return past_of(1 << after, record.pasts) if after >= 0 else 0
        sent, arrived, done = self.sent(record, slot), record.arrived[slot], record.done[slot]
        return past_at(self.relation, sent, arrived, done, record.pasts)

    def deliveries(
        self, record: Record, slot: int, handed: Sequence[tuple[int, bool]]
    ) -> tuple[int, Finding | None]:
        """Return the labels delivered after a step, and the first finding.

        `delivered`: (label, released without its causes); -1: unknown label.
        """
        done = record.done[slot]
        for label, marked in handed:
            if label < 0 or not self.is_sent(record, label):
                return done, Finding(UNSENT, slot, label)
            if done >> label & 1:
                return done, Finding(TWICE, slot, label)
            if not record.addressed[slot] >> label & 1:
                return done, Finding(ASTRAY, slot, label)
            missing = self.needed(record, slot, label) & ~done
            if missing and not marked and self._looks_for(EARLY, slot):
                return done, Finding(EARLY, slot, label, missing)
            done |= 1 << label
        if self._looks_for(UNNECESSARY, slot):
            for label in bits(record.arrived[slot] & ~done):
                if not self.needed(record, slot, label) & ~done:
                    return done, Finding(UNNECESSARY, slot, label)
        return done, None

    def ordered(
        self, record: Record, slot: int, handed: Sequence[tuple[int, bool]]
    ) -> tuple[Record, Finding | None]:
        """Record the order of deliveries in total order; return the first disagreement."""
        if self.relation is not Relation.TOTAL:
            return record, None
        orders = list(record.orders)
        orders[slot] += tuple(label for label, _ in handed)
        record = record._replace(orders=tuple(orders))
        differs = find_disagreement(dict(enumerate(orders)))
        if differs is None or not self._looks_for(EARLY, slot):
            return record, None
        # Report the message that this member has just delivered.
        label, missing = differs.first, differs.then
        if differs.one != slot:
            label, missing = missing, label
        return record, Finding(DISAGREED, slot, label, 1 << missing)

    def needed(self, record: Record, slot: int, label: int) -> int:
        """Return the part of a label's past that the member must deliver before it."""
        needed = record.pasts[label] & record.addressed[slot]
        if self.relation is Relation.BY_TOPIC:
            needed &= record.shared[slot * len(record.pasts) + label]
        return needed

    def left(self, record: Record, slot: int) -> int:
        """Return the labels sent to a member and not delivered there."""
        return record.addressed[slot] & ~record.done[slot]

    def stuck(self, record: Record) -> Finding | None:
        """Return a message that is not delivered although nothing is in flight, or None."""
        for slot in self.senders:
            left = self.left(record, slot)
            if left and self._looks_for(STUCK, slot):
                return Finding(STUCK, slot, next(bits(left)))
        return None

    def _looks_for(self, what: str, slot: int) -> bool:
        guarantee = self.guarantees[slot]
        promised = {
            EARLY: guarantee.safe,
            UNNECESSARY: guarantee.no_unnecessary_wait,
            STUCK: guarantee.live,
        }
        return promised[what] and what not in self.ignored
