"""What is known about clocks and channels: accuracy of each clock, delays of each channel.

Source: 002, sections 2 and 4.2 (accuracy lambda_i, condition (1); delay delta_ij), with the
repair of the errata: rules about causality need the LEAST delay, rules about waiting the
LARGEST, so a channel has both.

A group is homogeneous when every member has the same accuracy and every channel the same
delays, else heterogeneous (002, section 2; 004: LAN inside a subgroup, WAN between).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from antecede.errors import LocalError

Member = TypeVar("Member", bound=Hashable)


@dataclass(frozen=True)
class Bounds(Generic[Member]):
    """Bounds in seconds; members are numbers, or names until `numbered`.

    `accuracy_s`: no clock is ever further from true time than this (lambda, epsilon).
    `least_s`, `most_s`: every message takes at least and at most this long, unless
    `channels` says otherwise for (from, to); `clocks` is the accuracy of single members.
    Raises LocalError when a bound is negative, not finite, or least exceeds most.
    """

    accuracy_s: float = 0.0
    least_s: float = 0.0
    most_s: float = 1.0
    clocks: Mapping[Member, float] = field(default_factory=dict)
    channels: Mapping[tuple[Member, Member], tuple[float, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        channels = [("by default", (self.least_s, self.most_s))]
        channels += [(f"{a} to {b}", delays) for (a, b), delays in self.channels.items()]
        for where, (least, most) in channels:
            if not 0 <= least <= most < math.inf:
                raise LocalError(
                    f"delays of a channel ({where}) are {least} to {most} s; "
                    "they are at least 0, finite, and the least comes first"
                )
        clocks = [("by default", self.accuracy_s)]
        clocks += [(f"of {member}", accuracy) for member, accuracy in self.clocks.items()]
        for whose, accuracy in clocks:
            if not 0 <= accuracy < math.inf:
                raise LocalError(f"the accuracy {whose} is {accuracy} s; it is 0 or more")

    def __hash__(self) -> int:
        clocks, channels = frozenset(self.clocks.items()), frozenset(self.channels.items())
        return hash((self.accuracy_s, self.least_s, self.most_s, clocks, channels))

    @property
    def homogeneous(self) -> bool:
        """Whether all clocks and all channels have the same bounds (002, section 2)."""
        return all(a == self.accuracy_s for a in self.clocks.values()) and all(
            delays == (self.least_s, self.most_s) for delays in self.channels.values()
        )

    def accuracy(self, member: Member) -> float:
        """Return the accuracy of a member's clock, in seconds (lambda_i)."""
        return self.clocks.get(member, self.accuracy_s)

    def least(self, source: Member, target: Member) -> float:
        """Return the least delay of a channel, in seconds."""
        return self.channels.get((source, target), (self.least_s, self.most_s))[0]

    def most(self, source: Member, target: Member) -> float:
        """Return the largest delay of a channel, in seconds (delta_ij, maxd_ij)."""
        return self.channels.get((source, target), (self.least_s, self.most_s))[1]

    def least_path(self, source: Member, target: Member, members: tuple[Member, ...]) -> float:
        """Return the least delay over any path through the members; 0 from one to itself.

        A chain of messages can be faster than the direct channel, so this and not `least` says
        how close in time a message and its effect can be.
        """
        near = dict.fromkeys(members, math.inf)
        near[source] = 0.0
        open_ = set(near)
        while open_:
            nearest = min(open_, key=lambda member: near[member])
            open_.remove(nearest)
            if nearest == target:
                break
            for member in open_:
                near[member] = min(near[member], near[nearest] + self.least(nearest, member))
        return near[target]

    def numbered(self, numbers: Mapping[Any, int]) -> Bounds[int]:
        """Return the same bounds with names replaced by member numbers; raises LocalError."""
        named = {*self.clocks, *(member for channel in self.channels for member in channel)}
        if unknown := [member for member in named if member not in numbers]:
            raise LocalError(f"bounds are given for {unknown[0]!r}, who is not in the group")
        return Bounds(
            self.accuracy_s,
            self.least_s,
            self.most_s,
            {numbers[member]: accuracy for member, accuracy in self.clocks.items()},
            {(numbers[a], numbers[b]): delays for (a, b), delays in self.channels.items()},
        )
