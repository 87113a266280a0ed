"""Addressees, topics and replies of messages.

All but replies are drawn by the message's number (`random_streams`), so they do not depend on the
protocol. A random reply is to one of the messages that the sender delivered recently. A replayed
reply is sent when all its parents are delivered. A protocol that allows one parent only (S_b
without `several_parents`) gets the newest.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

import numpy as np

from antecede.core.protocols import MessageId, Protocol
from antecede.lab.simulate.config.model import SimulationConfig
from antecede.lab.simulate.random_streams import Ints, Stream, draw_array, draw_unit, make_key
from antecede.lab.simulate.schedule import Schedule, build_schedule
from antecede.lab.simulate.topology import PubSub


class ReplyTracker:
    """Tracker of delivered messages and waiting replies, by address."""

    def __init__(self, traffic: Traffic, members: Mapping[int, Protocol], recent: int) -> None:
        self.traffic, self.members = traffic, members
        self.recent: dict[int, deque[int]] = {at: deque(maxlen=recent) for at in members}
        self.present: dict[int, set[int]] = {at: set() for at in members}
        """By member: messages sent or delivered there, in a replay only."""
        self.ids: dict[int, MessageId] = {}  # Message -> its id at receivers
        self.postponed: dict[int, list[int]] = {}  # By member: replies whose parents it lacks

    def find_parents(self, number: int, address: int) -> tuple[int, ...] | None:
        """Return the parents of a message that is due (None: it waits for a parent)."""
        if not self.traffic.parents:
            answered = self.traffic.choose_parent(number, self.recent[address])
            return () if answered is None else (answered,)
        parents = tuple(self.traffic.parents[number])
        policy = getattr(self.members[address], "policy", None)
        if policy is not None and not policy.several_parents:
            parents = parents[-1:]
        if self.present[address].issuperset(parents):
            return parents
        self.postponed.setdefault(address, []).append(number)
        return None

    def on_deliver(self, address: int, number: int) -> list[int]:
        """Record a delivery. Return the member's replies to try again."""
        self.recent[address].append(number)
        return self.on_send(address, number)

    def on_send(self, address: int, number: int) -> list[int]:
        """Record a send. Return the member's replies to try again."""
        if not self.traffic.parents:
            return []
        self.present[address].add(number)
        return self.postponed.pop(address, [])

    def count_unsent(self) -> int:
        """Return the number of waiting replies."""
        return sum(map(len, self.postponed.values()))


class Traffic:
    """The messages of a run."""

    def __init__(self, config: SimulationConfig, seed: int) -> None:
        self.workload, self.size = config.workload, config.topology.size
        self.keys = {stream: make_key(seed, stream) for stream in Stream}
        self.parents: Sequence[Sequence[int]] = ()
        """By message: parents in a replay; empty if replies are random."""
        if self.workload.kind == "replay":
            from antecede.lab.simulate.replay import replay_trace

            replayed = replay_trace(config)
            self.schedule: Schedule = replayed.schedule
            self.parents = replayed.parents
        else:
            self.schedule = build_schedule(config, seed)
        topology = config.topology
        self.topics = list_topics(topology) if isinstance(topology, PubSub) else ()
        self.subscriptions: tuple[frozenset[str], ...] = ()  # by address
        if isinstance(topology, PubSub):
            self.subscriptions = draw_subscriptions(topology, seed)

    def choose_addressees(self, message: int, sender: int) -> tuple[int, ...] | None:
        """Return the addressees of a message, ascending (None: all others)."""
        fanout = self.workload.fanout
        if fanout is None or fanout >= self.size - 1:
            return None
        others = np.array([at for at in range(self.size) if at != sender], dtype=np.int64)
        return tuple(
            sorted(others[_pick_smallest(self.keys[Stream.ADDRESSEE], message, others, fanout)])
        )

    def choose_topics(self, message: int) -> tuple[str, ...]:
        """Return the 1 to `topics` topics of a message, sorted (Nakayama 2017, section 3)."""
        return _draw_topics(self.keys[Stream.TOPIC], message, self.workload.topics, self.topics)

    def choose_parent(self, message: int, recent: Sequence[int]) -> int | None:
        """Return the parent of a message among those delivered recently to its sender."""
        asked = self.keys[Stream.REPLY]
        if not recent or draw_unit(asked, message) >= self.workload.reply_fraction:
            return None
        return recent[int(draw_unit(asked, message, 1) * len(recent))]


def list_topics(topology: PubSub) -> tuple[str, ...]:
    """Return the names of the topics, sorted."""
    width = len(str(topology.topics - 1))
    return tuple(f"t{number:0{width}}" for number in range(topology.topics))


def draw_subscriptions(topology: PubSub, seed: int) -> tuple[frozenset[str], ...]:
    """Return the subscribed topics of each address."""
    topics, asked = list_topics(topology), make_key(seed, Stream.SUBSCRIPTION)
    if topology.subscribed is None:
        return (frozenset(topics),) * topology.size
    most = topology.subscribed
    return tuple(frozenset(_draw_topics(asked, at, most, topics)) for at in range(topology.size))


def _draw_topics(key: int, name: int, max_topics: int, topics: Sequence[str]) -> tuple[str, ...]:
    """Return 1 to `max_topics` topics: draw (name, 0) is their number, (name, 1 + t) topic t."""
    count = 1 + int(draw_unit(key, name) * max_topics)
    found = _pick_smallest(key, name, np.arange(1, len(topics) + 1), count)
    return tuple(topics[at] for at in sorted(found))


def _pick_smallest(key: int, name: int, numbers: Ints, count: int) -> list[int]:
    order = np.argsort(draw_array(key, name, numbers), kind="stable")
    found: list[int] = order[:count].tolist()
    return found
