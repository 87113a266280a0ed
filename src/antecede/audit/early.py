"""Deliveries before a cause, in an audit: the meter's count, and what was not counted.

An audit counts edges by the rows of the messages themselves. Where a trace tells of receipts or
deliveries, too, these are where a cause comes late, so they are counted by `meter.early` and never
passed over: what could not be counted says why.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from antecede.errors import InputError
from antecede.meter.early import Early, early_deliveries
from antecede.trace.schema import DELIVER, RECEIVE, SEND
from antecede.words import count_and_part, counted

NOTHING_SENT = "no row tells of a sending"
NOT_OF_OTHERS = "none is of a message that a row says another member to have sent"


def early_details(table: pa.Table) -> dict[str, Any]:
    """Return what `details.early` of a report is, for a table with receipts or deliveries.

    Keys: `judged` ("deliveries", or "receipts" where no row tells of a delivery), `rows` (how many
    rows are of that kind), `count` (how many messages that came to another member were looked at),
    `by` (what causality goes by -> how many came before a cause), `first` (the first of them as a
    row of `meter.violations.SCHEMA`, or None), `in_part` (messages that came to some receiving
    members only: where one never came it is not missed), and `not_counted` (why nothing could be
    counted, or None).
    """
    kinds = table["kind"].to_pylist()
    judged = DELIVER if DELIVER in kinds else RECEIVE
    why, found = None, Early()
    try:
        found = early_deliveries(table)
    except InputError as error:
        why = error.message
    if not found.deliveries and why is None:
        why = NOT_OF_OTHERS if SEND in kinds else NOTHING_SENT
    first = found.table.sort_by("file_order").slice(0, 1).to_pylist()
    return {
        "judged": "deliveries" if judged == DELIVER else "receipts",
        "rows": kinds.count(judged),
        "count": found.deliveries,
        "by": dict(found.by) if found.deliveries else {},
        "first": first[0] if first else None,
        "in_part": found.partial,
        "not_counted": why,
    }


def merged(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return `details.early` of a trace from those of disjoint sets of its runs; None of none.

    Only what every part counts is added up, so that no sum stands for a part of the trace.
    """
    given = list(parts)
    counting = [part for part in given if part["count"]] or given[:1]
    if not given:
        return None
    firsts = [part["first"] for part in counting if part["first"]]
    judged = {part["judged"] for part in counting}
    common = [name for name in counting[0]["by"] if all(name in part["by"] for part in counting)]
    why = next((part["not_counted"] for part in given if part["not_counted"]), None)
    return {
        "judged": "receipts" if judged == {"receipts"} else "deliveries",
        "rows": sum(part["rows"] for part in given),
        "count": sum(part["count"] for part in counting),
        "by": {name: sum(part["by"][name] for part in counting) for name in common},
        "first": min(firsts, key=lambda row: row["file_order"], default=None),
        "in_part": sum(part["in_part"] for part in given),
        "not_counted": why,
    }


def findings(found: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (what, advice) on deliveries before a cause, and on what was not compared."""
    if any(found["by"].values()):
        what = f"{_early(found)} came before a cause{_first(found['first'])}"
        yield what, "not in the table of edges, which goes by the rows of sends: see antecede meter"
    if found["not_counted"]:
        yield (
            f"{_words(found, found['rows'])} not compared with causes: {found['not_counted']}",
            "the counts below go by the messages themselves",
        )


def nothing_early(found: Mapping[str, Any]) -> str:
    """Return what an audit without findings adds of deliveries; "" where none were counted."""
    if not found["count"]:
        return ""
    ways = " and ".join(f"by {name}" for name in found["by"])
    none = f", and none of {_words(found, found['count'])} came before a cause, {ways}"
    if not found["in_part"]:
        return none
    return (
        f"{none} ({counted(found['in_part'], 'message')} did not come to every member, and a cause "
        "that was lost on its way is not missed: antecede meter --to-everybody)"
    )


def counts(found: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield rows of the table of counts."""
    for name, early in found["by"].items():
        part = f"{early / found['count']:.1%} of {found['count']:,}"
        yield f"{found['judged']} before a cause, by {name}", f"{early:,}", part
    if found["count"] and found["in_part"]:
        yield "messages that came to some members only", f"{found['in_part']:,}", ""


def _early(found: Mapping[str, Any]) -> str:
    (name, early), *others = found["by"].items()
    also = "".join(f", {count:,} by {other}" for other, count in others)
    part = count_and_part(early, found["count"])
    return f"{part} of {_words(found, found['count'])} (by {name}{also})"


def _words(found: Mapping[str, Any], count: int) -> str:
    one = "receipt" if found["judged"] == "receipts" else "delivery"
    return counted(count, one, found["judged"])


def _first(first: Mapping[str, Any] | None) -> str:
    if first is None:
        return ""
    where = first["member"] + ("" if first["run"] is None else f" of {first['run']}")
    when = "never came" if first["cause_order"] is None else "came later"
    return f"; the first: {first['message']} at {where}, whose cause {first['cause']} {when}"
