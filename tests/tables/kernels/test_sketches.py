"""Estimates of pairs: intervals hold at their confidence, exact parts stay exact."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede.errors import CycleError
from antecede.tables.kernels import sketches
from antecede.tables.kernels.arrays import Ints
from antecede.tables.kernels.graph import Graph, build_graph
from antecede.tables.kernels.pairs import count_pairs
from antecede.tables.kernels.sketches import (
    compute_factors,
    estimate_pairs,
    steps_needed,
    sum_pasts,
)
from tests.reference.cause_graph import Graph as Sets
from tests.tables.kernels.test_pairs import Edges, dags, make_graph

SHAPES = ("one past", "two chains", "wide", "near", "many", "layers")


def shape(name: str, chance: np.random.Generator, n: int) -> Graph:
    """Return a graph whose pasts are all alike, all apart, or between the two."""
    rows = np.arange(n)
    if name == "one past":  # a chain, each event naming two before it: every past holds the others
        effect = np.concatenate([rows[1:], rows[2:]])
        return build_graph(n, effect, np.concatenate([rows[:-1], rows[:-2]]))
    if name == "two chains":  # each event names the last of its own, sometimes one of the other
        cross = rows[3:][chance.random(n - 3) < 0.3]
        back = 1 + 2 * chance.integers(0, (cross - 1) // 2)
        return build_graph(
            n, np.concatenate([rows[2:], cross]), np.concatenate([rows[:-2], cross - back])
        )
    if name == "layers":
        width = max(2, n // 20)
        effect = np.repeat(rows[width:], 3)
        low = (effect // width - 1) * width
        return build_graph(n, effect, low + chance.integers(0, width, len(effect)))
    if name == "many":  # components of some twenty events
        effect = chance.integers(1, n, 2 * n)
        cause = effect // 20 * 20 + (chance.random(len(effect)) * (effect % 20)).astype(np.int64)
        return build_graph(n, effect, cause)
    effect = chance.integers(1, n, 2 * n)
    reach = effect if name == "wide" else np.minimum(effect, 30)
    return build_graph(
        n, effect, effect - 1 - (chance.random(len(effect)) * reach).astype(np.int64)
    )


def keys(chance: np.random.Generator, n: int) -> Ints:
    return chance.integers(-(2**63), 2**63 - 1, n, dtype=np.int64)


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [16, 128])
@pytest.mark.parametrize("name", SHAPES)
def test_intervals_hold_as_often_as_they_say(name: str, ranks: int) -> None:
    chance = np.random.default_rng([ranks, SHAPES.index(name)])
    below, above = compute_factors(ranks)
    bare, inside, errors, trials = 0, 0, [], 400
    for _ in range(trials // 20):
        of = shape(name, chance, 300)
        true, key = count_pairs(of).ordered, keys(chance, of.nodes)
        for seed in range(20):
            exact, rest, least, most = sum_pasts(of, key, ranks=ranks, seed=seed)
            assert least <= true <= most
            bare += exact + rest * below <= true <= exact + rest * above
            errors.append(rest / (true - exact) - 1)
            found = estimate_pairs(of, key, ranks=ranks, seed=seed)
            assert least <= found.low <= found.ordered <= found.high <= most
            inside += found.low <= true <= found.high
    # The bound is proven, so at least 95 % but for what 400 draws can miss of it.
    assert bare / trials >= 0.95 - 3 * math.sqrt(0.95 * 0.05 / trials)
    assert inside >= bare
    assert abs(np.mean(errors)) <= 4 * np.std(errors) / math.sqrt(trials)
    assert np.std(errors) <= 1.2 / math.sqrt(ranks - 2)
    if name == "one past":  # the worst case: the bound is not met by being far too wide
        assert np.std(errors) >= 0.6 / math.sqrt(ranks - 2)
        assert bare < trials


@given(dags(), st.integers(0, 5))
def test_small_graphs_against_sets(dag: tuple[int, Edges], seed: int) -> None:
    n, edges = dag
    of = make_graph(n, edges)
    causes = {node: [p for c, p in edges if c == node] for node in range(n)}
    past = Sets(causes)
    true = sum(len(past.ancestors(node)) for node in range(n))
    found = estimate_pairs(of, np.arange(n), ranks=200, seed=seed)
    assert len(edges) <= found.high
    assert found.low <= found.high
    assert abs(found.ordered - true) <= 0.45 * true  # five times and more the deviation of one past
    assert (found.low == found.high) <= (found.ordered == true)


@given(dags(most_parents=1))
def test_forests_are_exact(dag: tuple[int, Edges]) -> None:
    of = make_graph(*dag)
    exact = count_pairs(of).ordered
    assert estimate_pairs(of, np.arange(of.nodes), ranks=16)[:3] == (exact, exact, exact)
    assert steps_needed(of) == 0


@pytest.mark.parametrize("name", SHAPES)
def test_neither_blocks_nor_the_order_of_rows_change_a_figure(name: str) -> None:
    chance = np.random.default_rng(7)
    of = shape(name, chance, 500)
    key = keys(chance, of.nodes)
    found = estimate_pairs(of, key, ranks=100)
    assert estimate_pairs(of, key, ranks=100, width=1) == found
    assert estimate_pairs(of, key, ranks=100, width=7) == found
    other = chance.permutation(of.nodes)
    moved = np.empty_like(key)
    moved[other] = key
    again = build_graph(of.nodes, other[of.effect()], other[of.cause])
    assert estimate_pairs(again, moved, ranks=100) == found
    if name != "one past":  # there bounds that hold for certain meet
        assert estimate_pairs(of, key, ranks=100, seed=1) != found


def test_a_deep_chain_of_merges_keeps_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    slots = list[int]()
    inner = sketches._sum_sketches

    def noted(*args: Any) -> Any:
        slots.append(args[-1])
        return inner(*args)

    monkeypatch.setattr(sketches, "_sum_sketches", noted)
    estimate_pairs(shape("one past", np.random.default_rng(1), 5000), np.arange(5000), ranks=16)
    assert slots[0] <= 4


def test_ends_of_the_interval_are_means_of_tails() -> None:
    draws = np.random.default_rng(3).gamma(64, size=2_000_000)
    values = np.sort(63 / draws)
    tail = len(values) // 40
    low, high = compute_factors(64, 0.95)
    assert 1 / low == pytest.approx(values[-tail:].mean(), rel=2e-3)
    assert 1 / high == pytest.approx(values[:tail].mean(), rel=2e-3)
    assert compute_factors(1024)[0] > compute_factors(64)[0]


def test_a_cycle_is_refused_and_nothing_is_nothing() -> None:
    with pytest.raises(CycleError):
        estimate_pairs(make_graph(2, {(0, 1), (1, 0)}), np.arange(2))
    assert estimate_pairs(make_graph(0, set()), np.arange(0))[:3] == (0, 0, 0)
