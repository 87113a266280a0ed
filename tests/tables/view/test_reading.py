"""Readability of the page: full texts, distinguishable events, nothing out of sight."""

from __future__ import annotations

from typing import Any

from tests.helpers.browser import wait_until
from tests.tables.view.conftest import Opened
from tests.tables.view.made import MS, T0, drawn, make_held_trace, make_row, trace_of

SEEN = "[antecede.view.x0, antecede.view.x1]"


def crowd(events: int = 900) -> Any:
    """Return a message each millisecond, and its arrivals."""
    rows = []
    for k in range(events):
        rows.append(make_row("send", f"m{k}", f"p{k % 3}", k, text=f"says {k}"))
        rows.append(make_row("deliver", f"m{k}", f"p{(k + 1) % 3}", k + 2))
    return trace_of(rows)


def test_all_keys_and_all_marks_are_listed(opened: Opened) -> None:
    shown = opened(make_held_trace())
    shown.keyboard.press("w")
    for key in "1234":
        shown.keyboard.press(key)
        assert "[object" not in shown.inner_text("#panel")
    shown.click("#tab-help")
    keys = shown.locator("#panel dl.keys")
    assert "light or dark" in keys.inner_text()
    assert keys.locator("dt").count() == keys.locator("dd").count() == 17
    assert "longest wait" in keys.inner_text()
    shown.click("#tab-findings")
    shown.click("text=Legend")
    assert "held from receipt to delivery" in shown.inner_text("#panel .legend dl")
    assert "[object" not in shown.inner_text("body")


def test_causes_and_effects_are_listed_with_what_they_say(opened: Opened) -> None:
    rows: list[dict[str, Any]] = [
        {"id": "p:1", "member": "p", "kind": "event", "text": "asks", "causes": []},
        {"id": "q:1", "member": "q", "kind": "event", "text": "answers", "causes": ["p:1"]},
        {"id": "r", "member": "q", "kind": "event", "text": "sleeps", "causes": ["q:1"]},
    ]
    shown = opened(trace_of(rows))
    shown.evaluate("antecede.choose(0); antecede.togglePin(0); antecede.choose(2)")
    chain = shown.locator("#panel ul.events >> nth=0").locator("button").all_text_contents()
    assert chain == ["p:1 asks", "q:1 answers", "r at q sleeps"]


def test_an_arrival_says_what_was_sent(opened: Opened) -> None:
    shown = opened(make_held_trace())
    shown.evaluate("antecede.choose(3)")  # b is sent: its cause is the delivery of a
    said = shown.inner_text("#panel ul.events >> nth=0")
    assert "a deliver at bob" in said
    assert "what time is it?" in said


def test_a_page_around_an_event_begins_near_it(opened: Opened) -> None:
    trace = crowd()
    shown = opened(trace, around="m450")
    low, high = shown.evaluate(SEEN)
    at = shown.evaluate("antecede.model.axis.values[900]")
    assert low < at < high
    assert high - low < 250 * MS  # of 900
    assert shown.evaluate("antecede.model.chosen") == 900
    shown.evaluate("antecede.setRange(antecede.model.low, antecede.model.high)")
    shown.click("text=Centre")
    low, high = shown.evaluate(SEEN)
    assert (low + high) / 2 == at
    assert high - low < 250 * MS
    shown.wait_for_timeout(300)
    again = opened(trace, "#" + shown.url.partition("#")[2], around="m2")
    assert again.evaluate("antecede.model.chosen") == 900  # the address counts


def test_the_end_of_a_span_is_in_sight(opened: Opened) -> None:
    span = {"kind": "event", "id": "s", "member": "p", "start_time": T0, "end_time": T0 + 90 * MS}
    late = {"kind": "event", "id": "t", "member": "q", "start_time": T0 + 5 * MS}
    shown = opened(trace_of([span, late]))
    assert shown.evaluate("antecede.view.x1") >= 90 * MS
    shown.evaluate("antecede.setAxis('logical')")
    assert shown.evaluate("antecede.model.high") <= 1


def test_a_few_times_far_off_do_not_make_a_dot_of_the_others(opened: Opened) -> None:
    year = 365 * 86_400_000
    rows = [make_row("send", f"m{k}", f"p{k % 3}", k) for k in range(400)]
    shown = opened(trace_of([*rows, make_row("send", "odd", "p0", year)]))
    low, high = shown.evaluate(SEEN)
    assert 390 * MS < high - low < 500 * MS
    assert "1 event far off in time: “Fit all” includes them" in shown.inner_text("#status")
    shown.click("#all")
    assert shown.evaluate("antecede.view.x1") > year * MS
    shown.wait_for_timeout(300)
    assert "far off" not in shown.inner_text("#status")
    even = opened(trace_of([*rows, make_row("send", "late", "p0", 900)]))
    assert even.evaluate("antecede.view.x1") > 900 * MS  # near enough to be seen with them


def test_only_these_shows_all_of_them_and_gives_back_what_was_seen(opened: Opened) -> None:
    shown = opened(crowd())
    before = shown.evaluate(SEEN)
    shown.fill("#search", "/^says 8[0-9]0$/")
    shown.check("#only")
    low, high = shown.evaluate(SEEN)
    there = shown.evaluate(
        "Array.from(antecede.model.rows, (row) => antecede.model.axis.values[row])"
    )
    assert len(there) == 10
    assert low < min(there) <= max(there) < high
    shown.uncheck("#only")
    assert shown.evaluate(SEEN) == before


def test_an_address_in_an_open_page_is_all_that_counts(opened: Opened) -> None:
    shown = opened(drawn(3))
    wait_until(shown, "antecede.written && location.hash === antecede.written")
    clean = shown.evaluate("antecede.written")
    shown.evaluate("antecede.setAxis('order'); antecede.choose(7); antecede.togglePin(7)")
    shown.evaluate(
        "antecede.arrange((timelines) => { timelines.order = 'name'; timelines.hidden.add(1); })"
    )
    shown.fill("#search", "x1")
    shown.check("#only")
    wait_until(shown, "location.hash.includes('q=x1') && location.hash.includes('only')")
    shown.evaluate("hash => { location.hash = hash; }", clean)
    wait_until(shown, "clean => antecede.written === clean", clean)
    assert shown.evaluate(
        """[antecede.model.axis.name, antecede.model.chosen, antecede.model.pin,
        antecede.model.only,
        antecede.query, antecede.model.timelines.order, antecede.model.timelines.hidden.size]"""
    ) == ["event_time", -1, -1, False, "", "first", 0]
    assert shown.evaluate("location.hash") == clean


def test_an_address_is_whole_from_the_first_moment(opened: Opened) -> None:
    shown = opened(drawn(3), "#event=5&pin=2")
    written = shown.evaluate("antecede.written")  # nothing of it is lost on the way
    assert "event=5" in written
    assert "pin=2" in written


def test_the_last_event_of_a_lane_is_named_before_it(opened: Opened) -> None:
    rows = [
        {"id": f"e{k}", "member": "p", "kind": "event", "text": f"number {k} of a few", "seq": k}
        for k in range(4)
    ]
    shown = opened(trace_of(rows))
    shown.evaluate("antecede.setAxis('file')")
    shown.wait_for_timeout(300)
    drawn_ = shown.evaluate("antecede.svg()")
    assert drawn_.count('text-anchor="end"') == 2  # its halo, and it
    assert drawn_.count("number 3 of a few") == 2


def test_lines_that_fade_do_not_cover_events(opened: Opened) -> None:
    shown = opened(crowd(2000), around="m1000")
    faint = """() => {
      const { ctx } = antecede;
      const seen = [];
      const stroke = ctx.stroke;
      ctx.stroke = function () {
        if (this.strokeStyle === "#b9c1cd" && this.globalAlpha < 1) seen.push(this.globalAlpha);
        return stroke.call(this);
      };
      antecede.setTheme("light");
      antecede.setRange(antecede.model.low, antecede.model.high);
      antecede.moving = false;
      antecede.drawNow();
      return Math.max(...seen);
    }"""
    few = opened(make_held_trace())
    few.evaluate("antecede.choose(5)")
    assert few.evaluate(faint) == 0.45
    shown.evaluate("antecede.model.past.fill(0); antecede.model.future.fill(0)")
    assert 0.05 <= shown.evaluate(faint) < 0.2
