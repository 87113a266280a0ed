"""Metrics of a run and their counting rules. `result` lists the names.

Counting rules of all engines
-----------------------------
    sent            messages of the application
    arrivals        copies of these that arrived at any process, including duplicates, those at
                    super peers and own copies that return; without overruns
    deliveries      to applications, including incomplete ones; in total order also to the sender,
                    whose wait starts with the send
    lost            copies lost by the network, and overruns
    duplicates      copies duplicated by the network
    held_at_end     copies that arrived at a receiver and were never delivered

A message counts for means if its application sent it at `warm_s` or later. Control bytes are a mean
over Transmit effects that contain a message for the first time. Roles:

- "peer": from peers of a flat group
- "internal": from super peers into their groups
- "external": from external peers and super peers into the external group

Messages of internal peers to super peers do not count (Evropeytsev et al.
2016). Storage and held messages are sampled before the events of the sample's microsecond.
`..._max` and `held.max` are of one member at one sample.

Metrics that are absent at 0:

    control_messages        copies of control messages, and further copies of a message on a channel
    control_message_bytes   control information of these
    overruns                copies lost because a receive buffer was full
    delivered_incomplete    deliveries that the protocol marked as lacking a cause
    discarded               messages that the protocol discarded
    rejected                messages that the protocol rejected as impossible
    unsent                  replies to messages that never arrived
    undelivered             deliveries that did not happen, also of lost messages
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from antecede.lab.simulate.config.model import SimulationConfig
from antecede.lab.simulate.delays import US
from antecede.quantiles import nearest_rank, quantile

MS_US = US // 1000


class MessageSizes:
    """Bytes of messages: sums of integers."""

    def __init__(self) -> None:
        self.count = self.control = self.squares = self.wire = 0
        self.has_wire = True

    def add(self, control: int, wire: int | None) -> None:
        """Count a message. `wire`: None if the protocol has no wire format."""
        self.count += 1
        self.control += control
        self.squares += control * control
        self.wire += wire or 0
        self.has_wire &= wire is not None

    def compute_metrics(self, role: str) -> dict[str, float]:
        """Return mean and standard deviation of control bytes, and the mean bytes on the wire."""
        if not self.count:
            return {}
        spread = self.count * self.squares - self.control * self.control
        found = {
            f"{role}.control_bytes": self.control / self.count,
            f"{role}.control_bytes_sd": math.sqrt(spread) / self.count,
        }
        if self.has_wire:
            found[f"{role}.wire_bytes"] = self.wire / self.count
        return found


class StorageSamples:
    """Values of several members at every sample."""

    def __init__(self) -> None:
        self.total = self.count = self.maximum = 0
        self.series: list[float] = []

    def add(self, values: Sequence[int]) -> None:
        """Add a sample: a value per member."""
        total = sum(values)
        self.total += total
        self.count += len(values)
        self.maximum = max(self.maximum, *values)
        self.series.append(total / len(values))

    @property
    def mean(self) -> float:
        """Mean over members and samples."""
        return self.total / self.count

    def compute_metrics(self, role: str) -> dict[str, float]:
        """Return mean and maximum of storage; nothing without a sample."""
        if not self.count:
            return {}
        return {f"{role}.storage_bytes": self.mean, f"{role}.storage_bytes_max": self.maximum}


WAIT_QUANTILES = {"wait_ms.p50": 0.5, "wait_ms.p99": 0.99}


def wait_figures(waits_us: Iterable[int]) -> dict[str, float]:
    """Return mean, p50, p99 and maximum in ms of waits in us, from arrival to delivery."""
    found = np.sort(np.array(waits_us, dtype=np.int64))
    if not len(found):
        return {}
    return {
        "wait_ms.mean": int(found.sum()) / len(found) / MS_US,
        **{name: int(quantile(found, part)) / MS_US for name, part in WAIT_QUANTILES.items()},
        "wait_ms.max": int(found[-1]) / MS_US,
    }


def compute_binned_wait_metrics(
    bins: npt.NDArray[np.int64], count: int, waited_us: int, longest_us: int
) -> dict[str, float]:
    """Return the metrics of `count` waits, of which `bins[w]` took w us.

    Waits in no bin are 0. The last bin also has longer waits, and a quantile there is omitted.
    """
    if not count:
        return {}
    reached = np.cumsum(bins) + (count - int(bins.sum()))
    places = {
        name: int(np.searchsorted(reached, nearest_rank(part, count)))
        for name, part in WAIT_QUANTILES.items()
    }
    known = len(bins) - (longest_us >= len(bins))
    return {
        "wait_ms.mean": waited_us / count / MS_US,
        **{name: at / MS_US for name, at in places.items() if at < known},
        "wait_ms.max": longest_us / MS_US,
    }


class VectorEntropy:
    """Smallest possible bytes of bit vectors, if all sets of their size are equally likely."""

    def __init__(self) -> None:
        self.counts: dict[tuple[int, int], int] = {}

    def add(self, bits: int) -> None:
        """Count a trimmed bit vector."""
        shape = bits.bit_length(), bits.bit_count()
        self.counts[shape] = self.counts.get(shape, 0) + 1

    def compute_mean(self) -> float:
        """Return the mean of log2(window over set) / 8."""
        total = math.fsum(
            compute_entropy_bytes(*shape) * n for shape, n in sorted(self.counts.items())
        )
        return total / sum(self.counts.values())


@functools.lru_cache(maxsize=1 << 16)
def compute_entropy_bytes(window: int, chosen: int) -> float:
    """Return log2 of (window over chosen) / 8."""
    return math.log2(math.comb(window, chosen)) / 8


def list_sample_times(config: SimulationConfig) -> range:
    """Return the sample times in us. Samples precede all events of the same time."""
    end_us, every_us = round(config.duration_s * US), round(config.sample_s * US)
    return range(round(config.warm_s * US), end_us, max(1, every_us))
