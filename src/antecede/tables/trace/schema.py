"""Event schema of traces: one row per event.

This module needs no Arrow, because the oracle and the core use it; `tables.trace.batches` has the
Arrow schema. Times are ns since 1970-01-01 UTC in 64 bits, null if unknown or outside 1677 to 2262.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from antecede.core.oracle import DELIVER as DELIVER
from antecede.core.oracle import EVENT as EVENT
from antecede.core.oracle import RECEIVE as RECEIVE
from antecede.core.oracle import SEND as SEND
from antecede.errors import InputError

KINDS = (SEND, RECEIVE, DELIVER, EVENT)


class SchemaColumn(NamedTuple):
    """Column of the schema."""

    name: str
    type: str
    nullable: bool
    meaning: str


COLUMNS = (
    SchemaColumn("run", "string", True, "execution, if a file has several"),
    SchemaColumn("kind", "string", False, "send, receive, deliver, or event (kind unknown)"),
    SchemaColumn("id", "string", False, "id of the message (in vector-clock logs: of the event)"),
    SchemaColumn("member", "string", True, "host, sender, pod, agent or author"),
    SchemaColumn("seq", "int64", True, "sequence number of the message or event at its member"),
    SchemaColumn("causes", "list<string>", False, "ids of declared causes; may be empty"),
    SchemaColumn("clock_members", "list<string>", True, "members of the event's vector clock"),
    SchemaColumn("clock_counts", "list<int64>", True, "counters of these members"),
    SchemaColumn("topics", "list<string>", False, "topics, lists, channels; may be empty"),
    SchemaColumn("file_order", "int64", False, "position in the input files, from 0"),
    SchemaColumn("ingest", "int64", True, "ingest position in the archive"),
    SchemaColumn("arrival", "int64", True, "time of arrival by the receiver or archive, ns"),
    SchemaColumn("send_time", "int64", True, "time of sending by the sender's clock, ns"),
    SchemaColumn("author_time", "int64", True, "time of authoring (git), ns"),
    SchemaColumn("commit_time", "int64", True, "time of committing (git, archive), ns"),
    SchemaColumn("start_time", "int64", True, "start of a span, ns"),
    SchemaColumn("end_time", "int64", True, "end of a span, ns"),
    SchemaColumn("role", "string", True, "role of a span: client, server, producer or consumer"),
    SchemaColumn("text", "string", True, "content or description for people"),
    SchemaColumn("source", "string", True, "file of the event"),
    SchemaColumn("line", "int64", True, "line in that file, from 1"),
)
NAMES = tuple(column.name for column in COLUMNS)
TIMES = ("arrival", "send_time", "author_time", "commit_time", "start_time", "end_time")

ORDERS = (
    "arrival",
    "ingest",
    "send_time",
    "commit_time",
    "author_time",
    "start_time",
    "file_order",
)
"""Columns by which a stream may be sorted; `audit` counts the inversions of each."""


def check_cause_column(columns: Collection[str]) -> None:
    """Raise InputError for columns with `parents` instead of `causes`: causes would be ignored."""
    if "parents" in columns and "causes" not in columns:
        raise InputError(
            "column parents: the event schema names it causes; rename it to causes, or drop it if "
            "it holds other values"
        )


class Event(NamedTuple):
    """Row of a trace, with the columns of the schema."""

    run: str | None = None
    kind: str = EVENT
    id: str = ""
    member: str | None = None
    seq: int | None = None
    causes: tuple[str, ...] = ()
    clock_members: tuple[str, ...] | None = None
    clock_counts: tuple[int, ...] | None = None
    topics: tuple[str, ...] = ()
    file_order: int = 0
    ingest: int | None = None
    arrival: int | None = None
    send_time: int | None = None
    author_time: int | None = None
    commit_time: int | None = None
    start_time: int | None = None
    end_time: int | None = None
    role: str | None = None
    text: str | None = None
    source: str | None = None
    line: int | None = None


class Quarantined(NamedTuple):
    """Bad input record: file, line, id if known, reason, raw text."""

    source: str | None
    line: int | None
    id: str | None
    reason: str
    raw: str
