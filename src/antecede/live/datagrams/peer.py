"""`DatagramPeer`: a program's place in a group over UDP, as `Peer` is over TCP.

`Peer(..., transport="udp")` makes one.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import secrets
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, NoReturn

from antecede.errors import AntecedeError, LocalError, PeerError
from antecede.formatting import shown
from antecede.live.begun import Begun
from antecede.live.datagrams.looks import status_of
from antecede.live.datagrams.newcomers import OVER
from antecede.live.datagrams.node import DatagramNode
from antecede.live.datagrams.settings import DatagramSettings
from antecede.live.drivers.addresses import (
    joined_address,
    reached_at,
    split_address,
    split_listening,
)
from antecede.live.drivers.tcp import MAX_READY
from antecede.live.drivers.udp import UdpDriver
from antecede.live.events import Delivery, Event, Id, Message, Said, checked_name, member_of
from antecede.live.settings import NS, in_ns
from antecede.live.showing import Showing
from antecede.live.status import Status
from antecede.live.values import check_secure, check_timeout, options_of
from antecede.live.waking import Waking

if TYPE_CHECKING:
    from antecede.live.tls import Tls

LAST_S: Final = 0.1
"""So long one who was put out stays to tell the others."""


class DatagramPeer:
    """One member of a group over UDP, for one asyncio loop; an asynchronous context manager.

    As `Peer`, but for these: `order` is "matrix" with options={"recovering": True}, or a clock
    order ("linear", "physical", "linear-physical") with `retry_s` and `bounds`; `listen` is needed,
    and the others must reach it by TCP and UDP; there is no store, and no trace. `clock` returns
    the system's time in nanoseconds, as the bounds promise it. Further arguments are fields of
    `DatagramSettings`, times in seconds under names that end in `_s`.

    It is entered once, and used in the loop in which that was. Its messages are one flow: two
    iterations over one peer share them out, and neither gets all.

    Raises LocalError for arguments that cannot be.
    """

    def __init__(
        self,
        name: str,
        *,
        room: str = "",
        order: str = "matrix",
        options: Mapping[str, Any] | None = None,
        listen: str | None = None,
        address: str | None = None,
        tls: Tls | None = None,
        insecure: bool = False,
        store: str | os.PathLike[str] | None = None,
        acknowledge: str = "next",
        status: str | None = None,
        trace: str | os.PathLike[str] | None = None,
        clock: Callable[[], int] = time.time_ns,
        **settings: Any,
    ) -> None:
        self.name = checked_name(name)
        check_secure(name, tls, insecure)
        if not callable(clock):
            raise LocalError(
                f"clock= returns nanoseconds when it is called, which {shown(clock)} cannot be"
            )
        for what, value, usual in (
            *(("store", store, None), ("trace", trace, None)),
            ("acknowledge", acknowledge, "next"),
        ):
            if value != usual:
                raise LocalError(
                    f"{what}={shown(value)} does not go over datagrams: nothing is stored; "
                    'transport="tcp" does'
                )
        self.settings = DatagramSettings(
            room=room,
            order=order,
            options=options_of(options),
            **in_ns(settings, DatagramSettings, ARGUMENTS, " over UDP"),
        )
        if listen is None:
            raise LocalError("a peer over datagrams needs listen=: the others send to it")
        self._listen = split_listening(listen)
        if address is not None:
            split_address(address)
        self._advertised = address
        self._tls, self._clock = tls, clock
        self._showing = Showing(name, status)
        self._begun = Begun(name)
        self._node: DatagramNode | None = None
        self._driver: UdpDriver | None = None
        self._ready: deque[Delivery] = deque()
        self._run: Iterator[Message] = iter(())
        self._waiting = 0
        """Messages that the application has not got."""
        self._waking = Waking()
        self._ended = False

    # -- beginning and end --------------------------------------------------------------------

    async def __aenter__(self) -> DatagramPeer:
        """Listen. Raises LocalError for the second time: a peer begins once."""
        self._begun.begin()
        try:
            await self._begin()
        except BaseException:
            self._begun.failed()
            raise
        return self

    async def _begin(self) -> None:
        node = DatagramNode(self.name, self.settings, secrets.token_bytes(16))
        self._node = node
        self._driver = UdpDriver(
            *(node,),
            secure=self._tls,
            clock=self._clock,
            ready=self._delivered,
            changed=self._waking.wake,
        )
        host, port = self._listen
        try:
            bound = await self._driver.listen(host, port)
        except OSError as error:
            self._driver.close()
            raise PeerError(f"{self.name} cannot listen at {host}:{port}: {error}") from error
        node.address = self._advertised or joined_address(reached_at(host), bound)
        try:
            await self._showing.begin(self.status)
        except BaseException:
            self._driver.close()
            raise
        self._driver.start()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End by leaving the group."""
        over = self._ended or self.node.membership.out or self._has_left
        if not over and error is None and self._in_group:
            await self.leave()
        await self.close()

    async def close(self) -> None:
        """End without leaving: the others wait for this member until they put it out."""
        if self._ended:
            return
        if self._node is not None and self._node.membership.out:
            await asyncio.sleep(LAST_S)
        self._ended = True
        self._waking.wake()
        self._showing.close()
        self._running.close()

    @property
    def node(self) -> DatagramNode:
        """The state machine behind it. Raises LocalError before the peer has begun."""
        if self._node is None:
            raise LocalError("a peer begins with `async with Peer(...) as peer`")
        return self._node

    @property
    def _running(self) -> UdpDriver:
        if self._driver is None:
            raise LocalError("a peer begins with `async with Peer(...) as peer`")
        return self._driver

    @property
    def _in_group(self) -> bool:
        return self.node.group is not None

    @property
    def _has_left(self) -> bool:
        return self.node.membership.departures.leaving

    # -- the group ----------------------------------------------------------------------------

    @property
    def address(self) -> str:
        """Where the others reach it: what they give to `join`."""
        return self.node.address

    @property
    def status_address(self) -> str:
        """Where it is served how the peer is doing; empty: nowhere."""
        return self._showing.address

    @property
    def members(self) -> tuple[str, ...]:
        """Names of the members, oneself included, sorted; empty before one is in a group.

        One whose former life is not out yet is named once.
        """
        return tuple(sorted(set(map(member_of, self.node.membership.members))))

    def status(self) -> Status:
        """Return how the peer is doing now."""
        trouble = "it has ended" if self._ended else "it has left" if self._has_left else ""
        dropped = self._running.envelopes.dropped
        left = self._tls.left_s(time.time()) if self._tls is not None else None
        now = time.monotonic_ns()
        return status_of(self.node, now, trouble, self._waiting, dropped, left)

    async def found(self) -> None:
        """Begin a group of one.

        Raises LocalError when it is in a group, PeerError when it has left, or ended.
        """
        self._check_new()
        self.node.found(secrets.token_bytes(8), self._running.moment())
        self._running.soon()

    def _check_new(self) -> None:
        """Raise where there is no group to begin or to join."""
        self._check_going()
        if self._in_group:
            raise LocalError(
                f"{self.name} is in a group already, and is in one at a time: for another group "
                "make another Peer"
            )

    async def join(self, address: str, *, timeout_s: float = 10.0) -> None:
        """Join the group of the member at "HOST:PORT".

        Asks again until somebody answers who is in a group. Raises PeerError when nobody lets one
        in within `timeout_s`, or at once when somebody refuses; it says why. Raises LocalError when
        it is in a group already, PeerError when it has left, is out of the group, or has ended.
        """
        split_address(address)
        check_timeout(timeout_s)
        self._check_new()
        node, driver = self.node, self._running
        refused = node.refused.total()
        newcomers = node.membership.newcomers
        failures: list[Exception] = []

        def called(error: Exception | None) -> None:
            failures.extend([error] if error is not None else [])
            self._waking.wake()

        newcomers.begin(address)
        end = time.monotonic() + timeout_s
        while not self._in_group and not newcomers.refusal and time.monotonic() < end:
            if not node.sessions:
                driver.call(address, called)
            last = failures[-1] if failures else None
            if isinstance(last, AntecedeError) and not str(last).startswith(OVER):
                break  # it was reached, and does not want this one
            await self._waking.next_change(min(0.1, max(0.001, end - time.monotonic())))
        if self._in_group:
            return
        why = newcomers.refusal or _why_not(failures)
        if not why:  # nothing came of a call, or of what was said here meanwhile
            why = node.last_refusal if node.refused.total() > refused else "no answer"
        newcomers.joining = ""
        if time.monotonic() < end:
            raise PeerError(f"{address} does not let {self.name} in: {why}")
        raise PeerError(f"nobody at {address} lets {self.name} in: {why}")

    async def leave(self, *, timeout_s: float = 5.0) -> None:
        """Leave for good: wait until the others have what was said here, and know.

        Half of `timeout_s` at most for the first. What a member lacks then it asks of the others.
        """
        check_timeout(timeout_s)
        self._check_open()
        membership, departures = self.node.membership, self.node.membership.departures
        if not self._has_left:
            self._check()
            departures.leave(self._running.moment(), round(timeout_s * NS / 2))
        self._running.soon()
        self._waking.wake()
        if membership.others():
            await self._waking.until(lambda: departures.over or bool(departures.out), timeout_s)

    def put_out(self, member: str, why: str = "") -> None:
        """Have a member put out of the group, which takes a quorum of its members.

        Raises LocalError for who is no other member.
        """
        self._check()
        membership = self.node.membership
        lanes = [lane for lane in membership.others() if member_of(lane) == member]
        if not lanes:
            raise LocalError(f"{member!r} is not another member of this group")
        for lane in lanes:
            membership.departures.put_out(lane, why or f"asked by {self.name}")
        self._running.soon()

    # -- sending ------------------------------------------------------------------------------

    async def send(self, payload: bytes, *, reply_to: Iterable[Id] = ()) -> Id:
        """Send a message to all; waits while some member lacks too much.

        Nothing is stored: what was sent survives a crash of this peer when another member has it.
        Raises LocalError for what is no message, PeerError when the peer is out of the group.
        """
        await self.room()
        return self.send_nowait(payload, reply_to=reply_to)

    def send_nowait(self, payload: bytes, *, reply_to: Iterable[Id] = ()) -> Id:
        """As `send`, without waiting. Raises PeerError when too much waits already."""
        self._check()
        if reply_to:
            raise LocalError(
                f"with order {self.settings.order!r} messages answer no others: over TCP they do "
                'with order="reply"'
            )
        sent = self.node.say(payload)
        self._running.soon()
        return sent

    async def room(self) -> None:
        """Wait while some member lacks so much that nothing more is sent."""
        self._check()
        node = self.node
        while not node.has_room or node.waiting_bytes > self.settings.pending // 2:
            await self._waking.next_change(0.05)
            self._check()

    async def kept(self) -> None:
        """Return at once: nothing is stored. `Peer` waits here for its store."""
        self._check_open()

    # -- receiving ----------------------------------------------------------------------------

    def __aiter__(self) -> AsyncIterator[Message]:
        """Return the messages of the others, in the order of the group.

        It ends when the peer leaves or ends; begun after it has left it hands over what is still
        there, and raises PeerError. A peer has one flow of messages: of two iterations, of
        whichever kind, each gets some of them, and neither all.
        """
        return self._messages()

    async def _messages(self) -> AsyncIterator[Message]:
        async for event in self.events():
            if isinstance(event, Message):
                yield event

    async def events(self) -> AsyncIterator[Event]:
        """Return messages, views where the members change, and what is given up.

        Ends as the iteration of messages does, with which it shares them. Raises PeerError when
        the peer is put out, or had left before.
        """
        too_late = self._has_left
        while True:
            for message in self._run:
                self._waiting -= 1
                yield message
            event = await self._next_event()
            if event is None:
                self._end_taking(too_late)
                return
            if isinstance(event, Said):
                self._run = event.messages()
            else:
                yield event

    async def batches(self) -> AsyncIterator[Said]:
        """Return what each member said at once, as it comes: the quickest way.

        Ends and raises as `events`.
        """
        too_late = self._has_left
        while (event := await self._next_event()) is not None:
            if isinstance(event, Said):
                self._waiting -= len(event.payloads)
                yield event
        self._end_taking(too_late)

    def _end_taking(self, too_late: bool) -> None:
        """Raise PeerError where an iteration was begun after the peer had left."""
        if too_late:
            raise PeerError(f"{self.name} has left")

    async def _next_event(self) -> Delivery | None:
        """Return what is next; None: it has ended."""
        while not self._ready:
            self._take()
            if self._ready:
                break
            if self._ended or self._has_left:
                return None
            self._check()
            await self._waking.next_change(None)
        self.node.behind = self._waiting > MAX_READY
        return self._ready.popleft()

    def _take(self) -> None:
        fresh = self.node.take_delivered()
        self._ready.extend(fresh)
        self._waiting += sum(len(one.payloads) for one in fresh if isinstance(one, Said))

    def _delivered(self) -> None:
        """Something is there for the application; too much: the others have to wait with more."""
        self._take()
        self.node.behind = self._waiting > MAX_READY
        self._waking.wake()

    @property
    def history(self) -> NoReturn:
        """Raise LocalError: what was said lately is handed to newcomers over TCP alone."""
        raise LocalError(
            "over datagrams a peer keeps no history, and hands none to newcomers: with "
            'transport="tcp" history= says how many messages'
        )

    def past(self) -> NoReturn:
        """Raise LocalError: stamps of what a program follows are made over TCP alone so far."""
        raise LocalError(
            "over datagrams a peer does not tell its past: take the `past` of the messages that "
            "you handle"
        )

    def acknowledge(self, message: Message) -> None:
        """Raise LocalError: nothing is stored, so nothing comes again."""
        raise LocalError("over datagrams nothing is stored, so there is nothing to acknowledge")

    def _check(self) -> None:
        """Raise where nothing goes on."""
        self._check_going()
        if self.node.group is None:
            raise PeerError(f"{self.name} is in no group yet: `join` or `found` one")

    def _check_going(self) -> None:
        """Raise where a peer cannot go on, nor begin, in a group."""
        self._check_open()
        if self._has_left:
            raise PeerError(f"{self.name} has left")
        if self.node.membership.out:
            raise PeerError(f"{self.name} is out of the group: {self.node.membership.out}")

    def _check_open(self) -> None:
        """Raise before the peer has begun, in another loop, and when it has ended."""
        if self._ended:
            raise PeerError(f"{self.name} has ended")
        self._begun.check()


ARGUMENTS: Final = tuple(
    name
    for name, one in inspect.signature(DatagramPeer.__init__).parameters.items()
    if one.kind is one.KEYWORD_ONLY
)
"""What a peer takes beside `DatagramSettings`."""


def _why_not(failures: list[Exception]) -> str:
    """Return in words why the last call came to nothing; empty: none did."""
    return (str(failures[-1]) or type(failures[-1]).__name__) if failures else ""
