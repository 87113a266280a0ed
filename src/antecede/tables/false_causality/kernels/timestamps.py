"""Clocks of Tsuneizumi et al. and Nakayama 2017, computed over the rows of a recorded execution.

A member learns at receipts or deliveries, as the relation has it. O(rows * (senders + topics)).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from antecede.tables.false_causality.kernels.rule_terms import Counters, Words
from antecede.tables.kernels import Bools, Ints, build_graph, njit, sort_causes_first


class Happenings(NamedTuple):
    """Sends, and rows of the messages sent, in the order of the file."""

    is_send: Bools  # [rows] the send of its message; one for each message
    member: Ints  # [rows] from 0
    message: Ints  # [rows] from 0
    adds_knowledge: Bools  # [rows] the member learns the message's past


class ClockColumns(NamedTuple):
    """Clocks that each message carries."""

    vector: Counters  # [messages, senders]
    lt: Ints  # [messages] repaired: `max(LT, m.LT + 1)` on receipt
    lt_printed: Ints  # [messages] Tsuneizumi et al. as published: `max(LT, m.LT)`
    counts: Counters  # [messages, topics]


def sort_rows(rows: Happenings) -> Ints:
    """Return all rows, causes first [rows]; raise CycleError without such an order."""
    n = len(rows.member)
    send = np.zeros(int(rows.message.max(initial=-1)) + 1, np.int64)
    send[rows.message[rows.is_send]] = np.flatnonzero(rows.is_send)
    order = np.argsort(rows.member, kind="stable")
    follows = np.flatnonzero(np.diff(rows.member[order]) == 0)
    copies = np.flatnonzero(~rows.is_send)
    effect = np.r_[order[follows + 1], copies]
    cause = np.r_[order[follows], send[rows.message[copies]]]
    return sort_causes_first(build_graph(n, effect, cause))


@njit
def clocks_of(
    rows: Happenings, order: Ints, column: Ints, senders: int, topics: Words, width: int
) -> ClockColumns:
    """Return the clocks that the messages carry.

    `column`: index of each member among the senders; `topics`: bits by message, below `width`.
    """
    sends, member, message, teaches = rows
    messages, members = len(topics), len(column)
    vector = np.zeros((messages, senders), np.int32)
    counts = np.zeros((messages, width), np.int32)
    lt, printed = np.zeros(messages, np.int64), np.zeros(messages, np.int64)
    known = np.zeros((members, senders), np.int32)
    seen = np.zeros((members, width), np.int32)
    time, time_printed = np.zeros(members, np.int64), np.zeros(members, np.int64)
    for step in order:
        at, what = member[step], message[step]
        if sends[step]:
            known[at, column[at]] += 1
            vector[what] = known[at]
            for topic in range(width):
                seen[at, topic] += (topics[what] >> np.uint64(topic)) & np.uint64(1)
            counts[what] = seen[at]
            lt[what], printed[what] = time[at], time_printed[at]
            time[at] += 1
            time_printed[at] += 1
        elif teaches[step]:
            for other in range(senders):
                known[at, other] = max(known[at, other], vector[what, other])
            for topic in range(width):
                seen[at, topic] = max(seen[at, topic], counts[what, topic])
            time[at] = max(time[at], lt[what] + 1)
            time_printed[at] = max(time_printed[at], printed[what])
    return ClockColumns(vector, lt, printed, counts)
