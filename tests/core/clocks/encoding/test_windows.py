"""Bit windows and counters of members as bytes: exact, short, one spelling, no memory for nothing.

Evropeytsev et al. 2016, section 3.1.2 reduces bit vectors to their window; what the window takes
is ours.
"""

from __future__ import annotations

import itertools
import math
import random
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from antecede.core.clocks import lanes
from antecede.core.clocks.encoding import counters, rice, windows
from antecede.core.clocks.encoding.windows import MAX_POSITION, MAX_SPAN
from antecede.core.clocks.encoding.wire import varint
from antecede.core.clocks.lanes import MAX_MEMBER, MAX_VALUE
from antecede.errors import DecodeError, LocalError, RemoteError, SequenceError, UnknownMemberError

bit_windows = st.one_of(
    st.integers(0, 2**200),
    st.integers(0, 2**200).map(lambda n: 2**201 - 1 - (n & n >> 3 & n << 5)),
    st.sets(st.integers(1, 5000), max_size=5).map(lambda s: sum(1 << n for n in s)),
).map(lambda n: n | 1 if n else 0)
positions = st.integers(0, 2**50)


# -- windows ---------------------------------------------------------------------------------


@given(positions, bit_windows, st.one_of(st.none(), positions))
def test_a_window_comes_back_and_no_part_of_it_is_one(base: int, bits: int, near: int) -> None:
    data = windows.encode(base, bits, near)
    assert windows.decode(data, near) == (base if bits else 0, bits)
    for cut in range(len(data)):
        with pytest.raises(RemoteError):
            windows.decode(data[:cut], near)
    for more in (b"\0", b"\1"):
        with pytest.raises(RemoteError):
            windows.decode(data + more, near)


def window_spelling(data: bytes, near: int | None = None) -> bool:
    """Tell whether the bytes are a window; if so they must be its only spelling."""
    try:
        window = windows.decode(data, near)
    except RemoteError:
        return False
    assert windows.encode(*window, near) == data
    return True


def counter_spelling(data: bytes) -> bool:
    """Tell whether the bytes are counters; if so they must be their only spelling."""
    try:
        members, found = counters.decode(data)
    except RemoteError:
        return False
    assert members == sorted(set(members))
    assert counters.encode(members, found) == data
    return True


@pytest.mark.parametrize("span", range(1, 13))
def test_every_short_window_has_its_own_spelling(span: int) -> None:
    every = [n | 1 | 1 << (span - 1) for n in range(1 << (span - 1))]
    assert all(windows.decode(windows.encode(3, bits)) == (3, bits) for bits in every)
    assert len({windows.encode(3, bits) for bits in every}) == len(set(every))


@pytest.mark.slow
def test_all_short_bytes_are_the_only_spelling_of_what_they_say() -> None:
    good = 0
    for head, first in itertools.product(range(256), range(256)):
        good += window_spelling(bytes((head, 7, first)))
        for second in (0, 1, 2, 0x55, 0x80, 0xFF):
            good += window_spelling(bytes((head, 7, first, second)))
    assert good > 500


@given(st.binary(max_size=40), st.one_of(st.none(), st.integers(0, 300)))
def test_any_bytes_are_one_spelling_or_refused(data: bytes, near: int | None) -> None:
    window_spelling(data, near)
    counter_spelling(data)


@given(bit_windows.filter(bool), st.floats(0, 1), st.integers(0, 255))
def test_damaged_bytes_are_one_spelling_or_refused(bits: int, where: float, byte: int) -> None:
    data = bytearray(windows.encode(9, bits))
    data[int(where * (len(data) - 1))] = byte
    window_spelling(bytes(data))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\x01", "empty"),
        (b"\x08\x05", "empty"),
        (b"\x11\x05", "without numbers"),  # a parameter for no runs
        (b"\x30\x05\x03\x00", "byte of 0"),
        (b"\x30\x05\x07", "after the end"),  # three runs, two announced
        (b"\x30\x05\x08", "1 of 2"),
        (b"\x21\x05\x04", "too high"),  # 0b11 by one plane
        (b"\x20\x05\x40", "too low"),
        (b"\x18\x05\x02", "wrong kind"),  # one bit as a run of ones
        (b"\x18\x05\x01", "not trimmed"),
        (b"\x70\x05\x3f", "wrong kind"),  # seven ones as runs of zeros
    ],
)
def test_another_spelling_of_a_window_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(DecodeError, match=words):
        windows.decode(data)


def test_positions_that_can_not_be_are_refused() -> None:
    with pytest.raises(SequenceError, match=str(MAX_POSITION)):
        windows.decode(windows.encode(MAX_POSITION, 1))
    with pytest.raises(SequenceError, match="positions"):
        windows.decode(windows.encode(5, 1, near=9), near=1)
    wide = 1 | 1 << (MAX_SPAN - 1)
    assert windows.decode(windows.encode(5, wide)) == (5, wide)
    with pytest.raises(SequenceError, match="span"):
        windows.decode(windows.encode(5, 1 | 1 << (MAX_SPAN + 200)))
    dense = (1 << (MAX_SPAN + 1)) // 3 | 1 | 1 << MAX_SPAN
    with pytest.raises(SequenceError, match=str(MAX_SPAN)):
        windows.decode(windows.encode(5, dense))


@pytest.mark.parametrize("share", [0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95])
def test_a_window_takes_little_more_than_its_entropy(share: float) -> None:
    rng = random.Random(f"{share}")
    span = 4000
    bits = sum((rng.random() < share) << k for k in range(span)) | 1 | 1 << (span - 1)
    entropy = math.log2(math.comb(span, bits.bit_count())) / 8
    assert entropy < len(windows.encode(span, bits)) < 1.1 * entropy + 6


@given(bit_windows.filter(bool))
def test_a_window_is_never_longer_than_its_raw_bits_and_a_head(bits: int) -> None:
    assert len(windows.encode(100, bits)) <= bits.bit_length() // 8 + 1 + 4


# -- counters --------------------------------------------------------------------------------

named = st.one_of(
    st.dictionaries(st.integers(0, 400), st.integers(0, 2**45), max_size=30),
    st.dictionaries(st.integers(0, 60), st.integers(90, 110), max_size=60),
    st.dictionaries(st.integers(0, 60000), st.integers(1, 2), max_size=4),
).map(lambda d: (sorted(d), [d[member] for member in sorted(d)]))


@given(named)
@example(([5], [0]))
@example((list(range(300)), [7] * 300))
@example(([0, MAX_SPAN - 1], [1, MAX_POSITION]))
def test_counters_come_back_and_no_part_of_them_are_counters(
    value: tuple[list[int], list[int]],
) -> None:
    data = counters.encode(*value)
    assert counters.decode(data) == value
    for cut in range(len(data)):
        with pytest.raises(RemoteError):
            counters.decode(data[:cut])
    for more in (b"\0", b"\1"):
        with pytest.raises(RemoteError):
            counters.decode(data + more)


@given(named.filter(lambda value: len(value[0]) > 1), st.floats(0, 1), st.integers(0, 255))
def test_damaged_counters_are_one_spelling_or_refused(
    value: tuple[list[int], list[int]], where: float, byte: int
) -> None:
    data = bytearray(counters.encode(*value))
    data[int(where * (len(data) - 1))] = byte
    counter_spelling(bytes(data))


@pytest.mark.parametrize(
    ("data", "error", "words"),
    [
        (b"\x12\x05\x07", DecodeError, "have runs"),
        (b"\x10\x05\x07\x00", DecodeError, "after the end"),
        (b"\x20\x05\x07\x00\x01", DecodeError, "0 bits left for the counters of 2 members"),
        (b"\x20\x05\x07\x00\x0f", DecodeError, "after the end"),
        (b"\x20\x05\x07\x00\x15", DecodeError, "mean"),  # 8 and 8, by a mean of 7
        (b"\x20\x05\x00\x00\x0b", DecodeError, "counter -1 is negative"),
        (b"\x20\x05\x07\x41\x0f", DecodeError, "Rice codes of 65"),
    ],
)
def test_another_spelling_of_counters_is_refused(
    data: bytes, error: type[RemoteError], words: str
) -> None:
    with pytest.raises(error, match=words):
        counters.decode(data)


def test_members_and_counters_that_can_not_be_are_refused() -> None:
    with pytest.raises(LocalError, match="apart"):
        counters.encode([0, MAX_SPAN], [1, 1])
    with pytest.raises(SequenceError, match=str(MAX_POSITION)):
        counters.decode(b"\x10\x05" + varint(MAX_POSITION + 1))
    with pytest.raises(SequenceError, match="apart"):
        counters.decode(b"\x20" + varint(MAX_POSITION) + b"\x07\x00\x07")
    with pytest.raises(UnknownMemberError, match=str(MAX_MEMBER)):
        counters.decode_lanes(counters.encode([MAX_MEMBER + 1], [3]))
    with pytest.raises(SequenceError, match=str(MAX_VALUE + 1)):
        counters.decode_lanes(counters.encode([1, 2], [3, MAX_VALUE + 1]))
    with pytest.raises(DecodeError, match="message 0"):
        counters.decode_lanes(counters.encode([1, 2], [0, 2]))


@given(named)
def test_columns_are_the_items_of_packed_lanes(value: tuple[list[int], list[int]]) -> None:
    pairs = [(m, n & MAX_VALUE) for m, n in zip(*value, strict=True) if n & MAX_VALUE]
    vector = lanes.pack(pairs)
    members, found = lanes.columns(vector)
    assert list(zip(members, found, strict=True)) == list(lanes.items(vector)) == pairs
    assert lanes.pack_columns(members, found) == vector
    assert counters.decode_lanes(counters.encode_lanes(vector)) == vector


# -- numbers ---------------------------------------------------------------------------------


@given(st.lists(st.one_of(st.integers(0, 9), st.integers(0, 2**64 - 1)), max_size=30))
@example([255, 256])
@example([2**64 - 1] * 3)
def test_the_parameter_is_the_best_and_the_lowest_of_these(numbers: list[int]) -> None:
    bits = [len(numbers) * (low + 1) + sum(n >> low for n in numbers) for low in range(65)]
    low = rice.choose_parameter(numbers)
    assert low == min(range(65), key=lambda low: (bits[low], low))
    text = rice.write(numbers, low)
    assert len(text) == bits[low]
    assert rice.read(text + b"01", len(numbers), low) == (numbers, b"01")


@given(st.lists(st.integers(0, 40), min_size=1, max_size=30), st.integers(0, 9))
def test_every_other_parameter_is_refused(numbers: list[int], low: int) -> None:
    text = rice.write(numbers, low)
    if low == rice.choose_parameter(numbers):
        assert rice.read(text, len(numbers), low) == (numbers, b"")
    else:
        with pytest.raises(DecodeError, match="too"):
            rice.read(text, len(numbers), low)


# -- memory ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("decode", "data"),
    [
        (windows.decode, varint(1 << 40) + b"\x05\x01"),
        (windows.decode, b"\x2f\x05" + b"\0" * 2000 + b"\x80"),  # one run, 2 million long
        (windows.decode, b"\x1f\x05" + b"\0" * 2000 + b"\x80"),
        (counters.decode, varint(1 << 40) + b"\x05\x05\x01\x01"),
        (counters.decode, b"\x2f\x05\x05\x00" + b"\0" * 2000 + b"\xf0"),
        (counters.decode, b"\x1f\x05\x05\x00" + b"\0" * 2000 + b"\xf0"),  # 2 million members
        (counters.decode, b"\x20\x05\x05\xff\x01"),
    ],
)
def test_memory_does_not_follow_what_is_announced(
    decode: Callable[[bytes], Any], data: bytes
) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(RemoteError):
            decode(data)
        assert tracemalloc.get_traced_memory()[1] < 40 * len(data) + 20_000
    finally:
        tracemalloc.stop()
