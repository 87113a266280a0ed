"""Rows before and after some rows of a graph of causes, in one pass along an order."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from antecede.tables.kernels import Bools, Ints, njit


class EventGraph(NamedTuple):
    """Graph of events in compressed form; see `antecede.tables.kernels.topological`."""

    offsets: Ints  # [rows + 1] cuts `causes`
    causes: Ints  # [edges] row numbers, or -1
    alive: Bools  # [rows] take part
    order: Ints  # these rows, causes first


@njit
def mark_past(steps: EventGraph, events: Bools) -> Bools:
    """Return the mask of rows before any of the `events`; an event only if before another one."""
    offsets, causes, alive, order = steps
    found = np.zeros(len(alive), np.bool_)
    for k in range(len(order) - 1, -1, -1):
        row = order[k]
        if events[row] or found[row]:
            for edge in range(offsets[row], offsets[row + 1]):
                cause = causes[edge]
                if cause >= 0 and alive[cause]:
                    found[cause] = True
    return found


@njit
def mark_future(steps: EventGraph, events: Bools) -> Bools:
    """Return the mask of rows after any of the `events`; an event only if after another one."""
    offsets, causes, alive, order = steps
    found = np.zeros(len(alive), np.bool_)
    for row in order:
        for edge in range(offsets[row], offsets[row + 1]):
            cause = causes[edge]
            if cause >= 0 and alive[cause] and (events[cause] or found[cause]):
                found[row] = True
    return found


@njit
def find_shortest_chain(steps_of: EventGraph, start: int, end: int) -> Ints:
    """Return the rows of a shortest chain from `start` to `end`, with both; empty if none."""
    offsets, causes, alive, order = steps_of
    far = np.int64(len(alive))
    steps = np.full(len(alive), far, np.int64)
    via = np.full(len(alive), np.int64(-1), np.int64)
    steps[start] = 0
    for row in order:
        if row != start:
            for edge in range(offsets[row], offsets[row + 1]):
                cause = causes[edge]
                there = cause >= 0 and alive[cause] and steps[cause] < far
                if there and steps[cause] + 1 <= steps[row]:
                    steps[row], via[row] = steps[cause] + 1, cause
        if row == end:
            break
    if steps[end] >= far:
        return np.empty(0, np.int64)
    chain = np.empty(steps[end] + 1, np.int64)
    row = end
    for k in range(steps[end], -1, -1):
        chain[k] = row
        row = via[row]
    return chain


@njit
def measure_longest_chains(steps: EventGraph) -> Ints:
    """Return the number of causes in the longest chain before each row [n]; -1 if not alive."""
    offsets, causes, alive, order = steps
    depth = np.full(len(alive), np.int64(-1), np.int64)
    for row in order:
        if alive[row]:
            depth[row] = 0
            for edge in range(offsets[row], offsets[row + 1]):
                cause = causes[edge]
                if cause >= 0 and alive[cause] and depth[cause] >= depth[row]:
                    depth[row] = depth[cause] + 1
    return depth
