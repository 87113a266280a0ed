"""Edits of a scenario: valid or rejected; undone by their inverse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antecede.errors import ScenarioError
from antecede.lab.check.scenario.parse import parse_scenario
from antecede.lab.check.scenario.run import run_scenario
from antecede.lab.play.editable_scenario import EditableScenario, EditError
from antecede.lab.play.edits import EditResult, apply_edit
from tests.lab.play.scenes import Making, scenes

SCENARIOS = sorted((Path(__file__).parents[3] / "scenarios").glob("*.scenario"))
TEXT = """title a and its effect
protocol bss
members P1 P2 P3

send P3 a
arrive P2 a
# the effect
send P2 b after a
= b is on its way to P1, P3
arrive P3 b
arrive P1 b
arrive P1 a
"""
INNER = """protocol hierarchical
internal S: A B
internal T: C
external X

send A m
arrive S m
arrive B m
arrive T m
arrive C m
arrive X m
"""
TIMED = """protocol linear
members A B C
bounds accuracy=0.1 least=0.1 most=0.3
bounds A accuracy=0.2
bounds A B least=0.1 most=0.2
clock B 0.05

send A m
tick 0.1
arrive B m
"""


def after(text: str, *protocols: str, **edit: Any) -> EditResult:
    return apply_edit(text, edit, protocols)


def actions(text: str) -> list[str]:
    head = len(EditableScenario.from_text(text, "x").preamble)
    return [one.line for one in EditableScenario.from_text(text, "x").blocks] if head else []


def solid(text: str) -> list[str]:
    """Return the non-empty lines of a text."""
    return [line for line in text.splitlines() if line.strip()]


def test_an_action_is_moved_with_its_comment_and_expected_lines_go() -> None:
    made = after(TEXT, kind="move", command=5, to=2)
    assert actions(made.text)[2] == "arrive P1 a"
    assert "arrive P1 a\n# the effect\nsend P2 b after a\narrive P3 b" in made.text
    assert "= " not in made.text
    assert made.note == ""
    assert after(TEXT, kind="move", command=3, to=4).text == TEXT.replace(
        "= b is on its way to P1, P3\n", ""
    )


def test_a_sending_does_not_pass_its_arrivals_unless_they_are_carried() -> None:
    with pytest.raises(EditError) as caught:
        after(TEXT, kind="move", command=2, to=6)
    assert "'send P2 b after a' cannot be after 'arrive P3 b', 'arrive P1 b'" in str(caught.value)
    assert "b must be sent before it can arrive" in str(caught.value)
    made = after(TEXT, kind="move", command=2, to=6, carry=True)
    assert actions(made.text)[2:] == [
        "arrive P1 a", "send P2 b after a", "arrive P3 b", "arrive P1 b",
    ]  # fmt: skip
    assert made.note == "moved along: 'arrive P3 b', 'arrive P1 b'"
    with pytest.raises(EditError, match="'arrive P1 b' cannot be before 'send P2 b after a'"):
        after(TEXT, kind="move", command=4, to=1)
    made = after(TEXT, kind="move", command=4, to=1, carry=True)
    assert actions(made.text)[:4] == [
        "send P3 a", "send P2 b after a", "arrive P1 b", "arrive P2 a",
    ]  # fmt: skip


def test_what_a_super_peer_has_not_forwarded_does_not_arrive() -> None:
    with pytest.raises(EditError, match=r"'arrive B m' is impossible then: .*not in flight to B"):
        after(INNER, kind="move", command=1, to=3)
    assert actions(after(INNER, kind="move", command=5, to=2).text)[2] == "arrive X m"
    made = after(INNER, kind="remove", command=1)
    assert actions(made.text) == ["send A m"]
    assert made.note.startswith("also removed: 'arrive B m', 'arrive T m', 'arrive C m'")


@settings(max_examples=40, deadline=None)
@given(scenes(), st.booleans(), st.data())
def test_a_move_is_taken_back_by_its_inverse(made: Making, comments: bool, data: Any) -> None:
    text = made.text(comments=comments)
    number = len(made.lines)
    if not number:
        return
    at = data.draw(st.integers(0, number - 1))
    to = data.draw(st.integers(0, number))
    try:
        moved = after(text, kind="move", command=at, to=to)
    except EditError:
        return
    back = {"command": to - 1, "to": at} if to > at else {"command": to, "to": at + 1}
    assert solid(after(moved.text, kind="move", **back).text) == solid(text)


def test_an_action_is_added_where_it_can_be() -> None:
    made = after(TEXT, kind="add", at=6, line="send P1 c after b")
    assert actions(made.text)[-1] == "send P1 c after b"
    assert after(made.text, kind="remove", command=6).text == after(
        TEXT, kind="move", command=0, to=0
    ).text  # fmt: skip
    for at, line, says in (
        (0, "arrive P1 a", "'arrive P1 a' cannot precede 'send P3 a'"),
        (6, "arrive P1 a", "message a is not in flight to P1; no message is in flight to it"),
        (6, "arrive P1 z", "no message z is sent"),
        (6, "send P9 z", "unknown member P9; choose from P1, P2, P3"),
        (6, "send P1 a", "a is sent already; use another name"),
        (6, "join P1 sponsor P2", "P1 is a member already"),
        (6, "dance", "unknown command 'dance'"),
        (6, "protocol fifo", "second protocol line"),
        (6, "title x", "'title x' is not an action"),
        (6, "send P1 x\nsend P1 y", "expected one line"),
        (6, "# nothing", "is not an action"),
        (7, "send P1 x", "at=7: the scenario has 6 actions, from 0"),
        (-1, "send P1 x", "at=-1"),
        ("0", "send P1 x", "at='0'"),
        (True, "send P1 x", "at=True"),
        (6, None, "expected one line"),
    ):
        with pytest.raises(EditError) as caught:
            apply_edit(TEXT, {"kind": "add", "at": at, "line": line})
        assert says in str(caught.value)


@settings(max_examples=40, deadline=None)
@given(scenes(), st.data())
def test_what_is_added_is_taken_back_by_removing(made: Making, data: Any) -> None:
    text = made.text()
    at = data.draw(st.integers(0, len(made.lines)))
    added = after(text, kind="add", at=at, line=f"send {made.members[0]} another")
    assert solid(after(added.text, kind="remove", command=at).text) == solid(text)


def test_lines_of_the_head_stay_however_they_are_indented() -> None:
    text = (
        "protocol physical\n  members A B\n\tbounds accuracy=1\n    clock A 0.5\nsend A m\ntick 1\n"
    )
    head = "protocol physical\nmembers A B\nbounds accuracy=1\nclock A 0.5\n"
    assert apply_edit(text, {"kind": "remove", "command": 0}).text == f"{head}\ntick 1\n"
    more = apply_edit(text, {"kind": "member", "add": "C"}).text
    assert more == head.replace("A B\n", "A B C\n") + "\nsend A m\ntick 1\n"
    late = "protocol fifo\nmembers A B\nsend A m\n title late\n# told\narrive B m\n"
    told = apply_edit(late, {"kind": "remove", "command": 1}).text
    assert told == "protocol fifo\nmembers A B\ntitle late\n\nsend A m\n"


def test_a_sending_takes_its_arrivals_along() -> None:
    made = after(TEXT, kind="remove", command=0)
    assert actions(made.text) == ["send P2 b", "arrive P3 b", "arrive P1 b"]
    assert made.note == ("also removed: 'arrive P2 a', 'arrive P1 a'; b no longer a reply to it")
    text = TEXT + "arrive P1 a again\nlose P3 b\n".replace("lose P3 b\n", "")
    assert actions(after(text, kind="remove", command=5).text)[-1] == "arrive P1 b"


def test_a_newcomer_goes_with_all_that_it_did() -> None:
    text = "protocol fifo\nmembers A B\n\njoin N sponsor A\nsend N m\n"
    text += "arrive B m\nsend A n\narrive N n\n"
    made = after(text, kind="remove", command=0)
    assert actions(made.text) == ["send A n"]
    with pytest.raises(EditError, match="N must join before its other actions"):
        after(text, kind="move", command=1, to=0)
    left = text + "leave N\n"
    with pytest.raises(EditError, match="N cannot act after it has left"):
        after(left, kind="move", command=5, to=1)


def test_an_action_is_changed_and_its_new_name_is_used_everywhere() -> None:
    made = after(TEXT, kind="change", command=0, line="send P3 question")
    assert actions(made.text) == [
        "send P3 question", "arrive P2 question", "send P2 b after question",
        "arrive P3 b", "arrive P1 b", "arrive P1 question",
    ]  # fmt: skip
    assert made.note == "a is renamed to question everywhere"
    with pytest.raises(EditError, match="b is sent already"):
        after(TEXT, kind="change", command=0, line="send P3 b")
    made = after(TEXT, kind="change", command=4, line="lose P1 b")
    assert actions(made.text)[4] == "lose P1 b"
    sender = after(TEXT, kind="change", command=0, line="send P2 a")
    assert actions(sender.text)[:2] == ["send P2 a", "send P2 b after a"]
    assert "also removed: 'arrive P2 a'" in sender.note
    with pytest.raises(EditError, match="'arrive P3 a' is impossible then"):
        after(TEXT, kind="change", command=5, line="arrive P3 a")


def test_members_are_added_renamed_ordered_and_removed() -> None:
    wider = after(TEXT, kind="member", add="P4").text
    assert "members P1 P2 P3 P4" in wider
    renamed = after(TEXT, kind="member", rename=["P1", "Ann"]).text
    assert "members Ann P2 P3" in renamed
    assert actions(renamed)[-1] == "arrive Ann a"
    assert after(renamed, kind="member", rename=["Ann", "P1"]).text == after(
        TEXT, kind="move", command=0, to=0
    ).text  # fmt: skip
    turned = after(TEXT, kind="member", order=["P3", "P1", "P2"]).text
    assert "members P3 P1 P2" in turned
    less = after(TEXT, kind="member", remove="P1").text
    assert actions(less) == ["send P3 a", "arrive P2 a", "send P2 b after a", "arrive P3 b"]
    chosen = TEXT.replace("bss", "ses").replace("send P2 b after a", "send P2 b to P1")
    chosen = chosen.replace("arrive P3 b\n", "").replace("= b is on its way to P1, P3\n", "")
    assert actions(after(chosen, kind="member", remove="P1").text) == ["send P3 a", "arrive P2 a"]


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        ({"add": "P1"}, "P1 is a member already"),
        ({"add": "two words"}, "use one word"),
        ({"add": "after"}, "is reserved in scenarios"),
        ({"add": ""}, "missing name of a member"),
        ({"add": "x" * 61}, "at most 60 characters"),
        ({"add": "a\u202eb"}, "use one word"),
        ({"rename": ["P1", "P2"]}, "P2 is a member already"),
        ({"rename": ["P9", "X"]}, "unknown member P9"),
        ({"rename": "P1"}, "rename needs the old and the new name"),
        ({"remove": "P9"}, "unknown member P9"),
        ({"remove": "A"}, "a scenario needs at least one member"),
        ({"order": ["P1", "P2"]}, "list each member once"),
        ({"order": ["P1", "P2", "P2"]}, "list each member once"),
        ({"order": [1, 2, 3]}, "list each member once"),
        ({}, "expected exactly one of add, rename, remove, order"),
        ({"add": "X", "remove": "P1"}, "expected exactly one of add, rename, remove, order"),
    ],
)
def test_members_that_cannot_be_are_refused(edit: dict[str, Any], says: str) -> None:
    text = "protocol fifo\nmembers A\n" if edit == {"remove": "A"} else TEXT
    with pytest.raises(EditError, match=says):
        apply_edit(text, {"kind": "member", **edit})


def test_peers_of_a_hierarchy() -> None:
    wider = after(INNER, kind="member", add="D", role="internal", super_peer="S").text
    assert "internal S: A B D" in wider
    assert "external X Y" in after(INNER, kind="member", add="Y", role="external").text
    third = after(INNER, kind="member", add="D", role="internal", super_peer="U").text
    assert "internal T: C\ninternal U: D" in third
    with pytest.raises(EditError, match="missing role"):
        after(INNER, kind="member", add="Y")
    with pytest.raises(EditError, match="X is not a super peer"):
        after(INNER, kind="member", add="Y", role="internal", super_peer="X")
    with pytest.raises(EditError, match="C is the last internal peer of T; remove T"):
        after(INNER, kind="member", remove="C")
    made = after(INNER, kind="member", remove="T")
    assert "internal T" not in made.text
    assert actions(made.text) == ["send A m", "arrive S m", "arrive B m", "arrive X m"]
    renamed = after(INNER, kind="member", rename=["S", "Hub"]).text
    assert "internal Hub: A B" in renamed
    assert actions(renamed)[1] == "arrive Hub m"
    turned = after(INNER, kind="member", order=["C", "T", "B", "A", "S", "X"]).text
    assert turned.index("internal T: C") < turned.index("internal S: B A")
    with pytest.raises(EditError, match="internal peers must precede their super peer"):
        after(INNER, kind="member", order=["S", "A", "B", "C", "T", "X"])


def test_acknowledgements_are_called_by_their_member() -> None:
    path = next(one for one in SCENARIOS if one.stem == "hierarchical-pruning-as-published")
    text = path.read_text("utf-8")
    assert actions(text).count("arrive S ack-A") == 2
    made = after(text, kind="member", rename=["A", "Zoe"]).text
    assert actions(made).count("arrive S ack-Zoe") == 2
    assert "arrive S ack-A" not in actions(made)
    assert run_scenario(parse_scenario(made)).results


def test_newcomers_stay_last() -> None:
    text = "protocol fifo\nmembers A B\n\njoin N sponsor A\n"
    assert "members B A" in after(text, kind="member", order=["B", "A", "N"]).text
    with pytest.raises(EditError, match="joining members must come last: N"):
        after(text, kind="member", order=["N", "A", "B"])
    assert actions(after(text, kind="member", remove="N").text) == []


def test_lines_of_the_head_are_set_and_taken_away() -> None:
    made = after(TIMED, kind="setup", line="clock B -0.1").text
    assert "clock B -0.1" in made
    assert "0.05" not in made
    made = after(TIMED, kind="setup", line="bounds A B least=0.2 most=0.3").text
    assert "bounds A B least=0.2 most=0.3\nclock B" in made
    assert "bounds A accuracy=0.2" in made
    made = after(TIMED, kind="setup", line="clock B 0", remove=True).text
    assert "clock" not in made
    assert "title x\n" in after(TIMED, kind="setup", line="title x").text
    assert "title" not in after(TEXT, kind="setup", line="title").text
    made = after(TIMED, kind="member", remove="B").text
    assert "bounds A B" not in made
    assert "clock" not in made
    assert "bounds A accuracy=0.2" in made
    for line, says in (
        ("send A m", "is not a setting"),
        ("clock B soon", "the offset of its clock"),
        ("clock Z 1", "clock is set for Z"),
        ("protocol", "write 'protocol NAME"),
        ("members", "write 'members NAME"),
    ):
        with pytest.raises(EditError, match=says):
            after(TIMED, kind="setup", line=line)
    with pytest.raises(EditError, match="no line 'subscribe A'"):
        after(TIMED, kind="setup", line="subscribe A x", remove=True)
    with pytest.raises(EditError, match="missing protocol"):
        after(TEXT, kind="setup", line="protocol bss", remove=True)


def test_all_that_is_on_its_way_arrives() -> None:
    text = "protocol bss\nmembers A B C\n\nsend A m\nsend B n\n"
    made = after(text, kind="arrive-all")
    assert actions(made.text)[2:] == ["arrive B m", "arrive C m", "arrive A n", "arrive C n"]
    with pytest.raises(EditError, match="no copy is in flight"):
        after(made.text, kind="arrive-all")
    short = INNER[: INNER.index("arrive S")]
    all_of = after(short, kind="arrive-all").text
    assert not run_scenario(parse_scenario(all_of)).in_flight
    assert "arrive C m" in all_of


def test_a_new_scene_keeps_the_protocol() -> None:
    assert after(TEXT, kind="fresh", members=["A", "B"]).text == "protocol bss\nmembers A B\n"
    assert after("", kind="fresh", members=["A"]).text == "protocol fifo\nmembers A\n"
    assert after(INNER, kind="fresh", members=["A"]).text == "protocol fifo\nmembers A\n"
    for members, says in ((["A", "A"], "listed twice"), ([], "missing members"), (["a b"], "word")):
        with pytest.raises(EditError, match=says):
            after(TEXT, kind="fresh", members=members)


def test_what_is_no_change_or_no_script_is_refused() -> None:
    with pytest.raises(EditError, match="unknown edit 'paint'; choose from move"):
        after(TEXT, kind="paint")
    with pytest.raises(ScenarioError, match="unknown command"):
        after("dance\n", kind="remove", command=0)


def test_a_scene_that_nothing_plays_can_be_mended() -> None:
    broken = TEXT + "arrive P1 a\n"
    with pytest.raises(ScenarioError):
        run_scenario(parse_scenario(broken))
    assert run_scenario(parse_scenario(after(broken, kind="remove", command=6).text)).results
    with pytest.raises(EditError, match="no chosen protocol can run"):
        after(broken, kind="arrive-all")


def draw_edit(data: Any, text: str) -> dict[str, Any]:
    scene = EditableScenario.from_text(text, "x")
    number, names = len(scene.blocks), list(scene.list_members())
    place = st.integers(0, max(number, 1))
    label = st.sampled_from(["m1", "m2", "m3", "x", "y"])
    member = st.sampled_from([*names, "Q"])
    line = st.one_of(
        st.builds("send {} {}".format, member, label),
        st.builds("send {} {} after {}".format, member, label, label),
        st.builds("arrive {} {}".format, member, label),
        st.builds("arrive {} {} again".format, member, label),
        st.builds("lose {} {}".format, member, label),
        st.builds("join {} sponsor {}".format, member, member),
        st.builds("leave {}".format, member),
        st.builds("state {}".format, member),
        st.sampled_from(["tick 1", "# x", "= x", "title x", "members Z", ""]),
    )
    edits: dict[str, Any] = data.draw(
        st.one_of(
            st.fixed_dictionaries(
                {"kind": st.just("move"), "command": place, "to": place, "carry": st.booleans()}
            ),
            st.fixed_dictionaries({"kind": st.just("add"), "at": place, "line": line}),
            st.fixed_dictionaries({"kind": st.just("remove"), "command": place}),
            st.fixed_dictionaries({"kind": st.just("change"), "command": place, "line": line}),
            st.fixed_dictionaries(
                {"kind": st.just("member"), "rename": st.tuples(member, member).map(list)}
            ),
            st.fixed_dictionaries({"kind": st.just("member"), "remove": member}),
            st.fixed_dictionaries({"kind": st.just("member"), "add": member}),
            st.fixed_dictionaries(
                {"kind": st.just("member"), "order": st.permutations(names).map(list)}
            ),
            st.fixed_dictionaries(
                {"kind": st.just("setup"),
                 "line": st.builds("clock {} {}".format, member, st.integers(-2, 2))}
            ),
            st.just({"kind": "arrive-all"}),
        )
    )  # fmt: skip
    return edits


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(scenes(moving=True, lossy=True), st.sampled_from(["idr", "fifo", "unordered"]), st.data())
def test_no_change_gives_a_text_that_cannot_be_played(
    made: Making, protocol: str, data: Any
) -> None:
    text = made.text(protocol)
    run_scenario(parse_scenario(text))
    refused: list[str] = []
    for _ in range(data.draw(st.integers(1, 8))):
        edit = draw_edit(data, text)
        try:
            text = apply_edit(text, edit).text
        except EditError as error:
            refused.append(str(error))
            continue
        run_scenario(parse_scenario(text))
        assert EditableScenario.from_text(text, "x").to_text() == text
    assert all(words.strip() for words in refused)


@pytest.mark.few(10)
@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_scenes_of_every_kind_are_taken_apart_and_put_together(path: Path) -> None:
    text = path.read_text("utf-8")
    scene = EditableScenario.from_text(text, str(path))
    again = parse_scenario(scene.to_text(), str(path))
    before = parse_scenario(text, str(path))
    assert [c.action for c in again.commands] == [c.action for c in before.commands]
    assert again.setup == before.setup
    comments = [line.strip() for line in text.splitlines() if line.startswith("#")]
    assert [line for line in scene.to_text().splitlines() if line.startswith("#")] == comments
    for k in reversed(range(len(scene.blocks))):
        made = apply_edit(text, {"kind": "remove", "command": k}, path=str(path))
        assert len(EditableScenario.from_text(made.text, str(path)).blocks) < len(scene.blocks)
