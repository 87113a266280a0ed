"""A node over UDP: sockets, calls, turns.

Two members get a session when one calls the other at its address over TCP, with TLS: each says
hello as it does for links over TCP, with an offer for the session (`envelopes`), and the connection
ends. Everything else goes by datagrams to the same address. So nothing that comes in a datagram is
believed, or answered, before both certificates were shown.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import socket
import ssl
import time
from collections.abc import Callable
from typing import Any, Final, cast

from antecede.errors import AntecedeError, PeerError, RemoteError
from antecede.live import wire
from antecede.live.datagrams.envelopes import Envelope, Envelopes, Offer
from antecede.live.datagrams.node import DatagramNode, Moment
from antecede.live.drivers.addresses import split_address
from antecede.live.drivers.calls import Calls, Secure, shown_name
from antecede.live.drivers.door import HANDSHAKE_S, Door
from antecede.live.settings import NS

READ_AT_ONCE: Final = 128
LARGEST: Final = 65_536
BUFFER: Final = 4 << 20
"""Bytes that the system is asked to hold for a socket; it may give less."""
INTRODUCTIONS: Final = 256
"""Connections at once of those who say hello; one more ends the oldest."""
PORTS: Final = 16
"""So many ports are tried for one that is free for TCP and UDP."""


class Introduction(asyncio.Protocol):
    """A connection over which two ends say hello, and which then ends."""

    def __init__(self, driver: UdpDriver, *, called: bool) -> None:
        self._driver, self.called = driver, called
        self.offer = Offer.draw(secrets.token_bytes)
        self.name = ""
        self.transport: asyncio.Transport | None = None
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._data = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection stands, and both certificates were shown where there are any."""
        self.transport = cast(asyncio.Transport, transport)
        try:
            self.name = self._driver.name_of(self.transport)
        except RemoteError as error:
            self.fail(error)
            return
        self._driver.begun(self)
        if self.called:
            self.say_hello()

    def say_hello(self) -> None:
        """Say who one is, with the offer."""
        assert self.transport is not None
        self.transport.write(wire.pack_hello(self._driver.node.hello(bytes(self.offer))))

    def data_received(self, data: bytes) -> None:
        """Bytes have come: a hello, or why there is none."""
        self._data += data
        try:
            found, _, _ = wire.frames(self._data, wire.MAX_FIRST)
            if not found:
                return
            kind, start, end = found[0]
            if kind == wire.BYE:
                raise PeerError(self._data[start:end].decode(errors="replace"))
            if kind != wire.HELLO:
                raise PeerError(f"a frame of kind {kind} in place of a hello")
            self._driver.heard(self, wire.unpack_hello(self._data[start:end]))
        except AntecedeError as error:
            self.fail(error)

    def fail(self, error: AntecedeError) -> None:
        """Say why nothing comes of it, and end."""
        self._driver.failed(error, called=self.called)
        if self.transport is not None and not self.transport.is_closing():
            self.transport.write(wire.framed(wire.BYE, str(error).encode()[: wire.MAX_TEXT]))
            self.transport.close()
        if not self.done.done():
            self.done.set_exception(error)
            self.done.exception()  # who called asks; of one who was called nobody does

    def give_up(self) -> None:
        """End at once."""
        if self.transport is not None:
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over."""
        self._driver.over(self)
        if not self.done.done():
            self.done.set_exception(
                PeerError(f"the other end closed the call: {exc or 'no hello'}")
            )
            self.done.exception()


class UdpDriver:
    """Runs one node in the running loop. `ready` is called when there is something for the
    application, `changed` when something else happened; `clock` is the system's clock, in ns.
    """

    def __init__(
        self,
        node: DatagramNode,
        *,
        secure: Secure | None,
        clock: Callable[[], int],
        ready: Callable[[], None],
        changed: Callable[[], None],
    ) -> None:
        self.node, self._secure, self._clock = node, secure, clock
        self._ready, self._changed = ready, changed
        self._loop = asyncio.get_running_loop()
        self.envelopes = Envelopes()
        self._addresses: dict[int, tuple[Any, ...]] = {}
        self._numbers = 0
        self._door: Door | None = None
        self._socket: socket.socket | None = None
        self._introductions: dict[Introduction, asyncio.TimerHandle] = {}
        self._calls = Calls(self._connect, secure)
        self.call = self._calls.call
        self._resolving: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._turn_due = self._closed = False
        self.unsent = 0
        """Datagrams that the system did not take."""

    # -- beginning and end --------------------------------------------------------------------

    async def listen(self, host: str, port: int) -> int:
        """Take calls and datagrams from now on; returns the port. Raises OSError."""
        context = self._secure.server if self._secure is not None else None
        for left in reversed(range(1 if port else PORTS)):
            door = Door(context, lambda: Introduction(self, called=False), self._no_handshake)
            bound = await door.open(host, port)
            try:
                self._socket = await self._bound(host, bound)
            except OSError:
                door.close()
                if not left:
                    raise
                continue
            self._door = door
            self._loop.add_reader(self._socket, self._readable)
            return bound
        raise AssertionError("unreachable")

    async def _bound(self, host: str, port: int) -> socket.socket:
        found = await self._loop.getaddrinfo(host, port, type=socket.SOCK_DGRAM)
        family, kind, protocol, _, address = found[0]
        made = socket.socket(family, kind, protocol)
        try:
            made.setblocking(False)
            for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
                with contextlib.suppress(OSError):
                    made.setsockopt(socket.SOL_SOCKET, option, BUFFER)
            made.bind(address)
        except OSError:
            made.close()
            raise
        return made

    def start(self) -> None:
        """Let time pass."""
        self._tick()

    def close(self) -> None:
        """End at once: what is under way is the others' to recover."""
        self._turn()
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._door is not None:
            self._door.close()
        if self._socket is not None:
            self._loop.remove_reader(self._socket)
            self._socket.close()
        self._calls.close()
        for task in self._resolving:
            task.cancel()
        for one, timer in list(self._introductions.items()):
            timer.cancel()
            one.give_up()

    def moment(self) -> Moment:
        """Return what the clocks show."""
        return Moment(time.monotonic_ns(), self._clock())

    # -- calls --------------------------------------------------------------------------------

    def name_of(self, transport: asyncio.Transport) -> str:
        """Return whose certificate the other end showed. Raises RemoteError without one."""
        return shown_name(self._secure, transport)

    def _no_handshake(self, error: Exception) -> None:
        kind = "certificate" if isinstance(error, ssl.SSLError) else "handshake"
        self.node.refused[kind] += 1
        self.node.last_refusal = f"somebody who called: {error}"

    def failed(self, error: AntecedeError, *, called: bool) -> None:
        """Nothing came of a hello; `called`: this end called."""
        self.node.refuse("somebody who called, or was called", error)
        if called:
            self.node.membership.newcomers.turned_away(str(error))

    async def _connect(self, address: str, host: str, port: int, more: dict[str, Any]) -> None:
        _, made = await self._loop.create_connection(
            lambda: Introduction(self, called=True), host, port, **more
        )
        await made.done

    def begun(self, one: Introduction) -> None:
        """Somebody is there to say hello; it has some seconds."""
        if len(self._introductions) >= INTRODUCTIONS:
            oldest = next(iter(self._introductions))
            oldest.give_up()
            self.over(oldest)
        self._introductions[one] = self._loop.call_later(HANDSHAKE_S, one.give_up)

    def over(self, one: Introduction) -> None:
        """A connection has ended."""
        if (timer := self._introductions.pop(one, None)) is not None:
            timer.cancel()

    def heard(self, one: Introduction, hello: wire.Hello) -> None:
        """The other end has said hello. Raises RemoteError when it is of another group."""
        self.node.check(hello, one.name)
        theirs = Offer.read(hello.owner)
        task = self._loop.create_task(self._introduce(one, hello, theirs))
        self._resolving.add(task)
        task.add_done_callback(self._resolving.discard)

    async def _introduce(self, one: Introduction, hello: wire.Hello, theirs: Offer) -> None:
        """Find where its datagrams go, and tell the node of the session."""
        assert one.transport is not None
        assert self._socket is not None
        try:
            host, port = split_address(hello.address)
            found = await self._loop.getaddrinfo(
                host, port, family=self._socket.family, type=socket.SOCK_DGRAM
            )
        except (OSError, AntecedeError) as error:
            one.fail(PeerError(f"{hello.lane} says it is at {hello.address!r:.60}: {error}"))
            return
        if self._closed:
            return
        self._numbers += 1
        number = self._numbers
        envelope = Envelope(one.offer, theirs, called=one.called, secure=self._secure is not None)
        self.envelopes.add(number, envelope)
        self._addresses[number] = found[0][4]
        if one.called:
            one.transport.close()
        elif not one.transport.is_closing():
            one.say_hello()  # now that its datagrams open here
        self.node.introduced(number, hello, self.moment())
        self._forget_ended()
        if not one.done.done():
            one.done.set_result(None)
        self.soon()

    # -- datagrams ----------------------------------------------------------------------------

    def _readable(self) -> None:
        assert self._socket is not None
        for _ in range(READ_AT_ONCE):
            try:
                datagram = self._socket.recv(LARGEST)
            except (BlockingIOError, InterruptedError):
                break
            except OSError:
                continue  # what the system says of datagrams that could not be delivered
            opened = self.envelopes.open(datagram)
            if opened is not None:
                self.node.receive(*opened, self.moment())
        self.soon()

    def soon(self) -> None:
        """Have a turn when the loop has nothing else to do."""
        if not self._turn_due and not self._closed:
            self._turn_due = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._turn_due = False
        if self._closed or self._socket is None:
            return
        node, at = self.node, self.moment()
        node.try_flush(at)
        for address in node.dials(at):
            self.call(address)
        for number, data in node.take_datagrams(at):
            datagram = self.envelopes.seal(number, data)
            if datagram is not None:
                try:
                    self._socket.sendto(datagram, self._addresses[number])
                except OSError:
                    self.unsent += 1
        self._forget_ended()
        if node.delivered:
            self._ready()
        self._changed()
        self._wake_at(node.due(at), at)

    def _forget_ended(self) -> None:
        for number in self.node.ended:
            self.envelopes.forget(number)
            self._addresses.pop(number, None)
        self.node.ended.clear()

    def _wake_at(self, due_ns: int, at: Moment) -> None:
        when = self._loop.time() + max(0, due_ns - at.now) / NS
        if self._timer is not None:
            if not self._timer.cancelled() and self._timer.when() <= when:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(when, self._tick)

    def _tick(self) -> None:
        self._timer = None
        if not self._closed:
            self.node.tick(self.moment())
            self._turn()
