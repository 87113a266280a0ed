"""Changes of the members, agreed one after the other: all members make the same ones, in one order.

Ordering groups with a list of members need that: joins in one order, and of who left the same last
number. Each change is decided by the members as they are after all changes before it, by the
single-decree protocol of Lamport, "Paxos Made Simple", 2001.

Theory of operation
-------------------
A *quorum* is more than half of the members, or half of them with the least number among them; any
two quorums have a member in common. Who wants a change asks all for their promise to take no
part in older attempts (PREPARE, PROMISE), proposes the change that the newest attempt before has
come to, else its own (ACCEPT, ACCEPTED), and tells all once a quorum has accepted (DECIDED). Who
was not told learns it later: whoever knows more changes than another member sends it those.

To put members out takes the promise of ALL the others, who have to be a quorum. With it each says
how far it has come of those who are to go, and from then on takes nothing from them until this
change is decided. So what is proposed as their last numbers is as far as anybody has come or will
come. Who has heard lately of one who is to go refuses, unless that was asked for by hand.

Nothing of this is stored: a member that ends has ended, and its next life is another member.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from antecede.clocks.wire import Reader, block, varint
from antecede.errors import DecodeError
from antecede.live import wire
from antecede.live.datagrams.packets import AGREE, MAX_MEMBERS, packet
from antecede.live.events import ChangeKind

PREPARE, PROMISE, ACCEPT, ACCEPTED, DECIDED, NO = range(6)
AT_ONCE: Final = 16
"""Changes that are told at once to who does not know them."""


class Step(NamedTuple):
    """One change of the members."""

    kind: ChangeKind
    lane: str
    """Who joins or leaves; who puts out."""
    address: str = ""
    """Of a newcomer. Why somebody is put out."""
    sponsor: int = 0
    """Number of the member who lets a newcomer in."""
    last: Mapping[int, int] = {}
    """Who leaves or is put out: number -> the number of its last message."""


def pack_step(step: Step) -> bytes:
    """Return a change as bytes."""
    rows = [varint(number) + varint(last) for number, last in sorted(step.last.items())]
    texts = block(step.lane.encode()) + block(step.address.encode())
    head = bytes((step.kind,)) + texts + varint(step.sponsor) + varint(len(rows))
    return head + b"".join(rows)


def read_step(data: bytes) -> Step:
    """Return what `pack_step` wrote. Raises DecodeError."""
    reader = Reader(data)
    kind = reader.take(1)[0]
    if kind > ChangeKind.PUT_OUT:
        raise DecodeError(f"a change of the members of an unknown kind, {kind}")
    lane, address, sponsor = wire.lane(reader), wire.text(reader), reader.varint()
    rows = {reader.varint(): reader.varint() for _ in range(_few(reader.varint()))}
    reader.finish()
    return Step(ChangeKind(kind), lane, address, sponsor, rows)


def _few(count: int) -> int:
    if count > MAX_MEMBERS:
        raise DecodeError(f"{count} members announced; {MAX_MEMBERS} are the most")
    return count


class Ballot(NamedTuple):
    """An attempt: a later one has a greater number; who makes it breaks ties."""

    round: int
    by: int


NEVER: Final = Ballot(0, 0)


class Answer(NamedTuple):
    """A promise: what its member accepted before, and how far it has come of whom."""

    accepted: Ballot
    value: bytes
    reached: Mapping[int, int]


@dataclass
class Attempt:
    """One's own attempt to have a change decided."""

    step: Step
    about: frozenset[int]
    """Who is to be put out."""
    by_hand: bool
    ballot: Ballot
    due_ns: int = 0
    value: bytes = b""
    """What is proposed; empty: promises are collected."""
    promised: dict[int, Answer] = field(default_factory=dict)
    accepted: set[int] = field(default_factory=set)
    pause_ns: int = 0
    """Before this no new attempt is made: somebody else makes one."""
    tries: int = 0


class Agreement:
    """One member's part in it. `out`: what is to be sent, as (number of a member, packet)."""

    def __init__(
        self,
        me: int,
        base: int,
        members: Iterable[int],
        next_number: int,
        *,
        reached: Callable[[int], int],
        hears: Callable[[int], bool],
        again_ns: int,
    ) -> None:
        """`base`: changes before one came; `next_number`: of the next who joins. `reached`: how far
        one has come of a member. `hears`: whether one has heard of it lately.
        """
        self.next_number = next_number
        self.me, self.base = me, base
        self.members = set(members)
        self.decided: list[bytes] = []
        self.fresh: list[Step] = []
        """Decided and not made here yet, in order."""
        self.frozen: set[int] = set()
        """Of whom nothing is taken until this change is decided."""
        self.attempt: Attempt | None = None
        self.out: list[tuple[int, bytes]] = []
        self._reached, self._hears, self._again_ns = reached, hears, again_ns
        self._promised, self._accepted, self._value = NEVER, NEVER, b""

    @property
    def changes(self) -> int:
        """How many changes there were, from the group's beginning."""
        return self.base + len(self.decided)

    def is_quorum(self, some: Collection[int]) -> bool:
        """Tell whether some members may decide for all."""
        there = self.members & set(some)
        half = 2 * len(there) == len(self.members) and min(self.members) in there
        return 2 * len(there) > len(self.members) or half

    # -- what one wants -----------------------------------------------------------------------

    def want(
        self, step: Step, now: int, about: Iterable[int] = (), *, by_hand: bool = False
    ) -> None:
        """Try to have this be the next change, unless one tries something already."""
        if self.attempt is None:
            ballot = Ballot(self._promised.round + 1, self.me)
            self.attempt = Attempt(step, frozenset(about), by_hand, ballot, now)
            self._prepare(now)

    def give_up(self) -> None:
        """Try no more, where that is not too late: what was proposed may yet be decided."""
        self.attempt = None

    def tick(self, now: int) -> None:
        """Ask again who has not answered; begin a new attempt where an older one was in the way."""
        attempt = self.attempt
        if attempt is None or now < max(attempt.due_ns, attempt.pause_ns):
            return
        if attempt.pause_ns:
            newer = Ballot(max(self._promised.round, attempt.ballot.round) + 1, self.me)
            self.attempt = Attempt(attempt.step, attempt.about, attempt.by_hand, newer, now)
            self.attempt.tries = attempt.tries
            self._prepare(now)
        elif attempt.value:
            self._accept(now)
        else:
            self._prepare(now)

    def _prepare(self, now: int) -> None:
        attempt = self._mine()
        attempt.due_ns = now + self._again_ns
        numbers = sorted(attempt.about)
        about = varint(len(numbers)) + b"".join(map(varint, numbers))
        body = self._head(PREPARE, attempt.ballot) + bytes((attempt.by_hand,)) + about
        for member in sorted(self.members - attempt.about - attempt.promised.keys()):
            self._tell(member, body, now)

    def _accept(self, now: int) -> None:
        attempt = self._mine()
        attempt.due_ns = now + self._again_ns
        body = self._head(ACCEPT, attempt.ballot) + attempt.value
        for member in sorted(self.members - attempt.accepted):
            self._tell(member, body, now)

    def _mine(self) -> Attempt:
        assert self.attempt is not None
        return self.attempt

    def _head(self, kind: int, ballot: Ballot, changes: int | None = None) -> bytes:
        at = self.changes if changes is None else changes
        return bytes((kind,)) + varint(at) + varint(ballot.round) + varint(ballot.by)

    def _tell(self, member: int, body: bytes, now: int) -> None:
        if member == self.me:
            self.receive(member, Reader(body), now)
        else:
            self.out.append((member, packet(AGREE, body)))

    # -- what comes ---------------------------------------------------------------------------

    def receive(self, member: int, reader: Reader, now: int) -> None:
        """Take what another member, or one that was one, says. Raises DecodeError."""
        kind, at = reader.take(1)[0], reader.varint()
        ballot = Ballot(reader.varint(), reader.varint())
        if kind == DECIDED:
            if member in self.members or self.me not in self.members:
                self._learn(at, reader.rest())
        elif at < self.changes:
            self.tell(member, at)
        elif at == self.changes and member in self.members:
            if kind == PREPARE:
                self._asked(member, ballot, reader, now)
            elif kind == ACCEPT:
                self._proposed(member, ballot, reader.rest(), now)
            elif self.attempt is not None and self.attempt.ballot == ballot:
                self._answered(member, kind, reader, now)
            elif kind > NO:
                raise DecodeError(f"a word of an unknown kind, {kind}, about a change")

    def _asked(self, member: int, ballot: Ballot, reader: Reader, now: int) -> None:
        by_hand = bool(reader.take(1)[0])
        about = {reader.varint() for _ in range(_few(reader.varint()))}
        reader.finish()
        heard = not by_hand and any(k == self.me or self._hears(k) for k in about)
        if ballot < self._promised or heard or self.me in about:
            self._refuse(member, ballot, now)
            return
        self._promised = ballot
        self.frozen |= about
        rows = [varint(k) + varint(self._reached(k)) for k in sorted(about & self.members)]
        before = varint(self._accepted.round) + varint(self._accepted.by) + block(self._value)
        body = self._head(PROMISE, ballot) + before + varint(len(rows)) + b"".join(rows)
        self._tell(member, body, now)

    def _proposed(self, member: int, ballot: Ballot, value: bytes, now: int) -> None:
        step = read_step(value)
        if ballot < self._promised:
            self._refuse(member, ballot, now)
            return
        self._promised = self._accepted = ballot
        self._value = value
        if step.kind is ChangeKind.PUT_OUT:
            self.frozen |= step.last.keys()
        self._tell(member, self._head(ACCEPTED, ballot), now)

    def _refuse(self, member: int, ballot: Ballot, now: int) -> None:
        newest = varint(self._promised.round) + varint(self._promised.by)
        self._tell(member, self._head(NO, ballot) + newest, now)

    def _answered(self, member: int, kind: int, reader: Reader, now: int) -> None:
        attempt = self._mine()
        if kind == NO:
            newest = Ballot(reader.varint(), reader.varint())
            self._promised = max(self._promised, newest)
            if not attempt.pause_ns:
                attempt.tries += 1
                # Two who try at once must not do so in step for ever.
                steps = 1 + (self.me * 5 + attempt.ballot.round * 3) % (4 << min(attempt.tries, 4))
                attempt.pause_ns = now + steps * self._again_ns
        elif kind == PROMISE and not attempt.value:
            accepted, value = Ballot(reader.varint(), reader.varint()), reader.block()
            reached = {reader.varint(): reader.varint() for _ in range(_few(reader.varint()))}
            attempt.promised[member] = Answer(accepted, value, reached)
            if self._may_propose(attempt):
                attempt.value = self._choice(attempt)
                self._accept(now)
        elif kind == ACCEPTED and attempt.value:
            attempt.accepted.add(member)
            if self.is_quorum(attempt.accepted):
                self._decide(attempt.value)

    def _may_propose(self, attempt: Attempt) -> bool:
        needed = self.members - attempt.about if attempt.about else set(attempt.promised)
        return needed <= attempt.promised.keys() and self.is_quorum(needed)

    def _choice(self, attempt: Attempt) -> bytes:
        answers = attempt.promised.values()
        newest = max(answers, key=lambda one: one.accepted)
        if newest.value:
            return newest.value
        if not attempt.about:
            return pack_step(attempt.step)
        last = {
            k: max(one.reached.get(k, 0) for one in answers) for k in attempt.about & self.members
        }
        return pack_step(attempt.step._replace(last=last))

    # -- what is decided ----------------------------------------------------------------------

    def _decide(self, value: bytes) -> None:
        at, others = self.changes, sorted(self.members - {self.me})
        self._learn(at, value)
        for member in others:
            self.tell(member, at)

    def tell(self, member: int, at: int) -> None:
        """Tell a member what was decided from a number of changes on, as far as one knows."""
        if at < self.base:
            return  # somebody who was there then will
        for k in range(at - self.base, min(len(self.decided), at - self.base + AT_ONCE)):
            body = self._head(DECIDED, NEVER, self.base + k) + self.decided[k]
            self.out.append((member, packet(AGREE, body)))

    def _learn(self, at: int, value: bytes) -> None:
        if at != self.changes:
            return  # known, or to come when what is before it is known
        step = read_step(value)
        self.decided.append(value)
        self.fresh.append(step)
        self.frozen.clear()
        self._promised, self._accepted, self._value = NEVER, NEVER, b""
        self.attempt = None
        if step.kind is ChangeKind.JOINED:
            self.members.add(self.next_number)
            self.next_number += 1
        else:
            self.members -= step.last.keys()
