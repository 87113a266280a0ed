"""Report of held rows: wait start, missing causes, dependents."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from antecede.tables.order.stream.held import HeldRows, HeldSegments
from antecede.tables.order.stream.kernels.interning import Text
from antecede.tables.order.stream.kernels.rows import ABANDONED_CAUSE, SETTLED
from antecede.tables.order.stream.storage.blobs import BlobStore, ShardParts, unpack

Key = tuple[int, bytes, int]

MAX_ROOTS = 20
MAX_COUNTED_ROWS = 50_000
"""Rows in a shard up to which dependents are counted."""
_BLOCK = 4096


class WaitingRow(NamedTuple):
    """Held row; `missing_causes` are the absent causes at the root of its wait."""

    group: str
    name: str
    since: int
    causes: list[str]
    missing_causes: list[str]
    more: bool
    behind: int | None
    row: dict[str, Any]


def list_waiting_rows(blobs: BlobStore) -> list[WaitingRow]:
    """Return the rows that a shard holds, the longest wait first."""
    head = blobs.get("head")
    if head is None:
        return []
    arrays = unpack(bytearray(head))
    held = HeldSegments(ShardParts(blobs))
    held.load(arrays)
    rows, tables = held.read_all()
    users = [row for table in tables for row in table.to_pylist()] or [{}] * rows.size
    counted = bool(arrays["head"][1])
    return _describe_rows(rows, users, counted)


def _describe_rows(rows: HeldRows, users: list[dict[str, Any]], counted: bool) -> list[WaitingRow]:
    keys = _make_keys(rows.serial, rows.name, rows.number)
    owner = np.repeat(np.arange(rows.size), np.diff(rows.first))
    wanted = _make_keys(rows.serial[owner], rows.cause, rows.cause_number)
    open_ = (rows.edge_flag & (ABANDONED_CAUSE | SETTLED)) == 0
    needs: list[list[Key]] = [[] for _ in keys]
    for edge in np.flatnonzero(open_):
        needs[owner[edge]].append(wanted[edge])
    place = {key: row for row, key in enumerate(keys)}
    order = _sort_causes_first(needs, place)
    roots, more = _find_roots(needs, place, order)
    behind = (
        _count_dependents(needs, place, order)
        if len(keys) <= MAX_COUNTED_ROWS
        else [None] * len(keys)
    )

    def text(key: Key) -> str:
        name = key[1].decode("utf-8", "backslashreplace")
        return f"{name}:{key[2]}" if counted else name

    found = [
        WaitingRow(
            rows.group.get(row).decode("utf-8", "backslashreplace"),
            text(key),
            int(rows.arrived[row]),
            [text(cause) for cause in needs[row]],
            [text(cause) for cause in roots[row]],
            more[row],
            behind[row],
            users[row],
        )
        for row, key in enumerate(keys)
    ]
    return sorted(found, key=lambda waiting: (waiting.since, waiting.group, waiting.name))


def _make_keys(serial: Any, name: Text, number: Any) -> list[Key]:
    return [(int(s), name.get(k), int(number[k])) for k, s in enumerate(serial)]


def _sort_causes_first(needs: list[list[Key]], place: dict[Key, int]) -> list[int]:
    left = [sum(cause in place for cause in causes) for causes in needs]
    after: list[list[int]] = [[] for _ in needs]
    for row, causes in enumerate(needs):
        for cause in causes:
            if cause in place:
                after[place[cause]].append(row)
    order = [row for row, count in enumerate(left) if count == 0]
    for row in order:
        for other in after[row]:
            left[other] -= 1
            if left[other] == 0:
                order.append(other)
    return order


def _find_roots(
    needs: list[list[Key]], place: dict[Key, int], order: list[int]
) -> tuple[list[list[Key]], list[bool]]:
    roots: list[list[Key]] = [[] for _ in needs]
    more = [False] * len(needs)
    for row in order:
        found: dict[Key, None] = {}
        for cause in needs[row]:
            if cause in place:
                found.update(dict.fromkeys(roots[place[cause]]))
                more[row] |= more[place[cause]]
            else:
                found[cause] = None
        more[row] |= len(found) > MAX_ROOTS
        roots[row] = list(found)[:MAX_ROOTS]
    return roots, more


def _count_dependents(
    needs: list[list[Key]], place: dict[Key, int], order: list[int]
) -> list[int | None]:
    behind: list[int | None] = [0] * len(needs)
    for start in range(0, len(order), _BLOCK):
        block = {row: bit for bit, row in enumerate(order[start : start + _BLOCK])}
        masks = [0] * len(needs)
        for row in order:
            mask = 0
            for cause in needs[row]:
                other = place.get(cause)
                if other is not None:
                    mask |= masks[other]
                    if other in block:
                        mask |= 1 << block[other]
            masks[row] = mask
        counts = [0] * len(block)
        for mask in filter(None, masks):
            while mask:
                low = mask & -mask
                counts[low.bit_length() - 1] += 1
                mask ^= low
        for row, bit in block.items():
            behind[row] = counts[bit]
    return behind
