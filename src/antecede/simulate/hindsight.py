"""What a run ordered too little or too much, looked at afterwards with the causal order at hand.

Theory of operation
-------------------
Whatever a protocol promises, its deliveries make a causal order: by delivery, or with topics by
topic (004). Against that order a delivery is

    too early    a message of its causal past, for the same member, came later (`judge`)
    in vain      the message was held after all of its causal past had been delivered there

Both look at what happened alone, so they are the same question for every protocol. The causal
order itself is that of the run: a protocol that delivers later lets its members know less.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from antecede.protocols.base import Relation
from antecede.simulate.delays import US
from antecede.simulate.judge import FULL, pasts, violations
from antecede.simulate.recording import ARRIVED, DELIVERED, RELEASED, Recording


class Hindsight(NamedTuple):
    """Deliveries of a run."""

    checked: int
    """Deliveries, without those that the protocol itself marked as lacking something."""
    early: int
    """Delivered before a message of their causal past."""
    held: int
    """Not delivered at once when they arrived."""
    vain: int
    """Held though all of their causal past had been delivered."""
    vain_us: int
    """Microseconds that these were held after that, in all."""

    def figures(self) -> dict[str, float]:
        """Return what a result's figures may hold, by name."""
        return {
            "causal.checked": self.checked,
            "causal.early": self.early,
            "causal.held": self.held,
            "causal.vain": self.vain,
            "causal.vain_ms": 1000 * self.vain_us / US,
        }


def hindsight(run: Recording) -> Hindsight | None:
    """Return what was too early and what was held in vain; None above `judge.FULL` messages."""
    if len(run.sender) > FULL:
        return None
    by_topic = run.relation is Relation.BY_TOPIC
    relation = Relation.BY_TOPIC if by_topic else Relation.BY_DELIVERY
    found = violations(run, relation)
    checked, held, vain, vain_us = _vain(run, pasts(run, relation).past, _wanted(run, by_topic))
    return Hindsight(checked, found.early, held, vain, vain_us)


def _wanted(run: Recording, by_topic: bool) -> Callable[[int, int], int]:
    """Return what says which messages a member must have before a message, if they are causes."""
    addressed = [0] * run.scenario.topology.size
    about: dict[str, int] = {}
    for message, sent_us in enumerate(run.sent_us):
        if sent_us is not None:
            for member in run.receivers(message):
                addressed[member] |= 1 << message
        for topic in run.topics[message] if by_topic else ():
            about[topic] = about.get(topic, 0) | 1 << message

    def wanted(member: int, message: int) -> int:
        if not by_topic:
            return addressed[member]
        shared = 0
        for topic in run.subscriptions[member].intersection(run.topics[message]):
            shared |= about[topic]
        return addressed[member] & shared

    return wanted


def _vain(
    run: Recording, past: list[int], wanted: Callable[[int, int], int]
) -> tuple[int, int, int, int]:
    """Return how many deliveries there were, were held, were held in vain, and for how long."""
    size = run.scenario.topology.size
    done = [0] * size
    waiting: list[dict[int, int]] = [{} for _ in range(size)]
    """By member: message that arrived -> causes that are not delivered there."""
    ready_us: dict[tuple[int, int], int] = {}
    arrived_us: dict[tuple[int, int], int] = {}
    checked = held = vain = vain_us = 0
    for time_us, kind, member, message in run.happenings():
        here = waiting[member]
        if kind == ARRIVED:
            arrived_us[member, message] = time_us
            here[message] = past[message] & wanted(member, message) & ~done[member]
            if not here[message]:
                ready_us[member, message] = time_us
        elif kind in (DELIVERED, RELEASED):
            if kind == DELIVERED:
                checked += 1
                late_us = time_us - ready_us.get((member, message), time_us)
                held += time_us > arrived_us[member, message]
                vain += late_us > 0
                vain_us += late_us
            here.pop(message, None)
            done[member] |= 1 << message
            for other, missing in here.items():
                if missing >> message & 1:
                    here[other] = missing & ~(1 << message)
                    if not here[other]:
                        ready_us[member, other] = time_us
    return checked, held, vain, vain_us
