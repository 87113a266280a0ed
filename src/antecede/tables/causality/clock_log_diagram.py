"""A vector-clock log as a space-time diagram: its events, and the messages that clocks show."""

from __future__ import annotations

import numpy as np

from antecede.core import diagram_model
from antecede.core.diagram_model import Arrow, Diagram, Lane, Mark, Tick
from antecede.errors import InputError, LimitError
from antecede.formatting import harmless
from antecede.tables.causality.global_states import States
from antecede.tables.causality.queries import CLOCKS, Causality
from antecede.tables.trace import Trace

MOST_EVENTS = 300  # more are no picture but a page: `antecede view`


def from_clocks(trace: Trace, run: str | None = None, title: str = "") -> Diagram:
    """Return the diagram of a log, in logical time.

    An arrow is a member's event that a clock has first, and by no other event. Raises InputError
    for a trace without clocks, LimitError for more than MOST_EVENTS events.
    """
    asked = Causality(trace)
    if asked.by != CLOCKS:
        raise InputError(f"no vector-clock log: it tells what came before what by {asked.by}")
    states = States(asked, run)
    rows = sorted(row for of in states.lines for row in of)
    if len(rows) > MOST_EVENTS:
        raise LimitError(
            f"{len(rows):,} events are no picture; up to {MOST_EVENTS} are. `antecede view` makes "
            "a page of them"
        )
    lane = {row: k for k, of in enumerate(states.lines) for row in of}
    depth = states.depths()
    labels = states.labels()
    marks = tuple(
        Mark(
            lane[row],
            float(depth[row]),
            diagram_model.LOCAL,
            labels[row],
            _line(str(states.texts[row])),
        )
        for row in rows
    )
    arrows = tuple(
        Arrow(labels[cause], lane[cause], float(depth[cause]), lane[effect], float(depth[effect]))
        for cause, effect in states.messages()
    )
    last = int(np.max(depth, initial=0))
    ticks = tuple(Tick(float(k), str(k)) for k in range(1, last + 1))
    lanes = tuple(Lane(_line(name)) for name in states.members)
    return Diagram(title, lanes, marks, arrows, (), 0.0, last + 1.0, "step", ticks)


def _line(text: str) -> str:
    """Return a text as one line that terminals show and XML may hold."""
    return harmless(" ".join(text.splitlines()))
