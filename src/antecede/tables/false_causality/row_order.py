"""Rows of a member that are listed against their own times.

A member's knowledge goes by the order in which its rows are listed, never by their times: clocks
step and files need not have times. A contradiction means that one of them is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from antecede.formatting import counted
from antecede.tables.kernels import encode_column
from antecede.tables.trace import DELIVER, RECEIVE, SEND

pc: Any = pyarrow.compute  # its stubs know too few kinds of arrays

TIMES = ("arrival", "send_time")
"""Columns that may say when a row of a member happened, each compared with itself alone."""
_PLACE = ("run", "member", "id", "source", "line", "file_order")


def steps_back(events: pa.Table) -> dict[str, dict[str, Any]]:
    """Return, by column of times, the rows that are listed after a later row of their member.

    Sends, receipts and deliveries are compared with the row before of their member and run that has
    that time: `rows` counts them, `first` is the place of the first. {} without arrivals.
    """
    if "kind" not in events.column_names or "member" not in events.column_names:
        return {}
    kinds = pa.array([SEND, RECEIVE, DELIVER])
    told = pc.and_(pc.is_in(events["kind"], value_set=kinds), events["member"].is_valid())
    rows = events.filter(told)
    if not {RECEIVE, DELIVER} & {*rows["kind"].unique().to_pylist()}:
        return {}
    found = {}
    for name in TIMES:
        if name in rows.column_names:
            timed = rows.filter(rows[name].is_valid())
            back = _back(timed, name)
            if len(back):
                first = timed.slice(int(back[0]), 1).to_pylist()[0]
                place = {column: first.get(column) for column in _PLACE}
                found[name] = {"rows": len(back), "first": place}
    return found


def _back(timed: pa.Table, name: str) -> Any:
    """Return the rows whose time is before that of their member's row before [found]."""
    members, who = encode_column(timed["member"])
    if "run" in timed.column_names:
        who = encode_column(timed["run"], nulls=True)[1] * len(members) + who
    order = np.argsort(who, kind="stable")
    time = timed[name].to_numpy()[order]
    back = (who[order][1:] == who[order][:-1]) & (time[1:] < time[:-1])
    return np.sort(order[1:][back])


def words(found: Mapping[str, Mapping[str, Any]]) -> tuple[str, str] | None:
    """Return the contradiction and the advice, or None."""
    for name, one in found.items():
        row, first = counted(one["rows"], "row"), one["first"]
        where = [str(first["source"])] if first["source"] and first["line"] else []
        where += [f"line {first['line']}"] if first["line"] else []
        where += [f"{first['id']} at {first['member']}"]
        where[-1] += f" of {first['run']}" if first["run"] else ""
        return (
            f"{row} with an earlier {name} than the row of the same member listed before: "
            f"the first is {', '.join(where)}",
            "a member's rows go as listed, never by their times: if they were listed in another "
            "order than they happened in, sort each member's rows and count again",
        )
    return None


def merged(parts: Iterable[Mapping[str, Mapping[str, Any]]]) -> dict[str, dict[str, Any]]:
    """Return `steps_back` of a trace from that of disjoint sets of its runs."""
    given = list(parts)
    total = {}
    for name in TIMES:
        if there := [part[name] for part in given if name in part]:
            first = min((one["first"] for one in there), key=lambda place: place["file_order"])
            total[name] = {"rows": sum(one["rows"] for one in there), "first": first}
    return total
