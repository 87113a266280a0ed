"""What the times of some events say of their members' clocks: a note beside an answer."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow
import pyarrow.compute

from antecede.audit.skew import clock_skew
from antecede.audit.skew_words import findings
from antecede.causality.asking import CLOCKS, EVENTS, Causality
from antecede.kernels.graph import Ints, edge_table
from antecede.trace.schema import SEND

pc: Any = pyarrow.compute
MOST: Final = 200_000
"""Events that are looked at: an answer waits for no more."""
TIMES: Final = ("start_time", "send_time")
"""Times by the clock of an event's own member; an arrival's may be of an archive."""


def skew_among(asked: Causality, rows: pyarrow.Table) -> dict[str, Any] | None:
    """Return what the immediate causes among some rows of `asked` say of their members' clocks, as
    `antecede audit` tells it of a whole trace; None where there are no times or too many rows.

    Where rows tell of sendings and arrivals, causes are those that sendings declare.
    """
    places: Any = pc.unique(rows["file_order"])
    at = pc.index_in(places, asked.events["file_order"]).to_numpy(zero_copy_only=False)
    at = np.sort(at[asked.alive[at]]).astype(np.int64)
    if not 0 < len(at) <= MOST:
        return None
    events: Any = asked.events.take(pyarrow.array(at))
    if asked.by == EVENTS:
        events = _first_of_each(events.filter(pc.equal(events["kind"], SEND)))
    time = next((one for one in TIMES if events[one].null_count < len(events)), None)
    if time is None:
        return None
    causes, effects = _declared(events) if asked.by == EVENTS else _immediate(asked, at)
    return clock_skew(events, causes, effects, time)


def _immediate(asked: Causality, at: Ints) -> tuple[Ints, Ints]:
    offsets, causes = asked.edges_among(at)
    kept = causes >= 0
    if asked.by == CLOCKS:
        kept &= asked.immediate_among(at)
    return causes[kept], np.repeat(np.arange(len(at)), np.diff(offsets))[kept]


def _declared(events: pyarrow.Table) -> tuple[Ints, Ints]:
    edges: Any = edge_table(events)
    known = edges.filter(pc.is_valid(edges["parent"]))
    return known["parent"].to_numpy().astype(np.int64), known["child"].to_numpy().astype(np.int64)


def _first_of_each(events: Any) -> Any:
    """Return the first row of each message: ids are to be distinct."""
    codes = [
        pc.fill_null(events[name].combine_chunks().dictionary_encode().indices, -1).to_numpy()
        for name in ("run", "id")
    ]
    _, first = np.unique(np.stack(codes), axis=1, return_index=True)
    return events.take(pyarrow.array(np.sort(first)))


def skew_notes(skew: dict[str, Any] | None) -> list[str]:
    """Return it in sentences; none where all times fit."""
    if skew is None:
        return []
    return [f"among these, {what}" for what, _ in findings(skew, "events")]
