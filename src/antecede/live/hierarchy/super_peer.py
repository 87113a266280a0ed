"""Node of a super peer: member of the external group and center of an internal group.

External and internal peers dial the same address. Their first frame tells which they are.
"""

from __future__ import annotations

from typing import Any

from antecede.errors import MismatchError, RemoteError
from antecede.live import wire
from antecede.live.hierarchy import star
from antecede.live.hierarchy.hub import Hub
from antecede.live.hierarchy.mesh import ExternalNode
from antecede.live.links import Link
from antecede.live.ordering import Ordering


class StarLink(Link):
    """Connection to an internal peer."""


class SuperNode(ExternalNode):
    """Node of both groups. Arguments of `Node`."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.hub = Hub(self)
        self._callers: dict[int, bytes] = {}
        """Incoming connection without a first frame yet -> its bytes so far."""
        self._begun: Ordering | None = None
        self._now = 0

    def leave(self) -> None:
        for known in self.hub.inside.values():
            if known.link is not None:
                self.end(known.link, "super peer leaves")
        super().leave()

    def others(self) -> list[str]:
        return [*super().others(), *self.hub.inside]

    def evict(self, lane: str, why: str) -> None:
        if lane in self.hub.inside:
            self.hub.evict(lane, why)
        else:
            super().evict(lane, why)

    # -- connections -------------------------------------------------------------------------------

    def link_up(self, number: int, name: str, now: int, *, dialed: bool) -> None:
        """Handle a new connection. The first frame of an incoming one tells its kind."""
        if dialed:
            super().link_up(number, name, now, dialed=True)
        else:
            self.links[number] = Link(number, name, now, dialed=False)
            self._callers[number] = b""

    def link_down(self, number: int, now: int) -> None:
        self._callers.pop(number, None)
        link = self.links.get(number)
        if link is not None:
            self.hub.handle_close(link, now)
        super().link_down(number, now)

    def receive(self, number: int, data: bytes, now: int) -> None:
        self._now = now
        if number in self._callers:
            data = self._callers[number] = self._callers[number] + data
            kind = star.kind_of(data)
            if kind is None or self.links[number].closing:
                return
            del self._callers[number]
            name = self.links[number].name
            if kind == star.HELLO:
                self.links[number] = StarLink(number, name, now, dialed=False)
            else:
                super().link_up(number, name, now, dialed=False)
        link = self.links.get(number)
        if isinstance(link, StarLink):
            self._from_inside(link, data, now)
        else:
            super().receive(number, data, now)

    def _from_inside(self, link: StarLink, data: bytes, now: int) -> None:
        if link.closing:
            return
        link.heard_ns = now
        self.bytes_in += len(data)
        try:
            for kind, body in link.read(data):
                self._star_frame(link, kind, body, now)
                if link.closing:
                    return
        except RemoteError as error:
            self.refuse(link, error)

    def _star_frame(self, link: StarLink, kind: int, body: bytes, now: int) -> None:
        if kind == star.HELLO:
            self._enter()
            self.hub.hello(link, star.unpack_hello(body), now)
        elif kind == wire.BYE:
            words = self.rejections.read_bye(link, body.decode(errors="replace"))
            link.said_bye, link.closing = True, words or "closed by the other end"
        elif not link.lane:
            raise MismatchError("kind", f"frame of kind {kind} before HELLO")
        elif kind == wire.PING:
            link.control.append(wire.pack_frame(wire.PONG, body))
        elif kind != wire.PONG:
            self.hub.frame(link, kind, body)

    # -- steps -------------------------------------------------------------------------------------

    def _enter(self) -> bool:
        """Start the internal group once there is an external group; return whether there is one."""
        if self.ordering is None or self.out:
            return False
        if self._begun is not self.ordering:
            self._begun = self.ordering
            self.hub.begin()
        return True

    def turn(self) -> None:
        super().turn()
        if self._enter():
            self.hub.turn(self._now)
            self.mesh_ordering.drain()

    def tick(self, now: int) -> None:
        self._now = now
        super().tick(now)
        if self._enter():
            self.hub.tick(now)
            self.turn()

    def writable(self) -> list[int]:
        found = super().writable()
        waiting = self.hub.writable()
        return [*found, *(waiting - set(found))] if waiting else found

    def pull(self, number: int, budget: int, now: int) -> list[bytes]:
        if number in self._callers and not self.links[number].closing:
            return []
        link = self.links[number]
        if not isinstance(link, StarLink):
            return super().pull(number, budget, now)
        down = [] if link.closing else self.hub.pull(link, budget)
        return self.outbound.collect(link, down, now)
