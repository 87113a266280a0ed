"""What a script did, in names: happenings, moments, and the lines of golden output.

A delivery that came before a message of its causal past (in the relation that the protocol
promises) is marked by `antecede.core.oracle`, from what happened alone; in total order also one
that another member delivers in another order.
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
"""A message that a protocol sends of its own accord."""
JUDGES: Final = {
    "causal": Relation.BY_DELIVERY,
    "fifo": Relation.FIFO,
    "reply": Relation.BY_REPLY,
    "receipt": Relation.BY_RECEIPT,
}
"""Words for the relations that a run can be judged by, whatever its protocol promises."""


class Occurrence(NamedTuple):
    """One step with the names and reasons that people want to read."""

    at: str
    kind: str
    """A kind of `antecede.lab.check.harness.network`, or ACKNOWLEDGED."""
    label: str
    others: tuple[str, ...] = ()
    """send, forward, acknowledge: the members it is on its way to; arrive, join: where it came
    from (the sponsor); hold, release: labels of the messages it waits for; discard: the reason."""
    answers: tuple[str, ...] = ()
    """send: labels of the messages it answers."""
    early_for: tuple[str, ...] = ()
    """deliver: labels of its causal past that were not delivered here before: a violation."""
    astray: bool = False
    """deliver: the message is for others: a violation."""
    unlike: tuple[str, ...] = ()
    """deliver, in total order: (member, label): delivered here before it, there after it: a
    violation."""

    @property
    def wrong(self) -> bool:
        """Whether it is a violation."""
        return bool(self.early_for or self.astray or self.unlike)


class CommandResult(NamedTuple):
    """One action, numbered from 1 over all that move something (0: it only prints)."""

    number: int
    command: Command
    occurrences: tuple[Occurrence, ...]
    output: tuple[str, ...]
    states: Mapping[str, Mapping[str, str]] = {}
    """Member that it touched -> field -> value after it, where the run was asked to note that."""


class ScriptRun(NamedTuple):
    """A script that was carried out."""

    script: Script
    results: tuple[CommandResult, ...]
    relation: Relation
    """The causal past that the protocol respects."""
    held: tuple[Occurrence, ...]
    """What is held back at the end, with what it waits for."""
    addressed: Mapping[str, tuple[str, ...]] = {}
    """Label -> the members that it is for, where that is not everybody."""
    subscriptions: Mapping[str, tuple[str, ...]] = {}
    """Topics by member."""
    flying: tuple[tuple[str, str, str], ...] = ()
    """(from, label, to) of the copies that are still on their way at the end."""

    def marked(self, mark: Callable[[Occurrence], Occurrence]) -> ScriptRun:
        """Return the run with every occurrence as `mark` returns it, in their order."""
        results = (
            result._replace(occurrences=tuple(map(mark, result.occurrences)))
            for result in self.results
        )
        return self._replace(results=tuple(results))

    def occurrences(self) -> Iterator[Occurrence]:
        """Yield everything that happened, in order."""
        for result in self.results:
            yield from result.occurrences

    def violations(self) -> tuple[Occurrence, ...]:
        """Return the deliveries that came before their causes."""
        return tuple(one for one in self.occurrences() if one.wrong)


def rows_of(run: ScriptRun) -> list[Event]:
    """Return what happened as rows of a trace, for the oracle."""
    return as_events(
        (one.at, one.kind, one.label, one.others if one.kind == JOINED else one.answers)
        for one in run.occurrences()
    )


def judged(run: ScriptRun) -> ScriptRun:
    """Mark every delivery that the oracle calls too early, and write the lines of output."""
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
    """Return what marks deliveries in another order than at a member that had the message before.

    It is to be called with everything that happens, in order.
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
    """Yield each action with a member that it changed, and the fields of its state that changed."""
    known: dict[str, dict[str, str]] = {}
    for result in results:
        for name, fields in result.states.items():
            before = known.setdefault(name, {})
            changed = {field: text for field, text in fields.items() if before.get(field) != text}
            before.update(changed)
            if changed:
                yield result, name, changed


NEWS_OF = "news of "
"""Before the label of a cause that is for other members."""


def waits(one: Occurrence) -> str:
    """Return "b waits for a" for a message that is held back."""
    return f"{one.label} waits for {_missing(one)}"


def _missing(one: Occurrence) -> str:
    return ", ".join(one.others) or "causes it can not name"


def _lines(one: Occurrence) -> Iterator[str]:
    """Yield the lines of output for one thing that happened; none for an arrival."""
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
        yield f"VIOLATION: {one.at} delivers {one.label}, which is for others"
    if one.early_for:
        yield f"VIOLATION: {one.at} delivers {one.label} before {', '.join(one.early_for)}"
    if one.unlike:
        other, first = one.unlike
        yield f"VIOLATION: {one.at} delivers {one.label} after {first}, {other} before it"


def channel_line(run: ScriptRun) -> str:
    """Return "Arrivals: FIFO, not causal (a after b at P1). Deliveries: causal."; "" if neither.

    Messages of the application count, from the member that sent one to each member that it is
    for. What a later message overtook while it was on its way counts, too, lost or not.
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
