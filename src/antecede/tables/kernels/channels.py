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


class ChannelCopies(NamedTuple):
    """Messages, and their copies at other members."""

    sender: Ints  # [messages] member
    send_row: Ints  # [messages] index of the send among all rows
    message: Ints  # [copies] message, from 0; at most one copy at each member
    member: Ints  # [copies] receiver
    row: Ints  # [copies] index of the receipt among all rows
    is_missing: Bools  # [copies] missing: compared after all others; it adds no knowledge


def number_messages(copies: ChannelCopies) -> Ints:
    """Return the number of each message among those of its sender, from 1 [messages]."""
    order = np.lexsort((copies.send_row, copies.sender))
    first = np.r_[True, np.diff(copies.sender[order]) != 0][: len(order)]
    start = np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order)) - start + 1
    return number


def mask_overtaken_in_channel(copies: ChannelCopies) -> Bools:
    """Mask the copies that arrived after a later message of their sender [copies]."""
    number = number_messages(copies)[copies.message]
    order = np.lexsort(
        (copies.row, copies.is_missing, copies.member, copies.sender[copies.message])
    )
    sender, member = copies.sender[copies.message[order]], copies.member[order]
    new = np.r_[True, (np.diff(sender) != 0) | (np.diff(member) != 0)][: len(order)]
    # Offset each channel's numbers above all numbers of the previous channel.
    base = np.cumsum(new) * (int(number.max(initial=0)) + 1)
    lifted = base + number[order]
    highest = np.maximum.accumulate(np.where(copies.is_missing[order], base, lifted))
    late = np.zeros(len(order), np.bool_)
    late[order] = lifted < highest
    return late


def mask_overtaken_causally(copies: ChannelCopies) -> Bools:
    """Mask the copies that arrived after a causally later message [copies]; raise CycleError."""
    if not len(np.intersect1d(copies.sender, copies.member[~copies.is_missing])):
        return mask_overtaken_in_channel(
            copies
        )  # senders received nothing: each past is its own channel
    return _mask_late(_sort_events(copies), copies, number_messages(copies))


def find_first_overtaker(copies: ChannelCopies, copy: int, *, in_channel: bool) -> int:
    """Return the message that arrived before `copy`, first of those sent after it."""
    target = copies.message[copy]
    at, source = copies.member[copy], copies.sender[target]
    number = number_messages(copies)
    if in_channel:
        later = (
            (copies.member == at) & (copies.sender[copies.message] == source) & ~copies.is_missing
        )
        later &= number[copies.message] > number[target]
    else:
        knows = _count_known(_sort_events(copies), copies, source)
        later = (
            (copies.member == at) & ~copies.is_missing & (knows[copies.message] >= number[target])
        )
        later &= copies.message != target
    candidates = np.flatnonzero(later)
    return int(copies.message[candidates[np.argmin(copies.row[candidates])]])


def _sort_events(copies: ChannelCopies) -> Ints:
    """Return sends (message numbers) and copies (beyond these), causes first [events]."""
    messages = len(copies.sender)
    events = messages + len(copies.message)
    member = np.r_[copies.sender, copies.member]
    never = np.r_[np.zeros(messages, np.bool_), copies.is_missing]
    order = np.lexsort((np.r_[copies.send_row, copies.row], never, member))
    follows = np.flatnonzero(np.diff(member[order]) == 0)
    effect = np.r_[order[follows + 1], np.arange(messages, events)]
    cause = np.r_[order[follows], copies.message]
    return sort_causes_first(build_graph(events, effect, cause))


@njit
def _mask_late(steps: Ints, copies: ChannelCopies, number: Ints) -> Bools:
    messages = len(copies.sender)
    late = np.zeros(len(copies.message), np.bool_)
    knows = np.zeros(max(copies.sender.max(), copies.member.max()) + 1, np.int64)
    carries = np.zeros(messages, np.int64)
    for source in range(len(knows)):
        knows[:] = 0
        for step in steps:
            if step < messages:
                at = copies.sender[step]
                if at == source:
                    knows[at] += 1
                carries[step] = knows[at]
                continue
            copy = step - messages
            at, what = copies.member[copy], copies.message[copy]
            if copies.sender[what] == source and number[what] <= knows[at]:
                late[copy] = True
            if not copies.is_missing[copy]:
                knows[at] = max(knows[at], carries[what])
    return late


def _count_known(steps: Ints, copies: ChannelCopies, source: int) -> Ints:
    """Return the number of messages of one sender in the past of each message, or equal to it."""
    messages = len(copies.sender)
    knows = np.zeros(int(max(copies.sender.max(), copies.member.max())) + 1, np.int64)
    carries = np.zeros(messages, np.int64)
    for step in steps.tolist():
        if step < messages:
            at = copies.sender[step]
            knows[at] += at == source
            carries[step] = knows[at]
        elif not copies.is_missing[step - messages]:
            at, what = copies.member[step - messages], copies.message[step - messages]
            knows[at] = max(knows[at], carries[what])
    return carries
