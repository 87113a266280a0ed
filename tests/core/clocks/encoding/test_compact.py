"""Compact vectors: one spelling each, the shorter form, nothing else is read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede.core.clocks import lanes
from antecede.core.clocks.encoding.compact import encode_compact, nonzero, read_compact
from antecede.core.clocks.encoding.wire import ByteReader, varint
from antecede.core.clocks.lanes import MAX_VALUE, guards, pack
from antecede.errors import DecodeError, RemoteError, SequenceError, UnknownMemberError

MOST = 1000
counters = st.one_of(st.just(0), st.integers(0, 300), st.integers(0, MAX_VALUE))
vectors = st.lists(counters, max_size=40).map(lambda row: pack(enumerate(row)))


def read(data: bytes, most: int = MOST) -> int:
    reader = ByteReader(data)
    vector = read_compact(reader, most)
    reader.finish()
    return vector


@given(vector=vectors)
def test_what_was_written_is_read(vector: int) -> None:
    assert read(encode_compact(vector)) == vector


@given(vector=vectors)
def test_nonzero_gives_what_items_gives(vector: int) -> None:
    assert list(nonzero(vector)) == list(lanes.items(vector))


def test_nonzero_sees_guard_bits() -> None:
    assert [lane for lane, _ in nonzero(guards(3))] == [0, 1, 2]


@given(data=st.binary(max_size=30))
def test_a_vector_has_one_spelling(data: bytes) -> None:
    try:
        vector = read(data)
    except RemoteError:
        return
    assert encode_compact(vector) == data


@given(vector=vectors, where=st.floats(0, 1), byte=st.integers(0, 255))
def test_damaged_bytes_are_refused_or_are_another_vector(
    vector: int, where: float, byte: int
) -> None:
    data = bytearray(encode_compact(vector))
    data[int(where * (len(data) - 1))] = byte
    try:
        other = read(bytes(data))
    except RemoteError:
        return
    assert encode_compact(other) == data


@pytest.mark.parametrize("counter", [1, 200, 70_000, MAX_VALUE])
def test_sparse_vectors_take_pairs_and_full_ones_as_few_bytes_a_lane_as_fit(counter: int) -> None:
    width = (counter.bit_length() + 7) // 8
    sparse = encode_compact(pack([(99, counter)]))
    assert sparse == b"\0" + varint(1) + varint(99) + varint(counter)
    full = encode_compact(pack((k, counter) for k in range(100)))
    assert full[0] == width
    assert len(full) == 1 + len(varint(100)) + 100 * width


def test_half_full_is_where_the_forms_meet() -> None:
    assert encode_compact(pack([(1, 1), (3, 1)]))[0] == 1
    assert encode_compact(pack([(1, 1), (4, 1)]))[0] == 0


def test_the_empty_vector() -> None:
    assert encode_compact(0) == b"\x01\x00"
    assert read(b"\x01\x00") == 0


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", DecodeError),
        (b"\x06\x00", DecodeError),  # no lane has six bytes
        (b"\x01" + varint(10**9), UnknownMemberError),  # more lanes than can be
        (b"\x01\x05\x01", DecodeError),  # five announced, one there
        (b"\x01\x02\x01\x00", DecodeError),  # the last lane is 0
        (b"\x02\x01\x01\x00", DecodeError),  # two bytes where one would do
        (b"\x02\x00", DecodeError),
        (b"\x01\x03\x00\x00\x01", DecodeError),  # pairs would be shorter
        (b"\x00\x00", DecodeError),  # no pair at all is the other form
        (b"\x00\x01\x00\x01", DecodeError),  # the other form would be shorter
        (b"\x00\x01\x05\x00", DecodeError),  # a pair of 0
        (b"\x00" + varint(10**9), DecodeError),
        (b"\x00\x01" + varint(MOST) + b"\x01", UnknownMemberError),
        (b"\x00\x01\x05" + varint(MAX_VALUE + 1), SequenceError),
        (b"\x05\x01\xff\xff\xff\xff\xff", SequenceError),
    ],
)
def test_what_cannot_be_is_refused(data: bytes, error: type[RemoteError]) -> None:
    with pytest.raises(error):
        read(data)


def test_memory_does_not_follow_an_announced_number() -> None:
    with pytest.raises(UnknownMemberError):
        read(b"\x00\x01" + varint(2**60) + b"\x01")
