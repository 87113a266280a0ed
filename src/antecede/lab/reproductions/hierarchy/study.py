"""Study of Evropeytsev et al. 2016, section 3.2: the hierarchical protocol beside IDR and DS.

One internal and one external group, one super peer, peers divided equally. Every peer sends every
N(80, 5) ms, clipped to 70 to 90. Channels are not FIFO. Metrics and claims: `page.toml`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from antecede.lab.reproductions.framework.page_builder import findings_from_package
from antecede.lab.reproductions.framework.runs import Run
from antecede.lab.reproductions.framework.study import (
    Metrics,
    Study,
    make_seed_runs,
    make_simulation_run,
    simulate_run,
)
from antecede.lab.reproductions.hierarchy.last_field import measure_last_field
from antecede.lab.simulate import Delay, Hierarchy
from antecede.lab.simulate.config import Links, SimulationConfig, Special, Workload

DELAYS = {"0-50 ms": (0.0, 0.05), "50-250 ms": (0.05, 0.25), "50-550 ms": (0.05, 0.55)}
LARGEST = {"0-50 ms": 900, "50-250 ms": 500, "50-550 ms": 400}
"""Largest number of peers with published values."""
RATES = (1000, 1500, 2000, 2500)
STEP = 100  # Step of the grid, which also has 50 peers. The source's own grid is unknown.
WARM_S = {"0-50 ms": 0.4, "50-250 ms": 1.5, "50-550 ms": 2.5}
"""Warm-up. The system is steady from 0.2, 1 and 1.5 s on."""
MEASURED_S, QUICK_S = 1.0, 0.3
SEEDS, QUICK_SEEDS = (1, 2, 3), (1,)
COMPILED_PER_SECOND = 4e6  # Approximate deliveries per second of a core, for cost estimates only
REFERENCE_PER_SECOND = 2e4
"""The same of the reference engine, which alone runs the published pruning."""
PASSIVE = ((100, 0), (300, 200))  # Number of peers, and number of silent ones
LAST_PEERS, QUICK_LAST_PEERS = (200, 300, 400), (100, 200)
LAST_RATES, QUICK_LAST_RATES = (1000, 2500), (1000,)  # Rates of the runs on the span with `Last`
PRUNINGS = ("safe", "none", "published")
SLOW_UP = Special("internal", "super", Delay(0.0, 0.4, "uniform"))
FAR = Delay(0.5, 0.5, "constant")
"""Skewed links: uneven delays to the super peer, and a slow channel from external peers to one of
them. On it a message is in flight when the published rule has dropped its dependencies."""


def list_runs(quick: bool) -> Sequence[Run]:
    """Return every run: grid, fixed rates, passive receivers, and open questions of the text."""
    parts = (
        _make_grid_runs,
        _make_rate_runs,
        _make_passive_runs,
        _make_group_runs,
        _make_pruning_runs,
        _make_variance_runs,
        _make_last_field_runs,
    )
    return [run for part in parts for run in part(quick)]


def execute(run: Run) -> Metrics:
    """Execute a run."""
    return measure_last_field(run) if run.kind == "last" else simulate_run(run)


def list_peer_counts(delay: str) -> list[int]:
    """Return the numbers of peers of a delay: 50, then every hundred up to LARGEST."""
    return [50, *range(STEP, LARGEST[delay] + 1, STEP)]


def _make_grid_runs(quick: bool) -> Iterator[Run]:
    for delay in DELAYS:
        for peers in list_peer_counts(delay):
            if quick and peers % 300 and peers not in (50, LARGEST[delay]):
                continue
            config = config_of(delay, peers, QUICK_S if quick else MEASURED_S)
            yield from _make_runs("grid", config, _choose_seeds(quick), delay=delay, peers=peers)


def _make_rate_runs(quick: bool) -> Iterator[Run]:
    for delay in DELAYS:
        for rate in (1000, 2500) if quick else RATES:
            for peers in list_peer_counts(delay):
                if quick and peers not in (50, 100, 200, LARGEST[delay]):
                    continue
                interval_s = peers / rate
                config = config_of(
                    delay,
                    peers,
                    1.0 if quick else 2.0,
                    warm_s=WARM_S[delay] + 2 * interval_s,
                    workload=Workload(total_hz=float(rate)),
                )
                seeds = _choose_seeds(quick)[:2]
                yield from _make_runs("rate", config, seeds, delay=delay, peers=peers, rate=rate)


def _make_passive_runs(quick: bool) -> Iterator[Run]:
    for delay in DELAYS:
        for peers, silent in PASSIVE:
            config = config_of(
                delay, peers, QUICK_S if quick else MEASURED_S, workload=Workload(silent=silent)
            )
            seeds = [seed + 10 for seed in _choose_seeds(quick)]
            yield from _make_runs("passive", config, seeds, delay=delay, silent=silent)


def _make_group_runs(quick: bool) -> Iterator[Run]:
    for groups in (1, 3) if quick else (1, 2, 3, 4):
        topology = Hierarchy((120 // groups,) * groups, 120)
        config = config_of("0-50 ms", 240, QUICK_S if quick else MEASURED_S, topology=topology)
        yield from _make_runs("groups", config, _choose_seeds(quick), groups=groups)


def _make_pruning_runs(quick: bool) -> Iterator[Run]:
    for groups in (1, 3):
        topology = Hierarchy((30 // groups,) * groups, 30)
        for skewed in (False, True):
            far = Special("external", str(topology.size - 1), FAR)
            links = Links(Delay(*DELAYS["0-50 ms"]), (SLOW_UP, far) if skewed else ())
            for pruning in PRUNINGS:
                config = SimulationConfig(
                    topology,
                    "hierarchical",
                    options={"pruning": pruning},
                    links=links,
                    duration_s=2.0 if quick else 10.0,
                    warm_s=1.0,
                    name=f"{groups} groups, {'skewed' if skewed else 'even'} links, {pruning}",
                )
                given = {"groups": groups, "skewed": skewed, "pruning": pruning}
                yield from _make_runs("pruning", config, _choose_seeds(quick), **given)


def _make_variance_runs(quick: bool) -> Iterator[Run]:
    config = config_of("0-50 ms", LARGEST["0-50 ms"], QUICK_S if quick else MEASURED_S)
    links = Links(Delay(*DELAYS["0-50 ms"], "variance"))
    yield from _make_runs(
        "literal", replace(config, links=links), _choose_seeds(quick), delay="0-50 ms"
    )


def _make_last_field_runs(quick: bool) -> Iterator[Run]:
    """Yield runs at fixed rates, and one of the first experiment (rate 0) for comparison."""
    peers = QUICK_LAST_PEERS if quick else LAST_PEERS
    rates = QUICK_LAST_RATES if quick else LAST_RATES
    for count, rate in [(peers[0], 0), *((n, rate) for rate in rates for n in peers)]:
        warm_s = WARM_S["0-50 ms"] + (2 * count / rate if rate else 0.0)
        load = Workload(total_hz=float(rate)) if rate else Workload()
        measured_s = 0.2 if quick else QUICK_S
        given = config_of("0-50 ms", count, measured_s, warm_s=warm_s, workload=load)
        sent = (rate or count * 12.5) * given.duration_s
        key = f"last/peers {count}/rate {rate or 'of the first experiment'}"
        yield make_simulation_run(
            key, given, 1, 3e-5 * sent * count, "last", peers=count, rate=rate
        )


def config_of(
    delay: str,
    peers: int,
    measured_s: float,
    *,
    warm_s: float | None = None,
    workload: Workload | None = None,
    topology: Hierarchy | None = None,
) -> SimulationConfig:
    """Return the source's system. `delay`: key of DELAYS. `peers`: total number."""
    warm = WARM_S[delay] if warm_s is None else warm_s
    return SimulationConfig(
        topology or Hierarchy((peers // 2,), peers - peers // 2),
        "hierarchical",
        links=Links(Delay(*DELAYS[delay])),
        workload=workload or Workload(),
        duration_s=round(warm + measured_s, 6),
        warm_s=round(warm, 6),
        name=f"Evropeytsev et al. 2016, {delay}, {peers} peers",
    )


def _choose_seeds(quick: bool) -> tuple[int, ...]:
    return QUICK_SEEDS if quick else SEEDS


def _make_runs(
    part: str, config: SimulationConfig, seeds: Sequence[int], **parameters: object
) -> Iterator[Run]:
    peers = len(config.topology.senders())
    load = config.workload
    active = peers - load.silent
    rate = load.total_hz or active / load.interval.mean_s
    readable = parameters.get("pruning") == "published"
    per_second = REFERENCE_PER_SECOND if readable else COMPILED_PER_SECOND
    cost_s = 0.05 + rate * config.duration_s * peers / per_second
    words = [f"{name} {value}" for name, value in parameters.items()]
    return make_seed_runs(seeds, "/".join([part, *words]), config, cost_s, part, **parameters)


STUDY = Study(
    "hierarchy",
    "The hierarchical protocol beside IDR and dependency sequences",
    "Evropeytsev et al. 2016, section 3.2, Figures 4 to 9",
    list_runs,
    execute,
    findings_from_package("antecede.lab.reproductions.hierarchy"),
    code=("antecede.lab.reproductions.hierarchy.last_field",),
)
