"""Node of the external group: super peers and external peers over sender logs.

Each super peer also announces what all its internal peers have (`INSIDE`). Batches are freed only
after that. So a peer that loses its super peer finds at another one what it lacks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

from antecede.errors import LocalError, MismatchError
from antecede.live import wire
from antecede.live.events import Id
from antecede.live.hierarchy import entries, star
from antecede.live.hierarchy.mesh_group import SUPER, MeshGroup
from antecede.live.lanes import SignedBatch
from antecede.live.links import Link
from antecede.live.node import Node
from antecede.live.ordering import Ordering

if TYPE_CHECKING:
    from antecede.live.hierarchy.settings import HierarchySettings

INSIDE = 16
"""Frame kind: senders, and the numbers that all internal peers of a super peer have."""
FORWARDS_ONLY = "a super peer only forwards; send from an internal or external peer"


class MeshOrdering(Ordering):
    """Sender logs of the external group through the hierarchical protocol."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.inside: dict[str, dict[str, int]] = {}
        """Sender id of a super peer -> frontier of its internal peers."""

    @property
    def mesh(self) -> MeshGroup:
        return cast(MeshGroup, self.group)

    def flush(self) -> None:
        """Add protocol messages, application messages and changes to the own log."""
        self.drain()
        if self._pending and self._changes:
            changes, self._changes = self._changes, []
            super().flush()
            self._changes = changes
        super().flush()

    def say(self, payload: bytes, reply_to: Sequence[Id] = (), topics: Collection[str] = ()) -> Id:
        if self.mesh.role == SUPER:
            raise LocalError(FORWARDS_ONLY)
        return super().say(payload, reply_to, topics)

    def ids_in(self, number: int, wire: bytes) -> list[Id]:
        return super().ids_in(number, wire) if entries.read(wire).kind == entries.SAYS else []

    def _invite(self, lane: str) -> bytes:
        return self.mesh.invite(lane)  # the state of the group has no invited senders

    def drain(self) -> None:
        """Add protocol messages to the own log."""
        outgoing, self.mesh.outgoing = self.mesh.outgoing, []
        for entry in outgoing:
            data = bytes(entry)
            sealed = SignedBatch(self._seal(entry.seq, data), data)
            self._keep_own(entry.seq, sealed)

    def free(self, connected: Iterable[str]) -> None:
        lanes = {*self.others(), *self.guests, *connected} - self.gone
        upto, done, inside = self.lanes.stable(lanes), self.find_done(), self.inside
        for lane in self.mesh.supers:
            if lane in self.members or lane in inside:
                table = inside.get(lane, {})
                upto = {name: min(number, table.get(name, 0)) for name, number in upto.items()}
        self.lanes.free({name: min(number, done[name]) for name, number in upto.items()})


class ExternalNode(Node):
    """External peer, or external side of a super peer."""

    settings: HierarchySettings
    ordering_class = MeshOrdering

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._orphaned_ns: dict[str, int] = {}
        """Sender id of a departed super peer -> time of that observation."""

    @property
    def mesh_ordering(self) -> MeshOrdering:
        """Ordering of the external group. Raises LocalError without a group."""
        return cast(MeshOrdering, self.active)

    def _frame(self, link: Link, kind: int, body: bytes, now: int) -> None:
        if kind == star.HELLO:
            raise MismatchError(
                "kind", f"{self.name} is not a super peer: it admits no internal peers"
            )
        super()._frame(link, kind, body, now)

    def _news(self, link: Link, kind: int, body: bytes) -> None:
        if kind != INSIDE:
            super()._news(link, kind, body)
            return
        table = self.mesh_ordering.inside.setdefault(link.lane, {})
        table.update(wire.read_rows(body, link.names))

    def tick(self, now: int) -> None:
        if self.ordering is not None and not self.out:
            self._forget_orphans(now)
        super().tick(now)

    def _forget_orphans(self, now: int) -> None:
        """Forget the internal peers of departed super peers after the failover timeout."""
        ordering = self.mesh_ordering
        for lane in [one for one in ordering.inside if one in ordering.gone]:
            if now - self._orphaned_ns.setdefault(lane, now) > self.settings.failover_timeout_ns:
                del ordering.inside[lane]
