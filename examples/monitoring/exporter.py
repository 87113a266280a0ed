"""StreamingQueryListener that exports the metrics of causal orders to Prometheus.

pip install prometheus_client

    listener = Exporter()
    spark.streams.addListener(listener)
    listener.serve(9108)
"""

import time
from typing import Any

from order_metrics import GAUGE, METRICS, Sample, samples
from prometheus_client import CollectorRegistry, Counter, Gauge, start_http_server
from pyspark.sql.streaming import StreamingQueryListener


class Exporter(StreamingQueryListener):
    """Metrics of all queries of a session; runs on the driver."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.metrics: dict[str, Any] = {
            name: (Gauge if metric.kind == GAUGE else Counter)(
                name, metric.help_text, metric.labels, registry=self.registry
            )
            for name, metric in METRICS.items()
        }
        self.names: dict[str, str] = {}

    def serve(self, port: int, address: str = "127.0.0.1") -> tuple[Any, Any]:
        """Serve /metrics in a thread; return the server (`.shutdown()`) and the thread.

        Port 0: a free port, in `.server_port` of the server. Everyone who can connect can read the
        metrics: restrict the address.
        """
        return start_http_server(port, address, registry=self.registry)

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        """Register a query; without a name its id is used."""
        self.names[str(event.id)] = event.name or str(event.id)
        self._update_running(str(event.id), running=True)

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        """Export a finished micro-batch."""
        progress = event.progress
        query = self._update_running(str(progress.id), running=True)
        observed = {name: row.asDict() for name, row in progress.observedMetrics.items()}
        for sample in samples(query, observed):
            self._take(sample)
        self._take(Sample("antecede_micro_batches_total", (query,), 1))
        self._take(Sample("antecede_micro_batch_seconds", (query,), progress.batchDuration / 1000))

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """Mark an idle query as running."""
        self._update_running(str(event.id), running=True)

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        """Mark a query as ended."""
        self._update_running(str(event.id), running=False)

    def _update_running(self, query_id: str, *, running: bool) -> str:
        query = self.names.get(query_id, query_id)
        self._take(Sample("antecede_last_heard_timestamp_seconds", (query,), time.time()))
        self._take(Sample("antecede_query_running", (query,), int(running)))
        return query

    def _take(self, sample: Sample) -> None:
        metric = self.metrics[sample.metric].labels(*sample.labels)
        if METRICS[sample.metric].kind == GAUGE:
            metric.set(sample.value)
        else:
            metric.inc(sample.value)
