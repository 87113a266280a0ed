"""Streaming of JSON arrays: any block size, recovery after malformed elements."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede.tables.trace.formats import json_stream
from antecede.tables.trace.formats.json_stream import Element, MalformedElement, read_elements


def list_found(
    content: str | bytes, *keys: str, nested: bool = False
) -> list[Element | MalformedElement]:
    raw = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.json"
        path.write_bytes(raw)
        return list(read_elements(path, keys, nested))


def list_values(content: str, *keys: str, nested: bool = False) -> list[Any]:
    """Return the values of elements, and BROKEN for malformed ones."""
    return [
        one.value if isinstance(one, Element) else "BROKEN"
        for one in list_found(content, *keys, nested=nested)
    ]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


@pytest.mark.parametrize("block", [1, 3, 64])
@given(elements=st.lists(json_values, max_size=6), beside=json_values, escaped=st.booleans())
def test_finds_what_json_finds(block: int, elements: list[Any], beside: Any, escaped: bool) -> None:
    before = json_stream.BLOCK_BYTES
    json_stream.BLOCK_BYTES = block
    try:
        inner = {"txns": [beside], "also": elements, "txn": beside}
        whole = {"z": inner, "before": beside, "txns": elements, "after": [beside]}
        text = json.dumps(whole, ensure_ascii=escaped, indent=1 if escaped else None)
        assert list_values(text, "txns") == elements
        assert list_values(text + text, "z", "also") == elements * 2
        assert list_values(json.dumps(elements)) == elements
    finally:
        json_stream.BLOCK_BYTES = before


def test_one_value_a_line() -> None:
    assert list_values('{"a":1}\n{"a":2}\n') == [{"a": 1}, {"a": 2}]
    assert list_values('{"s":[1]}\n{"s":[2]}\n{"t":0}', "s") == [1, 2, "BROKEN"]


def test_arrays_within_the_array_are_opened_only_if_asked() -> None:
    assert list_values("[[1,2],[3]]") == [[1, 2], [3]]
    assert list_values("[[1,2],[3]]", nested=True) == [1, 2, 3]


def test_lines_and_bytes() -> None:
    content = '\ufeff[{"ä":1},\n  {"b":2},\n x]'
    one, two, three = list_found(content)
    assert [(e.line, e.byte) for e in (one, two, three)] == [(1, 4), (2, 16), (3, 26)]
    assert content.encode()[16:].startswith(b'{"b"')
    assert isinstance(three, MalformedElement)


@pytest.mark.parametrize(
    "bad",
    [
        *('{"a":1, }', '{"a": 01}', '{"a": "x}', '{"a": "x\\q"}', '{"a": 1', '{"a": [1}'),
        *('{"a" 1}', '{"a": nul}', "nul", '{"a": "open, "b": 1}', "[" * 100_000 + "]" * 100_000),
        '{"a": ' + "9" * 5000 + "}",
    ],
)
@pytest.mark.parametrize("between", [",", ",\n"])
def test_a_bad_element_costs_itself(bad: str, between: str) -> None:
    good = ['{"id":"a"}', '{"id":"b"}', '{"id":"c","more":[{"x":"]}"}]}']
    text = f"[{between.join([good[0], bad, good[1], good[2]])}]"
    got = list_values(text)
    assert [one for one in got if one != "BROKEN"] == [json.loads(one) for one in good]
    assert got[1] == "BROKEN"


def test_what_breaks_off_is_told() -> None:
    *_, last = list_found('{"a":[{"b":1},{"b":')
    assert isinstance(last, MalformedElement)
    *_, last = list_found('[{"b":1},')
    assert isinstance(last, MalformedElement)
    assert last.reason == "the file ends before ]"


def test_too_long_an_element_is_bad_and_the_next_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_stream, "MAX_ELEMENT", 2000)
    monkeypatch.setattr(json_stream, "BLOCK_BYTES", 100)
    got = list_values(f'["{"x" * 9000}", 2, {{"long": "{"y" * 9000}"}}, 3]')
    assert [one for one in got if one != "BROKEN"] == [2, 3]
    assert got.count("BROKEN") == 2


def test_holds_one_block_not_the_array(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    longest = 0
    more = json_stream.Buffer.read_more

    def measure(self: json_stream.Buffer) -> bool:
        nonlocal longest
        grown = more(self)
        longest = max(longest, len(self.text))
        return grown

    monkeypatch.setattr(json_stream.Buffer, "read_more", measure)
    path = tmp_path / "t.json"
    skipped = json.dumps(["x" * 100] * 5000)
    path.write_text(f'{{"big": {skipped}, "in": {json.dumps([{"n": "y" * 50}] * 20_000)}}}')
    assert sum(isinstance(one, Element) for one in read_elements(path, ["in"])) == 20_000
    assert longest < 3 * json_stream.BLOCK_BYTES < path.stat().st_size // 5


@given(st.text(alphabet='[]{}",:\\\n 1ak') | st.binary(max_size=40))
def test_any_bytes_end(content: str | bytes) -> None:
    for keys in ((), ("a",), ("a", "k")):
        for nested in (False, True):
            for one in list_found(content, *keys, nested=nested):
                assert one.line >= 1
