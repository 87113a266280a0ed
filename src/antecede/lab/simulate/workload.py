"""Addressees, topics and answers of messages.

All but answers is drawn by the message's number (`random_streams`), so it does not depend on the
protocol. A drawn answer is to one of the messages that the sender delivered lately. A replayed
answer is sent when everything that it answers is there. A protocol that allows one answer only (S_b
without `several_parents`) gets the newest.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

import numpy as np

from antecede.core.protocols import MessageId, Protocol
from antecede.lab.simulate.config.model import Scenario
from antecede.lab.simulate.random_streams import Ints, Stream, draws, key, unit
from antecede.lab.simulate.schedule import Schedule, build_schedule
from antecede.lab.simulate.topology import PubSub


class Answers:
    """Follows what every member has, by address."""

    def __init__(self, traffic: Traffic, members: Mapping[int, Protocol], recent: int) -> None:
        self.traffic, self.members = traffic, members
        self.recent: dict[int, deque[int]] = {at: deque(maxlen=recent) for at in members}
        self.here: dict[int, set[int]] = {at: set() for at in members}
        """By member: what it sent or was delivered to it; kept in a replay alone."""
        self.ids: dict[int, MessageId] = {}  # message -> how its receivers name it
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

    def delivered(self, at: int, number: int) -> list[int]:
        """Note a delivery; return the member's replies that are to be looked at again."""
        self.recent[at].append(number)
        return self.sent(at, number)

    def sent(self, at: int, number: int) -> list[int]:
        """Note a sending; return the member's replies that are to be looked at again."""
        if not self.traffic.parents:
            return []
        self.here[at].add(number)
        return self.postponed.pop(at, [])

    def unsent(self) -> int:
        """Return how many replies wait."""
        return sum(map(len, self.postponed.values()))


class Traffic:
    """The messages of one run."""

    def __init__(self, scenario: Scenario, seed: int) -> None:
        self.workload, self.size = scenario.workload, scenario.topology.size
        self.keys = {stream: key(seed, stream) for stream in Stream}
        self.parents: Sequence[Sequence[int]] = ()
        """By message: what it answers, in a replay; empty where answers are drawn."""
        if self.workload.kind == "replay":
            from antecede.lab.simulate.replay import replay_trace

            replayed = replay_trace(scenario)
            self.schedule: Schedule = replayed.schedule
            self.parents = replayed.parents
        else:
            self.schedule = build_schedule(scenario, seed)
        topology = scenario.topology
        self.topics = topics_of(topology) if isinstance(topology, PubSub) else ()
        self.subscriptions: tuple[frozenset[str], ...] = ()  # by address
        if isinstance(topology, PubSub):
            self.subscriptions = subscriptions(topology, seed)

    def addressees(self, message: int, sender: int) -> tuple[int, ...] | None:
        """Return whom a message is for, ascending; None: all others."""
        fanout = self.workload.fanout
        if fanout is None or fanout >= self.size - 1:
            return None
        others = np.array([at for at in range(self.size) if at != sender], dtype=np.int64)
        return tuple(sorted(others[_first(self.keys[Stream.ADDRESSEE], message, others, fanout)]))

    def publication(self, message: int) -> tuple[str, ...]:
        """Return the 1 to `topics` topics of a message, sorted (Nakayama 2017, section 3)."""
        return _drawn(self.keys[Stream.TOPIC], message, self.workload.topics, self.topics)

    def answered(self, message: int, recent: Sequence[int]) -> int | None:
        """Return which of the messages delivered last to its sender a message answers, if any."""
        asked = self.keys[Stream.ANSWER]
        if not recent or unit(asked, message) >= self.workload.answers:
            return None
        return recent[int(unit(asked, message, 1) * len(recent))]


def topics_of(topology: PubSub) -> tuple[str, ...]:
    """Return the names of the topics, sorted."""
    width = len(str(topology.topics - 1))
    return tuple(f"t{number:0{width}}" for number in range(topology.topics))


def subscriptions(topology: PubSub, seed: int) -> tuple[frozenset[str], ...]:
    """Return the topics that each address subscribes to."""
    topics, asked = topics_of(topology), key(seed, Stream.SUBSCRIPTION)
    if topology.subscribed is None:
        return (frozenset(topics),) * topology.size
    most = topology.subscribed
    return tuple(frozenset(_drawn(asked, at, most, topics)) for at in range(topology.size))


def _drawn(asked: int, name: int, most: int, topics: Sequence[str]) -> tuple[str, ...]:
    """Return 1 to `most` topics: the number is draw (name, 0), topic t has draw (name, 1 + t)."""
    count = 1 + int(unit(asked, name) * most)
    found = _first(asked, name, np.arange(1, len(topics) + 1), count)
    return tuple(topics[at] for at in sorted(found))


def _first(asked: int, name: int, numbers: Ints, count: int) -> list[int]:
    """Return the places of the `count` numbers with the smallest draws."""
    order = np.argsort(draws(asked, name, numbers), kind="stable")
    found: list[int] = order[:count].tolist()
    return found
