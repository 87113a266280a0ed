"""Services and courier as processes over files; the lake is ordered locally."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from antecede.core.propagation import read
from antecede.errors import SetupError
from antecede.tables.order.spec import OrderSpec
from antecede.tables.order.table import order_table
from pipeline import courier
from pipeline.check import Verdict, check_table, read_history
from pipeline.courier import Outage, apply_outage, draw_delays
from pipeline.processes import Processes
from pipeline.run import prepare_folder
from pipeline.service import require_stamp
from pipeline.services import TOPICS
from pipeline.transport import FileTopics, Record, make_topics

pytestmark = pytest.mark.slow

SECONDS = 3.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of services and courier."""
    folder = tmp_path_factory.mktemp("services")
    address = f"files:{folder / 'topics'}"
    make_topics(address, TOPICS, courier.LAKE)
    processes = Processes(folder)
    common = ["--address", address, "--folder", str(folder), "--seed", "1"]
    try:
        processes.start("courier", "pipeline.courier", *common, "--outage", "1", "2")
        for name in TOPICS:
            more = ["--seconds", str(SECONDS), "--skew-ms", "0"]
            processes.start(name, "pipeline.services", name, *common, *more)
        processes.wait(list(TOPICS), 60)
        (folder / courier.DONE_FILE).touch()
        processes.wait(["courier"], 60)
    finally:
        processes.stop()
    return folder


def lake(folder: Path) -> list[dict[str, Any]]:
    """The lake's records in the order in which they came."""
    rows: list[dict[str, Any]] = []
    for record in FileTopics(folder / "topics", "test", courier.LAKE).poll(0):
        stamp = require_stamp(read(record.headers))
        fields = json.loads(record.value)
        rows.append(
            {
                "message_id": stamp.id,
                "causes": list(stamp.causes),
                "customer": fields["customer"],
                "value": record.value,
                "arrived": len(rows),
            }
        )
    return rows


def check_services(folder: Path, rows: list[dict[str, Any]]) -> Verdict:
    spec = OrderSpec(
        id="message_id", after=("causes",), group="customer", time="arrived", content=("value",)
    )
    table: Any = order_table(pa.Table.from_pylist(rows), spec)
    return check_table(read_history(folder, TOPICS), table.to_pylist())


@pytest.mark.slow
def test_what_the_services_sent_comes_out_in_order_and_once(folder: Path) -> None:
    verdict = check_services(folder, lake(folder))
    assert verdict.is_ok, verdict
    assert verdict.messages > 20
    assert verdict.copies > verdict.messages
    ends = read_history(folder, TOPICS).last_lines
    assert sum(end["sent"] for end in ends.values()) == verdict.messages
    assert all(end["bad"] == end["without_headers"] == 0 for end in ends.values())


def test_all_three_ways_of_working_carry_causes(folder: Path) -> None:
    rows = lake(folder)
    kinds = {row["message_id"]: json.loads(row["value"])["kind"] for row in rows}
    edges = {(kinds[cause], kinds[row["message_id"]]) for row in rows for cause in row["causes"]}
    assert edges >= {
        ("placed", "reserved"),
        ("placed", "taken"),
        ("taken", "confirmed"),
        ("confirmed", "packed"),
        ("packed", "sent"),
        ("sent", "closed"),
    }
    packed = [row for row in rows if kinds[row["message_id"]] == "packed"]
    assert {len(row["causes"]) for row in packed} == {2}


def test_as_they_come_they_are_out_of_order(folder: Path) -> None:
    rows = lake(folder)
    came = {row["message_id"]: k for k, row in reversed(list(enumerate(rows)))}
    early = [r for r in rows for c in r["causes"] if came[c] > came[r["message_id"]]]
    assert early


def test_a_lost_record_is_noticed(folder: Path) -> None:
    rows = lake(folder)
    gone = next(row["message_id"] for row in rows if row["causes"])
    verdict = check_services(folder, [row for row in rows if row["message_id"] != gone])
    assert gone in verdict.lost


def test_delays_are_drawn_by_seed_topic_and_number() -> None:
    drawn = [draw_delays(1, "orders", k) for k in range(2_000)]
    assert drawn == [draw_delays(1, "orders", k) for k in range(2_000)]
    assert drawn != [draw_delays(2, "orders", k) for k in range(2_000)]
    repeated = sum(len(found) == 2 for found in drawn) / len(drawn)
    assert abs(repeated - courier.REPEAT_FRACTION) < 0.02
    middle = sorted(found[0] for found in drawn)[1_000]
    assert abs(middle - courier.MEDIAN_S) < 0.02
    assert apply_outage(1.5, "orders", Outage(1, 2)) == 2
    assert apply_outage(2.0, "orders", Outage(1, 2)) == 2.0
    assert apply_outage(1.5, "payments", Outage(1, 2)) == 1.5


def test_files_are_topics(tmp_path: Path) -> None:
    make_topics(f"files:{tmp_path}", ["a"], ["lake.a"])
    writer, reader = FileTopics(tmp_path, "w", []), FileTopics(tmp_path, "r", ["a"])
    sent = [Record("a", f"k{n}", f"ä{n}", [("h", b"v")]) for n in range(3)]
    for record in sent:
        writer.send(record)
    assert reader.poll(0) == []
    writer.flush()
    assert reader.poll(0) == sent
    assert reader.poll(0) == []


def test_a_process_that_fails_is_told_with_its_log(tmp_path: Path) -> None:
    processes = Processes(tmp_path)
    processes.start("bad", "pipeline.services", "nobody")
    with pytest.raises(SetupError, match=r"(?s)bad ended with 2.*invalid choice"):
        processes.wait(["bad"], 30)


def test_only_a_folder_of_its_own_is_emptied(tmp_path: Path) -> None:
    mine = prepare_folder(tmp_path / "a")
    (mine / "x").touch()
    assert sorted(path.name for path in prepare_folder(mine).iterdir()) == [".pipeline"]
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "x").touch()
    with pytest.raises(SetupError, match="not of a pipeline"):
        prepare_folder(tmp_path / "b")
