"""`antecede order --engine spark`: reads and writes on executors like the local engine."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from pyspark.sql import SparkSession

from antecede.cli import main
from antecede.cli.traces.on_spark import order
from antecede.spark.sources import order_tables, table_tasks
from antecede.tables.trace.reader import ReadOptions

pa: Any = pyarrow


def rows_of(path: Path, ending: str) -> tuple[Any, list[Any]]:
    """Return schema and rows of a file, or of the parts of a folder in order."""
    parts = [path] if path.is_file() else sorted(path.glob(f"*.{ending}"))
    if not parts:
        return None, []
    if ending == "parquet":
        tables = [pyarrow.parquet.read_table(str(part)) for part in parts]
        assert all(table.schema.equals(tables[0].schema) for table in tables)
        printed = [
            pa.concat_arrays(column.chunks).to_string(window=100_000) if column.num_chunks else ""
            for column in pa.concat_tables(tables).columns
        ]
        return tables[0].schema, printed
    lines = [part.read_text().splitlines() for part in parts]
    if ending == "csv":
        assert all(part[0] == lines[0][0] for part in lines)
        return lines[0][0], [line for part in lines for line in part[1:]]
    return None, [line for part in lines for line in part]


SAID_BY_BOTH = ("waited", "columns", "times", "left out", "            they agree", "causes")


def both(
    folder: Path,
    paths: list[Path],
    capsys: pytest.CaptureFixture[str],
    *words: str,
    ending: str = "parquet",
) -> tuple[Any, list[Any]]:
    """Order with both engines, compare rows, texts and bad rows, and return the output."""
    found, said = {}, {}
    for engine in ("local", "spark"):
        out = folder / f"{engine}.{ending}"
        call = ["order", *map(str, paths), "-o", str(out), "--engine", engine, *words]
        assert main(call) == 0, capsys.readouterr().err
        bad_schema, bad = rows_of(folder / f"{engine}.quarantine.{ending}", ending)
        if ending == "parquet" and bad_schema is not None:
            aside = folder / f"{engine}.quarantine.parquet"
            parts = [aside] if aside.is_file() else sorted(aside.glob("*.parquet"))
            bad = [r for part in parts for r in pyarrow.parquet.read_table(str(part)).to_pylist()]
        found[engine] = rows_of(out, ending), sorted(map(str, bad))
        lines = capsys.readouterr().out.splitlines()
        assert f"engine      {engine} (as requested)" in lines
        said[engine] = [line for line in lines if line.startswith(SAID_BY_BOTH)]
    assert said["spark"] == said["local"]
    (local, bad), (made, bad_made) = found["local"], found["spark"]
    assert made[1] == local[1]
    assert made[0] == local[0] if ending != "parquet" else made[0].equals(local[0])
    assert bad_made == bad
    assert local[1]
    return local[1], bad


def events(draw: random.Random, n: int, names: str) -> dict[str, list[Any]]:
    """Return rows with known, missing and cyclic causes, duplicates and blanks."""
    ids: list[Any] = [draw.choice(names) + str(draw.randrange(n)) for _ in range(n)]
    ids = [None if draw.random() < 0.03 else one for one in ids]
    some = [one for one in ids if one] + ["nowhere", "", " "]
    causes = [[draw.choice(some) for _ in range(draw.choice([0, 0, 1, 1, 2, 3]))] for _ in ids]
    return {
        "id": ids,
        "causes": causes,
        "member": [draw.choice(["x", "y", None]) for _ in ids],
        "time": [draw.choice([None, draw.randrange(10**9, 2 * 10**9)]) for _ in ids],
    }


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_folders_of_parquet(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str], seed: int
) -> None:
    draw = random.Random(seed)
    columns: dict[str, Any] = events(draw, 150, "ab")
    n = len(columns["id"])
    columns["position"] = pa.array(range(n), pa.uint64())
    columns["a.b"] = pa.array(range(n), pa.timestamp("ns"))
    columns["Odd`"] = pa.array([draw.choice([None, b"\xff"]) for _ in range(n)], pa.binary())
    columns["half"] = pa.array([draw.choice([None, 1.5]) for _ in range(n)], pa.float16())
    columns["word"] = pa.array(["w"] * n).dictionary_encode()
    columns["none"] = pa.nulls(n)
    columns["at"] = pa.array(range(n), pa.time64("ns"))
    columns["day"] = pa.array([draw.choice([None, 5, 10**6]) for _ in range(n)], pa.date32())
    if seed % 2:
        columns["run"] = [draw.choice(["r1", "r2", "r3", None]) for _ in range(n)]
        columns["kind"] = [draw.choice(["send", "receive", "deliver", "event"]) for _ in range(n)]
    table = pa.table(columns)
    folder = tmp_path / "in"
    folder.mkdir()
    for k in range(3):
        part = table.slice(k * 50, 50)
        pyarrow.parquet.write_table(part, folder / f"part-{k}.parquet", row_group_size=17)
    _, bad = both(tmp_path, [folder], capsys)
    assert bad


@pytest.mark.slow
def test_many_batches_and_pieces(
    spark: SparkSession,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(table_tasks, "TASK_BYTES", 900_000)
    draw = random.Random(11)
    n = 60_000
    ids = [f"e{draw.randrange(n)}" for _ in range(n)]
    columns = {
        "id": ids,
        "causes": [[draw.choice(ids)] if draw.random() < 0.3 else [] for _ in range(n)],
        "place": range(n),
    }
    path = tmp_path / "in.parquet"
    pyarrow.parquet.write_table(pa.table(columns), path, row_group_size=9_000)
    works = table_tasks.work_of([path], ReadOptions())
    assert len(works) > 1
    assert max(work.rows for work in works) > table_tasks.BATCH_ROWS
    _, bad = both(tmp_path, [path], capsys)
    assert len(bad) > 1000


@pytest.mark.slow
def test_patterns_of_csv(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    draw = random.Random(7)
    paths = []
    for k in range(3):
        columns = events(draw, 60, "abc")
        rows = zip(*columns.values(), strict=True)
        lines = [
            f"{a or ''},{';'.join(b)},{c or ''},{d or ''},{draw.choice('pq')}"
            for a, b, c, d in rows
        ]
        lines.insert(5, "one,two")
        path = tmp_path / f"in-{k}.csv"
        path.write_text("id,causes,member,time,topic\n" + "\n".join(lines))
        paths.append(path)
    words = ("--list-separator", ";", "--topic", "topic")
    local, bad = both(tmp_path, paths, capsys, *words, ending="csv")
    assert any("2 cells" in row for row in bad)
    out = tmp_path / "pattern.csv"
    call = ["order", str(tmp_path / "in-*.csv"), "-o", str(out), "--engine", "spark", *words]
    assert main(call) == 0
    assert rows_of(out, "csv")[1] == local


def test_several_ids_in_one_give_a_hint(
    spark: SparkSession,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "in.csv"
    path.write_text("id,after,time\na,,1\nb,a,2\nc,a;b,3\nd,c;a,4\ne,zz,5\n")
    lines = []
    for engine, sample in (("local", 1000), ("spark", 1000), ("spark", 2)):
        monkeypatch.setattr(order_tables, "MISSING_SAMPLE", sample)
        monkeypatch.setattr(order, "MISSING_SAMPLE", sample)
        out = tmp_path / f"{engine}-{sample}.csv"
        assert main(["order", str(path), "-o", str(out), "--engine", engine]) == 0
        said = capsys.readouterr().out.splitlines()
        at = next(k for k, line in enumerate(said) if line.startswith("missing "))
        lines.append(said[at : at + 3])
    local, whole, sampled = lines
    assert whole == local
    assert "2 of these references are several ids in one, as in " in local[1]
    assert local[2] == "            give --list-separator ';'"
    assert sampled[1].startswith("            of 2 references: ")


def test_json_lines_of_several_types(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    draw = random.Random(3)
    paths = []
    for k in range(2):
        columns = events(draw, 50, "abc")
        with (tmp_path / f"in-{k}.jsonl").open("w") as file:
            for row in zip(*columns.values(), strict=True):
                record = dict(zip(columns, row, strict=True))
                record["x"] = draw.choice([1, "a", None, [1], {"k": 2**70}, True])
                if k:
                    record["only here"] = 0.5
                file.write(json.dumps(record) + "\n")
            file.write("{broken\n")
        paths.append(tmp_path / f"in-{k}.jsonl")
    both(tmp_path, paths, capsys, ending="jsonl")
    call = ["order", str(paths[0]), "-o", str(tmp_path / "o.csv"), "--engine", "spark"]
    assert main(call) == 2
    assert "column x holds values of several types" in capsys.readouterr().err
    assert not list(tmp_path.glob("*o.csv*"))


def test_vector_clocks(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    draw = random.Random(5)
    rows: list[dict[str, Any]] = []
    clocks: dict[str, dict[str, int]] = {who: {} for who in "abc"}
    for _ in range(80):
        who, other = draw.choice("abc"), draw.choice("abc")
        known = clocks[who]
        for member, count in clocks[other].items():
            known[member] = max(known.get(member, 0), count)
        known[who] = known.get(who, 0) + 1
        rows.append({"member": who, "clock": json.dumps(known)})
    rows += [{"member": None, "clock": '{"a": 1}'}, {"member": "z", "clock": '{"a": 3}'}]
    rows += [{"member": "a", "clock": None}, rows[3]]
    draw.shuffle(rows)
    pyarrow.parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "in.parquet")
    both(tmp_path, [tmp_path / "in.parquet"], capsys)


@pytest.mark.slow
def test_a_folder_is_never_replaced_unasked(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = tmp_path / "in.csv", tmp_path / "out.parquet"
    source.write_text("id,parent\na,\nb,a\n\nc,b,x\n")
    call = ["order", str(source), "-o", str(out), "--engine", "spark"]
    out.mkdir()
    (out / "mine").write_text("kept")
    assert main([*call, "--force"]) == 2
    assert "not a complete folder of an earlier run" in capsys.readouterr().err
    (out / "mine").unlink()
    out.rmdir()
    assert main(call) == 0
    assert (tmp_path / "out.quarantine.parquet" / "_SUCCESS").exists()
    assert main(call) == 2
    assert "--force" in capsys.readouterr().err
    source.write_text("id,parent\na,\nb,a\n")
    assert main([*call, "--force"]) == 0
    assert not (tmp_path / "out.quarantine.parquet").exists()
    assert main(["order", str(out), "-o", str(out), "--engine", "spark", "--force"]) == 2
    assert "is input of this command" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.csv", "out.parquet"]


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        ("id,x\na,1\n", "t.csv", "no column 'nothing'"),
        ("<ann> hello\n", "t.ascii.txt", ""),
        ("id,x\n,1\n", "u.csv", "holds no event"),
    ],
)
def test_errors_are_those_of_the_driver(
    spark: SparkSession,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    text: str,
    name: str,
    said: str,
) -> None:
    path = tmp_path / name
    path.write_text(text)
    after = ["--after", "nothing"] if "nothing" in said else []
    out = tmp_path / "o.parquet"
    assert main(["order", str(path), "-o", str(out), "--engine", "spark", *after]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error
    assert not out.exists()


def test_a_trace_that_is_no_table_is_refused_by_name(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "log.txt"
    path.write_text('a {"a": 1}\nhello\nb {"b": 1, "a": 1}\nthere\n')
    assert main(["order", str(path), "-o", str(tmp_path / "o.csv"), "--engine", "spark"]) == 2
    assert "the format shiviz cannot be split" in capsys.readouterr().err
