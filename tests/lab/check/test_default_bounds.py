"""Default bounds of `antecede check` refute all defective variants.

Also orders by clocks with a separation one second too large, or with trusted clocks.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from antecede.cli import main
from antecede.core.clocks.nanoseconds import NS
from antecede.core.protocols.clock_based.linear_physical import LinearPhysical
from antecede.core.protocols.registry import ENTRIES
from antecede.lab.check.check import find_target
from antecede.lab.check.check_all import PASSES, REFUTED, Case, cases, check_case
from antecede.lab.check.model_checker.explorer import explore
from antecede.lab.check.results import EARLY
from antecede.lab.check.search_plans import SearchSize, list_clock_offsets, plan_searches
from antecede.lab.check.target import Target

DEFECTIVE = [case for case in cases() if case.expected == REFUTED]


@pytest.mark.judged
@pytest.mark.parametrize("case", DEFECTIVE, ids=lambda case: case.name.replace(" --variant ", "-"))
def test_every_defective_variant_is_refuted(case: Case) -> None:
    row = check_case(case)
    assert row.ok
    assert row.said


def test_the_cases_are_all_that_the_registry_lists() -> None:
    assert {(case.protocol, case.variant) for case in cases()} == {
        (entry.name, variant) for entry in ENTRIES.values() for variant in ("", *entry.variants)
    }
    listed = {(entry.name, variant) for entry in ENTRIES.values() for variant in entry.defective}
    assert {(case.protocol, case.variant) for case in DEFECTIVE} == listed
    assert len(listed) > 15


class SeparationTooLargeByDefault(LinearPhysical):
    """Treats pairs as concurrent that are one second closer than causal pairs can be."""

    def relate(self, separation: Any) -> Any:
        old: Callable[[int, int], int] = separation.between_ns
        separation.between_ns = lambda a, b: old(a, b) + NS
        return super().relate(separation)


class ClocksBelieved(LinearPhysical):
    """Orders by readings alone, as if all clocks were exact."""

    def relate(self, separation: Any) -> Any:
        separation.between_ns = lambda a, b: 0
        return super().relate(separation)


@pytest.mark.slow
@pytest.mark.parametrize("cls", [SeparationTooLargeByDefault, ClocksBelieved])
def test_orders_by_clocks_that_are_too_wide_are_refuted(cls: type) -> None:
    found = (
        explore(*search).failure
        for search in plan_searches(Target(cls.__name__, cls), SearchSize())
    )
    failure = next((one for one in found if one is not None), None)
    assert failure is not None
    assert failure.what == EARLY


def test_clocks_are_at_their_limits_in_every_combination() -> None:
    settings = list(list_clock_offsets(find_target("linear-physical"), 3))
    assert settings[0] == (0, 0, 0)
    signs = {tuple(offset // NS for offset in setting) for setting in settings[1:]}
    assert len(signs) == len(settings) - 1 == 6
    assert all({abs(sign) for sign in one} == {1} and len(set(one)) == 2 for one in signs)


@pytest.mark.slow
def test_what_was_explored_stands_in_the_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "tv-pt", "--members", "2"]) == 0
    printed = capsys.readouterr().out
    assert "exact clocks or in 2 of 2 combinations early or late by their accuracy" in printed
    assert "time passes in whole seconds" in printed
    assert "every combination" not in printed
    assert main(["check", "linear-physical", "--variant", "rule-1b"]) == 1
    printed = capsys.readouterr().out
    assert "sent by A A B within 1 s, minimum or maximum delays, exact clocks: " in printed
    assert "stopped at the failure" in printed


@pytest.mark.slow
def test_all_prints_a_row_each_and_says_whether_all_is_as_expected(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    few = [Case("bss", "as-published", REFUTED), Case("unordered", "", PASSES)]
    monkeypatch.setattr("antecede.cli.protocols.check.cases", lambda quick: few)
    assert main(["check", "--all", "--jobs", "1"]) == 0
    printed = capsys.readouterr().out
    assert printed.splitlines()[1].split()[:5] == [
        "bss", "--variant", "as-published", "refuted", "refuted",
    ]  # fmt: skip
    assert "2 protocols and variants, all as expected" in printed
    few[1] = few[1]._replace(expected=REFUTED)
    few[0] = few[0]._replace(expected=PASSES)
    assert main(["check", "--all", "--jobs", "2"]) == 1
    printed = capsys.readouterr().out
    assert "NOT AS EXPECTED: no broken promise was found" in printed
    assert "NOT AS EXPECTED: a1 at B: held although its whole causal past" in printed
    assert "2 NOT as expected" in printed


@pytest.mark.parametrize("arguments", [["bss", "--all"], []])
def test_options_that_would_mean_nothing_are_refused(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", *arguments]) == 2
    assert "antecede: " in capsys.readouterr().err


def test_a_defective_variant_names_an_erratum_that_is_listed() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "errata.md").read_text("utf-8")
    named = [(entry, *one) for entry in ENTRIES.values() for one in entry.errata.items()]
    assert len(named) > 15
    for entry, variant, erratum in named:
        assert variant in entry.defective
        assert f"\n### {erratum}. " in page
