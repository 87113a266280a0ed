"""Table of pair counts of a trace: a row for each run, observer and rule."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from antecede.core.clocks import Bounds
from antecede.core.protocols.topics import Subscriptions
from antecede.errors import InputError
from antecede.tables.false_causality.count import count_rules
from antecede.tables.false_causality.executions import TraceRun
from antecede.tables.false_causality.kernels.causal_past import compute_linear_times
from antecede.tables.false_causality.rules import RULES, Rule, rule_named
from antecede.tables.false_causality.timestamps import ALL_TOPICS, BoundColumns, Stamps, limits_of
from antecede.tables.false_causality.trace import runs_of
from antecede.tables.kernels import Ints
from antecede.tables.trace import evidence

_FIELDS: list[Any] = [
    pa.field("run", pa.string()),
    pa.field("observer", pa.string(), nullable=False),
    pa.field("rule", pa.string(), nullable=False),
    pa.field("truth", pa.string(), nullable=False),
    *(
        pa.field(name, pa.int64(), nullable=False)
        for name in ("events", "ordered", "causal", "false_pairs", "missed_pairs")
    ),
    *(
        pa.field(f"{name}_per_event", pa.float64(), nullable=False)
        for name in ("ordered", "causal", "false_pairs", "missed_pairs")
    ),
]
MEASURE_SCHEMA = pa.schema(_FIELDS)
"""Columns of the result of `measure`; pairs are ordered pairs of messages of that observer."""


class ObserverMessages(NamedTuple):
    """Messages that one observer of a run received."""

    run: str | None
    observer: str
    timestamps: Stamps
    skipped_rules: dict[str, str]  # rule -> reason


def measure(
    events: pa.Table,
    rules: Sequence[str] | None = None,
    observers: Collection[str] | None = None,
    *,
    bounds: Bounds[str] | None = None,
    subscriptions: Subscriptions[str] | None = None,
    relation: str | None = None,
    truth: str | None = None,
    format: str = "table",
) -> pa.Table:
    """Count pairs of messages over a table of events in the schema; see `MEASURE_SCHEMA`.

    `rules`: None for all that the trace allows. `observers`: None for all that received. `bounds`:
    promises for rules by physical time. `subscriptions`: all topics for members that are not named.
    `relation`: see `runs_of`; `truth`: see `count_pairs`; `format`: format of the trace.

    Raise InputError for unknown names, for a named rule that is not measurable, and without
    evidence of causality (`antecede.tables.trace.evidence`). Raise CycleError for receipts in a
    cycle.
    """
    named_rules = [rule_named(name) for name in rules] if rules is not None else None
    received: set[str] = set()

    def rows() -> Iterator[tuple[Any, ...]]:
        for run in runs_of(events, relation):
            received.update(run.arrivals)
            for seen in select_observed(run, observers, bounds, subscriptions):
                yield from rows_of(seen, named_rules, truth)

    found = table_of(rows())
    check_observers(observers, received)
    evidence.demand(events, format)
    return found


def check_observers(observers: Collection[str] | None, received: set[str]) -> None:
    """Raise InputError for an observer without received messages."""
    if unknown := sorted({*(observers or ())} - received):
        known = ", ".join(sorted(received)) or "none"
        raise InputError(f"{unknown[0]!r} received nothing; observers: {known}")


def table_of(rows: Iterable[tuple[Any, ...]]) -> pa.Table:
    """Return rows of `rows_of` as a table."""
    columns = list(zip(*rows, strict=True)) or [()] * len(_FIELDS)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, _FIELDS, strict=True)]
    return pa.Table.from_arrays(arrays, schema=MEASURE_SCHEMA)


def rows_of(
    messages: ObserverMessages, rules: Sequence[Rule] | None, truth: str | None = None
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of one observer; raise InputError for a rule that is not measurable."""
    if rules is not None and (
        bad := [rule for rule in rules if rule.name in messages.skipped_rules]
    ):
        name = bad[0].name
        raise InputError(
            f"cannot measure {name} at {messages.observer}: {messages.skipped_rules[name]}"
        )
    chosen = rules or [rule for rule in RULES.values() if rule.name not in messages.skipped_rules]
    for rule, counts in zip(chosen, count_rules(messages.timestamps, chosen, truth), strict=True):
        names = (messages.run, messages.observer, rule.name, truth or rule.truth)
        yield (*names, counts.events, *counts[:4], *counts.average_per_event())


def select_observed(
    run: TraceRun,
    observers: Collection[str] | None = None,
    bounds: Bounds[str] | None = None,
    subscriptions: Subscriptions[str] | None = None,
) -> Iterator[ObserverMessages]:
    """Yield the messages of each observer of a run; `observers`: only these."""
    everything, limits = _compute_timestamps(run, bounds)
    for observer, arrivals in run.arrivals.items():
        if observers is None or observer in observers:
            subscription = ALL_TOPICS
            if subscriptions is not None and observer in subscriptions.topics:
                own = subscriptions.of(observer)
                subscription = sum(
                    1 << bit for bit, name in enumerate(run.topic_names) if name in own
                )
            stamps = _select_messages(everything, arrivals)._replace(
                limits=limits, subscription=subscription
            )
            yield ObserverMessages(run.name, observer, stamps, _find_skipped_rules(run, stamps))


def _compute_timestamps(
    run: TraceRun, bounds: Bounds[str] | None
) -> tuple[Stamps, BoundColumns | None]:
    n = len(run.ids)
    nowhere = np.zeros(n, np.int64)
    times = nowhere if run.pt_us is None else run.pt_us
    if run.rows is not None:
        clocks, column = run.compute_clocks()
        sender = column[run.sender]
        own = clocks.vector[np.arange(n), sender].astype(np.int64)
        stamps = Stamps(
            *(sender, own, clocks.lt, times, clocks.vector, nowhere),
            topics=run.topics,
            counts=None if run.topics is None else clocks.counts,
            lt_printed=clocks.lt_printed,
        )
        return stamps, _compute_limits(run, bounds, np.unique(run.sender).tolist())
    assert run.past is not None
    lt = compute_linear_times(run.past)
    senders = list(range(len(run.members)))
    if run.vector is not None:
        own = run.vector[np.arange(n), run.sender].astype(np.int64)
        stamps = Stamps(run.sender, own, lt, times, run.vector, nowhere)
        return stamps, _compute_limits(run, bounds, senders)
    sender = run.sender
    if bounds is None or (bounds.homogeneous and not bounds.least_ns):
        # Nothing depends on the senders, of which there may be thousands.
        sender, senders = nowhere, [0] if n else []
    stamps = Stamps(sender, np.arange(1, n + 1), lt, times, None, nowhere, past=run.past)
    return stamps, _compute_limits(run, bounds, senders)


def _compute_limits(
    run: TraceRun, bounds: Bounds[str] | None, senders: list[int]
) -> BoundColumns | None:
    if bounds is None:
        return None
    numbers = {name: number for number, name in enumerate(run.members)}
    named = bounds.list_members()
    here = bounds.among(numbers)  # a run may lack members of the bounds
    if named and not named & numbers.keys():
        raise InputError(f"bounds name {min(named)!r}, which is no member of the trace")
    return limits_of(here.replace_names(numbers), range(len(run.members)), senders)


def _select_messages(timestamps: Stamps, rows: Ints) -> Stamps:
    if (
        timestamps.past is not None
    ):  # one observer of all messages: rows keep the numbers of their causes
        arrival = np.empty(len(rows), np.int64)
        arrival[rows] = np.arange(len(rows))
        return timestamps._replace(arrival=arrival)
    columns = {
        name: getattr(timestamps, name)[rows]
        for name in ("sender", "seq", "lt", "pt_us", "vector", "topics", "counts", "lt_printed")
        if getattr(timestamps, name) is not None
    }
    return timestamps._replace(**columns, arrival=np.arange(len(rows)))


def _find_skipped_rules(run: TraceRun, timestamps: Stamps) -> dict[str, str]:
    found = {}
    for rule in RULES.values():
        if rule.topics and timestamps.past is not None:
            found[rule.name] = "topic vectors need receipts; this trace has declared causes"
        elif rule.topics and timestamps.counts is None:
            found[rule.name] = "messages have no topics, or more than 64"
        elif rule.reads_time and run.pt_us is None:
            found[rule.name] = "not all messages have a send time"
        elif rule.physical and timestamps.limits is None:
            found[rule.name] = "no bounds of clocks and delays"
        elif rule.uses_published_clock and rule.linear and timestamps.lt_printed is None:
            found[rule.name] = "the published clock needs receipts"
    return found
