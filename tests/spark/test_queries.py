"""Queries on Spark: the collected part answers like the whole trace."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from pyspark.sql import SparkSession

from antecede.cli import main
from antecede.errors import InputError
from antecede.spark.relations.queries import part, way_of
from antecede.tables.causality.queries import (
    CAUSES,
    CLOCKS,
    EVENTS,
    WAYS,
    Causality,
    EventRef,
    Whole,
)
from antecede.tables.trace.arrow import SCHEMA
from antecede.tables.trace.rows import conform
from tests.spark.test_causality import frame_of

IDS = ("a", "A", "10", "2", " ", "é", "🎈", "a:1", "null", "x\ny", "a@P", "b")
MEMBERS = ("P", "Q", "", "é", None)


def make_event_rows(rng: random.Random, size: int) -> list[dict[str, Any]]:
    """Return unordered sends and arrivals: duplicates, unknown messages, rows before themselves."""
    kinds = ("send", "receive", "deliver", "event")
    return [
        {
            "kind": rng.choice(kinds) if k > 1 else kinds[k],
            "id": rng.choice(IDS),
            "member": rng.choice(MEMBERS),
            "run": rng.choice((None, "r")),
        }
        for k in range(size)
    ]


def make_cause_rows(rng: random.Random, size: int) -> list[dict[str, Any]]:
    """Return rows with missing, cyclic, blank and self causes, and duplicate ids."""
    return [
        {
            "id": rng.choice((*IDS, *map(str, range(20)))),
            "causes": rng.choices((*IDS, *map(str, range(20)), ""), k=rng.choice((0, 1, 1, 2))),
            "member": rng.choice(MEMBERS),
            "run": rng.choice((None, "", "r")),
            "arrival": rng.choice((None, k)),
        }
        for k in range(size)
    ]


def make_clock_rows(rng: random.Random, size: int) -> list[dict[str, Any]]:
    """Return a run of three hosts with lost and duplicate rows, and rows without a clock."""
    clocks: dict[str, dict[str, int]] = {name: {} for name in "PQR"}
    rows: list[dict[str, Any]] = []
    for k in range(size):
        name = rng.choice("PQR")
        mine = clocks[name]
        if rng.random() < 0.6:
            for other, count in clocks[rng.choice("PQR")].items():
                mine[other] = max(mine.get(other, 0), count)
        mine[name] = mine.get(name, 0) + 1
        row: dict[str, Any] = {"id": f"e{k}", "member": name}
        row |= {"clock_members": [*mine], "clock_counts": [*mine.values()]}
        rows += [] if rng.random() < 0.15 else [row]
        if rng.random() < 0.1:
            rows.append(dict(row))
    rows[3] = {**rows[4], "member": None}  # the same event, first without a member
    rows[5] |= {"clock_members": ["Q"], "clock_counts": [3]}
    rows[7]["clock_members"] = None
    return rows


MAKE = {EVENTS: make_event_rows, CAUSES: make_cause_rows, CLOCKS: make_clock_rows}


def describe_whole(table: pa.Table, way: str) -> Whole:
    columns: Any = {name: table[name] for name in SCHEMA.names}
    there = frozenset(name for name, one in columns.items() if one.null_count < len(table))
    return Whole(way == CLOCKS, there)


def get_answer(asked: Causality, question: str, event: EventRef) -> Any:
    """Return the rows of an answer, or the error text."""
    try:
        return getattr(asked, question)(event)["file_order"].to_pylist()
    except InputError as error:
        return get_reason(error)


def get_reason(error: InputError) -> str:
    """Return the error text without other places of the id, which a part of a trace lacks."""
    return str(error).partition("; the id ")[0]


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_the_part_answers_as_the_whole(spark: SparkSession, tmp_path: Path, way: str) -> None:
    rng = random.Random(way)
    found = 0
    table = conform(pa.Table.from_pylist(MAKE[way](rng, 70)))
    whole = describe_whole(table, way)
    local = Causality(table, by=way)
    frame = frame_of(spark, table, tmp_path).persist()
    assert way_of(frame, whole, way) == way
    rows: Any = table.to_pylist()
    for k in range(8):
        row = rows[(k * 9 + 4) % len(rows)]
        named, text, run = EventRef(row["id"]), row["id"], row["run"]
        if way == EVENTS and row["member"] and row["kind"] != "send":
            named = EventRef(row["id"], row["member"])
            text = f"{row['id']}@{row['member']}"
            if any(one["id"] == text for one in rows):
                continue  # it names the event of that id
        named = named._replace(run=run)
        backwards = k % 2 == 0
        question = "past" if backwards else "future"

        want = get_answer(local, question, named)
        try:
            made = part(frame, [text], way, whole, run=run, backwards=backwards)
            got = get_answer(made.asked, question, made.events[0])
        except InputError as error:
            got = get_reason(error)
        assert got == want
        found += len(want) if isinstance(want, list) else 0
    assert found > 10


@pytest.mark.slow
def test_chains_and_what_lies_between(spark: SparkSession, tmp_path: Path) -> None:
    for way in WAYS:
        rng = random.Random(f"between {way}")
        rows = [{**row, "run": None} for row in MAKE[way](rng, 60)]
        if way == CAUSES:  # few cycles, or there is no chain
            for k, row in enumerate(rows):
                row |= {"id": str(k), "causes": [str(rng.randrange(-1, k + 1)) for _ in range(2)]}
        table = conform(pa.Table.from_pylist(rows))
        local, whole = Causality(table, by=way), describe_whole(table, way)
        ids: Any = local.events["id"].to_pylist()
        placed = [name for name, ok in zip(ids, local.alive.tolist(), strict=True) if ok]
        pair = next(
            (a, b)
            for a in placed
            for b in reversed(placed)
            if a
            and b
            and "@" not in a + b
            and local.precedes(a, b)
            and len(local.between(a, b)) > 2
        )
        folder = tmp_path / way
        folder.mkdir()
        frame = frame_of(spark, table, folder)
        made = part(frame, pair, way, whole, backwards=True)
        assert made.asked.precedes(*made.events)
        assert not made.asked.precedes(*reversed(made.events)) or local.precedes(*reversed(pair))
        want, got = local.between(*pair), made.asked.between(*made.events)
        assert got["file_order"].to_pylist() == want["file_order"].to_pylist()
        chain = made.asked.path(*made.events)["file_order"].to_pylist()
        straight = local.path(*pair)["file_order"].to_pylist()
        assert (chain[0], chain[-1]) == (straight[0], straight[-1])
        if way == CAUSES:
            assert len(chain) == len(straight)


@pytest.mark.slow
def test_the_command(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        {"id": "a", "causes": [], "text": "first"},
        {"id": "b", "causes": ["a"], "text": "second"},
        {"id": "c", "causes": ["a", "nowhere"], "text": "third"},
        {"id": "d", "causes": ["b"], "text": "last"},
    ]
    path = str(tmp_path / "log.parquet")
    table: Any = pa.Table.from_pylist(rows)
    pyarrow.parquet.write_table(table, path)
    on_spark = ["--engine", "spark"]
    for words, code in ((["past", "d"], 0), (["before", "c", "d"], 1), (["between", "a", "d"], 0)):
        told = []
        for more in ([], on_spark):
            assert main(["ask", path, *words, "--json", *more]) == code
            told.append(json.loads(capsys.readouterr().out))
        assert told[0].pop("events") == 4
        assert told[0].pop("notes")  # of "nowhere", which is in neither past
        told[1].pop("notes")
        assert told[0] == told[1]
    assert main(["ask", path, "future", "b", *on_spark]) == 0
    said = capsys.readouterr().out
    assert "1 event happened after b" in said
    assert "were not checked (use --engine local)" in said
    assert main(["ask", path, "concurrent", "b", *on_spark]) == 2
    assert "--engine local" in capsys.readouterr().err
    assert main(["ask", path, "past", "x", *on_spark]) == 2
    assert "no event has the id x" in capsys.readouterr().err
    assert main(["ask", path, "past", "d", "--causality", "clocks", *on_spark]) == 2
    assert "by clocks: the source of causality" in capsys.readouterr().err
    assert main(["ask", path, "past", "d", "--engine", "local", "--master", "local[1]"]) == 2


@pytest.mark.slow
def test_what_does_not_fit_is_told(spark: SparkSession, tmp_path: Path) -> None:
    rows = [{"id": str(k), "causes": [str(k - 1)] if k else []} for k in range(12)]
    table = conform(pa.Table.from_pylist(rows))
    frame, whole = frame_of(spark, table, tmp_path), describe_whole(table, CAUSES)
    with pytest.raises(InputError, match="may have 12 rows; the memory limit is 5"):
        part(frame, ["11"], CAUSES, whole, backwards=True, most=5)
    with pytest.raises(InputError, match="exceed max_supersteps=3"):
        part(frame, ["11"], CAUSES, whole, backwards=True, max_supersteps=3)
