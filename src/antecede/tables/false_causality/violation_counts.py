"""Causal violations of a whole trace, as counted by audits and false-causality summaries.

A run with deliveries is checked by them, any other by its receipts. Every run is counted under each
relation that its rows support (delivery, receipt, declared causes); no sum is over two relations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from antecede.errors import InputError
from antecede.formatting import count_and_part, pluralize
from antecede.tables.false_causality.columns import mask_kind
from antecede.tables.false_causality.executions import DELIVERY, RECEIPT, RELATIONS, REPLY
from antecede.tables.false_causality.trace import split_by_run
from antecede.tables.false_causality.violations import (
    VIOLATION_SCHEMA,
    RunViolations,
    find_in_events,
)
from antecede.tables.trace import DELIVER, RECEIVE, SEND

pc: Any = pyarrow.compute  # incomplete stubs

RELATION_TEXT = {DELIVERY: "by delivery", RECEIPT: "by receipt", REPLY: "by declared causes"}


@dataclass(frozen=True)
class Tally:
    """Counts under one relation of causality."""

    violations: int = 0
    deliveries: int = 0  # checked deliveries, in runs that have any
    receipts: int = 0  # checked receipts, in runs without deliveries
    runs: int = 0  # runs whose rows support the relation

    def __add__(self, other: Tally) -> Tally:
        """Return the tally of two disjoint sets of runs."""
        pairs = zip(astuple(self), astuple(other), strict=True)
        return Tally(*(mine + theirs for mine, theirs in pairs))

    @property
    def checked(self) -> int:
        """Number of checked deliveries and receipts."""
        return self.deliveries + self.receipts

    def describe_checked(self) -> str:
        """Return the checked numbers as text."""
        return describe_checked(self.deliveries, self.receipts)

    def describe_violations(self) -> str:
        """Return the violations and their share as text."""
        return f"{count_and_part(self.violations, self.checked)} of {self.describe_checked()}"


def describe_checked(deliveries: int, receipts: int) -> str:
    """Return numbers of deliveries and receipts as text; zeros are omitted."""
    texts = [pluralize(receipts, "receipt")] if receipts else []
    if deliveries or not receipts:
        texts.insert(0, pluralize(deliveries, "delivery", "deliveries"))
    return " and ".join(texts)


def describe_relation(relation: str, tally: Tally, runs: int) -> str:
    """Return the text of a relation, with its number of runs if that is not all."""
    some = "" if tally.runs == runs else f" in {tally.runs:,} of {pluralize(runs, 'run')}"
    return RELATION_TEXT[relation] + some


@dataclass(frozen=True)
class ViolationCounts:
    """Causal violations, and the numbers of checked deliveries."""

    tallies: dict[str, Tally] = field(default_factory=dict)
    """A tally for each relation; the requested relation first."""
    table: pa.Table = field(default_factory=VIOLATION_SCHEMA.empty_table)
    """As `VIOLATION_SCHEMA`: of the requested relation, otherwise of each run's first relation."""
    tables_by_relation: dict[str, pa.Table] = field(default_factory=dict)  # relation -> the same
    messages_received_by_some: int = 0  # messages that some receiving members did not receive
    total: Tally = field(default_factory=Tally)  # checked in all runs; `violations` is 0
    not_counted: dict[str, str] = field(
        default_factory=dict
    )  # relation -> reason of a run without a count
    without_sends: Tally = field(default_factory=Tally)  # of runs without a send

    @property
    def checked(self) -> int:
        """Number of checked deliveries and receipts."""
        return self.total.checked

    @property
    def counts(self) -> dict[str, int]:
        """Number of violations under each relation."""
        return {relation: tally.violations for relation, tally in self.tallies.items()}

    def to_dict(self) -> dict[str, Any]:
        """Return the tallies as plain values."""
        return {relation: asdict(tally) for relation, tally in self.tallies.items()}

    def list_blocks(self, witnesses: int) -> Iterator[tuple[str, list[dict[str, Any]]]]:
        """Yield a text for each relation, and at most `witnesses` violations not listed before."""
        known: set[tuple[Any, ...]] = set()
        for relation, tally in self.tallies.items():
            sentence = f"{tally.describe_violations()} came before a cause, "
            rows = self.tables_by_relation[relation].to_pylist()
            places = [(row["run"], row["member"], row["message"]) for row in rows]
            fresh = [row for row, at in zip(rows, places, strict=True) if at not in known]
            known.update(places)
            yield sentence + describe_relation(relation, tally, self.total.runs), fresh[:witnesses]


def count_violations(
    events: pa.Table, relation: str | None = None, *, to_everybody: bool = False
) -> ViolationCounts:
    """Return the causal violations; options and errors are those of `found_in`."""
    parts = [_count_run(run, relation, to_everybody) for run in select_observed_runs(events)]
    return merge_counts(parts, relation)


def select_observed_runs(events: pa.Table) -> Iterator[pa.Table]:
    """Yield the rows of each run with deliveries or receipts."""
    for _, run in split_by_run(events):
        if {RECEIVE, DELIVER} & {*run["kind"].unique().to_pylist()}:
            yield run


def _count_run(run: pa.Table, relation: str | None, to_everybody: bool) -> ViolationCounts:
    kinds = {*run["kind"].unique().to_pylist()}
    delivers = DELIVER in kinds
    if SEND not in kinds:
        rows = int(np.count_nonzero(mask_kind(run, DELIVER if delivers else RECEIVE)))
        return ViolationCounts(without_sends=_make_tally(0, rows, delivers))
    supported = [
        (DELIVERY, delivers),
        (RECEIPT, RECEIVE in kinds),
        (REPLY, _has_declared_causes(run)),
    ]
    relations = [one for one, there in supported if there]
    chosen = relation or relations[0]
    found, reasons = _count_each_relation(run, chosen, relations, to_everybody)
    any_one = next(iter(found.values()))  # all relations check the same rows
    return ViolationCounts(
        {one: _make_tally(len(f.table), f.checked, delivers) for one, f in found.items()},
        found[chosen].table if chosen in found else VIOLATION_SCHEMA.empty_table(),
        {one: f.table for one, f in found.items()},
        any_one.partial,
        _make_tally(0, any_one.checked, delivers),
        reasons,
    )


def _count_each_relation(
    run: pa.Table, chosen: str, relations: Sequence[str], to_everybody: bool
) -> tuple[dict[str, RunViolations], dict[str, str]]:
    """Return the result of each relation, `chosen` first, and reasons of those without."""
    found: dict[str, RunViolations] = {}
    reasons: dict[str, str] = {}
    if chosen == REPLY and REPLY not in relations:
        reasons = {REPLY: "no message declares a cause"}
    else:
        (found[chosen],) = find_in_events(run, chosen, to_everybody=to_everybody)
    for other in relations:
        if other != chosen:
            try:
                (found[other],) = find_in_events(run, other, to_everybody=to_everybody)
            except InputError as error:
                reasons[other] = error.message
    return found, reasons


def _has_declared_causes(run: pa.Table) -> bool:
    if "causes" not in run.column_names:
        return False
    sent = run["causes"].filter(pa.array(mask_kind(run, SEND)))
    return bool(pc.sum(pc.list_value_length(sent)).as_py())


def _make_tally(violations: int, checked: int, delivers: bool) -> Tally:
    return Tally(violations, *((checked, 0) if delivers else (0, checked)), runs=1)


def merge_counts(parts: Sequence[ViolationCounts], relation: str | None) -> ViolationCounts:
    """Return the counts of disjoint runs; relations as in `RELATIONS`, the chosen one first."""
    order = [relation] if relation else []
    order += [name for name in RELATIONS if name not in order]
    named = [name for name in order if any(name in part.tallies for part in parts)]
    empty = VIOLATION_SCHEMA.empty_table()
    reasons: dict[str, str] = {}
    for part in reversed(parts):
        reasons |= part.not_counted
    return ViolationCounts(
        add_tallies([part.tallies for part in parts], named),
        pa.concat_tables([empty, *(part.table for part in parts)]),
        {
            name: pa.concat_tables(
                [
                    empty,
                    *(p.tables_by_relation[name] for p in parts if name in p.tables_by_relation),
                ]
            )
            for name in named
        },
        sum(part.messages_received_by_some for part in parts),
        sum((part.total for part in parts), Tally()),
        reasons,
        sum((part.without_sends for part in parts), Tally()),
    )


def add_tallies(parts: Sequence[Mapping[str, Tally]], names: Sequence[str]) -> dict[str, Tally]:
    """Return the sums of the tallies of disjoint sets of runs, by relation."""
    return {name: sum((part.get(name, Tally()) for part in parts), Tally()) for name in names}
