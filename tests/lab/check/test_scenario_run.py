"""Scenario runs: impossible actions, checks, output."""

from __future__ import annotations

from pathlib import Path

import pytest

from antecede.core.protocols.vector.bss import Bss
from antecede.errors import InputError, ScenarioError
from antecede.lab.check.harness.group_under_test import make_flat_group
from antecede.lab.check.model_checker.explorer import SearchLimits, explore
from antecede.lab.check.scenario.execution import ScenarioRun
from antecede.lab.check.scenario.parse import (
    Scenario,
    Setup,
    format_scenario,
    load_scenario,
    parse_scenario,
)
from antecede.lab.check.scenario.run import check_output, run_scenario, update_output
from tests.lab.check import require_failure

HEAD = "protocol fifo\nmembers A B C\n"


def run(text: str) -> ScenarioRun:
    return run_scenario(parse_scenario(text, "x.scenario"))


def print_output(text: str) -> list[str]:
    return [line for moment in run(text).results for line in moment.output]


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        (HEAD + "send D m\n", 3, "unknown member D; choose from A, B, C"),
        (
            HEAD + "send A m\nsend A n\narrive B m\narrive B m\n",
            6,
            "message m is not in flight to B; in flight to it: n",
        ),
        (HEAD + "state A color\n", 3, "A has no field color; it has "),
        ("protocol fofi\nmembers A\n", 1, "unknown protocol 'fofi'; choose from unordered"),
        ("protocol bss loud=1\nmembers A\n", 1, "options are: differences, as_published"),
        ("protocol bss differences=3x\nmembers A B\n", 1, "true or false is allowed"),
        ("protocol sb patience_s=x\nmembers A B\n", 1, "patience_s"),
        ("protocol sb on_missing_parent=maybe\nmembers A B\n", 1, "protocol sb: .*maybe"),
        ("protocol fifo\ninternal S: A\n", 1, "has one role; list its members with 'members"),
        ("protocol hierarchical\nmembers A B\n", 1, "has several roles; list its members with"),
        ("protocol hierarchical as_published=listing9\ninternal S: A\n", 1, "listing9"),
    ],
)
def test_what_is_impossible_is_said_with_its_line(text: str, line: int | None, says: str) -> None:
    with pytest.raises(ScenarioError, match=says) as caught:
        run(text)
    assert caught.value.path == "x.scenario"
    assert caught.value.line == line


def test_a_violation_is_found_by_the_oracle_not_by_the_protocol() -> None:
    text = "protocol bss as_published=true\nmembers A B C\nsend A m\narrive B m\nsend B n\n"
    done = run(text + "arrive C n\n")
    assert [(one.at, one.label, one.missing_causes) for one in done.violations()] == [
        ("C", "n", ("m",))
    ]
    assert done.results[-1].output == ("C delivers n", "VIOLATION: C delivers n before m")
    repaired = run(text.replace(" as_published=true", "") + "arrive C n\n")
    assert repaired.violations() == ()
    assert [(one.at, one.label, one.others) for one in repaired.held] == [("C", "n", ("m",))]


@pytest.mark.parametrize("sponsor", ["A", "B"])  # the sponsor has sent or delivered m
def test_a_newcomer_is_not_blamed_for_what_its_sponsor_had(sponsor: str) -> None:
    text = f"protocol bss\nmembers A B\nsend A m\narrive B m\njoin C sponsor {sponsor}\n"
    done = run(text + "send B n\narrive C n\nblocked C\n")
    assert done.violations() == ()
    assert [one.output for one in done.results[-2:]] == [("C delivers n",), ("nothing",)]


def test_a_newcomer_is_owed_what_its_sponsor_lacks() -> None:
    lines = print_output("protocol bss\nmembers A B\nsend A m\njoin C sponsor B\narrive C m\n")
    assert lines == [
        "m is on its way to B",
        "C joins, B is its sponsor",
        "m is on its way from A to C",
        "C delivers m",
    ]


def test_time_passes_for_all_and_adds_up() -> None:
    head = "protocol sb on_missing_parent=deliver patience_s=3\nmembers A B C\n"
    body = "send A m\narrive B m\nsend B n after m\narrive C n\ntick 2\ntick 2\n"
    done = run(head + body)
    assert [moment.output for moment in done.results[-2:]] == [(), ("C releases n without m",)]
    assert done.violations() == ()  # an incomplete delivery is not a violation


def own(folder: Path, name: str, body: str, actions: str) -> Scenario:
    """Return a scenario in a folder under a user's class, a FIFO order with this body."""
    code = f"from antecede.core.protocols.basic.fifo import Fifo\nclass {name}(Fifo):\n{body}"
    (folder / "own.py").write_text(code, encoding="utf-8")
    path = folder / "own.scenario"
    path.write_text(f"protocol own.py:{name}\nmembers A B\n{actions}")
    return load_scenario(path)


RAISES = "    def receive(self, message, *, now=None):\n        raise "


def test_a_refused_message_is_output_and_the_run_goes_on(tmp_path: Path) -> None:
    body = (
        f"    from antecede.errors import SequenceError\n{RAISES}self.SequenceError('not today')\n"
    )
    done = run_scenario(own(tmp_path, "Picky", body, "send A m\narrive B m\nsend B n\n"))
    assert [moment.output for moment in done.results[1:]] == [
        ("rejected: not today",),
        ("n is on its way to A",),
    ]


def test_a_protocol_that_raises_is_told_with_the_line(tmp_path: Path) -> None:
    broken = own(tmp_path, "Broken", f"{RAISES}KeyError('forgotten')\n", "send A m\narrive B m\n")
    with pytest.raises(ScenarioError, match=r":4: the protocol raised KeyError: 'forgotten'"):
        run_scenario(broken)


def test_a_protocol_file_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "own.scenario"
    path.write_text("protocol own.py:Own\nmembers A B\n")
    with pytest.raises(InputError, match="file not found"):
        run_scenario(load_scenario(path))


def test_attributes_are_shown_where_a_protocol_does_not_describe_itself(tmp_path: Path) -> None:
    mood = (
        "    def __init__(self, me, members):\n        super().__init__(me, members)\n"
        "        self.mood = 'calm'\n"
    )
    (shown,) = run_scenario(own(tmp_path, "Own", mood, "state A\n")).results
    assert {"members = (A, B)", "mood = calm", "sent = 0"} <= set(shown.output)
    telling = f"{mood}    def describe(self):\n        return {{'says': self.mood}}\n"
    (said,) = run_scenario(own(tmp_path, "Telling", telling, "state A\n")).results
    assert said.output == ("says = calm",)
    assert print_output("protocol fifo\nmembers A B\nstate A sent\n") == ["sent = 0"]


def test_wrong_expectations_are_reported_and_rewriting_settles_them() -> None:
    text = HEAD + "send A m\n= something else\narrive B m\n"
    (first, second) = check_output(run(text))
    assert first.startswith("x.scenario:3: expected ['something else'], got ['m is on its way")
    assert second.startswith("x.scenario:5: expected [], got ['B delivers m']")
    settled = update_output(text)
    assert check_output(run(settled)) == ()
    assert update_output(settled) == settled


def test_a_counterexample_of_the_explorer_is_a_scenario_that_shows_the_same() -> None:
    company = make_flat_group("bss", Bss, 3, {"as_published": True})
    failure = require_failure(explore(company, SearchLimits(3)).failure)
    names = tuple(company.names.values())
    done = run(format_scenario(Setup("bss", company.options, names), failure.actions))
    held = {(one.at, one.label) for one in done.held}
    early = {(one.at, one.label) for one in done.violations()}
    assert (failure.at, failure.label) in held | early
