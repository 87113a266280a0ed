"""Intervals against plain Python sets, and the misprints of Bhavanasi and Iyer's algorithms."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede.core.clocks import intervals
from antecede.core.clocks.encoding.wire import ByteReader
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
    assert (len(value), bool(value)) == (len(seen), bool(seen))
    for n in range(28):
        assert intervals.contains(bounds, n) == (n in value) == (n in seen)
    for n in range(1, 28):
        gaps = [g for g in range(1, n) if g not in seen]
        assert intervals.nearest_gap(bounds, n) == max(gaps, default=0)


@pytest.mark.parametrize(
    ("number", "nodes"),
    [
        (3, ((1, 3), (5, 6), (9, 9))),  # line 8: H[k-1] = seqno
        (8, ((1, 2), (5, 6), (8, 9))),  # line 6
        (11, ((1, 2), (5, 6), (9, 9), (11, 11))),  # no right neighbour
        (5, ((1, 2), (5, 6), (9, 9))),  # a duplicate
    ],
)
def test_nodes_merge_as_the_repaired_algorithm_2_says(
    number: int, nodes: tuple[tuple[int, int], ...]
) -> None:
    bounds = list(Intervals.of([1, 2, 5, 6, 9]).bounds)
    intervals.insert(bounds, number)
    assert Intervals(tuple(bounds)).nodes == nodes
    assert intervals.nodes(bounds) == len(nodes)


def test_inner_numbers_are_present() -> None:
    found = [intervals.contains(Intervals.up_to(3).bounds, n) for n in (0, 1, 2, 3, 4, 7)]
    assert found == [False, True, True, True, False, False]
    assert Intervals.up_to(0) == Intervals()


def decoded(data: bytes) -> tuple[int, ...]:
    reader = ByteReader(data)
    bounds = intervals.read_bounds(reader)
    reader.finish()
    return tuple(bounds)


@given(NUMBERS)
def test_encoding_is_reversible(a: frozenset[int]) -> None:
    bounds = Intervals.of(a).bounds
    data = intervals.encode_bounds(bounds)
    assert decoded(data) == bounds
    for cut in range(len(data)):
        with pytest.raises(RemoteError):
            decoded(data[:cut])
    with pytest.raises(DecodeError):
        decoded(data + b"\x00")


@given(st.binary(max_size=24))
def test_random_bytes_are_refused_or_canonical(data: bytes) -> None:
    try:
        bounds = decoded(data)
    except RemoteError:
        return
    assert intervals.encode_bounds(bounds) == data


def test_absurd_numbers() -> None:
    with pytest.raises(SequenceError):
        Intervals.of([0])
    largest = Intervals.of([5, MAX_NUMBER]).bounds
    assert decoded(intervals.encode_bounds(largest)) == largest
    with pytest.raises(SequenceError):
        decoded(b"\x01" + b"\xff" * 8 + b"\x7f" + b"\x01")
    with pytest.raises(DecodeError):
        intervals.read_bounds(ByteReader(b"\xff\xff\xff\xff\xff\xff\xff\x01\x00"))
