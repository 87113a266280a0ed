"""Study of Nakayama 2017, section 3: false causality of TV, TV_LT, TV_PT and HTBC.

Six peers in two subgroups. The largest delay is 16 inside (LAN) and 160 between (WAN), the clock
accuracy 4, the length 150,000 time units. A time unit is a millisecond here. Random peers publish
at random times. Publications and subscriptions have 1 to xt of h topics. The source's varied
quantity and smallest delays are lost with its one figure, so all of them are varied here. Section 3
delivers an event to every peer, section 4 to its targets only. Both are run.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from antecede.lab.reproductions.framework.page_builder import findings_from_package
from antecede.lab.reproductions.framework.runs import Run
from antecede.lab.reproductions.framework.study import Study, make_simulation_run
from antecede.lab.reproductions.pairs import count_pairs
from antecede.lab.simulate import Delay, PubSub
from antecede.lab.simulate.config import Clocks, Links, SimulationConfig, Special, Workload

DEFAULTS: Mapping[str, Any] = {"events": 2000, "topics": 10, "most": 5, "least": 0.5}
"""Default values: events, h, xt, and smallest delay / largest delay."""
SENT_TO = ("everybody", "targets")  # Recipients of events: section 3 of the text, and its section 4
SUBGROUPS = (3, 3)
LAN_S, WAN_S = 0.016, 0.160
EPSILON_S = 0.004
LENGTH_S = 150.0
RULES = (
    *("tv", "tv-lt", "tv-lt:published", "tv-pt", "tv-pt:published"),
    *("htbc", "htbc:published", "tv-vt"),
)
VARIED: Mapping[str, tuple[Any, ...]] = {
    "events": (100, 250, 500, 1000, 2000, 5000, 10000),
    "topics": (5, 10, 20, 40),
    "most": (1, 2, 3, 5, 8, 10),
    "least": (0.0, 0.05, 0.1, 0.25, 0.4, 0.5, 0.75, 1.0),
}
QUICK: Mapping[str, tuple[Any, ...]] = {
    "events": (250, 1000, 2000, 4000),
    "topics": (5, 10, 20),
    "most": (1, 5, 10),
    "least": (0.0, 0.1, 0.5, 1.0),
}
SEEDS, QUICK_SEEDS = (1, 2, 3, 4, 5), (1, 2)


def list_runs(quick: bool) -> Sequence[Run]:
    """Return a run per varied value and seed. The default point is run once."""
    varied = QUICK if quick else VARIED
    each = [{**DEFAULTS, name: value} for name, values in varied.items() for value in values]
    found = []
    for point in {tuple(one.values()): one for one in each}.values():
        words = "/".join(f"{key} {value}" for key, value in point.items())
        cost_s, given = 0.1 + point["events"] / 2000, {"rules": list(RULES), **point}
        for seed, sent_to in itertools.product(QUICK_SEEDS if quick else SEEDS, SENT_TO):
            key = f"{words}/to {sent_to}/seed {seed}"
            config = make_config(**point)
            found.append(
                make_simulation_run(key, config, seed, cost_s, "pairs", sent_to=sent_to, **given)
            )
    return found


def make_config(events: int, topics: int, most: int, least: float) -> SimulationConfig:
    """Return Nakayama's system."""
    inside = Delay(round(least * LAN_S, 6), LAN_S, "uniform")
    between = Delay(round(least * WAN_S, 6), WAN_S, "uniform")
    lan = tuple(Special(f"group:{g}", f"group:{g}", inside) for g in range(len(SUBGROUPS)))
    return SimulationConfig(
        PubSub(SUBGROUPS, topics, min(most, topics)),
        "htbc",
        links=Links(between, lan),
        workload=Workload("random", messages=events, topics=min(most, topics)),
        clocks=Clocks(EPSILON_S),
        duration_s=LENGTH_S,
        name=f"Nakayama 2017, {events} events, h {topics}, xt {most}, least {least}",
    )


STUDY = Study(
    "topics",
    "Topic-based order: false and missed causality",
    "Nakayama 2017, section 3",
    list_runs,
    count_pairs,
    findings_from_package("antecede.lab.reproductions.topics"),
)
