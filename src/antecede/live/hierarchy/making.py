"""Factory of settings and nodes by order and role, with checks of the arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from antecede.errors import LocalError
from antecede.formatting import quote
from antecede.live.hierarchy.internal import InternalNode
from antecede.live.hierarchy.mesh import ExternalNode
from antecede.live.hierarchy.mesh_group import EXTERNAL, SUPER
from antecede.live.hierarchy.settings import HIERARCHICAL, INTERNAL, ROLES, HierarchySettings
from antecede.live.hierarchy.super_peer import SuperNode
from antecede.live.node import Node
from antecede.live.settings import Settings

_KINDS: Final[Mapping[str, Callable[..., Node]]] = {
    INTERNAL: InternalNode,
    SUPER: SuperNode,
    EXTERNAL: ExternalNode,
}


def settings_kind(order: str, role: str | None) -> type[Settings]:
    """Return the class of a peer's settings. Raises LocalError for a wrong role."""
    if order != HIERARCHICAL:
        if role is not None:
            raise LocalError(f"role= has no effect with order {quote(order)}; leave it out")
        return Settings
    if role not in ROLES:
        raise LocalError(f"unknown role={quote(role)}; choose from {ROLES}")
    return HierarchySettings


def check(settings: Settings, given: Mapping[str, Any]) -> None:
    """Raise LocalError for arguments that a role does not support. `given`: name -> value; None:
    not given.
    """
    role = role_of(settings)
    refused = {
        INTERNAL: {
            "listen": "no peer dials an internal peer",
            "address": "no peer dials an internal peer",
            "store": "it keeps messages in memory until they are durable at its super peer; use "
            "an external peer to survive crashes",
        },
        SUPER: {
            "store": "another super peer replaces it after a crash",
            "trace": "it sends and delivers no messages itself",
        },
    }
    for name, why in refused.get(role, {}).items():
        if given.get(name) is not None:
            raise LocalError(f"{name}= is not supported by role {role!r}: {why}")
    if role == SUPER and given.get("listen") is None:
        raise LocalError("a super peer needs listen=: internal peers dial it")


def role_of(settings: Settings) -> str:
    """Return the role of a peer. Empty: a flat group."""
    return settings.role if isinstance(settings, HierarchySettings) else ""


def node_kind(settings: Settings) -> Callable[..., Node]:
    """Return the class of a peer's node."""
    return _KINDS.get(role_of(settings), Node)
