"""Ids of several parts, such as the source and the id of a CloudEvent, as one text.

The parts are joined by ":", so that `--id topic --id partition --id offset` gives orders:3:17. A
colon or backslash in any part but the last has a backslash before it: no two ids look alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def joined(parts: Sequence[str]) -> str:
    """Return the id that some parts make."""
    *first, last = parts
    return ":".join([*(part.replace("\\", r"\\").replace(":", r"\:") for part in first), last])


def could_be_joined(text: str, parts: int) -> bool:
    """Return whether a text has as many parts as an id needs."""
    return text.replace(r"\\", "").replace(r"\:", "").count(":") >= parts - 1


def zipped(cells: Sequence[Sequence[object]]) -> Iterator[tuple[object, ...]]:
    """Yield the causes that the columns of their parts hold; a single value goes with each.

    Raises ValueError for lists of different lengths.
    """
    sizes = {len(cell) for cell in cells} - {1}
    if len(sizes) > 1:
        raise ValueError(f"the parts of causes are lists of different lengths: {sorted(sizes)}")
    size = sizes.pop() if sizes else 1
    yield from zip(*(cell if len(cell) != 1 else list(cell) * size for cell in cells), strict=True)
