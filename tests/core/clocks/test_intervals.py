"""Intervals against plain Python sets, and the misprints of Bhavanasi and Iyer's algorithms."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede.core.clocks import intervals
from antecede.core.clocks.encoding.wire import Reader
from antecede.core.clocks.intervals import MAX_NUMBER, Intervals
from antecede.errors import DecodeError, RemoteError, SequenceError

NUMBERS = st.frozensets(st.integers(1, 30), max_size=25)


@given(st.lists(st.integers(1, 25)))
def test_inserting_one_by_one_is_a_set(numbers: list[int]) -> None:
    bounds: list[int] = []
    seen: set[int] = set()
    for number in numbers:
        assert intervals.insert(bounds, number) == (number not in seen)
        seen.add(number)
        assert bounds == sorted(set(bounds))
        assert len(bounds) % 2 == 0
    value = Intervals(tuple(bounds))
    assert value == Intervals.of(seen)
    assert list(value) == sorted(seen)
    assert len(value) == len(seen)
    assert all((n in value) == (n in seen) for n in range(28))
    for n in range(1, 28):
        gaps = [g for g in range(1, n) if g not in seen]
        assert intervals.nearest_gap(bounds, n) == max(gaps, default=0)


def test_nodes_merge_as_the_repaired_algorithm_2_says() -> None:
    value = Intervals.of([1, 2, 5, 6, 9])
    assert value.nodes == ((1, 2), (5, 6), (9, 9))
    assert value.insert(3).nodes == ((1, 3), (5, 6), (9, 9))  # line 8: H[k-1] = seqno
    assert value.insert(8).nodes == ((1, 2), (5, 6), (8, 9))  # line 6
    assert value.insert(3).insert(4).nodes == ((1, 6), (9, 9))  # line 3: the second node's H
    assert value.insert(11).nodes == ((1, 2), (5, 6), (9, 9), (11, 11))  # no right neighbour
    assert Intervals().insert(4).nodes == ((4, 4),)  # no neighbour at all
    assert value.insert(5) == value  # a duplicate
    assert value.storage_bytes == 24
    assert intervals.nodes(value.bounds) == 3


def test_inner_numbers_are_present() -> None:
    """Algorithm 1 as printed (H <= seqno) finds neither 2 of [1, 3] nor misses 7."""
    value = Intervals.up_to(3)
    assert [n in value for n in (0, 1, 2, 3, 4, 7)] == [False, True, True, True, False, False]
    assert Intervals.up_to(0) == Intervals()


@given(NUMBERS, NUMBERS, NUMBERS)
def test_union_is_a_join_semilattice(
    a: frozenset[int], b: frozenset[int], c: frozenset[int]
) -> None:
    x, y, z = (Intervals.of(s) for s in (a, b, c))
    assert x | y == Intervals.of(a | b)
    assert x & y == Intervals.of(a & b)
    assert (x <= y) == (a <= b)
    assert (x < y) == (a < b)
    assert x | x == x
    assert x | y == y | x
    assert (x | y) | z == x | (y | z)
    assert x <= x | y
    assert not (x <= z and y <= z) or x | y <= z


@given(NUMBERS, st.integers(1, 40))
def test_inserting_only_adds(a: frozenset[int], number: int) -> None:
    assert Intervals.of(a) <= Intervals.of(a).insert(number)
    assert Intervals.of(a).insert(number) == Intervals.of(a | {number})


@given(NUMBERS)
def test_encoding_is_exact_and_reversible(a: frozenset[int]) -> None:
    value = Intervals.of(a)
    data = value.encode()
    assert len(data) == value.encoded_size
    assert Intervals.decode(data) == value
    for cut in range(len(data)):
        with pytest.raises(RemoteError):
            Intervals.decode(data[:cut])
    with pytest.raises(DecodeError):
        Intervals.decode(data + b"\x00")


@given(st.binary(max_size=24))
def test_random_bytes_are_refused_or_canonical(data: bytes) -> None:
    try:
        value = Intervals.decode(data)
    except RemoteError:
        return
    assert value.encode() == data


def test_absurd_numbers() -> None:
    with pytest.raises(SequenceError):
        Intervals.of([0])
    with pytest.raises(SequenceError):
        Intervals().insert(MAX_NUMBER + 1)
    assert len(Intervals.of([5, MAX_NUMBER]).bounds) == 4
    assert Intervals.decode(Intervals.of([5, MAX_NUMBER]).encode()).nodes[1][1] == MAX_NUMBER
    with pytest.raises(SequenceError):
        Intervals.decode(b"\x01" + b"\xff" * 8 + b"\x7f" + b"\x01")
    with pytest.raises(DecodeError):
        intervals.read_bounds(Reader(b"\xff\xff\xff\xff\xff\xff\xff\x01\x00"))
