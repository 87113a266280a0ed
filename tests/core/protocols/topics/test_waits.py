"""Waits of Nakayama's protocols: neither too short nor too long in all runs of a small grid."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede.core.clocks.bounds import Bounds
from antecede.core.clocks.nanoseconds import NS
from antecede.core.protocols.base import Deliver
from antecede.core.protocols.topics.delays import Delays
from antecede.core.protocols.topics.delivery import TopicProtocol
from antecede.core.protocols.topics.messages import TopicMessage
from antecede.core.protocols.topics.state import HeldEvent
from antecede.core.protocols.topics.subscriptions import Subscriptions
from antecede.errors import LocalError
from tests.core.protocols.seconds import s
from tests.core.protocols.topics.tools import CLASSES, EXACT, GROUPS, LAN_WAN, UNLIKE, publish_all

every = pytest.mark.parametrize("name", CLASSES)
groups = pytest.mark.parametrize("group", GROUPS)


def early_on_the_grid(name: str, bounds: Bounds[int], path: tuple[int, ...]) -> Iterator[bool]:
    """Yield for every run of a small grid whether an event came before its cause.

    The first of `path` publishes e1. Each of the others publishes as soon as it has that, the last
    of them e2. All copies to 3 take every possible delay, the others the least. The clocks of the
    last publisher and of 3 are at either end, that of 3 at either end again when e1 arrives. In
    each second 3 is ticked before anything arrives.
    """
    source, last = path[0], path[-1]
    steps = [bounds.least_delay_ns(a, b) // NS for a, b in itertools.pairwise(path)]
    delays = [
        range(bounds.least_delay_ns(k, 3) // NS, bounds.most_delay_ns(k, 3) // NS + 1)
        for k in (source, last)
    ]
    clocks = [(-bounds.error_ns(k), bounds.error_ns(k)) for k in (last, 3, 3)]
    subscriptions = Subscriptions(dict.fromkeys(range(4), ("x",)))
    for took in itertools.product(*delays):
        for its, then, when_e1_comes in itertools.product(*clocks):
            members = [
                CLASSES[name](k, range(4), subscriptions=subscriptions, bounds=bounds)
                for k in range(4)
            ]
            e1 = message = publish_all(members[source], "x", s(100), "e1")
            at = 0
            for to, step in zip(path[1:], steps, strict=True):
                at += step
                members[to].receive(message, now=s(100 + at))
                message = publish_all(
                    members[to], "x", s(100 + at) + (its if to == last else 0), "e2"
                )
            if len(path) == 1:
                message = publish_all(members[source], "x", s(100) + its, "e2")
            arrivals = {"e1": (took[0], e1), "e2": (at + took[1], message)}
            yield _overtaken(members[3], arrivals, then, when_e1_comes)


def _overtaken(
    member: TopicProtocol, arrivals: dict[str, tuple[int, TopicMessage]], then: int, later: int
) -> bool:
    order: list[object] = []
    for now in range(max(at for at, _ in arrivals.values()) + 20):
        reading = s(100 + now) + (later if now >= arrivals["e1"][0] else then)
        effects = [*member.tick(reading)]
        for at, message in arrivals.values():
            if at == now:
                effects += member.receive(message, now=reading)
        order += [e.message.payload for e in effects if isinstance(e, Deliver)]
    assert sorted(map(str, order)) == ["e1", "e2"]
    return order == ["e2", "e1"]


PATHS = [(0,), (0, 1), (0, 2, 1)]
GRIDS: dict[str, Bounds[int]] = {
    **{name: bounds for name, bounds in GROUPS.items() if name != "all unlike"},
    "a detour is faster": Bounds(
        accuracy_s=1, least_s=1, most_s=4, channels={(0, 1): (5, 6), (0, 3): (2, 6)}
    ),
}


def patch_waits(monkeypatch: pytest.MonkeyPatch, less_s: int) -> None:
    """Reduce both bounds by so many seconds."""
    for bound in ("wait_after_publishing_ns", "wait_after_arrival_ns"):
        whole: Callable[[Delays, int, int], int] = getattr(Delays, bound)

        def shorter(
            self: Delays,
            source: int,
            receiver: int,
            whole: Callable[[Delays, int, int], int] = whole,
        ) -> int:
            return whole(self, source, receiver) - s(less_s)

        monkeypatch.setattr(Delays, bound, shorter)


@pytest.mark.few(3)
@every
@pytest.mark.parametrize("grid", GRIDS)
def test_the_wait_is_long_enough_and_one_second_less_is_not(
    name: str, grid: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bounds = GRIDS[grid]
    assert not any(early for path in PATHS for early in early_on_the_grid(name, bounds, path))
    patch_waits(monkeypatch, 1)
    assert any(early for path in PATHS for early in early_on_the_grid(name, bounds, path))


def test_the_bound_of_the_publishers_own_channel_is_too_short(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    far: Bounds[int] = Bounds(accuracy_s=1, least_s=1, most_s=2, channels={(0, 3): (1, 9)})
    assert Delays(far, range(4)).wait_after_publishing_ns(1, 3) == s(9 - 1 + 2)
    assert not any(early_on_the_grid("htbc", far, (0, 1)))
    monkeypatch.setattr(
        Delays,
        "wait_after_publishing_ns",
        lambda self, j, i: self.bounds.most_delay_ns(j, i) + self.error_ns(j, i),
    )
    assert any(early_on_the_grid("htbc", far, (0, 1)))


def test_delays_by_hand() -> None:
    bounds: Bounds[int] = Bounds(
        accuracy_s=2, least_s=1, most_s=3, clocks={3: 1}, channels={(0, 1): (4, 5), (0, 3): (2, 9)}
    )
    delays = Delays(bounds, range(4))
    assert delays.least_ns(0, 1) == s(2)
    assert delays.least_ns(1, 0) == s(1)
    assert delays.least_ns(1, 1) == 0
    assert delays.error_ns(1, 3) == s(3)
    assert delays.wait_after_publishing_ns(1, 3) == s((9 - 2) + 3)  # k = 0
    assert delays.wait_after_arrival_ns(1, 3) == s((9 - 2) - 1 + 2 * 1)
    assert delays.wait_after_publishing_ns(2, 0) == s((3 - 0) + 4)  # k = 2 itself
    assert delays.least_ns(2, 0) == s(1)


def test_channels_that_are_alike_are_answered_as_if_each_were_spelt_out() -> None:
    pairs = list(itertools.product(range(4), repeat=2))
    for least_s, most_s in ((0, 3), (1, 3), (2, 2)):
        alike = Delays(Bounds(accuracy_s=2, least_s=least_s, most_s=most_s), range(4))
        channels = {(a, b): (least_s, most_s) for a, b in pairs if a != b}
        spelt: Bounds[int] = Bounds(accuracy_s=2, least_s=least_s, most_s=most_s, channels=channels)
        general = Delays(spelt, range(4))
        for one, other in pairs:
            assert alike.least_ns(one, other) == general.least_ns(one, other)
            for bound in ("wait_after_publishing_ns", "wait_after_arrival_ns"):
                assert getattr(alike, bound)(one, other) == getattr(general, bound)(one, other)
        assert (
            alike.bounds.least_apart_ns() == general.bounds.least_apart_ns() == s(least_s - 2 * 2)
        )


@given(seed=st.integers(0, 2**32))
def test_least_delays_are_those_of_the_bounds(seed: int) -> None:
    for bounds in (LAN_WAN, UNLIKE, EXACT):
        delays = Delays(bounds, range(4))
        for one, other in itertools.product(range(4), repeat=2):
            assert delays.least_ns(one, other) == bounds.least_path_ns(one, other, (0, 1, 2, 3))


@every
@pytest.mark.parametrize("put_on", ["the class", "the member"])
def test_a_due_time_of_ones_own_is_gone_by(name: str, put_on: str) -> None:
    cls = CLASSES[name]
    later_ns = s(1.5)

    def later(self: TopicProtocol, waiting: HeldEvent) -> int:
        return cls.due_ns(self, waiting) + later_ns

    subscriptions = Subscriptions(dict.fromkeys(range(3), ("x",)))
    options: Any = {"subscriptions": subscriptions, "bounds": GROUPS["alike, good clocks"]}
    plain = cls(1, range(3), **options)
    other = type("Later", (cls,), {"due_ns": later} if put_on == "the class" else {})
    own = other(1, range(3), **options)
    if put_on == "the member":
        own.due_ns = later.__get__(own)
    event = publish_all(cls(0, range(3), **options), "x", s(100), "e")
    for one in (plain, own):
        assert not any(isinstance(e, Deliver) for e in one.receive(event, now=s(101)))
    (waiting,) = plain.held.values()
    due = plain.due_ns(waiting)
    assert plain.tick(due) == ()
    assert plain.tick(due + 1) == (Deliver(event),)
    assert own.tick(due + later_ns) == ()
    assert own.tick(due + later_ns + 1) == (Deliver(event),)


@every
def test_a_due_time_by_its_former_name_is_refused(name: str) -> None:
    own = type("Own", (CLASSES[name],), {"due_s": lambda self, waiting: 0})
    with pytest.raises(LocalError, match=r"Own\.due_s has no effect; define due_ns"):
        own(1, range(3), bounds=GROUPS["alike, good clocks"])
