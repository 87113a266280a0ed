"""Deliveries that came before a cause: found without pairs, exact for any sets of receivers.

Theory of operation
-------------------
By vectors. The past of a message holds a member's messages up to some number, so a delivery is
early when the first message of some sender that is addressed here and not yet delivered has a
number that the past covers. That first message moves on as deliveries are made. Sender after
sender, one pass over all rows: O(senders * (rows + copies)) work, O(rows) memory. What the past
covers comes through every message, addressed here or not.

By declared causes. Let T(m) be the place of m's delivery here, infinite when it never came, none
when m is not for this member. A delivery is early when T of some ancestor is greater than its own;
the greatest T of all ancestors is the maximum over parents p of T(p) and the greatest T of p's
ancestors: O(edges + messages) a member.

The oracle beside both is `oracle.history.History.early`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from antecede.tables.false_causality.kernels.timestamps import Happenings
from antecede.tables.kernels import Graph, Ints, njit, sort_causes_first

NEVER = np.iinfo(np.int64).max  # place of a delivery that did not happen


class Copies(NamedTuple):
    """Which message is for whom; no pair twice, none for its sender."""

    message: Ints  # [copies]
    member: Ints  # [copies]
    place: Ints  # [copies] row of its first delivery there, or NEVER


class Early(NamedTuple):
    """Deliveries that came before a cause, in the order of rows."""

    copy: Ints  # [found] the copy that was delivered early
    cause: Ints  # [found] a copy that had to come before it, and came later or never


def early_by_vectors(rows: Happenings, steps: Ints, sender: Ints, copies: Copies) -> Early:
    """Find early deliveries; `steps` are the rows, causes first, `sender` is by message.

    The witness is the earliest missing message of the first sender that one is missing of.
    """
    number = _numbers(rows, sender)
    order = np.lexsort((number[copies.message], copies.member, sender[copies.message]))
    message, member, place = (column[order] for column in copies)
    delivers = np.full(len(rows.member), -1, np.int64)
    came = np.flatnonzero(place != NEVER)
    delivers[place[came]] = came
    members = int(max(rows.member.max(initial=-1), member.max(initial=-1))) + 1
    # Where the copies of each sender to each member begin.
    channel = sender[message] * members + member
    start = np.searchsorted(channel, np.arange(members * members + 1))
    cause = _early(rows, steps, sender, number, message, start, delivers, members)
    return _found(cause, place, order)


def _found(cause: Ints, place: Ints, order: Ints) -> Early:
    """Return the copies with a cause, by rows; `order` has the numbers that the caller knows."""
    found = np.flatnonzero(cause >= 0)
    found = found[np.argsort(place[found])]
    return Early(order[found], order[cause[found]])


def _numbers(rows: Happenings, sender: Ints) -> Ints:
    """Return each sender's numbers for its messages, from 1 [messages]."""
    sent = rows.message[rows.sends]
    order = sent[np.argsort(sender[sent], kind="stable")]
    first = np.flatnonzero(np.r_[True, np.diff(sender[order]) != 0][: len(order)])
    number = np.empty(len(order), np.int64)
    sizes = np.diff(np.r_[first, len(order)])
    number[order] = np.arange(len(order)) - np.repeat(first, sizes) + 1
    return number


@njit
def _early(
    rows: Happenings,
    steps: Ints,
    sender: Ints,
    number: Ints,
    message: Ints,
    start: Ints,
    delivers: Ints,
    members: int,
) -> Ints:
    sends, at, what, teaches = rows
    cause = np.full(len(message), -1, np.int64)
    done = np.zeros(len(message), np.bool_)
    carries = np.zeros(len(sender), np.int64)
    knows = np.zeros(members, np.int64)
    due = np.zeros(members, np.int64)
    for source in range(members):
        knows[:] = 0
        if start[source * members] == start[(source + 1) * members]:
            continue  # nothing of it is for anybody
        due[:] = start[source * members : (source + 1) * members]
        for step in steps:
            here, m = at[step], what[step]
            if sends[step]:
                knows[here] += here == source
                carries[m] = knows[here]
                continue
            copy = delivers[step]
            if copy >= 0:
                if sender[m] == source:
                    done[copy] = True
                end = start[source * members + here + 1]
                while due[here] < end and done[due[here]]:
                    due[here] += 1
                # The message itself is done, so what is due is a proper cause.
                missing = due[here] < end and number[message[due[here]]] <= carries[m]
                if missing and cause[copy] < 0:
                    cause[copy] = due[here]
            if teaches[step]:
                knows[here] = max(knows[here], carries[m])
    return cause


def early_by_causes(of: Graph, copies: Copies) -> Early:
    """Find early deliveries by declared causes; raises CycleError.

    The witness is the cause that came last, or not at all.
    """
    order = sort_causes_first(of)
    by_member = np.argsort(copies.member, kind="stable")
    member = copies.member[by_member]
    start = np.flatnonzero(np.r_[True, np.diff(member) != 0][: len(member)])
    start = np.r_[start, len(member)].astype(np.int64)
    message, place = copies.message[by_member], copies.place[by_member]
    cause = _early_by_causes(order, of.start, of.parent, start, message, place)
    return _found(cause, place, by_member)


@njit
def _early_by_causes(
    order: Ints, first: Ints, parent: Ints, start: Ints, message: Ints, place: Ints
) -> Ints:
    cause = np.full(len(message), -1, np.int64)
    copy = np.full(len(order), -1, np.int64)
    last = np.empty(len(order), np.int64)
    for member in range(len(start) - 1):
        copy[:] = -1
        for one in range(start[member], start[member + 1]):
            copy[message[one]] = one
        for node in order:
            last[node] = -1
            for edge in range(first[node], first[node + 1]):
                above = parent[edge]
                for other in (last[above], copy[above]):
                    if other >= 0 and (last[node] < 0 or place[other] > place[last[node]]):
                        last[node] = other
            mine, late = copy[node], last[node]
            if mine >= 0 and late >= 0 and place[mine] < place[late]:
                cause[mine] = late
    return cause
