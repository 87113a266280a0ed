"""`antecede meter TRACE... [--rules R] [--observers M] [--json]`: pairs ordered without need."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from antecede.cli.engines import SPARK, add_engine_arguments, chosen_engine, say_shortage
from antecede.cli.option_rules import excludes, refuse_unused
from antecede.cli.trace_options import add_read_arguments, one_way, read_options
from antecede.cli.traces.false_causality_text import Asked, Known, report
from antecede.core.clocks import Bounds
from antecede.core.protocols.topics import Subscriptions
from antecede.errors import InputError, LocalError
from antecede.interrupts import interruptible
from antecede.progress import Progress
from antecede.tables import false_causality
from antecede.tables.trace import evidence, read

OPTION_RULES = (excludes("each witnesses", "json", why="JSON has everything"),)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `antecede meter`."""
    add = parser.add_argument
    add_read_arguments(parser, group=True)
    add_engine_arguments(parser)
    add("--rules", metavar="R,R", help=f"of {', '.join(false_causality.RULES)}; all that apply")
    add("--observers", metavar="M,M", help="members; all that received")
    add("--relation", choices=false_causality.RELATIONS, help="what makes a message causal")
    add(
        "--against",
        choices=(false_causality.CAUSAL, false_causality.TOPIC_CAUSAL),
        help="truth for all rules; else each its own",
    )
    add(
        "--subscribe",
        action="append",
        metavar="M=T,T",
        help="topics of an observer; all if not given",
    )
    add(
        "--to-everybody",
        action="store_true",
        help="every message was for every member, also where it never came",
    )
    physical = parser.add_argument_group("rules by physical time: what is promised, in seconds")
    physical.add_argument("--accuracy", type=float, metavar="S", help="of every clock; 0")
    physical.add_argument("--least", type=float, metavar="S", help="least delay; 0")
    physical.add_argument("--most", type=float, metavar="S", help="largest delay")
    add("--each", action="store_true", help="a table for each observer, too")
    add("--witnesses", type=int, default=5, metavar="N", help="early ones to name")
    add("--json", action="store_true", help="print everything as JSON")


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
        from antecede.cli.traces.on_spark.false_causality import run_on_spark

        return run_on_spark(args, options, engine, asked)
    say_shortage(engine)
    with Progress("reading"):
        trace = read(args.paths, args.format, options)
    evidence.demand(trace.events, trace.format, trace.details)
    asked.check(partial(_known_in, trace.events))
    with Progress("counting"):
        found = interruptible(
            partial(
                false_causality.summarize, trace.events, format=trace.format, **asked.arguments()
            )
        )
    report(args, found, trace.details, trace.quarantine.num_rows)
    return 0


def _known_in(events: pa.Table) -> Known:
    kinds: list[Any] = events["kind"].unique().to_pylist()
    members: list[Any] = events["member"].unique().to_pylist()
    return Known(
        frozenset(kinds),
        frozenset(members),
        frozenset(str(one) for one in pc.list_flatten(events["topics"]).to_pylist() if one),
    )


def _list(option: str, text: str | None) -> list[str] | None:
    if text is None:
        return None
    found = [word.strip() for word in text.split(",") if word.strip()]
    if not found:
        raise InputError(f"{option} {text!r}: names nothing; leave it out for all")
    return found


def _check_used(args: argparse.Namespace) -> None:
    if args.witnesses < 0:
        raise InputError(f"--witnesses {args.witnesses}: a number of deliveries, 0 or more")
    names = _list("--rules", args.rules)
    if names is None:
        return
    rules = [false_causality.rule_named(name) for name in names]
    if not any(rule.physical for rule in rules):
        why = "none of these --rules goes by physical time"
        refuse_unused(args, why, unused=["accuracy", "least", "most"])
    if not any(rule.topics for rule in rules) and args.against != false_causality.TOPIC_CAUSAL:
        refuse_unused(args, "none of these --rules goes by topics", unused=["subscribe"])


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
