"""Errors, corrected clocks and the shortest chain, in a page and in tiles."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from antecede.tables.causality.queries import Causality
from antecede.tables.trace.arrow import Trace
from antecede.tables.view import render_model, tiles
from antecede.tables.view.live_source import Followed
from antecede.tables.view.render_model import picture
from antecede.tables.view.severity import ERROR, NORMAL, WARNING, find_severity
from antecede.tables.view.tile_axes import NO_MEMBER
from antecede.tables.view.tiles import ABOUT, Tiles, write_tiles
from tests.helpers.browser import wait_until
from tests.tables.view.conftest import Opened
from tests.tables.view.made import MS, T0, trace_of
from tests.tables.view.test_server import serve
from tests.tables.view.unpacked import unpacked

TIMES = {"a1": 0, "b1": 5, "b2": 10, "a2": 12, "c1": 1020, "c2": 1030, "b3": 34, "a3": 40}
"""Milliseconds by the clock of each member; that of c is 1,000 ms ahead."""
CAUSES = {"b1": "a1", "b2": "b1", "a2": "a1 b1", "c1": "b2", "c2": "c1", "b3": "c2 b2", "a3": "a2"}
ERRORS = ("c2", "a3")


def make_incident(repeat: int = 1) -> Trace:
    """Return a trace with two errors and a clock that is ahead; `repeat`: rounds of 100 ms."""
    rows: list[dict[str, Any]] = [
        {
            "id": f"{id}/{k}",
            "member": id[0],
            "kind": "event",
            "text": f"step {id}",
            "send_time": T0 + (time + 100 * k) * MS,
            "causes": [
                *(f"{one}/{k}" for one in CAUSES.get(id, "").split()),
                *([f"b3/{k - 1}"] if k and id == "a1" else []),
            ],
        }
        for k in range(repeat)
        for id, time in TIMES.items()
    ]
    levels = ["ERROR" if row["text"][5:] in ERRORS else "INFO" for row in rows]
    return replace(trace_of(rows), own=pa.table({"level": levels, "host": ["h"] * len(rows)}))


def make_log(*rows: tuple[str, str, int | None, str | None]) -> Trace:
    """Return a trace of events: id, level, time in ms, member."""
    events = [
        {"id": id, "send_time": None if ms is None else T0 + ms * MS, "member": member}
        for id, _, ms, member in rows
    ]
    return replace(trace_of(events), own=pa.table({"level": [row[1] for row in rows]}))


@pytest.mark.parametrize(
    ("name", "values", "rated"),
    [
        ("level", ["INFO", "warn", "Error ", None, "FATAL"], [0, 1, 2, 0, 2]),
        ("log.severity_text", ["ERROR", "ok"], [2, 0]),
        ("status", ["ok", "error", "unset", None], [0, 2, 0, 0]),
        ("status", ["200", "404", "503", "503.0", "warn"], [0, 1, 2, 2, 1]),
        ("status", ['"error"', '"ok"', '"502"'], [2, 0, 2]),
        ("http.status", ["200", "503", "429", "503.0"], [0, 2, 1, 2]),
        ("http.response.status", ["500", "OK"], [2, 0]),
        ("http.status_code", ["200", "404", "502", "x", None], [0, 1, 2, 0, 0]),
        ("http.response.status_code", ["500", "301"], [2, 0]),
        ("rpc.grpc.status_code", ["0", "14", "OK"], [0, 2, 0]),
        ("rpc.grpc.status_code", ["0.0", "14.0", '"OK"'], [0, 2, 0]),
        ("error", ["", "timeout", "false", None], [0, 2, 0, 0]),
        ("error", ["[]", "{}", '""', " ", "null", '["late"]'], [0, 0, 0, 0, 0, 2]),
        ("errors_seen", ["error"], [0]),
        ("host", ["error"], [0]),
    ],
)
def test_columns_of_levels_statuses_and_errors(
    name: str, values: list[str | None], rated: list[int]
) -> None:
    found = find_severity(pa.table({name: values}))
    assert found.rows.tolist() == rated
    assert found.columns == ([name] if any(rated) else [])
    assert (NORMAL, WARNING, ERROR) == (0, 1, 2)


def test_the_worst_of_several_columns_counts() -> None:
    table = pa.table({"level": ["INFO", "WARN"], "http.status_code": [503.0, 200.0]})
    found = find_severity(table)
    assert found.rows.tolist() == [ERROR, WARNING]
    assert found.columns == ["level", "http.status_code"]


def test_corrected_times_have_no_inversion() -> None:
    made = picture(make_incident(), title="t")
    counts = {one["axis"]: one["count"] for one in made.meta["axes"]}
    assert counts["event_time"] == 1
    assert counts["corrected"] == 0
    assert [one["name"] for one in made.meta["times"]][:2] == ["event_time", "corrected"]
    moved = made.arrays["time.corrected"] - made.arrays["time.event_time"]
    assert {float(one) for one in moved} == {0.0, -996.0 * MS}
    assert made.meta["first_error"] == 5
    assert made.meta["findings"][0]["what"].startswith("2 errors (column level); the first is c2/0")
    assert made.meta["findings"][0]["rows"] == [5]


CHAIN = "(antecede.model.chain ?? []).map((row) => antecede.model.ids.at(row))"
CHOSEN = "antecede.model.chosen < 0 ? '' : antecede.model.ids.at(antecede.model.chosen)"


def test_a_page_begins_with_the_findings_and_the_first_error(opened: Opened) -> None:
    shown = opened(make_incident())
    assert shown.evaluate(CHOSEN) == "c2/0"
    assert shown.get_attribute("#tab-findings", "aria-selected") == "true"
    assert "2 errors (column level)" in shown.inner_text("#panel li >> nth=0")
    shown.wait_for_timeout(400)
    again = opened(make_incident(), "#event=0")
    assert again.evaluate(CHOSEN) == "a1/0"
    assert again.get_attribute("#tab-event", "aria-selected") == "true"


def test_errors_are_red_and_marked_by_a_shape(opened: Opened) -> None:
    shown = opened(make_incident())
    shown.evaluate("antecede.choose(-1); antecede.fit(true); antecede.setTheme('light')")
    svg = shown.evaluate("antecede.svg()")
    red = re.findall(r'<path d="([^"]+)" fill="none" stroke="#c8102e"', svg)
    assert sum(path.count("M") for path in red) == len(ERRORS)
    assert all(path.count("L") == 4 * path.count("M") for path in red)  # diamonds
    assert 'fill="#c8102e"' in svg
    shown.click("#panel .legend summary")
    assert "error" in shown.inner_text("#panel .legend")


def test_dense_errors_are_marked_below_their_bars(opened: Opened) -> None:
    shown = opened(make_incident(600))
    shown.evaluate("antecede.choose(-1); antecede.fit(true); antecede.setTheme('light')")
    shown.wait_for_timeout(60)
    assert "bars where events are dense" in shown.inner_text("#status")
    svg = shown.evaluate("antecede.svg()")
    marked = {float(y) for y in re.findall(r'<rect x="[^"]+" y="([^"]+)"[^>]+fill="#c8102e"', svg)}
    assert len(marked) >= 2  # on the timelines of a and c
    red = """() => {
      const { canvas } = { canvas: document.getElementById("overview") };
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, 5);
      let count = 0;
      for (let k = 0; k < data.length; k += 4) count += data[k] > 180 && data[k + 1] < 60;
      return count;
    }"""
    assert shown.evaluate(red) > 50


def test_two_selected_events_show_their_shortest_chain(opened: Opened) -> None:
    shown = opened(make_incident())
    shown.evaluate("antecede.choose(0); antecede.togglePin(0); antecede.choose(6)")
    assert shown.evaluate(CHAIN) == ["a1/0", "b1/0", "b2/0", "b3/0"]
    said = shown.inner_text("#panel")
    assert "After the pinned a1/0" in said
    assert "Shortest chain, 3 steps" in said
    texts = re.findall(
        r'font-weight="bold"[^>]*fill="#\w+">([^<]+)<', shown.evaluate("antecede.svg()")
    )
    assert {"step a1", "step b3"} <= set(texts)
    rings = shown.evaluate("antecede.svg()").count("a12 12 0 1 0")
    assert rings == 4  # two arcs each
    shown.click("#alone")
    assert shown.evaluate("antecede.model.rows.length") == 4
    assert shown.evaluate("antecede.model.timelines.list.map((one) => one.label)") == ["a", "b"]
    assert "only the chain is shown" in wait_status(shown, "only the chain")
    shown.wait_for_timeout(400)
    again = opened(make_incident(), "#" + shown.url.partition("#")[2])
    assert again.evaluate("antecede.model.rows.length") == 4
    again.click("#alone")
    assert again.evaluate("antecede.model.rows.length") == 8
    again.evaluate("antecede.choose(7)")  # concurrent with c2
    again.evaluate("antecede.togglePin(5)")
    assert "Concurrent with the pinned c2/0" in again.inner_text("#panel")
    assert again.evaluate(CHAIN) == []


def wait_status(shown: Any, text: str) -> str:
    shown.locator("#status", has_text=text).wait_for(timeout=15_000)
    said: str = shown.inner_text("#status")
    return said


def test_the_clocks_are_corrected_by_a_button(opened: Opened) -> None:
    shown = opened(make_incident())
    shown.evaluate("antecede.choose(-1); antecede.setTab('findings')")
    before = shown.evaluate("antecede.model.high - antecede.model.low")
    shown.click("#correct")
    assert shown.input_value("#axis") == "corrected"
    assert shown.evaluate("antecede.model.high - antecede.model.low") < before / 5
    shown.click("text=Show the recorded times")
    assert shown.input_value("#axis") == "event_time"


def test_twenty_members_have_distinct_hues(opened: Opened) -> None:
    rows = [{"id": f"e{k}", "member": f"m{k}", "send_time": T0 + k * MS} for k in range(20)]
    shown = opened(trace_of(rows))
    for theme in ("light", "dark"):
        shown.evaluate("theme => antecede.setTheme(theme)", theme)
        svg = shown.evaluate("antecede.svg()")
        hues = re.findall(r'<rect x="6" y="[^"]+" width="4" height="10" fill="(#\w{6})"', svg)
        assert len(set(hues)) == 20
        colours = [tuple(int(hue[k : k + 2], 16) for k in (1, 3, 5)) for hue in hues]
        least = min(
            sum(abs(x - y) for x, y in zip(one, other, strict=True))
            for one, other in combinations(colours, 2)
        )
        assert least > 40


def test_events_outside_of_the_view_are_counted(opened: Opened) -> None:
    rows = [{"id": f"e{k}", "member": f"m{k}", "send_time": T0 + k * MS} for k in range(200)]
    shown = opened(trace_of(rows))
    assert "of 200 timelines in view" in shown.inner_text("#status")
    shown.evaluate("antecede.setRange(150e6, 160e6)")
    said = wait_status(shown, "below (scroll)")
    assert "0 events in view" in said
    assert "10 below (scroll)" in said


def test_a_narrow_page_has_large_targets_and_room_for_the_diagram(opened: Opened) -> None:
    shown = opened(make_incident(), width=390, height=844)
    assert shown.evaluate("document.documentElement.scrollWidth") <= 390
    assert shown.locator("header").bounding_box()["height"] < 110
    assert shown.locator("#stage").bounding_box()["height"] > 844 * 0.42
    for id in ("previous", "next", "closer", "all", "tab-help"):
        box = shown.locator(f"#{id}").bounding_box()
        assert box["width"] >= 40
        assert box["height"] >= 40
        assert box["x"] + box["width"] <= 390
    assert shown.locator("#panel button.go").first.bounding_box()["height"] >= 40


def test_a_note_on_omitted_clock_entries_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(render_model, "MAX_CLOCK_ENTRIES", 2)
    clock = {"member": "m", "clock_members": ["m"], "kind": "event"}
    rows = [{"id": f"e{k}", "seq": k + 1, "clock_counts": [k + 1], **clock} for k in range(3)]
    made = picture(trace_of(rows), title="t")
    assert made.meta["by"] == "clocks"
    notes = [one["what"] for one in made.meta["findings"]]
    assert "the page omits 3 clock entries" in notes
    assert "clock.counts" not in made.arrays


def test_places_may_be_asked_for_twice(opened: Opened) -> None:
    shown = opened(make_incident())
    assert shown.evaluate("antecede.model.rowsAt([3, 3, 99, 0])") == [3, 3, -1, 0]


@pytest.mark.parametrize("chosen", [5, -1])
def test_new_data_reset_the_pin(opened: Opened, chosen: int) -> None:
    shown = opened(make_incident())
    shown.evaluate(f"antecede.choose({chosen}); antecede.setPin(2)")
    shown.evaluate("antecede.replace(antecede.model.data)")
    assert shown.evaluate("antecede.pinned") == -1


# -- served pages ---------------------------------------------------------------------------------


def test_a_served_page_equals_the_file(opened: Opened, tmp_path: Path) -> None:
    trace = make_incident(3)
    file = opened(trace)
    source = Followed("a trace", [tmp_path], lambda: trace, grows=False)
    with serve(source) as serving:
        served = opened(serving.url)
        for script in ("document.getElementById('panel').innerText", "antecede.svg()", CHOSEN):
            assert served.evaluate(script) == file.evaluate(script)


def test_tiles_have_the_findings_axes_and_chains_of_the_whole(
    opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiles, "MAX_TILE_EVENTS", 150)
    trace = make_incident(100)
    asked = Causality(trace)
    whole = picture(trace, title="t").meta
    write_tiles(trace, tmp_path / "t", "t", causality=asked)
    lists = json.loads((tmp_path / "t" / ABOUT).read_text())["lists"]
    for name in ("findings", "skew", "missing", "axes", "first_error"):
        assert lists[name] == whole[name]
    with serve(Tiles(tmp_path / "t", None, lambda: asked)) as serving:
        shown = opened(serving.url)
        wait_until(shown, f"({CHOSEN}) === 'c2/0'")
        assert shown.get_attribute("#tab-findings", "aria-selected") == "true"
        options = shown.locator("#axis option").all_inner_texts()
        assert options == opened(trace).locator("#axis option").all_inner_texts()
        shown.click("#all")
        wait_status(shown, "800 of 800 events in view")
        assert shown.evaluate("Array.from(antecede.model.data.arrays['grid.errors'])").count(0) > 0
        for axis in ("corrected", "logical", "order", "file"):
            shown.select_option("#axis", axis)
            wait_until(shown, f"antecede.model.meta.grid?.axis === '{axis}'")
            assert (
                shown.evaluate("antecede.model.data.arrays['grid.rows'].reduce((a, b) => a + b)")
                == 800
            )
        shown.select_option("#axis", "corrected")
        wait_until(shown, "antecede.model.meta.grid?.axis === 'corrected'")
        skewed = shown.locator("#panel button.go").nth(1)
        skewed.click()
        wait_until(shown, f"({CHOSEN}).startsWith('b3/')")
        shown.fill("#search", "a1/2")
        shown.keyboard.press("Enter")
        wait_until(shown, f"({CHOSEN}) === 'a1/2'")
        shown.click("text=Pin to compare")
        shown.fill("#search", "b3/90")
        shown.keyboard.press("Enter")
        shown.locator("#panel", has_text="Shortest chain, 355 steps").wait_for(timeout=15_000)
        shown.click("#alone")
        wait_until(shown, "antecede.model.alone && antecede.model.rows.length === 356")
        shown.wait_for_timeout(500)
        address = shown.url
        shown.click("#alone")
        wait_status(shown, "800 of 800 events in view")
        again = opened(address)
        wait_until(again, "antecede.model.alone && antecede.model.rows.length === 356")


def test_an_error_without_a_time_is_no_start_of_tiles(tmp_path: Path) -> None:
    trace = make_log(("a", "INFO", 0, "m"), ("b", "ERROR", None, "m"), ("c", "INFO", 5, "m"))
    write_tiles(trace, tmp_path, "t")
    meta, arrays = unpacked(Tiles(tmp_path).block({}))
    assert meta["first_error"] == 1
    assert meta["around"] == -1
    assert arrays["place"].tolist() == [0, 2]


@pytest.fixture
def memberless() -> Trace:
    """Return a trace with an event without a member."""
    return make_log(("a", "INFO", 0, "m"), ("b", "ERROR", 2, None), ("c", "INFO", 5, "n"))


def test_rows_without_a_member_have_the_last_number_in_tiles(
    memberless: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tiles(memberless, tmp_path, "t")
    source = Tiles(tmp_path)
    meta, arrays = unpacked(source.block({}))
    assert arrays["member.texts"] == ["m", "n", NO_MEMBER]
    assert arrays["member"].tolist() == [0, 2, 1]
    monkeypatch.setattr(tiles, "MAX_TILE_EVENTS", 1)
    for axis in ("event_time", "file"):
        meta, arrays = unpacked(source.block({"axis": axis, "x0": "0", "x1": "1e9"}))
        assert meta["grid"]["axis"] == axis
        assert sorted(arrays["grid.member"].tolist()) == [0, 1, 2]


def test_rows_without_a_member_have_one_timeline_in_tiles(
    memberless: Trace, opened: Opened, tmp_path: Path
) -> None:
    write_tiles(memberless, tmp_path / "t", "t")
    with serve(Tiles(tmp_path / "t")) as serving:
        shown = opened(serving.url)
        labels = shown.evaluate("antecede.model.timelines.list.map((one) => one.label)")
        assert labels == ["m", "n", NO_MEMBER]
        assert shown.evaluate("Array.from(antecede.model.timeline)") == [0, 2, 1]
        assert "at (no member)" not in shown.inner_text("#panel")
