"""Run of given actions, checked against the oracle; impossible actions are skipped."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress

from antecede.core.clocks import NS, down_ns
from antecede.core.oracle import OracleEvent, history
from antecede.core.protocols import Guarantee, MessageId, Protocol, Relation
from antecede.errors import LocalError
from antecede.lab.check import results
from antecede.lab.check.causal_past import find_disagreement
from antecede.lab.check.claims import find_claims, has_claims
from antecede.lab.check.harness.driver import ImpossibleError, Session, steps_to_events
from antecede.lab.check.harness.group_under_test import GroupUnderTest
from antecede.lab.check.harness.guarded_calls import call_guarded, in_words, raise_own
from antecede.lab.check.harness.network import ARRIVED, DELIVERED, DISCARDED, HELD, RELEASED, Step
from antecede.lab.check.harness.timing import InFlight, compute_step_ns, list_delays_ns
from antecede.lab.check.results import Failure, classify_error
from antecede.lab.check.scenario.actions import Action, Arrive, Join, Leave, Send, Tick, make_tick

_FAULTS = {
    history.TWICE: results.DELIVERED_TWICE,
    history.UNSENT: results.NEVER_SENT,
    history.UNNECESSARY: results.NEEDLESS_HOLD,
}
"""Faults of the oracle. STUCK is checked here, because it depends on losses."""
STEPS_AT_END, SHOWN_AT_END = 60, 10
"""Timed groups: idle steps until a held message counts as stuck, and steps shown of these."""
DOUBLED_AT_END = 24
"""Further steps, each twice as long."""
MAX_COPIES = 200
"""Copies of one message above which a run counts as endless."""
MAX_CONTROL_MESSAGES = 1_000
"""Control messages at one time above which a run counts as endless."""


def _explain_wrong_reason(step: Step, delivered: Collection[str]) -> str:
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
        self.minor_failure: Failure | None = None
        """First wrong report of a member (hold reason, claim)."""

    def run_actions(self, actions: Iterable[Action]) -> Failure | None:
        """Execute all possible actions, then check; return the first failure."""
        for action in actions:
            self.take(action)
            if self.failure is not None:
                return self.failure
        return self.check()

    @contextmanager
    def _catch_errors(self, at: int, label: str = "", kind: str = "") -> Iterator[None]:
        """Turn an error of a member into `failure`, of the given kind or the error's."""
        try:
            yield
        except BaseException as error:
            raise_own(error)
            self._record_failure(
                kind or classify_error(error), self.names[at], label, in_words(error)
            )

    def take(self, action: Action) -> bool:
        """Execute an action; return False if impossible. Errors of members become `failure`."""
        in_flight, at = len(self.world.in_flight), getattr(action, "at", "all members")
        try:
            if not self._is_allowed(action):
                return False
            steps = self.execute(action)
        except ImpossibleError:
            return False
        except BaseException as error:
            raise_own(error)
            self.actions.append(action)
            self._record_failure(
                classify_error(error), at, getattr(action, "label", ""), in_words(error)
            )
            return True
        self.actions.append(action)
        if isinstance(action, Join):
            newcomer = self.find_address(action.at)
            self.guarantees[newcomer] = self.world.members[newcomer].guarantee
        # New copies are appended, after an arrival removed at most one.
        new = self.world.in_flight[max(in_flight - 1, 0) :]
        self._check_endless(new)
        self._check_steps(steps)
        self._check_wire(new)
        acted = None if isinstance(action, Join | Leave | Tick) else at
        if self.restoring and self.failure is None:
            self._restore(acted)
        if self.failure is None:
            self._check_claims(acted)
        return True

    def _is_allowed(self, action: Action) -> bool:
        match action:
            case Send(at, _, after, to):
                has = self.world.covered[self.find_address(at)]
                return has.issuperset(after) and at not in to
            case Leave():
                return len(self.world.members) > 2
        return True

    def _check_steps(self, steps: Sequence[Step]) -> None:
        for step in steps:
            if step.kind == ARRIVED and step.at in self.guarantees:
                answered = any(s.label == step.label for s in steps if s.kind != ARRIVED)
                if step.label in self.sent_labels and not answered:
                    self._record_minor_failure(results.NO_EFFECT, step)
            elif step.kind in (DELIVERED, RELEASED) and step.label in self.recipients:
                if step.at not in self.recipients[step.label] and self.failure is None:
                    self._record_failure(results.WRONG_RECIPIENT, self.names[step.at], step.label)
            elif step.kind == HELD and self.world.members[step.at].guarantee.no_unnecessary_wait:
                delivered = self.world.covered[step.at].intersection(step.detail)
                if wrong := _explain_wrong_reason(step, delivered):
                    self._record_minor_failure(results.WRONG_REASON, step, wrong)

    def _check_endless(self, copies: Sequence[InFlight]) -> None:
        for copy in copies:
            label = str(copy.message.payload)
            if (
                self.world.copy_counts.get(label, 0) > MAX_COPIES
                or self.world.control_count > MAX_CONTROL_MESSAGES
            ):
                self._record_failure(results.ENDLESS, self.names[copy.source], label)
                return

    def _record_minor_failure(self, kind: str, step: Step, detail: str = "") -> None:
        if self.minor_failure is None:
            self.minor_failure = self._make_failure(kind, self.names[step.at], step.label, detail)

    def _check_claims(self, name: str | None) -> None:
        for at, member in self.world.members.items():
            if name not in (None, self.names[at]) or not has_claims(member):
                continue
            with self._catch_errors(at):
                self._check_member_claims(at, member)
            if self.failure is not None:
                return

    def _check_member_claims(self, at: int, member: Protocol) -> None:
        world = self.world
        present = [at for at in self.guarantees if at in world.members]
        label_of = {key: label for label, key in world.ids.items()}
        for claim in find_claims(member, present, self.guarantees):
            label = label_of.get(MessageId(claim.sender, claim.number), "")
            of_itself = claim.about == claim.sender
            if not label or not (of_itself or label in world.covered[claim.about]):
                words = claim.describe_error(self.names, label)
                self.minor_failure = self.minor_failure or self._make_failure(
                    results.WRONG_CLAIM, self.names[at], label, words
                )

    def _restore(self, name: str | None) -> None:
        for at, member in self.world.members.items():
            if name not in (None, self.names[at]):
                continue
            copy = self._make_member(at)
            state = call_guarded(member.snapshot)
            call_guarded(copy.restore, state)
            if call_guarded(copy.snapshot) != state:
                what = "the restored member's state differs"
                self._record_failure(results.SNAPSHOT_CHANGED, self.names[at], "", what)
                return
            self.world.members[at] = copy

    def _make_member(self, at: int) -> Protocol:
        group = self.group
        if group.make_member is None:
            return group.make()[at]
        everybody = tuple(group.names if at in group.names else self.names)
        return group.make_member(at, everybody, self.names[at])

    def _check_wire(self, copies: Sequence[InFlight]) -> None:
        for source, target, message, _ in copies:
            sender, receiver = self.world.members.get(source), self.world.members[target]
            if sender is None or type(sender).encode is Protocol.encode:
                continue
            label = str(message.payload)
            with self._catch_errors(source, label, results.ENCODING_CHANGED):
                back = call_guarded(
                    receiver.decode, call_guarded(sender.encode, message), message.payload
                )
                if back != message:
                    what = f"{message} came back as {back}"
                    self._record_failure(results.ENCODING_CHANGED, self.names[source], label, what)
            if self.failure is not None:
                return

    def _record_failure(
        self, kind: str, at: str, label: str, detail: str = "", missing: Iterable[str] = ()
    ) -> None:
        self.failure = self._make_failure(kind, at, label, detail, missing)

    def _make_failure(
        self, kind: str, at: str, label: str, detail: str = "", missing: Iterable[str] = ()
    ) -> Failure:
        known, done = sorted(missing), self.actions
        return Failure.from_group(
            self.group, kind, at, label, missing=known, detail=detail, actions=done
        )

    def check(self) -> Failure | None:
        """Return the most severe failure. In timed groups, time passes first."""
        if any(guarantee.needs_time for guarantee in self.guarantees.values()):
            if self._violates_causal_order(self._build_history()):
                return self.failure
            self._advance_time()
            if self.failure is not None:
                return self.failure
        if self._fails_queries():
            return self.failure
        past = self._build_history()
        if self._violates_causal_order(past):
            return self.failure
        if self.relation is Relation.TOTAL and self._violates_total_order():
            return self.failure
        failures = [
            self._make_failure(_FAULTS[fault.what], self.names[int(fault.member)], fault.message)
            for fault in past.faults(self.relation.value)
            if self._is_promised(fault)
        ]
        failures += filter(None, (self._find_undelivered(), self.minor_failure))
        self.failure = max(failures, key=lambda one: one.severity, default=None)
        return self.failure

    def _violates_causal_order(self, past: history.History) -> bool:
        released = {(str(s.at), s.label) for s in self.world.steps if s.kind == RELEASED}
        for early in past.early(self.relation.value):
            at = int(early.member)
            if self.guarantees[at].safe and (early.member, early.message) not in released:
                self._record_failure(
                    results.EARLY, self.names[at], early.message, missing=early.missing
                )
                return True
        return False

    def _fails_queries(self) -> bool:
        for at, member in self.world.members.items():
            with self._catch_errors(at):
                held = call_guarded(lambda one=member: tuple(one.list_held()))
                call_guarded(member.count_held)
                for waiting in held:
                    with suppress(LocalError):  # a protocol may not know the causes
                        call_guarded(lambda one=member, of=waiting: tuple(one.causes(of.message)))
            if self.failure is not None:
                return True
        return False

    def _violates_total_order(self) -> bool:
        orders: dict[int, list[str]] = {at: [] for at in self.guarantees}
        for step in self.world.steps:
            if step.kind in (DELIVERED, RELEASED) and self.guarantees[step.at].safe:
                orders[step.at].append(step.label)
        differs = find_disagreement(orders)
        if differs is None:
            return False
        detail = f"{self.names[differs.member]} delivers {differs.first} before {differs.second}"
        at = self.names[differs.other_member]
        self._record_failure(
            results.ORDER_DISAGREEMENT, at, differs.second, detail, (differs.first,)
        )
        return True

    def _build_history(self) -> history.History:
        addressed = {label: set(map(str, to)) for label, to in self.recipients.items()}
        subscribed = {str(at): own for at, own in self.group.subscriptions.items()}
        return history.History(self.build_events(), addressed, self.topics, subscribed)

    def _is_promised(self, fault: history.Fault) -> bool:
        at = int(fault.member)
        if fault.what == history.UNNECESSARY:
            given_up = {(s.at, s.label) for s in self.world.steps if s.kind == DISCARDED}
            return self.guarantees[at].no_unnecessary_wait and (at, fault.message) not in given_up
        return fault.what in _FAULTS

    def _advance_time(self) -> None:
        """Let copies arrive as late as they can; drop the idle steps at the end."""
        shown = len(self.actions)
        for number in range(STEPS_AT_END + DOUBLED_AT_END):
            if self.failure is not None or not self.is_unfinished():
                return
            step = self._choose_step_ns()
            if self._measure_idle_ns() < SHOWN_AT_END * step:
                shown = len(self.actions)
            while not self.world.can_tick(make_tick(step).seconds) and self.failure is None:
                copy = min(self.world.in_flight, key=self.world.timing.get_latest_ns)
                self.take(Arrive(self.names[copy.target], str(copy.message.payload)))
                step = self._choose_step_ns()
            times = 2 ** max(0, number - STEPS_AT_END + 1)
            self.take(make_tick(step if times == 1 else self._limit_to_arrivals_ns(times * step)))
        if self.failure is None and self.is_unfinished():
            del self.actions[shown:]

    def _measure_idle_ns(self) -> int:
        idle_ns = 0
        for action in reversed(self.actions):
            if isinstance(action, Tick):
                idle_ns += down_ns(action.seconds)
            elif not isinstance(action, Arrive) or action.label in self.sent_labels:
                break
        return idle_ns

    def _choose_step_ns(self) -> int:
        bounds = self.group.timing.bounds
        if bounds is None:
            return NS
        return compute_step_ns(bounds) or self._limit_to_arrivals_ns(list_delays_ns(bounds)[-1])

    def _limit_to_arrivals_ns(self, ns: int) -> int:
        """Return `ns`, or the time until the next copy must arrive if that is shorter."""
        dues = (
            self.world.timing.get_latest_ns(copy) - self.world.now_ns
            for copy in self.world.in_flight
        )
        return min([ns, *(due for due in dues if due > 0)])

    def is_unfinished(self) -> bool:
        """Return True if a message is in flight or held back."""
        return self._has_in_flight() or self._find_undelivered() is not None

    def _has_in_flight(self) -> bool:
        timed = any(guarantee.needs_time for guarantee in self.guarantees.values())
        flying = self.world.in_flight
        return any(not timed or copy.message.payload in self.sent_labels for copy in flying)

    def _find_undelivered(self) -> Failure | None:
        """Return a message that a live member lacks although no copy is in flight."""
        if self._has_in_flight():
            return None
        last = {(step.at, step.label): step.kind for step in self.world.steps}
        for at, guarantee in self.guarantees.items():
            if at not in self.world.members or not guarantee.live:
                continue
            for label in self.world.ids.keys() - self.world.covered[at]:
                if at not in self.recipients.get(label, self.world.members):
                    continue
                lost = guarantee.survives_loss and last.get((at, label)) != HELD
                if label in self.sent_labels and not lost:
                    return self._make_failure(results.STUCK, self.names[at], label)
        return None

    def build_events(self) -> list[OracleEvent]:
        """Return the steps of members with an application as events."""
        steps = (step for step in self.world.steps if step.at in self.guarantees)
        return steps_to_events((str(one.at), one.kind, one.label, one.detail) for one in steps)


def replay(group: GroupUnderTest, actions: Sequence[Action]) -> Failure | None:
    """Return the failure of these actions, or None."""
    return JudgedRun(group).run_actions(actions)
