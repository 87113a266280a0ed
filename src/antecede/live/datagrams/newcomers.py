"""Newcomers: who asks to be let in, here or elsewhere.

A newcomer asks a member again and again until a WELCOME has come; that member has the join agreed
upon (`agreement`), and invites. From its invitation on it is a member like all others. If its
sponsor goes, or does not reach it, before the welcome has come, it is put out, and asks anew under
the name of another life: a name is never reused in a group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from antecede.clocks.wire import block
from antecede.errors import DecodeError
from antecede.live import wire
from antecede.live.datagrams import packets
from antecede.live.datagrams.agreement import Agreement, Step
from antecede.live.datagrams.packets import Welcome
from antecede.live.events import Change, ChangeKind, member_of
from antecede.live.settings import NS

if TYPE_CHECKING:
    from antecede.live.datagrams.membership import Membership
    from antecede.live.datagrams.node import DatagramNode, Moment
    from antecede.live.datagrams.sending import Session

GUEST_NS: Final = 10 * NS
"""After so long a newcomer whose welcome has not come is put out again."""
ASKED_NS: Final = 5 * NS
"""So long after its last word one who wants to be let in is still let in."""
OVER: Final = "put out, or left"
"""What is said to a life that is over."""
NOT_NOW: Final = "not now"
ONLY_THIS_LIFE: Final = "!"
"""In front of a refusal: of this life alone; another one may ask."""


class Newcomers:
    """What a member does about newcomers, or as one."""

    def __init__(self, node: DatagramNode, membership: Membership) -> None:
        self._node, self._membership = node, membership
        self.joining = ""
        """Address of a member who is asked to let one in; empty: nobody is."""
        self.refusal = ""
        """Why nobody lets one in."""
        self._asked_ns = -NS
        self._wanted: dict[str, tuple[str, int]] = {}
        """Lane -> (address, when it last asked) of who wants to be let in here."""
        self.guests: dict[str, bytes] = {}
        """Lane -> its welcome, until it is known to have come; of those who were let in here."""
        self._sponsors: dict[str, str] = {}
        """Newcomer that was not heard from as a member yet -> who let it in."""

    # -- as a newcomer ------------------------------------------------------------------------

    def begin(self, address: str) -> None:
        """Ask the member at an address to be let in, until it answers."""
        self.joining, self.refusal = address, ""
        self._membership.call_anew()

    def ask_in(self, at: Moment) -> None:
        """Ask whom one has reached, now and then."""
        if not self.joining or at.now - self._asked_ns < 2 * self._node.settings.resend_ns:
            return
        self._asked_ns = at.now
        body = packets.packet(packets.JOIN, block(self._node.address.encode()))
        for session in list(self._node.sessions.values()):
            session.pace.add(body, urgent=True)
            heard = session.heard_ns or session.up_ns
            if at.now - heard > self._node.settings.silence_ns:
                self._node.end(session)  # to call again, or somebody else

    def sent_away(self, said: str) -> None:
        """A member does not let one in: for good, now, or not this life."""
        if self._node.group is not None or not self.joining:
            return
        if said.startswith(ONLY_THIS_LIFE):
            self._node.begin_life()
            self._membership.call_anew()
        elif not said.startswith(NOT_NOW):
            self.refusal = said or "no reason given"

    def turned_away(self, why: str) -> None:
        """A member that was called does not want this life: another one asks."""
        if self.joining and self._node.group is None and why.startswith(OVER):
            self._node.begin_life()
            self._membership.call_anew()

    def welcomed(self, session: Session, welcome: Welcome, at: Moment) -> None:
        """Begin from what the sponsor has. Raises DecodeError when that cannot be."""
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
        self._membership.members, self.joining = lanes, ""
        for number, (lane, _) in welcome.members.items():
            self._membership.number(lane, number)
        reached = node.reached()
        if node.log is not None:
            node.log += [("begin", lane, number, ()) for lane, number in reached.items()]
        for lane in self._membership.others():
            self._membership.rows[lane] = dict(reached)
            self._membership.since_ns[lane] = at.now
        self._membership.agree(welcome.changes, welcome.next_number)
        self._membership.show(Change(ChangeKind.JOINED, node.lane, node.address))
        node.tell(session, at, urgent=True)

    # -- as a member -----------------------------------------------------------------------------

    def asked_in(self, session: Session, address: str, at: Moment) -> None:
        """Somebody wants to be let in."""
        lane = session.lane
        if (
            self._membership.agreement is None
            or self._membership.departures.leaving
            or self._membership.departures.out
        ):
            answer = packets.packet(
                packets.REFUSED, block(f"{NOT_NOW}: it is in no group itself".encode())
            )
        elif lane in self.guests:
            self._node.queue(session, self.guests[lane], at)
            return
        elif lane in self._membership.members:
            gone = self._sponsors.get(lane, lane) not in self._membership.members
            late = lane in self._sponsors and at.now - self._membership.since_ns[lane] > GUEST_NS
            if gone or late:  # else that one will welcome it
                self._membership.departures.to_go.setdefault(
                    lane, "who let it in is gone, or does not reach it"
                )
            return
        elif lane in self._membership.numbers:
            answer = packets.packet(
                packets.REFUSED, block(f"{ONLY_THIS_LIFE}this life is over".encode())
            )
        elif self._membership.agreement.next_number >= packets.MAX_MEMBERS:
            answer = packets.packet(packets.REFUSED, block(b"this group has no numbers left"))
        else:
            self._wanted[lane] = address, at.now
            return
        session.pace.add(answer, urgent=True)

    def want_in(self, agreement: Agreement, at: Moment) -> None:
        """Try to have the joining of one who asked here agreed upon."""
        if any(not one.told for one in self._membership.departures.closing.values()):
            return  # who is invited now would have to be told of them
        for lane, (address, asked_ns) in list(self._wanted.items()):
            if at.now - asked_ns > 5 * NS or lane in self._membership.numbers:
                del self._wanted[lane]
                continue
            number = self._membership.numbers[self._node.lane]
            agreement.want(Step(ChangeKind.JOINED, lane, address, number), at.now)
            return

    def joined(self, step: Step, agreement: Agreement, number: int, at: Moment) -> None:
        """Somebody was let in: by this member, who invites, or by another."""
        node, there, lane = self._node, self._membership, step.lane
        self._wanted.pop(lane, None)
        if node.group is None or not there.add(lane, step.address, number, at):
            return
        self._sponsors[lane] = there.lanes.get(step.sponsor, "")
        if step.sponsor != there.numbers[node.lane]:
            node.came_of(node.group.join(lane), at)
            return
        node.flush(at)
        invitation = node.group.invite(lane)
        node.came_of(node.group.delivered(), at)
        members = {there.numbers[one]: (one, address) for one, address in there.members.items()}
        changes = agreement.changes - len(agreement.fresh)
        welcome = Welcome(node.group_tag, invitation, changes, members, number + 1)
        self.guests[lane] = packets.pack_welcome(welcome)
        for other in there.others():
            if other != lane and member_of(other) == member_of(lane):
                there.departures.to_go.setdefault(other, "began anew")
        if (session := node.routes.get(lane)) is not None:
            node.queue(session, self.guests[lane], at)

    def arrived(self, lane: str) -> None:
        """It is in the group, and says so; or it is gone."""
        self.guests.pop(lane, None)
        self._sponsors.pop(lane, None)
