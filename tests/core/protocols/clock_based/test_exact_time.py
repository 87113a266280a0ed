"""Exact arithmetic of times: order holds for any decimals of bounds, delays and readings."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede import Group
from antecede.core.clocks.bounds import Bounds
from antecede.core.clocks.nanoseconds import NS, down_ns, seconds_text, up_ns
from antecede.core.protocols.topics.subscriptions import Subscriptions
from antecede.errors import LocalError
from tests.helpers.unchanged import unchanged

NAMES = ("P1", "P2", "P3")
TOPICS = {"subscriptions": Subscriptions({name: ["x"] for name in NAMES})}
ORDERS: dict[str, dict[str, Any]] = {
    "linear": {"delivery": "bound"},
    "linear-physical": {"delivery": "bound"},
    "physical": {"delivery": "bound"},
    "htbc": TOPICS,
    "tv-pt": TOPICS,
    "tv": TOPICS,
}
every = pytest.mark.parametrize("order", ORDERS)
EPOCHS = st.sampled_from([0, 1_700_000_000]) | st.integers(0, 4_000_000_000)


def question_and_answer(order: str, settings: dict[str, int], unit: int) -> list[bytes]:
    """Return P3's deliveries of a question of P1 and P2's reply; all times in `unit`ths of 1 s.

    The run keeps the bounds exactly and is the worst case: P1's clock is ahead and P2's behind. The
    question takes the least delay to P2 and `took` to P3, the reply the least. Readings are seconds
    as a caller computes them: one division of floats.
    """
    error, least, most = settings["accuracy"], settings["least"], settings["most"]
    bounds = Bounds[str](accuracy_s=error / unit, least_s=least / unit, most_s=most / unit)
    group = {n: Group(n, NAMES, order=order, bounds=bounds, **ORDERS[order]) for n in NAMES}
    off = {"P1": error, "P2": -error, "P3": settings["mine"]}

    def clock(name: str, at: int) -> float:
        return (settings["epoch"] * unit + at + off[name]) / unit

    about: Any = {"topics": ["x"]} if "subscriptions" in ORDERS[order] else {}
    question = group["P1"].send(b"question", now=clock("P1", 0), **about)
    group["P2"].receive(question, now=clock("P2", least))
    answer = group["P2"].send(b"answer", now=clock("P2", least), **about)
    copies = sorted([(2 * least, 1, answer), (settings["took"], 0, question)])
    read = []
    for at, _, wire in copies:
        read += group["P3"].receive(wire, now=clock("P3", at))
        read += group["P3"].tick(clock("P3", at))
    due = most + error - settings["mine"]  # by the answer's PT, with the bound on P3's clock
    for tick in (due, due + 1, 10 * (most + error + 1)):
        if tick >= copies[-1][0]:
            read += group["P3"].tick(clock("P3", tick))
    return [message.payload for message in read]


@st.composite
def settings_of(draw: st.DrawFn) -> dict[str, int]:
    """Return bounds in whole units, most of them small, and an epoch in seconds."""
    least = draw(st.integers(1, 60))
    most = least + draw(st.integers(least, 500))
    error = draw(st.integers(0, 120))
    mine = draw(st.sampled_from([error, -error, 0]))
    found = {"accuracy": error, "least": least, "most": most, "mine": mine}
    took = draw(st.sampled_from([most, min(most, 5 * least)]))
    return {**found, "took": took, "epoch": draw(EPOCHS)}


@every
@given(settings=settings_of())
def test_order_is_kept_for_all_bounds_and_epochs(order: str, settings: dict[str, int]) -> None:
    if order == "physical" and settings["least"] <= 2 * settings["accuracy"]:
        settings = {**settings, "accuracy": (settings["least"] - 1) // 2, "mine": 0}
    assert question_and_answer(order, settings, 1000) == [b"question", b"answer"]


@pytest.mark.slow
@every
def test_the_settings_in_which_rounding_lost_the_order(order: str) -> None:
    grid = ((1, 5, 10, 20, 50, 100), (1, 2, 3, 5, 10, 20, 30), (50, 100, 200, 303, 400))
    for accuracy in grid[0]:
        for least in grid[1]:
            for most in grid[2]:
                if order == "physical" and least <= 2 * accuracy:
                    continue
                for epoch, took in product((0, 1_700_000_000), (most, min(most, 5 * least))):
                    found = {"accuracy": accuracy, "least": least, "most": most}
                    settings = {**found, "mine": accuracy, "took": took, "epoch": epoch}
                    assert question_and_answer(order, settings, 1000) == [b"question", b"answer"]


# -- seconds at the door -----------------------------------------------------------------------


@given(ns=st.integers(0, 1 << 61), digits=st.integers(1, 9))
def test_bounds_are_rounded_to_the_safe_side(ns: int, digits: int) -> None:
    typed = Decimal(ns).scaleb(-9) + Decimal(digits).scaleb(-10)
    bounds = Bounds[int](accuracy_s=typed, least_s=typed, most_s=typed)
    assert (bounds.least_ns, bounds.accuracy_ns, bounds.most_ns) == (ns, ns + 1, ns + 1)


@given(ns=st.integers(-(1 << 61), 1 << 61))
def test_whole_nanoseconds_are_taken_exactly_and_written_so(ns: int) -> None:
    for typed in (Decimal(seconds_text(ns)), Fraction(ns, NS)):
        assert down_ns(typed) == up_ns(typed) == ns


@given(ms=st.integers(0, 10**12))
def test_a_float_is_the_decimal_that_was_typed(ms: int) -> None:
    assert down_ns(ms / 1000) == up_ns(ms / 1000) == ms * 10**6


def test_bounds_in_nanoseconds_are_the_same_bounds() -> None:
    seconds = Bounds(0.1, 0.2, 0.3, {"a": 0.4}, {("a", "b"): (0.5, 0.6)})
    ns = Bounds(
        accuracy_ns=10**8,
        least_ns=2 * 10**8,
        most_ns=3 * 10**8,
        clocks_ns={"a": 4 * 10**8},
        channels_ns={("a", "b"): (5 * 10**8, 6 * 10**8)},
    )
    assert seconds == ns
    assert hash(seconds) == hash(ns)
    assert repr(seconds) == repr(ns)


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"accuracy_s": 1, "accuracy_ns": 1}, "give one of the two"),
        ({"accuracy_s": -1}, "accuracy"),
        ({"most_s": float("inf")}, "finite"),
        ({"least_s": float("nan"), "most_s": 3}, "finite"),
        ({"most_s": "soon"}, "number of seconds"),
        ({"most_s": 10**10}, "146 years"),
        ({"most_s": Decimal("1e999999999")}, "146 years"),
        ({"accuracy_s": Decimal("-1e999999999")}, "146 years"),
        ({"least_s": Decimal("1e-999999999")}, "the resolution is 1 ns"),
        ({"accuracy_ns": 0.5}, "accuracy"),
        ({"least_ns": 5, "most_ns": 4}, "expected 0 <= least <= most"),
    ],
)
def test_impossible_bounds_are_refused_by_name(given: dict[str, Any], word: str) -> None:
    with pytest.raises(LocalError, match=word):
        Bounds(**given)


def test_decimals_of_any_length_are_read_to_the_nanosecond() -> None:
    assert down_ns(Decimal("0." + "3" * 5_000)) == 333_333_333
    assert up_ns(Decimal("1e-300")) == 1
    assert down_ns(Decimal("0e999999")) == down_ns(Decimal("0e-999999")) == 0


# -- the clock's reading at the door -------------------------------------------------------------


def member(order: str = "htbc") -> Group:
    bounds = Bounds[str](accuracy_s=0.01, least_s=0.05, most_s=0.2)
    return Group("P1", NAMES, order=order, bounds=bounds, **ORDERS[order])


def about(order: str) -> Any:
    return {"topics": ["x"]} if "subscriptions" in ORDERS[order] else {}


@every
def test_an_order_by_clocks_refuses_to_go_without_the_time(order: str) -> None:
    group = member(order)
    before = group.snapshot()
    for call in (lambda: group.send(b"m", **about(order)), lambda: group.tick()):
        with pytest.raises(LocalError, match="pass now"):
            call()
    other = Group("P2", NAMES, order=order, bounds=Bounds(0.01, 0.05, 0.2), **ORDERS[order])
    wire = other.send(b"m", now=5, **about(order))
    with pytest.raises(LocalError, match="pass now"):
        group.receive(wire)
    assert group.snapshot() == before


def test_recovery_and_patience_refuse_to_go_without_the_time() -> None:
    with pytest.raises(LocalError, match="matrix with recovery"):
        Group("P1", NAMES, order="matrix", recovering=True).send(b"m")
    wire = Group("P2", NAMES, order="matrix", recovering=True).send(b"m", now=1)
    with pytest.raises(LocalError, match="matrix with recovery"):
        Group("P1", NAMES, order="matrix", recovering=True).receive(wire)
    plain = Group("P2", NAMES, order="matrix").send(b"m")
    Group("P1", NAMES, order="matrix").receive(plain)
    patient = Group("P1", NAMES, order="sb", on_missing_parent="deliver", patience_s=5)
    wire = Group("P2", NAMES, order="sb").send(b"m")
    with pytest.raises(LocalError, match="patience_s"):
        patient.receive(wire)
    Group("P1", NAMES, order="matrix").send(b"m")
    Group("P1", NAMES).tick(5)


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"now": 1_700_000_000_000_000_000}, "now_ns"),
        ({"now": 1.7e18}, "now_ns"),
        ({"now": 5, "now_ns": 5}, "both given"),
        ({"now_ns": 5.0}, "whole nanoseconds"),
        ({"now_ns": True}, "whole nanoseconds"),
        ({"now": float("nan")}, "finite"),
        ({"now": "noon"}, "number of seconds"),
        ({"now": "5"}, "number of seconds"),
        ({"now": b"5"}, "number of seconds"),
        ({"now": True}, "number of seconds"),
        ({"now_ns": 1 << 62}, "146 years"),
    ],
)
def test_readings_that_can_not_be_meant_are_refused(given: dict[str, Any], word: str) -> None:
    group = member()
    with unchanged(group), pytest.raises(LocalError, match=word):
        group.send(b"m", topics=["x"], **given)


def test_seconds_and_nanoseconds_are_the_same_reading() -> None:
    readings: list[dict[str, Any]] = [
        {"now": 1700000000.25},
        {"now": Decimal("1700000000.25")},
        {"now_ns": 1_700_000_000_250_000_000},
    ]
    for reading in readings:
        group = member()
        group.send(b"m", topics=["x"], **reading)
        assert group._state.protocol.own_clock.read_ns == 1_700_000_000_250_000_000  # type: ignore[attr-defined]
