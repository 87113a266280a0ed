"""Network of the hierarchical protocol, with joining and leaving peers."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

from antecede.core.protocols.base import Protocol
from antecede.core.protocols.hierarchical.external import ExternalPeer
from antecede.core.protocols.hierarchical.internal import InternalPeer
from antecede.core.protocols.hierarchical.messages import Downward, External
from antecede.core.protocols.hierarchical.super_peer import SuperPeer
from tests.helpers.network import Delay, Network, anyhow
from tests.helpers.truth import Id


def make_skewed_delay(slow: Callable[[int, int], float]) -> Delay:
    """Return unbounded delays that are this much longer on some channels."""

    def delay(draw: random.Random, source: int, target: int, message: Any) -> int:
        return round(anyhow(draw, source, target, message) * slow(source, target))

    return delay


class HierarchicalNetwork(Network):
    """Internal, external and super peers; super peers forward and have no application."""

    def __init__(self, members: Mapping[int, Protocol], seed: int, **how: Any) -> None:
        super().__init__(lambda me, _: members[me], members, seed, restarts=0.0, **how)
        self.adopted: dict[int, set[Id]] = {}
        """New super peer -> what was said before it came."""

    def join_internal(self, newcomer: InternalPeer) -> None:
        """Add an internal peer with the join state of its super peer, to a group with peers."""
        super_peer = self.members[newcomer.super_peer]
        newcomer.install_join_state(super_peer.join_state())
        for at in (*super_peer.group, super_peer.me):
            self.members[at].join(newcomer.me)
        forwarded = self.list_forwarded(super_peer.me)
        self.enter(newcomer.me, newcomer, forwarded, forwarded)

    def list_forwarded(self, super_peer: int) -> set[Id]:
        """Return the messages that a super peer has numbered, or those sent before it joined."""
        found = {
            m.payload for at, m in self.carried if at == super_peer and isinstance(m, Downward)
        }
        return found | self.adopted.get(super_peer, set())

    def join_external(self, newcomer: ExternalPeer, sponsor: int) -> None:
        """Add an external peer with the join state of another one; it gets every message again."""
        has = self.take_sponsored(newcomer, sponsor)
        for member in self.members.values():
            if isinstance(member, SuperPeer):
                member.join_external(newcomer.me)
            elif isinstance(member, ExternalPeer):
                member.join(newcomer.me)
        self.enter(newcomer.me, newcomer, has, has)
        self.bring_all(newcomer.me)

    def join_super_peer(self, newcomer: SuperPeer, sponsor: int) -> None:
        """Add a super peer with an empty group; it also gets every message again."""
        self.adopted[newcomer.me] = self.take_sponsored(newcomer, sponsor)
        for member in self.members.values():
            if isinstance(member, SuperPeer | ExternalPeer):
                member.join_super_peer(newcomer.me)
        self.enter(newcomer.me, newcomer)
        self.bring_all(newcomer.me)

    def take_sponsored(self, newcomer: ExternalPeer | SuperPeer, sponsor: int) -> set[Id]:
        """Install the join state of an external process; return the messages that it covers."""
        host = self.members[sponsor]
        if isinstance(host, SuperPeer):
            newcomer.install_join_state(host.outer_frontier())
            return self.list_forwarded(sponsor)
        newcomer.install_join_state(host.join_state())
        return set(self.truth.has[sponsor])

    def bring_all(self, newcomer: int) -> None:
        """Send all messages of the external group to a joining process."""
        for source, message in tuple(self.carried):
            if isinstance(message, External):
                self.put(source, newcomer, message)

    def leave_super_peer(self, member: int) -> bool:
        """Remove a super peer if its group is empty and all its messages are forwarded."""
        gone = self.members[member]
        if gone.group or gone.held or any(gone.lr[at][0] < last for at, last in gone.last.items()):
            return False
        del self.members[member]
        for at, other in self.members.items():
            if not isinstance(other, InternalPeer):
                self.carry_out(at, other.leave(member, gone.number))
        return True

    def leave(self, member: int) -> None:
        """Remove a peer: copies to it vanish, copies from it still arrive."""
        gone = self.members.pop(member)
        for at, other in self.members.items():
            if isinstance(gone, ExternalPeer) and not isinstance(other, InternalPeer):
                self.carry_out(at, other.leave(member, gone.number))
            elif isinstance(gone, InternalPeer) and gone.super_peer in (
                at,
                getattr(other, "super_peer", None),
            ):
                self.carry_out(at, other.leave(member, gone.sn))
