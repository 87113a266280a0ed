"""What a member answers when it sends, and replies that wait for what they answer.

Drawn answers are to one of the messages delivered lately to the sender. In a replay the answers
are given; a reply is sent when everything that it answers is there. A protocol that allows one
answer only (S_b without `several_parents`) gets the newest.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

from antecede.protocols.base import MessageId, Protocol
from antecede.simulate.workload import Traffic


class Answers:
    """Follows what every member has, by address."""

    def __init__(self, traffic: Traffic, members: Mapping[int, Protocol], recent: int) -> None:
        self.traffic, self.members = traffic, members
        self.recent: dict[int, deque[int]] = {at: deque(maxlen=recent) for at in members}
        self.here: dict[int, set[int]] = {at: set() for at in members}
        """By member: what it sent or was delivered to it; kept in a replay alone."""
        self.ids: dict[int, MessageId] = {}
        """Message -> how its receivers name it."""
        self.postponed: dict[int, list[int]] = {}
        """By member: its replies to what it does not have yet."""

    def of(self, number: int, at: int) -> tuple[int, ...] | None:
        """Return what a message that is due answers; None: it waits until `resumed` names it."""
        if not self.traffic.parents:
            answered = self.traffic.answered(number, self.recent[at])
            return () if answered is None else (answered,)
        parents = tuple(self.traffic.parents[number])
        policy = getattr(self.members[at], "policy", None)
        if policy is not None and not policy.several_parents:
            parents = parents[-1:]
        if self.here[at].issuperset(parents):
            return parents
        self.postponed.setdefault(at, []).append(number)
        return None

    def names(self, parents: Sequence[int]) -> list[MessageId]:
        """Return how protocols name messages that were put on the network."""
        return [self.ids[parent] for parent in parents]

    def sent(self, at: int, number: int) -> list[int]:
        """Note a sending; return the member's replies that are to be looked at again."""
        return self._has(at, number)

    def delivered(self, at: int, number: int) -> list[int]:
        """Note a delivery; return the member's replies that are to be looked at again."""
        self.recent[at].append(number)
        return self._has(at, number)

    def _has(self, at: int, number: int) -> list[int]:
        if not self.traffic.parents:
            return []
        self.here[at].add(number)
        return self.postponed.pop(at, [])

    def unsent(self) -> int:
        """Return how many replies wait."""
        return sum(map(len, self.postponed.values()))
