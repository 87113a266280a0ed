"""`antecede ask PATH past ID`: causal past, future and paths of an event."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow
import pyarrow as pa
import pyarrow.compute

from antecede.cli.engines import SPARK, add_engine_arguments, choose_engine, warn_shortage
from antecede.cli.files.output import check_writable, draft_of
from antecede.cli.option_rules import excludes, needs
from antecede.cli.trace_options import add_read_arguments, read_options
from antecede.cli.traces.ask_output import Further, only_one, plain_rows
from antecede.errors import InputError
from antecede.formatting import align, harmless, pluralize
from antecede.tables.audit import clock_skew, skew_findings
from antecede.tables.causality import CAUSES, CLOCKS, EVENTS, WAYS, Causality, EventRef
from antecede.tables.kernels import edge_table
from antecede.tables.trace import SEND, SOURCE, read, time_text
from antecede.tables.trace.user_tables import format_of, with_further, write_table

MOST_EVENTS: Final = 200_000
"""Limit of the events whose clock skew is computed."""
TIMES: Final = ("start_time", "send_time")
"""Times by the clock of an event's member; an arrival time may be that of an archive."""


def compute_skew(asked: Causality, rows: pyarrow.Table) -> dict[str, Any] | None:
    """Return the clock skew among rows of `asked`; None without times, or for too many rows.

    `antecede audit` reports the same for a whole trace. Causes are immediate or declared ones.
    """
    places: Any = pc.unique(rows["file_order"])
    at = pc.index_in(places, asked.events["file_order"]).to_numpy(zero_copy_only=False)
    at = np.sort(at[asked.alive[at]]).astype(np.int64)
    if not 0 < len(at) <= MOST_EVENTS:
        return None
    events: Any = asked.events.take(pyarrow.array(at))
    if asked.by == EVENTS:
        events = _first_of_each(events.filter(pc.equal(events["kind"], SEND)))
    time = next((one for one in TIMES if events[one].null_count < len(events)), None)
    if time is None:
        return None
    if asked.by == EVENTS:
        edges: Any = edge_table(events)
        known = edges.filter(pc.is_valid(edges["cause"]))
        causes, effects = (known[name].to_numpy().astype(np.int64) for name in ("cause", "effect"))
        return clock_skew(events, causes, effects, time)
    offsets, causes = asked.edges_among(at)
    kept = causes >= 0
    if asked.by == CLOCKS:
        kept &= asked.immediate_among(at)
    effects = np.repeat(np.arange(len(at)), np.diff(offsets))
    return clock_skew(events, causes[kept], effects[kept], time)


def _first_of_each(events: Any) -> Any:
    """Return the first row of each message, so that ids are distinct."""
    codes = [
        pc.fill_null(events[name].combine_chunks().dictionary_encode().indices, -1).to_numpy()
        for name in ("run", "id")
    ]
    _, first = np.unique(np.stack(codes), axis=1, return_index=True)
    return events.take(pyarrow.array(np.sort(first)))


pc: Any = pyarrow.compute
MOST: Final = 20
NAMED: Final = 5
MAX_ENTRIES: Final = 60
SHOWN: Final = ("id", "kind", "member", "topics", "text")
QUESTIONS: Final = {
    "past": ("ID...", "events that happened before it (its causal past)"),
    "future": ("ID...", "events that happened after it (its causal future)"),
    "concurrent": ("ID", "events neither before nor after it"),
    "between": ("A B", "events after A and before B"),
    "before": ("A B", "whether A happened before B, with the chain of causes"),
}
SOURCE_TEXTS: Final = {
    EVENTS: "send and receive events",
    CLOCKS: "vector clocks",
    CAUSES: "declared causes",
}
CAUSALITY: Final = (
    "source of causality: events (sends and receives), clocks, or causes (default: the first that "
    "the trace has)"
)
_ARGUMENTS: Final = {"concurrent": 1, "between": 2, "before": 2}


class QueryAnswer(NamedTuple):
    """Answer as a sentence, its rows and path."""

    says: str
    rows: pa.Table
    path: pa.Table | None = None
    is_yes: bool = True


OPTION_RULES = (
    excludes("limit", "table", "json", why="all rows are printed"),
    needs("force", "output", why="nothing is written"),
)
EPILOG = """\
Questions:
{}

ID@MEMBER is the arrival of a message at a member. FIELD:TEXT selects the
events with that text in a column, such as level:ERROR (not with Spark).
Example: antecede ask trace.csv past m7
Exit code: 1 if "before" is answered with no, else 0.
""".format("\n".join(f"  {f'{name} {ids}':16}{text}" for name, (ids, text) in QUESTIONS.items()))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `antecede ask`."""
    add = parser.add_argument
    add_read_arguments(parser, text=True)
    add_engine_arguments(parser)
    add(
        "words",
        nargs="+",
        metavar="QUESTION ID",
        help="question about events; see below",
    )
    add("--causality", choices=WAYS, help=CAUSALITY)
    add("--run-id", metavar="RUN", help="run of the events, if several runs have the id")
    add("--limit", type=int, default=MOST, metavar="N", help=f"rows to print (default: {MOST})")
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("--table", action="store_true", help="print all rows and nothing else")
    shape.add_argument("--json", action="store_true", help="print question and answer as JSON")
    add("-o", "--output", metavar="FILE", help="file for all rows: .parquet, .csv, .jsonl")
    add("--force", action="store_true", help="overwrite an existing FILE")


def run(args: argparse.Namespace) -> int:
    """Print the answer; return 1 if A did not happen before B."""
    paths, question, ids = split_words([*args.paths, *args.words])
    out = None if args.output is None else Path(args.output)
    if args.limit < 1:
        raise InputError(f"--limit {args.limit}: expected 1 or more")
    if out is not None:
        check_writable(out, paths, args.force)
        format_of(out)
    asked, events, further = _find(args, paths, question, ids)
    whole = further is not None
    further = further or Further()
    answer = answer_question(asked, question, events, whole=whole)
    if out is not None:
        with draft_of(out) as draft:
            changed = write_table(further.attach(answer.rows), draft, format_of(out))
        for one in changed:
            print(f"changed: {one.words()}", file=sys.stderr)
    _print(args, asked, question, ids, events, answer, whole, further)
    if out is not None and not args.json:
        print(f"{pluralize(len(answer.rows), 'row')} -> {out}")
    return 0 if answer.is_yes else 1


def _find(
    args: argparse.Namespace, paths: list[str], question: str, ids: Sequence[str]
) -> tuple[Causality, Sequence[EventRef], Further | None]:
    """Return the causality, the named events and further columns; None: a part of the trace."""
    options = read_options(args)
    engine = choose_engine(args, paths, args.format, options)
    if engine.name == SPARK:
        from antecede.cli.traces.on_spark.ask import find_on_spark

        return *find_on_spark(args, paths, options, question, ids, engine), None
    warn_shortage(engine)
    trace = with_further(read(paths, args.format, options, own=True), options)
    asked, further = Causality(trace, by=args.causality), Further(trace)
    asked.notes += time_text.notes(trace.details)
    return asked, _events(asked, further, question, ids, args.run_id), further


def split_words(words: Sequence[str]) -> tuple[list[str], str, list[str]]:
    """Return paths, question and ids. Raise InputError without a question or ids."""
    at = next((k for k, word in enumerate(words) if k and word in QUESTIONS), None)
    if at is None:
        raise InputError(
            f"no question after the path: expected {', '.join(QUESTIONS)}, then the id of an event"
        )
    question, ids = words[at], list(words[at + 1 :])
    wanted = _ARGUMENTS.get(question)
    if not ids or (wanted is not None and len(ids) != wanted):
        takes = QUESTIONS[question][0]
        got = pluralize(len(ids), "id")
        raise InputError(f"{question}: expected {takes} behind the question, got {got}")
    return list(words[:at]), question, ids


def _events(
    asked: Causality, further: Further, question: str, ids: Sequence[str], run: str | None
) -> list[EventRef]:
    """Return the events that texts name, as ID, FIELD:TEXT or ID@MEMBER, in this order."""
    found: list[EventRef] = []
    for text in ids:
        several = None if asked.has(text) else further.events(asked, text, run)
        if several is None:  # an id, or ID@MEMBER if no event has this id
            name, at, member = text.rpartition("@")
            arrived = at and not asked.has(text)
            found.append(EventRef(name, member, run) if arrived else EventRef(text, None, run))
        elif question in _ARGUMENTS:
            found.append(only_one(text, several))
        else:
            found += several
    return found


def answer_question(
    asked: Causality, question: str, events: Sequence[EventRef], *, whole: bool = True
) -> QueryAnswer:
    """Answer a question of `QUESTIONS`; not `whole`: `asked` has only the needed events."""
    if question == "before":
        return _before(asked, *events)
    rows = getattr(asked, question)(*events)
    if question == "between" and not asked.precedes(*events):
        return QueryAnswer(f"none: {events[0]} did not happen before {events[1]}", rows)
    of = f"{len(rows):,} of {pluralize(asked.placed, 'event')}"
    what = of if whole else pluralize(len(rows), "event")
    names = " or ".join(map(str, events[:NAMED]))
    if len(events) > NAMED:
        names += f" or {pluralize(len(events) - NAMED, 'other')}"
    if question == "between":
        path = asked.path(*events)
        return QueryAnswer(f"{what} happened between {' and '.join(map(str, events))}", rows, path)
    words = {
        "past": f"happened before {names}",
        "future": f"happened after {names}",
        "concurrent": f"{'is' if len(rows) == 1 else 'are'} concurrent with {names}",
    }
    return QueryAnswer(f"{what} {words[question]}", rows)


def _before(asked: Causality, a: EventRef, b: EventRef) -> QueryAnswer:
    path = asked.path(a, b)
    if len(path):
        steps = pluralize(len(path) - 1, "step")
        return QueryAnswer(f"yes: {a} happened before {b}; a chain of {steps}", path, path)
    if asked.row(a) == asked.row(b):
        return QueryAnswer(f"no: {a} and {b} are one event", path, is_yes=False)
    path = asked.path(b, a)
    if len(path):
        steps = pluralize(len(path) - 1, "step")
        says = f"no: {b} happened before {a}; a chain of {steps}"
        return QueryAnswer(says, path, path, is_yes=False)
    return QueryAnswer(f"no: {a} and {b} are concurrent", path, is_yes=False)


# -- output ------------------------------------------------------------------------------------


def _print(
    args: argparse.Namespace,
    asked: Causality,
    question: str,
    ids: Sequence[str],
    events: Sequence[EventRef],
    answer: QueryAnswer,
    whole: bool,
    further: Further,
) -> None:
    if args.json:
        values = _to_values(asked, question, ids, answer, further)
        values["clock_skew"] = compute_skew(asked, _select_skew_rows(asked, events, answer))
        if not whole:  # the events of the whole trace were not counted
            del values["events"]
        print(json.dumps(values, indent=2, ensure_ascii=False))
        return
    if args.table:
        print("\n".join(_lines(further, answer.rows, len(answer.rows))))
        return
    print(harmless(f"{answer.says}, by {SOURCE_TEXTS[asked.by]}{':' if len(answer.rows) else ''}"))
    nearest = question == "past"  # the nearest rows first
    rows = answer.rows if _is_chain(answer) else asked.sort_rows(answer.rows, nearest=nearest)
    for line in _lines(further, rows, args.limit, _is_chain(answer)):
        print(f"  {line}")
    if answer.path is not None and not _is_chain(answer) and len(answer.path):
        print(f"A chain of {pluralize(len(answer.path) - 1, 'step')}:")
        for line in _lines(further, answer.path, args.limit, chain=True):
            print(f"  {line}")
    skew = compute_skew(asked, _select_skew_rows(asked, events, answer))
    skews = [] if skew is None else skew_findings(skew, "events")
    for note in [*asked.notes, *(f"among these, {what}" for what, _ in skews)]:
        print(harmless(f"Note: {note}"))


def _select_skew_rows(
    asked: Causality, events: Sequence[EventRef], answer: QueryAnswer
) -> pa.Table:
    named = asked.events.take(pa.array([asked.row(one) for one in events], pa.int64()))
    return pa.concat_tables([answer.rows, named])


def _is_chain(answer: QueryAnswer) -> bool:
    return answer.path is answer.rows


def _to_values(
    asked: Causality, question: str, ids: Sequence[str], answer: QueryAnswer, further: Further
) -> dict[str, Any]:
    found: dict[str, Any] = {
        "question": question,
        "ids": list(ids),
        "by": asked.by,
        SOURCE: asked.source,
        "answer": answer.is_yes if question == "before" else len(answer.rows),
        "events": asked.placed,
        "rows": [] if _is_chain(answer) else plain_rows(further.attach(answer.rows)),
        "notes": asked.notes,
    }
    if answer.path is not None:
        found["path"] = plain_rows(further.attach(answer.path))
    return found


def _lines(further: Further, rows: pa.Table, most: int, chain: bool = False) -> list[str]:
    if not len(rows):
        return []
    head = -(-most // 2) if chain and len(rows) > most else min(most, len(rows))
    tail = most - head if chain and len(rows) > most else 0
    rows = further.attach(rows)
    names = [*(name for name in SHOWN if _is_informative(rows, name)), *further.list_shown(rows)]
    ends = [*rows.slice(0, head).to_pylist(), *rows.slice(len(rows) - tail).to_pylist()]
    cells = [[_format_cell(row[name]) for name in names] for row in ends]
    width = shutil.get_terminal_size((100, 24)).columns
    lines = list(align([names, *cells], [True] * len(names), within=width))
    left = len(rows) - head - tail
    if left:
        more = f"... {left:,} more" + (" between these" if tail else " (--limit, --table)")
        lines.insert(len(lines) - tail, more)
    return lines


def _is_informative(rows: pa.Table, name: str) -> bool:
    column: Any = rows[name]
    if name == "kind":
        return len(column.unique()) > 1
    if name == "topics":
        return bool(pc.max(pc.list_value_length(column)).as_py())
    return bool(column.null_count < len(column))


def _format_cell(value: Any) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value or "")
    text = "".join(one if one.isprintable() else " " for one in text)
    return text if len(text) <= MAX_ENTRIES else text[: MAX_ENTRIES - 3] + "..."
