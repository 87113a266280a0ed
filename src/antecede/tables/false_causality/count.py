"""Counting the pairs of one observer: ordered, causal, ordered without need, missed."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple

import numpy as np

from antecede.errors import LocalError
from antecede.tables.false_causality.kernels.causal_past import count_both
from antecede.tables.false_causality.kernels.counts import (
    Lanes,
    count_causal,
    count_ordered,
    count_unowned,
    lane_by_time,
    lanes_of,
)
from antecede.tables.false_causality.kernels.rule_terms import ANY, FAR, LESS, NOT_MORE, Facts, Plan
from antecede.tables.false_causality.kernels.topics import (
    Publications,
    can_count,
    count_common,
    publications,
)
from antecede.tables.false_causality.rules import TOPIC_CAUSAL, Rule, rule_named
from antecede.tables.false_causality.timestamps import Limits, Stamps, check_stamps
from antecede.tables.kernels import Ints

_LINEAR = {"": ANY, "<": LESS, "<=": NOT_MORE}


def facts_of(stamps: Stamps) -> Facts:
    """Return the messages as the kernels read them."""
    n = len(stamps.sender)
    topics = np.zeros(n, np.uint64) if stamps.topics is None else stamps.topics
    counts = np.zeros((n, 0), np.int32) if stamps.counts is None else stamps.counts
    vector = np.zeros((n, stamps.senders), np.int32) if stamps.vector is None else stamps.vector
    return Facts(stamps.sender, stamps.seq, vector, topics & np.uint64(stamps.subscription), counts)


def plan_of(stamps: Stamps, rule: Rule) -> Plan:
    """Return a rule over stamps; raises LocalError where they lack what it reads."""
    if rule.topics and (stamps.topics is None or stamps.counts is None):
        raise LocalError(f"{rule.name} reads topics: give topics and counts")
    if rule.topics and stamps.past is not None:
        raise LocalError(f"{rule.name} goes by topic vectors; declared causes give none")
    lt = stamps.lt
    if rule.printed_clock and stamps.lt_printed is not None:
        lt = stamps.lt_printed
    linear, low, high = _terms(stamps, rule)
    value = stamps.pt_us
    if rule.total == "arrival":
        value = stamps.arrival
    elif rule.total:  # the place of each message by time, then sender, then number
        order = np.lexsort((stamps.seq, stamps.sender, stamps.pt_us))
        value = np.empty(len(order), np.int64)
        value[order] = np.arange(len(order))
    return Plan(lt, value, linear, low, high, rule.topics, rule.vector, bool(rule.total))


def _terms(stamps: Stamps, rule: Rule) -> tuple[Ints, Ints, Ints]:
    square = (stamps.senders, stamps.senders)
    before, after = np.full(square, -FAR, np.int64), np.full(square, FAR, np.int64)
    low = np.ones(square, np.int64) if rule.total else before
    if rule.physical:
        if stamps.limits is None:
            raise LocalError(f"{rule.name} reads physical time: give limits of clocks and delays")
        limits = stamps.limits
        error = limits.accuracy[:, None] + limits.accuracy[None, :]
        if rule.physical == "rules 1 and 2":
            return _rules_1_and_2(error, limits)
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


def _rules_1_and_2(error: Ints, limits: Limits) -> tuple[Ints, Ints, Ints]:
    """Return Tsuneizumi et al.'s printed rules.

    The first term is rule 2: far apart. The second is rule 1: nearer, and linear time is less.
    Rules 1(a), for fast networks, and 1(b) begin it at different places. For groups that are not
    homogeneous the bounds are those of the pair (4.2).
    """
    wide = error + limits.most
    near = np.where(limits.most <= error, -wide, error + 1)
    far = np.full_like(wide, FAR)
    return np.array([ANY, LESS], np.int64), np.stack([wide + 1, near]), np.stack([far, wide])


class Counts(NamedTuple):
    """Ordered pairs of messages of one observer by one rule; 0 <= missed_pairs <= causal."""

    ordered: int  # pairs (a, b) with a before b by the rule
    causal: int  # a is in the past of b (for Nakayama 2017: and they have a topic in common)
    false_pairs: int  # ordered and not causal
    missed_pairs: int  # causal and not ordered
    events: int  # messages that the observer received

    def per_event(self) -> tuple[float, float, float, float]:
        """Return the first four by the number of messages; 0 where there is none."""
        n = max(self.events, 1)
        return self.ordered / n, self.causal / n, self.false_pairs / n, self.missed_pairs / n


def count_pairs(stamps: Stamps, rule: Rule | str, truth: str | None = None) -> Counts:
    """Count the pairs of one observer under one rule.

    `truth` is "causal" or "topic-causal"; None: that of the rule. Raises InputError for an unknown
    rule, LocalError for stamps that lack its columns or are impossible.
    """
    return count_rules(stamps, [rule], truth)[0]


def count_rules(
    stamps: Stamps, rules: Iterable[Rule | str], truth: str | None = None
) -> list[Counts]:
    """Count several rules over the same stamps, in their order; raises as `count_pairs`."""
    chosen = [rule_named(rule) if isinstance(rule, str) else rule for rule in rules]
    plans = [plan_of(stamps, rule) for rule in chosen]
    check_stamps(stamps)
    if stamps.past is not None:
        return [_by_past(stamps, plan) for plan in plans]
    lanes = _Lanes(facts_of(stamps))
    found = []
    for rule, plan in zip(chosen, plans, strict=True):
        by_topic = (truth or rule.truth) == TOPIC_CAUSAL
        ordered = lanes.ordered(plan, causal=False, by_topic=rule.topics)
        both = lanes.ordered(plan, causal=True, by_topic=rule.topics or by_topic)
        found.append(_counts(ordered, lanes.causal(by_topic), both, len(stamps.sender)))
    return found


class _Lanes:
    """The messages of one observer, put in order when first asked for."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._lanes: dict[bool, Lanes] = {}
        self._causal: dict[bool, int] = {}

    @cached_property
    def published(self) -> Publications:
        return publications(self.facts)

    def of(self, by_topic: bool) -> Lanes:
        if by_topic not in self._lanes:
            self._lanes[by_topic] = lanes_of(self.facts, by_topic=by_topic)
        return self._lanes[by_topic]

    def causal(self, by_topic: bool) -> int:
        if by_topic not in self._causal:
            self._causal[by_topic] = (
                count_common(self.published, None, causal=True)
                if by_topic
                else count_causal(self.of(False))
            )
        return self._causal[by_topic]

    def ordered(self, plan: Plan, *, causal: bool, by_topic: bool) -> int:
        if by_topic and can_count(self.published, plan):
            return count_common(self.published, plan, causal=causal)
        return count_ordered(self.of(by_topic), plan, causal=causal)


def _by_past(stamps: Stamps, plan: Plan) -> Counts:
    """Count over declared causes."""
    assert stamps.past is not None
    facts = facts_of(stamps)
    if (plan.low == plan.low[:, :1, :1]).all() and (plan.high == plan.high[:, :1, :1]).all():
        # All senders are alike, so they can be one.
        facts = facts._replace(sender=np.zeros_like(facts.sender))
    ordered = count_unowned(lane_by_time(facts, plan.lt), plan)
    causal, both = count_both(stamps.past, facts.sender, plan)
    return _counts(ordered, causal, both, len(stamps.sender))


def _counts(ordered: int, causal: int, both: int, events: int) -> Counts:
    return Counts(ordered, causal, ordered - both, causal - both, events)
