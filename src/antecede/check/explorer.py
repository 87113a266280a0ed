"""Every interleaving of sends and arrivals in a small group, each state visited once.

Theory of operation
-------------------
A state is: the snapshot of every member, the copies in flight (a multiset), and what the judge
needs: which labels each member has delivered, which have arrived there, and the causal past of
each label. From a state every member may send (while messages are left) and every copy in
flight may arrive. The search is breadth-first, so the first failure found is one with the
fewest actions.

What makes it fast: only the member that acts changes, and what it does depends on its snapshot
and the message alone. So each (member, snapshot, message) is run once and its `Reaction` kept;
snapshots, copies and the judge's records are interned, and a state is one integer of their
numbers. Labels are named by sender (a1, a2, b1), so that independent sends commute.

The judge here works on bit masks of labels; `tests/check/test_explorer.py` holds it against
`antecede.oracle` on every path of small groups.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from antecede.check.actions import Action, Arrive, Send
from antecede.check.company import Company, relation_of
from antecede.check.verdict import (
    EARLY,
    NEEDLESS,
    RAISED,
    SNAPSHOT,
    STUCK,
    TWICE,
    UNSENT,
    Exploration,
    Failure,
)
from antecede.protocols.base import (
    Deliver,
    Effect,
    MessageId,
    Protocol,
    Relation,
    Release,
    Transmit,
)

Key = TypeVar("Key", bound=Hashable)
_FIELD = 24
_MASK = (1 << _FIELD) - 1


class Limits(NamedTuple):
    """How far a search goes."""

    messages: int
    """Messages sent in all."""
    duplicates: int = 0
    """Arrivals after which the copy stays in flight, in all."""
    script: tuple[int, ...] = ()
    """Addresses of the senders in the order in which they send; empty: anybody, any time."""
    max_states: int = 2_000_000


class Move(NamedTuple):
    """A step from one state to the next: a send (copy is -1) or the arrival of a copy."""

    at: int
    label: int
    after: int = -1
    copy: int = -1
    stays: bool = False


class Reaction(NamedTuple):
    """What one member does in one state with one message, all by number."""

    snapshot: int
    copies: tuple[int, ...]
    handed: tuple[tuple[int, bool], ...]
    """(label, marked as released without its causes); -1: no message of the application."""
    error: str
    what: str = RAISED


class Record(NamedTuple):
    """The judge's part of a state; bit k of a mask is label k."""

    done: tuple[int, ...]
    """By slot: labels sent or delivered there."""
    arrived: tuple[int, ...]
    """By slot: labels that have arrived there."""
    pasts: tuple[int, ...]
    """By label: its causal past."""
    duplicates: int


class Found(NamedTuple):
    """What went wrong on a move, before it is put into words."""

    what: str
    slot: int
    label: int
    missing: int = 0
    detail: str = ""


class _Numbers(Generic[Key]):
    """Gives each distinct value a number, from 0."""

    def __init__(self) -> None:
        self.number: dict[Key, int] = {}
        self.value: list[Key] = []

    def __call__(self, value: Key) -> int:
        number = self.number.setdefault(value, len(self.value))
        if number == len(self.value):
            self.value.append(value)
        return number


class Explorer:
    """One search; use `explore`."""

    def __init__(self, company: Company, limits: Limits) -> None:
        self.company, self.limits = company, limits
        self.bench = company.make()
        self.relation = relation_of(self.bench)
        self.addresses = tuple(self.bench)
        self.slot = {at: slot for slot, at in enumerate(self.addresses)}
        members = [self.bench[at] for at in self.addresses]
        self.guarantees = [member.guarantee for member in members]
        self.senders = [slot for slot, member in enumerate(members) if member.application]
        self.applies = [member.application for member in members]
        names = [company.names[at].lower() for at in self.addresses]
        self.labels = [
            f"{names[slot]}{seq + 1}" for slot in self.senders for seq in range(limits.messages)
        ]
        self.label_number = {label: number for number, label in enumerate(self.labels)}
        self.snapshots: _Numbers[Hashable] = _Numbers()
        self.copies: _Numbers[tuple[int, Any]] = _Numbers()
        self.copy_label: list[int] = []
        self.groups: _Numbers[tuple[int, ...]] = _Numbers()
        self.flights: _Numbers[tuple[int, ...]] = _Numbers()
        self.records: _Numbers[Record] = _Numbers()
        self.sent_by: dict[tuple[int, int, int, int], Reaction] = {}
        self.received_by: dict[tuple[int, int], Reaction] = {}
        self.ids: dict[int, MessageId] = {}
        self.transitions = 0

    # -- the search -------------------------------------------------------------------------

    def search(self, progress: Callable[[int], None] | None = None) -> Exploration:
        """Visit every state; stop at the first failure or at the allowed number of states."""
        start = self.start()
        parents: dict[int, tuple[int, Move] | None] = {start: None}
        level = [start]
        while level:
            following: list[int] = []
            for state in level:
                for move, successor, found in self.successors(state):
                    self.transitions += 1
                    if found is not None:
                        failure = self.explain(found, self.path(parents, state, move))
                        return self._result(parents, failure, complete=False)
                    if successor not in parents:
                        parents[successor] = (state, move)
                        following.append(successor)
            if len(parents) > self.limits.max_states:
                return self._result(parents, None, complete=False)
            if progress is not None:
                progress(len(parents))
            level = following
        return self._result(parents, None, complete=True)

    def _result(
        self, parents: dict[int, Any], failure: Failure | None, *, complete: bool
    ) -> Exploration:
        words = f"{self.company.describe()}, {self.limits.messages} messages"
        words += f", {self.limits.duplicates} duplicates" if self.limits.duplicates else ""
        words += ", sends in a fixed order" if self.limits.script else ""
        return Exploration(words, len(parents), self.transitions, complete, failure)

    def start(self) -> int:
        """Return the state in which nobody has sent anything."""
        snapshots = tuple(self.snapshots(member.snapshot()) for member in self.bench.values())
        nothing = (0,) * len(self.addresses)
        record = Record(nothing, nothing, (0,) * len(self.labels), self.limits.duplicates)
        return self._pack(snapshots, (), record)

    def _pack(self, group: tuple[int, ...], flight: tuple[int, ...], record: Record) -> int:
        packed = self.groups(group) << _FIELD | self.flights(flight)
        return packed << _FIELD | self.records(record)

    def _unpack(self, state: int) -> tuple[tuple[int, ...], tuple[int, ...], Record]:
        return (
            self.groups.value[state >> 2 * _FIELD],
            self.flights.value[state >> _FIELD & _MASK],
            self.records.value[state & _MASK],
        )

    def successors(self, state: int) -> Iterator[tuple[Move, int, Found | None]]:
        """Yield every move from a state, where it leads, and what is wrong with it."""
        group, flight, record = self._unpack(state)
        for move in self._sends(record):
            yield self._send(group, flight, record, move)
        previous = -1
        for position, copy in enumerate(flight):
            if copy == previous:
                continue
            previous = copy
            rest = flight[:position] + flight[position + 1 :]
            yield self._arrive(group, rest, record, copy, stays=False)
            if record.duplicates:
                fewer = record._replace(duplicates=record.duplicates - 1)
                yield self._arrive(group, flight, fewer, copy, stays=True)

    # -- sends ------------------------------------------------------------------------------

    def _sends(self, record: Record) -> Iterator[Move]:
        sent = [self._sent_here(record, index) for index in range(len(self.senders))]
        total = sum(sent)
        if total == self.limits.messages:
            return
        script = self.limits.script
        for index, slot in enumerate(self.senders):
            at = self.addresses[slot]
            if not script or script[total] == at:
                label = index * self.limits.messages + sent[index]
                yield Move(at, label)
                if self.relation is Relation.BY_REPLY:
                    for cause in _bits(record.done[slot]):
                        yield Move(at, label, after=cause)

    def _sent_here(self, record: Record, index: int) -> int:
        mask = (1 << self.limits.messages) - 1
        done = record.done[self.senders[index]]
        return (done >> index * self.limits.messages & mask).bit_count()

    def _send(
        self, group: tuple[int, ...], flight: tuple[int, ...], record: Record, move: Move
    ) -> tuple[Move, int, Found | None]:
        slot = self.slot[move.at]
        key = (slot, group[slot], move.label, move.after)
        reaction = self.sent_by.get(key)
        if reaction is None:
            reaction = self.sent_by[key] = self._react_to_send(key)
        if reaction.error:
            return move, -1, Found(reaction.what, slot, move.label, detail=reaction.error)
        pasts = list(record.pasts)
        pasts[move.label] = self._past(record, slot, move)
        done = _replaced(record.done, slot, record.done[slot] | 1 << move.label)
        record = Record(done, record.arrived, tuple(pasts), record.duplicates)
        return self._settle(group, flight, record, move, slot, reaction)

    def _past(self, record: Record, slot: int, move: Move) -> int:
        own_mask = ((1 << self.limits.messages) - 1) << (
            move.label - move.label % self.limits.messages
        )
        known = {
            Relation.NONE: 0,
            Relation.FIFO: record.done[slot] & own_mask,
            Relation.BY_DELIVERY: record.done[slot],
            Relation.BY_RECEIPT: record.done[slot] & own_mask | record.arrived[slot],
            Relation.BY_REPLY: 1 << move.after if move.after >= 0 else 0,
        }[self.relation]
        past = known
        for label in _bits(known):
            past |= record.pasts[label]
        return past

    # -- arrivals ---------------------------------------------------------------------------

    def _arrive(
        self,
        group: tuple[int, ...],
        flight: tuple[int, ...],
        record: Record,
        copy: int,
        *,
        stays: bool,
    ) -> tuple[Move, int, Found | None]:
        at, _ = self.copies.value[copy]
        slot, label = self.slot[at], self.copy_label[copy]
        move = Move(at, label, copy=copy, stays=stays)
        key = (group[slot], copy)
        reaction = self.received_by.get(key)
        if reaction is None:
            reaction = self.received_by[key] = self._react_to_arrival(slot, *key)
        if reaction.error:
            return move, -1, Found(reaction.what, slot, label, detail=reaction.error)
        if label >= 0 and self.applies[slot]:
            arrived = record.arrived[slot] | 1 << label
            record = record._replace(arrived=_replaced(record.arrived, slot, arrived))
        return self._settle(group, flight, record, move, slot, reaction)

    # -- what a member does -----------------------------------------------------------------

    def _react_to_send(self, key: tuple[int, int, int, int]) -> Reaction:
        slot, snapshot, label, after = key
        parents = (self.ids[after],) if after >= 0 else ()
        return self._react(
            slot, snapshot, lambda member: member.send(self.labels[label], after=parents), label
        )

    def _react_to_arrival(self, slot: int, snapshot: int, copy: int) -> Reaction:
        _, message = self.copies.value[copy]
        return self._react(slot, snapshot, lambda member: member.receive(message))

    def _react(
        self,
        slot: int,
        snapshot: int,
        act: Callable[[Protocol], Sequence[Effect]],
        label: int = -1,
    ) -> Reaction:
        """Run one member once; whatever it raises is a finding, not our failure."""
        member = self.bench[self.addresses[slot]]
        state = self.snapshots.value[snapshot]
        try:
            member.restore(state)
            if member.snapshot() != state:
                return Reaction(0, (), (), "restore does not give back the state", SNAPSHOT)
            effects = act(member)
            return self._noted(member, effects, label)
        except Exception as error:
            return Reaction(0, (), (), f"{type(error).__name__}: {error}")

    def _noted(self, member: Protocol, effects: Sequence[Effect], label: int) -> Reaction:
        copies: list[int] = []
        handed: list[tuple[int, bool]] = []
        for effect in effects:
            if isinstance(effect, Transmit):
                message = effect.message
                if label >= 0 and message.payload == self.labels[label]:
                    self.ids.setdefault(label, MessageId(message.sender, message.seq))
                copies += [self._copy(target, message) for target in effect.to]
            elif isinstance(effect, Deliver | Release):
                number = self.label_number.get(effect.message.payload, -1)
                handed.append((number, isinstance(effect, Release)))
        return Reaction(self.snapshots(member.snapshot()), tuple(copies), tuple(handed), "")

    def _copy(self, target: int, message: Any) -> int:
        copy = self.copies((target, message))
        if copy == len(self.copy_label):
            self.copy_label.append(self.label_number.get(message.payload, -1))
        return copy

    # -- the judge --------------------------------------------------------------------------

    def _settle(
        self,
        group: tuple[int, ...],
        flight: tuple[int, ...],
        record: Record,
        move: Move,
        slot: int,
        reaction: Reaction,
    ) -> tuple[Move, int, Found | None]:
        """Carry out a reaction, judge it, and return the state that it leads to."""
        if reaction.copies:
            flight = tuple(sorted(flight + reaction.copies))
        group = _replaced(group, slot, reaction.snapshot)
        found = None
        if reaction.handed or self.applies[slot]:
            done, found = self._judge(record, slot, reaction.handed)
            if done != record.done[slot]:
                record = record._replace(done=_replaced(record.done, slot, done))
        if found is None and not flight:
            found = self._stuck(record)
        return move, self._pack(group, flight, record), found

    def _judge(
        self, record: Record, slot: int, handed: Sequence[tuple[int, bool]]
    ) -> tuple[int, Found | None]:
        guarantee = self.guarantees[slot]
        done = record.done[slot]
        for label, marked in handed:
            if label < 0 or not any(mask >> label & 1 for mask in record.done):
                return done, Found(UNSENT, slot, label)
            if done >> label & 1:
                return done, Found(TWICE, slot, label)
            missing = record.pasts[label] & ~done
            if missing and guarantee.never_early and not marked:
                return done, Found(EARLY, slot, label, missing)
            done |= 1 << label
        if guarantee.never_idle:
            for label in _bits(record.arrived[slot] & ~done):
                if not record.pasts[label] & ~done:
                    return done, Found(NEEDLESS, slot, label)
        return done, None

    def _stuck(self, record: Record) -> Found | None:
        """With nothing in flight, everybody must have delivered all that was sent."""
        sent = 0
        for slot in self.senders:
            sent |= record.done[slot]
        for slot in self.senders:
            left = sent & ~record.done[slot]
            if left and self.guarantees[slot].never_stuck:
                return Found(STUCK, slot, next(_bits(left)))
        return None

    # -- in words ---------------------------------------------------------------------------

    def path(
        self, parents: dict[int, tuple[int, Move] | None], state: int, last: Move
    ) -> list[Move]:
        """Return the moves that lead from the start through a state to the last move."""
        moves = [last]
        link = parents[state]
        while link is not None:
            moves.append(link[1])
            link = parents[link[0]]
        return moves[::-1]

    def actions(self, moves: Sequence[Move]) -> tuple[Action, ...]:
        """Return moves as the actions of a scenario."""
        actions: list[Action] = []
        kept: dict[int, int] = {}
        for move in moves:
            at = self.company.names[move.at]
            if move.copy < 0:
                after = (self.labels[move.after],) if move.after >= 0 else ()
                actions.append(Send(at, self.labels[move.label], after))
                continue
            label = self.copies.value[move.copy][1].payload
            # A copy that stayed has arrived as far as a scenario goes; it comes once more.
            again = kept.get(move.copy, 0) > 0
            kept[move.copy] = kept.get(move.copy, 0) + move.stays - (again and not move.stays)
            actions.append(Arrive(at, str(label), again))
        return tuple(actions)

    def explain(self, found: Found, moves: Sequence[Move]) -> Failure:
        """Put a finding into names."""
        return Failure(
            found.what,
            self.company.names[self.addresses[found.slot]],
            self.labels[found.label] if found.label >= 0 else "",
            tuple(self.labels[label] for label in _bits(found.missing)),
            found.detail,
            self.actions(moves),
            self.company.describe(),
        )


def explore(
    company: Company, limits: Limits, progress: Callable[[int], None] | None = None
) -> Exploration:
    """Search every interleaving of a group within limits; see the module's text."""
    return Explorer(company, limits).search(progress)


def _bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def _replaced(values: tuple[int, ...], position: int, value: int) -> tuple[int, ...]:
    return (*values[:position], value, *values[position + 1 :])
