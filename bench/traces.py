"""Traces of extreme shape: ordering of one long chain, and of one message with many causes.

Processor seconds for a size and for four times it; linear algorithms take four times as long.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pyarrow as pa

from antecede.tables.audit import audit_events
from antecede.tables.order import order_trace, prepare
from antecede.tables.trace import QUARANTINE_SCHEMA, Event, Trace, to_batch

CHAIN = 250_000
CAUSES = 25_000


def main() -> None:
    for name, make, work, size in (
        ("order of a chain", _make_chain, _order_table, CHAIN),
        ("audit of a message with many causes", _make_star, audit_events, CAUSES),
    ):
        work(make(1000))  # compile
        seconds = [_measure_s(work, make(n)) for n in (size, 4 * size)]
        print(f"{name:<38} {size:>9,}: {seconds[0]:6.2f} s   {4 * size:>9,}: {seconds[1]:6.2f} s")


def _make_chain(size: int) -> pa.Table:
    causes = ((f"m{k - 1}",) if k else () for k in range(size))
    return _make_table([Event(id=f"m{k}", causes=p, send_time=k) for k, p in enumerate(causes)])


def _make_star(size: int) -> pa.Table:
    roots = [Event(id=f"m{k}") for k in range(size)]
    return _make_table([*roots, Event(id="last", causes=tuple(event.id for event in roots))])


def _make_table(events: list[Event]) -> pa.Table:
    return pa.Table.from_batches([to_batch(events)])


def _order_table(table: pa.Table) -> object:
    return order_trace(prepare(Trace(table, QUARANTINE_SCHEMA.empty_table(), "table")))


def _measure_s(work: Callable[[pa.Table], object], table: pa.Table) -> float:
    begin = time.process_time()
    work(table)
    return time.process_time() - begin


if __name__ == "__main__":
    main()
