"""The scene of docs/live/chat.md: by lines for a test, and as a picture of the page.

python -m tests.live.chat.picture docs/pictures/chat.png
"""

from __future__ import annotations

import asyncio
import io
import sys
import tempfile
from pathlib import Path

from antecede.live.chat.terminal import Screen, Terminal
from tests.live.chat.people import PATIENT, People, looping, people
from tests.live.loops import until

QUESTION = "Where do we have lunch on Thursday?"
SAID = (
    ("alice", QUESTION, None),
    ("bob", "Sandwiches on the roof", QUESTION),
    ("alice", "If it does not rain", "Sandwiches on the roof"),
    ("carol", "Has anybody looked at my review?", None),
    ("bob", "Yes: two notes, both small", "Has anybody looked at my review?"),
)
BEHIND = (
    ("carol", "Thursday is the fire drill", QUESTION),
    ("alice", "Then Friday", "Thursday is the fire drill"),
)
"""Carol's message does not reach bob, alice's answer to it does."""


def number(room: People, name: str, text: str | None) -> int | None:
    posts = room[name].room.posts.values()
    return next((one.number for one in posts if one.text == text), None)


async def say(room: People, name: str, text: str, answers: str | None) -> None:
    await until(lambda: answers is None or number(room, name, answers))
    await room[name].say(text, number(room, name, answers))
    await until(lambda: all(number(room, one, text) for one in room.chats if one != "bob"))


async def talk(room: People) -> None:
    """Let them say all, up to the answer that bob holds."""
    for name, text, answers in SAID:
        await say(room, name, text, answers)
        await until(lambda text=text: number(room, "bob", text))  # type: ignore[misc]
    room.stall("carol", "bob")
    for name, text, answers in BEHIND:
        await say(room, name, text, answers)
    await until(lambda: room["bob"].room.held)


async def transcript() -> str:
    """Return what bob sees in the terminal."""
    async with people("alice", "bob", "carol", **PATIENT) as room:
        out = io.StringIO()
        view = Terminal(room["bob"], Screen(lambda: out, ascii=False))
        room["bob"].attach(view.news)
        await talk(room)
        await until(lambda: "held" in out.getvalue())
        await until(lambda: "requested from alice" in room["bob"].room.held[0].why)
        for line in ("/held", "/ask"):
            out.write(f"> {line}\n")
            await view.run_line(line)
        await until(lambda: number(room, "bob", "Then Friday"))
        out.write("> /threads\n")
        await view.run_line("/threads")
        return out.getvalue()


def picture(path: Path) -> None:
    """Make the picture of bob's page while the answer is held."""
    from tests.helpers.browser import launched
    from tests.live.chat.test_browser import Window

    with (
        looping() as loop,
        tempfile.TemporaryDirectory() as folder,
        launched(Path(folder)) as found,
    ):
        room = People()
        try:
            for name in ("alice", "bob", "carol"):
                loop.do(room.add(name, page=name == "bob", **PATIENT))
            loop.do(room.all_here())
            loop.do(talk(room))
            window = Window(found, room.pages["bob"].url)
            window.until(lambda: window.all("#held li"))
            window.page.screenshot(path=path)
            window.pages.close()
        finally:
            loop.do(room.close())


if __name__ == "__main__":
    if len(sys.argv) > 1:
        picture(Path(sys.argv[1]))
    else:
        print(asyncio.run(transcript()), end="")
