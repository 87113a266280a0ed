"""One rule of quantiles, by hand and against the exact count."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede.lab.simulate.outputs.metrics import wait_figures
from antecede.quantiles import nearest_rank, quantile
from antecede.tables.order.baselines import BaselineOutcome


@pytest.mark.parametrize(
    ("part", "count", "rank"),
    [
        (0.5, 2, 1),
        (0.5, 5, 3),
        (0.99, 100, 99),
        (0.99, 101, 100),
        (0.07, 100, 7),
        (0, 4, 1),
        (1, 4, 4),
    ],
)
def test_the_rank_is_the_ceil_p_n_th(part: float, count: int, rank: int) -> None:
    assert nearest_rank(part, count) == rank


@given(st.lists(st.integers(0, 9), min_size=1, max_size=40), st.integers(1, 100))
def test_a_quantile_is_the_least_value_that_so_many_do_not_exceed(
    values: list[int], percent: int
) -> None:
    enough = [
        value
        for value in values
        if sum(other <= value for other in values) >= Fraction(percent, 100) * len(values)
    ]
    assert quantile(sorted(values), percent / 100) == min(enough)
    assert quantile(np.sort(np.array(values)), percent / 100) == min(enough)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=40))
def test_waits_of_a_run_and_of_a_scheme_go_by_the_same_rule(waits_ms: list[int]) -> None:
    run = wait_figures([wait * 1000 for wait in waits_ms])
    ordered = tuple(float(wait) for wait in sorted(waits_ms))
    scheme = BaselineOutcome("", len(waits_ms), 0, 0, 0, ordered)
    assert run["wait_ms.p50"] == scheme.wait_ms(0.5)
    assert run["wait_ms.p99"] == scheme.wait_ms(0.99)
