"""Report texts for counts of causes."""

from __future__ import annotations

import pytest

from antecede.tables.trace.causes import Causes


@pytest.mark.parametrize(
    ("details", "said"),
    [
        ({"repeated_causes": 1}, "1 cause repeated within an event"),
        ({"blank_causes": 2}, "2 blanks among the causes"),
        (
            {"rounded_causes": 2, "rounded_causes_in": "x"},
            "2 causes that may stand for several ids: column x has floating-point numbers of 2**53 "
            "or more, which are rounded",
        ),
        (
            {"unread_reply_headers": 3},
            "3 reply headers (In-Reply-To, References) without an id",
        ),
        ({"ambiguous_causes": 1}, "1 cause with an id that exists in several sources"),
        (
            {"unreadable_causes": 1, "unreadable_causes_in": "{x}"},
            "1 cause not readable as an id, in column {x}: ids are text, bytes or whole numbers",
        ),
        ({"causes_as_null": 1}, "1 word for null among the causes"),
        ({"causes_as_lists": 2}, "2 lists in brackets among the causes"),
        (
            {"causes_as_whole_numbers": 2},
            "2 causes with a decimal point and zeros, such as 1.0",
        ),
        ({"partial_causes": 1}, "1 cause with fewer parts than the ids"),
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
