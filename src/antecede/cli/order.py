"""`antecede order PATH... -o OUT`: a trace in causal order, written as Parquet."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from antecede.cli.output import check_free, draft_of
from antecede.errors import InputError
from antecede.order.spec import Status
from antecede.order.table import order_table
from antecede.order.trace import TIMES, Engine, Ordered, Prepared, order_trace, prepare
from antecede.progress import Progress
from antecede.trace.arguments import add_read_arguments, read_options
from antecede.trace.arrow import read

LOCAL_EVENTS = 20_000_000
"""Up to so many events the local engine is chosen: on one machine it is faster than Spark."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `antecede order`."""
    add_read_arguments(parser)
    parser.add_argument("-o", "--out", required=True, metavar="OUT", help="Parquet file to write")
    parser.add_argument(
        "--engine", choices=("local", "spark"), help="who orders; chosen by size if not given"
    )
    parser.add_argument(
        "--by", choices=(*TIMES, "file_order"), help="what breaks ties and tells what waited"
    )
    parser.add_argument("--force", action="store_true", help="replace OUT where it exists")


def run(args: argparse.Namespace) -> int:
    """Read, order, write; say what was done. Raises InputError for unusable input or OUT."""
    if not Path(args.out).name:
        raise InputError(f"-o {args.out!r} names no file; name one to write")
    out = Path(args.out)
    aside = quarantine_path(out)
    _check_free(out, aside, args.force)
    with Progress("reading"):
        prepared = prepare(read(args.paths, args.format, read_options(args)), args.by)
    rows = prepared.events.num_rows
    engine = args.engine or ("local" if rows <= LOCAL_EVENTS else "spark")
    why = "as asked" if args.engine else f"{rows:,} events; Spark above {LOCAL_EVENTS:,}"
    print(f"engine      {engine} ({why})", flush=True)
    begin = time.monotonic()
    with Progress("ordering"):
        ordered = order_trace(prepared, _engine(engine))
    seconds = time.monotonic() - begin
    _write(ordered.events, out)
    if ordered.quarantine.num_rows:
        _write(ordered.quarantine, aside)
    elif args.force:
        aside.unlink(missing_ok=True)
    _report(prepared, ordered, out, aside, seconds)
    return 0


def quarantine_path(out: Path) -> Path:
    """Return the file beside OUT that takes the rows without a position."""
    return out.with_name(f"{out.stem}.quarantine.parquet")


def _engine(name: str) -> Engine:
    if name == "local":
        return order_table
    from antecede.spark.local import order_on_spark

    return order_on_spark


def _check_free(out: Path, aside: Path, force: bool) -> None:
    check_free(out, force)
    check_free(aside, force)


def _write(table: pa.Table, path: Path) -> None:
    with draft_of(path) as draft:
        pq.write_table(table, str(draft), compression="zstd")


def _report(prepared: Prepared, ordered: Ordered, out: Path, aside: Path, seconds: float) -> None:
    spec, events = prepared.spec, ordered.events
    waited: Any = events[spec.waited_for]
    statuses = Counter(events[spec.status].to_pylist())
    late = sum(
        bool(names) and status == Status.ORDERED
        for names, status in zip(waited.to_pylist(), events[spec.status].to_pylist(), strict=True)
    )
    print(f"ordered     {events.num_rows:,} events in {seconds:.2f} s -> {out}")
    causes = "vector clocks" if spec.clock else "declared parents"
    print(f"            by {causes}; ties by {spec.time}, then identity")
    print(f"waited      {late:,} events, by {spec.time}, until a cause was released")
    if lacking := statuses[str(Status.MISSING_CAUSE)]:
        print(f"missing     {lacking:,} events name causes that are nowhere in the trace")
    if prepared.receipts or prepared.deliveries:
        print(
            f"left out    {prepared.receipts:,} receipts and {prepared.deliveries:,} deliveries: "
            "the message itself is one event"
        )
    if prepared.duplicates:
        print(f"left out    {prepared.duplicates:,} repeated rows: the first row of an id counts")
    if ordered.quarantine.num_rows:
        print(f"set aside   {ordered.quarantine.num_rows:,} rows, with reasons -> {aside}")
        reasons = Counter(
            str(r).partition(":")[0] for r in ordered.quarantine["reason"].to_pylist()
        )
        for reason, count in reasons.most_common():
            print(f"            {count:,} {reason}")
    sys.stdout.flush()
