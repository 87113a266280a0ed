"""The compiled mesh beside the protocols' own classes: the same run, message by message."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from antecede.errors import ConfigError
from antecede.lab.simulate.compiled.mesh import engine, loop
from antecede.lab.simulate.compiled.mesh.engine import (
    PROTOCOLS,
    bytes_mesh,
    can_run_mesh,
    record_mesh,
    run_mesh,
)
from antecede.lab.simulate.config.model import Links, Partition, SimulationConfig, Special, Workload
from antecede.lab.simulate.delays import DISTRIBUTIONS, Delay
from antecede.lab.simulate.outputs.result import EVERYTHING, NOTHING, VIOLATION_METRICS
from antecede.lab.simulate.reference_engine import run_readable
from antecede.lab.simulate.schedule import build_schedule
from antecede.lab.simulate.topology import Hierarchy, Mesh

CAUSAL = tuple(pair for pair in PROTOCOLS if pair[0] != "fifo")


def config(seed: int) -> SimulationConfig:
    """Return one of the scenarios that a mesh can have, small enough for the classes."""
    rng = random.Random(seed)
    peers = rng.choice((1, 2, 3, 5, 8, 20))
    protocol, variant = rng.choice(tuple(PROTOCOLS))
    return SimulationConfig(
        Mesh(peers),
        protocol,
        variant,
        links=_links(rng, peers),
        workload=_workload(rng, peers),
        duration_s=rng.uniform(0.05, 0.5),
        warm_s=rng.choice((0.0, 0.04)),
        sample_s=rng.choice((0.01, 0.033)),
    )


def _delay(rng: random.Random) -> Delay:
    low = rng.choice((0.0, 0.001, 0.05))
    kind = rng.choice(DISTRIBUTIONS)
    if kind == "lognormal":
        return Delay(low + 0.001, low + 0.05, kind)
    return Delay(low, low if kind == "constant" else low + rng.choice((0.0001, 0.05, 0.2)), kind)


def _links(rng: random.Random, peers: int) -> Links:
    special = [
        Special(rng.choice(("any", "peer", "0")), str(rng.randrange(peers)), _delay(rng))
        for _ in range(rng.randrange(3))
    ]
    places = rng.randrange(4)
    matrix = tuple(tuple(rng.choice((0.0, 0.02)) for _ in range(places)) for _ in range(places))
    return Links(_delay(rng), tuple(special), matrix or None, fifo=rng.random() < 0.3)


def _workload(rng: random.Random, peers: int) -> Workload:
    kind = rng.choice(("periodic", "poisson", "random"))
    every = rng.choice((0.002, 0.02))
    silent = rng.choice((0, peers // 2))
    return Workload(kind, Delay(every, 2 * every), 0.5 / every, messages=200, silent=silent)


def assert_same(given: SimulationConfig, seed: int) -> None:
    """Hold the engine to the readable one, message by message."""
    found = record_mesh(given, seed)
    result, run = run_readable(given, seed, record=True)
    assert [
        (now, at, message) for at, message, now in found.deliveries.tolist()
    ] == run.deliveries()
    sizes = np.column_stack((found.control_bytes, found.wire_bytes))
    if given.topology.size > 1:  # who is alone transmits nothing
        sent = [(one.message, one.control_bytes, one.wire_bytes) for one in run.transmissions]
        assert [(m, *row) for m, row in enumerate(sizes.tolist())] == sent
    assert set(found.result.series) == set(result.series)
    for name, values in result.series.items():
        assert values == pytest.approx(found.result.series[name], rel=1e-9), name
    assert found.result.figures == pytest.approx(dict(result.figures), rel=1e-9)
    assert not found.result.caveats
    assert run_mesh(given, seed) == found.result


@pytest.mark.few(23)
@pytest.mark.parametrize("seed", range(60))
def test_lockstep_over_random_scenarios(seed: int) -> None:
    assert_same(config(seed), seed)


@pytest.mark.slow
@pytest.mark.parametrize("pair", PROTOCOLS)
def test_lockstep_of_each_protocol_while_much_is_held(pair: tuple[str, str]) -> None:
    links = Links(Delay(0.0, 0.3, "uniform"))
    quick = Workload(interval=Delay(0.007, 0.009))
    given = SimulationConfig(
        Mesh(20), *pair, links=links, workload=quick, duration_s=1.0, warm_s=0.2
    )
    assert_same(given, 7)


def test_lockstep_of_senders_far_apart_in_pace() -> None:
    workload = Workload("random", messages=3000, silent=1)
    given = SimulationConfig(
        Mesh(3), workload=workload, links=Links(Delay(0.0, 0.01)), duration_s=30.0
    )
    assert_same(given, 1)
    assert_same(replace(given, protocol="fifo"), 1)


def test_samples_of_every_microsecond_come_before_its_events() -> None:
    quick = Workload(interval=Delay(0.0002, 0.0004))
    links = Links(Delay(0.0, 0.001))
    assert_same(
        SimulationConfig(Mesh(5), links=links, workload=quick, duration_s=0.003, sample_s=1e-6), 1
    )


@pytest.mark.parametrize("pair", PROTOCOLS)
def test_deliveries_before_a_cause_are_counted_as_the_judge_does(pair: tuple[str, str]) -> None:
    links = Links(Delay(0.0, 0.3, "uniform"))
    given = SimulationConfig(Mesh(8), *pair, links=links, duration_s=2.0)
    result = run_readable(given, 3)
    found = run_mesh(given, 3)
    for name in VIOLATION_METRICS:
        assert found.figures[name] == result.figures[name], name
    assert found.figures["violations.by_receipt"] > 0
    assert (found.figures["violations.by_delivery"] > 0) is (pair[0] == "fifo")


@pytest.mark.few(2)
@pytest.mark.parametrize("pair", [("idr", ""), ("fifo", "")])
@pytest.mark.parametrize("messages", [4020, 4032, 4100])
def test_the_judge_counts_the_same_if_pasts_fill_the_ring(
    pair: tuple[str, str], messages: int
) -> None:
    links = Links(Delay(0.0, 5.0, "uniform"))
    workload = Workload("random", messages=messages)
    given = SimulationConfig(
        Mesh(3), *pair, links=links, workload=workload, duration_s=0.9, sample_s=0.5
    )
    expected, found = run_readable(given, 1), run_mesh(given, 1)
    for name in VIOLATION_METRICS:
        assert found.figures[name] == expected.figures[name], name


def test_a_large_mesh_is_judged() -> None:
    given = SimulationConfig(Mesh(260), "fifo", links=Links(Delay(0.0, 0.05)), duration_s=0.02)
    expected, found = run_readable(given, 0).figures, run_mesh(given, 0).figures
    assert [found[name] for name in VIOLATION_METRICS] == [
        expected[name] for name in VIOLATION_METRICS
    ]
    assert found["violations.by_delivery"] > 0


def test_a_run_whose_messages_take_longer_than_the_longest_delay_is_refused() -> None:
    given = SimulationConfig(Mesh(5), links=Links(Delay(0.0, 0.3, "uniform")), duration_s=5.0)
    s = engine.prepare(given, 0)._replace(longest_us=np.uint64(1))
    loop.run(s)
    with pytest.raises(ConfigError, match="use --engine reference"):
        engine._make_result(given, 0, s, EVERYTHING)


def early(
    given: SimulationConfig, seed: int, deliveries: Sequence[Any], log_at: Sequence[int]
) -> int:
    """Count deliveries before a cause with vectors of what was delivered, and nothing else."""
    sender = build_schedule(given, seed).sender.tolist()
    size = given.topology.size
    known = np.zeros((size, size), dtype=np.int64)
    stamps = np.zeros((len(sender), size), dtype=np.int64)
    found = done = 0
    for message in range(len(sender) + 1):
        until = log_at[message] if message < len(sender) else len(deliveries)
        for member, delivered, _ in deliveries[done:until]:
            needed = stamps[delivered].copy()
            needed[sender[delivered]] -= 1
            found += bool((known[member] < needed).any())
            known[member] = np.maximum(known[member], stamps[delivered])
        done = until
        if message < len(sender):
            known[sender[message], sender[message]] += 1
            stamps[message] = known[sender[message]]
    return found


@pytest.mark.parametrize("pair", CAUSAL)
def test_no_delivery_before_a_cause(pair: tuple[str, str]) -> None:
    given = SimulationConfig(Mesh(60), *pair, links=Links(Delay(0.0, 0.05)), duration_s=0.4)
    run = record_mesh(given, 3)
    assert run.result.figures["wait_ms.max"] > 0
    assert early(given, 3, run.deliveries.tolist(), run.deliveries_before.tolist()) == 0
    weaker = replace(given, protocol="fifo", variant="")
    loose = record_mesh(weaker, 3)
    assert early(weaker, 3, loose.deliveries.tolist(), loose.deliveries_before.tolist()) > 100


def test_every_exact_protocol_delivers_the_same() -> None:
    base = SimulationConfig(Mesh(30), links=Links(Delay(0.0, 0.1)), duration_s=0.5)
    runs = [record_mesh(replace(base, protocol=p, variant=v), 5) for p, v in CAUSAL]
    for run in runs[1:]:
        assert (run.deliveries == runs[0].deliveries).all()
    idr, ds = (run.result.figures["peer.control_bytes"] for run in runs[:2])
    assert idr < ds


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({"topology": Hierarchy((3,), 2)}, "mesh"),
        ({"protocol": "ses"}, "idr"),
        ({"options": {"keep": 3}}, "options"),
        ({"links": Links(loss=0.1)}, "no loss"),
        ({"links": Links(partitions=(Partition(0.1, 0.2, (0,)),))}, "partitions"),
        ({"links": Links(buffer=3, service_s=0.1)}, "receive buffers"),
        ({"links": Links(Delay(1, 100))}, "67 s"),
        ({"workload": Workload(fanout=2)}, "no addressees"),
        ({"workload": Workload("replay", path="x")}, "replay"),
    ],
)
def test_what_it_can_not_run_it_says(changed: dict[str, Any], word: str) -> None:
    given = replace(SimulationConfig(Mesh(9)), **changed)
    assert word in (can_run_mesh(given) or "")
    with pytest.raises(ConfigError, match=word):
        run_mesh(given, 1)
    assert can_run_mesh(SimulationConfig(Mesh(9))) is None


def test_memory_of_the_largest_group_of_000() -> None:
    for protocol in ("idr", "bss"):
        given = SimulationConfig(
            Mesh(900), protocol, links=Links(Delay(0.0, 0.05)), duration_s=10.0
        )
        assert bytes_mesh(given) < 1 << 27


OF_MEASURE = {
    "sizes": "peer.control_bytes",
    "encoded": "peer.wire_bytes",
    "violations": "promise_violations",
    "storage": "peer.storage_bytes",
}


@pytest.mark.parametrize("only", OF_MEASURE)
def test_a_measure_alone_gives_the_figures_that_all_together_give(only: str) -> None:
    given = SimulationConfig(Mesh(7), "idr")
    everything, bare = run_mesh(given, 3), run_mesh(given, 3, NOTHING)
    some = run_mesh(given, 3, NOTHING._replace(**{only: True}))
    assert set(OF_MEASURE.values()) & set(some.figures) == {OF_MEASURE[only]}
    assert bare.figures.keys() < some.figures.keys() < everything.figures.keys()
    assert {name: everything.figures[name] for name in some.figures} == some.figures
