"""`antecede deliver FILE --order NAME`: what a protocol would have delivered of logged bytes."""

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
from antecede.formatting import counted
from antecede.lab.record import Talk, record_log
from antecede.progress import Progress
from antecede.quantiles import quantile
from antecede.tables.order import replay
from antecede.tables.trace import NONE, SOURCE
from antecede.tables.trace.user_tables import PARQUET, format_of, write_table

pa: Any = pyarrow  # its stubs know too few of the types that meet here
pq: Any = pyarrow.parquet

VALUES: dict[str, Any] = {"bounds": Bounds, "subscriptions": Subscriptions}
"""Options that are values of these classes, written as a dictionary of their fields."""
WORDS = {"true": True, "false": False, "none": None}
"""As scenarios write them; the word "false" would count as true."""
SHOWN = 5

OPTION_RULES = (
    needs("prefix", "out", why="no columns are written"),
    needs("force", "out", "page", "example", why="nothing is written"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `antecede deliver`."""
    add = parser.add_argument
    spec = replay.DeliverSpec()
    add("file", metavar="FILE", help="Parquet or Arrow file: a row a message")
    add("-o", "--out", metavar="OUT", help="file to write, rows as in FILE: .parquet, .csv, .jsonl")
    add(
        "--page",
        metavar="F",
        help="write a page (.html) to explore: what was sent, came, was held, and delivered",
    )
    add("--force", action="store_true", help="replace OUT and F where they exist")
    add("--engine", choices=("local", "spark"), default="local")
    add("--example", type=int, metavar="N", help="make FILE instead: a group sends N messages")
    protocol = parser.add_argument_group("the group")
    protocol.add_argument("--order", default=spec.order, help="protocol, or causal, fifo, reply")
    protocol.add_argument(
        "--members", metavar="A,B,...", help="the closed list; without it the group is open"
    )
    protocol.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="of the protocol, as Python writes it: patience_s=5.0, bounds={'most_s': 0.2}",
    )
    columns = parser.add_argument_group("columns")
    for name, what in (
        ("observer", "who received"),
        ("wire", "the bytes"),
        ("time", "when they came: a timestamp or a number"),
        ("group", "keeps groups apart"),
        ("tiebreak", "orders rows of equal time; else their place in FILE does"),
        ("sent", "true where the observer sent it (sent, to, topics: taken when there)"),
        ("to", "whom own messages were for, where their bytes do not say"),
        ("topics", "of own messages that were for nobody"),
    ):
        default = getattr(spec, name)
        more = f" (default: {default})" if default else ""
        columns.add_argument(f"--{name}", metavar="COLUMN", default=default, help=what + more)
    columns.add_argument("--prefix", default="", help="goes before the names of added columns")
    passing = parser.add_argument_group("time")
    passing.add_argument("--time-unit", choices=tuple(replay.PER_S), default=spec.time_unit)
    for option, default, what in (
        ("--tick-s", spec.tick_s, "time-bound protocols are told the time at its multiples"),
        ("--finish-s", spec.finish_s, "time goes on so long after an observer's last row"),
        ("--patience-s", None, "a held row is set aside after so long"),
    ):
        shown = "" if default is None else f" (default: {default:g})"
        passing.add_argument(
            option, type=float, default=default, metavar="SECONDS", help=what + shown
        )


def run(args: argparse.Namespace) -> int:
    """Read, deliver, write, count; 1 if all was refused. Raises InputError for unusable input."""
    spec = _spec(args)
    path = Path(args.file)
    if args.example is not None:
        used = ("file", "example", "force", "order", "members", "option")
        refuse_unused(args, "--example makes FILE and delivers nothing", but=used)
        return _example(path, spec, args)
    out = None if args.out is None else Path(args.out)
    if args.page is not None:
        check_page(args.page)
        check_apart(args.page, args.out)
        check_writable(Path(args.page), [path], args.force)
    if out is not None:
        check_writable(out, [path], args.force)
        format_of(out)
    with Progress("reading"):
        table = read_log_file(path)
    if args.time in table.column_names and pa.types.is_timestamp(table[args.time].type):
        why = f"column {args.time} holds timestamps, which have a unit of their own"
        refuse_unused(args, why, unused=["time_unit"])
    _demand_bytes(table, args.wire, path)
    for name in ("sent", "to", "topics"):
        if getattr(args, name) is None and name in table.column_names:
            setattr(args, name, name)
    spec = _spec(args)
    begin = time.monotonic()
    with Progress("delivering"):
        engine: replay.Engine = replay.deliver_table
        if args.engine == "spark":
            from antecede.spark import deliver_on_spark

            engine = deliver_on_spark
        done = replay.deliver_wide(table, spec, engine)
    seconds = time.monotonic() - begin
    if out is not None:
        _write(done, out)
    if args.page is not None:
        shown = replay.trace_of(table, done, spec)
        title = f"{path.name}, {spec.order}"
        left = counted(shown.left_out, "row")
        said = f"{left} without an observer or a time: in no lane of this page"
        said = said if shown.left_out else ""
        write_page_of_table(shown.events, title, said, Path(args.page))
        print(f"page        {args.page}")
    return _report(done, spec, seconds, args.engine, out)


def _demand_bytes(table: pyarrow.Table, wire: str, path: Path) -> None:
    """Raise InputError unless a cell holds bytes: they are all that tells an order here."""
    what = f"no column {wire}"
    if wire in table.column_names:
        column: Any = table[wire]
        if not len(column) or any(value not in (None, b"", "") for value in column.to_pylist()):
            return
        what = f"column {wire} holds no bytes of messages"
    columns = ", ".join(table.column_names)[:300]
    raise InputError(
        f"{what} ({SOURCE}: {NONE}); columns are {columns}; say --wire COLUMN; of a table with a "
        "column of causes: antecede order --after COLUMN",
        path=str(path),
    )


def _spec(args: argparse.Namespace) -> replay.DeliverSpec:
    members = None if args.members is None else tuple(args.members.split(","))
    same = "order observer wire time time_unit group tiebreak sent to topics tick_s finish_s"
    chosen = {name: getattr(args, name) for name in (*same.split(), "patience_s", "prefix")}
    return replay.DeliverSpec(members=members, options=dict(map(option, args.option)), **chosen)


def option(text: str) -> tuple[str, Any]:
    """Return name and value of NAME=VALUE; what is no Python value is text. Raises InputError."""
    name, equals, written = text.partition("=")
    if not equals or not name.isidentifier():
        raise InputError(f"--option {text!r}: write NAME=VALUE, for instance patience_s=5.0")
    try:
        value = ast.literal_eval(written)
    except (ValueError, SyntaxError):
        value = WORDS.get(written, written)
    if name in VALUES and isinstance(value, dict):
        try:
            value = VALUES[name](**value)
        except TypeError as error:
            fields = ", ".join(inspect.signature(VALUES[name]).parameters)
            raise InputError(f"--option {name}: {error}; it has {fields}") from error
    return name, value


def read_log_file(path: Path) -> pyarrow.Table:
    """Return the rows of a Parquet, Arrow or Feather file. Raises InputError."""
    table: pyarrow.Table
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
        raise InputError(what, path=str(path)) from error


def _example(path: Path, spec: replay.DeliverSpec, args: argparse.Namespace) -> int:
    check_writable(path, (), args.force)
    if format_of(path) != PARQUET:
        raise InputError("an example is Parquet: it is read again", path=str(path))
    if not 0 < args.example <= 1_000_000:
        raise InputError(f"--example {args.example}: 1 to 1,000,000 messages")
    names = spec.members or ("ann", "bob", "cat")
    groups = {name: spec.group_of(name, None) for name in names}
    table = record_log(groups, Talk(messages=args.example, lost=0.0))
    _write(table, path)
    print(f"example     {counted(table.num_rows, 'row')} of {', '.join(names)} -> {path}")
    return 0


def _write(table: pyarrow.Table, path: Path) -> None:
    with draft_of(path) as draft:
        write_table(table, draft, format_of(path))


def _report(
    done: pyarrow.Table, spec: replay.DeliverSpec, seconds: float, engine: str, out: Path | None
) -> int:
    """Print what became of the rows; return 1 if rows were refused and none was taken."""

    def column(name: str) -> list[Any]:
        values: list[Any] = done[spec.prefix + name].to_pylist()
        return values

    statuses, waited = column("status"), column("waited_ms")
    where = "" if out is None else f" -> {out}"
    print(f"read        {counted(done.num_rows, 'row')} in {seconds:.2f} s, {engine} engine{where}")
    goes_by = NONE if spec.order == "unordered" else f"bytes of messages, order {spec.order}"
    print(f"causality   {SOURCE}: {goes_by}")
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
            f"waited      {len(waits):,} of the delivered; half of them at least {middle:,.1f} ms,"
        )
        print(f"            one in a hundred at least {late:,.1f} ms")
    _report_reasons(column("reason"), statuses)
    _report_lacking(done, spec)
    if spec.sent is None:
        print("note        no column says what observers sent themselves (--sent COLUMN); messages")
        print("            that depend on those are refused or held")
    refused = counts[replay.DeliverStatus.REJECTED]
    none_taken = refused > 0 and refused + counts[replay.DeliverStatus.SENT] == done.num_rows
    if none_taken:
        print("nothing     was taken in: is this the order of the log, are these its members?")
    sys.stdout.flush()
    return int(none_taken)


def _report_reasons(reasons: list[str | None], statuses: list[str]) -> None:
    told = (
        replay.DeliverStatus.REJECTED,
        replay.DeliverStatus.DISCARDED,
        replay.DeliverStatus.SENT,
    )
    found = Counter(
        (status, reason)
        for status, reason in zip(statuses, reasons, strict=True)
        if reason is not None and status in told
    )
    for (status, reason), count in found.most_common(SHOWN):
        print(f"{status:<11} {count:,}: {reason}")
    if len(found) > SHOWN:
        print(f"            and {counted(len(found) - SHOWN, 'other reason')}")


def _report_lacking(done: pyarrow.Table, spec: replay.DeliverSpec) -> None:
    """Name what never came and is waited for; what waits for held rows follows from it."""
    names = [spec.observer, *(spec.prefix + n for n in ("status", "sender", "seq", "waits_for"))]
    columns = [done[name].to_pylist() for name in (spec.group or spec.observer, *names)]
    aside = (replay.DeliverStatus.HELD, replay.DeliverStatus.EXPIRED)
    rows = [row for row in zip(*columns, strict=True) if row[2] in aside]
    held = {(group, observer, f"{who}:{seq}") for group, observer, _, who, seq, _ in rows}
    lacking = Counter(
        (observer, cause)
        for group, observer, _, _, _, causes in rows
        for cause in causes
        if (group, observer, cause) not in held
    )
    for (observer, cause), count in lacking.most_common(SHOWN):
        waiting = counted(count, "row")
        print(f"lacking     {cause} never came to {observer}; waited for directly by {waiting}")
