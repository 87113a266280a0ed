"""`antecede meter TRACE... [--rules R] [--observers M] [--json]`: pairs ordered without need."""

from __future__ import annotations

import argparse
import json
import textwrap
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from antecede.cli.columns import width_of_terminal
from antecede.cli.engines import SPARK, add_engine_arguments, chosen_engine, say_shortage
from antecede.cli.unused import refuse_unused
from antecede.clocks.bounds import Bounds
from antecede.errors import InputError, LocalError
from antecede.formatting import counted
from antecede.interrupt import interruptible
from antecede.meter.rules import CAUSAL, RULES, TOPIC_CAUSAL, rule_named
from antecede.meter.summary import Summary, summarize
from antecede.meter.trace import RELATIONS
from antecede.progress import Progress
from antecede.protocols.topics.subscriptions import Subscriptions
from antecede.trace import evidence, time_words
from antecede.trace.arguments import add_read_arguments, one_way, read_options
from antecede.trace.arrow import read
from antecede.trace.schema import DELIVER, RECEIVE
from antecede.trace.tables.reader import guessed_columns

LABEL = 12
"""Columns of the word in front of a line."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `antecede meter`."""
    add_read_arguments(parser, group=True)
    add_engine_arguments(parser)
    parser.add_argument("--rules", metavar="R,R", help=f"of {', '.join(RULES)}; all that apply")
    parser.add_argument("--observers", metavar="M,M", help="members; all that received")
    parser.add_argument("--relation", choices=RELATIONS, help="what makes a message causal")
    parser.add_argument(
        "--against", choices=(CAUSAL, TOPIC_CAUSAL), help="truth for all rules; else each its own"
    )
    parser.add_argument(
        "--subscribe",
        action="append",
        metavar="M=T,T",
        help="topics of an observer; all if not given",
    )
    parser.add_argument(
        "--to-everybody",
        action="store_true",
        help="every message was for every member, also where it never came",
    )
    physical = parser.add_argument_group("rules by physical time: what is promised, in seconds")
    physical.add_argument("--accuracy", type=float, metavar="S", help="of every clock; 0")
    physical.add_argument("--least", type=float, metavar="S", help="least delay; 0")
    physical.add_argument("--most", type=float, metavar="S", help="largest delay")
    parser.add_argument("--each", action="store_true", help="a table for each observer, too")
    parser.add_argument("--witnesses", type=int, default=5, metavar="N", help="early ones to name")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")


def run(args: argparse.Namespace) -> int:
    """Print the counts; 0 when they could be made."""
    asked = Asked(
        _list("--rules", args.rules),
        _list("--observers", args.observers),
        _bounds(args),
        _subscriptions(args.subscribe),
        args.relation,
        args.against,
        args.to_everybody,
    )
    _check_used(args)
    options = one_way(read_options(args))
    engine = chosen_engine(args, args.paths, args.format, options)
    if engine.name == SPARK:
        from antecede.cli.meter.on_spark import run_on_spark

        return run_on_spark(args, options, engine, asked)
    say_shortage(engine)
    with Progress("reading"):
        trace = read(args.paths, args.format, options)
    evidence.demand(trace.events, trace.format, trace.details)
    asked.check(partial(_known_in, trace.events))
    with Progress("counting"):
        found = interruptible(
            partial(
                summarize,
                trace.events,
                asked.rules,
                asked.observers,
                bounds=asked.bounds,
                subscriptions=asked.subscriptions,
                relation=asked.relation,
                truth=asked.against,
                to_everybody=asked.to_everybody,
                format=trace.format,
            )
        )
    report(args, found, trace.details, trace.quarantine.num_rows)
    return 0


class Known(NamedTuple):
    """Names that a trace has."""

    kinds: frozenset[str]
    members: frozenset[str]
    topics: frozenset[str]


class Asked(NamedTuple):
    """What a call asks the meter for."""

    rules: list[str] | None
    observers: list[str] | None
    bounds: Bounds[str] | None
    subscriptions: Subscriptions[str] | None
    relation: str | None
    against: str | None
    to_everybody: bool

    def check(self, known_in: Callable[[], Known]) -> None:
        """Raise InputError for what the trace does not have; asks for its names only if needed."""
        by_topics = self.against == TOPIC_CAUSAL or self.subscriptions is not None
        if not (by_topics or self.to_everybody):
            return
        known = known_in()
        if by_topics:
            _check_known(known, self.against, self.subscriptions)
        if self.to_everybody and not {RECEIVE, DELIVER} & known.kinds:
            raise InputError("--to-everybody: this trace tells of nothing that was received")


def _known_in(events: pa.Table) -> Known:
    kinds: list[Any] = events["kind"].unique().to_pylist()
    members: list[Any] = events["member"].unique().to_pylist()
    return Known(
        frozenset(kinds),
        frozenset(members),
        frozenset(str(one) for one in pc.list_flatten(events["topics"]).to_pylist() if one),
    )


def report(args: argparse.Namespace, found: Summary, details: Mapping[str, Any], bad: int) -> None:
    """Print what was found; `details` and the number of bad records are those of reading."""
    found.causes = found.causes.with_read(details)
    if args.json:
        print(json.dumps(found.to_dict(), indent=2, ensure_ascii=False))
        return
    width = width_of_terminal()
    for line in found.lines(each=args.each, witnesses=args.witnesses):
        print(_wrapped(line, width))
    if said := guessed_columns(details):
        print(_wrapped(f"columns     {said}", width))
    for said in time_words.notes(details):
        print(_wrapped(f"times       {said}", width))
    if bad:
        print(f"set aside   {counted(bad, 'bad record')}; antecede audit names them")


def _wrapped(line: str, width: int) -> str:
    """Wrap a line of words under its label; a table has several lines, and stays."""
    if "\n" in line or len(line) <= width:
        return line
    label = line[:LABEL]
    text = textwrap.wrap(line[LABEL:], width - LABEL, break_on_hyphens=False)
    return label + ("\n" + " " * LABEL).join(text)


def _list(option: str, text: str | None) -> list[str] | None:
    if text is None:
        return None
    found = [word.strip() for word in text.split(",") if word.strip()]
    if not found:
        raise InputError(f"{option} {text!r}: names nothing; leave it out for all")
    return found


def _check_used(args: argparse.Namespace) -> None:
    """Refuse options that what is asked for does not look at."""
    if args.json:
        refuse_unused(args, "--json prints everything", unused=["each", "witnesses"])
    if args.witnesses < 0:
        raise InputError(f"--witnesses {args.witnesses}: a number of deliveries, 0 or more")
    names = _list("--rules", args.rules)
    if names is None:
        return
    rules = [rule_named(name) for name in names]
    if not any(rule.physical for rule in rules):
        why = "none of these --rules goes by physical time"
        refuse_unused(args, why, unused=["accuracy", "least", "most"])
    if not any(rule.topics for rule in rules) and args.against != TOPIC_CAUSAL:
        refuse_unused(args, "none of these --rules goes by topics", unused=["subscribe"])


def _check_known(
    known: Known, against: str | None, subscriptions: Subscriptions[str] | None
) -> None:
    """Refuse topics and members that the trace does not have: all counts would be 0."""
    if against == TOPIC_CAUSAL and not known.topics:
        raise InputError(f"--against {TOPIC_CAUSAL}: no message of this trace has a topic")
    for member, topics in (subscriptions.topics if subscriptions else {}).items():
        if member not in known.members:
            raise InputError(f"--subscribe: there is no member {member!r} in this trace")
        if unknown := sorted(set(topics) - known.topics):
            some = ", ".join(sorted(known.topics)[:20]) or "none"
            raise InputError(f"--subscribe: no message is about {unknown[0]!r}; topics: {some}")


def _bounds(args: argparse.Namespace) -> Bounds[str] | None:
    if args.accuracy is None and args.least is None and args.most is None:
        return None
    if args.most is None:
        raise InputError("--accuracy and --least need --most: the largest delay of a message")
    try:
        return Bounds(args.accuracy or 0.0, args.least or 0.0, args.most)
    except LocalError as error:
        raise InputError(f"--accuracy, --least, --most: {error}") from error


def _subscriptions(given: Sequence[str] | None) -> Subscriptions[str] | None:
    if not given:
        return None
    topics = {}
    for one in given:
        member, equals, names = one.partition("=")
        if not member or not equals:
            raise InputError(f"--subscribe {one!r}; write MEMBER=TOPIC,TOPIC")
        topics[member] = [topic.strip() for topic in names.split(",") if topic.strip()]
    return Subscriptions(topics)
