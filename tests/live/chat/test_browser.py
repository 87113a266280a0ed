"""The page of a chat, in Chromium: threads, what is held, keys, themes, and what must not run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.helpers.browser import Pages, browser
from tests.live.chat.people import PATIENT, Loop, People, looping
from tests.live.loops import until
from tests.live.peer_control import find_server

__all__ = ["browser"]

pytestmark = pytest.mark.slow
SCRIPT = "<img src=x onerror=\"document.title='run'\"><script>document.title='run'</script>"


class Window:
    """The page of one member."""

    def __init__(self, browser: Any, url: str) -> None:
        self.pages = Pages(browser)
        self.page = self.pages.blank(1100, 760)
        self.page.goto(url)
        self.until(lambda: "you are" in self.text("#state"))

    def text(self, css: str) -> str:
        return str(self.page.inner_text(css)).strip()

    def all(self, css: str) -> list[str]:
        found = "css => [...document.querySelectorAll(css)].map(one => one.innerText)"
        return list(self.page.evaluate(found, css))

    def texts(self) -> list[str]:
        return self.all(".post .text")

    def until(self, true: Callable[[], object]) -> None:
        for _ in range(1200):
            if true():
                return
            self.page.wait_for_timeout(50)
        raise AssertionError("not so after 60 s")

    def say(self, text: str) -> None:
        self.page.keyboard.type(text)
        self.page.keyboard.press("Enter")

    def colour(self, css: str, what: str) -> tuple[int, int, int]:
        code = "([css, what]) => getComputedStyle(document.querySelector(css))[what]"
        value = self.page.evaluate(code, [css, what])
        red, green, blue = value[value.index("(") + 1 : -1].split(",")[:3]
        return int(red), int(green), int(blue)


class Scene:
    """Alice and bob with a browser each, carol without."""

    def __init__(self, loop: Loop, browser: Any) -> None:
        self.loop, self.browser = loop, browser
        self.people = People()
        self.windows: dict[str, Window] = {}

    def begin(self) -> None:
        for name in ("alice", "bob", "carol"):
            self.loop.do(self.people.add(name, page=name != "carol", **PATIENT))
        self.loop.do(self.people.all_here())
        for name, page in self.people.pages.items():
            self.windows[name] = Window(self.browser, page.url)

    def say(self, name: str, text: str, answers: str | None = None) -> None:
        chat = self.people[name]
        number = None
        if answers is not None:
            self.loop.do(until(lambda: self.number(name, answers)))
            number = self.number(name, answers)
        self.loop.do(chat.say(text, number))

    def number(self, name: str, text: str) -> int | None:
        posts = self.people[name].room.posts.values()
        return next((one.number for one in posts if one.text == text), None)

    def close(self) -> None:
        for window in self.windows.values():
            window.pages.close()
        self.loop.do(self.people.close())


@pytest.fixture
def scene(browser: Any) -> Iterator[Scene]:
    with looping() as loop:
        made = Scene(loop, browser)
        try:
            made.begin()
            yield made
        finally:
            made.close()


def test_two_browsers_a_thread_a_held_answer_and_a_script_that_does_not_run(scene: Scene) -> None:
    alice, bob = scene.windows["alice"], scene.windows["bob"]

    # Words, and an answer in a thread, by keys alone.
    alice.say("lunch?")
    bob.until(lambda: bob.texts() == ["lunch?"])
    bob.page.keyboard.press("ArrowUp")
    assert bob.page.evaluate("document.activeElement.dataset.number") == "1"
    bob.page.keyboard.press("Enter")
    assert "to 1 alice: lunch?" in bob.text("#answers")
    bob.page.keyboard.type("yes")
    bob.page.keyboard.press("Shift+Enter")
    bob.say("at noon")
    alice.until(lambda: alice.texts() == ["lunch?", "yes\nat noon"])
    assert alice.all("#threads > li > ul > li > .post b") == ["bob"]
    assert not bob.page.is_visible("#answers")
    assert alice.all("#members li") == ["alice (you)", "bob", "carol"]

    # Bob does not get what carol says, and alice's answer to it waits there.
    go_on = scene.people.stall("carol", "bob")
    scene.say("carol", "a question")
    scene.say("alice", "an answer", "a question")
    bob.until(lambda: bob.all("#held li"))
    told = bob.text("#held")
    assert "alice's reply waits for a message of carol that is not here" in told
    bob.until(lambda: "requested from alice" in bob.text("#held"))
    bob.until(lambda: re.search(r"for [1-9]\d* s", bob.text("#held")))
    assert "an answer" not in bob.texts()
    bob.page.click("#ask")
    bob.until(lambda: bob.texts()[-2:] == ["a question", "an answer"])
    bob.until(lambda: not bob.page.is_visible("#waiting"))
    assert "waited" in bob.text("#m4 .head")
    scene.loop.do(_called(go_on))

    # What others write is text.
    scene.say("carol", SCRIPT, "a question")
    for window in (alice, bob):
        window.until(lambda window=window: SCRIPT in window.texts())  # type: ignore[misc]
        assert window.page.title().endswith("design")
        assert not window.all("main img, main script")
        assert window.pages.wrong == []
        loaded = window.page.evaluate(
            "performance.getEntriesByType('resource').map(one => new URL(one.name).host)"
        )
        assert set(loaded) <= {window.page.url.split("/")[2]}

    # An inline script that got in all the same would not run either.
    refused = alice.page.evaluate(
        "() => { try { document.body.innerHTML = '<b>x</b>' } catch (error) { return error.name } }"
    )
    assert refused == "TypeError"

    # Escape answers nothing; wrong numbers cannot be chosen; too much is said to be so.
    bob.page.keyboard.press("Escape")
    bob.page.evaluate("document.getElementById('words').value = 'x'.repeat(70000)")
    bob.page.keyboard.press("Enter")
    bob.until(lambda: "the limit is 65,536" in bob.text("#wrong"))


async def _called(what: Any) -> None:
    what()


def test_both_themes_can_be_read_and_a_phone_is_wide_enough(scene: Scene) -> None:
    alice = scene.windows["alice"]
    scene.say("alice", "word " * 60 + "x" * 300)
    for k in range(30):
        scene.say("alice", f"deeper {k}", "word " * 60 + "x" * 300 if not k else f"deeper {k - 1}")
    alice.until(lambda: len(alice.texts()) == 31)
    grounds = set()
    for name in ("light", "dark"):
        alice.page.emulate_media(color_scheme=name)
        ground = alice.colour("body", "backgroundColor")
        grounds.add(ground)
        pairs = [("body", "body"), (".number", ".post"), ("#state", "header"), (".row button",) * 2]
        for ink, paper in pairs:
            on = alice.colour(paper, "backgroundColor")
            assert _contrast(alice.colour(ink, "color"), on) >= 4.5, (name, ink)
    assert len(grounds) == 2
    for width in (360, 1100):
        alice.page.set_viewport_size({"width": width, "height": 640})
        wide = alice.page.evaluate(
            "[document.documentElement, document.getElementById('talk')]"
            ".map(one => one.scrollWidth - one.clientWidth)"
        )
        assert wide == [0, 0]
        assert alice.page.is_visible("#words")
        assert alice.page.locator("#m31").bounding_box()["width"] > 200
        assert ("to 30" in alice.text("#m31 .head"), alice.all("#m3 .mark")) == (True, [])


def _contrast(one: tuple[int, int, int], other: tuple[int, int, int]) -> float:
    """Return the contrast of two colours (WCAG 2, 1.4.3)."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: tuple[int, int, int]) -> float:
    parts = [k / 255 for k in colour]
    lin = [k / 12.92 if k <= 0.04045 else ((k + 0.055) / 1.055) ** 2.4 for k in parts]
    return 0.2126 * lin[0] + 0.7152 * lin[1] + 0.0722 * lin[2]


def test_a_page_finds_back_by_itself(scene: Scene) -> None:
    alice, page = scene.windows["alice"], scene.people.pages["alice"]
    scene.say("bob", "before")
    alice.until(lambda: alice.texts() == ["before"])
    port = int(page.url.split(":")[2].split("/")[0])
    scene.loop.do(_called(find_server(page).close))
    alice.until(lambda: "disconnected" in alice.text("#state"))
    alice.say("into nowhere")
    alice.until(lambda: "Not sent" in alice.text("#wrong"))
    assert alice.page.input_value("#words") == "into nowhere"
    scene.say("bob", "meanwhile")
    scene.loop.do(find_server(page).open("127.0.0.1", port))
    alice.until(lambda: alice.texts() == ["before", "meanwhile"])
    alice.page.keyboard.press("Enter")
    alice.until(lambda: alice.texts() == ["before", "meanwhile", "into nowhere"])
