"""Rows of a member that are out of order by their own timestamps.

A member's knowledge follows the file order of its rows. Stamps that contradict it are wrong, or
the file order is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from antecede.formatting import pluralize
from antecede.tables.kernels import encode_column
from antecede.tables.trace import DELIVER, RECEIVE, SEND

pc: Any = pyarrow.compute  # incomplete stubs

TIMES = ("arrival", "send_time")
"""Stamps of a member's rows, each compared only with itself."""
_PLACE_COLUMNS = ("run", "member", "id", "source", "line", "file_order")


def find_out_of_order_rows(events: pa.Table) -> dict[str, dict[str, Any]]:
    """Return, by time column, the rows after a row of their member with a later time.

    `rows` counts them, `first` locates the first one. {} without arrivals.
    """
    if "kind" not in events.column_names or "member" not in events.column_names:
        return {}
    kinds = pa.array([SEND, RECEIVE, DELIVER])
    is_usable = pc.and_(pc.is_in(events["kind"], value_set=kinds), events["member"].is_valid())
    rows = events.filter(is_usable)
    if not {RECEIVE, DELIVER} & {*rows["kind"].unique().to_pylist()}:
        return {}
    found = {}
    for name in TIMES:
        if name in rows.column_names:
            timed = rows.filter(rows[name].is_valid())
            back = _find_rows(timed, name)
            if len(back):
                first = timed.slice(int(back[0]), 1).to_pylist()[0]
                place = {column: first.get(column) for column in _PLACE_COLUMNS}
                found[name] = {"rows": len(back), "first": place}
    return found


def _find_rows(timed: pa.Table, name: str) -> Any:
    members, member = encode_column(timed["member"])
    if "run" in timed.column_names:
        member = encode_column(timed["run"], nulls=True)[1] * len(members) + member
    order = np.argsort(member, kind="stable")
    time = timed[name].to_numpy()[order]
    back = (member[order][1:] == member[order][:-1]) & (time[1:] < time[:-1])
    return np.sort(order[1:][back])


def describe_out_of_order_rows(found: Mapping[str, Mapping[str, Any]]) -> tuple[str, str] | None:
    """Return the contradiction and the advice, or None."""
    for name, counts in found.items():
        row, first = pluralize(counts["rows"], "row"), counts["first"]
        where = [str(first["source"])] if first["source"] and first["line"] else []
        where += [f"line {first['line']}"] if first["line"] else []
        where += [f"{first['id']} at {first['member']}"]
        where[-1] += f" of {first['run']}" if first["run"] else ""
        return (
            f"{row} with an earlier {name} than the previous row of the same member: "
            f"the first is {', '.join(where)}",
            "a member's rows are taken in file order, never by their times: if the file has "
            "another order than they happened in, sort each member's rows and count again",
        )
    return None


def merge_out_of_order_rows(
    parts: Iterable[Mapping[str, Mapping[str, Any]]],
) -> dict[str, dict[str, Any]]:
    """Return `find_out_of_order_rows` of a trace from those of disjoint sets of its runs."""
    given = list(parts)
    total = {}
    for name in TIMES:
        if there := [part[name] for part in given if name in part]:
            first = min(
                (counts["first"] for counts in there), key=lambda place: place["file_order"]
            )
            total[name] = {"rows": sum(counts["rows"] for counts in there), "first": first}
    return total
