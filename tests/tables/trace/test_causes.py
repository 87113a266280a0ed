"""Counts of odd causes, in words."""

from __future__ import annotations

import pytest

from antecede.tables.trace.causes import Causes


@pytest.mark.parametrize(
    ("details", "said"),
    [
        ({"repeated_causes": 1}, "1 cause named again by the same event"),
        ({"blank_causes": 2}, "2 blanks among the causes"),
        (
            {"rounded_causes": 2, "rounded_causes_in": "x"},
            "2 causes that may be one of several ids: in column x floating-point numbers from "
            "2**53 on, which several whole numbers become",
        ),
        (
            {"unread_reply_headers": 3},
            "3 reply headers (In-Reply-To, References) without an id",
        ),
        ({"ambiguous_causes": 1}, "1 cause whose id several sources have"),
        (
            {"unreadable_causes": 1, "unreadable_causes_in": "{x}"},
            "1 cause not readable as an id, in column {x}: ids are text, bytes or whole numbers",
        ),
        ({"causes_as_null": 1}, "1 word for null among the causes"),
        ({"causes_as_lists": 2}, "2 lists in brackets among the causes"),
        (
            {"causes_as_whole_numbers": 2},
            "2 causes written with a point and zeros, as in 1.0",
        ),
        ({"partial_causes": 1}, "1 cause without all parts of which the ids are made"),
    ],
)
def test_each_count_has_its_words(details: dict[str, int | str], said: str) -> None:
    assert [what for what, _ in Causes().with_read(details).notes()] == [said]


def test_events_that_name_themselves() -> None:
    two = Causes(1).plus(Causes(1, rounded_in="x"))
    assert [*two.notes()] == [
        (
            "2 references of events to themselves",
            "ignored; the event and its other causes are kept",
        )
    ]
    assert two.rounded_in == "x"
