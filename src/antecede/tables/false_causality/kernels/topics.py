"""Pairs with topics in common, counted by sender instead of by sender and set of topics.

Let b have the topics Q. Among a prefix of a sender's messages, those with a topic of Q are a prefix
sum, computed once for each distinct Q. For each topic x of Q the counts along the sender's messages
with x grow, so there is a first one that is not less than b's: v_x. Before the least v_x every
message with a topic of Q is less than b in all common topics. After it, up to the last message that
is less in some x, messages are compared one by one. These are few: they have overtaken each other
in different topics.

Work: O(messages * (senders * topics of a message * log + sets of topics)), and the overtaken
messages. Clocks that go back, and total orders, need `tables.false_causality.kernels.counts`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from antecede.tables.false_causality.kernels.rule_terms import (
    ANY,
    LESS,
    Conditions,
    Counters,
    MessageColumns,
    RulePlan,
    Words,
)
from antecede.tables.kernels import Ints, inline, njit


class Publications(NamedTuple):
    """Messages with topics, by sender, in the order of their numbers."""

    row: Ints  # [m] row of the messages
    start: Ints  # [senders + 1]
    sender: Ints  # [m]
    seq: Ints  # [m]
    topics: Words  # [m]
    vector: Counters  # [m, senders]
    counts: Counters  # [m, topics]
    by_topics: Ints  # [m] messages, grouped by set of topics
    about: Ints  # [...] messages of each sender with each topic, in order
    about_counts: Counters  # [...] their counts of that topic, ascending
    about_start: Ints  # [senders * topics + 1] begin of each


def collect_publications(messages: MessageColumns) -> Publications:
    """Return the messages with a topic of the observer."""
    row = np.lexsort((messages.seq, messages.sender))
    row = row[messages.topics[row] != 0].astype(np.int64)
    sender, topics = messages.sender[row].astype(np.int64), messages.topics[row]
    senders, width = messages.vector.shape[1], messages.counts.shape[1]
    start = np.searchsorted(sender, np.arange(senders + 1)).astype(np.int64)
    counts = np.ascontiguousarray(messages.counts[row])
    abouts, their_counts = [np.zeros(0, np.int64)], [np.zeros(0, np.int32)]
    for source in range(senders):
        own = np.arange(start[source], start[source + 1])
        for topic in range(width):
            about = own[(topics[own] >> np.uint64(topic)) & np.uint64(1) != 0]
            abouts.append(about)
            their_counts.append(counts[about, topic])
    return Publications(
        row,
        start,
        sender,
        messages.seq[row].astype(np.int64),
        topics,
        np.ascontiguousarray(messages.vector[row]),
        counts,
        np.argsort(topics, kind="stable").astype(np.int64),
        np.concatenate(abouts),
        np.concatenate(their_counts),
        np.cumsum([len(about) for about in abouts]).astype(np.int64),
    )


def can_count(publications: Publications, plan: RulePlan) -> bool:
    """Return whether a plan is countable here: no total order, no clock that goes back."""
    if plan.total:
        return False
    if not any(map(plan.is_windowed, range(len(plan.linear)))):
        return True
    falls = np.diff(plan.value[publications.row]) < 0
    return not bool((falls & (np.diff(publications.sender) == 0)).any())


def count_common(publications: Publications, plan: RulePlan | None, *, causal: bool) -> int:
    """Count the pairs with a common topic that a rule orders; `causal`: only causal pairs.

    Without a plan every causal pair counts. Exact if `can_count` is true.
    """
    if plan is None:
        square = np.zeros((publications.vector.shape[1],) * 2, np.int64)
        nothing = np.zeros(len(publications.row), np.int64)
        return int(
            _count_common(
                publications, nothing, nothing, ANY, square, square, Conditions(causal=True)
            )
        )
    lt, value = plan.lt[publications.row], plan.value[publications.row]
    conditions = Conditions(causal or plan.vector, counts=plan.topics)
    found = 0
    for term, (linear, low, high) in enumerate(zip(plan.linear, plan.low, plan.high, strict=True)):
        # Pairs of one sender belong to the rule, not to a term: the first one counts them.
        conditions = conditions._replace(own=term == 0, windowed=plan.is_windowed(term))
        found += int(_count_common(publications, lt, value, int(linear), low, high, conditions))
    return found


@njit
def _count_common(
    publications: Publications,
    lt: Ints,
    value: Ints,
    linear: int,
    low: Ints,
    high: Ints,
    conditions: Conditions,
) -> int:
    start, sender, seq, topics, vector = (
        publications.start,
        publications.sender,
        publications.seq,
        publications.topics,
        publications.vector,
    )
    counts, by_topics, about, about_start = (
        publications.counts,
        publications.by_topics,
        publications.about,
        publications.about_start,
    )
    causal, own, windowed = conditions.causal, conditions.own, conditions.windowed
    m, width = len(sender), counts.shape[1]
    shared = np.zeros(m + 1, np.int64)
    first_not = np.zeros(width, np.int64)
    found = 0
    for place in range(m):
        b = by_topics[place]
        own_topics = topics[b]
        if place == 0 or own_topics != topics[by_topics[place - 1]]:
            for message in range(m):
                shared[message + 1] = shared[message] + (
                    topics[message] & own_topics != np.uint64(0)
                )
        for s in range(len(start) - 1):
            begin, end = start[s], start[s + 1]
            if s == sender[b]:
                if own:
                    found += shared[b] - shared[begin]
                continue
            if causal:
                end = _find_end(seq, begin, end, vector[b, s])
            if linear != ANY:
                end = _find_end(lt, begin, end, lt[b] - (1 if linear == LESS else 0))
            if windowed:
                end = _find_end(value, begin, end, value[b] - low[s, sender[b]])
                begin = _find_end(value, begin, end, value[b] - high[s, sender[b]] - 1)
            if end <= begin:
                continue
            if not conditions.counts:
                found += shared[end] - shared[begin]
                continue
            sure, last = end, begin
            for topic in range(width):
                if (own_topics >> np.uint64(topic)) & np.uint64(1):
                    at, after = about_start[s * width + topic], about_start[s * width + topic + 1]
                    less = _find_end(publications.about_counts, at, after, counts[b, topic] - 1)
                    first_not[topic] = about[less] if less < after else m
                    sure = min(sure, first_not[topic])
                    if less > at:
                        last = max(last, about[less - 1] + 1)
            sure = max(sure, begin)
            found += shared[sure] - shared[begin]
            for a in range(sure, min(last, end)):
                found += _precedes(a, topics[a] & own_topics, first_not)
    return found


@inline
def _find_end(keys, low, high, most):  # type: ignore[no-untyped-def]
    """Return the end of the ascending keys that are at most `most`, between two indices."""
    while low < high:
        middle = (low + high) // 2
        if keys[middle] <= most:
            low = middle + 1
        else:
            high = middle
    return low


@inline
def _precedes(a, common, first_not):  # type: ignore[no-untyped-def]
    if common == np.uint64(0):
        return False
    for topic in range(len(first_not)):
        if (common >> np.uint64(topic)) & np.uint64(1) and a >= first_not[topic]:
            return False
    return True
