"""Who is a member of a group over datagrams, as one of them knows it.

Members come (`newcomers`) and go (`departures`) by changes on which all agree (`agreement`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from antecede.clocks.wire import Reader
from antecede.errors import DecodeError, MismatchError
from antecede.live import wire
from antecede.live.datagrams import packets
from antecede.live.datagrams.agreement import Agreement, Step
from antecede.live.datagrams.departures import Departures
from antecede.live.datagrams.newcomers import OVER, Newcomers
from antecede.live.datagrams.packets import Have
from antecede.live.events import Change, ChangeKind, View
from antecede.live.settings import NS
from antecede.live.wire import Hello

if TYPE_CHECKING:
    from antecede.live.datagrams.node import DatagramNode, Moment
    from antecede.live.datagrams.sending import Session

SESSION_NS: Final = 30 * NS
"""So long after its last word a session to one who is gone is kept, to tell it so."""
NEWER_CALLS_NS: Final = NS
"""So long a member leaves it to a newer one to call."""


class Membership:
    """The members, how far each has come, and whom to call."""

    def __init__(self, node: DatagramNode) -> None:
        self._node = node
        self.agreement: Agreement | None = None
        self.newcomers = Newcomers(node, self)
        self.departures = Departures(node, self)
        self.members: dict[str, str] = {}
        """Lane -> address, oneself included."""
        self.numbers: dict[str, int] = {}
        """Of all who ever were members, as far as this one knows."""
        self.lanes: dict[int, str] = {}
        """The same the other way."""
        self.rows: dict[str, dict[str, int]] = {}
        """Other member -> lane -> how far it has come."""
        self.since_ns: dict[str, int] = {}
        """Other member -> since when it is one."""
        self._told_rows: dict[int, int] = {}
        self._now_ns = 0
        self._called: dict[str, tuple[int, int]] = {}
        """Address -> (when it is called next, how often it was)."""

    # -- the list -----------------------------------------------------------------------------

    def found(self, at: Moment) -> None:
        """Begin a group of one."""
        self.members = {self._node.lane: self._node.address}
        self.number(self._node.lane, 0)
        self.agree(0, 1)
        self.show(Change(ChangeKind.JOINED, self._node.lane, self._node.address))

    def agree(self, base: int, next_number: int) -> None:
        """Take part in agreeing, from a number of changes on."""
        numbers = [self.numbers[lane] for lane in self.members]
        self.agreement = Agreement(
            *(self.numbers[self._node.lane], base, numbers, next_number),
            reached=self.departures.reached,
            hears=lambda number: self.hears(self.lanes.get(number, "")),
            again_ns=2 * self._node.settings.resend_ns,
        )

    def number(self, lane: str, number: int) -> None:
        """Know a member's number."""
        self.numbers[lane], self.lanes[number] = number, lane

    def add(self, lane: str, address: str, number: int, at: Moment) -> bool:
        """Let a member be one from now on; returns False for who was one already."""
        if lane in self.numbers:
            return False
        self.number(lane, number)
        self.members[lane] = address
        self.rows[lane] = self._node.reached()  # it has what its sponsor had, about this
        self.since_ns[lane] = at.now
        self.show(Change(ChangeKind.JOINED, lane, address))
        return True

    def show(self, change: Change) -> None:
        """Tell the application."""
        self._node.delivered.append(View(tuple(self.members), change))

    # -- questions ----------------------------------------------------------------------------

    @property
    def out(self) -> str:
        """Why one is out of the group for good; empty: one is not."""
        return self.departures.out

    def others(self) -> list[str]:
        """Return the lanes of the other members."""
        return [lane for lane in self.members if lane != self._node.lane]

    def knows(self, lane: str) -> bool:
        """Tell whether it is a lane of a member, or of one that is gone and still lacks here."""
        return lane in self.members or lane in self.departures.closing

    def may_speak(self, lane: str) -> bool:
        """Tell whether messages of a lane are taken from itself."""
        return lane in self.members and not self._is_frozen(lane)

    def may_be_handed_on(self, lane: str) -> bool:
        """Tell whether messages of a lane are taken from others."""
        if lane in self.departures.closing:
            return True
        return not self._node.settings.clocked and not self._is_frozen(lane)

    def _is_frozen(self, lane: str) -> bool:
        agreement = self.agreement
        return agreement is not None and self.numbers.get(lane) in agreement.frozen

    def hears(self, lane: str) -> bool:
        """Tell whether something has come of a member lately."""
        heard = self._heard_ns(lane)
        return heard is not None and self._now_ns - heard < self._node.settings.silence_ns

    def _heard_ns(self, lane: str) -> int | None:
        every = (one.heard_ns for one in self._node.sessions.values() if one.lane == lane)
        return max((heard for heard in every if heard is not None), default=None)

    def silent_ns(self, lane: str, now: int) -> int:
        """Return for how long nothing has come of a member."""
        return now - max(self._heard_ns(lane) or 0, self.since_ns.get(lane, 0))

    def least_had(self) -> int:
        """Return how many of one's own batches all the others have."""
        me = self._node.lane
        had = (self.rows[lane].get(me, 0) for lane in self.others())
        return min(had, default=self._node.newest)

    def check(self, hello: Hello) -> None:
        """Raise MismatchError for one who was a member, and is gone."""
        if hello.lane in self.numbers and not self.knows(hello.lane):
            raise MismatchError("members", f"{OVER}: {hello.lane}; join anew")

    # -- what comes ---------------------------------------------------------------------------

    def packet(self, session: Session, kind: int, reader: Reader, at: Moment) -> None:
        """Take a packet that is about members. Raises RemoteError."""
        self._now_ns = at.now
        if kind == packets.AGREE:
            if self.agreement is not None and session.lane in self.numbers:
                self.agreement.receive(self.numbers[session.lane], reader, at.now)
                self.make(at)
        elif kind == packets.JOIN:
            self.newcomers.asked_in(session, wire.text(reader), at)
        elif kind == packets.WELCOME:
            self.newcomers.welcomed(session, packets.read_welcome(reader), at)
        elif kind == packets.REFUSED:
            self.newcomers.sent_away(wire.text(reader))
        elif kind == packets.WANT:
            self.departures.hand_on(session, reader, at)
        elif kind == packets.HOLDS:
            self.departures.holds(session, reader)
        else:
            raise DecodeError(f"a packet of an unknown kind, {kind}")

    def have(self, session: Session, have: Have, at: Moment) -> None:
        """Another end says how far it has come."""
        self._now_ns = at.now
        agreement, lane = self.agreement, session.lane
        if agreement is None or lane not in self.numbers:
            return
        if have.changes < agreement.changes:
            agreement.tell(self.numbers[lane], have.changes)
            self.make(at)
        elif have.changes > agreement.changes:
            self._node.tell(session, at)
        if lane in self.members and have.changes:
            self.newcomers.arrived(lane)
            self.departures.told(lane, have.changes)
            known = self.rows.setdefault(lane, {})
            for number, count in have.rows.items():
                other = self.lanes.get(number)
                if other is not None and count > known.get(other, 0):
                    known[other] = count

    def told(self) -> tuple[int, dict[int, int]]:
        """Return what the others are told: how many changes one knows, and how far one has come."""
        if self.agreement is None:
            return 0, {}
        if not self._node.behind:
            reached, known = self._node.reached(), self.numbers
            self._told_rows = {known[lane]: n for lane, n in reached.items() if lane in known and n}
        return self.agreement.changes, self._told_rows

    def make(self, at: Moment) -> None:
        """Make the changes that were decided, and send what the agreement wants sent."""
        agreement = self.agreement
        assert agreement is not None
        while agreement.fresh:
            step = agreement.fresh.pop(0)
            if step.kind is ChangeKind.JOINED:
                number = agreement.next_number - 1 - _joins(agreement.fresh)
                self.newcomers.joined(step, agreement, number, at)
            else:
                self.departures.gone(step, agreement, at)
        for to, packet in agreement.out:
            session = self._node.routes.get(self.lanes.get(to, ""))
            if session is not None:
                self._node.queue(session, packet, at, urgent=True)
        agreement.out.clear()

    # -- time ---------------------------------------------------------------------------------

    def tick(self, at: Moment) -> None:
        """Ask to be let in; have changes agreed upon; ask for what is gone with its sender."""
        self._now_ns = at.now
        agreement, departures = self.agreement, self.departures
        if agreement is None:
            self.newcomers.ask_in(at)
        elif departures.out:
            departures.pass_on(agreement, at)
        else:
            departures.close(at)
            if agreement.attempt is not None:
                departures.reconsider(agreement, agreement.attempt, at)
            elif not departures.left and not departures.want(agreement, at):
                self.newcomers.want_in(agreement, at)
            agreement.tick(at.now)
            self.make(at)
            self._end_old_sessions(at)
            self._forget_kept()

    def _end_old_sessions(self, at: Moment) -> None:
        for session in list(self._node.sessions.values()):
            lane, heard = session.lane, session.heard_ns or session.up_ns
            if lane in self.numbers and not self.knows(lane) and at.now - heard > SESSION_NS:
                self._node.end(session)

    def _forget_kept(self) -> None:
        others = self.others()
        least = {
            lane: min(self.rows[one].get(lane, 0) for one in others)
            for lane in self._node.kept
            if others and lane not in self.departures.closing
        }
        self._node.forget_kept(least)

    # -- calls --------------------------------------------------------------------------------

    def call_anew(self) -> None:
        """Call without delay who is to be called."""
        self._called.clear()

    def dials(self, at: Moment) -> list[str]:
        """Return the addresses to call now: of members to whom there is no way that works."""
        due = []
        for address in self._to_call(at):
            when, times = self._called.get(address, (at.now, 0))
            if when <= at.now:
                wait = (4 * self._node.settings.resend_ns) << min(times, 4)
                self._called[address] = at.now + wait, times + 1
                due.append(address)
        return due

    def _to_call(self, at: Moment) -> list[str]:
        node, joining = self._node, self.newcomers.joining
        if node.group is None:
            known = any(one.address == joining for one in node.sessions.values())
            return [joining] if joining and not known else []
        if self.out:
            return []
        mine, silence = self.numbers[node.lane], node.settings.silence_ns
        return [
            self.members[lane]
            for lane in self.others()
            # The other end may have forgotten the session.
            if (lane not in node.routes or self.silent_ns(lane, at.now) > silence)
            and (self.numbers[lane] < mine or at.now - self.since_ns[lane] > NEWER_CALLS_NS)
        ]


def _joins(steps: list[Step]) -> int:
    return sum(one.kind is ChangeKind.JOINED for one in steps)
