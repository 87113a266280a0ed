"""Extra columns of a user's table: shown with the event, searched, and kept in tiles."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from antecede.cli import main
from antecede.errors import InputError
from antecede.tables.trace.arrow import Trace, read
from antecede.tables.trace.reader import ReadOptions
from antecede.tables.trace.user_tables.chosen_columns import further_columns
from antecede.tables.view import extra_columns
from antecede.tables.view.extra_columns import as_text
from antecede.tables.view.render_model import picture
from antecede.tables.view.tiles import Tiles, write_tiles
from tests.tables.view.unpacked import unpacked

ROWS = """mail,re,who,at,status,how long,note
a,,P,2026-01-01T00:00:00Z,open,3.5,first thing
b,a,Q,2026-01-01T00:00:01Z,closed,,<b>bold</b>
c,a,P,2026-01-01T00:00:02Z,open,12,needle here
d,b,Q,2026-01-01T00:00:03Z,failed,1,
"""
COLUMNS = {"id": ("mail",), "causes": ("re",), "member": ("who",), "arrival": ("at",)}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "log.csv"
    path.write_text(ROWS)
    return path


def trace_of(path: Path) -> Trace:
    options = ReadOptions(columns=COLUMNS)
    trace = read([path], None, options, own=True)
    assert trace.own is not None
    return replace(trace, own=trace.own.select(further_columns(trace.own.column_names, options)))


def texts_of(meta: dict[str, Any], arrays: dict[str, Any], name: str) -> list[str]:
    key = f"own.{meta['own'].index(name)}"
    ends = [0, *arrays[f"{key}.ends"].tolist()]
    body = bytes(arrays[f"{key}.bytes"].tolist())
    values = [body[a:b].decode() for a, b in pairwise(ends)]
    return ["" if code < 0 else values[code] for code in arrays[key].tolist()]


def test_what_is_read_as_something_is_none_of_them(table: Path) -> None:
    trace = trace_of(table)
    assert trace.own is not None
    assert trace.own.column_names == ["status", "how long", "note"]
    meta, arrays = unpacked(picture(trace, title="t").pack())
    assert texts_of(meta, arrays, "status") == ["open", "closed", "open", "failed"]
    assert texts_of(meta, arrays, "note")[1] == "<b>bold</b>"
    cut = picture(trace, title="t", around="c", most=2)
    meta, arrays = unpacked(cut.pack())
    assert texts_of(meta, arrays, "status") == ["closed", "open"]


def test_any_type_is_a_text() -> None:
    moment = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    columns: dict[str, tuple[Any, list[str | None]]] = {
        "numbers": (pa.array([1, None]), ["1", None]),
        "flags": (pa.array([True, None]), ["true", None]),
        "bytes": (pa.array([b"\x00\xff", None]), ["00ff", None]),
        "lists": (pa.array([["a", None], None]), ["[a, null]", None]),
        "structs": (pa.array([{"x": 1}, None]), ["{'x': 1}", None]),
        "words": (pa.array(["x", None]).dictionary_encode(), ["x", None]),
        "long": (pa.array(["é" * 2000, "short"]), ["é" * 997 + "...", "short"]),
        "times": (pa.array([moment, None]), ["2026-01-01 00:00:00.000000Z", None]),
        "nothing": (pa.nulls(2), [None, None]),
    }
    for name, (column, want) in columns.items():
        assert as_text(pa.chunked_array([column])).to_pylist() == want, name


def test_what_has_no_room_is_noted(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extra_columns, "MAX_COLUMNS", 2)
    shown = picture(trace_of(table), title="t")
    assert shown.meta["own"] == ["status", "how long"]
    said = [one["what"] for one in shown.meta["findings"]]
    assert "1 column of the table omitted: note and later ones" in said


def test_pieces_keep_and_find_them(table: Path, tmp_path: Path) -> None:
    write_tiles(trace_of(table), tmp_path / "pieces", "t")
    source = Tiles(tmp_path / "pieces")
    meta, arrays = unpacked(source.block({}))
    long = texts_of(meta, arrays, "how long")
    assert long in (["3.5", "", "12.0", "1.0"], ["3.5", "", "12", "1"])
    assert meta["own"] == ["status", "how long", "note"]
    for field, word, row in (
        (None, "NEEDLE", 2),
        ("own.0", "closed", 1),
        ("own.2", "bold", 1),
        (None, "failed", 3),
    ):
        find = json.dumps([{"field": field, "word": word}])
        meta, _ = unpacked(source.block({"find": find, "from": "-1"}))
        assert meta["around"] == row, word
    with pytest.raises(InputError, match="no event matches"):
        source.block({"find": json.dumps([{"field": "own.0", "word": "needle"}])})


def test_the_page_shows_and_searches_them(opened: Any, table: Path) -> None:
    shown = opened(trace_of(table))
    for text, hits in (
        ("needle", "1 match"),
        ("status:open", "2 matches"),
        ("-status:open", "2 matches"),
        ('"how long":12', "1 match"),
        ("STATUS:/^(open|failed)$/", "3 matches"),
        ('"first thing"', "1 match"),
        ("nothing:open", '0 matches: no field "nothing"; fields are id, text, member'),
        ('nothing:"open"', 'search: no field "nothing"'),
    ):
        shown.fill("#search", text)
        shown.wait_for_timeout(80)
        assert hits in shown.inner_text("#status"), text
    shown.fill("#search", "bold")
    shown.press("#search", "Enter")
    shown.wait_for_timeout(150)
    fields = shown.inner_text("#panel .fields")
    assert "<b>bold</b>" in fields
    assert "closed" in fields
    assert shown.locator("#panel .fields b").count() == 0


def test_the_command_carries_them_into_pages_and_pieces(table: Path, tmp_path: Path) -> None:
    words = ["--id", "mail", "--after", "re", "--member", "who", "--arrival", "at"]
    assert main(["view", str(table), *words, "--tiles", str(tmp_path / "cut")]) == 0
    meta, _ = unpacked(Tiles(tmp_path / "cut").block({}))
    assert meta["own"] == ["status", "how long", "note"]
    assert main(["view", str(table), *words, "--master", "local[1]", "-o", "x.html"]) == 2
