"""Diagrams as text: exact for a small one, within the width for all."""

from __future__ import annotations

import re

import pytest

from antecede.lab.diagram.text import draw_text
from antecede.lab.diagram.trace_window import from_events
from tests.lab.diagram.pictures import BROKEN, HELD, HIERARCHY, MOVES, diagram, trace


def test_a_hold_as_text() -> None:
    assert draw_text(diagram(HELD), width=60) == (
        "step  P1        P2        P3\n"
        "   1  │         │         ● a\n"
        "   2  │         ◆◀── a ───┤\n"
        "   3  │         ● b       │\n"
        "   4  ○◀── b ───┤         │         b waits for a\n"
        "   5  ┃         ├─── b ──▶◆\n"
        "   6  ◆◀── a ───┼─────────┤\n"
        "      ◆ b       │         │\n"
        "\n"
        "● sent   ◆ delivered   ○ arrived, held back\n"
        "┃ holds messages back"
    )


def test_a_violation_as_text() -> None:
    text = draw_text(diagram(BROKEN), width=80)
    assert re.search(r"^   4  ✗◀.* b .*┤ .* b before a$", text, re.M)
    assert text.endswith("✗ delivered before its cause")


@pytest.mark.parametrize("text", [HELD, BROKEN, HIERARCHY, MOVES])
@pytest.mark.parametrize("width", [40, 60, 80, 100])
def test_no_line_is_wider_than_asked(text: str, width: int) -> None:
    lines = draw_text(diagram(text), width=width).splitlines()
    assert max(map(len, lines)) <= width
    names = [lane.name for lane in diagram(text).lanes]
    assert all(name in lines[0] for name in names)


def test_ten_lanes_need_66_columns_and_get_them() -> None:
    text = "protocol fifo\nmembers A B C D E F G H I J\nsend A m\narrive J m\n"
    lines = draw_text(diagram(text), width=20).splitlines()
    assert lines[0].split() == ["step", *"ABCDEFGHIJ"]
    assert max(len(line) for line in lines[:3]) <= 66


def test_color_changes_nothing_but_codes() -> None:
    drawn = diagram(BROKEN)
    plain, colored = draw_text(drawn), draw_text(drawn, color=True)
    assert "\x1b[1;31m✗" in colored
    stripped = re.sub(r"\x1b\[[\d;]*m", "", colored)
    assert [line.rstrip() for line in stripped.splitlines()] == plain.splitlines()


def test_a_trace_has_milliseconds_in_front() -> None:
    lines = draw_text(from_events(trace()), width=80).splitlines()
    assert lines[0].startswith("ms")
    assert [line.split()[0] for line in lines[1:4]] == ["0", "10", "20"]
