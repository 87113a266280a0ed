"""A network in memory, with a clock of its own: what happens follows from a seed.

Hosts are nodes with their stores. Links behave as TCP does: bytes come in order and whole, wait
while the way is cut, and are gone with the link; the end of a link is told when the way is open.
What a test does to it: `cut`, `heal`, `crash`, `restart`, `freeze`, `thaw`.
"""

from __future__ import annotations

import contextlib
import random
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Final, NamedTuple

from antecede.errors import LocalError, RemoteError
from antecede.live import wire
from antecede.live.diary import LogEntry, StatusLogger
from antecede.live.events import Change, Event, Id, Message, SentBatch
from antecede.live.heads import is_run, read_run
from antecede.live.hierarchy.making import node_kind
from antecede.live.lanes import SignedBatch
from antecede.live.links import Link
from antecede.live.node import Node, Saved
from antecede.live.ordering import StoredInput
from antecede.live.sealing import Signatures
from antecede.live.settings import Settings
from antecede.live.status import Status, status_of
from tests.live.observation import Observation, observe
from tests.live.simulated_time import Agenda, Cuts

MS: Final = 10**6
TICK_NS = 20 * MS
RETRY_NS = 50 * MS
"""How often bytes that wait for a cut way are tried again."""
WINDOW = 1 << 18
"""Bytes on their way on a link, at most."""
BUDGET = 1 << 16
SNAPSHOT_ROWS = 40


class MemoryStore:
    """What survives a crash: written with a delay, in order, all of a turn or nothing."""

    def __init__(self) -> None:
        self.snapshot = b""
        self.rows: list[StoredInput] = []
        self.batches: dict[tuple[str, int], SignedBatch] = {}
        self.done = 0

    def write(self, rows: Iterable[StoredInput], snapshot: bytes | None, done: int) -> None:
        """Keep what one turn brought."""
        self.done = done
        for row in rows:
            self.rows.append(row)
            first = read_run(row.batch.wire).first if is_run(row.batch.wire) else row.number
            for number in range(first, row.number + 1):
                self.batches[row.lane, number] = row.batch
        if snapshot is not None:
            self.snapshot, self.rows = snapshot, []

    def saved(self) -> Saved:
        """Return what a restart begins from."""
        return Saved(self.snapshot, self.rows, lambda n, k: self.batches[n, k], self.done)

    def behind(self, lane: str, number: int, most: int = 64) -> list[tuple[int, SignedBatch]]:
        """Return batches of a lane behind a number."""
        found: list[tuple[int, SignedBatch]] = []
        while (lane, number + 1) in self.batches and len(found) < most:
            number += 1
            found.append((number, self.batches[lane, number]))
        return found


class Frame(NamedTuple):
    """A frame on its way."""

    source: str
    target: str
    link: int
    """Number of the connection at its source."""
    kind: int
    body: bytes

    def pack(self) -> bytes:
        """Return its bytes."""
        return wire.pack_frame(self.kind, self.body)


class _Way:
    """One direction of a connection."""

    def __init__(self, source: str, target: str, number: int) -> None:
        self.source, self.target, self.number = source, target, number
        """`number`: of the link, as the target counts."""
        self.parts: deque[tuple[int, bytes | None]] = deque()
        """(when it is there, bytes); None: the end."""
        self.bytes = 0
        self.last_ns = 0
        self.ended = False


class Host:
    """A place where one member runs."""

    def __init__(self, name: str, settings: Settings, *, durable: bool) -> None:
        self.name, self.settings = name, settings
        self.store = MemoryStore() if durable else None
        self.node: Node | None = None
        self.frozen = self.in_step = self.stays = False
        """`stays`: its member does not heed that it is out of the group."""
        self.writes_to: Iterable[str] | None = None
        """The hosts to which the system takes bytes now; None: to all."""
        self.log = StatusLogger()
        self.events: list[Event] = []
        """All that was handed to the application, of all lives."""
        self.lives = 0
        self.joining = ""
        self.written = 0
        self.writing = False
        self.acknowledges = True
        """Whether the application acknowledges what it gets."""
        self.takes = True
        """True if the application takes delivered messages."""
        self.waiting: list[Callable[[], None]] = []
        """What came while it was frozen."""
        self.read_every_ns = 1
        """Bytes are read at multiples of this time, all that have come at once: as behind a tunnel
        that gathers packets."""
        self.clock: Callable[[int], int] = lambda now: now
        """What its clock shows at a moment (ns)."""
        self.clock_error_ns: int | None = None
        """What its system says of that clock."""

    @property
    def sender_id(self) -> str:
        """Sender id of its member; empty: no member runs."""
        return self.node.lane if self.node is not None else ""

    @property
    def is_in_group(self) -> bool:
        """Return whether its member is in a group, and not out of it."""
        return self.node is not None and self.node.ordering is not None and not self.node.out

    @property
    def has_ended(self) -> bool:
        """Return whether its member has left or is out of the group."""
        return self.node is not None and bool(self.node.left or self.node.out)

    @property
    def is_idle(self) -> bool:
        """Return whether it can do nothing: no member, a frozen one, or one without a group."""
        return self.frozen or not self.is_in_group

    def observe(self) -> Observation:
        """Return the state of its member."""
        return observe(self)


class MemoryNetwork:
    """Hosts, links between them, and a clock that jumps from one thing to the next."""

    def __init__(self, seed: int, *, least_ns: int = MS, most_ns: int = 40 * MS) -> None:
        self.random = random.Random(seed)
        self.least_ns, self.most_ns = least_ns, most_ns
        self._agenda, self._cuts = Agenda(), Cuts()
        self.at, self.run = self._agenda.at, self._agenda.run
        self.sleep = self._agenda.put_off
        self.cut, self.heal = self._cuts.cut, self._cuts.heal
        self.hosts: dict[str, Host] = {}
        self._ways: dict[tuple[str, int], _Way] = {}
        """(host, link) -> the way out of it."""
        self._links = 0
        self.frames: Counter[int] = Counter()
        """Frame kind -> how many were written."""
        self.filter: Callable[[list[Frame]], Iterable[bytes] | None] = lambda frames: None
        """Returns what goes out instead of frames; None: these."""
        self.new_signatures: Callable[[str], Signatures] | None = None
        """Makes the signatures of a sender id; None: unsigned."""
        self.tells_early = False
        """True if others are told what the stores have not written yet."""

    @property
    def now(self) -> int:
        """What the clock of the network shows, in nanoseconds."""
        return self._agenda.now

    # -- the clock ---------------------------------------------------------------------------------

    def show(self, host: Host) -> None:
        """Let a host look at its clock, where its order goes by one."""
        node = host.node
        if node is not None and node.clock_monitor is not None:
            node.clock_monitor.system_says(host.clock_error_ns, "the simulation")
            node.shows(host.clock(self.now), self.now)

    # -- hosts -------------------------------------------------------------------------------------

    def add(self, name: str, settings: Settings, *, durable: bool = False) -> Host:
        """Add a host; `start` begins a life there."""
        self.hosts[name] = Host(name, settings, durable=durable)
        return self.hosts[name]

    def start(self, name: str, join: str = "") -> None:
        """Begin a life: go on from the store, else join another host's group, else found one."""
        host = self.hosts[name]
        host.lives += 1
        life = f"{self.random.getrandbits(40):08x}"[:8]
        node = self.new_node(host, life)
        host.node, host.written, host.joining, host.writing = node, 0, join, False
        if not (host.store is not None and host.store.snapshot):
            self.show(host)
        if host.store is not None and host.store.snapshot:
            node.restore(host.store.saved(), self.now)
        elif join:
            self.at(0, lambda: self._dial(name, join))
        else:
            node.bootstrap(self.random.randbytes(8))
        self.at(self.random.randrange(TICK_NS), lambda: self._tick(name, node))
        self.turn(name)

    def meet(
        self,
        names: Iterable[str],
        settings: Settings | None = None,
        *,
        durable: bool = False,
        at_once: bool = False,
    ) -> None:
        """Let the first host found a group, and the others join it, soon or at once. With settings,
        these hosts are new.
        """
        first, *others = names
        if settings is not None:
            for name in (first, *others):
                self.add(name, settings, durable=durable)
        self.start(first)
        for k, name in enumerate(others):
            if at_once:
                self.start(name, first)
            else:
                self.at((50 + 20 * k) * MS, partial(self.start, name, first))

    def node(self, name: str) -> Node:
        """Return the node of a host that lives."""
        node = self.hosts[name].node
        assert node is not None
        return node

    def member_at(self, name: str) -> str:
        """Return the name in the certificate of a host's member."""
        return name

    def observe(self, name: str) -> Observation:
        """Return the state of a member."""
        return observe(self.node(name))

    def status(self, name: str) -> Status:
        """Return how a member is doing."""
        return status_of(self.node(name), self.now)

    def log(self, name: str) -> list[LogEntry]:
        """Return what the log of a member says since the last call."""
        return list(self.hosts[name].log.sample(self.node(name), self.now))

    def take_violations(self, name: str) -> list[str]:
        """Return what a member says of broken bounds, once."""
        monitor = self.node(name).clock_monitor
        assert monitor is not None
        return [str(one) for one in monitor.take_violations(self.now)]

    def messages(self, name: str) -> list[Message]:
        """Return the messages that a host's application was handed."""
        return [one for one in self.hosts[name].events if isinstance(one, Message)]

    def payloads(self, name: str) -> list[bytes]:
        """Return the payloads of these."""
        return [one.payload for one in self.messages(name)]

    def new_node(self, host: Host, life: str) -> Node:
        """Return the node of a new life."""
        name = self.member_at(host.name)
        seals = self.new_signatures(f"{name}~{life}") if self.new_signatures is not None else None
        node = node_kind(host.settings)(
            name, host.settings, life, host.name, seals=seals, durable=host.store is not None
        )
        if host.stays:
            node.go_out = lambda why: None  # type: ignore[method-assign]
        return node

    def crash(self, name: str) -> None:
        """End a life as kill -9 does: what was not written is gone, the kernel closes its links."""
        host = self.hosts[name]
        host.node, host.frozen, host.waiting = None, False, []
        for key in [key for key in self._ways if key[0] == name]:
            self._end(key)

    def freeze(self, name: str) -> None:
        """Stop a host as SIGSTOP does."""
        self.hosts[name].frozen = True

    def thaw(self, name: str) -> None:
        """Let it go on."""
        host = self.hosts[name]
        host.frozen = False
        waiting, host.waiting = host.waiting, []
        for what in waiting:
            what()

    # -- what an application does ------------------------------------------------------------------

    def say(
        self, name: str, payload: bytes, reply_to: tuple[Id, ...] = (), topics: tuple[str, ...] = ()
    ) -> Id | None:
        """Let the application at a host say something; None: it cannot now."""
        host = self.hosts[name]
        if host.node is None or host.frozen:
            return None
        try:
            said = self._submit(name, payload, reply_to, topics)
        except LocalError:
            return None
        self.turn(name)
        return said

    def send(
        self, name: str, payload: bytes, reply_to: tuple[Id, ...] = (), topics: tuple[str, ...] = ()
    ) -> Id:
        """Let the application at a host say something. Raises LocalError if it cannot."""
        said = self._submit(name, payload, reply_to, topics)
        self.turn(name)
        return said

    def _submit(self, name: str, *message: Any) -> Id:
        self.show(self.hosts[name])
        return self.node(name).send(*message)

    def leave(self, name: str) -> None:
        """Let a member leave."""
        self.node(name).leave()
        self.turn(name)

    def evict(self, name: str, sender_id: str, why: str = "") -> None:
        """Let a member evict another."""
        self.node(name).evict(sender_id, why)
        self.turn(name)

    def subscribe(self, name: str, topics: Iterable[str]) -> None:
        """Let a member subscribe to topics."""
        self.show(self.hosts[name])
        self.node(name).subscribe(list(topics))
        self.turn(name)

    def request_missing(self, name: str) -> dict[str, str]:
        """Let a member request all missing batches at once: sender id -> member asked."""
        asked = self.node(name).timers.ask_now(self.now)
        self.turn(name)
        return asked

    @contextlib.contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Let all that is done inside be of one step of a host."""
        self.hosts[name].in_step = True
        yield
        self.hosts[name].in_step = False
        self.turn(name)

    # -- what a faulty member does -----------------------------------------------------------------

    def send_anyway(self, name: str, payload: bytes, topics: tuple[str, ...] = ()) -> None:
        """Let a member send, whether or not it may."""
        self.node(name).active.say(payload, (), topics)
        self.turn(name)

    def announce(self, name: str, change: Change) -> None:
        """Let a member announce any change of the group."""
        self.node(name).active.change(change)
        self.turn(name)

    def pretend_received(self, name: str, message: Id) -> None:
        """Let a member believe that it has a message of somebody new (order "reply")."""
        state: Any = self.node(name).active.group._state
        number = state.roster.next_number
        state.protocol.join(number)
        state.roster.add(number, message.sender_id)
        state.protocol.delivered[number] = [1, message.number + 2]

    def reject(self, name: str, other: str, error: RemoteError) -> None:
        """Let a member reject something of another, and keep the connection."""
        [link] = self._list_links(name, other)
        self.node(name).count(link, error)

    def place(self, name: str, sender_id: str) -> int:
        """Return the index of a sender id on the connections of a member."""
        return self.node(name).place(sender_id)

    def call(self, name: str, by: str) -> int:
        """Let somebody without a host call a member; return the connection."""
        self._links += 1
        self.node(name).link_up(self._links, by, self.now, dialed=False)
        return self._links

    def receive(self, name: str, link: int, data: bytes) -> None:
        """Let bytes come to a member on a connection."""
        self.node(name).receive(link, data, self.now)
        self.turn(name)

    def hang_up(self, name: str, link: int) -> None:
        """End a connection of somebody without a host."""
        self.node(name).link_down(link, self.now)

    def inject(self, name: str, other: str, *frames: bytes) -> None:
        """Let a member write frames to another."""
        [link] = self._list_links(name, other)
        link.control += frames
        self.turn(name)

    def disconnect(self, name: str, other: str) -> None:
        """End the connections of a member to another, which hears of it when the way is open."""
        for link in self._list_links(name, other):
            self._end((name, link.number))
            self.node(name).link_down(link.number, self.now)

    def reject_connection(self, name: str, other: str, why: str) -> None:
        """Let a member close its connection to another with a reason, in the next step."""
        [link] = self._list_links(name, other)
        self.node(name).end(link, why)

    def list_writable(self, name: str) -> list[str]:
        """Return the hosts to which a member has something to write."""
        return sorted(self._ways[name, number].target for number in self.node(name).writable())

    def link(self, name: str, other: str) -> int:
        """Return the connection of a member to another."""
        [link] = self._list_links(name, other)
        return link.number

    def _list_links(self, name: str, other: str) -> list[Link]:
        links = self.node(name).links.items()
        ways = self._ways
        return [one for k, one in links if (name, k) in ways and ways[name, k].target == other]

    # -- the way -----------------------------------------------------------------------------------

    def _dial(self, name: str, other: str) -> None:
        """Call a host; nothing comes of it where the way is cut or nobody is there."""
        target = self.hosts.get(other)
        ways = {(name, other), (other, name)}
        host = self.hosts[name]
        if host.node is None or target is None or target.node is None or ways & self._cuts.ways:
            return
        self._links += 2
        ours, theirs = self._links, self._links + 1
        self._ways[name, ours] = _Way(name, other, theirs)
        self._ways[other, theirs] = _Way(other, name, ours)
        host.node.link_up(ours, self.member_at(other), self.now, dialed=True)
        if target.frozen:  # its kernel took the call, it hears of it when it wakes
            target.waiting.append(lambda: self._called(target, theirs, name))
        else:
            self._called(target, theirs, name)
        self.turn(name)
        self.turn(other)

    def _called(self, target: Host, number: int, by: str) -> None:
        """Tell a host of a call."""
        if target.node is not None and (target.name, number) in self._ways:
            target.node.link_up(number, self.member_at(by), self.now, dialed=False)

    def _end(self, key: tuple[str, int]) -> None:
        """Close one end of a connection: the other hears of it when the way is open."""
        way = self._ways.pop(key, None)
        if way is not None and not way.ended:
            way.ended = True
            self._send(way, None)

    def _send(self, way: _Way, data: bytes | None) -> None:
        delay = self.random.randint(self.least_ns, self.most_ns)
        gather_ns = self.hosts[way.target].read_every_ns
        arrival = -(-(self.now + delay) // gather_ns) * gather_ns
        way.last_ns = max(way.last_ns, arrival)
        way.parts.append((way.last_ns, data))
        way.bytes += len(data or b"")
        self.at(way.last_ns - self.now, lambda: self._arrive(way))

    def _arrive(self, way: _Way) -> None:
        if not way.parts or way.parts[0][0] > self.now:
            return
        if (way.source, way.target) in self._cuts.ways:
            self.at(RETRY_NS, lambda: self._arrive(way))
            return
        host = self.hosts[way.target]
        if host.frozen:
            host.waiting.append(lambda: self._arrive(way))
            return
        while way.parts and way.parts[0][0] <= self.now:
            data = way.parts.popleft()[1]
            while data and host.read_every_ns > 1 and self._is_due(way):
                data += way.parts.popleft()[1] or b""
            way.bytes -= len(data or b"")
            self._hand_over(way, host, data)
        self.turn(way.target)
        self.turn(way.source)

    def _is_due(self, way: _Way) -> bool:
        """Return True if a connection has bytes that can be read now."""
        due, data = way.parts[0] if way.parts else (self.now, None)
        return due <= self.now and data is not None

    def _hand_over(self, way: _Way, host: Host, data: bytes | None) -> None:
        key = way.target, way.number
        if host.node is None or key not in self._ways:
            return
        if data is None:
            self._ways.pop(key)
            host.node.link_down(way.number, self.now)
        else:
            self.show(host)
            host.node.receive(way.number, data, self.now)

    # -- what a host does in a turn ----------------------------------------------------------------

    def _tick(self, name: str, node: Node) -> None:
        host = self.hosts[name]
        if host.node is not node:
            return
        if not host.frozen:
            self.show(host)
            node.tick(self.now)
            for _, address in node.timers.dials(self.now):
                self._call(name, address)
            if node.ordering is None and host.joining and not node.links:
                self._call(name, host.joining)
            self.turn(name)
        self.at(TICK_NS, lambda: self._tick(name, node))

    def _call(self, name: str, address: str) -> None:
        delay = self.random.randint(self.least_ns, self.most_ns)
        self.at(delay, lambda: self._dial(name, address))

    def turn(self, name: str) -> None:
        """Let a host do what is to be done."""
        host = self.hosts[name]
        node = host.node
        if node is None or host.frozen or host.in_step:
            return
        self.show(host)
        node.turn()
        self._write(host, node)
        self._hand_out(host, node)
        for number in list(node.links):
            way = self._ways.get((name, number))
            if way is None:  # of a caller without a host
                node.pull(number, BUDGET, self.now)
            elif way.bytes < WINDOW and self._is_taken(host, way.target):
                data = self._pass(way, number, b"".join(node.pull(number, BUDGET, self.now)))
                if data:
                    self._send(way, data)
        for number, lane, behind in node.loads():
            if host.store is not None:
                node.handle_loaded(number, lane, host.store.behind(lane, behind))
        for number in node.list_closing():
            self._end((name, number))
            node.link_down(number, self.now)

    def _is_taken(self, host: Host, target: str) -> bool:
        return host.writes_to is None or target in host.writes_to

    def _pass(self, way: _Way, number: int, data: bytes) -> bytes:
        """Count the frames that a host writes, and let the filter replace them."""
        found, _, _ = wire.split_frames(data)
        self.frames.update(kind for kind, _, _ in found)
        ends = way.source, way.target, number
        frames = [Frame(*ends, kind, data[start:end]) for kind, start, end in found]
        instead = self.filter(frames) if frames else None
        return data if instead is None else b"".join(instead)

    def _hand_out(self, host: Host, node: Node) -> None:
        if not host.takes:
            return
        self._take(host, node)

    def take(self, name: str) -> None:
        """Let the application at a host take what is delivered, though it does not by itself."""
        host = self.hosts[name]
        if host.node is not None and not host.frozen:
            self._take(host, host.node)
            self.turn(name)

    def has_room(self, name: str) -> bool:
        """Return whether a sender at a host need not wait for the others."""
        node = self.hosts[name].node
        if node is None or not node.flow.is_full:
            return True
        node.flow.is_pressed = True
        return False

    def _take(self, host: Host, node: Node) -> None:
        events = node.take_delivered()
        node.consume(node.taken)
        for event in events:
            if isinstance(event, SentBatch):
                host.events += event.messages()
            else:
                host.events.append(event)
        if host.acknowledges:
            node.finish(node.taken)

    def _write(self, host: Host, node: Node) -> None:
        """Give the store what is new; it is written a little later, one turn after the other."""
        if host.store is None or node.ordering is None or host.writing:
            return
        first = not host.store.snapshot and not host.written
        rows, frontier = node.take_rows()
        host.written += len(rows)
        if not rows and not first:
            return
        snapshot = None
        if first or host.written >= SNAPSHOT_ROWS:
            snapshot, host.written = node.snapshot(), 1
        done = node.done
        store = host.store

        host.writing = True

        def written() -> None:
            if host.node is node:
                host.writing = False
                store.write(rows, snapshot, done)
                node.handle_stored(frontier)
                self.turn(host.name)

        if self.tells_early:
            node.handle_stored(frontier)
        self.at(self.random.randint(1, 5) * MS, written)
