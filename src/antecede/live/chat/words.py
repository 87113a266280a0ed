"""Sanitized text of other members for a terminal, and its width."""

from __future__ import annotations

import unicodedata
from typing import Final

from antecede.errors import MissingExtraError

try:
    from wcwidth import wcswidth, wcwidth
except ImportError as error:
    raise MissingExtraError("antecede chat", "live") from error

MAX_BYTES: Final = 1 << 16
"""Limit of a message's text, for sending and display."""
JOINER: Final = "\u200d"
"""Zero-width joiner of emoji, the only format character that passes."""
TAB_CELLS: Final = 4
MAX_MARKS: Final = 4
QUOTED: Final = set(":;,[]()<>«»“”\"'`/|↳└├│")
"""Characters that put a name in quotes."""


def text_of(payload: bytes) -> str:
    """Return a payload as text; invalid UTF-8 becomes U+FFFD, and a long text is shortened."""
    whole = payload[:MAX_BYTES].decode(errors="replace")
    left = len(payload) - MAX_BYTES
    return f"{whole} [... {left:,} more bytes]" if left > 0 else whole


def sanitize(text: str) -> str:
    """Return a text without cursor movement, hidden or reordered parts, and colours. Control
    characters become pictures (U+2400 and on). Format characters, such as bidirectional ones,
    become U+FFFD unless they join emoji. Line breaks stay.
    """
    text = text.replace("\r\n", "\n").replace("\t", " " * TAB_CELLS)
    out: list[str] = []
    marks = 0
    for c in text:
        marks = marks + 1 if unicodedata.combining(c) else 0
        if marks <= MAX_MARKS:
            out.append(c if c == "\n" or c.isprintable() or c == JOINER else _picture(c))
    return "".join(out)


def _picture(c: str) -> str:
    if ord(c) < 0x20:
        return chr(0x2400 + ord(c))
    if c == "\x7f":
        return "\u2421"
    return " " if unicodedata.category(c) == "Zs" else "\ufffd"


def one_line(text: str) -> str:
    """Return a sanitized text on one line."""
    return " ".join(sanitize(text).split())


def name_of(name: str) -> str:
    """Return a member's name for a line, in quotes if it could be ambiguous."""
    clean = one_line(name)
    plain = clean == name and not (" " in name or set(name) & QUOTED or name[0].isdigit())
    return clean if plain else f"“{clean}”"


def cells(text: str) -> int:
    """Return the terminal cells of a sanitized line."""
    width = wcswidth(text)
    return width if width >= 0 else len(text)


def shorten(text: str, most: int) -> str:
    """Return the beginning of a sanitized line in at most `most` cells."""
    if cells(text) <= most:
        return text
    return _head(text, most - 1)[0].rstrip() + "…"


def wrap_lines(text: str, most: int | None) -> list[str]:
    """Return the lines of a sanitized text, each of at most `most` cells. None: unlimited."""
    lines = text.split("\n")
    if most is None:
        return lines
    return [part for line in lines for part in _fold_line(line, max(most, 8))]


def _fold_line(line: str, most: int) -> list[str]:
    found: list[str] = []
    while cells(line) > most:
        head, _ = _head(line, most)
        at = head.rfind(" ")
        head = head[:at] if at > 0 else head
        found.append(head.rstrip())
        line = line[len(head) :].lstrip()
    return [*found, line]


def _head(text: str, most: int) -> tuple[str, int]:
    """Return as many characters as fit into `most` cells, at least one, and their cells."""
    used = at = 0
    for at, c in enumerate(text, 1):
        used += max(0, wcwidth(c))
        if used > most and at > 1:
            return text[: at - 1], used
    return text[:at], used


def ascii_only(line: str) -> str:
    """Return a line in ASCII, with escapes for other characters."""
    return line.translate(_ASCII).encode("ascii", "backslashreplace").decode("ascii")


_ASCII: Final = str.maketrans(
    {"“": '"', "”": '"', "…": "...", "–": "-", "’": "'", "├": "|", "└": "`", "│": "|", "─": "-"}
    | {"↳": "->", "·": "."}
)
