"""Study of the claim of Evropeytsev et al. 2016 that overhead follows the density of messages.

The source ends at 900 peers. Here up to 100,000 peers send 1,000 messages per second in all: in
more groups of a hundred, and in ten larger groups. Delays are 0 to 50 ms. No peer is external.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Sequence
from typing import Any

from antecede.lab.reproductions.framework.page_builder import findings_from_package
from antecede.lab.reproductions.framework.runs import Run
from antecede.lab.reproductions.framework.study import (
    COST,
    Metrics,
    Study,
    make_seed_runs,
    simulate_run,
)
from antecede.lab.simulate import Delay, Hierarchy
from antecede.lab.simulate.config import Links, SimulationConfig, Workload
from antecede.tables.kernels import measure_compile_time

RATE_HZ = 1000.0
GROUP, TEN = 100, 10
GROUPS, QUICK_GROUPS = (10, 30, 100, 300, 1000), (10, 30, 100)
SIZES, QUICK_SIZES = (10, 30, 300, 1000, 10000), (10, 30, 300)
"""Peers of each of ten groups. Groups of a hundred are in `GROUPS`."""
WARM_S, MEASURED_S = 0.3, 0.3
SEEDS, QUICK_SEEDS = (1, 2), (1,)
PER_SECOND = 1e6


def list_runs(quick: bool) -> Sequence[Run]:
    """Return runs with more groups of a hundred, and with ten larger groups."""
    found: list[Run] = []
    more = [(groups, GROUP) for groups in (QUICK_GROUPS if quick else GROUPS)]
    larger = [(TEN, size) for size in (QUICK_SIZES if quick else SIZES)]
    for groups, size in (*more, *larger):
        config = SimulationConfig(
            Hierarchy((size,) * groups, 0),
            "hierarchical",
            links=Links(Delay(0.0, 0.05)),
            workload=Workload(total_hz=RATE_HZ),
            duration_s=WARM_S + MEASURED_S,
            warm_s=WARM_S,
            name=f"{groups} groups of {size}",
        )
        cost_s = 0.05 + RATE_HZ * config.duration_s * groups * size / PER_SECOND
        seeds = QUICK_SEEDS if quick else SEEDS
        given: dict[str, Any] = {"groups": groups, "size": size, "peers": groups * size}
        found += make_seed_runs(seeds, config.name, config, cost_s, **given)
    return found


def execute(run: Run) -> Metrics:
    """Simulate a run. Metrics include processor time and peak memory of the process."""
    begin = time.process_time()
    with measure_compile_time() as spent:
        found = dict(simulate_run(run))
    found[f"{COST}processor_s"] = time.process_time() - begin - spent.compiling_s
    kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found[f"{COST}peak_mib"] = kib / (1 << 20 if sys.platform == "darwin" else 1 << 10)
    return found


STUDY = Study(
    "scale",
    "A hundred thousand peers: does overhead follow the density of messages?",
    "Evropeytsev et al. 2016, section 3.2, Scalability Analysis; the grid is ours",
    list_runs,
    execute,
    findings_from_package("antecede.lab.reproductions.scale"),
)
