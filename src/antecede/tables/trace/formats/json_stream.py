"""Streaming reader of the elements of a JSON array.

`items(path)` yields the elements of a top-level array, `items(path, ("txns",))` those of the array
under `txns`. Memory holds one element and one block of the file. A file may hold several values
(JSON lines).

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
MAX_PASSED = 1 << 12
"""Limit of characters before the position after an error."""
CLOSING = {"{": "}", "[": "]"}

_SPACE = re.compile(r"[\s,]*")
_STRUCTURE = re.compile(r'["{}\[\]]')
_IN_STRING = re.compile(r'[\\"\n]')
MAX_ELEMENT = 1 << 26
"""Limit of an element in characters."""
MIN_SEARCH = 1 << 4
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


class MalformedElement(NamedTuple):
    """Text that is not an element, and its start."""

    reason: str
    raw: str
    line: int
    byte: int


def read_elements(
    path: Path, keys: Sequence[str] = (), nested: bool = False
) -> Iterator[Element | MalformedElement]:
    """Yield the elements of the array under `keys`, and malformed elements.

    Another value under `keys` is the only element. Arrays above it are opened, with `nested` also
    arrays in the array. Raise InputError if the file cannot be opened.
    """
    with open_bytes(path) as file:
        yield from _ElementReader(Buffer(file), tuple(keys), nested).read()


class _ElementReader:
    def __init__(self, buffer: Buffer, keys: tuple[str, ...], nested: bool) -> None:
        self.buffer = buffer
        self.keys = keys
        self.nested = nested
        self.open_brackets: list[tuple[str, int, bool]] = []
        """Open brackets: bracket, number of matched keys, whether it is (in) the array."""
        self.search_limit = MAX_SEARCH
        """Range of the search for an end, halved after a failure to bound the total time."""
        self.has_found_array = False
        """True if the current top-level value has the array."""

    def read(self) -> Iterator[Element | MalformedElement]:
        buffer = self.buffer
        while character := buffer.find_next_character():
            bracket, depth, inside = (
                self.open_brackets[-1] if self.open_brackets else ("", 0, False)
            )
            if character in "]}":
                yield from self._close_bracket(character)
            elif bracket == "{":
                yield from self._read_member(depth)
            elif depth < len(self.keys):
                yield from self._enter_value(character, depth)
            elif character == "[" and (self.nested or not inside):
                self._open_bracket("[", depth, True)
            else:
                yield self._read_element()
        if buffer.break_reason or self.open_brackets:
            missing = "".join(CLOSING[bracket] for bracket, *_ in reversed(self.open_brackets[-8:]))
            reason = buffer.break_reason or f"the file ends before {missing}"
            yield MalformedElement(reason, "", buffer.line, buffer.byte)

    def _open_bracket(self, bracket: str, depth: int, inside: bool) -> None:
        if not self.open_brackets:
            self.has_found_array = False
        self.has_found_array |= inside
        self.open_brackets.append((bracket, depth, inside))
        self.buffer.advance(self.buffer.position + 1)

    def _close_bracket(self, character: str) -> Iterator[MalformedElement]:
        buffer = self.buffer
        if not self.open_brackets or CLOSING[self.open_brackets[-1][0]] != character:
            yield self._make_malformed(f"unexpected {character}")
        else:
            self.open_brackets.pop()
            if not self.open_brackets and not self.has_found_array and self.keys:
                yield self._make_malformed(f"no {'.'.join(self.keys)} in the value that ends here")
        buffer.advance(buffer.position + 1)

    def _enter_value(self, character: str, depth: int) -> Iterator[MalformedElement]:
        if character in "[{":
            self._open_bracket(character, depth, False)
        else:
            yield self._make_malformed(f"expected an object with the key {self.keys[depth]!r}")
            self._skip_value()

    def _read_member(self, depth: int) -> Iterator[Element | MalformedElement]:
        """Read a key of an object on the path; open or skip its value."""
        buffer = self.buffer
        where = buffer.line, buffer.byte
        raw = buffer.text[buffer.position : buffer.position + 600]
        key, _, _ = self._decode_value() if buffer.text[buffer.position] == '"' else (None, 0, 0)
        while not (colon := _KEY_COLON.match(buffer.text, buffer.position)) and buffer.read_more():
            if buffer.text[buffer.position :].strip():
                colon = _KEY_COLON.match(buffer.text, buffer.position)
                break
        if not isinstance(key, str) or colon is None:
            yield MalformedElement("expected a key and a colon in an object", shorten(raw), *where)
            if key is None and buffer.text[buffer.position :]:
                self._skip_value()
            return
        buffer.advance(colon.end())
        character = buffer.find_next_character()
        if key != self.keys[depth]:
            if character not in ("", "]", "}"):
                self._skip_value()
        elif depth + 1 < len(self.keys):
            if character in ("{", "["):
                self._open_bracket(character, depth + 1, False)
            elif character:
                self._skip_value()
        elif character == "[":
            self._open_bracket("[", depth + 1, True)
        elif character:
            self.has_found_array = True
            yield self._read_element()

    def _read_element(self) -> Element | MalformedElement:
        """Decode the value here; after a failure move to the next possible start."""
        buffer = self.buffer
        line, byte = buffer.line, buffer.byte
        value, reason, error_at = self._decode_value()
        if not reason:
            return Element(value, line, byte)
        raw = shorten(buffer.text[buffer.position : buffer.position + 600])
        if not self._skip_malformed(error_at):
            reason += "; no readable element follows"
        buffer.drop_passed()
        return MalformedElement(reason, raw, line, byte)

    def _decode_value(self) -> tuple[Any, str, int]:
        """Return (value, "", 0) and advance, or (None, reason, position of the error)."""
        buffer = self.buffer
        while True:
            cut = not buffer.is_at_end
            try:
                value, end = _DECODER.raw_decode(buffer.text, buffer.position)
            except json.JSONDecodeError as error:
                at = error.pos
                near = at > len(buffer.text) - _NEAR_END or error.msg.startswith("Unterminated")
                reason = f"invalid JSON: {error.msg}"
            except (ValueError, RecursionError) as error:  # too many digits or brackets
                at, near, reason = buffer.position, False, f"invalid JSON: {error}"
            else:
                whole = buffer.text[end - 1] in '"]}' or end < len(buffer.text) - _NEAR_END
                if whole or not cut:  # otherwise a number may continue: 1.5e is read as 1.5
                    buffer.advance(end)
                    return value, "", 0
                at, near, reason = end, True, ""
            if not (near and cut):
                return None, reason, at
            if len(buffer.text) - buffer.position > MAX_ELEMENT:
                return None, f"longer than {MAX_ELEMENT:,} characters", buffer.position
            buffer.read_more()

    def _skip_malformed(self, error_at: int) -> bool:
        """Move behind a malformed element; return False if no other element follows."""
        buffer = self.buffer
        beyond = error_at - buffer.position  # relative, because the buffer may move
        end = self._find_balanced_end(beyond + self.search_limit)
        self.search_limit = (
            min(2 * self.search_limit, MAX_SEARCH)
            if end
            else max(self.search_limit // 2, MIN_SEARCH)
        )
        if end:
            buffer.advance(buffer.position + end)
            return True
        string = _RESTART_IN_STRING.search(buffer.text, buffer.position, buffer.position + beyond)
        beyond = string.start() - buffer.position if string else beyond
        while True:
            first = buffer.position + max(1, beyond - _NEAR_END)
            for match in _RESTART.finditer(buffer.text, first):
                if match.end() >= buffer.position + beyond:
                    buffer.advance(match.end())
                    return True
            buffer.advance(max(len(buffer.text) - _NEAR_END, buffer.position))
            beyond = 0
            if not buffer.read_more():
                buffer.advance(len(buffer.text))
                return False

    def _find_balanced_end(self, limit: int) -> int:
        """Return the length of the value by its brackets; 0 if they do not match."""
        buffer = self.buffer
        if buffer.text[buffer.position] not in '"[{':
            match = _SCALAR.match(buffer.text, buffer.position)
            return match.end() - buffer.position if match else 1
        scan = BracketCounter()
        done = 0
        while True:
            end = scan.feed(buffer.text, buffer.position + done, buffer.position + limit)
            if end is not None:
                return end - buffer.position if scan.is_balanced else 0
            done = len(buffer.text) - buffer.position
            if done >= limit or not buffer.read_more():
                return 0

    def _skip_value(self) -> None:
        buffer = self.buffer
        if buffer.text[buffer.position] not in '"[{':
            while True:
                match = _SCALAR.match(buffer.text, buffer.position)
                if match is None:
                    return
                buffer.advance(match.end())
                if buffer.position < len(buffer.text) or not buffer.read_more():
                    return
        scan = BracketCounter()
        while (end := scan.feed(buffer.text, buffer.position)) is None:
            buffer.advance(len(buffer.text))
            if not buffer.read_more():
                return
        buffer.advance(end)

    def _make_malformed(self, reason: str) -> MalformedElement:
        buffer = self.buffer
        raw = buffer.text[buffer.position : buffer.position + 60]
        return MalformedElement(reason, shorten(raw), buffer.line, buffer.byte)


class Buffer:
    """Sliding window of the decoded text of a file."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self._has_begun = False
        self.text = ""
        self.position = 0
        self.line = 1
        self.byte = 0
        self.is_at_end = False
        self.break_reason = ""

    def read_more(self) -> bool:
        """Extend the buffer and drop passed text; return False at the end of the file."""
        if self.is_at_end:
            return False
        rest = self.text[self.position :]
        try:
            raw = self._file.read(max(BLOCK_BYTES, len(rest)))
        except (EOFError, OSError, zlib.error) as error:
            raw, self.break_reason = b"", f"truncated or damaged file: {error}"
        if not self._has_begun and raw:
            self._has_begun = True
            if raw.startswith(codecs.BOM_UTF8):
                raw, self.byte = raw[3:], 3
        self.is_at_end = not raw
        self.text, self.position = rest + self._decoder.decode(raw, final=self.is_at_end), 0
        return True

    def drop_passed(self) -> None:
        """Drop long passed text: `json` counts the lines before each error, in quadratic time."""
        if self.position >= MAX_PASSED:
            self.text, self.position = self.text[self.position :], 0

    def advance(self, to: int) -> None:
        """Move to a later position."""
        passed = self.text[self.position : to]
        self.line += passed.count("\n")
        self.byte += len(passed) if passed.isascii() else len(passed.encode("utf-8"))
        self.position = to

    def find_next_character(self) -> str:
        """Skip white space and commas; return the next character, "" at the end."""
        while True:
            match = cast("re.Match[str]", _SPACE.match(self.text, self.position))
            self.advance(match.end())
            if self.position < len(self.text):
                return self.text[self.position]
            if not self.read_more():
                return ""


class BracketCounter:
    """Finder of the end of a value by brackets outside strings."""

    def __init__(self) -> None:
        self.is_balanced = True
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
                self.is_balanced &= self._open.pop() == character
            if not self._open and not self._in_string:
                return at
        return None
