"""Fenwick tree: prefix counts of an array in O(log n)."""

from __future__ import annotations

from antecede.tables.kernels.jit import inline


@inline
def add(tree, size, place, change):  # type: ignore[no-untyped-def]
    """Change the count at an index (from 0) of a tree of `size` counts."""
    node = place + 1
    while node <= size:
        tree[node] += change
        node += node & -node


@inline
def count_below(tree, place):  # type: ignore[no-untyped-def]
    """Return the count before an index."""
    found = 0
    node = place
    while node > 0:
        found += tree[node]
        node -= node & -node
    return found
