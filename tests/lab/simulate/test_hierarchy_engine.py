"""The compiled hierarchy against the classes: same events, same bytes, same figures."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from antecede.errors import ConfigError
from antecede.lab.simulate.compiled.hierarchy import loop
from antecede.lab.simulate.compiled.hierarchy.engine import (
    bytes_hierarchy,
    can_run_hierarchy,
    make_result,
    prepare,
    record_hierarchy,
    run_hierarchy,
)
from antecede.lab.simulate.compiled.hierarchy.records import IDR_DEPENDENCIES
from antecede.lab.simulate.config.model import Links, SimulationConfig, Special, Workload
from antecede.lab.simulate.delays import Delay
from antecede.lab.simulate.outputs.recording import DELIVERED, Recording
from antecede.lab.simulate.outputs.result import NOTHING, Measures, Result
from antecede.lab.simulate.reference_engine import run_readable
from antecede.lab.simulate.run import simulate
from antecede.lab.simulate.topology import Hierarchy, Mesh

ONLY_HERE = ("ds.control_bytes", "ds.control_bytes_sd")
SLOW_UP = Special("internal", "super", Delay(0.0, 0.4, "uniform"))


def anything(seed: int) -> SimulationConfig:
    """Return a random scenario: groups, links of several kinds, pruning, silent peers."""
    r = random.Random(seed)
    groups = tuple(r.randrange(1, 5) for _ in range(r.randrange(1, 5)))
    topology = Hierarchy(groups, r.randrange(0, 5))
    low = r.choice((0.0, 0.0, 0.05))
    delay = Delay(low, low + r.choice((0.0, 0.05, 0.2, 0.5)), r.choice(("normal", "uniform")))
    special = (
        SLOW_UP,
        Special("super", str(topology.size - 1), Delay(0.5, 0.5, "constant")),
        Special("any", "group:0", Delay(0.0, 0.3, "uniform")),
    )
    matrix = ((0.0, 0.02, 0.1), (0.01, 0.0, 0.05), (0.2, 0.03, 0.0))
    kind = r.choice(("periodic", "poisson", "random"))
    workload = Workload(
        kind=kind,
        messages=r.randrange(0, 200) if kind == "random" else None,
        rate_hz=r.choice((5.0, 12.5, 30.0)),
        silent=r.choice((0, 0, r.randrange(len(topology.senders())))),
    )
    options: dict[str, Any] = {"pruning": r.choice(("safe", "none"))}
    if r.random() < 0.5:
        chosen = r.choice((0, 1, 3, 7))
        options["ack_after"] = 0 if options["pruning"] == "none" else chosen
    duration_s = r.choice((0.5, 1.0))
    return SimulationConfig(
        topology,
        "hierarchical",
        options=options,
        links=Links(
            delay=delay,
            special=tuple(one for one in special if r.random() < 0.4),
            fifo=r.random() < 0.4,
            matrix=matrix if r.random() < 0.2 else None,
        ),
        workload=workload,
        duration_s=duration_s,
        warm_s=r.choice((0.0, 0.2 * duration_s)),
        sample_s=r.choice((0.05, 0.013)),
    )


def skewed(groups: tuple[int, ...], pruning: str = "safe") -> SimulationConfig:
    """Return links on which published pruning violates causal order."""
    topology = Hierarchy(groups, 4)
    slow = Special("external", str(topology.size - 1), Delay(0.5, 0.5, "constant"))
    return SimulationConfig(
        topology,
        "hierarchical",
        options={"pruning": pruning},
        links=Links(delay=Delay(0.0, 0.05), special=(SLOW_UP, slow)),
        duration_s=2.0,
    )


def lockstep(config: SimulationConfig, seed: int) -> tuple[Result, Recording]:
    """Hold one run of the compiled engine against the classes; return what these say."""
    ours = record_hierarchy(config, seed)
    result, run = run_readable(config, seed, record=True)
    deliveries = [(time_us, at, message) for at, message, time_us in ours.deliveries.tolist()]
    assert deliveries == run.deliveries()
    carried = [
        (one.source, one.message, one.targets[0], one.control_bytes, one.wire_bytes)
        for one in run.transmissions
    ]
    assert [tuple(one) for one in ours.transmissions.tolist()] == carried
    missing = result.figures.keys() - ours.result.figures.keys()
    assert missing <= ours.result.caveats.keys()  # absent with a word, never 0
    assert "violations.by_receipt" in missing
    assert_same({k: v for k, v in result.figures.items() if k not in missing}, ours.result.figures)
    assert set(result.series) == set(ours.result.series)
    for name, values in result.series.items():
        assert values == pytest.approx(ours.result.series[name], rel=1e-9), name
    return result, run


def assert_same(figures: Mapping[str, float], ours: Mapping[str, float]) -> None:
    """Every figure is the same, the names too; integers exactly."""
    assert set(figures) == set(ours) - set(ONLY_HERE)
    for name, value in figures.items():
        if isinstance(value, int):
            assert ours[name] == value, name
        else:
            assert ours[name] == pytest.approx(value, rel=1e-9), name


@pytest.mark.few(13)
@pytest.mark.parametrize("seed", range(40))
def test_any_scenario_runs_as_the_classes_do(seed: int) -> None:
    lockstep(anything(seed), seed)


@pytest.mark.parametrize("groups", [(4,), (3, 3), (2, 3, 2)])
def test_published_pruning_runs_through_the_classes_and_violates_causal_order(
    groups: tuple[int, ...],
) -> None:
    """Evropeytsev et al. 2016, section 3.2, forgets what is under way."""
    config = skewed(groups, "published")
    result = simulate(config, 1)
    assert result.engine == "reference"
    assert result.figures["promise_violations"] > 0
    with pytest.raises(ConfigError, match="published pruning"):
        simulate(config, 1, "compiled")


def test_a_delivery_before_a_cause_is_seen_by_the_idr_beside_and_never_a_figure() -> None:
    config = skewed((2, 2))
    s = prepare(config, 1)
    first, last = int(s.message["sender"][0]), len(s.message) - 1
    s.sets[0, first, int(IDR_DEPENDENCIES), last >> 6] = np.uint64(1 << (last & 63))
    s.process["high"][first] = 1
    loop.run(s)
    assert s.counters.violations > 0
    with pytest.raises(ConfigError, match="causal violations"):
        make_result(config, 1, s)


@pytest.mark.parametrize("groups", [(4,), (3, 3), (2, 3, 2)])
def test_safe_pruning_keeps_causal_order_on_the_same_links(groups: tuple[int, ...]) -> None:
    result, _ = lockstep(skewed(groups, "safe"), 1)
    assert result.figures["promise_violations"] == result.figures["lemma3.missing"] == 0
    assert result.figures["lemma3.extra"] == 0


def test_waits_beyond_the_counted_ones_have_no_quantiles() -> None:
    """Rather no figure than a wrong one: these waits are counted together."""
    slow = SimulationConfig(
        Hierarchy((2, 2), 2),
        "hierarchical",
        links=Links(Delay(0.0, 20.0, "uniform")),
        workload=Workload("random", messages=100),
        duration_s=1.0,
    )
    theirs, ours = run_readable(slow, 1).figures, run_hierarchy(slow, 1).figures
    assert theirs["wait_ms.p50"] > 1100
    assert not {"wait_ms.p50", "wait_ms.p99"} & set(ours)
    for name in ("wait_ms.mean", "wait_ms.max"):
        assert ours[name] == pytest.approx(theirs[name], rel=1e-9)


def test_what_dependency_sequences_would_carry() -> None:
    """Evropeytsev et al. 2016, section 3.2: among external peers alone, a pair for each other one
    heard of.
    """
    config = skewed((3,), "safe")
    _, run = lockstep(config, 2)
    outside = config.topology.external_peers()  # type: ignore[union-attr]
    heard: dict[int, set[int]] = {at: set() for at in outside}
    pairs = []
    for _, kind, member, message in run.events():
        sender = run.sender[message]
        if member in heard and sender in heard:
            if kind == DELIVERED:
                heard[member].add(sender)
            elif sender == member:
                pairs.append(8 * len(heard[member]))
    figures = run_hierarchy(config, 2).figures
    assert figures["ds.control_bytes"] == pytest.approx(sum(pairs) / len(pairs))


def test_recording_changes_nothing_and_two_runs_are_one() -> None:
    config = anything(7)
    figures = run_hierarchy(config, 3).figures
    assert figures == record_hierarchy(config, 3).result.figures
    assert figures == run_hierarchy(config, 3).figures
    assert figures != run_hierarchy(config, 4).figures


OF_MEASURE = {
    "sizes": "internal.control_bytes",
    "encoded": "external.wire_bytes",
    "violations": "idr.control_bytes",
    "ds": "ds.control_bytes",
    "storage": "super.storage_bytes",
}


@pytest.mark.parametrize("only", Measures._fields)
def test_a_measure_alone_gives_the_figures_that_all_together_give(only: str) -> None:
    everything = run_hierarchy(skewed((2, 3)), 3)
    bare = run_hierarchy(skewed((2, 3)), 3, NOTHING)
    some = run_hierarchy(skewed((2, 3)), 3, NOTHING._replace(**{only: True}))
    assert set(OF_MEASURE.values()) & set(some.figures) == {OF_MEASURE[only]}
    assert bare.figures.keys() < some.figures.keys() < everything.figures.keys()
    assert {name: everything.figures[name] for name in some.figures} == some.figures
    assert ("promise_violations" in some.caveats) == (only != "violations")
    assert bool(some.series) == (only == "storage")


def test_memory_of_the_largest_group_of_the_figures() -> None:
    links = Links(delay=Delay(0.0, 0.05))
    config = SimulationConfig(Hierarchy((450,), 450), "hierarchical", links=links, duration_s=10.0)
    assert 100e6 < bytes_hierarchy(config) < 2**30


@pytest.mark.parametrize(
    ("config", "word"),
    [
        (SimulationConfig(Mesh(3), "idr"), "on a hierarchy"),
        (
            SimulationConfig(Hierarchy((2,), 1), "hierarchical", variant="listing6"),
            "pruning and ack_after",
        ),
        (SimulationConfig(Hierarchy((2,), 1), "hierarchical", links=Links(loss=0.1)), "no loss"),
        (
            SimulationConfig(Hierarchy((2,), 1), "hierarchical", links=Links(buffer=3)),
            "receive buffers",
        ),
    ],
)
def test_what_it_can_not_run(config: SimulationConfig, word: str) -> None:
    assert word in str(can_run_hierarchy(config))
    with pytest.raises(ConfigError, match=word):
        run_hierarchy(config, 1)


def test_a_run_in_which_i_would_be_flushed_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from antecede.lab.simulate.compiled.hierarchy import engine

    links = Links(delay=Delay(0.0, 0.1, "uniform"))
    config = SimulationConfig(
        Hierarchy((2, 2), 2), "hierarchical", links=links, workload=Workload(rate_hz=20.0)
    )
    run_hierarchy(config, 0)
    monkeypatch.setattr(engine, "FLUSH_AFTER", 20)
    with pytest.raises(ConfigError, match="is silent while others"):
        run_hierarchy(config, 0)
    options = {"flush_after": 20}
    assert "options" in (can_run_hierarchy(dataclasses.replace(config, options=options)) or "")
    figures = run_readable(dataclasses.replace(config, options=options), 0).figures
    assert figures["promise_violations"] == 0
