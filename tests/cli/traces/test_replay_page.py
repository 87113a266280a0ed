"""A delivered log as a trace and a page: every row of the log stands in it, in the order it had."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from antecede.cli import main
from antecede.lab.record.example_logs import Talk, record_log
from antecede.tables.causality import Causality
from antecede.tables.order.replay.spec import DeliverSpec
from antecede.tables.order.replay.table import deliver_table, deliver_wide
from antecede.tables.order.replay.trace_export import trace_of
from tests.helpers.fixtures import Call

NAMES = ("ann", "bob", "cat")
TAKEN: dict[str, Any] = {"sent": "sent", "to": "to", "topics": "topics"}


def delivered(order: str, **more: Any) -> tuple[pa.Table, pa.Table, DeliverSpec]:
    spec = DeliverSpec(order=order, members=NAMES, **TAKEN, **more)
    groups = {name: DeliverSpec(order=order, members=NAMES).group_of(name, None) for name in NAMES}
    log = record_log(groups, Talk(messages=60, lost=0.1))
    return log, deliver_wide(log, spec, deliver_table), spec


@pytest.mark.parametrize("order", ["causal", "fifo", "none"])
def test_all_of_a_log_stands_in_its_trace(order: str) -> None:
    log, done, spec = delivered(order)
    shown = trace_of(log, done, spec)
    rows: Any = shown.events.to_pylist()
    outcomes: Any = done.to_pylist()
    count = {
        kind: sum(row["kind"] == kind for row in rows) for kind in ("send", "receive", "deliver")
    }
    statuses = [row["status"] for row in outcomes]
    assert count["send"] == statuses.count("sent")
    assert count["receive"] == len(statuses) - count["send"]
    assert count["deliver"] == statuses.count("delivered") > 50
    for name in NAMES:
        mine = [row for row in rows if row["member"] == name]
        places = [row["id"] for row in mine if row["kind"] == "deliver"]
        want = sorted(
            (row for row in outcomes if row["observer"] == name and row["status"] == "delivered"),
            key=lambda row: row["position"],
        )
        assert places == [f"{row['sender']}:{row['seq']}" for row in want]
        own = [row for row in outcomes if row["observer"] == name and row["status"] == "sent"]
        assert [row["id"] for row in mine if row["kind"] == "send"] == [
            f"{row['sender']}:{row['seq']}" for row in sorted(own, key=lambda row: row["time"])
        ]
        held = {f"{row['sender']}:{row['seq']}": row["waited_ms"] for row in want}
        came: dict[str, int] = {}
        for row in mine:
            if row["kind"] == "receive":
                came.setdefault(row["id"], row["arrival"])
        for row in mine:
            if row["kind"] == "deliver":
                waited = (row["arrival"] - came[row["id"]]) / 1e6
                assert waited == pytest.approx(held[row["id"]], abs=1e-3)
    asked = Causality(shown.events)
    assert asked.by == "events"
    assert not [note for note in asked.notes if "on cycles" in note]


def test_a_causal_replay_delivers_nothing_before_its_cause() -> None:
    log, done, spec = delivered("causal")
    events: Any = trace_of(log, done, spec).events
    kinds: Any = pc.is_in(events["kind"], pa.array(["send", "deliver"]))
    asked = Causality(events.filter(kinds))  # the order goes by delivery, not by receipt
    for name in NAMES:
        mine: Any = [row for row in asked.events.to_pylist() if row["member"] == name]
        order = [row["id"] for row in mine if row["kind"] in ("send", "deliver")]
        for k, late in enumerate(order[:25]):
            past: Any = asked.past(late)
            before = {row["id"] for row in past.to_pylist() if row["kind"] == "send"}
            assert not before & set(order[k + 1 :])


def test_the_page(tmp_path: Path, said: Call, refused: Call) -> None:
    log, page = tmp_path / "log.parquet", tmp_path / "log.html"
    assert main(["replay", str(log), "--example", "60"]) == 0
    table = pq.read_table(log)
    rows: Any = table.to_pylist()
    rows[3]["time"] = None
    rows[5]["wire"] = b"nothing"
    pq.write_table(pa.Table.from_pylist(rows, table.schema), log)
    assert f"page        {page}" in said("replay", str(log), "--output-html", str(page))
    assert page.stat().st_size > 10_000
    assert main(["replay", str(log), "--output-html", str(page)]) == 2
    assert main(["replay", str(log), "--output-html", str(page), "--force"]) == 0
    assert main(["replay", str(log), "--output-html", str(tmp_path / "page.txt")]) == 2
    assert "nothing is written" in refused("replay", str(log), "--force")
