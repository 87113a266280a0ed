"""Runs of the simulated network with super peers: kills with failover, cuts, joins and leaves.

As `tests.live.simulated`, whose judge it uses: only who says something, and what can go wrong,
differ.
"""

from __future__ import annotations

import random
from functools import partial
from typing import NamedTuple

from antecede.live.hierarchy.settings import HierarchySettings
from antecede.live.settings import NS
from tests.live.memory_network import MS, Host, MemoryNetwork, MemoryStore
from tests.live.observation import Observation
from tests.live.simulated import REST_S, Judgement, Run

JOIN_AGAIN = "join again"
"""First words of the reason why an internal peer that lacks messages is out of the group."""


class Plan(NamedTuple):
    """What a run is like."""

    seed: int
    supers: int = 2
    internals: int = 5
    externals: int = 1
    messages: int = 60
    seconds: float = 5.0
    faults: int = 4
    order: str = "causal"
    """By what relation it is judged."""
    durable: bool = False
    """Whether external peers have a store."""
    kinds: tuple[str, ...] = (
        *("kill", "lone", "cut", "one way", "freeze", "crash", "leave", "part"),
    )


class LazyNetwork(MemoryNetwork):
    """Ends turns sooner or later, as a loop with much else to do: more comes in between."""

    def turn(self, name: str) -> None:
        """Let a host do what is to be done, by now or in a while."""
        if self.random.random() < 0.5:
            super().turn(name)
        else:
            self.at(self.random.randrange(5 * MS), partial(super().turn, name))


class HierarchyRun(Run):
    """One run."""

    plan: Plan  # type: ignore[assignment]

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.network = LazyNetwork(plan.seed)
        self.random = random.Random(f"hierarchy {plan.seed}")
        counts = {"super": plan.supers, "external": plan.externals, "internal": plan.internals}
        self.role = {
            f"{role[0]}{number}": role
            for role, count in counts.items()
            for number in range(1, count + 1)
        }
        self.names = list(self.role)
        for name, role in self.role.items():
            settings = HierarchySettings(
                role=role, evict_after_ns=3 * NS, failover_timeout_ns=4 * NS
            )
            durable = plan.durable and role == "external"
            self.network.add(name, settings, durable=durable)
        self.rows = {}
        self.seen = {}
        self.founders = set()
        self.judgement = Judgement()
        self.failovers = self.anew = 0
        self.supers_of: dict[str, set[str]] = {}

    def of(self, *roles: str) -> list[str]:
        return [name for name, role in self.role.items() if role in roles]

    def start(self) -> None:
        network = self.network
        network.start("s1")
        others = [name for name in self.names if name != "s1"]
        for k, name in enumerate(others):
            role = self.role[name]
            to = self.random.choice(self.of("super")) if role == "internal" else "s1"
            network.at((50 + 30 * k) * MS, partial(network.start, name, to))
        network.run(3 * NS)
        for host in network.hosts.values():
            assert host.is_in_group, host.name
            if self.role[host.name] != "super":
                self.founders.add(host.sender_id)

    def say(self, name: str) -> None:
        if self.role[name] == "super":
            name = self.random.choice(self.of("internal", "external"))
        super().say(name)

    def write_down(self, host: Host) -> None:
        super().write_down(host)
        super_peer = host.observe().hierarchy.super_peer if host.sender_id else ""
        if super_peer:
            self.supers_of.setdefault(host.sender_id, set()).add(super_peer)

    # -- harm -------------------------------------------------------------------------------

    def fault(self) -> None:
        network, draw = self.network, self.random
        kind = draw.choice(self.plan.kinds)
        after = draw.randrange(200, 2500) * MS
        everybody = self.names
        if kind == "kill":
            name = draw.choice(self.of("super"))
            self.crash(name)
            network.at(after, lambda: self.restart(name))
        elif kind == "lone":  # killed while another super peer lacks what it said last
            name, other = draw.sample(self.of("super"), 2)
            network.cut([name], [other])
            network.at(draw.randrange(100, 900) * MS, partial(self.crash, name))
            network.at(after, network.heal)
            network.at(900 * MS + after, lambda: self.restart(name))
        elif kind == "crash":
            name = draw.choice(self.of("internal", "external"))
            self.crash(name)
            network.at(after, lambda: self.restart(name))
        elif kind == "freeze":
            name = draw.choice(everybody)
            network.freeze(name)
            network.at(after, lambda: network.thaw(name))
        elif kind == "leave":
            name = draw.choice(everybody)
            self.leave(name)
            network.at(after, lambda: self.restart(name))
        elif kind == "part":  # peers inside lose their super peer, which lives on
            name = draw.choice(self.of("super"))
            network.cut([name], self.of("internal"))
            network.at(after, network.heal)
        else:
            some = set(draw.sample(everybody, draw.randrange(1, len(everybody))))
            network.cut(some, set(everybody) - some, one_way=kind == "one way")
            network.at(after, network.heal)

    def crash(self, name: str) -> None:
        if self.role[name] == "super" and not self._mesh(name, supers=True):
            return
        host = self.network.hosts[name]
        self.write_down(host)
        self.network.crash(name)

    def _mesh(self, but: str, *, supers: bool = False) -> list[str]:
        """Return who is in the mesh, could let somebody in, and is reached."""
        roles = ("super",) if supers else ("super", "external")
        return [one for one in self._others(but) if self.role[one] in roles]

    def leave(self, name: str) -> None:
        if self.role[name] == "super" and not self._mesh(name, supers=True):
            return
        super().leave(name)

    def restart(self, name: str) -> None:
        host = self.network.hosts[name]
        self.write_down(host)
        if host.sender_id and not host.has_ended:
            return
        if host.sender_id:
            is_internal = self.role[name] == "internal"
            self.anew += is_internal and host.observe().end_reason.startswith(JOIN_AGAIN)
            self.network.crash(name)
            host.store = MemoryStore() if host.store is not None else None
        if host.store is not None and host.store.snapshot:
            self.network.start(name)
            self._forget_unstored(host)
        elif others := self._mesh(name, supers=self.role[name] == "internal"):
            self.network.start(name, self.random.choice(others))
        else:
            self.network.at(200 * MS, lambda: self.restart(name))

    # -- judgement --------------------------------------------------------------------------

    def judge(self) -> None:
        self.failovers = sum(len(lanes) - 1 for lanes in self.supers_of.values() if lanes)
        super().judge()

    def _at_rest(self, host: Host) -> None:
        stuck = self.judgement.stuck
        if not host.is_in_group:
            stuck.append(f"{host.name} is not in a group")
            return
        found = host.observe()
        if self.role[host.name] == "internal":
            super_peer = found.hierarchy.super_peer
            is_safe = found.unacknowledged_by == {super_peer} and not found.hierarchy.not_returned
            if not (found.connected and is_safe):
                stuck.append(f"{host.name} has no super peer, or something that is not safe")
            if found.memory_bytes:
                stuck.append(f"{host.name} keeps {found.memory_bytes} bytes")
        else:
            self._mesh_at_rest(host.name, found)
        self._list_rejected(found)

    def _mesh_at_rest(self, name: str, found: Observation) -> None:
        stuck, inside = self.judgement.stuck, found.hierarchy
        if found.members.keys() != self.list_alive(*self.of("super", "external")):
            stuck.append(f"{name} sees {sorted(found.members)}")
        if found.held or found.stalled or found.memory_bytes:
            stuck.append(f"{name} holds {found.held[:2]}, {found.memory_bytes} bytes")
        if inside.joining or inside.not_durable or inside.retained:
            stuck.append(f"{name} keeps {inside.retained} for those inside, {inside.joining}")
        if strays := [lane for lane, is_up in inside.internal_peers.items() if not is_up]:
            stuck.append(f"{name} waits for {strays}")


__all__ = ["REST_S", "HierarchyRun", "Plan"]
