"""The search behind the page: what it finds, what it says is right, and that it stops."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from antecede.errors import InputError, LocalError, OptionError
from antecede.lab.check.check import run_check
from antecede.lab.check.scenario.parse import parse_script
from antecede.lab.check.scenario.run import run_script
from antecede.lab.check.scenario.verdict import report
from antecede.lab.play.search import Finder, Search, told_of

PATIENCE_S = 120.0
OWN = '''
from antecede.core.protocols.base import Deliver, Protocol
from antecede.core.protocols.basic.unordered import Unordered

class Careless(Unordered):
    """Delivers what comes as it comes, and promises causal order."""
    guarantee = Protocol.guarantee

    def receive(self, message, *, now=None):
        return [Deliver(message)]

class Stubborn(Careless):
    def receive(self, message, *, now=None):
        while True:
            try:
                while True:
                    pass
            except BaseException:
                pass
'''


@pytest.fixture
def finder() -> Iterator[Finder]:
    made = Finder()
    yield made
    made.close()


def ended(finder: Finder, job: str) -> Mapping[str, Any]:
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        told = finder.found(job)
        if told["done"]:
            return told
        time.sleep(0.05)
    raise AssertionError("no end was found")


def test_what_the_command_finds_is_found(finder: Finder) -> None:
    search = Search("bss", options=(("as_published", "true"),))
    told = ended(finder, finder.begin(search))
    alone = run_check("bss", options=search.options)
    assert told["ok"] is False
    assert told["lines"] == report(alone)
    run = run_script(parse_script(told["text"]))
    assert run.script.setup.options == search.options
    assert run.violations() or run.held


@pytest.mark.slow
@pytest.mark.parametrize(
    ("members", "messages", "thorough"), [(2, 2, False), (3, 2, False), (3, 2, True)]
)
def test_a_search_is_as_large_as_was_asked_and_a_right_protocol_passes(
    finder: Finder, members: int, messages: int, thorough: bool
) -> None:
    search = Search("fifo", members=members, messages=messages, thorough=thorough)
    told = ended(finder, finder.begin(search))
    alone = run_check("fifo", members=members, messages=messages, thorough=thorough)
    assert (told["states"], told["runs"]) == (alone.states, alone.runs)
    assert (told["ok"], told["text"]) == (True, None)
    assert told["lines"][-1].startswith("PASS")


def test_an_own_class_is_broken_and_named_from_the_folder(finder: Finder, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN, encoding="utf-8")
    search = Search(f"{tmp_path}/own.py:Careless", members=3, messages=2, folder=str(tmp_path))
    told = ended(finder, finder.begin(search))
    assert told["ok"] is False
    script = parse_script(told["text"], str(tmp_path / "x.scenario"))
    assert script.setup.protocol == "own.py:Careless"
    assert run_script(script).violations()


@pytest.mark.slow
def test_it_stops_at_once_and_another_can_begin(finder: Finder) -> None:
    job = finder.begin(Search("matrix", members=4, messages=6, thorough=True))
    with pytest.raises(InputError, match="a search is under way"):
        finder.begin(Search("fifo"))
    until = time.monotonic() + PATIENCE_S
    while not finder.found(job)["states"] and time.monotonic() < until:
        time.sleep(0.05)
    assert finder.found(job)["states"] > 0
    assert "members" in finder.found(job)["setting"]
    assert finder._worker is not None
    number = finder._worker.process.pid
    assert number is not None
    told = finder.stop(job)
    assert told["done"]
    assert told["stopped"]
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)
    assert finder.found(job) == told
    assert finder.stop(job) == told
    other = finder.begin(Search("unordered", members=2, messages=1))
    assert ended(finder, other)["ok"]
    with pytest.raises(InputError, match="there is no such search"):
        finder.found(job)


@pytest.mark.slow
def test_a_class_that_catches_what_stops_it_ends_too(finder: Finder, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN, encoding="utf-8")
    job = finder.begin(Search(f"{tmp_path}/own.py:Stubborn", members=2, messages=1))
    time.sleep(1.5)
    assert finder._worker is not None
    number = finder._worker.process.pid
    assert number is not None
    finder.stop(job)
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)


def test_a_search_that_dies_says_so(finder: Finder, tmp_path: Path) -> None:
    text = OWN.replace("return [Deliver(message)]", "import os; os._exit(3)")
    (tmp_path / "own.py").write_text(text, encoding="utf-8")
    told = ended(finder, finder.begin(Search(f"{tmp_path}/own.py:Careless", members=2)))
    assert told == {"done": True, "error": "the search ended without an answer (exit code 3)"}


def test_what_cannot_be_searched_is_refused_before(finder: Finder) -> None:
    with pytest.raises(LocalError, match="no protocol is called 'fofi'"):
        finder.begin(Search("fofi"))
    with pytest.raises(LocalError, match="bss has no variant 'loud'"):
        finder.begin(Search("bss", "loud"))
    with pytest.raises(OptionError, match="options are"):
        finder.begin(Search("bss", options=(("loud", "1"),)))
    with pytest.raises(InputError, match="members=1: 2 to 10 here"):
        finder.begin(Search("bss", members=1))
    with pytest.raises(InputError, match="messages=99: 1 to 12 here"):
        finder.begin(Search("bss", messages=99))
    with pytest.raises(InputError, match="there is no such search"):
        finder.found("")


def test_a_verdict_of_a_variant_names_it() -> None:
    verdict = run_check("bss", variant="as-published", members=3, messages=2)
    told = told_of(verdict, Search("bss", "as-published"))
    assert told["lines"][0].startswith("bss (as-published)")
    assert "as_published=true" in told["text"]
    assert told["sentences"] == [failure.sentence() for failure in verdict.failures]
