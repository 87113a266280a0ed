"""Recorded member: an operating-system process with a UDP socket and a `Group`.

`_receive`, `_send_message` and `tick` connect network and protocol: bytes in, messages out; message
in, bytes out; time. The sender emulates the delay of each copy with a heap of departures. Sockets
and processes are real.

Orders by clocks get bounds of the emulated network. Orders by topics subscribe every member to
every topic. The reply order gets the message that is replied to.
"""

from __future__ import annotations

import heapq
import inspect
import itertools
import random
import socket
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from antecede.core.clocks import Bounds
from antecede.core.group import ALIASES, Envelope, Group, Message, Packet
from antecede.core.protocols import Addressing, flat_class
from antecede.core.protocols.topics import Subscriptions
from antecede.errors import LocalError, RemoteError
from antecede.lab.record import workload
from antecede.lab.record.regions import CLOCK_OFFSET_MS, REGIONS, draw_clock_offset_ns, draw_delay_s
from antecede.tables.trace import DELIVER, RECEIVE, SEND, Event

MAX_DATAGRAM = 65_535
RECEIVE_BUFFER = 4 << 20
MAX_DELAY_S = 1.5  # delay bound for orders by clocks, far above the emulated delays
TICK_S = 0.05  # interval of ticks
DRAIN_S = 1.6  # time for copies in flight to arrive and held messages to be delivered


def make_group_options(order: str, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the options of a group of this order; raises LocalError for an unknown order."""
    taken = inspect.signature(flat_class(ALIASES.get(order, order)).__init__).parameters
    options: dict[str, Any] = {}
    if "bounds" in taken:
        options["bounds"] = Bounds(accuracy_s=CLOCK_OFFSET_MS / 1000, most_s=MAX_DELAY_S)
    if "subscriptions" in taken:
        options["subscriptions"] = Subscriptions(dict.fromkeys(names, workload.TOPICS))
    return options


def make_group(name: str, names: tuple[str, ...], order: str) -> Group:
    """Return a member's group; raises LocalError for an order that cannot be recorded."""
    return Group(name, names, order=order, **make_group_options(order, names))


def compute_drain_s(order: str, names: tuple[str, ...]) -> float:
    """Return how long members listen after the last send: orders by clocks wait for bounds."""
    return DRAIN_S + (2 * MAX_DELAY_S if "bounds" in make_group_options(order, names) else 0.0)


def make_send_arguments(
    order: str, content: workload.MessageContent, answered: Message | None
) -> dict[str, Any]:
    """Return the arguments of `Group.send_packets` besides payload and time."""
    kind = flat_class(ALIASES.get(order, order))
    arguments: dict[str, Any] = {}
    if kind.addressing is Addressing.TOPICS:
        arguments["topics"] = (content.topic,)
    if ALIASES.get(order, order) == "sb" and answered is not None:
        arguments["reply_to"] = answered
    return arguments


class MemberPlan(NamedTuple):
    """Configuration of a member process."""

    name: str
    names: tuple[str, ...]
    order: str
    seed: int
    talk_s: float  # period of new questions and replies
    drain_s: float  # period of receiving after that


class RecordedMember:
    """State of one member process."""

    def __init__(self, plan: MemberPlan, sock: socket.socket, ports: dict[str, int]) -> None:
        self.plan = plan
        self.sock = sock
        self.ports = ports
        self.group = make_group(plan.name, plan.names, plan.order)
        self.rng = random.Random(f"{plan.seed} {plan.name}")
        self.offset_ns = draw_clock_offset_ns(self.rng)
        self.region = dict(zip(plan.names, itertools.cycle(REGIONS), strict=False))
        self.events: list[Event] = []
        self.reasons: dict[tuple[str, int], str] = {}
        self.ticket = itertools.count()
        self.outbound: list[tuple[float, int, bytes, int]] = []
        self.scheduled: list[tuple[float, int, workload.MessageContent | None, Message | None]] = []
        self.received_ids: set[tuple[str, int]] = set()
        self.next_tick = 0.0

    def run(self) -> list[Event]:
        """Send messages, then receive until copies in flight have had time to arrive."""
        started = time.monotonic()
        stop_talking = started + self.plan.talk_s
        self._schedule_message(started + workload.draw_pause_s(self.rng), None)
        while (now := time.monotonic()) < stop_talking + self.plan.drain_s:
            while self.outbound and self.outbound[0][0] <= now:
                _, _, wire, port = heapq.heappop(self.outbound)
                self.sock.sendto(wire, ("127.0.0.1", port))
            while self.scheduled and self.scheduled[0][0] <= now:
                _, _, saying, answered = heapq.heappop(self.scheduled)
                if now < stop_talking:
                    self._send_message(saying, answered)
            if self.next_tick <= now:
                self.next_tick = now + TICK_S
                self._process_deliveries(self.group.tick(now_ns=self._read_clock_ns()))
            self._wait(min(stop_talking + self.plan.drain_s, self.next_tick))
        return self.events

    def _wait(self, end: float) -> None:
        due = min(heap[0][0] for heap in (self.outbound, self.scheduled, [(end,)]) if heap)
        self.sock.settimeout(max(due - time.monotonic(), 0.0002))
        try:
            wire = self.sock.recv(MAX_DATAGRAM)
        except TimeoutError:
            return
        self._receive(wire)

    def _send_message(
        self, content: workload.MessageContent | None, answered: Message | None
    ) -> None:
        """Send a reply, or a new question and schedule the next one."""
        if content is None:
            content = workload.make_question(self.rng)
            pause_s = workload.draw_pause_s(self.rng)
            self._schedule_message(time.monotonic() + pause_s, None)
        arguments = make_send_arguments(self.plan.order, content, answered)
        packets = self.group.send_packets(
            content.to_bytes(), now_ns=self._read_clock_ns(), **arguments
        )
        self._record(SEND, self.group.inspect(packets[0].wire), content)
        self._schedule_copies(packets)
        self._process_deliveries(self.group.take_own_deliveries())

    def _schedule_copies(self, packets: Sequence[Packet]) -> None:
        for packet in packets:
            for name in packet.to:
                delay = draw_delay_s(self.region[self.plan.name], self.region[name], self.rng)
                copy = (time.monotonic() + delay, next(self.ticket), packet.wire, self.ports[name])
                heapq.heappush(self.outbound, copy)

    def _receive(self, wire: bytes) -> None:
        envelope = self._inspect(wire)
        if envelope is not None and (envelope.sender, envelope.seq) not in self.received_ids:
            self.received_ids.add((envelope.sender, envelope.seq))
            self._record(RECEIVE, envelope, workload.MessageContent.from_bytes(envelope.payload))
        self._process_deliveries(self.group.receive(wire, now_ns=self._read_clock_ns()))
        for blocked in self.group.list_held():
            self.reasons.setdefault(blocked.message[:2], str(blocked))

    def _inspect(self, wire: bytes) -> Envelope | None:
        """Return the header of an application message; None for control messages."""
        try:
            envelope = self.group.inspect(wire)
        except (LocalError, RemoteError):
            return None
        return envelope if envelope.payload and envelope.sender != self.plan.name else None

    def _process_deliveries(self, messages: Sequence[Message]) -> None:
        for message in messages:
            self._process(message)
        self._schedule_copies(self.group.take_control_packets())

    def _process(self, message: Message) -> None:
        key = message.sender, message.seq
        saying = workload.MessageContent.from_bytes(message.payload)
        reason = self.reasons.pop(key, None)
        envelope = Envelope(message.sender, message.seq, (), message.payload)
        self._record(DELIVER, envelope, saying._replace(text=reason or saying.text))
        if message.sender == self.plan.name:  # total order delivers own messages
            return
        answer = workload.make_reply(self.rng, saying, key)
        if answer is not None:
            self._schedule_message(
                time.monotonic() + workload.draw_think_s(self.rng), answer, message
            )

    def _read_clock_ns(self) -> int:
        return time.time_ns() + self.offset_ns

    def _record(self, kind: str, envelope: Envelope, content: workload.MessageContent) -> None:
        now_ns = time.time_ns()
        self.events.append(
            Event(
                kind=kind,
                id=format_message_id(envelope.sender, envelope.seq),
                member=self.plan.name,
                seq=envelope.seq,
                causes=tuple(format_message_id(*cause) for cause in envelope.causes),
                topics=(content.topic,),
                arrival=now_ns,
                send_time=now_ns + self.offset_ns if kind == SEND else None,
                text=content.text,
            )
        )

    def _schedule_message(
        self, when: float, content: workload.MessageContent | None, answered: Message | None = None
    ) -> None:
        heapq.heappush(self.scheduled, (when, next(self.ticket), content, answered))


def format_message_id(sender: str, seq: int) -> str:
    """Return the id of a message in a recorded trace."""
    return f"{sender}-{seq}"


def run_member(plan: MemberPlan, pipe: Connection) -> None:
    """Run one member process: report the port, receive all ports, run, return the events."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        sock.bind(("127.0.0.1", 0))
        pipe.send(sock.getsockname()[1])
        ports = pipe.recv()
        pipe.send(RecordedMember(plan, sock, ports).run())
    pipe.close()
