"""Departures: who leaves, who is put out, and what of them has not come yet.

A member that leaves waits until all have its messages, has that agreed upon with its last number,
and stays until all know. Members that are silent for `put_out_ns` are put out by a quorum of the
others.

Of who is gone all deliver the same: up to its last number, as it was agreed. Orders that hand
on by themselves ("matrix") ask each other. In orders by clocks only the sender answers, so what a
member lacks it asks of the others here (WANT, HOLDS, HANDED), and tells the order of the leave when
it has all, or has asked everybody in vain: then the order gives it up as its page says.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from antecede.clocks.wire import Reader, block, varint
from antecede.errors import LocalError
from antecede.live import wire
from antecede.live.datagrams import packets
from antecede.live.datagrams.agreement import Agreement, Attempt, Step
from antecede.live.datagrams.newcomers import GUEST_NS
from antecede.live.events import Change, ChangeKind, GivenUp
from antecede.live.settings import NS

if TYPE_CHECKING:
    from antecede.live.datagrams.membership import Membership
    from antecede.live.datagrams.node import DatagramNode, Moment
    from antecede.live.datagrams.sending import Session

CLOSING_NS: Final = 10 * NS
"""So long after its leave what lacks of a member may come, before it is said to be given up."""
LAST_WORDS: Final = 20
HANDED_AT_ONCE: Final = 256


@dataclass
class Closing:
    """A member that is gone, of which not all has been delivered."""

    change: Change
    last: int
    by_ns: int
    """After this it is over, whatever lacks."""
    told: bool
    """Whether the order was told."""
    asked: int = 0
    due_ns: int = 0
    holds: dict[str, tuple[int, set[int]]] = field(default_factory=dict)
    """Other member -> what it said that it has of it: from which number on, and which."""


class Departures:
    """What a member does about those who go, or when it goes itself."""

    def __init__(self, node: DatagramNode, membership: Membership) -> None:
        self._node, self._membership = node, membership
        self.closing: dict[str, Closing] = {}
        """Lanes of those who are gone, and still lack here."""
        self.to_go: dict[str, str] = {}
        """Lane -> why: to be put out, asked for by hand."""
        self.out = ""
        """Why one is out of the group for good; empty: one is not."""
        self.leaving = self.left = False
        self.mute = False
        """Whether one's last number was told: nothing more is sent."""
        self._left_at = 0
        self._told: set[str] = set()
        """Others that know of one's own leaving."""
        self._leave_by_ns = 0
        self._last_words = 0
        """So often one who was put out tells the others."""
        self._stuck_ns = self._said_ns = -NS

    # -- oneself ------------------------------------------------------------------------------

    def leave(self, at: Moment, wait_ns: int) -> None:
        """Say nothing more, and leave when the others have what was said, or have had so long."""
        self.leaving = True
        self._leave_by_ns = at.now + wait_ns

    @property
    def over(self) -> bool:
        """Whether a member that leaves can go: all others know."""
        return self.left and set(self._membership.others()) <= self._told

    def pass_on(self, agreement: Agreement, at: Moment) -> None:
        """Tell the others that one is out: who decided it may have ended before it told them."""
        if self._last_words and at.now - self._said_ns > self._node.settings.resend_ns:
            self._said_ns = at.now
            self._last_words -= 1
            for lane in self._membership.others():
                agreement.tell(self._membership.numbers[lane], self._left_at - 1)
            self._membership.make(at)

    def told(self, lane: str, changes: int) -> None:
        """Another member knows so many changes."""
        if self.left and changes >= self._left_at:
            self._told.add(lane)

    # -- others -------------------------------------------------------------------------------

    def put_out(self, lane: str, why: str) -> None:
        """Have a member put out. Raises LocalError for who is no other member."""
        if lane not in self._membership.others():
            raise LocalError(f"{lane} is not another member of this group")
        self.to_go[lane] = why

    def want(self, agreement: Agreement, at: Moment) -> bool:
        """Try to have somebody's leaving agreed upon; returns whether there is somebody."""
        me, node = self._node.lane, self._node
        stuck = bool(agreement.frozen)
        self._stuck_ns = self._stuck_ns if stuck else at.now
        if self.leaving:
            behind = node.newest - self._membership.least_had()
            if (not behind and not node.waiting_bytes) or at.now > self._leave_by_ns:
                self.mute = True
                step = Step(ChangeKind.LEFT, me, last={self._membership.numbers[me]: node.newest})
                agreement.want(step, at.now)
        elif self.to_go:
            why = "; ".join(sorted(set(self.to_go.values())))
            lanes = sorted({*self.to_go, *self._silent(at.now)})
            self._want_out(agreement, lanes, why, at, by_hand=True)
        elif silent := self._silent(at.now):
            self._want_out(agreement, silent, "silent", at)
        elif stuck and at.now - self._stuck_ns > NS:  # who began this has ended
            agreement.want(Step(ChangeKind.PUT_OUT, me), at.now)
        else:
            return False
        return True

    def reconsider(self, agreement: Agreement, attempt: Attempt, at: Moment) -> None:
        """Begin anew where other members are silent than those an attempt is about.

        Theirs would be the promises that it waits for.
        """
        if not attempt.about or attempt.value:
            return
        back = any(self._membership.hears(self._membership.lanes[k]) for k in attempt.about)
        wanted = {*self._silent(at.now), *self.to_go}
        more = {self._membership.numbers[lane] for lane in wanted} - attempt.about
        if more or (back and not attempt.by_hand):
            agreement.give_up()

    def _want_out(
        self, agreement: Agreement, lanes: list[str], why: str, at: Moment, *, by_hand: bool = False
    ) -> None:
        step = Step(ChangeKind.PUT_OUT, self._node.lane, why[:200])
        about = [self._membership.numbers[lane] for lane in lanes]
        if agreement.is_quorum(agreement.members - set(about)):
            agreement.want(step, at.now, about, by_hand=by_hand)

    def _silent(self, now: int) -> list[str]:
        """Return who is to be put out for being silent."""
        there, settings = self._membership, self._node.settings
        silent = {lane: there.silent_ns(lane, now) for lane in there.others()}
        found = {lane for lane in there.newcomers.guests if silent.get(lane, 0) > GUEST_NS}
        after = settings.put_out_ns
        if after is not None:
            me = there.numbers[self._node.lane]
            older = (there.numbers[lane] < me for lane, ns in silent.items() if ns <= after)
            late = after + 8 * sum(older) * settings.resend_ns  # the oldest who is there begins
            if max(silent.values(), default=0) > late:
                found |= {lane for lane, ns in silent.items() if ns > after}
        return sorted(found)

    # -- who is gone ------------------------------------------------------------------------------

    def gone(self, step: Step, agreement: Agreement, at: Moment) -> None:
        """Somebody left, or was put out; oneself perhaps."""
        node = self._node
        for number, last in step.last.items():
            lane = self._membership.lanes.get(number, "")
            if lane == node.lane:
                self.left, self._left_at = True, agreement.changes - len(agreement.fresh)
                if step.kind is ChangeKind.PUT_OUT:
                    self.out = f"put out of the group: {step.address}"
                    self._last_words = LAST_WORDS
            if lane not in self._membership.members or lane == node.lane:
                continue
            del self._membership.members[lane]
            self._membership.rows.pop(lane, None)
            self.to_go.pop(lane, None)
            self._membership.newcomers.arrived(lane)
            change = Change(step.kind, lane, step.address)
            self.closing[lane] = Closing(change, last, at.now + CLOSING_NS, told=False)
            if not node.settings.clocked:
                self._tell_order(lane, at)
        self.close(at)

    def _tell_order(self, lane: str, at: Moment) -> None:
        node, closing = self._node, self.closing[lane]
        closing.told = True
        if node.group is None or self.out:
            return
        try:
            node.came_of(node.group.leave(lane, closing.last, force=True), at)
        except LocalError as error:
            self.out = f"out of step with the others: {error}; join anew"

    def reached(self, number: int) -> int:
        """Return how far one has come of a member: what the order has taken in without a gap.

        What is held of it without a gap counts, since it may be delivered at any time.
        """
        node, lane = self._node, self._membership.lanes.get(number, "")
        done = node.reached().get(lane, 0)
        if node.group is None:
            return done
        held = [one.message.seq for one in node.group.blocked_on() if one.message.sender == lane]
        gaps = [one.seq for one in node.group.missing() if one.sender == lane and one.seq]
        first = min((seq for seq in gaps if seq > done), default=1 << 62)
        return max([done, *(seq for seq in held if seq < first)])

    def close(self, at: Moment) -> None:
        """Be done with who is gone and of whom all has come; else ask the others for it."""
        node = self._node
        for lane, closing in list(self.closing.items()):
            reached = self.reached(self._membership.numbers[lane])
            if not closing.told:
                if reached >= closing.last or self._is_vain(lane, closing, reached + 1):
                    self._tell_order(lane, at)
                else:
                    self._ask(lane, closing, reached, at)
                continue
            delivered = node.reached().get(lane, 0)
            if delivered >= closing.last or at.now > closing.by_ns:
                del self.closing[lane]
                if delivered < closing.last:
                    node.given_up += closing.last - delivered
                    node.delivered.append(GivenUp(lane, closing.last - delivered, (lane,)))
                self._membership.show(closing.change)

    def _is_vain(self, lane: str, closing: Closing, first: int) -> bool:
        """Tell whether all others have said that they lack it too, and what they have is here."""
        here = set(self._node.kept.get(lane, ()))
        answers = [closing.holds.get(one, (0, set())) for one in self._membership.others()]
        return all(at == first and first not in has and has <= here for at, has in answers)

    def _ask(self, lane: str, closing: Closing, reached: int, at: Moment) -> None:
        if at.now < closing.due_ns:
            return
        closing.due_ns = at.now + 2 * self._node.settings.resend_ns
        routes = self._node.routes
        others = [routes[one] for one in self._membership.others() if one in routes]
        if others:
            session = others[closing.asked % len(others)]
            closing.asked += 1
            head = block(lane.encode()), varint(reached + 1), varint(closing.last)
            session.pace.add(packets.packet(packets.WANT, *head), urgent=True)

    def holds(self, session: Session, reader: Reader) -> None:
        """A member says what it has of one who is gone."""
        lane, first = wire.lane(reader), reader.varint()
        count = min(reader.varint(), HANDED_AT_ONCE)
        numbers = {reader.varint() for _ in range(count)}
        if (closing := self.closing.get(lane)) is not None:
            closing.holds[session.lane] = first, numbers

    def hand_on(self, session: Session, reader: Reader, at: Moment) -> None:
        """Send a member what it lacks of one who is gone, as far as it is here."""
        lane, first, last = wire.lane(reader), reader.varint(), reader.varint()
        if session.lane not in self._membership.members:
            return
        there = dict(self._node.kept.get(lane, ()))
        asked = sorted(number for number in there if first <= number <= last)[:HANDED_AT_ONCE]
        found = [number for number in asked if self._node.fits(lane, number, there[number])]
        for number in found:
            head = block(lane.encode()), varint(number)
            body = packets.packet(packets.HANDED, *head, there[number])
            self._node.handed_on += 1
            self._node.queue(session, body, at)
        told = varint(first), varint(len(found)), *map(varint, found)
        holds = packets.packet(packets.HOLDS, block(lane.encode()), *told)
        self._node.queue(session, holds, at, urgent=True)
