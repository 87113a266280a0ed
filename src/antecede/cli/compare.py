"""`antecede compare bss idr sb --members 10 --delay 50-250`: the same messages, several protocols.

Everything that is drawn is drawn by the message's name (`simulate.chance`), so all protocols of
a topology see the same messages arrive at the same times; only what they do with them differs.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from antecede.check.company import relation_of
from antecede.cli.columns import Column, columns, explained, short, width_of_terminal
from antecede.errors import InputError, ScenarioError
from antecede.progress import Progress
from antecede.protocols.base import Protocol, Relation
from antecede.protocols.registry import ENTRIES, entry
from antecede.simulate.cast import cast
from antecede.simulate.delay_text import delay_words, parse_delay
from antecede.simulate.delays import LONGEST_S, Delay
from antecede.simulate.fitness import check_fit, topologies_of
from antecede.simulate.hindsight import hindsight
from antecede.simulate.memory import check_memory
from antecede.simulate.readable import run_readable
from antecede.simulate.scenario import Clocks, Links, Scenario, Special, Workload
from antecede.simulate.scenario_file import scenario_mapping
from antecede.simulate.table_reading import choices
from antecede.simulate.topology import EXTERNAL, INTERNAL, PEER, Hierarchy, Mesh, PubSub, Topology

RATE_HZ = 12.5
JITTER = 0.125
"""A peer's intervals are normal, this part of the mean about it: 70-90 ms, as in 000."""
WARM_PART = 0.2
ARRIVALS, MOST_SECONDS, LEAST_SECONDS = 30_000, 5.0, 1.0
"""So many arrivals a protocol are enough for a table, and are there within a second."""
TOPICS, SUBSCRIBED, PUBLISHED = 10, 4, 2
LAN = 0.1
"""Delays inside a subgroup by those between (004, section 5: 16 and 160)."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `antecede compare`."""
    parser.add_argument(
        "protocols", nargs="+", metavar="PROTOCOL", help="NAME or NAME/VARIANT; antecede protocols"
    )
    parser.add_argument("--members", type=int, default=10, help="with an application (default 10)")
    parser.add_argument(
        "--delay", default="50-250", help='in ms, or with a unit: "uniform 1-2 s" (default 50-250)'
    )
    parser.add_argument("--topology", choices=("mesh", "hierarchy", "pubsub"), default="mesh")
    parser.add_argument(
        "--rate",
        type=float,
        default=RATE_HZ,
        metavar="HZ",
        help="a peer's messages a second (12.5)",
    )
    parser.add_argument("--fifo", action="store_true", help="channels do not reorder")
    parser.add_argument("--loss", type=float, default=0.0, help="probability of a copy (default 0)")
    parser.add_argument(
        "--answers", type=float, metavar="P", help="messages that answer one (0.5 with sb, else 0)"
    )
    parser.add_argument(
        "--accuracy",
        default="1 ms",
        metavar="MS",
        help="of clocks, for protocols that use them (1)",
    )
    parser.add_argument("--seconds", type=float, help="of sending (default: 5, less if many)")
    parser.add_argument("--seed", type=int, default=0, help="the first (default 0)")
    parser.add_argument("--seeds", type=int, default=1, metavar="N", help="runs (default 1)")
    parser.add_argument("--json", action="store_true", help="every figure of every run, as JSON")


class Compared(NamedTuple):
    """One protocol and its runs."""

    name: str
    scenario: Scenario
    order: str
    """What it keeps, in the words of `antecede protocols`."""
    remarks: tuple[str, ...]
    runs: tuple[Mapping[str, float], ...]
    """Figures by seed."""

    def mean(self, figure: str) -> float | None:
        """Return the mean of a figure over the seeds; None where no run has it."""
        found = [run[figure] for run in self.runs if figure in run]
        return statistics.fmean(found) if found else None

    def part(self, figure: str, of: str) -> float | None:
        """Return a figure in percent of another, over all seeds."""
        whole = sum(run.get(of, 0) for run in self.runs)
        return 100 * sum(run.get(figure, 0) for run in self.runs) / whole if whole else None


def run(args: argparse.Namespace) -> int:
    """Run every protocol with every seed and print the table; returns 0."""
    if args.seeds < 1:
        raise InputError(f"--seeds {args.seeds}: the least is 1")
    if args.seed < 0:
        raise InputError(f"--seed {args.seed}: seeds are 0 or more")
    seeds = range(args.seed, args.seed + args.seeds)
    scenarios = {name: scenario_of(name, args) for name in dict.fromkeys(args.protocols)}
    for scenario in scenarios.values():
        check_memory(scenario, "readable", loosen=LOOSEN)
    members = {name: _members(scenario, args.seed) for name, scenario in scenarios.items()}
    done: list[Compared] = []
    with Progress("simulating") as progress:
        for name, scenario in scenarios.items():
            runs: list[Mapping[str, float]] = []
            for seed in seeds:
                progress((len(done) + len(runs) / len(seeds)) / len(scenarios))
                runs.append(_figures(scenario, seed))
            done.append(_compared(name, scenario, members[name], runs, args.topology))
    if args.json:
        print(json.dumps(_plain(done, seeds), indent=2, ensure_ascii=False))
    else:
        print("\n".join(report(done, args, width_of_terminal())))
    sys.stdout.flush()
    return 0


def _members(scenario: Scenario, seed: int) -> Mapping[int, Protocol]:
    """Make the members once before anything runs: they may refuse delays and clocks."""
    try:
        return cast(scenario, seed).members
    except ScenarioError as error:
        raise InputError(error.message.removeprefix("protocol.options: ")) from error


LOOSEN = {
    "topology": "--members",
    "workload": "--rate",
    "run": "--seconds",
}
"""What to lower, in place of a scenario file's keys."""


def _figures(scenario: Scenario, seed: int) -> Mapping[str, float]:
    result, recording = run_readable(scenario, seed, True)
    seen = hindsight(recording)
    return {**result.figures, **(seen.figures() if seen is not None else {})}


# -- the question ----------------------------------------------------------------------------


def scenario_of(name: str, args: argparse.Namespace) -> Scenario:
    """Return the scenario of one protocol; raises InputError that names the option."""
    protocol, _, variant = name.partition("/")
    if protocol not in ENTRIES:
        near = choices(protocol, ENTRIES)
        raise InputError(f"no protocol is called {protocol!r}; {near}")
    if variant and variant not in entry(protocol).variants:
        near = choices(variant, entry(protocol).variants)
        raise InputError(f"{protocol} has no variant {variant!r}; {near}")
    delay = _delay("--delay", args.delay)
    topology = _topology(protocol, args)
    try:
        scenario = Scenario(
            topology,
            protocol,
            variant,
            links=_links(topology, delay, args),
            workload=_workload(topology, args),
            clocks=Clocks(_delay("--accuracy", args.accuracy).high_s),
            duration_s=_seconds(args),
            warm_s=WARM_PART * _seconds(args),
        )
        check_fit(scenario)
    except ScenarioError as error:
        raise InputError(_as_option(error.message)) from error
    return scenario


OPTIONS = {"loss": "--loss", "answers": "--answers", "duration_s": "--seconds"}
"""Attribute of a scenario -> the option that sets it."""


def _delay(option: str, text: str) -> Delay:
    try:
        return parse_delay(text, "ms")
    except ScenarioError as error:
        raise InputError(f"{option}: {error.message}") from error


def _as_option(message: str) -> str:
    """Return what a scenario says of a key, said of the option that sets it."""
    head, _, rest = message.partition(": ")
    if head in OPTIONS:
        return f"{OPTIONS[head]}: {rest}"
    return message.removeprefix("protocol.name: ").replace("topology.kind = ", "--topology ")


def _topology(protocol: str, args: argparse.Namespace) -> Topology:
    members, kind = args.members, args.topology
    if members < 1:
        raise InputError(f"--members {members}: a group has 1 or more")
    if kind == "hierarchy" and topologies_of(protocol) != ("mesh",):
        if members < 2:
            raise InputError(f"--members {members}: a hierarchy has peers inside and outside, 2")
        return Hierarchy((members - members // 2,), members // 2)
    if kind == "pubsub":
        halves = (members - members // 2, members // 2)
        return PubSub(tuple(size for size in halves if size), TOPICS, SUBSCRIBED)
    return Mesh(members)


def _links(topology: Topology, delay: Delay, args: argparse.Namespace) -> Links:
    special: tuple[Special, ...] = ()
    if isinstance(topology, PubSub):
        groups = [f"group:{number}" for number in range(len(topology.subgroups))]
        special = tuple(Special(group, group, delay.scaled(LAN)) for group in groups)
    return Links(delay, special, fifo=args.fifo, loss=args.loss)


def _workload(topology: Topology, args: argparse.Namespace) -> Workload:
    if not 0 < args.rate < math.inf:
        raise InputError(f"--rate {args.rate}: messages a second, above 0")
    mean_s = 1 / args.rate
    if mean_s * (1 + JITTER) > LONGEST_S:
        raise InputError(f"--rate {args.rate:g}: a message in {mean_s:g} s; too seldom")
    answers = args.answers
    if answers is None:
        answers = 0.5 if any(name.partition("/")[0] == "sb" for name in args.protocols) else 0.0
    return Workload(
        interval=Delay(mean_s * (1 - JITTER), mean_s * (1 + JITTER)),
        topics=PUBLISHED if isinstance(topology, PubSub) else 1,
        answers=answers,
    )


def _seconds(args: argparse.Namespace) -> float:
    if args.seconds is not None:
        if not 0 < args.seconds < math.inf:
            raise InputError(f"--seconds {args.seconds}: above 0")
        return float(args.seconds)
    enough: float = ARRIVALS / (args.rate * args.members * max(args.members - 1, 1))
    return round(min(max(enough, LEAST_SECONDS), MOST_SECONDS), 1)


# -- the answer ------------------------------------------------------------------------------


def _compared(
    name: str,
    scenario: Scenario,
    members: Mapping[int, Protocol],
    runs: Sequence[Mapping[str, float]],
    topology: str,
) -> Compared:
    remarks = [one.guarantee.remark for one in members.values()][:1]
    if name.partition("/")[2] in entry(scenario.protocol).defective:
        remarks.append("as published, with its defect: meant to show what goes wrong")
    if scenario.protocol == "sb" and not scenario.workload.answers:
        remarks.append("nothing is an answer here (--answers), so nothing has an order")
    if topology == "hierarchy" and isinstance(scenario.topology, Mesh):
        remarks.append("flat: as many peers, each channel direct, arrivals of its own")
    owed = sum(run.get("undelivered", 0) for run in runs)
    if owed:
        why = "what is lost is not recovered" if scenario.links.loss else "messages are stuck"
        remarks.append(f"{owed:,.0f} deliveries never happened: {why}")
    if broken := sum(run["violations"] for run in runs):
        checked = sum(run["violations.checked"] for run in runs)
        remarks.append(f"its own order was broken by {broken:,.0f} of {checked:,.0f} deliveries")
    refused = sum(run.get("refused", 0) + run.get("discarded", 0) for run in runs)
    if refused:
        remarks.append(f"{refused:,.0f} messages were refused or given up on arrival")
    told = tuple(remark for remark in remarks if remark)
    return Compared(name, scenario, SHORT[relation_of(members)], told, tuple(runs))


SHORT = {
    Relation.NONE: "none",
    Relation.FIFO: "fifo",
    Relation.BY_DELIVERY: "causal",
    Relation.BY_RECEIPT: "receipt",
    Relation.BY_REPLY: "replies",
    Relation.BY_TOPIC: "topics",
}
COLUMNS = (
    Column(("", "", "protocol"), words=True),
    Column(("", "", "order"), words=True),
    Column(("control", "counted", "B")),
    Column(("", "wire", "B")),
    Column(("", "stored", "B")),
    Column(("wait", "mean", "ms")),
    Column(("", "p99", "ms")),
    Column(("", "held", "%")),
    Column(("too", "early", "%")),
    Column(("in", "vain", "%")),
    Column(("", "notes", "")),
)


def report(done: Sequence[Compared], args: argparse.Namespace, width: int) -> Iterator[str]:
    """Yield the question, the table, what its columns mean, and remarks."""
    for line in _question(done, args):
        yield from textwrap.wrap(line, width)
    yield ""
    rows = [cells for one in done for cells in _cells(one)]
    yield from columns(COLUMNS, rows, width)
    yield ""
    orders = {one.order: MEANING[one.order] for one in done}
    yield from explained(
        [("order", "; ".join(f"{word}: {what}" for word, what in orders.items())), *LEGEND], width
    )
    remarks = [(one.name, "; ".join(one.remarks)) for one in done if one.remarks]
    if remarks:
        yield ""
        yield from explained(remarks, width)


MEANING = {
    SHORT[relation]: words
    for relation, words in {
        Relation.NONE: "no order",
        Relation.FIFO: "of each sender",
        Relation.BY_DELIVERY: "after all that its sender had delivered or sent",
        Relation.BY_RECEIPT: "after all that had arrived at its sender",
        Relation.BY_REPLY: "an answer after what it answers",
        Relation.BY_TOPIC: "causal among messages with a common topic",
    }.items()
}
LEGEND = (
    ("control", "information of a message: bytes as its source counts them, and as on the wire"),
    ("stored", "what a member keeps for ordering, mean over members and time"),
    ("wait", "from arrival to delivery, over all deliveries; held: those that waited at all"),
    ("too early", "delivered before a message that it causally follows (under-ordering)"),
    ("in vain", "held although all that it causally follows had been delivered (over-ordering)"),
    ("notes", "copies of the protocol's own messages, for each message of the application"),
)


def _question(done: Sequence[Compared], args: argparse.Namespace) -> Iterator[str]:
    scenario = done[0].scenario
    sent = sum(run["sent"] for run in done[0].runs) / len(done[0].runs)
    channels = "FIFO channels" if args.fifo else "channels reorder"
    where = {"mesh": "a mesh", "hierarchy": "a hierarchy, half inside"}
    delay, lost = delay_words(scenario.links.delay), f", {args.loss:.2%} lost" if args.loss else ""
    peers = f"{args.members:,} peer" + "s" * (args.members > 1)
    place = where.get(args.topology, f"2 subgroups, {TOPICS} topics")
    yield f"{peers} in {place}, delay {delay}, {channels}{lost}"
    seeds = f"seed {args.seed}" if args.seeds == 1 else f"means of {args.seeds} seeds"
    answers = scenario.workload.answers
    yield (
        f"{args.rate:g} messages a second each for {scenario.duration_s:g} s: {sent:,.0f} messages"
        + (f", {answers:.0%} of them answers" if answers else "")
        + f"; {seeds}"
    )


def _cells(one: Compared) -> Iterator[tuple[str, ...]]:
    """Yield a line, or two for a hierarchy: inside and outside."""
    if not isinstance(one.scenario.topology, Hierarchy):
        yield (one.name, one.order, *_bytes(one, PEER), *_waits(one))
        return
    yield (one.name, one.order, "", "", "", *_waits(one))
    yield ("  internal", "", *_bytes(one, INTERNAL), *[""] * 6)
    yield ("  external", "", *_bytes(one, EXTERNAL), *[""] * 6)


def _bytes(one: Compared, role: str) -> tuple[str, ...]:
    return tuple(
        short(one.mean(f"{role}.{figure}"))
        for figure in ("overhead_bytes", "encoded_bytes", "storage_bytes")
    )


def _waits(one: Compared) -> tuple[str, ...]:
    notes = one.part("notes", "sent")
    return (
        short(one.mean("wait_ms.mean")),
        short(one.mean("wait_ms.p99")),
        short(one.part("causal.held", "causal.checked")),
        short(one.part("causal.early", "causal.checked"), 2),
        short(one.part("causal.vain", "causal.checked")),
        short(None if notes is None else notes / 100, 2),
    )


def _plain(done: Sequence[Compared], seeds: range) -> dict[str, Any]:
    return {
        "seeds": list(seeds),
        "protocols": [
            {
                "name": one.name,
                "order": one.order,
                "remarks": list(one.remarks),
                "mean": {
                    figure: one.mean(figure)
                    for figure in dict.fromkeys(name for run in one.runs for name in run)
                },
                "runs": [
                    {"seed": seed, "figures": dict(run)}
                    for seed, run in zip(seeds, one.runs, strict=True)
                ],
                "scenario": scenario_mapping(one.scenario),
            }
            for one in done
        ],
    }
