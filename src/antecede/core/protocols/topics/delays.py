"""Delay bounds of topic orders: least separation of cause and effect, longest wait for a cause.

Source: Nakayama 2017, section 2 (rule 3: mind_ij, maxd_ij, epsilon) and the errata. Causes need the
least delay over any PATH, waits the largest delay of every channel to the receiver. Accuracies may
differ by member (Tsuneizumi et al., section 4.2: lambda_i + lambda_j stands for 2 epsilon).

Derivation
----------
Let j publish e at true time s, and let e depend on an event of k that was published at r. The chain
of messages from k to j took at least `least(k, j)`, so r <= s - least(k, j). The event of k reaches
receiver i at the latest at

    s + most(k, i) - least(k, j)          the maximum of this over k is the bound.

With physical time, e.PT >= s - accuracy(j), and i's clock shows at most accuracy(i) more than the
true time. So the bound on i's clock is e.PT plus the maximum plus both accuracies.

Without physical time, i only knows that e took at least `least(j, i)`. The bound is the reading at
its arrival plus the maximum minus that delay, plus twice the accuracy of i. The clock of i may
drift during the wait. At the bound itself the cause may be arriving, so the clock must show MORE.
Both bounds are tight.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from antecede.core.clocks import LONGEST_NS, Bounds


class Delays:
    """Delay bounds of a group by member; results are cached (O(n^2) for a new source)."""

    def __init__(self, bounds: Bounds[int], members: Iterable[int]) -> None:
        self.bounds = bounds
        self.members = tuple(sorted(members))
        self._least: dict[int, Mapping[int, int]] = {}
        self._furthest: dict[tuple[int, int], int] = {}

    def error_ns(self, first: int, second: int) -> int:
        """Return the largest difference of two clocks (2 epsilon of Nakayama 2017)."""
        return self.bounds.error_ns(first) + self.bounds.error_ns(second)

    def least_ns(self, source: int, target: int) -> int:
        """Return the least delay between two members over any path; 0 for the same member."""
        if not self.bounds.channels_ns:
            return 0 if source == target else self.bounds.least_ns
        if target not in self._least:
            self._least[target] = self._find_least_delays(target)
        return self._least[target][source]

    def wait_after_publishing_ns(self, source: int, receiver: int) -> int:
        """Return the maximum of (receiver's clock - e.PT) at the arrival of a cause of e."""
        return self._find_furthest_ns(source, receiver) + self.error_ns(source, receiver)

    def wait_after_arrival_ns(self, source: int, receiver: int) -> int:
        """Return the longest time from e to a cause of e on the receiver's clock."""
        wander_ns = 2 * self.bounds.error_ns(receiver)
        least_ns = self.bounds.least_delay_ns(source, receiver)
        return self._find_furthest_ns(source, receiver) - least_ns + wander_ns

    def _find_furthest_ns(self, source: int, receiver: int) -> int:
        key = source, receiver
        if not self.bounds.channels_ns:
            least_ns = 0 if source != receiver else self.bounds.least_ns
            return self.bounds.most_ns - least_ns
        if key not in self._furthest:
            self._furthest[key] = max(
                self.bounds.most_delay_ns(k, receiver) - self.least_ns(k, source)
                for k in self.members
                if k != receiver
            )
        return self._furthest[key]

    def _find_least_delays(self, target: int) -> dict[int, int]:
        """Return the least delay of a path from every member to the target (Dijkstra)."""
        near = dict.fromkeys(self.members, 4 * LONGEST_NS)
        near[target] = 0
        open_ = set(near)
        while open_:
            nearest = min(open_, key=near.__getitem__)
            open_.remove(nearest)
            for member in open_:
                step = near[nearest] + self.bounds.least_delay_ns(member, nearest)
                near[member] = min(near[member], step)
        return near
