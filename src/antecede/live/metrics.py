"""A live peer's figures as Prometheus reads them."""

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
        "whether the peer is in a group, not out of it or rejected, and its store works",
        "healthy",
    ),
    "stopped": ("whether it is cut off from the majority that its group needs", "stopped"),
    "held_batches": ("batches that are held back", "held"),
    "waiting_messages": (
        "delivered messages that the application is not done with",
        "waiting_for_application",
    ),
    "memory_bytes": ("batches in memory that somebody lacks", "memory_bytes"),
    "memory_limit_bytes": ("how much of that there may be", "memory_limit"),
    "disk_bytes": ("batches that somebody lacks and the store alone has", "disk_bytes"),
    "disk_limit_bytes": ("how much of both there may be; 0: no store", "disk_limit"),
    "inbox_bytes": ("delivered messages that wait for the application", "inbox_bytes"),
    "inbox_limit_bytes": ("how much of that there may be until senders stop", "inbox_limit"),
    "own_bytes": ("own messages that some member has not acknowledged", "own_bytes"),
    "own_limit_bytes": ("how much of that there may be until `send` waits", "own_limit"),
    "connection_bytes": ("written to connections and not taken yet", "connection_bytes"),
    "unstored_batches": ("batches that the store has not written yet", "unstored"),
}
_COUNTERS = {
    "sent_messages": ("messages that the application sent", "sent"),
    "delivered_messages": ("messages that came out of the order", "delivered"),
    "sent_batches": ("batches that were sent: messages that go together", "batches_sent"),
    "handed_on_batches": ("batches of others, sent to who lacked them", "handed_on"),
    "given_up_batches": ("batches given up, since what they depend on is gone", "given_up"),
    "untraced_rows": ("rows that the trace of this run lacks", "untraced"),
    "in_run_batches": ("batches that others got by their numbers alone (topics)", "in_runs"),
    "received_bytes": ("bytes from the others", "bytes_in"),
    "transmitted_bytes": ("bytes to the others", "bytes_out"),
}


def exposition(status: Status) -> bytes:
    """Return all figures of a peer, in Prometheus' text format 0.0.4."""
    registry = CollectorRegistry()
    registry.register(_Collected(status))
    return generate_latest(registry)


class _Collected:
    """What a registry asks for its figures."""

    def __init__(self, status: Status) -> None:
        self._status = status

    def collect(self) -> Iterator[Metric]:
        status = self._status
        labels, values = ["member", "room"], [status.name, status.group_name]
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
        yield self._refused(labels, values)
        words = "members that reject this one"
        rejecting = GaugeMetricFamily(PREFIX + "rejecting_members", words, labels=labels)
        rejecting.add_metric(values, len(self._status.rejected_by))
        yield rejecting
        yield from self._members(labels, values)
        if self._status.clock is not None:
            yield from _clock(self._status.clock, labels, values)
        if self._status.super_peer is not None:
            yield from self._star(self._status.super_peer, labels, values)

    def _star(self, star: SuperPeerStatus, labels: list[str], values: list[str]) -> Iterator[Metric]:
        words = "peers inside: connected, away, waiting to be let in"
        states = GaugeMetricFamily(PREFIX + "inside", words, labels=[*labels, "state"])
        for state in ("connected", "away", "waiting"):
            states.add_metric([*values, state], getattr(star, state))
        yield states
        for name, words in (
            ("unsafe", "messages that do not go down yet: a crash would take them back"),
            ("kept", "messages that somebody inside lacks, here or elsewhere"),
            ("kept_bytes", "the same as bytes"),
        ):
            gauge = GaugeMetricFamily(f"{PREFIX}inside_{name}", words, labels=labels)
            gauge.add_metric(values, getattr(star, name))
            yield gauge
        for name, words in (
            ("messages", "messages by way: up, down (once for all inside), outside"),
            ("control_bytes", "control information in these"),
            ("note_bytes", "control information of what is no message"),
        ):
            counter = CounterMetricFamily(f"{PREFIX}way_{name}", words, labels=[*labels, "way"])
            for one in star.traffic:
                counter.add_metric([*values, one.direction], getattr(one, name))
            yield counter

    def _oldest(self, labels: list[str], values: list[str]) -> Metric:
        words = "for how long the oldest held batch has been held"
        gauge = GaugeMetricFamily(PREFIX + "oldest_held_seconds", words, labels=labels)
        held = self._status.oldest_held
        gauge.add_metric(values, max((one.held_s for one in held), default=0.0))
        return gauge

    def _certificate(self, labels: list[str], values: list[str]) -> Metric:
        words = "how long the peer's own certificate holds from now on"
        gauge = GaugeMetricFamily(PREFIX + "certificate_left_seconds", words, labels=labels)
        gauge.add_metric(values, self._status.certificate_expires_in_s or 0.0)
        return gauge

    def _refused(self, labels: list[str], values: list[str]) -> Metric:
        words = "what came and was refused, by the kind of error"
        counter = CounterMetricFamily(PREFIX + "refused", words, labels=[*labels, "reason"])
        for reason, count in sorted(self._status.rejected.items()):
            counter.add_metric([*values, reason], float(count))
        return counter

    def _members(self, labels: list[str], values: list[str]) -> Iterator[Metric]:
        members = self._status.members
        words = "other members: live, lagging (what they lack is in the store alone), away"
        states = GaugeMetricFamily(PREFIX + "members", words, labels=[*labels, "state"])
        for state in (LIVE, LAGGING, AWAY):
            states.add_metric([*values, state], sum(one.state == state for one in members))
        yield states
        lacks = GaugeMetricFamily(
            PREFIX + "lacking_batches",
            "batches that another member has not acknowledged",
            labels=[*labels, "other"],
        )
        trips = GaugeMetricFamily(
            PREFIX + "round_trip_seconds",
            "the last heartbeat to another member and back",
            labels=[*labels, "other"],
        )
        for one in members:
            lacks.add_metric([*values, one.name], one.lag)
            if one.round_trip_s is not None:
                trips.add_metric([*values, one.name], one.round_trip_s)
        yield lacks
        yield trips


def _clock(clock: ClockStatus, labels: list[str], values: list[str]) -> Iterator[Metric]:
    """Yield the figures of an order by clocks."""
    figures = (
        ("clock_error_seconds", "how far its system says its clock may be off", clock.error_s),
        ("clock_promised_seconds", "what the order was promised of clocks", clock.promised_s),
        ("clock_ahead_seconds", "readings ahead of the clock, which was set back", clock.ahead_s),
        ("clocks_worse", "members whose clocks are worse than promised", len(clock.inaccurate_members)),
    )
    for name, words, value in figures:
        gauge = GaugeMetricFamily(PREFIX + name, words, labels=labels)
        if value is not None:
            gauge.add_metric(values, float(value))
        yield gauge
    words = "bounds of the order that were seen broken, by kind"
    alarms = CounterMetricFamily(PREFIX + "clock_alarms", words, labels=[*labels, "kind"])
    for kind in KINDS:
        alarms.add_metric([*values, kind], float(clock.bound_violations.get(kind, 0)))
    yield alarms
    named = [*labels, "other", "bound"]
    least = GaugeMetricFamily(
        PREFIX + "least_delay_seconds", "the least delay so far", labels=named
    )
    most = GaugeMetricFamily(PREFIX + "most_delay_seconds", "the largest so far", labels=named)
    for one in clock.delays:
        for k, bound in enumerate(("lower", "upper")):
            least.add_metric([*values, one.member, bound], one.least_s[k])
            most.add_metric([*values, one.member, bound], one.most_s[k])
    yield least
    yield most
