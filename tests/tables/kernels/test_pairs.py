"""Pair counts and implied edges against sets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede.errors import CycleError
from antecede.tables.kernels import graph
from antecede.tables.kernels.pairs import count_pairs

Edges = set[tuple[int, int]]


@st.composite
def dags(draw: st.DrawFn, most_parents: int = 4) -> tuple[int, Edges]:
    """Edges (effect, cause) of a graph without cycles, its nodes in no order."""
    n = draw(st.integers(1, 14))
    name = draw(st.permutations(range(n)))
    edges: Edges = set()
    for node in range(1, n):
        above = draw(st.sets(st.integers(0, node - 1), max_size=most_parents))
        edges |= {(name[node], name[p]) for p in above}
    return n, edges


def naive(n: int, edges: Edges) -> tuple[int, Edges]:
    """Ordered pairs and implied edges by growing sets until nothing changes."""
    past: list[set[int]] = [{p for c, p in edges if c == node} for node in range(n)]
    changed = True
    while changed:
        changed = False
        for node in range(n):
            more = set().union(*(past[p] for p in past[node])) - past[node]
            past[node] |= more
            changed = changed or bool(more)
    implied = {(c, p) for c, p in edges if any(p in past[q] for d, q in edges if d == c)}
    return sum(map(len, past)), implied


def make_graph(n: int, edges: Edges) -> graph.Graph:
    flat = np.array(sorted(edges), dtype=np.int64).reshape(-1, 2)
    return graph.build_graph(n, flat[:, 0], flat[:, 1])


def check(n: int, edges: Edges, words: int | None = None) -> None:
    of = make_graph(n, edges)
    counted = count_pairs(of, words)
    ordered, implied = naive(n, edges)
    assert counted.ordered == ordered
    assert counted.concurrent == n * (n - 1) // 2 - ordered
    found = zip(of.effect()[counted.redundant], of.cause[counted.redundant], strict=True)
    assert {(int(c), int(p)) for c, p in found} == implied


@given(dags())
def test_graphs(dag: tuple[int, Edges]) -> None:
    check(*dag)


@given(dags(most_parents=1))
def test_forests(dag: tuple[int, Edges]) -> None:
    check(*dag)


@pytest.mark.parametrize("seed", range(4))
def test_several_blocks(seed: int) -> None:
    chance = np.random.default_rng(seed)
    n = 200  # four blocks of one word
    edges = {
        (effect, int(cause))
        for effect in range(1, n)
        for cause in chance.integers(max(0, effect - 40), effect, size=int(chance.integers(0, 4)))
    }
    check(n, edges, words=1)
    check(n, edges)


def test_a_cycle_is_refused() -> None:
    with pytest.raises(CycleError):
        count_pairs(make_graph(2, {(0, 1), (1, 0)}))


def test_nothing_at_all() -> None:
    assert count_pairs(make_graph(0, set()))[:2] == (0, 0)
