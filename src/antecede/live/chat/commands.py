"""Input lines of the chat: messages and commands."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from antecede.errors import LocalError

HELP: Final = {
    "TEXT": "send a message to the room",
    "N: TEXT": "reply to message N (also: /reply N TEXT)",
    "/thread N": "draw the thread of message N",
    "/threads [K]": "draw the threads, the K newest (20)",
    "/held": "list held replies and their missing parents",
    "/ask": "request missing messages again, at once",
    "/who": "list the members",
    "/evict NAME": "evict a member for good",
    "/leave": "leave the room for good, also with a store, and end",
    "/quit": "end; a store resumes here later",
    "/say TEXT": "send a text that looks like a command; //TEXT sends /TEXT",
    "/help": "list the commands",
}
WITHOUT: Final = ("held", "ask", "who", "leave", "quit", "help")
THREADS: Final = "K is the number of threads, from 1"
_ANSWER: Final = re.compile(r"\s*(\d{1,9}):\s+(.*)", re.DOTALL)


class ChatCommand(NamedTuple):
    """Parsed line: "say", or the name of a command."""

    what: str
    text: str = ""
    number: int | None = None


def parse_line(line: str) -> ChatCommand | None:
    """Return the command of a line. None: empty line. Raises LocalError."""
    line = line.strip()
    if not line:
        return None
    if line.startswith("//"):
        return ChatCommand("say", line[1:])
    if line.startswith("/"):
        word, _, rest = line[1:].partition(" ")
        return _command(word.lower(), rest.strip())
    answer = _ANSWER.fullmatch(line)
    if answer is None or not int(answer[1]):  # numbers start at 1
        return ChatCommand("say", line)
    return _reply(answer[1], answer[2])


def _command(word: str, rest: str) -> ChatCommand:
    if word in WITHOUT:
        if rest:
            raise LocalError(f"/{word} has no arguments; to send the text: /say /{word} {rest}")
        return ChatCommand(word)
    if word == "say":
        if not rest:
            raise LocalError("/say TEXT: the text is empty")
        return ChatCommand("say", rest)
    if word == "reply":
        number, _, text = rest.partition(" ")
        return _reply(number, text)
    if word == "thread":
        return ChatCommand("thread", number=_number(rest, "/thread N"))
    if word == "threads":
        return ChatCommand("threads", number=_number(rest, "/threads K", THREADS) if rest else None)
    if word == "evict":
        if not rest:
            raise LocalError("/evict NAME: the name is missing")
        return ChatCommand("evict", rest)
    raise LocalError(f"unknown command /{word[:20]}; /help lists the commands, // sends the text")


def _reply(number: str, text: str) -> ChatCommand:
    answered = _number(number, "/reply N TEXT")
    if not text.strip():
        raise LocalError(f"the reply to message {answered} is empty")
    return ChatCommand("say", text.strip(), answered)


def _number(text: str, usage: str, what: str = "N is the number of a message") -> int:
    if not (text.isascii() and text.isdecimal() and 0 < len(text) <= 9 and int(text)):
        raise LocalError(f"{usage}: {what}, not {text[:20]!r}")
    return int(text)


def help_lines() -> list[str]:
    """Return the help text as lines."""
    width = max(map(len, HELP))
    return [f"{usage:<{width}}  {what}" for usage, what in HELP.items()]
