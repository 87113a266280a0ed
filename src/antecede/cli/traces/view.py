"""`antecede view PATH`: a trace as a page to explore, written, opened, or served and followed."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from antecede.cli.files.browser import open_browser, serve_until_interrupted
from antecede.cli.files.output import check_writable, save_text
from antecede.cli.option_rules import excludes, needs, refuse_unused
from antecede.cli.trace_options import add_read_arguments, check_one_source, read_options
from antecede.cli.traces.ask import CAUSALITY
from antecede.errors import InputError
from antecede.formatting import harmless, pluralize
from antecede.progress import Progress
from antecede.tables import view
from antecede.tables.causality import CAUSES, WAYS, Causality, EventRef
from antecede.tables.trace import SEQ, Trace, all_inputs, by_sequence, evidence, read
from antecede.tables.trace.user_tables import with_further

SPARK: Final = "spark"
MOST_FINDINGS: Final = 8

OPTION_RULES = (
    needs("master", engine=SPARK),
    needs("run_id", "focus"),
    needs("force", "output", "tiles", why="nothing is replaced"),
    excludes("output focus max_events", "tiles", why="only tiles are written"),
    excludes("serve follow port no_browser", "tiles", "output", why="files are written"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `antecede view`."""
    add = parser.add_argument
    add_read_arguments(parser, text=True)
    add(
        "--focus",
        metavar="ID",
        help="event to start at; ID@MEMBER: arrival of a message at a member",
    )
    add("--run-id", metavar="RUN", help="run of the event, if several runs have the id")
    add(
        "--causality",
        choices=(*WAYS, SEQ),
        help=f"{CAUSALITY}; seq: each member's sequence numbers (--member, --seq)",
    )
    add("-o", "--output", metavar="FILE", help="page to write (.html), without a browser")
    add("--force", action="store_true", help="overwrite an existing FILE or DIR")
    add(
        "--max-events",
        type=int,
        default=view.LARGEST,
        metavar="N",
        help=f"events on one page; a larger trace is served in tiles (default: {view.LARGEST:,})",
    )
    add("--serve", action="store_true", help="serve the page from this machine")
    add("--follow", action="store_true", help="serve the page and follow the growing files")
    add("--port", type=int, default=0, metavar="PORT", help="port of the server (default: any)")
    add("--no-browser", action="store_true", help="print the address and open no browser")
    add("--tiles", metavar="DIR", help="folder to write tiles to, for antecede view DIR")
    add(
        "--engine",
        choices=("local", SPARK),
        default="local",
        help="engine for --tiles; spark for Parquet beyond memory (default: local)",
    )
    add("--master", metavar="MASTER", help="Spark master, such as local[4] or spark://host:7077")


def run(args: argparse.Namespace) -> int:
    """Write, open or serve the page. Raise InputError for input that cannot be shown."""
    _check(args)
    if len(args.paths) == 1 and view.is_tiles(Path(args.paths[0])):
        why = f"{args.paths[0]} contains tiles of a trace"
        used = ["paths", "focus", "run_id", "serve", "port", "no_browser"]
        refuse_unused(args, why, but=used)
        return _serve(args, view.Tiles(Path(args.paths[0]), _find_focus(args)))
    if args.engine == SPARK:
        refuse_unused(
            args,
            "--engine spark reads Parquet in the event schema (`antecede convert --to parquet` "
            "writes it)",
            but=["paths", "tiles", "engine", "master", "force"],
        )
        return _write_tiles_on_spark(args)
    if args.follow:
        how = {"around": args.focus, "run": args.run_id, "most": args.max_events}
        source = view.Followed(
            _title(args), args.paths, lambda: _read(args), by=_choose_source(args), **how
        )
        source.block({})  # errors of reading come before the browser
        return _serve(args, source)
    with Progress("reading"):
        trace = _read(args)
    if args.causality != SEQ and not evidence.supports(trace.events, args.causality, trace.format):
        other = evidence.source_in(trace.events, trace.format)
        if other != evidence.NONE:
            raise InputError(evidence.describe_other(args.causality, other))
        print(f"antecede: {evidence.describe_none(trace.events, trace.details)}", file=sys.stderr)
    if args.tiles is not None:
        with Progress("writing tiles"):
            written = view.write_tiles(
                trace, Path(args.tiles), _title(args), by=_choose_source(args), force=args.force
            )
        count = pluralize(written["rows"], "event")
        print(f"{count} -> {args.tiles}; explore: antecede view {args.tiles}")
        notes = ({"what": note} for note in written["notes"])
        _print_findings([*written["lists"]["findings"], *notes])
        return 0
    large = len(trace.events) > args.max_events
    by = _choose_source(args)
    if args.serve and not large:
        how = {"around": args.focus, "run": args.run_id, "most": args.max_events, "grows": False}
        source = view.Followed(_title(args), args.paths, lambda: trace, by=by, **how)
        source.block({})  # an unknown event is an error before a browser opens
        return _serve(args, source)
    if large and args.output is None and (args.serve or args.focus is None):
        with tempfile.TemporaryDirectory(prefix="antecede-view-") as folder:
            path = Path(folder) / view.TILES
            with Progress("writing tiles"):
                whole = Causality(trace, by=by, unproven=True)
                view.write_tiles(trace, path, _title(args), by=by, causality=whole)
            return _serve(args, view.Tiles(path, _find_focus(args), lambda: whole))
    return _write(args, trace)


def _check(args: argparse.Namespace) -> None:
    if args.max_events < 1:
        raise InputError(f"--max-events {args.max_events}: expected 1 or more")
    if not 0 <= args.port < 65_536:
        raise InputError(f"--port {args.port}: expected 0 (any free port) to 65535")
    if args.tiles is None and args.engine == SPARK:
        raise InputError("--engine spark: needs --tiles DIR")
    if args.output is not None:
        if Path(args.output).suffix.lower() not in (".html", ".htm"):
            raise InputError("--output: expected a file name that ends in .html", path=args.output)
        check_writable(Path(args.output), args.paths, args.force)


def _read(args: argparse.Namespace) -> Trace:
    options = check_one_source(read_options(args))
    trace = read(args.paths, args.format, options, own=True)
    if args.causality == SEQ:
        trace = by_sequence(trace)
    return with_further(trace, options)


def _choose_source(args: argparse.Namespace) -> str | None:
    """Return the source for `Causality`; `_read` turns sequence numbers into causes."""
    if args.causality is None:
        return None
    return CAUSES if args.causality == SEQ else str(args.causality)


def _title(args: argparse.Namespace) -> str:
    names = [Path(path).resolve().name or str(path) for path in args.paths]
    more = f" and {len(names) - 2} more" if len(names) > 2 else ""
    title = ", ".join(names[:2]) + more
    return title.encode(errors="backslashreplace").decode()  # surrogates are not UTF-8


def _find_focus(args: argparse.Namespace) -> EventRef | None:
    if args.focus is None:
        return None
    return EventRef(args.focus, None, args.run_id)


def _write(args: argparse.Namespace, trace: Trace) -> int:
    focus = None
    if args.focus is not None:
        focus = view.event_named(trace.events, args.focus, args.run_id)
    with Progress("finding causes"):
        shown = view.picture(
            trace,
            title=_title(args),
            by=_choose_source(args),
            around=focus,
            most=args.max_events,
        )
        text = view.render_page(shown)
    if args.output is not None:
        out = Path(args.output)
    else:
        # A trace can be confidential: the folder is readable by its owner only.
        out = Path(tempfile.mkdtemp(prefix="antecede-view-")) / "page.html"
    save_text(out, text)
    what = pluralize(shown.meta["events"], "event")
    print(f"{what}, {len(text) / 1e6:.1f} MB -> {out}")
    _print_findings(shown.meta["findings"])
    if args.output is None and not args.no_browser:
        open_browser(out.as_uri())
    return 0


def _print_findings(findings: Sequence[Mapping[str, Any]]) -> None:
    """Print the findings of the page, excluded rows among them."""
    for one in findings[:MOST_FINDINGS]:
        print(f"  - {harmless(one['what'])}")
    if len(findings) > MOST_FINDINGS:
        print(f"  and {pluralize(len(findings) - MOST_FINDINGS, 'more finding')} on the page")


def _write_tiles_on_spark(args: argparse.Namespace) -> int:
    for path in args.paths:
        # With a colon it is the address of a file system that only Spark knows.
        if ":" not in path and not Path(path).exists():
            all_inputs(path)
    from antecede.cli.engines import estimate_bytes
    from antecede.cli.spark_session import session
    from antecede.spark import write_tiles as write_on_spark

    with (
        session(args.master, estimate_bytes(args.paths, args.format) or 0) as spark,
        Progress("writing tiles"),
    ):
        rows = write_on_spark(
            spark.read.parquet(*args.paths), args.tiles, _title(args), force=args.force
        )
    print(f"{pluralize(rows, 'row')} -> {args.tiles}; explore: antecede view {args.tiles}")
    return 0


def _serve(args: argparse.Namespace, source: view.Source) -> int:
    serving = view.Serving(source, args.port)
    serve_until_interrupted(serving, source.title, browser=not args.no_browser)
    return 0
