"""Options of a wrong type or without an effect: rejected by name for every caller."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any, Literal

import pytest

from antecede import Group
from antecede.cli import main
from antecede.core.clocks.bounds import Bounds
from antecede.core.protocols.base import Protocol
from antecede.core.protocols.hierarchical.roles import Topology, hierarchical
from antecede.core.protocols.options.checks import matches_type, with_trial
from antecede.core.protocols.registry import ENTRIES, flat_class
from antecede.errors import LocalError

BOUNDS: Bounds[int] = Bounds(accuracy_s=1, least_s=3, most_s=5)
NAMES = ("a", "b")
IDLE: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("matrix", {"heartbeat_s": 1.0}, "heartbeat_s"),
    ("matrix", {"retry_s": 5.0, "differences": True}, "retry_s"),
    ("matrix", {"retry_s": 5.0, "recovering": False}, "retry_s"),
    ("linear", {"keep": 3}, "keep"),
    ("linear", {"keep": None}, "keep"),
    ("linear", {"recovery_s": 3.0, "retry_s": 1.0}, "recovery_s"),
    ("linear", {"recovery_s": 3.0, "delivery": "bound", "bounds": BOUNDS}, "recovery_s"),
    ("linear", {"heartbeat_s": 3.0, "delivery": "bound", "bounds": BOUNDS}, "heartbeat_s"),
    ("physical", {"heartbeat_s": 1.0, "delivery": "bound", "bounds": BOUNDS}, "heartbeat_s"),
    ("linear", {"as_published": ("exclusive-end",)}, "exclusive-end"),
    ("linear", {"buffer_limit": 3}, "buffer_limit"),
    ("linear", {"max_ahead_s": 3.0}, "max_ahead_s"),
    ("physical", {"max_clock_lead": 3, "bounds": BOUNDS}, "max_clock_lead"),
    ("tv", {"as_published": True, "bounds": BOUNDS}, "as_published"),
    ("sb", {"patience_s": 3.0}, "patience_s"),
    ("sb", {"overflow": "deliver"}, "overflow"),
)
WRONG: tuple[tuple[str, str, Any, str], ...] = (
    ("bss", "differences", "no", "true or false"),
    ("bss", "as_published", 1, "true or false"),
    ("matrix", "recovering", "true", "true or false"),
    ("matrix", "heartbeat_s", "1", "a number"),
    ("matrix", "heartbeat_s", None, "a number"),
    ("sb", "store_limit", "3", "a whole number or none"),
    ("sb", "store_limit", True, "a whole number or none"),
    ("sb", "on_missing_parent", 3, "a word"),
    ("linear", "keep", 2.5, "a whole number or none"),
    ("linear", "as_published", "dropped", "words with commas between"),
    ("linear", "bounds", 3, "Bounds(...) or none"),
    ("total", "sequencer", "zoe", "a whole number or none"),
)


@pytest.mark.parametrize(("name", "options", "what"), IDLE)
def test_an_option_without_effect_is_refused_by_name(
    name: str, options: dict[str, Any], what: str
) -> None:
    with pytest.raises(LocalError, match=what):
        flat_class(name)(0, (0, 1), **options)
    by_name = {k: Bounds(1, 3, 5) if k == "bounds" else v for k, v in options.items()}
    with pytest.raises(LocalError, match=what):
        Group("a", NAMES, order=name, **by_name)


@pytest.mark.parametrize(("name", "option", "value", "words"), WRONG)
def test_an_option_of_a_wrong_type_is_refused_in_words(
    name: str, option: str, value: Any, words: str
) -> None:
    with pytest.raises(LocalError) as raised:
        flat_class(name)(0, (0, 1), **{option: value})
    assert str(raised.value) == f"{option} is {value!r}; {words} is allowed"
    with pytest.raises(LocalError, match=rf"\b{option}(=| is )"):
        Group("a", NAMES, order=name, **{option: value})


def test_roles_of_the_hierarchy_refuse_alike() -> None:
    topology = Topology({0: (1,)}, (2,))
    refused: list[tuple[dict[str, Any], str]] = [
        ({"ack_after": 3, "pruning": "none"}, "ack_after"),
        ({"ack_payload": b"x", "ack_after": 0}, "ack_payload"),
        ({"ack_payload": b"x", "pruning": "none"}, "ack_payload"),
        ({"flush_after": "3"}, "flush_after is '3'; a whole number is allowed"),
        ({"ack_after": "3"}, "ack_after is '3'; a whole number is allowed"),
    ]
    for options, what in refused:
        with pytest.raises(LocalError, match=what):
            hierarchical(topology, **options)


@pytest.mark.parametrize("flag", ["no", 1, None])
def test_flags_of_a_group_are_true_or_false(flag: Any) -> None:
    with pytest.raises(LocalError, match=r"keep_log is .*True or False"):
        Group("a", NAMES, keep_log=flag)
    group = Group("a", NAMES)
    with pytest.raises(LocalError, match=r"resume is .*True or False"):
        group.restore(group.snapshot(), resume=flag)
    invitation = group.invite("c")
    with pytest.raises(LocalError, match=r"keep_log is .*True or False"):
        Group.accept("c", invitation, keep_log=flag)


@pytest.mark.parametrize("name", [name for name, one in ENTRIES.items() if one.flat])
def test_what_a_protocol_is_tried_with_has_an_effect_in_every_variant(name: str) -> None:
    found = ENTRIES[name]
    for variant in ("", *found.variants):
        chosen = found.options(variant)
        tried = with_trial(found.load(), range(4), chosen)
        found.load()(0, range(4), **tried)
        assert tried.items() >= chosen.items()
    assert "heartbeat_s" not in with_trial(flat_class("matrix"), range(4), {})
    assert with_trial(flat_class("matrix"), range(4), {"recovering": True})["heartbeat_s"] == 20.0


class Own(Protocol):
    """Protocol with options without a type, and one of a custom type."""

    def __init__(  # type: ignore[no-untyped-def]
        self,
        me: int,
        members: Iterable[int],
        *,
        mode: Literal["x", "y"] = "x",
        free=3,
        words: Collection[str] = (),
    ) -> None:
        super().__init__(me, members)


def test_types_that_nobody_declared_are_not_guessed() -> None:
    Own(0, [0], free="anything", words=["a"], mode="y")
    with pytest.raises(LocalError, match="mode is 'z'; x or y is allowed"):
        Own(0, [0], mode="z")  # type: ignore[arg-type]
    assert matches_type(3, float)
    assert not matches_type(True, int)
    assert not matches_type([1], Collection[str])


@pytest.mark.parametrize("command", ["check", "compare", "simulate"])
def test_the_command_line_refuses_them(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["matrix", "heartbeat_s=5"]
    if command == "simulate":
        file = tmp_path / "x.toml"
        file.write_text(
            '[topology]\nkind="mesh"\npeers=3\n[protocol]\nname="matrix"\n'
            "options = { heartbeat_s = 5.0 }\n"
        )
        given = [str(file)]
    assert main([command, *given]) == 2
    assert "heartbeat_s has no effect without recovering" in capsys.readouterr().err
