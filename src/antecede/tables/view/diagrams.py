"""Conversion of a scenario's diagram (`antecede.lab.diagram`) into a trace without times."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow
import pyarrow.compute

from antecede.core.diagram_model import (
    DELIVER,
    DISCARD,
    HOLD,
    JOIN,
    LEAVE,
    LOSE,
    MEANING,
    RELEASE,
    SEND,
    Diagram,
    Mark,
)
from antecede.tables.trace import QUARANTINE_SCHEMA, Trace, conform, schema

pa: Any = pyarrow
pc: Any = pyarrow.compute
BROKEN: Final = "a broken promise"
_MEMBER_MARKS: Final = (JOIN, LEAVE, LOSE)  # marks without a copy


def trace_of(diagram: Diagram) -> Trace:
    """Return the rows of a diagram: sends, receipts, deliveries, and other marks as events."""
    return _RowBuilder(diagram).build()


class _RowBuilder:
    def __init__(self, diagram: Diagram) -> None:
        self._diagram = diagram
        self._names = [lane.name for lane in diagram.lanes]
        sends = [mark for mark in diagram.marks if mark.kind == SEND]
        self._first = {mark.label: mark.lane for mark in reversed(sends)}
        self._known = {(mark.lane, mark.at, mark.label) for mark in sends}
        self._from = {(one.target, one.arrived, one.label): one.source for one in diagram.arrows}
        self._held: dict[tuple[int, str], str] = {}
        self._rows: list[tuple[float, int, dict[str, Any]]] = []

    def build(self) -> Trace:
        for arrow in self._diagram.arrows:  # relays of a super peer have no mark
            if (arrow.source, arrow.sent, arrow.label) not in self._known:
                self._known.add((arrow.source, arrow.sent, arrow.label))
                id = self._get_id(arrow.label, arrow.source)
                self._add_row(arrow.sent, arrow.source, schema.SEND, id, "relays it", 1)
        for mark in sorted(self._diagram.marks, key=lambda mark: mark.at):
            self._add_mark(mark)
        rows = [row for _, _, row in sorted(self._rows, key=lambda made: made[:2])]
        table = pa.table(
            {name: [row[name] for row in rows] for name in rows[0]} if rows else {"id": []}
        )
        return Trace(conform(table), QUARANTINE_SCHEMA.empty_table(), "script", {})

    def _add_mark(self, mark: Mark) -> None:
        text = ": ".join(filter(None, (_describe_mark(mark), mark.note)))
        if mark.kind == SEND:
            self._add_row(
                mark.at, mark.lane, schema.SEND, self._get_id(mark.label, mark.lane), mark.label
            )
            return
        if mark.kind in _MEMBER_MARKS:
            name = f"{mark.kind} {mark.label or self._names[mark.lane]}"
            self._add_row(mark.at, mark.lane, schema.EVENT, f"{name} {mark.at:g}", text)
            return
        held = self._held.pop((mark.lane, mark.label), None)
        source = self._from.get((mark.lane, mark.at, mark.label), self._first.get(mark.label, -1))
        id = held or self._get_id(mark.label, source)
        if mark.kind == HOLD:
            self._held[(mark.lane, mark.label)] = id
        kind = schema.RECEIVE if mark.kind in (HOLD, DISCARD) else schema.DELIVER
        self._add_row(mark.at, mark.lane, kind, id, text, 2)

    def _get_id(self, label: str, source: int) -> str:
        """Return the label of a message, with the relaying member if that is not its sender."""
        if self._first.get(label, source) == source or source < 0:
            return label
        return f"{label} from {self._names[source]}"

    def _add_row(self, at: float, lane: int, kind: str, id: str, text: str, step: int = 0) -> None:
        row = {"id": id, "kind": kind, "member": self._names[lane], "text": text}
        self._rows.append((at, step, row))


def find_broken(trace: Trace) -> list[int]:
    """Return the rows that violate a promise."""
    texts = trace.events["text"].to_pylist()
    return [row for row, text in enumerate(texts) if text and text.startswith(BROKEN)]


def find_in_transit(diagram: Diagram, trace: Trace) -> list[dict[str, Any]]:
    """Return the copies without an arrival in a diagram: row of the send, name of the receiver."""
    events = trace.events
    sends = pc.equal(events["kind"], SEND).to_numpy()
    ids, members = events["id"].to_pylist(), events["member"].to_pylist()
    rows = {(ids[k], members[k]): int(k) for k in np.flatnonzero(sends)}
    names = [lane.name for lane in diagram.lanes]
    found = [(rows.get((one.label, names[one.source])), one) for one in diagram.arrows]
    return [
        {"row": row, "member": names[one.target]}
        for row, one in found
        if one.flying and row is not None
    ]


def _describe_mark(mark: Mark) -> str:
    if mark.kind in (DELIVER, HOLD) and not mark.wrong:
        return "" if mark.kind == DELIVER else MEANING[HOLD]
    if mark.wrong and mark.kind in (DELIVER, RELEASE):
        return BROKEN
    return MEANING[mark.kind]
