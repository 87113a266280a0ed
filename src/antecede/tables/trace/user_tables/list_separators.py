"""Found of cells of causes that are not single ids, by the ids of the table.

- Several ids with a separator give a hint to the user.
- CSV has no types: words for null, lists in brackets, `1.0` for 1. They are parsed only if the ids
  of the first rows are unambiguous, and counted by kind.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from antecede.tables.trace.causes import AS_LIST, AS_NULL, AS_WHOLE

NULLS = frozenset({"nan", "none", "null", "\\n", "<na>", "nat", "nil", "n/a", "na", "#n/a"})
"""Words for null of pandas, Python, databases and spreadsheets, in lower case."""
WHOLE, POINT = re.compile(r"-?[0-9]+\Z"), re.compile(r"(-?[0-9]+)\.0+\Z")
_BRACKETS = {"[": "]", "{": "}", "(": ")"}
_VALUE = re.compile(
    r"""\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|([^\s,'"\[\]{}()][^,'"\[\]{}()]*?))"""
    r"""\s*(?:(,)|\Z|(?=['"]))"""
)
"""Value and the comma after it; NumPy omits it between quoted values."""
_NUMBERS = re.compile(r"-?[0-9.]+(?:\s+-?[0-9.]+)+\Z")
SEPARATORS = (";", ",", "|", " ", "/")


def several_in_one(missing: Iterable[str], known_ids: Collection[str]) -> dict[str, Any]:
    """Return a hint if missing ids are known ids with a separator between them.

    The hint is {}, or has the most frequent `separator`, the number of its `references`, an
    `example`, and counts of `others`. A reference counts for its first separator with known parts.
    """
    found: dict[str, list[str]] = {}
    missing = list(missing)
    for name in missing:
        for separator in SEPARATORS:
            if separator in name and all(
                part.strip() in known_ids for part in name.split(separator)
            ):
                found.setdefault(separator, []).append(name)
                break
    if not found:
        return _detect_text_form(missing, known_ids)
    most = max(found, key=lambda separator: len(found[separator]))
    others = {separator: len(names) for separator, names in found.items() if separator != most}
    return {
        "separator": most,
        "references": len(found[most]),
        "example": found[most][0],
        "others": others,
    }


def list_parts(missing: Iterable[str]) -> set[str]:
    """Return the ids whose presence `several_in_one` tests for missing ids."""
    parts: set[str] = set()
    for name in missing:
        for separator in SEPARATORS:
            if separator in name:
                parts.update(part.strip() for part in name.split(separator))
        parts.update(_parse_text_list(name) or [])
        if point := POINT.match(name.strip()):
            parts.add(point[1])
    return parts


def _parse_text_list(name: str) -> list[str] | None:
    text = name.strip()
    return parse_list(text[1:-1]) if text[:1] in "[{(" and text[-1:] in "]})" else None


def _detect_text_form(missing: Sequence[str], known_ids: Collection[str]) -> dict[str, Any]:
    found: dict[str, list[str]] = {}
    for name in missing:
        text = name.strip()
        listed = _parse_text_list(name)
        point = POINT.match(text)
        if text.lower() in NULLS:
            found.setdefault("null", []).append(name)
        elif listed and all(part in known_ids for part in listed):
            found.setdefault("list", []).append(name)
        elif point is not None and point[1] in known_ids:
            found.setdefault("point", []).append(name)
    if not found:
        return {}
    most = max(found, key=lambda kind: len(found[kind]))
    names = found[most]
    return {"separator": None, "kind": most, "references": len(names), "example": names[0]}


_REMEDIES = {
    "null": ("a word for null", "words for null", "save them as null, or as an empty text"),
    "list": ("a list as text", "lists as text", "save them as lists, or as JSON"),
    "point": (
        *("a whole number with a point", "whole numbers with a point"),
        "save causes as whole numbers (pandas: Int64)",
    ),
}


def words(hint: Mapping[str, Any]) -> tuple[str, str]:
    """Return the finding and the remedy of a hint."""
    if hint["separator"] is None:
        single, several, say = _REMEDIES[hint["kind"]]
        number = hint["references"]
        are = (
            f"1 of these references is {single}"
            if number == 1
            else (f"{number:,} of these references are {several}")
        )
        return f"{are}, as in {hint['example']!r}", say
    count = hint["references"] + sum(hint["others"].values())
    are = "1 of these references is" if count == 1 else f"{count:,} of these references are"
    by = ", ".join(f"{n:,} with {separator!r}" for separator, n in hint["others"].items())
    split = f" ({hint['references']:,} with {hint['separator']!r}, {by})" if by else ""
    return (
        f"{are} several ids in one{split}, as in {hint['example']!r}: all of its parts exist",
        f"give --list-separator {hint['separator']!r}"
        + ("; only one separator is supported, so convert the others" if by else ""),
    )


class TextCauses:
    """Parser of text cells of causes, configured by the ids of the first rows."""

    def __init__(self, ids: Collection[str], causes: Iterable[str], counts: dict[str, int]) -> None:
        self.nulls = NULLS - {one.lower() for one in ids}
        starts = {one.lstrip()[:1] for one in ids}
        self.brackets = {one: _BRACKETS[one] for one in _BRACKETS if one not in starts}
        self.counts = counts
        self.has_whole_ids = False
        written = [one for cell in causes for one in self._parse_list(cell) or [cell]]
        written = [one for one in written if one.strip() and not self._is_null(one)]
        if ids and written:
            self.has_whole_ids = all(map(WHOLE.match, ids)) and all(map(POINT.match, written))

    def parse(self, cell: str) -> list[str] | None:
        """Return the causes in a cell; None if the cell is one id."""
        if self._is_null(cell):
            self.counts[AS_NULL] += 1
            return []
        listed = self._parse_list(cell)
        if listed is not None:
            self.counts[AS_LIST] += 1
            return [self._parse_whole(one) for one in listed if not self._is_null(one)]
        whole = self._parse_whole(cell)
        return None if whole is cell else [whole]

    def _is_null(self, text: str) -> bool:
        return text.strip().lower() in self.nulls

    def _parse_list(self, cell: str) -> list[str] | None:
        text = cell.strip()
        there = len(text) > 1 and self.brackets.get(text[0]) == text[-1]
        return parse_list(text[1:-1]) if there else None

    def _parse_whole(self, text: str) -> str:
        match = POINT.match(text.strip()) if self.has_whole_ids else None
        if match is None:
            return text
        self.counts[AS_WHOLE] += 1
        return match[1]


def parse_list(text: str) -> list[str] | None:
    """Return the values of a list without its brackets: quoted or bare; None if malformed."""
    if _NUMBERS.match(text.strip()):
        return text.split()
    values: list[str] = []
    at = 0
    while at < len(text.rstrip()):
        match = _VALUE.match(text, at)
        if match is None:
            return None
        single, double, bare, _ = match.groups()
        if bare is not None:
            values.append(bare)
        else:
            values.append(re.sub(r"\\(.)", r"\1", double if single is None else single))
        at = match.end()
    return values


def make_doubtful_pattern(has_whole_ids: bool) -> str:
    """Return the Arrow pattern of cells that `TextCauses` must parse."""
    words = "|".join(re.escape(one) for one in sorted(NULLS))
    return r"(?i)^\s*([\[{(]|(" + words + r")\s*$)" + (r"|\.0+\s*$" if has_whole_ids else "")
