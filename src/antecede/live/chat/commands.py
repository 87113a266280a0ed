"""What somebody types: words for the room, or a command."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from antecede.errors import LocalError

HELP: Final = {
    "TEXT": "say it to the room",
    "N: TEXT": "answer message N (also: /reply N TEXT)",
    "/thread N": "draw the thread of message N",
    "/threads [K]": "draw the threads, the K newest (20)",
    "/held": "what is held back, since when, and what it waits for",
    "/ask": "ask again, and at once, for what is missing",
    "/who": "who is in the room",
    "/put-out NAME": "put a member out for good, who is dead or gone",
    "/leave": "leave the room for good, also with a store, and end",
    "/quit": "end; with a store you go on later where you were",
    "/say TEXT": "say what looks like a command; //TEXT says /TEXT",
    "/help": "this",
}
WITHOUT: Final = ("held", "ask", "who", "leave", "quit", "help")
"""Commands that take nothing."""
THREADS: Final = "K is how many threads are drawn, from 1 on"
_ANSWER: Final = re.compile(r"\s*(\d{1,9}):\s+(.*)", re.DOTALL)


class Command(NamedTuple):
    """What is to be done: "say", or the name of a command."""

    what: str
    text: str = ""
    number: int | None = None


def parsed(line: str) -> Command | None:
    """Return what a line asks for; None: it is empty. Raises LocalError, in a sentence."""
    line = line.strip()
    if not line:
        return None
    if line.startswith("//"):
        return Command("say", line[1:])
    if line.startswith("/"):
        word, _, rest = line[1:].partition(" ")
        return _command(word.lower(), rest.strip())
    answer = _ANSWER.fullmatch(line)
    if answer is None or not int(answer[1]):  # no message has the number 0
        return Command("say", line)
    return _reply(answer[1], answer[2])


def _command(word: str, rest: str) -> Command:
    if word in WITHOUT:
        if rest:
            raise LocalError(f"/{word} takes nothing behind it; to say it: /say /{word} {rest}")
        return Command(word)
    if word == "say":
        if not rest:
            raise LocalError("/say TEXT: there is no text")
        return Command("say", rest)
    if word == "reply":
        number, _, text = rest.partition(" ")
        return _reply(number, text)
    if word == "thread":
        return Command("thread", number=_number(rest, "/thread N"))
    if word == "threads":
        return Command("threads", number=_number(rest, "/threads K", THREADS) if rest else None)
    if word == "put-out":
        if not rest:
            raise LocalError("/put-out NAME: whom?")
        return Command("put-out", rest)
    raise LocalError(f"there is no /{word[:20]}; /help lists what there is, // says it as it is")


def _reply(number: str, text: str) -> Command:
    answered = _number(number, "/reply N TEXT")
    if not text.strip():
        raise LocalError(f"an answer to message {answered} without words")
    return Command("say", text.strip(), answered)


def _number(text: str, usage: str, what: str = "N is the number of a message") -> int:
    if not (text.isascii() and text.isdecimal() and 0 < len(text) <= 9 and int(text)):
        raise LocalError(f"{usage}: {what}, not {text[:20]!r}")
    return int(text)


def help_lines() -> list[str]:
    """Return what can be typed."""
    width = max(map(len, HELP))
    return [f"{usage:<{width}}  {what}" for usage, what in HELP.items()]
