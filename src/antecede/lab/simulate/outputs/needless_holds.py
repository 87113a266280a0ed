"""Causal violations and needless holds among the deliveries of a run.

Deliveries make a causal order, whatever a protocol promises: by delivery, or with topics by topic
(Nakayama 2017). Against that order a delivery is

    a violation   a message of its causal past, for the same member, came later (`violations`)
    needless      the message was held after all of its causal past had been delivered there

In total order a member's own messages wait too, from their send. The causal order is that of the
run: with later deliveries members know less.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from antecede.core.protocols import Relation
from antecede.lab.simulate.delays import US
from antecede.lab.simulate.outputs.recording import ARRIVED, DELIVERED, RELEASED, SENT, Recording
from antecede.lab.simulate.outputs.violations import (
    FULL,
    compute_pasts,
    find_violations,
    make_cause_filter,
)


class WaitCounts(NamedTuple):
    """Counts of the deliveries of a run."""

    checked: int  # Deliveries, without incomplete ones
    violations: int  # Deliveries before a message of their causal past
    held: int  # Deliveries later than the arrival
    unnecessary: int  # Held although all of their causal past had been delivered
    needless_us: int  # Total time of these holds after that

    def figures(self) -> dict[str, float]:
        """Return the counts as metrics of a result."""
        return {
            "causal.checked": self.checked,
            "causal.violations": self.violations,
            "causal.held": self.held,
            "causal.needless_holds": self.unnecessary,
            "causal.needless_hold_ms": 1000 * self.needless_us / US,
        }


class DeliveryWaits(NamedTuple):
    """Every delivery of a run, in order, without incomplete ones."""

    message: list[int]
    wait_us: list[int]  # From the arrival
    needless_us: list[int]
    """Part of `wait_us` after the last message of the causal past was delivered."""
    violations: list[bool]
    receipt_violations: list[bool]

    def counts(self) -> WaitCounts:
        """Return the counts."""
        return WaitCounts(
            len(self.message),
            sum(self.violations),
            sum(wait > 0 for wait in self.wait_us),
            sum(late > 0 for late in self.needless_us),
            sum(self.needless_us),
        )


def wait_counts(run: Recording) -> WaitCounts | None:
    """Return the counts of violations and needless holds (None: more than `FULL` messages)."""
    found = delivery_waits(run)
    return None if found is None else found.counts()


def delivery_waits(run: Recording) -> DeliveryWaits | None:
    """Return the wait of each delivery (None: more than `FULL` messages)."""
    if len(run.sender) > FULL:
        return None
    relation = run.relation if run.relation is Relation.BY_TOPIC else Relation.BY_DELIVERY
    early: list[bool] = []
    find_violations(run, relation, outcomes=early)
    by_receipt: list[bool] = []
    find_violations(run, Relation.BY_RECEIPT, outcomes=by_receipt)
    needed = make_cause_filter(run, relation, range(len(run.sender)))
    message, wait_us, late_us = _measure_waits(run, compute_pasts(run, relation).past, needed)
    return DeliveryWaits(message, wait_us, late_us, early, by_receipt)


def _measure_waits(
    run: Recording, past: list[int], needed: Callable[[int, int], int]
) -> tuple[list[int], list[int], list[int]]:
    size = run.config.topology.size
    done = [0] * size
    waiting: list[dict[int, int]] = [{} for _ in range(size)]
    """By member: arrived message -> causes that are not delivered there."""
    ready_us: dict[tuple[int, int], int] = {}
    arrived_us: dict[tuple[int, int], int] = {}
    messages: list[int] = []
    wait_us: list[int] = []
    late_us: list[int] = []
    own = run.relation is Relation.TOTAL
    for time_us, kind, member, message in run.events():
        here = waiting[member]
        if kind == ARRIVED or (own and kind == SENT):
            arrived_us[member, message] = time_us
            here[message] = past[message] & needed(member, message) & ~done[member]
            if not here[message]:
                ready_us[member, message] = time_us
        elif kind in (DELIVERED, RELEASED):
            if kind == DELIVERED:
                messages.append(message)
                wait_us.append(time_us - arrived_us[member, message])
                late_us.append(time_us - ready_us.get((member, message), time_us))
            here.pop(message, None)
            done[member] |= 1 << message
            for other, missing in here.items():
                if missing >> message & 1:
                    here[other] = missing & ~(1 << message)
                    if not here[other]:
                        ready_us[member, other] = time_us
    return messages, wait_us, late_us
