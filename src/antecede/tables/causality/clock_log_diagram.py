"""Space-time diagram of a vector-clock log: its events, and the messages that clocks imply."""

from __future__ import annotations

import numpy as np

from antecede.core import diagram_model
from antecede.core.diagram_model import Arrow, AxisTick, Diagram, Lane, Mark
from antecede.errors import InputError, LimitError
from antecede.formatting import harmless
from antecede.tables.causality.global_states import States
from antecede.tables.causality.queries import CLOCKS, Causality
from antecede.tables.trace import Trace

MAX_EVENTS = 300  # for more there is `antecede view`


def from_clocks(trace: Trace, run: str | None = None, title: str = "") -> Diagram:
    """Return the diagram of a log, in logical time; arrows are immediate causes.

    Raises InputError for a trace without clocks, LimitError for too many events.
    """
    queries = Causality(trace)
    if queries.by != CLOCKS:
        raise InputError(f"not a vector-clock log: its source of causality is {queries.by}")
    states = States(queries, run)
    rows = sorted(row for rows_of_member in states.rows_by_member for row in rows_of_member)
    if len(rows) > MAX_EVENTS:
        raise LimitError(
            f"{len(rows):,} events exceed the limit of a diagram, {MAX_EVENTS}: use `antecede view`"
        )
    timeline = {
        row: k for k, rows_of_member in enumerate(states.rows_by_member) for row in rows_of_member
    }
    depth = states.compute_depths()
    labels = states.list_labels()
    marks = tuple(
        Mark(
            timeline[row],
            float(depth[row]),
            diagram_model.LOCAL,
            labels[row],
            _to_single_line(str(states.texts[row])),
        )
        for row in rows
    )
    arrows = tuple(
        Arrow(
            labels[cause],
            timeline[cause],
            float(depth[cause]),
            timeline[effect],
            float(depth[effect]),
        )
        for cause, effect in states.list_messages()
    )
    last = int(np.max(depth, initial=0))
    ticks = tuple(AxisTick(float(k), str(k)) for k in range(1, last + 1))
    timelines = tuple(Lane(_to_single_line(name)) for name in states.members)
    return Diagram(title, timelines, marks, arrows, (), 0.0, last + 1.0, "step", ticks)


def _to_single_line(text: str) -> str:
    """Return a text as one line without characters that terminals or XML reject."""
    return harmless(" ".join(text.splitlines()))
