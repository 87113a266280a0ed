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
from antecede.formatting import counted
from antecede.lab.check.checked_run import JudgedRun, replay
from antecede.lab.check.harness.group_under_test import FLAT_NAMES, GroupUnderTest
from antecede.lab.check.harness.timing import InFlight, delays_ns, step_ns
from antecede.lab.check.results import ENDLESS, HUNG, SNAPSHOT, Failure, Suite
from antecede.lab.check.scenario.actions import (
    Action,
    Arrive,
    Join,
    Leave,
    Lose,
    Send,
    Tick,
    tick_of,
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
    """Replays to shrink a failing run."""


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
    words = f"{group.describe()}, {counted(plan.messages, 'message')}, seed {seed}"
    for number in range(plan.runs):
        run = play(group, plan, f"{seed}/{number}")
        failure = run.failure or run.judge() or (_twin(run) if plan.twins else None)
        deliveries += sum(len(labels) for labels in run.world.covered.values())
        if failure is not None and failure.what not in ignored:
            return Suite(words, number + 1, deliveries, shorten(group, failure, plan, seed))
        if progress is not None:
            progress(number + 1)
    return Suite(words, plan.runs, deliveries, None)


def play(group: GroupUnderTest, plan: SuitePlan, seed: str) -> JudgedRun:
    """Return one random run seeded by `seed`, not yet checked."""
    return _Adversary(group, plan, random.Random(seed)).play()


def _twin(run: JudgedRun) -> Failure | None:
    twin = JudgedRun(run.group, restoring=True)
    failure = twin.take_all(run.actions)
    if failure is None and twin.world.steps == run.world.steps:
        return None
    if failure is not None:
        at, detail = failure.at, failure.sentence()
    else:
        pairs = zip(run.world.steps, twin.world.steps, strict=False)
        first = next(((a, b) for a, b in pairs if a != b), None)
        at = run.names[first[0].at] if first else "all members"
        detail = f"{first[0]} became {first[1]}" if first else "one run has more steps"
    return Failure.of(run.group, SNAPSHOT, at, detail=detail, actions=run.actions)


def replay_twice(group: GroupUnderTest, actions: Sequence[Action]) -> Failure | None:
    """Return the failure of `replay`, or of a second run with snapshots and restores."""
    run = JudgedRun(group)
    return run.take_all(actions) or _twin(run)


def shorten(
    group: GroupUnderTest,
    failure: Failure,
    plan: SuitePlan = SuitePlan(),  # noqa: B008 (immutable)
    seed: int = 0,
) -> Failure:
    """Return the smallest run found that fails in the same way (`shrink`).

    Random runs of smaller groups follow, one per 50 replays for each size.
    """
    twins = failure.what == SNAPSHOT
    again = replay_twice if twins else replay
    best = shrink(group, failure, again, plan.replays)
    if failure.what in (ENDLESS, HUNG):
        return best.failure
    for smaller in _smaller_groups(group, best.size[0]):
        for number in range(min(plan.runs, plan.replays // 50)):
            run = play(smaller, plan, f"{seed}/{number}")
            other = run.failure or run.judge() or (_twin(run) if twins else None)
            if other is None or other.what != failure.what:
                continue
            found = shrink(smaller, other, again, plan.replays)
            if found.size < best.size:
                return found.failure
            break
    return best.failure


def _smaller_groups(group: GroupUnderTest, members: int) -> list[GroupUnderTest]:
    found: list[GroupUnderTest] = []
    while not group.internal and len(group.names) > 2:
        fewer = group.without(group.names[max(group.names)])
        if fewer is None:
            break
        group = fewer.group
        found.append(group)
    return [group for group in reversed(found) if len(group.names) < members]


class _Adversary:
    def __init__(self, group: GroupUnderTest, plan: SuitePlan, rng: random.Random) -> None:
        self.group, self.plan, self.rng = group, plan, rng
        self.run = JudgedRun(group)
        guarantees = self.run.guarantees.values()
        self.joins = group.newcomer is not None and all(g.joins for g in guarantees)
        self.leaves = group.newcomer is not None and all(g.leaves for g in guarantees)
        self.losses = plan.losses if all(g.survives_loss for g in guarantees) else 0.0
        self.timed = group.timing.bounds is not None
        self.needs_time = any(g.needs_time for g in guarantees)
        self.sent = dict.fromkeys(group.names.values(), 0)
        self.left = plan.messages
        self.coming: list[Callable[[], Action | None]] = []
        """Next actions, all at the same time."""
        # Overtaking along long chains of causes needs these, also both at once.
        self.newest_first = rng.random() < 0.3
        self.one_to_one = rng.random() < 0.3

    def play(self) -> JudgedRun:
        while self.run.failure is None and (self.left or self._under_way()):
            chosen = self._choose()
            self.run.take(chosen)
            if isinstance(chosen, Send) and chosen.label not in self.run.said:
                # A joining member that must wait has not sent it.
                self.left += 1
                self.sent[chosen.at] -= 1
        if self.losses or self.needs_time:
            self._wait()
            return self.run
        while self.run.failure is None and (action := self._pass_on()) is not None:
            self.run.take(action)  # control messages only
        return self.run

    def _under_way(self) -> bool:
        members = self.run.world.members
        return any(
            not members[copy.target].is_note(copy.message) for copy in self.run.world.in_flight
        )

    def _choose(self) -> Action:
        rng, in_flight = self.rng, self.run.world.in_flight
        while self.coming:
            if action := self.coming.pop(0)():
                return action
        if self.left and (not in_flight or rng.random() < 0.25):
            return self._send()
        if rng.random() < self.plan.changes:
            return self._change()
        if self.run.arrived and rng.random() < self.plan.duplicates:
            return self._again(rng.choice(self.run.arrived))
        if in_flight and rng.random() < self.losses:
            copy = rng.choice(in_flight)
            return Lose(self._name(copy.target), str(copy.message.payload))
        return self._pass_on() or self._tick()

    def _pass_on(self) -> Action | None:
        """Return the arrival of a copy that may arrive now; None: time should pass first."""
        world = self.run.world
        ready = [copy for copy in world.in_flight if world.may_arrive(copy)]
        if not ready or (self.timed and self._may_pass() and self.rng.random() < 0.3):
            return None
        newest = self.newest_first and self.rng.random() < 0.8
        copy = ready[-1] if newest else self.rng.choice(ready)
        return Arrive(self._name(copy.target), str(copy.message.payload))

    def _may_pass(self) -> bool:
        return self.run.world.may_pass(self._tick().seconds)

    def _tick(self) -> Tick:
        """Return the next step of time; unequal steps end at a possible arrival."""
        bounds, world = self.group.timing.bounds, self.run.world
        if bounds is None:
            return Tick(1.0)
        if step := step_ns(bounds):
            return tick_of(step)
        dues = [world.timing.due_ns(copy) - world.now_ns for copy in world.in_flight]
        nearest = min((due for due in dues if due > 0), default=delays_ns(bounds)[-1])
        early = (world.timing.from_ns(copy) - world.now_ns for copy in world.in_flight)
        steps = sorted({nearest, *(one for one in early if 0 < one < nearest)})
        return tick_of(self.rng.choice(steps))

    def _again(self, copy: InFlight) -> Action:
        """Let a copy arrive again, in flat groups also at its sender."""
        label = str(copy.message.payload)
        back = copy.source in self.run.world.members and not self.group.internal
        at = copy.source if back and self.rng.random() < 0.2 else copy.target
        return Arrive(self._name(at), label, again=True)

    def _name(self, at: int) -> str:
        return self.run.names[at]

    def _present(self) -> list[int]:
        return [at for at in self.run.guarantees if at in self.run.world.members]

    def _send(self, by: int | None = None) -> Action:
        at = self.rng.choice(self._present()) if by is None else by
        name = self._name(at)
        self.left -= 1
        self.sent[name] = self.sent.get(name, 0) + 1
        after: list[str] = []
        if self.run.relation is Relation.BY_REPLY and self.rng.random() < 0.8:
            known = sorted(self.run.world.covered[at])
            after = self.rng.sample(known, min(len(known), self.rng.randint(1, self.plan.parents)))
        label = f"{name.lower()}{self.sent[name]}"
        return Send(name, label, tuple(after), self._to(at), self._topics())

    def _to(self, at: int) -> tuple[str, ...]:
        if self.run.world.members[at].addressing is not Addressing.MEMBERS:
            return ()
        others = [self._name(other) for other in self._present() if other != at]
        if not others or (not self.one_to_one and self.rng.random() < 0.3):
            return ()
        most = 1 if self.one_to_one or self.rng.random() < 0.5 else len(others)
        return tuple(sorted(self.rng.sample(others, self.rng.randint(1, most))))

    def _topics(self) -> tuple[str, ...]:
        known = self.group.topics()
        if not known:
            return ()
        return tuple(sorted(self.rng.sample(known, self.rng.randint(1, len(known)))))

    def _change(self) -> Action:
        present = self._present()
        free = [n for n in FLAT_NAMES if n not in self.run.names.values()]
        passing = self._tick() if self.timed else Tick(self.rng.choice((0.1, 1.0, 10.0)))
        changes: list[Callable[[], Action]] = [lambda: passing]
        if self.joins and free and len(present) < 6:
            sponsor = self.rng.choice(present)
            changes.append(lambda: self._join(free[0], sponsor))
        if self.leaves and len(present) > 2:
            leaving = self._name(self.rng.choice(present))
            changes.append(lambda: Leave(leaving))
        return self.rng.choice(changes)()

    def _join(self, newcomer: str, sponsor: int) -> Action:
        if self.timed and self.left > 1 and len(self.run.actions) % 2:
            return self._answer_at_once(newcomer, sponsor)
        return Join(newcomer, self._name(sponsor))

    def _answer_at_once(self, newcomer: str, sponsor: int) -> Action:
        """Let a sponsor send, and the joining member reply at the same time.

        An order by clocks may separate the two only by the minimum delay, which has not passed.
        """

        def answer() -> Action | None:
            names = self.run.names.items()
            at = next((at for at, name in names if name == newcomer), None)
            return None if at is None or not self.left else self._send(at)

        self.coming = [lambda: Join(newcomer, self._name(sponsor)), answer]
        return self._send(sponsor)

    def _wait(self) -> None:
        for _ in range(TIMED_ROUNDS if self.timed else ROUNDS):
            while (action := self._pass_on()) is not None and self.run.failure is None:
                self.run.take(action)
            if self.timed and not self.run.unfinished():
                return
            self.run.take(self._tick() if self.timed else Tick(LONG_S))
