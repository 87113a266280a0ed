"""Stamps of the messages that ONE observer received, as arrays: the input of the meter.

Times are whole microseconds, members the numbers 0 to senders - 1. Every message stands once,
in any order of rows. Along the own numbers of a sender its linear times and the counts of the
topics that a message is about grow, and its own entry of its vector is its number. `check_stamps`
refuses anything else. Physical clocks may go back.
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


class Limits(NamedTuple):
    """Bounds of clocks and delays, in microseconds, by sender (`core.clocks.bounds`)."""

    accuracy: Ints  # [senders] no clock is further from true time (lambda, epsilon)
    path: Ints  # [senders, senders] least delay over any path from one to another; 0 to itself
    least: Ints  # [senders, senders] least delay of the channel between them
    most: Ints  # [senders, senders] largest delay of that channel


class Stamps(NamedTuple):
    """The messages of one observer."""

    sender: Ints  # [n] from 0
    seq: Ints  # [n] the sender's own number for the message, ascending in the order of sending
    lt: Ints  # [n] linear time (repaired: less for every cause)
    pt_us: Ints  # [n] the sender's clock at the sending
    vector: Counters | None
    """[n, senders] vector time by receipt or delivery: the highest number of each sender that is
    in the past of the message or is the message itself. None where `past` tells the causes."""
    arrival: Ints  # [n] order in which the observer got them; distinct
    limits: Limits | None = None  # needed by rules that read physical time
    topics: Words | None = None  # [n] bits of the message's topics (e.P); for Nakayama's rules
    counts: Counters | None = None  # [n, topics] topic vector (e.TV); only e.P is read
    subscription: int = ALL_TOPICS  # topics of the observer (p.S), as bits
    lt_printed: Ints | None = None  # [n] by Tsuneizumi et al.'s clock as printed; None: as `lt`
    past: Graph | None = None  # declared causes instead of vectors: replies, commits

    @property
    def senders(self) -> int:
        """Number of senders."""
        if self.vector is not None:
            return int(self.vector.shape[1])
        return int(self.sender.max(initial=-1)) + 1


def limits_of(bounds: Bounds[int], members: Sequence[int], senders: Sequence[int]) -> Limits:
    """Return bounds as arrays, sender k of the stamps being `senders[k]`, in whole microseconds.

    Rounded as by `Bounds`: accuracies and largest delays up, least delays down. Paths may lead
    through any of `members`.
    """
    everyone = sorted({*members, *senders})
    place = {member: at for at, member in enumerate(everyone)}
    chosen = np.array([place[member] for member in senders], dtype=np.int64)
    least = _channels(bounds, everyone, 0)
    path = least.copy()
    np.fill_diagonal(path, 0)
    if bounds.channels_ns:  # else no detour is shorter than the channel
        for via in range(len(everyone)):
            np.minimum(path, path[:, via, None] + path[None, via, :], out=path)
    pick = np.ix_(chosen, chosen)
    accuracy = [-(-bounds.error_ns(member) // NS_PER_US) for member in senders]
    return Limits(
        np.array(accuracy, dtype=np.int64),
        path[pick],
        least[pick],
        _channels(bounds, everyone, 1)[pick],
    )


def _channels(bounds: Bounds[int], members: Sequence[int], which: int) -> Ints:
    """Return the least (0) or largest (1) delay of every channel."""
    place = {member: at for at, member in enumerate(members)}
    default = (bounds.least_ns, bounds.most_ns)[which]
    found = np.full((len(members), len(members)), _us(default, which), dtype=np.int64)
    for (source, target), delays in bounds.channels_ns.items():
        if source in place and target in place:
            found[place[source], place[target]] = _us(delays[which], which)
    return found


def _us(ns: int, which: int) -> int:
    return -(-ns // NS_PER_US) if which else ns // NS_PER_US


def check_stamps(stamps: Stamps) -> None:
    """Raise LocalError for arrays that no execution gives."""
    n, senders = len(stamps.sender), stamps.senders
    for name in ("seq", "lt", "pt_us", "arrival", "vector", "topics", "counts", "lt_printed"):
        column = getattr(stamps, name)
        if column is not None and len(column) != n:
            raise LocalError(f"{name} has {len(column)} rows; sender has {n}")
    if (stamps.vector is None) == (stamps.past is None):
        raise LocalError("give either vector or past: one of them tells what is causal")
    if n and not 0 <= stamps.sender.min() <= stamps.sender.max() < senders:
        raise LocalError(f"senders are 0 to {senders - 1}")
    if stamps.past is None:
        _check_growth(stamps)
    elif (stamps.lt[stamps.past.parent] >= stamps.lt[stamps.past.child()]).any():
        raise LocalError("lt does not grow from every cause to its effect")


def _check_growth(stamps: Stamps) -> None:
    """Raise LocalError unless numbers, linear times and topic counts grow along each sender."""
    order = np.lexsort((stamps.seq, stamps.sender))
    for name in ("seq", "lt", "lt_printed"):
        column = getattr(stamps, name)
        if column is not None:
            _check_column(stamps, name, column, order)
    if stamps.vector is not None:
        own = stamps.vector[np.arange(len(order)), stamps.sender]
        if (own != stamps.seq).any():
            row = int(np.flatnonzero(own != stamps.seq)[0])
            raise LocalError(
                f"the vector of message {stamps.seq[row]} of sender {stamps.sender[row]} has "
                f"{own[row]} as its own entry; that is the message's number"
            )
    if stamps.topics is not None and stamps.counts is not None:
        for topic in range(stamps.counts.shape[1]):
            about = (stamps.topics[order] >> np.uint64(topic)) & np.uint64(1) != 0
            _check_column(stamps, f"topic {topic}", stamps.counts[:, topic], order[about])


def _check_column(stamps: Stamps, name: str, column: Ints | Counters, order: Ints) -> None:
    """Raise LocalError unless a column grows along the rows of each sender."""
    falls = (np.diff(column[order]) <= 0) & (np.diff(stamps.sender[order]) == 0)
    if falls.any():
        at = int(np.flatnonzero(falls)[0])
        raise LocalError(
            f"{name} does not grow from message {stamps.seq[order[at]]} of sender "
            f"{stamps.sender[order[at]]} to its message {stamps.seq[order[at + 1]]}"
        )
