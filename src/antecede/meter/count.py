"""Counting the pairs of one observer: ordered, causal, ordered without need, missed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from antecede.kernels.meter_pairs import count_all_pairs
from antecede.meter.plans import facts_of, plan_of
from antecede.meter.rules import CAUSAL, TOPIC_CAUSAL, Rule, rule_named
from antecede.meter.stamps import Stamps, checked


class Counts(NamedTuple):
    """Ordered pairs of messages of one observer by one rule; 0 <= missed <= causal."""

    ordered: int
    """Pairs (a, b) with a before b by the rule."""
    causal: int
    """Pairs with a in the past of b (for 004: and a topic in common)."""
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
    checked(stamps)
    chosen = [rule_named(rule) if isinstance(rule, str) else rule for rule in rules]
    facts = facts_of(stamps)
    found = []
    for rule in chosen:
        by_topic = (truth or rule.truth) == TOPIC_CAUSAL
        ordered, causal, both = count_all_pairs(facts, plan_of(stamps, rule), by_topic=by_topic)
        found.append(Counts(ordered, causal, ordered - both, causal - both, len(stamps.sender)))
    return found


__all__ = ["CAUSAL", "TOPIC_CAUSAL", "Counts", "count_pairs", "count_rules"]
