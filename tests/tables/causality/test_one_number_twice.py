"""Two events of a member with one number: indistinguishable by clocks, both named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from antecede.errors import InputError
from antecede.tables.causality import Causality
from antecede.tables.trace.schema import Event
from tests.tables.conftest import Command
from tests.tables.events import clocked, table_of

ROWS: list[dict[str, Any]] = [
    {"id": "one", "member": "p", "clock": {"p": 1}},
    {"id": "two", "member": "p", "clock": {"p": 1}},
    {"id": "after", "member": "q", "clock": {"p": 1, "q": 1}},
]


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (2, 1, 0)])
def test_both_are_named_in_whatever_order_they_stand(
    order: tuple[int, ...], tmp_path: Path, command: Command
) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps(ROWS[k]) + "\n" for k in order))
    first, second = (ROWS[k]["id"] for k in order if k < 2)
    said = f"{first} and {second} are both event 1 of p: they cannot be distinguished"
    for words in (
        ["past", "one"],
        ["future", "two", "--json"],
        ["before", "after", "two"],
        ["between", "one", "after"],
        ["concurrent", "one"],
    ):
        assert said in command("ask", path, *words).refused
    assert said in command("ask", path, "past", "after").out
    notes = command("ask", path, "past", "after", "--json").json["notes"]
    assert any(said in note for note in notes)
    assert said in command("cut", path, "p=1").out


def event(id: str, member: str, line: int, run: str | None = None, **clock: int) -> Event:
    where = {"text": f"line {line}", "source": "x.log", "line": line}
    return clocked(id, member, clock, run=run, **where)


def test_events_of_one_id_are_named_by_their_places() -> None:
    rows = [event("p:1", "p", 1, p=1), event("p:1", "p", 9, p=1), event("q:1", "q", 3, q=1)]
    asked = Causality(table_of(rows))
    with pytest.raises(InputError, match=r"p:1 \(x.log, line 1\) and p:1 \(x.log, line 9\) are"):
        asked.past("p:1")
    assert len(asked.past("q:1")) == 0


def test_one_number_in_two_runs_is_two_numbers() -> None:
    rows = [event("a", "p", 1, "x", p=1), event("b", "p", 2, "y", p=1)]
    asked = Causality(table_of(rows))
    assert not any("distinguished" in note for note in asked.notes)
    assert len(asked.past("a")) == 0


def test_a_repeated_row_is_one_event() -> None:
    rows = [event("a", "p", 1, p=1), event("a", "p", 1, p=1), event("b", "p", 2, p=2)]
    assert Causality(table_of(rows)).precedes("a", "b")


def test_three_of_a_number_are_all_named() -> None:
    rows = [event(name, "p", k, p=1) for k, name in enumerate("abc")]
    with pytest.raises(InputError, match="a and b and c are all event 1 of p"):
        Causality(table_of(rows)).past("c")
