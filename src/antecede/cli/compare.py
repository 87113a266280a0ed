"""`antecede compare bss idr sb --members 10 --delay 50-250`: the same messages, several protocols.

Everything that is drawn is drawn by the message's name (`simulate.chance`), so all protocols of
a topology see the same messages arrive at the same times; only what they do with them differs.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Mapping

from antecede.check.loader import is_file_target
from antecede.cli.columns import width_of_terminal
from antecede.cli.compare_table import Compared, compared, plain_values, report
from antecede.errors import InputError, ScenarioError
from antecede.progress import Progress
from antecede.protocols.base import Protocol
from antecede.protocols.registry import ENTRIES, entry
from antecede.simulate.cast import cast
from antecede.simulate.delay_text import parse_delay
from antecede.simulate.delays import LONGEST_S, Delay
from antecede.simulate.fitness import check_fit, topologies_of
from antecede.simulate.hindsight import hindsight
from antecede.simulate.memory import check_memory
from antecede.simulate.readable import run_readable
from antecede.simulate.scenario import FASTEST_HZ, Clocks, Links, Scenario, Special, Workload
from antecede.simulate.table_reading import choices
from antecede.simulate.topology import Hierarchy, Mesh, PubSub, Topology

RATE_HZ = 12.5
JITTER = 0.125
"""A peer's intervals are normal, this part of the mean about it: 70-90 ms, as in 000."""
WARM_DELAYS = 4
"""A group is steady after so many of the longest delay (000: after 1 s at 50-250 ms)."""
ARRIVALS, MOST_SECONDS, LEAST_SECONDS = 30_000, 4.0, 0.5
"""So many arrivals after that are enough for a table, and are there within a second."""
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
    parser.add_argument(
        "--seconds", type=float, help="of sending (default: until steady, and up to 4 more)"
    )
    parser.add_argument("--seed", type=int, default=0, help="the first (default 0)")
    parser.add_argument("--seeds", type=int, default=1, metavar="N", help="runs (default 1)")
    parser.add_argument("--json", action="store_true", help="every figure of every run, as JSON")


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
            done.append(compared(name, scenario, members[name], runs, args.topology))
    if args.json:
        print(json.dumps(plain_values(done, seeds), indent=2, ensure_ascii=False))
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
    if is_file_target(name):
        raise InputError(
            f"{name}: compare takes protocols of antecede protocols; one of your own runs with "
            "antecede simulate (protocol.name in the scenario file)"
        )
    protocol, _, variant = name.partition("/")
    if protocol not in ENTRIES:
        near = choices(protocol, ENTRIES)
        raise InputError(f"no protocol is called {protocol!r}; {near}")
    if variant and variant not in entry(protocol).variants:
        near = choices(variant, entry(protocol).variants)
        raise InputError(f"{protocol} has no variant {variant!r}; {near}")
    delay = _delay("--delay", args.delay)
    topology = _topology(protocol, args)
    if not 0 < args.rate < math.inf:
        raise InputError(f"--rate {args.rate}: messages a second, above 0")
    if (1 - JITTER) / args.rate < 1 / FASTEST_HZ:
        raise InputError(f"--rate {args.rate:g}: a peer sends one message a microsecond at most")
    if (1 + JITTER) / args.rate > LONGEST_S:
        raise InputError(f"--rate {args.rate:g}: a message in {1 / args.rate:g} s; too seldom")
    warm_s, seconds = _seconds(args, delay)
    try:
        scenario = Scenario(
            topology,
            protocol,
            variant,
            links=_links(topology, delay, args),
            workload=_workload(topology, args),
            clocks=Clocks(_delay("--accuracy", args.accuracy).high_s),
            duration_s=warm_s + seconds,
            warm_s=warm_s,
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
    mean_s = 1 / args.rate
    answers = args.answers
    if answers is None:
        answers = 0.5 if any(name.partition("/")[0] == "sb" for name in args.protocols) else 0.0
    return Workload(
        interval=Delay(mean_s * (1 - JITTER), mean_s * (1 + JITTER)),
        topics=PUBLISHED if isinstance(topology, PubSub) else 1,
        answers=answers,
    )


def _seconds(args: argparse.Namespace, delay: Delay) -> tuple[float, float]:
    """Return how long members send before figures count, and after that."""
    warm_s = WARM_DELAYS * delay.high_s
    if args.seconds is not None:
        if not 0 < args.seconds < math.inf:
            raise InputError(f"--seconds {args.seconds}: above 0")
        warm_s = min(warm_s, args.seconds / 2)
        return warm_s, args.seconds - warm_s
    enough: float = ARRIVALS / (args.rate * args.members * max(args.members - 1, 1))
    return warm_s, round(min(max(enough, LEAST_SECONDS), MOST_SECONDS), 1)
