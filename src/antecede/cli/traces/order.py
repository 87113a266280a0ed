"""`antecede order PATH... -o OUT`: a trace in causal order, as Parquet, CSV or JSON lines."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute

from antecede.cli.engines import SPARK, add_engine_arguments, chosen_engine
from antecede.cli.files.output import check_writable, draft_of
from antecede.cli.files.pages import look_if_read
from antecede.cli.files.quarantine import check_aside, is_quarantine, save_quarantine
from antecede.cli.trace_options import add_read_arguments, column_words, one_way, read_options
from antecede.cli.traces.order_text import how_ordered, missing_words, print_no_causes, repeated
from antecede.formatting import counted
from antecede.progress import Progress
from antecede.tables.kernels import Spent, timed
from antecede.tables.order import (
    TIMES,
    Ordered,
    OrderSpec,
    Prepared,
    Result,
    Status,
    order_trace,
    prepare,
    refuse_empty,
    result_of,
    within_topics,
)
from antecede.tables.trace import SEQ, Trace, evidence, read, steps_back, time_text
from antecede.tables.trace.user_tables import (
    OWN,
    Changed,
    TableReader,
    absent_keys,
    format_of,
    guessed_columns,
    list_separators,
    with_own,
    write_table,
)

pc: Any = pyarrow.compute  # its stubs know too few kinds of arrays


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `antecede order`."""
    add_read_arguments(parser, group=True)
    parser.add_argument(
        "-o",
        "--out",
        required=True,
        metavar="OUT",
        help="file to write: .parquet, .csv, .jsonl; with Spark a folder of parts",
    )
    add_engine_arguments(parser)
    parser.add_argument(
        "--by",
        choices=(*TIMES, "file_order", SEQ),
        help="what breaks ties and tells what waited; seq: order each member's events by its own "
        "numbers (--member, --seq), instead of causes or clocks",
    )
    parser.add_argument(
        "--force", action="store_true", help="replace OUT and its quarantine where they exist"
    )


def run(args: argparse.Namespace) -> int:
    """Read, order, write; say what was done. Raises InputError for unusable input or OUT."""
    options = one_way(read_options(args))
    engine = chosen_engine(args, args.paths, args.format, options)
    out = Path(args.out)
    aside = quarantine_path(out)
    if engine.name == SPARK:
        from antecede.cli.traces.on_spark.order import run_on_spark

        return run_on_spark(args, options, engine, out, aside)
    check_writable(out, args.paths, args.force)
    format_of(out)
    check_aside(aside, args.paths, args.force)
    with Progress("reading"):
        trace = read(args.paths, args.format, options, own=True)
        prepared = prepare(trace, args.by)
    print(f"engine      {engine.name} ({engine.why})", flush=True)
    with Progress("ordering"), timed() as spent:
        ordered, topics = order_trace(prepared), 0
        if args.topic:
            events, topics = within_topics(ordered.events, prepared.spec)
            ordered = ordered._replace(events=events)
    if not ordered.events.num_rows:
        with draft_of(aside) as draft:
            save_quarantine(ordered.quarantine, draft, format_of(aside))
        refuse_empty(0, _reasons(ordered), aside)
    result = result_of(ordered.events, _own(trace, prepared.spec), prepared.spec)
    cleared, changed = _write(result, ordered, out, aside)
    _report(prepared, ordered, out, spent)
    if prepared.source == evidence.NONE:
        print_no_causes(evidence.describe_none(trace.events, trace.details))
        if evidence.has_sequence(trace.events):
            print("            --by seq goes by each member's own numbers")
    if args.by == SEQ and (count := steps_back(prepared.events)):
        print(f"numbers     {counted(count, 'step')} back: a number listed after a higher one")
    if said := guessed_columns(trace.details):
        print(f"columns     {said}")
    for said in time_text.notes(trace.details):
        print(f"times       {said}")
    _report_columns(result, topics, changed)
    if said := absent_keys(trace.details, format_of(out)):
        print(f"changed     {said}")
    _report_aside(prepared, ordered, aside, cleared)
    if said := look_if_read(result.table, out, options, column_words(args)):
        print(f"\n{said}")
    return 0


def _own(trace: Trace, spec: OrderSpec) -> pa.Table | None:
    """Return the columns that the result has beside those of the order.

    They are those of a user's table; other formats have the schema, with their further columns.
    """
    if trace.own is None or trace.format == TableReader.name:
        return trace.own
    names = [OWN + name if name in spec.written else name for name in trace.own.column_names]
    return with_own(trace.events, trace.own.rename_columns(names))[0]


def quarantine_path(out: Path) -> Path:
    """Return the file beside OUT that takes the rows without a position."""
    return out.with_name(f"{out.stem}.quarantine{out.suffix}") if out.name else out


def _write(
    result: Result, ordered: Ordered, out: Path, aside: Path
) -> tuple[bool, Sequence[Changed]]:
    """Write both files or none.

    Return whether a quarantine of an earlier run was removed, and which columns have values that
    the format cannot hold as they are.
    """
    with ExitStack() as drafts:
        changed = write_table(result.table, drafts.enter_context(draft_of(out)), format_of(out))
        if ordered.quarantine.num_rows:
            draft = drafts.enter_context(draft_of(aside))
            save_quarantine(ordered.quarantine, draft, format_of(aside))
    if ordered.quarantine.num_rows or not is_quarantine(aside):
        return False, changed
    aside.unlink()
    return True, changed


def _report(prepared: Prepared, ordered: Ordered, out: Path, spent: Spent) -> None:
    spec, events = prepared.spec, ordered.events
    status: Any = events[spec.status]
    late = _count(pc.greater(pc.list_value_length(events[spec.waited_for]), 0))
    lacking = _count(pc.equal(status, str(Status.MISSING_CAUSE)))
    took = f"{spent.working_s:.2f} s{spent.words()}"
    print(f"ordered     {counted(events.num_rows, 'event')} in {took} -> {out}")
    for line in how_ordered(spec, late, prepared.source):
        print(line)
    if lacking:
        names = len(pc.list_flatten(events[spec.missing_causes]))
        print(missing_words(spec, lacking, names))
        for said in _hint(events, spec.missing_causes):
            print(f"            {said}")


def _count(told: Any) -> int:
    return int(pc.sum(told).as_py() or 0)


def _hint(events: Any, missing_causes: str) -> Sequence[str]:
    """Say whether causes that are nowhere are several ids in one cell."""
    nowhere = pc.list_flatten(events[missing_causes]).to_pylist()
    hint = list_separators.several_in_one(nowhere, {*events["id"].to_pylist()})
    return list_separators.words(hint) if hint else ()


def _report_columns(result: Result, topics: int, changed: Sequence[Changed]) -> None:
    if topics:
        print(f"positions   within each of {counted(topics, 'topic')}; causes hold across them")
    for name, written in result.renamed.items():
        print(f"renamed     the added column {name} is {written}: the table has a {name}")
    for one in changed:
        print(f"changed     {one.words()}")


def _reasons(ordered: Ordered) -> dict[str, int]:
    """Return how many rows each reason set aside, the most first."""
    reasons = ordered.quarantine["reason"].to_pylist()
    return dict(Counter(str(one).partition(":")[0] for one in reasons).most_common())


def _report_aside(prepared: Prepared, ordered: Ordered, aside: Path, cleared: bool) -> None:
    if prepared.receipts or prepared.deliveries:
        print(
            f"left out    {counted(prepared.receipts, 'receipt')} and "
            f"{counted(prepared.deliveries, 'delivery', 'deliveries')}: "
            "the message itself is one event"
        )
    if prepared.duplicates:
        print(repeated(prepared.duplicates, prepared.spec))
    for what, fate in prepared.causes.notes():
        print(f"causes      {what}, {fate}")
    if ordered.quarantine.num_rows:
        rows = counted(ordered.quarantine.num_rows, "row")
        print(f"set aside   {rows}, with reasons -> {aside}")
        for reason, count in _reasons(ordered).items():
            print(f"            {count:,} {reason}")
    if cleared:
        print(f"removed     {aside} of an earlier run: nothing was set aside this time")
    sys.stdout.flush()
