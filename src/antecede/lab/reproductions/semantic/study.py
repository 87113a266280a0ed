"""Study of Bhavanasi and Iyer: S_b beside causal and total order, over the same arrivals.

The source has no evaluation; this one is ours. Threads are random: every message replies, with a
probability, to a message delivered recently to its sender. Or they are those of mailing lists and
chats: `antecede reproduce semantic --traces FILE ...`.
"""

from __future__ import annotations

import dataclasses
import functools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from antecede.errors import InputError
from antecede.lab.reproductions.framework.page_builder import findings_from_package
from antecede.lab.reproductions.framework.runs import Run
from antecede.lab.reproductions.framework.study import Metrics, Study, make_simulation_run
from antecede.lab.reproductions.semantic.lists import ARRIVALS, compute_extreme_metrics
from antecede.lab.reproductions.semantic.metrics import compute_metrics
from antecede.lab.reproductions.semantic.orders import compute_orders
from antecede.lab.reproductions.semantic.workload import (
    digest_trace,
    make_thread_load,
    make_trace_load,
)
from antecede.lab.simulate import US, Delay, Mesh, Network
from antecede.lab.simulate.config import Links, SimulationConfig, Workload

DEFAULTS: Mapping[str, Any] = {
    "members": 30,
    "reply_fraction": 0.5,
    "delay": "50-250 ms",
    "rate_hz": 2.0,
    "recent": 8,
}
"""Values of parameters that a sweep does not vary."""
DELAYS = {
    "50-50 ms": Delay(0.05, 0.05, "constant"),
    "0-50 ms": Delay(0.0, 0.05),
    "50-250 ms": Delay(0.05, 0.25),
    "50-550 ms": Delay(0.05, 0.55),
    "20-2000 ms": Delay(0.02, 2.0, "lognormal"),
}
SWEEPS: Mapping[str, tuple[Any, ...]] = {
    "reply_fraction": (0.0, 0.25, 0.5, 0.75, 1.0),
    "members": (10, 20, 30, 50, 100),
    "rate_hz": (0.2, 0.5, 1.0, 2.0, 5.0, 10.0),
    "recent": (1, 2, 4, 8, 16, 64),
    "delay": tuple(DELAYS),
}
QUICK: Mapping[str, tuple[Any, ...]] = {
    "reply_fraction": (0.0, 0.5, 1.0),
    "members": (10, 30, 100),
    "rate_hz": (0.5, 2.0, 5.0),
    "recent": (1, 8, 64),
    "delay": tuple(DELAYS),
}
MESSAGES, QUICK_MESSAGES = 3000, 600  # Approximate number per run
SEEDS, QUICK_SEEDS = (1, 2, 3), (1,)
GAPS_MS, QUICK_GAPS_MS = (10.0, 100.0, 1000.0, 10_000.0), (10.0, 1000.0)
MAX_TRACE_MESSAGES, QUICK_MAX_TRACE_MESSAGES = 12_000, 1_500
"""Largest number of messages of a trace."""
TRACE_DELAY = "50-250 ms"
EXTREMES = (29, 100)  # Number of senders, and messages per sender


def list_runs(quick: bool, traces: Sequence[Path] = ()) -> Sequence[Run]:
    """Return runs with random threads, extreme cases of ordering lists, and traces."""
    return [*_make_thread_runs(quick), *_make_list_runs(quick), *_make_trace_runs(quick, traces)]


def add_traces(paths: Sequence[Path]) -> Study:
    """Return the study with these traces. Raises InputError for a missing file."""
    for path in paths:
        digest_trace(path)
    return dataclasses.replace(STUDY, runs=functools.partial(list_runs, traces=tuple(paths)))


def execute(run: Run) -> Metrics:
    """Execute a run. Raises InputError for a missing or changed trace."""
    given = run.parameters
    if run.kind == "lists":
        return compute_extreme_metrics(given["arrivals"], given["senders"], given["each"], run.seed)
    if run.kind == "trace":
        path = Path(given["path"])
        if digest_trace(path) != given["digest"]:
            raise InputError("the trace has changed since the first run", path=str(path))
        load = make_trace_load(str(path), given["messages"], given["gap_ms"])
        authors = int(load.sender.max()) + 1
        config, warm_us = SimulationConfig(Mesh(authors), links=Links(DELAYS[given["delay"]])), 0
    else:
        config = run.load_config()
        load, warm_us = make_thread_load(config, run.seed), round(config.warm_s * US)
    network = Network(config, run.seed)
    return compute_metrics(compute_orders(load, network, run.seed, warm_us), network, warm_us)


def _make_thread_runs(quick: bool) -> Iterator[Run]:
    sweeps = (QUICK if quick else SWEEPS).items()
    each = [{**DEFAULTS, name: value} for name, values in sweeps for value in values]
    for point in {tuple(one.values()): one for one in each}.values():
        for seed in QUICK_SEEDS if quick else SEEDS:
            yield _make_thread_run(point, seed, QUICK_MESSAGES if quick else MESSAGES)


def _make_thread_run(point: Mapping[str, Any], seed: int, messages: int) -> Run:
    members, rate_hz = point["members"], point["rate_hz"]
    delay = DELAYS[point["delay"]]
    warm_s = round(2 * float(delay.quantiles()[-1]) / US, 3)
    measured_s = messages / (rate_hz * members)
    config = SimulationConfig(
        Mesh(members),
        "sb",
        links=Links(delay),
        workload=Workload(
            "poisson",
            rate_hz=rate_hz,
            reply_fraction=point["reply_fraction"],
            recent=point["recent"],
        ),
        duration_s=round(warm_s + measured_s, 6),
        warm_s=warm_s,
    )
    sent = messages + warm_s * rate_hz * members
    key = (
        f"threads/{members} members/{point['reply_fraction']:g} replies/{point['delay']}/"
        f"{rate_hz:g} a second/last {point['recent']}/seed {seed}"
    )
    return make_simulation_run(
        key, config, seed, sent * (2e-4 + 3e-6 * members), "threads", **point
    )


def _make_list_runs(quick: bool) -> Iterator[Run]:
    senders, each = EXTREMES
    each = each // 5 if quick else each
    for arrivals in ARRIVALS:
        given = {"arrivals": arrivals, "senders": senders, "each": each}
        yield Run(f"lists/{arrivals}", 1, senders * each * 2e-5, "lists", {}, given)


def _make_trace_runs(quick: bool, traces: Sequence[Path]) -> Iterator[Run]:
    names = Counter(path.name for path in traces)
    for path in traces:
        digest = digest_trace(path)
        name = path.name if names[path.name] == 1 else f"{path.name} {digest[:6]}"
        for gap_ms in QUICK_GAPS_MS if quick else GAPS_MS:
            given = {
                "trace": name,
                "path": str(path.absolute()),
                "digest": digest,
                "gap_ms": gap_ms,
                "messages": QUICK_MAX_TRACE_MESSAGES if quick else MAX_TRACE_MESSAGES,
                "delay": TRACE_DELAY,
            }
            cost_s = 1.0 + path.stat().st_size * (2e-6 if quick else 1e-5)
            yield Run(f"trace/{name}/gap {gap_ms:g} ms", 1, cost_s, "trace", {}, given)


STUDY = Study(
    "semantic",
    "Semantic order beside causal and total order",
    "Bhavanasi and Iyer; the source has no evaluation: this one is ours",
    list_runs,
    execute,
    findings_from_package("antecede.lab.reproductions.semantic"),
    code=tuple(
        f"antecede.lab.reproductions.semantic.{part}"
        for part in ("metrics", "lists", "workload", "orders")
    ),
    with_traces=add_traces,
)
