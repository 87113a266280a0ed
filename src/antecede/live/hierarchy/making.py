"""What a `Peer` of order "hierarchical" is made of, by its role; what does not go is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from antecede.errors import LocalError
from antecede.formatting import shown
from antecede.live.hierarchy.internal import InternalNode
from antecede.live.hierarchy.mesh import MeshNode
from antecede.live.hierarchy.mesh_group import EXTERNAL, SUPER
from antecede.live.hierarchy.settings import HIERARCHICAL, INTERNAL, ROLES, HierarchySettings
from antecede.live.hierarchy.super_peer import SuperNode
from antecede.live.node import Node
from antecede.live.settings import Settings

_KINDS: Final[Mapping[str, Callable[..., Node]]] = {
    INTERNAL: InternalNode,
    SUPER: SuperNode,
    EXTERNAL: MeshNode,
}


def settings_kind(order: str, role: str | None) -> type[Settings]:
    """Return the class of a peer's settings. Raises LocalError for a wrong role."""
    if order != HIERARCHICAL:
        if role is not None:
            raise LocalError(f'role= is of order "hierarchical", not of {shown(order)}')
        return Settings
    if role not in ROLES:
        raise LocalError(f'with order "hierarchical" role= is one of {ROLES}, not {shown(role)}')
    return HierarchySettings


def check(settings: Settings, given: Mapping[str, Any]) -> None:
    """Raise LocalError for arguments of a peer (name -> value, None: not given) that its role does
    not take.
    """
    role = role_of(settings)
    refused = {
        INTERNAL: {
            "listen": "nobody calls a peer inside",
            "address": "nobody calls a peer inside",
            "store": "what it has said is kept by it until its super peer has made it safe, in "
            "memory; who must survive its own crash is an external peer",
        },
        SUPER: {
            "store": "it keeps what others lack in memory, and another super peer takes its place",
            "trace": "it sends and delivers nothing itself",
        },
    }
    for name, why in refused.get(role, {}).items():
        if given.get(name) is not None:
            raise LocalError(f"role {role!r} does not take {name}=: {why}")
    if role == SUPER and given.get("listen") is None:
        raise LocalError("a super peer needs listen=: peers inside call it")


def role_of(settings: Settings) -> str:
    """Return the role of a peer; empty: it is of a flat group."""
    return settings.role if isinstance(settings, HierarchySettings) else ""


def node_kind(settings: Settings) -> Callable[..., Node]:
    """Return what makes the node of a peer, called as `Node`."""
    return _KINDS.get(role_of(settings), Node)
