"""Physical clocks of members, and bounds of clocks and delays for protocols.

A clock shows, in whole microseconds,

    true time + accuracy + offset + drift * (time since the last resynchronization)

The accuracy is added to all clocks, so that none is below 0. Only differences matter. Offset and
drift together stay within the accuracy. A drifting clock gets a new offset every `resync_s`. It
stands still where that would decrease it, so it never decreases. A reading depends on member and
time alone.
"""

from __future__ import annotations

from collections import Counter

from antecede.core.clocks import Bounds
from antecede.lab.simulate.config.model import Clocks, SimulationConfig
from antecede.lab.simulate.delays import US
from antecede.lab.simulate.network import Channels
from antecede.lab.simulate.random_streams import Stream, draw_unit, make_key

NS_PER_US = 1000


class MemberClocks:
    """Clocks of all addresses."""

    def __init__(self, clocks: Clocks, seed: int) -> None:
        self.accuracy_us = round(clocks.accuracy_s * US)
        self.period_us = round(clocks.resync_s * US) if clocks.drift_ppm else 0
        self.drift_ppm = clocks.drift_ppm
        wander_us = int(clocks.drift_ppm * 1e-6 * self.period_us)
        self.max_offset_us = max(0, self.accuracy_us - wander_us)
        self.keys = {
            stream: make_key(seed, stream)
            for stream in (Stream.CLOCK_OFFSET, Stream.CLOCK_DRIFT, Stream.RESYNC)
        }
        self.offsets: dict[tuple[int, int], int] = {}
        self.drifts: dict[int, float] = {}
        self.maxima: dict[int, list[int]] = {}
        """Address -> largest reading before the k-th resynchronization."""

    def read_us(self, address: int, true_us: int) -> int:
        """Return the reading of a member's clock, us."""
        if not self.accuracy_us:
            return true_us
        if not self.period_us:
            return true_us + self.accuracy_us + self._draw_offset(address, 0)
        period = true_us // self.period_us
        return max(
            self._compute_reading(address, period, true_us),
            self._find_maximum_before(address, period),
        )

    def read_ns(self, address: int, true_us: int) -> int:
        """Return the reading of a member's clock, ns."""
        return self.read_us(address, true_us) * NS_PER_US

    def _compute_reading(self, address: int, period: int, true_us: int) -> int:
        since_us = true_us - period * self.period_us
        gone_us = int(self._draw_drift(address) * since_us)
        return true_us + self.accuracy_us + self._draw_offset(address, period) + gone_us

    def _find_maximum_before(self, address: int, period: int) -> int:
        ends = self.maxima.setdefault(address, [0])
        while len(ends) <= period:
            last = len(ends) - 1
            shown = self._compute_reading(address, last, (last + 1) * self.period_us)
            ends.append(max(ends[-1], shown))
        return ends[period]

    def _draw_offset(self, address: int, period: int) -> int:
        if (address, period) not in self.offsets:
            stream = Stream.RESYNC if period else Stream.CLOCK_OFFSET
            part = draw_unit(self.keys[stream], address, period)
            self.offsets[address, period] = int((2 * part - 1) * self.max_offset_us)
        return self.offsets[address, period]

    def _draw_drift(self, address: int) -> float:
        if address not in self.drifts:
            part = draw_unit(self.keys[Stream.CLOCK_DRIFT], address)
            self.drifts[address] = (2 * part - 1) * self.drift_ppm * 1e-6
        return self.drifts[address]


def compute_bounds(config: SimulationConfig, channels: Channels) -> Bounds[int]:
    """Return the bounds of clocks and channels, without partitions, loss and slow receivers."""
    accuracy_ns = round(config.clocks.accuracy_s * US) * NS_PER_US  # like `MemberClocks`
    everybody = range(config.topology.size)
    if len(channels.quantiles) == len(channels.location_delays_us) == 1 or len(everybody) == 1:
        common, pairs = channels.bounds_us(0, 0), {}
    else:
        pairs = {(a, b): channels.bounds_us(a, b) for a in everybody for b in everybody if a != b}
        counts = Counter(pairs.values())
        common = max(counts, key=lambda us: (counts[us], us))
    unlike = {pair: _to_ns(us) for pair, us in pairs.items() if us != common}
    least_ns, most_ns = _to_ns(common)
    return Bounds(accuracy_ns=accuracy_ns, least_ns=least_ns, most_ns=most_ns, channels_ns=unlike)


def _to_ns(span_us: tuple[int, int]) -> tuple[int, int]:
    least_us, most_us = span_us
    return least_us * NS_PER_US, most_us * NS_PER_US
