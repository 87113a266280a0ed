"""`antecede meter TRACE... [--rules R] [--observers M] [--json]`: pairs ordered without need."""

from __future__ import annotations

import argparse
import json
import textwrap
from collections.abc import Sequence
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from antecede.cli.columns import width_of_terminal
from antecede.cli.unused import refuse_unused
from antecede.clocks.bounds import Bounds
from antecede.errors import InputError, LocalError
from antecede.interrupt import interruptible
from antecede.meter.rules import CAUSAL, RULES, TOPIC_CAUSAL, rule_named
from antecede.meter.summary import summarize
from antecede.meter.trace import RELATIONS
from antecede.progress import Progress
from antecede.protocols.subscriptions import Subscriptions
from antecede.trace.arguments import add_read_arguments, read_options
from antecede.trace.arrow import read
from antecede.trace.schema import DELIVER, RECEIVE
from antecede.words import counted

LABEL = 12
"""Columns of the word in front of a line."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `antecede meter`."""
    add_read_arguments(parser)
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
    bounds, subscriptions = _bounds(args), _subscriptions(args.subscribe)
    _check_used(args)
    with Progress("reading"):
        trace = read(args.paths, args.format, read_options(args))
    _check_known(trace.events, args.against, subscriptions)
    if args.to_everybody and not {RECEIVE, DELIVER} & {*trace.events["kind"].to_pylist()}:
        raise InputError("--to-everybody: this trace tells of nothing that was received")
    with Progress("counting"):
        found = interruptible(
            partial(
                summarize,
                trace.events,
                _list("--rules", args.rules),
                _list("--observers", args.observers),
                bounds=bounds,
                subscriptions=subscriptions,
                relation=args.relation,
                truth=args.against,
                to_everybody=args.to_everybody,
            )
        )
    found.causes = found.causes.with_read(trace.details)
    if args.json:
        print(json.dumps(found.to_dict(), indent=2, ensure_ascii=False))
        return 0
    width = width_of_terminal()
    for line in found.lines(each=args.each, witnesses=args.witnesses):
        print(_wrapped(line, width))
    if columns := trace.details.get("without_causes"):
        note = f"no column is known to hold causes or vector clocks: {columns}; say --after COLUMN"
        print(_wrapped(f"no causes   {note}", width))
    if bad := trace.quarantine.num_rows:
        print(f"set aside   {counted(bad, 'bad record')}; antecede audit names them")
    return 0


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
    events: pa.Table, against: str | None, subscriptions: Subscriptions[str] | None
) -> None:
    """Refuse topics and members that the trace does not have: all counts would be 0."""
    if against != TOPIC_CAUSAL and subscriptions is None:
        return
    there = {str(topic) for topic in pc.list_flatten(events["topics"]).to_pylist() if topic}
    if against == TOPIC_CAUSAL and not there:
        raise InputError(f"--against {TOPIC_CAUSAL}: no message of this trace has a topic")
    members = set(events["member"].to_pylist())
    for member, topics in (subscriptions.topics if subscriptions else {}).items():
        if member not in members:
            raise InputError(f"--subscribe: there is no member {member!r} in this trace")
        if unknown := sorted(set(topics) - there):
            some = ", ".join(sorted(there)[:20]) or "none"
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
