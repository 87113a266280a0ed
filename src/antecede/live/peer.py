"""`Peer`: a program's place in a live group.

    async with Peer("alice", room="design", tls=Tls("alice.pem", "ca.pem"), ...) as peer:
        await peer.join("bob.example:7001")
        await peer.send(b"lunch?")
        async for message in peer:
            print(message.sender, message.payload)

Messages of the others come in the order of the group, none before what it depends on, none lost
and none twice while the program runs. With a store that holds across crashes: what was not
acknowledged is handed over again after a restart, under the same `id`.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import os
import secrets
import ssl
import string
import time
from asyncio.events import _get_running_loop
from collections import deque
from collections.abc import (
    AsyncIterator,
    Callable,
    Collection,
    Iterable,
    Mapping,
    Sequence,
)
from itertools import cycle
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from antecede.core.propagation import CausalContext
from antecede.core.protocols import Relation
from antecede.errors import LocalError, PeerError
from antecede.formatting import counted, shown
from antecede.live.begun import Begun
from antecede.live.drivers.addresses import (
    addresses_of,
    joined_address,
    reached_at,
    split_address,
    split_listening,
)
from antecede.live.drivers.handshakes import is_for_good, why_no_handshake
from antecede.live.drivers.tcp import MAX_READY, TcpDriver
from antecede.live.events import (
    LIFE_LENGTH,
    Event,
    GivenUp,
    Id,
    Message,
    Said,
    View,
    checked_name,
    lane_of,
    member_of,
)
from antecede.live.greeting import NOT_YET
from antecede.live.hierarchy import making
from antecede.live.inbox import Inbox
from antecede.live.node import Node
from antecede.live.ordering import Ordering
from antecede.live.sealing import Seals
from antecede.live.settings import MAJORITY, in_ns
from antecede.live.showing import Showing
from antecede.live.status import Status, status_of
from antecede.live.store import Store
from antecede.live.timekeeping import Alarm, Delays
from antecede.live.values import check_seconds, check_secure, check_timeout, options_of
from antecede.live.waking import Waking

if TYPE_CHECKING:
    from antecede.live.tls import Tls
    from antecede.live.traces import Trace

Answered = Message | Id
PENDING: Final = 4 << 20
"""Bytes that wait to be sent before `send` waits."""
CALL_WAIT_S: Final = 3.0
"""How long one who wants to join waits for an answer before it calls again."""
CALL_AGAIN_S: Final = 0.1
NOBODY: Final = "nobody listens there"
FOUND_S: Final = 2.0
"""Time at least until the first member of a list begins a group: another may be about to."""
NAMED: Final = 10
"""Messages at most that an error names."""
LINKS_S: Final = 2.0
"""How long a newcomer waits, in orders by clocks, until it is connected with all."""


class Peer:
    """One member of a live group, for one asyncio loop; an asynchronous context manager.

    `name`: the member's; with TLS the one in its certificate. `room`, `order`, `options`: what all
    members give alike. `listen`: "HOST:PORT" where others call (port 0: a free one; ":PORT": as
    "0.0.0.0:PORT"); None: nobody can call, one calls the others. `address`: how the others reach
    it, where that is not `listen`; who listens at "0.0.0.0" or "[::]" and says nothing is called at
    the address from which its machine speaks to the outside (`Peer.address` tells it). `tls`:
    certificate and authority; None is refused unless `insecure`: then names are believed and
    everybody can read along. `store`: a file that survives crashes; None: what was not delivered
    when the program ends is gone, and the next life is a new lane. `acknowledge`: "next" counts a
    message as done when the next one is asked for, "explicit" when `acknowledge` is called with it.
    `status`: "HOST:PORT" where /status, /metrics and /healthz are served to whoever reaches it by
    an address, as localhost, or by this name. `trace`: a folder for Parquet files of what is sent
    and delivered here, for `antecede audit` (extra "trace"); `trace_every_s`: after so long it can
    be read there, as `antecede view --follow` does (None: a minute at most). `topics`: what it
    subscribes to (by topics); None: nothing, or what the store knows. `clock_error_s`: how far its
    clock may be from true time (orders by clocks); None: chrony or the kernel is asked.
    `on_alarm`: called, in the loop, with each `Alarm` that a bound of an order by clocks is broken.
    Further arguments are fields of `Settings`, times in seconds under names that end in `_s`.

    It runs in whatever loop asyncio has: `uvloop.run(main())` in place of `asyncio.run(main())`
    spares an eighth to a fifth of the processor time where messages are many
    (`python -m bench.live_rate`).

    With order "hierarchical" a peer has a `role`: "super" (it forwards for peers inside, which call
    it at `listen`), "internal" (it joins a super peer, and knows that one alone) or "external" (it
    speaks with super peers and external peers directly).

    It is entered once, and used in the loop in which that was. Its messages are one flow: two
    iterations over one peer share them out, and neither gets all.

    Raises LocalError for arguments that cannot be.
    """

    if not TYPE_CHECKING:  # what reads the source goes by `__init__`, which has all arguments

        def __new__(cls, *given, **more):
            """Refuse more than a name by place."""
            if len(given) > 1:
                raise LocalError(
                    "a peer takes its name alone by place, and all else by name, as in "
                    f"Peer({shown(given[0])}, room=...): not {shown(given[1])}"
                )
            return super().__new__(cls)

    def __init__(
        self,
        name: str,
        *,
        room: str = "",
        order: str = "causal",
        role: str | None = None,
        options: Mapping[str, Any] | None = None,
        listen: str | None = None,
        address: str | None = None,
        tls: Tls | None = None,
        insecure: bool = False,
        store: str | os.PathLike[str] | None = None,
        acknowledge: str = "next",
        status: str | None = None,
        trace: str | os.PathLike[str] | None = None,
        trace_every_s: float | None = None,
        on_alarm: Callable[[Alarm], None] | None = None,
        **settings: Any,
    ) -> None:
        self.name = checked_name(name)
        check_secure(name, tls, insecure)
        if acknowledge not in ("next", "explicit"):
            raise LocalError(f'acknowledge= is "next" or "explicit", not {shown(acknowledge)}')
        kind = making.settings_kind(order, role)
        more = in_ns(settings, kind, ARGUMENTS)
        if role is not None:
            more["role"] = role
        self.settings = kind(room=room, order=order, options=options_of(options), **more)
        given = {"listen": listen, "address": address, "store": store, "trace": trace}
        making.check(self.settings, given)
        self._majority = self.settings.partition == MAJORITY
        self._memory = self.settings.memory
        self._timed = self.settings.timed
        if on_alarm is not None and not self._timed:
            raise LocalError(f"on_alarm=: order {order!r} goes by no clock")
        if on_alarm is not None and not callable(on_alarm):
            raise LocalError(
                f"on_alarm= is called with an Alarm, which {shown(on_alarm)} cannot be"
            )
        self._on_alarm = on_alarm
        if trace is not None and self._timed:
            raise LocalError(
                f"trace=: order {order!r} goes by what arrived, and by topics, and a trace of what "
                "was sent and delivered shows neither: `antecede audit` could not judge it"
            )
        self._tls = tls
        self._listen = None if listen is None else split_listening(listen)
        if address is not None:
            split_address(address)
        self._address = address
        self._store_path = None if store is None else _file("store", store)
        self._showing = Showing(name, status)
        self._trace_path = None if trace is None else _file("trace", trace)
        if trace is not None:
            importlib.import_module(
                "antecede.live.traces"
            )  # says at once when its extra is missing
        self._trace: Trace | None = None
        self._trace_every_s = _every(trace_every_s, trace)
        self._looks = self._majority or self._timed or trace is not None
        """Whether there is more to do when something is sent than to send it."""
        self._begun = Begun(name)
        self._restored = False
        """Whether it goes on in the group that its store knew."""
        self._node: Node | None = None
        self._driver: TcpDriver | None = None
        begun = self._note_delivered if trace is not None else None
        by_hand = acknowledge == "explicit"
        self._keeps_open = by_hand and store is not None
        """True if messages are kept until the application acknowledges them."""
        self._inbox = Inbox(begun, by_hand=by_hand, durable=store is not None)
        self._waking = Waking()
        self._ended = False

    # -- beginning and end -------------------------------------------------------------------------

    async def __aenter__(self) -> Peer:
        """Open the store, listen, and go on in the group that the store knows.

        Raises LocalError for the second time: a peer begins once.
        """
        self._begun.begin()
        try:
            await self._begin()
        except BaseException:
            self._begun.failed()
            raise
        return self

    async def _begin(self) -> None:
        store = self._opened()
        life = _life(store)
        self._node = node = making.node_kind(self.settings)(
            *(self.name, self.settings, life, self._advertised()),
            seals=self._seals(store, lane_of(self.name, life)),
            durable=store is not None,
        )
        saved = store.saved() if store is not None else None
        self._driver = TcpDriver(
            *(node,),
            secure=self._tls,
            store=store,
            ready=self._delivered,
            changed=self._waking.wake,
            done=self._inbox.done_upto,
        )
        try:
            if (clock := self._driver.clock) is not None:
                clock.alarmed = self._on_alarm
                await clock.begin()
            self._restored = saved is not None
            if saved is not None:
                node.restore(saved, time.monotonic_ns())
                self._inbox.begin(node.done)
            if self._keeps_open:
                node.inbox_limit = self.settings.memory
            await self._begin_to_listen(node)
            await self._showing.begin(self.status)
            self._driver.start()
        except BaseException:
            self._showing.close()
            await self._driver.close()
            raise

    def _opened(self) -> Store | None:
        if self._store_path is None:
            return None
        room, options = self.settings.tags()
        return Store(self._store_path, self.name, room + options + self.settings.order.encode())

    def _seals(self, store: Store | None, lane: str) -> Seals | None:
        if self._tls is None:
            return None
        from antecede.live.seals import CertifiedSeals  # needs the extra

        secret = b"" if store is None else store.get("secret") or b""
        seals = CertifiedSeals(self._tls, self.settings.room, lane, time.time, secret)
        if store is not None and not secret:
            store.put("secret", seals.secret)
        return seals

    def _advertised(self) -> str:
        if self._address is not None:
            return self._address
        if self._listen is None:
            return ""
        host, port = self._listen
        return joined_address(reached_at(host), port)

    async def _begin_to_listen(self, node: Node) -> None:
        if self._listen is None:
            return
        host, port = self._listen
        try:
            bound = await self._running.listen(host, port)
        except OSError as error:
            raise PeerError(f"{self.name} cannot listen at {host}:{port}: {error}") from error
        if self._address is None:
            node.address = joined_address(reached_at(host), bound)

    def _traced(self) -> Trace | None:
        """Return what notes sendings and deliveries; None: nothing does."""
        if self._trace is None and self._trace_path is not None and self._in_group:
            from antecede.live.traces import Trace  # needs the extra

            node = self.node
            relation = node.active.group.guarantee.relation
            self._trace = Trace(
                self._trace_path, node.lane, node.group_tag.hex(), relation, self._trace_every_s
            )
        return self._trace

    def _note_delivered(self, said: Said) -> None:
        if (trace := self._traced()) is not None:
            trace.delivered(said)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End: with a store to go on later, without one by leaving the group.

        Without a store it raises PeerError where no other member has taken all messages of this
        one within the time of `leave`: then they are lost.
        """
        stays = self._ended or self._store_path is not None or error is not None
        lost: tuple[Id, ...] = ()
        if not (stays or self.node.out or self.node.left) and self._in_group:
            lost = await self.leave()
        await self.close()
        if lost:
            raise PeerError(self._words(lost))

    async def close(self) -> None:
        """End without leaving: the others keep what comes meanwhile, as `put_out_s` says.

        Without a store the log names the messages that no other member has, at level ERROR.
        """
        if not self._ended:
            if self._store_path is None and not self.node.left and (lost := await self._lost()):
                self._tell_lost(lost)
            self._ended = True
            self._waking.wake()
            self._showing.close()
            await self._running.close()
            if self._trace is not None:
                await asyncio.to_thread(self._trace.close)

    @property
    def node(self) -> Node:
        """The state machine behind it. Raises LocalError before the peer has begun."""
        if self._node is None:
            raise LocalError("a peer begins with `async with Peer(...) as peer`")
        return self._node

    @property
    def _running(self) -> TcpDriver:
        if self._driver is None:
            raise LocalError("a peer begins with `async with Peer(...) as peer`")
        return self._driver

    @property
    def _in_group(self) -> bool:
        return self.node.ordering is not None

    # -- the group ---------------------------------------------------------------------------------

    @property
    def address(self) -> str:
        """Where the others reach it: what they give to `join`; empty: nowhere."""
        return self.node.address

    @property
    def status_address(self) -> str:
        """Where it is served how the peer is doing; empty: nowhere."""
        return self._showing.address

    @property
    def members(self) -> tuple[str, ...]:
        """Names of the members, oneself included, sorted; empty before one is in a group.

        One whose former life is not out yet is named once. After a restart it has every change that
        the store knows, also those whose views the application had not taken.
        """
        ordering = self.node.ordering
        return tuple(sorted(set(map(member_of, ordering.members)))) if ordering is not None else ()

    @property
    def history(self) -> tuple[Message, ...]:
        """The newest messages, own ones among them, as many as `history=` says; a newcomer's begin
        with those of its sponsor, as many as both say, and with a store they are there after a
        restart.
        """
        ordering = self.node.ordering
        return tuple(ordering.history) if ordering is not None else ()

    def ask(self) -> dict[str, str]:
        """Ask at once for what others have and is not here, as is done after `relay_s` anyway.

        Returns whose messages are asked for, and of whom, by lanes; empty: nobody who is connected
        is known to have more than is here.
        """
        asked = self.node.upkeep.ask_now(time.monotonic_ns())
        self._running.soon()
        return asked

    def status(self) -> Status:
        """Return how the peer is doing now."""
        broken = self._running.broken
        trouble = str(broken) if broken is not None else "it has ended" if self._ended else ""
        trouble = trouble or ("it has left" if self.node.left else "")
        lost = self._trace.lost if self._trace is not None else 0
        left = self._tls.left_s(time.time()) if self._tls is not None else None
        return status_of(
            *(self.node, time.monotonic_ns(), trouble, self._inbox.done_upto()),
            untraced=lost,
            certificate_left_s=left,
            connection_bytes=self._running.buffered(),
        )

    async def found(self) -> None:
        """Begin a group of one, unless the peer goes on in the group that its store knows.

        Raises LocalError when it is in a group otherwise, PeerError when it has left, or ended.
        """
        if self._is_new():
            self._running.show()
            self.node.found(secrets.token_bytes(8))
            self._running.soon()
            await self._until(self._settled)

    async def join(
        self, address: str | Sequence[str], *, timeout_s: float = 10.0, or_found: bool = False
    ) -> None:
        """Join the group of the member at "HOST:PORT", unless the peer goes on in the group that
        its store knows.

        Of several addresses one after the other is called, until somebody answers who is in a
        group. Raises PeerError when nobody lets one in within `timeout_s`, or at once when somebody
        refuses; it says why. Raises LocalError when the peer is in a group otherwise, PeerError
        when it has left, is out of the group, or has ended.

        `or_found`: begin a group where none of the addresses is in one. All members give the same
        list, with their own addresses in it, and may start at once: the first one that is up
        begins the group. A later one waits `timeout_s` for those before it. Members that cannot
        reach each other at their start begin groups apart.
        """
        addresses = addresses_of(address)
        check_timeout(timeout_s)
        if not self._is_new():
            return
        earlier = self._before(addresses) if or_found else []
        if or_found:
            addresses = [one for one in addresses if one != self.address]
        failures: list[str] = []

        def called(error: Exception | None) -> None:
            if error is not None:
                failures.append(_why_not(error))
                self._waking.wake()
            if is_for_good(error):
                self.node.refusal = failures[-1]

        begun = time.monotonic()
        end = begun + timeout_s
        absent, waiting = set[str](), set[str]()
        """Addresses where nobody listens, and where a member is in no group, by the last call."""
        for one in cycle(addresses or [""]):
            over = time.monotonic() > (end if earlier else min(end, begun + FOUND_S))
            sure = time.monotonic() > end or absent | waiting >= set(addresses)
            if or_found and over and sure and not waiting.intersection(earlier):
                await self.found()
                return
            if not addresses:
                await asyncio.sleep(CALL_AGAIN_S)
                continue
            if time.monotonic() > end:
                why = self.node.refusal or (failures[-1] if failures else "no answer")
                raise PeerError(f"nobody at {', '.join(addresses)} lets {self.name} in: {why}")
            known = len(failures)
            await self._try_to_join(one, called, end, lambda: len(failures) > known)  # noqa: B023
            if self._in_group:
                break
            (waiting.add if self.node.refusal else waiting.discard)(one)
            is_absent = NOBODY in failures[known:]
            (absent.add if is_absent else absent.discard)(one)
        await self._until(self._settled)
        if self._timed:  # what goes out before all are connected comes too late for its bounds
            await self._until(lambda: not self.node.upkeep.unheard(), LINKS_S)

    def _before(self, addresses: Sequence[str]) -> Sequence[str]:
        """Return the addresses before this member's own. Raises LocalError if it is not there."""
        if self.address not in addresses:
            raise LocalError(
                f"or_found=True: the own address of {self.name}, {self.address or 'none'}, is not "
                f"among {', '.join(addresses)}; give all members one list of all their addresses"
            )
        return addresses[: addresses.index(self.address)]

    def _is_new(self) -> bool:
        """Whether there is a group to begin or to join; False: the store knew one."""
        self._check_going(self.node)
        if not self._in_group:
            return True
        if not self._restored:
            raise LocalError(
                f"{self.name} is in a group already, and is in one at a time: for another group "
                "make another Peer"
            )
        return False

    async def _try_to_join(
        self,
        address: str,
        called: Callable[[Exception | None], None],
        end: float,
        failed: Callable[[], bool],
    ) -> None:
        """Call once, and wait for what comes of it."""
        node = self.node
        node.refusal, refused = "", node.refused.total()
        self._running.call(address, called)
        await self._until(
            lambda: (
                self._in_group or bool(node.refusal) or node.refused.total() > refused or failed()
            ),
            min(end - time.monotonic(), CALL_WAIT_S),
        )
        if self._in_group:
            return
        if node.refusal and not node.refusal.startswith(NOT_YET):
            raise PeerError(f"{address} does not let {self.name} in: {node.refusal}")
        if node.refused.total() > refused:
            raise PeerError(f"{address} is none to join: {node.last_refusal}")
        await asyncio.sleep(CALL_AGAIN_S)

    def _settled(self) -> bool:
        """Whether the store has one's own first batch. Raises PeerError where one is out by now."""
        node = self.node
        if node.out:  # another life of this name came after it
            raise PeerError(f"{self.name} is out of the group: {node.out}")
        return not node.durable or node.safe().get(node.lane, 0) > 0

    async def leave(self, *, timeout_s: float = 5.0) -> tuple[Id, ...]:
        """Leave for good: say so, and wait until all who are connected know, and some other member
        has all messages of this one.

        Returns the messages that no other member has after `timeout_s`, and logs them at level
        ERROR; empty: there are none. Until the peer ends, it goes on offering these: call `leave`
        again to wait longer. With a store a later start on it finds that it has left, and offers
        them too. Nothing is sent or taken from then on: an iteration that goes on ends behind what
        had come by then. Raises PeerError when the peer has ended.
        """
        check_timeout(timeout_s)
        self._check_open()
        node = self.node
        self._running.show()
        node.leave()
        self._running.soon()
        connected, last = set(node.greeted), node.active.newest_with_messages()

        def is_known() -> bool:
            owed = connected & node.greeted.keys() & set(node.owed())
            return bool(node.out) or (not owed and node.heard_upto() >= last)

        await self._until(is_known, timeout_s)
        if lost := await self._lost():
            self._tell_lost(lost)
        else:
            node.parted = True
        return lost

    async def _lost(self) -> tuple[Id, ...]:
        """Return the messages of this member that no other member has."""
        ordering, had = self.node.ordering, self.node.heard_upto()
        if ordering is None or self.node.out or self._running.broken is not None:
            return ()
        if ordering.unsent and not self.node.stopped:
            ordering.flush()
        found: list[Id] = []
        async for number, batch in self._running.own_behind(had):
            found += ordering.ids_in(number, batch.wire)
        return tuple(found)

    def _tell_lost(self, lost: tuple[Id, ...]) -> None:
        some = [str(one) for one in lost[:NAMED]]
        self._running.note("lost", self._words(lost), count=len(lost), ids=some)

    def _words(self, lost: tuple[Id, ...]) -> str:
        some = ", ".join(map(str, lost[:NAMED])) + (", ..." if len(lost) > NAMED else "")
        count = counted(len(lost), "message")
        return (
            f"no other member has acknowledged {count} of {self.name}: {some}; stay "
            "until a member is connected, or give store= to send them after a restart"
        )

    def put_out(self, member: str, why: str = "") -> None:
        """Put a member out of the group: nothing more is taken from it.

        What anybody took of it before is handed on to all. Raises LocalError for who is no other
        member, PeerError in the part without a majority where that stops.
        """
        self._check()
        if self.node.stopped:
            raise PeerError(f"{self.name} hears no majority of the group: nobody is put out")
        lanes = [lane for lane in self.node.others() if member_of(lane) == member]
        if not lanes:
            raise LocalError(f"{member!r} is not another member of this group")
        for lane in lanes:
            self.node.put_out(lane, why or f"asked by {self.name}")
        self._running.soon()

    # -- sending -----------------------------------------------------------------------------------

    async def send(
        self,
        payload: bytes,
        *,
        reply_to: Answered | Iterable[Answered] = (),
        topics: Collection[str] = (),
    ) -> Id:
        """Send a message to all; returns its id once it will survive a crash of this peer.

        In orders by topics: to all that subscribe to one of `topics`. Without a store that is at
        once. Waits while most of the others cannot keep up. Raises
        LocalError for what is no message, or answers one that was never here, and PeerError when
        the peer has left, is out of the group, or in the part without a majority where that stops.
        """
        await self.room()
        sent = self.send_nowait(payload, reply_to=reply_to, topics=topics)
        await self.kept()
        return sent

    async def kept(self) -> None:
        """Wait until what was sent so far will survive a crash of this peer."""
        self._check_open()
        if self.node.durable:
            number = self._batch_to_come()
            await self._until(lambda: self._is_safe(number))

    def _is_safe(self, number: int) -> bool:
        """Whether a batch of one's own will survive a crash. Raises where it never will."""
        if self.node.safe().get(self.node.lane, 0) >= number:
            return True
        self._check_open()  # after a leave it still may be
        if self.node.out:
            raise PeerError(f"{self.name} is out of the group: {self.node.out}")
        return False

    def send_nowait(
        self,
        payload: bytes,
        *,
        reply_to: Answered | Iterable[Answered] = (),
        topics: Collection[str] = (),
    ) -> Id:
        """As `send`, without waiting for room or for the store.

        Raises BufferFullError where more than `memory` bytes wait for the others or the store.
        """
        ordering = self._check()
        if ordering.memory_in_use > self._memory:
            self.node.flow.is_pressed = True
            raise ordering.buffer_full()
        if not (reply_to or topics or self._looks):  # as mostly, and a hundred thousand a second
            sent = ordering.say(payload)
            if not self._running.turn_due:
                self._running.soon()
            return sent
        answered = _ids(reply_to) if reply_to else ()
        sent = self._say_carefully(ordering, payload, answered, topics)
        self._running.soon()
        return sent

    def _say_carefully(
        self, ordering: Ordering, payload: bytes, answered: Sequence[Id], topics: Collection[str]
    ) -> Id:
        """Say something where a majority, a clock or a trace is to be looked at."""
        if self._majority and self.node.stopped:
            raise PeerError(f"{self.name} hears no majority of the group: nothing is sent")
        if self._timed:
            self._running.show()
            if why := self.node.why_nothing_is_heard():
                raise PeerError(why)
        trace = self._traced() if self._trace_path is not None else None
        sent = ordering.say(payload, answered, topics)
        if trace is not None:
            trace.sent(sent, answered)
        return sent

    async def subscribe(self, topics: Collection[str]) -> None:
        """Subscribe to these topics from now on, and to no others; all are told, in order.

        Of the others' messages one gets those that they send once they know of it. Returns once
        that will survive a crash of this peer. Raises LocalError for what are no topics, and in
        orders without.
        """
        self._check()
        self._running.show()
        node = self.node
        node.subscribe(topics)
        self._running.soon()
        number = node.active.lanes.newest(node.lane) + node.active.unsent
        await self._until(lambda: self._is_safe(number))

    @property
    def subscriptions(self) -> dict[str, tuple[str, ...]]:
        """Who subscribes to what, by member, as far as it is known here; empty without topics."""
        ordering = self.node.ordering
        known = {} if ordering is None else ordering.subscriptions
        return {member_of(lane): topics for lane, topics in sorted(known.items())}

    @property
    def delays(self) -> dict[str, Delays]:
        """What was measured of the delays from each other member to this one, in this life and
        those that the store knows; empty in orders that go by no clock. `proposed_bounds` makes
        bounds of them.
        """
        return {} if self.node.time is None else dict(self.node.time.delays)

    def _batch_to_come(self) -> int:
        """Return the number of the batch that holds, or will hold, the newest message."""
        ordering = self.node.active
        return ordering.lanes.newest(self.node.lane) + ordering.unsent

    async def room(self) -> None:
        """Wait while most of the others cannot keep up, as `send` does before it sends."""
        ordering, driver = self._check(), self._running
        at_most = min(PENDING, self.settings.memory // 4)
        flow = self.node.flow
        while (
            ordering.waiting_bytes > PENDING
            or driver.choked()
            or driver.behind(at_most)
            or flow.is_full
        ):
            if flow.is_full:  # acknowledgements have to be read, or nothing makes room
                flow.is_pressed = True
                driver.read(True)
            await self._waking.next_change(0.05)
            self._check()

    # -- receiving ---------------------------------------------------------------------------------

    def __aiter__(self) -> AsyncIterator[Message]:
        """Return the messages of the others, in the order of the group.

        It ends when the peer leaves or ends; begun after it has left it hands over what is still
        there, and raises PeerError. A peer has one flow of messages: of two iterations, of
        whichever kind, each gets some of them, and neither all.
        """
        return self._messages()

    async def _messages(self) -> AsyncIterator[Message]:
        # As `events`, and not over it: a second generator in between costs as much as all else.
        too_late, inbox = self.node.left, self._inbox
        while await self._more():
            for message in inbox.run:
                yield message
            self._finished(inbox.current)
        self._end_taking(too_late)

    def _end_taking(self, too_late: bool) -> None:
        """Raise PeerError where an iteration was begun after the peer had left."""
        if too_late:
            raise self._has_left()

    async def events(self) -> AsyncIterator[Event]:
        """Return messages, and views where the members change, in the order of the group.

        Ends as the iteration of messages does, with which it shares them. Raises PeerError when
        the peer is put out, or had left before, StoreError when its store fails. After a restart
        messages come again, and views do not: read `members` first, it has all changes up to then.
        """
        too_late, inbox = self.node.left, self._inbox
        while await self._more(inbox.others):
            while inbox.others:
                yield inbox.others.popleft()
            for message in inbox.run:
                yield message
            self._finished(inbox.current)
        self._end_taking(too_late)

    async def batches(self) -> AsyncIterator[Said]:
        """Return what each member said at once, as it comes: the quickest way.

        All of it counts as done when the next is asked for. Ends and raises as `events`.
        """
        too_late = self.node.left
        while await self._more():
            said, left = self._inbox.rest()
            if said is not None:
                self._inbox.hand_over(said, len(said.payloads), self.node.ordering)
                taken = self._inbox.taken
                yield said.tail(left)
                self._inbox.finished(said, self.node.ordering, taken)
        self._end_taking(too_late)

    async def _more(self, others: deque[View | GivenUp] | None = None) -> bool:
        """Wait until there are messages to run, or something in `others`; False: it has ended.

        Without `others` what is no message is passed over.
        """
        inbox = self._inbox
        self._running.done(inbox.done)
        self._note_consumed()
        while not inbox.next(others):
            self._running.read(True)
            inbox.ready.extend(self.node.take_delivered())
            if inbox.ready:
                continue
            if self._ended or self.node.left:
                return False
            self._check()
            await self._waking.next_change(None)
        self._note_consumed()
        return True

    def _note_consumed(self) -> None:
        """Make room: for what was acknowledged if that is stored, else for what was taken."""
        count = self._inbox.done if self._keeps_open else self._inbox.taken
        if self.node.consume(count):
            self._running.soon()

    def _finished(self, said: Said | None) -> None:
        self._inbox.finished(said, self.node.ordering)

    def past(self) -> CausalContext:
        """Return what this program follows: what it was handed and has sent, for
        `antecede.core.propagation`.

        Of this life of the program, by its newest messages: all that they depend on stands before
        them in the group's order. What it does next in other transports follows that:
        `with stamp.resuming(peer.past())`. Raises LocalError in orders that do not keep
        happened-before: there a message's own `past` says what handling it follows.
        """
        ordering = self.node.active
        if ordering.group.guarantee.relation is not Relation.BY_DELIVERY:
            raise LocalError(
                f"with order {self.settings.order!r} a message stands for nothing that came before "
                "it: take the `past` of the messages that you handle"
            )
        return self._inbox.past(ordering)

    def _delivered(self) -> None:
        """Something is there for the application; too much: the others have to wait with more."""
        ordering = self.node.ordering
        if ordering is not None and (
            ordering.place - self._inbox.taken > MAX_READY
            or ordering.backlog.bytes > self.node.inbox_limit + self.settings.memory
        ):
            self._running.read(False)
        self._waking.wake()

    def acknowledge(self, message: Message) -> None:
        """Say that this message, and all that were handed over before it, are done for good.

        After a restart they do not come again. Written to the store with the next inputs, or a
        quarter of a second later: what came in between may come again, under the same id.
        """
        if not isinstance(message, Message):
            raise LocalError(f"a message is acknowledged, not {shown(message)}")
        self._inbox.acknowledge(message)
        self._running.done(self._inbox.done)
        if self._keeps_open:
            self._note_consumed()

    def _check(self) -> Ordering:
        """Return the ordering of the group one is in. Raises where nothing goes on.

        Asked for each message, so all at once; what it is that stands against it is found out then.
        """
        node, driver = self._node, self._driver
        if (
            node is None
            or driver is None
            or node.ordering is None
            or (self._ended or node.left or node.out or driver.broken is not None)
            or _get_running_loop() is not self._begun.loop
        ):
            self._check_going(self.node)
            raise PeerError(f"{self.name} is in no group yet: `join` or `found` one")
        return node.ordering

    def _check_open(self) -> None:
        """Raise before the peer has begun, in another loop, and where it is over."""
        if self._ended:
            raise PeerError(f"{self.name} has ended")
        self._begun.check()
        self._check_whole()

    def _check_going(self, node: Node) -> None:
        """Raise where a peer cannot go on, nor begin, in a group."""
        self._check_open()
        if node.left:
            raise self._has_left()
        if node.out:
            raise PeerError(f"{self.name} is out of the group: {node.out}")

    def _has_left(self) -> PeerError:
        if not self._restored:
            return PeerError(f"{self.name} has left")
        return PeerError(
            f"{self.name} has left, as {self._store_path} says: begin with a new store, or another "
            "file"
        )

    # -- waiting -----------------------------------------------------------------------------------

    async def _until(self, true: Callable[[], bool], timeout_s: float | None = None) -> bool:
        """Wait until something is so, or the time is over. Raises where the store fails."""
        return await self._waking.until(true, timeout_s, self._check_whole)

    def _check_whole(self) -> None:
        if (broken := self._running.broken) is not None:
            raise broken


ARGUMENTS: Final = tuple(
    name
    for name, one in inspect.signature(Peer.__init__).parameters.items()
    if one.kind is one.KEYWORD_ONLY
)
"""What a peer takes beside `Settings`."""
Peer.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    [*inspect.signature(Peer.__init__).parameters.values()][1:]
)  # what `help` and notebooks show, in place of that of `__new__`


def _why_not(error: Exception) -> str:
    """Return in words why a call came to nothing."""
    if isinstance(error, ssl.SSLError):
        return why_no_handshake(error)
    if isinstance(error, ConnectionRefusedError):
        return NOBODY
    if isinstance(error, TimeoutError):
        return "no answer"
    return str(error) or type(error).__name__


def _life(store: Store | None) -> str:
    """Return what tells this life of a member from its others: as stored, or drawn."""
    letters = string.ascii_lowercase + string.digits
    known = None if store is None else store.get("life")
    life = known or "".join(secrets.choice(letters) for _ in range(LIFE_LENGTH)).encode()
    if store is not None and known is None:
        store.put("life", life)
    return life.decode()


def _ids(reply_to: Answered | Iterable[Answered]) -> Sequence[Id]:
    many = [reply_to] if isinstance(reply_to, Message | Id) else reply_to
    if not isinstance(many, Iterable):
        raise LocalError(f"reply_to= names messages, not {shown(reply_to)}")
    many = list(many)
    for one in many:
        if not isinstance(one, Message | Id):
            raise LocalError(f"reply_to= names messages, not {shown(one)}")
    return [one.id if isinstance(one, Message) else one for one in many]


def _every(seconds: float | None, trace: object) -> float | None:
    """Return how often a trace can be read. Raises LocalError for what cannot be."""
    if seconds is None:
        return None
    check_seconds("trace_every_s", seconds)
    if seconds <= 0:
        raise LocalError(f"trace_every_s= is above 0, not {shown(seconds)}")
    if trace is None:
        raise LocalError("trace_every_s= is of a trace: give trace= too")
    return float(seconds)


def _file(name: str, path: str | os.PathLike[str]) -> Path:
    """Return a path that was given. Raises LocalError for what is none."""
    if not isinstance(path, str | os.PathLike) or not os.fspath(path):
        raise LocalError(f"{name}= is a path, not {shown(path)}")
    return Path(path)


__all__ = ["Id", "Message", "Peer", "View"]
