"""What a group behind super peers is made with, and the role of one peer in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, cast

from antecede.core.group import Group
from antecede.errors import LocalError
from antecede.formatting import shown
from antecede.live.hierarchy.mesh_group import EXTERNAL, SUPER, MeshGroup
from antecede.live.settings import MERGE, NS, Settings

INTERNAL: Final = "internal"
ROLES: Final = (INTERNAL, SUPER, EXTERNAL)
HIERARCHICAL: Final = "hierarchical"


@dataclass(frozen=True)
class HierarchySettings(Settings):
    """As `Settings`, for order "hierarchical". Times are nanoseconds.

    Raises LocalError also for an unknown role, for options, and for partition="majority".
    """

    order: str = HIERARCHICAL
    role: str = EXTERNAL
    """This peer's: "internal", "super" or "external"."""
    ack_delay_ns: int = 0
    """0: by the role. Short in the mesh, since what is said in a group waits in its super peer
    until another member of the mesh is known to have it; long inside, where it frees memory."""
    failover_timeout_ns: int = 60 * NS
    """So long what peers inside lack is kept after their super peer is gone, so that another can
    give it to them."""

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        if self.role not in ROLES:
            raise LocalError(f"role= is one of {ROLES}, not {shown(self.role)}")
        if not self.ack_delay_ns:
            usual = NS // 2 if self.role == INTERNAL else NS // 500
            object.__setattr__(self, "ack_delay_ns", usual)
        if self.options:
            raise LocalError('order "hierarchical" has no options over live links')
        if self.partition != MERGE:
            raise LocalError('with order "hierarchical" both parts of a cut mesh go on (merge)')
        if self.history:
            raise LocalError("history= is not kept behind super peers: leave it out")
        super().__post_init__()

    def group(self, lane: str, invitation: bytes = b"") -> Group:
        """Return the mesh's group as `Ordering` speaks with it."""
        role = SUPER if self.role == SUPER else EXTERNAL
        made: Any = MeshGroup(lane, role, invitation)
        return cast(Group, made)
