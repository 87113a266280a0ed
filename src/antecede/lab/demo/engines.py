"""Receipts ordered by the local engine and by Spark, and baselines."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow

from antecede.errors import AntecedeError
from antecede.lab.demo.arrivals import Arrivals, choose_watermarks
from antecede.tables import order
from antecede.tables.kernels import measure_compile_time

POLL_S = 0.2
FIRST_ROWS = 1000


class OrderedRows(NamedTuple):
    """Ordered receipts; `first_s`: time of the first call, which compiles, not in `seconds`."""

    table: pyarrow.Table
    seconds: float
    first_s: float = 0.0


def make_order_spec(arrivals: Arrivals) -> order.OrderSpec:
    """Return the order specification of these rows: declared causes, ties by arrival."""
    return order.OrderSpec(
        id="id",
        after=("causes",),
        group="member" if arrivals.by_member else None,
        time=arrivals.arrived_by,
        time_unit="ns" if arrivals.has_times else None,
        content=("id",),
    )


def order_locally(arrivals: Arrivals) -> OrderedRows:
    """Order the rows in this process, after a warm-up call."""
    spec, begin = make_order_spec(arrivals), time.monotonic()
    order.order_table(arrivals.table.slice(0, FIRST_ROWS), spec)
    first_s = time.monotonic() - begin
    with measure_compile_time() as spent:
        table = order.order_table(arrivals.table, spec)
    return OrderedRows(table, spent.working_s, first_s)


class SparkStart:
    """Background start of Spark, so that the local result need not wait for it."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._session: Any = None
        self._error: AntecedeError | None = None
        self._thread = threading.Thread(target=self._start, daemon=True)
        self._thread.start()

    def _start(self) -> None:
        from antecede.spark import local_session

        try:
            self._session = local_session(name="antecede demo")
        except AntecedeError as error:
            self._error = error

    def session(self, progress: Callable[[float, str], None]) -> Any:
        """Wait for the session and return it; `progress` receives seconds. Raises SetupError."""
        while self._thread.is_alive():
            self._thread.join(timeout=POLL_S)
            progress(time.monotonic() - self._started, "s")
        if self._error is not None:
            raise self._error
        return self._session


def order_on_spark(arrivals: Arrivals, session: Any) -> OrderedRows:
    """Order the rows on Spark."""
    from antecede.spark import order_with

    begin = time.monotonic()
    columns = ["kind", "member", "id", "causes", arrivals.arrived_by, "file_order"]
    frame = session.createDataFrame(arrivals.table.select(list(dict.fromkeys(columns))))
    table = frame.transform(order_with(make_order_spec(arrivals))).toArrow()
    return OrderedRows(table, time.monotonic() - begin)


def is_same_order(a: pyarrow.Table, b: pyarrow.Table) -> bool:
    """Return True if two engines gave every row the same position."""
    names = ["member", "id", "file_order", "position"]
    left, right = (table.select(names).sort_by("file_order").combine_chunks() for table in (a, b))
    return bool(left.equals(right.cast(left.schema)))


def order_baselines(arrivals: Arrivals) -> list[order.BaselineOutcome]:
    """Return the results of arrival order, timestamp sort and watermarks on the same arrivals."""
    split = order.streams(arrivals.rows())
    if arrivals.sent_by is None:
        return [order.as_they_come(split)]
    tried = [order.as_they_come(split), order.by_timestamp(split)]
    if arrivals.has_times:
        tried += [
            order.by_watermark(split, width, name) for width, name in choose_watermarks(split)
        ]
    return tried


def measure_causal_order(ordered: pyarrow.Table, timed: bool) -> order.BaselineOutcome:
    """Return the result of the causal order; repeated rows do not count as dropped."""
    waits: list[float] = []
    if timed:
        waits = sorted(w for w in ordered.column("waited_ms").to_pylist() if w is not None)
    repeated = (str(order.Status.DUPLICATE), str(order.Status.CONFLICT))
    statuses = ordered.column("antecede_status").to_pylist()
    places = ordered.column("position").to_pylist()
    dropped = sum(p is None and s not in repeated for p, s in zip(places, statuses, strict=True))
    return order.BaselineOutcome("causal release", ordered.num_rows, dropped, 0, 0, tuple(waits))
