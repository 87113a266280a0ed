"""What the kernels of the meter count over: messages as arrays, and a rule as terms on them.

A rule orders a before b, of different senders, when one of its terms holds; no two terms hold of
the same pair. A term is a comparison of linear times and a window for what b's value exceeds
a's by, one window for each pair of senders. The value is the physical time, or what a total
order goes by.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from antecede.tables.kernels import Ints

ANY, LESS, NOT_MORE = 0, 1, 2
"""How a term compares linear times."""
FAR = 1 << 61
"""Beyond every difference of times: a window up to here has no end."""


class Facts(NamedTuple):
    """Messages of one observer (`tables.false_causality.timestamps`).

    Absent columns have no rows or width 0.
    """

    sender: Ints
    seq: Ints
    vector: npt.NDArray[np.int32]
    """[n, senders]"""
    topics: npt.NDArray[np.uint64]
    """[n] topics of the message that the observer subscribes to."""
    counts: npt.NDArray[np.int32]
    """[n, topics]"""


class Plan(NamedTuple):
    """A rule over these messages."""

    lt: Ints
    """[n] linear times that it reads."""
    value: Ints
    """[n] what its windows are about."""
    linear: Ints
    """[terms] ANY, LESS or NOT_MORE."""
    low: Ints
    """[terms, senders, senders] least difference."""
    high: Ints
    """[terms, senders, senders] greatest difference."""
    topics: bool = False
    """And less in all common topics, of which there are some."""
    vector: bool = False
    """And in the past."""
    total: bool = False
    """A total order by value alone, also within a sender."""
