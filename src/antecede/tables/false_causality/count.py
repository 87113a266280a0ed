"""Pair counts of one observer: ordered, causal, false and missed pairs."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple

import numpy as np

from antecede.errors import LocalError
from antecede.tables.false_causality.kernels.causal_past import count_causal_pairs
from antecede.tables.false_causality.kernels.counts import (
    SenderColumns,
    count_causal,
    count_ignoring_senders,
    count_ordered,
    group_by_sender,
    group_by_time,
)
from antecede.tables.false_causality.kernels.rule_terms import (
    ANY,
    FAR,
    LESS,
    NOT_MORE,
    MessageColumns,
    RulePlan,
)
from antecede.tables.false_causality.kernels.topics import (
    Publications,
    can_count,
    collect_publications,
    count_common,
)
from antecede.tables.false_causality.rules import TOPIC_CAUSAL, Rule, rule_named
from antecede.tables.false_causality.timestamps import BoundColumns, Stamps, check_timestamps
from antecede.tables.kernels import Ints

_LINEAR = {"": ANY, "<": LESS, "<=": NOT_MORE}


def make_message_columns(timestamps: Stamps) -> MessageColumns:
    """Return the messages as input of the kernels."""
    n = len(timestamps.sender)
    topics = np.zeros(n, np.uint64) if timestamps.topics is None else timestamps.topics
    counts = np.zeros((n, 0), np.int32) if timestamps.counts is None else timestamps.counts
    vector = (
        np.zeros((n, timestamps.sender_count), np.int32)
        if timestamps.vector is None
        else timestamps.vector
    )
    return MessageColumns(
        timestamps.sender,
        timestamps.seq,
        vector,
        topics & np.uint64(timestamps.subscription),
        counts,
    )


def make_plan(timestamps: Stamps, rule: Rule) -> RulePlan:
    """Return a rule over timestamps; raise LocalError if they lack a column that it reads."""
    if rule.topics and (timestamps.topics is None or timestamps.counts is None):
        raise LocalError(f"{rule.name} needs topics; give topics and counts")
    if rule.topics and timestamps.past is not None:
        raise LocalError(
            f"{rule.name} needs topic vectors, which declared causes do not give; use receipts"
        )
    lt = timestamps.lt
    if rule.uses_published_clock and timestamps.lt_printed is not None:
        lt = timestamps.lt_printed
    linear, low, high = _make_terms(timestamps, rule)
    value = timestamps.pt_us
    if rule.total == "arrival":
        value = timestamps.arrival
    elif rule.total:  # rank of each message by time, then sender, then number
        order = np.lexsort((timestamps.seq, timestamps.sender, timestamps.pt_us))
        value = np.empty(len(order), np.int64)
        value[order] = np.arange(len(order))
    return RulePlan(lt, value, linear, low, high, rule.topics, rule.reads_vector, bool(rule.total))


def _make_terms(timestamps: Stamps, rule: Rule) -> tuple[Ints, Ints, Ints]:
    square = (timestamps.sender_count, timestamps.sender_count)
    before, after = np.full(square, -FAR, np.int64), np.full(square, FAR, np.int64)
    low = np.ones(square, np.int64) if rule.total else before
    if rule.physical:
        if timestamps.limits is None:
            raise LocalError(f"{rule.name} needs physical time; give limits of clocks and delays")
        limits = timestamps.limits
        error = limits.accuracy[:, None] + limits.accuracy[None, :]
        if rule.physical == "rules 1 and 2":
            return _make_rules_1_and_2(error, limits)
        surely = limits.most + error + 1
        low = {
            "sound": limits.path - error,
            "surely causal": surely,
            # The second part: e1.PT - e2.PT < 2 epsilon.
            "rule 3": np.maximum(
                np.where(limits.least >= error, limits.least - error, surely), 1 - error
            ),
        }[rule.physical]
    return np.array([_LINEAR[rule.linear]], np.int64), low[None], after[None]


def _make_rules_1_and_2(error: Ints, limits: BoundColumns) -> tuple[Ints, Ints, Ints]:
    """Return the published rules 2 (far apart) and 1 (nearer, and linear time less).

    Rules 1(a), for fast networks, and 1(b) have different lower bounds. In groups that are not
    homogeneous, bounds are those of the pair (4.2).
    """
    wide = error + limits.most
    near = np.where(limits.most <= error, -wide, error + 1)
    far = np.full_like(wide, FAR)
    return np.array([ANY, LESS], np.int64), np.stack([wide + 1, near]), np.stack([far, wide])


class RuleCounts(NamedTuple):
    """Ordered pairs of messages of one observer by one rule; 0 <= missed_pairs <= causal."""

    ordered: int  # pairs (a, b) with a before b by the rule
    causal: int  # a is in the past of b (Nakayama 2017: and both have a topic in common)
    false_pairs: int  # ordered and not causal
    missed_pairs: int  # causal and not ordered
    events: int  # messages that the observer received

    def average_per_event(self) -> tuple[float, float, float, float]:
        """Return the first four counts divided by the number of messages; 0 without messages."""
        n = max(self.events, 1)
        return self.ordered / n, self.causal / n, self.false_pairs / n, self.missed_pairs / n


def count_pairs(timestamps: Stamps, rule: Rule | str, truth: str | None = None) -> RuleCounts:
    """Count the pairs of one observer under one rule; `truth`: None for that of the rule.

    Raise InputError for an unknown rule, LocalError for timestamps that lack its columns.
    """
    return count_rules(timestamps, [rule], truth)[0]


def count_rules(
    timestamps: Stamps, rules: Iterable[Rule | str], truth: str | None = None
) -> list[RuleCounts]:
    """Count several rules over the same timestamps, in their order; raise as `count_pairs`."""
    chosen = [rule_named(rule) if isinstance(rule, str) else rule for rule in rules]
    plans = [make_plan(timestamps, rule) for rule in chosen]
    check_timestamps(timestamps)
    if timestamps.past is not None:
        return [_count_by_past(timestamps, plan) for plan in plans]
    lanes = _PairCounter(make_message_columns(timestamps))
    found = []
    for rule, plan in zip(chosen, plans, strict=True):
        by_topic = (truth or rule.truth) == TOPIC_CAUSAL
        ordered = lanes.count_ordered(plan, causal=False, by_topic=rule.topics)
        both = lanes.count_ordered(plan, causal=True, by_topic=rule.topics or by_topic)
        found.append(
            _make_counts(ordered, lanes.count_causal(by_topic), both, len(timestamps.sender))
        )
    return found


class _PairCounter:
    def __init__(self, facts: MessageColumns) -> None:
        self.messages = facts
        self._columns: dict[bool, SenderColumns] = {}
        self._causal: dict[bool, int] = {}

    @cached_property
    def publications(self) -> Publications:
        return collect_publications(self.messages)

    def get_columns(self, by_topic: bool) -> SenderColumns:
        if by_topic not in self._columns:
            self._columns[by_topic] = group_by_sender(self.messages, by_topic=by_topic)
        return self._columns[by_topic]

    def count_causal(self, by_topic: bool) -> int:
        if by_topic not in self._causal:
            self._causal[by_topic] = (
                count_common(self.publications, None, causal=True)
                if by_topic
                else count_causal(self.get_columns(False))
            )
        return self._causal[by_topic]

    def count_ordered(self, plan: RulePlan, *, causal: bool, by_topic: bool) -> int:
        if by_topic and can_count(self.publications, plan):
            return count_common(self.publications, plan, causal=causal)
        return count_ordered(self.get_columns(by_topic), plan, causal=causal)


def _count_by_past(timestamps: Stamps, plan: RulePlan) -> RuleCounts:
    assert timestamps.past is not None
    facts = make_message_columns(timestamps)
    if (plan.low == plan.low[:, :1, :1]).all() and (plan.high == plan.high[:, :1, :1]).all():
        # All senders have the same windows, so treat them as one.
        facts = facts._replace(sender=np.zeros_like(facts.sender))
    ordered = count_ignoring_senders(group_by_time(facts, plan.lt), plan)
    causal, both = count_causal_pairs(timestamps.past, facts.sender, plan)
    return _make_counts(ordered, causal, both, len(timestamps.sender))


def _make_counts(ordered: int, causal: int, both: int, events: int) -> RuleCounts:
    return RuleCounts(ordered, causal, ordered - both, causal - both, events)
