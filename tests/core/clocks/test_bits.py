"""Bit vectors against plain Python sets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede.core.clocks import bits
from antecede.core.clocks.bits import MAX_POSITION, MAX_SPAN
from antecede.core.clocks.encoding.wire import ByteReader
from antecede.errors import DecodeError, RemoteError, SequenceError
from examples.clocks.bits import BitVector, place, rebase

# Near the origin, around a prefix, and far away: windows that touch, overlap and are apart.
NEAR = st.frozensets(st.integers(1, 24), max_size=14)
VECTORS = st.builds(
    lambda prefix, near, at: frozenset(range(1, prefix + 1)) | {at + p for p in near},
    st.integers(0, 20),
    NEAR,
    st.sampled_from([0, 0, 5, 40, 70]),
)


def vector(positions: frozenset[int]) -> BitVector:
    return BitVector.of(positions)


@given(VECTORS)
def test_is_the_set_of_its_positions(a: frozenset[int]) -> None:
    v = vector(a)
    assert set(v) == a
    assert len(v) == len(a)
    assert list(v) == sorted(a)
    assert v.last == max(a, default=0)
    assert all((p in v) == (p in a) for p in range(1, 130))
    assert 0 in v
    assert -1 not in v


@given(VECTORS, VECTORS)
def test_operators_are_those_of_sets(a: frozenset[int], b: frozenset[int]) -> None:
    assert vector(a) | vector(b) == vector(a | b)
    assert vector(a) & vector(b) == vector(a & b)
    assert vector(a) - vector(b) == vector(a - b)
    assert (vector(a) <= vector(b)) == (a <= b)
    assert (vector(a) < vector(b)) == (a < b)
    assert (vector(a) == vector(b)) == (a == b)
    assert a != b or hash(vector(a)) == hash(vector(b))


@given(VECTORS)
def test_encoding_is_exact_and_reversible(a: frozenset[int]) -> None:
    v = vector(a)
    data = v.encode()
    assert len(data) == v.encoded_size
    assert BitVector.decode(data) == v
    for cut in range(len(data)):
        with pytest.raises(RemoteError):
            BitVector.decode(data[:cut])
    with pytest.raises(DecodeError):
        BitVector.decode(data + b"\x00")


@given(st.binary(max_size=24))
def test_random_bytes_are_refused_or_canonical(data: bytes) -> None:
    try:
        v = BitVector.decode(data)
    except RemoteError:
        return
    assert v.encode() == data


@given(VECTORS)
def test_sizes_are_those_of_the_paper(a: frozenset[int]) -> None:
    v = vector(a)
    first_clear = next(p for p in range(1, 200) if p not in a)
    if a:
        assert v.span_bytes == -(-(max(a) - min(a) + 1) // 8)
    else:
        assert v.span_bytes == 0
    assert v.window_bytes == (-(-(max(a) - first_clear + 1) // 8) if v.last > first_clear else 0)


def test_far_positions_cost_nothing_alone() -> None:
    far = BitVector.of([MAX_POSITION])
    assert far.bits == 1
    assert BitVector.decode(far.encode()) == far
    assert far & BitVector.of([1, 2]) == BitVector()
    assert far - BitVector.of([1]) == far


def test_memory_does_not_follow_an_absurd_position() -> None:
    with pytest.raises(SequenceError):
        BitVector.of([2, 10**15])
    with pytest.raises(SequenceError):
        BitVector.of([2]).set(10**15)
    with pytest.raises(SequenceError):
        BitVector.of([2]) | BitVector.of([MAX_SPAN + 3])
    with pytest.raises(SequenceError):
        BitVector.of(prefix=10**15) - BitVector.of([2])
    with pytest.raises(SequenceError):
        BitVector.of([MAX_POSITION + 1])
    with pytest.raises(SequenceError):
        BitVector.of([-1])


@pytest.mark.parametrize(
    "data",
    [
        b"\x05\x02\x10\x05",  # a window that touches the prefix
        b"\x05\x02\x10\x02",  # a window below the prefix
        b"\x00\x03\x10\x05\x00",  # bytes of a window left over
        b"\x00\x00\x00",  # bytes left over
    ],
)
def test_a_second_spelling_is_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        BitVector.decode(data)


def test_an_announced_size_is_refused_before_it_is_read() -> None:
    with pytest.raises(DecodeError, match="announced"):
        bits.read_window(ByteReader(b"\xff\xff\xff\xff\x0f\x00"))
    with pytest.raises(SequenceError, match="positions"):
        bits.read_window(ByteReader(b"\x0b\x20" + b"\xff" * 8 + b"\x7f" + b"\x01"))


# -- plain functions -------------------------------------------------------------------------


@given(NEAR, st.integers(0, 10), st.integers(0, 40))
def test_rebase_keeps_positions_above(a: frozenset[int], base: int, to: int) -> None:
    window = sum(1 << (p - 1) for p in a)
    there = {base + p for p in a}
    moved = rebase(base, window, to)
    assert set(bits.positions(to, moved)) == {p for p in there if p > to}


@given(NEAR, st.integers(0, 30))
def test_absorb_and_trim_keep_the_set(a: frozenset[int], base: int) -> None:
    window = sum(1 << (p - 1) for p in a)
    top, rest = bits.absorb(base, window)
    assert set(range(base + 1, top + 1)) | set(bits.positions(top, rest)) == {base + p for p in a}
    assert not rest & 1
    low, rest = bits.trim(base, window)
    assert set(bits.positions(low, rest)) == {base + p for p in a}
    assert rest & 1 or (low, rest) == (0, 0)
    assert bits.read_window(ByteReader(bits.encode_window(base, window))) == (low, rest)


def test_plain_functions_refuse_what_is_too_far() -> None:
    with pytest.raises(SequenceError):
        place(10**15, 3)
    with pytest.raises(SequenceError):
        rebase(10**15, 1, 3)
    assert rebase(10**15, 0, 3) == 0
    assert place(3, 3) == 0
    assert place(4, 3) == 1
