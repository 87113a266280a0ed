"""`antecede meter TRACE... [--rules R] [--observers M] [--json]`: pairs ordered without need."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

from antecede.clocks.bounds import Bounds
from antecede.errors import InputError
from antecede.meter.rules import CAUSAL, RULES, TOPIC_CAUSAL
from antecede.meter.summary import summarize
from antecede.meter.trace import RELATIONS
from antecede.progress import Progress
from antecede.protocols.subscriptions import Subscriptions
from antecede.trace.arguments import add_read_arguments, read_options
from antecede.trace.arrow import read


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
    with Progress("reading"):
        trace = read(args.paths, args.format, read_options(args))
    with Progress("counting"):
        found = summarize(
            trace.events,
            _list(args.rules),
            _list(args.observers),
            bounds=bounds,
            subscriptions=subscriptions,
            relation=args.relation,
            truth=args.against,
        )
    if args.json:
        print(json.dumps(found.to_dict(), indent=2, ensure_ascii=False))
        return 0
    for line in found.lines(each=args.each, witnesses=max(args.witnesses, 0)):
        print(line)
    if trace.quarantine.num_rows:
        print(f"set aside   {trace.quarantine.num_rows:,} bad records; antecede audit names them")
    return 0


def _list(text: str | None) -> list[str] | None:
    return None if text is None else [word.strip() for word in text.split(",") if word.strip()]


def _bounds(args: argparse.Namespace) -> Bounds[str] | None:
    if args.accuracy is None and args.least is None and args.most is None:
        return None
    if args.most is None:
        raise InputError("--accuracy and --least need --most: the largest delay of a message")
    return Bounds(args.accuracy or 0.0, args.least or 0.0, args.most)


def _subscriptions(given: Sequence[str] | None) -> Subscriptions[str] | None:
    if not given:
        return None
    topics = {}
    for one in given:
        member, equals, names = one.partition("=")
        if not member or not equals:
            raise InputError(f"--subscribe {one!r}; write MEMBER=TOPIC,TOPIC")
        topics[member] = _list(names) or []
    return Subscriptions(topics)
