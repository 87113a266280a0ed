"""Found of the causality source of a trace.

A source counts only if its cells support it:

- **causes**: an event lists another event of its run as its cause.
- **clocks**: an event has a vector clock with an entry of the event's own member.
- **receipts**: a receipt or delivery has the id of a send of its run.
- **member sequence**: an event has a member and a number; only on request (`by="seq"`).

Formats in `BY_NATURE` always record causes: a git repository with one commit has no edge. Without a
source, commands that answer questions about order raise InputError, and other commands warn.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute

from antecede.errors import InputError
from antecede.tables.trace.causes import CAUSE_COLUMNS, TOLD_BY
from antecede.tables.trace.identities import flatten_column, in_run, keys
from antecede.tables.trace.rows import conform
from antecede.tables.trace.schema import DELIVER, RECEIVE, SEND
from antecede.tables.trace.user_tables.list_separators import several_in_one, words

pc: Any = pyarrow.compute  # its stubs know too few kinds of arrays

CAUSES, CLOCKS, RECEIPTS, SEQUENCE, NONE = "causes", "clocks", "receipts", "member sequence", "none"
SOURCE: Final = "causality_source"
BY_NATURE: Final = {
    "shiviz": CLOCKS,
    **dict.fromkeys(("automerge", "editing", "git", "irc", "lora", "mail"), CAUSES),
    **dict.fromkeys(("matrix", "nostr", "spans"), CAUSES),
}
"""Formats that record the causes of every event; an event without causes is a root."""
ADVICE: Final = "give --after COLUMN (ids of causes) or --clock COLUMN (a vector clock)"
SCHEMA_ADVICE: Final = (
    "rename the column of causes to `causes` (on the command line: --after COLUMN), or add "
    "clock_members and clock_counts, or kind (send, receive, deliver)"
)
WHY: Final = "why_no_causality"
"""Name of a detail: text of `describe_none` if the source is none."""
MAX_EXAMPLE: Final = 40


class NoEvidenceWarning(UserWarning):
    """A table is ordered without a source of causality."""


def has_causes(events: Any, format: str = "table") -> bool:
    """Return whether an event lists another event of its run, or the format records causes."""
    if BY_NATURE.get(format) == CAUSES:
        return True
    if not len(events) or "causes" not in events.column_names:
        return False
    lists = events["causes"].combine_chunks()
    if isinstance(lists, pa.ChunkedArray):
        lists = pa.concat_arrays(lists.chunks)
    names: Any = pc.list_flatten(lists)
    if not len(names):
        return False
    rows = pc.list_parent_indices(lists)
    ids: Any = keys(events)
    named: Any = in_run(events, names, rows)
    other = pc.and_(pc.is_in(named, ids), pc.not_equal(named, ids.take(rows)))
    effects: Any = flatten_column(events, "id").take(rows)
    for text in (names, effects):  # a blank is not an id
        other = pc.and_(other, pc.not_equal(pc.utf8_trim_whitespace(text), ""))
    return bool(pc.any(other).as_py())


def has_clocks(events: Any, format: str = "table") -> bool:
    """Return whether a vector clock counts its event's own member, or the format has clocks."""
    if BY_NATURE.get(format) == CLOCKS:
        return True
    if not {"clock_members", "clock_counts", "member"} <= set(events.column_names):
        return False
    clocked: Any = events.filter(pc.is_valid(events["clock_members"]))
    if not len(clocked):
        return False
    lengths = (pc.list_value_length(clocked[name]) for name in ("clock_members", "clock_counts"))
    clocked = clocked.filter(pc.fill_null(pc.equal(*lengths), False)).combine_chunks()
    if not len(clocked):
        return False
    rows = pc.list_parent_indices(clocked["clock_members"])
    own = pc.equal(pc.list_flatten(clocked["clock_members"]), clocked["member"].take(rows))
    counted = pc.greater(pc.list_flatten(clocked["clock_counts"]), 0)
    return bool(pc.any(pc.and_(own, counted)).as_py())


def has_receipts(events: Any) -> bool:
    """Return whether a receipt or delivery has the id of a send of its run."""
    if "kind" not in events.column_names:
        return False
    arrived = events.filter(pc.is_in(events["kind"], pa.array([RECEIVE, DELIVER])))
    sent = events.filter(pc.equal(events["kind"], SEND))
    if not (len(arrived) and len(sent)):
        return False
    # Keys depend on whether all runs are null, so both parts need common keys.
    both = pa.concat_tables([sent, arrived])
    names: Any = keys(both)
    return bool(pc.any(pc.is_in(names.slice(len(sent)), names.slice(0, len(sent)))).as_py())


def has_sequence(events: Any) -> bool:
    """Return whether an event has a member and a number of at least 0."""
    known = pc.and_(pc.is_valid(events["member"]), pc.greater_equal(events["seq"], 0))
    return bool(pc.any(known).as_py())


def source_in(events: Any, format: str = "table") -> str:
    """Return the first source that the table has: receipts, clocks, causes, none."""
    if has_receipts(events):
        return RECEIPTS
    if has_clocks(events, format):
        return CLOCKS
    return CAUSES if has_causes(events, format) else NONE


def supports(events: Any, source: str | None, format: str = "table") -> bool:
    """Return whether the table has a source of causality; None: any source."""
    if source is None:
        return source_in(events, format) != NONE
    if source in (CAUSES, CLOCKS):
        return (has_causes if source == CAUSES else has_clocks)(events, format)
    return has_receipts(events)


def demand(events: Any, format: str = "table", details: Mapping[str, Any] | None = None) -> str:
    """Return the causality source of a table. Raise InputError if a table with rows has none."""
    whole = conform(events)
    source = source_in(whole, format)
    if source == NONE and len(whole):
        columns = {CAUSE_COLUMNS: ", ".join(events.column_names)[:300]}
        raise InputError(describe_none(whole, columns if details is None else details))
    return source


def describe_other(requested: str, available: str) -> str:
    """Return the error message for a requested source that the trace lacks."""
    return (
        f"--causality {requested}: the trace has no such data ({SOURCE}: {available}); omit "
        "--causality, or name the columns with --after or --clock"
    )


class Cells(NamedTuple):
    """Content of the columns that may be a source of causality."""

    example_cause: str | None
    """First cause that is not blank."""
    hint: Sequence[str]
    has_clocks: bool
    kinds: frozenset[str]
    receipts: bool


def cells_of(events: Any) -> Cells:
    """Return the content of the candidate columns of a table in the schema."""
    there = events.column_names
    names: Any = pc.list_flatten(events["causes"]).unique() if "causes" in there else pa.array([])
    named = [name for name in names.to_pylist() if name and name.strip()]
    hint = several_in_one(named, {*events["id"].to_pylist()}) if named else {}
    clocks = "clock_members" in there and events["clock_members"].null_count < len(events)
    kinds = frozenset(events["kind"].unique().to_pylist()) if "kind" in there else frozenset()
    cause = named[0] if named else None
    return Cells(cause, words(hint) if hint else (), clocks, kinds, has_receipts(events))


def describe_none(events: Any, details: Mapping[str, Any]) -> str:
    """Return the error message for a table without causality; see `describe_cells`."""
    return describe_cells(cells_of(events), details)


def describe_cells(cells: Cells, details: Mapping[str, Any]) -> str:
    """Return the error message for a table without causality: reasons, columns, remedy."""
    why = "; ".join(_list_reasons(cells, details)) or "no column has causes, clocks or receipts"
    there = details.get(CAUSE_COLUMNS)
    columns = f"; columns are {there}" if there else ""
    advice = ADVICE if TOLD_BY in details or not there else SCHEMA_ADVICE
    return f"no data on causality ({SOURCE}: {NONE}): {why}{columns}; {advice}"


def without_columns(details: Mapping[str, Any]) -> dict[str, Any]:
    """Return details without the columns, which reports show only for the source none."""
    return {name: value for name, value in details.items() if name not in (CAUSE_COLUMNS, TOLD_BY)}


def warn_none(described: str) -> None:
    """Warn the caller of a function that no cell of the described columns gives an order."""
    warnings.warn(
        f"no data on causality ({SOURCE}: {NONE}): {described} gives no order, so only tie-breaks "
        "apply; name the column of causes (after=) or clocks (clock=)",
        NoEvidenceWarning,
        stacklevel=3,
    )


def describe_unsupported(described: str, columns: Sequence[str]) -> str:
    """Return the error message for described columns that name no other row."""
    return (
        f"no data on causality ({SOURCE}: {NONE}): {described} names no other row; "
        f"columns are {', '.join(columns):.300}; name the column of causes with after= "
        "(--after COLUMN) or the column of clocks with clock="
    )


def _list_reasons(cells: Cells, details: Mapping[str, Any]) -> list[str]:
    candidates = dict(
        one.split(" in ", 1) for one in str(details.get(TOLD_BY, "")).split("; ") if " in " in one
    )
    found: list[str] = []

    def column(name: str) -> str:
        return f"column {candidates.get(name, name)}"

    if cells.example_cause is not None:
        example = f"{cells.example_cause!r:.{MAX_EXAMPLE}}"
        found.append(f"{column('causes')} names no other event of its run (example: {example})")
        found.extend(cells.hint)
    elif "causes" in candidates:
        found.append(f"{column('causes')} has no cause")
    if cells.has_clocks:
        found.append(f"no clock in {column('clock')} has an entry of the event's own member")
    elif "clock" in candidates:
        found.append(f"{column('clock')} has no clock")
    if SEND in cells.kinds and {RECEIVE, DELIVER} & cells.kinds:
        found.append(
            "receipts and deliveries are not used here (antecede ask and false-causality use them)"
            if cells.receipts
            else f"no receipt or delivery in {column('kind')} has the id of a send"
        )
    elif {SEND, RECEIVE, DELIVER} & cells.kinds or "kind" in candidates:
        found.append(f"{column('kind')} does not have send together with receive or deliver")
    return found
