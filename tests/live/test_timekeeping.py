"""Clocks as an order was promised them: property (2), jumps, alarms, measured delays."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede.core.clocks.bounds import Bounds
from antecede.errors import DecodeError, LocalError
from antecede.live import timekeeping
from antecede.live.heads import Head
from antecede.live.settings import NS
from antecede.live.timekeeping import BoundViolation, ClockMonitor, Delays, propose_bounds

MS = 10**6
BOUNDS: Bounds[str] = Bounds(accuracy_ns=10 * MS, least_ns=5 * MS, most_ns=100 * MS)
LANE = "b~00000000"


def keeping(error_ns: int | None = 10 * MS, bounds: Bounds[str] | None = BOUNDS) -> ClockMonitor:
    made = ClockMonitor("a", bounds)
    made.shows(1000 * NS, 0)
    made.system_says(error_ns, "a test")
    return made


def alarms(made: ClockMonitor, now: int = 0) -> list[BoundViolation]:
    return list(made.take_violations(now))


def took(made: ClockMonitor, ns: int, accuracy_ns: int | None = 10 * MS, number: int = 2) -> None:
    assert made.reading is not None
    head = Head(accuracy_ns, made.reading - ns, (), 0)
    made.check_batch(LANE, number, head, direct=True)


# -- property (2) ----------------------------------------------------------------------------------


@pytest.mark.parametrize("ours", [10 * MS, 3 * MS, 12 * MS])
@pytest.mark.parametrize("theirs", [10 * MS, 0, 7 * MS])
def test_a_bound_is_broken_where_the_inequality_is_and_nowhere_else(ours: int, theirs: int) -> None:
    """Tsuneizumi et al., property (2): to the nanosecond, by the accuracies that both tell."""
    error = ours + theirs
    for ns, kind, by_ns in (
        (100 * MS + error, None, 0),
        (100 * MS + error + 1, "late", 1),
        (5 * MS - error, None, 0),
        (5 * MS - error - 1, "early", 1),
    ):
        made = keeping(ours)
        alarms(made)
        took(made, ns, theirs)
        found = alarms(made)
        assert [one.kind for one in found] == ([] if kind is None else [kind])
        assert [round(one.by_s * NS) for one in found] == ([] if kind is None else [by_ns])
        assert [one.id for one in found] == ([] if kind is None else [(LANE, 2)])


def test_what_nobody_says_of_a_clock_counts_as_promised() -> None:
    made = keeping(None)
    assert [one.kind for one in alarms(made)] == ["unknown_accuracy"]
    took(made, 120 * MS, None)
    assert [(one.kind, one.member) for one in alarms(made)] == [("unknown_accuracy", "b")]
    took(made, 120 * MS + 1, None)
    assert [(one.kind, one.member) for one in alarms(made)] == [("late", "b")]


def test_a_newcomers_first_batch_waits_for_links_and_is_not_late() -> None:
    made = keeping()
    took(made, 5 * NS, number=1)
    assert not alarms(made)
    assert not made.delays


def test_a_worse_clock_than_promised_is_said_when_it_begins() -> None:
    made = keeping()
    for _ in range(3):
        took(made, 50 * MS, 11 * MS)
    assert made.off == ("b",)
    (one,) = alarms(made)
    assert (one.kind, one.member, one.by_s, one.times) == ("accuracy", "b", 0.001, 1)
    assert "exceeds the promised one by 0.001 s" in str(one)
    took(made, 50 * MS, 10 * MS)
    assert not made.off
    took(made, 50 * MS, 11 * MS)
    assert not alarms(made, NS // 2)  # told within the second
    assert [one.kind for one in alarms(made, NS)] == ["accuracy"]


def test_alarms_are_told_once_a_second_with_their_number_and_the_worst() -> None:
    made = keeping()
    for k in range(5):
        took(made, 200 * MS + k, number=k + 2)
    assert [one.times for one in alarms(made)] == [5]
    for k in (3, 9, 1):
        took(made, 200 * MS + k * MS, number=20 + k)
    assert not alarms(made, NS - 1)
    (one,) = alarms(made, NS)
    assert (one.times, one.id, round(one.by_s * 1000)) == (3, (LANE, 23), 89)
    assert made.counts["late"] == 8
    assert "3 times" in made.last
    assert "0.089 s later" in made.last


def test_without_bounds_nothing_is_judged() -> None:
    made = keeping(None, None)
    took(made, 10**15, None)
    made.shows(3, 4)
    assert not alarms(made)
    assert not made.delays


# -- one's own clock -------------------------------------------------------------------------------


def test_a_clock_that_is_set_back_goes_on_at_half_its_pace_and_is_said() -> None:
    made = keeping()
    assert made.shows(1000 * NS, 0) == 1000 * NS
    assert made.shows(999 * NS, 10 * MS) == 1000 * NS + 5 * MS  # a second back
    (one,) = alarms(made)
    assert (one.kind, one.member) == ("set_back", "a")
    assert round(one.by_s, 3) == 1.01
    assert made.ahead_ns == NS + 5 * MS
    assert made.accuracy_ns == 10 * MS + NS + 5 * MS
    before, now = made.reading, 10 * MS
    for _ in range(300):
        now += 10 * MS
        reading = made.shows(999 * NS - 10 * MS + now, now)
        assert before is not None
        assert reading >= before
        before = reading
    assert reading == 999 * NS - 10 * MS + now  # it has caught up
    assert made.ahead_ns == 0
    assert not alarms(made, 10 * NS)


@pytest.mark.parametrize(("jump", "said"), [(20 * MS, False), (21 * MS, True), (-20 * MS, False)])
def test_a_clock_may_move_by_twice_its_accuracy(jump: int, said: bool) -> None:
    made = keeping()
    made.shows(1000 * NS + 100 + jump, 100)
    assert bool(alarms(made)) is said


def test_a_clock_far_ahead_is_said() -> None:
    made = keeping()
    assert made.shows(5000 * NS, MS) == 5000 * NS
    (one,) = alarms(made)
    assert (one.kind, round(one.by_s)) == ("set_ahead", 4000)


@given(st.lists(st.tuples(st.integers(-3 * NS, 3 * NS), st.integers(0, NS)), max_size=30))
def test_readings_never_fall(steps: list[tuple[int, int]]) -> None:
    made, wall, now = keeping(), 1000 * NS, 0
    before = made.reading
    for jump, passed in steps:
        wall, now = wall + jump + passed, now + passed
        reading = made.shows(wall, now)
        assert before is not None
        assert reading >= before
        assert made.ahead_ns == reading - wall
        before = reading


def test_after_a_restart_it_goes_on_from_the_last_reading() -> None:
    made = ClockMonitor("a", BOUNDS)
    made.resume(1000 * NS, 7)
    assert made.shows(400 * NS, 7 + 2 * MS) == 1000 * NS + MS
    assert [one.kind for one in alarms(made)] == ["set_back"]


# -- delays ----------------------------------------------------------------------------------------


@given(st.integers(0, 2**32))
def test_the_true_least_and_largest_delays_are_within_what_is_told(seed: int) -> None:
    draw, made = random.Random(seed), keeping(8 * MS)
    made.bounds = Bounds(accuracy_ns=9 * MS, least_ns=0, most_ns=NS)
    delays = [draw.randrange(0, 500 * MS) for _ in range(draw.randrange(1, 20))]
    ours, theirs = draw.randint(-8 * MS, 8 * MS), draw.randint(-5 * MS, 5 * MS)
    for delay in delays:
        took(made, delay + ours - theirs, 5 * MS)
    found = made.delays["b"]
    assert found.batches == len(delays)
    assert found.least_ns[0] <= min(delays) <= found.least_ns[1]
    assert found.most_ns[0] <= max(delays) <= found.most_ns[1]
    bounds = propose_bounds(made.delays, 0.008)
    assert bounds.least_ns <= min(delays) <= max(delays) <= bounds.most_ns


def test_what_was_handed_on_measures_no_channel() -> None:
    made = keeping()
    made.check_batch(LANE, 5, Head(0, 1000 * NS - 50 * MS, (), 0), direct=False)
    assert not made.delays


def test_delays_are_remembered() -> None:
    made, again = keeping(), keeping()
    took(made, 50 * MS)
    took(made, 70 * MS)
    again.remember(made.pack_delays())
    assert again.delays == made.delays
    took(again, 90 * MS)
    assert again.delays["b"].batches == 3
    assert again.delays["b"].least_ns == made.delays["b"].least_ns
    for bad in (b"", b"junk", made.pack_delays()[:-1]):
        with pytest.raises(DecodeError):
            again.remember(bad)


def test_bounds_are_proposed_from_all_channels() -> None:
    one, other = Delays(3, (4, 6), (10, 12)), Delays(9, (2, 9), (20, 30))
    bounds = propose_bounds([one, other], 0.001, margin=3)
    assert (bounds.least_ns, bounds.most_ns, bounds.accuracy_ns) == (2, 90, MS)
    with pytest.raises(LocalError, match="no delays"):
        propose_bounds([timekeeping.NONE], 0.001)
    with pytest.raises(LocalError, match="margin"):
        propose_bounds([one], 0.001, margin=0.5)
