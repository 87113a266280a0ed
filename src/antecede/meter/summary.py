"""What the meter found in a trace, whole: for the terminal and as plain values."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from antecede.clocks.bounds import Bounds
from antecede.errors import InputError
from antecede.meter.count import Counts
from antecede.meter.measure import observed, rows_of, table_of
from antecede.meter.rules import RULES, rule_named
from antecede.meter.trace import ABSENT, DELIVERY, NEVER_SENT, RECEIPT, runs_of
from antecede.meter.violations import SCHEMA as EARLY
from antecede.meter.violations import Found, found_in
from antecede.protocols.subscriptions import Subscriptions
from antecede.trace.schema import DELIVER, RECEIVE
from antecede.words import count_and_part, counted, table

SHOWN = 5
"""Absent causes, and messages that were never sent, that the terminal names."""
_COUNTED = ("ordered", "causal", "unnecessary", "missed", "events")


@dataclass
class Summary:
    """Counts and early deliveries of a trace."""

    counts: pa.Table
    """As `measure.SCHEMA`."""
    early: pa.Table
    """As `violations.SCHEMA`."""
    deliveries: int
    """How many were looked at; 0: the trace tells of none."""
    relations: tuple[str, ...]
    """What causality goes by, one a kind of run."""
    left_out: dict[str, int] = field(default_factory=dict)
    not_measured: dict[str, str] = field(default_factory=dict)
    """Rule -> why."""
    early_by: dict[str, int] = field(default_factory=dict)
    """Early deliveries by what causality goes by: that of `early` first, then the other one that
    the trace tells of."""
    partial: int = 0
    """Messages that came to some receiving members only."""
    absent: pa.Table = field(default_factory=ABSENT.empty_table)
    """As `trace.ABSENT`: declared causes that are nowhere."""
    never_sent: Sequence[str] = ()
    """Ids of messages that came and that no row says to be sent."""
    contradictions: int = 0
    """Events whose vector clocks contradict others'; the counts go by what the clocks say."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, text, lists and maps."""
        return {
            "causal_by": list(self.relations),
            "counts": self.counts.to_pylist(),
            "deliveries": self.deliveries,
            "early": self.early.to_pylist(),
            "early_by": self.early_by,
            "messages_to_some": self.partial,
            "left_out": self.left_out,
            "never_sent": list(self.never_sent),
            "absent_causes": self.absent.to_pylist(),
            "contradictions": self.contradictions,
            "not_measured": self.not_measured,
        }

    def lines(self, *, each: bool = False, witnesses: int = 5) -> Iterator[str]:
        """Yield lines for people; `each`: a table for each observer, too."""
        rows = self.counts.to_pylist()
        observers = {(row["run"], row["observer"]): row["events"] for row in rows}
        who = counted(len(observers), "observer")
        received = counted(sum(observers.values()), "message")
        yield f"{who}, {received} received; causal by " + (", ".join(self.relations) or "nothing")
        yield table(_HEADER, _cells(rows))
        if each and len(observers) > 1:
            for run, observer in observers:
                own = [row for row in rows if (row["run"], row["observer"]) == (run, observer)]
                where = "" if run is None else f" of {run}"
                yield f"\n{observer}{where}: {counted(own[0]['events'], 'message')}"
                yield table(_HEADER, _cells(own))
        yield from self._rest(witnesses)

    def _rest(self, witnesses: int) -> Iterator[str]:
        if self.deliveries:
            label = "early"
            all_of_them = counted(self.deliveries, "delivery", "deliveries")
            for relation, early in self.early_by.items():
                part = f"{count_and_part(early, self.deliveries)} of {all_of_them}"
                yield f"{label:12}{part} came before a cause, by {relation}"
                label = ""
        for row in self.early.slice(0, witnesses).to_pylist():
            when = "never came" if row["cause_order"] is None else "came later"
            where = f"{row['member']}" + ("" if row["run"] is None else f" of {row['run']}")
            yield f"            {row['message']} at {where}: its cause {row['cause']} {when}"
        if self.deliveries and self.partial:
            yield (
                f"in part     {counted(self.partial, 'message')} did not come to every member "
                "that received any; no row says whom a message was for, so a cause that was lost "
                "on its way to a member is not missed there (--to-everybody: all were for all)"
            )
        for reason, count in self.left_out.items():
            yield f"left out    {counted(count, 'row')}: {reason}" + self._which(reason)
        yield from self._absent()
        if self.contradictions:
            events = counted(self.contradictions, "event")
            yield (
                f"doubtful    {events} with a clock that contradicts others; "
                "antecede audit says how"
            )
        reasons: dict[str, list[str]] = {}
        for rule, reason in self.not_measured.items():
            reasons.setdefault(reason, []).append(rule)
        for reason, rules in reasons.items():
            yield f"unmeasured  {', '.join(rules)}: {reason}"

    def _which(self, reason: str) -> str:
        if reason != NEVER_SENT:
            return ""
        more = len(self.never_sent) - SHOWN
        rest = f" and {more:,} more" if more > 0 else ""
        return f" ({', '.join(self.never_sent[:SHOWN])}{rest})"

    def _absent(self) -> Iterator[str]:
        if not len(self.absent):
            return
        named = [
            f"{row['message']} names {row['cause']}"
            + ("" if row["run"] is None else f" (run {row['run']})")
            for row in self.absent.slice(0, SHOWN).to_pylist()
        ]
        more = len(self.absent) - len(named)
        rest = f" and {more:,} more, see antecede audit --missing" if more else ""
        causes = counted(len(self.absent), "reference")
        yield f"absent      {causes} to causes that no row has: {', '.join(named)}{rest}"


_HEADER = ("rule", "ordered", "causal", "needless", "missed", "each: ordered", "needless", "missed")


def _cells(rows: Sequence[dict[str, Any]]) -> Iterator[tuple[str, ...]]:
    """Add up the observers' counts, a line a rule."""
    total: dict[str, Counts] = {}
    for row in rows:
        own = Counts(*(row[name] for name in _COUNTED))
        before = total.get(row["rule"], Counts(0, 0, 0, 0, 0))
        total[row["rule"]] = Counts(*(a + b for a, b in zip(before, own, strict=True)))
    for rule, counts in total.items():
        ordered, _, needless, missed = counts.per_event()
        each = (f"{ordered:,.1f}", f"{needless:,.2f}", f"{missed:,.2f}")
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
) -> Summary:
    """Count pairs and find early deliveries; options and errors are those of `measure`.

    `to_everybody`: see `violations.found_in`.
    """
    wanted = None if rules is None else [rule_named(name) for name in rules]
    rows: list[tuple[Any, ...]] = []
    left_out: dict[str, int] = {}
    lacking: dict[str, str] = {}
    relations: dict[str, None] = {}
    received: set[str] = set()
    measured: set[str] = set()
    absent = [ABSENT.empty_table()]
    never_sent: list[str] = []
    contradictions = 0
    for run in runs_of(events, relation):
        relations[run.source] = None
        received.update(run.arrivals)
        absent.append(run.absent)
        never_sent += run.never_sent
        contradictions += run.contradictions
        for reason, count in run.notes.items():
            left_out[reason] = left_out.get(reason, 0) + count
        for seen in observed(run, observers, bounds, subscriptions):
            lacking |= seen.lacking
            measured |= RULES.keys() - seen.lacking.keys()
            rows += rows_of(seen, wanted, truth)
    if unknown := sorted({*(observers or ())} - received):
        known = ", ".join(sorted(received)) or "nobody"
        raise InputError(f"{unknown[0]!r} received nothing; observers: {known}")
    found = list(found_in(events, relation, to_everybody=to_everybody))
    return Summary(
        table_of(iter(rows)),
        pa.concat_tables([EARLY.empty_table(), *(one.table for one in found)]),
        sum(one.checked for one in found),
        tuple(relations),
        left_out,
        {} if wanted else {name: why for name, why in lacking.items() if name not in measured},
        _early_by(events, relation, found, to_everybody),
        0 if to_everybody else sum(one.partial for one in found),
        pa.concat_tables(absent),
        never_sent,
        contradictions,
    )


def _early_by(
    events: pa.Table, relation: str | None, found: Sequence[Found], to_everybody: bool
) -> dict[str, int]:
    """Count the early deliveries by both causalities, as far as the trace tells of both."""
    if not found:
        return {}
    kinds = {*events["kind"].unique().to_pylist()}
    chosen = relation or found[0].run.relation
    counts = {chosen: sum(len(one.table) for one in found)}
    for other, kind in ((DELIVERY, DELIVER), (RECEIPT, RECEIVE)):
        if other not in counts and kind in kinds:
            with contextlib.suppress(InputError):  # some run has no such rows
                again = found_in(events, other, to_everybody=to_everybody)
                counts[other] = sum(len(one.table) for one in again)
    return counts
