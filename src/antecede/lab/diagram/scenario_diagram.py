"""Diagrams of scenarios and of snapshot algorithms; the time axis counts steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from antecede.core import diagram_model
from antecede.core.diagram_model import (
    MEANING,
    Arrow,
    AxisTick,
    Diagram,
    HeldSpan,
    Lane,
    Mark,
    StateLabel,
)
from antecede.core.global_snapshots import Make
from antecede.lab.check import ChannelCopy, SnapshotRun, StateFailure, harness
from antecede.lab.check.scenario import (
    CONTROL_SENT,
    CommandResult,
    ScenarioEvent,
    ScenarioRun,
    find_changed_states,
)


def from_run(run: ScenarioRun, title: str = "") -> Diagram:
    """Return the diagram of an executed scenario."""
    return _DiagramBuilder(run, {}, title).build()


def stack_diagrams(runs: Sequence[ScenarioRun], titles: Sequence[str]) -> list[Diagram]:
    """Return the diagrams of a scenario under several protocols, with a common time axis."""
    width = compute_widths(runs)
    return [
        _DiagramBuilder(run, width, title).build() for run, title in zip(runs, titles, strict=True)
    ]


def compute_widths(runs: Iterable[ScenarioRun]) -> dict[int, int]:
    """Return the width of each numbered action on the common axis of these runs."""
    width: dict[int, int] = {}
    for run in runs:
        for result in run.results:
            if result.number:
                seen = sum(one.kind in MEANING for one in result.events)
                width[result.number] = max(width.get(result.number, 1), seen)
    return width


class _DiagramBuilder:
    def __init__(self, run: ScenarioRun, width: Mapping[int, int], title: str) -> None:
        self.run, self.width, self.title = run, width, title
        setup = run.scenario.setup
        supers = {name for name, _ in setup.internal}
        joined = [h.label for h in run.occurrences() if h.kind == harness.JOINED]
        names = [*setup.everybody(), *joined]
        self.timeline_of = {name: lane for lane, name in enumerate(names)}
        self.timelines = [Lane(name, forwards=name in supers) for name in names]
        self.time = 0.0
        self.sent: dict[tuple[int, str], float] = {}
        self.acknowledged: dict[tuple[int, str], list[float]] = {}
        self.marks: list[Mark] = []
        self.arrows: list[Arrow] = []
        self.waiting: dict[tuple[int, str], HeldSpan] = {}
        self.holds: list[HeldSpan] = []
        self.ticks: list[AxisTick] = []
        self.states: list[StateLabel] = []
        self.changed: dict[int, list[tuple[str, dict[str, str]]]] = {}
        for result, name, fields in find_changed_states(run.results):
            self.changed.setdefault(result.number, []).append((name, fields))

    def build(self) -> Diagram:
        for result in self.run.results:
            if result.number:
                self._add_result(result)
        last = {(self.timeline_of[h.at], h.label): h.others for h in self.run.held}
        for key, held in self.waiting.items():
            self.holds.append(held._replace(waits_for=last.get(key, held.waits_for)))
        for source, label, target in self.run.in_flight:
            self._add_in_flight(source, label, target)
        holds = sorted(self.holds, key=lambda held: (held.begin, held.lane))
        return Diagram(
            self.title or self.run.scenario.title,
            *(tuple(self.timelines), tuple(self.marks), tuple(self.arrows), tuple(holds)),
            *(0.0, self.time + 1.0, "step", tuple(self.ticks)),
            states=tuple(self.states),
        )

    def _add_in_flight(self, source: str, label: str, target: str) -> None:
        lane = self.timeline_of[source]
        waiting = self.acknowledged.get((lane, label))
        sent = waiting.pop(0) if waiting else self.sent.get((lane, label))
        if sent is not None:
            at = self.time + 0.8
            self.arrows.append(Arrow(label, lane, sent, self.timeline_of[target], at, flying=True))

    def _add_result(self, result: CommandResult) -> None:
        self.time += 1.0
        self.ticks.append(AxisTick(self.time, str(result.number)))
        begin, marked = self.time, False
        for one in result.events:
            if one.kind in MEANING:
                # Deliveries released by an arrival follow it, each at its own time.
                self.time += 1.0 if marked else 0.0
                marked = True
            self._add_event(one)
        for name, fields in self.changed.get(result.number, ()):
            lines = tuple(f"{field} {text}" for field, text in fields.items())
            self.states.append(StateLabel(self.timeline_of[name], self.time, lines))
        self.time = max(self.time, begin + self.width.get(result.number, 1) - 1)

    def _add_event(self, event: ScenarioEvent) -> None:
        lane = self.timeline_of[event.at]
        key = (lane, event.label)
        if event.kind in (harness.SENT, harness.FORWARDED):
            self.sent[key] = self.time
        elif event.kind == CONTROL_SENT:
            if key not in self.sent:
                self.acknowledged.setdefault(key, []).append(self.time)
        elif event.kind in (harness.ARRIVED, harness.LOST):
            source = self.timeline_of[event.others[0]]
            waiting = self.acknowledged.get((source, event.label))
            sent = waiting.pop(0) if waiting else self.sent.get((source, event.label), self.time)
            self.arrows.append(Arrow(event.label, source, sent, lane, self.time))
        elif event.kind == harness.HELD:
            self.waiting[key] = HeldSpan(lane, event.label, self.time, None, event.others)
        elif event.kind == harness.JOINED:
            self.timelines[lane] = self.timelines[lane]._replace(begin=self.time)
        elif event.kind == harness.LEFT:
            self.timelines[lane] = self.timelines[lane]._replace(end=self.time)
        if event.kind != harness.HELD and (held := self.waiting.pop(key, None)) is not None:
            self.holds.append(held._replace(end=self.time))
        if event.kind in MEANING:
            self.marks.append(
                Mark(
                    lane,
                    self.time,
                    event.kind,
                    event.label,
                    _format_note(event),
                    event.is_violation,
                )
            )


def _format_note(event: ScenarioEvent) -> str:
    if event.is_wrong_recipient:
        return "is for others"
    if event.missing_causes:
        return f"before {', '.join(event.missing_causes)}"
    if event.order_conflict:
        return f"after {event.order_conflict[1]}, unlike {event.order_conflict[0]}"
    if event.kind == harness.HELD:
        return f"waits for {', '.join(event.others)}" if event.others else "waits"
    if event.kind == harness.RELEASED:
        return f"without {', '.join(event.others)}"
    if event.kind == harness.LOST:
        return "is lost on the way"
    if event.kind == harness.DISCARDED:
        return ", ".join(event.others)
    return ""


NOT_IN_STATE = "not in this global state"


def from_failure(failure: StateFailure, make_algorithm: Make, channels: str) -> Diagram:
    """Return a failure as a space-time diagram with messages, markers and recordings."""
    world = SnapshotRun(make_algorithm, failure.plan, channels)
    lanes = {name: k for k, name in enumerate(failure.plan.members)}
    marks: list[Mark] = []
    arrows: list[Arrow] = []
    sent: dict[ChannelCopy, int] = {}
    wrong = failure.witness
    for step, move in enumerate(failure.moves, 1):
        lane = lanes[move.member]
        before, recorded = set(world.in_flight), set(world.cut)
        world.apply(move)
        sent |= dict.fromkeys(set(world.in_flight) - before, step)
        if set(world.cut) - recorded:
            marks.append(Mark(lane, step, diagram_model.RECORD, move.member))
        if move.kind == "send":
            marks.append(Mark(lane, step, diagram_model.SEND, world.rows[-1].id))
        elif move.copy is not None:
            copy = move.copy
            marked = copy.marker is not None
            arrows.append(Arrow(copy.name, lanes[copy.sender], sent[copy], lane, step, marked))
            if not marked:
                bad = wrong is not None and (wrong.id, wrong.target) == (copy.name, move.member)
                note = wrong.what if bad and wrong is not None else ""
                marks.append(Mark(lane, step, diagram_model.DELIVER, copy.name, note, bad))
    ticks = tuple(AxisTick(k, str(k)) for k in range(1, len(failure.moves) + 1))
    names = tuple(Lane(name) for name in failure.plan.members)
    return Diagram(
        failure.why,
        names,
        tuple(marks),
        tuple(arrows),
        (),
        0,
        len(failure.moves) + 1,
        "step",
        ticks,
        NOT_IN_STATE,
    )
