"""The stations of the tour, each printing what it found; the page gathers them all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow

from antecede.demo.agreement import compare, delivered_by, released_by
from antecede.demo.arrivals import Arrivals
from antecede.demo.counterexample import Counterexample, printed_bss
from antecede.demo.engines import (
    Ordered,
    SparkStart,
    alternatives,
    causal_outcome,
    order_locally,
    order_on_spark,
    same_order,
)
from antecede.demo.evaluation import DELAY, Measured, evaluate, told
from antecede.demo.held import HeldMessage, find_held
from antecede.diagram.steps import from_run
from antecede.diagram.text import draw_text
from antecede.formatting import count_and_part, duration, table
from antecede.order.baselines import BaselineOutcome
from antecede.progress import Progress
from antecede.trace.schema import Event

DIAGRAM_COLUMNS = 78
LEAST_S = 0.1
"""A first call that takes no longer than this beyond a warm one is not mentioned."""


class Findings(NamedTuple):
    """What the tour found, for its page."""

    outcomes: list[BaselineOutcome]
    held: HeldMessage | None
    counterexample: Counterexample
    evaluation: list[Measured]


def heading(number: int, text: str) -> None:
    """Print the heading of a station."""
    print(f"\n{number}  {text}")


def say(text: str) -> None:
    """Print a line of a station."""
    print(f"   {text}", flush=True)


def order_twice(arrivals: Arrivals, events: Sequence[Event], spark: SparkStart | None) -> Ordered:
    """Order the arrivals locally and on Spark; say whether all answers are the same."""
    local = order_locally(arrivals)
    rows = f"{arrivals.table.num_rows:,} rows"
    line = f"local engine  {rows} in causal order in {duration(1000 * local.seconds)}"
    if local.first_s > local.seconds + LEAST_S:
        line += f" (first call compiles: {duration(1000 * local.first_s)})"
    if arrivals.by_member:
        agreement = compare(released_by(local.table), delivered_by(events))
        line += f": {agreement} to what the processes delivered" if agreement.compared else ""
    say(line)
    if spark is None:
        say("Spark         left out (--engine local)")
        return local
    with Progress("Spark is starting") as progress:
        session = spark.session(progress)
    distributed = order_on_spark(arrivals, session)
    verdict = "identical" if same_order(local.table, distributed.table) else "DIFFERENT"
    took = duration(1000 * distributed.seconds)
    say(f"Spark         {rows} in {took} (first query of a session): {verdict}")
    return local


def weigh(arrivals: Arrivals, ordered: pyarrow.Table) -> list[BaselineOutcome]:
    """Print what each way of ordering costs on these arrivals."""
    outcomes = [*alternatives(arrivals), causal_outcome(ordered, arrivals.timed)]
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


def tell_held(events: Sequence[Event]) -> HeldMessage | None:
    """Tell the story of one held message."""
    held = find_held(events)
    for line in held.lines() if held else ["nothing was held back: every cause came first"]:
        say(line)
    return held


def break_rule() -> Counterexample:
    """Let the explorer break a published rule, and draw the counterexample."""
    found = printed_bss()
    say("Sahai et al. 2020 print BSS's second condition as C_j[k] <= t[k]; it must be >=.")
    say(f"The explorer breaks the printed rule after {found.states:,} states:")
    say(found.failure.sentence())
    print()
    drawing = draw_text(from_run(found.run), width=DIAGRAM_COLUMNS)
    print("\n".join(f"   {line}".rstrip() for line in drawing.splitlines()))
    return found


def evaluate_piece() -> list[Measured]:
    """Simulate a tiny piece of an evaluation, and print it beside the source's slopes."""
    say(
        f"Half of the peers in a group behind a super peer, delays {DELAY}; "
        "Evropeytsev et al. 2016, Figure 4."
    )
    found = evaluate()
    print(told(found))
    say("The whole of it, to 900 peers, on Spark: antecede study hierarchy -o out/hierarchy")
    return found
