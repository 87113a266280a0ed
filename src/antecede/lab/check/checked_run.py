"""Run of given actions, checked against the oracle; impossible actions are skipped."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress

from antecede.core.clocks import NS, down_ns
from antecede.core.oracle import Event, history
from antecede.core.protocols import Guarantee, MessageId, Protocol, Relation
from antecede.errors import LocalError
from antecede.lab.check import results
from antecede.lab.check.causal_past import find_disagreement
from antecede.lab.check.claims import claims_of, has_claims
from antecede.lab.check.harness.driver import ImpossibleError, Session, as_events
from antecede.lab.check.harness.group_under_test import GroupUnderTest
from antecede.lab.check.harness.guarded_calls import called, in_words, raise_own
from antecede.lab.check.harness.network import ARRIVED, DELIVERED, DISCARDED, HELD, RELEASED, Step
from antecede.lab.check.harness.timing import InFlight, delays_ns, step_ns
from antecede.lab.check.results import Failure, kind_of
from antecede.lab.check.scenario.actions import Action, Arrive, Join, Leave, Send, Tick, tick_of

_FAULTS = {
    history.TWICE: results.TWICE,
    history.UNSENT: results.UNSENT,
    history.UNNECESSARY: results.UNNECESSARY,
}
"""Faults of the oracle. STUCK is checked here, because it depends on losses."""
STEPS_AT_END, SHOWN_AT_END = 60, 10
"""Timed groups: idle steps until a held message counts as stuck, and steps shown of these."""
DOUBLED_AT_END = 24
"""Further steps, each twice as long."""
MOST_COPIES = 200
"""Copies of one message above which a run counts as endless."""
MOST_NOTES = 1_000
"""Control messages at one time above which a run counts as endless."""


def _wrong_reason(step: Step, delivered: Collection[str]) -> str:
    if step.label in step.detail:
        return "it waits for itself; list the messages that must be delivered before it"
    if delivered:
        return f"it waits for {', '.join(sorted(delivered))}, which this member has delivered"
    if not step.detail and not step.reason:
        return (
            "it lists no causes; put them into `missing`, or describe the condition: "
            "Hold(message, (), reason)"
        )
    return ""


class JudgedRun(Session):
    """Checked session; `restoring`: snapshot and restore members after each action."""

    def __init__(self, group: GroupUnderTest, *, restoring: bool = False) -> None:
        super().__init__(group)
        self.restoring = restoring
        self.guarantees: dict[int, Guarantee] = {
            at: member.guarantee for at, member in self.world.members.items() if member.application
        }
        self.actions: list[Action] = []
        self.failure: Failure | None = None
        self.doubt: Failure | None = None
        """First wrong report of a member (hold reason, claim); its deliveries may still be in
        order."""

    def take_all(self, actions: Iterable[Action]) -> Failure | None:
        """Execute all possible actions, then check; return the first failure."""
        for action in actions:
            self.take(action)
            if self.failure is not None:
                return self.failure
        return self.judge()

    @contextmanager
    def _noting(self, at: int, label: str = "", what: str = "") -> Iterator[None]:
        """Turn an error of a member into `failure`, of the given kind or else of the error's."""
        try:
            yield
        except BaseException as error:
            raise_own(error)
            self._fail(what or kind_of(error), self.names[at], label, in_words(error))

    def take(self, action: Action) -> bool:
        """Execute an action; return False if impossible. Errors of members become `failure`."""
        in_flight, at = len(self.world.in_flight), getattr(action, "at", "everybody")
        try:
            if not self._is_honest(action):
                return False
            steps = self.carry_out(action)
        except ImpossibleError:
            return False
        except BaseException as error:
            raise_own(error)
            self.actions.append(action)
            self._fail(kind_of(error), at, getattr(action, "label", ""), in_words(error))
            return True
        self.actions.append(action)
        if isinstance(action, Join):
            newcomer = self.address(action.at)
            self.guarantees[newcomer] = self.world.members[newcomer].guarantee
        # New copies are appended, after an arrival removed at most one.
        new = self.world.in_flight[max(in_flight - 1, 0) :]
        self._check_end(new)
        self._check_steps(steps)
        self._check_wire(new)
        acted = None if isinstance(action, Join | Leave | Tick) else at
        if self.restoring and self.failure is None:
            self._restore(acted)
        if self.failure is None:
            self._check_claims(acted)
        return True

    def _is_honest(self, action: Action) -> bool:
        match action:
            case Send(at, _, after, to):
                has = self.world.covered[self.address(at)]
                return has.issuperset(after) and at not in to
            case Leave():
                return len(self.world.members) > 2
        return True

    def _check_steps(self, steps: Sequence[Step]) -> None:
        """Check that arrivals have effects and that holds name missing messages."""
        for step in steps:
            if step.kind == ARRIVED and step.at in self.guarantees:
                answered = any(s.label == step.label for s in steps if s.kind != ARRIVED)
                if step.label in self.said and not answered:
                    self._doubt(results.SILENT, step)
            elif step.kind in (DELIVERED, RELEASED) and step.label in self.addressed:
                if step.at not in self.addressed[step.label] and self.failure is None:
                    self._fail(results.ASTRAY, self.names[step.at], step.label)
            elif step.kind == HELD and self.world.members[step.at].guarantee.no_unnecessary_wait:
                delivered = self.world.covered[step.at].intersection(step.detail)
                if wrong := _wrong_reason(step, delivered):
                    self._doubt(results.REASON, step, wrong)

    def _check_end(self, copies: Sequence[InFlight]) -> None:
        for copy in copies:
            label = str(copy.message.payload)
            if self.world.copies.get(label, 0) > MOST_COPIES or self.world.notes > MOST_NOTES:
                self._fail(results.ENDLESS, self.names[copy.source], label)
                return

    def _doubt(self, what: str, step: Step, detail: str = "") -> None:
        if self.doubt is None:
            self.doubt = self._failure(what, self.names[step.at], step.label, detail)

    def _check_claims(self, name: str | None) -> None:
        """Compare claims of a member, or of all (None), with the messages of the others."""
        for at, member in self.world.members.items():
            if name not in (None, self.names[at]) or not has_claims(member):
                continue
            with self._noting(at):
                self._disprove(at, member)
            if self.failure is not None:
                return

    def _disprove(self, at: int, member: Protocol) -> None:
        world = self.world
        present = [at for at in self.guarantees if at in world.members]
        label_of = {key: label for label, key in world.ids.items()}
        for claim in claims_of(member, present, self.guarantees):
            label = label_of.get(MessageId(claim.sender, claim.number), "")
            of_itself = claim.about == claim.sender
            if not label or not (of_itself or label in world.covered[claim.about]):
                words = claim.words(self.names, label)
                self.doubt = self.doubt or self._failure(
                    results.CLAIMED, self.names[at], label, words
                )

    def _restore(self, name: str | None) -> None:
        for at, member in self.world.members.items():
            if name not in (None, self.names[at]):
                continue
            copy = self._fresh(at)
            state = called(member.snapshot)
            called(copy.restore, state)
            if called(copy.snapshot) != state:
                what = "the restored member's state differs"
                self._fail(results.SNAPSHOT, self.names[at], "", what)
                return
            self.world.members[at] = copy

    def _fresh(self, at: int) -> Protocol:
        group = self.group
        if group.newcomer is None:
            return group.make()[at]
        everybody = tuple(group.names if at in group.names else self.names)
        return group.newcomer(at, everybody, self.names[at])

    def _check_wire(self, copies: Sequence[InFlight]) -> None:
        """Encode and decode new copies, if the protocol has an encoding."""
        for source, target, message, _ in copies:
            sender, receiver = self.world.members.get(source), self.world.members[target]
            if sender is None or type(sender).encode is Protocol.encode:
                continue
            label = str(message.payload)
            with self._noting(source, label, results.WIRE):
                back = called(receiver.decode, called(sender.encode, message), message.payload)
                if back != message:
                    what = f"{message} came back as {back}"
                    self._fail(results.WIRE, self.names[source], label, what)
            if self.failure is not None:
                return

    def _fail(
        self, what: str, at: str, label: str, detail: str = "", missing: Iterable[str] = ()
    ) -> None:
        self.failure = self._failure(what, at, label, detail, missing)

    def _failure(
        self, what: str, at: str, label: str, detail: str = "", missing: Iterable[str] = ()
    ) -> Failure:
        known, done = sorted(missing), self.actions
        return Failure.of(self.group, what, at, label, missing=known, detail=detail, actions=done)

    def judge(self) -> Failure | None:
        """Return the most severe failure. In timed groups, time passes first."""
        if any(guarantee.needs_time for guarantee in self.guarantees.values()):
            if self._delivered_early(self._history()):
                return self.failure
            self._let_time_pass()
            if self.failure is not None:
                return self.failure
        if self._unanswered():
            return self.failure
        past = self._history()
        if self._delivered_early(past):
            return self.failure
        if self.relation is Relation.TOTAL and self._disagree():
            return self.failure
        found = [
            self._failure(_FAULTS[fault.what], self.names[int(fault.member)], fault.message)
            for fault in past.faults(self.relation.value)
            if self._counts(fault)
        ]
        found += filter(None, (self._left_over(), self.doubt))
        self.failure = max(found, key=lambda one: one.severity, default=None)
        return self.failure

    def _delivered_early(self, past: history.History) -> bool:
        released = {(str(s.at), s.label) for s in self.world.steps if s.kind == RELEASED}
        for early in past.early(self.relation.value):
            at = int(early.member)
            if self.guarantees[at].safe and (early.member, early.message) not in released:
                self._fail(results.EARLY, self.names[at], early.message, missing=early.missing)
                return True
        return False

    def _unanswered(self) -> bool:
        for at, member in self.world.members.items():
            with self._noting(at):
                held = called(lambda one=member: tuple(one.blocked_on()))
                called(member.held_count)
                for waiting in held:
                    with suppress(LocalError):  # a protocol may not know the causes
                        called(lambda one=member, of=waiting: tuple(one.causes(of.message)))
            if self.failure is not None:
                return True
        return False

    def _disagree(self) -> bool:
        orders: dict[int, list[str]] = {at: [] for at in self.guarantees}
        for step in self.world.steps:
            if step.kind in (DELIVERED, RELEASED) and self.guarantees[step.at].safe:
                orders[step.at].append(step.label)
        differs = find_disagreement(orders)
        if differs is None:
            return False
        detail = f"{self.names[differs.one]} delivers {differs.first} before {differs.then}"
        at = self.names[differs.other]
        self._fail(results.DISAGREED, at, differs.then, detail, (differs.first,))
        return True

    def _history(self) -> history.History:
        addressed = {label: set(map(str, to)) for label, to in self.addressed.items()}
        subscribed = {str(at): own for at, own in self.group.subscriptions.items()}
        return history.History(self.rows(), addressed, self.topics, subscribed)

    def _counts(self, fault: history.Fault) -> bool:
        at = int(fault.member)
        if fault.what == history.UNNECESSARY:
            given_up = {(s.at, s.label) for s in self.world.steps if s.kind == DISCARDED}
            return self.guarantees[at].no_unnecessary_wait and (at, fault.message) not in given_up
        return fault.what in _FAULTS

    def _let_time_pass(self) -> None:
        """Let copies arrive as late as they can, in steps that grow at the end.

        An unfinished run is shown without its last, idle steps.
        """
        shown = len(self.actions)
        for number in range(STEPS_AT_END + DOUBLED_AT_END):
            if self.failure is not None or not self.unfinished():
                return
            step = self._step_ns()
            if self._idle_ns() < SHOWN_AT_END * step:
                shown = len(self.actions)
            while not self.world.may_pass(tick_of(step).seconds) and self.failure is None:
                copy = min(self.world.in_flight, key=self.world.timing.due_ns)
                self.take(Arrive(self.names[copy.target], str(copy.message.payload)))
                step = self._step_ns()
            times = 2 ** max(0, number - STEPS_AT_END + 1)
            self.take(tick_of(step if times == 1 else self._no_later_ns(times * step)))
        if self.failure is None and self.unfinished():
            del self.actions[shown:]

    def _idle_ns(self) -> int:
        """Return the time since the last step of an application message."""
        idle_ns = 0
        for action in reversed(self.actions):
            if isinstance(action, Tick):
                idle_ns += down_ns(action.seconds)
            elif not isinstance(action, Arrive) or action.label in self.said:
                break
        return idle_ns

    def _step_ns(self) -> int:
        bounds = self.group.timing.bounds
        if bounds is None:
            return NS
        return step_ns(bounds) or self._no_later_ns(delays_ns(bounds)[-1])

    def _no_later_ns(self, ns: int) -> int:
        """Return `ns`, or the time until the next copy must arrive if that is shorter."""
        dues = (self.world.timing.due_ns(copy) - self.world.now_ns for copy in self.world.in_flight)
        return min([ns, *(due for due in dues if due > 0)])

    def unfinished(self) -> bool:
        """Return True if a message is in flight or held back."""
        return self._under_way() or self._left_over() is not None

    def _under_way(self) -> bool:
        """Return True if copies are in flight, without the endless heartbeats."""
        timed = any(guarantee.needs_time for guarantee in self.guarantees.values())
        flying = self.world.in_flight
        return any(not timed or copy.message.payload in self.said for copy in flying)

    def _left_over(self) -> Failure | None:
        """Return a message that a member lacks although no copy is in flight.

        A protocol that survives loss may abandon messages, but must not hold them back forever.
        """
        if self._under_way():
            return None
        last = {(step.at, step.label): step.kind for step in self.world.steps}
        for at, guarantee in self.guarantees.items():
            if at not in self.world.members or not guarantee.live:
                continue
            for label in self.world.ids.keys() - self.world.covered[at]:
                if at not in self.addressed.get(label, self.world.members):
                    continue
                lost = guarantee.survives_loss and last.get((at, label)) != HELD
                if label in self.said and not lost:
                    return self._failure(results.STUCK, self.names[at], label)
        return None

    def rows(self) -> list[Event]:
        """Return the steps of members with an application as events."""
        steps = (step for step in self.world.steps if step.at in self.guarantees)
        return as_events((str(one.at), one.kind, one.label, one.detail) for one in steps)


def replay(group: GroupUnderTest, actions: Sequence[Action]) -> Failure | None:
    """Return the failure of these actions, or None."""
    return JudgedRun(group).take_all(actions)
