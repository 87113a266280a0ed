"""The model checker finds each published defect; scenarios/smallest/ has the smallest.

`--rewrite-scenarios` rewrites them.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from antecede.core.clocks.bounds import Bounds
from antecede.core.clocks.nanoseconds import NS
from antecede.lab.check.check import find_target
from antecede.lab.check.harness.group_under_test import GroupUnderTest
from antecede.lab.check.model_checker.explorer import SearchLimits, explore
from antecede.lab.check.results import EARLY, NEEDLESS_HOLD, STUCK
from antecede.lab.check.scenario.parse import load_scenario
from antecede.lab.check.scenario.run import check_output, run_scenario, update_output
from tests.lab.check import require_failure

FOLDER = Path(__file__).resolve().parents[3] / "scenarios" / "smallest"


class Defect(NamedTuple):
    file: str
    """File name in FOLDER; its title and source stay."""
    group: GroupUnderTest
    limits: SearchLimits
    actions: int
    what: str = EARLY


def _flat(name: str, variant: str, size: int = 3) -> GroupUnderTest:
    return find_target(name, variant).flat(size)


def _alike(name: str) -> GroupUnderTest:
    """Return a group with clocks off and identical channels."""
    target = find_target(name, "as-published")
    options = {**target.options, "bounds": Bounds[int](accuracy_s=1, least_s=1, most_s=2)}
    return target._replace(options=options).flat(3, (NS, NS, -NS))


def _tree(inside: int, outside: int, variant: str) -> GroupUnderTest:
    return find_target("hierarchical", variant).hierarchy((inside,), outside)


def order_only(messages: int, *senders: int, send_until: int = 2) -> SearchLimits:
    lesser = frozenset({NEEDLESS_HOLD, STUCK})
    return SearchLimits(messages, ignored=lesser, senders=senders, send_until=send_until)


DEFECTS = [
    Defect("bss-condition-2", _flat("bss", "as-published"), order_only(2), 4),
    Defect("ses-printed-example", _flat("ses", "as-published"), order_only(3), 5),
    Defect("ses-overwriting", _flat("ses", "overwriting"), order_only(4, 0, 1, 1, 0), 7),
    Defect("ses-unicast-rule", _flat("ses", "unicast-rule"), order_only(2), 4),
    Defect("listing-6", _tree(2, 1, "listing6"), SearchLimits(3), 9),
    Defect("listing-12", _tree(1, 2, "listing12"), SearchLimits(3), 9),
    Defect("published-pruning", _tree(1, 2, "published-pruning"), order_only(3), 11),
    Defect("algorithm-1", _flat("sb", "algorithm-1", 2), SearchLimits(3), 5),
    Defect("algorithm-2", _flat("sb", "algorithm-2", 2), SearchLimits(4), 8, NEEDLESS_HOLD),
    Defect("htbc-rule-3", _alike("htbc"), order_only(2, 1, 2), 8),
    Defect("tv-pt-rule-3", _alike("tv-pt"), order_only(2, 1, 2), 8),
    Defect("linear-equal-times", _flat("linear", "equal-times"), order_only(2, 0, 1), 6),
    *(
        Defect(file, _flat(name, variant), order_only(3, 0, 0, 1, send_until=1), actions)
        for file, name, variant, actions in (
            ("linear-physical-rule-1b", "linear-physical", "rule-1b", 8),
            ("physical-property-7", "physical", "property-7", 8),
            ("tv-vt-counted-receipts", "tv-vt", "as-published", 11),
        )
    ),
    *(
        Defect(
            f"{name}-no-null-messages",
            _flat(name, "no-null-messages"),
            SearchLimits(2, senders=(0, 0), send_until=0),
            actions,
            STUCK,
        )
        for name, actions in (("linear", 6), ("physical", 4), ("linear-physical", 6))
    ),
]


@pytest.mark.few(3)
@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.file)
def test_the_smallest_counterexample_is_the_golden_one(
    defect: Defect, request: pytest.FixtureRequest
) -> None:
    failure = require_failure(explore(defect.group, defect.limits).failure)
    assert failure.what == defect.what
    assert len(failure.actions) == defect.actions
    path = FOLDER / f"{defect.file}.scenario"
    if request.config.getoption("--rewrite-scenarios"):
        old = load_scenario(path)
        path.write_text(update_output(failure.to_scenario(old.title, old.source), str(path)))
    golden = load_scenario(path)
    assert tuple(command.action for command in golden.commands) == failure.actions
    run = run_scenario(golden)
    assert check_output(run) == ()
    if defect.what == EARLY:
        assert [(one.at, one.label) for one in run.violations()] == [(failure.at, failure.label)]
        assert set(run.violations()[0].missing_causes) == set(failure.missing)
    else:
        assert failure.label in {one.label for one in run.held}


@pytest.mark.slow
@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.file)
def test_the_repaired_rule_is_clean_within_the_same_limits(defect: Defect) -> None:
    size = len(defect.group.names)
    if not defect.group.internal:
        repaired = _flat(defect.group.protocol, "", size)
    else:
        (_, peers), *_ = defect.group.internal
        repaired = _tree(len(peers), size - len(peers) - 1, "")
    found = explore(repaired, defect.limits)
    assert found.failure is None
    assert found.complete
