"""The conformance suite: random runs on an adversarial network, judged by the oracle.

The network reorders freely, brings copies twice, and in flat groups back to their sender;
members join and leave, time passes, and copies are lost, each where the guarantee says that the
protocol lives with it. Where a protocol is promised bounds of clocks and delays, the network
keeps them, and clocks are off by as much as they may be. Every run is then repeated with
members put through snapshot and restore after every action: all steps must be the same. Every
message in flight goes through the wire encoding, if there is one. A failing run is shortened by
leaving out actions for as long as it still fails in the same way.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

from antecede.check.actions import Action, Arrive, Join, Leave, Lose, Send, Tick
from antecede.check.company import FLAT_NAMES, Company
from antecede.check.trial import Trial
from antecede.check.verdict import ENDLESS, HUNG, SNAPSHOT, Failure, Suite
from antecede.check.world import InFlight
from antecede.protocols.base import Addressing, Relation
from antecede.words import counted

LONG_S = 3600.0
ROUNDS = 20
TIMED_ROUNDS = 60
"""Seconds that pass at the end where clocks and channels have bounds."""


REPLAYS_OF_THE_HUNG = 6
"""Each takes as long as the limit of a call."""


class Plan(NamedTuple):
    """What a suite does."""

    runs: int = 40
    messages: int = 12
    parents: int = 1
    """Most messages that one message may answer."""
    duplicates: float = 0.1
    """Probability that a copy comes twice."""
    changes: float = 0.12
    """Probability of a tick, or a join or leave where members may come and go."""
    losses: float = 0.15
    """Probability that a copy is lost, where the protocol survives loss."""
    twins: bool = True
    """Repeat each run with snapshot and restore after every action."""
    replays: int = 5_000
    """Most replays to shorten a failing run; time passes at the end of each, where it counts."""


def conform(
    company: Company,
    plan: Plan,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Suite:
    """Run the suite with all randomness from `seed`; stop at the first failure."""
    deliveries = 0
    words = f"{company.describe()}, {counted(plan.messages, 'message')}, seed {seed}"
    for run in range(plan.runs):
        trial = play(company, plan, f"{seed}/{run}")
        failure = trial.failure or trial.judge() or (_twin(trial) if plan.twins else None)
        deliveries += sum(len(labels) for labels in trial.world.covered.values())
        if failure is not None:
            return Suite(words, run + 1, deliveries, shorten(company, failure, plan.replays))
        if progress is not None:
            progress(run + 1)
    return Suite(words, plan.runs, deliveries, None)


def play(company: Company, plan: Plan, seed: str) -> Trial:
    """Return one random run, its actions chosen by the seed; not yet judged."""
    return _Adversary(company, plan, random.Random(seed)).play()


def _twin(trial: Trial) -> Failure | None:
    """Repeat a run with snapshot and restore after every action; all steps must be the same."""
    twin = Trial(trial.company, restoring=True)
    failure = twin.run(trial.actions)
    if failure is None and twin.world.steps == trial.world.steps:
        return None
    if failure is not None:
        at, detail = failure.at, failure.sentence()
    else:
        pairs = zip(trial.world.steps, twin.world.steps, strict=False)
        first = next(((a, b) for a, b in pairs if a != b), None)
        at = trial.names[first[0].at] if first else "everybody"
        detail = f"{first[0]} became {first[1]}" if first else "one run has more steps"
    company, actions = trial.company, tuple(trial.actions)
    return Failure(SNAPSHOT, at, "", (), detail, actions, company.describe(), company.scene)


def replay(company: Company, actions: Sequence[Action], *, twins: bool = False) -> Failure | None:
    """Return what fails when these actions are taken, those impossible left out.

    `twins`: with snapshot and restore after every action, too.
    """
    trial = Trial(company)
    failure = trial.run(actions)
    return _twin(trial) if failure is None and twins else failure


def shorten(company: Company, failure: Failure, replays: int = Plan().replays) -> Failure:
    """Leave out actions, in ever smaller blocks, while the same kind of failure remains.

    A run without an end can not become shorter: of that, the beginning is returned.
    """
    if failure.what == ENDLESS:
        return failure.begun()
    if failure.what == HUNG:
        replays = min(replays, REPLAYS_OF_THE_HUNG)
    best = failure
    block = max(1, len(failure.actions) // 2)
    while True:
        start, shorter = 0, False
        while start < len(best.actions):
            if replays <= 0:
                return best
            replays -= 1
            left = best.actions[:start] + best.actions[start + block :]
            found = replay(company, left, twins=failure.what == SNAPSHOT)
            same = found is not None and found.what == failure.what
            # Where time passes before the judgement, a run can become longer by that.
            if found is not None and same and len(found.actions) < len(best.actions):
                best, shorter = found, True
            else:
                start += block
        if block == 1 and not shorter:
            return best
        block = max(1, block // 2)


class _Adversary:
    """Chooses the actions of one run."""

    def __init__(self, company: Company, plan: Plan, rng: random.Random) -> None:
        self.company, self.plan, self.rng = company, plan, rng
        self.trial = Trial(company)
        guarantees = self.trial.guarantees.values()
        self.joins = company.newcomer is not None and all(g.joins for g in guarantees)
        self.leaves = company.newcomer is not None and all(g.leaves for g in guarantees)
        self.losses = plan.losses if all(g.survives_loss for g in guarantees) else 0.0
        self.timed = company.physics.bounds is not None
        self.needs_time = any(g.needs_time for g in guarantees)
        self.sent = dict.fromkeys(company.names.values(), 0)
        self.left = plan.messages
        # Long chains of causes that overtake each other need these; both at once, too.
        self.newest_first = rng.random() < 0.3
        self.one_to_one = rng.random() < 0.3

    def play(self) -> Trial:
        """Send all messages, let everything arrive, and let time pass at the end."""
        while self.trial.failure is None and (self.left or self._under_way()):
            self.trial.take(self._choose())
        if self.losses or self.needs_time:
            self._wait()
            return self.trial
        while self.trial.failure is None and (action := self._pass_on()) is not None:
            self.trial.take(action)  # what is between protocols only
        return self.trial

    def _under_way(self) -> bool:
        """Tell whether a message of the application is in flight; heartbeats never end."""
        members = self.trial.world.members
        return any(
            not members[copy.target].is_note(copy.message) for copy in self.trial.world.in_flight
        )

    def _choose(self) -> Action:
        rng, in_flight = self.rng, self.trial.world.in_flight
        if self.left and (not in_flight or rng.random() < 0.25):
            return self._send()
        if rng.random() < self.plan.changes:
            return self._change()
        if self.trial.arrived and rng.random() < self.plan.duplicates:
            return self._again(rng.choice(self.trial.arrived))
        if in_flight and rng.random() < self.losses:
            copy = rng.choice(in_flight)
            return Lose(self._name(copy.target), str(copy.message.payload))
        return self._pass_on() or Tick(1.0)

    def _pass_on(self) -> Action | None:
        """Let a copy arrive whose time has come; with clocks, rather let time pass at times."""
        world = self.trial.world
        ready = [copy for copy in world.in_flight if world.may_arrive(copy)]
        if not ready or (self.timed and world.may_pass(1.0) and self.rng.random() < 0.3):
            return None
        newest = self.newest_first and self.rng.random() < 0.8
        copy = ready[-1] if newest else self.rng.choice(ready)
        return Arrive(self._name(copy.target), str(copy.message.payload))

    def _again(self, copy: InFlight) -> Action:
        """Bring a copy again, or back to a sender who hears everybody itself."""
        label = str(copy.message.payload)
        back = copy.source in self.trial.world.members and not self.company.internal
        at = copy.source if back and self.rng.random() < 0.2 else copy.target
        return Arrive(self._name(at), label, again=True)

    def _name(self, at: int) -> str:
        return self.trial.names[at]

    def _present(self) -> list[int]:
        """Return those who send and deliver, and are still here."""
        return [at for at in self.trial.guarantees if at in self.trial.world.members]

    def _send(self) -> Action:
        at = self.rng.choice(self._present())
        name = self._name(at)
        self.left -= 1
        self.sent[name] = self.sent.get(name, 0) + 1
        after: list[str] = []
        if self.trial.relation is Relation.BY_REPLY and self.rng.random() < 0.8:
            known = sorted(self.trial.world.covered[at])
            after = self.rng.sample(known, min(len(known), self.rng.randint(1, self.plan.parents)))
        label = f"{name.lower()}{self.sent[name]}"
        return Send(name, label, tuple(after), self._to(at), self._topics())

    def _to(self, at: int) -> tuple[str, ...]:
        """Choose whom a message is for: everybody, or one, or some."""
        if self.trial.world.members[at].addressing is not Addressing.MEMBERS:
            return ()
        others = [self._name(other) for other in self._present() if other != at]
        if not others or (not self.one_to_one and self.rng.random() < 0.3):
            return ()
        most = 1 if self.one_to_one or self.rng.random() < 0.5 else len(others)
        return tuple(sorted(self.rng.sample(others, self.rng.randint(1, most))))

    def _topics(self) -> tuple[str, ...]:
        known = self.company.topics()
        if not known:
            return ()
        return tuple(sorted(self.rng.sample(known, self.rng.randint(1, len(known)))))

    def _change(self) -> Action:
        present = self._present()
        free = [n for n in FLAT_NAMES if n not in self.trial.names.values()]
        changes: list[Action] = [Tick(1.0 if self.timed else self.rng.choice((0.1, 1.0, 10.0)))]
        if self.joins and free and len(present) < 6:
            changes.append(Join(free[0], self._name(self.rng.choice(present))))
        if self.leaves and len(present) > 2:
            changes.append(Leave(self._name(self.rng.choice(present))))
        return self.rng.choice(changes)

    def _wait(self) -> None:
        """Let time pass and everything on its way arrive, some rounds long."""
        for _ in range(TIMED_ROUNDS if self.timed else ROUNDS):
            while (action := self._pass_on()) is not None and self.trial.failure is None:
                self.trial.take(action)
            if self.timed and not self.trial.unfinished():
                return
            self.trial.take(Tick(1.0 if self.timed else LONG_S))
