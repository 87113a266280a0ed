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
from antecede.lab.record.regions import CLOCK_OFFSET_MS, REGIONS, clock_offset_ns, delay_s
from antecede.tables.trace import DELIVER, RECEIVE, SEND, Event

MAX_DATAGRAM = 65_535
RECEIVE_BUFFER = 4 << 20
MOST_S = 1.5  # delay bound for orders by clocks, far above the emulated delays
TICK_S = 0.05  # interval of ticks
DRAIN_S = 1.6  # time for copies in flight to arrive and held messages to be delivered


def options_for(order: str, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the options of a group of this order; raises LocalError for an unknown order."""
    taken = inspect.signature(flat_class(ALIASES.get(order, order)).__init__).parameters
    options: dict[str, Any] = {}
    if "bounds" in taken:
        options["bounds"] = Bounds(accuracy_s=CLOCK_OFFSET_MS / 1000, most_s=MOST_S)
    if "subscriptions" in taken:
        options["subscriptions"] = Subscriptions(dict.fromkeys(names, workload.TOPICS))
    return options


def group_of(name: str, names: tuple[str, ...], order: str) -> Group:
    """Return a member's group; raises LocalError for an order that cannot be recorded."""
    return Group(name, names, order=order, **options_for(order, names))


def drain_s(order: str, names: tuple[str, ...]) -> float:
    """Return how long members listen after the last send: orders by clocks wait for bounds."""
    return DRAIN_S + (2 * MOST_S if "bounds" in options_for(order, names) else 0.0)


def arguments_of(order: str, saying: workload.Saying, answered: Message | None) -> dict[str, Any]:
    """Return the arguments of `Group.send_packets` besides payload and time."""
    kind = flat_class(ALIASES.get(order, order))
    found: dict[str, Any] = {}
    if kind.addressing is Addressing.TOPICS:
        found["topics"] = (saying.topic,)
    if ALIASES.get(order, order) == "sb" and answered is not None:
        found["reply_to"] = answered
    return found


class Plan(NamedTuple):
    """Configuration of a member process."""

    name: str
    names: tuple[str, ...]
    order: str
    seed: int
    talk_s: float  # period of new questions and replies
    drain_s: float  # period of receiving after that


class Member:
    """State of one member process."""

    def __init__(self, plan: Plan, sock: socket.socket, ports: dict[str, int]) -> None:
        self.plan = plan
        self.sock = sock
        self.ports = ports
        self.group = group_of(plan.name, plan.names, plan.order)
        self.rng = random.Random(f"{plan.seed} {plan.name}")
        self.offset_ns = clock_offset_ns(self.rng)
        self.region = dict(zip(plan.names, itertools.cycle(REGIONS), strict=False))
        self.events: list[Event] = []
        self.reasons: dict[tuple[str, int], str] = {}
        self.ticket = itertools.count()
        self.outbound: list[tuple[float, int, bytes, int]] = []
        self.to_say: list[tuple[float, int, workload.Saying | None, Message | None]] = []
        self.heard: set[tuple[str, int]] = set()
        self.next_tick = 0.0

    def run(self) -> list[Event]:
        """Send messages, then receive until copies in flight have had time to arrive."""
        started = time.monotonic()
        stop_talking = started + self.plan.talk_s
        self._plan_to_say(started + workload.next_question_s(self.rng), None)
        while (now := time.monotonic()) < stop_talking + self.plan.drain_s:
            while self.outbound and self.outbound[0][0] <= now:
                _, _, wire, port = heapq.heappop(self.outbound)
                self.sock.sendto(wire, ("127.0.0.1", port))
            while self.to_say and self.to_say[0][0] <= now:
                _, _, saying, answered = heapq.heappop(self.to_say)
                if now < stop_talking:
                    self._say(saying, answered)
            if self.next_tick <= now:
                self.next_tick = now + TICK_S
                self._hand_out(self.group.tick(now_ns=self._clock_ns()))
            self._wait(min(stop_talking + self.plan.drain_s, self.next_tick))
        return self.events

    def _wait(self, end: float) -> None:
        due = min(heap[0][0] for heap in (self.outbound, self.to_say, [(end,)]) if heap)
        self.sock.settimeout(max(due - time.monotonic(), 0.0002))
        try:
            wire = self.sock.recv(MAX_DATAGRAM)
        except TimeoutError:
            return
        self._arrive(wire)

    def _say(self, saying: workload.Saying | None, answered: Message | None) -> None:
        """Send a reply, or a new question and schedule the next one."""
        if saying is None:
            saying = workload.question(self.rng)
            pause_s = workload.next_question_s(self.rng)
            self._plan_to_say(time.monotonic() + pause_s, None)
        told = arguments_of(self.plan.order, saying, answered)
        packets = self.group.post(saying.to_bytes(), now_ns=self._clock_ns(), **told)
        self._record(SEND, self.group.inspect(packets[0].wire), saying)
        self._send(packets)
        self._hand_out(self.group.delivered())

    def _send(self, packets: Sequence[Packet]) -> None:
        """Schedule copies, each with its own delay."""
        for packet in packets:
            for name in packet.to:
                delay = delay_s(self.region[self.plan.name], self.region[name], self.rng)
                copy = (time.monotonic() + delay, next(self.ticket), packet.wire, self.ports[name])
                heapq.heappush(self.outbound, copy)

    def _arrive(self, wire: bytes) -> None:
        envelope = self._envelope(wire)
        if envelope is not None and (envelope.sender, envelope.seq) not in self.heard:
            self.heard.add((envelope.sender, envelope.seq))
            self._record(RECEIVE, envelope, workload.Saying.from_bytes(envelope.payload))
        self._hand_out(self.group.receive(wire, now_ns=self._clock_ns()))
        for blocked in self.group.blocked_on():
            self.reasons.setdefault(blocked.message[:2], str(blocked))

    def _envelope(self, wire: bytes) -> Envelope | None:
        """Return the header of an application message; None for control messages."""
        try:
            envelope = self.group.inspect(wire)
        except (LocalError, RemoteError):
            return None
        return envelope if envelope.payload and envelope.sender != self.plan.name else None

    def _hand_out(self, messages: Sequence[Message]) -> None:
        """Process deliveries, and send control messages."""
        for message in messages:
            self._read(message)
        self._send(self.group.outgoing())

    def _read(self, message: Message) -> None:
        """Pass a delivered message to the application, which may reply."""
        key = message.sender, message.seq
        saying = workload.Saying.from_bytes(message.payload)
        reason = self.reasons.pop(key, None)
        envelope = Envelope(message.sender, message.seq, (), message.payload)
        self._record(DELIVER, envelope, saying._replace(text=reason or saying.text))
        if message.sender == self.plan.name:  # total order delivers own messages
            return
        answer = workload.reply(self.rng, saying, key)
        if answer is not None:
            self._plan_to_say(time.monotonic() + workload.think_s(self.rng), answer, message)

    def _clock_ns(self) -> int:
        return time.time_ns() + self.offset_ns

    def _record(self, kind: str, envelope: Envelope, saying: workload.Saying) -> None:
        now_ns = time.time_ns()
        self.events.append(
            Event(
                kind=kind,
                id=message_name(envelope.sender, envelope.seq),
                member=self.plan.name,
                seq=envelope.seq,
                parents=tuple(message_name(*cause) for cause in envelope.causes),
                topics=(saying.topic,),
                arrival=now_ns,
                send_time=now_ns + self.offset_ns if kind == SEND else None,
                text=saying.text,
            )
        )

    def _plan_to_say(
        self, when: float, saying: workload.Saying | None, answered: Message | None = None
    ) -> None:
        heapq.heappush(self.to_say, (when, next(self.ticket), saying, answered))


def message_name(sender: str, seq: int) -> str:
    """Return the id of a message in a recorded trace."""
    return f"{sender}-{seq}"


def run_member(plan: Plan, pipe: Connection) -> None:
    """Run one member process: report the port, receive all ports, run, return the events."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        sock.bind(("127.0.0.1", 0))
        pipe.send(sock.getsockname()[1])
        ports = pipe.recv()
        pipe.send(Member(plan, sock, ports).run())
    pipe.close()
