"""The diagram of a script: time counts what happened, one place after the other."""

from __future__ import annotations

from antecede.check.script.execution import ACKNOWLEDGED, CommandResult, Occurrence, ScriptRun
from antecede.check.world import (
    ARRIVED,
    DISCARDED,
    FORWARDED,
    HELD,
    JOINED,
    LEFT,
    LOST,
    RELEASED,
    SENT,
)
from antecede.diagram.model import MEANING, Arrow, Diagram, Held, Lane, Mark, Tick


def from_run(run: ScriptRun) -> Diagram:
    """Return the diagram of a script that was carried out."""
    return _Steps(run).diagram()


class _Steps:
    def __init__(self, run: ScriptRun) -> None:
        self.run = run
        setup = run.script.setup
        supers = {name for name, _ in setup.internal}
        joined = [h.label for h in run.occurrences() if h.kind == JOINED]
        names = [*setup.everybody(), *joined]
        self.number = {name: lane for lane, name in enumerate(names)}
        self.lanes = [Lane(name, forwards=name in supers) for name in names]
        self.time = 0.0
        self.sent: dict[tuple[int, str], float] = {}
        self.acknowledged: dict[tuple[int, str], list[float]] = {}
        """Acknowledgements of one member share a name; their times, oldest first."""
        self.marks: list[Mark] = []
        self.arrows: list[Arrow] = []
        self.waiting: dict[tuple[int, str], Held] = {}
        self.holds: list[Held] = []
        self.ticks: list[Tick] = []

    def diagram(self) -> Diagram:
        for result in self.run.results:
            if result.number:
                self._result(result)
        last = {(self.number[h.at], h.label): h.others for h in self.run.held}
        for key, held in self.waiting.items():
            self.holds.append(held._replace(waits_for=last.get(key, held.waits_for)))
        holds = sorted(self.holds, key=lambda held: (held.begin, held.lane))
        title = self.run.script.title
        return Diagram(
            title, tuple(self.lanes), tuple(self.marks), tuple(self.arrows), tuple(holds),
            0.0, self.time + 1.0, "step", tuple(self.ticks),
        )  # fmt: skip

    def _result(self, result: CommandResult) -> None:
        self.time += 1.0
        self.ticks.append(Tick(self.time, str(result.number)))
        marked = False
        for one in result.occurrences:
            if one.kind in MEANING:
                # What an arrival sets free comes after it, each delivery in a place of its own.
                self.time += 1.0 if marked else 0.0
                marked = True
            self._occurrence(one)

    def _occurrence(self, one: Occurrence) -> None:
        lane = self.number[one.at]
        key = (lane, one.label)
        if one.kind in (SENT, FORWARDED):
            self.sent[key] = self.time
        elif one.kind == ACKNOWLEDGED:
            if key not in self.sent:
                self.acknowledged.setdefault(key, []).append(self.time)
        elif one.kind in (ARRIVED, LOST):
            source = self.number[one.others[0]]
            waiting = self.acknowledged.get((source, one.label))
            sent = waiting.pop(0) if waiting else self.sent.get((source, one.label), self.time)
            self.arrows.append(Arrow(one.label, source, sent, lane, self.time))
        elif one.kind == HELD:
            self.waiting[key] = Held(lane, one.label, self.time, None, one.others)
        elif one.kind == JOINED:
            self.lanes[lane] = self.lanes[lane]._replace(begin=self.time)
        elif one.kind == LEFT:
            self.lanes[lane] = self.lanes[lane]._replace(end=self.time)
        if one.kind != HELD and (held := self.waiting.pop(key, None)) is not None:
            self.holds.append(held._replace(end=self.time))
        if one.kind in MEANING:
            self.marks.append(Mark(lane, self.time, one.kind, one.label, _note(one), one.wrong))


def _note(one: Occurrence) -> str:
    """Return why, in a few words; empty where nothing needs to be said."""
    if one.astray:
        return "is for others"
    if one.early_for:
        return f"before {', '.join(one.early_for)}"
    if one.unlike:
        return f"after {one.unlike[1]}, unlike {one.unlike[0]}"
    if one.kind == HELD:
        return f"waits for {', '.join(one.others)}" if one.others else "waits"
    if one.kind == RELEASED:
        return f"without {', '.join(one.others)}"
    if one.kind == LOST:
        return "is lost on the way"
    if one.kind == DISCARDED:
        return ", ".join(one.others)
    return ""
