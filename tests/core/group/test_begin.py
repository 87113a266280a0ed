"""Groups that start from a frontier, or from the first message heard."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from antecede import Bounds, Group, Subscriptions
from antecede.errors import LocalError, RemoteError
from tests.helpers.unchanged import unchanged

NAMES = ("d", "s", "t")
BOUNDS: Bounds[str] = Bounds(accuracy_s=0.01, least_s=0.1, most_s=1.0)
TOPICS = ("tv", "tv-lt", "tv-pt", "tv-vt", "htbc")
COUNTED: dict[str, tuple[str, dict[str, Any]]] = {
    "fifo": ("fifo", {}),
    "causal": ("idr", {}),
    "bss": ("bss", {}),
    "bss, differences": ("bss", {"differences": True}),
    "ds": ("ds", {}),
    "matrix": ("matrix", {}),
    "matrix, recovering": ("matrix", {"recovering": True}),
    "reply": ("sb", {}),
    "reply, as published": ("sb", {"as_published": "algorithm-1"}),
    "none": ("none", {}),
    "ses": ("ses", {}),
    "total": ("total", {"sequencer": "s"}),
}
ORDERS = {name: COUNTED[name] for name in COUNTED if name != "reply, as published"} | {
    name: (name, {"bounds": BOUNDS, "subscriptions": Subscriptions(dict.fromkeys(NAMES, ("x",)))})
    for name in TOPICS
}


def member(name: str, kind: str, **more: Any) -> Group:
    order, options = ORDERS[kind]
    return Group(name, NAMES, order=order, **options, **more)


def said(group: Group, text: bytes, kind: str, at_s: int = 0) -> bytes:
    topics: dict[str, Any] = {"topics": ("x",)} if kind in TOPICS else {}
    return group.send(text, now=at_s, **topics)


def heard(group: Group, wires: Sequence[bytes], at_s: int) -> list[bytes]:
    found = [one.payload for wire in wires for one in group.receive(wire, now=at_s)]
    return found + [one.payload for one in group.tick(now=at_s + 10)]


# -- at a frontier ----------------------------------------------------------------------------


@pytest.mark.parametrize("lanes", [False, True])
@pytest.mark.parametrize("kind", ORDERS)
def test_earlier_numbers_count_as_delivered(kind: str, lanes: bool) -> None:
    s, d = member("s", kind, lanes=lanes), member("d", kind, lanes=lanes)
    wires = [said(s, b"%d" % n, kind, n) for n in range(1, 8)]
    d.start_from({"s": 5, "d": 0})
    assert d.frontier()["s"] == ((1, 5),)
    assert d.last_seq("s") == 5
    assert heard(d, wires[5:], 20) == [b"6", b"7"]
    assert heard(d, [wires[1], wires[4]], 40) == []
    assert d.stats().duplicates == 2
    assert d.frontier()["s"] == ((1, 7),)
    assert d.list_held() == []


@pytest.mark.parametrize("kind", ORDERS)
def test_what_is_between_the_frontier_and_a_message_is_waited_for(kind: str) -> None:
    s, d = member("s", kind), member("d", kind)
    wires = [said(s, b"%d" % n, kind, n) for n in range(1, 8)]
    d.start_from({"s": 4})
    first = heard(d, [wires[5]], 20)
    assert first + heard(d, [wires[4]], 40) in ([b"5", b"6"], [b"6", b"5"])
    if kind in ("fifo", "causal", "bss", "ds", "matrix", "ses", "total"):
        assert first == []


@pytest.mark.parametrize("kind", ["causal", "bss", "ds", "matrix", "ses"])
def test_causes_behind_the_frontier_are_waited_for(kind: str) -> None:
    s, t, d = (member(name, kind) for name in ("s", "t", "d"))
    old, question = s.send(b"old"), s.send(b"question")
    for wire in (old, question):
        t.receive(wire)
    answer = t.send(b"answer")
    d.start_from({"s": 1})
    assert d.receive(answer) == []
    assert [str(one) for one in d.list_missing()] == [
        "message 2 of s is missing; 1 held message(s) wait for it"
    ]
    assert [one.payload for one in d.receive(question)] == [b"question", b"answer"]


@pytest.mark.parametrize("kind", ["causal", "bss", "bss, differences", "ds", "matrix"])
def test_what_is_sent_then_comes_after_what_counts_as_delivered(kind: str) -> None:
    s, t, d = (member(name, kind) for name in ("s", "t", "d"))
    question = s.send(b"question")
    d.start_from({"s": 1})
    answer = d.send(b"I join in")
    assert t.receive(answer) == []
    assert [one.payload for one in t.receive(question)] == [b"question", b"I join in"]


@pytest.mark.parametrize("kind", ORDERS)
def test_a_snapshot_and_a_log_keep_the_beginning(kind: str) -> None:
    s, d = member("s", kind), member("d", kind, keep_log=True)
    wires = [said(s, b"%d" % n, kind, n) for n in range(1, 5)]
    begun = d.snapshot()
    d.start_from({"s": 3})
    for stored, log in ((begun, d.take_log()), (d.snapshot(), [])):
        again = member("d", kind)
        again.restore(stored, log)
        assert again.frontier()["s"] == ((1, 3),)
        assert heard(again, [*wires[3:], wires[0]], 20) == [b"4"]


def test_an_open_group_begins_behind_members_that_it_has_not_met() -> None:
    s = Group("s", order="bss")
    wires = [s.send(b"%d" % n) for n in range(1, 4)]
    d = Group("d", order="bss", max_members=2)
    d.start_from({"s": 2})
    assert d.members == ("d", "s")
    assert heard(d, wires, 0) == [b"3"]
    with pytest.raises(RemoteError, match="max_members=2"):
        Group("e", order="bss", max_members=2).start_from({"s": 1, "t": 1})


@pytest.mark.parametrize(
    ("frontier", "words"),
    [
        ({"s": -1}, "expected an integer"),
        ({"s": True}, "expected an integer"),
        ({"s": 1 << 63}, "expected an integer"),
        ({"s": 1 << 45}, "of 's' is too high"),
        ({"z": 1}, "unknown member 'z'"),
        ({"d": 1}, "own messages of 'd'"),
        (["s"], "expected a mapping"),
    ],
)
def test_a_frontier_that_cannot_be_changes_nothing(frontier: Any, words: str) -> None:
    d = member("d", "bss")
    with unchanged(d), pytest.raises(LocalError, match=words):
        d.start_from(frontier)


@pytest.mark.parametrize("kind", ORDERS)
@pytest.mark.parametrize("what", ["sent", "received"])
def test_who_has_begun_begins_at_no_frontier(kind: str, what: str) -> None:
    s, d = member("s", kind), member("d", kind)
    if what == "sent":
        said(d, b"mine", kind)
    else:
        d.receive(said(s, b"theirs", kind), now=1)
    with pytest.raises(LocalError, match="must precede all messages"):
        d.start_from({"s": 3})
    d.start_from({})


def test_nothing_begins_behind_the_last_message_of_who_left() -> None:
    d = member("d", "causal")
    d.leave("s", 2)
    with pytest.raises(LocalError, match="'s', who left after message 2"):
        d.start_from({"s": 3})


@pytest.mark.parametrize(
    ("order", "options", "words"),
    [
        ("sent", {}, "counts messages by channel"),
        ("total-agreed", {}, "acknowledge"),
        ("total", {"sequencer": "d"}, "is the sequencer"),
        ("linear", {}, "sender_logs=True"),
        ("physical", {"bounds": BOUNDS}, "sender_logs=True"),
    ],
)
def test_an_order_that_cannot_begin_at_a_frontier_says_why(
    order: str, options: Mapping[str, Any], words: str
) -> None:
    d = Group("d", NAMES, order=order, **options)
    with pytest.raises(LocalError, match=words):
        d.start_from({"s": 3})


# -- at the first message heard ---------------------------------------------------------------


@pytest.mark.parametrize("kind", ["fifo", "bss", "ds", "matrix"])
def test_a_listener_begins_at_the_first_message_it_hears(kind: str) -> None:
    s, d = member("s", kind), member("d", kind)
    wires = [s.send(b"%d" % n) for n in range(1, 8)]
    d.start_from()
    (fifth,) = d.receive(wires[4])
    assert (fifth.payload, fifth.missing) == (b"5", (("s", 4),))
    assert d.receive(wires[2]) == []
    assert d.receive(wires[6]) == []
    assert [(m.payload, m.missing) for m in d.receive(wires[5])] == [(b"6", ()), (b"7", ())]
    assert (d.stats().duplicates, d.stats().released) == (1, 1)


@pytest.mark.parametrize("kind", ["bss", "ds", "matrix"])
def test_a_listener_assumes_the_causes_of_members_it_has_not_heard(kind: str) -> None:
    s, t, d = (member(name, kind) for name in ("s", "t", "d"))
    question = s.send(b"question")
    t.receive(question)
    answer, more = t.send(b"answer"), t.send(b"more")
    d.start_from()
    (first,) = d.receive(answer)
    assert first.missing == (("s", 1),)
    assert d.receive(question) == []  # it would come behind its answer
    assert [m.missing for m in d.receive(more)] == [()]


def test_a_listener_marks_held_messages_too_and_stores_the_marks() -> None:
    s, t, d = (member(name, "bss") for name in ("s", "t", "d"))
    wires = [t.send(b"%d" % n) for n in (1, 2)]
    s.receive(wires[0])
    (one, two, three) = (s.send(b"%d" % n) for n in (1, 2, 3))
    d.start_from()
    d.receive(one)
    t.receive(one), t.receive(two), t.receive(three)
    fourth = t.send(b"needs three")
    assert d.receive(fourth) == []
    again = member("d", "bss")
    again.restore(d.snapshot())
    for group in (d, again):
        found = group.receive(two) + group.receive(three)
        assert [(m.payload, m.missing) for m in found] == [
            (b"2", ()),
            (b"3", ()),
            (b"needs three", (("t", 2),)),
        ]


def test_a_listener_hears_of_chosen_receivers() -> None:
    s, t, d = (member(name, "ses") for name in ("s", "t", "d"))
    t.receive(s.send(b"not for d", to=["t"]))
    question = s.send(b"question")
    t.receive(question)
    answer = t.send(b"answer", to=["d"])
    d.start_from()
    (first,) = d.receive(answer)
    assert first.missing == (("s", 2),)
    assert d.receive(question) == []


def test_a_listener_without_an_order_needs_no_beginning() -> None:
    s, d = member("s", "none"), member("d", "none")
    wires = [s.send(b"%d" % n) for n in (1, 2)]
    d.start_from()
    assert [m.missing for wire in reversed(wires) for m in d.receive(wire)] == [(), ()]


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("causal", "or order 'bss'"),
        ("bss, differences", "without differences"),
        ("reply", "missing_parent='release'"),
        ("total", "use an invitation (accept), or restore a snapshot"),
        ("tv", "use an invitation (accept), or restore a snapshot"),
    ],
)
def test_an_order_in_which_nobody_can_listen_says_why(kind: str, words: str) -> None:
    d = member("d", kind)
    with pytest.raises(LocalError, match=re.escape(words)):
        d.start_from()


@pytest.mark.parametrize("kind", ["bss", "ds", "matrix"])
@pytest.mark.parametrize("seed", range(30))
def test_what_a_listener_gets_is_in_causal_order(kind: str, seed: int) -> None:
    rng = random.Random(seed)
    names = ("a", "b", "c", "d")
    order = ORDERS[kind][0]
    talkers = {name: Group(name, names, order=order) for name in names[:3]}
    pasts: dict[bytes, set[bytes]] = {}
    known: dict[str, set[bytes]] = {name: set() for name in talkers}
    flying: list[tuple[str, bytes]] = []
    wires: list[bytes] = []
    for number in range(40):
        name = rng.choice(names[:3])
        text = b"%d" % number
        pasts[text] = set(known[name])
        known[name].add(text)
        wires.append(talkers[name].send(text))
        flying += [(other, wires[-1]) for other in talkers if other != name]
        rng.shuffle(flying)
        for _ in range(rng.randrange(4)):
            if flying:
                other, there = flying.pop()
                for m in talkers[other].receive(there):
                    known[other] |= pasts[m.payload] | {m.payload}
    start = rng.randrange(5, 25)
    later = wires[start:]
    rng.shuffle(later)
    listener = Group("d", names, order=order)
    listener.start_from()
    got: list[bytes] = []
    for wire in [*later, *wires[:start]]:
        got += [m.payload for m in listener.receive(wire)]
    assert listener.list_held() == []
    assert got
    for at, text in enumerate(got):
        assert not pasts[text].intersection(got[at + 1 :]), text


def test_a_refused_message_is_no_beginning() -> None:
    d = member("d", "bss", max_packet=200)
    d.start_from()
    before = d.snapshot()
    s = Group("s", NAMES, order="bss", max_packet=1 << 20)
    s.send(b"1")
    with pytest.raises(RemoteError):
        d.receive(s.send(bytes(500)))
    assert d.snapshot() == before
