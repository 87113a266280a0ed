"""Channel models (Sahai et al. 2020, "Message ordering"): overtaken messages, without pairs.

A copy is overtaken in its channel when a greater number of the same sender came before it: a
running maximum of each channel. It is overtaken causally when an entry of the receiver's vector
clock already covers it. Entries are computed sender after sender, in one pass over all events each,
so memory grows with the events alone. The naive oracle is `core.oracle.channels`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from antecede.tables.kernels.arrays import Bools, Ints
from antecede.tables.kernels.graph import build_graph, sort_causes_first
from antecede.tables.kernels.jit import njit


class Copies(NamedTuple):
    """Messages and the copies of them that came to other members."""

    sender: Ints  # [messages] member
    sent: Ints  # [messages] place of the send among all rows
    message: Ints  # [copies] message, from 0; no member has two copies of one
    member: Ints  # [copies] who got it
    place: Ints  # [copies] place of the receipt among all rows
    never: Bools  # [copies] it did not come; judged after all that came, and known to nobody by it


def numbers(of: Copies) -> Ints:
    """Return the number of each message among its sender's, from 1 [messages]."""
    order = np.lexsort((of.sent, of.sender))
    first = np.r_[True, np.diff(of.sender[order]) != 0][: len(order)]
    start = np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order)) - start + 1
    return number


def overtaken_in_channel(of: Copies) -> Bools:
    """Mask the copies that came after a later message of their sender [copies]."""
    number = numbers(of)[of.message]
    order = np.lexsort((of.place, of.never, of.member, of.sender[of.message]))
    sender, member = of.sender[of.message[order]], of.member[order]
    new = np.r_[True, (np.diff(sender) != 0) | (np.diff(member) != 0)][: len(order)]
    # Each channel's numbers are lifted above all of the channel before it.
    base = np.cumsum(new) * (int(number.max(initial=0)) + 1)
    lifted = base + number[order]
    highest = np.maximum.accumulate(np.where(of.never[order], base, lifted))
    late = np.zeros(len(order), np.bool_)
    late[order] = lifted < highest
    return late


def overtaken_causally(of: Copies) -> Bools:
    """Mask the copies that came after a message that they happened before [copies].

    Raise CycleError when receipts come before their sends in a circle.
    """
    if not len(np.intersect1d(of.sender, of.member[~of.never])):
        return overtaken_in_channel(of)  # who sends has received nothing: there is no other past
    return _late(_steps(of), of, numbers(of))


def first_overtaker(of: Copies, copy: int, *, in_channel: bool) -> int:
    """Return the first message that came to the member before `copy` and was sent after it."""
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
    """Return sends (as numbers of messages) and copies (beyond these), causes first [events]."""
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
    """Mask the copies that their receiver knew of before they came [copies]."""
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
    """Return how many messages of one sender happened before each message, or are it."""
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
