"""Results of a scenario, by names: events and lines of golden output.

`antecede.core.oracle` finds violations of the promised relation from the steps alone. In total
order it also finds members that disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from antecede.core.oracle import (
    CAUSAL,
    RECEIVE,
    SEND,
    History,
    Model,
    OracleEvent,
    arrivals,
    deliveries,
)  # fmt: skip
from antecede.core.oracle import FIFO as FIFO_MODEL
from antecede.core.protocols import Relation
from antecede.lab.check.harness.driver import steps_to_events
from antecede.lab.check.harness.network import DELIVERED, JOINED, RELEASED
from antecede.lab.check.scenario.actions import Send
from antecede.lab.check.scenario.parse import Command, Scenario

CONTROL_SENT = "acknowledge"
JUDGES: Final = {
    "causal": Relation.BY_DELIVERY,
    "fifo": Relation.FIFO,
    "reply": Relation.BY_REPLY,
    "receipt": Relation.BY_RECEIPT,
}


class ScenarioEvent(NamedTuple):
    """Step of a run with names and reasons."""

    at: str
    kind: str
    """Kind of `antecede.lab.check.harness.network`, or CONTROL_SENT."""
    label: str
    others: tuple[str, ...] = ()
    """send, forward, acknowledge: targets; arrive, join: source or sponsor; hold, release: missing
    labels; discard: the reason."""
    replied_to: tuple[str, ...] = ()
    missing_causes: tuple[str, ...] = ()
    """Violation: causes that were not delivered here before."""
    is_wrong_recipient: bool = False
    """Violation: the message was not sent to this member."""
    order_conflict: tuple[str, ...] = ()
    """Violation of total order, (member, label): delivered here before, there after it."""

    @property
    def is_violation(self) -> bool:
        """True for a violation."""
        return bool(self.missing_causes or self.is_wrong_recipient or self.order_conflict)


class CommandResult(NamedTuple):
    """Result of one action; `number` counts from 1, printing actions have 0."""

    number: int
    command: Command
    events: tuple[ScenarioEvent, ...]
    output: tuple[str, ...]
    states: Mapping[str, Mapping[str, str]] = {}
    """Field values by member after the action, if the run recorded states."""


class ScenarioRun(NamedTuple):
    """Executed scenario."""

    scenario: Scenario
    results: tuple[CommandResult, ...]
    relation: Relation
    held: tuple[ScenarioEvent, ...]
    recipients: Mapping[str, tuple[str, ...]] = {}
    """Receivers by label, if not all members."""
    subscriptions: Mapping[str, tuple[str, ...]] = {}
    in_flight: tuple[tuple[str, str, str], ...] = ()
    """(source, label, target) of the copies in flight at the end."""

    def map_events(self, mark: Callable[[ScenarioEvent], ScenarioEvent]) -> ScenarioRun:
        """Return the run with every event replaced by `mark(event)`, in order."""
        results = (
            result._replace(events=tuple(map(mark, result.events))) for result in self.results
        )
        return self._replace(results=tuple(results))

    def occurrences(self) -> Iterator[ScenarioEvent]:
        """Yield all events, in order."""
        for result in self.results:
            yield from result.events

    def violations(self) -> tuple[ScenarioEvent, ...]:
        """Return the events that are violations."""
        return tuple(one for one in self.occurrences() if one.is_violation)


def run_to_events(run: ScenarioRun) -> list[OracleEvent]:
    """Convert the steps of a run to events for the oracle."""
    return steps_to_events(
        (one.at, one.kind, one.label, one.others if one.kind == JOINED else one.replied_to)
        for one in run.occurrences()
    )


def check_run(run: ScenarioRun) -> ScenarioRun:
    """Mark the violations that the oracle finds, and write the lines of output."""
    topics = {
        result.command.action.label: result.command.action.topics
        for result in run.results
        if isinstance(result.command.action, Send)
    }
    history = History(run_to_events(run), run.recipients, topics, run.subscriptions)
    early = {
        (violation.member, violation.message): tuple(sorted(violation.missing))
        for violation in history.early(run.relation.value)
    }

    def judge(one: ScenarioEvent) -> ScenarioEvent:
        if one.kind != DELIVERED:
            return one
        astray = one.at not in run.recipients.get(one.label, (one.at,))
        return one._replace(
            is_wrong_recipient=astray, missing_causes=early.get((one.at, one.label), ())
        )

    marked = run.map_events(judge)
    if run.relation is Relation.TOTAL:
        marked = marked.map_events(_make_order_checker())
    with_output = (
        result._replace(output=tuple(line for one in result.events for line in _format_event(one)))
        if result.events
        else result
        for result in marked.results
    )
    return marked._replace(results=tuple(with_output))


def _make_order_checker() -> Callable[[ScenarioEvent], ScenarioEvent]:
    """Return a stateful function that marks deliveries in another order than elsewhere."""
    orders: dict[str, list[str]] = {}

    def mark(one: ScenarioEvent) -> ScenarioEvent:
        if one.kind not in (DELIVERED, RELEASED):
            return one
        here = orders.setdefault(one.at, [])
        for other, there in orders.items():
            if one.label in there and other != one.at:
                before = set(there[: there.index(one.label)])
                ahead = [label for label in here if label in there and label not in before]
                if ahead:
                    one = one._replace(order_conflict=(other, ahead[0]))
        here.append(one.label)
        return one

    return mark


def find_changed_states(
    results: Iterable[CommandResult],
) -> Iterator[tuple[CommandResult, str, dict[str, str]]]:
    """Yield each action with a member that it changed, and the changed fields."""
    known: dict[str, dict[str, str]] = {}
    for result in results:
        for name, fields in result.states.items():
            before = known.setdefault(name, {})
            changed = {field: text for field, text in fields.items() if before.get(field) != text}
            before.update(changed)
            if changed:
                yield result, name, changed


VIOLATION = "VIOLATION: "
NEWS_OF = "news of "
"""Prefix of a cause that is for other members."""


def describe_wait(event: ScenarioEvent) -> str:
    """Return "b waits for a" for a message that is held back."""
    return f"{event.label} waits for {_format_missing(event)}"


def _format_missing(event: ScenarioEvent) -> str:
    return ", ".join(event.others) or "unknown causes"


def _format_event(event: ScenarioEvent) -> Iterator[str]:
    match event.kind:
        case "send":
            yield f"{event.label} is on its way to {', '.join(event.others) or 'nobody'}"
        case "forward":
            yield f"{event.at} forwards {event.label} to {', '.join(event.others) or 'nobody'}"
        case "acknowledge":
            yield f"{event.label} is on its way from {event.at} to {', '.join(event.others)}"
        case "deliver":
            yield f"{event.at} delivers {event.label}"
        case "hold":
            yield f"{event.at} holds {event.label}: it waits for {_format_missing(event)}"
        case "release":
            yield f"{event.at} releases {event.label} without {', '.join(event.others)}"
        case "discard":
            yield f"{event.at} discards {event.label}: {', '.join(event.others)}"
        case "join":
            yield f"{event.label} joins, {event.others[0]} is its sponsor"
        case "leave":
            yield f"{event.label} leaves"
        case "lose":
            yield f"{event.label} to {event.at} is lost"
    if event.is_wrong_recipient:
        yield f"{VIOLATION}{event.at} delivers {event.label}, which is for others"
    if event.missing_causes:
        missing = ", ".join(event.missing_causes)
        yield f"{VIOLATION}{event.at} delivers {event.label} before {missing}"
    if event.order_conflict:
        other, first = event.order_conflict
        yield f"{VIOLATION}{event.at} delivers {event.label} after {first}, {other} before it"


def channel_line(run: ScenarioRun) -> str:
    """Return "Arrivals: FIFO, not causal (a after b at P1). Deliveries: causal."; "" if none."""
    rows = run_to_events(run)
    if not any(row.kind == RECEIVE for row in rows):
        return ""
    newcomers = {one.at for one in run.occurrences() if one.kind == JOINED}
    present = {row.member for row in rows if row.member is not None} - newcomers
    sent = (row.id for row in rows if row.kind == SEND)
    addressed = {message: run.recipients.get(message, tuple(present)) for message in sent}
    came, delivered = arrivals(rows, addressed), deliveries(rows, addressed)
    return f"Arrivals: {_describe_model(came)}. Deliveries: {_describe_model(delivered)}."


def _describe_model(model: Model) -> str:
    witness = model.witness
    if witness is None:
        return CAUSAL
    name = "FIFO, not causal" if model.name == FIFO_MODEL else model.name
    pair = f"{witness.message} after {witness.by}"
    if witness.never:
        pair = f"{witness.by} without {witness.message}"
    return f"{name} ({pair} at {witness.member})"
