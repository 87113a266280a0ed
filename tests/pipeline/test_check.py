"""Check of the pipeline: detects each kind of error, and none in a correct table."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.check import EventHistory, check_table, read_history

Rows = list[dict[str, Any]]

LOGS: dict[str, list[dict[str, Any]]] = {
    "orders": [
        {"control": 0, "do": "send", "id": "placed", "customer": "c", "value": "p"},
        {"control": 0, "do": "send", "id": "reserved", "customer": "c", "value": "r"},
        {"control": 1, "do": "send", "id": "other", "customer": "d", "value": "o"},
        {"do": "end", "sent": 3},
    ],
    "payments": [
        {"control": 0, "do": "handle", "id": "placed"},
        {"control": 1, "do": "follow", "other": 0, "lines": 1},
        {"control": 1, "do": "send", "id": "taken", "customer": "c", "value": "t"},
        {"control": 0, "do": "send", "id": "noted", "customer": "c", "value": "n"},
        {"do": "end", "sent": 2},
    ],
}
BEFORE = {
    "placed": set[str](),
    "reserved": {"placed"},
    "other": set[str](),
    "taken": {"placed"},
    "noted": {"placed"},
}


@pytest.fixture
def history(tmp_path: Path) -> EventHistory:
    for service, lines in LOGS.items():
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (tmp_path / f"{service}.jsonl").write_text(text)
    copies = [*BEFORE, "taken"]
    text = "".join(json.dumps({"id": name}) + "\n" for name in copies)
    (tmp_path / "courier.jsonl").write_text(text)
    return read_history(tmp_path, list(LOGS))


def table(history: EventHistory) -> Rows:
    """A right table: one customer's rows in order, the repeat marked."""
    place = {"placed": 0, "reserved": 1, "taken": 2, "noted": 3, "other": 0}
    rows: Rows = [
        {
            "message_id": name,
            "causes": sorted(history.before[name]),
            "customer": history.customer[name],
            "value": history.value[name],
            "position": position,
            "antecede_status": "ordered",
        }
        for name, position in place.items()
    ]
    return [*rows, {**rows[2], "position": None, "antecede_status": "duplicate"}]


def test_happened_before_is_read_from_the_logs(history: EventHistory) -> None:
    assert history.before == BEFORE
    assert history.carried_copies["taken"] == 2
    assert history.last_lines["orders"]["sent"] == 3


def test_a_right_table_is_right(history: EventHistory) -> None:
    verdict = check_table(history, table(history))
    assert verdict.is_ok
    assert verdict[:5] == (5, 6, 2, 3, 3)


def swap(rows: Rows) -> None:
    rows[0]["position"], rows[3]["position"] = rows[3]["position"], rows[0]["position"]


FAULTS: dict[str, tuple[str, Callable[[Rows], Any]]] = {
    "a row is lost": ("lost", lambda rows: rows.pop(1)),
    "a repeat is lost": ("lost", lambda rows: rows.pop()),
    "a row is there twice": ("duplicated", lambda rows: rows.append(rows[1])),
    "a repeat too many": ("duplicated", lambda rows: rows.append(rows[-1])),
    "nobody sent it": ("invalid", lambda rows: rows.append({**rows[-1], "message_id": "x"})),
    "its text is another": ("invalid", lambda rows: rows[1].update(value="?")),
    "a status is wrong": ("invalid", lambda rows: rows[1].update(antecede_status="late")),
    "the effect is first": ("violations", swap),
    "a gap": ("gaps", lambda rows: rows[3].update(position=7)),
    "a cause is not named": ("wrong_contexts", lambda rows: rows[3].update(causes=[])),
    "a cause too many": ("wrong_contexts", lambda rows: rows[3].update(causes=["placed", "taken"])),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_found(history: EventHistory, fault: str) -> None:
    kind, damage = FAULTS[fault]
    rows = table(history)
    damage(rows)
    verdict = check_table(history, rows)
    assert not verdict.is_ok
    assert getattr(verdict, kind), verdict
