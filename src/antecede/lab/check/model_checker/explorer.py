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
from antecede.formatting import pluralize
from antecede.lab.check.causal_past import iter_bits
from antecede.lab.check.checked_run import JudgedRun, replay
from antecede.lab.check.harness.group_under_test import GroupUnderTest
from antecede.lab.check.harness.timing import describe_steps
from antecede.lab.check.model_checker.actions import (
    EnabledActions,
    SearchAction,
    SearchLimits,
    StateParts,
)
from antecede.lab.check.model_checker.invariants import Checker, CheckerFinding, CheckerRecord
from antecede.lab.check.model_checker.transitions import Interner, Reaction, TransitionCache
from antecede.lab.check.results import ENDLESS, EXACT_CLOCKS, WRONG_CLAIM, Exploration, Failure
from antecede.lab.check.scenario.actions import Action, Arrive, Lose, Send, make_tick
from antecede.lab.check.shrink import fold_ticks

__all__ = ["Explorer", "SearchAction", "SearchLimits", "explore"]

STEPS_AT_END, SHOWN_AT_END = 40, 10
"""Groups with clocks: idle steps until a held message counts as stuck, and steps shown."""
DOUBLED_AT_END = 24
MAX_ACTIONS, MAX_IN_FLIGHT = 200, 200
"""Consecutive actions and copies in flight above which the run counts as endless."""

_FIELD = 24
_MASK = (1 << _FIELD) - 1


Successor: TypeAlias = tuple[SearchAction, int, CheckerFinding | None]


def explore(
    group: GroupUnderTest, limits: SearchLimits, progress: Callable[[int], None] | None = None
) -> Exploration:
    """Search every interleaving within limits; `progress` receives the number of states."""
    return Explorer(group, limits).search(progress)


class Explorer:
    """One search with its states; `explore` is the usual entry."""

    def __init__(self, group: GroupUnderTest, limits: SearchLimits) -> None:
        self.group, self.limits = group, limits
        members_by_address = group.make()
        self.addresses = tuple(members_by_address)
        members = tuple(members_by_address.values())
        self.relation = relation_of(members_by_address)
        self.has_application = [member.application for member in members]
        self.senders = [slot for slot, applies in enumerate(self.has_application) if applies]
        guarantees = [member.guarantee for member in members]
        self.checker = Checker(
            self.relation, guarantees, self.senders, limits.messages, limits.ignored
        )
        self.names = [group.names[at] for at in self.addresses]
        numbers = range(1, limits.messages + 1)
        self.labels = [f"{self.names[slot].lower()}{n}" for slot in self.senders for n in numbers]
        self.cache = TransitionCache(members, self.labels, group.timing)
        self.initial = tuple(self.cache.snapshots(member.snapshot()) for member in members)
        self.groups: Interner[tuple[int, ...]] = Interner()
        self.flights: Interner[tuple[int, ...]] = Interner()
        self.records: Interner[CheckerRecord] = Interner()
        self.parents: dict[int, tuple[int, SearchAction] | None] = {}
        self.transitions = 0
        self.enabled = EnabledActions(group, limits, self.cache, self.checker)
        self.needs_time = any(g.needs_time for g in guarantees)
        self.epilogue: list[SearchAction] = []
        """Actions after the last state, as time runs to the end."""
        self.checked_ends: set[int] = set()
        """States without a failure as time runs to the end."""
        self.steps_left: dict[int, int] = {}

    def search(self, progress: Callable[[int], None] | None = None) -> Exploration:
        """Visit every state, nearest first."""
        level = [self.make_start_state()]
        self.parents = {level[0]: None}
        rounds = 0
        while level and len(self.parents) <= self.limits.max_states:
            following: list[int] = []
            rounds += 1
            for state in level:
                for action, successor, finding in self.list_successors(state):
                    self.transitions += 1
                    if finding is None and rounds > MAX_ACTIONS:
                        finding = CheckerFinding(ENDLESS, action.slot, action.label)
                    if finding is not None:
                        path = self.find_path(state, action) + self.epilogue
                        return self._make_result(self._make_failure(finding, path))
                    if successor not in self.parents:
                        self.parents[successor] = (state, action)
                        following.append(successor)
            if progress is not None:
                progress(len(self.parents))
            level = following
        return self._make_result(None, complete=not level)

    def _make_result(self, failure: Failure | None, *, complete: bool = False) -> Exploration:
        limits = self.limits
        group = self.group
        words = f"{group.describe_size()}, {pluralize(limits.messages, 'message')}"
        words += f", {limits.duplicates} duplicated" if limits.duplicates else ""
        words += f", {limits.losses} lost" if limits.losses else ""
        if limits.senders:
            words += f", sent by {' '.join(group.names[at] for at in limits.senders)}"
        if self.enabled.timed:
            words += f" within {seconds_text(self.enabled.until_ns)} s"
            words += ", minimum or maximum delays" if limits.extremes else ""
        clocks = group.describe_clocks() or (EXACT_CLOCKS if self.enabled.timed else "")
        states, bounds = len(self.parents), group.timing.bounds
        steps = describe_steps(bounds) if bounds is not None else ""
        return Exploration(words, states, self.transitions, complete, failure, clocks, steps)

    def make_start_state(self) -> int:
        """Return the initial state."""
        nothing = (0,) * len(self.addresses)
        labels = len(self.labels)
        has_topics = self.relation is Relation.BY_TOPIC
        shared = (0,) * (labels * len(nothing)) if has_topics else ()
        topics = (0,) * labels if has_topics else ()
        record = CheckerRecord(
            nothing, nothing, (0,) * labels, nothing, shared, topics,
            self.limits.duplicates, self.limits.losses,
        )  # fmt: skip
        if self.relation is Relation.TOTAL:
            record = record._replace(orders=((),) * len(nothing))
        return self._pack(StateParts(self.initial, (), record))

    def _pack(self, parts: StateParts) -> int:
        packed = self.groups(parts.group) << _FIELD | self.flights(parts.in_flight)
        return packed << _FIELD | self.records(parts.record)

    def unpack(self, state: int) -> StateParts:
        """Return the parts of a state."""
        return StateParts(
            self.groups.value[state >> 2 * _FIELD],
            self.flights.value[state >> _FIELD & _MASK],
            self.records.value[state & _MASK],
        )

    def list_successors(self, state: int) -> Iterator[Successor]:
        """Yield every enabled action, the next state, and the finding."""
        parts = self.unpack(state)
        for action in self.enabled.list_enabled(parts):
            after, finding = self._apply(parts, action)
            state = self._pack(after)
            self.epilogue = []
            if finding is None and state not in self.checked_ends:
                finding = self._run_to_end(after)
                if finding is None:
                    self.checked_ends.add(state)
            yield action, state, finding

    def _apply(
        self, parts: StateParts, action: SearchAction
    ) -> tuple[StateParts, CheckerFinding | None]:
        if action.is_tick:
            return self._tick(parts, action.until_ns)
        if action.copy < 0:
            return self._send(parts, action)
        flight, record = list(parts.in_flight), parts.record
        if action.keeps_copy:
            record = record._replace(duplicates=record.duplicates - 1)
        else:
            flight.remove(action.copy)
        if action.is_loss:
            record = record._replace(losses=record.losses - 1)
            return parts._replace(in_flight=tuple(flight), record=record), None
        return self._arrive(StateParts(parts.group, tuple(flight), record), action)

    def _send(
        self, parts: StateParts, action: SearchAction
    ) -> tuple[StateParts, CheckerFinding | None]:
        group, flight, record = parts
        slot, label = action.slot, action.label
        reaction = self.cache.send(
            slot, group[slot], label, action.after, action.recipients, record.now_ns
        )
        past = self.checker.compute_past(record, slot, action.after)
        pasts = _replace_item(record.pasts, label, past)
        addressed, done = list(record.addressed), record.done
        for target in self.enabled.find_targets(slot, action.recipients):
            addressed[target] |= 1 << label
        if self.relation is Relation.TOTAL:
            addressed[slot] |= 1 << label
        else:
            done = _replace_item(done, slot, done[slot] | 1 << label)
        record = record._replace(done=done, pasts=pasts, addressed=tuple(addressed))
        if action.recipients.topics:
            record = self._record_topics(record, label, action.recipients.topics)
        return self._apply_reaction(StateParts(group, flight, record), action, reaction)

    def _record_topics(
        self, record: CheckerRecord, label: int, topics: Sequence[str]
    ) -> CheckerRecord:
        known = self.group.subscriptions
        bit = {topic: 1 << number for number, topic in enumerate(self.group.list_topics())}
        mine = sum(bit[topic] for topic in topics)
        shared = list(record.shared)
        for slot, at in enumerate(self.addresses):
            wanted = mine & sum(bit[topic] for topic in known.get(at, ()))
            with_it = (k for k, theirs in enumerate(record.topics) if theirs & wanted)
            shared[slot * len(self.labels) + label] = sum(1 << k for k in with_it)
        topics_of = _replace_item(record.topics, label, mine)
        return record._replace(topics=topics_of, shared=tuple(shared))

    def _arrive(
        self, parts: StateParts, action: SearchAction
    ) -> tuple[StateParts, CheckerFinding | None]:
        group, flight, record = parts
        slot, label = action.slot, action.label
        if label >= 0 and self.has_application[slot]:
            arrived = record.arrived[slot] | 1 << label
            record = record._replace(arrived=_replace_item(record.arrived, slot, arrived))
        reaction = self.cache.receive(slot, group[slot], action.copy, record.now_ns)
        return self._apply_reaction(StateParts(group, flight, record), action, reaction)

    def _tick(self, parts: StateParts, now_ns: int) -> tuple[StateParts, CheckerFinding | None]:
        parts = parts._replace(record=parts.record._replace(now_ns=now_ns))
        for slot in range(len(self.addresses)):
            reaction = self.cache.tick(slot, parts.group[slot], now_ns)
            parts, finding = self._apply_reaction(parts, SearchAction(slot, -1), reaction)
            if finding is not None:
                return parts, finding
        return parts, None

    def _apply_reaction(
        self, parts: StateParts, action: SearchAction, reaction: Reaction
    ) -> tuple[StateParts, CheckerFinding | None]:
        group, flight, record = parts
        slot = action.slot
        if reaction.error:
            return parts, CheckerFinding(reaction.kind, slot, action.label, detail=reaction.error)
        if reaction.copies:
            flight = tuple(sorted(flight + reaction.copies))
            if len(flight) > MAX_IN_FLIGHT:
                return parts, CheckerFinding(ENDLESS, slot, action.label)
        finding = None
        if reaction.delivered or self.has_application[slot]:
            done, finding = self.checker.check_deliveries(record, slot, reaction.delivered)
            if done != record.done[slot]:
                record = record._replace(done=_replace_item(record.done, slot, done))
            if finding is None:
                record, finding = self.checker.check_order(record, slot, reaction.delivered)
        if finding is None and reaction.claims:
            finding = self._check_claims(record, slot, reaction)
        if finding is None and not flight and not self.needs_time:
            finding = self.checker.find_stuck(record)
        group = _replace_item(group, slot, reaction.snapshot)
        return StateParts(group, flight, record), finding

    def _check_claims(
        self, record: CheckerRecord, slot: int, reaction: Reaction
    ) -> CheckerFinding | None:
        if WRONG_CLAIM in self.limits.ignored:
            return None
        for claim, about, label in reaction.claims:
            if label >= 0 and not self.checker.is_sent(record, label):
                label = -1
            of_itself = claim.about == claim.sender
            if label >= 0 and (of_itself or record.done[about] >> label & 1):
                continue
            words = claim.describe_error(self.group.names, self.labels[label] if label >= 0 else "")
            return CheckerFinding(WRONG_CLAIM, slot, label, detail=words)
        return None

    def _run_to_end(self, parts: StateParts) -> CheckerFinding | None:
        """Let time run to the end in groups with clocks; return a failure on the way."""
        if not self.enabled.is_at_end(parts):
            return None
        passed: list[int] = []
        shown = 0
        for step in range(STEPS_AT_END + DOUBLED_AT_END):
            if not any(
                self.checker.get_undelivered_labels(parts.record, slot) for slot in self.senders
            ):
                self._record_end(passed, 0)
                return None
            if step < STEPS_AT_END:
                state = self._pack(parts)
                more = self.steps_left.get(state, STEPS_AT_END)
                if step + more < STEPS_AT_END:
                    self._record_end(passed, more)
                    return None
                passed.append(state)
            if step == SHOWN_AT_END:
                shown = len(self.epilogue)
            times = 2 ** max(0, step - STEPS_AT_END + 1)
            parts, finding = self._step_at_end(parts, times)
            if finding is not None:
                return finding
        del self.epilogue[shown:]
        return self.checker.find_stuck(parts.record)

    def _record_end(self, passed: Sequence[int], more: int) -> None:
        if len(passed) + more < STEPS_AT_END:
            for number, state in enumerate(reversed(passed), 1):
                self.steps_left[state] = more + number

    def _step_at_end(
        self, parts: StateParts, times: int
    ) -> tuple[StateParts, CheckerFinding | None]:
        while (action := self.enabled.find_overdue(parts)) is not None:
            parts, finding = self._apply_epilogue(parts, action)
            if finding is not None:
                return parts, finding
        return self._apply_epilogue(parts, self.enabled.make_tick(parts, times))

    def _apply_epilogue(
        self, parts: StateParts, action: SearchAction
    ) -> tuple[StateParts, CheckerFinding | None]:
        self.epilogue.append(action)
        return self._apply(parts, action)

    def find_path(self, state: int, last: SearchAction) -> list[SearchAction]:
        """Return the actions from the initial state through a state to the last action."""
        moves = [last]
        link = self.parents[state]
        while link is not None:
            moves.append(link[1])
            link = self.parents[link[0]]
        return moves[::-1]

    def to_scenario_actions(self, path: Sequence[SearchAction]) -> tuple[Action, ...]:
        """Convert a path to actions of a scenario, which take the oldest copy of a label first."""
        run = JudgedRun(self.group)
        stayed: dict[int, int] = {}
        for action in path:
            if action.is_tick:
                run.take(make_tick(action.until_ns - run.world.now_ns))
                continue
            at = self.names[action.slot]
            if action.copy < 0:
                after = (self.labels[action.after],) if action.after >= 0 else ()
                to = tuple(self.group.names[target] for target in action.recipients.to)
                label = self.labels[action.label]
                run.take(Send(at, label, after, to, action.recipients.topics))
                continue
            _, target, message, _ = self.cache.copies.value[action.copy]
            if action.is_loss:
                run.take(Lose(at, str(message.payload)))
                continue
            label = str(message.payload)
            again = stayed.get(action.copy, 0)
            stayed[action.copy] = again + 1 if action.keeps_copy else max(again - 1, 0)
            waiting = [copy.message for copy in run.world.in_flight if copy.target == target]
            named = [m for m in waiting if m.payload == label]
            older = named.index(message) if message in named else 0
            for _ in range(older):
                run.take(Arrive(at, label))
            if again or message in named or action.label >= 0:
                run.take(Arrive(at, label, again > 0))
        return tuple(run.actions)

    def _make_failure(self, finding: CheckerFinding, path: Sequence[SearchAction]) -> Failure:
        failure = Failure.from_group(
            self.group,
            finding.kind,
            self.names[finding.slot],
            self.labels[finding.label] if finding.label >= 0 else "",
            missing=(self.labels[label] for label in iter_bits(finding.missing)),
            detail=finding.detail,
            actions=self.to_scenario_actions(path),
        ).truncate_endless()
        return fold_ticks(self.group, failure, replay) if self.enabled.timed else failure


def _replace_item(values: tuple[int, ...], position: int, value: int) -> tuple[int, ...]:
    return (*values[:position], value, *values[position + 1 :])
