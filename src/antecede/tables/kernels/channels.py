"""Overtaken messages of channel models (Sahai et al. 2020, "Message ordering"), without pairs.

A copy is overtaken in its channel if a later message of the same sender arrived before it: a
running maximum of each channel. It is overtaken causally if an entry of the receiver's vector clock
already covers it. Entries are computed sender by sender, in one pass over all events each. So
memory grows only with the number of events. `core.oracle.channels` is the naive oracle.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from antecede.tables.kernels.arrays import Bools, Ints
from antecede.tables.kernels.graph import build_graph, sort_causes_first
from antecede.tables.kernels.jit import njit


class Copies(NamedTuple):
    """Messages, and their copies at other members."""

    sender: Ints  # [messages] member
    sent: Ints  # [messages] index of the send among all rows
    message: Ints  # [copies] message, from 0; at most one copy at each member
    member: Ints  # [copies] receiver
    place: Ints  # [copies] index of the receipt among all rows
    never: Bools  # [copies] missing: compared after all others; it adds no knowledge


def numbers(of: Copies) -> Ints:
    """Return the number of each message among those of its sender, from 1 [messages]."""
    order = np.lexsort((of.sent, of.sender))
    first = np.r_[True, np.diff(of.sender[order]) != 0][: len(order)]
    start = np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order)) - start + 1
    return number


def overtaken_in_channel(of: Copies) -> Bools:
    """Mask the copies that arrived after a later message of their sender [copies]."""
    number = numbers(of)[of.message]
    order = np.lexsort((of.place, of.never, of.member, of.sender[of.message]))
    sender, member = of.sender[of.message[order]], of.member[order]
    new = np.r_[True, (np.diff(sender) != 0) | (np.diff(member) != 0)][: len(order)]
    # Offset each channel's numbers above all numbers of the previous channel.
    base = np.cumsum(new) * (int(number.max(initial=0)) + 1)
    lifted = base + number[order]
    highest = np.maximum.accumulate(np.where(of.never[order], base, lifted))
    late = np.zeros(len(order), np.bool_)
    late[order] = lifted < highest
    return late


def overtaken_causally(of: Copies) -> Bools:
    """Mask the copies that arrived after a message that they happened before [copies].

    Raise CycleError if receipts precede their sends in a cycle.
    """
    if not len(np.intersect1d(of.sender, of.member[~of.never])):
        return overtaken_in_channel(of)  # senders received nothing: each past is its own channel
    return _late(_steps(of), of, numbers(of))


def first_overtaker(of: Copies, copy: int, *, in_channel: bool) -> int:
    """Return the message that arrived before `copy`, first of those sent after it."""
    target = of.message[copy]
    at, source = of.member[copy], of.sender[target]
    number = numbers(of)
    if in_channel:
        later = (of.member == at) & (of.sender[of.message] == source) & ~of.never
        later &= number[of.message] > number[target]
    else:
        knows = _carries(_steps(of), of, source)
        later = (of.member == at) & ~of.never & (knows[of.message] >= number[target])
        later &= of.message != target
    candidates = np.flatnonzero(later)
    return int(of.message[candidates[np.argmin(of.place[candidates])]])


def _steps(of: Copies) -> Ints:
    """Return sends (message numbers) and copies (beyond these), causes first [events]."""
    messages = len(of.sender)
    events = messages + len(of.message)
    member = np.r_[of.sender, of.member]
    never = np.r_[np.zeros(messages, np.bool_), of.never]
    order = np.lexsort((np.r_[of.sent, of.place], never, member))
    follows = np.flatnonzero(np.diff(member[order]) == 0)
    child = np.r_[order[follows + 1], np.arange(messages, events)]
    parent = np.r_[order[follows], of.message]
    return sort_causes_first(build_graph(events, child, parent))


@njit
def _late(steps: Ints, of: Copies, number: Ints) -> Bools:
    """Mask the copies that their receiver knew before they arrived [copies]."""
    messages = len(of.sender)
    late = np.zeros(len(of.message), np.bool_)
    knows = np.zeros(max(of.sender.max(), of.member.max()) + 1, np.int64)
    carries = np.zeros(messages, np.int64)
    for source in range(len(knows)):
        knows[:] = 0
        for step in steps:
            if step < messages:
                at = of.sender[step]
                if at == source:
                    knows[at] += 1
                carries[step] = knows[at]
                continue
            copy = step - messages
            at, what = of.member[copy], of.message[copy]
            if of.sender[what] == source and number[what] <= knows[at]:
                late[copy] = True
            if not of.never[copy]:
                knows[at] = max(knows[at], carries[what])
    return late


def _carries(steps: Ints, of: Copies, source: int) -> Ints:
    """Return the number of messages of one sender in the past of each message, or equal to it."""
    messages = len(of.sender)
    knows = np.zeros(int(max(of.sender.max(), of.member.max())) + 1, np.int64)
    carries = np.zeros(messages, np.int64)
    for step in steps.tolist():
        if step < messages:
            at = of.sender[step]
            knows[at] += at == source
            carries[step] = knows[at]
        elif not of.never[step - messages]:
            at, what = of.member[step - messages], of.message[step - messages]
            knows[at] = max(knows[at], carries[what])
    return carries
