"""What somebody types."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede.errors import LocalError
from antecede.live.chat.commands import HELP, ChatCommand, help_lines, parse_line


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("hello", ChatCommand("say", "hello")),
        ("  hello: you  ", ChatCommand("say", "hello: you")),
        ("3: yes", ChatCommand("say", "yes", 3)),
        ("/reply 3 yes, at noon", ChatCommand("say", "yes, at noon", 3)),
        ("at 12:30?", ChatCommand("say", "at 12:30?")),
        ("12:30", ChatCommand("say", "12:30")),
        ("/say 3: yes", ChatCommand("say", "3: yes")),
        ("//usr/bin", ChatCommand("say", "/usr/bin")),
        ("/thread 12", ChatCommand("thread", number=12)),
        ("/threads", ChatCommand("threads")),
        ("/threads 5", ChatCommand("threads", number=5)),
        ("0: zero", ChatCommand("say", "0: zero")),
        ("/HELD", ChatCommand("held")),
        ("/evict bob the second", ChatCommand("evict", "bob the second")),
        ("/quit", ChatCommand("quit")),
        ("", None),
        (" \t ", None),
    ],
)
def test_lines(line: str, command: ChatCommand | None) -> None:
    assert parse_line(line) == command


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("/reply", "is the number of a message, not ''"),
        ("/reply three yes", "not 'three'"),
        ("/reply 3", "reply to message 3 is empty"),
        ("/reply 0 x", "not '0'"),
        ("/reply 12345678901 x", "not '12345678901'"),
        ("/reply ٣ x", "not '٣'"),
        ("/thread", "/thread N"),
        ("/threads -1", "not '-1'"),
        ("/threads 0", "/threads K: K is the number of threads, from 1, not '0'"),
        ("/foo bar", "unknown command /foo; /help lists"),
        ("/who is it", "to send the text: /say /who is it"),
        ("/say", "the text is empty"),
        ("/evict", "missing"),
    ],
)
def test_what_cannot_be_is_one_sentence(line: str, why: str) -> None:
    with pytest.raises(LocalError) as error:
        parse_line(line)
    assert why in str(error.value)
    assert "\n" not in str(error.value)


@given(st.text() | st.text(alphabet="/ 1:athredw\n").map(lambda text: f"/{text}"))
def test_every_line_is_a_command_or_a_sentence(line: str) -> None:
    command: ChatCommand | None = None
    with suppress(LocalError):
        command = parse_line(line)
    assert command is None or command.what == "say" or f"/{command.what}" in " ".join(HELP)


def test_help_lists_what_there_is() -> None:
    for line in help_lines():
        word = line.split()[0]
        if word.startswith("/"):
            assert parse_line(
                {"/evict": "/evict x"}.get(
                    word,
                    f"{word} 1".removesuffix(
                        " 1" if word[1:] in ("held", "ask", "who", "leave", "quit", "help") else ""
                    ),
                )
            )
