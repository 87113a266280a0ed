"""Encoded sizes of control information in Evropeytsev et al.'s middle scenario, small group."""

from __future__ import annotations

from bench.encodings import SCENARIOS, measure_hierarchy, measure_idr

SMALL = SCENARIOS[1]._replace(peers=50, warm_s=0.6)


def test_pairs_take_at_most_half_of_the_accounting_of_000() -> None:
    rows = {row.quantity: row for row in (*measure_idr(SMALL), *measure_hierarchy(SMALL))}
    assert all(row.messages > 30 for row in rows.values())
    assert all(row.entropy < row.encoded < row.message for row in rows.values())
    assert rows["IDR"].message < rows["IDR"].accounting / 2
    assert rows["external"].message < rows["external"].accounting / 2
    # What is above the entropy is the window's place and kind: it does not grow with the group.
    assert rows["internal"].encoded < 1.05 * rows["internal"].entropy + 5
