"""Frames of a link and what batches carry: what was written comes back, and nothing else does."""

from __future__ import annotations

import string
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antecede.core.clocks.encoding.wire import ByteReader, block, varint
from antecede.errors import DecodeError, LimitError, MismatchError, RemoteError
from antecede.live import batches, wire
from antecede.live.batches import Batch
from antecede.live.events import Change, ChangeKind
from antecede.live.links import Link

LIVES = st.text(string.ascii_lowercase + string.digits, min_size=8, max_size=8)
NAMES = st.text(
    st.characters(codec="utf-8", exclude_categories=("C", "Z"), exclude_characters="~"),
    min_size=1,
    max_size=12,
)
LANES = st.builds(lambda name, life: f"{name}~{life}", NAMES, LIVES)
NUMBERS = st.integers(0, 2**63)
TABLES = st.dictionaries(LANES, NUMBERS, max_size=5)
RAW = st.binary(max_size=300)
TEXTS = st.text(max_size=60)
HELLOS = st.builds(wire.Hello, *(RAW, TEXTS, RAW, RAW, RAW, LANES, TEXTS, RAW, TABLES))
WELCOMES = st.builds(
    wire.Welcome,
    *(RAW, RAW, TABLES, st.dictionaries(LANES, TEXTS, max_size=4)),
    st.lists(LANES, max_size=4, unique=True).map(tuple),
    st.dictionaries(LANES, RAW, max_size=4),
    RAW,
)
CHANGES = st.builds(Change, st.sampled_from(ChangeKind), LANES, TEXTS)
BATCHES = st.builds(
    Batch,
    st.integers(1, batches.MAX_FIRST),
    st.lists(st.binary(max_size=200), max_size=8)
    | st.integers(0, 300).flatmap(
        lambda n: st.lists(st.binary(min_size=n, max_size=n), max_size=8)
    ),
    st.lists(CHANGES, max_size=3),
)


def body(frame: bytes) -> bytes:
    """Return the body of the one frame that this is."""
    [(_, start, end)], used, _ = wire.frames(frame)
    assert used == end == len(frame)
    return frame[start:end]


# -- what was written comes back -------------------------------------------------------------------


@given(HELLOS)
def test_a_greeting_comes_back(hello: wire.Hello) -> None:
    assert wire.unpack_hello(body(wire.pack_hello(hello))) == hello


@given(WELCOMES)
def test_a_welcome_comes_back(welcome: wire.Welcome) -> None:
    assert wire.unpack_welcome(body(wire.pack_welcome(welcome))) == welcome


@given(st.lists(LANES, max_size=6, unique=True), st.data())
def test_names_and_rows_come_back(names: list[str], data: st.DataObject) -> None:
    assert wire.read_names(body(wire.pack_names(names))) == names
    rows = {k: data.draw(NUMBERS) for k in range(len(names))}
    read = wire.read_rows(body(wire.pack_rows(wire.HAVE, rows.items())), names)
    assert read == {names[k]: number for k, number in rows.items()}


@given(BATCHES)
def test_a_batch_comes_back(batch: Batch) -> None:
    assert batches.unpack(batches.pack(batch)) == batch


# -- what was damaged ------------------------------------------------------------------------------


def _readers() -> list[tuple[Any, bytes]]:
    names = ["a~00000000", "b~00000000"]
    hello = wire.Hello(b"r", "idr", b"o", b"g", b"v", names[0], "h:1", b"owner", {names[1]: 300})
    welcome = wire.Welcome(
        b"g", b"inv", {names[0]: 7}, {names[0]: "h:1"}, (names[1],), {names[0]: b"o"}, b"history"
    )
    batch = Batch(300, [b"abc", b"", b"x" * 200], [Change(ChangeKind.JOINED, names[0], "h:1")])
    even = Batch(1, [b"abcd"] * 5, [Change(ChangeKind.PUT_OUT, names[1], "why")])
    return [
        (wire.unpack_hello, body(wire.pack_hello(hello))),
        (wire.unpack_welcome, body(wire.pack_welcome(welcome))),
        (wire.read_names, body(wire.pack_names(names))),
        (lambda raw: wire.read_rows(raw, names), body(wire.pack_rows(wire.GONE, [(1, 900)]))),
        (batches.unpack, batches.pack(batch)),
        (batches.unpack, batches.pack(even)),
    ]


@pytest.mark.parametrize("which", range(6))
def test_what_is_cut_short_is_refused_or_sound(which: int) -> None:
    read, raw = _readers()[which]
    refused = 0
    for end in range(len(raw)):
        try:
            read(raw[:end])
        except RemoteError:
            refused += 1
    assert refused > len(raw) // 4


@pytest.mark.parametrize("which", range(6))
def test_flipped_bits_are_refused_or_sound(which: int) -> None:
    read, raw = _readers()[which]
    refused = 0
    for at in range(len(raw)):
        for bit in range(8):
            damaged = bytearray(raw)
            damaged[at] ^= 1 << bit
            try:
                read(bytes(damaged))
            except RemoteError:
                refused += 1
    assert refused


@given(st.binary(max_size=200))
@settings(max_examples=300)
def test_any_bytes_are_refused_or_sound(raw: bytes) -> None:
    for read, _ in _readers():
        try:
            read(raw)
        except RemoteError:
            continue


def test_another_version_is_said() -> None:
    raw = bytearray(_readers()[0][1])
    raw[0] = wire.VERSION + 1
    with pytest.raises(MismatchError, match=f"version {wire.VERSION + 1}"):
        wire.unpack_hello(bytes(raw))


@pytest.mark.parametrize(
    "raw",
    [
        varint(1) + varint(2**62),  # messages that are not there
        varint(1) + varint(3) + varint(2**62) * 3,  # lengths beyond the end
        varint(1) + varint(100_000) + b"\x00" * 99_999,  # one length short
        varint(0) + varint(0),
    ],
)
def test_batches_that_promise_too_much_are_refused_and_cost_nothing(raw: bytes) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(DecodeError):
            batches.unpack(raw)
        assert tracemalloc.get_traced_memory()[1] < 20 * len(raw) + 100_000
    finally:
        tracemalloc.stop()


def test_tables_that_promise_too_much_are_refused() -> None:
    for count in (wire.MAX_LANES + 1, 2**63):
        with pytest.raises(DecodeError, match="lanes announced"):
            wire.read_table(ByteReader(varint(count)))
    with pytest.raises(DecodeError):
        wire.read_table(ByteReader(varint(1000) + b"\x00"))


def test_a_batch_of_changes_alone_is_bounded() -> None:
    one = bytes((ChangeKind.LEFT,)) + block(b"a~00000000") + block(b"")
    sound = varint(1) + varint(0) + one * batches.MAX_CHANGES
    assert len(batches.unpack(sound).changes) == batches.MAX_CHANGES
    with pytest.raises(DecodeError, match="changes"):
        batches.unpack(sound + one)


# -- a link ----------------------------------------------------------------------------------------


def kinds_and_bodies(link: Link, data: bytes) -> list[tuple[int, bytes]]:
    return list(link.read(data))


def linked() -> Link:
    link = Link(1, "b", 0, dialed=False)
    link.lane = "b~00000000"
    return link


@given(
    st.lists(st.tuples(st.integers(0, 255), st.binary(max_size=400)), max_size=12),
    st.lists(st.integers(1, 90), min_size=1, max_size=20),
)
def test_frames_come_out_however_the_bytes_were_cut(
    frames: list[tuple[int, bytes]], sizes: list[int]
) -> None:
    stream = b"".join(wire.framed(kind, raw) for kind, raw in frames)
    link, found, at, turn = linked(), [], 0, 0
    while at < len(stream):
        size = sizes[turn % len(sizes)]
        found += kinds_and_bodies(link, stream[at : at + size])
        at, turn = at + size, turn + 1
    assert found == frames


def test_a_frame_in_many_pieces_is_looked_at_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = 0
    frames = wire.frames

    def counted(data: bytes, *more: Any) -> Any:
        nonlocal looked
        looked += len(data)
        return frames(data, *more)

    monkeypatch.setattr(wire, "frames", counted)
    frame, link = wire.framed(wire.BATCH, bytes(100_000)), linked()
    found = [one for at in range(len(frame)) for one in kinds_and_bodies(link, frame[at : at + 1])]
    assert [len(raw) for _, raw in found] == [100_000]
    assert looked < 2 * len(frame)


def test_frames_too_long_are_refused_before_they_have_come() -> None:
    stranger = Link(1, "b", 0, dialed=False)
    with pytest.raises(LimitError, match=str(wire.MAX_FIRST)):
        kinds_and_bodies(stranger, varint(wire.MAX_FIRST + 1))
    with pytest.raises(LimitError, match=str(wire.MAX_FRAME)):
        kinds_and_bodies(linked(), varint(wire.MAX_FRAME + 1))
    with pytest.raises(LimitError, match="35 bits"):
        kinds_and_bodies(linked(), b"\xff" * 9)
    with pytest.raises(DecodeError, match="kind"):
        kinds_and_bodies(linked(), b"\x00")
