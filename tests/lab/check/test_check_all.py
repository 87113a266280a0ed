"""Check of all protocols and variants."""

from __future__ import annotations

import pytest

from antecede.lab.check.check import find_target, run_check
from antecede.lab.check.check_all import PASSES, REFUTED, Case, cases, check_case
from antecede.lab.check.results import EARLY, NEEDLESS_HOLD, STUCK
from antecede.lab.check.search_plans import SearchSize, plan_searches, suites


def test_quick_leaves_out_variants_that_keep_their_promises() -> None:
    every, quick = cases(), cases(quick=True)
    assert set(quick) == {one for one in every if one.expected == REFUTED or not one.variant}
    assert len(quick) < len(every)


@pytest.mark.parametrize("name", ["bss", "ses", "hierarchical", "linear", "total"])
def test_quick_searches_are_smaller(name: str) -> None:
    target = find_target(name)

    def extent(size: SearchSize) -> tuple[int, int]:
        sent = [limits.messages for _, limits in plan_searches(target, size)]
        return sum(sent), sum(plan.runs for _, plan in suites(target, size))

    quick, default = extent(SearchSize(quick=True)), extent(SearchSize())
    assert quick[0] < default[0]
    assert quick[1] < default[1]


def test_a_case_ends_at_its_first_broken_promise() -> None:
    whole = run_check("bss", variant="as-published").failures
    assert [one.what for one in whole] == [NEEDLESS_HOLD, STUCK, EARLY]
    row = check_case(Case("bss", "as-published", REFUTED))
    assert (row.found, row.ok) == (REFUTED, True)
    assert row.said == whole[0].sentence()


def test_quick_changes_nothing_for_a_case_that_is_to_be_refuted() -> None:
    case = Case("bss", "as-published", REFUTED)
    assert check_case(case, quick=True)._replace(seconds=0) == check_case(case)._replace(seconds=0)


def test_a_broken_promise_is_found_by_a_quick_check() -> None:
    row = check_case(Case("bss", "as-published", PASSES), quick=True)
    assert (row.found, row.ok) == (REFUTED, False)
