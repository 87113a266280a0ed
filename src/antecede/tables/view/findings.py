"""What a page says beside its picture: findings first, then orders, clocks, waits, missing causes.

Sentences and counts are those of `antecede audit`; rows of the picture are added, so that a reader
can go to what a sentence is about.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow
import pyarrow.compute

from antecede.formatting import count_and_part, counted, duration
from antecede.tables.audit import PAIR_STEPS, AuditReport, Named, audit_events, chosen, clock_skew
from antecede.tables.audit import findings as said_of
from antecede.tables.causality import EVENTS, NO_EVENTS
from antecede.tables.kernels import RANKS
from antecede.tables.trace import Trace
from antecede.tables.view.columns import Bools, Ints, Times
from antecede.tables.view.copies import Copies

pa: Any = pyarrow
pc: Any = pyarrow.compute
MISSING: Final = 50
"""Ids of missing causes that a page names."""
WAITS: Final = 20
SKEWED: Final = 20


_TOLD: Final = (
    NO_EVENTS,
    "does not have: what came before these is not known",
)
"""Ends of notes of `Causality` that an audit says with more words."""
_SEVERAL: Final = " several ids in one"
"""Within another one."""


class Edges(NamedTuple):
    """Causes and effects at different members, rows of the picture [edges]."""

    cause: Ints
    effect: Ints


class Scene(NamedTuple):
    """What findings are made of."""

    events: pyarrow.Table
    """The rows of the picture."""
    by: str
    edges: Edges
    axes: Sequence[Times]
    copies: Copies | None
    alive: Bools


def findings(trace: Trace, scene: Scene, notes: Sequence[str]) -> dict[str, Any]:
    """Return what a page tells: JSON's types alone; rows are numbers of the picture's."""
    report = audited(trace)
    rows = _Rows(scene.events)
    inverted = list(_inversions(scene))
    waits = _waits(scene)
    skew = _skew(report, scene, rows)
    told: list[dict[str, Any]] = [*_own(scene, inverted, waits), *_of_audit(report, rows)]
    return {
        "findings": told
        + [_note(one) for one in notes if not (one.endswith(_TOLD) or _SEVERAL in one)],
        "axes": inverted,
        "orders": [_order(report, name, rows) for name in report.inversions],
        "waits": waits,
        "skew": skew,
        "missing": _missing(report, rows),
        "messages": report.messages,
        "edges": report.edges,
    }


def nothing_found(scene: Scene) -> dict[str, Any]:
    """Return the same of a piece of a trace: what its own rows show, no audit."""
    return {
        "findings": [],
        "axes": list(_inversions(scene)),
        "orders": [],
        "waits": _waits(scene),
        "skew": None,
        "missing": {"ids": 0, "references": 0, "named": []},
        "messages": len(scene.events),
        "edges": len(scene.edges.cause),
    }


def audited(trace: Trace) -> AuditReport:
    """Audit a trace that was read, without counting pairs."""
    return audit_events(
        trace.events,
        trace.format,
        quarantine=trace.quarantine,
        details=trace.details,
        named=Named(MISSING),
        choice=chosen(False, PAIR_STEPS, RANKS),
    )


class _Rows:
    """Finds the row of an id."""

    def __init__(self, events: pyarrow.Table) -> None:
        self._ids = events["id"]

    def of(self, *ids: str | None) -> list[int]:
        """Return the first row of each id; [] where one is not in the picture."""
        found = [-1 if one is None else int(pc.index(self._ids, one).as_py()) for one in ids]
        return [] if -1 in found else found


# -- sentences ------------------------------------------------------------------------------------


def _note(text: str) -> dict[str, Any]:
    return {"what": text, "advice": "", "rows": []}


def _of_audit(report: AuditReport, rows: _Rows) -> Iterator[dict[str, Any]]:
    named = [
        (one["cause"], one["effect"])
        for one in (
            *report.details.get("worst_inversions", {}).values(),
            (report.details.get("clock_skew") or {}).get("worst"),
        )
        if one
    ]
    for finding in said_of(report):
        pair = next((ids for ids in named if all(id in finding.what for id in ids)), (None,))
        yield {"what": finding.what, "advice": finding.advice, "rows": rows.of(*pair)}


def _own(
    scene: Scene, inverted: Sequence[Mapping[str, Any]], waits: Sequence[Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Yield what the picture itself shows and no audit says."""
    if scene.by == EVENTS and inverted and inverted[0]["count"]:
        worst = inverted[0]
        yield {
            "what": f"{count_and_part(worst['count'], worst['compared'])} of "
            f"{worst['compared']:,} messages arrive before they are sent, by the clocks of both "
            f"ends, by up to {duration(worst['largest'] / 1e6)}",
            "advice": "clocks differ: see Clocks below",
            "rows": worst["rows"],
        }
    if scene.copies is not None:
        yield from _copies(scene, scene.copies)
    if waits:
        longest = waits[0]
        yield {
            "what": f"the longest wait from arrival to delivery is {duration(longest['ns'] / 1e6)}",
            "advice": "choose it: the event says what it waited for",
            "rows": [longest["received"], longest["delivered"]],
        }


def _copies(scene: Scene, copies: Copies) -> Iterator[dict[str, Any]]:
    from antecede.tables.view.copies import AGAIN, NOWHERE, UNDELIVERED

    for bit, one, several, what, advice in (
        (NOWHERE, "message", "messages", "without an arrival", "lost, or still on its way"),
        (
            *(UNDELIVERED, "copy was", "copies were", "held to the end"),
            "received by a member that never delivers it",
        ),
        (
            *(AGAIN, "arrival was", "arrivals were", "repeated"),
            "of a copy that had come to the member before",
        ),
    ):
        found = np.flatnonzero(copies.marks & bit)
        if len(found):
            yield {
                "what": f"{counted(len(found), one, several)} {what}",
                "advice": advice,
                "rows": [int(found[0])],
            }


# -- tables ---------------------------------------------------------------------------------------


def _inversions(scene: Scene) -> Iterator[dict[str, Any]]:
    """Yield, for each time, how many effects are before a cause at another member, by the edges
    of the picture.
    """
    cause, effect = scene.edges
    for axis in scene.axes:
        both = axis.known[cause] & axis.known[effect]
        back = np.where(both, axis.after[cause] - axis.after[effect], 0)
        wrong = back > 0
        worst = int(back.argmax()) if wrong.any() else -1
        yield {
            "axis": axis.name,
            "count": int(np.count_nonzero(wrong)),
            "compared": int(np.count_nonzero(both)),
            "largest": int(back[worst]) if worst >= 0 else 0,
            "rows": [int(cause[worst]), int(effect[worst])] if worst >= 0 else [],
        }


def _order(report: AuditReport, name: str, rows: _Rows) -> dict[str, Any]:
    worst = report.details.get("worst_inversions", {}).get(name) or {}
    step = report.details["max_inversions"].get(name)
    places = name in ("ingest", "file_order")
    return {
        "order": name,
        "count": report.inversions[name],
        "compared": report.details["compared_edges"][name],
        "largest": ""
        if step is None
        else counted(step, "place")
        if places
        else duration(step / 1e6),
        "rows": rows.of(worst["cause"], worst["effect"]) if worst and step is not None else [],
    }


def _waits(scene: Scene) -> list[dict[str, Any]]:
    """Return the longest waits from receipt to delivery, the longest first."""
    if scene.copies is None or not scene.axes:
        return []
    axis, received = scene.axes[0], scene.copies.received
    rows = np.flatnonzero(received >= 0)
    rows = rows[axis.known[rows] & axis.known[received[rows]]]
    waited = axis.after[rows] - axis.after[received[rows]]
    best = np.argsort(-waited, kind="stable")[:WAITS]
    return [
        {
            "delivered": int(rows[k]),
            "received": int(received[rows[k]]),
            "ns": int(waited[k]),
        }
        for k in best.tolist()
        if waited[k] > 0
    ]


def _skew(report: AuditReport, scene: Scene, rows: _Rows) -> dict[str, Any] | None:
    """Return how far the members' clocks must be apart; None where no times tell."""
    # An audit compares declared causes; where arrivals are told, these say more.
    found = None if scene.by == EVENTS else report.details.get("clock_skew")
    if not (found and found["pairs"]) and scene.axes and len(scene.edges.cause):
        axis = scene.axes[0]
        column = pa.array(axis.after, mask=~axis.known)
        table = scene.events.set_column(
            scene.events.column_names.index("send_time"), "send_time", column
        )
        found = clock_skew(table, *scene.edges, "send_time")
    if not found:
        return None
    pairs = [pair for pair in found["pairs"] if pair["violations"]][:SKEWED]
    return {
        "hosts": [
            {**host, "rows": _witness(host["worst"], scene, rows)}
            for host in found["hosts"][:SKEWED]
        ],
        "pairs": [
            {
                name: pair[name]
                for name in ("of", "against", "least_shift_ns", "violations", "edges")
            }
            | {"rows": _worst_between(scene, pair["of"], pair["against"])}
            for pair in pairs
        ],
        "compared": len(found["pairs"]),
        "consistent": found["consistent"],
        "worst": found["worst"] and _witness(found["worst"], scene, rows),
    }


def _witness(worst: Mapping[str, Any] | None, scene: Scene, rows: _Rows) -> list[int]:
    if worst is None:
        return []
    return _worst_between(scene, worst["of"], worst["against"]) or rows.of(
        worst["cause"], worst["effect"]
    )


def _worst_between(scene: Scene, one: str, other: str) -> list[int]:
    """Return the edge between two members whose effect is the earliest before its cause."""
    if not scene.axes:
        return []
    cause, effect = scene.edges
    codes = pc.index_in(scene.events["member"], pa.array([one, other]))
    side = pc.fill_null(codes, -1).to_numpy()
    axis = scene.axes[0]
    between = (side[cause] >= 0) & (side[effect] >= 0) & (side[cause] != side[effect])
    between &= axis.known[cause] & axis.known[effect]
    if not between.any():
        return []
    back = np.where(between, axis.after[cause] - axis.after[effect], np.iinfo(np.int64).min)
    worst = int(back.argmax())
    return [int(cause[worst]), int(effect[worst])]


def _missing(report: AuditReport, rows: _Rows) -> dict[str, Any]:
    told = report.details.get("missing") or []
    return {
        "ids": report.details.get("missing_ids") or 0,
        "references": report.missing_parents or 0,
        "named": [
            {
                "id": one["id"],
                "references": one["references"],
                "rows": rows.of(one["first"]),
                "set_aside": one["set_aside"],
            }
            for one in told
        ],
    }
