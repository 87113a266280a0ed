"""Queries about events of one trace: past, future, concurrency and chains of causes.

Events are the rows of a table in the trace schema, or of `antecede.tables.trace.arrow.read`. One of
three sources defines happened-before (Lamport 1978; Fidge 1988 and Mattern 1989):

    "events"    rows of sends and of receipts or deliveries: a member's events follow each other
                as listed, an arrival follows its sending
    "clocks"    vector clocks
    "causes"    the causes that events declare

All answers are exact for the given rows. A missing cause hides the events before it; `notes` counts
such causes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow
import pyarrow.compute

from antecede.errors import InputError
from antecede.formatting import pluralize
from antecede.tables.causality.cuts import find_immediate_edges
from antecede.tables.causality.event_graph import build_execution, tells_of_arrivals
from antecede.tables.causality.kernels.reachability import (
    EventGraph,
    find_shortest_chain,
    mark_future,
    mark_past,
    measure_longest_chains,
)
from antecede.tables.kernels import MISSING, Bools, Ints
from antecede.tables.order import RowGraph, Status, code, graph_of, prepare
from antecede.tables.trace import (
    CAUSE_COLUMNS,
    DELIVER,
    QUARANTINE_SCHEMA,
    RECEIPTS,
    RECEIVE,
    SEQUENCE,
    SOURCE,
    Trace,
    conform,
    evidence,
    in_run,
    is_blank,
    keys,
    sequence,
)
from antecede.tables.trace.user_tables import list_separators, several_in_one

pa: Any = pyarrow
pc: Any = pyarrow.compute
EVENTS, CLOCKS, CAUSES = "events", "clocks", "causes"
EVIDENCE_NAMES: Final = {EVENTS: RECEIPTS, CLOCKS: CLOCKS, CAUSES: CAUSES}
WAYS: Final = (EVENTS, CLOCKS, CAUSES)
NO_EVENTS: Final = "excluded: unreadable, or in conflict with an earlier row of their id"
LOOK_ALIKE: Final = 5  # ids in a message
CAUSALITY_COLUMNS: Final = (
    "causes",
    "clock_members",
    "kind",
)  # a table needs one of these
MAX_ID_LENGTH: Final = 80  # characters of an id in a message


class EventRef(NamedTuple):
    """Reference to an event: ids repeat in runs, and a message's arrivals share the id of its
    sending.
    """

    id: str
    member: str | None = None
    """Member of the arrival; None: the event itself, of a message its sending."""
    run: str | None = None

    def __str__(self) -> str:
        at = "" if self.member is None else f" at {self.member}"
        of = "" if self.run is None else f" of run {self.run}"
        return f"{self.id}{at}{of}"


Named = str | EventRef


def check_not_blank(id: str) -> None:
    """Raise InputError for an id that names no event."""
    if is_blank(id):
        raise InputError(f"the id {id!r} is blank and names no event")


def is_valid_text(part: object) -> bool:
    """Return whether an object is valid Unicode text; undecodable bytes occur in no trace."""
    return isinstance(part, str) and not any("\ud800" <= char <= "\udfff" for char in part)


def _check_table(table: Any) -> None:
    """Raise InputError unless this is a table of events with a source of causality."""
    if not isinstance(table, pa.Table):
        raise InputError(
            f"expected an Arrow table or a Trace, got {type(table).__name__}: use "
            "pyarrow.Table.from_pandas(df), pyarrow.table(columns) or "
            "antecede.tables.trace.arrow.read(paths)"
        )
    if "id" in table.column_names and not set(CAUSALITY_COLUMNS) & set(table.column_names):
        there = ", ".join(table.column_names)
        raise InputError(
            "no source of causality: name the column of causes `causes`, or give clock_members "
            "and clock_counts, or kind (send, receive, deliver); the columns are "
            f"{there:.200}"
        )


def _shorten(name: str) -> str:
    return name if len(name) <= MAX_ID_LENGTH else f"{name[: MAX_ID_LENGTH - 3]}..."


class Whole(NamedTuple):
    """Facts about the whole trace that a query over a part of it needs."""

    clocked: bool  # vector clocks, not declared causes, define happened-before
    filled_columns: frozenset[str]  # columns with any value


class Causality:
    """Queries about the events of one trace.

    `trace`: a `Trace`, or a table in the schema (all columns but `id` are optional). `by`: source
    of causality (default: events if there are sends and arrivals, else clocks without declared
    causes, else causes). For a part of a trace, give the facts of the whole trace. Raises
    InputError for a table without that source, and without evidence unless a note is enough.

    >>> import pyarrow as pa
    >>> from antecede.tables.causality import Causality
    >>> log = pa.table({"id": ["a", "b", "c", "d"], "causes": [[], ["a"], ["a"], ["c"]]})
    >>> queries = Causality(log)
    >>> queries.precedes("a", "d"), queries.concurrent("b")["id"].to_pylist()
    (True, ['c', 'd'])
    >>> queries.path("a", "d")["id"].to_pylist()
    ['a', 'c', 'd']
    """

    def __init__(
        self,
        trace: Trace | pyarrow.Table,
        *,
        by: str | None = None,
        part: bool = False,
        whole: Whole | None = None,
        unproven: bool = False,
    ) -> None:
        if by is not None and by not in WAYS:
            raise InputError(f"by={by!r:.40}: choose from {', '.join(WAYS)}")
        if not isinstance(trace, Trace):
            _check_table(trace)
            columns: dict[str, int | str] = {CAUSE_COLUMNS: ", ".join(trace.column_names)[:300]}
            trace = Trace(conform(trace), QUARANTINE_SCHEMA.empty_table(), "table", columns)
        self._is_part = whole is not None
        table = conform(trace.events)
        if by is None and evidence.has_receipts(table):
            by = EVENTS
        self._same_number: dict[int, Ints] = {}
        self.notes: list[str] = []
        if by == EVENTS:
            self._use_events(table, part or self._is_part)
        else:
            self._use_table(trace, by, whole)
        self.source = str(trace.details.get(SOURCE, EVIDENCE_NAMES[self.by]))
        if self.source == SEQUENCE:
            self.notes += sequence.notes(trace.details)
        elif not (part or self._is_part or self._is_supported(trace.format)):
            if not unproven:
                raise InputError(evidence.describe_none(table, trace.details))
            self.source = evidence.NONE
            self.notes.append(evidence.describe_none(table, trace.details))

    def _is_supported(self, format: str) -> bool:
        if self.by == EVENTS:
            return evidence.has_receipts(self.events)
        has = evidence.has_clocks if self.by == CLOCKS else evidence.has_causes
        supported = has(self.events, format)
        if (
            supported
            and self.by == CAUSES
            and len(self.events) > 1
            and not len(self._event_graph.causes)
        ):
            self.notes.append(
                f"no event declares a cause: all {len(self.events):,} are roots of the {format}"
            )
        return supported

    def _use_events(self, table: pyarrow.Table, part: bool) -> None:
        if not (part or tells_of_arrivals(table)):
            raise InputError(
                "by events: the trace lacks rows of sends, or of receipts and deliveries"
            )
        self.by, self.events = EVENTS, table
        execution = build_execution(table)
        self._event_graph = execution.graph
        if execution.never_sent:
            self.notes.append(
                f"{pluralize(execution.never_sent, 'arrival')} of messages without a send row: "
                "events before these are unknown"
            )
        if execution.on_cycles:
            self.notes.append(f"{pluralize(execution.on_cycles, 'row')} on cycles: excluded")

    def _use_table(self, trace: Trace, by: str | None, whole: Whole | None) -> None:
        prepared = prepare(trace) if whole is None else prepare(trace, None, *whole)
        found = CAUSES if prepared.spec.clock is None else CLOCKS
        if by is not None and by != found:
            raise InputError(f"by {by}: the source of causality of this trace is {found}")
        self.by, self.events = found, prepared.events
        self._row_graph = graph = graph_of(prepared.events, prepared.spec)
        if found == CLOCKS:
            self._note_same_number(graph)
        self._event_graph = EventGraph(graph.keys.offsets, graph.causes, graph.alive, graph.order)
        lacking = int(np.count_nonzero(graph.kinds == MISSING))
        if lacking:
            self._note_missing_causes(lacking)
        if aside := len(graph.alive) - int(graph.alive.sum()):
            self.notes.append(f"{pluralize(aside, 'row')} without a position: excluded")
        if refused := len(prepared.quarantine):
            self.notes.append(f"{pluralize(refused, 'row')} {NO_EVENTS}")

    def _note_same_number(self, graph: RowGraph) -> None:
        """Find the events that share a member and a number: clocks cannot distinguish them."""
        keys = graph.keys
        again = np.isin(keys.status, [code(Status.DUPLICATE), code(Status.CONFLICT)])
        if not again.any():
            return
        rows = np.flatnonzero(graph.alive | again)
        pairs = np.stack([keys.actor[rows], keys.count[rows]])
        _, which = np.unique(pairs, axis=1, return_inverse=True)
        which = which.reshape(-1)
        order = np.argsort(which, kind="stable")
        groups = np.split(rows[order], np.flatnonzero(np.diff(which[order])) + 1)
        several = [group for group in groups if len(group) > 1]
        self._same_number = {int(row): group for group in several for row in group}
        shown = "; ".join(self._describe_same_number(group) for group in several[:LOOK_ALIKE])
        more = f"; and {len(several) - LOOK_ALIKE:,} more" if len(several) > LOOK_ALIKE else ""
        self.notes.append(f"{shown}{more}; an answer that names the first may be of any of them")

    def _describe_same_number(self, rows: Ints) -> str:
        records = self.events.take(pa.array(rows)).to_pylist()
        number = int(self._row_graph.keys.count[rows[0]])
        names = [_shorten(row["id"]) for row in records]
        if len(set(names)) < len(names):
            places = [(row["source"], row["line"]) for row in records]
            names = [
                f"{name} ({source}, line {line})" if line is not None else f"{name} (row {row + 1})"
                for name, (source, line), row in zip(names, places, rows.tolist(), strict=True)
            ]
        are = "are both" if len(names) == 2 else "are all"
        what = f"{' and '.join(names)} {are} event {number:,} of {records[0]['member']}"
        return f"{what}: they cannot be distinguished"

    def _note_missing_causes(self, count: int) -> None:
        ids: Any = self.events["id"]
        lists: Any = self.events["causes"].combine_chunks()
        named = pc.list_flatten(lists)
        there = pc.is_in(
            in_run(self.events, named, pc.list_parent_indices(lists)), keys(self.events)
        )
        nowhere: Any = named.filter(pc.invert(there)).unique()
        which, where = "", "the trace"
        if len(nowhere) and self.by == CAUSES:
            shown = [_shorten(name) for name in nowhere.slice(0, LOOK_ALIKE).to_pylist()]
            more = ", ..." if len(nowhere) > LOOK_ALIKE else ""
            which = "" if len(nowhere) == count else f" of {pluralize(len(nowhere), 'id')}"
            which += f" ({', '.join(shown)}{more})"
            if pc.any(pc.is_in(nowhere, ids.combine_chunks())).as_py():
                where = "the run of their effect"
        self.notes.append(
            f"{pluralize(count, 'cause')}{which} missing from {where}, so earlier events are "
            "unknown"
        )
        if hint := several_in_one(nowhere.to_pylist(), set(ids.to_pylist())):
            self.notes.append("; ".join(list_separators.words(hint)))

    # -- which event ---------------------------------------------------------------------------

    @cached_property
    def _is_arrival(self) -> Bools:
        found: Bools = pc.is_in(self.events["kind"], pa.array([RECEIVE, DELIVER])).to_numpy(False)
        return found if self.by == EVENTS else np.zeros(len(found), np.bool_)

    def has(self, id: str) -> bool:
        """Return whether an event has this id; a blank names none."""
        if not is_valid_text(id) or is_blank(id):
            return False
        found: bool = pc.any(pc.equal(self.events["id"], id)).as_py() or False
        return found

    @property
    def alive(self) -> Bools:
        """Mask of the rows that have a position in the order."""
        return self._event_graph.alive

    @property
    def placed(self) -> int:
        """Number of events with a position in the order."""
        return int(np.count_nonzero(self._event_graph.alive))

    def row(self, event: Named) -> int:
        """Return the row of an event in `events`. Raises InputError for none, and for several."""
        reference = EventRef(event) if isinstance(event, str) else event
        for part in reference:
            if part is not None and not is_valid_text(part):
                raise InputError(f"invalid event reference {part!r:.80}: expected text")
        check_not_blank(reference.id)
        if not self.has(reference.id):
            raise InputError(self._describe_unknown_id(reference.id))
        mask = self._find_equal("id", reference.id)
        if reference.run is not None:
            mask = mask & self._find_equal("run", reference.run)
        rows: Ints = np.flatnonzero(mask)
        if reference.member is not None:
            rows = rows[self._find_equal("member", reference.member)[rows]]
        elif not self._is_arrival[rows].all():
            rows = rows[~self._is_arrival[rows]]
        if alike := [self._same_number[row] for row in rows.tolist() if row in self._same_number]:
            raise InputError(
                f"{self._describe_same_number(alike[0])}; give each event of a member its own "
                "number, and each restart its own run or member name"
            )
        if not len(rows):
            raise InputError(
                f"{reference} is not in the trace; the id {reference.id} is"
                f"{self._describe_uses(reference.id)}"
            )
        placed = rows[self._event_graph.alive[rows]]
        if not len(placed):
            raise InputError(f"{reference} has no position: its row is excluded")
        runs = pc.unique(self.events["run"].take(pa.array(placed))).to_pylist()
        if len(runs) > 1:
            shown = ", ".join(str(run) for run in runs[:LOOK_ALIKE])
            raise InputError(f"{reference} is in {len(runs)} runs: choose one ({shown})")
        return int(placed[0])

    def _find_equal(self, name: str, value: Any) -> Bools:
        equal = pc.fill_null(pc.equal(self.events[name], value), False)
        found: Bools = equal.to_numpy(zero_copy_only=False)
        return found

    def _describe_uses(self, id: str) -> str:
        if self._is_part:
            return ""
        there: Any = self.events.filter(pc.equal(self.events["id"], id))
        found = []
        for word, name in (("at", "member"), ("in run", "run")):
            names = [value for value in pc.unique(there[name]).to_pylist() if value is not None]
            more = ", ..." if len(names) > LOOK_ALIKE else ""
            if names:
                found.append(f"{word} {', '.join(map(_shorten, names[:LOOK_ALIKE]))}{more}")
        return f", {', '.join(found)}" if found else ""

    def _describe_unknown_id(self, name: str) -> str:
        ids: Any = self.events["id"]

        def format_ids(some: Any) -> str:
            first = some.slice(0, 1000).unique().to_pylist()[:LOOK_ALIKE]
            return ", ".join(map(_shorten, first))

        def find_ids(texts: Any) -> str:
            mask = pc.match_substring(texts, name, ignore_case=True)
            return format_ids(ids.filter(pc.fill_null(mask, False)))

        if alike := find_ids(ids):
            hint = f"; ids that contain it: {alike}"
        elif saying := find_ids(self.events["text"]):
            hint = f"; the texts of these events contain it: {saying}"
        else:
            hint = f"; ids are for instance {format_ids(ids)}" if len(ids) else ""
        return f"no event has the id {name}{hint}"

    # -- answers -------------------------------------------------------------------------------

    def precedes(self, a: Named, b: Named) -> bool:
        """Return whether a happened before b. Raises InputError as `row`."""
        start, end = self.row(a), self.row(b)
        return bool(self._mask([end], backwards=True)[start])

    def past(self, *events: Named) -> pyarrow.Table:
        """Return the rows that happened before any of the events, in the order of `events`."""
        return self._select_rows(self._mask([self.row(event) for event in events], backwards=True))

    def future(self, *events: Named) -> pyarrow.Table:
        """Return the rows that happened after any of the events."""
        return self._select_rows(self._mask([self.row(event) for event in events], backwards=False))

    def around(self, row: int) -> tuple[Bools, Bools]:
        """Return masks of the rows before and after a row of `events`; empty without a position."""
        placed = [row] if self._event_graph.alive[row] else []
        return self._mask(placed, backwards=True), self._mask(placed, backwards=False)

    @cached_property
    def depths(self) -> Ints:
        """Causes in the longest chain before each row of `events` [n]; -1 without a position."""
        return measure_longest_chains(self._event_graph)

    def sort_rows(self, rows: pyarrow.Table, *, nearest: bool = False) -> pyarrow.Table:
        """Return rows of an answer with causes first, or with causes last."""
        places = self.ranks[pc.index_in(rows["file_order"], self.events["file_order"]).to_numpy()]
        order = np.argsort(places, kind="stable")
        return rows.take(pa.array(order[::-1] if nearest else order))

    def concurrent(self, event: Named) -> pyarrow.Table:
        """Return the rows of the same run that happened neither before nor after the event."""
        row = self.row(event)
        related = self._mask([row], backwards=True) | self._mask([row], backwards=False)
        related[row] = True
        return self._select_rows(self._event_graph.alive & ~related & self.same_run(row))

    def between(self, a: Named, b: Named) -> pyarrow.Table:
        """Return the rows that happened after a and before b; none where a is not before b."""
        start, end = self.row(a), self.row(b)
        return self._select_rows(
            self._mask([start], backwards=False) & self._mask([end], backwards=True)
        )

    def path(self, a: Named, b: Named) -> pyarrow.Table:
        """Return a shortest chain of causes from a to b, with both; empty if a is not before b."""
        return self.events.take(pa.array(self.chain(self.row(a), self.row(b))))

    def chain(self, start: int, end: int) -> Ints:
        """Return the rows of a shortest chain of causes; empty unless `start` is before `end`."""
        steps = self._event_graph
        if start == end or not self._mask([end], backwards=True)[start]:
            return np.empty(0, np.int64)
        if self.by == CLOCKS:
            steps = steps._replace(causes=np.where(self._immediate, steps.causes, -1))
        return find_shortest_chain(steps, start, end)

    @cached_property
    def ranks(self) -> Ints:
        """Position of each row of `events` in the causal order [n]; -1 without a position."""
        place = np.full(len(self._event_graph.alive), -1, np.int64)
        place[self._event_graph.order] = np.arange(len(self._event_graph.order))
        return place

    # -- parts of the graph ----------------------------------------------------------------------

    def edges_among(self, rows: Ints) -> tuple[Ints, Ints]:
        """Return (offsets, causes) of the graph of these rows, renumbered; -1: not among them."""
        steps = self._event_graph
        number = np.full(len(steps.alive), -1, np.int64)
        number[rows] = np.arange(len(rows))
        offsets = np.concatenate([[0], np.cumsum(np.diff(steps.offsets)[rows])]).astype(np.int64)
        causes = steps.causes[self._list_edges(rows)]
        found: Ints = np.where(causes >= 0, number[np.maximum(causes, 0)], -1)
        return offsets, found

    def _list_edges(self, rows: Ints) -> Ints:
        start, size = self._event_graph.offsets[rows], np.diff(self._event_graph.offsets)[rows]
        within = np.arange(int(size.sum())) - np.repeat(np.cumsum(size) - size, size)
        edges: Ints = np.repeat(start, size) + within
        return edges

    def immediate_among(self, rows: Ints) -> Bools:
        """Mask the immediate causes among the edges of the given rows; by clocks alone."""
        found: Bools = self._immediate[self._list_edges(rows)]
        return found

    @cached_property
    def _immediate(self) -> Bools:
        return find_immediate_edges(self._row_graph)

    def read_own_counts(self, rows: Ints) -> Ints:
        """Return the own entry of the clock of each of these rows; by clocks alone."""
        table = self.events.take(pa.array(rows))
        lists = [table[name].combine_chunks() for name in ("clock_members", "clock_counts")]
        of = pc.list_parent_indices(lists[0])
        own = pc.equal(pc.list_flatten(lists[0]), table["member"].combine_chunks().take(of))
        counts: Ints = pc.list_flatten(lists[1]).filter(own).to_numpy().astype(np.int64)
        return counts

    def _mask(self, rows: Sequence[int], *, backwards: bool) -> Bools:
        events = np.zeros(len(self._event_graph.alive), np.bool_)
        events[list(rows)] = True
        return (mark_past if backwards else mark_future)(self._event_graph, events)

    def same_run(self, row: int) -> Bools:
        """Mask the rows of the run of a row."""
        run: Any = self.events["run"][row]
        if run.is_valid:
            return self._find_equal("run", run)
        found: Bools = self.events["run"].is_null().to_numpy(zero_copy_only=False)
        return found

    def _select_rows(self, mask: Bools) -> pyarrow.Table:
        return self.events.filter(pa.array(mask))
