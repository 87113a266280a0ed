"""Findings, orders, clocks, waits and missing causes that a page lists beside its picture.

Sentences and counts are those of `antecede audit`, with rows of the picture as links.
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
from antecede.tables.kernels import RANKS, Bools, Ints
from antecede.tables.trace import Trace
from antecede.tables.view.columns import Times
from antecede.tables.view.copies import AGAIN, NOWHERE, UNDELIVERED, Copies

pa: Any = pyarrow
pc: Any = pyarrow.compute
MISSING: Final = 50  # ids of missing causes on a page
WAITS: Final = 20
SKEWED: Final = 20
_OF_PAIRS: Final = ("of", "against", "least_shift_ns", "violations", "edges")


# Notes of `Causality` that an audit has in more words: ends of two, and a part of another one.
_TOLD: Final = (NO_EVENTS, "does not have: what came before these is not known")
_SEVERAL: Final = " several ids in one"


_MARKED: Final = (
    (NOWHERE, "message", "messages", "without an arrival", "lost, or still on its way"),
    (
        *(UNDELIVERED, "copy was", "copies were", "held to the end"),
        "received by a member that never delivers it",
    ),
    (
        *(AGAIN, "arrival was", "arrivals were", "repeated"),
        "of a copy that had come to the member before",
    ),
)


class Edges(NamedTuple):
    """Causes and effects at different members, rows of the picture [edges]."""

    cause: Ints
    effect: Ints


class Scene(NamedTuple):
    """Rows of a picture and their relations."""

    events: pyarrow.Table
    by: str
    edges: Edges
    axes: Sequence[Times]
    copies: Copies | None
    alive: Bools

    def rows_of(self, *ids: str | None) -> list[int]:
        """Return the first row of each id; [] where one is not in the picture."""
        listed = self.events["id"]
        found = [-1 if one is None else int(pc.index(listed, one).as_py()) for one in ids]
        return [] if -1 in found else found


def findings(trace: Trace, scene: Scene, notes: Sequence[str]) -> dict[str, Any]:
    """Return the lists beside a picture: JSON's types alone; rows are numbers of the picture's."""
    report = audited(trace)
    shown = find_in_rows(scene)
    further = [one for one in notes if not (one.endswith(_TOLD) or _SEVERAL in one)]
    told: list[dict[str, Any]] = [
        *_own(scene, shown["axes"], shown["waits"]),
        *_of_audit(report, scene),
        *({"what": note, "advice": "", "rows": []} for note in further),
    ]
    return {
        **shown,
        "findings": told,
        "orders": [_order(report, name, scene) for name in report.inversions],
        "skew": _skew(report, scene),
        "missing": _missing(report, scene),
        "messages": report.messages,
        "edges": report.edges,
    }


def find_in_rows(scene: Scene) -> dict[str, Any]:
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


# -- sentences ------------------------------------------------------------------------------------


def _of_audit(report: AuditReport, scene: Scene) -> Iterator[dict[str, Any]]:
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
        yield {"what": finding.what, "advice": finding.advice, "rows": scene.rows_of(*pair)}


def _own(
    scene: Scene, inverted: Sequence[Mapping[str, Any]], waits: Sequence[Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Yield findings of the picture that no audit has."""
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
    for bit, one, several, what, advice in _MARKED:
        found = np.flatnonzero(copies.marks & bit)
        if len(found):
            yield {
                "what": f"{counted(len(found), one, several)} {what}",
                "advice": advice,
                "rows": [int(found[0])],
            }


# -- tables ---------------------------------------------------------------------------------------


def _inversions(scene: Scene) -> Iterator[dict[str, Any]]:
    """Yield, for each time, the number of effects before a cause at another member."""
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


def _order(report: AuditReport, name: str, scene: Scene) -> dict[str, Any]:
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
        "rows": scene.rows_of(worst["cause"], worst["effect"]) if worst and step else [],
    }


def _waits(scene: Scene) -> list[dict[str, Any]]:
    """Return the longest waits from receipt to delivery, in descending order."""
    if scene.copies is None or not scene.axes:
        return []
    axis, received = scene.axes[0], scene.copies.received
    rows = np.flatnonzero(received >= 0)
    rows = rows[axis.known[rows] & axis.known[received[rows]]]
    waited = axis.after[rows] - axis.after[received[rows]]
    best = np.argsort(-waited, kind="stable")[:WAITS]
    return [
        {"delivered": int(rows[k]), "received": int(received[rows[k]]), "ns": int(waited[k])}
        for k in best.tolist()
        if waited[k] > 0
    ]


def _skew(report: AuditReport, scene: Scene) -> dict[str, Any] | None:
    """Return the shifts of the members' clocks; None without times."""
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
            {**host, "rows": _witness(host["worst"], scene)} for host in found["hosts"][:SKEWED]
        ],
        "pairs": [
            {
                **{name: pair[name] for name in _OF_PAIRS},
                "rows": _worst_between(scene, pair["of"], pair["against"]),
            }
            for pair in pairs
        ],
        "compared": len(found["pairs"]),
        "consistent": found["consistent"],
        "worst": found["worst"] and _witness(found["worst"], scene),
    }


def _witness(worst: Mapping[str, Any] | None, scene: Scene) -> list[int]:
    if worst is None:
        return []
    between = _worst_between(scene, worst["of"], worst["against"])
    return between or scene.rows_of(worst["cause"], worst["effect"])


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


def _missing(report: AuditReport, scene: Scene) -> dict[str, Any]:
    told = report.details.get("missing") or []
    return {
        "ids": report.details.get("missing_ids") or 0,
        "references": report.missing_causes or 0,
        "named": [
            {
                "id": one["id"],
                "references": one["references"],
                "rows": scene.rows_of(one["first"]),
                "quarantined": one["quarantined"],
            }
            for one in told
        ],
    }
