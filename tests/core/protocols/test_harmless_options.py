"""Accepted harmless options: defaults, NumPy numbers, texts of an Enum, tables."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from antecede import Group
from antecede.cli import main
from antecede.core.clocks.bounds import Bounds
from antecede.core.clocks.coercion import plain
from antecede.core.protocols.basic.unordered import Unordered
from antecede.core.protocols.options.checks import matches_type
from antecede.core.protocols.options.declared import option_text, read_option
from antecede.core.protocols.registry import flat_class
from antecede.errors import InputError, LocalError, OptionError
from antecede.lab.check.target import load_class
from antecede.lab.simulate.config.model import SimulationConfig
from antecede.lab.simulate.members import make_members
from antecede.lab.simulate.topology import Mesh

NAMES = ("a", "b", "c")
BOUNDS: Bounds[int] = Bounds(accuracy_s=1, least_s=3, most_s=5)


class Level(enum.IntEnum):
    TWO = 2


class How(str, enum.Enum):  # noqa: UP042 - whose str() is its name
    DELIVER = "deliver"


class Loose(Unordered):
    """Protocol that declares its options loosely, one of them without a default."""

    def __init__(
        self,
        me: int,
        members: Iterable[int],
        *,
        needed: int,
        k: int = None,  # type: ignore[assignment]  # noqa: RUF013 - as many write it
        pace: float = "slow",  # type: ignore[assignment]
        table: dict[str, int] | None = None,
    ) -> None:
        super().__init__(me, members)


def test_a_class_takes_its_own_defaults() -> None:
    Loose(0, [0], needed=1, k=None, pace="slow")  # type: ignore[arg-type]
    with pytest.raises(LocalError, match="k is 'x'; a whole number or none is allowed"):
        Loose(0, [0], needed=1, k="x")  # type: ignore[arg-type]
    with pytest.raises(LocalError, match="pace is 'quick'; a number is allowed"):
        Loose(0, [0], needed=1, pace="quick")  # type: ignore[arg-type]
    with pytest.raises(LocalError, match="needed is None; a whole number is allowed"):
        Loose(0, [0], needed=None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "own"),
    [
        (np.int64(3), 3),
        (np.uint8(3), 3),
        (np.float32(0.5), 0.5),
        (np.float64(0.1), 0.1),
        (np.str_("x"), "x"),
        (Level.TWO, 2),
        (How.DELIVER, "deliver"),
    ],
)
def test_numbers_and_texts_of_others_become_pythons_own(given: Any, own: Any) -> None:
    assert plain(given) == own
    assert type(plain(given)) is type(own)


@pytest.mark.parametrize("value", [True, None, Decimal("0.1"), (1,), np.bool_(True), b"x"])
def test_anything_else_stays(value: Any) -> None:
    assert plain(value) is value


@pytest.mark.parametrize(
    ("order", "option", "value"),
    [
        ("sb", "store_limit", 2),
        ("unordered", "max_gaps", 2),
        ("linear", "max_clock_lead", 2),
        ("total", "sequencer", 2),
    ],
)
@pytest.mark.parametrize("kind", [np.int64, np.uint8, lambda number: Level.TWO])
def test_whole_numbers_of_any_kind_are_taken_by_every_door(
    order: str, option: str, value: int, kind: Any
) -> None:
    given = kind(value)
    options: dict[str, Any] = {option: given}
    made = flat_class(order)(0, (0, 1, 2), **options)
    alike = flat_class(order)(0, (0, 1, 2), **{option: value})
    assert repr(made.snapshot()) == repr(alike.snapshot())
    one = Group("a", NAMES, order=order, incarnation=1, **options)
    options = {option: value}
    two = Group("a", NAMES, order=order, incarnation=1, **options)
    assert one.snapshot() == two.snapshot()
    assert one.send(b"x", now=9.0) == two.send(b"x", now=9.0)
    runs = [
        SimulationConfig(Mesh(3), protocol=order, options={option: one}) for one in (given, value)
    ]
    first, second = (repr(make_members(run, 1).members[0].snapshot()) for run in runs)
    assert first == second


def test_limits_and_lives_take_them_too() -> None:
    seven: Any = np.int64(7)
    group = Group("a", NAMES, max_held=np.int64(5), incarnation=seven)
    assert group.send(b"x") == Group("a", NAMES, max_held=5, incarnation=7).send(b"x")


def test_texts_of_an_enum_make_the_same_group() -> None:
    options: dict[str, Any] = {"several_parents": True, "store_limit": 3}
    one = Group("a", NAMES, order="sb", incarnation=1, overflow=How.DELIVER, **options)
    two = Group("a", NAMES, order="sb", incarnation=1, overflow="deliver", **options)
    assert one.snapshot() == two.snapshot()


@pytest.mark.parametrize("truth", [True, np.bool_(True)])
def test_a_truth_value_is_no_number(truth: Any) -> None:
    for option in ("store_limit", "patience_s"):
        with pytest.raises(LocalError, match=f"{option} is .*True"):
            flat_class("sb")(0, (0, 1), **{option: truth})
    assert not matches_type(True, Literal[1])
    assert matches_type(1, Literal[1])


@pytest.mark.parametrize(
    ("hint", "text", "value"),
    [
        (dict | None, "{'a': 1}", {"a": 1}),
        (dict | None, "none", None),
        (dict[str, int], "{}", {}),
        (list[int], "1,2", [1, 2]),
        (tuple[int, ...], "1,2", (1, 2)),
        (tuple[int, str], "1,2", (1, "2")),
        (set[str] | None, "a,b", {"a", "b"}),
        (list, "a,b", ["a", "b"]),
    ],
)
def test_tables_and_lists_are_read_as_declared(hint: Any, text: str, value: Any) -> None:
    found = read_option("x", text, hint)
    assert found == value
    assert type(found) is type(value)
    assert matches_type(found, hint)


@pytest.mark.parametrize(
    ("hint", "text", "said"),
    [
        (dict | None, "a,b", "none or {'KEY': VALUE, ...} is allowed"),
        (dict, "{'a': {}[0]}", "{'KEY': VALUE, ...} is allowed"),
        (list[int], "1,x", "whole numbers with commas between is allowed"),
        (tuple[int, str], "1", "values with commas between is allowed"),
    ],
)
def test_tables_and_lists_of_another_kind_are_refused(hint: Any, text: str, said: str) -> None:
    with pytest.raises(OptionError) as raised:
        read_option("x", text, hint)
    assert str(raised.value) == f"option x={text}: {said}"
    assert not matches_type(("1", "x"), tuple[int, ...])
    assert not matches_type({"a": "b"}, dict[str, int])
    assert matches_type((1, 2), list[int]), "scenario files give tuples for lists"


def test_a_table_is_written_as_it_is_read() -> None:
    assert read_option("x", option_text({"a": 1}), dict) == {"a": 1}
    assert read_option("x", option_text((1, 2)), tuple[int, ...]) == (1, 2)


MINE = """
import operator
from antecede.core.protocols.basic.unordered import Unordered


class Fine(Unordered):
    def __init__(self, me, members, *, k: int = None, w: dict | None = None):
        super().__init__(me, members)
        self.w = tuple((w or {}).items())


class Odd(Unordered):
    def __init__(self, me, members, *, v: "no type" = 1):
        super().__init__(me, members)


class Raises(Unordered):
    def __init__(self, me, members):
        super().__init__(me, members)
        raise ValueError("boo")


class Tried(Unordered):
    def __init__(self, me, members, *, k: int = 3):
        super().__init__(me, members)

    @classmethod
    def trial_options(cls, members):
        return {"k": "x"}


class Needy(Unordered):
    dependent_options = 3


class Nothing(Unordered):
    @classmethod
    def trial_options(cls, members):
        return 3


class Unread(Unordered):
    __init__ = type  # no version of Python knows its signature


class More(Unordered):
    def __init__(self, me, members, extra):
        super().__init__(me, members)


class Many(Unordered):
    def __init__(self, me, members):
        super().__init__(me, members)
        if len(self.members) > 2:
            raise ValueError("too many")
"""


def test_options_of_ones_own_are_taken_from_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(MINE)
    for given in ({"k": "none"}, {"k": "4"}, {"w": "{'a': 1}"}, {"w": "none"}):
        assert load_class(f"{file}:Fine", given.items()).__name__ == "Fine"
    assert load_class(f"{file}:Odd", [("v", "2")]).__name__ == "Odd"


@pytest.mark.parametrize(
    ("name", "line", "said"),
    [
        ("Raises", 20, "ValueError: boo"),
        ("Tried", 24, "k is 'x'; a whole number is allowed"),
        ("Needy", 32, r"dependent_options of Needy is 3; expected a tuple of Requires\(...\)"),
        ("Nothing", 36, "trial_options of Nothing returns 3; expected options by name"),
        ("Unread", 42, "cannot read the arguments of Unread: no signature found"),
        ("More", 47, "missing 1 required positional argument: 'extra'"),
    ],
)
def test_what_is_wrong_with_ones_own_is_said_with_its_file_and_line(
    name: str, line: int, said: str, tmp_path: Path
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(MINE)
    with pytest.raises(InputError, match=said) as raised:
        load_class(f"{file}:{name}")
    assert str(raised.value).startswith(f"{file}:{line}: ")
    assert "given.py" not in str(raised.value)


@pytest.mark.parametrize("command", ["simulate", "compare"])
def test_a_constructor_that_fails_in_a_run_is_said_with_file_and_line(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    file = tmp_path / "x.toml"
    file.write_text('[topology]\nkind="mesh"\npeers=3\n[protocol]\nname="mine.py:Many"\n')
    given = str(file) if command == "simulate" else f"{tmp_path / 'mine.py'}:Many"
    assert main([command, given]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert f"{tmp_path / 'mine.py'}:55: " in said
    assert "too many" in said
