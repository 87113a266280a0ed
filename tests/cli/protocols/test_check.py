"""`antecede check`: verdicts, exit codes, and clear words about files of the user's own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from antecede.cli import main
from antecede.errors import InputError, LocalError
from antecede.lab.check.check import run_check
from antecede.lab.check.results import EARLY
from antecede.lab.check.scenario.parse import parse_scenario
from antecede.lab.check.scenario.run import run_scenario
from tests.helpers.fixtures import Call, Capture

OWN = """
from typing import NamedTuple
from antecede.core.protocols.base import Deliver, Protocol, Transmit

class Note(NamedTuple):
    sender: int
    seq: int
    payload: object

class Mine(Protocol):
    def __init__(self, me, members):
        super().__init__(me, members)
        self.sent = 0

    def send(self, payload, *, now=None, after=()):
        self.sent += 1
        return [Transmit(self.others(), Note(self.me, self.sent, payload))]

    def receive(self, message, *, now=None):
        return [Deliver(message)]

class Half(Protocol):
    def send(self, payload, *, now=None, after=()):
        return []

class Other:
    pass

class Picky(Mine):
    def __init__(self, me):
        pass

class Unhashable(Mine):
    def snapshot(self):
        return [self.sent]
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    path = tmp_path / "own.py"
    path.write_text(OWN)
    return path


def test_a_built_in_protocol_passes(said: Call) -> None:
    assert "PASS" in said("check", "fifo")


def test_a_protocol_of_ones_own_gets_its_counterexample(own: Path, capsys: Capture) -> None:
    assert main(["check", f"{own}:Mine", "--json"]) == 1
    verdict = json.loads(capsys.readouterr().out)
    failures = [part["failure"] for part in verdict["explorations"] if part["failure"]]
    assert not verdict["ok"]
    assert (
        failures[-1]["actions"] == ["send A a1", "arrive B a1", "send B b1", "arrive C b1"]
        or (failures[-1]["what"])
    )


def test_the_counterexample_is_a_scenario_that_shows_it(capsys: Capture) -> None:
    verdict = run_check("bss", variant="as-published")
    early = [failure for failure in verdict.failures if failure.what == EARLY]
    assert len(early) == 1
    run = run_scenario(parse_scenario(early[0].to_scenario()))
    assert [one.label for one in run.violations()] == [early[0].label]


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("nowhere.py:Mine", "file not found"),
        ("{own}:Nobody", "unknown class or function Nobody"),
        ("{own}:Other", "is not a protocol"),
        ("{own}:Half", "does not implement receive"),
        ("{own}:Picky", "Picky\\(me, members\\) fails: TypeError"),
        ("{own}:Unhashable", "not hashable"),
        ("{own}", "missing class name"),
    ],
)
def test_what_cannot_be_judged_is_said_clearly(own: Path, target: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        run_check(target.format(own=own))


def test_a_file_that_does_not_run_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.py"
    path.write_text("x = 1\nboom = undefined\n")
    with pytest.raises(InputError, match=r"bad\.py:2: does not run: NameError"):
        run_check(f"{path}:Mine")


def test_unknown_names_are_answered_with_the_known_ones(refused: Call) -> None:
    assert "unordered, fifo, bss" in refused("check", "nothing")
    with pytest.raises(LocalError, match="choose from differences, as-published"):
        run_check("bss", variant="nonsense")
    assert main(["check", "bss", "--members", "1"]) == 2
