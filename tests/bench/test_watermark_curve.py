"""Curve of watermarks: model against engine, page against table."""

from __future__ import annotations

import random
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antecede.spark.order_columns import ROW_HASH
from antecede.spark.streams.rows import read_batch
from antecede.tables.order.spec import OrderSpec
from antecede.tables.order.stream.shard import Shard
from antecede.tables.order.stream.storage.blobs import Memory
from antecede.tables.order.stream.types import ShardPlan
from antecede.tables.order.table import order_table
from bench.watermark_claims import ClaimError, Curves
from bench.watermark_curve import CAPPED, DOCS, HOLD, RAW, TICK_MS, WIDTHS, Point, load, measure
from bench.watermark_feeds import LORE, NamedRow, number_rows, read_lore, simulate_outages
from bench.watermark_figures import draw
from bench.watermark_model import (
    NEVER,
    FeedRow,
    compute_earliest,
    compute_metrics,
    group_batches,
    run_causal,
    run_watermark,
)
from bench.watermark_page import make_page

TICK = 10
POINTS = load()


def fed(*rows: tuple[str, str, int, int]) -> list[FeedRow]:
    """Rows from name, causes by letter, arrival and stamp."""
    return number_rows(
        NamedRow(name, tuple(causes), came, stamp) for name, causes, came, stamp in rows
    )


def test_a_watermark_by_hand() -> None:
    rows = fed(("a", "", 10, 100), ("b", "a", 20, 60), ("c", "", 30, 130), ("d", "", 60, 90))
    run = run_watermark(rows, 30, TICK)
    # The watermark is 70 from the second tick on, 100 from the fourth; late is judged one behind.
    assert run.dropped == [False, False, False, True]
    assert run.left == [4, 2, NEVER, NEVER]
    # b leaves before its cause a: it goes by its own, slow clock.
    measured = compute_metrics(rows, run, compute_earliest(rows, TICK), TICK, remembers=False)
    assert (measured.dropped, measured.inverted, measured.broken) == (1, 1, 0)


def test_a_dropped_cause_is_a_broken_pair() -> None:
    rows = fed(("a", "", 10, 100), ("n", "", 20, 300), ("b", "", 30, 310), ("c", "", 40, 50))
    rows += [FeedRow(50, 320, (3,)), FeedRow(200, 900)]
    run = run_watermark(rows, 0, TICK)
    assert run.dropped[3]
    assert run.left[4] != NEVER
    measured = compute_metrics(rows, run, compute_earliest(rows, TICK), TICK, remembers=False)
    assert (measured.judged, measured.inverted, measured.broken) == (1, 0, 1)


def test_waits_that_never_end_are_the_longest() -> None:
    far = 40 * 86_400_000
    rows = [FeedRow(10, 10, (), 1), FeedRow(20, 20), FeedRow(far, far)]
    measured = compute_metrics(
        rows, run_causal(rows, None, TICK), compute_earliest(rows, TICK), TICK, remembers=True
    )
    assert (measured.settled, measured.stuck) == (2, 1)
    assert (measured.wait_p50, measured.wait_max, measured.buffered_most) == (None, None, 1)


def histories(seed: int, size: int) -> list[FeedRow]:
    rng = random.Random(seed)
    rows = []
    for k in range(size):
        causes = tuple(rng.sample(range(k), min(k, rng.choice([0, 1, 1, 2]))))
        came = rng.randrange(1, 40)
        rows.append(FeedRow(came, came, causes, rng.random() < 0.15))
    return rows


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 14), st.sampled_from([None, 0, 5, 10, 30]))
def test_causal_release_is_what_the_engine_does(seed: int, size: int, patience: int | None) -> None:
    rows = histories(seed, size)
    spec = OrderSpec(id="id", after=("after",), time="at", time_unit="ms")
    policy = "hold" if patience is None else "release"
    shard = Shard(ShardPlan(False, True, policy=policy, patience=patience or 0), Memory())
    left = [NEVER] * size
    for tick, some in group_batches(rows, TICK):
        table = pa.table(
            {
                "id": [str(k) for k in some],
                "after": [
                    [str(c) for c in rows[k].causes] + ["lost"] * rows[k].absent for k in some
                ],
                "at": [rows[k].arrived for k in some],
                ROW_HASH: np.array(some, np.int64),
            },
            schema=pa.schema(
                {
                    "id": pa.string(),
                    "after": pa.list_(pa.string()),
                    "at": pa.int64(),
                    ROW_HASH: pa.int64(),
                }
            ),
        )
        outcome = shard.step(read_batch(table, spec), max(rows[k].arrived for k in some), table)
        assert outcome.rows is not None
        for name in outcome.rows.column("id").to_pylist():
            left[int(str(name))] = tick
    assert run_causal(rows, patience, TICK).left == left


@given(st.integers(0, 10**6), st.integers(1, 30))
def test_what_is_needed_is_what_a_batch_orders(seed: int, size: int) -> None:
    rows = histories(seed, size)
    table = pa.table(
        {
            "id": [str(k) for k in range(size)],
            "after": pa.array(
                [[str(c) for c in row.causes] for row in rows], pa.list_(pa.string())
            ),
            "at": pa.array([-(-row.arrived // TICK) for row in rows], pa.int64()),
        }
    )
    spec = OrderSpec(id="id", after=("after",), time="at", time_unit="ms")
    assert order_table(table, spec).column("released_at").to_pylist() == compute_earliest(
        rows, TICK
    )


def test_the_page_says_what_the_table_shows() -> None:
    page = (DOCS / "watermarks.md").read_text(encoding="utf-8")
    assert page == make_page(POINTS), "run python -m bench.watermark_curve --draw"


def test_a_table_that_shows_something_else_makes_no_page() -> None:
    better = [
        p._replace(figures=p.figures._replace(dropped=0)) if p.scheme == RAW else p for p in POINTS
    ]
    with pytest.raises(ClaimError, match="raw dates"):
        make_page(better)


def read_svg(svg: str) -> tuple[list[str], int]:
    """Return the words of a picture and how many marks stand in it; places may differ."""
    return re.findall(r">([^<>]+)</(?:text|tspan)>", svg), svg.count("<use ")


@pytest.mark.slow
def test_the_figure_is_drawn_from_the_table(tmp_path: Path) -> None:
    draw(POINTS, tmp_path / "drawn.svg")
    words, marks = read_svg((tmp_path / "drawn.svg").read_text(encoding="utf-8"))
    kept = (DOCS / "figures" / "watermarks.svg").read_text(encoding="utf-8")
    assert (words, marks) == read_svg(kept)
    assert marks > 3 * 5 * len(WIDTHS)
    assert "Where causal release is worse:" in words


def test_every_feed_has_every_scheme_and_width() -> None:
    curves = Curves(POINTS)
    assert len(POINTS) == len(curves.feeds) * (3 * len(WIDTHS) + 1)
    assert {p.width for p in POINTS if p.scheme == HOLD} == {""}


def lines(points: list[Point], feed: str) -> list[Point]:
    return [p for p in points if p.feed == feed]


@pytest.mark.slow
def test_the_mailing_lists_give_the_table_again() -> None:
    if not LORE.is_dir():
        pytest.skip("the archives of the mailing lists are not here (../shared/data/lore)")
    rows = read_lore()
    year = 365.25 * 86_400_000
    ahead = sorted((row.stamp - row.arrived) / year for row in rows)
    assert [round(years) for years in ahead[-3:]] == [0, 20, 66]  # the page says so
    assert list(measure("lore", rows)) == lines(POINTS, "lore")


@pytest.mark.slow
def test_what_a_wide_watermark_inverts_in_the_mailing_lists_is_what_dates_invert() -> None:
    if not LORE.is_dir():
        pytest.skip("the archives of the mailing lists are not here (../shared/data/lore)")
    rows = [row._replace(stamp=min(row.stamp, row.arrived)) for row in read_lore()]
    run = run_watermark(rows, WIDTHS["7 days"], TICK_MS)
    pairs = [(cause, k) for k, row in enumerate(rows) for cause in row.causes]
    there = [(a, b) for a, b in pairs if NEVER not in (run.left[a], run.left[b])]
    inverted = [(a, b) for a, b in there if run.place[a] > run.place[b]]
    assert all((rows[b].stamp, b) < (rows[a].stamp, a) for a, b in inverted)
    at = Curves(POINTS).at["lore", CAPPED, "7 days"]
    assert len(inverted) == at.inverted


@pytest.mark.slow
def test_a_simulated_feed_is_the_same_each_time_and_loses_what_it_says() -> None:
    rows = simulate_outages(9)
    assert rows == simulate_outages(9)
    assert 3_000 < len(rows) < 6_000
    assert 0 < sum(row.absent for row in rows) < 0.01 * len(rows)
    late = [row.arrived - row.stamp for row in rows]
    assert max(late) > 3_600_000  # the outage of two hours on day 8
    assert sorted(late)[len(late) // 2] < 60_000
    assert TICK_MS == 60_000
