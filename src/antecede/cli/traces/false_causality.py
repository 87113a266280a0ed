"""`antecede false-causality PATH...`: false and missed causality of ordering rules."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from antecede.cli.engines import SPARK, add_engine_arguments, choose_engine, warn_shortage
from antecede.cli.option_rules import excludes, refuse_unused
from antecede.cli.trace_options import add_read_arguments, check_one_source, read_options
from antecede.cli.traces.false_causality_text import FalseCausalityQuery, TraceNames, report
from antecede.core.clocks import Bounds
from antecede.core.protocols.topics import Subscriptions
from antecede.errors import InputError, LocalError
from antecede.interrupts import interruptible
from antecede.progress import Progress
from antecede.tables import false_causality
from antecede.tables.trace import evidence, read

OPTION_RULES = (excludes("per_observer witnesses", "json", why="JSON has everything"),)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `antecede false-causality`."""
    add = parser.add_argument
    add_read_arguments(parser, group=True)
    add_engine_arguments(parser)
    rules = ", ".join(false_causality.RULES)
    add("--rules", metavar="RULE,...", help=f"rules of {rules} (default: all that apply)")
    add("--observers", metavar="MEMBER,...", help="observers (default: all members that received)")
    add(
        "--relation",
        choices=false_causality.RELATIONS,
        help="relation that makes a message a cause (default: by the source of causality)",
    )
    add(
        "--truth",
        choices=(false_causality.CAUSAL, false_causality.TOPIC_CAUSAL),
        help="true order for all rules (default: the order that each rule approximates)",
    )
    add(
        "--subscribe",
        action="append",
        metavar="MEMBER=TOPIC,...",
        help="topics of an observer (default: all)",
    )
    add(
        "--broadcast",
        action="store_true",
        help="treat all messages as sent to all members, also if they never arrived",
    )
    physical = parser.add_argument_group("bounds of rules by physical time")
    physical.add_argument(
        "--accuracy", type=float, metavar="SECONDS", help="accuracy of all clocks (default: 0)"
    )
    physical.add_argument(
        "--min-delay", type=float, metavar="SECONDS", help="least delay of a message (default: 0)"
    )
    physical.add_argument(
        "--max-delay", type=float, metavar="SECONDS", help="largest delay of a message"
    )
    add("--per-observer", action="store_true", help="print a further table for each observer")
    add(
        "--witnesses",
        type=int,
        default=5,
        metavar="N",
        help="causal violations to list (default: 5)",
    )
    add("--json", action="store_true", help="print all counts as JSON")


def run(args: argparse.Namespace) -> int:
    """Print the counts; return 0."""
    query = FalseCausalityQuery(
        _parse_list("--rules", args.rules),
        _parse_list("--observers", args.observers),
        _build_bounds(args),
        _parse_subscriptions(args.subscribe),
        args.relation,
        args.truth,
        args.broadcast,
    )
    _check_used(args)
    options = check_one_source(read_options(args))
    engine = choose_engine(args, args.paths, args.format, options)
    if engine.name == SPARK:
        from antecede.cli.traces.on_spark.false_causality import run_on_spark

        return run_on_spark(args, options, engine, query)
    warn_shortage(engine)
    with Progress("reading"):
        trace = read(args.paths, args.format, options)
    evidence.demand(trace.events, trace.format, trace.details)
    query.check(partial(_read_names, trace.events))
    with Progress("counting"):
        found = interruptible(
            partial(
                false_causality.summarize, trace.events, format=trace.format, **query.to_arguments()
            )
        )
    report(args, found, trace.details, trace.quarantine.num_rows)
    return 0


def _read_names(events: pa.Table) -> TraceNames:
    def names(values: Any) -> frozenset[str]:
        return frozenset(str(one) for one in values.unique().to_pylist() if one)

    topics = pc.list_flatten(events["topics"])
    return TraceNames(names(events["kind"]), names(events["member"]), names(topics))


def _parse_list(option: str, text: str | None) -> list[str] | None:
    if text is None:
        return None
    found = [word.strip() for word in text.split(",") if word.strip()]
    if not found:
        raise InputError(f"{option} {text!r}: no name; omit it for all")
    return found


def _check_used(args: argparse.Namespace) -> None:
    if args.witnesses < 0:
        raise InputError(f"--witnesses {args.witnesses}: expected 0 or more")
    names = _parse_list("--rules", args.rules)
    if names is None:
        return
    rules = [false_causality.rule_named(name) for name in names]
    if not any(rule.physical for rule in rules):
        why = "none of these --rules uses physical time"
        refuse_unused(args, why, unused=["accuracy", "min_delay", "max_delay"])
    if not any(rule.topics for rule in rules) and args.truth != false_causality.TOPIC_CAUSAL:
        refuse_unused(args, "none of these --rules uses topics", unused=["subscribe"])


def _build_bounds(args: argparse.Namespace) -> Bounds[str] | None:
    if args.accuracy is None and args.min_delay is None and args.max_delay is None:
        return None
    if args.max_delay is None:
        raise InputError("--accuracy and --min-delay need --max-delay SECONDS")
    try:
        return Bounds(args.accuracy or 0.0, args.min_delay or 0.0, args.max_delay)
    except LocalError as error:
        raise InputError(f"--accuracy, --min-delay, --max-delay: {error}") from error


def _parse_subscriptions(given: Sequence[str] | None) -> Subscriptions[str] | None:
    if not given:
        return None
    topics = {}
    for one in given:
        member, equals, names = one.partition("=")
        if not member or not equals:
            raise InputError(f"--subscribe {one!r}: expected MEMBER=TOPIC,TOPIC")
        topics[member] = [topic.strip() for topic in names.split(",") if topic.strip()]
    return Subscriptions(topics)
