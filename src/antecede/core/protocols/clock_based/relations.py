"""Relations on linear and physical timestamps, which are sound for true bounds.

Source: Tsuneizumi et al., sections 3 to 5, with the repairs of the errata. As printed:
`clock_based.published_relations`.

Theory of operation
-------------------
A message is sent later than its cause by at least the least delay of a path. Two clocks differ by
at most the sum of their accuracies. So the members of a causal pair differ in linear time, and in
physical time by at least

    separation(i, j) = least delay over any path from i to j - (lambda_i + lambda_j)

A relation that holds for every pair that can be causal misses none. All other pairs for which it
holds are false causality. The relations follow these times, so they have no cycles.

Every relation has two predicates: whether a precedes b, and whether later messages of a member can
precede b, given a lower bound of their times.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import permutations
from typing import NamedTuple, Protocol, TypeAlias

from antecede.core.clocks import LONGEST_NS, Bounds, seconds_text
from antecede.core.protocols.clock_based.messages import StampedMessage
from antecede.core.protocols.options.checks import reject_old_name
from antecede.errors import LocalError


class PhysicalRelation:
    """Message a precedes b if b's PT is later by at least the separation of a causal pair."""

    def __init__(self, separation: Separation) -> None:
        self.separation = separation

    def precedes(self, a: Timestamped, b: Timestamped) -> bool:
        return b.pt_ns - a.pt_ns >= self.separation.between_ns(a.sender, b.sender)

    def excludes(self, lower_bound: LowerBound, member: int, b: Timestamped) -> bool:
        return b.pt_ns - lower_bound.pt_ns < self.separation.between_ns(member, b.sender)


class LinearPhysicalRelation:
    """Message a precedes b if both times allow it: fewer pairs than either alone (section 5)."""

    def __init__(self, separation: Separation) -> None:
        self.separation = separation

    def precedes(self, a: Timestamped, b: Timestamped) -> bool:
        if a.lt >= b.lt:
            return False
        return b.pt_ns - a.pt_ns >= self.separation.between_ns(a.sender, b.sender)

    def excludes(self, lower_bound: LowerBound, member: int, b: Timestamped) -> bool:
        if lower_bound.lt >= b.lt:
            return True
        apart_ns = self.separation.uniform_ns
        if apart_ns is None or member == b.sender:
            apart_ns = self.separation.between_ns(member, b.sender)
        return b.pt_ns - lower_bound.pt_ns < apart_ns


class ClockTimestamp(NamedTuple):
    """Sender, its number for the message, linear time, physical time in nanoseconds."""

    sender: int
    seq: int
    lt: int = 0
    pt_ns: int = 0


Timestamped: TypeAlias = ClockTimestamp | StampedMessage


class LowerBound(NamedTuple):
    """Lower bound of the times of a member's later messages (see `Separation.excludes`)."""

    lt: int = 0
    pt_ns: int = -LONGEST_NS


class ClockRelation(Protocol):
    """Acyclic order of messages by their timestamps."""

    def precedes(self, a: Timestamped, b: Timestamped) -> bool:
        """Return whether a of another sender precedes b."""

    def excludes(self, lower_bound: LowerBound, member: int, b: Timestamped) -> bool:
        """Return whether no message of `member` from `lower_bound` on can precede b."""


class Separation:
    """Least difference in physical time of a causal pair, by senders."""

    def __init__(self, bounds: Bounds[int], members: Iterable[int]) -> None:
        reject_old_name(self, "between_s", "between_ns")
        self.bounds = bounds
        self.members = tuple(sorted(set(members)))
        self._between: dict[tuple[int, int], int] = {}
        self.uniform_ns: int | None = None

    def path_ns(self, source: int, target: int) -> int:
        return self.bounds.least_path_ns(source, target, self.members)

    @property
    def is_derived(self) -> bool:
        """True if separations follow from the bounds, without an overriding `between_ns`."""
        return getattr(self.between_ns, "__func__", None) is Separation.between_ns

    @property
    def is_uniform(self) -> bool:
        """True if all pairs of different members have the same separation."""
        return self.is_derived and self.bounds.homogeneous

    def least_between_ns(self) -> int | None:
        """Return a lower bound of all separations of two members, or None if it is unknown."""
        return self.bounds.least_apart_ns() if self.is_derived else None

    def between_ns(self, source: int, target: int) -> int:
        """Return the least b.PT - a.PT of a causal pair; cached."""
        if self.uniform_ns is not None and source != target:
            return self.uniform_ns
        key = source, target
        if key not in self._between:
            off_ns = self.bounds.error_ns(source) + self.bounds.error_ns(target)
            self._between[key] = self.path_ns(source, target) - off_ns
            if self.is_uniform and source != target:
                self.uniform_ns = self._between[key]
        return self._between[key]

    def stretch_ns(self, sender: int, target: int) -> int | None:
        """Return the longest time from a message to the arrival of its causes, in true time.

        Over third members: largest delay to `target` less least delay to `sender`; or None.
        """
        if not self.bounds.channels_ns:
            others = len(self.members) - 1 - (sender != target)
            return self.bounds.most_ns - self.bounds.least_ns if others > 0 else None
        third = (member for member in self.members if member not in (sender, target))
        return max(
            (
                self.bounds.most_delay_ns(member, target) - self.path_ns(member, sender)
                for member in third
            ),
            default=None,
        )

    def check_positive(self) -> None:
        """Raise LocalError if a causal pair can have equal or reversed physical times."""
        bounds = self.bounds
        pairs: Iterable[tuple[int, int]] = permutations(self.members, 2)
        if bounds.homogeneous and len(self.members) > 1:
            pairs = [self.members[:2]]  # type: ignore[list-item]
        for i, j in pairs:
            if self.between_ns(i, j) <= 0:
                least = seconds_text(self.path_ns(i, j))
                apart = seconds_text(bounds.error_ns(i) + bounds.error_ns(j))
                raise LocalError(
                    f"physical time alone cannot order members {i} and {j}: the least "
                    f"delay is {least} s, and their clocks differ by up to {apart} s; use "
                    "linear-physical"
                )


class LinearRelation:
    """Message a precedes b if a's linear time is less (4.1, repaired: see `linear`)."""

    def precedes(self, a: Timestamped, b: Timestamped) -> bool:
        return a.lt < b.lt

    def excludes(self, lower_bound: LowerBound, member: int, b: Timestamped) -> bool:
        return lower_bound.lt >= b.lt
