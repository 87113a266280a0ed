"""Model of a simulation configuration, all but the seed. Times are seconds (engines: us)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from antecede.core.global_snapshots import ALGORITHMS
from antecede.errors import ConfigError
from antecede.lab.simulate.delays import LONGEST_S, US, Delay
from antecede.lab.simulate.topology import Topology

WORKLOADS = ("periodic", "poisson", "random", "replay")
MAX_RUN_S = 1e9  # Thirty years. Sums of times in microseconds stay within 64 bits.
MIN_RATE_HZ, FASTEST_HZ = 1 / LONGEST_S, float(US)
"""Limits of a peer's rate: a message per longest interval, and one per microsecond."""
MIN_RESYNC_S = 1e-3


@dataclass(frozen=True)
class Special:
    """Delay of channels from and to a role, "group:N", an address, or "any"."""

    source: str
    target: str
    delay: Delay


@dataclass(frozen=True)
class Partition:
    """A time span in which `side` and the rest are cut off. Copies are `lost` or delayed."""

    start_s: float
    end_s: float
    side: tuple[int, ...]
    lost: bool = False

    def __post_init__(self) -> None:
        _check_range(self, "start_s")
        if not self.start_s < self.end_s <= MAX_RUN_S:
            raise ConfigError(
                f"end_s: {self.end_s} s; expected more than start_s = {self.start_s} s and at most "
                f"{MAX_RUN_S:g}"
            )
        if not self.side:
            raise ConfigError("side: empty; expected at least one address")


@dataclass(frozen=True)
class Links:
    """The network. The first matching `special` delay holds, else `delay`.

    `matrix`: one-way delays in seconds between locations, square. Address a is at location a modulo
    its size, and `delay` is added as jitter. `fifo`: channels do not reorder. `loss`, `duplicate`:
    probabilities of a copy, 0 to 1. `service_s`: time that a receiver takes for a copy. `buffer`:
    size of the receive buffer in copies; others are lost (None: no limit).
    """

    delay: Delay = field(default_factory=lambda: Delay(0.05, 0.25))
    special: tuple[Special, ...] = ()
    matrix: tuple[tuple[float, ...], ...] | None = None
    fifo: bool = False
    loss: float = 0.0
    duplicate: float = 0.0
    partitions: tuple[Partition, ...] = ()
    buffer: int | None = None
    service_s: float = 0.0

    def __post_init__(self) -> None:
        for name, value in (("loss", self.loss), ("duplicate", self.duplicate)):
            if not 0 <= value < 1:
                raise ConfigError(f"{name}: {value}; expected a probability below 1")
        if self.matrix is not None:
            _check_matrix(self.matrix)
        _check_range(self, "buffer", 1)
        _check_range(self, "service_s", 0, LONGEST_S)


def _check_range(of: Any, name: str, minimum: float = 0, maximum: float = math.inf) -> None:
    value = getattr(of, name)
    if value is None or (minimum <= value <= maximum and value < math.inf):
        return
    unit = " s" if name.endswith("_s") else ""
    limit = f" and at most {maximum:g}" if maximum < math.inf else ""
    raise ConfigError(f"{name}: {value}{unit}; expected {minimum} or more{limit}")


def _check_matrix(matrix: tuple[tuple[float, ...], ...]) -> None:
    if not matrix:
        raise ConfigError("matrix: empty; remove the key for delays without locations")
    for number, row in enumerate(matrix, start=1):
        if len(row) != len(matrix):
            raise ConfigError(
                f"matrix: row {number} has {len(row)} delays, expected {len(matrix)}: "
                "the matrix must be square"
            )
        for value in row:
            if not 0 <= value <= LONGEST_S:
                raise ConfigError(
                    f"matrix: delay {value} s in row {number}; expected 0 or more and at most "
                    f"{LONGEST_S:g}"
                )


@dataclass(frozen=True)
class Clocks:
    """Physical clocks, never further than `accuracy_s` from true time.

    `drift_ppm`: largest deviation of a clock's rate, millionths. A drifting clock is set anew every
    `resync_s`. Its offset is drawn within the accuracy that drift leaves.
    """

    accuracy_s: float = 0.0
    drift_ppm: float = 0.0
    resync_s: float = 0.0

    def __post_init__(self) -> None:
        _check_range(self, "accuracy_s", 0, LONGEST_S)
        _check_range(self, "drift_ppm")
        _check_range(self, "resync_s")
        if self.drift_ppm and not self.resync_s:
            raise ConfigError("resync_s: missing; a clock with drift_ppm needs it")
        if self.drift_ppm and self.resync_s < MIN_RESYNC_S:
            raise ConfigError(f"resync_s: {self.resync_s:g} s; expected {MIN_RESYNC_S:g} or more")
        if self.drift_ppm * 1e-6 * self.resync_s > self.accuracy_s:
            raise ConfigError(
                f"accuracy_s: a drift of {self.drift_ppm} ppm exceeds {self.accuracy_s} s within "
                f"{self.resync_s} s"
            )


@dataclass(frozen=True)
class Workload:
    """Messages of the application.

    `kind`: "periodic" (every `interval`, from a random start within its mean), "poisson" (`rate_hz`
    per peer), "random" (`messages` in total, at random peers and times), "replay" (the events of
    the trace `path`, with its authors as peers). `total_hz`: messages per second of all peers;
    periodic intervals and Poisson rates are scaled to it. `silent`: peers that never send, from
    each role in proportion. `fanout`: random addressees of a message (None: all). `topics`: largest
    number of topics of a publication, drawn from 1 (Nakayama 2017: k_i, at most xt).
    `reply_fraction`: probability that a message replies to one of the last `recent` that its sender
    has delivered.
    """

    kind: str = "periodic"
    interval: Delay = field(default_factory=lambda: Delay(0.07, 0.09))
    rate_hz: float = 12.5
    total_hz: float | None = None
    messages: int | None = None
    silent: int = 0
    fanout: int | None = None
    topics: int = 1
    reply_fraction: float = 0.0
    recent: int = 8
    path: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in WORKLOADS:
            raise ConfigError(
                f"kind: unknown workload {self.kind!r}; choose from {', '.join(WORKLOADS)}"
            )
        if self.kind == "periodic" and self.interval.low_s < 1 / FASTEST_HZ:
            raise ConfigError(
                f"interval: low is {self.interval.low_s:g} s; expected at least a microsecond"
            )
        for name in ("rate_hz", "total_hz"):
            rate = getattr(self, name)
            if rate is not None and not 0 < rate < math.inf:
                raise ConfigError(f"{name}: {rate} per second; expected more than 0")
        if not MIN_RATE_HZ <= self.rate_hz <= FASTEST_HZ:
            raise ConfigError(
                f"rate_hz: {self.rate_hz:g} per second; expected {MIN_RATE_HZ:g} to "
                f"{FASTEST_HZ:,.0f}"
            )
        least_of = {"messages": 0, "silent": 0, "fanout": 1, "topics": 1, "recent": 1}
        for name, least in least_of.items():
            _check_range(self, name, least)
        if not 0 <= self.reply_fraction <= 1:
            raise ConfigError(f"reply_fraction: {self.reply_fraction}; expected a probability")
        if self.kind == "random" and self.messages is None:
            raise ConfigError("messages: missing; a random workload needs it")
        if self.kind == "replay" and self.path is None:
            raise ConfigError("path: missing; a replay needs the path of a trace")


@dataclass(frozen=True)
class SnapshotPlan:
    """Recorded global states: algorithm (`antecede.core.global_snapshots`), times, initiators."""

    algorithm: str
    at_s: tuple[float, ...]
    by: tuple[int, ...] = (0,)

    def __post_init__(self) -> None:
        if self.algorithm not in ALGORITHMS:
            names = ", ".join(ALGORITHMS)
            raise ConfigError(
                f"algorithm: unknown algorithm {self.algorithm!r}; choose from {names}"
            )
        if not self.at_s:
            raise ConfigError("at_s: empty; expected at least one time")
        for earlier, later in zip((-math.inf, *self.at_s), self.at_s, strict=False):
            if not later >= 0:
                raise ConfigError(f"at_s: {later:g} s; expected 0 or more")
            if later <= earlier:
                raise ConfigError(
                    f"at_s: {later:g} s after {earlier:g} s; expected ascending times"
                )
        if not self.by or len({*self.by}) < len(self.by):
            raise ConfigError("by: expected at least one address, without duplicates")


@dataclass(frozen=True)
class SimulationConfig:
    """Configuration of a run except for its seed. Raises ConfigError.

    Hashable except for `options`. `protocol` is a name of the registry, `variant` one of its
    variants. Messages are sent until `duration_s`; then copies in flight arrive. Metrics count from
    `warm_s`. Storage is sampled every `sample_s`.
    """

    topology: Topology
    protocol: str = "idr"
    variant: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    links: Links = field(default_factory=Links)
    workload: Workload = field(default_factory=Workload)
    clocks: Clocks = field(default_factory=Clocks)
    duration_s: float = 5.0
    warm_s: float = 0.0
    sample_s: float = 0.05
    name: str = ""
    snapshots: SnapshotPlan | None = None

    def __post_init__(self) -> None:
        if not 0 < self.duration_s <= MAX_RUN_S:
            raise ConfigError(
                f"duration_s: {self.duration_s} s; expected more than 0 and at most {MAX_RUN_S:g}"
            )
        if not 0 <= self.warm_s < self.duration_s:
            raise ConfigError(
                f"warm_s: {self.warm_s} s; expected 0 or more and less than duration_s = "
                f"{self.duration_s} s"
            )
        if not 0 < self.sample_s < math.inf:
            raise ConfigError(f"sample_s: {self.sample_s} s; expected more than 0")
        if self.workload.silent >= len(self.topology.senders()):
            raise ConfigError(
                f"silent: {self.workload.silent} of {len(self.topology.senders())} peers; "
                "at least one must send"
            )
        _check_total(self.workload, len(self.topology.senders()) - self.workload.silent)
        if self.snapshots is not None and self.snapshots.at_s[-1] >= self.duration_s:
            raise ConfigError(
                f"at_s: snapshot at {self.snapshots.at_s[-1]:g} s; expected less than duration_s = "
                f"{self.duration_s:g} s"
            )


def _check_total(workload: Workload, senders: int) -> None:
    if workload.total_hz is None:
        return
    each_hz = workload.total_hz / senders
    least, most = MIN_RATE_HZ, FASTEST_HZ
    if workload.kind == "periodic":  # the scaled longest interval must be allowed
        least *= workload.interval.high_s / workload.interval.mean_s
    if not least <= each_hz <= most:
        raise ConfigError(
            f"total_hz: {workload.total_hz:g} per second of {senders:,} peers; expected "
            f"{least * senders:.3g} to {most * senders:.3g}"
        )
