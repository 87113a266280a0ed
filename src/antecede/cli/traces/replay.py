"""`antecede replay FILE --order NAME`: logged messages, delivered by a protocol."""

from __future__ import annotations

import argparse
import ast
import inspect
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet

from antecede.cli.files.output import check_apart, check_writable, draft_of
from antecede.cli.files.pages import check_page, write_page_of_table
from antecede.cli.option_rules import needs, refuse_unused
from antecede.core.clocks import Bounds
from antecede.core.protocols.topics import Subscriptions
from antecede.errors import InputError
from antecede.formatting import pluralize
from antecede.lab.record import Talk, record_log
from antecede.progress import Progress
from antecede.quantiles import quantile
from antecede.tables.order import replay
from antecede.tables.trace import NONE, SOURCE
from antecede.tables.trace.user_tables import PARQUET, format_of, write_table

pa: Any = pyarrow  # the stubs lack types
pq: Any = pyarrow.parquet

VALUES: dict[str, Any] = {"bounds": Bounds, "subscriptions": Subscriptions}
"""Classes of options that are written as a dictionary of fields."""
WORDS = {"true": True, "false": False, "none": None}
"""Values as in scenarios; a non-empty text would count as true."""
SHOWN = 5

OPTION_RULES = (
    needs("prefix", "output", why="no columns are written"),
    needs("force", "output", "output_html", "example", why="nothing is written"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `antecede replay`."""
    add = parser.add_argument
    spec = replay.DeliverSpec()
    add("file", metavar="FILE", help="Parquet or Arrow file with a row per message")
    add(
        "-o",
        "--output",
        metavar="PATH",
        help="file for the rows with results: .parquet, .csv, .jsonl",
    )
    add(
        "--output-html",
        metavar="PATH",
        help="page to write with sends, holds and deliveries (.html)",
    )
    add("--force", action="store_true", help="overwrite existing output files")
    add(
        "--engine",
        choices=("local", "spark"),
        default="local",
        help="this process, or Spark (default: local)",
    )
    add(
        "--example",
        type=int,
        metavar="N",
        help="write an example of N messages to FILE, and replay nothing",
    )
    protocol = parser.add_argument_group("group")
    protocol.add_argument(
        "--order",
        default=spec.order,
        metavar="NAME",
        help=f"protocol, or causal, fifo, reply (default: {spec.order})",
    )
    protocol.add_argument(
        "--members", metavar="NAME,...", help="members of a closed group (default: an open group)"
    )
    protocol.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="protocol option as a Python value, such as patience_s=5.0 or bounds={'most_s': 0.2}",
    )
    columns = parser.add_argument_group("columns")
    for name, text in (
        ("observer", "receiving member"),
        ("wire", "bytes of the message"),
        ("time", "arrival time, a timestamp or a number"),
        ("group", "group of the members (default: one group)"),
        ("tiebreak", "order of rows with equal time (default: their order in FILE)"),
        ("sent", "true if the observer sent the message (default: sent, if present)"),
        ("to", "recipients of a sent message, if not in its bytes (default: to, if present)"),
        ("topics", "topics of a sent message without recipients (default: topics, if present)"),
    ):
        default = getattr(spec, name)
        more = f" (default: {default})" if default else ""
        columns.add_argument(f"--{name}", metavar="COLUMN", default=default, help=text + more)
    columns.add_argument(
        "--prefix", default="", metavar="TEXT", help="prefix of added columns (default: none)"
    )
    times = parser.add_argument_group("time")
    times.add_argument(
        "--time-unit",
        choices=tuple(replay.PER_S),
        default=spec.time_unit,
        help=f"unit of numeric times (default: {spec.time_unit})",
    )
    for option, default, text in (
        ("--tick-s", spec.tick_s, "interval of ticks for protocols that use time"),
        ("--finish-s", spec.finish_s, "time after an observer's last row"),
        ("--patience-s", None, "wait after which a held row expires"),
    ):
        shown = "never" if default is None else f"{default:g}"
        times.add_argument(
            option,
            type=float,
            default=default,
            metavar="SECONDS",
            help=f"{text} (default: {shown})",
        )


def run(args: argparse.Namespace) -> int:
    """Read, replay, write and count; return 1 if all rows were rejected. Raise InputError."""
    spec = _build_spec(args)
    path = Path(args.file)
    if args.example is not None:
        used = ("file", "example", "force", "order", "members", "option")
        refuse_unused(args, "--example writes FILE and replays nothing", but=used)
        return _write_example(path, spec, args)
    out = None if args.output is None else Path(args.output)
    if args.output_html is not None:
        check_page(args.output_html)
        check_apart(args.output_html, args.output)
        check_writable(Path(args.output_html), [path], args.force)
    if out is not None:
        check_writable(out, [path], args.force)
        format_of(out)
    with Progress("reading"):
        table = read_log_file(path)
    if args.time in table.column_names and pa.types.is_timestamp(table[args.time].type):
        why = f"column {args.time} contains timestamps, not numbers"
        refuse_unused(args, why, unused=["time_unit"])
    _check_bytes(table, args.wire, path)
    for name in ("sent", "to", "topics"):
        if getattr(args, name) is None and name in table.column_names:
            setattr(args, name, name)
    spec = _build_spec(args)
    begin = time.monotonic()
    with Progress("replaying"):
        engine: replay.Engine = replay.deliver_table
        if args.engine == "spark":
            from antecede.spark import deliver_on_spark

            engine = deliver_on_spark
        done = replay.deliver_wide(table, spec, engine)
    seconds = time.monotonic() - begin
    if out is not None:
        _write(done, out)
    if args.output_html is not None:
        shown = replay.trace_of(table, done, spec)
        title = f"{path.name}, {spec.order}"
        excluded = pluralize(shown.left_out, "row")
        finding = f"{excluded} without an observer or a time: not on this page"
        finding = finding if shown.left_out else ""
        write_page_of_table(shown.events, title, finding, Path(args.output_html))
        print(f"page        {args.output_html}")
    return _print_report(done, spec, seconds, args.engine, out)


def _check_bytes(table: pyarrow.Table, wire: str, path: Path) -> None:
    """Raise InputError unless a cell contains bytes, the only source of order here."""
    what = f"--wire: no column {wire!r}"
    if wire in table.column_names:
        column: Any = table[wire]
        if not len(column) or any(value not in (None, b"", "") for value in column.to_pylist()):
            return
        what = f"--wire: column {wire!r} contains no bytes"
    columns = ", ".join(table.column_names)[:300]
    raise InputError(
        f"{what} ({SOURCE}: {NONE}); columns are {columns}; for a table with a column of causes "
        "use antecede order --after COLUMN",
        path=str(path),
    )


def _build_spec(args: argparse.Namespace) -> replay.DeliverSpec:
    members = None if args.members is None else tuple(args.members.split(","))
    same = "order observer wire time time_unit group tiebreak sent to topics tick_s finish_s"
    chosen = {name: getattr(args, name) for name in (*same.split(), "patience_s", "prefix")}
    return replay.DeliverSpec(
        members=members, options=dict(map(parse_option, args.option)), **chosen
    )


def parse_option(text: str) -> tuple[str, Any]:
    """Return name and value of NAME=VALUE; other than Python values are text. Raise InputError."""
    name, equals, written = text.partition("=")
    if not equals or not name.isidentifier():
        raise InputError(f"--option {text!r}: expected NAME=VALUE, such as patience_s=5.0")
    try:
        value = ast.literal_eval(written)
    except (ValueError, SyntaxError):
        value = WORDS.get(written, written)
    if name in VALUES and isinstance(value, dict):
        try:
            value = VALUES[name](**value)
        except TypeError as error:
            fields = ", ".join(inspect.signature(VALUES[name]).parameters)
            raise InputError(f"--option {name}: {error}; its fields are {fields}") from error
    return name, value


_MAGIC = (b"PAR1", b"ARROW1", b"\xff\xff\xff\xff")
"""First bytes of Parquet files, Arrow files and Arrow streams."""


def read_log_file(path: Path) -> pyarrow.Table:
    """Return the rows of a Parquet, Arrow or Feather file. Raise InputError."""
    table: pyarrow.Table
    start = None
    try:
        with path.open("rb") as file:
            start = file.read(6)
        if start[:4] == b"PAR1":
            table = pq.read_table(str(path))
            return table
        opened = pa.ipc.open_file if start == b"ARROW1" else pa.ipc.open_stream
        with pa.OSFile(str(path)) as source:
            table = opened(source).read_all()
            return table
    except (OSError, pa.ArrowException) as error:
        text = (error.strerror if isinstance(error, OSError) else None) or str(error)
        what = f"cannot be read as Parquet or Arrow: {text}"
        if start is not None and not start.startswith(_MAGIC):
            what = (
                "is not a Parquet or Arrow file; name a log with the bytes of messages, as "
                "antecede replay example.parquet --example 20 writes it"
            )
        raise InputError(what, path=str(path)) from error


def _write_example(path: Path, spec: replay.DeliverSpec, args: argparse.Namespace) -> int:
    check_writable(path, (), args.force)
    if format_of(path) != PARQUET:
        raise InputError("--example: expected a file name that ends in .parquet", path=str(path))
    if not 0 < args.example <= 1_000_000:
        raise InputError(f"--example {args.example}: expected 1 to 1,000,000 messages")
    names = spec.members or ("ann", "bob", "cat")
    groups = {name: spec.group_of(name, None) for name in names}
    table = record_log(groups, Talk(messages=args.example, lost=0.0))
    _write(table, path)
    print(f"example     {pluralize(table.num_rows, 'row')} of {', '.join(names)} -> {path}")
    return 0


def _write(table: pyarrow.Table, path: Path) -> None:
    with draft_of(path) as draft:
        write_table(table, draft, format_of(path))


def _print_report(
    done: pyarrow.Table, spec: replay.DeliverSpec, seconds: float, engine: str, out: Path | None
) -> int:
    """Print the counts by status; return 1 if rows were rejected and none accepted."""

    def column(name: str) -> list[Any]:
        values: list[Any] = done[spec.prefix + name].to_pylist()
        return values

    statuses, waited = column("status"), column("waited_ms")
    where = "" if out is None else f" -> {out}"
    print(
        f"read        {pluralize(done.num_rows, 'row')} in {seconds:.2f} s, {engine} engine{where}"
    )
    source = NONE if spec.order == "unordered" else f"bytes of messages, order {spec.order}"
    print(f"causality   {SOURCE}: {source}")
    counts = Counter(statuses)
    for status in replay.DeliverStatus:
        if counts[status]:
            print(f"{status:<11} {counts[status]:,}")
    waits = sorted(
        w
        for w, s in zip(waited, statuses, strict=True)
        if s == replay.DeliverStatus.DELIVERED and w
    )
    if waits:
        middle, late = (quantile(waits, part) for part in (0.5, 0.99))
        print(
            f"waited      {len(waits):,} of the delivered rows, median {middle:,.1f} ms, "
            f"p99 {late:,.1f} ms"
        )
    _print_reasons(column("reason"), statuses)
    _print_missing(done, spec)
    if spec.sent is None:
        print("note        no column of sent messages (--sent COLUMN); messages that depend on")
        print("            them are rejected or held")
    rejected = counts[replay.DeliverStatus.REJECTED]
    is_useless = rejected > 0 and rejected + counts[replay.DeliverStatus.SENT] == done.num_rows
    if is_useless:
        print("nothing     was accepted; check --order and --members against the log")
    sys.stdout.flush()
    return int(is_useless)


def _print_reasons(reasons: list[str | None], statuses: list[str]) -> None:
    explained = (
        replay.DeliverStatus.REJECTED,
        replay.DeliverStatus.DISCARDED,
        replay.DeliverStatus.SENT,
    )
    found = Counter(
        (status, reason)
        for status, reason in zip(statuses, reasons, strict=True)
        if reason is not None and status in explained
    )
    for (status, reason), count in found.most_common(SHOWN):
        print(f"{status:<11} {count:,}: {reason}")
    if len(found) > SHOWN:
        print(f"            and {pluralize(len(found) - SHOWN, 'other reason')}")


def _print_missing(done: pyarrow.Table, spec: replay.DeliverSpec) -> None:
    """Print the missing messages that held rows wait for; not those that are held too."""
    names = [spec.observer, *(spec.prefix + n for n in ("status", "sender", "seq", "waits_for"))]
    columns = [done[name].to_pylist() for name in (spec.group or spec.observer, *names)]
    waiting = (replay.DeliverStatus.HELD, replay.DeliverStatus.EXPIRED)
    rows = [row for row in zip(*columns, strict=True) if row[2] in waiting]
    held = {(group, observer, f"{sender}:{seq}") for group, observer, _, sender, seq, _ in rows}
    missing = Counter(
        (observer, cause)
        for group, observer, _, _, _, causes in rows
        for cause in causes
        if (group, observer, cause) not in held
    )
    for (observer, cause), count in missing.most_common(SHOWN):
        print(f"missing     {cause} at {observer}; {pluralize(count, 'row')} wait directly for it")
