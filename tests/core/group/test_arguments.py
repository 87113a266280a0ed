"""Invalid arguments of every public method: a typed error and no change.

Methods and arguments come from the class, so a new one is tested as soon as `CALLS` has a valid
call of it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from antecede import Bounds, Group, Subscriptions
from antecede.core.group.message import Message
from antecede.core.protocols.serialization.codec import pack_state, unpack_state
from antecede.errors import AntecedeError, DecodeError, LocalError
from tests.helpers.stored_groups import (
    ADDRESSES,
    BOUNDS,
    NAMES,
    START_S,
    fresh,
    options_of,
    role,
    story,
)

LONG = 10**5000
"""More digits than Python writes."""


class Unwritable:
    """Object whose repr fails."""

    def __repr__(self) -> str:
        raise RuntimeError("no text of this")


NEVER: dict[str, Any] = {
    "object": object(),
    "type": int,
    "unwritable": Unwritable(),
    "surrogate": "\udc80",
    "list of surrogates": ["\udc80"],
    "list of None": [None],
    "list of lists": [[]],
    "tuple of a list": ([],),
    "pair with a huge number": ("alice", LONG),
    "float": 1.5,
    "not a number": float("nan"),
}
"""Right nowhere, but for what `ALLOWED` says."""
MAYBE: dict[str, Any] = {
    "None": None,
    "number": 5,
    "negative": -1,
    "huge number": LONG,
    "truth": True,
    "empty list": [],
    "list of numbers": [5],
    "text": "x",
    "empty text": "",
    "bytes": b"x",
    "view of words": memoryview(bytes(16)).cast("Q"),
    "table": {1: 2},
    "a message of nobody": Message([], "x", None),  # type: ignore[arg-type]
}
"""Right in some places."""
JUNK = NEVER | MAYBE

NOW = START_S + 20.0
CALLS: dict[str, dict[str, Any]] = {
    "send": {"payload": b"x", "now": NOW},
    "send_packets": {"payload": b"x", "now": NOW},
    "receive": {"wire": b"x", "now": NOW},
    "inspect": {"wire": b"x"},
    "tick": {"now": NOW},
    "tick_range": {"readings": range(1, 9)},
    "decode_own": {"wire": b"x"},
    "resume_incarnation": {"wire": b"x"},
    "last_seq": {},
    "thread": {"message": ("alice", 1)},
    "get_known_seq": {"member": "alice", "of": "bob"},
    "invite": {"name": "dave"},
    "join": {"name": "dave"},
    "leave": {"member": "bob", "last": 0},
    "subscribe": {"member": "bob", "topics": ["news"]},
    "start_from": {"frontier": {"bob": 0}},
    "forget": {"member": "bob"},
    "correct_clock": {"now": NOW},
    "declare_lost": {"lost": [("alice", 1)]},
    "restore": {"state": b"x"},
}
"""A right call of each method that takes arguments, or one that only fails at its bytes."""
BARE = (
    *(
        "effects",
        "take_control_packets",
        "take_own_deliveries",
        "list_held",
        "map_held_by_id",
        "list_missing",
        "stats",
    ),
    *(
        "frontier",
        "list_held_packets",
        "stable_seqs",
        "topics",
        "subscriptions",
        "snapshot",
        "take_log",
    ),
)
MADE = ("from_protocol", "options", "accept")
ALLOWED = {("now", "float")}
"""Seconds."""
GROUPS = ("unordered", "idr", "sb", "ses", "matrix", "total", "linear", "htbc", "internal", "open")


def group_of(order: str) -> Group:
    if order != "open":
        return story(order).group
    group = Group("alice", incarnation=1)
    group.receive(Group("bob").send(b"hello"))
    return group


def arguments(method: str) -> list[str]:
    return [name for name in inspect.signature(getattr(Group, method)).parameters if name != "self"]


def refused(call: Callable[[], object]) -> AntecedeError | None:
    """Return the error of a call; None: it is valid. Fail on any other error."""
    try:
        call()
    except AntecedeError as error:
        text = str(error)
        assert text, "an error without a word"
        assert len(text) < 1000
        text.encode()  # can be printed
        return error
    return None


def test_every_public_method_is_here() -> None:
    methods = {
        name
        for name in dir(Group)
        if not name.startswith("_") and not isinstance(getattr(Group, name), property)
    }
    assert methods == {*CALLS, *BARE, *MADE}
    assert {name for name in methods if name not in MADE and arguments(name)} == {*CALLS}


@pytest.mark.parametrize("method", CALLS)
@pytest.mark.parametrize("order", GROUPS)
def test_what_an_argument_cannot_be_is_refused_and_changes_nothing(order: str, method: str) -> None:
    group = group_of(order)
    stored = group.snapshot()
    for name in arguments(method):
        for kind, junk in JUNK.items():
            base = {k: v for k, v in CALLS[method].items() if (k, name) != ("now", "now_ns")}
            if method == "restore":
                base["state"] = stored
            error = refused(lambda: getattr(group, method)(**{**base, name: junk}))  # noqa: B023
            if error is None:
                assert kind in MAYBE or (name, kind) in ALLOWED, (name, kind)
                group = group_of(order)
                stored = group.snapshot()
                continue
            assert group.snapshot() == stored, (name, kind, error)


def constructions(junk: Any) -> Iterator[tuple[str, Callable[[], object]]]:
    invitation = Group("alice").invite("dave")
    protocol = role("p1")._state.protocol
    for name in arguments_of_init():
        yield name, lambda name=name: Group(**{"name": "alice", name: junk})  # type: ignore[misc]
    for name in ("max_held", "max_members", "max_packet", "threads", "bounds", "subscriptions"):
        yield name, lambda name=name: Group("alice", **{name: junk})  # type: ignore[misc]
    yield "a member", lambda: Group("alice", ["alice", junk])
    yield "order", lambda: Group.options(junk)
    for name in ("name", "invitation", "room", "incarnation", "keep_log"):
        base = {"name": "dave", "invitation": invitation, name: junk}
        yield name, lambda base=base: Group.accept(**base)  # type: ignore[misc]
    for name in ("protocol", "names", "order", "room", "incarnation"):
        whole = {"protocol": protocol, "names": ADDRESSES, "order": "x", name: junk}
        yield name, lambda whole=whole: Group.from_protocol(**whole)  # type: ignore[misc]
    yield "a name", lambda: Group.from_protocol(protocol, {**ADDRESSES, 0: junk}, order="x")
    for name in inspect.signature(Bounds).parameters:
        yield name, lambda name=name: Bounds(**{name: junk})  # type: ignore[misc]
    for name in ("clocks", "clocks_ns", "channels", "channels_ns"):
        key = "alice" if "clocks" in name else ("alice", "bob")
        yield name, lambda name=name, key=key: Bounds(**{name: {key: junk}})  # type: ignore[arg-type, misc]
    for topics in (junk, {"carol": junk}, {"carol": [junk]}):
        yield "subscriptions", lambda topics=topics: subscribed(topics)  # type: ignore[misc]


def arguments_of_init() -> list[str]:
    names = list(inspect.signature(Group.__init__).parameters)
    return [name for name in names if name not in ("self", "options")]


def subscribed(topics: Any) -> Group:
    return Group("carol", NAMES, order="tv", bounds=BOUNDS, subscriptions=Subscriptions(topics))


SECONDS = ("accuracy_s", "least_s", "most_s", "clocks")


@pytest.mark.parametrize("kind", JUNK)
def test_what_a_group_cannot_be_made_of_is_refused(kind: str) -> None:
    for name, make in constructions(JUNK[kind]):
        if refused(make) is None:
            assert kind in MAYBE or (kind == "float" and name in SECONDS), (name, kind)


@pytest.mark.parametrize("order", ["sb", "matrix", "total", "linear", "physical", "htbc", "bss"])
@pytest.mark.parametrize("kind", JUNK)
def test_what_an_option_cannot_be_is_refused(order: str, kind: str) -> None:
    for name in Group.options(order):
        given = {**options_of(order), name: JUNK[kind]}
        if refused(lambda: Group("carol", NAMES, order=order, **given)) is None:  # noqa: B023
            assert kind in MAYBE or (kind == "float" and name.endswith("_s")), (name, kind)


# -- what the sentences say -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: Group("alice", members=5), "members= is 5"),  # type: ignore[arg-type]
        (lambda: Group("alice", order=["x"]), r"unknown order \['x'\]; choose from causal"),  # type: ignore[arg-type]
        (lambda: Group.options([]), r"unknown order \[\]; choose from"),  # type: ignore[arg-type]
        (lambda: Group("al\udc80"), "member name 'al"),
        (lambda: Group("a", room="\udc80"), "room= is .* UTF-8 encoding .surrogates"),
        (lambda: Group.accept([], Group("a").invite("b")), "member name is"),  # type: ignore[arg-type]
        (lambda: subscribed({"bob": ["\udc80"]}), "expected 1 to 255 bytes as UTF-8"),
        (lambda: fresh("linear").tick(now_ns=int), "now_ns is <class 'int'>; expected whole"),  # type: ignore[arg-type]
        (lambda: fresh("linear").tick(LONG), "now is an int without a repr seconds"),
        (lambda: fresh("sb").thread([("alice", 1), ("bob", 1)]), "one message, got 2"),  # type: ignore[arg-type]
        (lambda: fresh("sb").thread([]), "one message, got 0"),  # type: ignore[arg-type]
        (lambda: Group.from_protocol(5, {}, order="x"), "protocol is 5; expected a Protocol"),  # type: ignore[arg-type]
    ],
)
def test_the_sentence_says_what_is_right(call: Callable[[], object], says: str) -> None:
    with pytest.raises((LocalError, DecodeError), match=says):
        call()


def test_an_invitation_with_a_name_that_has_no_bytes_is_refused() -> None:
    invitation = Group("alice").invite("dave")
    head, (rows, first, joined), *rest = unpack_state(invitation, 4)
    forged = pack_state((head, (((0, "\udc80"), *rows[1:]), first, joined), *rest))
    with pytest.raises(DecodeError, match="member table"):
        Group.accept("dave", forged)
