"""Pairs of messages that ordering rules order, order falsely, or miss.

Metrics are sums over all observers: RULE.ordered, RULE.false_pairs, RULE.missed_pairs,
RULE.concurrent (ordered in neither direction), `causal`, `pairs`, `events`. `topic_causal` is the
ground truth for rules of Nakayama 2017.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from antecede.lab.reproductions.framework.runs import Run
from antecede.lab.reproductions.framework.study import Metrics
from antecede.lab.simulate.outputs import compute_timestamps
from antecede.tables.false_causality import count_rules, rule_named


def count_pairs(run: Run) -> Metrics:
    """Count the pairs under the rules `rules`. Without a topic filter if `sent_to` is not
    "targets".
    """
    names: Sequence[str] = run.parameters["rules"]
    found: Counter[str] = Counter()
    everybody = run.parameters.get("sent_to") == "everybody"
    for stamps in compute_timestamps(run.load_config(), run.seed, broadcast=everybody).values():
        events = len(stamps.sender)
        pairs = events * (events - 1) // 2
        found["events"] += events
        found["pairs"] += pairs
        for name, counts in zip(names, count_rules(stamps, names), strict=True):
            found[f"{name}.ordered"] += counts.ordered
            found[f"{name}.false_pairs"] += counts.false_pairs
            found[f"{name}.missed_pairs"] += counts.missed_pairs
            found[f"{name}.concurrent"] += pairs - counts.ordered
            found[f"{name}.causal"] += counts.causal
    for name in names:  # one count of causal pairs for each ground truth
        truth = "topic_causal" if rule_named(name).topics else "causal"
        found[truth] = found.pop(f"{name}.causal")
    return {name: float(value) for name, value in found.items()}
