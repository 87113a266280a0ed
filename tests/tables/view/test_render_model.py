"""Render model without a browser: rows, copies, findings, the file."""

from __future__ import annotations

import base64
import re
import zlib
from html.parser import HTMLParser

import numpy as np
import pytest

from antecede.errors import InputError
from antecede.tables.causality.queries import EventRef
from antecede.tables.view.copies import NOT_RECEIVED, REPEATED_COPY, UNDELIVERED, match_copies
from antecede.tables.view.page import join_modules, render_page
from antecede.tables.view.render_model import picture
from tests.tables.view.made import (
    declared,
    drawn,
    make_held_trace,
    make_random_clocks,
    steps,
    trace_of,
)
from tests.tables.view.unpacked import unpacked


def test_copies_are_matched() -> None:
    found = match_copies(make_held_trace().events)
    ids = make_held_trace().events["id"].to_pylist()
    assert found.send_row.tolist() == [-1, 0, 0, -1, 3, 0, 3, 3, 0, 0, 3, -1]
    assert found.receipt_row.tolist() == [-1, -1, 1, -1, -1, -1, -1, 6, -1, 8, 4, -1]
    assert [ids[k] for k in np.flatnonzero(found.marks & NOT_RECEIVED)] == ["d"]
    assert np.flatnonzero(found.marks & REPEATED_COPY).tolist() == [5]
    assert not (found.marks & UNDELIVERED).any()


def test_what_is_never_delivered_is_marked_where_others_are() -> None:
    found = match_copies(trace_of(steps("p!a@0 p!b@1 q?a@2 q?b@3 q.b@4 log?a@5")).events)
    assert np.flatnonzero(found.marks & UNDELIVERED).tolist() == [2]


def test_a_block_reads_as_it_was_packed() -> None:
    made = picture(declared(4), title="t ⇒ \u2028")
    meta, arrays = unpacked(made.pack())
    assert meta == made.meta
    assert meta["title"] == "t ⇒ \u2028"
    for name, array in made.arrays.items():
        assert np.array_equal(arrays[name], array, equal_nan=array.dtype.kind == "f")


def test_findings_point_to_rows() -> None:
    rows = steps("p!early@100 q?early@40 q!fine@50 p?fine@160")
    meta = picture(trace_of(rows), title="t").meta
    axis = {"axis": "event_time", "count": 1, "compared": 2, "largest": 60_000_000, "rows": [0, 1]}
    assert meta["axes"][0] == axis
    assert meta["findings"][0]["rows"] == [0, 1]
    assert meta["skew"]["pairs"][0]["rows"] == [0, 1]
    assert meta["skew"]["hosts"][0]["shift_ns"] in (60_000_000, -60_000_000)


def test_waits_are_told_the_longest_first() -> None:
    meta = picture(make_held_trace(), title="t").meta
    assert [(one["received"], one["delivered"]) for one in meta["waits"]] == [(4, 10), (8, 9)]
    assert meta["waits"][0]["ns"] == 22_000_000


def test_missing_causes_are_named() -> None:
    trace = trace_of([{"id": "a", "member": "p", "causes": ["gone", "lost"]}])
    made = picture(trace, title="t")
    assert made.meta["missing"]["ids"] == 2
    assert {one["id"] for one in made.meta["missing"]["named"]} == {"gone", "lost"}
    _, arrays = unpacked(made.pack())
    assert [arrays["missing.texts"][k] for k in arrays["missing"]] == ["gone", "lost"]


def test_clocks_are_those_of_the_log() -> None:
    trace = make_random_clocks(2)
    _, arrays = unpacked(picture(trace, title="t").pack())
    names, counts = (trace.events[name].to_pylist() for name in ("clock_members", "clock_counts"))
    for row in range(len(trace.events)):
        cut = slice(arrays["clock.offsets"][row], arrays["clock.offsets"][row + 1])
        said = [arrays["clock.members.texts"][k] for k in arrays["clock.members"][cut]]
        assert said == names[row]
        assert arrays["clock.counts"][cut].tolist() == counts[row]


def test_a_larger_trace_is_cut_around_an_event_and_says_so() -> None:
    trace = drawn(1, events=300)
    ids = [str(id) for id in trace.events["id"].to_pylist()]
    with pytest.raises(InputError, match="--focus"):
        picture(trace, title="t", most=50)
    made = picture(trace, title="t", most=50, around=EventRef(ids[100]))
    _, arrays = unpacked(made.pack())
    assert made.meta["events"] == 50
    assert made.meta["of"] == len(ids)
    assert arrays["id.texts"][arrays["id"][made.meta["around"]]] == ids[100]
    assert any("50 of" in one["what"] for one in made.meta["findings"])
    last = picture(trace, title="t", most=50, latest=True)
    assert last.arrays["place"].max() == len(ids) - 1


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_the_file_needs_nothing_else() -> None:
    text = render_page(picture(make_held_trace(), title="a & b"))
    parser = _Tags()
    parser.feed(text)
    for tag, attributes in parser.found:
        assert not {"src", "href", "srcset", "action"} & attributes.keys(), tag
    assert [tag for tag, _ in parser.found].count("script") == 2
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)
    assert "url(" not in text.replace("url(#${id})", "")
    assert "<title>a &amp; b" in text
    data = re.search(r'id="data">([^<]*)<', text)
    assert data is not None
    meta, _ = unpacked(zlib.decompress(base64.b64decode(data[1])))
    assert meta["events"] == 12


def test_modules_are_joined_to_one_script() -> None:
    joined = join_modules()
    assert not re.search(r"^(import|export)\b", joined, re.MULTILINE)
    for danger in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert danger not in joined


def test_what_arrives_outside_of_a_cut_is_not_lost() -> None:
    trace = trace_of(steps("p!a@0 p!b@1 q?a@900"))
    made = picture(trace, title="t", most=2, around=EventRef("a"))
    assert made.meta["events"] == 2
    assert made.arrays["marks"].tolist() == [0, NOT_RECEIVED]
    assert made.arrays["sent"].tolist() == [-1, -1]


def test_a_message_that_came_to_nobody_by_name_is_not_lost() -> None:
    trace = trace_of([{"kind": "send", "id": "a"}, {"kind": "deliver", "id": "a"}])
    assert match_copies(trace.events).marks.tolist() == [0, 0]
    trace = trace_of(steps("ann!a@0 ann.a@1"))
    assert match_copies(trace.events).marks.tolist() == [NOT_RECEIVED, 0]
