"""Streaming reader of the elements of a JSON array.

`items(path)` yields the elements of a top-level array, `items(path, ("txns",))` those of the array
under `txns`. Memory holds one element and one block of the file. A file may hold several values
(JSON lines).

Theory of operation
-------------------
A stack holds the open brackets, each with the number of matched keys. A value on the path is
opened, a value at its end is yielded, any other is skipped. `json` decodes an element from a buffer
that doubles until it holds the element, so the time is linear.

A malformed element is skipped up to its closing bracket, found by counting brackets outside strings
(a line end closes a string). If brackets do not match, reading resumes at the next `{` or `[` after
a comma or a line end.
"""

from __future__ import annotations

import codecs
import json
import re
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from antecede.tables.trace.text import open_bytes, shorten

BLOCK_BYTES = 1 << 16
LONG_PAST = 1 << 12
"""Limit of characters before the position after an error."""
CLOSING = {"{": "}", "[": "]"}

_SPACE = re.compile(r"[\s,]*")
_STRUCTURE = re.compile(r'["{}\[\]]')
_IN_STRING = re.compile(r'[\\"\n]')
MAX_ELEMENT = 1 << 26
"""Limit of an element in characters."""
LEAST_SEARCH = 1 << 4
MAX_SEARCH = 1 << 20
"""Range of the search for the end of a malformed element, characters."""
_SCALAR = re.compile(r"[^\s,\[\]{}\":]+|:")
_KEY_COLON = re.compile(r"\s*:")
_RESTART = re.compile(r"[,\n]\s*(?=[{\[])")
_RESTART_IN_STRING = re.compile(r"[,\n]\s*[{\[]\s*\"\s*\Z")
"""End of text that was read as a string because of an unclosed quote."""
_DECODER = json.JSONDecoder()
_NEAR_END = 16
"""Characters at the end of a buffer that may be cut: `\\u00`, `1.5e-`."""


class Element(NamedTuple):
    """Value of an element, and its start."""

    value: Any
    line: int
    """Line number, from 1."""
    byte: int
    """Offset in the decompressed file."""


class Broken(NamedTuple):
    """Text that is not an element, and its start."""

    reason: str
    raw: str
    line: int
    byte: int


def items(path: Path, keys: Sequence[str] = (), nested: bool = False) -> Iterator[Element | Broken]:
    """Yield the elements of the array under `keys`, and malformed elements.

    Another value under `keys` is the only element. Arrays above it are opened, with `nested` also
    arrays in the array. Raise InputError if the file cannot be opened.
    """
    with open_bytes(path) as file:
        yield from _Walk(Buffer(file), tuple(keys), nested).elements()


class _Walk:
    def __init__(self, buffer: Buffer, keys: tuple[str, ...], nested: bool) -> None:
        self.buffer = buffer
        self.keys = keys
        self.nested = nested
        self.open: list[tuple[str, int, bool]] = []
        """Open brackets: bracket, number of matched keys, whether it is (in) the array."""
        self.search = MAX_SEARCH
        """Range of the search for an end, halved after a failure to bound the total time."""
        self.found = False
        """True if the current top-level value has the array."""

    def elements(self) -> Iterator[Element | Broken]:
        buffer = self.buffer
        while character := buffer.next_character():
            bracket, depth, inside = self.open[-1] if self.open else ("", 0, False)
            if character in "]}":
                yield from self._close(character)
            elif bracket == "{":
                yield from self._member(depth)
            elif depth < len(self.keys):
                yield from self._on_the_way(character, depth)
            elif character == "[" and (self.nested or not inside):
                self._enter("[", depth, True)
            else:
                yield self._element()
        if buffer.breaks_off or self.open:
            missing = "".join(CLOSING[bracket] for bracket, *_ in reversed(self.open[-8:]))
            reason = buffer.breaks_off or f"the file ends before {missing}"
            yield Broken(reason, "", buffer.line, buffer.byte)

    def _enter(self, bracket: str, depth: int, inside: bool) -> None:
        if not self.open:
            self.found = False
        self.found |= inside
        self.open.append((bracket, depth, inside))
        self.buffer.advance(self.buffer.at + 1)

    def _close(self, character: str) -> Iterator[Broken]:
        buffer = self.buffer
        if not self.open or CLOSING[self.open[-1][0]] != character:
            yield self._broken(f"unexpected {character}")
        else:
            self.open.pop()
            if not self.open and not self.found and self.keys:
                yield self._broken(f"no {'.'.join(self.keys)} in the value that ends here")
        buffer.advance(buffer.at + 1)

    def _on_the_way(self, character: str, depth: int) -> Iterator[Broken]:
        if character in "[{":
            self._enter(character, depth, False)
        else:
            yield self._broken(f"expected an object with the key {self.keys[depth]!r}")
            self._skip()

    def _member(self, depth: int) -> Iterator[Element | Broken]:
        """Read a key of an object on the path; open or skip its value."""
        buffer = self.buffer
        where = buffer.line, buffer.byte
        raw = buffer.text[buffer.at : buffer.at + 600]
        key, _, _ = self._decode() if buffer.text[buffer.at] == '"' else (None, 0, 0)
        while not (colon := _KEY_COLON.match(buffer.text, buffer.at)) and buffer.more():
            if buffer.text[buffer.at :].strip():
                colon = _KEY_COLON.match(buffer.text, buffer.at)
                break
        if not isinstance(key, str) or colon is None:
            yield Broken("expected a key and a colon in an object", shorten(raw), *where)
            if key is None and buffer.text[buffer.at :]:
                self._skip()
            return
        buffer.advance(colon.end())
        character = buffer.next_character()
        if key != self.keys[depth]:
            if character not in ("", "]", "}"):
                self._skip()
        elif depth + 1 < len(self.keys):
            if character in ("{", "["):
                self._enter(character, depth + 1, False)
            elif character:
                self._skip()
        elif character == "[":
            self._enter("[", depth + 1, True)
        elif character:
            self.found = True
            yield self._element()

    def _element(self) -> Element | Broken:
        """Decode the value here; after a failure move to the next possible start."""
        buffer = self.buffer
        line, byte = buffer.line, buffer.byte
        value, reason, error_at = self._decode()
        if not reason:
            return Element(value, line, byte)
        raw = shorten(buffer.text[buffer.at : buffer.at + 600])
        if not self._past_bad(error_at):
            reason += "; no readable element follows"
        buffer.forget()
        return Broken(reason, raw, line, byte)

    def _decode(self) -> tuple[Any, str, int]:
        """Return (value, "", 0) and advance, or (None, reason, position of the error)."""
        buffer = self.buffer
        while True:
            cut = not buffer.ended
            try:
                value, end = _DECODER.raw_decode(buffer.text, buffer.at)
            except json.JSONDecodeError as error:
                at = error.pos
                near = at > len(buffer.text) - _NEAR_END or error.msg.startswith("Unterminated")
                reason = f"invalid JSON: {error.msg}"
            except (ValueError, RecursionError) as error:  # too many digits or brackets
                at, near, reason = buffer.at, False, f"invalid JSON: {error}"
            else:
                whole = buffer.text[end - 1] in '"]}' or end < len(buffer.text) - _NEAR_END
                if whole or not cut:  # otherwise a number may continue: 1.5e is read as 1.5
                    buffer.advance(end)
                    return value, "", 0
                at, near, reason = end, True, ""
            if not (near and cut):
                return None, reason, at
            if len(buffer.text) - buffer.at > MAX_ELEMENT:
                return None, f"longer than {MAX_ELEMENT:,} characters", buffer.at
            buffer.more()

    def _past_bad(self, error_at: int) -> bool:
        """Move behind a malformed element; return False if no other element follows."""
        buffer = self.buffer
        beyond = error_at - buffer.at  # relative, because the buffer may move
        end = self._balanced_end(beyond + self.search)
        self.search = (
            min(2 * self.search, MAX_SEARCH) if end else max(self.search // 2, LEAST_SEARCH)
        )
        if end:
            buffer.advance(buffer.at + end)
            return True
        string = _RESTART_IN_STRING.search(buffer.text, buffer.at, buffer.at + beyond)
        beyond = string.start() - buffer.at if string else beyond
        while True:
            first = buffer.at + max(1, beyond - _NEAR_END)
            for match in _RESTART.finditer(buffer.text, first):
                if match.end() >= buffer.at + beyond:
                    buffer.advance(match.end())
                    return True
            buffer.advance(max(len(buffer.text) - _NEAR_END, buffer.at))
            beyond = 0
            if not buffer.more():
                buffer.advance(len(buffer.text))
                return False

    def _balanced_end(self, limit: int) -> int:
        """Return the length of the value by its brackets; 0 if they do not match."""
        buffer = self.buffer
        if buffer.text[buffer.at] not in '"[{':
            match = _SCALAR.match(buffer.text, buffer.at)
            return match.end() - buffer.at if match else 1
        scan = Structure()
        done = 0
        while True:
            end = scan.feed(buffer.text, buffer.at + done, buffer.at + limit)
            if end is not None:
                return end - buffer.at if scan.sound else 0
            done = len(buffer.text) - buffer.at
            if done >= limit or not buffer.more():
                return 0

    def _skip(self) -> None:
        buffer = self.buffer
        if buffer.text[buffer.at] not in '"[{':
            while True:
                match = _SCALAR.match(buffer.text, buffer.at)
                if match is None:
                    return
                buffer.advance(match.end())
                if buffer.at < len(buffer.text) or not buffer.more():
                    return
        scan = Structure()
        while (end := scan.feed(buffer.text, buffer.at)) is None:
            buffer.advance(len(buffer.text))
            if not buffer.more():
                return
        buffer.advance(end)

    def _broken(self, reason: str) -> Broken:
        buffer = self.buffer
        raw = buffer.text[buffer.at : buffer.at + 60]
        return Broken(reason, shorten(raw), buffer.line, buffer.byte)


class Buffer:
    """Sliding window of the decoded text of a file."""

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
        """Extend the buffer and drop passed text; return False at the end of the file."""
        if self.ended:
            return False
        rest = self.text[self.at :]
        try:
            raw = self._file.read(max(BLOCK_BYTES, len(rest)))
        except (EOFError, OSError, zlib.error) as error:
            raw, self.breaks_off = b"", f"truncated or damaged file: {error}"
        if not self._begun and raw:
            self._begun = True
            if raw.startswith(codecs.BOM_UTF8):
                raw, self.byte = raw[3:], 3
        self.ended = not raw
        self.text, self.at = rest + self._decoder.decode(raw, final=self.ended), 0
        return True

    def forget(self) -> None:
        """Drop long passed text: `json` counts the lines before each error, in quadratic time."""
        if self.at >= LONG_PAST:
            self.text, self.at = self.text[self.at :], 0

    def advance(self, to: int) -> None:
        """Move to a later position."""
        passed = self.text[self.at : to]
        self.line += passed.count("\n")
        self.byte += len(passed) if passed.isascii() else len(passed.encode("utf-8"))
        self.at = to

    def next_character(self) -> str:
        """Skip white space and commas; return the next character, "" at the end."""
        while True:
            match = cast("re.Match[str]", _SPACE.match(self.text, self.at))
            self.advance(match.end())
            if self.at < len(self.text):
                return self.text[self.at]
            if not self.more():
                return ""


class Structure:
    """Finder of the end of a value by brackets outside strings."""

    def __init__(self) -> None:
        self.sound = True
        """True if each bracket was closed by its own kind."""
        self._open: list[str] = []
        self._in_string = False
        self._escaped = False

    def feed(self, text: str, at: int, stop: int | None = None) -> int | None:
        """Return the end of the value in `text` up to `stop`; None if it continues."""
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
