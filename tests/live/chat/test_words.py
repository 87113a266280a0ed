"""What others wrote, made harmless."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede.live.chat.words import (
    MAX_BYTES,
    ascii_only,
    cells,
    name_of,
    one_line,
    sanitize,
    shorten,
    text_of,
    wrap_lines,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J\x1b]0;title\x07", "␛[2J␛]0;title␇"),
        ("over\rwritten\b\x7f", "over␍written␈␡"),
        ("\u202egnp.exe\u2066", "\ufffdgnp.exe\ufffd"),
        ("\x9b31m", "\ufffd31m"),
        ("a\r\nb\nc\td", "a\nb\nc    d"),
        ("zero\u200bwidth\ufeff", "zero\ufffdwidth\ufffd"),
        ("wide\u00a0blank\u2028", "wide blank\ufffd"),
        ("👩\u200d💻 é e\u0301 漢字 عربي", "👩\u200d💻 é e\u0301 漢字 عربي"),
        ("z" + "\u0335" * 50, "z" + "\u0335" * 4),
    ],
)
def test_nothing_moves_the_cursor_or_hides(text: str, shown: str) -> None:
    assert sanitize(text) == shown


@given(st.text())
def test_what_is_harmless_has_no_control_characters(text: str) -> None:
    for line in sanitize(text).split("\n"):
        assert all(c.isprintable() or c == "\u200d" for c in line)
        assert cells(line) >= 0
        assert ascii_only(line).isascii()
    assert "\n" not in one_line(text)
    assert sanitize(sanitize(text)) == sanitize(text)


@given(st.text(min_size=1), st.integers(8, 40))
def test_lines_are_no_wider_than_asked_for_and_lose_nothing(text: str, most: int) -> None:
    text = sanitize(text)
    lines = wrap_lines(text, most)
    # An emoji of several parts is counted part by part where it is cut: then a line is shorter.
    assert all(cells(line) <= most for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert cells(shorten(one_line(text), most)) <= most


def test_words_are_wrapped_at_blanks_and_wide_letters_take_two_cells() -> None:
    assert wrap_lines("one two three four", 9) == ["one two", "three", "four"]
    assert wrap_lines("漢字漢字漢字", 8) == ["漢字漢字", "漢字"]
    assert wrap_lines("a" * 20, 8) == ["a" * 8, "a" * 8, "a" * 4]
    assert wrap_lines("as it is\n" + "x" * 500, None) == ["as it is", "x" * 500]
    assert shorten("漢字漢字漢字", 7) == "漢字漢…"


def test_bytes_that_are_no_text_and_too_many_of_them() -> None:
    assert text_of(b"\xff\xfeab") == "\ufffd\ufffdab"
    assert text_of(b"x" * (MAX_BYTES + 1234)).endswith("x [... 1,234 more bytes]")


@pytest.mark.parametrize("name", ["bob", "Ünï-code_2.x", "漢字"])
def test_a_plain_name_stands_as_it_is(name: str) -> None:
    assert name_of(name) == name


@pytest.mark.parametrize("name", ["12 bob", "7", "bob: hi", "a ↳ 3 b", "x “y”", "", "a b"])
def test_a_name_that_could_be_taken_for_more_is_quoted(name: str) -> None:
    assert name_of(name or "(")[0] == "“"


def test_trees_in_ascii() -> None:
    assert ascii_only("├── └── │ ↳ “x”… é") == '|-- `-- | -> "x"... \\xe9'
