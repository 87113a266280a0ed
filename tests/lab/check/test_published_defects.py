"""The explorer finds each published defect; the smallest are kept in scenarios/smallest/.

They are written anew with --rewrite-scenarios.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from antecede.core.clocks.bounds import Bounds
from antecede.core.clocks.nanoseconds import NS
from antecede.core.protocols import registry
from antecede.core.protocols.hierarchical.roles import Topology, hierarchical
from antecede.lab.check.harness.group_under_test import GroupUnderTest, flat, hierarchy
from antecede.lab.check.model_checker.explorer import SearchLimits, explore
from antecede.lab.check.results import EARLY, STUCK, UNNECESSARY
from antecede.lab.check.scenario.parse import load_script
from antecede.lab.check.scenario.run import check_output, run_script, with_output

FOLDER = Path(__file__).resolve().parents[3] / "scenarios" / "smallest"
ORDER_ONLY = frozenset({UNNECESSARY, STUCK})


class Defect(NamedTuple):
    file: str
    title: str
    source: str
    group: GroupUnderTest
    limits: SearchLimits
    actions: int
    what: str = EARLY


def _flat(name: str, size: int, variant: str) -> GroupUnderTest:
    entry = registry.entry(name)
    return flat(name, entry.load(), size, entry.options(variant))


def _alike(name: str, size: int, variant: str, offsets: Sequence[int]) -> GroupUnderTest:
    """Return a group with clocks off by `offsets` and all channels alike."""
    entry = registry.entry(name)
    bounds: Bounds[int] = Bounds(accuracy_s=1, least_s=1, most_s=2)
    return flat(name, entry.load(), size, {**entry.options(variant), "bounds": bounds}, offsets)


def _tree(inside: int, outside: int, variant: str) -> GroupUnderTest:
    options = registry.entry("hierarchical").options(variant)
    return hierarchy("hierarchical", hierarchical, Topology, (inside,), outside, options)


DEFECTS = [
    Defect(
        "bss-condition-2",
        "BSS, condition 2 as printed: an answer overtakes its cause",
        "Sahai et al. 2020, Birman-Schiper-Stephenson Protocol",
        _flat("bss", 3, "as-published"),
        SearchLimits(2, ignored=ORDER_ONLY),
        4,
    ),
    Defect(
        "ses-printed-example",
        "SES, V set to V of the message as in the example: a member forgets its own sends",
        "Sahai et al. 2020, Schiper-Eggli-Sandoz Protocol, example, e12, e32 and e13",
        _flat("ses", 3, "as-published"),
        SearchLimits(3, ignored=ORDER_ONLY),
        5,
    ),
    Defect(
        "ses-overwriting",
        "SES, entries of V overwritten: an older send takes the place of a newer one",
        "Sahai et al. 2020, Schiper-Eggli-Sandoz Protocol; errata: merge by maximum",
        _flat("ses", 3, "overwriting"),
        SearchLimits(4, ignored=ORDER_ONLY, script=(0, 1, 1, 0)),
        7,
    ),
    Defect(
        "ses-unicast-rule",
        "SES without co-destinations: who was reached too does not say so",
        "Sahai et al. 2020, Schiper-Eggli-Sandoz Protocol; errata: co-destinations",
        _flat("ses", 3, "unicast-rule"),
        SearchLimits(2, ignored=ORDER_ONLY),
        4,
    ),
    Defect(
        "listing-6",
        "Listing 6 line 3 without its NOT: an internal peer forgets what it heard",
        "Evropeytsev et al. 2016, Listing 6",
        _tree(2, 1, "listing6"),
        SearchLimits(3),
        9,
    ),
    Defect(
        "listing-12",
        "Listing 12 line 21 without its NOT: an external peer forgets what it heard",
        "Evropeytsev et al. 2016, Listing 12",
        _tree(1, 2, "listing12"),
        SearchLimits(3),
        9,
    ),
    Defect(
        "published-pruning",
        "TT pruning as published: a message under way names what the super peer forgot",
        "Evropeytsev et al. 2016, section 3.2",
        _tree(1, 2, "published-pruning"),
        SearchLimits(3, ignored=ORDER_ONLY),
        11,
    ),
    Defect(
        "algorithm-1",
        "Algorithm 1 as printed: any later number counts as present",
        "Bhavanasi and Iyer, Algorithm 1",
        _flat("sb", 2, "algorithm-1"),
        SearchLimits(3),
        5,
    ),
    Defect(
        "algorithm-2",
        "Algorithm 2 as printed: a number is recorded in the wrong node",
        "Bhavanasi and Iyer, Algorithm 2, line 8",
        _flat("sb", 2, "algorithm-2"),
        SearchLimits(4),
        8,
        UNNECESSARY,
    ),
    Defect(
        "htbc-rule-3",
        "HTBC, rule 3 as printed: where mind < 2 epsilon, an effect goes before its cause",
        "Nakayama 2017, ordering rule 3; errata: a causal pair can be as close as mind - 2 epsilon",
        _alike("htbc", 3, "as-published", (NS, NS, -NS)),
        SearchLimits(2, ignored=ORDER_ONLY, script=(1, 2)),
        8,
    ),
    Defect(
        "tv-pt-rule-3",
        "TV_PT, rule 3 as printed: where mind < 2 epsilon, an effect goes before its cause",
        "Nakayama 2017, ordering rule 3; errata: a causal pair can be as close as mind - 2 epsilon",
        _alike("tv-pt", 3, "as-published", (NS, NS, -NS)),
        SearchLimits(2, ignored=ORDER_ONLY, script=(1, 2)),
        8,
    ),
    Defect(
        "linear-equal-times",
        "Linear time as printed: an answer carries the time of its question and overtakes it",
        "Tsuneizumi et al., section 4.1: LT = max(LT, m.LT) on receipt",
        _flat("linear", 3, "equal-times"),
        SearchLimits(2, ignored=ORDER_ONLY, script=(0, 1)),
        6,
    ),
    Defect(
        "linear-physical-rule-1b",
        "Rule 1(b) as printed: a causal pair within 2 lambda is called concurrent",
        "Tsuneizumi et al., section 5, rule 1(b); sound only where the least delay "
        "exceeds 4 lambda",
        _flat("linear-physical", 3, "rule-1b"),
        SearchLimits(3, ignored=ORDER_ONLY, script=(0, 0, 1), send_until=1),
        8,
    ),
    Defect(
        "physical-property-7",
        "Property (7) read both ways: a causal pair that is not surely causal is not ordered",
        "Tsuneizumi et al., section 5: messages can be causally ordered by using only "
        "the physical time",
        _flat("physical", 3, "property-7"),
        SearchLimits(3, ignored=ORDER_ONLY, script=(0, 0, 1), send_until=1),
        8,
    ),
    Defect(
        "tv-vt-counted-receipts",
        "Vector time as printed counts receipts: an event goes before its cause",
        "Nakayama 2017, section 3: vt_j = vt_j + 1 on receipt, for every j other than i",
        _flat("tv-vt", 3, "as-published"),
        SearchLimits(3, ignored=ORDER_ONLY, script=(0, 0, 1), send_until=1),
        11,
    ),
    *(
        Defect(
            f"{name}-no-null-messages",
            "DelCond without null messages: a member that sends nothing stops the others",
            "Tsuneizumi et al., section 6, DelCond: a message of every peer in RBF",
            _flat(name, 3, "no-null-messages"),
            SearchLimits(2, script=(0, 0), send_until=0),
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
    failure = explore(defect.group, defect.limits).failure
    assert failure is not None
    assert failure.what == defect.what
    assert len(failure.actions) == defect.actions
    path = FOLDER / f"{defect.file}.scenario"
    if request.config.getoption("--rewrite-scenarios"):
        path.write_text(with_output(failure.script(defect.title, defect.source), str(path)))
    golden = load_script(path)
    assert tuple(command.action for command in golden.commands) == failure.actions
    run = run_script(golden)
    assert check_output(run) == ()
    if defect.what == EARLY:
        assert [(one.at, one.label) for one in run.violations()] == [(failure.at, failure.label)]
        assert set(run.violations()[0].early_for) == set(failure.missing)
    else:
        assert failure.label in {one.label for one in run.held}


@pytest.mark.slow
@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.file)
def test_the_repaired_rule_is_clean_within_the_same_limits(defect: Defect) -> None:
    entry = registry.entry(defect.group.protocol)
    size = len(defect.group.names)
    if entry.flat:
        repaired = flat(entry.name, entry.load(), size)
    else:
        (_, peers), *_ = defect.group.internal
        repaired = _tree(len(peers), size - len(peers) - 1, "")
    found = explore(repaired, defect.limits)
    assert found.failure is None
    assert found.complete
