"""Space-time diagram of a snapshot algorithm: messages, markers, recordings."""

from __future__ import annotations

from antecede.core import diagram_model
from antecede.core.diagram_model import Arrow, Diagram, Lane, Mark, Tick
from antecede.core.global_snapshots import Make
from antecede.lab.check import Copy, StateFailure, World

WRONG = "not of this global state"


def from_failure(failure: StateFailure, kind: Make, channels: str) -> Diagram:
    """Return a failure as a space-time diagram: messages, markers, and where each recorded."""
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
