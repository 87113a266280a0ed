"""Every interleaving of sends and arrivals in a small group, each state visited once.

Theory of operation
-------------------
A state is: the snapshot of every member, the copies in flight (a multiset), and what the judge
needs (`judge.Record`). From a state every member may send (while messages are left) and every
copy in flight may arrive. The search is breadth-first, so the first failure found is one with
the fewest actions.

What makes it fast: only the member that acts changes, and `reactions` runs it once for each
snapshot and message. All parts of a state are interned, and a state is one integer of their
numbers. Labels are named by sender (a1, a2, b1), so that independent sends commute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from antecede.check.actions import Action, Arrive, Send
from antecede.check.company import Company, relation_of
from antecede.check.judge import Found, Judge, Record, bits
from antecede.check.reactions import Bench, Numbers, Reaction
from antecede.check.trial import Trial
from antecede.check.verdict import Exploration, Failure
from antecede.protocols.base import Relation

_FIELD = 24
_MASK = (1 << _FIELD) - 1


class Limits(NamedTuple):
    """How far a search goes, and what it looks for."""

    messages: int
    """Messages sent in all."""
    duplicates: int = 0
    """Arrivals after which the copy stays in flight, in all."""
    script: tuple[int, ...] = ()
    """Addresses of the senders in the order in which they send; empty: anybody, any time."""
    ignored: frozenset[str] = frozenset()
    """Kinds of failure (constants of `verdict`) to pass over."""
    max_states: int = 2_000_000


class Move(NamedTuple):
    """A step from one state to the next: a send (copy is -1) or the arrival of a copy."""

    slot: int
    label: int
    after: int = -1
    copy: int = -1
    stays: bool = False


class Parts(NamedTuple):
    """A state unpacked."""

    group: tuple[int, ...]
    """By slot: the number of the member's snapshot."""
    flight: tuple[int, ...]
    """Numbers of the copies in flight, ascending; equal copies stand side by side."""
    record: Record


Successor: TypeAlias = tuple[Move, int, Found | None]


def explore(
    company: Company, limits: Limits, progress: Callable[[int], None] | None = None
) -> Exploration:
    """Search every interleaving of a group within limits; stop at the first failure.

    `progress` is called with the number of states after each round. A search that reaches
    `limits.max_states` ends there and is not complete.
    """
    return Explorer(company, limits).search(progress)


class Explorer:
    """One search, for those who want its states; `explore` is the usual way in."""

    def __init__(self, company: Company, limits: Limits) -> None:
        self.company, self.limits = company, limits
        made = company.make()
        self.addresses = tuple(made)
        members = tuple(made.values())
        self.slot = {at: slot for slot, at in enumerate(self.addresses)}
        self.relation = relation_of(made)
        self.applies = [member.application for member in members]
        self.senders = [slot for slot, applies in enumerate(self.applies) if applies]
        guarantees = [member.guarantee for member in members]
        self.judge = Judge(self.relation, guarantees, self.senders, limits.messages, limits.ignored)
        self.names = [company.names[at] for at in self.addresses]
        numbers = range(1, limits.messages + 1)
        self.labels = [f"{self.names[slot].lower()}{n}" for slot in self.senders for n in numbers]
        self.bench = Bench(members, self.labels)
        self.groups: Numbers[tuple[int, ...]] = Numbers()
        self.flights: Numbers[tuple[int, ...]] = Numbers()
        self.records: Numbers[Record] = Numbers()
        self.parents: dict[int, tuple[int, Move] | None] = {}
        """State -> the state and the move that led to it first."""
        self.transitions = 0

    # -- the search -------------------------------------------------------------------------

    def search(self, progress: Callable[[int], None] | None = None) -> Exploration:
        """Visit every state, nearest first."""
        level = [self.start()]
        self.parents = {level[0]: None}
        while level and len(self.parents) <= self.limits.max_states:
            following: list[int] = []
            for state in level:
                for move, successor, found in self.successors(state):
                    self.transitions += 1
                    if found is not None:
                        return self._result(self._explain(found, self.path(state, move)))
                    if successor not in self.parents:
                        self.parents[successor] = (state, move)
                        following.append(successor)
            if progress is not None:
                progress(len(self.parents))
            level = following
        return self._result(None, complete=not level)

    def _result(self, failure: Failure | None, *, complete: bool = False) -> Exploration:
        limits = self.limits
        words = f"{self.company.describe()}, {limits.messages} messages"
        words += f", {limits.duplicates} duplicates" if limits.duplicates else ""
        words += ", senders in a fixed order" if limits.script else ""
        return Exploration(words, len(self.parents), self.transitions, complete, failure)

    def start(self) -> int:
        """Return the state in which nobody has sent anything."""
        group = tuple(self.bench.snapshots(member.snapshot()) for member in self.bench.members)
        nothing = (0,) * len(self.addresses)
        record = Record(nothing, nothing, (0,) * len(self.labels), self.limits.duplicates)
        return self._pack(Parts(group, (), record))

    def _pack(self, parts: Parts) -> int:
        packed = self.groups(parts.group) << _FIELD | self.flights(parts.flight)
        return packed << _FIELD | self.records(parts.record)

    def unpack(self, state: int) -> Parts:
        """Return the parts of a state."""
        return Parts(
            self.groups.value[state >> 2 * _FIELD],
            self.flights.value[state >> _FIELD & _MASK],
            self.records.value[state & _MASK],
        )

    # -- moves ------------------------------------------------------------------------------

    def successors(self, state: int) -> Iterator[Successor]:
        """Yield every move from a state, where it leads, and what is wrong with it."""
        parts = self.unpack(state)
        group, flight, record = parts
        for move in self._sends(record):
            yield self._send(parts, move)
        previous = -1
        for position, copy in enumerate(flight):
            if copy == previous:
                continue
            previous = copy
            rest = flight[:position] + flight[position + 1 :]
            yield self._arrive(Parts(group, rest, record), copy, stays=False)
            if record.duplicates:
                fewer = record._replace(duplicates=record.duplicates - 1)
                yield self._arrive(Parts(group, flight, fewer), copy, stays=True)

    def _sends(self, record: Record) -> Iterator[Move]:
        sent = [(record.done[slot] & self.judge.own(slot)).bit_count() for slot in self.senders]
        total = sum(sent)
        if total == self.limits.messages:
            return
        script = self.limits.script
        for index, slot in enumerate(self.senders):
            if script and script[total] != self.addresses[slot]:
                continue
            label = index * self.limits.messages + sent[index]
            yield Move(slot, label)
            if self.relation is Relation.BY_REPLY:
                for cause in bits(record.done[slot]):
                    yield Move(slot, label, after=cause)

    def _send(self, parts: Parts, move: Move) -> Successor:
        group, flight, record = parts
        slot = move.slot
        reaction = self.bench.send(slot, group[slot], move.label, move.after)
        past = self.judge.past(record, slot, move.after)
        done = _replaced(record.done, slot, record.done[slot] | 1 << move.label)
        pasts = _replaced(record.pasts, move.label, past)
        record = record._replace(done=done, pasts=pasts)
        return self._settle(Parts(group, flight, record), move, reaction)

    def _arrive(self, parts: Parts, copy: int, *, stays: bool) -> Successor:
        group, flight, record = parts
        slot, label = self.slot[self.bench.copies.value[copy][0]], self.bench.copy_label[copy]
        if label >= 0 and self.applies[slot]:
            arrived = record.arrived[slot] | 1 << label
            record = record._replace(arrived=_replaced(record.arrived, slot, arrived))
        move = Move(slot, label, copy=copy, stays=stays)
        reaction = self.bench.receive(slot, group[slot], copy)
        return self._settle(Parts(group, flight, record), move, reaction)

    def _settle(self, parts: Parts, move: Move, reaction: Reaction) -> Successor:
        """Carry out a reaction, judge it, and return the state that it leads to."""
        group, flight, record = parts
        slot = move.slot
        if reaction.error:
            return move, -1, Found(reaction.what, slot, move.label, detail=reaction.error)
        if reaction.copies:
            flight = tuple(sorted(flight + reaction.copies))
        found = None
        if reaction.handed or self.applies[slot]:
            done, found = self.judge.deliveries(record, slot, reaction.handed)
            if done != record.done[slot]:
                record = record._replace(done=_replaced(record.done, slot, done))
        if found is None and not flight:
            found = self.judge.stuck(record)
        group = _replaced(group, slot, reaction.snapshot)
        return move, self._pack(Parts(group, flight, record)), found

    # -- in words ---------------------------------------------------------------------------

    def path(self, state: int, last: Move) -> list[Move]:
        """Return the moves that lead from the start through a state to the last move."""
        moves = [last]
        link = self.parents[state]
        while link is not None:
            moves.append(link[1])
            link = self.parents[link[0]]
        return moves[::-1]

    def actions(self, moves: Sequence[Move]) -> tuple[Action, ...]:
        """Return moves as the actions of a scenario.

        A copy that stays in flight has arrived as far as a scenario goes; it comes again. A
        scenario knows copies by label and takes the oldest, so where several messages of a
        protocol's own have one label, the older ones are let in first.
        """
        trial = Trial(self.company)
        stayed: dict[int, int] = {}
        for move in moves:
            at = self.names[move.slot]
            if move.copy < 0:
                after = (self.labels[move.after],) if move.after >= 0 else ()
                trial.take(Send(at, self.labels[move.label], after))
                continue
            target, message = self.bench.copies.value[move.copy]
            label = str(message.payload)
            again = stayed.get(move.copy, 0)
            stayed[move.copy] = again + 1 if move.stays else max(again - 1, 0)
            waiting = [m for _, to, m in trial.world.in_flight if to == target]
            named = [m for m in waiting if m.payload == label]
            older = named.index(message) if message in named else 0
            for _ in range(older):
                trial.take(Arrive(at, label))
            if again or message in named or move.label >= 0:
                trial.take(Arrive(at, label, again > 0))
        return tuple(trial.actions)

    def _explain(self, found: Found, moves: Sequence[Move]) -> Failure:
        return Failure(
            found.what,
            self.names[found.slot],
            self.labels[found.label] if found.label >= 0 else "",
            tuple(self.labels[label] for label in bits(found.missing)),
            found.detail,
            self.actions(moves),
            self.company.describe(),
            self.company.scene,
        )


def _replaced(values: tuple[int, ...], position: int, value: int) -> tuple[int, ...]:
    return (*values[:position], value, *values[position + 1 :])
