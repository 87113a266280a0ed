"""`antecede convert PATH... -o OUT`: a trace in another format: ShiViz log, Parquet, JSON lines."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from antecede.audit.clocked import with_clocks
from antecede.cli.output import check_free, draft_of
from antecede.errors import InputError
from antecede.progress import Progress
from antecede.trace.arguments import add_read_arguments, read_options
from antecede.trace.arrow import SCHEMA, read, read_batches
from antecede.trace.reader import ReadOptions
from antecede.trace.shiviz_writer import write_log_file

ENDINGS = {
    ".parquet": "parquet",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".log": "shiviz",
    ".shiviz": "shiviz",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `antecede convert`."""
    add_read_arguments(parser)
    parser.add_argument("-o", "--out", required=True, metavar="OUT", help="file to write")
    parser.add_argument(
        "--to",
        choices=("shiviz", "parquet", "jsonl"),
        help="format of OUT; told by its ending if not given (.log, .parquet, .jsonl)",
    )
    parser.add_argument("--force", action="store_true", help="replace OUT where it exists")


def run(args: argparse.Namespace) -> int:
    """Read, write, and say what was written. Raises InputError for unusable input or OUT."""
    out = Path(args.out)
    write = _WRITERS[_format(out, args.to)]
    check_free(out, args.force)
    with draft_of(out) as draft, Progress("converting"):
        lines = write(args.paths, args.format, read_options(args), draft)
    print(f"{lines[0]} -> {out}")
    for line in lines[1:]:
        print(f"  {line}")
    return 0


def _format(out: Path, given: str | None) -> str:
    if not out.name:
        raise InputError(f"-o {str(out)!r} names no file; name one to write")
    found = given or ENDINGS.get(out.suffix)
    if found is None:
        message = f"its ending tells no format ({', '.join(ENDINGS)}); say --to"
        raise InputError(message, path=str(out))
    return found


def _shiviz(paths: Sequence[str], format: str | None, options: ReadOptions, out: Path) -> list[str]:
    trace = read(paths, format, options)
    log = with_clocks(trace.events, trace.format)
    written = write_log_file(log.entries, out, log.several_runs)
    lines = [f"{written:,} events as a log for ShiViz"]
    if log.computed:
        lines.append(
            "vector clocks computed from the causes; a member's events follow each other in them"
        )
    lines += [f"left out: {count:,} x {reason}" for reason, count in log.left_out.items()]
    return lines + _aside(Counter(_short(r) for r in trace.quarantine["reason"].to_pylist()))


def _parquet(
    paths: Sequence[str], format: str | None, options: ReadOptions, out: Path
) -> list[str]:
    with pq.ParquetWriter(str(out), SCHEMA, compression="zstd") as writer:
        return _stream(paths, format, options, writer.write_batch)


def _jsonl(paths: Sequence[str], format: str | None, options: ReadOptions, out: Path) -> list[str]:
    with out.open("w", encoding="utf-8", newline="\n") as file:

        def write(batch: pa.RecordBatch) -> None:
            for row in batch.to_pylist():
                file.write(json.dumps(row, ensure_ascii=False) + "\n")

        return _stream(paths, format, options, write)


def _stream(
    paths: Sequence[str],
    format: str | None,
    options: ReadOptions,
    write: Callable[[pa.RecordBatch], None],
) -> list[str]:
    """Write batch by batch; return what was written and set aside."""
    rows = 0
    reasons: Counter[str] = Counter()
    for batch in read_batches(paths, format, options):
        if batch.events.num_rows:
            write(batch.events)
        rows += batch.events.num_rows
        reasons.update(_short(r) for r in batch.quarantine["reason"].to_pylist())
    if not rows:
        raise InputError("not one event could be read; `antecede audit` says why", path=paths[0])
    return [f"{rows:,} events in the schema of antecede", *_aside(reasons)]


def _short(reason: object) -> str:
    return str(reason).partition(":")[0]


def _aside(reasons: Counter[str]) -> list[str]:
    return [f"set aside: {count:,} x {reason}" for reason, count in reasons.most_common()]


_WRITERS = {"shiviz": _shiviz, "parquet": _parquet, "jsonl": _jsonl}
