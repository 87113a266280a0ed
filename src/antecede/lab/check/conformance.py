"""Conformance suite: random runs on an adversarial network, checked by the oracle.

As far as the guarantee allows, the network reorders, duplicates and loses copies, members join and
leave, and time passes. Clocks and delays keep the promised bounds, at their extremes. Each run is
repeated with snapshot and restore after every action. All messages pass the wire encoding. Failing
runs are shrunk (`shrink`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from antecede.core.protocols import Addressing, Relation
from antecede.formatting import pluralize
from antecede.lab.check.checked_run import JudgedRun, replay
from antecede.lab.check.harness.group_under_test import FLAT_NAMES, GroupUnderTest
from antecede.lab.check.harness.timing import InFlight, compute_step_ns, list_delays_ns
from antecede.lab.check.results import ENDLESS, SNAPSHOT_CHANGED, TIMED_OUT, Failure, Suite
from antecede.lab.check.scenario.actions import (
    Action,
    Arrive,
    Join,
    Leave,
    Lose,
    Send,
    Tick,
    make_tick,
)
from antecede.lab.check.shrink import shrink

LONG_S = 3600.0
ROUNDS = 20
TIMED_ROUNDS = 60


class SuitePlan(NamedTuple):
    """Sizes of a suite."""

    runs: int = 40
    messages: int = 12
    parents: int = 1
    duplicates: float = 0.1
    """Probability of a second copy."""
    changes: float = 0.12
    """Probability of a tick, join or leave."""
    losses: float = 0.15
    """Probability of a loss, if the protocol survives loss."""
    twins: bool = True
    replays: int = 5_000


def conform(
    group: GroupUnderTest,
    plan: SuitePlan,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
    *,
    ignored: Collection[str] = (),
) -> Suite:
    """Run the suite seeded by `seed`; stop at the first failure whose kind is not `ignored`."""
    deliveries = 0
    words = f"{group.describe()}, {pluralize(plan.messages, 'message')}, seed {seed}"
    for number in range(plan.runs):
        run = play(group, plan, f"{seed}/{number}")
        failure = run.failure or run.check() or (_compare_with_twin(run) if plan.twins else None)
        deliveries += sum(len(labels) for labels in run.world.covered.values())
        if failure is not None and failure.what not in ignored:
            return Suite(words, number + 1, deliveries, shrink_run(group, failure, plan, seed))
        if progress is not None:
            progress(number + 1)
    return Suite(words, plan.runs, deliveries, None)


def play(group: GroupUnderTest, plan: SuitePlan, seed: str) -> JudgedRun:
    """Return one random run seeded by `seed`, not yet checked."""
    return _Adversary(group, plan, random.Random(seed)).run()


def _compare_with_twin(run: JudgedRun) -> Failure | None:
    twin = JudgedRun(run.group, restoring=True)
    failure = twin.run_actions(run.actions)
    if failure is None and twin.world.steps == run.world.steps:
        return None
    if failure is not None:
        at, detail = failure.at, failure.sentence()
    else:
        pairs = zip(run.world.steps, twin.world.steps, strict=False)
        first = next(((a, b) for a, b in pairs if a != b), None)
        at = run.names[first[0].at] if first else "all members"
        detail = f"{first[0]} became {first[1]}" if first else "one run has more steps"
    return Failure.from_group(run.group, SNAPSHOT_CHANGED, at, detail=detail, actions=run.actions)


def replay_with_twin(group: GroupUnderTest, actions: Sequence[Action]) -> Failure | None:
    """Return the failure of `replay`, or of a second run with snapshots and restores."""
    run = JudgedRun(group)
    return run.run_actions(actions) or _compare_with_twin(run)


def shrink_run(
    group: GroupUnderTest,
    failure: Failure,
    plan: SuitePlan = SuitePlan(),  # noqa: B008 (immutable)
    seed: int = 0,
) -> Failure:
    """Return the smallest run found that fails in the same way, also in smaller groups."""
    twins = failure.what == SNAPSHOT_CHANGED
    again = replay_with_twin if twins else replay
    best = shrink(group, failure, again, plan.replays)
    if failure.what in (ENDLESS, TIMED_OUT):
        return best.failure
    for smaller in _list_smaller_groups(group, best.size[0]):
        for number in range(min(plan.runs, plan.replays // 50)):
            run = play(smaller, plan, f"{seed}/{number}")
            other = run.failure or run.check() or (_compare_with_twin(run) if twins else None)
            if other is None or other.what != failure.what:
                continue
            found = shrink(smaller, other, again, plan.replays)
            if found.size < best.size:
                return found.failure
            break
    return best.failure


def _list_smaller_groups(group: GroupUnderTest, members: int) -> list[GroupUnderTest]:
    found: list[GroupUnderTest] = []
    while not group.internal and len(group.names) > 2:
        fewer = group.remove_member(group.names[max(group.names)])
        if fewer is None:
            break
        group = fewer.group
        found.append(group)
    return [group for group in reversed(found) if len(group.names) < members]


class _Adversary:
    def __init__(self, group: GroupUnderTest, plan: SuitePlan, rng: random.Random) -> None:
        self.group, self.plan, self.rng = group, plan, rng
        self.checked_run = JudgedRun(group)
        guarantees = self.checked_run.guarantees.values()
        self.joins = group.make_member is not None and all(g.joins for g in guarantees)
        self.leaves = group.make_member is not None and all(g.leaves for g in guarantees)
        self.losses = plan.losses if all(g.survives_loss for g in guarantees) else 0.0
        self.timed = group.timing.bounds is not None
        self.needs_time = any(g.needs_time for g in guarantees)
        self.sent = dict.fromkeys(group.names.values(), 0)
        self.messages_left = plan.messages
        self.queued: list[Callable[[], Action | None]] = []
        # Overtaking along long chains of causes needs these, also both at once.
        self.newest_first = rng.random() < 0.3
        self.one_to_one = rng.random() < 0.3

    def run(self) -> JudgedRun:
        while self.checked_run.failure is None and (self.messages_left or self._has_in_flight()):
            chosen = self._choose_action()
            self.checked_run.take(chosen)
            if isinstance(chosen, Send) and chosen.label not in self.checked_run.sent_labels:
                # A joining member that must wait has not sent it.
                self.messages_left += 1
                self.sent[chosen.at] -= 1
        if self.losses or self.needs_time:
            self._drain()
            return self.checked_run
        while self.checked_run.failure is None and (action := self._choose_arrival()) is not None:
            self.checked_run.take(action)  # control messages only
        return self.checked_run

    def _has_in_flight(self) -> bool:
        members = self.checked_run.world.members
        return any(
            not members[copy.target].is_control(copy.message)
            for copy in self.checked_run.world.in_flight
        )

    def _choose_action(self) -> Action:
        rng, in_flight = self.rng, self.checked_run.world.in_flight
        while self.queued:
            if action := self.queued.pop(0)():
                return action
        if self.messages_left and (not in_flight or rng.random() < 0.25):
            return self._choose_send()
        if rng.random() < self.plan.changes:
            return self._choose_change()
        if self.checked_run.arrived and rng.random() < self.plan.duplicates:
            return self._choose_duplicate(rng.choice(self.checked_run.arrived))
        if in_flight and rng.random() < self.losses:
            copy = rng.choice(in_flight)
            return Lose(self._get_name(copy.target), str(copy.message.payload))
        return self._choose_arrival() or self._choose_tick()

    def _choose_arrival(self) -> Action | None:
        """Return the arrival of a copy that may arrive now; None: time should pass first."""
        world = self.checked_run.world
        ready = [copy for copy in world.in_flight if world.can_arrive(copy)]
        if not ready or (self.timed and self._can_tick() and self.rng.random() < 0.3):
            return None
        newest = self.newest_first and self.rng.random() < 0.8
        copy = ready[-1] if newest else self.rng.choice(ready)
        return Arrive(self._get_name(copy.target), str(copy.message.payload))

    def _can_tick(self) -> bool:
        return self.checked_run.world.can_tick(self._choose_tick().seconds)

    def _choose_tick(self) -> Tick:
        """Return the next step of time; unequal steps end at a possible arrival."""
        bounds, world = self.group.timing.bounds, self.checked_run.world
        if bounds is None:
            return Tick(1.0)
        if step := compute_step_ns(bounds):
            return make_tick(step)
        dues = [world.timing.get_latest_ns(copy) - world.now_ns for copy in world.in_flight]
        nearest = min((due for due in dues if due > 0), default=list_delays_ns(bounds)[-1])
        early = (world.timing.get_earliest_ns(copy) - world.now_ns for copy in world.in_flight)
        steps = sorted({nearest, *(one for one in early if 0 < one < nearest)})
        return make_tick(self.rng.choice(steps))

    def _choose_duplicate(self, copy: InFlight) -> Action:
        label = str(copy.message.payload)
        back = copy.source in self.checked_run.world.members and not self.group.internal
        at = copy.source if back and self.rng.random() < 0.2 else copy.target
        return Arrive(self._get_name(at), label, again=True)

    def _get_name(self, at: int) -> str:
        return self.checked_run.names[at]

    def _list_present(self) -> list[int]:
        return [at for at in self.checked_run.guarantees if at in self.checked_run.world.members]

    def _choose_send(self, by: int | None = None) -> Action:
        at = self.rng.choice(self._list_present()) if by is None else by
        name = self._get_name(at)
        self.messages_left -= 1
        self.sent[name] = self.sent.get(name, 0) + 1
        after: list[str] = []
        if self.checked_run.relation is Relation.BY_REPLY and self.rng.random() < 0.8:
            known = sorted(self.checked_run.world.covered[at])
            after = self.rng.sample(known, min(len(known), self.rng.randint(1, self.plan.parents)))
        label = f"{name.lower()}{self.sent[name]}"
        return Send(name, label, tuple(after), self._choose_recipients(at), self._choose_topics())

    def _choose_recipients(self, at: int) -> tuple[str, ...]:
        if self.checked_run.world.members[at].addressing is not Addressing.MEMBERS:
            return ()
        others = [self._get_name(other) for other in self._list_present() if other != at]
        if not others or (not self.one_to_one and self.rng.random() < 0.3):
            return ()
        most = 1 if self.one_to_one or self.rng.random() < 0.5 else len(others)
        return tuple(sorted(self.rng.sample(others, self.rng.randint(1, most))))

    def _choose_topics(self) -> tuple[str, ...]:
        known = self.group.list_topics()
        if not known:
            return ()
        return tuple(sorted(self.rng.sample(known, self.rng.randint(1, len(known)))))

    def _choose_change(self) -> Action:
        present = self._list_present()
        free = [n for n in FLAT_NAMES if n not in self.checked_run.names.values()]
        passing = self._choose_tick() if self.timed else Tick(self.rng.choice((0.1, 1.0, 10.0)))
        changes: list[Callable[[], Action]] = [lambda: passing]
        if self.joins and free and len(present) < 6:
            sponsor = self.rng.choice(present)
            changes.append(lambda: self._choose_join(free[0], sponsor))
        if self.leaves and len(present) > 2:
            leaving = self._get_name(self.rng.choice(present))
            changes.append(lambda: Leave(leaving))
        return self.rng.choice(changes)()

    def _choose_join(self, newcomer: str, sponsor: int) -> Action:
        if self.timed and self.messages_left > 1 and len(self.checked_run.actions) % 2:
            return self._schedule_reply(newcomer, sponsor)
        return Join(newcomer, self._get_name(sponsor))

    def _schedule_reply(self, newcomer: str, sponsor: int) -> Action:
        """Let a sponsor send, and the joining member reply before the minimum delay has passed."""

        def answer() -> Action | None:
            names = self.checked_run.names.items()
            at = next((at for at, name in names if name == newcomer), None)
            return None if at is None or not self.messages_left else self._choose_send(at)

        self.queued = [lambda: Join(newcomer, self._get_name(sponsor)), answer]
        return self._choose_send(sponsor)

    def _drain(self) -> None:
        for _ in range(TIMED_ROUNDS if self.timed else ROUNDS):
            while (
                action := self._choose_arrival()
            ) is not None and self.checked_run.failure is None:
                self.checked_run.take(action)
            if self.timed and not self.checked_run.is_unfinished():
                return
            self.checked_run.take(self._choose_tick() if self.timed else Tick(LONG_S))
