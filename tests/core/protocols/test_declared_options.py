"""Options as text: parsed by the constructor's types, rejected by name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import pytest

from antecede.core.clocks.bounds import Bounds
from antecede.core.protocols.basic.unordered import Unordered
from antecede.core.protocols.options.declared import (
    option_text,
    options_of,
    read_option,
    read_options,
    split_options,
)
from antecede.core.protocols.registry import ENTRIES
from antecede.errors import OptionError


class Plausible(Unordered):
    def __init__(self, me: int, members: Iterable[int], r: int = 10, *, k: int = 3) -> None:
        super().__init__(me, members)
        self.r, self.k = r, k


class Passing(Plausible):
    def __init__(self, me, members, speed=1.5, **options):  # type: ignore[no-untyped-def]
        super().__init__(me, members, **options)


def test_options_are_read_by_their_types() -> None:
    given = split_options(["r=12", "k=4"])
    assert read_options("mine", Plausible, given) == {"r": 12, "k": 4}


def test_a_constructor_that_passes_options_on_has_those_of_its_base() -> None:
    assert list(options_of(Passing)) == ["speed", "r", "k"]
    assert read_options("mine", Passing, [("speed", "2"), ("k", "1")]) == {"speed": 2.0, "k": 1}


@pytest.mark.parametrize(
    ("hint", "text", "value"),
    [
        (str, "none", "none"),
        (str, "3", "3"),
        (int | None, "none", None),
        (int | None, "3", 3),
        (bool | str, "true", True),
        (bool, "False", False),
        (bool | str, "algorithm-1", "algorithm-1"),
        (float, "1e-3", 0.001),
        (Literal["a", "b"], "b", "b"),
        (Any, "2.5", 2.5),
        (Any, "word", "word"),
        (tuple[str, ...], "a,b", ("a", "b")),
        (tuple[str, ...], "", ()),
    ],
)
def test_values(hint: Any, text: str, value: object) -> None:
    read = read_option("x", text, hint)
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    ("hint", "text", "said"),
    [
        (int, "3.5", "option x=3.5: a whole number is allowed"),
        (int, "true", "option x=true: a whole number is allowed"),
        (float | None, "nan", "option x=nan: none or a number is allowed"),
        (bool, "1", "option x=1: true or false is allowed"),
        (Literal["a", "b"], "c", "option x=c: a or b is allowed"),
        (Bounds[int] | None, "5", "option x=5: none or {'accuracy_s': ..."),
    ],
)
def test_wrong_values_name_the_option(hint: Any, text: str, said: str) -> None:
    with pytest.raises(OptionError) as error:
        read_option("x", text, hint)
    assert str(error.value).startswith(said)


def test_unknown_options_list_those_that_exist() -> None:
    with pytest.raises(OptionError, match=r"mine has no option 'q'; options are: r, k"):
        read_options("mine", Plausible, [("q", "1")])
    with pytest.raises(OptionError, match="fifo has no option 'q'; options are: none"):
        read_options("fifo", ENTRIES["fifo"].load(), [("q", "1")])


def test_words_that_are_no_options_are_refused() -> None:
    for word in ("r", "=3", "a b=3"):
        with pytest.raises(OptionError, match="NAME=VALUE"):
            split_options([word])
    with pytest.raises(OptionError, match="twice"):
        split_options(["r=1", "r=2"])


def test_a_record_is_written_as_a_dict() -> None:
    hint = Bounds[int] | None
    read = read_option("bounds", "{'accuracy_s': 0.5, 'least_s': 1, 'most_s': 2}", hint)
    assert isinstance(read, Bounds)
    with pytest.raises(OptionError, match=r"option bounds: .*fields are accuracy_s, least_s"):
        read_option("bounds", "{'accuracy': 0.5}", hint)


def test_every_variant_of_every_protocol_comes_back_from_its_text() -> None:
    count = 0
    for entry in ENTRIES.values():
        for options in entry.variants.values():
            texts = [(name, option_text(value)) for name, value in options.items()]
            assert read_options(entry.name, entry.load(), texts) == options
            count += 1
    assert count > 20
