"""A network of datagrams in memory, with a clock of its own: what happens follows from a seed.

Datagrams are lost, come twice, late and in another order, or not at all while the way is cut;
calls, by which two ends get their session, take a while and fail where the way is cut. Each host's
clock is off, within a bound. What a test does to it: `cut`, `heal`, `crash`, `freeze`, `thaw`.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final

from antecede.errors import MismatchError
from antecede.live.datagrams.node import DatagramNode, Moment
from antecede.live.datagrams.settings import DatagramSettings
from antecede.live.drivers.simulated import Agenda, Cuts
from antecede.live.events import Event, Said

MS: Final = 10**6
EPOCH: Final = 1_700_000_000 * 10**9


@dataclass(frozen=True)
class Weather:
    """What the network does to datagrams; shares of 1, times in nanoseconds."""

    loss: float = 0.0
    twice: float = 0.0
    least_ns: int = 2 * MS
    most_ns: int = 30 * MS
    """Datagrams take between these, so the more they differ the more overtake each other."""
    off_ns: int = 0
    """By how much a clock is off at most."""


class DatagramHost:
    """A place where one member runs."""

    def __init__(self, name: str, node: DatagramNode, off_ns: int) -> None:
        self.name, self.node, self.off_ns = name, node, off_ns
        self.alive = True
        self.frozen = False
        self.events: list[Event] = []
        self.ways: dict[int, tuple[str, int]] = {}
        """Own session -> (host, its session)."""
        self.wake_ns = 0
        self.waiting: list[tuple[int, bytes]] = []


class LossyNetwork:
    """Hosts, what is under way between them, and a clock that jumps from one thing to the next."""

    def __init__(self, seed: int, weather: Weather = Weather()) -> None:
        self.random = random.Random(seed)
        self.weather = weather
        self._agenda, self._cuts = Agenda(), Cuts()
        self.at, self.run = self._agenda.at, self._agenda.run
        self.cut, self.heal = self._cuts.cut, self._cuts.heal
        self.hosts: dict[str, DatagramHost] = {}
        self.sent = self.lost = 0
        self._sessions = 0

    @property
    def now(self) -> int:
        """What the clock of the network shows, in nanoseconds."""
        return self._agenda.now

    # -- the clock ----------------------------------------------------------------------------

    def moment(self, host: DatagramHost) -> Moment:
        """Return what a host's clocks show."""
        return Moment(self.now + 1, EPOCH + self.now + host.off_ns)

    # -- hosts --------------------------------------------------------------------------------

    def add(self, name: str, member: str, settings: DatagramSettings) -> DatagramHost:
        """Add a host with a member; `found` or `join` begins."""
        node = DatagramNode(member, settings, self.random.randbytes(16), name)
        off = self.random.randint(-self.weather.off_ns, self.weather.off_ns)
        host = self.hosts[name] = DatagramHost(name, node, off)
        return host

    def found(self, name: str) -> None:
        """Let a member begin a group."""
        host = self.hosts[name]
        host.node.found(self.random.randbytes(8), self.moment(host))
        self.turn(host)

    def join(self, name: str, through: str) -> None:
        """Let a member ask another one to be let in."""
        host = self.hosts[name]
        host.node.membership.newcomers.begin(through)
        self.turn(host)

    def crash(self, name: str) -> None:
        """End a host as kill -9 does."""
        host = self.hosts[name]
        self._hand_out(host)
        host.alive = False

    def freeze(self, name: str) -> None:
        """Stop a host as SIGSTOP does; what comes waits, as far as its socket holds it."""
        self.hosts[name].frozen = True

    def thaw(self, name: str) -> None:
        """Let it go on."""
        host = self.hosts[name]
        host.frozen = False
        waiting, host.waiting = host.waiting, []
        for session, datagram in waiting:
            self._arrive(host, session, datagram)
        self.turn(host)

    # -- what is under way --------------------------------------------------------------------

    def send(self, source: str, target: str, session: int, datagram: bytes) -> None:
        """Put a datagram on its way."""
        weather, draw = self.weather, self.random
        self.sent += 1
        copies = 1 + (draw.random() < weather.twice)
        for _ in range(copies):
            if draw.random() < weather.loss or (source, target) in self._cuts.ways:
                self.lost += 1
                continue
            delay = draw.randint(weather.least_ns, weather.most_ns)
            host = self.hosts[target]
            self.at(delay, lambda host=host: self._come(host, session, datagram))  # type: ignore[misc]

    def _come(self, host: DatagramHost, session: int, datagram: bytes) -> None:
        if host.frozen and len(host.waiting) < 200:
            host.waiting.append((session, datagram))
        elif host.alive and not host.frozen:
            self._arrive(host, session, datagram)
            self.turn(host)

    def _arrive(self, host: DatagramHost, session: int, datagram: bytes) -> None:
        if session in host.ways:
            host.node.receive(session, datagram, self.moment(host))

    def _call(self, name: str, address: str) -> None:
        """Let two hosts get a session, where the way is open both ways."""
        caller, called = self.hosts[name], self.hosts.get(address)
        ways = {(name, address), (address, name)}
        if called is None or not (called.alive and caller.alive) or ways & self._cuts.ways:
            return
        if called.frozen or caller.frozen:
            return
        hellos = caller.node.hello(b""), called.node.hello(b"")
        try:
            called.node.check(hellos[0], caller.node.name)
            caller.node.check(hellos[1], called.node.name)
        except MismatchError as error:
            caller.node.refuse(address, error)
            caller.node.membership.newcomers.turned_away(str(error))
            return
        self._sessions += 2
        ours, theirs = self._sessions, self._sessions + 1
        caller.ways[ours], called.ways[theirs] = (address, theirs), (name, ours)
        called.node.introduced(theirs, hellos[0], self.moment(called))
        caller.node.introduced(ours, hellos[1], self.moment(caller))
        self.turn(called)
        self.turn(caller)

    # -- turns --------------------------------------------------------------------------------

    def turn(self, host: DatagramHost) -> None:
        """Let a host do what is to be done."""
        if not host.alive or host.frozen:
            return
        node, at = host.node, self.moment(host)
        node.flush(at)
        for address in node.dials(at):
            delay = self.random.randint(self.weather.least_ns, self.weather.most_ns)
            self.at(2 * delay, lambda address=address: self._call(host.name, address))  # type: ignore[misc]
        for session, datagram in node.take_datagrams(at):
            if session in host.ways:
                target, theirs = host.ways[session]
                self.send(host.name, target, theirs, datagram)
        for session in node.ended:
            host.ways.pop(session, None)
        node.ended.clear()
        self._hand_out(host)
        due = node.due(at) - 1
        if not self.now < host.wake_ns <= due:
            host.wake_ns = due
            self.at(due - self.now, lambda: self._wake(host, due))

    def _wake(self, host: DatagramHost, due: int) -> None:
        if host.wake_ns == due and host.alive:
            host.wake_ns = 0
            if host.frozen:
                self.at(20 * MS, lambda: self._wake(host, 0))
                return
            host.node.tick(self.moment(host))
            self.turn(host)

    def _hand_out(self, host: DatagramHost) -> None:
        for event in host.node.take_delivered():
            if isinstance(event, Said):
                host.events += event.messages()
            else:
                host.events.append(event)
