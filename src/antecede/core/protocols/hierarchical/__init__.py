"""Hierarchical protocol of Evropeytsev et al. 2016: three roles, their clocks, translation."""

from typing import TYPE_CHECKING

from antecede.lazy import lazy_names

if TYPE_CHECKING:
    from antecede.core.protocols.hierarchical.external import ExternalPeer
    from antecede.core.protocols.hierarchical.internal import InternalPeer
    from antecede.core.protocols.hierarchical.messages import (
        Acknowledgement,
        Downward,
        External,
        Flush,
        Upward,
    )
    from antecede.core.protocols.hierarchical.roles import ACK_AFTER, Topology, hierarchical
    from antecede.core.protocols.hierarchical.super_peer import FLUSH_AFTER, SuperPeer
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "external": "ExternalPeer",
            "internal": "InternalPeer",
            "messages": "Acknowledgement Downward External Flush Upward",
            "roles": "ACK_AFTER Topology hierarchical",
            "super_peer": "FLUSH_AFTER SuperPeer",
        },
    )
