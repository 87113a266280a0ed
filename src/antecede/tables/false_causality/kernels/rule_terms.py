"""Input of the kernels: messages as arrays, and a rule as terms over them.

A rule orders a before b, of different senders, if one of its terms holds, at most one for a pair. A
term compares linear times, and has a window for the difference of b's and a's value for each pair
of senders. The value is the physical time, or the key of a total order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from antecede.tables.kernels import Ints

Words = npt.NDArray[np.uint64]
Counters = npt.NDArray[np.int32]
ANY, LESS, NOT_MORE = 0, 1, 2  # comparisons of linear times in a term
FAR = 1 << 61  # above every difference of times: an unbounded window


class MessageColumns(NamedTuple):
    """Messages of one observer; absent columns have no rows or width 0."""

    sender: Ints
    seq: Ints
    vector: Counters  # [n, senders]
    topics: Words  # [n] topics of the message that the observer subscribes to
    counts: Counters  # [n, topics]


class RulePlan(NamedTuple):
    """A rule over the messages of one observer."""

    lt: Ints  # [n] linear times
    value: Ints  # [n] values of its windows
    linear: Ints  # [terms] ANY, LESS or NOT_MORE
    low: Ints  # [terms, senders, senders] least difference
    high: Ints  # [terms, senders, senders] greatest difference
    topics: bool = False  # and less in all common topics, at least one
    vector: bool = False  # and in the past
    total: bool = False  # a total order by value alone, also within a sender

    def is_windowed(self, term: int) -> bool:
        """Return whether the windows of a term exclude any difference."""
        return bool((self.low[term] > -FAR).any() or (self.high[term] < FAR).any())


class Conditions(NamedTuple):
    """Conditions that a kernel applies to a pair."""

    causal: bool = False  # the first is in the past of the second
    ruled: bool = True  # a term of the rule holds
    counts: bool = False  # less in all common topics
    total: bool = False  # a total order
    own: bool = True  # pairs of one sender count
    windowed: bool = False  # the difference is in the window
