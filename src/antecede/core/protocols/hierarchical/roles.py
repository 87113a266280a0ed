"""Hierarchical protocol of Evropeytsev et al. 2016: internal groups, super peers, external group.

Source: Evropeytsev et al. 2016, whole; errata, the worked example and how to choose:
docs/protocols/hierarchical.md.

                 internal group                external group
    InternalPeer ... InternalPeer   SuperPeer  SuperPeer ... ExternalPeer ... ExternalPeer

Internal peers talk to their super peer only and keep two bit vectors. External peers and all
super peers talk to each other; a super peer stands in both groups and translates. A message
reaches every peer of every group, in causal order by delivery. The modules:

    messages      layouts, wire bytes, byte accounting
    internal      Listings 1, 4, 5, 6
    external      Listings 2, 9, 12
    clock         Listings 10, 11: VTx and held messages of the external group
    super_peer    Listings 3, 7, 8, 13
    translation   Listings 14, 15: TT, I and pruning
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

from antecede.core.protocols.base import Protocol
from antecede.core.protocols.hierarchical.external import LISTING12, ExternalPeer
from antecede.core.protocols.hierarchical.internal import LISTING6, InternalPeer
from antecede.core.protocols.hierarchical.super_peer import FLUSH_AFTER, SuperPeer
from antecede.core.protocols.hierarchical.translation import NONE, PRUNING, PUBLISHED, SAFE
from antecede.errors import LocalError

PRINTED = (LISTING6, LISTING12)
"""Listings whose printed form can be chosen because it behaves differently."""
ACK_AFTER = 64
"""Deliveries without sending after which an internal peer acknowledges (safe pruning)."""


class Topology(NamedTuple):
    """Who stands where; every process has one address (a small number) for the whole system."""

    groups: Mapping[int, tuple[int, ...]]
    """Address of each super peer -> addresses of the internal peers of its group."""
    external: tuple[int, ...] = ()
    """Addresses of the external peers."""

    @property
    def super_peers(self) -> tuple[int, ...]:
        """Addresses of all super peers, ascending."""
        return tuple(sorted(self.groups))

    @property
    def addresses(self) -> tuple[int, ...]:
        """All addresses, ascending. Raises LocalError when one is used twice or is negative."""
        inner = [peer for peers in self.groups.values() for peer in peers]
        found = sorted((*self.groups, *self.external, *inner))
        twice = {a for a, b in pairwise(found) if a == b}
        if twice or (found and found[0] < 0):
            raise LocalError(f"addresses are distinct and not negative: {sorted(twice)}, {found}")
        return tuple(found)


def hierarchical(
    topology: Topology,
    *,
    pruning: str = SAFE,
    printed: Collection[str] = (),
    ack_after: int | None = None,
    ack_payload: Any = b"",
    flush_after: int = FLUSH_AFTER,
) -> dict[int, Protocol]:
    """Return one process for each address of the topology.

    `pruning` is how super peers shorten TT: "safe", "none", or "published" (Evropeytsev et al.
    2016, section 3.2: unsafe, kept to show it). `printed` names listings to run as printed, from
    `PRINTED`.
    `ack_after`: an internal peer that has delivered so many messages and sent none tells its
    super peer how far it is (0: never; default ACK_AFTER, and 1 with "published", where this
    models the source's unexplained knowledge); such a message carries `ack_payload`.
    `flush_after`: a super peer whose group has sent nothing while so many messages came from
    outside sends I by itself. Raises LocalError for an unknown option or a bad topology.
    """
    unknown = sorted(set(printed) - set(PRINTED))
    if unknown or pruning not in PRUNING:
        raise LocalError(f"pruning {pruning!r} of {PRUNING}, printed {unknown} of {PRINTED}")
    if pruning == NONE and ack_after:
        raise LocalError("ack_after is of pruning, and pruning is 'none': leave it out")
    if ack_payload != b"" and (pruning == NONE or ack_after == 0):
        raise LocalError("ack_payload is carried by acknowledgements, and there are none here")
    if ack_after is None:
        ack_after = 1 if pruning == PUBLISHED else ACK_AFTER
    external, super_peers = topology.external, topology.super_peers
    addresses = topology.addresses
    members: dict[int, Protocol] = {}
    for super_peer, group in topology.groups.items():
        members[super_peer] = SuperPeer(
            super_peer, group, external, super_peers, pruning=pruning, flush_after=flush_after
        )
        for me in group:
            members[me] = InternalPeer(
                me,
                (*group, super_peer),
                super_peer,
                pruning=pruning,
                printed=printed,
                ack_after=ack_after,
                ack_payload=ack_payload,
            )
    for me in external:
        members[me] = ExternalPeer(me, external, super_peers, printed=printed)
    return {address: members[address] for address in addresses}
