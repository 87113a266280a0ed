"""Watches the steps of a run and says which delivery came before its cause.

The causal past of every message is kept as a set of labels, in the relation that the protocol
promises. Nothing is taken from the protocol itself: this is the judge of small, hand-moved runs.
"""

from __future__ import annotations

from collections.abc import Iterable

from antecede.check.world import ARRIVED, DELIVERED, RELEASED, SENT, Step
from antecede.protocols.base import Relation


class Watch:
    """Causal pasts by label, and what each member has seen and delivered."""

    def __init__(self, relation: Relation, members: Iterable[int]) -> None:
        self.relation = relation
        self.past: dict[str, frozenset[str]] = {}
        self.done: dict[int, set[str]] = {member: set() for member in members}
        """Member -> labels sent or delivered there (or covered by its sponsor's frontier)."""
        self.seen: dict[int, set[str]] = {member: set() for member in members}
        """Member -> labels that the next message it sends depends on."""

    def join(self, member: int, sponsor: int) -> None:
        """A newcomer begins with what its sponsor had delivered."""
        self.done[member] = set(self.done[sponsor])
        by_contact = self.relation in (Relation.BY_DELIVERY, Relation.BY_RECEIPT)
        self.seen[member] = set(self.done[sponsor]) if by_contact else set()

    def step(self, step: Step) -> tuple[str, ...]:
        """Take in a step; returns the causes that a delivery came too early for, by label."""
        at, label = step.at, step.label
        if at not in self.done:
            return ()
        if step.kind == SENT:
            self._sent(at, label, step.detail)
        elif step.kind == ARRIVED and self.relation is Relation.BY_RECEIPT:
            self.seen[at] |= self.past[label] | {label}
        elif step.kind in (DELIVERED, RELEASED):
            return self._delivered(at, label, marked=step.kind == RELEASED)
        return ()

    def _sent(self, at: int, label: str, after: tuple[str, ...]) -> None:
        answered = {cause for parent in after for cause in (*self.past[parent], parent)}
        by_reply = self.relation is Relation.BY_REPLY
        self.past[label] = frozenset(answered if by_reply else self.seen[at])
        self.done[at].add(label)
        if self.relation is not Relation.NONE:
            self.seen[at].add(label)

    def _delivered(self, at: int, label: str, *, marked: bool) -> tuple[str, ...]:
        early = () if marked else tuple(sorted(self.past[label] - self.done[at]))
        self.done[at].add(label)
        if self.relation is Relation.BY_DELIVERY:
            self.seen[at] |= self.past[label] | {label}
        return early
