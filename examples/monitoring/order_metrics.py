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
    "antecede_held": Metric(GAUGE, ORDER, "Rows held for a cause."),
    "antecede_oldest_wait_seconds": Metric(
        GAUGE, ORDER, "Wait of the oldest held row, by the clock of the order."
    ),
    "antecede_state_bytes": Metric(GAUGE, ORDER, "Size of the state."),
    "antecede_written_bytes_total": Metric(COUNTER, ORDER, "Bytes written to the state."),
    "antecede_rows_total": Metric(COUNTER, (*ORDER, "status"), "Released rows, by status."),
    "antecede_micro_batches_total": Metric(COUNTER, QUERY, "Finished micro-batches."),
    "antecede_micro_batch_seconds": Metric(GAUGE, QUERY, "Duration of the last micro-batch."),
    "antecede_last_heard_timestamp_seconds": Metric(
        GAUGE, QUERY, "Time of the last report of the query: a micro-batch, or idle."
    ),
    "antecede_query_running": Metric(GAUGE, QUERY, "1: the query runs, 0: it has ended."),
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
    for order, metrics in observed.items():
        if not set(FIGURES) <= set(metrics) or metrics["held"] is None:
            continue
        labels, held, wait = (query, order), metrics["held"], metrics["oldest_wait_ms"]
        seconds = wait / 1000 if wait is not None else float("nan") if held else 0.0
        yield Sample("antecede_held", labels, held)
        yield Sample("antecede_oldest_wait_seconds", labels, seconds)
        yield Sample("antecede_state_bytes", labels, metrics["state_bytes"])
        yield Sample("antecede_written_bytes_total", labels, metrics["written_bytes"])
        for status, rows in metrics.items():
            if status not in FIGURES:
                yield Sample("antecede_rows_total", (*labels, status), rows)
