"""Counting the pairs of one observer: ordered, causal, ordered without need, missed."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple

import numpy as np

from antecede.meter.kernels.counts import (
    Lanes,
    count_causal,
    count_ordered,
    count_unowned,
    lane_by_time,
    lanes_of,
)
from antecede.meter.kernels.past import count_both
from antecede.meter.kernels.terms import Facts, Plan
from antecede.meter.kernels.topics import Publications, can_count, count_common, publications
from antecede.meter.plans import facts_of, plan_of
from antecede.meter.rules import CAUSAL, TOPIC_CAUSAL, Rule, rule_named
from antecede.meter.stamps import Stamps, checked


class Counts(NamedTuple):
    """Ordered pairs of messages of one observer by one rule; 0 <= missed <= causal."""

    ordered: int
    """Pairs (a, b) with a before b by the rule."""
    causal: int
    """Pairs with a in the past of b (for Nakayama 2017: and a topic in common)."""
    unnecessary: int
    """Ordered and not causal."""
    missed: int
    """Causal and not ordered."""
    events: int
    """Messages that the observer received."""

    def per_event(self) -> tuple[float, float, float, float]:
        """Return the first four by the number of messages; 0 where there is none."""
        n = max(self.events, 1)
        return self.ordered / n, self.causal / n, self.unnecessary / n, self.missed / n


def count_pairs(stamps: Stamps, rule: Rule | str, truth: str | None = None) -> Counts:
    """Count the pairs of one observer under one rule.

    `truth` is "causal" or "topic-causal"; None: what the rule is meant for. Raises InputError
    for a rule that is none, LocalError for stamps that lack what it reads or cannot be.
    """
    return count_rules(stamps, [rule], truth)[0]


def count_rules(
    stamps: Stamps, rules: Iterable[Rule | str], truth: str | None = None
) -> list[Counts]:
    """Count several rules over the same stamps, in their order; raises as `count_pairs`."""
    chosen = [rule_named(rule) if isinstance(rule, str) else rule for rule in rules]
    plans = [plan_of(stamps, rule) for rule in chosen]
    if stamps.past is not None:
        return [_by_past(stamps, plan) for plan in plans]
    lanes = _Lanes(facts_of(checked(stamps)))
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


__all__ = ["CAUSAL", "TOPIC_CAUSAL", "Counts", "count_pairs", "count_rules"]
