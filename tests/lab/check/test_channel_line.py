"""Channel models of a scenario in `antecede draw` (Sahai et al. 2020)."""

from __future__ import annotations

from pathlib import Path

import pytest

from antecede.lab.check.scenario.execution import channel_line
from antecede.lab.check.scenario.parse import load_scenario, parse_scenario
from antecede.lab.check.scenario.run import run_scenario

SCENARIOS = Path(__file__).resolve().parents[3] / "scenarios"


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("bss-in-order", "Arrivals: causal. Deliveries: causal."),
        ("bss-overtaking", "Arrivals: FIFO, not causal (a after b at P1). Deliveries: causal."),
        (
            "bss-condition-2-as-published",
            "Arrivals: FIFO, not causal (a after b at P1). "
            "Deliveries: FIFO, not causal (b without a at P1).",
        ),
        ("fifo-gap", "Arrivals: non-FIFO (a after b at P3). Deliveries: causal."),
        (
            "sb-algorithm-2-as-published",
            "Arrivals: non-FIFO (a2 after a4 at B). Deliveries: non-FIFO (a2 after a4 at B).",
        ),
    ],
)
def test_what_the_network_did_and_what_the_protocol_made_of_it(name: str, line: str) -> None:
    assert channel_line(run_scenario(load_scenario(SCENARIOS / f"{name}.scenario"))) == line


def test_a_newcomer_is_not_owed_what_its_sponsor_had_delivered() -> None:
    text = (
        "protocol fifo\nmembers P1 P2\nsend P1 a\narrive P2 a\n"
        "join P3 sponsor P2\nsend P1 b\narrive P3 b\n"
    )
    run = run_scenario(parse_scenario(text, "scenario"))
    assert channel_line(run) == "Arrivals: causal. Deliveries: causal."


def test_what_is_overtaken_on_its_way_counts() -> None:
    run = run_scenario(
        parse_scenario("protocol unordered\nmembers P Q\nsend P a\nsend P b\narrive Q b\n", "s")
    )
    assert channel_line(run) == (
        "Arrivals: non-FIFO (b without a at Q). Deliveries: non-FIFO (b without a at Q)."
    )


def test_a_scenario_in_which_nothing_arrives_says_nothing() -> None:
    assert (
        channel_line(run_scenario(parse_scenario("protocol fifo\nmembers P Q\nsend P a\n", "s")))
        == ""
    )
