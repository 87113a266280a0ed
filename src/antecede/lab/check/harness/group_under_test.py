"""Groups under test: members, names, promises.

Flat groups and internal peers are A, B, C, ..., super peers S, T, U, external peers X, Y, Z. The
messages of A are a1, a2, ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from antecede.core.clocks import Bounds, seconds_with_sign
from antecede.core.protocols import MOST_MEMBERS, Factory, Protocol
from antecede.core.protocols import factory as build
from antecede.core.protocols.options import option_text, with_trial
from antecede.core.protocols.topics import Subscriptions
from antecede.errors import LocalError
from antecede.lab.check.harness.guarded_calls import call_guarded, in_words, raise_own
from antecede.lab.check.harness.timing import TimingModel
from antecede.lab.check.scenario.parse import Setup

FLAT_NAMES = "ABCDEFGHIJKLMNOPQR"
SUPER_NAMES = "STU"
EXTERNAL_NAMES = "XYZVW"


class ReducedGroup(NamedTuple):
    """Group without one of its members; the others have new numbers and names."""

    group: GroupUnderTest
    new_names: Mapping[str, str]


class GroupUnderTest(NamedTuple):
    """Group that can be created repeatedly in its initial state."""

    protocol: str
    names: Mapping[int, str]
    make: Callable[[], dict[int, Protocol]]
    make_member: Callable[[int, Iterable[int], str], Protocol] | None
    """Factory (number, all members, name) -> joining member; None: members cannot join."""
    options: tuple[tuple[str, str], ...] = ()
    internal: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Internal peers by super peer; empty for a flat group."""
    timing: TimingModel = TimingModel()
    """Without bounds, copies arrive at any time."""
    subscriptions: Mapping[int, frozenset[str]] = {}
    """Topics by address, also of joining members."""
    remove_member: Callable[[str], ReducedGroup | None] = lambda name: None
    """Factory of the group without a member, or without a joining name; None: impossible."""
    add_member: Callable[[], GroupUnderTest | None] = lambda: None
    """Factory of the group with one more member; None: impossible."""

    @property
    def setup(self) -> Setup:
        """The group by names, as in a scenario."""
        names, bounds = self.names, None
        if self.internal:
            inside = {name for sp, peers in self.internal for name in (sp, *peers)}
            external = tuple(name for name in names.values() if name not in inside)
            return Setup(self.protocol, self.options, (), self.internal, external)
        if self.timing.bounds is not None:
            bounds = self.timing.bounds.among(names).replace_names(names)
        offsets = tuple((names[at], offset) for at, offset in self.timing.offsets_ns.items())
        rows = ((at, tuple(sorted(self.subscriptions.get(at, ())))) for at in names)
        subscribed = tuple((names[at], topics) for at, topics in rows if topics)
        everybody = tuple(names.values())
        return Setup(
            self.protocol,
            self.options,
            everybody,
            bounds=bounds,
            clocks=offsets,
            subscriptions=subscribed,
        )

    def list_topics(self) -> tuple[str, ...]:
        """Return all subscribed topics, sorted."""
        return tuple(sorted(frozenset().union(*self.subscriptions.values())))

    def find_subscribers(self, topics: Iterable[str], among: Iterable[int]) -> tuple[int, ...]:
        """Return the subscribers of at least one of the topics, in the given order."""
        wanted = frozenset(topics)
        return tuple(at for at in among if wanted & self.subscriptions.get(at, frozenset()))

    def describe(self) -> str:
        """Return the size of the group and the offsets of its clocks as text."""
        clocks = self.describe_clocks()
        return f"{self.describe_size()}, clocks off by {clocks}" if clocks else self.describe_size()

    def describe_clocks(self) -> str:
        """Return the offsets of the clocks as text; "" for exact clocks."""
        off = self.timing.offsets_ns.values()
        return f"{' '.join(map(seconds_with_sign, off))} s" if any(off) else ""

    def describe_size(self) -> str:
        """Return the number of members by role as text."""
        if not self.internal:
            return f"{len(self.names)} members"
        inside = sum(len(peers) for _, peers in self.internal)
        outside = len(self.names) - inside - len(self.internal)
        return f"{inside} internal, {len(self.internal)} super, {outside} external peers"


def make_flat_group(
    protocol: str,
    cls: Factory,
    size: int,
    options: Mapping[str, Any] | None = None,
    offsets: Sequence[int] = (),
) -> GroupUnderTest:
    """Return `size` members cls(me, members, **options); `offsets` of their clocks, ns.

    Adds required options (`Protocol.trial_options`). With `bounds`, channels keep the bounds.
    """
    if not 2 <= size <= len(FLAT_NAMES):
        raise LocalError(f"{size} members: choose 2 to {len(FLAT_NAMES)}")
    options = with_trial(cls, range(MOST_MEMBERS), options or {})
    names = dict(enumerate(FLAT_NAMES[:size]))

    def newcomer(me: int, members: Iterable[int], name: str) -> Protocol:
        return build.member(partial(construct, cls, name), me, members, options, name)

    def make() -> dict[int, Protocol]:
        return {me: newcomer(me, tuple(names), name) for me, name in names.items()}

    bounds = options.get("bounds")
    timing = TimingModel(dict(zip(names, offsets, strict=False)), bounds)

    def fewer(name: str) -> ReducedGroup | None:
        at = FLAT_NAMES.index(name)
        left_offsets = [offset for other, offset in enumerate(offsets) if other != at]
        if at < size < 3:
            return None
        kept = {key: _remove_address(value, at) for key, value in options.items()}
        reduced = make_flat_group(protocol, cls, size - (at < size), kept, left_offsets)
        return ReducedGroup(reduced, _map_new_names(FLAT_NAMES, at))

    subscribed = options["subscriptions"].topics if "subscriptions" in options else {}
    shown_options = {
        key: value for key, value in options.items() if key not in ("bounds", "subscriptions")
    }
    return GroupUnderTest(
        protocol,
        names,
        make,
        newcomer,
        _format_options(shown_options),
        timing=timing,
        subscriptions={at: frozenset(own) for at, own in subscribed.items()},
        remove_member=fewer,
        add_member=lambda: make_flat_group(protocol, cls, size + 1, options, offsets),
    )


def _remove_address(value: Any, at: int) -> Any:
    if isinstance(value, Bounds):
        left = [other for other in range(len(FLAT_NAMES)) if other != at]
        return value.among(left).replace_names({other: other - (other > at) for other in left})
    if isinstance(value, Subscriptions):
        kept = {k - (k > at): topics for k, topics in value.topics.items() if k != at}
        return type(value)(kept)
    return value


def _map_new_names(names: str, at: int) -> dict[str, str]:
    return dict(zip(names[at + 1 :], names[at:], strict=False))


class ConstructionError(LocalError):
    """Failed construction of a member: its class raised or timed out."""

    def __init__(self, name: str, error: BaseException) -> None:
        self.name, self.error = name, error
        super().__init__(f"construction of {name} failed: {in_words(error)}")


def construct(factory: Factory, name: str, *arguments: Any, **options: Any) -> Any:
    """Call a class or function that makes members; its errors become ConstructionError."""
    try:
        return call_guarded(factory, *arguments, **options)
    except BaseException as error:
        raise_own(error)
        raise ConstructionError(name, error) from error


def hierarchy(
    protocol: str,
    factory: Factory,
    topology: Factory,
    groups: Iterable[int],
    external: int,
    options: Mapping[str, Any] | None = None,
) -> GroupUnderTest:
    """Return internal groups of the given sizes, each with a super peer, and external peers."""
    options = dict(options or {})
    sizes = tuple(groups)
    names: dict[int, str] = {}
    internal = []
    inside: dict[int, tuple[int, ...]] = {}
    letters = iter(FLAT_NAMES)
    for size, super_name in zip(sizes, SUPER_NAMES, strict=False):
        peers = tuple(range(len(names), len(names) + size))
        names.update({peer: next(letters) for peer in peers})
        names[len(names)] = super_name
        inside[len(names) - 1] = peers
        internal.append((super_name, tuple(names[peer] for peer in peers)))
    outside = tuple(range(len(names), len(names) + external))
    names.update(zip(outside, EXTERNAL_NAMES, strict=False))

    def make() -> dict[int, Protocol]:
        made = partial(construct, factory, "the group")
        return build.hierarchy(made, inside, outside, options, names, topology)

    def fewer(name: str) -> ReducedGroup | None:
        left = _reduce_sizes(name, internal, external)
        if left is None:
            return None
        made = hierarchy(protocol, factory, topology, *left, options)
        of_its_kind = next(
            known for known in (EXTERNAL_NAMES, SUPER_NAMES, FLAT_NAMES) if name in known
        )
        return ReducedGroup(made, _map_new_names(of_its_kind, of_its_kind.index(name)))

    return GroupUnderTest(
        protocol, names, make, None, _format_options(options), tuple(internal), remove_member=fewer
    )


def _reduce_sizes(
    name: str, internal: Sequence[tuple[str, tuple[str, ...]]], external: int
) -> tuple[tuple[int, ...], int] | None:
    if name in EXTERNAL_NAMES:
        sizes, external = [len(peers) for _, peers in internal], external - 1
    elif any(name == super_peer and peers for super_peer, peers in internal):
        return None
    else:
        rows = [row for row in internal if row[0] != name]
        sizes = [len([peer for peer in peers if peer != name]) for _, peers in rows]
    return (tuple(sizes), external) if sizes and sum(sizes) + external > 1 else None


def _format_options(options: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple((name, option_text(value)) for name, value in options.items())
