"""No sentence stands by itself: figures are changed, and every finding and verdict has to follow.

Each sentence declares the quantities that it is computed from (`reads`). Changing any of them must
be able to change it, and changing all others must not: so a fixed string can be no finding, and a
sentence cannot read what it does not declare. A verdict must be able to turn.
"""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from antecede.lab.report.model import NO_METRICS, Claim, Findings
from antecede.lab.reproductions.framework.execute import SCHEMA, run_locally
from antecede.lab.reproductions.framework.registry import STUDIES, load
from antecede.lab.reproductions.framework.results import Results
from antecede.lab.reproductions.framework.runner import conduct
from antecede.lab.reproductions.framework.study import Study, check_runs
from antecede.lab.reproductions.sweeps.sweep import read_sweep, sweep_study
from tests.lab.reproductions.conftest import Carried

Change = Callable[[list[float]], list[float]]


def _drawn(seed: int, widest: float) -> Change:
    """Return a change that is drawn, the same for the same values whatever was drawn before."""

    def change(values: list[float]) -> list[float]:
        chance = random.Random(f"{seed} {values}")
        return [v * chance.uniform(0, widest) + chance.random() for v in values]

    return change


CHANGES: dict[str, Change] = {
    "nothing": lambda values: [0.0 for _ in values],
    "one": lambda values: [1.0 for _ in values],
    "thrice": lambda values: [3 * v for v in values],
    "a thousandfold": lambda values: [1000 * v for v in values],
    "a third": lambda values: [v / 3 for v in values],
    "negative": lambda values: [-v - 1 for v in values],
    "turned round": lambda values: values[::-1],
    "rising": lambda values: [v + 1.5 * k for k, v in enumerate(values)],
    "rising fast": lambda values: [v + 1e4 * k for k, v in enumerate(values)],
    "steeper": lambda values: [v * (1 + k / 4) for k, v in enumerate(values)],
    "falling": lambda values: [v + 7.0 * (len(values) - k) for k, v in enumerate(values)],
    "one higher": lambda values: [v + 1 for v in values],
    "a million higher": lambda values: [v + 1e6 for v in values],
    "drawn": _drawn(1, 2.0),
    "drawn again": _drawn(2, 20.0),
}


class Sentence(NamedTuple):
    place: str
    text: str
    holds: bool | None
    reads: tuple[str, ...]


def sentences(findings: Findings) -> dict[str, Sentence]:
    """Return every sentence that a page computes, by its place."""
    found = [Sentence("headline", findings.finding, None, tuple(findings.reads))]
    for section in findings.sections:
        title = section.title
        found.append(Sentence(title, section.finding, None, tuple(section.reads)))
        found += [
            Sentence(f"{title} / {claim.statement}", claim.found, claim.holds, tuple(claim.reads))
            for claim in section.claims
        ]
    assert len({one.place for one in found}) == len(found)
    return {one.place: one for one in found}


def changed(
    results: Results, chosen: Callable[[str], bool], change: Change, kind: str | None = None
) -> Results:
    """Return the results with the values of some quantities changed, a quantity at a time."""
    rows: Any = results.table
    names, values = rows["quantity"].to_pylist(), rows["value"].to_pylist()
    series, keys = rows["series"].to_pylist(), rows["run"].to_pylist()
    touched = {run.key for run in results.runs if kind in (None, run.kind)}
    places: dict[str, list[int]] = {}
    for k, (name, key) in enumerate(zip(names, keys, strict=True)):
        if name is not None and key in touched and chosen(name):
            places.setdefault(name, []).append(k)
    for rows_of_one in places.values():
        single = [k for k in rows_of_one if values[k] is not None]
        for k, value in zip(single, change([values[k] for k in single]), strict=True):
            values[k] = value
        for k in rows_of_one:
            if series[k] is not None:
                series[k] = change(series[k])
    at = rows.schema.get_field_index
    rows = rows.set_column(at("value"), "value", pa.array(values, pa.float64()))
    many = pa.list_(pa.float64())
    return Results(rows.set_column(at("series"), "series", pa.array(series, many)), results.runs)


def is_one_of(patterns: Sequence[str]) -> Callable[[str], bool]:
    return lambda name: any(fnmatchcase(name, pattern) for pattern in patterns)


class Case:
    """A study's findings, and what they become when figures change."""

    def __init__(self, name: str, results: Results, study: Study | None = None) -> None:
        self.name, self.results = name, results
        self.study = study or load(name)
        self.sentences = sentences(self.study.findings(results, True))
        rows: Any = results.table
        found = set(rows["quantity"].to_pylist()) - {None}
        self.quantities: list[str] = sorted(found)
        self.kinds = sorted({run.kind for run in results.runs})
        self.known: dict[tuple[frozenset[str], str, str | None], dict[str, Sentence]] = {}

    def after(self, names: frozenset[str], change: str, kind: str | None) -> dict[str, Sentence]:
        key = (names, change, kind)
        if key not in self.known:
            other = changed(self.results, names.__contains__, CHANGES[change], kind)
            self.known[key] = sentences(self.study.findings(other, True))
        return self.known[key]

    def matching(self, patterns: Sequence[str]) -> frozenset[str]:
        return frozenset(filter(is_one_of(patterns), self.quantities))

    def futures(self, names: frozenset[str], place: str) -> Iterator[Sentence | None]:
        """Yield what becomes of a sentence under every change of these quantities."""
        for kind in (None, *self.kinds):
            for change in CHANGES:
                yield self.after(names, change, kind).get(place)


SWEPT = """
[topology]
kind = "mesh"
peers = 4
[run]
duration_s = 1
warm_s = 0.2
"""


@pytest.fixture(scope="module", params=[*STUDIES, "sweep"])
def case(
    request: pytest.FixtureRequest, carried_out: Carried, tmp_path_factory: pytest.TempPathFactory
) -> Case:
    if request.param == "sweep":
        folder = tmp_path_factory.mktemp("sweep")
        (folder / "run.toml").write_text(SWEPT)
        over = ["members=3,6", "protocol=bss,unordered"]
        study = sweep_study(read_sweep(folder / "run.toml", over, (1, 2)))
        done = conduct(study, run_locally, folder / "out", stream=io.StringIO())
        return Case("sweep", done.results, study)
    return Case(str(request.param), carried_out(str(request.param)).results)


@pytest.mark.slow
def test_every_sentence_follows_from_the_figures_that_it_names(case: Case) -> None:
    for place, sentence in case.sentences.items():
        assert bool(sentence.text) == bool(sentence.reads), f"{place}: a sentence without figures"
        for pattern in sentence.reads:
            names = case.matching([pattern])
            assert any(
                other is None or other[1:3] != sentence[1:3] for other in case.futures(names, place)
            ), f"{place}: no change of {pattern} changes {sentence.text!r}"


def test_no_sentence_reads_what_it_does_not_name(case: Case) -> None:
    for place, sentence in case.sentences.items():
        others = frozenset(case.quantities) - case.matching(sentence.reads)
        for change in ("nothing", "thrice", "turned round", "drawn"):
            other = case.after(others, change, None).get(place)
            assert other == sentence, f"{place}: it follows from other quantities too"


def test_every_verdict_turns(case: Case) -> None:
    for place, sentence in case.sentences.items():
        if sentence.holds is None:
            continue
        together = case.matching(sentence.reads)
        alone = [case.matching([pattern]) for pattern in sentence.reads]
        assert any(
            other is not None and other.holds is not sentence.holds and NO_METRICS not in other.text
            for names in (together, *alone)
            for other in case.futures(names, place)
        ), f"{place}: always {sentence.holds}"


def test_nothing_is_claimed_where_runs_are_missing(case: Case) -> None:
    study = case.study
    none = study.findings(Results(SCHEMA.empty_table(), check_runs(study.runs(True))), True)
    assert not none.reads
    for section in none.sections:
        assert not section.finding, section.title
        assert all(claim.holds is None for claim in section.claims)


def test_a_verdict_has_words() -> None:
    claim = Claim("It grows", "ours", "from 1 to 2", True, ["size"])
    verdicts = [claim._replace(holds=holds).verdict for holds in (True, False, None)]
    assert verdicts == ["holds", "does not hold", "undecided"]
    assert claim._replace(holds=None, found=NO_METRICS).verdict == "not run"
