"""Content of diagrams of scenarios and traces."""

from __future__ import annotations

import pytest

from antecede.core import diagram_model
from antecede.core.diagram_model import Arrow, HeldSpan
from antecede.errors import InputError
from antecede.lab.diagram.trace_window import from_events
from tests.lab.diagram.pictures import BROKEN, HELD, HIERARCHY, MOVES, MS, T0, diagram, row, trace


def test_a_hold_lasts_from_the_arrival_to_the_delivery() -> None:
    drawn = diagram(HELD)
    assert drawn.holds == (HeldSpan(0, "b", 4.0, 7.0, ("a",)),)
    assert [(mark.kind, mark.label, mark.at) for mark in drawn.marks if mark.lane == 0] == [
        (diagram_model.HOLD, "b", 4.0),
        (diagram_model.DELIVER, "a", 6.0),
        (diagram_model.DELIVER, "b", 7.0),
    ]
    assert Arrow("b", 1, 3.0, 0, 4.0) in drawn.arrows
    assert [(tick.at, tick.label) for tick in drawn.ticks][-1] == (6.0, "6")


def test_a_violation_is_marked_and_what_is_never_delivered_is_held_to_the_end() -> None:
    drawn = diagram(BROKEN)
    wrong = [mark for mark in drawn.marks if mark.wrong]
    assert [(mark.lane, mark.label, mark.note) for mark in wrong] == [(0, "b", "before a")]
    assert [(held.label, held.end) for held in drawn.holds] == [("a", None)]
    assert "P1 delivers b before a" in drawn.words()


def test_messages_go_on_from_the_super_peer() -> None:
    drawn = diagram(HIERARCHY)
    names = [lane.name for lane in drawn.lanes]
    assert names == ["A", "B", "S", "X", "Y"]
    assert [lane.name for lane in drawn.lanes if lane.forwards] == ["S"]
    ways = {a: (names[a.source], names[a.target], a.label) for a in drawn.arrows}
    assert {way for arrow, way in ways.items() if arrow.flying} == {
        ("S", "B", "n"),
        ("S", "Y", "n"),
        ("S", "Y", "m"),
        ("S", "A", "n"),
    }
    assert {way for arrow, way in ways.items() if not arrow.flying} == {
        ("A", "S", "m"),
        ("S", "B", "m"),
        ("B", "S", "n"),
        ("S", "X", "n"),
        ("S", "X", "m"),
        ("S", "A", "m"),
    }
    assert {(a.label, names[a.target]) for a in drawn.bare_arrivals()} == {("m", "S"), ("n", "S")}


def test_each_acknowledgement_starts_when_it_was_sent() -> None:
    text = (
        "protocol hierarchical pruning=published\ninternal S: A\nexternal X\nsend X m\nsend X n\n"
        "arrive S m\narrive S n\narrive A m\narrive A n\narrive S ack-A\narrive S ack-A\n"
        "arrive S ack-A again\n"
    )
    acks = [arrow for arrow in diagram(text).arrows if arrow.label == "ack-A"]
    assert [(arrow.sent, arrow.arrived) for arrow in acks] == [
        (5.0, 7.0),
        (6.0, 8.0),
        (9.0, 9.0),  # a second copy: of which of the two is not known
    ]


def test_lanes_begin_with_a_join_and_end_with_a_leave() -> None:
    drawn = diagram(MOVES)
    assert [(lane.name, lane.begin, lane.end) for lane in drawn.lanes] == [
        ("A", None, None),
        ("B", None, 4.0),
        ("C", 2.0, None),
    ]
    assert [mark.note for mark in drawn.marks if mark.kind == diagram_model.DISCARD] == [
        "duplicate"
    ]


def test_a_trace_is_drawn_with_its_times() -> None:
    drawn = from_events(trace())
    assert drawn.unit == "ms"
    assert drawn.end == 140.0
    assert drawn.holds == (HeldSpan(2, "y", 30.0, 60.0, ("x",)),)
    assert Arrow("y", 1, 20.0, 2, 30.0) in drawn.arrows
    assert Arrow("z", 2, 100.0, 0, 140.0, faint=True) in drawn.arrows


def test_a_hold_names_only_the_parents_that_were_still_missing() -> None:
    rows = [row("send", "w", "A", -20.0), row("receive", "w", "C", -10.0)]
    rows += [row("deliver", "w", "C", -10.0), *trace()]
    rows = [event._replace(causes=("w", "x")) if event.id == "y" else event for event in rows]
    (held,) = from_events(rows).holds
    assert held.waits_for == ("x",)


def test_a_stretch_of_a_trace_shows_what_reaches_into_it() -> None:
    drawn = from_events(trace(), first=T0 + 40 * MS, last=T0 + 120 * MS, members=("C", "A"))
    assert [lane.name for lane in drawn.lanes] == ["C", "A"]
    assert drawn.holds == (HeldSpan(0, "y", 0.0, 20.0, ("x",)),)
    (arrow,) = drawn.arrows
    assert (arrow.label, arrow.sent, arrow.arrived) == ("x", -40.0, 20.0)
    assert {(mark.label, mark.kind) for mark in drawn.marks} == {
        ("x", "deliver"),
        ("y", "deliver"),
        ("z", "send"),
    }


def test_without_holds_nothing_is_faint() -> None:
    drawn = from_events(trace()[:3])
    assert not any(mark.faint for mark in drawn.marks)


def test_a_trace_with_a_delivery_before_its_parent_is_marked() -> None:
    rows = trace()
    rows[4:8] = [
        row("receive", "y", "C", 30.0, "x"),
        row("deliver", "y", "C", 30.0, "x"),
        row("receive", "x", "C", 60.0),
        row("deliver", "x", "C", 60.0),
    ]
    wrong = [mark for mark in from_events(rows).marks if mark.wrong]
    assert [(mark.lane, mark.label, mark.note) for mark in wrong] == [(2, "y", "before x")]


def test_what_cannot_be_drawn_is_said() -> None:
    with pytest.raises(InputError, match="in this window"):
        from_events(trace(), first=T0 + 10**12, last=T0 + 2 * 10**12)
    with pytest.raises(InputError, match="in this window"):
        from_events([])
