"""`antecede view PATH`: a trace as a page to explore; written, opened, or served and followed."""

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
from antecede.cli.trace_options import add_read_arguments, one_way, read_options
from antecede.errors import InputError
from antecede.formatting import counted, harmless
from antecede.progress import Progress
from antecede.tables import view
from antecede.tables.causality import CAUSES, WAYS, Causality, EventRef
from antecede.tables.trace import SEQ, Trace, by_sequence, evidence, read
from antecede.tables.trace.user_tables import with_further

SPARK: Final = "spark"
MOST_FINDINGS: Final = 8

_OF_SERVERS = "serve follow port no_browser"
OPTION_RULES = (
    needs("master", engine=SPARK),
    needs("in_run", "around"),
    needs("force", "out", "tiles", why="nothing is replaced"),
    excludes(f"out around most {_OF_SERVERS}", "tiles", why="pieces are made, and no page"),
    excludes(_OF_SERVERS, "out", why="a page is written, and none is served"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `antecede view`."""
    add = parser.add_argument
    add_read_arguments(parser, text=True)
    add(
        "--around",
        metavar="ID",
        help="begin near this event (ID@MEMBER: the arrival of a message at a member); of a trace "
        "too large for one page, show what is near it",
    )
    add("--in-run", metavar="RUN", help="of which run, where an id is in several")
    add(
        "--by",
        choices=(*WAYS, SEQ),
        help="what tells what came before what: rows of sendings and arrivals, vector clocks, or "
        "declared causes; the first of these that the trace has, if not given; seq: each member's "
        "own numbers (--member, --seq)",
    )
    add("-o", "--out", metavar="F", help="write the page (.html) and open no browser")
    add("--force", action="store_true", help="replace F or DIR where it exists")
    add(
        "--most",
        type=int,
        default=view.LARGEST,
        metavar="N",
        help=f"events that one page holds; a larger trace is served in tiles ({view.LARGEST:,})",
    )
    add("--serve", action="store_true", help="serve the page from this machine")
    add("--follow", action="store_true", help="serve it, and show what the files get meanwhile")
    add("--port", type=int, default=0, help="of the server (any that is free)")
    add("--no-browser", action="store_true", help="print where the page is, and open nothing")
    add(
        "--tiles",
        metavar="DIR",
        help="cut the trace into pieces there, for `antecede view DIR`, and do nothing else",
    )
    add(
        "--engine",
        choices=("local", SPARK),
        default="local",
        help="with --tiles: who cuts; spark for what does not fit into memory (Parquet)",
    )
    add("--master", metavar="M", help="Spark's master, as local[4] or spark://host:7077")


def run(args: argparse.Namespace) -> int:
    """Make the page. Raises InputError for what cannot be shown."""
    _check(args)
    if args.engine == SPARK:
        refuse_unused(
            args,
            "Spark cuts Parquet in the schema of antecede (`antecede convert --to parquet` writes "
            "it), and looks for no causes",
            but=["paths", "tiles", "engine", "master", "force"],
        )
        return _cut_on_spark(args)
    if len(args.paths) == 1 and view.is_tiles(Path(args.paths[0])):
        why = "the folder holds a trace in pieces"
        refuse_unused(args, why, unused=["out", "follow", "by", "most", "format", "tiles"])
        return _serve(args, view.Tiles(Path(args.paths[0]), _around(args)))
    if args.follow:
        how = {"around": args.around, "run": args.in_run, "most": args.most}
        source = view.Followed(_title(args), args.paths, lambda: _read(args), by=_way(args), **how)
        source.block({})  # so that what cannot be read is said before a browser opens
        return _serve(args, source)
    with Progress("reading"):
        trace = _read(args)
    if args.by != SEQ and not evidence.supports(trace.events, args.by, trace.format):
        other = evidence.source_in(trace.events, trace.format)
        if other != evidence.NONE:
            raise InputError(evidence.describe_other(args.by, other))
        print(f"antecede: {evidence.describe_none(trace.events, trace.details)}", file=sys.stderr)
    if args.tiles is not None:
        with Progress("cutting into pieces"):
            said = view.write_tiles(
                trace, Path(args.tiles), _title(args), by=_way(args), force=args.force
            )
        print(f"{counted(said['rows'], 'event')} -> {args.tiles}; look: antecede view {args.tiles}")
        notes = ({"what": note} for note in said["notes"])
        _print_findings([*said["lists"]["findings"], *notes])
        return 0
    large = len(trace.events) > args.most
    if args.serve and not large:
        how = {"around": args.around, "run": args.in_run, "most": args.most, "grows": False}
        source = view.Followed(_title(args), args.paths, lambda: trace, by=_way(args), **how)
        source.block({})  # so that an unknown event is an error before a browser opens
        return _serve(args, source)
    if large and args.out is None and (args.serve or args.around is None):
        with tempfile.TemporaryDirectory(prefix="antecede-view-") as folder:
            path = Path(folder) / view.TILES
            with Progress("cutting into pieces"):
                whole = Causality(trace, by=_way(args), unproven=True)
                view.write_tiles(trace, path, _title(args), by=_way(args), causality=whole)
            return _serve(args, view.Tiles(path, _around(args), lambda: whole))
    return _write(args, trace)


def _check(args: argparse.Namespace) -> None:
    if args.most < 1:
        raise InputError(f"--most {args.most}: a number of events, 1 or more")
    if not 0 <= args.port < 65_536:
        raise InputError(f"--port {args.port}: ports go from 0 (any) to 65535")
    if args.tiles is None and args.engine == SPARK:
        raise InputError("--engine spark cuts a trace into pieces: say --tiles DIR, where to")
    if args.out is not None:
        if Path(args.out).suffix.lower() not in (".html", ".htm"):
            raise InputError("name a page that ends in .html", path=args.out)
        check_writable(Path(args.out), args.paths, args.force)


def _read(args: argparse.Namespace) -> Trace:
    options = one_way(read_options(args))
    trace = read(args.paths, args.format, options, own=True)
    if args.by == SEQ:
        trace = by_sequence(trace)
    return with_further(trace, options)


def _way(args: argparse.Namespace) -> str | None:
    """Return the way for `Causality`: `_read` makes causes of members' own numbers."""
    return CAUSES if args.by == SEQ else str(args.by) if args.by is not None else None


def _title(args: argparse.Namespace) -> str:
    names = [Path(path).resolve().name or str(path) for path in args.paths]
    more = f" and {len(names) - 2} more" if len(names) > 2 else ""
    title = ", ".join(names[:2]) + more
    return title.encode(errors="backslashreplace").decode()  # a file's name may be no Unicode


def _around(args: argparse.Namespace) -> EventRef | None:
    if args.around is None:
        return None
    return EventRef(args.around, None, args.in_run)


def _write(args: argparse.Namespace, trace: Trace) -> int:
    around = None
    if args.around is not None:
        around = view.event_named(trace.events, args.around, args.in_run)
    with Progress("looking for what came before what"):
        shown = view.picture(
            trace, title=_title(args), by=_way(args), around=around, most=args.most
        )
        text = view.render_page(shown)
    if args.out is not None:
        out = Path(args.out)
    else:
        # Nobody else may read it: a trace can be confidential.
        out = Path(tempfile.mkdtemp(prefix="antecede-view-")) / "page.html"
    save_text(out, text)
    what = counted(shown.meta["events"], "event")
    print(f"{what}, {len(text) / 1e6:.1f} MB -> {out}")
    _print_findings(shown.meta["findings"])
    if args.out is None and not args.no_browser:
        open_browser(out.as_uri())
    return 0


def _print_findings(findings: Sequence[Mapping[str, Any]]) -> None:
    """Print what the page says beside the picture: rows that it lacks are among it."""
    for one in findings[:MOST_FINDINGS]:
        print(f"  - {harmless(one['what'])}")
    if len(findings) > MOST_FINDINGS:
        print(f"  and {counted(len(findings) - MOST_FINDINGS, 'more finding')} on the page")


def _cut_on_spark(args: argparse.Namespace) -> int:
    from antecede.cli.engines import needed_bytes
    from antecede.cli.spark_session import session
    from antecede.spark import write_tiles as write_on_spark

    with (
        session(args.master, needed_bytes(args.paths, args.format) or 0) as spark,
        Progress("cutting into pieces"),
    ):
        rows = write_on_spark(
            spark.read.parquet(*args.paths), args.tiles, _title(args), force=args.force
        )
    print(f"{counted(rows, 'row')} -> {args.tiles}; look: antecede view {args.tiles}")
    return 0


def _serve(args: argparse.Namespace, source: view.Source) -> int:
    serving = view.Serving(source, args.port)
    serve_until_interrupted(serving, source.title, browser=not args.no_browser)
    return 0
