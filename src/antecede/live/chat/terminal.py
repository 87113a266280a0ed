"""Terminal view of the chat: prints events, runs input lines.

In an interactive terminal the input line stays below the output (prompt_toolkit). Pipes carry plain
lines.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any, Final, TextIO

from antecede.errors import LocalError, MissingExtraError
from antecede.live.chat import commands, drawing
from antecede.live.chat.commands import ChatCommand
from antecede.live.chat.session import Chat, HeldNotice, News, Notice, Posted
from antecede.live.chat.words import ascii_only

THREADS: Final = 20
MAX_LINE: Final = 1 << 20
LEAVE, QUIT = "leave", "quit"


class Screen:
    """Output of lines in the width and characters of the terminal."""

    def __init__(self, out: Callable[[], TextIO], *, ascii: bool) -> None:
        """`out` is called each time, since prompt_toolkit replaces the stream."""
        self._asked, self._ascii = out, ascii

    @property
    def _out(self) -> TextIO:
        return self._asked()

    @property
    def width(self) -> int | None:
        """Width of the terminal. None: not a terminal, unlimited."""
        return shutil.get_terminal_size().columns if self._out.isatty() else None

    def show(self, lines: Iterable[str]) -> None:
        """Print lines at once. Raises BrokenPipeError without a reader."""
        text = "".join(f"{ascii_only(line) if self._ascii else line}\n" for line in lines)
        try:
            self._out.write(text)
            self._out.flush()
        except OSError as error:  # even of a closed terminal
            raise BrokenPipeError(str(error)) from error

    def note(self, text: str) -> None:
        """Print a notice."""
        self.show([f"  *   {text}"])


class Terminal:
    """View and input of a chat."""

    def __init__(self, chat: Chat, screen: Screen) -> None:
        self._chat, self._screen = chat, screen

    def news(self, news: News) -> None:
        """Show an event."""
        room, screen = self._chat.room, self._screen
        if isinstance(news, Posted):
            screen.show(drawing.format_post(room, news.post, screen.width))
        elif isinstance(news, HeldNotice):
            screen.note(f"held: {drawing.describe_held(news.waiting)}")
        elif isinstance(news, Notice):
            screen.note(news.text)

    def earlier(self) -> None:
        """Show earlier messages as threads."""
        if self._chat.room.posts:
            self._screen.note("earlier messages:")
            self._screen.show(drawing.threads(self._chat.room, None, self._screen.width))

    async def run_line(self, line: str) -> str:
        """Run an input line; return LEAVE or QUIT at the end, else ""."""
        try:
            command = commands.parse_line(line)
            return await self._do(command) if command is not None else ""
        except LocalError as error:
            self._screen.note(str(error))
            return ""

    async def _do(self, command: ChatCommand) -> str:
        chat, room, screen = self._chat, self._chat.room, self._screen
        match command.what:
            case "say":
                await chat.say(command.text, command.number)
            case "thread":
                thread = room.thread(room.post(command.number or 0))
                screen.show(drawing.tree(room, thread, screen.width))
            case "threads":
                drawn = list(drawing.threads(room, command.number or THREADS, screen.width))
                screen.show(drawn or ["  *   no messages yet"])
            case "held":
                screen.show(
                    f"  *   {line}" for line in drawing.describe_all_held(room, time.monotonic())
                )
            case "who":
                screen.show(f"  *   {line}" for line in drawing.list_members(room))
            case "ask":
                screen.note(chat.request_missing())
            case "evict":
                screen.note(chat.evict(command.text))
            case "help":
                screen.show(f"  *   {line}" for line in commands.help_lines())
            case end:
                return LEAVE if end == "leave" else QUIT
        return ""


# -- input -----------------------------------------------------------------------------------------


async def read_pipe(descriptor: int) -> AsyncIterator[str]:
    """Yield the lines of a pipe, a file or a plain terminal. A thread reads the descriptor: asyncio
    cannot wait for files, and Python's buffers would delay the end of the program.
    """
    queue: asyncio.Queue[bytes | None] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def read() -> None:
        rest, data = b"", b"-"
        while data:
            try:
                data = os.read(descriptor, 1 << 16)
            except OSError:
                data = b""
            *lines, rest = (rest + data).split(b"\n")
            if len(rest) > MAX_LINE:
                lines, rest = [*lines, rest], b""
            lines += [rest] if rest and not data else []
            with contextlib.suppress(RuntimeError):  # the loop is closed
                for line in [*lines, None] if not data else lines:
                    loop.call_soon_threadsafe(queue.put_nowait, line)

    threading.Thread(target=read, daemon=True).start()
    while (line := await queue.get()) is not None:
        yield line.decode(errors="replace")


async def read_prompt() -> AsyncIterator[str]:
    """Yield the lines of an interactive terminal, whose input line stays below the output. Ctrl-C
    raises KeyboardInterrupt while it reads a line; otherwise it is the signal.
    """
    try:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.completion import WordCompleter
        from prompt_toolkit.patch_stdout import patch_stdout
    except ImportError as error:
        raise MissingExtraError("antecede chat at a terminal, without --plain,", "live") from error

    words = [f"/{word}" for word in (*commands.WITHOUT, "reply", "thread", "threads", "evict")]
    session: PromptSession[str] = PromptSession(
        erase_when_done=True,
        completer=WordCompleter(words, sentence=True),
        complete_while_typing=False,
    )
    with patch_stdout():
        while True:
            try:
                # The caller keeps the signal: the prompt would remove its handler for good. Then a
                # Ctrl-C between prompts, or while a line is printed, would be lost.
                yield await session.prompt_async("> ", handle_sigint=False)
            except EOFError:
                return


def is_interactive(stdin: Any, stdout: Any) -> bool:
    """Return whether the terminal is interactive and can move the cursor."""
    return bool(stdin.isatty() and stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb")


def is_ascii_only(out: TextIO) -> bool:
    """Return whether a terminal cannot show the characters of trees."""
    try:
        "├└│─↳“”…".encode(getattr(out, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return True
    return sys.platform != "win32" and os.environ.get("TERM") == "dumb" and out.isatty()
