"""The page in a real browser."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from antecede.core.protocols.base import Relation
from antecede.tables.causality import Causality
from antecede.tables.trace.arrow import Trace
from tests.tables.view.conftest import Opened
from tests.tables.view.made import (
    MS,
    T0,
    declared,
    drawn,
    make_held_trace,
    make_random_clocks,
    make_row,
    steps,
    trace_of,
)

EVIL = (
    "<script>globalThis.hacked = 1</script>",
    "</script><script>globalThis.hacked = 2</script>",
    "<img src=x onerror='globalThis.hacked = 3'>",
    "\"'><svg onload=globalThis.hacked=4>",
    "line\u2028two\u2029three",
    "\u202egnp.exe",
    "{{SCRIPT}} {{DATA}} ${globalThis.hacked = 5}",
    "]]>&amp;<!--",
)


def event(shown: Any, row: int) -> tuple[float, float]:
    """Return where a row is on the screen."""
    x, y = shown.evaluate(
        """row => {
          const { model, view, canvas } = antecede;
          const box = canvas.getBoundingClientRect();
          const scale = (view.width - view.left) / (view.x1 - view.x0);
          return [box.left + view.left + (model.axis.values[row] - view.x0) * scale,
                  box.top + 30 + (model.timeline[row] + 0.5) * view.timelineHeight - view.y];
        }""",
        row,
    )
    return x, y


def row_of(shown: Any, id: str, kind: str, member: str) -> int:
    found: int = shown.evaluate(
        """([id, kind, member]) => {
          const { model } = antecede;
          for (let row = 0; row < model.size; row++) {
            if (model.ids.at(row) === id && model.kindOf(row) === kind
                && model.members.at(row) === member) return row;
          }
          return -1;
        }""",
        [id, kind, member],
    )
    assert found >= 0
    return found


@pytest.mark.parametrize("make", [drawn, declared, make_random_clocks])
def test_past_and_future_are_those_of_causality(opened: Opened, make: Any) -> None:
    for seed in range(4):
        trace: Trace = make(seed)
        asked = Causality(trace)
        shown = opened(trace)
        found = shown.evaluate(
            """() => {
              const { graph, size } = antecede.model;
              const masks = [];
              for (let row = 0; row < size; row++) {
                masks.push([Array.from(graph.past(row)), Array.from(graph.future(row))]);
              }
              return masks;
            }"""
        )
        assert len(found) == len(asked.events)
        for row, (past, future) in enumerate(found):
            assert past == asked._mask([row], backwards=True).astype(int).tolist()
            assert future == asked._mask([row], backwards=False).astype(int).tolist()


def test_a_chain_of_causes_is_one(opened: Opened) -> None:
    trace = drawn(7)
    asked = Causality(trace)
    shown = opened(trace)
    last = len(asked.events) - 1
    past = np.flatnonzero(asked._mask([last], backwards=True)).tolist()
    assert past
    for row in past:
        chain = shown.evaluate("([a, b]) => antecede.model.graph.path(a, b)", [row, last])
        assert chain[0] == row
        assert chain[-1] == last
        for a, b in pairwise(chain):
            assert asked._mask([b], backwards=True)[a]


def test_a_click_chooses_an_event_and_says_what_it_is(opened: Opened) -> None:
    shown = opened(make_held_trace())
    row = row_of(shown, "b", "deliver", "cyd")
    shown.mouse.click(*event(shown, row))
    said = shown.inner_text("#panel")
    assert "b deliver at cyd" in said
    assert "7 before it" in said  # one of ann, three of bob, three of cyd
    assert "Held for 22 ms" in said
    assert "a deliver at cyd" in said
    shown.wait_for_timeout(400)
    assert f"event={row}" in shown.url
    shown.click("#panel button.event >> nth=0")
    assert "a deliver at cyd" in shown.inner_text("#panel h2")


def test_the_nearest_of_several_events_is_chosen(opened: Opened) -> None:
    close = [make_row("send", f"a{k}", "p", k) for k in range(8)]
    shown = opened(trace_of([*close, make_row("send", "far", "p", 900)]))
    shown.evaluate("antecede.setRange(-1e6, 200e6)")
    shown.wait_for_timeout(60)
    for row in range(8):
        x, y = event(shown, row)
        shown.mouse.click(x + 0.5, y)
        assert shown.evaluate("antecede.model.chosen") == row


def test_events_at_one_place_can_each_be_chosen(opened: Opened) -> None:
    rows = [{"id": f"e{k}", "member": "p", "send_time": 5, "kind": "event"} for k in range(3)]
    shown = opened(trace_of(rows))
    x, y = event(shown, 0)
    for row, below in ((0, -11), (1, 0), (2, 11)):
        shown.mouse.click(x, y + below)
        assert shown.evaluate("antecede.model.chosen") == row


def test_what_has_nothing_to_do_with_a_message_is_not_what_it_waited_for(opened: Opened) -> None:
    rows = steps(
        "ann!cause@0 bob?cause@5 bob.cause@5 bob!effect@6 eve!other@7 cyd?effect@10 cyd?other@20 "
        "cyd.other@20 cyd?cause@30 cyd.cause@30 cyd.effect@31"
    )
    shown = opened(trace_of(rows))
    assert shown.evaluate("antecede.model.waitedFor(10)") == [9]
    assert shown.evaluate("antecede.model.waitedFor(7)") == []


def test_a_change_beside_the_picture_keeps_the_focus(opened: Opened) -> None:
    shown = opened(make_held_trace())
    shown.keyboard.press("2")
    shown.focus("#panel .members input >> nth=1")
    shown.keyboard.press("Space")
    boxes = "Array.from(document.querySelectorAll('#panel .members input'), (box) => box.checked)"
    assert shown.evaluate(boxes) == [True, False, True]
    shown.keyboard.press("Space")
    assert shown.evaluate(boxes) == [True, True, True]


def test_lost_and_repeated_copies_are_said(opened: Opened) -> None:
    shown = opened(make_held_trace())
    said = shown.inner_text("#panel")
    assert "1 message without an arrival" in said
    assert "1 arrival was repeated" in said
    assert "longest wait" in said
    shown.keyboard.press("w")
    assert "b deliver at cyd" in shown.inner_text("#panel h2")


def test_the_keyboard_alone_reaches_everything(opened: Opened) -> None:
    shown = opened(make_held_trace())
    for _ in range(20):
        shown.keyboard.press("Tab")
        if shown.evaluate("document.activeElement.id") == "picture":
            break
    assert shown.evaluate("document.activeElement.id") == "picture"
    shown.keyboard.press("Enter")
    first = shown.evaluate("antecede.model.chosen")
    assert first >= 0
    shown.evaluate("row => antecede.reveal(row)", row_of(shown, "b", "receive", "cyd"))
    chosen = "((model) => `${model.ids.at(model.chosen)} ${model.kindOf(model.chosen)}`)"
    chosen += "(antecede.model)"
    shown.keyboard.press("ArrowRight")
    assert shown.evaluate(chosen) == "a receive"
    shown.keyboard.press("c")
    assert shown.evaluate(chosen) == "a send"
    shown.keyboard.press("e")
    assert shown.evaluate(chosen) == "a receive"
    shown.keyboard.press("ArrowDown")
    before = shown.evaluate("[antecede.view.x0, antecede.view.x1]")
    shown.keyboard.press("+")
    after = shown.evaluate("[antecede.view.x0, antecede.view.x1]")
    assert after[1] - after[0] < before[1] - before[0]
    shown.keyboard.press("Shift+ArrowRight")
    assert shown.evaluate("antecede.view.x0") > after[0]
    shown.keyboard.press("Escape")
    assert shown.evaluate("antecede.model.chosen") == -1
    shown.keyboard.press("/")
    shown.keyboard.type("noon")
    shown.keyboard.press("Enter")
    assert shown.evaluate(chosen) == "b send"
    shown.keyboard.press("Escape")
    shown.keyboard.press("?")
    assert "Keys" in shown.inner_text("#panel")
    shown.keyboard.press("2")
    assert shown.locator("#panel input[type=checkbox]").count() == 3


def test_search_by_field_and_expression(opened: Opened) -> None:
    shown = opened(make_held_trace())

    def matches(text: str) -> list[str]:
        shown.fill("#search", text)
        found: list[str] = shown.evaluate(
            """() => Array.from(antecede.model.matches ?? []).flatMap((one, row) => one
              ? [`${antecede.model.ids.at(row)} ${antecede.model.kindOf(row)}`] : [])"""
        )
        return found

    assert matches("member:ann kind:send") == ["a send", "d send"]
    assert matches("/^no+n$/") == ["b send"]
    assert matches('"time is"') == ["a send"]
    assert matches("kind:send -noon") == ["a send", "d send"]
    assert matches("/(/") == []
    assert shown.get_attribute("#search", "aria-invalid") == "true"
    shown.wait_for_timeout(80)
    assert "search: Invalid regular expression: /(/" in shown.inner_text("#status")
    matches("noon")
    assert shown.get_attribute("#search", "aria-invalid") is None
    shown.check("#only")
    assert shown.evaluate("antecede.model.rows.length") == 1


def test_both_themes_and_the_switch(opened: Opened) -> None:
    shown = opened(make_held_trace())
    corner = "getComputedStyle(document.body).backgroundColor"
    pixel = "Array.from(antecede.ctx.getImageData(2, 2, 1, 1).data)"
    shown.evaluate("antecede.setTheme('light')")
    shown.wait_for_timeout(80)
    light = shown.evaluate(corner), shown.evaluate(pixel)
    shown.click("#theme")
    shown.wait_for_timeout(80)
    dark = shown.evaluate(corner), shown.evaluate(pixel)
    assert light == ("rgb(255, 255, 255)", [255, 255, 255, 255])
    assert dark == ("rgb(18, 22, 28)", [18, 22, 28, 255])
    shown.wait_for_timeout(400)
    assert "theme=dark" in shown.url


def test_a_narrow_screen_has_all_of_it_and_touch_moves_it(opened: Opened) -> None:
    shown = opened(make_held_trace(), width=360, height=700)
    assert shown.evaluate("document.documentElement.scrollWidth") <= 360
    stage = shown.locator("#stage").bounding_box()
    panel = shown.locator("#panel").bounding_box()
    assert stage["height"] > 150
    assert panel["height"] > 120
    assert panel["y"] >= stage["y"] + stage["height"]
    before = shown.evaluate("antecede.view.x0")
    pinch = """([ids, steps]) => {
      const canvas = antecede.canvas;
      canvas.setPointerCapture = () => {};
      const box = canvas.getBoundingClientRect();
      const fire = (type, id, x) => canvas.dispatchEvent(new PointerEvent(type, {
        pointerId: id, pointerType: "touch", clientX: box.left + x, clientY: box.top + 90,
        bubbles: true }));
      for (const id of ids) fire("pointerdown", id, 200 + id);
      for (const [id, x] of steps) fire("pointermove", id, x);
      for (const id of ids) fire("pointerup", id, 0);
    }"""
    shown.evaluate(pinch, [[1], [[1, 230], [1, 260]]])
    moved_ = shown.evaluate("antecede.view.x0")
    assert moved_ < before
    width = "antecede.view.x1 - antecede.view.x0"
    was = shown.evaluate(width)
    shown.evaluate(pinch, [[1, 2], [[1, 120], [2, 300]]])
    assert shown.evaluate(width) < was


@pytest.mark.parametrize("evil", EVIL)
def test_a_log_cannot_run_script_in_the_page(opened: Opened, evil: str) -> None:
    rows = [
        make_row("send", f"{evil}-1", evil, 0, text=evil, topics=[evil], source=evil, run=evil),
        make_row("receive", f"{evil}-1", f"to {evil}", 3, source=evil, run=evil),
        make_row("deliver", f"{evil}-1", f"to {evil}", 9, source=evil, run=evil),
        {"id": "z", "kind": "event", "member": "z", "text": evil, "run": "other"},
    ]
    shown = opened(trace_of(rows), title=evil)
    shown.mouse.move(*event(shown, 0))
    shown.evaluate("antecede.reveal(0)")
    for tab in ("members", "event", "help", "findings"):
        shown.click(f"#tab-{tab}")
    shown.evaluate("antecede.group('topics')")
    shown.fill("#search", evil)
    shown.evaluate("antecede.reveal(2)")
    shown.wait_for_timeout(60)
    assert shown.evaluate("globalThis.hacked") is None
    assert shown.evaluate("document.images.length") == 0
    assert shown.evaluate("document.scripts.length") == 2
    assert shown.evaluate("document.querySelectorAll('#panel script, svg').length") == 0
    assert shown.evaluate("antecede.model.ids.at(0)") == f"{evil}-1"
    assert "\u202e" not in shown.inner_text("body")
    document = ET.fromstring(shown.evaluate("antecede.svg()"))
    tags = {element.tag.rpartition("}")[2] for element in document.iter()}
    assert tags <= {"svg", "rect", "path", "text", "g", "clipPath"}


def test_the_policy_of_the_page_lets_nothing_else_run(opened: Opened) -> None:
    shown = opened(make_held_trace())
    ran = shown.evaluate(
        """() => new Promise((done) => {
          addEventListener("securitypolicyviolation", (event) => done(event.violatedDirective));
          const script = document.createElement("script");
          script.textContent = "globalThis.hacked = 1";
          document.body.append(script);
        })"""
    )
    assert ran.startswith("script-src")
    assert shown.evaluate("globalThis.hacked") is None
    assert "default-src 'none'" in shown.content()
    assert any("Content Security Policy" in said for said in opened.wrong)
    opened.wrong.clear()  # the refusal is what was wanted


def test_an_address_opens_the_same_view(opened: Opened) -> None:
    trace = drawn(3)
    shown = opened(trace)
    shown.evaluate("antecede.setAxis('logical'); antecede.zoom(3, 600); antecede.choose(10)")
    shown.evaluate(
        "antecede.arrange((timelines) => { timelines.order = 'name'; timelines.hidden.add(1); })"
    )
    shown.fill("#search", "x1")
    shown.wait_for_timeout(700)
    state = """() => [antecede.model.axis.name, antecede.view.x0, antecede.view.x1,
      antecede.model.chosen, antecede.model.timelines.order, [...antecede.model.timelines.hidden],
      antecede.query, antecede.theme, antecede.tab]"""
    first = shown.evaluate(state)
    again = opened(trace, "#" + shown.url.partition("#")[2])
    second = again.evaluate(state)
    assert second[1:3] == pytest.approx(first[1:3])
    assert [second[0], *second[3:]] == [first[0], *first[3:]]
    odd = opened(trace, "#x0=NaN&event=99999&axis=nonsense&hide=a.b&h=-3&run=7&tab=nonsense")
    assert odd.evaluate("antecede.model.chosen") == -1


def test_what_is_seen_is_exported(opened: Opened) -> None:
    shown = opened(make_held_trace())
    for id, ending in (("svg", ".svg"), ("png", ".png")):
        shown.click(".menu summary")
        with shown.expect_download() as waiting:
            shown.click(f"#{id}")
        made = waiting.value
        assert made.suggested_filename.endswith(ending)
        body = Path(made.path()).read_bytes()
        assert body.startswith(b"<svg" if id == "svg" else b"\x89PNG")
        assert not shown.is_visible("#png")  # the menu has closed
    shown.click(".menu summary")
    shown.keyboard.press("Escape")
    assert not shown.is_visible("#png")
    text = shown.evaluate("antecede.svg()")
    assert "ann" in text
    assert ET.fromstring(text).tag.endswith("svg")
    shown.evaluate("globalThis.print = () => (globalThis.printed = true); antecede.print()")
    assert shown.evaluate("document.querySelectorAll('#paper svg text').length") > 3


def test_members_are_hidden_ordered_grouped_and_dragged(opened: Opened) -> None:
    rows = [
        make_row("send", f"{host}{k}", f"{host}-{k}", 10 * k + n)
        for n, host in enumerate(("web", "db"))
        for k in range(3)
    ]
    shown = opened(trace_of([*rows, make_row("receive", "web0", "db-2", 60)]))
    labels = "antecede.model.timelines.list.map((timeline) => timeline.label)"
    assert shown.evaluate(labels) == ["web-0", "db-0", "web-1", "db-1", "web-2", "db-2"]
    shown.click("#tab-members")
    shown.select_option("#order", "name")
    assert shown.evaluate(labels) == ["db-0", "db-1", "db-2", "web-0", "web-1", "web-2"]
    shown.uncheck("#panel .members input >> nth=0")
    assert "db-0" not in shown.evaluate(labels)
    shown.select_option("#group", "prefix")
    shown.click("text=Fold all")
    assert shown.evaluate(labels) == ["db (2)", "web (3)"]
    shown.click("text=Unfold all")
    shown.click("text=Show all")
    shown.fill("#before", "")
    shown.select_option("#group", "")
    box = shown.locator("#picture").bounding_box()
    tall = shown.evaluate("antecede.view.timelineHeight")
    shown.mouse.move(box["x"] + 20, box["y"] + 30 + tall / 2)
    shown.mouse.down()
    shown.mouse.move(box["x"] + 20, box["y"] + 30 + tall * 2.1, steps=4)
    shown.mouse.up()
    assert shown.evaluate(labels)[:3] == ["db-1", "db-0", "db-2"]


def test_wheel_and_drag_move_the_picture(opened: Opened) -> None:
    shown = opened(drawn(1))
    view = "[antecede.view.x0, antecede.view.x1]"
    before = shown.evaluate(view)
    box = shown.locator("#picture").bounding_box()
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    shown.mouse.move(*middle)
    shown.mouse.wheel(0, -200)
    shown.wait_for_timeout(60)
    closer = shown.evaluate(view)
    assert closer[1] - closer[0] < before[1] - before[0]
    shown.mouse.down()
    shown.mouse.move(middle[0] - 150, middle[1], steps=5)
    shown.mouse.up()
    assert shown.evaluate(view)[0] > closer[0]
    assert shown.evaluate("antecede.model.chosen") == -1


def test_runs_are_shown_one_by_one(opened: Opened) -> None:
    rows = [
        {"id": "a", "member": "p", "run": "first", "causes": []},
        {"id": "b", "member": "q", "run": "first", "causes": ["a"]},
        {"id": "a", "member": "r", "run": "second", "causes": []},
    ]
    shown = opened(trace_of(rows))
    labels = "antecede.model.timelines.list.map((timeline) => timeline.label)"
    assert shown.evaluate(labels) == ["p", "q"]
    shown.select_option("#run", "1")
    assert shown.evaluate(labels) == ["r"]
    shown.select_option("#run", "-1")
    assert sorted(shown.evaluate(labels)) == ["p", "q", "r"]


# -- bad input ------------------------------------------------------------------------------------


def test_one_event(opened: Opened) -> None:
    shown = opened(trace_of([{"id": "only", "member": "p", "kind": "event"}]))
    assert "1 event in view" in shown.inner_text("#status")
    shown.keyboard.press("Enter")
    assert "only at p" in shown.inner_text("#panel")
    assert "0 before it" in shown.inner_text("#panel")


def test_a_trace_without_times(opened: Opened) -> None:
    shown = opened(declared(2))
    options = shown.locator("#axis option").all_inner_texts()
    assert options == ["logical time (depth)", "causal order, evenly spaced", "order of the file"]
    assert "50 events in view" in shown.inner_text("#status")


def test_cycles_are_drawn_as_set_aside(opened: Opened) -> None:
    rows = [
        {"id": "a", "member": "p", "causes": ["b"]},
        {"id": "b", "member": "q", "causes": ["a"]},
        {"id": "c", "member": "q", "causes": ["b"]},
    ]
    shown = opened(trace_of(rows), "#axis=file")
    said = shown.inner_text("#panel")
    only = opened(trace_of(rows[:2]))
    assert "2 events in view" in only.inner_text("#status")
    assert "2 events that cause each other quarantined, in 1 cycle" in said
    assert "3 events in view" in shown.inner_text("#status")
    shown.evaluate("antecede.reveal(0)")
    assert "not part of the order" in shown.inner_text("#panel")


def test_times_far_apart(opened: Opened) -> None:
    ends = {"a": -9 * 10**18, "b": -9 * 10**18 + 10**9, "c": 9 * 10**18, "d": 0}
    rows = [{"id": id, "member": id, "send_time": time} for id, time in ends.items()]
    shown = opened(trace_of(rows))
    assert "2 times more than 146 years after the earliest" in shown.inner_text("#panel")
    years = [{"id": f"e{k}", "member": "p", "send_time": k * 4 * 10**18} for k in range(2)]
    shown = opened(trace_of(years))
    for _ in range(30):
        shown.evaluate("antecede.zoom(4, 700)")
    shown.evaluate("antecede.fit()")
    shown.wait_for_timeout(60)
    assert "2 events in view" in shown.inner_text("#status")


def test_events_without_a_time_stand_beside_their_cause(opened: Opened) -> None:
    rows = [
        make_row("send", "a", "p", 5),
        make_row("receive", "a", "q", 9),
        make_row("send", "b", "q", 0),
    ]
    del rows[2]["send_time"]
    shown = opened(trace_of(rows))
    values = shown.evaluate("Array.from(antecede.model.axis.values)")
    assert values[2] == values[1]


@pytest.mark.slow
def test_many_events_at_one_instant(opened: Opened) -> None:
    rows = [{"id": f"e{k}", "member": "p", "send_time": 5, "kind": "event"} for k in range(100_000)]
    shown = opened(trace_of(rows))
    assert "100,000 events in view" in shown.inner_text("#status")
    shown.mouse.click(*event(shown, 0))
    assert "2,000 events at this place" in shown.inner_text("#panel")


@pytest.mark.slow
def test_a_hundred_thousand_members(opened: Opened) -> None:
    rows = [{"id": f"e{k}", "member": f"host {k}", "send_time": k} for k in range(100_000)]
    shown = opened(trace_of(rows))
    assert shown.evaluate("antecede.model.timelines.list.length") == 100_000
    shown.click("#tab-members")
    assert "99,500 more" in shown.inner_text("#panel")
    shown.fill("#search", '"host 77777"')
    shown.keyboard.press("Enter")
    assert "host 77777" in shown.inner_text("#panel")
    assert re.search(r"1 match\b", shown.inner_text("#status"))


def test_lines_end_near_the_picture_and_stay_where_they_are(opened: Opened) -> None:
    """An inversion of 3 s and a cause at the same member, in a window of 10 ms."""
    rows = [
        {"id": "late", "member": "p", "send_time": T0 + 3000 * MS},
        {"id": "early", "member": "q", "send_time": T0, "causes": ["late"]},
        {"id": "first", "member": "q", "send_time": T0 - 500 * MS},
        {"id": "between", "member": "q", "send_time": T0 + 1000 * MS},
        {"id": "last", "member": "q", "send_time": T0 + 2500 * MS, "causes": ["first"]},
    ]
    shown = opened(trace_of(rows))
    number = r"(-?[\d.]+)"
    line = re.compile(rf"M{number} {number}L{number} {number}")
    bow = re.compile(rf"M{number} {number}Q{number} {number} {number} {number}")

    def value_of(x: float) -> float:
        left, width, x0, x1 = shown.evaluate(
            "(({ left, width, x0, x1 }) => [left, width, x0, x1])(antecede.view)"
        )
        return float(x0 + (x - left) / (width - left) * (x1 - x0))

    def points() -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
        """Return the points of the inversion and of the bow, along the axis and in pixels."""
        path = " ".join(
            re.findall(r'<path d="([^"]+)" fill="none"', shown.evaluate("antecede.svg()"))
        )
        found = []
        for shape in (line, bow):
            (drawn,) = [one for one in map(numbers, shape.findall(path)) if slopes(one)]
            low, high = shown.evaluate("[antecede.view.left - 61, antecede.view.width + 61]")
            found.append((drawn, all(low <= x <= high for x in drawn[::2])))
        assert all(inside for _, inside in found)
        a, b = (
            [(value_of(x), y) for x, y in zip(drawn[::2], drawn[1::2], strict=True)]
            for drawn, _ in found
        )
        return a, b

    def numbers(texts: tuple[str, ...]) -> list[float]:
        return [float(one) for one in texts]

    def slopes(drawn: list[float]) -> bool:
        return drawn[0] != drawn[-2] and len({*drawn[1::2]}) > 1

    straight, arc = points()
    start = 500 * MS  # the first event is 500 ms before T0
    shown.evaluate("([a, b]) => antecede.setRange(a, b)", [start + 1500 * MS, start + 1510 * MS])
    cut, part = points()
    for x, y in cut:
        t = (x - straight[0][0]) / (straight[1][0] - straight[0][0])
        assert abs(straight[0][1] * (1 - t) + straight[1][1] * t - y) < 0.5
    for x, y in (part[0], part[2]):
        t = (x - arc[0][0]) / (arc[2][0] - arc[0][0])
        want = arc[0][1] * (1 - t) ** 2 + 2 * arc[1][1] * t * (1 - t) + arc[2][1] * t**2
        assert abs(want - y) < 0.5
    assert part[1][1] > part[0][1] - 1  # the control point lies on the side of the bow


def test_a_broken_promise_is_crossed_out_and_named_in_red(opened: Opened, tmp_path: Path) -> None:
    from antecede.cli.files.pages import write_page_of
    from antecede.lab.check.scenario.parse import parse_scenario
    from antecede.lab.check.scenario.run import run_scenario
    from antecede.lab.diagram.scenario_diagram import from_run

    text = "protocol unordered\nmembers A B\nsend A a1\nsend A a2\narrive B a2\n"
    file = tmp_path / "check.html"
    run = run_scenario(parse_scenario(text), relation=Relation.BY_DELIVERY)
    write_page_of(from_run(run), "a2 before a1", file)
    shown = opened(file.as_uri())
    assert shown.evaluate("antecede.model.meta.broken") == [2]
    svg = shown.evaluate("antecede.svg()")
    named = re.findall(r'<text[^>]*font-weight="bold"[^>]*fill="#c8102e"[^>]*>([^<]*)</text>', svg)
    assert named == ["a2 a broken promise: before a1"]
    assert shown.evaluate("antecede.model.meta.in_transit") == [{"row": 0, "member": "B"}]
    assert ">a1 in transit to B<" in svg
    shown.click("details.legend summary")
    assert "violation of a promise of the protocol" in shown.inner_text("details.legend")
    shown.keyboard.press("t")
    assert "violation of" not in opened(make_held_trace()).inner_text("#panel")
