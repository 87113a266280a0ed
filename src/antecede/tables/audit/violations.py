"""Deliveries before a cause, in an audit: the meter's count, and the rows not counted.

An audit counts edges by the rows of the messages themselves. Receipts and deliveries are where a
cause comes late; `tables.false_causality.violation_counts` counts them. Rows that cannot be counted
have a reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, NamedTuple

import pyarrow as pa

from antecede.errors import InputError
from antecede.formatting import counted
from antecede.tables.false_causality import (
    RELATIONS,
    REPLY,
    WORDS,
    Early,
    Tally,
    added,
    early_deliveries,
    judged,
    row_order,
    together,
    told,
    way,
)
from antecede.tables.trace import DELIVER, RECEIVE, SEND

NOTHING_SENT = "no row tells of a sending"
NOT_OF_OTHERS = "none is of a message that a row says another member to have sent"


def early_details(table: pa.Table) -> dict[str, Any]:
    """Return `details.violations` of a report, for a table with receipts or deliveries.

    A run with deliveries is judged by them, any other by its receipts. Keys: `rows` ("deliveries"
    and "receipts" to judge), `deliveries` (of messages that came to another member), `runs`,
    `counts` (relation -> number before a cause), `checked` (relation -> `Tally`), `first` (first
    early row of `VIOLATION_SCHEMA` with its `relation`, or None), `messages_received_by_some`
    (messages that came to some receiving members only), `rows_not_counted` (as `rows`),
    `not_counted` (reason or None), and `out_of_order_rows` (`row_order.steps_back`).
    """
    return of_parts([part_of(run) for run in told(table)])


class Part(NamedTuple):
    """Counts of one run that a whole trace needs."""

    rows: dict[str, int]
    found: Early  # without the early ones but the first of each way
    why: str | None  # why nothing in it could be counted; then nothing in the trace is
    sends: bool
    listed_back: dict[str, dict[str, Any]]


def part_of(run: pa.Table) -> Part:
    """Count the rows of one run that tells of receipts or deliveries."""
    why, found = None, Early()
    try:
        found = early_deliveries(run)
    except InputError as error:
        why = error.message
    firsts = {name: rows.sort_by("file_order").slice(0, 1) for name, rows in found.tables.items()}
    found = replace(found, table=found.table.slice(0, 0), tables=firsts)
    kinds = run["kind"].to_pylist()
    delivered = kinds.count(DELIVER)
    rows = {"deliveries": delivered, "receipts": 0 if delivered else kinds.count(RECEIVE)}
    return Part(rows, found, why, SEND in kinds, row_order.steps_back(run))


def of_parts(parts: Sequence[Part]) -> dict[str, Any]:
    """Return `early_details` of a trace from its runs, in the order of their first rows."""
    rows = _summed([{"rows": part.rows} for part in parts], "rows")
    why = next((part.why for part in parts if part.why is not None), None)
    found = Early() if why is not None else together([part.found for part in parts], None)
    lost = rows
    if found.not_counted and why is None:
        relation, reason = next(iter(found.not_counted.items()))
        why = f"{WORDS[relation]}: {reason}"
    elif found.deliveries and found.unsent.of:
        why, lost = NOTHING_SENT, _plain(found.unsent)
    elif not found.deliveries and why is None:
        why = NOT_OF_OTHERS if any(part.sends for part in parts) else NOTHING_SENT
    return {
        "rows": rows,
        "deliveries": found.deliveries,
        "runs": found.total.runs if found.deliveries else 0,
        "counts": found.by if found.deliveries else {},
        "checked": found.to_dict() if found.deliveries else {},
        "first": _earliest(
            row | {"relation": relation}
            for relation, table in found.tables.items()
            for row in table.sort_by("file_order").slice(0, 1).to_pylist()
        ),
        "messages_received_by_some": found.partial,
        "rows_not_counted": lost if why else _plain(Tally()),
        "not_counted": why,
        "out_of_order_rows": row_order.merged(part.listed_back for part in parts),
    }


def _plain(tally: Tally) -> dict[str, int]:
    return {"deliveries": tally.deliveries, "receipts": tally.receipts}


def _earliest(firsts: Iterable[dict[str, Any]]) -> dict[str, Any] | None:
    return min(
        firsts,
        key=lambda row: (row["file_order"], RELATIONS.index(row["relation"])),
        default=None,
    )


def merge_violations(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return `details.violations` of a trace of disjoint sets of runs; None of none."""
    given = list(parts)
    if not given:
        return None
    tallies = [{name: Tally(**of) for name, of in part["checked"].items()} for part in given]
    named = [name for name in RELATIONS if any(name in part for part in tallies)]
    total = added(tallies, named)
    return {
        "rows": _summed(given, "rows"),
        "deliveries": sum(part["deliveries"] for part in given),
        "runs": sum(part["runs"] for part in given),
        "counts": {name: tally.violations for name, tally in total.items()},
        "checked": {name: asdict(tally) for name, tally in total.items()},
        "first": _earliest(part["first"] for part in given if part["first"]),
        "messages_received_by_some": sum(part["messages_received_by_some"] for part in given),
        "rows_not_counted": _summed(given, "rows_not_counted"),
        "not_counted": next((part["not_counted"] for part in given if part["not_counted"]), None),
        "out_of_order_rows": row_order.merged(part["out_of_order_rows"] for part in given),
    }


def _summed(parts: Iterable[Mapping[str, Any]], key: str) -> dict[str, int]:
    total = {"deliveries": 0, "receipts": 0}
    for part in parts:
        for name, count in part[key].items():
            total[name] += count
    return total


def findings(found: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (what, advice) on deliveries before a cause, and on what was not compared."""
    if any(found["counts"].values()):
        what = f"{_early(found)}{_first(found['first'])}{_by_declared_alone(found)}"
        yield (
            what,
            "a member's rows go as listed; not in the table of edges, which goes by the rows of "
            "sends: see antecede meter",
        )
    if found["not_counted"]:
        yield (
            f"{judged(**found['rows_not_counted'])} not compared with causes: "
            f"{found['not_counted']}",
            "the counts below go by the messages themselves",
        )
    if said := row_order.words(found["out_of_order_rows"]):
        yield said


def nothing_early(found: Mapping[str, Any]) -> str:
    """Return the addition on deliveries to an audit without findings; "" without counted ones."""
    if not found["deliveries"]:
        return ""
    none = "".join(
        f", and none of {of} came before a cause, {' and '.join(ways)}"
        for of, ways in _alike(found).items()
    )
    none += ", the rows of each member as listed"
    if not found["messages_received_by_some"]:
        return none
    return (
        f"{none} ({counted(found['messages_received_by_some'], 'message')} did not come to every "
        "member, and a cause that was lost on its way is not missed: antecede meter --to-everybody)"
    )


def counts(found: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield rows of the table of counts."""
    for name, tally in _tallies(found).items():
        words = ["deliveries"] if tally.deliveries or not tally.receipts else []
        words += ["receipts"] if tally.receipts else []
        label = f"{' and '.join(words)} before a cause, {way(name, tally, found['runs'])}"
        yield (
            label,
            f"{tally.violations:,}",
            f"{tally.violations / max(tally.of, 1):.1%} of {tally.of:,}",
        )
    if found["deliveries"] and found["messages_received_by_some"]:
        yield (
            "messages that came to some members only",
            f"{found['messages_received_by_some']:,}",
            "",
        )


def _tallies(found: Mapping[str, Any]) -> dict[str, Tally]:
    return {name: Tally(**of) for name, of in found["checked"].items()}


def _alike(found: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the ways of telling causes by what each looked at, in words."""
    ways: dict[str, list[str]] = {}
    for name, tally in _tallies(found).items():
        ways.setdefault(tally.judged(), []).append(way(name, tally, found["runs"]))
    return ways


def _early(found: Mapping[str, Any]) -> str:
    """Say how many came before a cause, in each way: each names what it looked at."""
    tallies = _tallies(found)
    first = next(name for name, tally in tallies.items() if tally.violations)
    others = [
        f", {tally.violations:,} {way(name, tally, found['runs'])}"
        if tally.judged() == tallies[first].judged()
        else f", {tally.violations:,} of {tally.judged()} {way(name, tally, found['runs'])}"
        for name, tally in tallies.items()
        if name != first
    ]
    ways = way(first, tallies[first], found["runs"]) + "".join(others)
    return f"{tallies[first].part()} ({ways}) came before a cause"


def _by_declared_alone(found: Mapping[str, Any]) -> str:
    """Say, if so, that no message came before a declared cause, as order "reply" promises."""
    tallies = _tallies(found)
    declared = tallies.get(REPLY)
    if declared is None or declared.violations or not declared.of:
        return ""
    if not any(tally.violations for tally in tallies.values()):
        return ""
    return (
        f"; but all of {declared.judged()} came after every cause that they declare: that is all "
        'that order "reply" promises, where answers wait for what they answer, and nothing else'
    )


def _first(first: Mapping[str, Any] | None) -> str:
    if first is None:
        return ""
    where = first["member"] + ("" if first["run"] is None else f" of {first['run']}")
    when = "never came" if first["cause_order"] is None else "came later"
    return f"; the first: {first['message']} at {where}, whose cause {first['cause']} {when}"
