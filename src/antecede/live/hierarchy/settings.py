"""Settings of hierarchical groups, with the role of a peer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, cast

from antecede.core.group import Group
from antecede.errors import LocalError
from antecede.formatting import quote
from antecede.live.hierarchy.mesh_group import EXTERNAL, SUPER, MeshGroup
from antecede.live.settings import MERGE, NS, Settings

INTERNAL: Final = "internal"
ROLES: Final = (INTERNAL, SUPER, EXTERNAL)
HIERARCHICAL: Final = "hierarchical"


@dataclass(frozen=True)
class HierarchySettings(Settings):
    """Settings for order "hierarchical". Times are nanoseconds. Raises LocalError also for an
    unknown role, for options, and for partition="majority".
    """

    order: str = HIERARCHICAL
    role: str = EXTERNAL
    """Role of this peer: "internal", "super" or "external"."""
    ack_delay_ns: int = 0
    """0: by the role. Short in the external group, since messages wait in a super peer until
    another external member has them. Long in internal groups, where it frees memory."""
    failover_timeout_ns: int = 60 * NS
    """Time for which the messages that a departed super peer's internal peers lack are kept for
    failover."""

    def __post_init__(self) -> None:
        """Raise LocalError for invalid values."""
        if self.role not in ROLES:
            raise LocalError(f"unknown role={quote(self.role)}; choose from {ROLES}")
        if not self.ack_delay_ns:
            usual = NS // 2 if self.role == INTERNAL else NS // 500
            object.__setattr__(self, "ack_delay_ns", usual)
        if self.options:
            raise LocalError(
                'options= is not supported by order "hierarchical" in live groups; leave it out'
            )
        if self.partition != MERGE:
            raise LocalError(
                f"partition={quote(self.partition)} is not supported by order 'hierarchical'; "
                'use "merge"'
            )
        if self.history:
            raise LocalError('history= is not supported by order "hierarchical"; leave it out')
        super().__post_init__()

    def group(self, lane: str, invitation: bytes = b"") -> Group:
        role = SUPER if self.role == SUPER else EXTERNAL
        made: Any = MeshGroup(lane, role, invitation)
        return cast(Group, made)
