"""A delivery to an application in the compiled hierarchy."""

from __future__ import annotations

import numpy as np

from antecede.simulate.compiled.hierarchy.accounting import group_of
from antecede.simulate.compiled.hierarchy.columns import (
    COUNTED,
    DEBT,
    DELIVERIES,
    HAVE,
    LOGGED,
    PUBLISHED,
    ROW_IN,
    ROW_OUT,
)
from antecede.simulate.compiled.hierarchy.jit import inlined
from antecede.simulate.compiled.hierarchy.network import MESSAGE
from antecede.simulate.compiled.hierarchy.sets import add, imply, note
from antecede.simulate.compiled.hierarchy.state import WAIT_BINS, State
from antecede.simulate.compiled.hierarchy.violations import follow_exactly, judge

_0, _1 = np.uint64(0), np.uint64(1)
_LAST_BIN = np.uint64(WAIT_BINS)


@inlined
def row_at(s: State, message: np.uint64, group: np.uint64) -> np.uint64:
    """Return the first row of what a message needs inside a group, or outside (NOWHERE)."""
    if group_of(s, message) == group:
        return np.uint64(s.message[message, ROW_IN])
    return np.uint64(s.message[message, ROW_OUT])


@inlined
def deliver(s: State, at: np.uint64, message: np.uint64, row: np.uint64, now: np.uint64) -> None:
    """Hand a message of another process to an application, and judge it."""
    early = imply(s, at, message, row)
    if early != _0 or s.process[at, DEBT] != _0:
        judge(s, at, message)
    elif s.pruning == PUBLISHED:
        follow_exactly(s, at, message)
    add(s, HAVE, at, message)
    note(s, at, message)
    s.at[DELIVERIES] += _1
    if message >= s.warm:
        s.at[COUNTED] += _1
    if len(s.log) != 0:
        line = s.at[LOGGED]
        s.log[line, 0], s.log[line, 1], s.log[line, 2] = at, message, now
        s.at[LOGGED] += _1


@inlined
def count_wait(s: State, message: np.uint64, node: np.uint64, now: np.uint64) -> None:
    """Count how long a message was held back that is delivered now."""
    waited = (now - np.uint64(s.nodes[node, 3])) & MESSAGE
    if message >= s.warm and waited != _0:
        s.wait_us[min(waited, _LAST_BIN)] += _1
        s.wait_sum[0] += np.int64(waited)
        s.wait_sum[1] = max(s.wait_sum[1], np.int64(waited))
