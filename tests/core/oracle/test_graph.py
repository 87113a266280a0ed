"""The oracle's graphs against the test vectors of another implementation (egwalker-paper)."""

from __future__ import annotations

import gzip
import json
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede.errors import CycleError
from tests.reference.cause_graph import Graph


def expand(spans: list[dict[str, Any]]) -> Graph[int]:
    """A run of [start, end) is a chain; its first node has the declared causes."""
    parents: dict[int, list[int]] = {}
    for run in spans:
        start, end = run["span"]
        parents[start] = run["parents"]
        parents.update({node: [node - 1] for node in range(start + 1, end)})
    return Graph(parents)


def runs(nodes: set[int]) -> set[tuple[int, int]]:
    found = set()
    for _, group in groupby(enumerate(sorted(nodes)), key=lambda pair: pair[1] - pair[0]):
        run = [node for _, node in group]
        found.add((run[0], run[-1] + 1))
    return found


def covered(spans: list[list[int]]) -> set[int]:
    return {node for start, end in spans for node in range(start, end)}


def vectors(shared_data: Path, name: str, count: int) -> list[dict[str, Any]]:
    text = (shared_data / "conformance" / name).read_text()
    found = [json.loads(line) for line in text.splitlines()]
    assert len(found) == count
    return found


def test_diff_vectors(shared_data: Path) -> None:
    for case in vectors(shared_data, "diff.json", 14):
        only_a, only_b = expand(case["hist"]).diff(case["a"], case["b"])
        assert only_a == covered(case["expect_a"]), case
        assert only_b == covered(case["expect_b"]), case


def test_version_contains_vectors(shared_data: Path) -> None:
    for case in vectors(shared_data, "version_contains.json", 61):
        graph = expand(case["hist"])
        # The vectors write -1 for the root, which every version contains.
        is_root = case["target"] == -1
        found = is_root or graph.version_contains(case["frontier"], case["target"])
        assert found is case["expected"], case


def test_conflicting_vectors(shared_data: Path) -> None:
    for case in vectors(shared_data, "conflicting.json", 26):
        found = expand(case["hist"]).conflicting(case["a"], case["b"])
        expected: dict[str, set[int]] = {"OnlyA": set(), "OnlyB": set(), "Shared": set()}
        for span, side in case["expect_spans"]:
            expected[side] |= set(range(span["start"], span["end"]))
        assert found.only_a == expected["OnlyA"], case
        assert found.only_b == expected["OnlyB"], case
        assert found.shared == expected["Shared"], case
        assert found.common == set(case["expect_common"]), case


@pytest.mark.slow
def test_a_thousand_random_graphs(shared_data: Path) -> None:
    raw = (shared_data / "conformance" / "egwalker-1000-dags.json.gz").read_bytes()
    cases = json.loads(gzip.decompress(raw))
    transactions = edges = 0
    for case in cases:
        spans = case["txns"]
        graph = expand(spans)
        declared = {(p, run["span"][0]) for run in spans for p in run["parents"]}
        transactions += len(spans)
        edges += len(declared)
        # That implementation writes minimal parents only.
        assert declared <= graph.immediate_edges()
        last = spans[-1]["span"][1] - 1
        assert graph.ancestors(last) == walked(graph, last)
    assert (len(cases), transactions, edges) == (1000, 45_294, 60_807)


def walked(graph: Graph[int], node: int) -> set[int]:
    """Ancestors by a plain walk, independent of the closure that the graph keeps."""
    found: set[int] = set()
    todo = [node]
    while todo:
        for parent in graph.causes[todo.pop()] - found:
            found.add(parent)
            todo.append(parent)
    return found


graphs = st.integers(1, 9).flatmap(
    lambda size: st.tuples(
        *(st.sets(st.integers(0, max(node - 1, 0)), max_size=3) for node in range(size))
    )
)


@given(graphs)
def test_immediate_edges_are_the_least_graph_with_the_same_ancestors(
    parents: tuple[set[int], ...],
) -> None:
    graph = Graph({node: above - {node} for node, above in enumerate(parents)})
    kept = graph.immediate_edges()

    def rebuilt(edges: set[tuple[int, int]]) -> list[set[int]]:
        smaller = Graph({n: [p for p, child in edges if child == n] for n in graph.causes})
        return [walked(smaller, node) for node in graph.causes]

    whole = [walked(graph, node) for node in graph.causes]
    assert rebuilt(kept) == whole
    assert all(rebuilt(kept - {edge}) != whole for edge in kept)


def test_a_cycle_is_named() -> None:
    with pytest.raises(CycleError, match=r"id [ab]\b"):
        Graph({"a": ["b"], "b": ["a"]})
    with pytest.raises(CycleError, match="id a"):
        Graph({"a": ["a"]})


def test_parents_that_the_graph_does_not_hold_are_ignored() -> None:
    assert Graph({"a": ["gone"]}).ancestors("a") == frozenset()


@pytest.mark.slow
def test_a_long_chain_needs_no_recursion() -> None:
    size = 3000
    graph = Graph({node: [node + 1] for node in range(size)})
    assert len(graph.ancestors(0)) == size - 1
