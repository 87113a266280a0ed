"""Summary of false causality in a trace: text for the terminal, and plain values."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from antecede.core.clocks import Bounds
from antecede.core.protocols.topics import Subscriptions
from antecede.formatting import pluralize, table
from antecede.tables.false_causality import row_order
from antecede.tables.false_causality.count import RuleCounts
from antecede.tables.false_causality.executions import (
    DELIVERY,
    MISSING_CAUSE_SCHEMA,
    RECEIPT,
    REPLY,
    TraceRun,
)
from antecede.tables.false_causality.measure import (
    ObserverMessages,
    check_observers,
    rows_of,
    select_observed,
    table_of,
)
from antecede.tables.false_causality.rules import RULES, rule_named
from antecede.tables.false_causality.trace import NEVER_SENT, runs_with_rows
from antecede.tables.false_causality.violation_counts import (
    RELATION_TEXT,
    ViolationCounts,
    count_violations,
    merge_counts,
)
from antecede.tables.trace import (
    BLANK,
    REPEATED,
    ROUNDED_CAUSES,
    UNREADABLE_CAUSES,
    Causes,
    evidence,
)

SOURCES = {
    DELIVERY: evidence.RECEIPTS,
    RECEIPT: evidence.RECEIPTS,
    REPLY: evidence.CAUSES,
    "declared causes": evidence.CAUSES,
    "vector clocks": evidence.CLOCKS,
}
"""Source of a run's causality -> its name in reports."""
SHOWN = 5  # missing causes, and messages without a send, in the text
_COUNT_COLUMNS = ("ordered", "causal", "false_pairs", "missed_pairs", "events")


@dataclass
class Summary:
    """Pair counts and causal violations of a trace."""

    counts: pa.Table  # as `MEASURE_SCHEMA`
    violations: ViolationCounts  # with the number of checked deliveries
    relations: tuple[str, ...]  # causality relations of the runs, distinct
    excluded_rows: dict[str, int] = field(default_factory=dict)
    skipped_rules: dict[str, str] = field(default_factory=dict)  # rule -> reason
    is_broadcast: bool = False  # every message is for every member
    absent: pa.Table = field(default_factory=MISSING_CAUSE_SCHEMA.empty_table)
    never_sent: Sequence[str] = ()  # ids of received messages without a send
    causes: Causes = field(default_factory=Causes)  # excluded declarations of causes
    out_of_order_rows: dict[str, dict[str, Any]] = field(default_factory=dict)
    clock_inconsistencies: int = 0  # counted events with inconsistent vector clocks

    @property
    def source(self) -> str:
        """Sources of causality of all runs (constants of `antecede.tables.trace.evidence`)."""
        return ", ".join(dict.fromkeys(SOURCES[one] for one in self.relations)) or evidence.NONE

    @property
    def messages_received_by_some(self) -> int:
        """Messages that some receiving members did not receive; 0 for broadcasts."""
        return 0 if self.is_broadcast else self.violations.messages_received_by_some

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, text, lists and maps."""
        return {
            "relations": list(self.relations),
            evidence.SOURCE: self.source,
            "counts": self.counts.to_pylist(),
            "deliveries": self.violations.checked,
            "violations": self.violations.table.to_pylist(),
            "violation_counts": self.violations.counts,
            "violations_checked": self.violations.to_dict(),
            "violations_not_counted": self.violations.not_counted,
            "violations_by_relation": {
                name: rows.to_pylist() for name, rows in self.violations.tables_by_relation.items()
            },
            "messages_received_by_some": self.messages_received_by_some,
            "excluded_rows": self.excluded_rows,
            "never_sent": list(self.never_sent),
            "self_causes": self.causes.self_named,
            REPEATED: self.causes.repeated,
            BLANK: self.causes.blank,
            ROUNDED_CAUSES: self.causes.rounded,
            UNREADABLE_CAUSES: self.causes.unreadable,
            "missing_causes": self.absent.to_pylist(),
            "out_of_order_rows": self.out_of_order_rows,
            "clock_inconsistencies": self.clock_inconsistencies,
            "skipped_rules": self.skipped_rules,
        }

    def lines(self, *, each: bool = False, witnesses: int = 5) -> Iterator[str]:
        """Yield lines of text; `each`: with a table for each observer."""
        rows = self.counts.to_pylist()
        observers = {(row["run"], row["observer"]): row["events"] for row in rows}
        observer_count = pluralize(len(observers), "observer")
        received = pluralize(sum(observers.values()), "message")
        yield f"{observer_count}, {received} received; causality: " + (
            ", ".join(self.relations) or "none"
        )
        yield table(_HEADER, (_HEADER_BELOW, *_sum_observers(rows)))
        if each and len(observers) > 1:
            for run, observer in observers:
                own = [row for row in rows if (row["run"], row["observer"]) == (run, observer)]
                where = "" if run is None else f" of {run}"
                yield f"\n{observer}{where}: {pluralize(own[0]['events'], 'message')}"
                yield table(_HEADER, (_HEADER_BELOW, *_sum_observers(own)))
        yield from self._format_rest(witnesses)

    def _format_rest(self, witnesses: int) -> Iterator[str]:
        yield from self._format_violations(witnesses)
        if self.violations.checked and self.messages_received_by_some:
            yield (
                f"partial     {pluralize(self.messages_received_by_some, 'message')} not received "
                "by every receiving member; the trace has no addressees, so a cause that was lost "
                "on its way is not counted as missing (--broadcast: all messages are for all)"
            )
        for reason, count in self.excluded_rows.items():
            more = len(self.never_sent) - SHOWN
            rest = f" and {more:,} more" if more > 0 else ""
            which = f" ({', '.join(self.never_sent[:SHOWN])}{rest})" if reason == NEVER_SENT else ""
            yield f"excluded    {pluralize(count, 'row')}: {reason}{which}"
        if row_order_finding := row_order.describe_out_of_order_rows(self.out_of_order_rows):
            yield f"row order   {'; '.join(row_order_finding)}"
        for what, fate in self.causes.notes():
            yield f"causes      {what}, {fate}"
        yield from self._format_missing_causes()
        if self.clock_inconsistencies:
            events = pluralize(self.clock_inconsistencies, "event")
            yield (f"clocks      {events} with an inconsistent clock; see antecede audit")
        reasons: dict[str, list[str]] = {}
        for rule, reason in self.skipped_rules.items():
            reasons.setdefault(reason, []).append(rule)
        for reason, rules in reasons.items():
            yield f"skipped     {', '.join(rules)}: {reason}"

    def _format_violations(self, witnesses: int) -> Iterator[str]:
        label = "violations"
        for sentence, rows in (
            self.violations.list_blocks(witnesses) if self.violations.checked else ()
        ):
            yield f"{label:12}{sentence}"
            label = ""
            for row in rows:
                when = "is missing" if row["cause_order"] is None else "came later"
                where = f"{row['member']}" + ("" if row["run"] is None else f" of {row['run']}")
                yield f"            {row['message']} at {where}: its cause {row['cause']} {when}"
        for relation, why in self.violations.not_counted.items():
            yield f"unchecked   violations {RELATION_TEXT[relation]} are not counted: {why}"
        if (unsent := self.violations.without_sends).checked:
            yield (
                f"unchecked   {unsent.describe_checked()}: no row of kind send in "
                f"{pluralize(unsent.runs, 'run')}"
            )

    def _format_missing_causes(self) -> Iterator[str]:
        if not len(self.absent):
            return
        named = [
            f"{row['message']} names {row['cause']}"
            + ("" if row["run"] is None else f" (run {row['run']})")
            for row in self.absent.slice(0, SHOWN).to_pylist()
        ]
        more = len(self.absent) - len(named)
        rest = f" and {more:,} more, see antecede audit --list-missing" if more else ""
        causes = pluralize(len(self.absent), "reference")
        yield f"missing     {causes} to causes without a counted row: {', '.join(named)}{rest}"


_HEADER = ("", "", "", "", "", "each:", "", "")
_HEADER_BELOW = ("rule", "ordered", "causal", "false", "missed", "ordered", "false", "missed")


def _sum_observers(rows: Sequence[dict[str, Any]]) -> Iterator[tuple[str, ...]]:
    total: dict[str, RuleCounts] = {}
    for row in rows:
        own = RuleCounts(*(row[name] for name in _COUNT_COLUMNS))
        before = total.get(row["rule"], RuleCounts(0, 0, 0, 0, 0))
        total[row["rule"]] = RuleCounts(*(a + b for a, b in zip(before, own, strict=True)))
    for rule, counts in total.items():
        ordered, _, false, missed = counts.average_per_event()
        each = (f"{ordered:,.1f}", f"{false:,.2f}", f"{missed:,.2f}")
        yield (rule, *(f"{count:,}" for count in counts[:4]), *each)


def summarize(
    events: pa.Table,
    rules: Sequence[str] | None = None,
    observers: Collection[str] | None = None,
    *,
    bounds: Bounds[str] | None = None,
    subscriptions: Subscriptions[str] | None = None,
    relation: str | None = None,
    truth: str | None = None,
    to_everybody: bool = False,
    format: str = "table",
) -> Summary:
    """Count pairs and find violations; options as in `measure`, `to_everybody` as in `found_in`."""
    named_rules = None if rules is None else [rule_named(name) for name in rules]
    rows: list[tuple[Any, ...]] = []
    parts = []
    for run, own in runs_with_rows(events, relation):
        parts.append(part := part_of(run, own, relation, to_everybody=to_everybody))
        for seen in select_observed(run, observers, bounds, subscriptions):
            part.note(seen)
            rows += rows_of(seen, named_rules, truth)
    evidence.demand(events, format)
    return summary_of(
        parts,
        rows,
        observers,
        all_rules=named_rules is None,
        relation=relation,
        to_everybody=to_everybody,
    )


@dataclass
class RunSummary:
    """Results of one run, without its pair counts."""

    source: str
    observers: frozenset[str]  # all members that received messages
    excluded_rows: dict[str, int]
    missing_causes: pa.Table
    never_sent: Sequence[str]
    clock_inconsistencies: int
    causes: Causes
    violations: ViolationCounts
    out_of_order_rows: dict[str, dict[str, Any]]
    skipped_rules: dict[str, str] = field(default_factory=dict)
    measured_rules: set[str] = field(default_factory=set)

    def note(self, seen: ObserverMessages) -> None:
        """Add the rules that one observer allows."""
        self.skipped_rules |= seen.skipped_rules
        self.measured_rules |= RULES.keys() - seen.skipped_rules.keys()


def part_of(
    run: TraceRun, rows: pa.Table, relation: str | None, *, to_everybody: bool = False
) -> RunSummary:
    """Return the summary of a run with the given rows; the caller adds its observers."""
    return RunSummary(
        run.source,
        frozenset(run.arrivals),
        dict(run.excluded_rows),
        run.absent,
        tuple(run.never_sent),
        run.clock_inconsistencies,
        run.causes,
        count_violations(rows, relation, to_everybody=to_everybody),
        row_order.find_out_of_order_rows(rows),
    )


def summary_of(
    parts: Sequence[RunSummary],
    rows: Iterable[tuple[Any, ...]],
    observers: Collection[str] | None = None,
    *,
    all_rules: bool,
    relation: str | None = None,
    to_everybody: bool = False,
) -> Summary:
    """Return the summary of runs and rows of `rows_of`; `all_rules`: no rule was named."""
    left_out: dict[str, int] = {}
    lacking: dict[str, str] = {}
    causes = Causes()
    for part in parts:
        causes = causes.plus(part.causes)
        lacking |= part.skipped_rules
        for reason, count in part.excluded_rows.items():
            left_out[reason] = left_out.get(reason, 0) + count
    received = {name for part in parts for name in part.observers}
    measured = {name for part in parts for name in part.measured_rules}
    check_observers(observers, received)
    return Summary(
        table_of(rows),
        merge_counts([part.violations for part in parts], relation),
        tuple(dict.fromkeys(part.source for part in parts)),
        left_out,
        {name: why for name, why in lacking.items() if name not in measured} if all_rules else {},
        to_everybody,
        pa.concat_tables(
            [MISSING_CAUSE_SCHEMA.empty_table(), *(part.missing_causes for part in parts)]
        ),
        [name for part in parts for name in part.never_sent],
        causes,
        row_order.merge_out_of_order_rows(part.out_of_order_rows for part in parts),
        sum(part.clock_inconsistencies for part in parts),
    )
