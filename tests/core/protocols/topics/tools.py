"""Groups with topic orders, and a network with subscriptions."""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import partial
from typing import Any, Self

from antecede.core.clocks.bounds import Bounds
from antecede.core.protocols.base import DUPLICATE, Discard, Hold
from antecede.core.protocols.topics.delivery import TopicProtocol
from antecede.core.protocols.topics.messages import CarriedTimes, TopicMessage, make_timestamp
from antecede.core.protocols.topics.protocols import Htbc, Tv, TvLt, TvPt, TvVt
from antecede.core.protocols.topics.relations import TopicTimestamp
from antecede.core.protocols.topics.state import NOT_SUBSCRIBED
from antecede.core.protocols.topics.subscriptions import Subscriptions
from tests.core.protocols.sending import send_one
from tests.helpers.network import Network
from tests.helpers.truth import Id

TOPICS = "xyz"
MOST_MEMBERS = 9
CLASSES: dict[str, type[TopicProtocol]] = {
    "tv": Tv,
    "tv-lt": TvLt,
    "tv-pt": TvPt,
    "htbc": Htbc,
    "tv-vt": TvVt,
}


class AllTimes(TopicProtocol):
    """Protocol that carries every time, so that one run gives timestamps for all relations."""

    carried_times = CarriedTimes(linear=True, physical=True, vector=True)


LAN_WAN: Bounds[int] = Bounds(
    accuracy_s=1,
    least_s=1,
    most_s=2,
    channels={(a, b): (1, 6) for a in (0, 1) for b in (2, 3)}
    | {(b, a): (3, 6) for a in (0, 1) for b in (2, 3)},
)
"""Two subgroups, fast inside and slow between, slower at the least in one direction."""
UNLIKE: Bounds[int] = Bounds(
    accuracy_s=2,
    least_s=0,
    most_s=3,
    clocks={0: 0, 3: 1},
    channels={(0, 1): (4, 5), (1, 2): (1, 1), (2, 0): (0, 7)},
)
GROUPS: dict[str, Bounds[int]] = {
    "alike, clocks off by a delay": Bounds(accuracy_s=1, least_s=1, most_s=2),
    "alike, exact clocks": Bounds(accuracy_s=0, least_s=0, most_s=3),
    "alike, good clocks": Bounds(accuracy_s=1, least_s=3, most_s=5),
    "LAN and WAN": LAN_WAN,
    "all unlike": UNLIKE,
}


class TopicNetwork(Network):
    """Members with random subscriptions; `early` collects events before a related cause."""

    def __init__(
        self, cls: type[TopicProtocol], seed: int, bounds: Bounds[int] = LAN_WAN, **options: Any
    ) -> None:
        draw = random.Random(seed)
        chosen = {k: draw.sample(TOPICS, draw.randint(1, 3)) for k in range(MOST_MEMBERS)}
        options |= {"subscriptions": Subscriptions(chosen), "bounds": bounds}
        super().__init__(partial(cls, **options), 4, seed, bounds, tolerant=True)

    def whom(self, at: int) -> dict[str, Any]:
        """Draw the topics of an event."""
        return {"topics": self.some_topics()}

    def publish(self, events: int) -> Self:
        """Publish about so many events, one in two thirds of a second."""
        return self.steps(10 * events, sends=0.1)

    def some_topics(self) -> list[str]:
        """Draw topics."""
        return self.random.sample(TOPICS, self.random.randint(1, len(TOPICS)))

    def list_needed(self, at: int, key: Id) -> set[Id]:
        """Return the causes that `at` must deliver first: related, and sent to it."""
        subscription = self.members[at].subscriptions.of(at)
        return {
            cause
            for cause in self.truth.past[key]
            if at in self.truth.to[cause]
            and subscription & {*self.sent[cause].topics} & {*self.sent[key].topics}
        }

    def lacks(self, at: int, key: Id) -> set[Id]:
        """Return the causes that `at` must still deliver first."""
        return self.list_needed(at, key) - self.truth.has[at]

    def hold(self, at: int, effect: Hold) -> None:
        """Check a held event: no cause is known to be missing."""
        super().hold(at, effect)
        assert effect.missing == ()

    def discard(self, at: int, effect: Discard) -> None:
        """Check a discarded event: it is not delivered, and none waits for abandoned events."""
        super().discard(at, effect)
        assert effect.reason in (DUPLICATE, NOT_SUBSCRIBED)
        self.truth.has[at] |= {self.key(effect.message)} - self.held(at).keys()

    def change(self) -> None:
        """Let a member join, leave or change its subscription; all learn of it at once."""
        choice = self.random.choice(("join", "leave", "subscribe", "subscribe"))
        at = self.anyone()
        newcomer = max(self.truth.has) + 1
        if choice == "join" and newcomer < MOST_MEMBERS:
            self.join(newcomer, at)
        elif choice == "leave" and len(self.members) > 2:
            self.leave(at)
            self.tell()
        elif choice == "subscribe":
            topics = self.some_topics()
            for other, member in self.members.items():
                self.carry_out(other, member.subscribe(at, topics))

    def stamps(self) -> Mapping[Id, TopicTimestamp]:
        """Return the times of all events that had recipients."""
        return {key: make_timestamp(message) for key, message in self.sent.items()}


EVERYTHING: Subscriptions[int] = Subscriptions(dict.fromkeys(range(9), ("x", "y", "z")))
EXACT: Bounds[int] = Bounds(accuracy_s=0, least_s=1, most_s=3)
"""A cause of an event of 0 is with 1 at most 3 - 0 - 1 = 2 s after the event."""


def group(name: str, *subscribed: str, bounds: Bounds[int] = EXACT) -> list[TopicProtocol]:
    """Return members 0 .. n - 1 with these subscriptions, one letter per topic."""
    subscriptions = Subscriptions(dict(enumerate(subscribed)))
    members = range(len(subscribed))
    return [CLASSES[name](k, members, subscriptions=subscriptions, bounds=bounds) for k in members]


def publish_all(
    member: TopicProtocol, topics: str, now: int = 0, payload: object = b""
) -> TopicMessage:
    message: TopicMessage = send_one(member, payload, now=now, topics=list(topics))
    return message
