"""The head of a scene, line by line: replaced, added, taken away; members in it renamed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from antecede.lab.play.editable_scenario import SETTING, EditError

Key = tuple[str, ...]


def changed_head(head: Sequence[str], line: str, removes: bool = False) -> tuple[str, ...]:
    """Return the head with a line in place of the one that says the same thing, or without it.

    The same thing: the title, the clock of the same member, the bounds of the same channel, and so
    on. Raises EditError for a line that sets no scene, and where there is none to take away.
    """
    key = _key(line)
    if key is None:
        raise EditError(f"'{line}' sets no scene; lines that do begin with {', '.join(SETTING)}")
    there = [k for k, one in enumerate(head) if _key(one) == key]
    if removes or line in ("title", "source"):
        if not there:
            raise EditError(f"there is no line '{' '.join(key)}'")
        return tuple(one for k, one in enumerate(head) if k not in there)
    if there:
        kept = ((k, one) for k, one in enumerate(head) if k not in there[1:])
        return tuple(line if k == there[0] else one for k, one in kept)
    place = _place(head, key[0])
    return (*head[:place], line, *head[place:])


def renamed_head(head: Sequence[str], name: Callable[[str], str | None]) -> tuple[str, ...]:
    """Return the head with every member's name as `name` returns it; None: the member is gone."""
    lines = (_renamed(line, name) for line in head)
    return tuple(line for line in lines if line is not None)


def _words(line: str) -> list[str]:
    words = line.split()
    return words if words and words[0] in SETTING else []


def _key(line: str) -> Key | None:
    """Return what a line is about; None for one that sets no scene."""
    word, *rest = _words(line) or [""]
    if not word:
        return None
    if word == "bounds":
        return (word, *(one for one in rest if "=" not in one))
    if word in ("internal", "clock", "subscribe"):
        return (word, *rest[:1])
    return (word,)


def _place(head: Sequence[str], word: str) -> int:
    """Return where a new line belongs: behind those of its kind, and of kinds before it."""
    rank = SETTING.index(word)
    places = [
        k + 1
        for k, line in enumerate(head)
        if (key := _key(line)) is not None and SETTING.index(key[0]) <= rank
    ]
    return max(places, default=0)


def _renamed(line: str, name: Callable[[str], str | None]) -> str | None:
    word, *rest = _words(line) or [""]
    if not word or word in ("title", "source", "protocol"):
        return line
    if word in ("members", "external"):
        made = [one for one in map(name, rest) if one is not None]
        kept = " ".join((word, *made)) if made else None
    elif word == "internal":
        over, peers = name(rest[0].removesuffix(":")), map(name, rest[1:])
        left = [one for one in peers if one is not None]
        kept = " ".join((word, f"{over}:", *left)) if over is not None and left else None
    elif word == "bounds":
        of = [one if "=" in one else name(one) for one in rest]
        kept = None if None in of else " ".join((word, *(one for one in of if one is not None)))
    else:
        at = name(rest[0])
        kept = None if at is None else " ".join((word, at, *rest[1:]))
    return line if kept is not None and kept.split() == [word, *rest] else kept
