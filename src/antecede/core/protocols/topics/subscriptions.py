"""Subscriptions of a publish/subscribe group: topics by member (Nakayama 2017, section 2)."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from antecede.errors import LocalError
from antecede.formatting import quote

Member = TypeVar("Member", bound=Hashable)


@dataclass(frozen=True, eq=False)
class Subscriptions(Generic[Member]):
    """Topics by member: a number, or a name before `numbered`. Others have no topics."""

    topics: Mapping[Member, Collection[str]] = field(default_factory=dict)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Subscriptions):
            return NotImplemented
        return self._make_sets() == other._make_sets()

    def __hash__(self) -> int:
        return hash(frozenset(self._make_sets().items()))

    def _make_sets(self) -> dict[Member, frozenset[str]]:
        return {member: frozenset(own) for member, own in self.topics.items() if own}

    def in_one_writing(self) -> Subscriptions[Member]:
        """Return the canonical form, identical for equal subscriptions."""
        return Subscriptions({one: tuple(sorted(own)) for one, own in self._make_sets().items()})

    def of(self, member: Member) -> frozenset[str]:
        """Return the topics to which a member subscribes (p_i.S)."""
        return frozenset(self.topics.get(member, ()))

    def targets(
        self, publication: Collection[str], members: Iterable[Member]
    ) -> tuple[Member, ...]:
        """Return the members, in the given order, that subscribe to a topic of a publication."""
        wanted = frozenset(publication)
        return tuple(member for member in members if wanted & self.of(member))

    def all_topics(self) -> tuple[str, ...]:
        return tuple(sorted(frozenset().union(*map(frozenset, self.topics.values()))))

    def replace_member(self, member: Member, topics: Collection[str]) -> Subscriptions[Member]:
        return Subscriptions({**self.topics, member: frozenset(topics)})

    def replace_names(self, numbers: Mapping[Any, int]) -> Subscriptions[int]:
        """Return a copy with member numbers in place of names. Raises LocalError."""
        from antecede.core.protocols.topics.messages import (
            normalize_topics,
        )  # imported late for speed

        if not isinstance(self.topics, Mapping):
            raise LocalError(f"subscriptions is {quote(self.topics)}; expected topics by member")
        for member, topics in self.topics.items():
            if isinstance(topics, str | bytes) or not isinstance(topics, Collection):
                raise LocalError(
                    f"topics of {member!r} is {quote(topics)}; expected a list of words"
                )
            normalize_topics(topics)
        if unknown := [member for member in self.topics if member not in numbers]:
            raise LocalError(f"subscriptions of {quote(unknown[0])}, who is not in the group")
        return Subscriptions({numbers[member]: topics for member, topics in self.topics.items()})
