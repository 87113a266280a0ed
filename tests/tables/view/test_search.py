"""Search of the page: the same matches in one file and in tiles."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from antecede.tables.trace.arrow import Trace, read
from antecede.tables.view import tiles
from antecede.tables.view.search import list_columns, match_rows, read_terms
from antecede.tables.view.tiles import Tiles, write_tiles
from tests.conftest import ROOT
from tests.tables.view.conftest import Opened
from tests.tables.view.test_server import serve

WORDS = ["psp", "timeout", "after", "ERROR", "a:1", "PSP Timeout", "Ä", "ß", "50%", "x.y", "(", '"']
TEXTS = [*WORDS, "PSP timeout after 5 ms", "after the timeout", "", "text:1"]
QUERIES = [
    *("psp", '"PSP timeout"', "psp after", "timeout after PSP", "/PSP.*after/", "/^after/", "-psp"),
    *("member:payments", "member:pay kind:event", "kind:even", "-kind:event", "kind:/^ev.nt$/"),
    *("payments:1", "text:1", "-text:1", "id:payments:1", "nosuch:thing", "topics:red", "Topics:b"),
    *("level:ERROR", "LEVEL:error -psp", '"how long":5', '"how long":/^5$/', "ä", "SS", "50%"),
    *("x.y", "/x.y/", "(", r"/\(/", "a:1", '""', "source:tsv", "source:csv", "run:1", "role:r"),
]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """Return 60 events with ids that look like fields, topics and extra columns."""
    draw = random.Random(5)
    ids = ["payments:1", "text:1", "member:payments", "1", *(f"e{k}" for k in range(56))]
    draw.shuffle(ids)
    rows = {
        "id": ids,
        "after": [None, *ids[:-1]],
        "member": [draw.choice(["payments", "auth", "Ä:1", None]) for _ in ids],
        "text": [draw.choice([*TEXTS, None]) for _ in ids],
        "topics": [draw.choice([["red", "blue"], ["b"], [], None]) for _ in ids],
        "level": [draw.choice(["ERROR", "info", None]) for _ in ids],
        "how long": [draw.choice([5, 50, None]) for _ in ids],
    }
    path = tmp_path_factory.mktemp("search") / "rows.parquet"
    pq.write_table(pa.table(rows), path)
    trace = read([path], own=True)
    assert trace.own is not None
    return replace(trace, own=trace.own.select(["level", "how long"]))


def test_a_piece_and_a_page_match_the_same_rows(
    opened: Opened, table: Trace, tmp_path: Path
) -> None:
    shown = opened(table)
    write_tiles(table, tmp_path / "cut", "t")
    source = Tiles(tmp_path / "cut")
    own = [tiles.OWN + name for name in shown.evaluate("antecede.model.own")]
    assert own == ["own:level", "own:how long"]
    empty = []
    for text in QUERIES:
        shown.fill("#search", text)
        mask = shown.evaluate("Array.from(antecede.model.matches ?? [])")
        terms = read_terms(shown.evaluate("JSON.stringify(antecede.terms)"), len(own))
        columns = [*list_columns(terms, own), "file_order"]
        rows: Any = source._events.to_table(columns=columns).sort_by("file_order")
        assert match_rows(rows, terms, own).to_pylist() == [bool(one) for one in mask], text
        if not any(mask):
            empty.append(text)
    none = ["-kind:event", "nosuch:thing", "SS", "source:tsv", "source:csv", "run:1", "role:r"]
    assert empty == none


def test_ids_are_found_as_they_stand(opened: Opened, table: Trace) -> None:
    shown = opened(table)
    for id in ("payments:1", "text:1", "member:payments"):
        shown.fill("#search", id)
        found = shown.evaluate(
            "antecede.model.matches && Array.from(antecede.model.matches).flatMap((one, row) =>"
            " one ? [antecede.model.ids.at(row)] : [])"
        )
        assert id in found
    shown.fill("#search", "payments:1")
    shown.locator("#status", has_text="1 match").wait_for()


def test_the_served_page_finds_the_same(opened: Opened, table: Trace, tmp_path: Path) -> None:
    write_tiles(table, tmp_path / "cut", "t")
    with serve(Tiles(tmp_path / "cut")) as serving:
        shown = opened(serving.url)
        for text in ("level:ERROR member:auth", '"PSP timeout after"', "payments:1"):
            shown.evaluate("antecede.choose(-1)")
            shown.fill("#search", text)
            hits = shown.evaluate("antecede.model.matches.reduce((a, b) => a + b)")
            assert hits
            shown.press("#search", "Enter")
            shown.locator("#panel .fields").wait_for(timeout=15_000)
            assert shown.evaluate("antecede.model.matches[antecede.model.chosen]") == 1
        shown.evaluate("antecede.choose(-1)")
        shown.fill("#search", "nosuch:thing")
        shown.press("#search", "Enter")
        said = 'no event matches the search. no field "nosuch"'
        shown.locator("#status", has_text=said).wait_for(timeout=15_000)
        shown.fill("#search", "/(?=psp)/")
        shown.press("#search", "Enter")
        shown.locator("#status", has_text="use the syntax of RE2").wait_for(timeout=15_000)
        opened.wrong[:] = [one for one in opened.wrong if "422" not in one]


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
@pytest.mark.parametrize(
    ("line", "field", "word"),
    [
        ("http.status_code:500", "own.0", "500"),
        ("X-Request-Id:7", "own.1", "7"),
        ("@timestamp:2024", "own.2", "2024"),
        ("member:payments", "member", "payments"),
        ("payments:987", None, "payments:987"),
        ("10.0.0.1:8080", None, "10.0.0.1:8080"),
    ],
)
def test_fields_may_have_dots_and_hyphens(line: str, field: str | None, word: str) -> None:
    own = ["http.status_code", "x-request-id", "@timestamp"]
    module = (ROOT / "src/antecede/tables/view/assets/search.js").as_uri()
    script = f"""
        import {{ parseSearch }} from {json.dumps(module)};
        console.log(JSON.stringify(parseSearch({json.dumps(line)}, {json.dumps(own)})));
    """
    done = subprocess.run(
        ["node", "--input-type=module", "-e", script], capture_output=True, text=True, check=True
    )
    (term,) = json.loads(done.stdout)
    assert (term["field"], term["word"]) == (field, word)
