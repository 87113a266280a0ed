"""Causal violations in an audit, and rows that could not be checked.

An audit counts edges by the rows of the messages themselves. Violations show at receipts and
deliveries, and `tables.false_causality.violation_counts` counts them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, NamedTuple

import pyarrow as pa

from antecede.errors import InputError
from antecede.formatting import pluralize
from antecede.tables.false_causality import (
    RELATION_TEXT,
    RELATIONS,
    REPLY,
    Tally,
    ViolationCounts,
    add_tallies,
    count_violations,
    describe_checked,
    describe_relation,
    merge_counts,
    row_order,
    select_observed_runs,
)
from antecede.tables.trace import DELIVER, RECEIVE, SEND

NO_SENDS = "no row of kind send"
ONLY_OWN_MESSAGES = "no message was sent by another member"


def early_details(table: pa.Table) -> dict[str, Any]:
    """Return `details.violations` of a report, for a table with receipts or deliveries.

    A run with deliveries is checked by them, any other by its receipts. Keys:

    - `rows`: "deliveries" and "receipts" in the trace
    - `deliveries`: checked deliveries and receipts, of messages of another member
    - `runs`, `counts` (relation -> violations), `checked` (relation -> `Tally`)
    - `first`: first violation as in `VIOLATION_SCHEMA` with its `relation`, or None
    - `messages_received_by_some`: messages that some receiving members did not receive
    - `rows_not_counted` (as `rows`) and `not_counted` (reason or None)
    - `out_of_order_rows`: see `row_order.find_out_of_order_rows`
    """
    return of_parts([part_of(run) for run in select_observed_runs(table)])


class RunCounts(NamedTuple):
    """Counts of one run, as input of the counts of a trace."""

    rows: dict[str, int]
    violations: ViolationCounts  # with only the first violation of each relation
    reason: str | None  # why the run, and so the trace, was not counted; None: counted
    has_sends: bool
    out_of_order_rows: dict[str, dict[str, Any]]


def part_of(run: pa.Table) -> RunCounts:
    """Count the rows of one run with receipts or deliveries."""
    reason, found = None, ViolationCounts()
    try:
        found = count_violations(run)
    except InputError as error:
        reason = error.message
    firsts = {
        name: rows.sort_by("file_order").slice(0, 1)
        for name, rows in found.tables_by_relation.items()
    }
    found = replace(found, table=found.table.slice(0, 0), tables_by_relation=firsts)
    kinds = run["kind"].to_pylist()
    delivered = kinds.count(DELIVER)
    rows = {"deliveries": delivered, "receipts": 0 if delivered else kinds.count(RECEIVE)}
    return RunCounts(rows, found, reason, SEND in kinds, row_order.find_out_of_order_rows(run))


def of_parts(parts: Sequence[RunCounts]) -> dict[str, Any]:
    """Return `early_details` of a trace from its runs, in the order of their first rows."""
    rows = _sum_rows([{"rows": part.rows} for part in parts], "rows")
    why = next((part.reason for part in parts if part.reason is not None), None)
    found = (
        ViolationCounts()
        if why is not None
        else merge_counts([part.violations for part in parts], None)
    )
    lost = rows
    if found.not_counted and why is None:
        relation, reason = next(iter(found.not_counted.items()))
        why = f"{RELATION_TEXT[relation]}: {reason}"
    elif found.checked and found.without_sends.checked:
        why, lost = NO_SENDS, _tally_to_rows(found.without_sends)
    elif not found.checked and why is None:
        why = ONLY_OWN_MESSAGES if any(part.has_sends for part in parts) else NO_SENDS
    return {
        "rows": rows,
        "deliveries": found.checked,
        "runs": found.total.runs if found.checked else 0,
        "counts": found.counts if found.checked else {},
        "checked": found.to_dict() if found.checked else {},
        "first": _find_earliest(
            row | {"relation": relation}
            for relation, table in found.tables_by_relation.items()
            for row in table.sort_by("file_order").slice(0, 1).to_pylist()
        ),
        "messages_received_by_some": found.messages_received_by_some,
        "rows_not_counted": lost if why else _tally_to_rows(Tally()),
        "not_counted": why,
        "out_of_order_rows": row_order.merge_out_of_order_rows(
            part.out_of_order_rows for part in parts
        ),
    }


def _tally_to_rows(tally: Tally) -> dict[str, int]:
    return {"deliveries": tally.deliveries, "receipts": tally.receipts}


def _find_earliest(firsts: Iterable[dict[str, Any]]) -> dict[str, Any] | None:
    return min(
        firsts,
        key=lambda row: (row["file_order"], RELATIONS.index(row["relation"])),
        default=None,
    )


def merge_violations(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return `details.violations` of disjoint sets of runs; None without any."""
    given = list(parts)
    if not given:
        return None
    tallies = [{name: Tally(**of) for name, of in part["checked"].items()} for part in given]
    named = [name for name in RELATIONS if any(name in part for part in tallies)]
    total = add_tallies(tallies, named)
    return {
        "rows": _sum_rows(given, "rows"),
        "deliveries": sum(part["deliveries"] for part in given),
        "runs": sum(part["runs"] for part in given),
        "counts": {name: tally.violations for name, tally in total.items()},
        "checked": {name: asdict(tally) for name, tally in total.items()},
        "first": _find_earliest(part["first"] for part in given if part["first"]),
        "messages_received_by_some": sum(part["messages_received_by_some"] for part in given),
        "rows_not_counted": _sum_rows(given, "rows_not_counted"),
        "not_counted": next((part["not_counted"] for part in given if part["not_counted"]), None),
        "out_of_order_rows": row_order.merge_out_of_order_rows(
            part["out_of_order_rows"] for part in given
        ),
    }


def _sum_rows(parts: Iterable[Mapping[str, Any]], key: str) -> dict[str, int]:
    total = {"deliveries": 0, "receipts": 0}
    for part in parts:
        for name, count in part[key].items():
            total[name] += count
    return total


def list_findings(found: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (what, advice) on causal violations and on rows that were not checked."""
    if any(found["counts"].values()):
        what = (
            f"{_describe_violations(found)}{_describe_first(found['first'])}"
            f"{_describe_declared_order(found)}"
        )
        yield (
            what,
            "a member's rows are taken in file order; the table of edges uses the rows of sends: "
            "see antecede false-causality",
        )
    if found["not_counted"]:
        yield (
            f"{describe_checked(**found['rows_not_counted'])} not compared with causes: "
            f"{found['not_counted']}",
            "the counts below use the rows of the messages themselves",
        )
    if row_order_finding := row_order.describe_out_of_order_rows(found["out_of_order_rows"]):
        yield row_order_finding


def describe_no_violations(found: Mapping[str, Any]) -> str:
    """Return the addition to an audit without findings; "" without checked deliveries."""
    if not found["deliveries"]:
        return ""
    none = "".join(
        f", and none of {of} came before a cause, {' and '.join(ways)}"
        for of, ways in _group_by_checked(found).items()
    )
    none += ", in the file order of each member's rows"
    if not found["messages_received_by_some"]:
        return none
    return (
        f"{none} ({pluralize(found['messages_received_by_some'], 'message')} not received by every "
        "member, and a cause that was lost on its way is not counted as missing: antecede "
        "false-causality --broadcast)"
    )


def list_counts(found: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield rows of the table of counts."""
    for name, tally in _read_tallies(found).items():
        nouns = ["deliveries"] if tally.deliveries or not tally.receipts else []
        nouns += ["receipts"] if tally.receipts else []
        label = (
            f"{' and '.join(nouns)} before a cause, {describe_relation(name, tally, found['runs'])}"
        )
        yield (
            label,
            f"{tally.violations:,}",
            f"{tally.violations / max(tally.checked, 1):.1%} of {tally.checked:,}",
        )
    if found["deliveries"] and found["messages_received_by_some"]:
        yield (
            "messages received by some members only",
            f"{found['messages_received_by_some']:,}",
            "",
        )


def _read_tallies(found: Mapping[str, Any]) -> dict[str, Tally]:
    return {name: Tally(**of) for name, of in found["checked"].items()}


def _group_by_checked(found: Mapping[str, Any]) -> dict[str, list[str]]:
    relations: dict[str, list[str]] = {}
    for name, tally in _read_tallies(found).items():
        relations.setdefault(tally.describe_checked(), []).append(
            describe_relation(name, tally, found["runs"])
        )
    return relations


def _describe_violations(found: Mapping[str, Any]) -> str:
    tallies = _read_tallies(found)
    first = next(name for name, tally in tallies.items() if tally.violations)
    others = [
        f", {tally.violations:,} {describe_relation(name, tally, found['runs'])}"
        if tally.describe_checked() == tallies[first].describe_checked()
        else f", {tally.violations:,} of {tally.describe_checked()} "
        f"{describe_relation(name, tally, found['runs'])}"
        for name, tally in tallies.items()
        if name != first
    ]
    relations = describe_relation(first, tallies[first], found["runs"]) + "".join(others)
    return f"{tallies[first].describe_violations()} ({relations}) came before a cause"


def _describe_declared_order(found: Mapping[str, Any]) -> str:
    """Return a remark if no message came before a declared cause, as order "reply" promises."""
    tallies = _read_tallies(found)
    declared = tallies.get(REPLY)
    if declared is None or declared.violations or not declared.checked:
        return ""
    if not any(tally.violations for tally in tallies.values()):
        return ""
    return (
        f"; but all of {declared.describe_checked()} came after every cause that they declare, "
        'which is all that order "reply" promises'
    )


def _describe_first(first: Mapping[str, Any] | None) -> str:
    if first is None:
        return ""
    where = first["member"] + ("" if first["run"] is None else f" of {first['run']}")
    when = "is missing" if first["cause_order"] is None else "came later"
    return f"; the first: {first['message']} at {where}, whose cause {first['cause']} {when}"
