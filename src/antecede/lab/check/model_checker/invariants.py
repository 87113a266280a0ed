"""Checker of the search: causal pasts and deliveries as bit masks (bit k: label k).

Equivalent to `antecede.core.oracle.history` (tested on every path of small groups), and faster.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from antecede.core.protocols import Guarantee, Relation
from antecede.lab.check.causal_past import compute_past, find_disagreement, include_pasts, iter_bits
from antecede.lab.check.results import (
    DELIVERED_TWICE,
    EARLY,
    NEEDLESS_HOLD,
    NEVER_SENT,
    ORDER_DISAGREEMENT,
    STUCK,
    WRONG_RECIPIENT,
)


class CheckerRecord(NamedTuple):
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


class CheckerFinding(NamedTuple):
    """Violation at an action, by numbers."""

    kind: str
    slot: int
    label: int
    missing: int = 0
    detail: str = ""


class Checker:
    """Checker of one group; `senders`: slots with an application; `ignored`: kinds to ignore."""

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

    def get_own_labels(self, slot: int) -> int:
        """Return the mask of the labels that a member may send."""
        return ((1 << self.messages) - 1) << (self.index[slot] * self.messages)

    def get_sent_labels(self, record: CheckerRecord, slot: int) -> int:
        """Return the labels that a member has sent."""
        masks = record.addressed if self.relation is Relation.TOTAL else record.done
        return masks[slot] & self.get_own_labels(slot)

    def is_sent(self, record: CheckerRecord, label: int) -> bool:
        """Return True if a member has sent a label."""
        return any(mask >> label & 1 for mask in (*record.done, *record.addressed))

    def compute_past(self, record: CheckerRecord, slot: int, after: int) -> int:
        """Return the causal past of a member's next message, a reply to `after` (-1: none)."""
        if self.relation is Relation.BY_REPLY:
            return include_pasts(1 << after, record.pasts) if after >= 0 else 0
        sent, arrived, done = (
            self.get_sent_labels(record, slot),
            record.arrived[slot],
            record.done[slot],
        )
        return compute_past(self.relation, sent, arrived, done, record.pasts)

    def check_deliveries(
        self, record: CheckerRecord, slot: int, delivered: Sequence[tuple[int, bool]]
    ) -> tuple[int, CheckerFinding | None]:
        """Return the labels delivered after a step, and the first finding."""
        done = record.done[slot]
        for label, marked in delivered:
            if label < 0 or not self.is_sent(record, label):
                return done, CheckerFinding(NEVER_SENT, slot, label)
            if done >> label & 1:
                return done, CheckerFinding(DELIVERED_TWICE, slot, label)
            if not record.addressed[slot] >> label & 1:
                return done, CheckerFinding(WRONG_RECIPIENT, slot, label)
            missing = self.get_required_labels(record, slot, label) & ~done
            if missing and not marked and self._is_checked(EARLY, slot):
                return done, CheckerFinding(EARLY, slot, label, missing)
            done |= 1 << label
        if self._is_checked(NEEDLESS_HOLD, slot):
            for label in iter_bits(record.arrived[slot] & ~done):
                if not self.get_required_labels(record, slot, label) & ~done:
                    return done, CheckerFinding(NEEDLESS_HOLD, slot, label)
        return done, None

    def check_order(
        self, record: CheckerRecord, slot: int, delivered: Sequence[tuple[int, bool]]
    ) -> tuple[CheckerRecord, CheckerFinding | None]:
        """Record the order of deliveries in total order; return the first disagreement."""
        if self.relation is not Relation.TOTAL:
            return record, None
        orders = list(record.orders)
        orders[slot] += tuple(label for label, _ in delivered)
        record = record._replace(orders=tuple(orders))
        differs = find_disagreement(dict(enumerate(orders)))
        if differs is None or not self._is_checked(EARLY, slot):
            return record, None
        # Report the message that this member has just delivered.
        label, missing = differs.first, differs.second
        if differs.member != slot:
            label, missing = missing, label
        return record, CheckerFinding(ORDER_DISAGREEMENT, slot, label, 1 << missing)

    def get_required_labels(self, record: CheckerRecord, slot: int, label: int) -> int:
        """Return the part of a label's past that the member must deliver before it."""
        needed = record.pasts[label] & record.addressed[slot]
        if self.relation is Relation.BY_TOPIC:
            needed &= record.shared[slot * len(record.pasts) + label]
        return needed

    def get_undelivered_labels(self, record: CheckerRecord, slot: int) -> int:
        """Return the labels sent to a member and not delivered there."""
        return record.addressed[slot] & ~record.done[slot]

    def find_stuck(self, record: CheckerRecord) -> CheckerFinding | None:
        """Return a message that is not delivered although nothing is in flight, or None."""
        for slot in self.senders:
            left = self.get_undelivered_labels(record, slot)
            if left and self._is_checked(STUCK, slot):
                return CheckerFinding(STUCK, slot, next(iter_bits(left)))
        return None

    def _is_checked(self, kind: str, slot: int) -> bool:
        guarantee = self.guarantees[slot]
        promised = {
            EARLY: guarantee.safe,
            NEEDLESS_HOLD: guarantee.no_unnecessary_wait,
            STUCK: guarantee.live,
        }
        return promised[kind] and kind not in self.ignored
