"""Parser and writer of scenario files."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede.core.clocks.bounds import Bounds
from antecede.errors import ScenarioError
from antecede.lab.check.scenario.actions import (
    Action,
    Arrive,
    Join,
    Leave,
    Lose,
    Send,
    ShowHeld,
    ShowState,
    Tick,
)
from antecede.lab.check.scenario.parse import (
    Setup,
    format_scenario,
    load_scenario,
    parse_scenario,
    replace_output,
)
from antecede.lab.check.scenario.run import update_file

HEAD = "protocol fifo\nmembers A B\n"


def test_every_command_is_read() -> None:
    scenario = parse_scenario(
        "title A title\nsource Sahai et al. 2020, x\nprotocol sb "
        "patience_s=2\nmembers A B\nmembers C\n"
        "# a comment\n\nsend A m\n= out 1\n=  out 2 \nsend B n after m k\narrive B m\n"
        "arrive B m again\njoin D sponsor A\nleave C\ntick 1.5\nstate A\nstate A x y\nblocked B\n"
    )
    assert (scenario.title, scenario.source) == ("A title", "Sahai et al. 2020, x")
    assert scenario.setup == Setup("sb", (("patience_s", "2"),), ("A", "B", "C"))
    assert [command.action for command in scenario.commands] == [
        Send("A", "m"),
        Send("B", "n", ("m", "k")),
        Arrive("B", "m"),
        Arrive("B", "m", again=True),
        Join("D", "A"),
        Leave("C"),
        Tick(1.5),
        ShowState("A"),
        ShowState("A", ("x", "y")),
        ShowHeld("B"),
    ]
    assert scenario.commands[0].expected == ("out 1", "out 2")
    assert [command.line for command in scenario.commands][:3] == [8, 11, 12]


def test_a_hierarchy_is_read_group_by_group() -> None:
    text = "protocol hierarchical\ninternal S: A B\ninternal T: C\nexternal X Y\n"
    setting = parse_scenario(text).setup
    assert setting.internal == (("S", ("A", "B")), ("T", ("C",)))
    assert setting.external == ("X", "Y")
    assert setting.everybody() == ("A", "B", "S", "C", "T", "X", "Y")


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("members A B\nsend A m\n", 2, "start with, for example, 'protocol fifo'"),
        ("protocol fifo\n", 1, "missing members"),
        ("protocol fifo\nmembers A A\n", 2, "A is listed twice"),
        ("protocol fifo\nprotocol sb\nmembers A\n", 2, "second protocol line"),
        ("protocol\nmembers A\n", 1, "protocol NAME"),
        ("protocol fifo loud\nmembers A\n", 1, "write option=value"),
        (HEAD + "external X\n", 3, "'members' and 'internal'"),
        (HEAD + "internal S A\n", 3, "internal SUPER_PEER: PEER"),
        (HEAD + "external\n", 3, "external PEER"),
        ("protocol fifo\nmembers\n", 2, "members NAME"),
        (HEAD + "sned A m\n", 3, "unknown command 'sned'; choose from title, source"),
        (HEAD + "send A\n", 3, "send MEMBER MESSAGE"),
        (HEAD + "send A m after\n", 3, "send MEMBER MESSAGE"),
        (HEAD + "arrive A m twice\n", 3, "arrive MEMBER MESSAGE"),
        (HEAD + "join C\n", 3, "join NEW_MEMBER sponsor"),
        (HEAD + "leave\n", 3, "leave MEMBER"),
        (HEAD + "tick soon\n", 3, "a number from 1 nanosecond"),
        (HEAD + "tick -1\n", 3, "a number from 1 nanosecond"),
        (HEAD + "tick nan\n", 3, "a number from 1 nanosecond"),
        (HEAD + "tick inf\n", 3, "a number from 1 nanosecond"),
        (HEAD + "state\n", 3, "state MEMBER"),
        (HEAD + "blocked A B\n", 3, "blocked MEMBER"),
        (HEAD + "= out\n", 3, "before the first action"),
        (HEAD + "send A m\nmembers C\n", 4, "move it before the first action"),
        ("", None, "start with"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text: str, line: int | None, says: str) -> None:
    with pytest.raises(ScenarioError, match=says.replace("(", r"\(")) as caught:
        parse_scenario(text, "x.scenario")
    assert (caught.value.path, caught.value.line) == ("x.scenario", line)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"none\.scenario: cannot be read"):
        load_scenario(tmp_path / "none.scenario")
    (tmp_path / "bytes.scenario").write_bytes(b"protocol \xff\n")
    with pytest.raises(ScenarioError, match="is not UTF-8 text"):
        load_scenario(tmp_path / "bytes.scenario")


@given(st.text(max_size=200))
def test_any_text_is_a_scenario_or_a_scenario_error(text: str) -> None:
    try:
        parse_scenario(text)
    except ScenarioError:
        return


NAMES = st.text("abcAB12-", min_size=1, max_size=4)
SEVERAL = st.lists(NAMES, max_size=3).map(tuple)
ACTIONS: st.SearchStrategy[Action] = st.one_of(
    st.builds(Send, NAMES, NAMES, SEVERAL, SEVERAL, SEVERAL),
    st.builds(Arrive, NAMES, NAMES, st.booleans()),
    st.builds(Lose, NAMES, NAMES),
    st.builds(Join, NAMES, NAMES),
    st.builds(Leave, NAMES),
    st.builds(Tick, st.integers(1, 1000).map(lambda n: n / 4)),
    st.builds(ShowState, NAMES, SEVERAL),
    st.builds(ShowHeld, NAMES),
)


@given(st.lists(ACTIONS, max_size=8))
def test_what_is_written_is_read_again(actions: list[Action]) -> None:
    flat = Setup("bss", (("as_published", "true"),), ("P1", "P2"))
    deep = Setup("hierarchical", (), (), (("S", ("I1", "I2")),), ("X",))
    timed = Setup(
        "linear",
        members=("P1", "P2"),
        bounds=Bounds(1, 2, 3.5, {"P1": 0.5}, {("P1", "P2"): (0.25, 4)}),
        clocks=(("P2", -500_000_000),),
        subscriptions=(("P1", ("x", "y")),),
    )
    for setting in (flat, deep, timed):
        again = parse_scenario(format_scenario(setting, actions, title="t t", source="s"))
        assert again.setup == setting
        assert [command.action for command in again.commands] == actions
        assert (again.title, again.source) == ("t t", "s")


def test_output_is_replaced_and_all_else_is_kept() -> None:
    text = HEAD + "# why\nsend A m\n= old\n= older\n\nleave A\n"
    assert replace_output(text, {4: ["new"], 8: ["gone", ""]}) == (
        HEAD + "# why\nsend A m\n= new\n\nleave A\n= gone\n=\n"
    )


@pytest.mark.parametrize(
    "line",
    ["bounds accuracy=1e999999999 least=0 most=1", "bounds most=1e-999999999",
     "clock A 1e-999999999", "clock A 1e30", "tick 1e30", "tick 1e-10"],
)  # fmt: skip
def test_numbers_that_no_memory_holds_are_refused_at_once(line: str) -> None:
    with pytest.raises(
        ScenarioError, match=r"146 years|the resolution is 1 ns|a number from 1"
    ) as caught:
        parse_scenario(f"protocol physical\nmembers A B\n{line}\n")
    assert caught.value.line == 3


def test_a_byte_order_mark_is_no_text(tmp_path: Path) -> None:
    file = tmp_path / "x.scenario"
    file.write_text("title T\nprotocol fifo\nmembers A B\ntick 1\n", encoding="utf-8-sig")
    assert load_scenario(file).title == "T"
    update_file(file)
    assert load_scenario(file).title == "T"
