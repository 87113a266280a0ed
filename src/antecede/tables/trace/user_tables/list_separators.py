"""Several ids in one cell, which nobody said to take apart: told by the ids that are there."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from antecede.tables.trace.user_tables.text_causes import NULLS, POINT, list_in

SEPARATORS = (";", ",", "|", " ", "/")
"""What people write between several ids in one cell."""


def several_in_one(nowhere: Iterable[str], known: Collection[str]) -> dict[str, Any]:
    """Tell whether ids that are nowhere are several known ones, with something between them.

    Return {} or the `separator` of the most of them, how many `references` it has, an `example`,
    and `others`, how many each other separator has. A reference counts once, by the first
    separator that takes it apart into ids that are all there.
    """
    found: dict[str, list[str]] = {}
    nowhere = list(nowhere)
    for name in nowhere:
        for separator in SEPARATORS:
            if separator in name and all(part.strip() in known for part in name.split(separator)):
                found.setdefault(separator, []).append(name)
                break
    if not found:
        return _as_text(nowhere, known)
    most = max(found, key=lambda separator: len(found[separator]))
    others = {separator: len(names) for separator, names in found.items() if separator != most}
    return {
        "separator": most,
        "references": len(found[most]),
        "example": found[most][0],
        "others": others,
    }


def _as_text(nowhere: Sequence[str], known: Collection[str]) -> dict[str, Any]:
    """Tell whether ids that are nowhere stand for null, for lists or for whole numbers."""
    found: dict[str, list[str]] = {}
    for name in nowhere:
        text = name.strip()
        listed = list_in(text[1:-1]) if text[:1] in "[{(" and text[-1:] in "]})" else None
        point = POINT.match(text)
        if text.lower() in NULLS:
            found.setdefault("null", []).append(name)
        elif listed and all(part in known for part in listed):
            found.setdefault("list", []).append(name)
        elif point is not None and point[1] in known:
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
    """Return what was found and what to say."""
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
        f"{are} several ids in one{split}, as in {hint['example']!r}: all of its parts are there",
        f"say --separator {hint['separator']!r}"
        + ("; one separator serves, so write the others with it" if by else ""),
    )
