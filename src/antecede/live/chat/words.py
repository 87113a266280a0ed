"""What others wrote, made harmless for a terminal, and how many cells it takes there."""

from __future__ import annotations

import unicodedata
from typing import Final

from antecede.errors import MissingExtraError

try:
    from wcwidth import wcswidth, wcwidth
except ImportError as error:
    raise MissingExtraError("antecede chat", "live") from error

MAX_BYTES: Final = 1 << 16
"""Of a message's text: what one may say, and what is shown of what others said."""
JOINER: Final = "\u200d"
"""Joins emoji: of all format characters the only one that is let through."""
TAB_CELLS: Final = 4
MAX_MARKS: Final = 4
"""Combining marks that one letter may carry."""
QUOTED: Final = set(":;,[]()<>«»“”\"'`/|↳└├│")
"""Characters with which a name could be taken for something else on a line."""


def text_of(payload: bytes) -> str:
    """Return what a message says, as text; what is no UTF-8 becomes U+FFFD, what is too long is cut
    and says so.
    """
    whole = payload[:MAX_BYTES].decode(errors="replace")
    left = len(payload) - MAX_BYTES
    return f"{whole} [... {left:,} bytes more]" if left > 0 else whole


def harmless(text: str) -> str:
    """Return a text in which nothing moves the cursor, hides, reorders or colours anything.

    Control characters become their pictures (U+2400 and on), format characters (such as those that
    turn the direction of writing) U+FFFD, unless they join emoji; line breaks stay.
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
    """Return a harmless text on one line."""
    return " ".join(harmless(text).split())


def name_of(name: str) -> str:
    """Return a member's name as it stands on a line: in quotes where it could be taken for more."""
    clean = one_line(name)
    plain = clean == name and not (" " in name or set(name) & QUOTED or name[0].isdigit())
    return clean if plain else f"“{clean}”"


def cells(text: str) -> int:
    """Return how many cells of a terminal a harmless text on one line takes."""
    width = wcswidth(text)
    return width if width >= 0 else len(text)


def shortened(text: str, most: int) -> str:
    """Return the beginning of a harmless text on one line, in at most so many cells."""
    if cells(text) <= most:
        return text
    return _head(text, most - 1)[0].rstrip() + "…"


def wrapped(text: str, most: int | None) -> list[str]:
    """Return the lines of a harmless text, each of at most so many cells; None: as they are."""
    lines = text.split("\n")
    if most is None:
        return lines
    return [part for line in lines for part in _folded(line, max(most, 8))]


def _folded(line: str, most: int) -> list[str]:
    """Fold one line at blanks, and amid a word only where it is too long for a line."""
    found: list[str] = []
    while cells(line) > most:
        head, _ = _head(line, most)
        at = head.rfind(" ")
        head = head[:at] if at > 0 else head
        found.append(head.rstrip())
        line = line[len(head) :].lstrip()
    return [*found, line]


def _head(text: str, most: int) -> tuple[str, int]:
    """Return as many characters as fit into so many cells, one at least, and their cells."""
    used = at = 0
    for at, c in enumerate(text, 1):
        used += max(0, wcwidth(c))
        if used > most and at > 1:
            return text[: at - 1], used
    return text[:at], used


def ascii_only(line: str) -> str:
    """Return a line for a terminal that shows nothing but ASCII: other characters as escapes."""
    return line.translate(_ASCII).encode("ascii", "backslashreplace").decode("ascii")


_ASCII: Final = str.maketrans(
    {"“": '"', "”": '"', "…": "...", "–": "-", "’": "'", "├": "|", "└": "`", "│": "|", "─": "-"}
    | {"↳": "->", "·": "."}
)
