"""Prometheus metrics of a live peer."""

from __future__ import annotations

from collections.abc import Iterator

from antecede.errors import MissingExtraError
from antecede.live.clock_status import ClockStatus
from antecede.live.status import AWAY, LAGGING, LIVE, Status, SuperPeerStatus
from antecede.live.timekeeping import KINDS

try:
    from prometheus_client import CollectorRegistry, generate_latest
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
except ImportError as error:
    raise MissingExtraError("metrics of live peers", "live") from error

KIND = "text/plain; version=0.0.4; charset=utf-8"
PREFIX = "antecede_live_"
_GAUGES = {
    "up": (
        "1 if the peer is in a group, accepted by its members, with a working store",
        "is_healthy",
    ),
    "in_minority": ("1 if the peer is cut off from the majority of its group", "in_minority"),
    "held_batches": ("held batches", "held"),
    "pending_messages": (
        "delivered messages that the application has not finished",
        "pending_messages",
    ),
    "memory_bytes": ("batches in memory that some member lacks", "memory_bytes"),
    "memory_limit_bytes": ("limit of memory_bytes", "memory_limit"),
    "disk_bytes": ("batches only in the store that some member lacks", "disk_bytes"),
    "disk_limit_bytes": (
        "limit of memory_bytes and disk_bytes together; 0: no store",
        "disk_limit",
    ),
    "inbox_bytes": ("delivered messages that the application has not taken", "inbox_bytes"),
    "inbox_limit_bytes": ("inbox_bytes beyond which senders wait", "inbox_limit"),
    "unacknowledged_bytes": (
        "own messages that some member has not acknowledged",
        "unacknowledged_bytes",
    ),
    "unacknowledged_limit_bytes": (
        "unacknowledged_bytes beyond which `send` waits",
        "unacknowledged_limit",
    ),
    "connection_bytes": ("bytes written to connections and not sent yet", "connection_bytes"),
    "pending_writes": ("batches that the store has not written yet", "pending_writes"),
}
_COUNTERS = {
    "sent_messages": ("messages that the application sent", "sent"),
    "delivered_messages": ("messages delivered by the order", "delivered"),
    "sent_batches": ("batches sent: groups of messages", "batches_sent"),
    "relayed_batches": ("batches of other members forwarded", "relayed"),
    "abandoned_batches": ("batches abandoned, since their causes are lost", "abandoned"),
    "trace_rows_dropped": ("rows missing from the trace of this run", "trace_rows_dropped"),
    "skipped_batches": ("batches sent as numbers only (topics)", "skipped_batches"),
    "received_bytes": ("bytes received from other members", "bytes_in"),
    "transmitted_bytes": ("bytes sent to other members", "bytes_out"),
}


def exposition(status: Status) -> bytes:
    """Return all metrics of a peer in Prometheus' text format 0.0.4."""
    registry = CollectorRegistry()
    registry.register(_Collected(status))
    return generate_latest(registry)


class _Collected:
    """Collector for a registry."""

    def __init__(self, status: Status) -> None:
        self._status = status

    def collect(self) -> Iterator[Metric]:
        status = self._status
        labels, values = ["member", "group_name"], [status.name, status.group_name]
        for name, (words, attribute) in _GAUGES.items():
            gauge = GaugeMetricFamily(PREFIX + name, words, labels=labels)
            gauge.add_metric(values, float(getattr(status, attribute)))
            yield gauge
        for name, (words, attribute) in _COUNTERS.items():
            counter = CounterMetricFamily(PREFIX + name, words, labels=labels)
            counter.add_metric(values, float(getattr(status, attribute)))
            yield counter
        yield self._oldest(labels, values)
        if self._status.certificate_expires_in_s is not None:
            yield self._certificate(labels, values)
        yield self._rejections(labels, values)
        words = "members that reject this one"
        rejecting = GaugeMetricFamily(PREFIX + "rejecting_members", words, labels=labels)
        rejecting.add_metric(values, len(self._status.rejected_by))
        yield rejecting
        yield from self._members(labels, values)
        if self._status.clock is not None:
            yield from _clock(self._status.clock, labels, values)
        if self._status.super_peer is not None:
            yield from self._star(self._status.super_peer, labels, values)

    def _star(
        self, star: SuperPeerStatus, labels: list[str], values: list[str]
    ) -> Iterator[Metric]:
        words = "internal peers: connected, away, joining"
        states = GaugeMetricFamily(PREFIX + "internal_peers", words, labels=[*labels, "state"])
        for state in ("connected", "away", "joining"):
            states.add_metric([*values, state], getattr(star, state))
        yield states
        for name, words in (
            ("not_durable", "messages not sent down yet, since a crash could undo them"),
            ("retained", "messages kept for internal peers, here or behind other super peers"),
            ("retained_bytes", "bytes of the retained messages"),
        ):
            gauge = GaugeMetricFamily(f"{PREFIX}internal_{name}", words, labels=labels)
            gauge.add_metric(values, getattr(star, name))
            yield gauge
        for name, words in (
            ("messages", "messages by direction: up, down (counted once), outside"),
            ("control_bytes", "control information of these messages"),
            ("control_message_bytes", "bytes of control messages"),
        ):
            counter = CounterMetricFamily(
                f"{PREFIX}traffic_{name}", words, labels=[*labels, "direction"]
            )
            for one in star.traffic:
                counter.add_metric([*values, one.direction], getattr(one, name))
            yield counter

    def _oldest(self, labels: list[str], values: list[str]) -> Metric:
        words = "time for which the oldest held batch has been held"
        gauge = GaugeMetricFamily(PREFIX + "oldest_held_seconds", words, labels=labels)
        held = self._status.oldest_held
        gauge.add_metric(values, max((one.held_s for one in held), default=0.0))
        return gauge

    def _certificate(self, labels: list[str], values: list[str]) -> Metric:
        words = "remaining validity of the own certificate"
        gauge = GaugeMetricFamily(PREFIX + "certificate_expires_in_seconds", words, labels=labels)
        gauge.add_metric(values, self._status.certificate_expires_in_s or 0.0)
        return gauge

    def _rejections(self, labels: list[str], values: list[str]) -> Metric:
        words = "rejections by error class"
        counter = CounterMetricFamily(PREFIX + "rejected", words, labels=[*labels, "reason"])
        for reason, count in sorted(self._status.rejected.items()):
            counter.add_metric([*values, reason], float(count))
        return counter

    def _members(self, labels: list[str], values: list[str]) -> Iterator[Metric]:
        members = self._status.members
        words = "other members: live, lagging (their next batch is only in the store), away"
        states = GaugeMetricFamily(PREFIX + "members", words, labels=[*labels, "state"])
        for state in (LIVE, LAGGING, AWAY):
            states.add_metric([*values, state], sum(one.state == state for one in members))
        yield states
        lacks = GaugeMetricFamily(
            PREFIX + "lag_batches",
            "batches that another member has not acknowledged",
            labels=[*labels, "other"],
        )
        trips = GaugeMetricFamily(
            PREFIX + "round_trip_seconds",
            "round trip of the last heartbeat to another member",
            labels=[*labels, "other"],
        )
        for one in members:
            lacks.add_metric([*values, one.name], one.lag)
            if one.round_trip_s is not None:
                trips.add_metric([*values, one.name], one.round_trip_s)
        yield lacks
        yield trips


def _clock(clock: ClockStatus, labels: list[str], values: list[str]) -> Iterator[Metric]:
    """Yield the metrics of an order by clocks."""
    figures = (
        ("clock_error_seconds", "largest error of the clock, by its system", clock.error_s),
        ("clock_promised_seconds", "promised accuracy of clocks", clock.promised_s),
        (
            "clock_ahead_seconds",
            "lead of the readings over the clock that was set back",
            clock.ahead_s,
        ),
        (
            "inaccurate_clocks",
            "members whose clocks are worse than promised",
            len(clock.inaccurate_members),
        ),
    )
    for name, words, value in figures:
        gauge = GaugeMetricFamily(PREFIX + name, words, labels=labels)
        if value is not None:
            gauge.add_metric(values, float(value))
        yield gauge
    words = "observed violations of the bounds of the order, by kind"
    alarms = CounterMetricFamily(PREFIX + "clock_bound_violations", words, labels=[*labels, "kind"])
    for kind in KINDS:
        alarms.add_metric([*values, kind], float(clock.bound_violations.get(kind, 0)))
    yield alarms
    named = [*labels, "other", "bound"]
    least = GaugeMetricFamily(PREFIX + "least_delay_seconds", "smallest delay so far", labels=named)
    most = GaugeMetricFamily(PREFIX + "most_delay_seconds", "largest delay so far", labels=named)
    for one in clock.delays:
        for k, bound in enumerate(("lower", "upper")):
            least.add_metric([*values, one.member, bound], one.least_s[k])
            most.add_metric([*values, one.member, bound], one.most_s[k])
    yield least
    yield most
