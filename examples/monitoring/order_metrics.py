"""Prometheus samples from the observed metrics of causal orders, without dependencies.

`exporter.py` serves them, `prometheus.yml`, `rules.yml` and `dashboard.json` use them.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

GAUGE, COUNTER = "gauge", "counter"
ORDER, QUERY = ("query", "order"), ("query",)


class Metric(NamedTuple):
    """Kind (gauge or counter), labels and help text of a metric."""

    kind: str
    labels: tuple[str, ...]
    help_text: str


METRICS = {
    "antecede_held": Metric(GAUGE, ORDER, "Rows that wait for a cause."),
    "antecede_oldest_wait_seconds": Metric(
        GAUGE, ORDER, "For how long the oldest of them waits, by the clock of the order."
    ),
    "antecede_state_bytes": Metric(GAUGE, ORDER, "Size of the state."),
    "antecede_written_bytes_total": Metric(COUNTER, ORDER, "Bytes written to the state."),
    "antecede_rows_total": Metric(COUNTER, (*ORDER, "status"), "Rows that left, by status."),
    "antecede_micro_batches_total": Metric(COUNTER, QUERY, "Micro-batches that are done."),
    "antecede_micro_batch_seconds": Metric(GAUGE, QUERY, "How long the last one took."),
    "antecede_last_heard_timestamp_seconds": Metric(
        GAUGE, QUERY, "When the query last reported a micro-batch, or that it is idle."
    ),
    "antecede_query_running": Metric(GAUGE, QUERY, "1 while the query runs, 0 once it has ended."),
}
FIGURES = ("held", "oldest_wait_ms", "state_bytes", "written_bytes")
"""Metrics of an order, besides the counts by status."""


class Sample(NamedTuple):
    """New value of a gauge, or increment of a counter."""

    metric: str
    labels: tuple[str, ...]
    value: float


def samples(query: str, observed: Mapping[str, Mapping[str, Any]]) -> Iterator[Sample]:
    """Yield the samples of one micro-batch from its `observedMetrics`, as dictionaries.

    Other observations are ignored. A micro-batch without rows reports nothing, and gauges keep
    their values. An unknown wait (no `time`) is NaN.
    """
    for order, said in observed.items():
        if not set(FIGURES) <= set(said) or said["held"] is None:
            continue
        labels, held, wait = (query, order), said["held"], said["oldest_wait_ms"]
        seconds = wait / 1000 if wait is not None else float("nan") if held else 0.0
        yield Sample("antecede_held", labels, held)
        yield Sample("antecede_oldest_wait_seconds", labels, seconds)
        yield Sample("antecede_state_bytes", labels, said["state_bytes"])
        yield Sample("antecede_written_bytes_total", labels, said["written_bytes"])
        for status, rows in said.items():
            if status not in FIGURES:
                yield Sample("antecede_rows_total", (*labels, status), rows)
