"""What clocks count of members where the log does not have the event that they count.

A vector clock says how many events of each member came before (Fidge 1988; Mattern 1989), those too
that nobody wrote down. So a cut below such a count does not hold all that came before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow
import pyarrow.compute

from antecede.kernels.topological import Ints

pa: Any = pyarrow
pc: Any = pyarrow.compute
UNLOGGED: Final = "an event that the trace does not have"


class Unlogged(NamedTuple):
    """Entries of clocks [entries]: the event `row` counts `number` events of `member`, and the last
    of these is not there.
    """

    row: Ints
    member: Ints
    number: Ints


def unlogged(
    events: pyarrow.Table, member: Ints, position: Ints, members: Sequence[str]
) -> Unlogged:
    """Return such entries of the clocks of events.

    `member`, `position` [events]: of each the number of its member, and its own entry. What is
    counted behind a member's last event is taken as that one: no cut goes further.
    """
    lists = [events[name].combine_chunks() for name in ("clock_members", "clock_counts")]
    names = pc.list_flatten(lists[0])
    if not len(names):
        nothing = np.empty(0, np.int64)
        return Unlogged(nothing, nothing, nothing)
    row = pc.list_parent_indices(lists[0]).to_numpy().astype(np.int64)
    of = pc.fill_null(pc.index_in(names, pa.array(list(members))), -1).to_numpy().astype(np.int64)
    count = pc.fill_null(pc.list_flatten(lists[1]), 0).to_numpy().astype(np.int64)
    last = np.zeros(len(members), np.int64)
    np.maximum.at(last, member, position)
    values, code = np.unique(np.concatenate([position, count]), return_inverse=True)
    there = member * len(values) + code[: len(position)]
    asked = of * len(values) + code[len(position) :]
    lacking = (of >= 0) & (count > 0) & (count < last[of]) & ~np.isin(asked, there)
    return Unlogged(row[lacking], of[lacking], count[lacking])
