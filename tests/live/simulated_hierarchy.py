"""Runs of the simulated network with super peers: kills with failover, cuts, joins and leaves.

As `tests.live.simulated`, whose judge it uses: only who says something, and what can go wrong,
differ.
"""

from __future__ import annotations

import random
from functools import partial
from typing import NamedTuple

from antecede.live.hierarchy.internal import InternalNode
from antecede.live.hierarchy.mesh import ExternalNode
from antecede.live.hierarchy.settings import HierarchySettings
from antecede.live.hierarchy.star import ANEW
from antecede.live.hierarchy.super_peer import SuperNode
from antecede.live.node import Node
from antecede.live.settings import NS
from tests.live.memory_network import MS, Host, MemoryNetwork, MemoryStore
from tests.live.simulated import REST_S, Judgement, Run

KINDS = {"internal": InternalNode, "super": SuperNode, "external": ExternalNode}


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
            self.network.add(name, settings, kind=KINDS[role], durable=durable)
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
            assert host.node is not None
            assert host.node.ordering is not None, host.name
            if self.role[host.name] != "super":
                self.founders.add(host.node.lane)

    def say(self, name: str) -> None:
        if self.role[name] == "super":
            name = self.random.choice(self.of("internal", "external"))
        super().say(name)

    def write_down(self, host: Host) -> None:
        super().write_down(host)
        node = host.node
        if isinstance(node, InternalNode) and node.super_lane:
            self.supers_of.setdefault(node.lane, set()).add(node.super_lane)

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
        node = host.node
        if node is not None and not (node.left or node.out):
            return
        if node is not None:
            self.anew += isinstance(node, InternalNode) and node.out.startswith(ANEW)
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
        node, stuck = host.node, self.judgement.stuck
        if node is None or node.ordering is None or node.out:
            stuck.append(f"{host.name} is not in a group")
            return
        if isinstance(node, InternalNode):
            if not node.greeted or node.list_unacknowledged() != [node.super_lane] or node._upward:
                stuck.append(f"{host.name} has no super peer, or something that is not safe")
            if node.ordering.lanes.bytes:
                stuck.append(f"{host.name} keeps {node.ordering.lanes.bytes} bytes")
        else:
            self._mesh_at_rest(host.name, node)
        if node.ordering.spoiled:
            self.judgement.refused.append(f"{host.name}: {node.ordering.spoiled}")
        bad = {kind: count for kind, count in node.rejected.items() if kind != "MismatchError"}
        if bad:
            self.judgement.refused.append(f"{host.name}: {bad}, {node.last_rejection}")

    def _mesh_at_rest(self, name: str, node: Node) -> None:
        ordering, stuck = node.active, self.judgement.stuck
        hosts = [self.network.hosts[one] for one in self.of("super", "external")]
        here = sorted(one.node.lane for one in hosts if one.node is not None)
        if sorted(ordering.members) != here:
            stuck.append(f"{name} sees {sorted(ordering.members)}")
        if ordering.group.list_held() or ordering._stalled or ordering.lanes.bytes:
            stuck.append(
                f"{name} holds {ordering.group.list_held()[:2]}, {ordering.lanes.bytes} bytes"
            )
        if isinstance(node, SuperNode):
            hub, log = node.hub, node.hub.log
            if hub.waiting or log.passed < log.newest or log.entries:
                stuck.append(f"{name} keeps {len(log.entries)} for those inside, {hub.waiting}")
            if strays := [one for one in hub.inside.values() if one.link is None]:
                stuck.append(f"{name} waits for {[one.lane for one in strays]}")


__all__ = ["REST_S", "HierarchyRun", "Plan"]
