"""Causal violations, found without pairs; exact for any sets of receivers.

By vectors. A delivery is a violation if a sender's first message that is addressed to this member
and undelivered has a number that the past covers. That first message advances with the deliveries.
One pass over all rows for each sender: O(senders * (rows + copies)) work, O(rows) memory. Knowledge
passes through every message, addressed to this member or not.

By declared causes. Let T(m) be the index of m's delivery at this member, infinite if it is missing,
none if m is not for this member. A delivery is a violation if T of some ancestor is greater than
its own. The greatest T of all ancestors is the maximum over causes p of T(p) and the greatest T of
p's ancestors: O(edges + messages) for each member.

`oracle.history.History.early` is the oracle of both.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from antecede.tables.false_causality.kernels.timestamps import Happenings
from antecede.tables.kernels import Graph, Ints, njit, sort_causes_first

NEVER = np.iinfo(np.int64).max  # row of a missing delivery


class AddressedCopies(NamedTuple):
    """Addressees of messages; pairs are distinct, none with the sender."""

    message: Ints  # [copies]
    member: Ints  # [copies]
    place: Ints  # [copies] row of its first delivery, or NEVER


class Violations(NamedTuple):
    """Causal violations, in the order of rows."""

    copy: Ints  # [found] the copy delivered before a cause
    cause: Ints  # [found] a copy that had to precede it, and was later or missing


def find_by_vectors(
    rows: Happenings, steps: Ints, sender: Ints, copies: AddressedCopies
) -> Violations:
    """Find violations; `steps` are the rows, causes first, `sender` is by message.

    The witness is the first missing message of the first sender with a missing message.
    """
    number = _number_messages(rows, sender)
    order = np.lexsort((number[copies.message], copies.member, sender[copies.message]))
    message, member, place = (column[order] for column in copies)
    delivers = np.full(len(rows.member), -1, np.int64)
    delivered = np.flatnonzero(place != NEVER)
    delivers[place[delivered]] = delivered
    members = int(max(rows.member.max(initial=-1), member.max(initial=-1))) + 1
    # Begin of the copies of each sender to each member.
    channel = sender[message] * members + member
    start = np.searchsorted(channel, np.arange(members * members + 1))
    cause = _scan_vectors(rows, steps, sender, number, message, start, delivers, members)
    return _sort_by_row(cause, place, order)


def _sort_by_row(cause: Ints, place: Ints, order: Ints) -> Violations:
    found = np.flatnonzero(cause >= 0)
    found = found[np.argsort(place[found])]
    return Violations(order[found], order[cause[found]])


def _number_messages(rows: Happenings, sender: Ints) -> Ints:
    """Return each sender's numbers for its messages, from 1 [messages]."""
    sent = rows.message[rows.is_send]
    order = sent[np.argsort(sender[sent], kind="stable")]
    first = np.flatnonzero(np.r_[True, np.diff(sender[order]) != 0][: len(order)])
    number = np.empty(len(order), np.int64)
    sizes = np.diff(np.r_[first, len(order)])
    number[order] = np.arange(len(order)) - np.repeat(first, sizes) + 1
    return number


@njit
def _scan_vectors(
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
            continue  # its messages have no addressees
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
                # The message itself is done, so the due message is a proper cause.
                missing = due[here] < end and number[message[due[here]]] <= carries[m]
                if missing and cause[copy] < 0:
                    cause[copy] = due[here]
            if teaches[step]:
                knows[here] = max(knows[here], carries[m])
    return cause


def find_by_causes(causes: Graph, copies: AddressedCopies) -> Violations:
    """Find violations by declared causes; the last or missing cause is the witness."""
    order = sort_causes_first(causes)
    by_member = np.argsort(copies.member, kind="stable")
    member = copies.member[by_member]
    start = np.flatnonzero(np.r_[True, np.diff(member) != 0][: len(member)])
    start = np.r_[start, len(member)].astype(np.int64)
    message, place = copies.message[by_member], copies.place[by_member]
    cause = _scan_causes(order, causes.start, causes.cause, start, message, place)
    return _sort_by_row(cause, place, by_member)


@njit
def _scan_causes(
    order: Ints, first: Ints, causes: Ints, start: Ints, message: Ints, place: Ints
) -> Ints:
    cause = np.full(len(message), -1, np.int64)
    copy = np.full(len(order), -1, np.int64)
    last = np.empty(len(order), np.int64)
    for member in range(len(start) - 1):
        copy[:] = -1
        for index in range(start[member], start[member + 1]):
            copy[message[index]] = index
        for node in order:
            last[node] = -1
            for edge in range(first[node], first[node + 1]):
                above = causes[edge]
                for other in (last[above], copy[above]):
                    if other >= 0 and (last[node] < 0 or place[other] > place[last[node]]):
                        last[node] = other
            mine, late = copy[node], last[node]
            if mine >= 0 and late >= 0 and place[mine] < place[late]:
                cause[mine] = late
    return cause
