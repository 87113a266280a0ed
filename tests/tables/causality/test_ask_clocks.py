"""Clock skew beside an answer's times, equal to the audit's metric."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from antecede.lab.simulate.config.model import Clocks
from antecede.lab.simulate.outputs.trace import write_trace
from antecede.lab.simulate.reference_engine import run_readable
from antecede.tables.audit import audit
from antecede.tables.trace.reader import ReadOptions
from tests.lab.simulate.small_configs import config_of
from tests.tables.conftest import Command

REGEX = r"(?<date>\S+) (?<host>\S+) (?<clock>{.*}) (?<event>.*)"
LOG = """2026-01-01T00:00:00.000Z P {"P":1} asks
2026-01-01T00:00:00.900Z P {"P":2} does something else
2025-12-31T23:59:59.400Z Q {"P":1,"Q":1} is asked
2025-12-31T23:59:59.500Z Q {"P":1,"Q":2} answers
2026-01-01T00:00:01.000Z P {"P":3,"Q":2} has the answer
2026-01-01T00:00:02.000Z R {"R":1} sleeps
"""


@pytest.fixture
def asked(command: Command) -> Callable[..., tuple[Any, str]]:
    """Return a function that asks for plain data and for text."""
    return lambda *words: (command("ask", *words, "--json").json, command("ask", *words).out)


def test_a_declared_history(tmp_path: Path, asked: Any) -> None:
    path = tmp_path / "log.csv"
    path.write_text(
        "id,after,member,time\na,,P,2026-01-01T00:00:10Z\nb,a,Q,2026-01-01T00:00:07Z\n"
        "c,b,P,2026-01-01T00:00:12Z\nd,,R,2026-01-01T00:00:12Z\n"
    )
    told, said = asked(path, "past", "c")
    assert told["clock_skew"] == audit([path]).details["clock_skew"]
    assert "(at worst b of Q, 3,000 ms before its cause a of P)" in said
    told, said = asked(path, "before", "b", "c")
    assert told["clock_skew"]["violations_within_a_process"] == 0
    assert "Note" not in said  # of b and c alone the times fit
    told, said = asked(path, "past", "d")
    assert "Note" not in said


def test_vector_clocks_with_times(tmp_path: Path, asked: Any) -> None:
    path = tmp_path / "two.log"
    path.write_text(LOG)
    words = ["--regex", REGEX]
    skew = audit([path], None, ReadOptions(regex=REGEX)).details["clock_skew"]
    assert skew["worst"]["early_ns"] == 600_000_000
    told, said = asked(path, "past", "P:3", *words)
    assert told["clock_skew"]["hosts"] == skew["hosts"]
    assert "before its cause" in said


def test_a_simulated_run(tmp_path: Path, asked: Any) -> None:
    path = tmp_path / "run.parquet"
    scenario = config_of("idr", clocks=Clocks(accuracy_s=0.3))
    _, run = run_readable(scenario, 3, True)
    write_trace(run, path)
    whole = audit([path]).details["clock_skew"]
    last = f"m{max(k for k, at in enumerate(run.sent_us) if at is not None)}"
    told, said = asked(path, "past", last)
    found = told["clock_skew"]
    assert sum(pair["violations"] for pair in found["pairs"]) > 0
    same_pair = {(one["of"], one["against"]): one for one in whole["pairs"]}
    for pair in found["pairs"]:
        same = same_pair[pair["of"], pair["against"]]
        assert pair["violations"] <= same["violations"]
        assert pair["edges"] <= same["edges"]
    assert "Note: among these, the clocks of" in said
