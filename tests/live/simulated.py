"""Runs of the simulated network: what happens follows from a seed, and the oracle judges it.

A run has a few seconds of talk with faults in between, then everything is healed and has time to
come to rest. What every member said and delivered is written down as a trace, life by life, and
judged by `antecede.core.oracle`, which knows nothing of lanes, frontiers or stores.
"""

from __future__ import annotations

import os
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

from antecede.core.oracle.history import History
from antecede.live.events import Id, Message
from antecede.live.settings import NS, Settings
from antecede.tables.trace.schema import DELIVER, SEND, Event
from tests.live.memory_network import MS, Host, MemoryNetwork
from tests.live.observation import Observation

RELATION = {
    "causal": "delivery",
    "bss": "delivery",
    "fifo": "fifo",
    "none": "none",
    "reply": "reply",
}
REST_S = 14
LEAST_REST_S = REST_S if os.environ.get("ANTECEDE_NIGHTLY") else 3
"""A run that is clean after this rest ends: repeats that come later are for `make nightly`."""
StoredInput = tuple[str, Id, tuple[Id, ...], int]
"""Kind, message, what it answers, and the how manieth delivery it is."""


class Plan(NamedTuple):
    """What a run is like."""

    seed: int
    members: int = 4
    messages: int = 60
    seconds: float = 4.0
    order: str = "causal"
    durable: bool = False
    faults: int = 4
    settings: Mapping[str, object] = MappingProxyType({})


@dataclass
class Judgement:
    """What a run did wrong, and how much there was to do."""

    messages: int = 0
    deliveries: int = 0
    early: list[object] = field(default_factory=list)
    lost: list[tuple[str, str]] = field(default_factory=list)
    twice: list[object] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    again: int = 0
    """Messages that came again after a restart, which the application had not acknowledged."""

    @property
    def clean(self) -> bool:
        return not (self.early or self.lost or self.twice or self.stuck or self.refused)


class Run:
    """One run: talks, does harm, heals, and is judged."""

    least_rest_s = LEAST_REST_S

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.network = self.new_network()
        self.random = random.Random(f"plan {plan.seed}")
        settings = Settings(order=plan.order, **plan.settings)  # type: ignore[arg-type]
        self.names = [chr(ord("a") + k) for k in range(plan.members)]
        for name in self.names:
            self.network.add(name, settings, durable=plan.durable)
        self.rows: dict[str, list[StoredInput]] = {}
        """Lane -> (kind, id, answers, count) in the order in which its member saw them."""
        self.seen: dict[str, int] = {}
        """Host -> how many of its events are written down."""
        self.founders: set[str] = set()
        self.judgement = Judgement()

    def new_network(self) -> MemoryNetwork:
        return MemoryNetwork(self.plan.seed)

    # -- what happens -----------------------------------------------------------------------

    def start(self) -> None:
        network = self.network
        network.meet(self.names)
        network.run(2 * NS)
        for host in network.hosts.values():
            assert host.is_in_group
            assert len(host.observe().connected) == len(self.names) - 1
            self.founders.add(host.sender_id)

    def run(self) -> Judgement:
        self.start()
        plan, draw = self.plan, self.random
        span = round(plan.seconds * NS)
        for _ in range(plan.messages):
            name = draw.choice(self.names)
            self.network.at(draw.randrange(span), partial(self.say, name))
        for _ in range(plan.faults):
            self.network.at(draw.randrange(span), self.fault)
        self.network.run(self.network.now + span)
        self.heal()
        self.rest()
        return self.judgement

    def rest(self) -> None:
        """Let the members come to rest: until nothing is owed or held."""
        end = self.network.now + REST_S * NS
        self.network.run(self.network.now + self.least_rest_s * NS)
        self.judge()
        while not self.judgement.clean and self.network.now < end:
            self.network.run(self.network.now + NS)
            self.judgement = Judgement(again=self.judgement.again)
            self.judge()

    def say(self, name: str) -> None:
        host = self.network.hosts[name]
        self.write_down(host)
        if host.is_idle:
            return
        reply: tuple[Id, ...] = ()
        lane = self.rows.setdefault(host.sender_id, [])
        if self.plan.order == "reply" and lane and self.random.random() < 0.7:
            reply = (self.random.choice(lane)[1],)
        said = self.network.say(name, f"{name}{self.network.now}".encode(), reply)
        if said is not None:
            lane.append((SEND, said, reply, 0))

    def write_down(self, host: Host) -> None:
        """Note what a host has delivered since the last time."""
        fresh = host.events[self.seen.get(host.name, 0) :]
        self.seen[host.name] = len(host.events)
        if not host.sender_id:
            return
        lane = self.rows.setdefault(host.sender_id, [])
        known = {row[1] for row in lane if row[0] == DELIVER}
        delivered = sum(row[0] == DELIVER for row in lane)
        for event in fresh:
            if not isinstance(event, Message) or event.is_history:
                continue
            if event.id in known and host.lives > 1 and self.plan.durable:
                self.judgement.again += 1
                continue
            known.add(event.id)
            delivered += 1
            lane.append((DELIVER, event.id, event.reply_to, delivered))

    def fault(self) -> None:
        """Do some harm, and undo it in a while."""
        network, draw = self.network, self.random
        name = draw.choice(self.names)
        kind = draw.choice(("cut", "one way", "crash", "freeze", "crash", "leave"))
        after = draw.randrange(200, 2500) * MS
        if kind == "crash":
            self.crash(name)
            network.at(after, lambda: self.restart(name))
        elif kind == "freeze":
            network.freeze(name)
            network.at(after, lambda: network.thaw(name))
        elif kind == "leave" and not self.plan.durable:
            self.leave(name)
            network.at(after, lambda: self.restart(name))
        else:
            some = set(draw.sample(self.names, draw.randrange(1, len(self.names))))
            network.cut(some, set(self.names) - some, one_way=kind == "one way")
            network.at(after, network.heal)

    def crash(self, name: str) -> None:
        if not self.plan.durable and not self._others(name):
            return  # without a store a group ends with its last member
        self.write_down(self.network.hosts[name])
        self.network.crash(name)

    def _others(self, name: str) -> list[str]:
        """Return the other hosts with a member that is in the group."""
        return [
            one.name
            for one in self.network.hosts.values()
            if one.name != name and one.is_in_group and not one.has_ended
        ]

    def leave(self, name: str) -> None:
        host = self.network.hosts[name]
        if not self._others(name):
            return
        self.write_down(host)
        if not host.is_idle:
            self.network.leave(name)

    def restart(self, name: str) -> None:
        """Begin a life where there is none, or one that left or was put out."""
        host = self.network.hosts[name]
        self.write_down(host)
        if host.sender_id and not host.has_ended:
            return
        if host.sender_id:
            self.network.crash(name)
        others = self._others(name)
        if self.plan.durable and host.store is not None and host.store.snapshot:
            self.network.start(name)
            self._forget_unstored(host)
        elif others:
            self.network.start(name, self.random.choice(others))
        else:
            self.network.at(200 * MS, lambda: self.restart(name))

    def _forget_unstored(self, host: Host) -> None:
        """What a member said and delivered and did not store before a crash has not been."""
        found = host.observe()
        lane = found.sender_id
        said = found.newest(lane) if self.plan.order == "reply" else found.sent
        self.rows[lane] = [
            row
            for row in self.rows.get(lane, [])
            if (row[1].number <= said if row[0] == SEND else row[3] <= found.delivered)
        ]

    def heal(self) -> None:
        network = self.network
        network.heal()
        for name, host in network.hosts.items():
            if host.frozen:
                network.thaw(name)
            if not host.sender_id or host.has_ended:
                self.restart(name)
        for seconds in range(1, REST_S - 3):
            network.at(seconds * NS, self._second_look)

    def _second_look(self) -> None:
        """Who learnt late that it was put out begins anew."""
        for host in self.network.hosts.values():
            if not host.sender_id or host.observe().end_reason:
                self.restart(host.name)

    # -- judgement --------------------------------------------------------------------------

    def judge(self) -> None:
        found = self.judgement
        for host in self.network.hosts.values():
            self.write_down(host)
            self._at_rest(host)
        sends = {row[1] for rows in self.rows.values() for row in rows if row[0] == SEND}
        delivered = {
            lane: [row[1] for row in rows if row[0] == DELIVER] for lane, rows in self.rows.items()
        }
        found.messages, found.deliveries = len(sends), sum(map(len, delivered.values()))
        owed = self._owed(sends, delivered)
        self.judge_order(sends, delivered, owed)
        alive = self.list_alive()
        for message, lanes in owed.items():
            is_delivered = any(message in delivered[lane] for lane in alive & delivered.keys())
            if message.sender_id in alive or is_delivered:
                found.lost += [
                    (str(message), lane)
                    for lane in lanes & alive
                    if lane != message.sender_id and message not in delivered[lane]
                ]

    def list_alive(self, *names: str) -> set[str]:
        """Return the sender ids of the members that run at some hosts, or at all."""
        hosts = self.network.hosts
        return {hosts[name].sender_id for name in names or hosts} - {""}

    def judge_order(
        self, sends: set[Id], delivered: dict[str, list[Id]], owed: dict[Id, set[str]]
    ) -> None:
        history = History(self._events(), {str(one): lanes for one, lanes in owed.items()})
        self.judgement.early += history.early(RELATION[self.plan.order])
        for lane in history.by_member:
            self.judgement.twice += history.find_double_or_unsent(lane)

    def _at_rest(self, host: Host) -> None:
        stuck = self.judgement.stuck
        if not host.is_in_group:
            stuck.append(f"{host.name} is not in a group")
            return
        found = host.observe()
        if found.members.keys() != self.list_alive():
            stuck.append(f"{host.name} sees {sorted(found.members)}")
        if found.held or found.stalled or found.memory_bytes:
            stuck.append(f"{host.name} holds {found.held[:2]}")
        self._list_rejected(found)

    def _list_rejected(self, found: Observation) -> None:
        if found.distrusted:
            self.judgement.refused.append(f"{found.sender_id}: {found.distrusted}")
        bad = {kind: count for kind, count in found.rejected.items() if kind != "MismatchError"}
        if bad:
            self.judgement.refused.append(f"{found.sender_id}: {bad}, {found.last_rejection}")

    def _owed(self, sends: set[Id], delivered: dict[str, list[Id]]) -> dict[Id, set[str]]:
        """Return to whom each message is owed: a newcomer, from the first it got of a lane on.

        Where only answers wait, its sponsor may have delivered what came later: it is owed nothing.
        """
        if self.plan.order == "reply":
            return {
                one: {lane for lane in delivered if lane in self.founders or one in delivered[lane]}
                for one in sends
            }
        first: dict[tuple[str, str], int] = {}
        for lane, ids in delivered.items():
            for one in ids:
                key = lane, one.sender_id
                first[key] = min(first.get(key, one.number), one.number)
        return {
            one: {
                lane
                for lane in delivered
                if lane in self.founders or one.number >= first.get((lane, one.sender_id), 1 << 62)
            }
            for one in sends
        }

    def _events(self) -> list[Event]:
        return [
            Event(kind=kind, id=str(one), member=lane, causes=tuple(map(str, answers)))
            for lane, rows in self.rows.items()
            for kind, one, answers, _ in rows
        ]
