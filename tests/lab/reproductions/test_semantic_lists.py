"""Ordering lists over time, held against the protocol's own."""

from __future__ import annotations

import numpy as np
import pytest

from antecede.core.clocks.intervals import insert, nodes
from antecede.lab.reproductions.semantic.lists import (
    ARRIVALS,
    compute_extreme_metrics,
    compute_list_metrics,
    count_held,
)
from antecede.lab.reproductions.semantic.orders import Outcome
from antecede.lab.simulate.delays import Delay
from tests.lab.reproductions.test_semantic_orders import drawn, outcome

N, EACH = 7, 12


def replayed(found: Outcome) -> tuple[int, int, int]:
    """Return most nodes, most nodes beyond one a sender, and most rows, by the lists themselves."""
    numbers = [int((found.sender[:at] == me).sum()) + 1 for at, me in enumerate(found.sender)]
    most = excess = rows = 0
    delivered, arrived = found.delivered_us["sb"], found.arrived_us
    for place in range(delivered.shape[1]):
        lists: dict[int, list[int]] = {}
        came = delivered[:, place]
        for now in np.unique(came):
            for at in np.flatnonzero(came == now):
                insert(lists.setdefault(int(found.sender[at]), []), numbers[at])
            total = sum(map(nodes, lists.values()))
            most, excess = max(most, total), max(excess, total - len(lists))
        for now in np.unique(arrived[:, place]):
            rows = max(rows, int(((arrived[:, place] <= now) & (came > now)).sum()))
    return most, excess, rows


@pytest.mark.parametrize("delay", [Delay(0.0, 0.3, "uniform"), Delay(0.001, 3.0, "lognormal")])
def test_nodes_are_those_of_the_ordering_lists(delay: Delay) -> None:
    found = outcome(drawn(delay=delay, duration_s=8.0, reply_fraction=0.9, recent=1))
    figures = compute_list_metrics(found)
    most, excess, rows = replayed(found)
    assert (figures["nodes.most"], figures["nodes.excess"]) == (most, excess)
    assert figures["rows.most"] == rows > 0
    assert excess > 0


def test_what_comes_in_order_needs_a_node_a_sender() -> None:
    """Bhavanasi and Iyer, VI.D.2, best case, over a run: a constant delay reorders nothing."""
    figures = compute_list_metrics(outcome(drawn(members=5, delay=Delay(0.1, 0.1, "constant"))))
    assert (figures["nodes.most"], figures["nodes.excess"], figures["rows.most"]) == (5, 0, 0)
    assert figures["curve.nodes"] == figures["curve.best"]


def test_best_case_of_the_lists() -> None:
    """Bhavanasi and Iyer, VI.D.2: contiguous numbers take one node a list; the store stays
    empty.
    """
    found = compute_extreme_metrics("in order", N, EACH, 1)
    assert (found["nodes.most"], found["nodes.end"], found["rows.most"]) == (N, N, 0)


def test_worst_case_of_the_lists() -> None:
    """Bhavanasi and Iyer, VI.D.2: with alternate numbers there is a node a message; then the gaps
    close.
    """
    found = compute_extreme_metrics("every second first", N, EACH, 1)
    assert found["nodes.half"] == found["received.half"] == found["nodes.most"] == N * EACH // 2
    assert found["nodes.end"] == N
    assert found["storage_bytes.most"] == 4 + 8 * N * EACH // 2


def test_worst_case_of_the_store() -> None:
    """Bhavanasi and Iyer, VI.D.2: all messages wait for the one closest to the root."""
    found = compute_extreme_metrics("root last", N, EACH, 1)
    assert (found["rows.most"], found["rows.end"]) == (N * EACH - 1, 0)
    assert (found["nodes.most"], found["nodes.end"]) == (N, N)


@pytest.mark.parametrize("arrivals", ARRIVALS)
def test_all_are_received_once_however_they_come(arrivals: str) -> None:
    found = compute_extreme_metrics(arrivals, N, EACH, 1)
    assert found["nodes.end"] == N
    assert found["rows.end"] == 0
    received, listed = found["curve.received"], found["curve.nodes"]
    assert isinstance(received, list)
    assert isinstance(listed, list)
    assert len(received) == len(listed)
    assert max(listed) <= found["nodes.most"]  # type: ignore[operator]


def test_messages_held_at_once_by_hand() -> None:
    arrived = np.array([10, 20, 30, 40])
    assert count_held(arrived, np.array([10, 40, 40, 40])).tolist() == [1, 2]
    assert count_held(arrived, arrived).tolist() == [0]
