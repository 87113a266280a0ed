"""Further columns of a trace: search by FIELD:TEXT, and values in answers.

These columns are not in the event schema: columns of a user's table, the status, kind and
attributes of spans, and groups of a log's regular expression.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

import pyarrow
import pyarrow.compute

from antecede.errors import InputError
from antecede.formatting import pluralize
from antecede.tables.causality import Causality, EventRef
from antecede.tables.trace import DELIVER, RECEIVE, Trace
from antecede.tables.trace.user_tables import is_json
from antecede.tables.view import as_text

pa: Any = pyarrow
pc: Any = pyarrow.compute
USUAL: Final = ("level", "severity", "status")
"""Further columns that a terminal shows, in any case of letters."""
OF_SCHEMA: Final = ("id", "member", "text", "role", "topics", "run", "kind", "source")
NAMED: Final = 5


class Further:
    """Further columns of events; none for a part of a trace."""

    def __init__(self, trace: Trace | None = None) -> None:
        self.searched: list[str] = []
        self._own: Any = None
        if trace is not None and trace.own is not None and trace.own.num_columns:
            self._own = trace.own
            self._places = trace.events["file_order"].combine_chunks()

    def attach(self, rows: pyarrow.Table) -> pyarrow.Table:
        """Return rows of the trace with their further columns."""
        if self._own is None:
            return rows
        at = pc.index_in(rows["file_order"], self._places)
        found: Any = rows
        for field, column in zip(self._own.schema, self._own.columns, strict=True):
            found = found.append_column(field, column.take(at))
        table: pyarrow.Table = found
        return table

    def list_shown(self, rows: pyarrow.Table) -> list[str]:
        """Return the columns that a terminal shows: usual and searched ones."""
        own = [] if self._own is None else self._own.column_names
        names = [name for name in own if name.lower() in USUAL or name in self.searched]
        return [name for name in names if rows[name].null_count < len(rows)]

    def events(self, asked: Causality, word: str, run: str | None) -> list[EventRef] | None:
        """Return the events that FIELD:TEXT selects, in any case of letters; None: no such column.

        Raise InputError for a text that no event has.
        """
        field, colon, text = word.partition(":")
        column = self._column(asked, field) if colon and text else None
        if column is None:
            return None
        has = pc.match_substring(as_text(column), text, ignore_case=True)
        mask = pc.and_(pc.fill_null(has, False), pa.array(asked.alive))
        if run is not None:
            mask = pc.and_(mask, pc.fill_null(pc.equal(asked.events["run"], run), False))
        rows: Any = asked.events.filter(mask).select(["id", "member", "run", "kind"])
        if not len(rows):
            raise InputError(f"no event has {text!r:.60} in its column {field}")
        return list(dict.fromkeys(_event(row) for row in rows.to_pylist()))

    def _column(self, asked: Causality, field: str) -> Any:
        own = [] if self._own is None else self._own.column_names
        name = next((one for one in own if one.lower() == field.lower()), None)
        if name is not None:
            self.searched.append(name)
            at = pc.index_in(asked.events["file_order"], self._places)
            return self._own[name].take(at)
        return asked.events[field.lower()] if field.lower() in OF_SCHEMA else None


def _event(row: dict[str, Any]) -> EventRef:
    arrived = row["kind"] in (RECEIVE, DELIVER)
    return EventRef(row["id"], row["member"] if arrived else None, row["run"])


def only_one(word: str, events: Sequence[EventRef]) -> EventRef:
    """Return the only event of a search. Raise InputError for several."""
    if len(events) > 1:
        shown = ", ".join(map(str, events[:NAMED])) + (", ..." if len(events) > NAMED else "")
        raise InputError(
            f"{word}: found in {pluralize(len(events), 'event')} ({shown}), but the question takes "
            "one; give its id"
        )
    return events[0]


def plain_rows(rows: Any) -> list[dict[str, Any]]:
    """Return rows as JSON values, with columns of JSON text decoded."""
    found: list[dict[str, Any]] = rows.to_pylist()
    for name in (field.name for field in rows.schema if is_json(field)):
        for row in found:
            row[name] = None if row[name] is None else json.loads(row[name])
    return found
