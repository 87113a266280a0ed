"""Custom super peers, checked with the hierarchical protocol of Evropeytsev et al. 2016.

antecede check examples/own_super_peer.py:careful
antecede check examples/own_super_peer.py:careless
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from antecede.core.protocols import Effect, Protocol, Transmit
from antecede.core.protocols.hierarchical import External, SuperPeer, Topology, hierarchical
from antecede.lab.check import Target


class Counting(SuperPeer):
    """Counts forwarded messages."""

    def __init__(self, me: int, *more: Any) -> None:
        super().__init__(me, *more)
        self.forwarded = 0

    def receive(self, message: Any, *, now: int | None = None) -> Sequence[Effect]:
        """Receive a message, and count the forwarded ones."""
        effects = super().receive(message, now=now)
        self.forwarded += sum(isinstance(one, Transmit) for one in effects)
        return effects


class Careless(SuperPeer):
    """Forwards messages of its group without their causes."""

    def receive(self, message: Any, *, now: int | None = None) -> Sequence[Effect]:
        """Receive a message, and forward it without its causes."""
        return [without_causes(one) for one in super().receive(message, now=now)]


def without_causes(effect: Effect) -> Effect:
    """Return an effect; messages for the external group name no causes."""
    if isinstance(effect, Transmit) and isinstance(effect.message, External):
        return Transmit(effect.to, effect.message._replace(counts=(), vectors=()))
    return effect


def with_super_peers(made: Callable[..., SuperPeer]) -> Callable[..., dict[int, Protocol]]:
    """Return a function that creates all processes of a topology, with these super peers."""

    def processes(topology: Topology) -> dict[int, Protocol]:
        members = hierarchical(topology)
        for me, group in topology.groups.items():
            members[me] = made(me, group, topology.external, topology.super_peers)
        return members

    return processes


def careful() -> Target:
    """Return a hierarchy that keeps causal order."""
    return Target("careful", with_super_peers(Counting), Topology)


def careless() -> Target:
    """Return a hierarchy that breaks causal order."""
    return Target("careless", with_super_peers(Careless), Topology)
