"""Small random runs of a publish/subscribe group, with naive pair counts by readable predicates.

They share no code with `antecede.tables.false_causality`: clocks are those of the papers, and
happened-before is the oracle's.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Mapping
from typing import NamedTuple

from antecede.core.clocks.bounds import Bounds
from antecede.core.clocks.lanes import pack
from antecede.core.oracle.history import History
from antecede.core.protocols.clock_based.published_relations import (
    ConverseRelation,
    PrintedRelation,
)
from antecede.core.protocols.clock_based.relations import (
    ClockRelation,
    LinearPhysicalRelation,
    LinearRelation,
    PhysicalRelation,
    Separation,
)
from antecede.core.protocols.clock_based.relations import ClockTimestamp as ClockStamp
from antecede.core.protocols.topics.delays import Delays
from antecede.core.protocols.topics.published_relations import PrintedTopicRelation
from antecede.core.protocols.topics.relations import TopicRelation
from antecede.core.protocols.topics.relations import TopicTimestamp as TopicStamp
from antecede.tables.trace.schema import DELIVER, RECEIVE, SEND, Event

SECOND_NS = 1_000_000_000
NAMES = "PQRS"
TOPICS = "xyz"
Subscribed = Mapping[str, frozenset[str]]

ALIKE: Bounds[int] = Bounds(accuracy_s=1, least_s=1, most_s=4)
"""2 lambda < delta < 4 lambda; 2 lambda exceeds the least delay."""
GOOD: Bounds[int] = Bounds(accuracy_s=1, least_s=3, most_s=5)
COARSE: Bounds[int] = Bounds(accuracy_s=3, least_s=0, most_s=2)
"""delta < 2 lambda."""
UNLIKE: Bounds[int] = Bounds(
    accuracy_s=2,
    least_s=0,
    most_s=3,
    clocks={0: 0, 3: 1},
    channels={(0, 1): (4, 5), (1, 2): (1, 1), (2, 0): (0, 7)},
)
"""A path is faster than the channel from P to Q."""
GROUPS = {"alike": ALIKE, "good clocks": GOOD, "coarse clocks": COARSE, "unlike": UNLIKE}


class Sent(NamedTuple):
    """Clocks that one message carried, as in the papers."""

    sender: int
    seq: int
    topics: frozenset[str]
    counts: dict[str, int]
    lt: int
    lt_printed: int
    pt_s: int
    vt: tuple[int, ...]


class Run(NamedTuple):
    bounds: Bounds[int]
    rows: list[Event]
    sent: dict[str, Sent]
    arrived: dict[str, list[str]]
    """Member -> messages as they came, once each."""
    subscribed: Subscribed


class _Member:
    def __init__(self) -> None:
        self.vt = [0] * len(NAMES)
        self.tv: dict[str, int] = {}
        self.lt = self.lt_printed = self.clock_s = 0


def random_run(
    seed: int, bounds: Bounds[int], messages: int = 24, *, back: bool = False, deliver: bool = False
) -> Run:
    """Return a run; `back`: clocks may go back, `deliver`: arrivals are delivered later or never.

    With `deliver` clocks go by what was delivered.
    """
    rng = random.Random(seed)
    subscribed = {
        name: frozenset(rng.sample(TOPICS, rng.randint(1, len(TOPICS)))) for name in NAMES
    }
    members = [_Member() for _ in NAMES]
    rows: list[Event] = []
    sent: dict[str, Sent] = {}
    arrived: dict[str, list[str]] = {name: [] for name in NAMES}
    queue: list[tuple[float, int, str, int]] = []
    waiting: dict[int, list[str]] = {number: [] for number in range(len(NAMES))}
    now = 10

    def learn(number: int, name: str) -> None:
        member, message = members[number], sent[name]
        member.vt = list(map(max, member.vt, message.vt))
        for topic, count in message.counts.items():
            member.tv[topic] = max(member.tv.get(topic, 0), count)
        member.lt = max(member.lt, message.lt + 1)
        member.lt_printed = max(member.lt_printed, message.lt_printed)

    def arrive(number: int, name: str) -> None:
        rows.append(Event(kind=RECEIVE, id=name, member=NAMES[number]))
        if name not in arrived[NAMES[number]]:
            arrived[NAMES[number]].append(name)
        if not deliver:
            learn(number, name)
            return
        waiting[number].append(name)
        while waiting[number] and rng.random() < 0.6:
            chosen = waiting[number].pop(rng.randrange(len(waiting[number])))
            rows.append(Event(kind=DELIVER, id=chosen, member=NAMES[number]))
            learn(number, chosen)

    for count in range(messages):
        now += rng.randint(0, 3)
        while queue and queue[0][0] <= now:
            _, _, name, number = heapq.heappop(queue)
            arrive(number, name)
        number = rng.randrange(len(NAMES))
        member, accuracy = members[number], bounds.error_ns(number) // SECOND_NS
        shown = now + rng.randint(-accuracy, accuracy)
        member.clock_s = shown if back else max(member.clock_s, shown)
        topics = frozenset(rng.sample(TOPICS, rng.randint(1, 2)))
        for topic in topics:
            member.tv[topic] = member.tv.get(topic, 0) + 1
        member.vt[number] += 1
        name = f"m{count}"
        sent[name] = Sent(
            number,
            member.vt[number],
            topics,
            dict(member.tv),
            member.lt,
            member.lt_printed,
            member.clock_s,
            tuple(member.vt),
        )
        member.lt += 1
        member.lt_printed += 1
        rows.append(
            Event(
                kind=SEND,
                id=name,
                member=NAMES[number],
                topics=tuple(sorted(topics)),
                send_time=member.clock_s * SECOND_NS,
            )
        )
        for other in range(len(NAMES)):
            if other != number and subscribed[NAMES[other]] & topics:
                delay = rng.randint(
                    bounds.least_delay_ns(number, other) // SECOND_NS,
                    bounds.most_delay_ns(number, other) // SECOND_NS,
                )
                heapq.heappush(queue, (now + delay, len(rows), name, other))
                if rng.random() < 0.1:  # and once more
                    heapq.heappush(queue, (now + delay, len(rows), name, other))
    while queue:
        _, _, name, number = heapq.heappop(queue)
        arrive(number, name)
    return Run(bounds, rows, sent, arrived, subscribed)


class Naive(NamedTuple):
    ordered: int
    causal: int
    false_pairs: int
    missed_pairs: int
    events: int


def naive(run: Run, observer: str, rule: str, relation: str = "receipt") -> Naive:
    """Ask the predicates of `protocols` for every pair that the observer received."""
    pasts = History(run.rows).pasts(relation)
    names = run.arrived[observer]
    own = run.subscribed[observer]
    topical = rule.startswith(("tv", "htbc"))
    ordered, causal = set(), set()
    for one in names:
        for other in names:
            if one == other:
                continue
            a, b = run.sent[one], run.sent[other]
            if one in pasts[other] and (not topical or a.topics & b.topics & own):
                causal.add((one, other))
            if topical:
                before = _topics_say(run, a, b, rule, own)
            elif rule == "arrival":
                before = names.index(one) < names.index(other)
            elif rule == "timestamp":
                before = (a.pt_s, a.sender, a.seq) < (b.pt_s, b.sender, b.seq)
            elif a.sender == b.sender:
                before = a.seq < b.seq
            else:
                before = _clocks_say(run, a, b, rule)
            if before:
                ordered.add((one, other))
    return Naive(
        len(ordered), len(causal), len(ordered - causal), len(causal - ordered), len(names)
    )


def _clocks_say(run: Run, a: Sent, b: Sent, rule: str) -> bool:
    printed = rule.endswith(":published")
    separation = Separation(run.bounds, range(len(NAMES)))
    relations: dict[str, ClockRelation | None] = {
        "linear": LinearRelation(),
        "linear:published": LinearRelation(),
        "physical": PhysicalRelation(separation),
        "physical:published": ConverseRelation(run.bounds),
        "linear-physical": LinearPhysicalRelation(separation),
        "linear-physical:published": PrintedRelation(run.bounds)
        if run.bounds.homogeneous
        else None,
    }
    relation = relations[rule]
    assert relation is not None
    one, other = (
        ClockStamp(one.sender, one.seq, one.lt_printed if printed else one.lt, one.pt_s * SECOND_NS)
        for one in (a, b)
    )
    return relation.precedes(one, other)


def _topics_say(run: Run, a: Sent, b: Sent, rule: str, own: frozenset[str]) -> bool:
    name, _, printed = rule.partition(":")
    relation = (PrintedTopicRelation if printed else TopicRelation)(
        Delays(run.bounds, range(len(NAMES))),
        linear=name in ("tv-lt", "htbc"),
        physical=name in ("tv-pt", "htbc"),
        vector=name == "tv-vt",
    )
    first, second = (
        TopicStamp(
            one.sender,
            one.seq,
            {topic: one.counts[topic] for topic in one.topics},
            lt=one.lt,
            pt_ns=one.pt_s * SECOND_NS,
            vt=pack(enumerate(one.vt)),
        )
        for one in (a, b)
    )
    return relation.precedes(first, second, own)
