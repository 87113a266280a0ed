"""Causes in cells of CSV, which has no types: words for null, lists in brackets, `1.0` for 1.

Cells are read so only where the ids of the first rows leave no doubt: a word for null is none of
them, no id begins with a bracket, all ids are whole numbers without a point. What is read so is
counted, by kind, and told.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from antecede.tables.trace.causes import AS_LIST, AS_NULL, AS_WHOLE

NULLS = frozenset({"nan", "none", "null", "\\n", "<na>", "nat", "nil", "n/a", "na", "#n/a"})
"""Words for null, as pandas, Python, databases and sheets write them, in lower case."""
WHOLE, POINT = re.compile(r"-?[0-9]+\Z"), re.compile(r"(-?[0-9]+)\.0+\Z")
_BRACKETS = {"[": "]", "{": "}", "(": ")"}
_VALUE = re.compile(
    r"""\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|([^\s,'"\[\]{}()][^,'"\[\]{}()]*?))"""
    r"""\s*(?:(,)|\Z|(?=['"]))"""
)
"""A quoted or bare value, and the comma after it; NumPy puts none between quoted values."""
_NUMBERS = re.compile(r"-?[0-9.]+(?:\s+-?[0-9.]+)+\Z")


class TextCauses:
    """Reading of the cells of one table, chosen by the ids of its first rows."""

    def __init__(self, ids: Collection[str], causes: Iterable[str], counts: dict[str, int]) -> None:
        """Look at the ids and causes of the first rows; `counts` takes what is read so."""
        self.nulls = NULLS - {one.lower() for one in ids}
        starts = {one.lstrip()[:1] for one in ids}
        self.brackets = {one: _BRACKETS[one] for one in _BRACKETS if one not in starts}
        self.counts = counts
        self.whole = False
        written = [one for cell in causes for one in self._listed(cell) or [cell]]
        written = [one for one in written if one.strip() and not self._is_null(one)]
        if ids and written:
            self.whole = all(map(WHOLE.match, ids)) and all(map(POINT.match, written))

    def values(self, cell: str) -> list[str] | None:
        """Return the causes in a cell, None where it is one id as it stands."""
        if self._is_null(cell):
            self.counts[AS_NULL] += 1
            return []
        listed = self._listed(cell)
        if listed is not None:
            self.counts[AS_LIST] += 1
            return [self._whole(one) for one in listed if not self._is_null(one)]
        whole = self._whole(cell)
        return None if whole is cell else [whole]

    def _is_null(self, text: str) -> bool:
        return text.strip().lower() in self.nulls

    def _listed(self, cell: str) -> list[str] | None:
        text = cell.strip()
        there = len(text) > 1 and self.brackets.get(text[0]) == text[-1]
        return list_in(text[1:-1]) if there else None

    def _whole(self, text: str) -> str:
        match = POINT.match(text.strip()) if self.whole else None
        if match is None:
            return text
        self.counts[AS_WHOLE] += 1
        return match[1]


def list_in(text: str) -> list[str] | None:
    """Return the values between brackets: quoted, or bare between commas; None for all else."""
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


def doubtful(whole: bool) -> str:
    """Return the expression of Arrow that finds the cells to look at one by one."""
    words = "|".join(re.escape(one) for one in sorted(NULLS))
    return r"(?i)^\s*([\[{(]|(" + words + r")\s*$)" + (r"|\.0+\s*$" if whole else "")
