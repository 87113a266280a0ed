"""Findings, orders, clocks, waits and missing causes next to the diagram of a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow
import pyarrow.compute

from antecede.formatting import count_and_part, counted, duration
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

pa: Any = pyarrow
pc: Any = pyarrow.compute
SHOWN_MISSING: Final = 50  # ids of missing causes on a page
SHOWN_WAITS: Final = 20
SHOWN_SKEWED: Final = 20
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

    def find_rows(self, *ids: str | None) -> list[int]:
        """Return the first row of each id; [] if one is not in the model."""
        listed = self.events["id"]
        found = [-1 if one is None else int(pc.index(listed, one).as_py()) for one in ids]
        return [] if -1 in found else found


def collect_findings(trace: Trace, inputs: FindingInputs, notes: Sequence[str]) -> dict[str, Any]:
    """Return the lists next to a diagram as JSON values; rows are those of the model."""
    report = audit_trace(trace)
    shown = collect_from_rows(inputs)
    other_notes = [
        one for one in notes if not (one.endswith(_REPEATED_NOTES) or _SEPARATOR_NOTE in one)
    ]
    listed: list[dict[str, Any]] = [
        *_list_own_findings(inputs, shown["axes"], shown["waits"]),
        *_list_audit_findings(report, inputs),
        *({"what": note, "advice": "", "rows": []} for note in other_notes),
    ]
    return {
        **shown,
        "findings": listed,
        "orders": [_describe_order(report, name, inputs) for name in report.inversions],
        "skew": _describe_skew(report, inputs),
        "missing": _describe_missing(report, inputs),
        "messages": report.messages,
        "edges": report.edges,
    }


def collect_from_rows(inputs: FindingInputs) -> dict[str, Any]:
    """Return the same lists for a tile, from its own rows and without an audit."""
    return {
        "findings": [],
        "axes": list(_list_inversions(inputs)),
        "orders": [],
        "waits": _list_waits(inputs),
        "skew": None,
        "missing": {"ids": 0, "references": 0, "named": []},
        "messages": len(inputs.events),
        "edges": len(inputs.edges.cause),
    }


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
                "what": f"{counted(len(found), one, several)} {what}",
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
        largest = counted(step, "place") if places else duration(step / 1e6)
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
        {"delivered": int(rows[k]), "received": int(received[rows[k]]), "ns": int(waited[k])}
        for k in best.tolist()
        if waited[k] > 0
    ]


def _describe_skew(report: AuditReport, inputs: FindingInputs) -> dict[str, Any] | None:
    # An audit compares declared causes; with arrivals, their edges are more complete.
    found = None if inputs.by == EVENTS else report.details.get("clock_skew")
    if not (found and found["pairs"]) and inputs.axes and len(inputs.edges.cause):
        axis = inputs.axes[0]
        column = pa.array(axis.offset_ns, mask=~axis.known)
        table = inputs.events.set_column(
            inputs.events.column_names.index("send_time"), "send_time", column
        )
        found = clock_skew(table, *inputs.edges, "send_time")
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
