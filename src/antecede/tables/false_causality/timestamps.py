"""Stamps of the messages of ONE observer, as arrays: the input of pair counts.

Times are whole microseconds, members the numbers 0 to senders - 1; rows have any order. Along a
sender's own numbers, its linear times and the counts of a message's topics grow, and its own vector
entry is its number. `check_timestamps` rejects anything else. Physical clocks may go back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from antecede.core.clocks import Bounds
from antecede.errors import LocalError
from antecede.tables.false_causality.kernels.rule_terms import Counters, Words
from antecede.tables.kernels import Graph, Ints

ALL_TOPICS = (1 << 64) - 1
MAX_TOPICS = 64
NS_PER_US = 1000


class BoundColumns(NamedTuple):
    """Bounds of clocks and delays, in microseconds, by sender (`core.clocks.bounds`)."""

    accuracy: Ints  # [senders] largest distance of a clock from true time (lambda, epsilon)
    path: Ints  # [senders, senders] least delay over any path; 0 on the diagonal
    least: Ints  # [senders, senders] least delay of the channel between them
    most: Ints  # [senders, senders] largest delay of that channel


class Stamps(NamedTuple):
    """Stamps of the messages of one observer."""

    sender: Ints  # [n] from 0
    seq: Ints  # [n] the sender's own number for the message, ascending in the order of sending
    lt: Ints  # [n] linear time (repaired: less for every cause)
    pt_us: Ints  # [n] the sender's clock at the send
    vector: Counters | None
    """[n, senders] vector time by receipt or delivery: the highest number of each sender among the
    message and its past. None if `past` has the causes.
    """
    arrival: Ints  # [n] rank of the arrival at the observer; distinct
    limits: BoundColumns | None = None  # for rules that read physical time
    topics: Words | None = None  # [n] bits of the message's topics (e.P); for Nakayama's rules
    counts: Counters | None = None  # [n, topics] topic vector (e.TV); only e.P is read
    subscription: int = ALL_TOPICS  # topics of the observer (p.S), as bits
    lt_printed: Ints | None = None  # [n] by Tsuneizumi et al.'s published clock; None: as `lt`
    past: Graph | None = None  # declared causes instead of vectors: replies, commits

    @property
    def sender_count(self) -> int:
        """Number of senders."""
        if self.vector is not None:
            return int(self.vector.shape[1])
        return int(self.sender.max(initial=-1)) + 1


def limits_of(bounds: Bounds[int], members: Sequence[int], senders: Sequence[int]) -> BoundColumns:
    """Return bounds in whole microseconds; sender k of the timestamps is `senders[k]`.

    Accuracies and largest delays are rounded up, least delays down. Paths may use any of `members`.
    """
    everyone = sorted({*members, *senders})
    place = {member: at for at, member in enumerate(everyone)}
    chosen = np.array([place[member] for member in senders], dtype=np.int64)
    least = _list_delays(bounds, everyone, 0)
    path = least.copy()
    np.fill_diagonal(path, 0)
    if bounds.channels_ns:  # otherwise no detour is shorter than the channel
        for via in range(len(everyone)):
            np.minimum(path, path[:, via, None] + path[None, via, :], out=path)
    pick = np.ix_(chosen, chosen)
    accuracy = [-(-bounds.error_ns(member) // NS_PER_US) for member in senders]
    return BoundColumns(
        np.array(accuracy, dtype=np.int64),
        path[pick],
        least[pick],
        _list_delays(bounds, everyone, 1)[pick],
    )


def _list_delays(bounds: Bounds[int], members: Sequence[int], which: int) -> Ints:
    """Return the least (0) or largest (1) delay of every channel."""
    place = {member: at for at, member in enumerate(members)}
    default = (bounds.least_ns, bounds.most_ns)[which]
    found = np.full((len(members), len(members)), _to_microseconds(default, which), dtype=np.int64)
    for (source, target), delays in bounds.channels_ns.items():
        if source in place and target in place:
            found[place[source], place[target]] = _to_microseconds(delays[which], which)
    return found


def _to_microseconds(ns: int, which: int) -> int:
    return -(-ns // NS_PER_US) if which else ns // NS_PER_US


def check_timestamps(timestamps: Stamps) -> None:
    """Raise LocalError for arrays that no execution produces."""
    n, senders = len(timestamps.sender), timestamps.sender_count
    for name in ("seq", "lt", "pt_us", "arrival", "vector", "topics", "counts", "lt_printed"):
        column = getattr(timestamps, name)
        if column is not None and len(column) != n:
            raise LocalError(f"column {name} has {len(column)} rows, but column sender has {n}")
    if (timestamps.vector is None) == (timestamps.past is None):
        raise LocalError("give either vector or past as the source of causality")
    if n and not 0 <= timestamps.sender.min() <= timestamps.sender.max() < senders:
        raise LocalError(f"unknown sender; expected 0 to {senders - 1}")
    if timestamps.past is None:
        _check_growth(timestamps)
    elif (timestamps.lt[timestamps.past.cause] >= timestamps.lt[timestamps.past.effect()]).any():
        raise LocalError("column lt does not grow from every cause to its effect")


def _check_growth(timestamps: Stamps) -> None:
    """Raise LocalError unless numbers, linear times and topic counts grow along each sender."""
    order = np.lexsort((timestamps.seq, timestamps.sender))
    for name in ("seq", "lt", "lt_printed"):
        column = getattr(timestamps, name)
        if column is not None:
            _check_column(timestamps, name, column, order)
    if timestamps.vector is not None:
        own = timestamps.vector[np.arange(len(order)), timestamps.sender]
        if (own != timestamps.seq).any():
            row = int(np.flatnonzero(own != timestamps.seq)[0])
            raise LocalError(
                f"the vector of message {timestamps.seq[row]} of sender {timestamps.sender[row]} "
                f"has {own[row]} as its own entry; expected the message's number"
            )
    if timestamps.topics is not None and timestamps.counts is not None:
        for topic in range(timestamps.counts.shape[1]):
            about = (timestamps.topics[order] >> np.uint64(topic)) & np.uint64(1) != 0
            _check_column(timestamps, f"topic {topic}", timestamps.counts[:, topic], order[about])


def _check_column(timestamps: Stamps, name: str, column: Ints | Counters, order: Ints) -> None:
    falls = (np.diff(column[order]) <= 0) & (np.diff(timestamps.sender[order]) == 0)
    if falls.any():
        at = int(np.flatnonzero(falls)[0])
        raise LocalError(
            f"{name} does not grow from message {timestamps.seq[order[at]]} of sender "
            f"{timestamps.sender[order[at]]} to its message {timestamps.seq[order[at + 1]]}"
        )
