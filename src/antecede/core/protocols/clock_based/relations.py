"""Relations that order messages by linear and physical time stamps, sound for true bounds.

Source: Tsuneizumi et al., sections 3 to 5, with the repairs of the errata. As printed:
`clock_based.published_relations`.

Theory of operation
-------------------
A message that depends on another one was sent at least the least delay of a path later, and two
clocks err by at most the sum of their accuracies. So a causal pair is at least

    separation(i, j) = least delay over any path from i to j - (lambda_i + lambda_j)

apart in physical time, and later in linear time. A relation that holds for every pair that can
be causal misses none; what else it holds for is ordered unnecessarily. The relations follow these
times, so they have no cycles.

Every relation answers two questions: does a come before b; and, from the stamp of the last
thing that came from a member, can anything that it sends later come before b.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import permutations
from typing import NamedTuple, Protocol, TypeAlias

from antecede.core.clocks import LONGEST_NS, Bounds, seconds_text
from antecede.core.protocols.clock_based.messages import StampedMessage
from antecede.core.protocols.options.checks import refuse_former_name
from antecede.errors import LocalError


class PhysicalRelation:
    """a before b when b's physical time is later by what separates a causal pair, or more."""

    def __init__(self, separation: Separation) -> None:
        self.separation = separation

    def precedes(self, a: Stamped, b: Stamped) -> bool:
        return b.pt_ns - a.pt_ns >= self.separation.between_ns(a.sender, b.sender)

    def excludes(self, floor: Floor, member: int, b: Stamped) -> bool:
        return b.pt_ns - floor.pt_ns < self.separation.between_ns(member, b.sender)


class LinearPhysicalRelation:
    """a before b when both times allow it: fewer pairs than either alone (section 5)."""

    def __init__(self, separation: Separation) -> None:
        self.separation = separation

    def precedes(self, a: Stamped, b: Stamped) -> bool:
        if a.lt >= b.lt:
            return False
        return b.pt_ns - a.pt_ns >= self.separation.between_ns(a.sender, b.sender)

    def excludes(self, floor: Floor, member: int, b: Stamped) -> bool:
        if floor.lt >= b.lt:
            return True
        apart_ns = self.separation.same_ns
        if apart_ns is None or member == b.sender:
            apart_ns = self.separation.between_ns(member, b.sender)
        return b.pt_ns - floor.pt_ns < apart_ns


class Stamp(NamedTuple):
    """Sender, its number for the message, linear time, physical time in nanoseconds."""

    sender: int
    seq: int
    lt: int = 0
    pt_ns: int = 0


Stamped: TypeAlias = Stamp | StampedMessage


class Floor(NamedTuple):
    """All that a member sends later has at least these times (see `Separation.excludes`)."""

    lt: int = 0
    pt_ns: int = -LONGEST_NS


class Relation(Protocol):
    """An order of messages by their stamps; never cyclic."""

    def precedes(self, a: Stamped, b: Stamped) -> bool:
        """Tell whether a of another sender comes before b."""

    def excludes(self, floor: Floor, member: int, b: Stamped) -> bool:
        """Tell whether nothing that `member` sends from `floor` on can come before b."""


class Separation:
    """How far apart in physical time the messages of a causal pair are at least, by senders."""

    def __init__(self, bounds: Bounds[int], members: Iterable[int]) -> None:
        refuse_former_name(self, "between_s", "between_ns")
        self.bounds = bounds
        self.members = tuple(sorted(set(members)))
        self._between: dict[tuple[int, int], int] = {}
        self.same_ns: int | None = None

    def path_ns(self, source: int, target: int) -> int:
        """Return the least delay over any path."""
        return self.bounds.least_path_ns(source, target, self.members)

    @property
    def as_derived(self) -> bool:
        """Return True if separations follow from the bounds, without an own `between_ns`."""
        return getattr(self.between_ns, "__func__", None) is Separation.between_ns

    @property
    def uniform(self) -> bool:
        """Whether all pairs of different members have the same separation."""
        return self.as_derived and self.bounds.homogeneous

    def least_between_ns(self) -> int | None:
        """Return what no separation of two members is below, where that can be told."""
        return self.bounds.least_apart_ns() if self.as_derived else None

    def between_ns(self, source: int, target: int) -> int:
        """Return the least b.PT - a.PT of a causal pair; worked out once for each pair."""
        if self.same_ns is not None and source != target:
            return self.same_ns
        key = source, target
        if key not in self._between:
            off_ns = self.bounds.error_ns(source) + self.bounds.error_ns(target)
            self._between[key] = self.path_ns(source, target) - off_ns
            if self.uniform and source != target:
                self.same_ns = self._between[key]
        return self._between[key]

    def stretch_ns(self, sender: int, target: int) -> int | None:
        """Return how long after a message, in true time, its causes can still arrive.

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

    def require_positive(self) -> None:
        """Raise LocalError where a causal pair can have equal or reversed physical times."""
        bounds = self.bounds
        pairs: Iterable[tuple[int, int]] = permutations(self.members, 2)
        if bounds.homogeneous and len(self.members) > 1:
            pairs = [self.members[:2]]  # type: ignore[list-item]
        for i, j in pairs:
            if self.between_ns(i, j) <= 0:
                least = seconds_text(self.path_ns(i, j))
                apart = seconds_text(bounds.error_ns(i) + bounds.error_ns(j))
                raise LocalError(
                    f"physical time alone cannot order members {i} and {j}: a message takes "
                    f"{least} s at least, and their clocks differ by up to {apart} s; "
                    "use linear-physical"
                )


class LinearRelation:
    """a before b when a's linear time is less (4.1, with the clock repaired: see `linear`)."""

    def precedes(self, a: Stamped, b: Stamped) -> bool:
        return a.lt < b.lt

    def excludes(self, floor: Floor, member: int, b: Stamped) -> bool:
        return floor.lt >= b.lt
