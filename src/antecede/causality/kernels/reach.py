"""What is before and what is after some rows of a graph of causes, by one walk along an order.

Rows, edges and `order` as in `antecede.kernels.topological`.
"""

from __future__ import annotations

import numpy as np

from antecede.kernels.jit import njit
from antecede.kernels.topological import Bools, Ints


@njit
def before(order: Ints, offsets: Ints, causes: Ints, alive: Bools, events: Bools) -> Bools:
    """Return the mask of rows before any of the `events`; an event only if before another one."""
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
def behind(order: Ints, offsets: Ints, causes: Ints, alive: Bools, events: Bools) -> Bools:
    """Return the mask of rows after any of the `events`; an event only if after another one."""
    found = np.zeros(len(alive), np.bool_)
    for row in order:
        for edge in range(offsets[row], offsets[row + 1]):
            cause = causes[edge]
            if cause >= 0 and alive[cause] and (events[cause] or found[cause]):
                found[row] = True
    return found
