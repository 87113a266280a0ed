"""The meter over a trace: a row for each run, observer and rule."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from antecede.core.clocks import Bounds
from antecede.core.protocols.topics import Subscriptions
from antecede.errors import InputError
from antecede.tables.false_causality.count import count_rules
from antecede.tables.false_causality.executions import Run
from antecede.tables.false_causality.kernels.causal_past import linear_times
from antecede.tables.false_causality.rules import RULES, Rule, rule_named
from antecede.tables.false_causality.timestamps import ALL_TOPICS, Limits, Stamps, limits_of
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
"""Columns of what `measure` returns; pairs are ordered pairs of messages of that observer."""


class Observed(NamedTuple):
    """Messages that one observer of a run received."""

    run: str | None
    observer: str
    stamps: Stamps
    lacking: dict[str, str]  # rule -> why it cannot be measured here


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

    `rules` are names of `tables.false_causality.rules`; None: all that the trace allows.
    `observers` are members; None: all that received. `bounds`: promises for rules by physical time.
    `subscriptions` of members that are not named are all topics. `relation`: see `trace.runs_of`;
    `truth`: see `count_pairs`. Raises InputError for unknown names, for a named rule that cannot be
    measured, for a table that cannot be read, and for one without evidence of causality
    (`antecede.tables.trace.evidence`; `format`: its origin); CycleError for receipts in a circle.
    """
    wanted = [rule_named(name) for name in rules] if rules is not None else None
    received: set[str] = set()

    def rows() -> Iterator[tuple[Any, ...]]:
        for run in runs_of(events, relation):
            received.update(run.arrivals)
            for seen in observed(run, observers, bounds, subscriptions):
                yield from rows_of(seen, wanted, truth)

    found = table_of(rows())
    check_observers(observers, received)
    evidence.demand(events, format)
    return found


def check_observers(observers: Collection[str] | None, received: set[str]) -> None:
    """Raise InputError for an observer that received nothing."""
    if unknown := sorted({*(observers or ())} - received):
        known = ", ".join(sorted(received)) or "nobody"
        raise InputError(f"{unknown[0]!r} received nothing; observers: {known}")


def table_of(rows: Iterable[tuple[Any, ...]]) -> pa.Table:
    """Return rows of `rows_of` as a table."""
    columns = list(zip(*rows, strict=True)) or [()] * len(_FIELDS)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, _FIELDS, strict=True)]
    return pa.Table.from_arrays(arrays, schema=MEASURE_SCHEMA)


def rows_of(
    seen: Observed, wanted: Sequence[Rule] | None, truth: str | None = None
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of one observer; raises InputError for a rule that cannot be measured."""
    if wanted is not None and (bad := [rule for rule in wanted if rule.name in seen.lacking]):
        name = bad[0].name
        raise InputError(f"{name} cannot be measured at {seen.observer}: {seen.lacking[name]}")
    chosen = wanted or [rule for rule in RULES.values() if rule.name not in seen.lacking]
    for rule, counts in zip(chosen, count_rules(seen.stamps, chosen, truth), strict=True):
        names = (seen.run, seen.observer, rule.name, truth or rule.truth)
        yield (*names, counts.events, *counts[:4], *counts.per_event())


def observed(
    run: Run,
    observers: Collection[str] | None = None,
    bounds: Bounds[str] | None = None,
    subscriptions: Subscriptions[str] | None = None,
) -> Iterator[Observed]:
    """Yield what each observer of a run received; of `observers`, those who did."""
    everything, limits = _stamps(run, bounds)
    for observer, came in run.arrivals.items():
        if observers is None or observer in observers:
            wanted = ALL_TOPICS
            if subscriptions is not None and observer in subscriptions.topics:
                own = subscriptions.of(observer)
                wanted = sum(1 << bit for bit, name in enumerate(run.topic_names) if name in own)
            stamps = _taken(everything, came)._replace(limits=limits, subscription=wanted)
            yield Observed(run.name, observer, stamps, _lacking(run, stamps))


def _stamps(run: Run, bounds: Bounds[str] | None) -> tuple[Stamps, Limits | None]:
    """Return the stamps of all messages of a run, and the limits of their senders."""
    n = len(run.ids)
    nowhere = np.zeros(n, np.int64)
    times = nowhere if run.pt_us is None else run.pt_us
    if run.rows is not None:
        clocks, column = run.clocks()
        sender = column[run.sender]
        own = clocks.vector[np.arange(n), sender].astype(np.int64)
        stamps = Stamps(
            *(sender, own, clocks.lt, times, clocks.vector, nowhere),
            topics=run.topics,
            counts=None if run.topics is None else clocks.counts,
            lt_printed=clocks.lt_printed,
        )
        return stamps, _limits(run, bounds, np.unique(run.sender).tolist())
    assert run.past is not None
    lt = linear_times(run.past)
    senders = list(range(len(run.members)))
    if run.vector is not None:
        own = run.vector[np.arange(n), run.sender].astype(np.int64)
        stamps = Stamps(run.sender, own, lt, times, run.vector, nowhere)
        return stamps, _limits(run, bounds, senders)
    sender = run.sender
    if bounds is None or (bounds.homogeneous and not bounds.least_ns):
        # Nothing depends on who sent what, and there may be thousands.
        sender, senders = nowhere, [0] if n else []
    stamps = Stamps(sender, np.arange(1, n + 1), lt, times, None, nowhere, past=run.past)
    return stamps, _limits(run, bounds, senders)


def _limits(run: Run, bounds: Bounds[str] | None, senders: list[int]) -> Limits | None:
    if bounds is None:
        return None
    numbers = {name: number for number, name in enumerate(run.members)}
    named = bounds.named()
    here = bounds.among(numbers)  # a run need not have all members that bounds are given for
    if named and not named & numbers.keys():
        raise InputError(f"bounds are given for {min(named)!r}, who is not in the trace")
    return limits_of(here.numbered(numbers), range(len(run.members)), senders)


def _taken(stamps: Stamps, came: Ints) -> Stamps:
    """Return the stamps of what came, in that order."""
    if stamps.past is not None:  # one observer, who sees all: rows stay where causes find them
        arrival = np.empty(len(came), np.int64)
        arrival[came] = np.arange(len(came))
        return stamps._replace(arrival=arrival)
    columns = {
        name: getattr(stamps, name)[came]
        for name in ("sender", "seq", "lt", "pt_us", "vector", "topics", "counts", "lt_printed")
        if getattr(stamps, name) is not None
    }
    return stamps._replace(**columns, arrival=np.arange(len(came)))


def _lacking(run: Run, stamps: Stamps) -> dict[str, str]:
    """Return why rules cannot be measured."""
    found = {}
    for rule in RULES.values():
        if rule.topics and stamps.past is not None:
            found[rule.name] = "topic vectors need rows of receipts; this trace declares causes"
        elif rule.topics and stamps.counts is None:
            found[rule.name] = "messages have no topics, or more than 64"
        elif rule.timed and run.pt_us is None:
            found[rule.name] = "messages have no time of sending, or not all of them"
        elif rule.physical and stamps.limits is None:
            found[rule.name] = "no bounds of clocks and delays are given"
        elif rule.printed_clock and rule.linear and stamps.lt_printed is None:
            found[rule.name] = "the printed clock needs rows of receipts"
    return found
