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
    Event,
    History,
    Model,
    arrivals,
    deliveries,
)  # fmt: skip
from antecede.core.oracle import FIFO as FIFO_MODEL
from antecede.core.protocols import Relation
from antecede.lab.check.harness.driver import as_events
from antecede.lab.check.harness.network import DELIVERED, JOINED, RELEASED
from antecede.lab.check.scenario.actions import Send
from antecede.lab.check.scenario.parse import Command, Script

ACKNOWLEDGED = "acknowledge"
"""Kind of event: a protocol sends a control message."""
JUDGES: Final = {
    "causal": Relation.BY_DELIVERY,
    "fifo": Relation.FIFO,
    "reply": Relation.BY_REPLY,
    "receipt": Relation.BY_RECEIPT,
}
"""Relations that can replace the promised one, by name."""


class Occurrence(NamedTuple):
    """Step of a run with names and reasons."""

    at: str
    kind: str
    """Kind of `antecede.lab.check.harness.network`, or CONTROL_SENT."""
    label: str
    others: tuple[str, ...] = ()
    """send, forward, acknowledge: targets; arrive, join: source or sponsor; hold, release: missing
    labels; discard: the reason."""
    answers: tuple[str, ...] = ()
    early_for: tuple[str, ...] = ()
    """Violation: causes that were not delivered here before."""
    astray: bool = False
    """Violation: the message was not sent to this member."""
    unlike: tuple[str, ...] = ()
    """Violation of total order, (member, label): delivered here before, there after it."""

    @property
    def wrong(self) -> bool:
        """True for a violation."""
        return bool(self.early_for or self.astray or self.unlike)


class CommandResult(NamedTuple):
    """Result of one action; `number` counts from 1, printing actions have 0."""

    number: int
    command: Command
    occurrences: tuple[Occurrence, ...]
    output: tuple[str, ...]
    states: Mapping[str, Mapping[str, str]] = {}
    """Field values by member after the action, if the run recorded states."""


class ScriptRun(NamedTuple):
    """Executed scenario."""

    script: Script
    results: tuple[CommandResult, ...]
    relation: Relation
    """Relation promised by the protocol."""
    held: tuple[Occurrence, ...]
    """Messages held at the end, with their missing causes."""
    addressed: Mapping[str, tuple[str, ...]] = {}
    """Receivers by label, if not all members."""
    subscriptions: Mapping[str, tuple[str, ...]] = {}
    flying: tuple[tuple[str, str, str], ...] = ()
    """(source, label, target) of the copies in flight at the end."""

    def marked(self, mark: Callable[[Occurrence], Occurrence]) -> ScriptRun:
        """Return the run with every event replaced by `mark(event)`, in order."""
        results = (
            result._replace(occurrences=tuple(map(mark, result.occurrences)))
            for result in self.results
        )
        return self._replace(results=tuple(results))

    def occurrences(self) -> Iterator[Occurrence]:
        """Yield all events, in order."""
        for result in self.results:
            yield from result.occurrences

    def violations(self) -> tuple[Occurrence, ...]:
        """Return the events that are violations."""
        return tuple(one for one in self.occurrences() if one.wrong)


def rows_of(run: ScriptRun) -> list[Event]:
    """Convert the steps of a run to events for the oracle."""
    return as_events(
        (one.at, one.kind, one.label, one.others if one.kind == JOINED else one.answers)
        for one in run.occurrences()
    )


def judged(run: ScriptRun) -> ScriptRun:
    """Mark the violations that the oracle finds, and write the lines of output."""
    topics = {
        result.command.action.label: result.command.action.topics
        for result in run.results
        if isinstance(result.command.action, Send)
    }
    history = History(rows_of(run), run.addressed, topics, run.subscriptions)
    early = {
        (found.member, found.message): tuple(sorted(found.missing))
        for found in history.early(run.relation.value)
    }

    def judge(one: Occurrence) -> Occurrence:
        if one.kind != DELIVERED:
            return one
        astray = one.at not in run.addressed.get(one.label, (one.at,))
        return one._replace(astray=astray, early_for=early.get((one.at, one.label), ()))

    marked = run.marked(judge)
    if run.relation is Relation.TOTAL:
        marked = marked.marked(_comparing())
    told = (
        result._replace(output=tuple(line for one in result.occurrences for line in _lines(one)))
        if result.occurrences
        else result
        for result in marked.results
    )
    return marked._replace(results=tuple(told))


def _comparing() -> Callable[[Occurrence], Occurrence]:
    """Return a function that marks deliveries in another order than at another member.

    It must be called with all events, in order.
    """
    orders: dict[str, list[str]] = {}

    def marked(one: Occurrence) -> Occurrence:
        if one.kind not in (DELIVERED, RELEASED):
            return one
        here = orders.setdefault(one.at, [])
        for other, there in orders.items():
            if one.label in there and other != one.at:
                before = set(there[: there.index(one.label)])
                ahead = [label for label in here if label in there and label not in before]
                if ahead:
                    one = one._replace(unlike=(other, ahead[0]))
        here.append(one.label)
        return one

    return marked


def changed_states(
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
"""Prefix of an output line on a violation."""
NEWS_OF = "news of "
"""Prefix of a cause that is for other members."""


def waits(one: Occurrence) -> str:
    """Return "b waits for a" for a message that is held back."""
    return f"{one.label} waits for {_missing(one)}"


def _missing(one: Occurrence) -> str:
    return ", ".join(one.others) or "unknown causes"


def _lines(one: Occurrence) -> Iterator[str]:
    match one.kind:
        case "send":
            yield f"{one.label} is on its way to {', '.join(one.others) or 'nobody'}"
        case "forward":
            yield f"{one.at} forwards {one.label} to {', '.join(one.others) or 'nobody'}"
        case "acknowledge":
            yield f"{one.label} is on its way from {one.at} to {', '.join(one.others)}"
        case "deliver":
            yield f"{one.at} delivers {one.label}"
        case "hold":
            yield f"{one.at} holds {one.label}: it waits for {_missing(one)}"
        case "release":
            yield f"{one.at} releases {one.label} without {', '.join(one.others)}"
        case "discard":
            yield f"{one.at} discards {one.label}: {', '.join(one.others)}"
        case "join":
            yield f"{one.label} joins, {one.others[0]} is its sponsor"
        case "leave":
            yield f"{one.label} leaves"
        case "lose":
            yield f"{one.label} to {one.at} is lost"
    if one.astray:
        yield f"{VIOLATION}{one.at} delivers {one.label}, which is for others"
    if one.early_for:
        yield f"{VIOLATION}{one.at} delivers {one.label} before {', '.join(one.early_for)}"
    if one.unlike:
        other, first = one.unlike
        yield f"{VIOLATION}{one.at} delivers {one.label} after {first}, {other} before it"


def channel_line(run: ScriptRun) -> str:
    """Return "Arrivals: FIFO, not causal (a after b at P1). Deliveries: causal."; "" if neither.

    Counts application messages from the sender to each receiver, also overtaken and lost copies.
    """
    rows = rows_of(run)
    if not any(row.kind == RECEIVE for row in rows):
        return ""
    newcomers = {one.at for one in run.occurrences() if one.kind == JOINED}
    present = {row.member for row in rows if row.member is not None} - newcomers
    sent = (row.id for row in rows if row.kind == SEND)
    addressed = {message: run.addressed.get(message, tuple(present)) for message in sent}
    came, delivered = arrivals(rows, addressed), deliveries(rows, addressed)
    return f"Arrivals: {_model_text(came)}. Deliveries: {_model_text(delivered)}."


def _model_text(model: Model) -> str:
    witness = model.witness
    if witness is None:
        return CAUSAL
    name = "FIFO, not causal" if model.name == FIFO_MODEL else model.name
    pair = f"{witness.message} after {witness.by}"
    if witness.never:
        pair = f"{witness.by} without {witness.message}"
    return f"{name} ({pair} at {witness.member})"
