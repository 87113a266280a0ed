"""The network of the hierarchical protocol: who stands where, and how peers come and go."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

from antecede.protocols.base import Protocol
from antecede.protocols.hierarchical.external import ExternalPeer
from antecede.protocols.hierarchical.internal import InternalPeer
from antecede.protocols.hierarchical.messages import Downward, External
from antecede.protocols.hierarchical.super_peer import SuperPeer
from tests.network import Delay, Network, anyhow


def skewed(slow: Callable[[int, int], float]) -> Delay:
    """Return delays without bound that are this much longer on some channels."""

    def delay(draw: random.Random, source: int, target: int, message: Any) -> int:
        return round(anyhow(draw, source, target, message) * slow(source, target))

    return delay


class HierarchicalNetwork(Network):
    """Internal, external and super peers; super peers forward, and have no application."""

    def __init__(self, members: Mapping[int, Protocol], seed: int, **how: Any) -> None:
        super().__init__(lambda me, _: members[me], members, seed, restarts=0.0, **how)

    def join_internal(self, newcomer: InternalPeer) -> None:
        """Let an internal peer join, with the frontier of its super peer, a group with peers."""
        super_peer = self.members[newcomer.super_peer]
        newcomer.adopt(super_peer.frontier())
        for at in (*super_peer.group, super_peer.me):
            self.members[at].join(newcomer.me)
        forwarded = {
            m.payload for at, m in self.carried if at == super_peer.me and isinstance(m, Downward)
        }
        self.enter(newcomer.me, newcomer, forwarded, forwarded)

    def join_external(self, newcomer: ExternalPeer, sponsor: int) -> None:
        """Let an external peer join with the frontier of another one.

        The transport owes it what the frontier does not cover: it gets everything again.
        """
        newcomer.adopt(self.members[sponsor].frontier())
        for member in self.members.values():
            if isinstance(member, SuperPeer):
                member.join_external(newcomer.me)
            elif isinstance(member, ExternalPeer):
                member.join(newcomer.me)
        has = self.truth.has[sponsor]
        self.enter(newcomer.me, newcomer, has, has)
        for source, message in tuple(self.carried):
            if isinstance(message, External):
                self.put(source, newcomer.me, message)

    def leave(self, member: int) -> None:
        """Let a peer go: copies to it vanish, copies from it still arrive."""
        gone = self.members.pop(member)
        for at, other in self.members.items():
            if isinstance(gone, ExternalPeer) and not isinstance(other, InternalPeer):
                self.carry_out(at, other.leave(member, gone.number))
            elif isinstance(gone, InternalPeer) and gone.super_peer in (
                at,
                getattr(other, "super_peer", None),
            ):
                self.carry_out(at, other.leave(member, gone.sn))
