"""Search job of the page: results, progress, stop."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from antecede.errors import InputError, LocalError, OptionError
from antecede.lab.check.check import run_check
from antecede.lab.check.scenario.parse import parse_scenario
from antecede.lab.check.scenario.run import run_scenario
from antecede.lab.check.scenario.verdict import report
from antecede.lab.play.search import SearchManager, SearchRequest, verdict_to_dict

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
def finder() -> Iterator[SearchManager]:
    made = SearchManager()
    yield made
    made.close()


def wait_for_end(finder: SearchManager, job: str) -> Mapping[str, Any]:
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        told = finder.get_progress(job)
        if told["done"]:
            return told
        time.sleep(0.05)
    raise AssertionError("no end was found")


def test_what_the_command_finds_is_found(finder: SearchManager) -> None:
    search = SearchRequest("bss", options=(("as_published", "true"),))
    told = wait_for_end(finder, finder.start(search))
    alone = run_check("bss", options=search.options)
    assert told["ok"] is False
    assert told["lines"] == report(alone)
    run = run_scenario(parse_scenario(told["text"]))
    assert run.scenario.setup.options == search.options
    assert run.violations() or run.held


@pytest.mark.slow
@pytest.mark.parametrize(
    ("members", "messages", "thorough"), [(2, 2, False), (3, 2, False), (3, 2, True)]
)
def test_a_search_is_as_large_as_was_asked_and_a_right_protocol_passes(
    finder: SearchManager, members: int, messages: int, thorough: bool
) -> None:
    search = SearchRequest("fifo", members=members, messages=messages, thorough=thorough)
    told = wait_for_end(finder, finder.start(search))
    alone = run_check("fifo", members=members, messages=messages, thorough=thorough)
    assert (told["states"], told["runs"]) == (alone.states, alone.runs)
    assert (told["ok"], told["text"]) == (True, None)
    assert told["lines"][-1].startswith("PASS")


def test_an_own_class_is_broken_and_named_from_the_folder(
    finder: SearchManager, tmp_path: Path
) -> None:
    (tmp_path / "own.py").write_text(OWN, encoding="utf-8")
    search = SearchRequest(
        f"{tmp_path}/own.py:Careless", members=3, messages=2, folder=str(tmp_path)
    )
    told = wait_for_end(finder, finder.start(search))
    assert told["ok"] is False
    scenario = parse_scenario(told["text"], str(tmp_path / "x.scenario"))
    assert scenario.setup.protocol == "own.py:Careless"
    assert run_scenario(scenario).violations()


@pytest.mark.slow
def test_it_stops_at_once_and_another_can_begin(finder: SearchManager) -> None:
    job = finder.start(SearchRequest("matrix", members=4, messages=6, thorough=True))
    with pytest.raises(InputError, match="another search is running"):
        finder.start(SearchRequest("fifo"))
    until = time.monotonic() + PATIENCE_S
    while not finder.get_progress(job)["states"] and time.monotonic() < until:
        time.sleep(0.05)
    assert finder.get_progress(job)["states"] > 0
    assert "members" in finder.get_progress(job)["setting"]
    assert finder._worker is not None
    number = finder._worker.process.pid
    assert number is not None
    told = finder.stop(job)
    assert told["done"]
    assert told["stopped"]
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)
    assert finder.get_progress(job) == told
    assert finder.stop(job) == told
    other = finder.start(SearchRequest("unordered", members=2, messages=1))
    assert wait_for_end(finder, other)["ok"]
    with pytest.raises(InputError, match="unknown search job"):
        finder.get_progress(job)


@pytest.mark.slow
def test_a_class_that_catches_what_stops_it_ends_too(finder: SearchManager, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN, encoding="utf-8")
    job = finder.start(SearchRequest(f"{tmp_path}/own.py:Stubborn", members=2, messages=1))
    time.sleep(1.5)
    assert finder._worker is not None
    number = finder._worker.process.pid
    assert number is not None
    finder.stop(job)
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)


def test_a_search_that_dies_says_so(finder: SearchManager, tmp_path: Path) -> None:
    text = OWN.replace("return [Deliver(message)]", "import os; os._exit(3)")
    (tmp_path / "own.py").write_text(text, encoding="utf-8")
    told = wait_for_end(
        finder, finder.start(SearchRequest(f"{tmp_path}/own.py:Careless", members=2))
    )
    assert told == {"done": True, "error": "the search ended without an answer (exit code 3)"}


def test_what_cannot_be_searched_is_refused_before(finder: SearchManager) -> None:
    with pytest.raises(LocalError, match="no protocol is called 'fofi'"):
        finder.start(SearchRequest("fofi"))
    with pytest.raises(LocalError, match="bss has no variant 'loud'"):
        finder.start(SearchRequest("bss", "loud"))
    with pytest.raises(OptionError, match="options are"):
        finder.start(SearchRequest("bss", options=(("loud", "1"),)))
    with pytest.raises(InputError, match="members=1: choose 2 to 10"):
        finder.start(SearchRequest("bss", members=1))
    with pytest.raises(InputError, match="messages=99: choose 1 to 12"):
        finder.start(SearchRequest("bss", messages=99))
    with pytest.raises(InputError, match="unknown search job"):
        finder.get_progress("")


def test_a_verdict_of_a_variant_names_it() -> None:
    verdict = run_check("bss", variant="as-published", members=3, messages=2)
    told = verdict_to_dict(verdict, SearchRequest("bss", "as-published"))
    assert told["lines"][0].startswith("bss (as-published)")
    assert "as_published=true" in told["text"]
    assert told["sentences"] == [failure.sentence() for failure in verdict.failures]
