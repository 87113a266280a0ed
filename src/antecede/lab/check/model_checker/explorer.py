"""Search of every interleaving of sends and arrivals; each state is visited once.

A state holds the snapshots of all members, the copies in flight (a multiset) and the
`CheckerRecord`. The search is breadth-first, so the first failure has the fewest actions.

Only the acting member changes, and `transitions` runs it once for each snapshot and message. Parts
of states are interned; a state is one integer of their numbers. Labels are named by sender (a1, a2,
b1), so independent sends commute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from antecede.core.clocks import seconds_text
from antecede.core.protocols import Relation, relation_of
from antecede.formatting import counted
from antecede.lab.check.causal_past import bits
from antecede.lab.check.checked_run import JudgedRun, replay
from antecede.lab.check.harness.group_under_test import GroupUnderTest
from antecede.lab.check.harness.timing import pace
from antecede.lab.check.model_checker.actions import Move, Moves, SearchLimits, StateParts
from antecede.lab.check.model_checker.invariants import Finding, Judge, Record
from antecede.lab.check.model_checker.transitions import Interner, Reaction, TransitionCache
from antecede.lab.check.results import CLAIMED, ENDLESS, RIGHT, Exploration, Failure
from antecede.lab.check.scenario.actions import Action, Arrive, Lose, Send, tick_of
from antecede.lab.check.shrink import fold_ticks

__all__ = ["Explorer", "Move", "SearchLimits", "explore"]

STEPS_AT_END, SHOWN_AT_END = 40, 10
"""Groups with clocks: idle steps until a held message counts as stuck, and steps shown."""
DOUBLED_AT_END = 24
"""Further steps, each twice as long."""
MOST_MOVES, MOST_IN_FLIGHT = 200, 200
"""Consecutive actions and copies in flight above which the run counts as endless."""

_FIELD = 24
_MASK = (1 << _FIELD) - 1


Successor: TypeAlias = tuple[Move, int, Finding | None]


def explore(
    group: GroupUnderTest, limits: SearchLimits, progress: Callable[[int], None] | None = None
) -> Exploration:
    """Search every interleaving within limits; stop at the first failure.

    `progress` receives the number of states after each round. A search that reaches
    `limits.max_states` ends incomplete.
    """
    return Explorer(group, limits).search(progress)


class Explorer:
    """One search with its states; `explore` is the usual entry."""

    def __init__(self, group: GroupUnderTest, limits: SearchLimits) -> None:
        self.group, self.limits = group, limits
        made = group.make()
        self.addresses = tuple(made)
        members = tuple(made.values())
        self.relation = relation_of(made)
        self.applies = [member.application for member in members]
        self.senders = [slot for slot, applies in enumerate(self.applies) if applies]
        guarantees = [member.guarantee for member in members]
        self.judge = Judge(self.relation, guarantees, self.senders, limits.messages, limits.ignored)
        self.names = [group.names[at] for at in self.addresses]
        numbers = range(1, limits.messages + 1)
        self.labels = [f"{self.names[slot].lower()}{n}" for slot in self.senders for n in numbers]
        self.cache = TransitionCache(members, self.labels, group.timing)
        self.initial = tuple(self.cache.snapshots(member.snapshot()) for member in members)
        self.groups: Interner[tuple[int, ...]] = Interner()
        self.flights: Interner[tuple[int, ...]] = Interner()
        self.records: Interner[Record] = Interner()
        self.parents: dict[int, tuple[int, Move] | None] = {}
        """Predecessor and action that first led to each state."""
        self.transitions = 0
        self.moves = Moves(group, limits, self.cache, self.judge)
        self.needs_time = any(g.needs_time for g in guarantees)
        self.epilogue: list[Move] = []
        """Actions after the last state, as time runs to the end."""
        self.ended: set[int] = set()
        """States without a failure as time runs to the end."""
        self.steps_left: dict[int, int] = {}
        """Steps of time until all messages are delivered, by state."""

    def search(self, progress: Callable[[int], None] | None = None) -> Exploration:
        """Visit every state, nearest first."""
        level = [self.start()]
        self.parents = {level[0]: None}
        rounds = 0
        while level and len(self.parents) <= self.limits.max_states:
            following: list[int] = []
            rounds += 1
            for state in level:
                for move, successor, found in self.successors(state):
                    self.transitions += 1
                    if found is None and rounds > MOST_MOVES:
                        found = Finding(ENDLESS, move.slot, move.label)
                    if found is not None:
                        path = self.path(state, move) + self.epilogue
                        return self._result(self._explain(found, path))
                    if successor not in self.parents:
                        self.parents[successor] = (state, move)
                        following.append(successor)
            if progress is not None:
                progress(len(self.parents))
            level = following
        return self._result(None, complete=not level)

    def _result(self, failure: Failure | None, *, complete: bool = False) -> Exploration:
        limits = self.limits
        group = self.group
        words = f"{group.size()}, {counted(limits.messages, 'message')}"
        words += f", {limits.duplicates} duplicated" if limits.duplicates else ""
        words += f", {limits.losses} lost" if limits.losses else ""
        if limits.script:
            words += f", sent by {' '.join(group.names[at] for at in limits.script)}"
        if self.moves.timed:
            words += f" within {seconds_text(self.moves.until_ns)} s"
            words += ", minimum or maximum delays" if limits.extremes else ""
        clocks = group.clocks() or (RIGHT if self.moves.timed else "")
        states, bounds = len(self.parents), group.timing.bounds
        steps = pace(bounds) if bounds is not None else ""
        return Exploration(words, states, self.transitions, complete, failure, clocks, steps)

    def start(self) -> int:
        """Return the initial state."""
        nothing = (0,) * len(self.addresses)
        labels = len(self.labels)
        has_topics = self.relation is Relation.BY_TOPIC
        shared = (0,) * (labels * len(nothing)) if has_topics else ()
        topics = (0,) * labels if has_topics else ()
        record = Record(
            nothing, nothing, (0,) * labels, nothing, shared, topics,
            self.limits.duplicates, self.limits.losses,
        )  # fmt: skip
        if self.relation is Relation.TOTAL:
            record = record._replace(orders=((),) * len(nothing))
        return self._pack(StateParts(self.initial, (), record))

    def _pack(self, parts: StateParts) -> int:
        packed = self.groups(parts.group) << _FIELD | self.flights(parts.flight)
        return packed << _FIELD | self.records(parts.record)

    def unpack(self, state: int) -> StateParts:
        """Return the parts of a state."""
        return StateParts(
            self.groups.value[state >> 2 * _FIELD],
            self.flights.value[state >> _FIELD & _MASK],
            self.records.value[state & _MASK],
        )

    def successors(self, state: int) -> Iterator[Successor]:
        """Yield every enabled action, the next state, and the finding."""
        parts = self.unpack(state)
        for move in self.moves.possible(parts):
            after, found = self._made(parts, move)
            state = self._pack(after)
            self.epilogue = []
            if found is None and state not in self.ended:
                found = self._ended(after)
                if found is None:
                    self.ended.add(state)
            yield move, state, found

    def _made(self, parts: StateParts, move: Move) -> tuple[StateParts, Finding | None]:
        if move.passes:
            return self._pass(parts, move.until_ns)
        if move.copy < 0:
            return self._send(parts, move)
        flight, record = list(parts.flight), parts.record
        if move.stays:
            record = record._replace(duplicates=record.duplicates - 1)
        else:
            flight.remove(move.copy)
        if move.lost:
            record = record._replace(losses=record.losses - 1)
            return parts._replace(flight=tuple(flight), record=record), None
        return self._arrive(StateParts(parts.group, tuple(flight), record), move)

    def _send(self, parts: StateParts, move: Move) -> tuple[StateParts, Finding | None]:
        group, flight, record = parts
        slot, label = move.slot, move.label
        reaction = self.cache.send(
            slot, group[slot], label, move.after, move.audience, record.now_ns
        )
        past = self.judge.past(record, slot, move.after)
        pasts = _replaced(record.pasts, label, past)
        addressed, done = list(record.addressed), record.done
        for target in self.moves.targets(slot, move.audience):
            addressed[target] |= 1 << label
        if self.relation is Relation.TOTAL:
            addressed[slot] |= 1 << label
        else:
            done = _replaced(done, slot, done[slot] | 1 << label)
        record = record._replace(done=done, pasts=pasts, addressed=tuple(addressed))
        if move.audience.topics:
            record = self._published(record, label, move.audience.topics)
        return self._settle(StateParts(group, flight, record), move, reaction)

    def _published(self, record: Record, label: int, topics: Sequence[str]) -> Record:
        """Record the topics of a label and, by receiver, earlier labels with common topics."""
        known = self.group.subscriptions
        bit = {topic: 1 << number for number, topic in enumerate(self.group.topics())}
        mine = sum(bit[topic] for topic in topics)
        shared = list(record.shared)
        for slot, at in enumerate(self.addresses):
            wanted = mine & sum(bit[topic] for topic in known.get(at, ()))
            with_it = (k for k, theirs in enumerate(record.topics) if theirs & wanted)
            shared[slot * len(self.labels) + label] = sum(1 << k for k in with_it)
        topics_of = _replaced(record.topics, label, mine)
        return record._replace(topics=topics_of, shared=tuple(shared))

    def _arrive(self, parts: StateParts, move: Move) -> tuple[StateParts, Finding | None]:
        group, flight, record = parts
        slot, label = move.slot, move.label
        if label >= 0 and self.applies[slot]:
            arrived = record.arrived[slot] | 1 << label
            record = record._replace(arrived=_replaced(record.arrived, slot, arrived))
        reaction = self.cache.receive(slot, group[slot], move.copy, record.now_ns)
        return self._settle(StateParts(group, flight, record), move, reaction)

    def _pass(self, parts: StateParts, now_ns: int) -> tuple[StateParts, Finding | None]:
        parts = parts._replace(record=parts.record._replace(now_ns=now_ns))
        for slot in range(len(self.addresses)):
            reaction = self.cache.tick(slot, parts.group[slot], now_ns)
            parts, found = self._settle(parts, Move(slot, -1), reaction)
            if found is not None:
                return parts, found
        return parts, None

    def _settle(
        self, parts: StateParts, move: Move, reaction: Reaction
    ) -> tuple[StateParts, Finding | None]:
        group, flight, record = parts
        slot = move.slot
        if reaction.error:
            return parts, Finding(reaction.what, slot, move.label, detail=reaction.error)
        if reaction.copies:
            flight = tuple(sorted(flight + reaction.copies))
            if len(flight) > MOST_IN_FLIGHT:
                return parts, Finding(ENDLESS, slot, move.label)
        found = None
        if reaction.handed or self.applies[slot]:
            done, found = self.judge.deliveries(record, slot, reaction.handed)
            if done != record.done[slot]:
                record = record._replace(done=_replaced(record.done, slot, done))
            if found is None:
                record, found = self.judge.ordered(record, slot, reaction.handed)
        if found is None and reaction.claims:
            found = self._disproved(record, slot, reaction)
        if found is None and not flight and not self.needs_time:
            found = self.judge.stuck(record)
        group = _replaced(group, slot, reaction.snapshot)
        return StateParts(group, flight, record), found

    def _disproved(self, record: Record, slot: int, reaction: Reaction) -> Finding | None:
        if CLAIMED in self.limits.ignored:
            return None
        for claim, about, label in reaction.claims:
            if label >= 0 and not self.judge.is_sent(record, label):
                label = -1
            of_itself = claim.about == claim.sender
            if label >= 0 and (of_itself or record.done[about] >> label & 1):
                continue
            words = claim.words(self.group.names, self.labels[label] if label >= 0 else "")
            return Finding(CLAIMED, slot, label, detail=words)
        return None

    def _ended(self, parts: StateParts) -> Finding | None:
        """Let time run to the end in groups with clocks; return a failure on the way.

        The continuation depends on the state alone, so states of earlier continuations are skipped.
        """
        if not self.moves.at_end(parts):
            return None
        passed: list[int] = []
        shown = 0
        for step in range(STEPS_AT_END + DOUBLED_AT_END):
            if not any(self.judge.left(parts.record, slot) for slot in self.senders):
                self._note_end(passed, 0)
                return None
            if step < STEPS_AT_END:
                state = self._pack(parts)
                more = self.steps_left.get(state, STEPS_AT_END)
                if step + more < STEPS_AT_END:
                    self._note_end(passed, more)
                    return None
                passed.append(state)
            if step == SHOWN_AT_END:
                shown = len(self.epilogue)
            times = 2 ** max(0, step - STEPS_AT_END + 1)
            parts, found = self._step_at_end(parts, times)
            if found is not None:
                return found
        del self.epilogue[shown:]
        return self.judge.stuck(parts.record)

    def _note_end(self, passed: Sequence[int], more: int) -> None:
        """Record the number of remaining steps of the passed states, if it is small."""
        if len(passed) + more < STEPS_AT_END:
            for number, state in enumerate(reversed(passed), 1):
                self.steps_left[state] = more + number

    def _step_at_end(self, parts: StateParts, times: int) -> tuple[StateParts, Finding | None]:
        while (move := self.moves.overdue(parts)) is not None:
            parts, found = self._go_on(parts, move)
            if found is not None:
                return parts, found
        return self._go_on(parts, self.moves.passing(parts, times))

    def _go_on(self, parts: StateParts, move: Move) -> tuple[StateParts, Finding | None]:
        self.epilogue.append(move)
        return self._made(parts, move)

    def path(self, state: int, last: Move) -> list[Move]:
        """Return the actions from the initial state through a state to the last action."""
        moves = [last]
        link = self.parents[state]
        while link is not None:
            moves.append(link[1])
            link = self.parents[link[0]]
        return moves[::-1]

    def actions(self, moves: Sequence[Move]) -> tuple[Action, ...]:
        """Convert a path to actions of a scenario.

        A copy that stays in flight arrives, and later arrives again. Scenarios take the oldest copy
        of a label, so older messages with the same label arrive first.
        """
        run = JudgedRun(self.group)
        stayed: dict[int, int] = {}
        for move in moves:
            if move.passes:
                run.take(tick_of(move.until_ns - run.world.now_ns))
                continue
            at = self.names[move.slot]
            if move.copy < 0:
                after = (self.labels[move.after],) if move.after >= 0 else ()
                to = tuple(self.group.names[target] for target in move.audience.to)
                label = self.labels[move.label]
                run.take(Send(at, label, after, to, move.audience.topics))
                continue
            _, target, message, _ = self.cache.copies.value[move.copy]
            if move.lost:
                run.take(Lose(at, str(message.payload)))
                continue
            label = str(message.payload)
            again = stayed.get(move.copy, 0)
            stayed[move.copy] = again + 1 if move.stays else max(again - 1, 0)
            waiting = [copy.message for copy in run.world.in_flight if copy.target == target]
            named = [m for m in waiting if m.payload == label]
            older = named.index(message) if message in named else 0
            for _ in range(older):
                run.take(Arrive(at, label))
            if again or message in named or move.label >= 0:
                run.take(Arrive(at, label, again > 0))
        return tuple(run.actions)

    def _explain(self, found: Finding, moves: Sequence[Move]) -> Failure:
        failure = Failure.of(
            self.group,
            found.what,
            self.names[found.slot],
            self.labels[found.label] if found.label >= 0 else "",
            missing=(self.labels[label] for label in bits(found.missing)),
            detail=found.detail,
            actions=self.actions(moves),
        ).begun()
        return fold_ticks(self.group, failure, replay) if self.moves.timed else failure


def _replaced(values: tuple[int, ...], position: int, value: int) -> tuple[int, ...]:
    return (*values[:position], value, *values[position + 1 :])
