"""Stored bytes: content, version 1, and forged ones."""

from __future__ import annotations

import contextlib
import random
import tracemalloc
import zlib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from antecede import Group
from antecede.core.clocks.encoding.wire import ByteReader, block, varint
from antecede.core.protocols.base import MessageId
from antecede.core.protocols.serialization import codec
from antecede.core.protocols.serialization.codec import KINDS, MAGIC, pack_state, unpack_state
from antecede.errors import DecodeError, LocalError, RemoteError
from tests.helpers.stored_groups import (
    JOINABLE,
    ORDERS,
    ROLES,
    START_S,
    TOPICS,
    fresh,
    options_of,
    story,
)
from tests.helpers.unchanged import unchanged

GOLDEN = Path(__file__).parents[2] / "golden"
EVERY = (*ORDERS, *ROLES)


def stored(body: bytes, version: int = codec.VERSION) -> bytes:
    return MAGIC + bytes((version,)) + zlib.crc32(body).to_bytes(4, "little") + body


def held(group: Group) -> list[tuple[str, int, bytes]]:
    return [blocked.message[:3] for blocked in group.list_held()]


# -- version 1 ------------------------------------------------------------------------------


@pytest.mark.parametrize("order", EVERY)
def test_bytes_of_version_1_are_read_and_go_on(order: str, request: pytest.FixtureRequest) -> None:
    told = story(order)
    path = GOLDEN / f"{order}.snapshot"
    if request.config.getoption("--rewrite-goldens"):
        path.write_bytes(told.group.snapshot())
    again = fresh(order)
    again.restore(path.read_bytes())
    assert held(again) == held(told.group)
    now: dict[str, Any] = {} if order in ROLES else {"now": START_S + 14.0}
    for wire in told.late:
        assert again.receive(wire, **now) == told.group.receive(wire, **now)
    later = START_S + 60.0
    assert again.tick(later) == told.group.tick(later)
    assert held(again) == held(told.group)


@pytest.mark.parametrize("order", JOINABLE)
def test_invitations_of_version_1_are_accepted(order: str, request: pytest.FixtureRequest) -> None:
    path = GOLDEN / f"{order}.invitation"
    invitation = story(order).group.invite("dave")
    if request.config.getoption("--rewrite-goldens"):
        path.write_bytes(invitation)
    dave = Group.accept("dave", path.read_bytes(), **options_of(order))
    assert dave.members == ("alice", "bob", "carol", "dave")
    same = Group.accept("dave", invitation, **options_of(order))
    assert dave._state.protocol.snapshot() == same._state.protocol.snapshot()


@pytest.mark.parametrize("order", ORDERS)
def test_frames_of_version_1_are_read_and_written(
    order: str, request: pytest.FixtureRequest
) -> None:
    how: dict[str, Any] = {"topics": ("news",)} if order in TOPICS else {}
    wire = fresh(order, "alice").send(b"hello", now=START_S, **how)
    path = GOLDEN / f"{order}.frame"
    if request.config.getoption("--rewrite-goldens"):
        path.write_bytes(wire)
    assert wire == path.read_bytes()
    envelope = fresh(order, "bob").inspect(path.read_bytes())
    assert (envelope.sender, envelope.seq, envelope.payload) == ("alice", 1, b"hello")


@pytest.mark.parametrize("order", EVERY)
def test_stored_bytes_name_no_module_and_no_class(order: str) -> None:
    group = story(order).group
    files = [group.snapshot()]
    if order in JOINABLE:
        files.append(group.invite("dave"))
    for data in files:
        for kind in KINDS.values():
            assert kind.cls.encode() not in data
        assert b"antecede." not in data
        assert b"pickle" not in data


def test_every_name_in_stored_bytes_leads_to_a_class_with_these_fields() -> None:
    for name, kind in KINDS.items():
        cls = codec._class_of(name)
        assert len(cls._fields) == len(kind.fields), name
        assert codec._name_of(cls) == name


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False)
        | st.text()
        | st.binary()
        | st.builds(MessageId, st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1)),
        lambda inner: st.lists(inner).map(tuple),
        max_leaves=20,
    )
)
def test_what_is_written_is_read(value: object) -> None:
    (again,) = unpack_state(pack_state((value,)), 1)
    assert again == value
    assert type(again) is type(value)


@pytest.mark.parametrize("value", [[1], {1: 2}, {1}, object(), b"x".__class__])
def test_what_has_no_place_is_refused_when_it_is_written(value: Any) -> None:
    with pytest.raises(LocalError, match="cannot store a"):
        pack_state((value,))


# -- forged bytes ---------------------------------------------------------------------------


def nested(depth: int) -> bytes:
    return b"\x08\x01" * depth + b"\x00"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"\x08" + varint(1 << 40), "a tuple of"),
        (b"\x07" + varint(1 << 40), "announced"),
        (b"\x06" + varint(1 << 40), "announced"),
        (b"\x04" + varint(1 << 40), "announced"),
        (nested(65), "deep"),
        (nested(100_000), "deep"),
        (b"\x09" + block(b"os.system") + b"\x00", "unknown type"),
        (b"\x09" + block(b"id") + b"\x06\x01x\x03\x01", "field 0 of 'id'"),
        (b"\x05" + b"\x00" * 6 + b"\xf8\x7f", "not a number"),
        (b"\x06" + block(b"\xff\xfe"), "not UTF-8"),
        (b"\x63", "tag 99"),
        (b"", "announced"),
        (b"\x00\x00", "after the end"),
        (b"\x03\x01", "another kind"),
    ],
)
def test_a_forged_state_makes_nothing_large(body: bytes, words: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(DecodeError, match=words):
            Group.accept("dave", stored(body))
        assert tracemalloc.get_traced_memory()[1] < 1 << 21
    finally:
        tracemalloc.stop()


def test_states_of_other_versions_are_told_apart() -> None:
    with pytest.raises(DecodeError, match="another format version"):
        Group.accept("dave", stored(b"\x08\x00", version=2))
    with pytest.raises(DecodeError, match="not a stored state"):
        Group.accept("dave", b"antecede-state-1\n" + bytes(20))
    with pytest.raises(DecodeError, match="truncated or changed"):
        Group.accept("dave", stored(b"\x08\x00") + b"\x00")


def changed(value: Any, rng: random.Random) -> Any:
    """Return nested tuples with one value replaced."""
    odd = rng.choice(
        (None, -1, 2**70, 10**9, 3, "x", b"x", 0.5, float("inf"), (), ((1, 2),), True, "\x00")
    )
    if not isinstance(value, tuple) or not value or rng.random() < 0.1:
        return odd
    place = rng.randrange(len(value))
    items = list(value)
    items[place] = changed(items[place], rng)
    return tuple(items) if type(value) is tuple else type(value)(*items)


@pytest.mark.few(12)
@pytest.mark.parametrize("order", EVERY)
@given(seed=st.integers(0, 2**32))
@example(seed=135)  # linear: a number sent to a member that was not given out yet
@example(seed=437588)  # physical: a negative own number
@example(seed=242819)  # external: a held message of an unknown member
@example(seed=625)  # sb: the same
@example(seed=8420)  # sb: lists as printed that lack members
@example(seed=2097151)  # total-agreed: a table of times without a member
@example(seed=325)  # orders by clocks: what is ahead of a gap lacks a member
def test_a_changed_snapshot_is_refused_or_serves(order: str, seed: int) -> None:
    rng = random.Random(seed)
    told = _told(order)
    parts = unpack_state(told[0], len(unpack_all(told[0])))
    again = fresh(order)
    before = again.snapshot()
    try:
        data = pack_state(changed(parts, rng))
    except LocalError:
        return
    try:
        again.restore(data)
    except (DecodeError, LocalError):
        assert again.snapshot() == before
        return
    _use(again, told[1], order)


@pytest.mark.parametrize("order", JOINABLE)
@given(seed=st.integers(0, 2**32))
def test_a_changed_invitation_is_refused_or_serves(order: str, seed: int) -> None:
    rng = random.Random(seed)
    invitation, wires = _invited(order)
    parts = unpack_state(invitation, len(unpack_all(invitation)))
    try:
        data = pack_state(changed(parts, rng))
    except LocalError:
        return
    try:
        dave = Group.accept("dave", data, **options_of(order))
    except (DecodeError, LocalError):
        return
    _use(dave, wires, order)


def _use(group: Group, wires: list[bytes], order: str) -> None:
    """Use an accepted group; only typed errors may follow."""
    for wire in wires:
        with contextlib.suppress(RemoteError):
            group.receive(wire, now=START_S + 20.0)
    for call in (
        lambda: group.tick(START_S + 30.0),
        lambda: group.tick(START_S + 90.0),
        group.list_held,
        group.snapshot,
        group.take_control_packets,
        lambda: group.members,
    ):
        call()
    with contextlib.suppress(LocalError):
        group.send_packets(b"x", now=START_S + 91.0)
        group.invite("eve")


_STORIES: dict[str, tuple[bytes, list[bytes]]] = {}
_INVITED: dict[str, tuple[bytes, list[bytes]]] = {}


def _told(order: str) -> tuple[bytes, list[bytes]]:
    if order not in _STORIES:
        told = story(order)
        _STORIES[order] = told.group.snapshot(), told.late
    return _STORIES[order]


def _invited(order: str) -> tuple[bytes, list[bytes]]:
    if order not in _INVITED:
        told = story(order)
        _INVITED[order] = told.group.invite("dave"), told.late
    return _INVITED[order]


def unpack_all(data: bytes) -> tuple[Any, ...]:
    """Return the values of stored bytes, however many there are."""
    reader = ByteReader(data, len(MAGIC) + 5)
    values = codec._read(reader, 0)
    assert isinstance(values, tuple)
    return values


def test_a_bad_record_of_the_log_is_named_and_changes_nothing() -> None:
    names = ("a", "b")
    sender, receiver = Group("a", names), Group("b", names, keep_log=True)
    state = receiver.snapshot()
    for text in (b"one", b"two"):
        receiver.receive(sender.send(text))
    good = receiver.take_log()
    assert len(good) == 2
    again = Group("b", names)
    for log, number in (([b"junk"], 1), ([good[0], b"", good[1]], 2), ([*good, b"\0" * 9], 3)):
        with (
            unchanged(again),
            pytest.raises(DecodeError, match=f"^record {number} of the log is invalid: "),
        ):
            again.restore(state, log)
    with pytest.raises(DecodeError, match=r"^not a stored state"):
        again.restore(b"junk", good)
    again.restore(state, good)
    assert again.frontier() == receiver.frontier()


# -- states with a hole ---------------------------------------------------------------------


def with_a_hole(value: Any) -> Iterator[Any]:
    """Yield nested tuples with one item of a plain tuple removed, in every way."""
    if not isinstance(value, tuple):
        return
    for place, item in enumerate(value):
        if type(value) is tuple:
            yield (*value[:place], *value[place + 1 :])
        for inner in with_a_hole(item):
            items = [*value[:place], inner, *value[place + 1 :]]
            yield tuple(items) if type(value) is tuple else type(value)(*items)


def swapped(value: Any, one: int, other: int) -> Iterator[Any]:
    """Yield nested tuples with one number replaced, in every way."""
    if value == one and type(value) is int:
        yield other
    if not isinstance(value, tuple):
        return
    for place, item in enumerate(value):
        for inner in swapped(item, one, other):
            items = [*value[:place], inner, *value[place + 1 :]]
            yield tuple(items) if type(value) is tuple else type(value)(*items)


def _serves_or_is_refused(order: str, inner: Any) -> None:
    stored, late = _told(order)
    parts = unpack_all(stored)
    again = fresh(order)
    before = again.snapshot()
    try:
        again.restore(pack_state((*parts[:-1], inner)))
    except DecodeError:
        assert again.snapshot() == before
        return
    _use(again, late, order)


@pytest.mark.few(9)
@pytest.mark.parametrize("order", EVERY)
def test_a_state_without_one_of_its_items_is_refused_or_serves(order: str) -> None:
    for inner in with_a_hole(unpack_all(_told(order)[0])[-1]):
        _serves_or_is_refused(order, inner)


@pytest.mark.slow
@pytest.mark.parametrize("order", EVERY)
def test_a_state_with_another_member_somewhere_is_refused_or_serves(order: str) -> None:
    for one, other in ((0, 1), (1, 0), (2, 1), (1, 2)):
        for inner in swapped(unpack_all(_told(order)[0])[-1], one, other):
            _serves_or_is_refused(order, inner)


@pytest.mark.parametrize("order", JOINABLE)
def test_a_frontier_with_a_hole_or_another_member_is_refused_or_serves(order: str) -> None:
    invitation, wires = _invited(order)
    *parts, frontier = unpack_all(invitation)
    pairs = ((0, 1), (1, 0), (2, 1), (1, 3), (3, 1))
    changes = chain(with_a_hole(frontier), *(swapped(frontier, *pair) for pair in pairs))
    for changed_frontier in changes:
        data = pack_state((*parts, changed_frontier))
        try:
            dave = Group.accept("dave", data, **options_of(order))
        except (DecodeError, LocalError):
            continue
        _use(dave, wires, order)
