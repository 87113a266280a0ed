"""The meter's pairs as figures of a run: what rules order, order without need and miss.

The rules of Tsuneizumi et al. and Nakayama 2017 go by receipt, so the pairs follow from scenario
and seed (`stamped`), not from the protocol. Figures are sums over all observers.
"""

from __future__ import annotations

from collections.abc import Sequence

from antecede.lab.simulate.config.model import Scenario
from antecede.lab.simulate.outputs.timestamps import stamped
from antecede.lab.simulate.topology import PubSub
from antecede.tables.false_causality import RULES, count_rules


def rules_for(scenario: Scenario) -> list[str]:
    """Return the names of the rules that a scenario's messages can be held to."""
    topics = isinstance(scenario.topology, PubSub)
    return [name for name, rule in RULES.items() if topics or not rule.topics]


def meter_figures(
    scenario: Scenario, seed: int, rules: Sequence[str] | None = None
) -> dict[str, float]:
    """Return `meter.RULE.causal`, `.ordered`, `.unnecessary` and `.missed` of each rule.

    `rules` None: all that fit. Raises ScenarioError for a scenario that `stamped` refuses,
    InputError for an unknown rule, LocalError for one that does not fit.
    """
    chosen = rules_for(scenario) if rules is None else list(rules)
    found = {f"meter.{name}.{what}": 0.0 for name in chosen for what in WHAT}
    for stamps in stamped(scenario, seed).values():
        for name, counts in zip(chosen, count_rules(stamps, chosen), strict=True):
            for what in WHAT:
                found[f"meter.{name}.{what}"] += getattr(counts, what)
    return found


WHAT = ("causal", "ordered", "unnecessary", "missed")
"""What is counted of each rule: fields of `meter.count.Counts`."""
