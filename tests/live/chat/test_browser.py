"""The page of a chat, in Chromium: threads, what is held, keys, themes, and what must not run."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.live.chat.people import PATIENT, Loop, People, looping
from tests.live.loops import until

pytest.importorskip("selenium", reason="selenium drives the browser: it is not installed")

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

BROWSER = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
DRIVER = shutil.which("chromedriver")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (BROWSER and DRIVER), reason="needs Chromium and chromedriver on this machine"
    ),
]
QUIET = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
SCRIPT = "<img src=x onerror=\"document.title='run'\"><script>document.title='run'</script>"


class Window:
    """A browser with the page of one member."""

    def __init__(self, folder: Path, url: str) -> None:
        options = webdriver.ChromeOptions()
        options.binary_location = str(BROWSER)
        for one in (*QUIET, f"--user-data-dir={folder}", "--window-size=1100,760"):
            options.add_argument(one)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(options, webdriver.ChromeService(str(DRIVER)))
        self.driver.get(url)
        self.until(lambda: "you are" in self.find("#state").text)

    def find(self, css: str) -> WebElement:
        return self.driver.find_element(By.CSS_SELECTOR, css)

    def all(self, css: str) -> list[WebElement]:
        return list(self.driver.find_elements(By.CSS_SELECTOR, css))

    def texts(self) -> list[str]:
        return [one.text for one in self.all(".post .text")]

    def until(self, true: Any) -> None:
        gone = [StaleElementReferenceException]  # the page was drawn anew meanwhile
        WebDriverWait(self.driver, 60, 0.05, gone).until(lambda _: true())

    def keys(self, *keys: str) -> None:
        self.driver.switch_to.active_element.send_keys(*keys)

    def errors(self) -> list[str]:
        driver: Any = self.driver  # its method has no types
        return [str(one["message"]) for one in driver.get_log("browser")]

    def theme(self, name: str) -> None:
        self.driver.execute_cdp_cmd(
            "Emulation.setEmulatedMedia",
            {"features": [{"name": "prefers-color-scheme", "value": name}]},
        )

    def colour(self, css: str, what: str) -> tuple[int, int, int]:
        value = self.driver.execute_script(
            "return getComputedStyle(document.querySelector(arguments[0]))[arguments[1]]", css, what
        )
        red, green, blue = value[value.index("(") + 1 : -1].split(",")[:3]
        return int(red), int(green), int(blue)


class Scene:
    """Alice and bob with a browser each, carol without."""

    def __init__(self, loop: Loop, folder: Path) -> None:
        self.loop, self.folder = loop, folder
        self.people = People()
        self.windows: dict[str, Window] = {}

    def begin(self) -> None:
        for name in ("alice", "bob", "carol"):
            self.loop.do(self.people.add(name, page=name != "carol", **PATIENT))
        self.loop.do(self.people.all_here())
        for name, page in self.people.pages.items():
            self.windows[name] = Window(self.folder / name, page.url)

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
            window.driver.quit()
        self.loop.do(self.people.close())


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with looping() as loop:
        made = Scene(loop, tmp_path)
        try:
            made.begin()
            yield made
        finally:
            made.close()


def test_two_browsers_a_thread_a_held_answer_and_a_script_that_does_not_run(scene: Scene) -> None:
    alice, bob = scene.windows["alice"], scene.windows["bob"]

    # Words, and an answer in a thread, by keys alone.
    alice.keys("lunch?", Keys.ENTER)
    bob.until(lambda: bob.texts() == ["lunch?"])
    bob.keys(Keys.ARROW_UP)
    assert bob.driver.switch_to.active_element.get_attribute("data-number") == "1"
    bob.keys(Keys.ENTER)
    assert "to 1 alice: lunch?" in bob.find("#answers").text
    bob.keys("yes", Keys.SHIFT, Keys.ENTER, Keys.SHIFT, "at noon", Keys.ENTER)
    alice.until(lambda: alice.texts() == ["lunch?", "yes\nat noon"])
    below = alice.all("#threads > li > ul > li > .post")
    assert [one.find_element(By.CSS_SELECTOR, "b").text for one in below] == ["bob"]
    assert not bob.find("#answers").is_displayed()
    assert [one.text for one in alice.all("#members li")] == ["alice (you)", "bob", "carol"]

    # Bob does not get what carol says, and alice's answer to it waits there.
    go_on = scene.people.stall("carol", "bob")
    scene.say("carol", "a question")
    scene.say("alice", "an answer", "a question")
    bob.until(lambda: bob.all("#held li"))
    told = bob.find("#held").text
    assert "alice's answer waits for a message of carol's that is not here" in told
    bob.until(lambda: "alice can give it, and is asked" in bob.find("#held").text)
    bob.until(lambda: re.search(r"for [1-9]\d* s", bob.find("#held").text))
    assert "an answer" not in bob.texts()
    bob.find("#ask").click()
    bob.until(lambda: bob.texts()[-2:] == ["a question", "an answer"])
    bob.until(lambda: not bob.find("#waiting").is_displayed())
    assert "waited" in bob.find("#m4 .head").text
    scene.loop.do(_called(go_on))

    # What others write is text.
    scene.say("carol", SCRIPT, "a question")
    for window in (alice, bob):
        window.until(lambda window=window: SCRIPT in window.texts())
        assert window.driver.title.endswith("design")
        assert not window.all("main img, main script")
        assert not window.errors()
        loaded = window.driver.execute_script(
            "return performance.getEntriesByType('resource').map(one => new URL(one.name).host)"
        )
        assert set(loaded) <= {window.driver.current_url.split("/")[2]}

    # An inline script that got in all the same would not run either.
    alice.driver.execute_cdp_cmd("Runtime.enable", {})
    refused = alice.driver.execute_script(
        "try { document.body.innerHTML = '<b>x</b>' } catch (error) { return error.name }"
    )
    assert refused == "TypeError"

    # Escape answers nothing; wrong numbers cannot be chosen; too much is said to be so.
    bob.keys(Keys.ESCAPE)
    bob.driver.execute_script("document.getElementById('words').value = 'x'.repeat(70000)")
    bob.keys(Keys.ENTER)
    bob.until(lambda: "65,536 are the most" in bob.find("#wrong").text)


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
        alice.theme(name)
        ground = alice.colour("body", "backgroundColor")
        grounds.add(ground)
        pairs = [("body", "body"), (".number", ".post"), ("#state", "header"), (".row button",) * 2]
        for ink, paper in pairs:
            on = alice.colour(paper, "backgroundColor")
            assert _contrast(alice.colour(ink, "color"), on) >= 4.5, (name, ink)
    assert len(grounds) == 2
    for width in (360, 1100):
        alice.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 640, "deviceScaleFactor": 1, "mobile": width < 500},
        )
        wide = alice.driver.execute_script(
            "return [document.documentElement, document.getElementById('talk')]"
            ".map(one => one.scrollWidth - one.clientWidth)"
        )
        assert wide == [0, 0]
        assert alice.find("#words").is_displayed()
        assert alice.find("#m31").size["width"] > 200
        assert ("to 30" in alice.find("#m31 .head").text, alice.all("#m3 .mark")) == (True, [])


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
    scene.loop.do(_called(page._server.close))
    alice.until(lambda: "not connected" in alice.find("#state").text)
    alice.keys("into nowhere", Keys.ENTER)
    alice.until(lambda: "Not sent" in alice.find("#wrong").text)
    assert alice.find("#words").get_property("value") == "into nowhere"
    scene.say("bob", "meanwhile")
    scene.loop.do(page._server.open("127.0.0.1", port))
    alice.until(lambda: alice.texts() == ["before", "meanwhile"])
    alice.keys(Keys.ENTER)
    alice.until(lambda: alice.texts() == ["before", "meanwhile", "into nowhere"])


def test_who_has_another_path_sees_nothing(scene: Scene) -> None:
    alice, page = scene.windows["alice"], scene.people.pages["alice"]
    alice.driver.get(page.url.rsplit("/", 2)[0] + "/")
    assert alice.find("body").text == "there is nothing here"
