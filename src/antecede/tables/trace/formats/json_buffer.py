"""What a walk over JSON of any size needs: text from a position on, and where a value ends."""

from __future__ import annotations

import codecs
import re
import zlib
from typing import IO, cast

BLOCK_BYTES = 1 << 16
LONG_PAST = 1 << 12
"""Characters that may lie before the position after an error."""
CLOSING = {"{": "}", "[": "]"}

_SPACE = re.compile(r"[\s,]*")
_STRUCTURE = re.compile(r'["{}\[\]]')
_IN_STRING = re.compile(r'[\\"\n]')


class Buffer:
    """Decoded text of a file from a position on, that position, and more when asked."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self._begun = False
        self.text = ""
        self.at = 0
        self.line = 1
        self.byte = 0
        self.ended = False
        self.breaks_off = ""

    def more(self) -> bool:
        """Make the buffer longer; False at the end of the file. Positions move to the front."""
        if self.ended:
            return False
        rest = self.text[self.at :]
        try:
            raw = self._file.read(max(BLOCK_BYTES, len(rest)))
        except (EOFError, OSError, zlib.error) as error:
            raw, self.breaks_off = b"", f"the file breaks off: {error}"
        if not self._begun and raw:
            self._begun = True
            if raw.startswith(codecs.BOM_UTF8):
                raw, self.byte = raw[3:], 3
        self.ended = not raw
        self.text, self.at = rest + self._decoder.decode(raw, final=self.ended), 0
        return True

    def forget(self) -> None:
        """Drop the text that was passed, where it is long. Positions move to the front.

        `json` counts the lines before each error, so many errors in one block cost its square.
        """
        if self.at >= LONG_PAST:
            self.text, self.at = self.text[self.at :], 0

    def advance(self, to: int) -> None:
        """Move to a later position of the text."""
        passed = self.text[self.at : to]
        self.line += passed.count("\n")
        self.byte += len(passed) if passed.isascii() else len(passed.encode("utf-8"))
        self.at = to

    def next_character(self) -> str:
        """Pass white space and commas and return the character there; "" at the end."""
        while True:
            match = cast("re.Match[str]", _SPACE.match(self.text, self.at))
            self.advance(match.end())
            if self.at < len(self.text):
                return self.text[self.at]
            if not self.more():
                return ""


class Structure:
    """Counts brackets outside strings, block by block, until the first value is closed."""

    def __init__(self) -> None:
        self.sound = True
        """Whether each bracket was closed by its own kind."""
        self._open: list[str] = []
        self._in_string = False
        self._escaped = False

    def feed(self, text: str, at: int, stop: int | None = None) -> int | None:
        """Return where in `text` (up to `stop`) the value ends; None if it does not end there."""
        stop = len(text) if stop is None else min(stop, len(text))
        while at < stop:
            if self._escaped:
                self._escaped = False
                at += 1
                continue
            match = (_IN_STRING if self._in_string else _STRUCTURE).search(text, at, stop)
            if match is None:
                return None
            character, at = match[0], match.end()
            if self._in_string:
                self._escaped = character == "\\"
                self._in_string = self._escaped
            elif character == '"':
                self._in_string = True
            elif character in "[{":
                self._open.append(CLOSING[character])
                continue
            else:
                self.sound &= self._open.pop() == character
            if not self._open and not self._in_string:
                return at
        return None
