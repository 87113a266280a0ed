"""The compiled sizes of control information are the lengths of what the classes encode."""

from __future__ import annotations

import random

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede.core.clocks import lanes
from antecede.core.clocks.bits import trim
from antecede.core.clocks.encoding import counters, windows
from antecede.core.protocols.hierarchical.messages import Downward, External, Upward, encode
from antecede.core.protocols.vector.bss import Bss, BssMessage
from antecede.core.protocols.vector.ds import Ds, DsMessage
from antecede.core.protocols.vector.idr import Idr, IdrMessage
from antecede.lab.simulate.compiled import sizes

numbers = st.integers(0, 2**34)
bits = st.one_of(
    st.integers(0, 2**300),
    st.integers(0, 2**300).map(lambda n: (1 << 300) - 1 - (n & n >> 7 & n << 11)),
    st.sets(st.integers(0, 9000), max_size=6).map(lambda s: sum(1 << n for n in s)),
)
vectors = st.dictionaries(st.integers(0, 2000), st.integers(1, 2**34), max_size=40)
near_vectors = st.dictionaries(st.integers(0, 60), st.integers(100, 110), max_size=60)


def ints(values: list[int]) -> npt.NDArray[np.int64]:
    return np.array(values, dtype=np.int64)


def words(window: int) -> npt.NDArray[np.uint64]:
    """Return the words of a window, with a word of zeros behind it."""
    raw = window.to_bytes((window.bit_length() // 64 + 2) * 8, "little")
    return np.frombuffer(raw, dtype="<u8").astype(np.uint64)


@given(st.one_of(vectors, near_vectors), numbers, numbers)
def test_messages_with_pairs(named: dict[int, int], sender: int, seq: int) -> None:
    members = sorted(named)
    packed = lanes.pack(named.items())
    size = sizes.pairs_message_size(
        sender, seq, ints(members), ints([named[member] for member in members]), len(members)
    )
    dense = ints([named.get(member, 0) for member in range(2001)])
    assert sizes.vector_message_size(sender, seq, dense) == size
    for made in (
        Idr(0, range(2)).encode(IdrMessage(sender, seq, None, packed)),
        Ds(0, range(2)).encode(DsMessage(sender, seq, None, packed)),
        Bss(0, range(2)).encode(BssMessage(sender, seq, None, packed)),
        Bss(0, range(2), differences=True).encode(BssMessage(sender, seq, None, packed)),
    ):
        assert len(made) == size


@given(numbers, numbers, numbers, numbers, bits)
def test_internal_messages(sender: int, seq: int, other: int, base: int, window: int) -> None:
    dv = trim(base, window)
    down = encode(Downward(sender, seq, other, dv, None))
    assert sizes.internal_size(sender, seq, other, seq, base, words(window)) == len(down)
    up = encode(Upward(sender, seq, dv, other, None))
    assert sizes.internal_size(sender, seq, other, other, base, words(window)) == len(up)


@given(
    numbers,
    numbers,
    st.one_of(vectors, near_vectors),
    st.dictionaries(st.integers(0, 300), st.tuples(numbers, bits), max_size=3),
    numbers,
    bits,
)
def test_external_messages(
    sender: int,
    seq: int,
    named: dict[int, int],
    ci: dict[int, tuple[int, int]],
    base: int,
    translated: int,
) -> None:
    members = sorted(named)
    entries = [sizes.vector_entry_size(s, base, words(v)) for s, (base, v) in ci.items()]
    size = sizes.external_size(
        sender,
        seq,
        sizes.counters_size(
            ints(members), ints([named[member] for member in members]), len(members)
        ),
        sum(entries),
        sum(entry > 0 for entry in entries),
        sizes.window_size(base, words(translated)),
    )
    message = External(
        sender,
        seq,
        tuple(sorted(named.items())),
        tuple((s, trim(*v)) for s, v in sorted(ci.items()) if v[1]),
        trim(base, translated),
        None,
    )
    assert size == len(encode(message))


@pytest.mark.parametrize("share", [0.003, 0.02, 0.1, 0.3, 0.45, 0.5, 0.55, 0.7, 0.9, 0.98, 1.0])
@pytest.mark.parametrize("span", [2, 64, 700, 4000])
def test_windows_and_sets_of_every_density(span: int, share: float) -> None:
    rng = random.Random(f"{span} {share}")
    for _ in range(5):
        window = sum((rng.random() < share) << k for k in range(span)) | 1
        for near in (None, 1000):
            expected = len(windows.encode(900, window, near))
            found = (
                sizes.window_size(900, words(window))
                if near is None
                else sizes.near_window_size(900, words(window), near)
            )
            assert found == expected
        members = [k for k in range(span) if window >> k & 1]
        seqs = [round(rng.gauss(500, span / 100)) for _ in members]
        expected = len(counters.encode(members, seqs))
        assert sizes.counters_size(ints(members), ints(seqs), len(members)) == expected
