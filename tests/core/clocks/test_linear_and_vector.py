"""Linear and vector clocks: their algebra, their bytes, and members that come and go."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede.core.clocks.encoding.wire import varint
from antecede.core.clocks.lanes import MAX_MEMBER
from antecede.errors import DecodeError, LocalError, RemoteError, SequenceError, UnknownMemberError
from examples.clocks.linear import LinearClock
from examples.clocks.vector import MAX_COUNTER, VectorClock

LINEAR = st.integers(0, 2**40).map(LinearClock)
ENTRIES = st.dictionaries(
    st.integers(0, 6), st.one_of(st.integers(0, 3), st.none(), st.just(MAX_COUNTER))
)


def clock(entries: dict[int, int | None]) -> VectorClock:
    """None stands for a member that left."""
    counters = {m: c for m, c in entries.items() if c is not None}
    return VectorClock.of(counters, [m for m, c in entries.items() if c is None])


def rank(entries: dict[int, int | None], member: int) -> int:
    """The place of an entry on its chain, worked out without lanes."""
    if member not in entries:
        return -1
    counter = entries[member]
    return MAX_COUNTER + 1 if counter is None else counter


VECTORS = ENTRIES.map(clock)


@given(LINEAR, LINEAR)
def test_a_receipt_is_later_than_both_sides(a: LinearClock, b: LinearClock) -> None:
    """Tsuneizumi et al. as printed takes the maximum alone; then b = a.receive(b) is possible."""
    assert a.receive(b) > a
    assert a.receive(b) > b
    assert a.tick() > a
    assert a.merge(b) == b.merge(a) == max(a, b)


@given(LINEAR)
def test_linear_bytes(a: LinearClock) -> None:
    assert len(a.encode()) == a.encoded_size
    assert LinearClock.decode(a.encode()) == a
    assert a.storage_bytes == 4
    with pytest.raises(DecodeError):
        LinearClock.decode(a.encode() + b"\x00")
    with pytest.raises(DecodeError):
        LinearClock.decode(a.encode()[:-1])


@given(ENTRIES, ENTRIES)
def test_order_is_that_of_the_chains(a: dict[int, int | None], b: dict[int, int | None]) -> None:
    below = all(rank(a, m) <= rank(b, m) for m in range(7))
    above = all(rank(b, m) <= rank(a, m) for m in range(7))
    assert (clock(a) <= clock(b)) == below
    assert (clock(a) < clock(b)) == (below and not above)
    assert (clock(a) == clock(b)) == (below and above)
    assert clock(a).concurrent(clock(b)) == (not below and not above)
    merged = clock(a).merge(clock(b))
    for m in range(7):
        expected = max(rank(a, m), rank(b, m))
        assert (m in merged.gone) == (expected == MAX_COUNTER + 1)
        assert merged.counters.get(m, -1) == (-1 if expected > MAX_COUNTER else expected)


@given(VECTORS, VECTORS, VECTORS)
def test_merge_is_a_join_semilattice(x: VectorClock, y: VectorClock, z: VectorClock) -> None:
    assert x.merge(x) == x
    assert x.merge(y) == y.merge(x)
    assert x.merge(y).merge(z) == x.merge(y.merge(z))
    assert x <= x.merge(y)
    assert not (x <= z and y <= z) or x.merge(y) <= z
    assert x.merge(VectorClock()) == x


@given(VECTORS, st.integers(0, 8))
def test_every_step_climbs(x: VectorClock, member: int) -> None:
    assert x <= x.forget(member)
    assert x.forget(member).forget(member) == x.forget(member)
    if member not in x.gone:
        joined = x.with_member(member)
        assert x <= joined
        assert joined.with_member(member) == joined
        if joined[member] < MAX_COUNTER:
            assert joined < joined.advance(member)
            assert joined.advance(member)[member] == joined[member] + 1


def test_an_old_clock_does_not_bring_a_departed_member_back() -> None:
    old = VectorClock.of({0: 1, 1: 3})
    now = old.advance(0).forget(1)
    assert now.merge(old) == now
    assert old < now
    assert now.gone == (1,)
    assert now.counters == {0: 2}
    assert now.storage_bytes == 4


@given(VECTORS)
def test_vector_bytes(x: VectorClock) -> None:
    data = x.encode()
    assert len(data) == x.encoded_size
    assert VectorClock.decode(data) == x
    for cut in range(len(data)):
        with pytest.raises(RemoteError):
            VectorClock.decode(data[:cut])
    with pytest.raises(DecodeError):
        VectorClock.decode(data + b"\x00")


@given(st.binary(max_size=24))
def test_random_bytes_are_refused_or_canonical(data: bytes) -> None:
    try:
        x = VectorClock.decode(data)
    except RemoteError:
        return
    assert x.encode() == data


def test_wrong_calls_are_named() -> None:
    x = VectorClock.of({0: 1}, gone=[2])
    wrong: list[Callable[[], object]] = [
        lambda: x[1],
        lambda: x[2],
        lambda: x.advance(1),
        lambda: x.advance(0, -1),
        lambda: x.with_member(2),
        lambda: x.forget(-1),
        lambda: VectorClock.of({}, gone=[MAX_MEMBER + 1]),
        lambda: x.with_member(MAX_MEMBER + 1),
        lambda: VectorClock.of({0: -1}),
        lambda: VectorClock.of({0: MAX_COUNTER + 1}),
        lambda: VectorClock.of({-1: 1}),
        lambda: VectorClock.of({0: 1}, gone=[0]),
    ]
    for call in wrong:
        with pytest.raises(LocalError):
            call()


def test_memory_does_not_follow_numbers_from_outside() -> None:
    with pytest.raises(UnknownMemberError):
        VectorClock.decode(b"\x01" + varint(10**12) + b"\x01\x00")
    with pytest.raises(UnknownMemberError):
        VectorClock.decode(b"\x00\x01\x00" + varint(10**12))
    with pytest.raises(SequenceError):
        VectorClock.decode(b"\x01\x00" + varint(MAX_COUNTER + 1) + b"\x00")
    with pytest.raises(DecodeError):
        VectorClock.decode(b"\x01\x00\x05\x01\x00\x00")  # counter and gone


def test_subsets_of_a_history_are_ordered_as_they_grew() -> None:
    history = [VectorClock().with_member(0)]
    history.append(history[-1].advance(0))
    history.append(history[-1].with_member(1))
    history.append(history[-1].advance(1))
    history.append(history[-1].forget(0))
    for earlier, later in combinations(history, 2):
        assert earlier < later
        assert not later <= earlier
