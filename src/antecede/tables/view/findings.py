"""Findings, orders, clocks, waits and missing causes next to the diagram of a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow
import pyarrow.compute

from antecede.formatting import count_and_part, duration, pluralize
from antecede.tables.audit import (
    PAIR_STEPS,
    AuditReport,
    Named,
    audit_events,
    choose_pairs,
    clock_skew,
    list_findings,
)
from antecede.tables.causality import EVENTS, NO_EVENTS
from antecede.tables.kernels import RANKS, Bools, Ints
from antecede.tables.trace import Trace
from antecede.tables.view.columns import Times
from antecede.tables.view.copies import NOT_RECEIVED, REPEATED_COPY, UNDELIVERED, CopyRelations
from antecede.tables.view.severity import ERROR, Severity
from antecede.tables.view.tile_axes import NO_MEMBER

pa: Any = pyarrow
pc: Any = pyarrow.compute
SHOWN_MISSING: Final = 50  # ids of missing causes on a page
SHOWN_WAITS: Final = 20
SHOWN_SKEWED: Final = 20
CORRECTED: Final = "corrected"  # axis: event time with the shifts of `clock_skew`
_PAIR_KEYS: Final = ("of", "against", "least_shift_ns", "violations", "edges")


# Notes of `Causality` that audits contain as well: ends of two, and a part of another.
_REPEATED_NOTES: Final = (NO_EVENTS, ", so earlier events are unknown")
_SEPARATOR_NOTE: Final = " several ids in one"


_COPY_FINDINGS: Final = (
    (NOT_RECEIVED, "message", "messages", "without an arrival", "lost, or still in transit"),
    (
        *(UNDELIVERED, "copy was", "copies were", "held to the end"),
        "received, but not delivered",
    ),
    (
        *(REPEATED_COPY, "arrival was", "arrivals were", "repeated"),
        "of a copy that had arrived at the member before",
    ),
)


class CrossEdges(NamedTuple):
    """Causes and effects at different members, as rows of the model [edges]."""

    cause: Ints
    effect: Ints


class FindingInputs(NamedTuple):
    """Rows of a model and their relations."""

    events: pyarrow.Table
    by: str
    edges: CrossEdges
    axes: Sequence[Times]
    copies: CopyRelations | None
    alive: Bools
    severity: Severity

    def find_rows(self, *ids: str | None) -> list[int]:
        """Return the first row of each id; [] if one is not in the model."""
        listed = self.events["id"]
        found = [-1 if one is None else int(pc.index(listed, one).as_py()) for one in ids]
        return [] if -1 in found else found


def collect_findings(
    trace: Trace, inputs: FindingInputs, notes: Sequence[str]
) -> tuple[FindingInputs, dict[str, Any]]:
    """Return the inputs with corrected times, and the lists next to a diagram as JSON values.

    Rows are those of the model.
    """
    report = audit_trace(trace)
    skew = _find_skew(report, inputs)
    inputs = _add_corrected_times(inputs, skew)
    shown = collect_from_rows(inputs)
    other_notes = [
        one for one in notes if not (one.endswith(_REPEATED_NOTES) or _SEPARATOR_NOTE in one)
    ]
    listed: list[dict[str, Any]] = [
        *_list_errors(inputs),
        *_list_own_findings(inputs, shown["axes"], shown["waits"]),
        *_list_audit_findings(report, inputs),
        *({"what": note, "advice": "", "rows": []} for note in other_notes),
    ]
    return inputs, {
        **shown,
        "findings": listed,
        "orders": [_describe_order(report, name, inputs) for name in report.inversions],
        "skew": _describe_skew(skew, inputs),
        "missing": _describe_missing(report, inputs),
        "messages": report.messages,
        "edges": report.edges,
    }


def collect_from_rows(inputs: FindingInputs) -> dict[str, Any]:
    """Return the same lists for a tile, from its own rows and without an audit."""
    return {
        "findings": [],
        "first_error": _find_first_error(inputs),
        "axes": list(_list_inversions(inputs)),
        "orders": [],
        "waits": _list_waits(inputs),
        "skew": None,
        "missing": {"ids": 0, "references": 0, "named": []},
        "messages": len(inputs.events),
        "edges": len(inputs.edges.cause),
    }


_ROW_KEYS: Final = ("rows", "delivered", "received", "first_error")


def rows_to_places(value: Any, places: Ints, key: str = "") -> Any:
    """Return lists next to a diagram with positions in the files instead of rows."""
    if isinstance(value, dict):
        return {name: rows_to_places(one, places, name) for name, one in value.items()}
    if isinstance(value, list):
        return [rows_to_places(one, places, key) for one in value]
    return int(places[value]) if key in _ROW_KEYS and value >= 0 else value


def audit_trace(trace: Trace) -> AuditReport:
    """Audit a trace that was read, without counting pairs."""
    return audit_events(
        trace.events,
        trace.format,
        quarantine=trace.quarantine,
        details=trace.details,
        named=Named(SHOWN_MISSING),
        choice=choose_pairs(False, PAIR_STEPS, RANKS),
    )


# -- severity and corrected clocks ----------------------------------------------------------------


def _find_first_error(inputs: FindingInputs) -> int:
    """Return the earliest error, by the corrected clocks if there are any; -1 without one."""
    errors = np.flatnonzero(inputs.severity.rows == ERROR)
    if not len(errors):
        return -1
    axis = next((one for one in inputs.axes if one.name == CORRECTED), None) or next(
        iter(inputs.axes), None
    )
    place = inputs.events["file_order"].to_numpy()[errors]
    if axis is None:
        return int(errors[place.argmin()])
    time = np.where(axis.known[errors], axis.offset_ns[errors], np.iinfo(np.int64).max)
    return int(errors[np.lexsort((place, time))[0]])


def _list_errors(inputs: FindingInputs) -> Iterator[dict[str, Any]]:
    first = _find_first_error(inputs)
    if first < 0:
        return
    count = int(np.count_nonzero(inputs.severity.rows == ERROR))
    id, member = (inputs.events[name][first].as_py() for name in ("id", "member"))
    where = "" if member is None or id.startswith(f"{member}:") else f" at {member}"
    columns = inputs.severity.columns
    named = f"{'column' if len(columns) == 1 else 'columns'} {', '.join(columns)}"
    yield {
        "what": f"{pluralize(count, 'error')} ({named}); the first is {id}{where}",
        "advice": "select the event to see its causal past",
        "rows": [first],
    }


def _add_corrected_times(inputs: FindingInputs, skew: Mapping[str, Any] | None) -> FindingInputs:
    """Add the event time with the shifts that explain all inversions, if there are any."""
    shifts = {} if skew is None or not skew["consistent"] else skew["shifts_ns"]
    shifts = {name: shift for name, shift in shifts.items() if shift}
    if not shifts or not inputs.axes:
        return inputs
    time = inputs.axes[0]
    number = pc.index_in(inputs.events["member"], pa.array(list(shifts), pa.string()))
    shift = np.array([*shifts.values(), 0], np.int64)[pc.fill_null(number, -1).to_numpy()]
    corrected = time._replace(name=CORRECTED, offset_ns=time.offset_ns + shift)
    return inputs._replace(axes=[time, corrected, *inputs.axes[1:]])


# -- sentences ------------------------------------------------------------------------------------


def _list_audit_findings(report: AuditReport, inputs: FindingInputs) -> Iterator[dict[str, Any]]:
    named = [
        (one["cause"], one["effect"])
        for one in (
            *report.details.get("worst_inversions", {}).values(),
            (report.details.get("clock_skew") or {}).get("worst"),
        )
        if one
    ]
    for finding in list_findings(report):
        pair = next((ids for ids in named if all(id in finding.what for id in ids)), (None,))
        yield {"what": finding.what, "advice": finding.advice, "rows": inputs.find_rows(*pair)}


def _list_own_findings(
    inputs: FindingInputs, inverted: Sequence[Mapping[str, Any]], waits: Sequence[Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    if inputs.by == EVENTS and inverted and inverted[0]["count"]:
        worst = inverted[0]
        yield {
            "what": f"{count_and_part(worst['count'], worst['compared'])} of "
            f"{worst['compared']:,} messages arrive before they are sent, by the clocks of "
            f"sender and receiver, by up to {duration(worst['largest'] / 1e6)}",
            "advice": "clocks differ: see Clocks below",
            "rows": worst["rows"],
        }
    if inputs.copies is not None:
        yield from _list_copy_findings(inputs, inputs.copies)
    if waits:
        longest = waits[0]
        yield {
            "what": f"the longest wait from arrival to delivery is {duration(longest['ns'] / 1e6)}",
            "advice": "select the event to see its missing causes",
            "rows": [longest["received"], longest["delivered"]],
        }


def _list_copy_findings(inputs: FindingInputs, copies: CopyRelations) -> Iterator[dict[str, Any]]:
    for bit, one, several, what, advice in _COPY_FINDINGS:
        found = np.flatnonzero(copies.marks & bit)
        if len(found):
            yield {
                "what": f"{pluralize(len(found), one, several)} {what}",
                "advice": advice,
                "rows": [int(found[0])],
            }


# -- tables ---------------------------------------------------------------------------------------


def _list_inversions(inputs: FindingInputs) -> Iterator[dict[str, Any]]:
    """Yield, for each time, the number of effects before a cause at another member."""
    cause, effect = inputs.edges
    for axis in inputs.axes:
        both = axis.known[cause] & axis.known[effect]
        back = np.where(both, axis.offset_ns[cause] - axis.offset_ns[effect], 0)
        wrong = back > 0
        worst = int(back.argmax()) if wrong.any() else -1
        yield {
            "axis": axis.name,
            "count": int(np.count_nonzero(wrong)),
            "compared": int(np.count_nonzero(both)),
            "largest": int(back[worst]) if worst >= 0 else 0,
            "rows": [int(cause[worst]), int(effect[worst])] if worst >= 0 else [],
        }


def _describe_order(report: AuditReport, name: str, inputs: FindingInputs) -> dict[str, Any]:
    worst = report.details.get("worst_inversions", {}).get(name) or {}
    step = report.details["max_inversions"].get(name)
    largest = ""
    if step is not None:
        places = name in ("ingest", "file_order")
        largest = pluralize(step, "place") if places else duration(step / 1e6)
    return {
        "order": name,
        "count": report.inversions[name],
        "compared": report.details["compared_edges"][name],
        "largest": largest,
        "rows": inputs.find_rows(worst["cause"], worst["effect"]) if worst and step else [],
    }


def _list_waits(inputs: FindingInputs) -> list[dict[str, Any]]:
    if inputs.copies is None or not inputs.axes:
        return []
    axis, received = inputs.axes[0], inputs.copies.receipt_row
    rows = np.flatnonzero(received >= 0)
    rows = rows[axis.known[rows] & axis.known[received[rows]]]
    waited = axis.offset_ns[rows] - axis.offset_ns[received[rows]]
    best = np.argsort(-waited, kind="stable")[:SHOWN_WAITS]
    return [
        {
            "delivered": int(rows[k]),
            "received": int(received[rows[k]]),
            "ns": int(waited[k]),
            "message": inputs.events["id"][int(rows[k])].as_py(),
            "member": inputs.events["member"][int(rows[k])].as_py() or NO_MEMBER,
        }
        for k in best.tolist()
        if waited[k] > 0
    ]


def _find_skew(report: AuditReport, inputs: FindingInputs) -> dict[str, Any] | None:
    """Return the result of `clock_skew`; None without times of both ends of an edge."""
    # An audit compares declared causes; with arrivals, their edges are more complete.
    found: dict[str, Any] | None = report.details.get("clock_skew")
    if found and found["pairs"] and inputs.by != EVENTS:
        return found
    if not (inputs.axes and len(inputs.edges.cause)):
        return None if inputs.by == EVENTS else found
    axis = inputs.axes[0]
    column = pa.array(axis.offset_ns, mask=~axis.known)
    name = "send_time"
    table = inputs.events.set_column(inputs.events.column_names.index(name), name, column)
    return clock_skew(table, *inputs.edges, name)


def _describe_skew(found: Mapping[str, Any] | None, inputs: FindingInputs) -> dict[str, Any] | None:
    if not found:
        return None
    pairs = [pair for pair in found["pairs"] if pair["violations"]][:SHOWN_SKEWED]
    return {
        "hosts": [
            {**host, "rows": _find_witness(host["worst"], inputs)}
            for host in found["hosts"][:SHOWN_SKEWED]
        ],
        "pairs": [
            {
                **{name: pair[name] for name in _PAIR_KEYS},
                "rows": _find_worst_between(inputs, pair["of"], pair["against"]),
            }
            for pair in pairs
        ],
        "compared": len(found["pairs"]),
        "consistent": found["consistent"],
        "worst": found["worst"] and _find_witness(found["worst"], inputs),
    }


def _find_witness(worst: Mapping[str, Any] | None, inputs: FindingInputs) -> list[int]:
    if worst is None:
        return []
    between = _find_worst_between(inputs, worst["of"], worst["against"])
    return between or inputs.find_rows(worst["cause"], worst["effect"])


def _find_worst_between(inputs: FindingInputs, one: str, other: str) -> list[int]:
    """Return the edge between two members whose effect is the earliest before its cause."""
    if not inputs.axes:
        return []
    cause, effect = inputs.edges
    codes = pc.index_in(inputs.events["member"], pa.array([one, other]))
    side = pc.fill_null(codes, -1).to_numpy()
    axis = inputs.axes[0]
    between = (side[cause] >= 0) & (side[effect] >= 0) & (side[cause] != side[effect])
    between &= axis.known[cause] & axis.known[effect]
    if not between.any():
        return []
    back = np.where(between, axis.offset_ns[cause] - axis.offset_ns[effect], np.iinfo(np.int64).min)
    worst = int(back.argmax())
    return [int(cause[worst]), int(effect[worst])]


def _describe_missing(report: AuditReport, inputs: FindingInputs) -> dict[str, Any]:
    ids = report.details.get("missing") or []
    return {
        "ids": report.details.get("missing_ids") or 0,
        "references": report.missing_causes or 0,
        "named": [
            {
                "id": one["id"],
                "references": one["references"],
                "rows": inputs.find_rows(one["first"]),
                "quarantined": one["quarantined"],
            }
            for one in ids
        ],
    }
