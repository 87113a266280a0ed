"""The outer node: a mesh of super peers and external peers, on the lanes of a flat live group.

Beside what a flat group does, each super peer tells what all that it has inside have (`INSIDE`),
and nothing is given up before that: who loses its super peer finds at another one what it lacks.
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
"""Kind of frame: lanes, and up to where all that a super peer has inside have them."""
FORWARDS_ONLY = (
    "a super peer forwards and says nothing itself: send from a peer inside or an external"
)


class MeshOrdering(Ordering):
    """Lanes of the mesh through the hierarchical protocol."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.inside: dict[str, dict[str, int]] = {}
        """Lane of a super peer -> what all inside have."""

    @property
    def mesh(self) -> MeshGroup:
        """The protocol."""
        return cast(MeshGroup, self.group)

    def flush(self) -> None:
        """Put what the protocol said, what the application said, and changes into the lane."""
        self.drain()
        if self._pending and self._changes:
            changes, self._changes = self._changes, []
            super().flush()
            self._changes = changes
        super().flush()

    def say(self, payload: bytes, reply_to: Sequence[Id] = (), topics: Collection[str] = ()) -> Id:
        """As in a flat group. Raises LocalError at a super peer, which says nothing itself."""
        if self.mesh.role == SUPER:
            raise LocalError(FORWARDS_ONLY)
        return super().say(payload, reply_to, topics)

    def ids_in(self, number: int, wire: bytes) -> list[Id]:
        """Return the ids of the own messages in an own batch; what a super peer forwards is not."""
        return super().ids_in(number, wire) if entries.read(wire).kind == entries.SAYS else []

    def _invite(self, lane: str) -> bytes:
        return self.mesh.invite(lane)  # the state of a mesh does not name invited lanes

    def drain(self) -> None:
        """Put what the protocol said into the lane."""
        outgoing, self.mesh.outgoing = self.mesh.outgoing, []
        for entry in outgoing:
            data = bytes(entry)
            sealed = SignedBatch(self._seal(entry.seq, data), data)
            self._keep_own(entry.seq, sealed)

    def free(self, connected: Iterable[str]) -> None:
        """Give up what all have, in the mesh and inside."""
        lanes = {*self.others(), *self.guests, *connected} - self.gone
        upto, done, inside = self.lanes.stable(lanes), self.done(), self.inside
        for lane in self.mesh.supers:
            if lane in self.members or lane in inside:
                table = inside.get(lane, {})
                upto = {name: min(number, table.get(name, 0)) for name, number in upto.items()}
        self.lanes.free({name: min(number, done[name]) for name, number in upto.items()})


class MeshNode(Node):
    """An external peer, or what a super peer is to the mesh."""

    settings: HierarchySettings
    ordering_class = MeshOrdering

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._orphaned_ns: dict[str, int] = {}
        """Lane of a super peer that is gone -> since when."""

    @property
    def mesh_ordering(self) -> MeshOrdering:
        """The ordering of the mesh one is in. Raises LocalError when one is in none."""
        return cast(MeshOrdering, self.active)

    def _frame(self, link: Link, kind: int, body: bytes, now: int) -> None:
        if kind == star.HELLO:
            raise MismatchError("kind", f"{self.name} is no super peer: nobody can be inside it")
        super()._frame(link, kind, body, now)

    def _news(self, link: Link, kind: int, body: bytes) -> None:
        if kind != INSIDE:
            super()._news(link, kind, body)
            return
        table = self.mesh_ordering.inside.setdefault(link.lane, {})
        table.update(wire.read_rows(body, link.names))

    def tick(self, now: int) -> None:
        """Let time pass."""
        if self.ordering is not None and not self.out:
            self._forget_orphans(now)
        super().tick(now)

    def _forget_orphans(self, now: int) -> None:
        """What peers inside lack whose super peer is gone is kept for a while, not for ever."""
        ordering = self.mesh_ordering
        for lane in [one for one in ordering.inside if one in ordering.gone]:
            if now - self._orphaned_ns.setdefault(lane, now) > self.settings.failover_timeout_ns:
                del ordering.inside[lane]
