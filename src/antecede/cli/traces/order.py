"""`antecede order PATH... -o FILE`: a trace in causal order, as Parquet, CSV or JSON lines."""

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

from antecede.cli.engines import SPARK, add_engine_arguments, choose_engine
from antecede.cli.files.output import check_writable, draft_of
from antecede.cli.files.pages import suggest_view_if_readable
from antecede.cli.files.quarantine import check_quarantine, is_quarantine, save_quarantine
from antecede.cli.trace_options import (
    add_read_arguments,
    check_one_source,
    column_words,
    read_options,
)
from antecede.cli.traces import order_text
from antecede.formatting import pluralize
from antecede.progress import Progress
from antecede.tables import order
from antecede.tables.kernels import measure_compile_time
from antecede.tables.trace import SEQ, Trace, evidence, read, steps_back, user_tables

pc: Any = pyarrow.compute  # its stubs know too few kinds of arrays


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `antecede order`."""
    add = parser.add_argument
    add_read_arguments(parser, group=True)
    add(
        "-o",
        "--output",
        required=True,
        metavar="FILE",
        help="file for the ordered trace: .parquet, .csv, .jsonl; a folder with Spark",
    )
    add_engine_arguments(parser)
    add(
        "--by",
        choices=(*order.TIMES, "file_order", SEQ),
        help="time or order that breaks ties; seq: each member's sequence numbers (--member, "
        "--seq) in place of causes or clocks",
    )
    add("--force", action="store_true", help="overwrite an existing FILE and its quarantine")


def run(args: argparse.Namespace) -> int:
    """Read, order, write and print counts. Raise InputError for unusable input or output."""
    options = check_one_source(read_options(args))
    engine = choose_engine(args, args.paths, args.format, options)
    out = Path(args.output)
    aside = quarantine_path(out)
    if engine.name == SPARK:
        from antecede.cli.traces.on_spark.order import run_on_spark

        return run_on_spark(args, options, engine, out, aside)
    check_writable(out, args.paths, args.force)
    user_tables.format_of(out)
    check_quarantine(aside, args.paths, args.force)
    with Progress("reading"):
        trace = read(args.paths, args.format, options, own=True)
        prepared = order.prepare(trace, args.by)
    print(f"engine      {engine.name} ({engine.why})", flush=True)
    with Progress("ordering"), measure_compile_time() as spent:
        ordered, topics = order.order_trace(prepared), 0
        if args.topic:
            events, topics = order.within_topics(ordered.events, prepared.spec)
            ordered = ordered._replace(events=events)
    if not ordered.events.num_rows:
        with draft_of(aside) as draft:
            save_quarantine(ordered.quarantine, draft, user_tables.format_of(aside))
        order.refuse_empty(0, _reasons(ordered), aside)
    result = order.result_of(ordered.events, _own(trace, prepared.spec), prepared.spec)
    cleared, changed = _write(result, ordered, out, aside)
    events = ordered.events
    took = f"{spent.working_s:.2f} s{spent.words()}"
    print(f"ordered     {pluralize(events.num_rows, 'event')} in {took} -> {out}")
    _report(prepared, events)
    if prepared.source == evidence.NONE:
        order_text.print_no_causes(evidence.describe_none(trace.events, trace.details))
        if evidence.has_sequence(trace.events):
            print("            --by seq orders by each member's sequence numbers")
    if args.by == SEQ and (count := steps_back(prepared.events)):
        print(f"numbers     {pluralize(count, 'sequence number')} after a higher one")
    order_text.print_columns(trace.details, topics, result.renamed)
    for one in changed:
        print(f"changed     {one.words()}")
    if text := user_tables.absent_keys(trace.details, user_tables.format_of(out)):
        print(f"changed     {text}")
    order_text.print_excluded(prepared)
    order_text.print_quarantined(_reasons(ordered), aside)
    if cleared:
        print(f"removed     {aside} of an earlier run: no row is quarantined now")
    sys.stdout.flush()
    if text := suggest_view_if_readable(result.table, out, options, column_words(args)):
        print(f"\n{text}")
    return 0


def _own(trace: Trace, spec: order.OrderSpec) -> pa.Table | None:
    """Return the user's columns of a table, or the schema and further columns of other formats."""
    if trace.own is None or trace.format == user_tables.TableReader.name:
        return trace.own
    names = [
        user_tables.OWN + name if name in spec.written else name for name in trace.own.column_names
    ]
    return user_tables.with_own(trace.events, trace.own.rename_columns(names))[0]


def quarantine_path(out: Path) -> Path:
    """Return the file beside the output for rows without a position."""
    return out.with_name(f"{out.stem}.quarantine{out.suffix}") if out.name else out


def _write(
    result: order.OrderResult, ordered: order.Ordered, out: Path, aside: Path
) -> tuple[bool, Sequence[user_tables.Changed]]:
    """Write both files or none.

    Return whether a quarantine of an earlier run was removed, and the changed columns.
    """
    with ExitStack() as drafts:
        changed = user_tables.write_table(
            result.table, drafts.enter_context(draft_of(out)), user_tables.format_of(out)
        )
        if ordered.quarantine.num_rows:
            draft = drafts.enter_context(draft_of(aside))
            save_quarantine(ordered.quarantine, draft, user_tables.format_of(aside))
    if ordered.quarantine.num_rows or not is_quarantine(aside):
        return False, changed
    aside.unlink()
    return True, changed


def _report(prepared: order.Prepared, events: Any) -> None:
    spec = prepared.spec
    late: Any = pc.greater(pc.list_value_length(events[spec.waited_for]), 0)
    lacking: Any = pc.equal(events[spec.status], str(order.Status.MISSING_CAUSE))
    counts = [int(pc.sum(mask).as_py() or 0) for mask in (late, lacking)]
    nowhere: list[Any] = pc.list_flatten(events[spec.missing_causes]).to_pylist()
    order_text.print_ordered(spec, counts[0], prepared.source, counts[1], len(nowhere))
    if counts[1]:
        hint = user_tables.list_separators.several_in_one(nowhere, {*events["id"].to_pylist()})
        order_text.print_joined_ids(hint)


def _reasons(ordered: order.Ordered) -> dict[str, int]:
    reasons = ordered.quarantine["reason"].to_pylist()
    return dict(Counter(str(one).partition(":")[0] for one in reasons).most_common())
