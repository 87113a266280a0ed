"""What must come before what, as plain sets of (sender, number); nothing judged is asked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from antecede.core.protocols.base import Relation

Id = tuple[int, int]


class Early(NamedTuple):
    """A delivery before messages of its past."""

    at: int
    key: Id
    missing: set[Id]


class Truth:
    """Who knew what: told of sendings, arrivals and deliveries, and what counts as known."""

    def __init__(self, relation: Relation, *, for_all: bool) -> None:
        self.relation, self.for_all = relation, for_all
        self.past: dict[Id, frozenset[Id]] = {}
        self.to: dict[Id, frozenset[int]] = {}
        self.known: dict[int, set[Id]] = {}
        """What is in the past of a member's next message."""
        self.has: dict[int, set[Id]] = {}
        """What each member regards as delivered, its own and its frontier included."""
        self.delivered: dict[int, list[Id]] = {}

    def enters(self, at: int, known: Iterable[Id], has: Iterable[Id]) -> None:
        """Let a member begin with what its frontier covers, of messages for everybody."""
        alone = self.relation in (Relation.NONE, Relation.FIFO)
        self.known[at] = set() if alone else set(known)
        self.has[at] = set(has) if self.for_all else set()
        self.delivered[at] = []

    def sends(self, key: Id, to: Iterable[int]) -> None:
        """Note what a message follows, and for whom it is."""
        self.past[key], self.to[key] = frozenset(self.known[key[0]]), frozenset(to)
        if self.relation is not Relation.NONE:
            self.known[key[0]].add(key)
        if self.relation is not Relation.TOTAL:  # there an own message waits for its turn
            self.has[key[0]].add(key)

    def arrives(self, at: int, key: Id) -> None:
        """Note that a message has come."""
        if self.relation in (Relation.BY_RECEIPT, Relation.BY_TOPIC):
            self.known[at] |= {key, *self.past[key]}

    def delivers(self, at: int, key: Id) -> None:
        """Note that a message was handed over."""
        self.has[at].add(key)
        self.delivered[at].append(key)
        if self.relation in (Relation.BY_DELIVERY, Relation.TOTAL):
            self.known[at] |= {key, *self.past[key]}

    def owes(self, at: int, keys: Iterable[Id]) -> set[Id]:
        """Return which of the messages must be handed to a member, and have not been."""
        lacking = set(keys) - self.has[at]
        return lacking if self.for_all else {key for key in lacking if at in self.to[key]}
