"""`antecede replay`: files, output, and errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from antecede.cli import main
from antecede.cli.traces.replay import parse_option
from antecede.core.clocks.bounds import Bounds
from antecede.core.protocols.topics.subscriptions import Subscriptions
from antecede.errors import InputError
from antecede.tables.order.replay.spec import DeliverSpec
from antecede.tables.order.replay.table import deliver_table
from tests.helpers.fixtures import Call, Capture
from tests.tables.order.logs import NAMES, log_of

GROUP = ("--order", "bss", "--members", ",".join(NAMES))
SPEC = DeliverSpec(order="bss", members=NAMES, tiebreak="number", sent="sent")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log in which one message never came to dan, and something else did."""
    table: Any = log_of(SPEC, messages=60)
    rows = table.to_pylist()
    gone = next(row["wire"] for row in rows if row["sent"] and row["observer"] == "ann")
    kept = [row for row in rows if row["observer"] != "dan" or row["wire"] != gone]
    noise = {**rows[-1], "observer": "dan", "wire": b"hello", "sent": False}
    path = tmp_path / "log.parquet"
    pq.write_table(pa.Table.from_pylist([*kept, noise], table.schema), path)
    return path


def test_writes_every_row_and_says_what_never_came(
    log: Path, tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / "out.parquet"
    assert main(["replay", str(log), *GROUP, "-o", str(out), "--tiebreak", "number"]) == 0
    table, made = pq.read_table(log), pq.read_table(out)
    assert made.select(table.column_names).equals(table)
    assert made.equals(deliver_table(table, SPEC))
    printed = capsys.readouterr().out
    statuses = made["status"].to_pylist()
    for status in ("delivered", "held", "duplicate", "sent", "rejected"):
        assert f"{status:<11} {statuses.count(status)}\n" in printed
    assert "missing     ann:1 at dan; " in printed
    assert printed.count("missing  ") == 1
    assert "rejected    1: 5 bytes are not a message of an antecede group" in printed
    assert "note " not in printed


@pytest.mark.parametrize("kind", ["feather", "stream"])
def test_arrow_files_serve_too(log: Path, tmp_path: Path, capsys: Capture, kind: str) -> None:
    table, path = pq.read_table(log), tmp_path / "log.arrow"
    if kind == "feather":
        pyarrow.feather.write_feather(table, str(path))
    else:
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
    printed = []
    for file in (log, path):
        assert main(["replay", str(file), *GROUP]) == 0
        printed.append(capsys.readouterr().out.split("\n", 1)[1])
    assert printed[0] == printed[1]


def test_a_log_without_own_messages_gets_a_note(log: Path, said: Call) -> None:
    pq.write_table(pq.read_table(log).drop_columns(["sent"]), log)
    assert "no column of sent messages" in said("replay", str(log), *GROUP)


def test_an_example_can_be_delivered_whole(tmp_path: Path, said: Call) -> None:
    path = str(tmp_path / "example.parquet")
    assert main(["replay", path, "--example", "50"]) == 0
    printed = said("replay", path)
    assert "delivered   100\n" in printed
    assert "sent        50\n" in printed
    assert main(["replay", path, "--example", "50"]) == 2


@pytest.mark.parametrize(
    "group", [["--members", "x,y"], ["--order", "fifo"], ["--members", "ann,bob,dan"]]
)
def test_a_group_that_takes_nothing_of_the_log_ends_with_one(
    tmp_path: Path, capsys: Capture, said: Call, group: list[str]
) -> None:
    path, whole = str(tmp_path / "example.parquet"), ["--order", "bss", "--members", "ann,bob,cat"]
    assert main(["replay", path, "--example", "20", *whole]) == 0
    assert "nothing " not in said("replay", path, *whole)
    assert main(["replay", path, *whole, *group]) == 1
    assert "nothing     was accepted" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["no-such"], "cannot be read as Parquet or Arrow: No such file"),
        (
            ["{log}", "--wire", "bytes"],
            "no column 'bytes' (causality_source: none); columns are observer, number",
        ),
        (["{log}", "--option", "patience_s"], "expected NAME=VALUE"),
        (["{log}", "--option", "bounds={'far': 1}"], "its fields are accuracy_s, least_s, most_s"),
        (["{log}", "--option", "bounds={'most_s': -1}"], "channel delays"),
        (["{log}", "-o", "{log}"], "is input of this command"),
        (["{log}", "-o", "{log}/x/y"], "does not exist"),
        (["{text}"], "/text: is not a Parquet or Arrow file; name a log with the bytes"),
        (["{cut}"], "/cut.parquet: cannot be read as Parquet or Arrow"),
    ],
)
def test_what_cannot_be_is_told(log: Path, refused: Call, words: list[str], told: str) -> None:
    text = log.with_name("text")
    text.write_text("observer,wire\n" * 20)
    cut = log.with_name("cut.parquet")
    cut.write_bytes(log.read_bytes()[:200])
    words = [w.replace("{cut}", str(cut)) for w in words]
    filled = [w.replace("{log}", str(log)).replace("{text}", str(text)) for w in words]
    assert told in refused("replay", *filled)


def test_options_are_python_values_or_words() -> None:
    assert parse_option("patience_s=5.0") == ("patience_s", 5.0)
    assert parse_option("on_missing_parent=deliver") == ("on_missing_parent", "deliver")
    name, bounds = parse_option("bounds={'most_s': 0.2, 'channels': {('a', 'b'): (0.1, 0.3)}}")
    assert (name, bounds) == ("bounds", Bounds(most_s=0.2, channels={("a", "b"): (0.1, 0.3)}))
    assert parse_option("subscriptions={'topics': {'a': ['x']}}")[1] == Subscriptions({"a": ["x"]})
    with pytest.raises(InputError, match="NAME=VALUE"):
        parse_option("5.0")


def test_what_is_held_for_time_says_how_much_of_it(tmp_path: Path, said: Call) -> None:
    path, out = tmp_path / "wire.parquet", tmp_path / "out.csv"
    group = ["--order", "physical", "--members", "ann,bob,cat", "--option", "delivery='bound'"]
    group += ["--option", "bounds={'accuracy_s': 0.001, 'least_s': 0.004, 'most_s': 90}"]
    assert main(["replay", str(path), "--example", "6", *group]) == 0
    assert "held" in said("replay", str(path), *group, "--finish-s", "1", "-o", str(out))
    assert "s before its earliest release" in out.read_text()
    assert main(["replay", str(path), *group, "--finish-s", "200", "-o", str(out), "--force"]) == 0
    assert "too early" not in out.read_text()


def test_an_order_of_closed_groups_asks_for_members_first() -> None:
    with pytest.raises(InputError, match="total needs a closed group: give members="):
        DeliverSpec(order="total", options={"sequencer": "zz"})
