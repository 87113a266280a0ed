"""Who is a member of a group over datagrams: joins, leaves, and who is put out.

A newcomer asks a member again and again until a WELCOME has come; that member has the join agreed
upon (`agreement`), and invites. A member that leaves waits until all have its messages, has that
agreed upon with its last number, and stays until all know. Members that are silent for `put_out_ns`
are put out by a quorum of the others.

Of who is gone all deliver the same: up to its last number, as it was agreed. Orders that hand
on by themselves ("matrix") ask each other. In orders by clocks only the sender answers, so what a
member lacks it asks of the others here (WANT, HANDED), and tells the order of the leave when it
has all, or has asked everybody in vain: then the order gives it up as its page says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from antecede.clocks.wire import Reader, block, varint
from antecede.errors import DecodeError, LocalError, MismatchError
from antecede.live import wire
from antecede.live.datagrams import packets
from antecede.live.datagrams.agreement import Agreement, Attempt, Step
from antecede.live.datagrams.packets import Have, Welcome
from antecede.live.events import Change, ChangeKind, GivenUp, View, member_of
from antecede.live.settings import NS
from antecede.live.wire import Hello

if TYPE_CHECKING:
    from antecede.live.datagrams.node import DatagramNode, Moment, Session

GUEST_NS: Final = 10 * NS
"""After so long a newcomer of whom nothing is heard is put out again by who invited it."""
LEAVE_NS: Final = 3 * NS
"""So long a member that leaves waits until the others have its messages."""
SESSION_NS: Final = 30 * NS
"""So long after its last word a session to one who is gone is kept, to tell it so."""
ROUNDS: Final = 8
"""So often everybody is asked for what a member that is gone has left."""
LAST_WORDS: Final = 20
OVER: Final = "put out, or left"
"""What is said to a life that is over."""
ONLY_THIS_LIFE: Final = "!"
"""In front of a refusal: of this life alone; another one may ask."""
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
    best: int = -1
    """How far one had come when it was last asked."""


class Membership:
    """The members as one of them knows them."""

    def __init__(self, node: DatagramNode) -> None:
        self._node = node
        self.agreement: Agreement | None = None
        self.members: dict[str, str] = {}
        """Lane -> address, oneself included."""
        self.numbers: dict[str, int] = {}
        """Of all who ever were members, as far as this one knows."""
        self._lanes: dict[int, str] = {}
        self.rows: dict[str, dict[str, int]] = {}
        """Other member -> lane -> how far it has come."""
        self._since_ns: dict[str, int] = {}
        """Other member -> since when it is one."""
        self.closing: dict[str, Closing] = {}
        self.joining = ""
        """Address of a member who was asked to let one in."""
        self.refusal = ""
        self.out = ""
        """Why one is out of the group for good; empty: one is not."""
        self.leaving = self.left = False
        self._left_at = 0
        self._told: set[str] = set()
        """Others that know of one's own leaving."""
        self._told_rows: dict[int, int] = {}
        self._now_ns = 0
        self._leave_by_ns = 0
        self._last_words = 0
        """So often one who was put out tells the others."""
        self._wanted: dict[str, tuple[str, int]] = {}
        """Lane -> (address, when it last asked) of who wants to be let in here."""
        self._to_go: dict[str, str] = {}
        """Lane -> why: to be put out, asked for by hand."""
        self._guests: dict[str, bytes] = {}
        """Lane -> its welcome, until it is known to have come."""
        self._sponsors: dict[str, str] = {}
        """Newcomer that was not heard from as a member yet -> who let it in."""
        self._asked_ns = self._stuck_ns = -NS
        self._called: dict[str, tuple[int, int]] = {}
        """Address -> (when it is called next, how often it was)."""

    # -- beginning ----------------------------------------------------------------------------

    def found(self, at: Moment) -> None:
        """Begin a group of one."""
        self.members = {self._node.lane: self._node.address}
        self._number(self._node.lane, 0)
        self._agree(0, 1)
        self._show(Change(ChangeKind.JOINED, self._node.lane, self._node.address))

    def _agree(self, base: int, next_number: int) -> None:
        numbers = [self.numbers[lane] for lane in self.members]
        self.agreement = Agreement(
            *(self.numbers[self._node.lane], base, numbers, next_number),
            reached=self._reached,
            hears=lambda number: self.hears(self._lanes.get(number, "")),
            again_ns=2 * self._node.settings.resend_ns,
        )

    def _number(self, lane: str, number: int) -> None:
        self.numbers[lane], self._lanes[number] = number, lane

    def _show(self, change: Change) -> None:
        self._node.delivered.append(View(tuple(self.members), change))

    def begin(self, address: str) -> None:
        """Ask the member at an address to be let in, until it answers."""
        self.joining, self.refusal = address, ""
        self._called.pop(address, None)

    # -- questions ----------------------------------------------------------------------------

    def others(self) -> list[str]:
        """Return the lanes of the other members."""
        return [lane for lane in self.members if lane != self._node.lane]

    def knows(self, lane: str) -> bool:
        """Tell whether it is a lane of a member, or of one that is gone and still lacks here."""
        return lane in self.members or lane in self.closing

    def may_speak(self, lane: str) -> bool:
        """Tell whether messages of a lane are taken from itself."""
        agreement = self.agreement
        return (
            agreement is not None
            and lane in self.members
            and self.numbers[lane] not in agreement.frozen
        )

    def may_be_handed_on(self, lane: str) -> bool:
        """Tell whether messages of a lane are taken from others."""
        if lane in self.closing:
            return True
        agreement = self.agreement
        frozen = agreement is not None and self.numbers.get(lane) in agreement.frozen
        return not frozen and not self._node.settings.clocked

    def hears(self, lane: str) -> bool:
        """Tell whether something has come of a member lately."""
        heard = self._heard_ns(lane)
        now = self._now_ns
        return heard is not None and now - heard < self._node.settings.silence_ns

    def _heard_ns(self, lane: str) -> int | None:
        every = (one for one in self._node.sessions.values() if one.lane == lane)
        return max((one.heard_ns for one in every if one.heard_ns is not None), default=None)

    def silent_ns(self, lane: str, now: int) -> int:
        """Return for how long nothing has come of a member."""
        return now - max(self._heard_ns(lane) or 0, self._since_ns.get(lane, 0))

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
                self._made(at)
        elif kind == packets.JOIN:
            self._asked_in(session, wire.text(reader), at)
        elif kind == packets.WELCOME:
            self._welcomed(session, packets.read_welcome(reader), at)
        elif kind == packets.WANT:
            self._wanted_of(session, reader, at)
        elif kind in (packets.AWAY, packets.REFUSED):
            if self._node.group is None and self.joining:
                self._sent_away(kind, wire.text(reader))
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
            self._made(at)
        elif have.changes > agreement.changes:
            self._node.tell(session, at)
        if lane in self.members and have.changes:
            self._guests.pop(lane, None)  # it is in the group, and says so
            self._sponsors.pop(lane, None)
            known = self.rows.setdefault(lane, {})
            for number, count in have.rows.items():
                other = self._lanes.get(number)
                if other is not None and count > known.get(other, 0):
                    known[other] = count
            if self.left and have.changes >= self._left_at:
                self._told.add(lane)

    def spoken_to(self, session: Session, at: Moment) -> None:
        """One who is no member here says something: it, or this member, lacks a change."""
        self._node.tell(session, at)

    def told(self) -> tuple[int, dict[int, int]]:
        """Return what the others are told: how many changes one knows, and how far one has come."""
        if self.agreement is None:
            return 0, {}
        if not self._node.behind:
            reached = self._node.reached()
            known = self.numbers
            self._told_rows = {known[lane]: n for lane, n in reached.items() if lane in known and n}
        return self.agreement.changes, self._told_rows

    # -- newcomers ----------------------------------------------------------------------------

    def _asked_in(self, session: Session, address: str, at: Moment) -> None:
        lane = session.lane
        if self.agreement is None or self.leaving or self.out:
            answer = packets.packet(packets.REFUSED, block(b"not now: it is in no group itself"))
        elif lane in self._guests:
            self._node.queue(session, self._guests[lane], at)
            return
        elif lane in self.members:
            gone = self._sponsors.get(lane, lane) not in self.members
            late = lane in self._sponsors and at.now - self._since_ns[lane] > GUEST_NS
            if gone or late:  # else that one will welcome it
                self._to_go.setdefault(lane, "who let it in is gone, or does not reach it")
            return
        elif lane in self.numbers:
            answer = packets.packet(packets.REFUSED, block(b"!this life of it is over"))
        elif self.agreement.next_number >= packets.MAX_MEMBERS:
            answer = packets.packet(packets.REFUSED, block(b"this group has no numbers left"))
        else:
            self._wanted[lane] = address, at.now
            return
        session.pace.add(answer, urgent=True)

    def _sent_away(self, kind: int, said: str) -> None:
        if kind == packets.AWAY:
            self.joining = said
        elif said.startswith(ONLY_THIS_LIFE):
            self._node.begin_life()
            self._called.clear()
        elif not said.startswith("not now"):
            self.refusal = said or "no reason given"

    def turned_away(self, why: str) -> None:
        """A member that was called does not want this life: another one asks."""
        if self.joining and self._node.group is None and why.startswith(OVER):
            self._node.begin_life()
            self._called.clear()

    def _welcomed(self, session: Session, welcome: Welcome, at: Moment) -> None:
        node = self._node
        if node.group is not None or not self.joining:
            return
        lanes = dict(welcome.members.values())
        if len(welcome.group) != wire.TAG or not {node.lane, session.lane} <= lanes.keys():
            raise DecodeError("a welcome to no group")
        group = node.settings.group(node.lane, welcome.invitation)
        if set(group.members) != lanes.keys():
            raise DecodeError("a welcome whose members are not those of the invitation")
        node.group, node.group_tag = group, welcome.group
        self.members, self.joining = lanes, ""
        for number, (lane, _) in welcome.members.items():
            self._number(lane, number)
        reached = node.reached()
        if node.log is not None:
            node.log += [("begin", lane, number, ()) for lane, number in reached.items()]
        for lane in self.others():
            self.rows[lane] = dict(reached)
            self._since_ns[lane] = at.now
        self._agree(welcome.changes, welcome.next_number)
        self._show(Change(ChangeKind.JOINED, node.lane, node.address))
        node.tell(session, at, urgent=True)

    # -- changes ------------------------------------------------------------------------------

    def _made(self, at: Moment) -> None:
        """Make the changes that were decided, and send what the agreement wants sent."""
        agreement = self.agreement
        assert agreement is not None
        while agreement.fresh:
            step = agreement.fresh.pop(0)
            if step.kind is ChangeKind.JOINED:
                self._joined(step, agreement.next_number - 1 - _joins(agreement.fresh), at)
            else:
                self._gone(step, agreement, at)
        for number, packet in agreement.out:
            session = self._node.routes.get(self._lanes.get(number, ""))
            if session is not None:
                self._node.queue(session, packet, at, urgent=True)
        agreement.out.clear()

    def _joined(self, step: Step, number: int, at: Moment) -> None:
        node, lane = self._node, step.lane
        self._wanted.pop(lane, None)
        if lane in self.numbers or node.group is None:
            return
        self._number(lane, number)
        self.members[lane] = step.address
        self.rows[lane] = node.reached()
        self._since_ns[lane] = at.now
        self._sponsors[lane] = self._lanes.get(step.sponsor, "")
        self._show(Change(ChangeKind.JOINED, lane, step.address))
        assert self.agreement is not None
        if step.sponsor == self.numbers[node.lane]:
            node.flush(at)
            invitation = node.group.invite(lane)
            node.came_of(node.group.delivered(), at)
            members = {self.numbers[one]: (one, a) for one, a in self.members.items()}
            changes = self.agreement.changes - len(self.agreement.fresh)
            welcome = Welcome(node.group_tag, invitation, changes, members, number + 1)
            self._guests[lane] = packets.pack_welcome(welcome)
            for other in self.others():
                if other != lane and member_of(other) == member_of(lane):
                    self._to_go.setdefault(other, "began anew")
            if (session := node.routes.get(lane)) is not None:
                node.queue(session, self._guests[lane], at)
        else:
            node.came_of(node.group.join(lane), at)

    def _gone(self, step: Step, agreement: Agreement, at: Moment) -> None:
        node = self._node
        for number, last in step.last.items():
            lane = self._lanes.get(number, "")
            if lane == node.lane:
                self.left, self._left_at = True, agreement.changes - len(agreement.fresh)
                if step.kind is ChangeKind.PUT_OUT:
                    self.out = f"put out of the group: {step.address}"
                    self._last_words = LAST_WORDS
            if lane not in self.members or lane == node.lane:
                continue
            del self.members[lane]
            self.rows.pop(lane, None)
            self._to_go.pop(lane, None)
            self._guests.pop(lane, None)
            self._sponsors.pop(lane, None)
            change = Change(step.kind, lane, step.address)
            self.closing[lane] = Closing(change, last, at.now + GUEST_NS, told=False)
            if not node.settings.clocked:
                self._tell_order(lane, at)
        self._close(at)

    def _tell_order(self, lane: str, at: Moment) -> None:
        node, closing = self._node, self.closing[lane]
        closing.told = True
        if node.group is None or self.out:
            return
        try:
            node.came_of(node.group.leave(lane, closing.last), at)
        except LocalError as error:
            self.out = f"out of step with the others: {error}; join anew"

    # -- of who is gone -----------------------------------------------------------------------

    def _reached(self, number: int) -> int:
        """Return how far one has come of a member: what the order has taken in without a gap.

        What is held of it without a gap counts, since it may be delivered at any time.
        """
        node, lane = self._node, self._lanes.get(number, "")
        done = node.reached().get(lane, 0)
        if node.group is None:
            return done
        held = [one.message.seq for one in node.group.blocked_on() if one.message.sender == lane]
        gaps = [one.seq for one in node.group.missing() if one.sender == lane and one.seq]
        first = min((seq for seq in gaps if seq > done), default=1 << 62)
        return max([done, *(seq for seq in held if seq < first)])

    def _close(self, at: Moment) -> None:
        """Be done with who is gone and of whom all has come; else ask the others for it."""
        node = self._node
        for lane, closing in list(self.closing.items()):
            reached = self._reached(self.numbers[lane])
            if not closing.told:
                if reached >= closing.last or closing.asked >= ROUNDS * max(1, len(self.others())):
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
                self._show(closing.change)

    def _ask(self, lane: str, closing: Closing, reached: int, at: Moment) -> None:
        if at.now < closing.due_ns:
            return
        if reached > closing.best:
            closing.best, closing.asked = reached, 0
        routes = self._node.routes
        others = [routes[one] for one in self.others() if one in routes]
        closing.due_ns = at.now + 2 * self._node.settings.resend_ns
        if not others:
            closing.asked += 1
            return
        session = others[closing.asked % len(others)]
        closing.asked += 1
        numbers = varint(reached + 1), varint(closing.last)
        session.pace.add(packets.packet(packets.WANT, block(lane.encode()), *numbers), urgent=True)

    def _wanted_of(self, session: Session, reader: Reader, at: Moment) -> None:
        lane, first, last = wire.lane(reader), reader.varint(), reader.varint()
        there = self._node.kept.get(lane)
        if not there or session.lane not in self.members:
            return
        found = [number for number in there if first <= number <= last]
        for number in sorted(found)[:HANDED_AT_ONCE]:
            head = block(lane.encode()), varint(number)
            body = packets.packet(packets.HANDED, *head, there[number])
            self._node.handed_on += 1
            self._node.queue(session, body, at)

    # -- leaving, putting out -----------------------------------------------------------------

    def leave(self, at: Moment) -> None:
        """Say nothing more, and leave when the others have what was said."""
        self.leaving = True
        self._leave_by_ns = at.now + LEAVE_NS

    @property
    def over(self) -> bool:
        """Whether a member that leaves can go: all others know."""
        return self.left and (set(self.others()) <= self._told or not self.others())

    def put_out(self, lane: str, why: str) -> None:
        """Have a member put out. Raises LocalError for who is no other member."""
        if lane not in self.others():
            raise LocalError(f"{lane} is not another member of this group")
        self._to_go[lane] = why

    # -- time ---------------------------------------------------------------------------------

    def tick(self, at: Moment) -> None:
        """Ask to be let in; have changes agreed upon; ask for what is gone with its sender."""
        self._now_ns = at.now
        if self.joining and self._node.group is None:
            self._ask_in(at)
        if self.agreement is not None and self.out:
            self._pass_on(self.agreement, at)
        if self.agreement is None or self.out:
            return
        self._close(at)
        if self.agreement.attempt is None and not self.left:
            self._want(self.agreement, at)
        elif self.agreement.attempt is not None:
            self._reconsider(self.agreement, self.agreement.attempt, at)
        self.agreement.tick(at.now)
        self._made(at)
        self._end_old_sessions(at)
        least = {
            lane: min(self.rows[one].get(lane, 0) for one in self.others())
            for lane in self._node.kept
            if self.others() and lane not in self.closing
        }
        self._node.forget_kept(least)

    def _pass_on(self, agreement: Agreement, at: Moment) -> None:
        """Tell the others that one is out: who decided it may have ended before it told them."""
        if self._last_words and at.now - self._asked_ns > self._node.settings.resend_ns:
            self._asked_ns = at.now
            self._last_words -= 1
            for lane in self.others():
                agreement.tell(self.numbers[lane], self._left_at - 1)
            self._made(at)

    def _end_old_sessions(self, at: Moment) -> None:
        for session in list(self._node.sessions.values()):
            lane, heard = session.lane, session.heard_ns or session.up_ns
            if lane in self.numbers and not self.knows(lane) and at.now - heard > SESSION_NS:
                self._node.end(session)

    def _ask_in(self, at: Moment) -> None:
        if at.now - self._asked_ns < 2 * self._node.settings.resend_ns:
            return
        self._asked_ns = at.now
        body = packets.packet(packets.JOIN, block(self._node.address.encode()))
        for session in list(self._node.sessions.values()):
            session.pace.add(body, urgent=True)
            heard = session.heard_ns or session.up_ns
            if at.now - heard > self._node.settings.silence_ns:
                self._node.end(session)  # to call again, or somebody else

    def _want(self, agreement: Agreement, at: Moment) -> None:
        """Try to have the next change agreed upon that one wants, if there is one."""
        me, node = self._node.lane, self._node
        stuck = bool(agreement.frozen)
        self._stuck_ns = self._stuck_ns if stuck else at.now
        if self.leaving:
            behind = node.newest - self.least_had()
            if (not behind and not node.waiting_bytes) or at.now > self._leave_by_ns:
                step = Step(ChangeKind.LEFT, me, last={self.numbers[me]: node.newest})
                agreement.want(step, at.now)
        elif self._to_go:
            why = "; ".join(sorted(set(self._to_go.values())))
            lanes = sorted({*self._to_go, *self._silent(at.now)})
            self._want_out(agreement, lanes, why, at, by_hand=True)
        elif silent := self._silent(at.now):
            self._want_out(agreement, silent, "silent", at)
        elif stuck and at.now - self._stuck_ns > NS:  # who began this has ended
            agreement.want(Step(ChangeKind.PUT_OUT, me), at.now)
        else:
            self._want_in(agreement, at)

    def _reconsider(self, agreement: Agreement, attempt: Attempt, at: Moment) -> None:
        """Begin anew where other members are silent than those an attempt is about.

        Theirs would be the promises that it waits for.
        """
        if not attempt.about or attempt.value:
            return
        back = any(self.hears(self._lanes[k]) for k in attempt.about)
        wanted = {*self._silent(at.now), *self._to_go}
        more = {self.numbers[lane] for lane in wanted} - attempt.about
        if more or (back and not attempt.by_hand):
            agreement.give_up()

    def _want_out(
        self, agreement: Agreement, lanes: list[str], why: str, at: Moment, *, by_hand: bool = False
    ) -> None:
        step = Step(ChangeKind.PUT_OUT, self._node.lane, why[:200])
        about = [self.numbers[lane] for lane in lanes]
        if agreement.is_quorum(agreement.members - set(about)):
            agreement.want(step, at.now, about, by_hand=by_hand)

    def _silent(self, now: int) -> list[str]:
        """Return who is to be put out for being silent."""
        after = self._node.settings.put_out_ns
        silent = [lane for lane in self._guests if self.silent_ns(lane, now) > GUEST_NS]
        if after is not None:
            rank = sum(
                self.numbers[lane] < self.numbers[self._node.lane]
                for lane in self.others()
                if self.silent_ns(lane, now) <= after
            )
            late = after + 8 * rank * self._node.settings.resend_ns
            if any(self.silent_ns(lane, now) > late for lane in self.others()):
                silent += [lane for lane in self.others() if self.silent_ns(lane, now) > after]
        return sorted(set(silent))

    def _want_in(self, agreement: Agreement, at: Moment) -> None:
        if any(not one.told for one in self.closing.values()):
            return  # who is invited now would have to be told of them
        for lane, (address, asked_ns) in list(self._wanted.items()):
            if at.now - asked_ns > 5 * NS or lane in self.numbers:
                del self._wanted[lane]
                continue
            number = self.numbers[self._node.lane]
            agreement.want(Step(ChangeKind.JOINED, lane, address, number), at.now)
            return

    def dials(self, at: Moment) -> list[str]:
        """Return the addresses to call now: of members to whom there is no way that works."""
        node, found = self._node, []
        if self.joining and not any(one.address == self.joining for one in node.sessions.values()):
            found.append(self.joining)
        elif node.group is not None and not self.out:
            silence = node.settings.silence_ns
            late = [
                lane
                for lane in self.others()
                # The other end may have forgotten the session.
                if lane not in node.routes or self.silent_ns(lane, at.now) > silence
            ]
            mine = self.numbers[node.lane]
            found += [
                self.members[lane]
                for lane in late
                # The newer calls the older, who calls after a while all the same.
                if self.numbers[lane] < mine or at.now - self._since_ns.get(lane, 0) > NS
            ]
        due = []
        for address in found:
            when, times = self._called.get(address, (at.now, 0))
            if when <= at.now:
                wait = (4 * node.settings.resend_ns) << min(times, 4)
                self._called[address] = at.now + wait, times + 1
                due.append(address)
        return due


def _joins(steps: list[Step]) -> int:
    return sum(one.kind is ChangeKind.JOINED for one in steps)
