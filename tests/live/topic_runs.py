"""Runs of the simulated network in orders by clocks: clocks that err, subscriptions that change.

As `tests.live.simulated`, whose faults and restarts these runs have. Beside that every member has a
clock of its own, what arrives is written down too (the orders go by receipt), and what came later
than the bounds allow is remembered by batch: whatever is out of order must be among it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from antecede.core.clocks.bounds import Bounds
from antecede.core.oracle.history import History
from antecede.live.events import Id, Message
from antecede.live.settings import NS
from antecede.tables.trace.schema import RECEIVE, SEND, Event
from tests.live.memory_network import MS, Host
from tests.live.observation import watch_clocks
from tests.live.simulated import REST_S, Judgement, Plan, Run

TOPICS = ("x", "y", "z", "w")
ACCURACY_NS = 5 * MS
BOUNDS: Bounds[str] = Bounds(accuracy_ns=ACCURACY_NS, least_ns=MS, most_ns=150 * MS)
"""Links take 1 to 40 ms; a store, and the steps of 20 ms in which hosts look up, more."""
FINE: Bounds[str] = Bounds(accuracy_ns=MS // 4, least_ns=MS, most_ns=150 * MS)
BROADCAST = ("linear", "physical", "linear-physical")
BY_TOPICS = ("htbc", "tv", "tv-lt", "tv-pt", "tv-vt")


def clock_plan(seed: int, order: str, **more: Any) -> Plan:
    options: dict[str, Any] = {"bounds": BOUNDS}
    if order in BROADCAST:
        options["delivery"] = "bound"
    if order == "physical":  # needs clocks that err by less than a message takes
        options["bounds"] = FINE
    settings = {"options": options, **more.pop("settings", {})}
    return Plan(seed, order=order, settings=settings, **more)


def wavering(phase: float, accuracy_ns: int) -> Callable[[int], int]:
    """Return a clock that is within its accuracy of true time, and wanders slowly."""

    def shown(now: int) -> int:
        swing = math.sin(2 * math.pi * now / (60 * NS) + phase)
        return 1_000 * NS + now + round(accuracy_ns * swing)

    return shown


class ClockRun(Run):
    """One run of an order by clocks, by topics or not."""

    def __init__(self, plan: Plan, *, changes: int = 4) -> None:
        super().__init__(plan)
        self.by_topics = plan.order in BY_TOPICS
        self.changes = changes if self.by_topics else 0
        draw = self.random
        self.base = {name: set(draw.sample(TOPICS, draw.randrange(1, 3))) for name in self.names}
        """To what each member subscribes all the time."""
        for name, host in self.network.hosts.items():
            mine = {"topics": sorted(self.base[name])} if self.by_topics else {}
            host.settings = type(host.settings)(
                order=plan.order,
                **{**plan.settings, **mine},  # type: ignore[arg-type]
            )
            bounds = host.settings.bounds
            assert bounds is not None
            host.clock = wavering(draw.uniform(0, 2 * math.pi), bounds.accuracy_ns)
            host.clock_error_ns = bounds.accuracy_ns
        self.batch_of: dict[Id, tuple[str, int]] = {}
        self.message_of: dict[tuple[str, int], Id] = {}
        self.about: dict[Id, tuple[str, ...]] = {}
        self.sent_to: dict[Id, dict[str, frozenset[str]]] = {}
        """Message -> lane -> what its sender knew that member to subscribe to."""
        self.subscribed: dict[str, list[tuple[int, frozenset[str]]]] = {}
        """Lane -> (from when on, topics)."""
        self.sent_at: dict[Id, int] = {}
        self.arrived: dict[str, list[tuple[str, int]]] = {}
        """Lane -> the batches that came, as a whole, in order."""
        self.late: set[tuple[str, str, int]] = set()
        """(name of the receiver, lane, batch): what came later than the bounds allow."""
        self.alarms = self.said_early = 0
        """Alarms, and messages that came before others which came too late."""

    # -- what is looked at ------------------------------------------------------------------

    def watched(self) -> Judgement:
        """Run, with an eye on what arrives and on alarms."""

        def received(member: str, name: str, number: int, is_stored: bool) -> None:
            if is_stored or not self.plan.durable:
                self.arrived.setdefault(member, []).append((name, number))

        def alarmed(kind: str, member: str, batch: Id | None) -> None:
            self.alarms += 1
            if kind == "late" and batch is not None:
                self.late.add((member, *batch))

        with watch_clocks(received, alarmed):
            return self.run()

    def run(self) -> Judgement:
        span = round(self.plan.seconds * NS)
        for _ in range(self.changes):
            self.network.at(2 * NS + self.random.randrange(span), self.subscribe)
        return super().run()

    least_rest_s = REST_S

    def heal(self) -> None:
        super().heal()
        for k in range(3 * len(self.names)):  # what is said afterwards shows who is told what
            name = self.names[k % len(self.names)]
            self.network.at((REST_S - 5) * NS + k * 40 * MS, partial(self.say, name))

    def start(self) -> None:
        super().start()
        for host in self.network.hosts.values():
            self._note_subscription(host)

    # -- what is done -----------------------------------------------------------------------

    def subscribe(self) -> None:
        name = self.random.choice(self.names)
        more = self.random.sample(TOPICS, self.random.randrange(3))
        host = self.network.hosts[name]
        if host.is_idle or host.has_ended:
            return
        self.network.subscribe(name, sorted(self.base[name] | set(more)))
        self._note_subscription(host)

    def _note_subscription(self, host: Host) -> None:
        topics = self.network.status(host.name).topics if host.sender_id else None
        if topics is not None:
            rows = self.subscribed.setdefault(host.sender_id, [])
            rows.append((self.network.now, frozenset(topics)))

    def say(self, name: str) -> None:
        host = self.network.hosts[name]
        self.write_down(host)
        if host.is_idle or host.has_ended:
            return
        topics: tuple[str, ...] = ()
        if self.by_topics:
            topics = tuple(sorted(self.random.sample(TOPICS, self.random.randrange(1, 3))))
        known = {lane: frozenset(own) for lane, own in host.observe().subscriptions.items()}
        lane = self.rows.setdefault(host.sender_id, [])
        said = self.network.say(name, f"{name}{self.network.now}".encode(), (), topics)
        if said is None:
            return
        lane.append((SEND, said, (), 0))
        batch = host.sender_id, host.observe().newest(host.sender_id)
        if before := self.message_of.get(batch):  # of a life that a crash undid
            self.batch_of.pop(before, None)
        self.batch_of[said], self.message_of[batch] = batch, said
        self.about[said], self.sent_to[said] = topics, known
        self.sent_at[said] = self.network.now

    def write_down(self, host: Host) -> None:
        if host.sender_id:
            lane = self.rows.setdefault(host.sender_id, [])
            for batch in self.arrived.pop(host.sender_id, []):
                if batch in self.message_of:
                    lane.append((RECEIVE, self.message_of[batch], (), batch[1]))
        self.check_topics(host)
        super().write_down(host)

    def check_topics(self, host: Host) -> None:
        for event in host.events[self.seen.get(host.name, 0) :]:
            if isinstance(event, Message) and event.topics != self.about.get(event.id):
                self.judgement.stuck.append(f"{event} about {event.topics}")

    def restart(self, name: str) -> None:
        super().restart(name)
        self._note_subscription(self.network.hosts[name])

    def _forget_unstored(self, host: Host) -> None:
        super()._forget_unstored(host)
        found = host.observe()
        self.arrived.pop(found.sender_id, None)
        self.rows[found.sender_id] = [
            row
            for row in self.rows.get(found.sender_id, [])
            if row[0] != RECEIVE or row[3] <= found.newest(row[1].sender_id)
        ]

    # -- judgement --------------------------------------------------------------------------

    def _owed(self, sends: set[Id], delivered: dict[str, list[Id]]) -> dict[Id, set[str]]:
        if not self.by_topics:
            return super()._owed(sends, delivered)
        return {one: {lane for lane in delivered if self.is_owed(one, lane)} for one in sends}

    def judge_order(
        self, sends: set[Id], delivered: dict[str, list[Id]], owed: dict[Id, set[str]]
    ) -> None:
        """What came before something it follows is wrong, unless that came later than it may."""
        to = {one: {lane for lane in delivered if one in delivered[lane]} for one in sends}
        history = History(
            self._events(),
            {str(one): lanes for one, lanes in to.items()},
            {str(one): about for one, about in self.about.items()},
            {lane: self.base[lane.partition("~")[0]] for lane in self.rows},
        )
        for lane in history.by_member:
            self.judgement.twice += history.find_double_or_unsent(lane)
        for early in history.early("topic" if self.by_topics else "receipt"):
            name = early.member.partition("~")[0]
            batches = [self.batch_of[Id.from_text(one)] for one in early.missing]
            if not all((name, *batch) in self.late for batch in batches):
                self.judgement.early.append(early)
            self.said_early += 1

    def is_owed(self, message: Id, lane: str) -> bool:
        """Whether the sender knew that this member subscribes, and it does from then on."""
        if lane == message.sender_id:
            return False
        wanted = self.sent_to[message].get(lane, frozenset()) & set(self.about[message])
        log, at = self.subscribed.get(lane, []), self.sent_at[message]
        for k, (_, topics) in enumerate(log):
            if k + 1 == len(log) or log[k + 1][0] >= at:  # it held at the sending, or later
                wanted &= topics
        return bool(wanted)

    def _events(self) -> list[Event]:
        return [
            Event(kind=kind, id=str(one), member=lane)
            for lane, rows in self.rows.items()
            for kind, one, _, _ in rows
        ]
