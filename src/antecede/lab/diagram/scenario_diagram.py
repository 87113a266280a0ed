"""Diagrams of scenarios and of snapshot algorithms; the time axis counts steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from antecede.core import diagram_model
from antecede.core.diagram_model import MEANING, Arrow, Diagram, Held, Lane, Mark, State, Tick
from antecede.core.global_snapshots import Make
from antecede.lab.check import Copy, StateFailure, World, harness
from antecede.lab.check.scenario import (
    ACKNOWLEDGED,
    CommandResult,
    Occurrence,
    ScriptRun,
    changed_states,
)


def from_run(run: ScriptRun, title: str = "") -> Diagram:
    """Return the diagram of an executed scenario."""
    return _Steps(run, {}, title).diagram()


def stacked(runs: Sequence[ScriptRun], titles: Sequence[str]) -> list[Diagram]:
    """Return the diagrams of a scenario under several protocols, with a common time axis."""
    width = widths(runs)
    return [_Steps(run, width, title).diagram() for run, title in zip(runs, titles, strict=True)]


def widths(runs: Iterable[ScriptRun]) -> dict[int, int]:
    """Return the width of each numbered action on the common axis of these runs.

    The first action begins at 1.0, each other at the end of the one before.
    """
    width: dict[int, int] = {}
    for run in runs:
        for result in run.results:
            if result.number:
                seen = sum(one.kind in MEANING for one in result.occurrences)
                width[result.number] = max(width.get(result.number, 1), seen)
    return width


class _Steps:
    def __init__(self, run: ScriptRun, width: Mapping[int, int], title: str) -> None:
        self.run, self.width, self.title = run, width, title
        setup = run.script.setup
        supers = {name for name, _ in setup.internal}
        joined = [h.label for h in run.occurrences() if h.kind == harness.JOINED]
        names = [*setup.everybody(), *joined]
        self.number = {name: lane for lane, name in enumerate(names)}
        self.lanes = [Lane(name, forwards=name in supers) for name in names]
        self.time = 0.0
        self.sent: dict[tuple[int, str], float] = {}
        self.acknowledged: dict[tuple[int, str], list[float]] = {}
        self.marks: list[Mark] = []
        self.arrows: list[Arrow] = []
        self.waiting: dict[tuple[int, str], Held] = {}
        self.holds: list[Held] = []
        self.ticks: list[Tick] = []
        self.states: list[State] = []
        self.changed: dict[int, list[tuple[str, dict[str, str]]]] = {}
        """Changed fields (member, state) by number of the action."""
        for result, name, fields in changed_states(run.results):
            self.changed.setdefault(result.number, []).append((name, fields))

    def diagram(self) -> Diagram:
        for result in self.run.results:
            if result.number:
                self._result(result)
        last = {(self.number[h.at], h.label): h.others for h in self.run.held}
        for key, held in self.waiting.items():
            self.holds.append(held._replace(waits_for=last.get(key, held.waits_for)))
        for source, label, target in self.run.flying:
            self._still_flying(source, label, target)
        holds = sorted(self.holds, key=lambda held: (held.begin, held.lane))
        return Diagram(
            self.title or self.run.script.title,
            *(tuple(self.lanes), tuple(self.marks), tuple(self.arrows), tuple(holds)),
            *(0.0, self.time + 1.0, "step", tuple(self.ticks)),
            states=tuple(self.states),
        )

    def _still_flying(self, source: str, label: str, target: str) -> None:
        lane = self.number[source]
        waiting = self.acknowledged.get((lane, label))
        sent = waiting.pop(0) if waiting else self.sent.get((lane, label))
        if sent is not None:
            at = self.time + 0.8
            self.arrows.append(Arrow(label, lane, sent, self.number[target], at, flying=True))

    def _result(self, result: CommandResult) -> None:
        self.time += 1.0
        self.ticks.append(Tick(self.time, str(result.number)))
        begin, marked = self.time, False
        for one in result.occurrences:
            if one.kind in MEANING:
                # Deliveries released by an arrival follow it, each at its own time.
                self.time += 1.0 if marked else 0.0
                marked = True
            self._occurrence(one)
        for name, fields in self.changed.get(result.number, ()):
            lines = tuple(f"{field} {text}" for field, text in fields.items())
            self.states.append(State(self.number[name], self.time, lines))
        self.time = max(self.time, begin + self.width.get(result.number, 1) - 1)

    def _occurrence(self, one: Occurrence) -> None:
        lane = self.number[one.at]
        key = (lane, one.label)
        if one.kind in (harness.SENT, harness.FORWARDED):
            self.sent[key] = self.time
        elif one.kind == ACKNOWLEDGED:
            if key not in self.sent:
                self.acknowledged.setdefault(key, []).append(self.time)
        elif one.kind in (harness.ARRIVED, harness.LOST):
            source = self.number[one.others[0]]
            waiting = self.acknowledged.get((source, one.label))
            sent = waiting.pop(0) if waiting else self.sent.get((source, one.label), self.time)
            self.arrows.append(Arrow(one.label, source, sent, lane, self.time))
        elif one.kind == harness.HELD:
            self.waiting[key] = Held(lane, one.label, self.time, None, one.others)
        elif one.kind == harness.JOINED:
            self.lanes[lane] = self.lanes[lane]._replace(begin=self.time)
        elif one.kind == harness.LEFT:
            self.lanes[lane] = self.lanes[lane]._replace(end=self.time)
        if one.kind != harness.HELD and (held := self.waiting.pop(key, None)) is not None:
            self.holds.append(held._replace(end=self.time))
        if one.kind in MEANING:
            self.marks.append(Mark(lane, self.time, one.kind, one.label, _note(one), one.wrong))


def _note(one: Occurrence) -> str:
    if one.astray:
        return "wrong receiver"
    if one.early_for:
        return f"before {', '.join(one.early_for)}"
    if one.unlike:
        return f"after {one.unlike[1]}, unlike {one.unlike[0]}"
    if one.kind == harness.HELD:
        return f"waits for {', '.join(one.others)}" if one.others else "waits"
    if one.kind == harness.RELEASED:
        return f"without {', '.join(one.others)}"
    if one.kind == harness.LOST:
        return "is lost"
    if one.kind == harness.DISCARDED:
        return ", ".join(one.others)
    return ""


WRONG = "not in this global state"


def from_failure(failure: StateFailure, kind: Make, channels: str) -> Diagram:
    """Return a failure as a space-time diagram with messages, markers and recordings."""
    world = World(kind, failure.plan, channels)
    lanes = {name: k for k, name in enumerate(failure.plan.members)}
    marks: list[Mark] = []
    arrows: list[Arrow] = []
    sent: dict[Copy, int] = {}
    wrong = failure.witness
    for step, move in enumerate(failure.moves, 1):
        lane = lanes[move.member]
        before, recorded = set(world.flying), set(world.cut)
        world.make(move)
        sent |= dict.fromkeys(set(world.flying) - before, step)
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
    ticks = tuple(Tick(k, str(k)) for k in range(1, len(failure.moves) + 1))
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
        WRONG,
    )
