"""Cost of timestamps and watermarks, on arrivals small enough to compute by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede.tables.order.baselines import (
    Arrival,
    as_they_come,
    by_timestamp,
    by_watermark,
    streams,
)

MS = 1_000_000


def arrival(name: str, arrived_ms: int, sent_ms: int, *causes: str, at: str = "r") -> Arrival:
    return Arrival(at, name, causes, arrived_ms * MS, sent_ms * MS)


# b answers a, but b's sender has a clock that is 50 ms slow, and b overtakes a.
OVERTAKEN = [arrival("b", 100, 60, "a"), arrival("a", 120, 90), arrival("c", 300, 280, "b")]


def test_as_they_come_puts_the_effect_before_its_cause() -> None:
    outcome = as_they_come(streams(OVERTAKEN))
    assert (outcome.rows, outcome.dropped, outcome.inverted, outcome.broken) == (3, 0, 1, 0)
    assert outcome.wait_ms(0.99) == 0.0


def test_sorting_by_a_skewed_timestamp_inverts_the_edge() -> None:
    assert by_timestamp(streams(OVERTAKEN)).inverted == 1
    sent = zip(OVERTAKEN, (110, 90, 280), strict=True)
    true = [row._replace(sent_ns=at * MS) for row, at in sent]
    assert by_timestamp(streams(true)).inverted == 0


@pytest.mark.parametrize(
    ("width_ms", "counts", "waits", "flushed"),
    [
        # b is released when c moves the watermark to 260; c itself still waits when the data ends.
        (20, (1, 1, 0), (200.0,), 1),
        (40, (0, 0, 0), (180.0, 200.0), 1),
    ],
)
def test_a_narrow_watermark_drops_and_breaks_and_a_wide_one_makes_everything_wait(
    width_ms: int, counts: tuple[int, ...], waits: tuple[float, ...], flushed: int
) -> None:
    rows = [arrival("b", 100, 90, "a"), arrival("a", 120, 60), arrival("c", 300, 280)]
    outcome = by_watermark(streams(rows), width_ms * MS, "w")
    assert (outcome.dropped, outcome.broken, outcome.inverted) == counts
    assert (outcome.waits_ms, outcome.flushed) == (waits, flushed)


def test_streams_do_not_wait_for_each_other() -> None:
    rows = [arrival("a", 10, 1, at="r"), arrival("b", 5, 2, "a", at="s")]
    outcome = as_they_come(streams(rows))
    assert outcome.inverted == 0, "the cause never reaches stream s: there is nothing to invert"


rows_of_a_stream = st.lists(
    st.tuples(st.integers(0, 1000), st.integers(0, 1000)), min_size=1, max_size=40
).map(lambda times: [arrival(str(k), a, s) for k, (a, s) in enumerate(times)])


@given(rows_of_a_stream, st.integers(0, 500))
def test_every_row_is_released_or_dropped_and_released_in_time_order(
    rows: list[Arrival], width_ms: int
) -> None:
    split = streams(rows)
    outcome = by_watermark(split, width_ms * MS, "w")
    assert len(outcome.waits_ms) + outcome.flushed + outcome.dropped == len(rows)
    assert all(wait >= 0 for wait in outcome.waits_ms)
    lateness = max(
        (max(r.sent_ns for r in split["r"][: k + 1]) - row.sent_ns)
        for k, row in enumerate(split["r"])
    )
    assert (outcome.dropped == 0) == (lateness <= width_ms * MS)
