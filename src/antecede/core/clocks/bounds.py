"""Bounds of clock accuracy and channel delay.

Source: Tsuneizumi et al., sections 2 and 4.2 (accuracy lambda_i, condition (1); delay delta_ij).
The errata repair the delay: causality rules need the least delay, waiting rules the largest.

A group is homogeneous if all members share one accuracy and all channels one pair of delays
(section 2). Nakayama 2017 has a heterogeneous one: LAN within a subgroup, WAN between.

Bounds are whole nanoseconds. Seconds are rounded to the safe side: accuracy and largest delay up,
least delay down.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

from antecede.core.clocks.coercion import plain
from antecede.core.clocks.nanoseconds import LONGEST_NS, NS, Seconds, down_ns, seconds_text, up_ns
from antecede.errors import LocalError
from antecede.formatting import quote

Member = TypeVar("Member", bound=Hashable)
_UNREACHABLE_NS = 1 << 100


@dataclass(frozen=True, init=False)
class Bounds(Generic[Member]):
    """Bounds of clocks and channels, by member name or number.

    `accuracy_s`: largest distance of a clock from true time (lambda, epsilon). `least_s` and
    `most_s`: least and largest delay of a message. `clocks` overrides the accuracy of single
    members, `channels` the delays of (from, to). Seconds are read as the decimal that was typed.
    Whole nanoseconds are possible instead: `accuracy_ns`, `least_ns`, `most_ns`, `clocks_ns`,
    `channels_ns`.

    Raises LocalError if a bound is negative, not finite or given twice, or least exceeds most.
    """

    accuracy_ns: int
    least_ns: int
    most_ns: int
    clocks_ns: Mapping[Member, int]
    channels_ns: Mapping[tuple[Member, Member], tuple[int, int]]

    def __init__(
        self,
        accuracy_s: Seconds | None = None,
        least_s: Seconds | None = None,
        most_s: Seconds | None = None,
        clocks: Mapping[Member, Seconds] | None = None,
        channels: Mapping[tuple[Member, Member], tuple[Seconds, Seconds]] | None = None,
        *,
        accuracy_ns: int | None = None,
        least_ns: int | None = None,
        most_ns: int | None = None,
        clocks_ns: Mapping[Member, int] | None = None,
        channels_ns: Mapping[tuple[Member, Member], tuple[int, int]] | None = None,
    ) -> None:
        values: dict[str, Any] = {
            "accuracy_ns": _convert_once("accuracy", accuracy_s, accuracy_ns, 0, up_ns),
            "least_ns": _convert_once("least", least_s, least_ns, 0, down_ns),
            "most_ns": _convert_once("most", most_s, most_ns, NS, up_ns),
            "clocks_ns": _convert_once("clocks", clocks, clocks_ns, {}, _clocks_to_ns),
            "channels_ns": _convert_once("channels", channels, channels_ns, {}, _channels_to_ns),
        }
        for name, value in values.items():
            object.__setattr__(self, name, _to_builtins(value))
        _check_table(self.clocks_ns, "bounds: clocks")
        _check_table(self.channels_ns, "bounds: channels")
        _check_pairs(self.channels_ns, "bounds: channels")
        self._check()

    def _check(self) -> None:
        channels = [("by default", (self.least_ns, self.most_ns))]
        channels += [(f"{a} to {b}", delays) for (a, b), delays in self.channels_ns.items()]
        for where, (least, most) in channels:
            if not _are_integers(least, most) or not 0 <= least <= most <= LONGEST_NS:
                raise LocalError(
                    f"bounds: channel delays ({where}) are {_format_ns(least)} to "
                    f"{_format_ns(most)}; expected 0 <= least <= most, at most 146 years"
                )
        clocks = [("by default", self.accuracy_ns)]
        clocks += [(f"of {member}", accuracy) for member, accuracy in self.clocks_ns.items()]
        for scope, accuracy in clocks:
            if not _are_integers(accuracy) or not 0 <= accuracy <= LONGEST_NS:
                raise LocalError(
                    f"bounds: accuracy ({scope}) is {_format_ns(accuracy)}; expected 0 to 146 years"
                )

    def __hash__(self) -> int:
        clocks, channels = frozenset(self.clocks_ns.items()), frozenset(self.channels_ns.items())
        return hash((self.accuracy_ns, self.least_ns, self.most_ns, clocks, channels))

    @property
    def accuracy_s(self) -> float:
        """Accuracy of clocks in seconds, for display. Arithmetic uses nanoseconds."""
        return self.accuracy_ns / NS

    @property
    def least_s(self) -> float:
        """Least delay in seconds, for display."""
        return self.least_ns / NS

    @property
    def most_s(self) -> float:
        """Largest delay in seconds, for display."""
        return self.most_ns / NS

    @cached_property
    def homogeneous(self) -> bool:
        """True if all clocks and channels share their bounds (Tsuneizumi et al., 2)."""
        return all(a == self.accuracy_ns for a in self.clocks_ns.values()) and all(
            delays == (self.least_ns, self.most_ns) for delays in self.channels_ns.values()
        )

    def in_one_writing(self) -> Bounds[Member]:
        """Return the same bounds without entries that repeat the default."""
        usual = self.least_ns, self.most_ns
        clocks = {member: a for member, a in self.clocks_ns.items() if a != self.accuracy_ns}
        channels = {
            ends: delays for ends, delays in self.channels_ns.items() if tuple(delays) != usual
        }
        return self._replace_tables(clocks, channels)

    def error_ns(self, member: Member) -> int:
        """Return the accuracy of a member's clock (lambda_i), ns."""
        return self.clocks_ns.get(member, self.accuracy_ns)

    def least_delay_ns(self, source: Member, target: Member) -> int:
        """Return the least delay of a channel, ns."""
        return self.channels_ns.get((source, target), (self.least_ns, self.most_ns))[0]

    def most_delay_ns(self, source: Member, target: Member) -> int:
        """Return the largest delay of a channel (delta_ij, maxd_ij), ns."""
        return self.channels_ns.get((source, target), (self.least_ns, self.most_ns))[1]

    def least_apart_ns(self) -> int:
        """Return a lower bound of PT_j - PT_i of a causal pair of different members, ns."""
        least_ns = min([self.least_ns, *(least for least, _ in self.channels_ns.values())])
        return least_ns - 2 * max([self.accuracy_ns, *self.clocks_ns.values()])

    def least_path_ns(self, source: Member, target: Member, members: tuple[Member, ...]) -> int:
        """Return the least delay over any path through the members, ns; 0 for source = target.

        A chain of messages can be faster than the direct channel, so paths bound the time between
        cause and effect. The first call for a source computes all its paths in O(n^2) for n members
        (Dijkstra).
        """
        if source == target:
            return 0
        if not self.channels_ns:
            return self.least_ns
        found = self._path_cache.get((source, members))
        if found is None:
            found = self._path_cache[source, members] = self._find_least_paths_ns(source, members)
        return found[target]

    @cached_property
    def _path_cache(self) -> dict[tuple[Member, tuple[Member, ...]], dict[Member, int]]:
        return {}

    def _find_least_paths_ns(
        self, source: Member, members: tuple[Member, ...]
    ) -> dict[Member, int]:
        near = dict.fromkeys(members, _UNREACHABLE_NS)
        near[source] = 0
        left = set(near)
        while left:
            nearest = min(left, key=near.__getitem__)
            left.remove(nearest)
            for member in left:
                step = near[nearest] + self.least_delay_ns(nearest, member)
                near[member] = min(near[member], step)
        return near

    def among(self, members: Collection[Member]) -> Bounds[Member]:
        """Return the bounds without clocks and channels of other members."""
        clocks = {member: error for member, error in self.clocks_ns.items() if member in members}
        within = (ends for ends in self.channels_ns if ends[0] in members and ends[1] in members)
        return self._replace_tables(clocks, {ends: self.channels_ns[ends] for ends in within})

    def replace_names(self, numbers: Mapping[Any, Any]) -> Bounds[Any]:
        """Return the bounds with names replaced by numbers. Raise LocalError for unknown names."""
        if unknown := [member for member in self.list_members() if member not in numbers]:
            raise LocalError(f"bounds: unknown member {unknown[0]!r}; choose from {[*numbers]}")
        clocks = {numbers[member]: error for member, error in self.clocks_ns.items()}
        channels = {(numbers[a], numbers[b]): two for (a, b), two in self.channels_ns.items()}
        return self._replace_tables(clocks, channels)

    def _replace_tables(
        self, clocks: Mapping[Any, int], channels: Mapping[Any, Any]
    ) -> Bounds[Any]:
        return Bounds(
            accuracy_ns=self.accuracy_ns,
            least_ns=self.least_ns,
            most_ns=self.most_ns,
            clocks_ns=clocks,
            channels_ns=channels,
        )

    def list_members(self) -> set[Member]:
        """Return the members with bounds of their own."""
        return {*self.clocks_ns, *(member for channel in self.channels_ns for member in channel)}


def _convert_once(name: str, seconds: Any, ns: Any, default: Any, convert: Any) -> Any:
    if seconds is not None and ns is not None:
        raise LocalError(
            f"bounds: {name} is given in seconds and in nanoseconds; give one of the two"
        )
    if seconds is None:
        return default if ns is None else ns
    return convert(seconds, f"bounds: {name}")


def _clocks_to_ns(clocks: Mapping[Any, Seconds], what: str) -> dict[Any, int]:
    _check_table(clocks, what)
    return {member: up_ns(accuracy, what) for member, accuracy in clocks.items()}


def _channels_to_ns(
    channels: Mapping[Any, tuple[Seconds, Seconds]], what: str
) -> dict[Any, tuple[int, int]]:
    _check_table(channels, what)
    _check_pairs(channels, what)
    return {pair: (down_ns(a, what), up_ns(b, what)) for pair, (a, b) in channels.items()}


def _check_table(table: object, what: str) -> None:
    if not isinstance(table, Mapping):
        raise LocalError(f"{what}: expected a mapping, got {quote(table)}")


def _check_pairs(channels: Mapping[Any, Any], what: str) -> None:
    for channel, delays in channels.items():
        for pair in (channel, delays):
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                raise LocalError(
                    f"{what}: expected (from, to): (least, most), "
                    f"got {quote(channel)}: {quote(delays)}"
                )


def _to_builtins(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {_to_builtins(key): _to_builtins(item) for key, item in value.items()}
    if type(value) in (tuple, list):
        return type(value)(map(_to_builtins, value))
    return plain(value)


def _are_integers(*values: object) -> bool:
    return all(type(value) is int for value in values)


def _format_ns(ns: object) -> str:
    return f"{seconds_text(ns)} s" if type(ns) is int and abs(ns) < 1 << 80 else f"{quote(ns)} ns"
