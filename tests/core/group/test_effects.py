"""Effects of calls of a `Group`, ranges of ticks, and decoding of own bytes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import antecede
from antecede import Group
from antecede.core.group.frames import format as frame
from antecede.core.protocols.topics.subscriptions import Subscriptions
from antecede.errors import DecodeError, LocalError
from tests.helpers.stored_groups import BOUNDS, ORDERS, START_S, TOPICS, fresh, story

NAMES = ("alice", "bob", "carol")


def test_nobody_reaches_into_a_group() -> None:
    top = Path(antecede.__file__).parent
    inside = re.compile(r"\bgroups?(\[[^]]*\])?\._[a-z]|\._(state|protocol|frames|effects)\b")
    outside = [path for path in top.rglob("*.py") if "group" not in path.parts]
    assert len(outside) > 300
    found = [
        f"{path.relative_to(top)}: {line.strip()}"
        for path in outside
        for line in path.read_text().splitlines()
        if inside.search(line) and "def _" not in line and "_Parser." not in line
    ]
    assert found == []
    assert inside.search("self.group._protocol = x"), "the pattern finds what stood here"


def test_no_part_of_a_group_hides_a_name_of_another() -> None:
    parts = Group.__mro__[:-1]
    assert len(parts) > 6
    stands_in: dict[str, list[str]] = {}
    for part in parts:
        for name in vars(part):
            if not (name.startswith("__") and name.endswith("__")):
                stands_in.setdefault(name, []).append(part.__name__)
    assert {name: where for name, where in stands_in.items() if len(where) > 1} == {}


def test_effects_say_what_became_of_each_message() -> None:
    alice, bob, carol = (Group(name, NAMES, order="reply") for name in NAMES)
    assert carol.effects() == []
    question = alice.send(b"lunch?")
    (sent,) = alice.effects()
    assert (sent.kind, sent.message, sent.arrived) == ("sent", question.message, False)
    (read,) = bob.receive(question)
    answer = bob.send(b"yes", reply_to=read)
    carol.receive(answer)
    (held,) = carol.effects()
    assert (held.kind, held.arrived, held.waits_for) == ("held", True, (("alice", 1),))
    assert held.message is not None
    assert held.message.payload == b"yes"
    assert held.id is not None
    assert carol.map_held_by_id()[held.id].message == held.message
    carol.receive(question)
    first, second = carol.effects()
    assert [(e.kind, e.arrived) for e in (first, second)] == [
        ("delivered", True),
        ("delivered", False),
    ]
    assert second.id == held.id
    carol.receive(question)
    (twice,) = carol.effects()
    assert (twice.kind, twice.reason, twice.arrived) == ("discarded", "duplicate", True)


def test_a_refused_message_has_no_effects() -> None:
    alice, bob = (Group(name, NAMES, order="fifo") for name in NAMES[:2])
    bob.receive(alice.send(b"1"))
    assert bob.effects()
    with pytest.raises(DecodeError):
        bob.receive(b"nothing")
    assert bob.effects() == []


@pytest.mark.parametrize(
    "wrong",
    [
        lambda group: group.send("text"),
        lambda group: group.receive(b"", now=1, now_ns=1),
        lambda group: group.tick(),
        lambda group: group.tick_range(range(0)),
        lambda group: group.join("alice"),
        lambda group: group.invite("alice"),
        lambda group: group.leave("zoe", 1),
        lambda group: group.subscribe("alice", ["x"]),
    ],
)
def test_a_wrong_call_has_no_effects(wrong: Any) -> None:
    alice, bob = (Group(name, NAMES, order="fifo") for name in NAMES[:2])
    bob.receive(alice.send(b"1"))
    with pytest.raises(LocalError):
        wrong(bob)
    assert bob.effects() == []


@pytest.mark.parametrize("order", ORDERS)
def test_effects_tell_what_receive_and_tick_return(order: str) -> None:
    group, late = story(order)
    for wire in late:
        delivered = group.receive(wire, now=START_S + 14.0)
        told = [
            e.message for e in group.effects() if e.kind in ("delivered", "delivered_incomplete")
        ]
        assert told == delivered
    delivered = group.tick(START_S + 60.0)
    told = [e.message for e in group.effects() if e.kind in ("delivered", "delivered_incomplete")]
    assert told == delivered
    assert {e.message for e in group.effects() if e.kind == "sent"} <= {None}, "notes alone"


@pytest.mark.parametrize("order", ["linear", "physical", "linear-physical", "matrix", "tv"])
@given(step_ns=st.integers(10**6, 10**9), notes=st.booleans())
def test_time_that_passes_at_once_is_that_which_ticks(
    order: str, step_ns: int, notes: bool
) -> None:
    at_once, one_by_one = story(order), story(order)
    for told in (at_once, one_by_one):
        for wire in told.late:
            told.group.receive(wire, now=START_S + 14.0)
    start = round((START_S + 14.0) * 1e9)
    readings = range(start, start + 40 * step_ns, step_ns)
    reached, released = at_once.group.tick_range(readings, notes=notes)
    for reading in readings:
        found = one_by_one.group.tick(now_ns=reading)
        kinds = {effect.kind for effect in one_by_one.group.effects()}
        if kinds - (set() if notes else {"sent"}):
            break
    assert (reading, found) == (reached, released)
    assert at_once.group.stats() == one_by_one.group.stats()
    assert at_once.group.list_held() == one_by_one.group.list_held()


@pytest.mark.parametrize("readings", [range(0), range(5, 5), range(9, 2, -1)])
def test_time_does_not_go_back(readings: range) -> None:
    with pytest.raises(LocalError, match="expected a nonempty ascending range"):
        Group("alice", NAMES, order="matrix").tick_range(readings)


@pytest.mark.parametrize("fails", [1, 2, 3])
def test_time_that_fails_to_pass_leaves_the_group_as_it_was(
    monkeypatch: pytest.MonkeyPatch, fails: int
) -> None:
    group, _ = story("linear")
    before, kind = group.snapshot(), type(group._state.protocol)
    real, calls = kind.tick, []

    def tick(self: Any, now: int) -> Any:
        calls.append(now)
        if len(calls) == fails:
            raise LocalError("as if it could not be")
        return real(self, now)

    monkeypatch.setattr(kind, "tick", tick)
    start = round((START_S + 13.3) * 1e9)
    with pytest.raises(LocalError, match="as if"):
        group.tick_range(range(start, start + 10**11, 10**8))
    assert len(calls) == fails
    assert group.snapshot() == before
    assert group.effects() == []


@pytest.mark.parametrize("order", ORDERS)
def test_own_bytes_say_what_was_posted(order: str) -> None:
    alice = fresh(order, "alice")
    how: dict[str, Any] = {"topics": ("news",)} if order in TOPICS else {}
    wire = alice.send(b"hello", now=START_S, **how)
    said = alice.decode_own(wire)
    assert said is not None
    assert (said.payload, said.topics, said.reply_to) == (b"hello", how.get("topics", ()), ())
    again = fresh(order, "alice")
    chosen = {name: value for name, value in said._asdict().items() if name != "payload"}
    assert again.send(said.payload, now=START_S, **chosen) == wire


def test_the_topics_of_a_group() -> None:
    table = Subscriptions({"alice": ("b", "a"), "bob": ("c",)})
    group = Group("alice", ["alice", "bob"], order="tv", bounds=BOUNDS, subscriptions=table)
    assert group.topics() == ("a", "b", "c")
    assert group.needs_ticks
    assert group.has_application
    with pytest.raises(LocalError, match="has no topics"):
        Group("alice").topics()
    assert not Group("alice").needs_ticks


OPEN = [order for order in ORDERS if order in ("unordered", "fifo", "bss", "ds", "idr", "sb")]


@pytest.mark.parametrize("members", [NAMES, None], ids=["closed", "open"])
@pytest.mark.parametrize("order", [*OPEN, "ses", "sent"])
def test_frames_written_in_parts_are_those_written_whole(
    order: str, members: tuple[str, ...] | None
) -> None:
    groups = {name: Group(name, members, order=order) for name in NAMES}
    for turn in range(4):
        for group in groups.values():
            wire = group.send(b"%d" % turn)
            assert frame.pack(frame.unpack(group.order, wire)) == wire
            for other in groups.values():
                if other is not group:
                    other.receive(wire)
        if turn == 1:  # from here on lives are told, and tables of names change
            again = Group("carol", members, order=order)
            again.restore(groups["carol"].snapshot())
            groups["carol"] = again
        if turn == 2 and members is None:
            groups["dave"] = Group("dave", order=order)
    if members is None:
        assert "dave" in groups["alice"].members
