"""Live peer: membership of a program in a group.

    async with Peer("alice", group_name="design", tls=Tls("alice.pem", "ca.pem"), ...) as peer:
        await peer.join("bob.example:7001")
        await peer.send(b"lunch?")
        async for message in peer:
            print(message.sender, message.payload)

Messages arrive in the order of the group, after their causes, exactly once while the program runs.
With a store this holds across crashes: unacknowledged messages are delivered again after a restart,
under the same `id`.
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
from antecede.formatting import pluralize, quote
from antecede.live.begun import LoopGuard
from antecede.live.drivers.addresses import (
    addresses_of,
    find_reachable_host,
    join_address,
    split_address,
    split_listening,
)
from antecede.live.drivers.handshakes import is_for_good, why_no_handshake
from antecede.live.drivers.tcp import MAX_READY, TcpDriver
from antecede.live.events import (
    INCARNATION_LENGTH,
    Event,
    Id,
    Message,
    MessagesAbandoned,
    SentBatch,
    View,
    check_name,
    lane_of,
    member_of,
)
from antecede.live.greeting import NOT_YET
from antecede.live.hierarchy import making
from antecede.live.inbox import Inbox
from antecede.live.node import Node
from antecede.live.ordering import Ordering
from antecede.live.sealing import Signatures
from antecede.live.settings import MAJORITY, in_ns
from antecede.live.showing import StatusServer
from antecede.live.status import Status, status_of
from antecede.live.store import PeerStore
from antecede.live.timekeeping import BoundViolation, Delays
from antecede.live.values import check_seconds, check_secure, check_timeout, options_of
from antecede.live.waking import Notifier

if TYPE_CHECKING:
    from antecede.live.tls import Tls
    from antecede.live.traces import TraceWriter

Answered = Message | Id
PENDING: Final = 4 << 20
CALL_WAIT_S: Final = 3.0
CALL_AGAIN_S: Final = 0.1
NOBODY: Final = "connection refused"
FOUND_S: Final = 2.0
"""Time before the first member of a list bootstraps a group: another may be about to."""
NAMED: Final = 10
LINKS_S: Final = 2.0
"""Time that a joining member waits for connections to all members, in orders by clocks."""


class Peer:
    """Member of a live group, used in one asyncio loop as an asynchronous context manager.

    - `name`: name of the member; with TLS the name in its certificate.
    - `group_name`, `order`, `options`: the same at all members.
    - `listen`: "HOST:PORT" of the listener (port 0: a free port; ":PORT": "0.0.0.0:PORT").
      None: this member only dials.
    - `address`: address for other members, if not `listen`. For "0.0.0.0" and "[::]" the default
      is the address of the outgoing interface (`Peer.address`).
    - `tls`: certificate and authority. None needs `insecure=True`: no security.
    - `store`: file that survives crashes. None: undelivered messages are lost at the end, and a
      restart begins a new incarnation.
    - `acknowledge`: "next" finishes a message when the application asks for the next one,
      "explicit" when it calls `acknowledge`.
    - `status`: "HOST:PORT" of /status, /metrics and /healthz. Clients must use an address,
      localhost or this name.
    - `trace`: folder for Parquet files of sends and deliveries (`antecede audit`, extra "trace").
    - `trace_every_s`: interval at which they are published (`antecede view --follow`; None: a
      minute at most).
    - `topics`: subscription (orders by topics). None: none, or the one in the store.
    - `clock_error_s`: error of the own clock (orders by clocks). None: read from chrony or kernel.
    - `on_bound_violation`: called in the loop with each `BoundViolation` (orders by clocks).
    - `role`: with order "hierarchical" "super" (forwards for internal peers, which dial `listen`),
      "internal" (joins a super peer) or "external" (is connected to super and external peers).

    Further arguments are fields of `Settings`, times in seconds with names that end in `_s`.

    Any asyncio loop works. With many messages, `uvloop.run(main())` spares an eighth to a fifth of
    the processor time of `asyncio.run(main())` (`python -m bench.live_rate`).

    A peer is entered once and used in that loop. It has one stream of messages, which several
    iterations share.

    Raises LocalError for invalid arguments.
    """

    if not TYPE_CHECKING:  # tools that read the source use `__init__`, which has all arguments

        def __new__(cls, *given, **more):
            """Raise LocalError for positional arguments beside the name."""
            if len(given) > 1:
                raise LocalError(
                    "Peer takes one positional argument, the name; got also "
                    f"{quote(given[1])}; write Peer({quote(given[0])}, group_name=...)"
                )
            return super().__new__(cls)

    def __init__(
        self,
        name: str,
        *,
        group_name: str = "",
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
        on_bound_violation: Callable[[BoundViolation], None] | None = None,
        **settings: Any,
    ) -> None:
        self.name = check_name(name)
        check_secure(name, tls, insecure)
        if acknowledge not in ("next", "explicit"):
            raise LocalError(
                f'unknown acknowledge={quote(acknowledge)}; choose from "next", "explicit"'
            )
        kind = making.settings_kind(order, role)
        more = in_ns(settings, kind, ARGUMENTS)
        if role is not None:
            more["role"] = role
        self.settings = kind(
            group_name=group_name, order=order, options=options_of(options), **more
        )
        given = {"listen": listen, "address": address, "store": store, "trace": trace}
        making.check(self.settings, given)
        self._majority = self.settings.partition == MAJORITY
        self._memory = self.settings.max_memory_bytes
        self._timed = self.settings.timed
        if on_bound_violation is not None and not self._timed:
            raise LocalError(f"on_bound_violation= has no effect: order {order!r} uses no clock")
        if on_bound_violation is not None and not callable(on_bound_violation):
            raise LocalError(
                f"on_bound_violation={quote(on_bound_violation)} is invalid; expected a function "
                "of a BoundViolation"
            )
        self._on_alarm = on_bound_violation
        if trace is not None and self._timed:
            raise LocalError(
                f"trace= is not supported by order {order!r}: it depends on arrivals and topics, "
                "which `antecede audit` cannot check"
            )
        self._tls = tls
        self._listen = None if listen is None else split_listening(listen)
        if address is not None:
            split_address(address)
        self._address = address
        self._store_path = None if store is None else _file("store", store)
        self._showing = StatusServer(name, status)
        self._trace_path = None if trace is None else _file("trace", trace)
        if trace is not None:
            importlib.import_module(
                "antecede.live.traces"
            )  # raises at once if the extra is missing
        self._trace: TraceWriter | None = None
        self._trace_every_s = _every(trace_every_s, trace)
        self._looks = self._majority or self._timed or trace is not None
        """True if sending needs more checks than usual."""
        self._begun = LoopGuard(name)
        self._restored = False
        """True if it continues in the group of its store."""
        self._node: Node | None = None
        self._driver: TcpDriver | None = None
        begun = self._note_delivered if trace is not None else None
        by_hand = acknowledge == "explicit"
        self._keeps_open = by_hand and store is not None
        """True if messages are kept until the application acknowledges them."""
        self._inbox = Inbox(begun, by_hand=by_hand, durable=store is not None)
        self._waking = Notifier()
        self._ended = False

    # -- start and end -----------------------------------------------------------------------------

    async def __aenter__(self) -> Peer:
        """Open the store, listen, and continue in the group of the store. Raises LocalError the
        second time.
        """
        self._begun.begin()
        try:
            await self._begin()
        except BaseException:
            self._begun.unbind()
            raise
        return self

    async def _begin(self) -> None:
        store = self._open_store()
        life = _life(store)
        self._node = node = making.node_kind(self.settings)(
            *(self.name, self.settings, life, self._find_address()),
            seals=self._seals(store, lane_of(self.name, life)),
            durable=store is not None,
        )
        saved = store.load() if store is not None else None
        self._driver = TcpDriver(
            *(node,),
            secure=self._tls,
            store=store,
            ready=self._handle_delivered,
            changed=self._waking.wake,
            done=self._inbox.count_done,
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
                node.inbox_limit = self.settings.max_memory_bytes
            await self._begin_to_listen(node)
            await self._showing.begin(self.status)
            self._driver.start()
        except BaseException:
            self._showing.close()
            await self._driver.close()
            raise

    def _open_store(self) -> PeerStore | None:
        if self._store_path is None:
            return None
        room, options = self.settings.tags()
        return PeerStore(self._store_path, self.name, room + options + self.settings.order.encode())

    def _seals(self, store: PeerStore | None, lane: str) -> Signatures | None:
        if self._tls is None:
            return None
        from antecede.live.seals import CertifiedSignatures  # needs the extra

        secret = b"" if store is None else store.get("secret") or b""
        seals = CertifiedSignatures(self._tls, self.settings.group_name, lane, time.time, secret)
        if store is not None and not secret:
            store.put("secret", seals.secret)
        return seals

    def _find_address(self) -> str:
        if self._address is not None:
            return self._address
        if self._listen is None:
            return ""
        host, port = self._listen
        return join_address(find_reachable_host(host), port)

    async def _begin_to_listen(self, node: Node) -> None:
        if self._listen is None:
            return
        host, port = self._listen
        try:
            bound = await self._running.listen(host, port)
        except OSError as error:
            raise PeerError(f"{self.name} cannot listen at {host}:{port}: {error}") from error
        if self._address is None:
            node.address = join_address(find_reachable_host(host), bound)

    def _open_trace(self) -> TraceWriter | None:
        """Return the trace writer. None: no trace."""
        if self._trace is None and self._trace_path is not None and self._in_group:
            from antecede.live.traces import TraceWriter  # needs the extra

            node = self.node
            relation = node.active.group.guarantee.relation
            self._trace = TraceWriter(
                self._trace_path, node.lane, node.group_tag.hex(), relation, self._trace_every_s
            )
        return self._trace

    def _note_delivered(self, said: SentBatch) -> None:
        if (trace := self._open_trace()) is not None:
            trace.record_deliveries(said)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the peer. Without a store, leave the group first. Without a store it raises
        PeerError if some messages reached no other member within the time of `leave`: these are
        lost.
        """
        stays = self._ended or self._store_path is not None or error is not None
        lost: tuple[Id, ...] = ()
        if not (stays or self.node.out or self.node.left) and self._in_group:
            lost = await self.leave()
        await self.close()
        if lost:
            raise PeerError(self._words(lost))

    async def close(self) -> None:
        """Close without leaving. Other members keep messages for it, up to `evict_after_s`. Without
        a store the log lists, at level ERROR, the messages that no other member has.
        """
        if not self._ended:
            if (
                self._store_path is None
                and not self.node.left
                and (lost := await self._find_lost())
            ):
                self._log_lost(lost)
            self._ended = True
            self._waking.wake()
            self._showing.close()
            await self._running.close()
            if self._trace is not None:
                await asyncio.to_thread(self._trace.close)

    @property
    def node(self) -> Node:
        """State machine of the peer. Raises LocalError before the peer is entered."""
        if self._node is None:
            raise LocalError("the peer is not entered; use `async with Peer(...) as peer`")
        return self._node

    @property
    def _running(self) -> TcpDriver:
        if self._driver is None:
            raise LocalError("the peer is not entered; use `async with Peer(...) as peer`")
        return self._driver

    @property
    def _in_group(self) -> bool:
        return self.node.ordering is not None

    # -- the group ---------------------------------------------------------------------------------

    @property
    def address(self) -> str:
        """Address for `join` of other members. Empty: none."""
        return self.node.address

    @property
    def status_address(self) -> str:
        """Address of the status server. Empty: none."""
        return self._showing.address

    @property
    def members(self) -> tuple[str, ...]:
        """Names of the members, this one included, sorted; empty before it is in a group. A member
        with two incarnations appears once. After a restart all stored changes are included, even
        those whose views the application had not taken.
        """
        ordering = self.node.ordering
        return tuple(sorted(set(map(member_of, ordering.members)))) if ordering is not None else ()

    @property
    def history(self) -> tuple[Message, ...]:
        """Newest messages, own ones included, up to `history=`. A joining member starts with those
        of its sponsor. A store keeps them across restarts.
        """
        ordering = self.node.ordering
        return tuple(ordering.history) if ordering is not None else ()

    def request_missing(self) -> dict[str, str]:
        """Request missing batches at once, instead of after `repair_delay_s`. Returns sender id of
        the batches -> sender id of the member asked. Empty: no connected member is known to have
        more than this one.
        """
        asked = self.node.timers.ask_now(time.monotonic_ns())
        self._running.soon()
        return asked

    def status(self) -> Status:
        """Return the current status."""
        broken = self._running.broken
        trouble = str(broken) if broken is not None else "it is closed" if self._ended else ""
        trouble = trouble or ("it has left" if self.node.left else "")
        lost = self._trace.lost if self._trace is not None else 0
        left = self._tls.validity_s(time.time()) if self._tls is not None else None
        return status_of(
            *(self.node, time.monotonic_ns(), trouble, self._inbox.count_done()),
            trace_rows_dropped=lost,
            certificate_expires_in_s=left,
            connection_bytes=self._running.count_buffered(),
        )

    async def bootstrap(self) -> None:
        """Bootstrap a group of one, unless the peer continues in the group of its store. Raises
        LocalError if it is in a group already, PeerError if it has left or is closed.
        """
        if self._is_new():
            self._running.show()
            self.node.bootstrap(secrets.token_bytes(8))
            self._running.soon()
            await self._until(self._is_settled)

    async def join(
        self, address: str | Sequence[str], *, timeout_s: float = 10.0, or_bootstrap: bool = False
    ) -> None:
        """Join the group of a member at "HOST:PORT", unless the peer continues in the group of its
        store.

        Several addresses are dialed in turn until a member of a group answers. Raises PeerError
        after `timeout_s`, or at once with the reason of a rejection. Raises LocalError if the peer
        is in a group already, PeerError if it has left, was evicted, or is closed.

        `or_bootstrap`: bootstrap a group if no address is in one. All members then give the same
        list with their own addresses and may start together. The first one that is up bootstraps;
        later ones wait `timeout_s` for those before them. Members that cannot reach each other at
        their start bootstrap separate groups.
        """
        addresses = addresses_of(address)
        check_timeout(timeout_s)
        if not self._is_new():
            return
        earlier = self._before(addresses) if or_bootstrap else []
        if or_bootstrap:
            addresses = [one for one in addresses if one != self.address]
        failures: list[str] = []

        def record_result(error: Exception | None) -> None:
            if error is not None:
                failures.append(_why_not(error))
                self._waking.wake()
            if is_for_good(error):
                self.node.refusal = failures[-1]

        begun = time.monotonic()
        end = begun + timeout_s
        absent, waiting = set[str](), set[str]()
        """Addresses without a listener, and addresses of members without a group, by the last dial.
        """
        for one in cycle(addresses or [""]):
            over = time.monotonic() > (end if earlier else min(end, begun + FOUND_S))
            sure = time.monotonic() > end or absent | waiting >= set(addresses)
            if or_bootstrap and over and sure and not waiting.intersection(earlier):
                await self.bootstrap()
                return
            if not addresses:
                await asyncio.sleep(CALL_AGAIN_S)
                continue
            if time.monotonic() > end:
                why = self.node.refusal or (failures[-1] if failures else "no answer")
                raise PeerError(
                    f"{self.name} cannot join the group at {', '.join(addresses)}: {why}"
                )
            known = len(failures)
            await self._try_to_join(one, record_result, end, lambda: len(failures) > known)  # noqa: B023
            if self._in_group:
                break
            (waiting.add if self.node.refusal else waiting.discard)(one)
            is_absent = NOBODY in failures[known:]
            (absent.add if is_absent else absent.discard)(one)
        await self._until(self._is_settled)
        if self._timed:  # batches sent before all are connected would be late for the bounds
            await self._until(lambda: not self.node.timers.unheard(), LINKS_S)

    def _before(self, addresses: Sequence[str]) -> Sequence[str]:
        """Return the addresses before the own one. Raises LocalError if that is not listed."""
        if self.address not in addresses:
            raise LocalError(
                f"or_bootstrap=True: the address {self.address or 'none'} of {self.name} is not "
                f"in {', '.join(addresses)}; give all members the list of all addresses"
            )
        return addresses[: addresses.index(self.address)]

    def _is_new(self) -> bool:
        """Return whether there is a group to bootstrap or to join. False: the store has one."""
        self._check_going(self.node)
        if not self._in_group:
            return True
        if not self._restored:
            raise LocalError(
                f"{self.name} is in a group already; create another Peer for another group"
            )
        return False

    async def _try_to_join(
        self,
        address: str,
        called: Callable[[Exception | None], None],
        end: float,
        failed: Callable[[], bool],
    ) -> None:
        """Dial once and wait for the result."""
        node = self.node
        node.refusal, refused = "", node.rejected.total()
        self._running.call(address, called)
        await self._until(
            lambda: (
                self._in_group or bool(node.refusal) or node.rejected.total() > refused or failed()
            ),
            min(end - time.monotonic(), CALL_WAIT_S),
        )
        if self._in_group:
            return
        if node.refusal and not node.refusal.startswith(NOT_YET):
            raise PeerError(f"{address} rejects {self.name}: {node.refusal}")
        if node.rejected.total() > refused:
            raise PeerError(
                f"{self.name} cannot join the group at {address}: {node.last_rejection}"
            )
        await asyncio.sleep(CALL_AGAIN_S)

    def _is_settled(self) -> bool:
        """Return whether the store has the first own batch. Raises PeerError after an eviction."""
        node = self.node
        if node.out:  # by a later incarnation of this name
            raise PeerError(f"{self.name} is out of the group: {node.out}")
        return not node.durable or node.safe().get(node.lane, 0) > 0

    async def leave(self, *, timeout_s: float = 5.0) -> tuple[Id, ...]:
        """Leave for good. Wait until connected members know, and one of them has all own messages.

        Returns the messages that no other member has after `timeout_s`, and logs them at level
        ERROR. Until it is closed, the peer continues to offer these: call `leave` again to wait
        longer. With a store a later start finds that it has left, and offers them too. It sends and
        takes nothing more; a running iteration ends behind the messages received by then. Raises
        PeerError if the peer is closed.
        """
        check_timeout(timeout_s)
        self._check_open()
        node = self.node
        self._running.show()
        node.leave()
        self._running.soon()
        connected, last = set(node.greeted), node.active.newest_with_messages()

        def is_known() -> bool:
            owed = connected & node.greeted.keys() & set(node.list_unacknowledged())
            return bool(node.out) or (not owed and node.find_acknowledged() >= last)

        await self._until(is_known, timeout_s)
        if lost := await self._find_lost():
            self._log_lost(lost)
        else:
            node.parted = True
        return lost

    async def _find_lost(self) -> tuple[Id, ...]:
        ordering, had = self.node.ordering, self.node.find_acknowledged()
        if ordering is None or self.node.out or self._running.broken is not None:
            return ()
        if ordering.unsent and not self.node.in_minority:
            ordering.flush()
        found: list[Id] = []
        async for number, batch in self._running.own_behind(had):
            found += ordering.ids_in(number, batch.wire)
        return tuple(found)

    def _log_lost(self, lost: tuple[Id, ...]) -> None:
        some = [str(one) for one in lost[:NAMED]]
        self._running.note("lost", self._words(lost), count=len(lost), ids=some)

    def _words(self, lost: tuple[Id, ...]) -> str:
        some = ", ".join(map(str, lost[:NAMED])) + (", ..." if len(lost) > NAMED else "")
        count = pluralize(len(lost), "message")
        return (
            f"no other member has acknowledged {count} of {self.name}: {some}; wait for a "
            "connected member, or give store= to send them after a restart"
        )

    def evict(self, member: str, why: str = "") -> None:
        """Evict a member: nothing more is accepted from it. Batches that any member received before
        are relayed to all. Raises LocalError for names of no other member, PeerError in a minority
        part that does not send.
        """
        self._check()
        if self.node.in_minority:
            raise PeerError(f"{self.name} is in a minority part: it evicts no member")
        lanes = [lane for lane in self.node.others() if member_of(lane) == member]
        if not lanes:
            raise LocalError(f"unknown member {member!r}; choose from {', '.join(self.members)}")
        for lane in lanes:
            self.node.evict(lane, why or f"requested by {self.name}")
        self._running.soon()

    # -- sending -----------------------------------------------------------------------------------

    async def send(
        self,
        payload: bytes,
        *,
        reply_to: Answered | Iterable[Answered] = (),
        topics: Collection[str] = (),
    ) -> Id:
        """Send a message to the group; return its id once it survives a crash of this peer.

        Without a store it returns at once. It waits while most members cannot keep up. `topics`:
        only their subscribers receive it (orders by topics). Raises LocalError for an invalid
        message or an unknown parent. Raises PeerError if the peer has left, was evicted, or is in a
        minority part that does not send.
        """
        await self.drain()
        sent = self.send_nowait(payload, reply_to=reply_to, topics=topics)
        await self.flush()
        return sent

    async def flush(self) -> None:
        """Wait until all messages sent so far survive a crash of this peer."""
        self._check_open()
        if self.node.durable:
            number = self._batch_to_come()
            await self._until(lambda: self._is_safe(number))

    def _is_safe(self, number: int) -> bool:
        """Return whether an own batch survives a crash. Raises PeerError if it never will."""
        if self.node.safe().get(self.node.lane, 0) >= number:
            return True
        self._check_open()  # possible even after a leave
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
        """Send without waiting for capacity or for the store. Raises BufferFullError beyond
        `max_memory_bytes` of messages that wait for others or the store.
        """
        ordering = self._check()
        if ordering.memory_in_use > self._memory:
            self.node.flow.is_pressed = True
            raise ordering.buffer_full()
        # the usual case, a hundred thousand times a second
        if not (reply_to or topics or self._looks):
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
        """Send in a group with a majority rule, a clock or a trace."""
        if self._majority and self.node.in_minority:
            raise PeerError(f"{self.name} is in a minority part: it sends nothing")
        if self._timed:
            self._running.show()
            if why := self.node.why_nothing_is_heard():
                raise PeerError(why)
        trace = self._open_trace() if self._trace_path is not None else None
        sent = ordering.say(payload, answered, topics)
        if trace is not None:
            trace.record_send(sent, answered)
        return sent

    async def subscribe(self, topics: Collection[str]) -> None:
        """Replace the subscription. All members learn of it, in order. Members send matching
        messages once they know of it. It returns once the subscription survives a crash of this
        peer. Raises LocalError for invalid topics and in orders without topics.
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
        """Subscriptions by member, as far as known here; empty without topics."""
        ordering = self.node.ordering
        known = {} if ordering is None else ordering.subscriptions
        return {member_of(lane): topics for lane, topics in sorted(known.items())}

    @property
    def delays(self) -> dict[str, Delays]:
        """Measured delays from each other member, in this incarnation and those in the store. Empty
        in orders without clocks. `propose_bounds` turns them into bounds.
        """
        return {} if self.node.clock_monitor is None else dict(self.node.clock_monitor.delays)

    def _batch_to_come(self) -> int:
        """Return the number of the batch that contains, or will contain, the newest message."""
        ordering = self.node.active
        return ordering.lanes.newest(self.node.lane) + ordering.unsent

    async def drain(self) -> None:
        """Wait while most members cannot keep up, as `send` does."""
        ordering, driver = self._check(), self._running
        at_most = min(PENDING, self.settings.max_memory_bytes // 4)
        flow = self.node.flow
        while (
            ordering.waiting_bytes > PENDING
            or driver.is_choked()
            or driver.behind(at_most)
            or flow.is_full
        ):
            if flow.is_full:  # read acknowledgements, which free capacity
                flow.is_pressed = True
                driver.read(True)
            await self._waking.next_change(0.05)
            self._check()

    # -- receiving ---------------------------------------------------------------------------------

    def __aiter__(self) -> AsyncIterator[Message]:
        """Return the messages of other members in the order of the group. It ends when the peer
        leaves or is closed. Begun after the leave, it returns the remaining messages and raises
        PeerError. Several iterations share the messages.
        """
        return self._messages()

    async def _messages(self) -> AsyncIterator[Message]:
        # Repeats `events`: a second generator in between would double the cost.
        too_late, inbox = self.node.left, self._inbox
        while await self._more():
            for message in inbox.run:
                yield message
            self._finish(inbox.current)
        self._end_taking(too_late)

    def _end_taking(self, too_late: bool) -> None:
        """Raise PeerError for an iteration that began after the leave."""
        if too_late:
            raise self._has_left()

    async def events(self) -> AsyncIterator[Event]:
        """Return messages and views in the order of the group. It shares the messages with other
        iterations and ends like them. Raises PeerError after an eviction or a leave, StoreError if
        the store fails. After a restart messages are repeated, but not views: read `members` first.
        """
        too_late, inbox = self.node.left, self._inbox
        while await self._more(inbox.others):
            while inbox.others:
                yield inbox.others.popleft()
            for message in inbox.run:
                yield message
            self._finish(inbox.current)
        self._end_taking(too_late)

    async def batches(self) -> AsyncIterator[SentBatch]:
        """Return consecutive messages of a sender together: the fastest way. All of them are
        finished when the next ones are requested. It ends and raises like `events`.
        """
        too_late = self.node.left
        while await self._more():
            said, left = self._inbox.rest()
            if said is not None:
                self._inbox.hand_over(said, len(said.payloads), self.node.ordering)
                taken = self._inbox.taken
                yield said.tail(left)
                self._inbox.finish(said, self.node.ordering, taken)
        self._end_taking(too_late)

    async def _more(self, others: deque[View | MessagesAbandoned] | None = None) -> bool:
        """Wait for messages or other events. False: the stream has ended. Without `others`, events
        that are not messages are dropped.
        """
        inbox = self._inbox
        self._running.finish(inbox.done)
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
        """Free capacity: for acknowledged messages with a store, else for those taken."""
        count = self._inbox.done if self._keeps_open else self._inbox.taken
        if self.node.consume(count):
            self._running.soon()

    def _finish(self, said: SentBatch | None) -> None:
        self._inbox.finish(said, self.node.ordering)

    def causal_context(self) -> CausalContext:
        """Return the causal context of this program for `antecede.core.propagation`.

        It consists of the newest messages that the program took and sent in this run. All their
        causes are before them in the group's order. Use it for later sends in other transports:
        `with propagation.resume(peer.causal_context())`. Raises LocalError in orders that do not
        keep happened-before: use `Message.causal_context` there.
        """
        ordering = self.node.active
        if ordering.group.guarantee.relation is not Relation.BY_DELIVERY:
            raise LocalError(
                f"causal_context() is not supported by order {self.settings.order!r}; use the "
                "`causal_context` of the messages that you handle"
            )
        return self._inbox.past(ordering)

    def _handle_delivered(self) -> None:
        """Wake the application. Beyond the limit, stop reading so that other members wait."""
        ordering = self.node.ordering
        if ordering is not None and (
            ordering.place - self._inbox.taken > MAX_READY
            or ordering.backlog.bytes > self.node.inbox_limit + self.settings.max_memory_bytes
        ):
            self._running.read(False)
        self._waking.wake()

    def acknowledge(self, message: Message) -> None:
        """Acknowledge a message and all messages taken before it. They are not repeated after a
        restart. The store writes this with the next inputs, at most a quarter of a second later.
        Messages acknowledged meanwhile may be repeated under the same id.
        """
        if not isinstance(message, Message):
            raise LocalError(f"cannot acknowledge {quote(message)}; expected a Message")
        self._inbox.acknowledge(message)
        self._running.finish(self._inbox.done)
        if self._keeps_open:
            self._note_consumed()

    def _check(self) -> Ordering:
        """Return the ordering of the group. Raises PeerError or LocalError if the peer cannot
        continue. It runs for each message, so it tests all conditions together and finds the reason
        afterwards.
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
            raise PeerError(f"{self.name} is not in a group; call `join` or `bootstrap` first")
        return node.ordering

    def _check_open(self) -> None:
        """Raise before the peer is entered, in another loop, and after it is closed."""
        if self._ended:
            raise PeerError(f"{self.name} is closed")
        self._begun.check()
        self._check_whole()

    def _check_going(self, node: Node) -> None:
        """Raise if a peer cannot continue in a group, nor enter one."""
        self._check_open()
        if node.left:
            raise self._has_left()
        if node.out:
            raise PeerError(f"{self.name} is out of the group: {node.out}")

    def _has_left(self) -> PeerError:
        if not self._restored:
            return PeerError(f"{self.name} has left")
        return PeerError(
            f"{self.name} has left, by its store {self._store_path}; give a new store file"
        )

    # -- waiting -----------------------------------------------------------------------------------

    async def _until(self, true: Callable[[], bool], timeout_s: float | None = None) -> bool:
        """Wait for a condition or the time limit. Raises StoreError if the store fails."""
        return await self._waking.until(true, timeout_s, self._check_whole)

    def _check_whole(self) -> None:
        if (broken := self._running.broken) is not None:
            raise broken


ARGUMENTS: Final = tuple(
    name
    for name, one in inspect.signature(Peer.__init__).parameters.items()
    if one.kind is one.KEYWORD_ONLY
)
Peer.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    [*inspect.signature(Peer.__init__).parameters.values()][1:]
)  # for `help` and notebooks, in place of the signature of `__new__`


def _why_not(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return why_no_handshake(error)
    if isinstance(error, ConnectionRefusedError):
        return NOBODY
    if isinstance(error, TimeoutError):
        return "no answer"
    return str(error) or type(error).__name__


def _life(store: PeerStore | None) -> str:
    """Return the incarnation of this member: the stored one, or a random one."""
    letters = string.ascii_lowercase + string.digits
    known = None if store is None else store.get("incarnation")
    life = known or "".join(secrets.choice(letters) for _ in range(INCARNATION_LENGTH)).encode()
    if store is not None and known is None:
        store.put("incarnation", life)
    return life.decode()


def _ids(reply_to: Answered | Iterable[Answered]) -> Sequence[Id]:
    many = [reply_to] if isinstance(reply_to, Message | Id) else reply_to
    if not isinstance(many, Iterable):
        raise LocalError(f"reply_to={quote(reply_to)} is invalid; expected messages or ids")
    many = list(many)
    for one in many:
        if not isinstance(one, Message | Id):
            raise LocalError(f"reply_to= contains {quote(one)}; expected messages or ids")
    return [one.id if isinstance(one, Message) else one for one in many]


def _every(seconds: float | None, trace: object) -> float | None:
    """Return the interval at which a trace is published. Raises LocalError for an invalid one."""
    if seconds is None:
        return None
    check_seconds("trace_every_s", seconds)
    if seconds <= 0:
        raise LocalError(f"trace_every_s={quote(seconds)} is invalid; expected above 0")
    if trace is None:
        raise LocalError("trace_every_s= has no effect without trace=; give both")
    return float(seconds)


def _file(name: str, path: str | os.PathLike[str]) -> Path:
    if not isinstance(path, str | os.PathLike) or not os.fspath(path):
        raise LocalError(f"{name}={quote(path)} is invalid; expected a path")
    return Path(path)


__all__ = ["Id", "Message", "Peer", "View"]
