"""Graph kernels against naive ones: edges by name, causal order, cycles."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede.errors import CycleError
from antecede.tables.kernels import graph

Causes = list[set[int]]


@st.composite
def digraphs(draw: st.DrawFn) -> Causes:
    """Any graph, cycles and self-loops too."""
    n = draw(st.integers(0, 9))
    node = st.integers(0, max(0, n - 1))
    return [draw(st.sets(node, max_size=3)) for _ in range(n)]


def make_graph(causes: Causes) -> graph.Graph:
    pairs = [(effect, cause) for effect, above in enumerate(causes) for cause in above]
    flat = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return graph.build_graph(len(causes), flat[:, 0], flat[:, 1])


def reaches(causes: Causes, node: int) -> set[int]:
    """Nodes above `node`, by following causes other than the node itself."""
    seen: set[int] = set()
    todo = [p for p in causes[node] if p != node]
    while todo:
        above = todo.pop()
        if above not in seen:
            seen.add(above)
            todo += [p for p in causes[above] if p != above]
    return seen


@given(digraphs())
def test_cycles_are_the_nodes_that_reach_themselves(causes: Causes) -> None:
    above = [reaches(causes, node) for node in range(len(causes))]
    number = graph.nodes_on_cycles(make_graph(causes))
    assert [n >= 0 for n in number] == [node in above[node] for node in range(len(causes))]
    for a in range(len(causes)):
        for b in range(len(causes)):
            together = a in above[b] and b in above[a]
            assert together == (number[a] == number[b] >= 0)


@given(digraphs())
def test_one_cycle_is_one(causes: Causes) -> None:
    circle = graph.find_cycle(make_graph(causes))
    acyclic = all(node not in reaches(causes, node) for node in range(len(causes)))
    assert (not circle) == acyclic
    assert len(set(circle)) == len(circle)
    for node, above in zip(circle, circle[1:] + circle[:1], strict=True):
        assert above in causes[node]


@given(digraphs())
def test_causes_first_or_an_error_that_names_the_rows(causes: Causes) -> None:
    of = make_graph(causes)
    if graph.find_cycle(of):
        with pytest.raises(CycleError, match="rows"):
            graph.sort_causes_first(of)
        return
    order = graph.sort_causes_first(of).tolist()
    assert sorted(order) == list(range(len(causes)))
    place = {node: k for k, node in enumerate(order)}
    for node, above in enumerate(causes):
        assert all(place[p] < place[node] for p in above if p != node)


def test_a_long_chain_and_a_long_circle_need_no_deep_stack() -> None:
    n = 300_000
    chain = graph.build_graph(n, np.arange(n - 1), np.arange(1, n))
    assert graph.sort_causes_first(chain)[0] == n - 1
    circle = graph.build_graph(n, np.arange(n), (np.arange(n) + 1) % n)
    assert (graph.nodes_on_cycles(circle) == 0).all()


def test_edges_by_name_missing_double_own_and_null() -> None:
    events = pa.table(
        {
            "id": ["a", "b", "c"],
            "causes": pa.array([[], ["a", "a", "nowhere", None], ["c", "b"]]),
        }
    )
    rows = graph.edge_table(events).to_pylist()
    assert sorted((r["effect"], r["cause_id"], r["cause"]) for r in rows[:2]) == [
        (1, "a", 0),
        (1, "nowhere", None),
    ]
    assert sorted((r["effect"], r["cause_id"], r["cause"]) for r in rows[2:]) == [
        (2, "b", 1),
        (2, "c", 2),
    ]


def test_ids_belong_to_their_run() -> None:
    events = pa.table(
        {
            "run": ["x", "x", "x1", None],
            "id": ["a", "b", "a", "a"],
            "causes": pa.array([[], ["a"], [], ["b"]], pa.list_(pa.string())),
        }
    )
    assert len(set(graph.keys(events).to_pylist())) == 4
    rows = graph.edge_table(events).to_pylist()
    assert [(r["effect"], r["cause"]) for r in rows] == [(1, 0), (3, None)]


def test_no_rows_and_several_chunks() -> None:
    empty = pa.table(
        {"id": pa.array([], pa.string()), "causes": pa.array([], pa.list_(pa.string()))}
    )
    assert len(graph.edge_table(empty)) == 0
    part = pa.table({"id": ["a"], "causes": pa.array([["b"]])})
    other = pa.table({"id": ["b"], "causes": pa.array([["a"]])})
    both = graph.edge_table(pa.concat_tables([part, other]))
    assert both["cause"].to_pylist() == [1, 0]
