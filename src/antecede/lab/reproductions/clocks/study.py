"""Study of Tsuneizumi et al.: pairs ordered by linear, physical and combined time.

The source has no evaluation. This one has a homogeneous group with a fixed clock accuracy. The
largest delay varies around twice the accuracy: Tsuneizumi et al. distinguish fast networks (delta
<= 2 lambda) from slow ones, and rule 1(b) is sound in neither.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from antecede.lab.reproductions.framework.page_builder import findings_from_package
from antecede.lab.reproductions.framework.runs import Run
from antecede.lab.reproductions.framework.study import (
    Metrics,
    Study,
    make_seed_runs,
    make_simulation_run,
    simulate_run,
)
from antecede.lab.reproductions.pairs import count_pairs
from antecede.lab.simulate import Delay, Mesh
from antecede.lab.simulate.config import Clocks, Links, SimulationConfig, Workload

LAMBDA_S = 0.010
RATIOS = (0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 6.0, 10.0, 20.0, 50.0)
"""delta / lambda. Fast networks end at 2. From 2 to 4 rule 1(b) has a window of its own."""
QUICK_RATIOS = (0.5, 1.5, 3.0, 6.0, 20.0)
MIN_DELAYS = {"half": 0.5, "nearly all": 0.9}  # Smallest delay / largest delay, by name
LOADS = (("half", 50.0), ("nearly all", 50.0), ("half", 5.0))
"""Smallest delay, and messages per second of each member, for runs that measure waits."""
MEMBERS = 6
RULES = (
    *("linear", "linear:published", "physical", "physical:published"),
    *("linear-physical", "linear-physical:published", "arrival", "timestamp"),
)
SIZES = (5, 10, 20, 40)
CARRIERS = ("linear", "physical", "linear-physical", "bss")
LOSSES = (0.0, 0.01, 0.05, 0.1)
WAITING: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "linear, null messages": ("linear", {}),
    "both, null messages": ("linear-physical", {}),
    "both, by bound": ("linear-physical", {"delivery": "bound"}),
    "physical, by bound": ("physical", {"delivery": "bound"}),
    "vector clock (BSS)": ("bss", {}),
}
"""Name in plots -> protocol and options."""
RECOVERY = {"retry_s": 0.5}
SEEDS, QUICK_SEEDS = (1, 2, 3), (1,)


def list_runs(quick: bool) -> Sequence[Run]:
    """Return runs that count pairs, measure waits, count bytes, and lose messages."""
    return [
        *_make_pair_runs(quick),
        *_make_wait_runs(quick),
        *_make_size_runs(quick),
        *_make_loss_runs(quick),
    ]


def execute(run: Run) -> Metrics:
    """Execute a run."""
    return count_pairs(run) if run.kind == "pairs" else simulate_run(run)


def _make_pair_runs(quick: bool) -> Iterator[Run]:
    for ratio in QUICK_RATIOS if quick else RATIOS:
        for least in MIN_DELAYS:
            yield from make_seed_runs(
                QUICK_SEEDS if quick else SEEDS,
                f"pairs/delta {ratio} lambda/least {least}",
                make_config(ratio, least, 4.0 if quick else 20.0),
                0.3 if quick else 2.0,
                "pairs",
                ratio=ratio,
                least=least,
                rules=list(RULES),
            )


def _make_wait_runs(quick: bool) -> Iterator[Run]:
    """Yield the same traffic under several protocols. Physical time needs delays above 2 lambda."""
    for ratio in QUICK_RATIOS if quick else RATIOS:
        for least, rate_hz in LOADS:
            for waiting, (protocol, options) in WAITING.items():
                if protocol == "physical" and MIN_DELAYS[least] * ratio <= 2:
                    continue
                given = make_config(ratio, least, 2.0 if quick else 5.0, rate_hz)
                yield make_simulation_run(
                    f"waits/delta {ratio} lambda/least {least}/{rate_hz:g} a second/{waiting}",
                    replace(given, protocol=protocol, options=options, warm_s=1.0),
                    1,
                    0.02 * rate_hz,
                    "waits",
                    ratio=ratio,
                    least=least,
                    rate_hz=rate_hz,
                    waiting=waiting,
                )


def make_config(
    ratio: float, least: str, duration_s: float, rate_hz: float = 50.0
) -> SimulationConfig:
    """Return six members with the largest delay `ratio` * lambda."""
    most_s = round(ratio * LAMBDA_S, 6)
    return SimulationConfig(
        Mesh(MEMBERS),
        links=Links(Delay(round(MIN_DELAYS[least] * most_s, 6), most_s, "uniform")),
        workload=Workload("poisson", rate_hz=rate_hz),
        clocks=Clocks(LAMBDA_S),
        duration_s=duration_s,
        name=f"Tsuneizumi et al., delta {ratio} lambda",
    )


def _make_size_runs(quick: bool) -> Iterator[Run]:
    for protocol in CARRIERS:
        for members in SIZES[:2] if quick else SIZES:
            config = SimulationConfig(
                Mesh(members),
                protocol,
                links=Links(Delay(0.03, 0.05, "uniform")),
                workload=Workload("poisson", rate_hz=5.0),
                clocks=Clocks(LAMBDA_S),
                duration_s=2.0,
                warm_s=0.5,
            )
            yield make_simulation_run(
                f"bytes/{protocol}/{members} members",
                config,
                1,
                0.002 * members**2,
                "bytes",
                protocol=protocol,
                members=members,
            )


def _make_loss_runs(quick: bool) -> Iterator[Run]:
    for loss in LOSSES[::3] if quick else LOSSES:
        for recovery in (False, True):
            config = SimulationConfig(
                Mesh(MEMBERS),
                "linear-physical",
                options=RECOVERY if recovery else {},
                links=Links(Delay(0.01, 0.05, "uniform"), loss=loss),
                workload=Workload("poisson", rate_hz=5.0),
                clocks=Clocks(LAMBDA_S),
                duration_s=4.0 if quick else 20.0,
            )
            yield from make_seed_runs(
                QUICK_SEEDS if quick else SEEDS,
                f"loss/{loss}/{'recovery' if recovery else 'none'}",
                config,
                1.0 if quick else 5.0,
                "loss",
                loss=loss,
                recovery=recovery,
            )


STUDY = Study(
    "clocks",
    "Linear and physical clocks: false and missed causality",
    "Tsuneizumi et al., sections 4 to 6; the source has no evaluation: this one is ours",
    list_runs,
    execute,
    findings_from_package("antecede.lab.reproductions.clocks"),
    code=("antecede.lab.reproductions.pairs",),
)
