"""`--group`: what rows of different groups say of each other counts in no command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from antecede.cli import main
from antecede.tables.order.spec import OrderSpec
from antecede.tables.order.table import order_table
from tests.helpers.fixtures import Call, Capture

ROWS: list[dict[str, Any]] = [
    {"id": "2", "shop": "x", "after": ["1"]},
    {"id": "2", "shop": "y", "after": []},
    {"id": "1", "shop": "x", "after": []},
    {"id": "3", "shop": "y", "after": ["2", "1"]},
    {"id": "4", "shop": None, "after": ["1"]},
]


@pytest.fixture
def shops(tmp_path: Path) -> Path:
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path


def test_order_keeps_groups_apart_as_the_function_does(
    shops: Path, tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / "o.jsonl"
    assert main(["order", str(shops), "-o", str(out), "--group", "shop"]) == 0
    said = capsys.readouterr().out
    assert "quarantined 1 row" in said
    assert "1 no group" in said
    assert said.rstrip().endswith("--run=shop")
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    found = {(row["shop"], row["id"]): (row["position"], row["missing_causes"]) for row in rows}
    table = order_table(
        pa.Table.from_pylist(ROWS), OrderSpec(id="id", after=("after",), group="shop")
    )
    wanted = {
        (row["shop"], row["id"]): (row["position"], row["missing_causes"])
        for row in table.to_pylist()
        if row["position"] is not None
    }
    assert found == wanted
    assert found["y", "3"] == (1, ["1"])


def test_audit_and_meter_count_within_groups(shops: Path, said: Call) -> None:
    report = json.loads(said("audit", str(shops), "--group", "shop", "--json"))
    assert (report["messages"], report["edges"], report["missing_causes"]) == (4, 2, 1)
    assert report["details"]["quarantine"] == {"no group": 1}
    told = json.loads(
        said("false-causality", str(shops), "--group", "shop", "--rules", "arrival", "--json")
    )
    assert {row["run"]: row["events"] for row in told["counts"]} == {"x": 2, "y": 2}


@pytest.mark.parametrize("command", ["order", "audit", "false-causality"])
def test_what_cannot_be_a_group_is_refused(
    command: str, shops: Path, tmp_path: Path, refused: Call
) -> None:
    out = ["-o", str(tmp_path / "o.csv")] if command == "order" else []
    for words, said in (
        (["--group", "shop", "--run", "shop"], "--group and --run exclude each other"),
        (["--group", "city"], "no column 'city'"),
    ):
        assert said in refused(command, str(shops), *out, *words)
    log = tmp_path / "x.log"
    log.write_text('a {"a":1}\nstarts\n')
    assert "does not use --group;" in refused(command, str(log), *out, "--group", "host")


def test_blank_groups_of_text_files_are_set_aside(tmp_path: Path, said: Call) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id,after,shop\na,,1\nb,a,1\nc,a,\nd,a,  \n")
    report = json.loads(said("audit", str(path), "--group", "shop", "--json"))
    assert (report["messages"], report["details"]["quarantine"]) == (2, {"no group": 2})
