"""The model of a chat, and its lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede.errors import LocalError
from antecede.live.chat import drawing
from antecede.live.chat.room import Post, Room
from antecede.live.chat.words import cells
from antecede.live.events import Id, Message

ALICE, BOB, CAROL = "alice~00000000", "bob~00000000", "carol~00000000"


def message(lane: str, number: int, text: str, *answers: Id, lost: bool = False) -> Message:
    return Message(lane, number, text.encode(), answers, answers if lost else ())


def lunch() -> Room:
    room = Room("design", "alice")
    question = Id(ALICE, 2)
    for one in (
        message(ALICE, 2, "lunch?"),
        message(BOB, 2, "yes", question),
        message(CAROL, 2, "which review?"),
        message(CAROL, 3, "no", question),
        message(ALICE, 3, "good", Id(BOB, 2)),
    ):
        assert room.add(one, 0.0) is not None
    return room


def test_a_tree() -> None:
    assert list(drawing.threads(lunch())) == [
        "   3  carol: which review?",
        "   1  alice: lunch?",
        "   2  ├── bob: yes",
        "   5  │   └── alice: good",
        "   4  └── carol: no",
    ]


def test_the_last_threads_alone() -> None:
    room = lunch()
    assert [room.posts[Id(*one.id)].number for one in room.threads()] == [3, 1]
    assert [room.posts[Id(*one.id)].number for one in room.threads(1)] == [1]


def test_what_is_said_names_what_it_answers() -> None:
    room = lunch()
    assert drawing.format_post(room, room.post(5)) == ["   5  alice ↳ 2 bob “yes”: good"]
    assert drawing.format_post(room, room.post(3)) == ["   3  carol: which review?"]


def test_a_message_comes_once_and_keeps_its_number() -> None:
    room = lunch()
    assert room.add(message(BOB, 2, "yes"), 9.0) is None
    assert (room.post(2).text, len(room.posts)) == ("yes", 5)


@pytest.mark.parametrize("number", [0, 6, 10**8])
def test_a_number_that_is_not_there(number: int) -> None:
    with pytest.raises(LocalError, match=f"no message {number}; there are 1 to 5"):
        lunch().post(number)
    with pytest.raises(LocalError, match="the room has no messages yet"):
        Room("r", "a").post(1)


def test_orphans_and_what_is_from_before_are_shown_as_such() -> None:
    room = Room("r", "alice")
    room.add(message(BOB, 5, "to a dead one", Id(CAROL, 9), lost=True), 0.0)
    room.add(message(BOB, 6, "to something old", Id(CAROL, 1)), 0.0)
    room.add(message(BOB, 7, "me too", Id(CAROL, 1)), 0.0)
    assert list(drawing.threads(room)) == [
        "      (a message of carol that is lost)",
        "   1  └── bob: to a dead one",
        "      (a message of carol from before)",
        "   2  ├── bob: to something old",
        "   3  └── bob: me too",
    ]
    assert drawing.format_post(room, room.post(1)) == [
        "   1  bob ↳ a message of carol that is lost: to a dead one"
    ]


def test_the_oldest_are_forgotten_and_their_answers_are_not() -> None:
    room = Room("r", "alice", most=3)
    for k in range(1, 6):
        room.add(message(BOB, k, f"{k}", *([Id(BOB, k - 1)] if k > 1 else [])), 0.0)
    assert [one.number for one in room.posts.values()] == [3, 4, 5]
    assert list(drawing.threads(room)) == [
        "      (a message of bob from before)",
        "   3  └── bob: 3",
        "   4      └── bob: 4",
        "   5          └── bob: 5",
    ]
    with pytest.raises(LocalError, match="there are 3 to 5"):
        room.post(2)


def test_what_is_held_since_when_and_for_what() -> None:
    room, answer, parent = Room("r", "alice"), Id(BOB, 4), Id(CAROL, 3)
    below = Id(CAROL, 8)
    held = {answer: (parent, "carol is away"), below: (answer, "")}
    assert room.hold(held, 10.0)
    assert not room.hold(held, 10.1)
    assert not list(room.long_held(10.1))
    assert [one.id for one in room.long_held(10.3)] == [answer, below]
    assert not list(room.long_held(11.0)), "once each"
    assert list(drawing.describe_all_held(room, 12.5)) == [
        "bob's reply has waited 2.5 s for a message of carol that is not here: carol is away",
        "carol's reply has waited 2.5 s for bob's reply, which is held itself",
    ]
    [of_a_stranger] = {below: (below, "speaks of a stranger")}.items()
    assert room.hold({**held, **dict([of_a_stranger])}, 12.5)
    assert list(drawing.describe_all_held(room, 12.5))[1] == (
        "the next message of carol has waited 2.5 s: it speaks of a stranger"
    )
    assert room.hold(held, 12.5)
    post = room.add(message(BOB, 4, "yes", parent), 13.0)
    assert post is not None
    assert post.waited_s == 3.0
    assert drawing.format_post(room, post)[0].endswith(": yes  [waited 3.0 s]")
    assert [one.id for one in room.held] == [below]
    assert room.hold({}, 14.0)
    assert list(drawing.describe_all_held(room, 14.0)) == ["no reply is held"]


def test_who_is_here() -> None:
    room = Room("r", "alice")
    assert room.see(["alice", "bob", "carol"], ["bob"]) == []
    assert list(drawing.list_members(room)) == [
        "alice  (you)",
        "bob  (here)",
        "carol  (away: not connected)",
    ]
    assert room.see(["alice", "bob", "carol"], ["carol"]) == [("bob", False), ("carol", True)]
    assert room.see(["alice", "carol"], ["carol"]) == []
    assert drawing.summary(room) == "2 here"


def test_words_of_others_reach_no_line_as_they_are() -> None:
    room = Room("r", "alice")
    room.add(message("b: 9~00000000", 1, "one\n\x1b[31mtwo\rthree"), 0.0)
    room.add(message(BOB, 1, "x", Id("b: 9~00000000", 1)), 0.0)
    assert drawing.format_post(room, room.post(1)) == ["   1  “b: 9”: one", "      ␛[31mtwo␍three"]
    assert drawing.format_post(room, room.post(2)) == [
        "   2  bob ↳ 1 “b: 9” “one ␛[31mtwo␍three”: x"
    ]


def test_a_deep_thread_stays_narrow_and_says_what_is_answered() -> None:
    room = Room("r", "alice")
    for k in range(1, 3001):
        room.add(message(BOB, k, f"m{k}", *([Id(BOB, k - 1)] if k > 1 else [])), 0.0)
    lines = list(drawing.tree(room, room.thread(room.post(9)), 80))
    assert len(lines) == 3000
    assert max(map(cells, lines)) <= 80
    assert lines[2999] == "3000" + "  " + "    " * 4 + "└── bob ↳ 2999 bob “m2999”: m3000"


@given(
    st.lists(
        st.tuples(st.sampled_from([ALICE, BOB]), st.integers(0, 40), st.text(max_size=60)),
        max_size=40,
    ),
    st.integers(80, 140),
)
def test_all_lines_fit_and_every_message_is_drawn_once(
    said: list[tuple[str, int, str]], width: int
) -> None:
    room, ids = Room("r", "alice"), list[Id]()
    for number, (lane, answers, text) in enumerate(said, 1):
        parents = [ids[answers]] if answers < len(ids) else []
        room.add(message(lane, number, text, *parents), 0.0)
        ids.append(Id(lane, number))
    lines = list(drawing.threads(room, None, width))
    assert all(cells(line) <= width for line in lines)
    numbers = [int(line[:4]) for line in lines if line[:4].strip()]
    assert sorted(numbers) == list(range(1, len(said) + 1))


@pytest.mark.parametrize("text", ["x" * 60_000, "a word " * 9_000, "line\n" * 13_000])
@pytest.mark.parametrize("width", [None, 80])
def test_a_long_message_fills_no_terminal(text: str, width: int | None) -> None:
    room = Room("chat", "alice")
    post = Post(1, Id("bob~00000000", 1), text)
    lines = drawing.format_post(room, post, width)
    assert len(lines) <= drawing.MOST_LINES
    assert sum(map(len, lines)) < 8_000
    assert lines[-1].strip() == "[... the rest of this message is hidden]"
