"""Hierarchical protocol of Evropeytsev et al. 2016: internal groups, super peers, external group.

Source: Evropeytsev et al. 2016, whole. Errata, the worked example and advice on its use:
docs/protocols/hierarchical.md.

                 internal group                external group
    InternalPeer ... InternalPeer   SuperPeer  SuperPeer ... ExternalPeer ... ExternalPeer

Internal peers exchange messages only with their super peer and keep two bit vectors. External peers
and all super peers exchange messages with each other. A super peer is in both groups and
translates. A message reaches every peer of every group, in causal order by delivery.
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

PUBLISHED_LISTINGS = (LISTING6, LISTING12)
"""Listings with a printed variant, because it behaves differently."""
ACK_AFTER = 64
"""Number of deliveries without a send before an internal peer acknowledges (safe pruning)."""


class Topology(NamedTuple):
    """Members of all groups; every process has one address (a small number) in the whole system."""

    groups: Mapping[int, tuple[int, ...]]
    """Address of each super peer -> addresses of the internal peers of its group."""
    external: tuple[int, ...] = ()

    @property
    def super_peers(self) -> tuple[int, ...]:
        return tuple(sorted(self.groups))

    @property
    def addresses(self) -> tuple[int, ...]:
        """All addresses, ascending. Raises LocalError for a duplicate or negative address."""
        inner = [peer for peers in self.groups.values() for peer in peers]
        found = sorted((*self.groups, *self.external, *inner))
        twice = {a for a, b in pairwise(found) if a == b}
        if twice or (found and found[0] < 0):
            raise LocalError(
                f"addresses must be distinct and not negative; duplicates {sorted(twice)} in "
                f"{found}"
            )
        return tuple(found)


def hierarchical(
    topology: Topology,
    *,
    pruning: str = SAFE,
    as_published: Collection[str] = (),
    ack_after: int | None = None,
    ack_payload: Any = b"",
    flush_after: int = FLUSH_AFTER,
) -> dict[int, Protocol]:
    """Return one process for each address of the topology.

    - `pruning`: "safe", "none", or "published" (Evropeytsev et al. 2016, section 3.2: unsafe).
    - `as_published`: listings to run as printed, from `PUBLISHED_LISTINGS`.
    - `ack_after`: deliveries without a send after which an internal peer acknowledges; 0: never.
      Default ACK_AFTER, and 1 with "published", as a model of the source's unexplained knowledge.
    - `ack_payload`: payload of these acknowledgements.
    - `flush_after`: messages from outside after which a silent group's super peer sends I alone.

    Raises LocalError for an unknown option or an invalid topology.
    """
    unknown = sorted(set(as_published) - set(PUBLISHED_LISTINGS))
    if unknown or pruning not in PRUNING:
        raise LocalError(
            f"pruning {pruning!r} or as_published {unknown} is unknown; choose from {PRUNING} "
            f"and {PUBLISHED_LISTINGS}"
        )
    if pruning == NONE and ack_after:
        raise LocalError("ack_after has no effect with pruning 'none'; leave it out")
    if ack_payload != b"" and (pruning == NONE or ack_after == 0):
        raise LocalError("ack_payload has no effect without acknowledgements; leave it out")
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
                as_published=as_published,
                ack_after=ack_after,
                ack_payload=ack_payload,
            )
    for me in external:
        members[me] = ExternalPeer(me, external, super_peers, as_published=as_published)
    return {address: members[address] for address in addresses}
