"""Algorithms 1 and 2 of Bhavanasi and Iyer as printed: smallest failing message sequences."""

from __future__ import annotations

import itertools

import pytest

from antecede.core.clocks.intervals import Intervals
from antecede.core.protocols.reply.messages import SbMessage
from antecede.core.protocols.reply.sb import SemanticOrder
from antecede.core.protocols.reply.state import PublishedOrderingList
from tests.core.protocols.reply.tools import mid, msg, said


def run(as_published: bool | str, *arrivals: SbMessage) -> list[str]:
    member = SemanticOrder(0, range(3), as_published=as_published)
    return [word for message in arrivals for word in said(member.receive(message))]


PRINTED = [True, "algorithm-1"]


@pytest.mark.parametrize("printed", PRINTED)
def test_algorithm_1_delivers_before_the_parent(printed: bool | str) -> None:
    arrivals = msg("B1"), msg("C1", "B2")
    assert run(printed, *arrivals) == ["deliver B1", "deliver C1"]
    assert run(False, *arrivals) == ["deliver B1", "hold C1 for B2"]


@pytest.mark.parametrize("printed", PRINTED)
def test_algorithm_1_holds_although_the_parent_is_delivered(printed: bool | str) -> None:
    arrivals = msg("B1"), msg("B2"), msg("C1", "B1")
    assert run(printed, *arrivals) == ["deliver B1", "deliver B2", "hold C1 for B1"]
    assert run(False, *arrivals) == ["deliver B1", "deliver B2", "deliver C1"]


def test_algorithm_2_line_8_forgets_the_number_that_it_inserts() -> None:
    arrivals = msg("B1"), msg("B4"), msg("B2"), msg("C1", "B2"), msg("C2", "B4")
    told = run("algorithm-2", *arrivals)
    assert told[3:] == ["hold C1 for B2", "hold C2 for B4"]
    assert run(False, *arrivals)[3:] == ["deliver C1", "deliver C2"]


@pytest.mark.parametrize("printed", [True, "algorithm-1", "algorithm-2"])
def test_two_messages_show_nothing(printed: bool | str) -> None:
    ids = [f"{member}{seq}" for member in "BC" for seq in (1, 2)]
    single = [msg(i, *p) for i in ids for p in [(), *[(q,) for q in ids if q != i]]]
    for first, second in itertools.product(single, repeat=2):
        sent = {first[:2], second[:2]}
        answered = {tuple(parent) for message in (first, second) for parent in message.parents}
        if answered <= sent and len(sent) == 2:
            assert run(printed, first, second) == run(False, first, second)


def test_both_repaired_agree_with_the_intervals() -> None:
    for order in itertools.permutations((1, 2, 3, 4, 6)):
        kept = PublishedOrderingList(published_lookup=False, published_insert=False)
        for seq in order:
            kept.insert(seq)
        assert tuple(kept.nodes) == Intervals.of(order).nodes
        assert [seq for seq in range(9) if seq in kept] == [1, 2, 3, 4, 6]


@pytest.mark.parametrize("printed", [True, "algorithm-1", "algorithm-2"])
def test_snapshot_keeps_the_printed_lists(printed: bool | str) -> None:
    a, b = (SemanticOrder(0, range(3), as_published=printed) for _ in range(2))
    for message in (msg("B1"), msg("B4"), msg("B2"), msg("C1", "B2"), msg("C2", "B4")):
        a.receive(message)
    b.restore(a.snapshot())
    assert b.snapshot() == a.snapshot()
    assert b.receive(msg("C3", "B1")) == a.receive(msg("C3", "B1"))
    newcomer = SemanticOrder(3, range(4), as_published=printed)
    newcomer.install_join_state(a.join_state())
    assert newcomer.delivered[1] == [1, 3, 4, 5]
    assert newcomer.published_lists is not None
    assert newcomer.published_lists[1].nodes == [(1, 2), (4, 4)]
    assert newcomer.list_held() == ()


def test_two_faults_can_hide_each_other() -> None:
    arrivals = msg("B1"), msg("B4"), msg("B2"), msg("C1", "B2")
    assert run(True, *arrivals)[-1] == "deliver C1"
    assert mid("B2") in arrivals[-1].parents
