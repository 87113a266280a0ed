"""Steps of the demo: each prints its results, and the page collects them.

The published rule of BSS holds messages forever (two messages show it), and delivers effects before
their causes (three do). The demo shows the second: the model checker ignores the first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import pyarrow

from antecede.core.protocols import entry
from antecede.formatting import count_and_part, duration, table
from antecede.lab.check import NEEDLESS_HOLD, STUCK, Failure
from antecede.lab.check.harness import make_flat_group
from antecede.lab.check.model_checker import SearchLimits, explore
from antecede.lab.check.scenario import ScenarioRun, parse_scenario, run_scenario
from antecede.lab.demo import engines
from antecede.lab.demo.arrivals import Arrivals
from antecede.lab.demo.evaluation import DELAY, MeasuredOverhead, evaluate, format_evaluation
from antecede.lab.demo.held_message_story import HeldMessageStory, find_held
from antecede.lab.diagram import draw_text, from_run
from antecede.progress import Progress
from antecede.tables.order import BaselineOutcome
from antecede.tables.trace import DELIVER, RECEIVE, Event

MEMBERS = 3
MESSAGES = 3


class Counterexample(NamedTuple):
    """Counterexample of the model checker, number of states, and its run."""

    states: int
    failure: Failure
    run: ScenarioRun


def check_published_bss() -> Counterexample:
    """Check BSS with condition 2 as Sahai et al. 2020 print it, `C_j[k] <= t[k]`."""
    bss = entry("bss")
    options = bss.options("as-published")
    group = make_flat_group("bss", bss.load(), MEMBERS, options)
    exploration = explore(group, SearchLimits(MESSAGES, ignored=frozenset({NEEDLESS_HOLD, STUCK})))
    if exploration.failure is None:
        raise AssertionError("the published condition 2 of BSS must fail within three messages")
    text = exploration.failure.to_scenario(
        "BSS with condition 2 as published", "Sahai et al. 2020, Birman-Schiper-Stephenson Protocol"
    )
    return Counterexample(
        exploration.states, exploration.failure, run_scenario(parse_scenario(text))
    )


class Comparison(NamedTuple):
    """Number of compared releases, and differences as text."""

    compared: int
    differences: tuple[str, ...]

    def __str__(self) -> str:
        if self.differences:
            return f"{len(self.differences):,} of {self.compared:,} differ: {self.differences[0]}"
        return "identical"


def find_delivering_arrivals(events: Iterable[Event]) -> dict[str, dict[str, int]]:
    """Return the arrival (counted from 1) that delivered a message, by member and message."""
    arrived: dict[str, int] = defaultdict(int)
    releases: dict[str, dict[str, int]] = defaultdict(dict)
    for event in events:
        member = event.member or ""
        if event.kind == RECEIVE:
            arrived[member] += 1
        elif event.kind == DELIVER:
            releases[member][event.id] = arrived[member]
    return dict(releases)


def find_releasing_arrivals(ordered: pyarrow.Table) -> dict[str, dict[str, int]]:
    """Return the same for ordered receipts: the last arrival among a message and its causes."""
    names = ["member", "id", "causes", "file_order", "position"]
    rows = list(zip(*(ordered.column(name).to_pylist() for name in names), strict=True))
    by_member: dict[str, list[tuple[str, Sequence[str], int, int]]] = defaultdict(list)
    for member, name, causes, file_order, position in rows:
        if position is not None:
            by_member[member].append((name, causes, file_order, position))
    return {member: _find_releases(rows) for member, rows in by_member.items()}


def _find_releases(rows: list[tuple[str, Sequence[str], int, int]]) -> dict[str, int]:
    in_arrival = sorted(rows, key=lambda row: row[2])
    arrival = {row[0]: number for number, row in enumerate(in_arrival, start=1)}
    release: dict[str, int] = {}
    for name, causes, _, _ in sorted(rows, key=lambda row: row[3]):
        waited = [release[cause] for cause in causes if cause in arrival]
        release[name] = max([arrival[name], *waited])
    return release


def compare(
    ours: Mapping[str, Mapping[str, int]], theirs: Mapping[str, Mapping[str, int]]
) -> Comparison:
    """Compare two results; a message in only one of them is a difference."""
    differences = []
    compared = 0
    for member in sorted(ours.keys() | theirs.keys()):
        mine, other = ours.get(member, {}), theirs.get(member, {})
        for name in sorted(mine.keys() | other.keys()):
            compared += 1
            if mine.get(name) != other.get(name):
                differences.append(
                    f"{name} at {member}: arrival {mine.get(name)} against {other.get(name)}"
                )
    return Comparison(compared, tuple(differences))


DIAGRAM_COLUMNS = 78
LEAST_S = 0.1


class DemoFindings(NamedTuple):
    """Content of the page."""

    outcomes: list[BaselineOutcome]
    held: HeldMessageStory | None
    counterexample: Counterexample
    evaluation: list[MeasuredOverhead]


def print_heading(number: int, text: str) -> None:
    """Print the heading of a step."""
    print(f"\n{number}  {text}")


def say(text: str) -> None:
    """Print a line of a step."""
    print(f"   {text}", flush=True)


def order_twice(
    arrivals: Arrivals, events: Sequence[Event], spark: engines.SparkStart | None
) -> engines.OrderedRows:
    """Order the arrivals locally and on Spark; print whether all results agree."""
    local = engines.order_locally(arrivals)
    rows = f"{arrivals.table.num_rows:,} rows"
    line = f"local engine  {rows} in causal order in {duration(1000 * local.seconds)}"
    if local.first_s > local.seconds + LEAST_S:
        line += f" (first call compiles: {duration(1000 * local.first_s)})"
    if arrivals.by_member:
        agreement = compare(find_releasing_arrivals(local.table), find_delivering_arrivals(events))
        line += f": {agreement} to the deliveries of the processes" if agreement.compared else ""
    say(line)
    if spark is None:
        say("Spark         skipped (--engine local)")
        return local
    with Progress("Spark is starting") as progress:
        session = spark.session(progress)
    distributed = engines.order_on_spark(arrivals, session)
    verdict = "identical" if engines.is_same_order(local.table, distributed.table) else "DIFFERENT"
    took = duration(1000 * distributed.seconds)
    say(f"Spark         {rows} in {took} (first query of a session): {verdict}")
    return local


def weigh(arrivals: Arrivals, ordered: pyarrow.Table) -> list[BaselineOutcome]:
    """Print the costs of each way of ordering on these arrivals."""
    outcomes = [
        *engines.order_baselines(arrivals),
        engines.measure_causal_order(ordered, arrivals.has_times),
    ]
    header = ["", "rows dropped", "effect before cause", "cause dropped", "wait p50", "wait p99"]
    lines = [
        [
            outcome.scheme,
            count_and_part(outcome.dropped, outcome.rows),
            f"{outcome.inverted:,}",
            f"{outcome.broken:,}",
            duration(outcome.wait_ms(0.5)),
            duration(outcome.wait_ms(0.99)),
        ]
        for outcome in outcomes
    ]
    print(table(header, lines, indent="   "))
    return outcomes


def tell_held(events: Sequence[Event]) -> HeldMessageStory | None:
    """Print the story of one held message."""
    held = find_held(events)
    for line in held.lines() if held else ["no message was held back: every cause arrived first"]:
        say(line)
    return held


def break_rule() -> Counterexample:
    """Find a counterexample of a published rule, and print its diagram."""
    counterexample = check_published_bss()
    say("Sahai et al. 2020 print BSS's second condition as C_j[k] <= t[k]; it must be >=.")
    say(f"The model checker refutes the published rule after {counterexample.states:,} states:")
    say(counterexample.failure.sentence())
    print()
    drawing = draw_text(from_run(counterexample.run), width=DIAGRAM_COLUMNS)
    print("\n".join(f"   {line}".rstrip() for line in drawing.splitlines()))
    return counterexample


def evaluate_piece() -> list[MeasuredOverhead]:
    """Simulate a small part of an evaluation, and print it beside the source's slopes."""
    say(
        f"Half of the peers in a group behind a super peer, delays {DELAY}; "
        "Evropeytsev et al. 2016, Figure 4."
    )
    measured = evaluate()
    print(format_evaluation(measured))
    say("All of it, to 900 peers, on Spark: antecede reproduce hierarchy -o out/hierarchy")
    return measured
