"""Bench in a real browser: drags, input, clicks, and the runs."""

from __future__ import annotations

import re
from pathlib import Path
from time import monotonic
from typing import Any
from xml.etree import ElementTree

import pytest

from antecede.lab.play.exercise import compute_answer, list_exercises
from tests.lab.play.conftest import OVERTAKING, Benches
from tests.tables.view.test_in_browser import EVIL

SVG = "{http://www.w3.org/2000/svg}"
FOUR = ("unordered", "fifo", "bss", "ses")
OWN = """\
from antecede.core.protocols.basic.unordered import Unordered


class Mine(Unordered):
    pass
"""


OVERLAPS = """
() => playground.views.flatMap(({ svg, layout }) => {
  if (!layout) return [];
  const words = [...svg.querySelectorAll(".label, .why, .stub .label")];
  const boxes = words.map((one) => [one.textContent, one.getBBox()]);
  const along = (p, q) => p.x + 1 < q.x + q.width && q.x + 1 < p.x + p.width;
  const across = (p, q) => p.y + 4 < q.y + q.height && q.y + 4 < p.y + p.height;
  const found = [];
  boxes.forEach(([a, p], k) => boxes.slice(k + 1).forEach(([b, q]) => {
    if (along(p, q) && across(p, q)) found.push(`${a} on ${b}`);
  }));
  for (const [a, p] of boxes) {
    if (p.x < -1 || p.x + p.width > layout.width + 1) found.push(`${a} is cut off at a side`);
    if (p.y < -1 || p.y + p.height > layout.height + 3) found.push(`${a} is cut off`);
  }
  if (layout.labels.length < layout.marks.length) found.push("a mark without its name");
  return found;
})
"""
"""Overlapping and cut labels of the diagrams; boxes are higher than their letters."""

SMALLEST = """
() => Math.min(...[...document.querySelectorAll("body *")]
  .filter((one) => [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim()))
  .filter((one) => one.checkVisibility() && !one.closest("title, option"))
  .map((one) => parseFloat(getComputedStyle(one).fontSize)))
"""
"""Smallest font size of visible text."""
CUT = """
() => [...document.querySelectorAll(".scroller, .beside")]
  .filter((one) => one.scrollWidth > one.clientWidth + 1)
  .map((one) => `${one.className} ${one.scrollWidth} > ${one.clientWidth}`)
"""
"""Diagrams and tables that do not fit their width."""
OUTSIDE = """
() => [...document.querySelectorAll(".beside")].flatMap((beside) => {
  const all = [...beside.querySelectorAll(".member-row > *")];
  const rows = all.filter((one) => one.checkVisibility()).map((one) => one.getBoundingClientRect());
  const { top, bottom } = beside.getBoundingClientRect();
  const found = rows.filter((row) => row.top < top - 1 || row.bottom > bottom + 1);
  const under = (a) => rows.some((b) => a.left === b.left && a.top < b.top && a.bottom > b.top + 1);
  const overlaps = rows.filter(under);
  return [...found, ...overlaps];
})
"""
"""Cells of state tables that are cut or overlap."""
PLACES = """
() => Array.from({ length: playground.comparison.columns.length + 1 }, (_, step) => {
  playground.goTo(step);
  const all = (names) => [...document.querySelectorAll(names)];
  const boxes = all(".run, svg.diagram, .member-row").map((one) => one.getBoundingClientRect());
  const left = all(".member-row > *").map((one) => one.offsetLeft);
  return JSON.stringify([boxes.map((box) => [box.y, box.height]), left]);
})
"""
"""Positions of all diagrams and tables after each step."""
CROSSED = """
() => {
  let [crossed, texts] = [0, 0];
  for (const { layout, svg } of playground.views.filter((view) => view.layout)) {
    const boxes = [...layout.labels, ...layout.bars.map((bar) => bar.text).filter(Boolean)];
    const paths = [...svg.querySelectorAll(".shaft")];
    const points = paths.flatMap((path) => Array.from({ length: 101 }, (_, k) =>
      path.getPointAtLength((path.getTotalLength() * k) / 100)));
    texts += boxes.length;
    crossed += boxes.filter(({ box: [left, top, right, bottom] }) => points.some(({ x, y }) =>
      x > left + 2 && x < right - 2 && y > top + 2 && y < bottom - 2)).length;
  }
  return [crossed, texts];
}
"""
"""Numbers of texts that cover an arrow, and of all texts."""


def texts(shown: Any) -> list[str]:
    """Return the actions of the playground."""
    found: list[str] = shown.evaluate("playground.comparison.commands.map((one) => one.text)")
    return found


def kinds(shown: Any, run: int, member: str) -> list[str]:
    """Return the marks on a member's timeline in one run: "hold b", ..."""
    found: list[str] = shown.evaluate(
        """([run, member]) => playground.views[run].layout.marks
             .filter((mark) => playground.views[run].run.timelines[mark.timeline].name === member)
             .map((mark) => `${mark.wrong ? "wrong" : mark.kind} ${mark.label}`)""",
        [run, member],
    )
    return found


def on_screen(shown: Any, found: str, run: int, *given: Any) -> tuple[float, float]:
    """Return the screen position of a point in a run's diagram; `found`: JavaScript expression."""
    x, y = shown.evaluate(
        f"""([run, member, what]) => {{
          const {{ svg, layout, run: of }} = playground.views[run];
          const box = svg.getBoundingClientRect();
          const timeline = of.timelines.findIndex((one) => one.name === member);
          const found = {found};
          return [box.left + found.x, box.top + found.y];
        }}""",
        [run, *given],
    )
    return x, y


def mark(shown: Any, run: int, label: str, member: str) -> tuple[float, float]:
    """Return the position of the first mark of a message at a member."""
    found = "layout.marks.find((one) => one.label === what && one.timeline === timeline)"
    return on_screen(shown, found, run, member, label)


def place(shown: Any, run: int, time: float, member: str) -> tuple[float, float]:
    """Return the position of a time on a member's timeline."""
    return on_screen(
        shown, "{ x: layout.x(what), y: layout.timelineY[timeline] }", run, member, time
    )


def stub(shown: Any, label: str, member: str) -> tuple[float, float]:
    """Return the position of a copy in flight, in the first run."""
    found = "layout.stubs.find((one) => one?.arrow.label === what && one.arrow.target === timeline)"
    return on_screen(shown, found, 0, member, label)


def drag(shown: Any, start: tuple[float, float], end: tuple[float, float]) -> None:
    shown.mouse.move(*start)
    shown.mouse.down()
    shown.mouse.move((start[0] + end[0]) / 2, (start[1] + end[1]) / 2, steps=3)
    shown.mouse.move(*end, steps=3)
    shown.mouse.up()


def wait_until(shown: Any, what: str) -> None:
    """Wait for a condition; the page's policy forbids the browser's own waiting (eval)."""
    end = monotonic() + 20
    while not shown.evaluate(f"Boolean({what})"):
        assert monotonic() < end, what
        shown.wait_for_timeout(30)


def wait_for_message(shown: Any, words: str) -> None:
    wait_until(shown, f"document.getElementById('message').textContent.includes({words!r})")


def test_one_scene_under_three_protocols_at_once(benches: Benches) -> None:
    shown = benches(relation="causal")
    heads = [re.sub(r"\s+", " ", head) for head in shown.locator(".run-head").all_inner_texts()]
    assert len(heads) == 3
    assert "P3 delivers b BEFORE a: the causal order is violated" in heads[0]
    assert "violated" in heads[1]
    assert "causal order" in heads[2]
    assert "violated" not in heads[2]
    assert kinds(shown, 0, "P3") == ["wrong b", "deliver a"]
    assert kinds(shown, 2, "P3") == ["hold b", "deliver a", "deliver b"]
    assert "b before a" in shown.locator(".run >> nth=0 >> .label.bad").text_content()
    assert shown.locator(".run >> nth=2 >> .why").text_content() == "b waits for a"
    assert "Drag an arrival" in shown.inner_text("#message")


def test_a_fresh_bench_speaks_for_itself(benches: Benches) -> None:
    shown = benches(None, ())
    assert shown.inner_text("h1") == "A message overtakes its cause"
    verdicts = shown.locator(".verdict").all_inner_texts()
    assert [verdict[0] for verdict in verdicts] == ["✗", "✗", "✓"]
    assert shown.input_value("#relation") == "causal"
    assert "Drag an arrival" in shown.inner_text("#message")
    shown.click("#fresh")
    shown.keyboard.press("Enter")
    wait_for_message(shown, "No message has been sent yet")
    assert shown.inner_text("#where") == "step 0 of 0"


@pytest.mark.parametrize("large", [False, True])
def test_four_protocols_fit_the_page(benches: Benches, large: bool) -> None:
    shown = benches(protocols=FOUR, relation="causal", width=1440, height=900)
    if large:
        shown.keyboard.press("p")
        assert shown.evaluate(SMALLEST) >= 24
    bar = shown.locator("#bar").bounding_box()
    for k in range(4):
        row = shown.locator(f".run >> nth={k}").bounding_box()
        assert row["y"] + row["height"] <= bar["y"] + 1
    assert shown.evaluate(CUT) == []


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (390, 844)])
@pytest.mark.parametrize("large", [False, True])
def test_stepping_moves_nothing(benches: Benches, width: int, height: int, large: bool) -> None:
    shown = benches(protocols=FOUR, relation="causal", width=width, height=height)
    if large:
        shown.keyboard.press("p")
    names = ("", "matrix-homework-1", "hierarchy-example", "reply-six-steps", "channels-chat")
    for name in names:
        if name:
            shown.evaluate("name => playground.exercises.begin(name)", name)
            wait_until(shown, f"playground.exercises.open?.name === {name!r}")
        places = shown.evaluate(PLACES)
        assert all(one == places[0] for one in places), name


def test_no_state_is_cut(benches: Benches) -> None:
    shown = benches(width=1440, height=900)
    for large in (False, True):
        for one in list_exercises():
            asked = {"text": one.text, "protocols": list(one.protocols), "relation": None}
            assert shown.evaluate("moment => playground.show(moment)", asked) is None
            if not large:
                assert shown.evaluate(CUT) == [], one.name
            assert shown.evaluate(OUTSIDE) == [], one.name
        shown.keyboard.press("p")


def test_a_matrix_is_a_grid(benches: Benches) -> None:
    shown = benches(protocols=("ses",))
    row = shown.locator(".member-row:not(.head) >> nth=2")
    state = shown.evaluate("playground.comparison.runs[0].steps.at(-1).states.P3.V")
    assert state == "((1, 1, 0), (1, 0, 0), ?)"
    lines = row.locator(".keeps >> nth=1 >> .grid-line")
    told = [line.locator("span").all_inner_texts() for line in lines.all()]
    assert told == [["P1", "1", "1", "0"], ["P2", "1", "0", "0"], ["P3", "?", "?", "?"]]
    shown.keyboard.press("Home")
    assert set(row.locator(".keeps >> nth=1 >> .value").all_inner_texts()) == {"?"}


@pytest.mark.parametrize("dark", [False, True])
def test_a_key_exports_the_step(benches: Benches, tmp_path: Path, dark: bool) -> None:
    shown = benches(protocols=FOUR, relation="causal")
    if dark:
        shown.keyboard.press("t")
    for _ in range(2):
        shown.keyboard.press("ArrowLeft")
    with shown.expect_download() as caught:
        shown.keyboard.press("i")
    assert caught.value.suggested_filename == "a-message-overtakes-its-cause-step-4.svg"
    caught.value.save_as(tmp_path / "step.svg")
    svg = ElementTree.parse(tmp_path / "step.svg").getroot()
    words = ["".join(one.itertext()) for one in svg.iter(f"{SVG}text")]
    assert {*FOUR, "P1", "P2", "P3", "b before a"} <= set(words)
    assert words.count("waits for a") + words.count("b waits for a") == 2
    assert any("causal order so far" in one for one in words)
    assert not list(svg.iter(f"{SVG}foreignObject"))
    styles = {one.get("fill") for one in svg.iter(f"{SVG}text")}
    assert shown.evaluate("getComputedStyle(document.body).color") in styles


def test_few_texts_cover_an_arrow(benches: Benches) -> None:
    shown = benches(width=1440, height=900)
    for text in (OVERTAKING, *(one.text for one in list_exercises())):
        protocols = list(FOUR) if text == OVERTAKING else []
        asked = {"text": text, "protocols": protocols, "relation": None}
        assert shown.evaluate("moment => playground.show(moment)", asked) is None
        crossed, _ = shown.evaluate(CROSSED)
        assert crossed <= (0 if text == OVERTAKING else 1), text


def test_a_dragged_arrival_is_played_anew_by_every_protocol(benches: Benches) -> None:
    shown = benches(relation="causal")
    drag(shown, mark(shown, 2, "b", "P3"), place(shown, 2, 6.6, "P3"))
    wait_until(shown, "playground.comparison.commands[3].text === 'arrive P3 a'")
    assert texts(shown)[3:] == ["arrive P3 a", "arrive P3 b", "arrive P1 b"]
    assert kinds(shown, 0, "P3") == ["deliver a", "deliver b"]
    assert kinds(shown, 2, "P3") == ["deliver a", "deliver b"]
    assert "violated" not in shown.inner_text("#runs")
    drag(shown, mark(shown, 0, "a", "P3"), place(shown, 0, 6.6, "P3"))
    wait_until(shown, "playground.comparison.runs[0].violations.length === 1")
    assert kinds(shown, 2, "P3") == ["hold b", "deliver a", "deliver b"]


def test_a_ghost_says_where_it_would_stand_and_escape_of_the_drag_changes_nothing(
    benches: Benches,
) -> None:
    shown = benches()
    x, y = mark(shown, 0, "b", "P3")
    shown.mouse.move(x, y)
    shown.mouse.down()
    shown.mouse.move(*place(shown, 0, 6.6, "P3"), steps=5)
    assert shown.locator(".ghost-words").text_content() == "b: before step 6"
    assert shown.locator(".seam").count() == 1
    shown.mouse.move(x, y, steps=5)
    shown.mouse.up()
    assert shown.locator(".ghost-words").count() == 0
    assert texts(shown)[3] == "arrive P3 b"


def test_a_send_takes_its_arrivals_along(benches: Benches) -> None:
    shown = benches("protocol fifo\nmembers A B\n\nsend A m\narrive B m\nsend A k\n", ("fifo",))
    drag(shown, mark(shown, 0, "m", "A"), place(shown, 0, 3.6, "A"))
    wait_until(shown, "playground.history.canUndo")
    assert texts(shown) == ["send A k", "send A m", "arrive B m"]


def test_an_arrival_before_its_sending_is_refused_in_words(benches: Benches) -> None:
    shown = benches()
    drag(shown, mark(shown, 0, "b", "P3"), place(shown, 0, 0.6, "P3"))
    wait_until(shown, "document.getElementById('message').className === 'rejected'")
    assert "b" in shown.inner_text("#message")
    assert texts(shown)[3] == "arrive P3 b"
    benches.drop_rejections()


def test_what_an_arrival_sets_free_is_not_dragged_by_itself(benches: Benches) -> None:
    shown = benches()
    x, y = place(shown, 2, 6, "P3")  # the delivery of b
    drag(shown, (x, y), (x + 120, y))
    wait_for_message(shown, "the protocol decides when")
    assert not shown.evaluate("playground.history.canUndo")


def test_undo_and_redo(benches: Benches) -> None:
    shown = benches()
    first = texts(shown)
    drag(shown, mark(shown, 0, "b", "P3"), place(shown, 0, 6.6, "P3"))
    wait_until(shown, "playground.history.canUndo")
    second = texts(shown)
    assert second != first
    shown.keyboard.press("Control+z")
    wait_for_message(shown, "Undone")
    assert texts(shown) == first
    shown.click("#redo")
    wait_for_message(shown, "Redone.")
    assert texts(shown) == second
    assert shown.is_disabled("#redo")


def test_changes_in_quick_succession_are_all_made_or_refused_in_words(benches: Benches) -> None:
    shown = benches()
    shown.evaluate("playground.chooseCommand(3)")
    for _ in range(2):  # the second is pressed before the first is answered
        shown.keyboard.press("Alt+ArrowRight")
    wait_until(shown, "playground.comparison.commands.at(-1).text === 'arrive P3 b'")
    assert texts(shown)[3:] == ["arrive P3 a", "arrive P1 b", "arrive P3 b"]
    shown.evaluate(
        "void Promise.all([playground.add(6, 'send P1 x'), playground.add(6, 'send P2 y')])"
    )
    wait_for_message(shown, "The scenario has just changed")
    assert texts(shown)[6:] == ["send P1 x"]
    shown.evaluate("void Promise.all([playground.add(7, 'send P2 y'), playground.travel(1)])")
    wait_for_message(shown, "Undone.")
    assert texts(shown)[6:] == ["send P1 x"]
    shown.keyboard.press("r")
    wait_for_message(shown, "Redone.")
    assert texts(shown)[6:] == ["send P1 x", "send P2 y"]
    shown.evaluate("void Promise.all([playground.removeProtocol(0), playground.removeProtocol(1)])")
    wait_until(shown, "playground.comparison.runs.length === 1")
    assert shown.evaluate("playground.protocolsShown()") == ["bss"]


def test_an_undo_that_is_not_answered_changes_nothing(benches: Benches) -> None:
    shown = benches()
    shown.evaluate("void playground.add(6, 'send P1 x')")
    wait_until(shown, "playground.comparison.commands.length === 7")
    shown.route("**/run", lambda route: route.abort())
    shown.keyboard.press("u")
    wait_for_message(shown, "The server does not answer")
    assert len(texts(shown)) == 7
    shown.unroute("**/run")
    shown.keyboard.press("u")
    wait_for_message(shown, "Undone.")
    assert len(texts(shown)) == 6
    benches.drop_unanswered()


def test_a_class_that_ends_its_process_is_said_beside_the_others_and_mended(
    benches: Benches, tmp_path: Path
) -> None:
    file = tmp_path / "own.py"
    leaving = OWN.replace(
        "    pass", "    def receive(self, message, *, now=None):\n        LEAVE(3)"
    )
    file.write_text("from os import _exit as LEAVE\n" + leaving, encoding="utf-8")
    shown = benches(protocols=("fifo", f"{file}:Mine"))
    wait_until(shown, "document.body.textContent.includes('exit code 3')")
    assert [
        one != [] for one in shown.evaluate("playground.views.map((one) => one.run.marks ?? [])")
    ] == [True, False]
    file.write_text(OWN, encoding="utf-8")
    wait_for_message(shown, "The file has changed")
    wait_until(shown, "playground.comparison.runs.every((one) => one.error === null)")


def test_the_keyboard_alone_moves_an_arrival_and_takes_it_out(benches: Benches) -> None:
    shown = benches(relation="causal")
    shown.keyboard.press("ArrowLeft")
    shown.keyboard.press("ArrowLeft")  # after step 4: b arrives at P3
    assert shown.inner_text("#where") == "step 4 of 6"
    shown.keyboard.press("Alt+ArrowRight")
    wait_until(shown, "playground.comparison.commands[4].text === 'arrive P3 b'")
    assert shown.evaluate("playground.comparison.runs[0].violations.length") == 0
    shown.keyboard.press("Alt+ArrowLeft")
    wait_until(shown, "playground.comparison.commands[3].text === 'arrive P3 b'")
    assert shown.evaluate("playground.chosen.command") == 3
    shown.keyboard.press("Delete")
    wait_until(shown, "playground.comparison.commands.length === 5")
    assert "arrive P3 b" not in texts(shown)


def test_the_list_of_steps_does_what_drags_do(benches: Benches) -> None:
    shown = benches()
    shown.keyboard.press("l")
    shown.click("[aria-label='Later: b arrives at P3']")
    wait_until(shown, "playground.comparison.commands[4].text === 'arrive P3 b'")
    shown.click("[aria-label='Remove: b arrives at P1']")
    wait_until(shown, "playground.comparison.commands.length === 5")
    assert "b: P2 → P1" in shown.inner_text("#panel")
    shown.click("[aria-label='b to P1 is lost']")
    wait_until(shown, "playground.comparison.commands.length === 6")
    assert texts(shown)[-1] == "lose P1 b"


def test_sending_by_the_form_and_letting_all_arrive(benches: Benches) -> None:
    shown = benches()
    shown.click("#send")
    assert shown.input_value("dialog input[name=label]") == "c"
    shown.select_option("dialog select[name=from]", "P3")
    shown.check("dialog input[name=after][value=b]")
    shown.keyboard.press("Enter")
    wait_until(
        shown, "playground.comparison.commands.length === 7 && !document.querySelector('dialog')"
    )
    assert texts(shown)[-1] == "send P3 c after b"
    shown.click("#arrive-all")
    wait_until(shown, "playground.comparison.commands.length === 9")
    assert sorted(texts(shown)[-2:]) == ["arrive P1 c", "arrive P2 c"]


def test_a_form_that_is_refused_stays_and_says_why(benches: Benches) -> None:
    shown = benches()
    shown.keyboard.press("s")
    shown.fill("dialog input[name=label]", "a")
    shown.keyboard.press("Enter")
    assert "A message named a exists already" in shown.inner_text("dialog")
    shown.fill("dialog input[name=label]", "two words")
    shown.keyboard.press("Enter")
    assert "one word" in shown.inner_text("dialog [role=alert]")
    shown.keyboard.press("Escape")
    wait_until(shown, "!document.querySelector('dialog')")
    assert len(texts(shown)) == 6


def test_a_drag_from_lane_to_lane_sends_and_arrives(benches: Benches) -> None:
    shown = benches()
    drag(shown, place(shown, 0, 4.6, "P1"), place(shown, 0, 6.6, "P3"))
    assert "It arrives at P3" in shown.inner_text("dialog")
    shown.keyboard.press("Enter")
    wait_until(shown, "playground.comparison.commands.length === 8")
    assert texts(shown)[4] == "send P1 c"
    assert texts(shown)[6] == "arrive P3 c"
    shown.keyboard.press("u")  # one moment, not two
    wait_until(shown, "playground.comparison.commands.length === 6")


def test_a_copy_on_its_way_is_dragged_to_where_it_arrives(benches: Benches) -> None:
    shown = benches("protocol fifo\nmembers A B\n\nsend A m\nsend A k\n", ("unordered", "fifo"))
    drag(shown, stub(shown, "k", "B"), place(shown, 0, 2.4, "B"))
    wait_until(shown, "playground.comparison.commands.length === 3")
    assert texts(shown)[-1] == "arrive B k"
    assert kinds(shown, 1, "B") == ["hold k"]
    drag(shown, stub(shown, "m", "B"), place(shown, 0, 3.6, "B"))
    wait_until(shown, "playground.comparison.commands.length === 4")
    assert kinds(shown, 1, "B") == ["hold k", "deliver m", "deliver k"]


def test_members_are_added_renamed_and_put_in_another_order(benches: Benches) -> None:
    shown = benches()
    shown.click("#add-member")
    shown.fill("dialog input[name=name]", "Dora")
    shown.keyboard.press("Enter")
    wait_until(shown, "playground.comparison.members.length === 4")
    shown.click(".names >> nth=0 >> text=P1")
    shown.fill("dialog input[name=name]", "Ann")
    shown.keyboard.press("Enter")
    wait_until(shown, "playground.comparison.members[0].name === 'Ann'")
    assert "send Ann a" in texts(shown)
    start = shown.locator(".names >> nth=0 >> text=Ann").bounding_box()
    x, y = start["x"] + 10, start["y"] + 8
    drag(shown, (x, y), (x, place(shown, 0, 1, "P3")[1]))
    wait_until(shown, "playground.comparison.members[0].name === 'P2'")
    order = shown.evaluate("playground.comparison.members.map((one) => one.name)")
    assert order == ["P2", "P3", "Ann", "Dora"]


def test_steps_show_states_and_fade_what_is_to_come(benches: Benches) -> None:
    shown = benches()
    shown.keyboard.press("Home")
    assert shown.inner_text("#where") == "step 0 of 6"
    assert shown.locator(".run >> nth=0 >> .mark.later").count() == 6
    for _ in range(4):
        shown.keyboard.press("ArrowRight")
    assert shown.inner_text("#where") == "step 4 of 6"
    row = shown.locator(".run >> nth=2 >> .member-row:not(.head) >> nth=2")
    assert row.locator(".holds").inner_text() == "b for a"
    assert row.locator(".value").all_inner_texts() == ["0", "0", "0"]
    assert "P3 holds it: it waits for a" in shown.inner_text(".run >> nth=2 >> .caption")
    shown.click("#forth")
    assert row.locator(".value").all_inner_texts() == ["1", "1", "0"]
    assert row.locator(".value.changed").all_inner_texts() == ["1", "1"]
    assert row.locator(".delivered").inner_text() == "a, b"
    shown.evaluate("document.getElementById('step').focus()")
    shown.keyboard.press("ArrowLeft")
    assert shown.inner_text("#where") == "step 4 of 6"


def test_a_click_on_a_mark_says_what_each_protocol_did(benches: Benches) -> None:
    shown = benches(relation="causal")
    shown.mouse.click(*mark(shown, 2, "b", "P3"))
    told = shown.inner_text("#panel")
    assert "Step 4: b arrives at P3" in told
    assert "P3 delivers b BEFORE a" in told
    assert "it waits for a from P1" in told
    shown.click("#panel >> text=Lose it instead")
    wait_until(shown, "playground.comparison.commands[3].text === 'lose P3 b'")


def test_every_panel_is_made_of_words(benches: Benches) -> None:
    shown = benches()
    shown.mouse.click(*mark(shown, 2, "b", "P3"))
    for key in ("l", "d", "x", "f", "e", "?", "Escape", "d"):
        shown.keyboard.press(key)
        assert "[object" not in shown.inner_text("#panel"), key
        assert "undefined" not in shown.inner_text("#panel"), key
    shown.keyboard.press("?")
    assert "for projectors" in shown.inner_text("#panel dl.keys")


def test_an_execution_that_breaks_a_protocol_is_found_and_opened(benches: Benches) -> None:
    shown = benches()
    shown.click("#search")
    shown.select_option("form.search select[name=protocol]", "bss")
    shown.select_option("form.search select[name=variant]", "as-published")
    shown.click("form.search button.main")
    shown.wait_for_selector("#panel .verdict.bad", timeout=60_000)
    shown.click("text=Open in the playground")
    wait_until(shown, "playground.comparison.runs[0].protocol === 'bss as_published=true'")
    assert shown.evaluate("playground.comparison.runs[0].violations.length") >= 1
    assert shown.evaluate("playground.comparison.runs[1].protocol") == "bss"
    assert shown.evaluate("playground.comparison.runs[1].violations.length") == 0
    shown.keyboard.press("u")
    wait_until(shown, "playground.comparison.runs.length === 3")
    assert texts(shown) == OVERTAKING.splitlines()[4:]


def test_a_search_can_be_stopped_and_one_that_finds_nothing_says_so(benches: Benches) -> None:
    shown = benches()
    shown.click("#search")
    shown.select_option("form.search select[name=protocol]", "bss")
    shown.fill("form.search input[name=members]", "5")
    shown.fill("form.search input[name=messages]", "6")
    shown.click("form.search button.main")
    shown.wait_for_selector("#panel progress")
    shown.click("#panel >> text=Stop")
    wait_until(shown, "document.getElementById('panel').textContent.includes('Stopped')")
    shown.fill("form.search input[name=members]", "3")
    shown.fill("form.search input[name=messages]", "2")
    shown.click("form.search button.main")
    shown.wait_for_selector("#panel .verdict.good", timeout=60_000)
    assert "no counterexample" in shown.inner_text("#panel .verdict.good")


def test_a_cut_says_whether_it_is_consistent_and_why(benches: Benches) -> None:
    shown = benches()
    shown.keyboard.press("c")
    shown.wait_for_selector("#panel .verdict.good")
    handle = shown.locator(".cut-handle[data-member=P1]").bounding_box()
    x, y = handle["x"] + handle["width"] / 2, handle["y"] + handle["height"] / 2
    drag(shown, (x, y), place(shown, 0, 0.6, "P1"))
    shown.wait_for_selector("#panel .verdict.bad")
    told = shown.inner_text("#panel")
    assert "✗ Not consistent" in told
    assert "a is received inside by P2, and sent outside by P1" in told
    assert shown.locator(".flight.crossing").count() == 1
    shown.click("#panel >> text=Greatest consistent cut below")
    shown.wait_for_selector("#panel .verdict.good")
    shown.focus(".cut-handle[data-member=P1]")
    shown.keyboard.press("ArrowRight")
    wait_until(shown, "playground.cut.counts.P1 === 1 && playground.cut.answer?.consistent")
    assert "From P1 to P2: a" in shown.inner_text("#panel")
    assert shown.evaluate("document.activeElement.dataset.member") == "P1"


def test_every_exercise_opens_and_hides_its_answers(benches: Benches) -> None:
    shown = benches()
    for one in list_exercises():
        shown.evaluate("name => playground.exercises.begin(name)", one.name)
        wait_until(
            shown,
            f"playground.exercises.open?.name === {one.name!r} && playground.panel === 'exercises'",
        )
        panel = shown.inner_text("#panel")
        assert one.title in panel
        assert shown.locator("#panel >> text=Show the answer").count() == len(one.questions)
        assert shown.evaluate("playground.comparison.runs.map((run) => run.protocol)") == list(
            one.protocols
        )
        assert (
            shown.evaluate("playground.comparison.runs.filter((run) => run.error).length") == 0
        ), one.name


def test_an_exercise_begins_before_its_answers_can_be_seen(benches: Benches) -> None:
    shown = benches()
    shown.evaluate("playground.exercises.begin('bss-overtaking')")
    wait_until(shown, "playground.exercises.open?.name === 'bss-overtaking'")
    assert shown.inner_text("#where") == "step 0 of 6"
    seen = ":is(.mark.hold, .mark.wrong, .mark.deliver, .bar, .why, .label.bad)"
    told = shown.locator(f".diagram {seen}")
    assert told.count() > 0
    assert not any(one.is_visible() for one in told.all())
    coming = shown.locator(".run >> nth=0 >> .pending").all()
    assert [one.text_content() for one in coming if one.is_visible()] == ["a", "b", "b", "a"]
    for _ in range(4):
        shown.keyboard.press("ArrowRight")
    assert shown.locator(".run >> nth=0 >> .mark.wrong").is_visible()
    assert shown.locator(".run >> nth=1 >> .mark.hold").is_visible()
    assert not shown.locator(".run >> nth=1 >> .mark.deliver >> nth=2").is_visible()
    shown.keyboard.press("h")
    wait_for_message(shown, "Later steps are dimmed")
    assert shown.locator(".run >> nth=1 >> .mark.deliver >> nth=2").is_visible()
    shown.keyboard.press("End")
    assert shown.locator(".pending.later").count() == 0
    shown.evaluate("playground.exercises.begin('states-consistent')")  # asks nothing of protocols
    wait_until(shown, "playground.exercises.open?.name === 'states-consistent'")
    assert shown.inner_text("#where") == "step 9 of 9"


def test_an_answer_is_computed_when_it_is_asked_for(benches: Benches) -> None:
    one = next(one for one in list_exercises() if one.name == "bss-overtaking")
    shown = benches()
    shown.keyboard.press("e")
    shown.click(f"#panel >> text={one.title}")
    shown.wait_for_selector("#panel >> text=Show the answer >> nth=0")
    told = compute_answer(one.name, 0).answer
    assert told not in shown.inner_text("#panel")
    shown.click("#panel >> text=Show the answer >> nth=0")
    shown.wait_for_selector("#panel .answer")
    assert told in re.sub(r"\s+", " ", shown.inner_text("#panel .answer"))
    shown.click("#panel >> text=All exercises")
    assert "Channels" in shown.inner_text("#panel")


def test_protocols_are_added_taken_away_and_changed(benches: Benches) -> None:
    shown = benches()
    shown.select_option("#add-protocol", "ses")
    wait_until(shown, "playground.comparison.runs.length === 4")
    shown.click("[aria-label^='Remove no order']")
    wait_until(shown, "playground.comparison.runs.length === 3")
    shown.locator("select.variant").first.select_option("bss as_published=true")
    wait_until(shown, "playground.comparison.runs[1].protocol === 'bss as_published=true'")
    shown.select_option("#relation", "fifo")
    wait_until(shown, "playground.comparison.runs[0].checked_relation === 'fifo'")


def test_a_protocol_that_cannot_play_it_says_so_and_the_others_are_shown(benches: Benches) -> None:
    shown = benches()
    shown.select_option("#add-protocol", "hierarchical")
    wait_until(shown, "playground.comparison.runs.length === 4")
    error = shown.inner_text(".run >> nth=3 >> .error")
    assert len(error) > 20
    assert shown.locator("svg.diagram").count() >= 3
    shown.keyboard.press("ArrowLeft")
    shown.keyboard.press("c")
    shown.wait_for_selector("#panel .verdict")


def test_ones_own_protocol_is_played_again_when_its_file_changes(
    benches: Benches, tmp_path: Path
) -> None:
    file = tmp_path / "own.py"
    file.write_text(OWN, encoding="utf-8")
    shown = benches(
        protocols=(f"{file}:Mine", "bss"), path=tmp_path / "playground.scenario", hash=""
    )
    shown.select_option("#relation", "causal")
    wait_until(shown, "playground.comparison.runs[0].violations.length === 1")
    file.write_text(
        OWN.replace("basic.unordered", "vector.bss").replace("Unordered", "Bss"), encoding="utf-8"
    )
    wait_for_message(shown, "The file has changed")
    wait_until(shown, "playground.comparison.runs[0].violations.length === 0")
    assert kinds(shown, 0, "P3") == ["hold b", "deliver a", "deliver b"]


def test_save_and_open_bring_back_the_same(benches: Benches, tmp_path: Path) -> None:
    shown = benches()
    with shown.expect_download() as caught:
        shown.click("#save")
    saved = tmp_path / caught.value.suggested_filename
    caught.value.save_as(saved)
    assert saved.name == "a-message-overtakes-its-cause.scenario"
    text = saved.read_text(encoding="utf-8")
    assert "= P3 holds b: it waits for a" in text
    shown.keyboard.press("Home")
    shown.click("#fresh")
    shown.keyboard.press("Enter")
    wait_until(shown, "playground.comparison.commands.length === 0")
    with shown.expect_file_chooser() as chooser:
        shown.click("#open")
    chooser.value.set_files(saved)
    wait_until(shown, "playground.comparison.commands.length === 6")
    assert texts(shown) == OVERTAKING.splitlines()[4:]


def test_a_file_opens_under_its_own_protocol_where_that_is_not_shown(
    benches: Benches, tmp_path: Path
) -> None:
    shown = benches(relation="causal")
    file = tmp_path / "topics.scenario"
    topics = next(one for one in list_exercises() if one.name == "topics-cycle")
    for text, protocols in (
        (topics.text, ["tv"]),
        ("protocol fifo\nmembers A B\n\nsend A m\n", ["fifo"]),
        ("protocol fifo\nmembers A B\n\nsend A n\n", ["fifo", "bss"]),
    ):
        file.write_text(text, encoding="utf-8")
        with shown.expect_file_chooser() as chooser:
            shown.click("#open")
        chooser.value.set_files(file)
        label = text.rpartition("send ")[2].split()[1] if protocols != ["tv"] else "bc"
        wait_until(shown, f"playground.comparison.commands.some((one) => one.label === {label!r})")
        assert shown.evaluate("playground.comparison.runs.map((run) => run.protocol)") == protocols
        assert shown.evaluate("playground.comparison.runs.some((run) => run.error)") is False
        if protocols == ["fifo"]:
            shown.select_option("#add-protocol", "bss")
            wait_until(shown, "playground.comparison.runs.length === 2")


def test_what_did_not_play_is_not_called_in_order(benches: Benches) -> None:
    topics = next(one for one in list_exercises() if one.name == "topics-cycle")
    shown = benches(topics.text, ("bss", "tv"), hash="")
    assert shown.locator(".verdict").all_inner_texts() == ["not run", "✓ order by topic"]
    shown = benches(
        "protocol bss\nmembers A B\n\nsend A m\nsend A n to B\n", ("bss", "ses"), hash=""
    )
    first, second = shown.locator(".verdict").all_inner_texts()
    assert (first, second) == ("no violation up to step 1, where it stopped", "✓ causal order")
    shown.keyboard.press("ArrowLeft")
    assert shown.locator(".verdict").first.inner_text() == "✓ causal order so far"
    shown.keyboard.press("Home")
    assert not shown.locator(".verdict").first.is_visible(), "nothing has been delivered"


def test_a_reload_keeps_what_is_on_the_bench(benches: Benches) -> None:
    shown = benches()
    drag(shown, mark(shown, 0, "b", "P3"), place(shown, 0, 6.6, "P3"))
    wait_until(shown, "playground.history.canUndo")
    shown.keyboard.press("ArrowLeft")
    moved = texts(shown)
    wait_until(shown, "location.hash.includes('step=5')")
    shown.reload()
    shown.wait_for_selector("#loading", state="detached")
    assert texts(shown) == moved
    assert shown.inner_text("#where") == "step 5 of 6"


def test_a_text_that_is_no_scene_is_refused_with_its_line(benches: Benches) -> None:
    shown = benches()
    shown.keyboard.press("x")
    shown.fill("#text", "protocol bss\nmembers A B\n\nsend A m\nsned B k\n")
    shown.click("#panel >> text=Apply")
    shown.wait_for_selector("#panel [role=alert]")
    assert "Line 5" in shown.inner_text("#panel [role=alert]")
    assert "sned B k" in shown.input_value("#text")
    assert len(texts(shown)) == 6
    shown.fill("#text", "protocol bss\nmembers A B\n\nsend A m\narrive B m\n")
    shown.click("#panel >> text=Apply")
    wait_until(shown, "playground.comparison.commands.length === 2")
    benches.drop_rejections()


def test_an_address_that_holds_nonsense_falls_back(benches: Benches) -> None:
    shown = benches(hash="#text=nonsense&step=99999999&protocol=bss")
    wait_for_message(shown, "cannot be shown")
    assert len(texts(shown)) == 6
    benches.drop_rejections()


def test_markup_in_names_is_text(benches: Benches) -> None:
    names = [re.sub(r"\s", "_", name) for name in EVIL]
    lines = [f"members {' '.join(names)}", "", f"send {names[0]} {names[1]}"]
    lines += [f"arrive {name} {names[1]}" for name in names[1:4]]
    text = f"title {EVIL[0]}\nsource {EVIL[3]}\nprotocol bss\n" + "\n".join(lines) + "\n"
    shown = benches(text, ("unordered", "bss"), relation="causal")
    for key in ("l", "d", "x", "c", "Home", "ArrowRight", "Enter"):
        shown.keyboard.press(key)
    shown.mouse.click(*place(shown, 0, 1, names[0]))
    shown.locator(".name >> nth=0").click()
    shown.wait_for_timeout(100)
    assert shown.evaluate("typeof globalThis.hacked") == "undefined"
    assert shown.locator("#runs script, #runs img, h1 *, dialog script").count() == 0
    assert "<script>" in shown.inner_text("h1")
    assert "\u202e" not in shown.inner_text("body")


def test_the_page_can_make_no_markup_and_run_nothing_else(benches: Benches) -> None:
    shown = benches()
    answer = shown.request.get(benches.url)
    text = answer.text()
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "{{"):
        assert word not in text, word
    assert re.search(r"script-src 'sha256-[^']+'; style-src 'sha256-[^']+';", text)
    assert "default-src 'none'" in text
    blocked = shown.evaluate(
        """async () => {
          const made = document.createElement("script");
          made.textContent = "globalThis.hacked = 9";
          document.body.append(made);
          return [typeof globalThis.hacked, await fetch("http://127.0.0.1:9/").catch(() => "no")];
        }"""
    )
    assert blocked == ["undefined", "no"]
    benches.drop_blocked()


def contrast(shown: Any, selector: str, property: str) -> float:
    """Return the contrast of a color against the page, by WCAG."""
    found: float = shown.evaluate(
        """([selector, property]) => {
          const light = (colour) => {
            const [r, g, b] = colour.match(/[\\d.]+/g).map((part) => {
              const c = Number(part) / 255;
              return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
            });
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
          };
          const one = light(getComputedStyle(document.querySelector(selector))[property]);
          const back = light(getComputedStyle(document.body).backgroundColor);
          return (Math.max(one, back) + 0.05) / (Math.min(one, back) + 0.05);
        }""",
        [selector, property],
    )
    return found


def test_both_themes_can_be_read(benches: Benches) -> None:
    shown = benches(relation="causal")
    for _ in range(2):
        for selector, property in (
            ("body", "color"),
            (".soft", "color"),
            (".verdict.bad", "color"),
            (".verdict.good", "color"),
            (".label", "fill"),
            (".label.bad", "fill"),
            (".why", "fill"),
            (".shaft", "stroke"),
            (".mark.wrong path.sign", "stroke"),
            (".mark.hold .sign", "stroke"),
        ):
            assert contrast(shown, selector, property) >= 4.5, (selector, property)
        shown.keyboard.press("t")
    shown.keyboard.press("t")
    assert shown.evaluate("document.documentElement.dataset.theme") == "dark"
    shown.reload()
    shown.wait_for_selector("#loading", state="detached")
    assert shown.evaluate("document.documentElement.dataset.theme") == "dark"


def test_a_phone_has_it_all(benches: Benches) -> None:
    shown = benches(relation="causal", width=390, height=780)
    assert shown.evaluate("document.documentElement.scrollWidth") <= 390
    assert shown.evaluate(
        "playground.views[0].layout.width <= playground.views[0].scroller.clientWidth"
    )
    shown.mouse.click(*mark(shown, 0, "b", "P3"))
    assert "Step 4" in shown.inner_text("#panel")
    box = shown.locator("#side").bounding_box()
    assert box["width"] == 390
    shown.click("#close-side")
    for selector in ("#send", "#forth", "#back", ".run-head .small"):
        assert shown.locator(selector).first.bounding_box()["height"] >= 36, selector


def test_a_finger_drags_an_arrival(benches: Benches) -> None:
    shown = benches(relation="causal", width=800, height=700)
    line = shown.context.new_cdp_session(shown)
    line.send("Emulation.setTouchEmulationEnabled", {"enabled": True})

    def touch(kind: str, *points: tuple[float, float]) -> None:
        told = [{"x": x, "y": y} for x, y in points]
        line.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": told})

    start, end = mark(shown, 0, "b", "P3"), place(shown, 0, 6.6, "P3")
    touch("touchStart", start)
    for part in (0.25, 0.5, 0.75, 1.0):
        touch("touchMove", (start[0] + part * (end[0] - start[0]), start[1] + 4))
    assert shown.locator(".ghost-words").count() == 1
    touch("touchEnd")
    wait_until(shown, "playground.comparison.commands[4].text === 'arrive P3 b'")
    # The empty part of a picture scrolls the page instead.
    before = shown.evaluate("document.getElementById('middle').scrollTop")
    x, y = place(shown, 0, 0.6, "P2")
    touch("touchStart", (x, y + 22))
    for k in range(1, 9):
        touch("touchMove", (x, y + 22 - 12 * k))
    touch("touchEnd")
    wait_until(shown, f"document.getElementById('middle').scrollTop > {before}")


@pytest.mark.parametrize("width", [1000, 1280, 1920])
def test_no_words_lie_on_each_other(benches: Benches, width: int) -> None:
    shown = benches(relation="causal", width=width, height=800)
    for text in (OVERTAKING, *(one.text for one in list_exercises())):
        protocols = ["unordered", "fifo", "bss"] if text == OVERTAKING else []
        asked = {"text": text, "protocols": protocols, "relation": None}
        assert shown.evaluate("moment => playground.show(moment)", asked) is None
        assert shown.evaluate(OVERLAPS) == [], text
