"""Runs of groups over simulated datagrams: what happens follows from a seed, the oracle judges.

A run has a few seconds of talk with loss and faults, then the network is healed (it goes on losing
as before) and has time to come to rest. What every life sent, received and delivered is judged by
`antecede.oracle`, which knows nothing of windows, sessions or agreements.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from antecede.clocks.bounds import Bounds
from antecede.errors import LocalError, PeerError
from antecede.live.datagrams.node import DatagramNode
from antecede.live.datagrams.settings import DatagramSettings
from antecede.live.drivers.lossy import MS, DatagramHost, LossyNetwork, Weather
from antecede.live.events import Id, Message
from antecede.live.settings import NS
from antecede.oracle.history import History
from antecede.trace.schema import DELIVER, RECEIVE, SEND, Event

REST_S = 25
RECOVERY_S = 4.0
KINDS = {"send": SEND, "receive": RECEIVE, "deliver": DELIVER}


class Plan(NamedTuple):
    """What a run is like."""

    seed: int
    order: str = "matrix"
    delivery: str = "null"
    members: int = 4
    messages: int = 80
    seconds: float = 6.0
    weather: Weather = Weather()
    faults: tuple[str, ...] = ()
    late: int = 1
    """Members that join while the others talk."""
    largest: int = 60
    settings: Mapping[str, Any] = MappingProxyType({})


@dataclass
class Judgement:
    """What a run did wrong, and how much there was to do."""

    messages: int = 0
    deliveries: int = 0
    early: list[object] = field(default_factory=list)
    lost: list[object] = field(default_factory=list)
    twice: list[object] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    done: Counter[str] = field(default_factory=Counter)
    """Faults that were really done, members that joined late or were put out."""

    @property
    def clean(self) -> bool:
        return not (self.early or self.lost or self.twice or self.stuck or self.refused)


def settings_of(plan: Plan) -> DatagramSettings:
    """Return the settings of a run."""
    options: dict[str, Any] = {"heartbeat_s": 0.2, "retry_s": 0.2}
    if plan.order == "matrix":
        options["recovering"] = True
    else:
        weather = plan.weather
        least, most = weather.least_ns / NS, 2 * weather.most_ns / NS
        options["bounds"] = Bounds(accuracy_s=weather.off_ns / NS, least_s=least, most_s=most)
        options["delivery"] = plan.delivery
        if plan.delivery == "bound":
            options["recovery_s"] = RECOVERY_S
    more: dict[str, Any] = {
        "tick_ns": 20 * MS,
        "silence_ns": NS,
        "put_out_ns": 3 * NS // 2,
        **plan.settings,
    }
    return DatagramSettings(order=plan.order, room="sim", options=options, **more)


class Run:
    """One run: talks, does harm, heals, and is judged."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.settings = plan, settings_of(plan)
        self.network = LossyNetwork(plan.seed, plan.weather)
        self.random = random.Random(f"plan {plan.seed}")
        self.judgement = Judgement()
        self._added = 0
        self._out: set[str] = set()

    # -- what happens -------------------------------------------------------------------------

    def add(self, member: str) -> str:
        self._added += 1
        host = self.network.add(f"{member}{self._added}", member, self.settings)
        host.node.log = []
        return host.name

    def start(self) -> None:
        network = self.network
        first = self.add("a")
        network.found(first)
        for k in range(1, self.plan.members):
            name = self.add(chr(ord("a") + k))
            network.at(20 * k * MS, partial(network.join, name, first))
        for _ in range(200):
            network.run(network.now + 100 * MS)
            if all(len(host.node.membership.members) == self.plan.members for host in self.alive()):
                return
        raise AssertionError("not all got in")

    def run(self) -> Judgement:
        self.start()
        network, draw, plan = self.network, self.random, self.plan
        span = round(plan.seconds * NS)
        for _ in range(plan.messages):
            network.at(draw.randrange(span), self.say)
        for kind in plan.faults:
            network.at(draw.randrange(span), partial(self.fault, kind))
        for k in range(plan.late):
            network.at(draw.randrange(span), partial(self.join, f"late{k}"))
        for _ in range(round(plan.seconds * 10)):
            network.run(network.now + 100 * MS)
            self.look()
        network.heal()
        for host in list(network.hosts.values()):
            if host.frozen:
                network.thaw(host.name)
        rest = 0
        for _ in range(REST_S * 10):
            network.run(network.now + 100 * MS)
            self.look()
            rest = rest + 1 if self._is_settled() else 0
            if rest > 20:
                break
        self.judge()
        return self.judgement

    def _is_settled(self) -> bool:
        """Whether nothing is left to be done: two seconds more, and the run is over."""
        before, self.judgement = self.judgement, Judgement()
        for host in self.alive():
            self._at_rest(host)
        trial, self.judgement = self.judgement, before
        reached = [host.node.reached() for host in self.alive()]
        lanes = [host.node.lane for host in self.alive()]
        even = all(len({one.get(lane, 0) for one in reached}) == 1 for lane in lanes)
        return even and not trial.stuck

    def alive(self) -> list[DatagramHost]:
        """Return the hosts that run."""
        return [host for host in self.network.hosts.values() if host.alive]

    def there(self) -> list[DatagramHost]:
        """Return the hosts whose member is in the group, and means to stay."""
        return [
            host
            for host in self.alive()
            if host.node.group is not None
            and not host.node.membership.out
            and not host.node.membership.departures.leaving
        ]

    def say(self) -> None:
        host = self.random.choice(self.alive())
        size = self.random.choice((8, self.plan.largest))
        if host.frozen or host.node.group is None:
            return
        try:
            host.node.say(f"{self.network.now}".encode().ljust(size, b"."))
        except (LocalError, PeerError):
            return
        self.network.turn(host)

    def join(self, member: str) -> None:
        through = self.random.choice(self.there()).name
        self.network.join(self.add(member), through)
        self.judgement.done["join"] += 1

    def fault(self, kind: str) -> None:
        network, draw = self.network, self.random
        host = draw.choice(self.alive())
        after = draw.randrange(200, 2500) * MS
        if kind == "crash" and self._can_go(host):
            network.crash(host.name)
        elif kind == "freeze" and not host.frozen:
            network.freeze(host.name)
            network.at(after, partial(network.thaw, host.name))
        elif kind == "leave" and host in self.there() and self._can_go(host) and not host.frozen:
            host.node.membership.departures.leave(network.moment(host), 15 * NS)
        elif kind in ("cut", "one way", "long"):
            names = [one.name for one in self.alive()]
            some = set(draw.sample(names, draw.randrange(1, len(names))))
            network.cut(some, set(names) - some, one_way=kind == "one way")
            network.at(after if kind != "long" else 6 * NS, network.heal)
        else:
            return
        self.judgement.done[kind] += 1

    def _can_go(self, host: DatagramHost) -> bool:
        """Whether a quorum is left, as every other member sees it."""
        others = [one for one in self.there() if one is not host and not one.frozen]
        lanes = {one.node.lane for one in others}
        views = [one.node.membership for one in others]
        return len(others) > 1 and all(
            view.agreement is not None
            and view.agreement.is_quorum([view.numbers[x] for x in view.members if x in lanes])
            for view in views
        )

    def look(self) -> None:
        """End who has left; let who was put out begin anew."""
        for host in self.alive():
            membership = host.node.membership
            if membership.departures.leaving and membership.departures.over:
                self.network.crash(host.name)
                self.judgement.done["left"] += 1
            elif membership.out and host.name not in self._out:
                self._out.add(host.name)
                self.network.at(NS, partial(self.network.crash, host.name))
                self.judgement.done["put out"] += 1
                if others := self.there():
                    name = self.add(host.node.name)
                    self.network.join(name, self.random.choice(others).name)
            elif (through := membership.newcomers.joining) and not self.network.hosts[
                through
            ].alive:
                self.network.join(host.name, self.random.choice(self.there()).name)

    # -- judgement ----------------------------------------------------------------------------

    def judge(self) -> None:
        found, nodes = self.judgement, [host.node for host in self.network.hosts.values()]
        logs = {node.lane: node.log or [] for node in nodes if node.group is not None}
        sends = {(row[1], row[2]): row[3] for log in logs.values() for row in log if row[0] == SEND}
        delivered = {
            lane: [row[1:3] for row in log if row[0] == DELIVER] for lane, log in logs.items()
        }
        found.messages, found.deliveries = len(sends), sum(map(len, delivered.values()))
        whole = self._has_quorum()
        found.done["no quorum"] = not whole
        for host in self.alive() if whole else ():
            self._at_rest(host)
        owed = {message: set(self._owed(message, to, logs)) for message, to in sends.items()}
        living = {host.node.lane for host in self.there()}
        living |= {
            node.lane
            for node in nodes
            if node.membership.departures.left and not node.membership.out
        }
        for message, lanes in owed.items():
            had = {lane for lane in living & delivered.keys() if message in delivered[lane]}
            if (message[0] in living or had) and whole:
                there = lanes & {host.node.lane for host in self.there()}
                found.lost += [(message, lane) for lane in there if lane not in had]
            elif self.plan.order != "matrix":
                owed[message] = set()  # what died with its sender is not told by stamps
        rows = [
            Event(kind=KINDS[kind], id=f"{sender}:{number}", member=lane)
            for lane, log in logs.items()
            for kind, sender, number, _ in log
            if kind in KINDS
        ]
        addressed = {f"{sender}:{number}": lanes for (sender, number), lanes in owed.items()}
        history = History(rows, addressed)
        found.early += history.early("delivery" if self.plan.order == "matrix" else "receipt")
        for lane in history.by_member:
            found.twice += history._doubled_or_unsent(lane)
        for node in nodes:
            ids = [e.id for e in self.network.hosts[node.address].events if isinstance(e, Message)]
            found.twice += [one for one, count in Counter(ids).items() if count > 1]
            found.early += _out_of_step(ids)

    def _has_quorum(self) -> bool:
        """Whether those who are left can agree: else members that are gone stay on the list."""
        lanes = {host.node.lane for host in self.there()}
        views = [host.node.membership for host in self.there()]
        return all(
            view.agreement is not None
            and view.agreement.is_quorum([view.numbers[x] for x in view.members if x in lanes])
            for view in views
        )

    def _owed(
        self, message: tuple[str, int], to: tuple[str, ...], logs: dict[str, list[Any]]
    ) -> Iterable[str]:
        """Yield to whom a message is owed: clock orders owe a newcomer nothing older than it."""
        sender, number = message
        for lane, log in logs.items():
            begin = {row[1]: row[2] for row in log if row[0] == "begin"}
            if lane == sender:
                continue
            if self.plan.order == "matrix":
                if number > begin.get(sender, 0):
                    yield lane
            elif lane in to:
                yield lane

    def _at_rest(self, host: DatagramHost) -> None:
        node, found = host.node, self.judgement
        if node.membership.departures.leaving:
            found.stuck.append(f"{host.name} cannot leave")
            return
        if node.group is None:
            found.stuck.append(f"{host.name} is in no group: {node.membership.newcomers.refusal}")
            return
        lanes = sorted(one.node.lane for one in self.alive())
        if sorted(node.membership.members) != lanes or sorted(node.group.members) != lanes:
            found.stuck.append(f"{host.name} sees {sorted(node.membership.members)}, not {lanes}")
        if node.group.blocked_on() or node.waiting_bytes or node.membership.departures.closing:
            found.stuck.append(f"{host.name} holds {node.group.blocked_on()[:2]}")
        if not node.has_room or any(one.parcels for one in node.sessions.values()):
            found.stuck.append(f"{host.name} waits for acknowledgements")
        bad = {kind: n for kind, n in node.refused.items() if kind not in self._harmless()}
        if bad:
            found.refused.append(f"{host.name}: {bad}, {node.last_refusal}")

    def _harmless(self) -> tuple[str, ...]:
        return ("no member", "another's copy", "MismatchError")


def _out_of_step(ids: list[Id]) -> list[object]:
    """Return messages of one lane that came before earlier ones of it."""
    newest: dict[str, int] = {}
    found: list[object] = []
    for one in ids:
        if one.number < newest.get(one.lane, 0):
            found.append(one)
        newest[one.lane] = one.number
    return found


def nodes(run: Run) -> list[DatagramNode]:
    """Return the nodes of a run."""
    return [host.node for host in run.network.hosts.values()]
