"""Vectorized and row-by-row reading give the same events, bad rows, details and errors."""

from __future__ import annotations

import datetime as dt
import json
import math
import random
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antecede.errors import AntecedeError
from antecede.tables.trace import arrow
from antecede.tables.trace.reader import ReadOptions, quarantine_break
from antecede.tables.trace.schema import Quarantined
from antecede.tables.trace.user_tables import blocks
from antecede.tables.trace.user_tables.columns import Columns
from antecede.tables.trace.user_tables.extra_columns import together
from antecede.tables.trace.user_tables.reader import TableReader, kind_of

pa: Any = pyarrow
NAMES = ("id", "causes", "member", "seq", "time", "arrival", "topic", "run", "kind", "text", "x")
NUMBERS = [0, 1, -1, 7, 2**53 - 1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), 10**11, 1_600_000_000]
FLOATS = [0.0, -0.0, 1.0, 1.5, 2.0**53, 2.0**53 - 1, 1e18, 9.25e18, 1e300, math.nan, math.inf]
FLOATS += [1_600_000_000.25, 1_600_000_000_123.5, -3.999999999]
TEXTS = [
    *("a", "b", "c", "", " ", "\u2003", "\x1f", "é", "7", "007", "+7", "1_0", " 7 ", "1.5"),
    "1e3",
]
TEXTS += ["2024-02-29T10:00:00Z", "2023-02-29 10:00:00", "2024-01-01", "1600-01-01T00:00:00"]
TEXTS += ["2024-01-01 10:00:00.1234567891", "2024-01-01T10:00:00.5+02:00", "[]", '["a", "b"]', "[a"]
TEXTS += [
    *("send", "receive", "a;b", "a; a", "9" * 18, "9" * 19, "9" * 31, "-5", "nan", "inf"),
    "[1, 1]",
]
TEXTS += [
    *("['a', 'b']", "{a,b}", "(a)", "['a' 'b']", "[1 2]", "None", "NaN", "\\N", "<NA>", "1.0"),
    "2.00",
]
TEXTS += ["2024-01-01T24:00:00", "2024-13-01T10:00:00", "٣", "true"]
MOMENTS = [0, 1, -1, 10**9, 2**62, -(2**62), 2**63 - 1, 10**18]
SECONDS = [0, 1, -1, 10**10, -(10**10), 2**53, 253402300800]
Of = Callable[[random.Random], Any]


def sample_or_none(values: Any) -> Of:
    return lambda draw: draw.choice(values)


def make_lists(values: Any) -> Of:
    return lambda draw: [draw.choice(values) for _ in range(draw.choice([0, 1, 1, 2, 3]))]


NAMED = make_lists(["a", "b", "c", "d", "e", "f", "", " ", None])
PARQUET: list[tuple[Any, Of]] = [
    (pa.string(), sample_or_none(TEXTS)),
    (pa.large_string(), sample_or_none(TEXTS)),
    (pa.dictionary(pa.int32(), pa.string()), sample_or_none(TEXTS)),
    (pa.binary(), sample_or_none([b"a", b"\xff", b"", b" ", b"b"])),
    (pa.binary(16), lambda draw: draw.randbytes(16)),
    (pa.int64(), sample_or_none(NUMBERS)),
    (pa.int8(), sample_or_none([-128, 0, 7, 127])),
    (pa.uint64(), sample_or_none([0, 2**63, 2**64 - 1, 7])),
    (pa.float64(), sample_or_none(FLOATS)),
    (pa.float32(), sample_or_none([0.0, 1.5, 3.0, 2.0**60])),
    (pa.bool_(), sample_or_none([True, False])),
    (pa.decimal128(38, 0), sample_or_none([Decimal(1), Decimal(10**30), Decimal(7)])),
    (pa.decimal128(20, 3), sample_or_none([Decimal("1.000"), Decimal("1.5")])),
    (pa.date32(), sample_or_none([dt.date(2024, 1, 1), dt.date(1600, 1, 1)])),
    (pa.null(), sample_or_none([None])),
    (pa.timestamp("s"), sample_or_none(SECONDS)),
    *((pa.timestamp(unit), sample_or_none(MOMENTS)) for unit in ("ms", "us", "ns")),
    (pa.timestamp("us", "Europe/Berlin"), sample_or_none([10**15])),
    (pa.list_(pa.string()), NAMED),
    (pa.large_list(pa.string()), NAMED),
    (pa.list_(pa.int64()), make_lists([*NUMBERS, None])),
    (pa.list_(pa.float64()), make_lists([*FLOATS, None])),
    (pa.list_(pa.bool_()), make_lists([True, None])),
    (pa.list_(pa.timestamp("s")), make_lists([10**9])),
    (pa.duration("s"), sample_or_none([0, 9])),
    (pa.map_(pa.string(), pa.int64()), sample_or_none([[("a", 1), ("b", 0)], [("c", -1)], []])),
    (pa.struct([("a", pa.int64())]), sample_or_none([{"a": 2}, {"a": None}])),
]
CAUSES: list[tuple[Any, Of]] = [
    (pa.list_(pa.string()), NAMED),
    (pa.string(), sample_or_none(["a", "b", "", "[a", '["a", "b"]', "[]", "a;b", '["a", "a"]'])),
]
USUAL = {
    "id": [(pa.string(), sample_or_none("abcdefgh"))],
    "causes": CAUSES,
    "topic": CAUSES,
    "time": [one for one in PARQUET if pa.types.is_timestamp(one[0]) or one[0] == pa.float64()],
}


def column(name: str, rows: int, draw: random.Random) -> Any:
    """Return a Parquet column, mostly of a usual type."""
    usual = name in USUAL and draw.random() < 0.75
    kind, value = draw.choice(USUAL[name] if usual else PARQUET)
    return pa.array([None if draw.random() < 0.1 else value(draw) for _ in range(rows)], kind)


NUMBERED = sample_or_none([0, 1, 2, -1, 1.5, "1", 2**70])
JSON: list[Of] = [
    sample_or_none(TEXTS),
    sample_or_none(TEXTS),
    sample_or_none(NUMBERS),
    sample_or_none([*FLOATS, 2**70]),
    sample_or_none([True, False, None]),
    make_lists([*TEXTS, *NUMBERS, None]),
    NAMED,
    make_lists(["a", 2.0**53, True, 1.5, None]),
    lambda draw: {draw.choice("ab"): NUMBERED(draw) for _ in range(2)},
    sample_or_none(["\ud800", "a\udfff", {"\ud800": 1}, ["\ud800"]]),
]
USUAL_JSON: dict[str, Of] = {
    "id": sample_or_none("abcdefgh"),
    "causes": NAMED,
    "member": sample_or_none("ab"),
    "clock": lambda draw: {draw.choice("ab"): draw.choice([0, 1, 2]) for _ in range(2)},
}
OPTIONS: Any = st.one_of(
    st.just({}),
    st.fixed_dictionaries(
        {},
        optional={
            "separator": st.sampled_from([";", ","]),
            "time_unit": st.sampled_from(["s", "ms", "us", "ns"]),
            "columns": st.sampled_from(
                [
                    {"causes": ("causes", "x")},
                    {"id": ("text",)},
                    {"send_time": ("x",)},
                    {"clock": ("x",)},
                    {"clock": ("x",), "member": ("id",)},
                    {"causes": ("nowhere",)},
                    {"topics": ("causes", "topic")},
                ]
            ),
        },
    ),
)


class ByRows(TableReader):
    """Reference reader: row by row."""

    read_by_columns = None  # type: ignore[assignment]

    def _read_blocks(self, path: Path) -> Iterator[blocks.TableBlock]:
        delimiter = kind_of(path)[1]
        if delimiter is None:
            return super()._read_blocks(path)
        by_rows = blocks.gather_rows(blocks.read_csv_rows(path, delimiter))
        return (
            blocks.TableBlock(records=(), bad=[(0, block)])
            if isinstance(block, Quarantined)
            else block
            for block in quarantine_break(by_rows, path)
        )


def outcome(path: Path, options: ReadOptions, rows: bool, size: int) -> Any:
    """Read a table; return all visible results."""
    reader = ByRows() if rows else TableReader()
    chosen = [(path, reader)]
    try:
        batches = list(arrow._collect_batches(chosen, options, size, True))
    except AntecedeError as error:
        return type(error), str(error)
    except OverflowError as error:  # a date beyond Python's range
        return repr(error)
    events = [row for batch in batches for row in batch.events.to_pylist()]
    bad = [row for batch in batches for row in batch.quarantine.to_pylist()]
    kept: Any = [batch.own for batch in batches if batch.own is not None]
    own = together(kept) if kept else None
    fields = None if own is None else [(f.name, str(f.type), f.metadata) for f in own.schema]
    values = None if own is None else [_text(column) for column in own.columns]
    return events, bad, batches[-1].details, fields, values


def _text(column: Any) -> str:
    """Return cells as Arrow prints them: Python lacks far times, and nan is not equal to nan."""
    text: str = pa.concat_arrays(column.chunks).to_string(window=100)
    return text


def check(path: Path, given: dict[str, Any], size: int) -> Any:
    options = ReadOptions(**given)
    expected = outcome(path, options, True, size)
    found = outcome(path, options, False, size)
    assert found == expected
    return expected


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tables")


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(seed=st.integers(0, 2**48), given_options=OPTIONS)
def test_parquet(folder: Path, seed: int, given_options: dict[str, Any]) -> None:
    draw = random.Random(seed)
    names = draw.sample(NAMES, draw.randrange(1, 6))
    if draw.random() < 0.9:
        names = list(dict.fromkeys(["id", "causes", *names]))
    rows = draw.randrange(1, 12)
    whole = {name: column(name, rows, draw) for name in names}
    path = folder / "table.parquet"
    pyarrow.parquet.write_table(pa.table(whole), path)
    check(path, given_options, draw.choice([1, 3, 100]))


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(seed=st.integers(0, 2**48), given_options=OPTIONS)
def test_json_lines(folder: Path, seed: int, given_options: dict[str, Any]) -> None:
    draw = random.Random(seed)
    odd = draw.choice([0.05, 0.3, 0.9])
    lines = []
    for _ in range(draw.randrange(1, 14)):
        names = ["id", *draw.sample([*NAMES, "clock"], draw.randrange(0, 6))]
        values = {
            name: (draw.choice(JSON) if draw.random() < odd else USUAL_JSON.get(name, JSON[0]))(
                draw
            )
            for name in names
        }
        lines.append(json.dumps(values))
        if draw.random() < 0.1:
            lines.append(draw.choice(["", "{", "7", "nan", " "]))
    path = folder / "table.jsonl"
    path.write_text("\n".join(lines))
    check(path, given_options, draw.choice([1, 3, 100]))


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(seed=st.integers(0, 2**48), given_options=OPTIONS)
def test_csv(folder: Path, seed: int, given_options: dict[str, Any]) -> None:
    draw = random.Random(seed)
    odd = [*TEXTS, "a,b", '"', '"a', '"a;b"', '"[""a""]"', "x\ry", "\0", "\udcff"]
    plain = [text for text in TEXTS if "," not in text]
    names = draw.sample([*NAMES, "", " id"], draw.randrange(1, 6))
    if draw.random() < 0.9:
        names.append("message_id")
    dirty = draw.choice([0, 0, 0.02, 0.3])
    lines = [",".join(names)]
    for _ in range(draw.randrange(9)):
        size = len(names) if draw.random() < 0.9 else draw.choice([1, len(names) + 1])
        cells = (draw.choice(odd if draw.random() < dirty else plain) for _ in range(size))
        lines.append(",".join(cells))
    end = draw.choice(["\n", "\n", "\r\n", "\n\n", "\n,,,,\n"])
    before = draw.choice(["", "", "\n", "\ufeff", "\ufeff\n"])
    path = folder / "table.csv"
    path.write_bytes((before + end.join(lines)).encode(errors="surrogateescape"))
    size = blocks.BLOCK_BYTES
    blocks.BLOCK_BYTES = draw.choice([1, 8, 64, size])
    try:
        check(path, given_options, draw.choice([1, 3, 100]))
    finally:
        blocks.BLOCK_BYTES = size


def test_a_row_that_is_refused_late_is_counted_once(folder: Path) -> None:
    path = folder / "late.jsonl"
    path.write_text('{"id": "a", "causes": [9007199254740992.0, true, "b", "b"]}\n{"id": "b"}\n')
    events, bad, details, *_ = check(path, {}, 100)
    assert (len(events), len(bad), details["rounded_causes"]) == (1, 1, 1)


@pytest.mark.slow
def test_no_row_of_a_plain_table_goes_through_an_event(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = 40_000
    columns = {
        "id": [f"e{k}" for k in range(rows)],
        "causes": [[f"e{k - 1}"] for k in range(rows)],
        "member": ["m"] * rows,
        "send_time": pa.array(range(rows), pa.timestamp("us")),
    }
    pyarrow.parquet.write_table(pa.table(columns), folder / "plain.parquet")
    lines = "".join(f"e{k},e{k - 1},m,{1_700_000_000 + k}\n" for k in range(rows))
    (folder / "plain.csv").write_text("id,parent,member,time\n" + lines)
    objects = (json.dumps({"id": f"e{k}", "causes": [f"e{k - 1}"]}) for k in range(rows))
    (folder / "plain.jsonl").write_text("\n".join(objects))
    monkeypatch.setattr(Columns, "convert", None)
    for name in ("plain.parquet", "plain.csv", "plain.jsonl"):
        trace = arrow.read([folder / name], own=True)
        assert trace.events.num_rows == rows
        assert trace.own is not None
        assert trace.own.num_rows == rows
