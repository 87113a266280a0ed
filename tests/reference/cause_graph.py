"""Graphs of declared causes: ancestors, immediate edges, and comparison of versions.

A graph maps each node to its causes. A version is a set of nodes and stands for them and all
their ancestors. Causes that are not nodes of the graph are ignored: the trace does not hold
them. Everything is computed from the sets of ancestors themselves.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import Generic, NamedTuple, TypeVar

from antecede.errors import CycleError

Node = TypeVar("Node", bound=Hashable)


class Conflict(NamedTuple, Generic[Node]):
    """How two versions differ, seen from the last point that all of the difference follows."""

    only_a: set[Node]
    only_b: set[Node]
    shared: set[Node]
    """In both, yet concurrent with part of the difference, so that a merge must look at it."""
    common: set[Node]
    """Heads of the greatest common version that precedes every node of the other three sets."""


class Graph(Generic[Node]):
    """A graph of declared causes; raises CycleError when it is none."""

    def __init__(self, causes: Mapping[Node, Iterable[Node]]) -> None:
        self.causes = {
            node: {cause for cause in declared if cause in causes}
            for node, declared in causes.items()
        }
        self._above: dict[Node, frozenset[Node]] = {}
        for node in self.causes:
            self._climb(node)

    def _climb(self, start: Node) -> None:
        """Fill in the ancestors of a node and of all above it, without recursion."""
        path, on_path = [start], {start}
        while path:
            node = path[-1]
            todo = [cause for cause in self.causes[node] if cause not in self._above]
            if node in self._above or not todo:
                above = (self._above[cause] for cause in self.causes[node])
                self._above[node] = frozenset().union(self.causes[node], *above)
                on_path.discard(path.pop())
            elif todo[0] in on_path:
                raise CycleError("declared causes form a cycle", record_id=str(todo[0]))
            else:
                path.append(todo[0])
                on_path.add(todo[0])

    def ancestors(self, node: Node) -> frozenset[Node]:
        """Return all ancestors of a node, without itself."""
        return self._above[node]

    def version(self, heads: Iterable[Node]) -> set[Node]:
        """Return the nodes of a version: its heads and all their ancestors."""
        heads = set(heads)
        return heads.union(*(self._above[head] for head in heads))

    def heads(self, nodes: Collection[Node]) -> set[Node]:
        """Return those of `nodes` that are no ancestor of another of them."""
        inner = set().union(*(self._above[node] for node in nodes))
        return set(nodes) - inner

    def version_contains(self, heads: Iterable[Node], target: Node) -> bool:
        """Tell whether the target is in the version."""
        return target in self.version(heads)

    def immediate_edges(self) -> set[tuple[Node, Node]]:
        """Return the (cause, child) edges that no longer path implies."""
        return {
            (cause, node)
            for node, causes in self.causes.items()
            for cause in causes
            if not any(cause in self._above[other] for other in causes)
        }

    def diff(self, a: Iterable[Node], b: Iterable[Node]) -> tuple[set[Node], set[Node]]:
        """Return what only version a has and what only version b has."""
        in_a, in_b = self.version(a), self.version(b)
        return in_a - in_b, in_b - in_a

    def conflicting(self, a: Iterable[Node], b: Iterable[Node]) -> Conflict[Node]:
        """Return the difference of two versions with all that is concurrent with it.

        Candidates for the common version are totally ordered by inclusion: whatever one has
        beyond another follows all of that other. Cutting what some outside node does not follow
        until nothing is cut reaches the greatest.
        """
        in_a, in_b = self.version(a), self.version(b)
        common: set[Node] = in_a & in_b
        everything = in_a | in_b
        while True:
            outside = everything - common
            kept = common.intersection(*(self._above[node] for node in outside))
            if kept == common:
                return Conflict(in_a - in_b, in_b - in_a, outside & in_a & in_b, self.heads(common))
            common = kept
