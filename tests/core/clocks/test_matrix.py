"""Matrix time of Sahai et al. 2020: R1 and R2, its two questions, its algebra and its bytes."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antecede.core.clocks import lanes
from antecede.core.clocks.encoding.wire import varint
from antecede.core.clocks.lanes import MAX_VALUE
from antecede.core.clocks.matrix import MAX_SIDE, fold, join_rows, repeat_row, split_rows
from antecede.errors import DecodeError, LocalError, RemoteError, SequenceError, UnknownMemberError
from examples.clocks.matrix import MatrixClock, widen
from examples.clocks.vector import VectorClock

Rows = list[list[int]]
ENTRY = st.one_of(st.integers(0, 3), st.integers(250, 70_000), st.just(MAX_VALUE))
SQUARES: st.SearchStrategy[Rows] = st.integers(0, 5).flatmap(
    lambda side: st.lists(
        st.lists(ENTRY, min_size=side, max_size=side), min_size=side, max_size=side
    )
)
THREES = st.lists(st.lists(ENTRY, min_size=3, max_size=3), min_size=3, max_size=3).map(
    MatrixClock.of
)


class Run:
    """Processes that send to one another at random, with exact pasts as sets beside the clocks."""

    def __init__(self, side: int, seed: int) -> None:
        self.side = side
        self.random = random.Random(seed)
        self.clocks = [MatrixClock.zero(side) for _ in range(side)]
        self.pasts: list[frozenset[tuple[int, int]]] = [frozenset() for _ in range(side)]
        """(process, number) of every event in the past of a process's last event, that included."""
        self.past_of: dict[tuple[int, int], frozenset[tuple[int, int]]] = {}
        self.flight: list[tuple[int, int, MatrixClock, frozenset[tuple[int, int]]]] = []

    def step(self) -> int:
        """Let one event happen; returns whose."""
        if self.flight and self.random.random() < 0.5:
            at = self.random.randrange(len(self.flight))
            sender, target, stamp, past = self.flight.pop(at)
            self.clocks[target] = self.clocks[target].receive(target, sender, stamp)
            self._event(target, past)
            return target
        sender = self.random.randrange(self.side)
        self.clocks[sender] = self.clocks[sender].event(sender)
        self._event(sender, frozenset())
        target = self.random.choice([k for k in range(self.side) if k != sender])
        self.flight.append((sender, target, self.clocks[sender], self.pasts[sender]))
        return sender

    def _event(self, at: int, learnt: frozenset[tuple[int, int]]) -> None:
        event = (at, sum(process == at for process, _ in self.pasts[at]) + 1)
        self.pasts[at] |= learnt | {event}
        self.past_of[event] = self.pasts[at]

    def exact(self, at: int) -> Rows:
        """Return what the matrix must be: events counted in pasts."""

        def count(past: frozenset[tuple[int, int]]) -> list[int]:
            return [sum(process == k for process, _ in past) for k in range(self.side)]

        newest = count(self.pasts[at])
        return [count(self.past_of.get((k, newest[k]), frozenset())) for k in range(self.side)]


@given(seed=st.integers(0, 2**32), side=st.integers(2, 5))
def test_entries_count_exactly_what_each_is_known_to_know(seed: int, side: int) -> None:
    """Sahai et al. 2020, Matrix Time, R1 and R2: the meaning of mt_i[i,i], mt_i[i,j] and
    mt_i[j,k].
    """
    run = Run(side, seed)
    for _ in range(40):
        at = run.step()
        assert run.clocks[at] == MatrixClock.of(run.exact(at))


@given(seed=st.integers(0, 2**32), side=st.integers(2, 5))
def test_the_principal_vector_is_the_largest(seed: int, side: int) -> None:
    """Sahai et al. 2020, Matrix Time, the question and its answer TRUE."""
    run = Run(side, seed)
    for _ in range(40):
        at = run.step()
        clock = run.clocks[at]
        principal = clock.row(at)
        for row in clock.rows:
            assert all(a <= b for a, b in zip(row, principal, strict=True))
        assert clock.stable_vector() == tuple(min(c) for c in zip(*clock.rows, strict=True))


@given(seed=st.integers(0, 2**32))
def test_the_principal_vector_is_a_vector_clock(seed: int) -> None:
    """Sahai et al. 2020, Matrix Time: row [i, .] "exhibits all the properties of vector clocks"."""
    run = Run(4, seed)
    vectors: dict[tuple[int, int], VectorClock] = {}
    for _ in range(40):
        at = run.step()
        own = run.clocks[at].knows(at, at)
        vectors[at, own] = VectorClock.of(dict(enumerate(run.clocks[at].row(at))))
    for one, a in vectors.items():
        for other, b in vectors.items():
            if one != other:
                assert (a < b) == (one in run.past_of[other])


def test_r2_as_printed_forgets_what_only_the_receiver_knew() -> None:
    """Sahai et al. 2020, R2 prints the received mt[i,k] where the own entry belongs (errata)."""
    mine = MatrixClock.zero(3).receive(0, 1, MatrixClock.zero(3).event(1))
    theirs = MatrixClock.zero(3).event(2)
    after = mine.receive(0, 2, theirs)
    assert after.row(0) == (2, 1, 1)
    printed = tuple(max(theirs.knows(0, k), theirs.knows(2, k)) for k in range(3))
    assert printed == (0, 0, 1)  # the event of member 1 is gone


# -- homework question 2 of Sahai et al. 2020
# --------------------------------------------------------------

A, B, C, D = range(4)


def updated(reached: list[int], report: list[int]) -> tuple[MatrixClock, int]:
    """Return A's clock and Tsu, the number of an update of D that reaches A and `reached`.

    `report` is the path of messages to A. C has another own event if the update did not reach it.
    """
    clocks = [MatrixClock.zero(4) for _ in range(4)]
    clocks[D] = clocks[D].event(D)
    update, tsu = clocks[D], clocks[D].knows(D, D)
    for who in (A, *reached):
        clocks[who] = clocks[who].receive(who, D, update)
    if C not in reached:
        clocks[C] = clocks[C].event(C)
    for sender, target in pairwise(report):
        clocks[sender] = clocks[sender].event(sender)
        clocks[target] = clocks[target].receive(target, sender, clocks[sender])
    return clocks[A], tsu


def test_question_2_a_sees_in_bs_message_whether_b_has_the_update() -> None:
    """Sahai et al. 2020, homework Q2, first problem: B's own vector is enough, V_B[D] >= Tsu."""
    for reached in ([], [B]):
        clock, tsu = updated(reached, [B, A])
        assert (clock.knows(B, D) >= tsu) == (B in reached)
        assert (clock.stable(D, [A, B]) >= tsu) == (B in reached)


def test_question_2_bs_vector_is_the_same_whether_c_has_the_update_or_not() -> None:
    """Sahai et al. 2020, homework Q2, second problem: V_B[C] >= Tsu says nothing of C's knowledge
    of D.
    """
    without, tsu = updated([B], [C, B, A])
    with_it, _ = updated([B, C], [C, B, A])
    assert without.row(B)[C] >= tsu  # "C has sent B a msg recently"
    assert without.row(B) == with_it.row(B)
    assert without != with_it


def test_question_2_a_matrix_answers_both() -> None:
    """Sahai et al. 2020, homework Q2, last line: entry [C, D] in B's matrix tells A of C."""
    for reached in ([B], [B, C]):
        clock, tsu = updated(reached, [C, B, A])
        assert (clock.knows(C, D) >= tsu) == (C in reached)
        assert (clock.stable(D) >= tsu) == (C in reached)


# -- algebra ---------------------------------------------------------------------------------


@given(THREES, THREES, THREES)
def test_merge_is_a_join_semilattice(x: MatrixClock, y: MatrixClock, z: MatrixClock) -> None:
    assert x.merge(x) == x
    assert x.merge(y) == y.merge(x)
    assert x.merge(y).merge(z) == x.merge(y.merge(z))
    assert x <= x.merge(y)
    assert not (x <= z and y <= z) or x.merge(y) <= z
    assert x.merge(MatrixClock.zero(3)) == x
    pairs = [(a, b) for p, q in zip(x.rows, y.rows, strict=True) for a, b in zip(p, q, strict=True)]
    assert x.merge(y) == MatrixClock.of(
        [[max(a, b) for a, b in pairs[k : k + 3]] for k in (0, 3, 6)]
    )
    assert (x <= y) == all(a <= b for a, b in pairs)
    assert (x < y) == (x <= y and x != y)
    assert x.concurrent(y) == (not x <= y and not y <= x)


@given(SQUARES)
def test_folds_are_least_and_greatest_of_columns(rows: Rows) -> None:
    clock, side = MatrixClock.of(rows), len(rows)
    assert clock.rows == tuple(map(tuple, rows))
    columns = list(zip(*rows, strict=True))
    assert clock.stable_vector() == tuple(map(min, columns))
    greatest = fold(clock.lanes, side, side, greatest=True)
    assert lanes.unpack(greatest, side) == tuple(map(max, columns))
    assert fold(clock.lanes, side, 0) == 0
    for of in range(side):
        assert clock.stable(of) == min(columns[of])
        assert clock.stable(of, range(of, side)) == min(columns[of][of:])
    assert clock.storage_bytes == 4 * side * side


@given(SQUARES, st.integers(0, 7))
def test_laying_out_for_another_side(rows: Rows, side: int) -> None:
    clock = MatrixClock.of(rows)
    kept = [[*row[:side], *([0] * (side - len(row)))] for row in rows[:side]]
    kept += [[0] * side for _ in range(side - len(kept))]
    assert MatrixClock(widen(clock.lanes, clock.side, side), side) == MatrixClock.of(kept)
    if side >= len(rows):
        assert clock.widen(side) == MatrixClock.of(kept)
    else:
        with pytest.raises(LocalError):
            clock.widen(side)


def test_rows_apart_and_together() -> None:
    vector = lanes.pack([(0, 4), (2, 7)])
    assert MatrixClock(repeat_row(vector, 3, 3), 3).rows == ((4, 0, 7),) * 3
    rows = [lanes.pack([(1, 5)]), 0, vector]
    assert MatrixClock(join_rows(rows, 3), 3).rows == ((0, 5, 0), (0, 0, 0), (4, 0, 7))
    assert split_rows(join_rows(rows, 3), 3, 3) == rows


# -- bytes -----------------------------------------------------------------------------------


@given(SQUARES)
def test_matrix_bytes(rows: Rows) -> None:
    clock = MatrixClock.of(rows)
    data = clock.encode()
    assert len(data) == clock.encoded_size
    assert MatrixClock.decode(data) == clock
    with pytest.raises(DecodeError):
        MatrixClock.decode(data + b"\x00")
    for cut in range(len(data)):
        with pytest.raises(RemoteError):
            MatrixClock.decode(data[:cut])


@given(st.binary(max_size=30))
@settings(max_examples=200)
def test_random_bytes_are_refused_or_canonical(data: bytes) -> None:
    try:
        clock = MatrixClock.decode(data)
    except RemoteError:
        return
    assert clock.encode() == data


def test_a_matrix_that_is_a_little_behind_takes_a_byte_an_entry() -> None:
    rows = [[10**6 - (i != k) for k in range(20)] for i in range(20)]
    assert len(MatrixClock.of(rows).encode()) == 1 + 1 + 20 * 3 + 1 + 400


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (varint(MAX_SIDE + 1), UnknownMemberError),
        (b"\x01\x02\x01\x01\x01\x00", DecodeError),  # a vector longer than the matrix
        (b"\x01\x01\x01\x00", DecodeError),  # no plane
        (b"\x01\x01\x01\x06" + bytes(6), DecodeError),  # six
        (b"\x01\x01\x01\x02\x00\x00", DecodeError),  # a plane of zeros
        (b"\x01\x01\x01\x01\x02", SequenceError),  # 2 behind 1
        (b"\x01\x01\x01\x05\x00\x00\x00\x00\x80", SequenceError),  # into the guard bit
        (b"\x01\x01\x02\x01\x01", DecodeError),  # no row reaches the greatest
        (b"\x80\x08\x00\x01" + bytes(1000), DecodeError),  # 1024 rows announced, no data
    ],
)
def test_what_no_encoder_wrote_is_refused(data: bytes, error: type[RemoteError]) -> None:
    with pytest.raises(error):
        MatrixClock.decode(data)


def test_wrong_calls_are_named() -> None:
    two = MatrixClock.zero(2)
    wrong: list[Callable[[], object]] = [
        lambda: MatrixClock.zero(MAX_SIDE + 1),
        lambda: MatrixClock.of([[1, 2], [3]]),
        lambda: MatrixClock.of([[-1]]),
        lambda: MatrixClock.of([[MAX_VALUE + 1]]),
        lambda: two.row(2),
        lambda: two.knows(-1, 0),
        lambda: two.event(2),
        lambda: two.event(0, 0),
        lambda: two.merge(MatrixClock.zero(3)),
        lambda: two <= MatrixClock.zero(3),
        lambda: two.receive(0, 2, two),
        lambda: two.widen(MAX_SIDE + 1),
    ]
    for call in wrong:
        with pytest.raises(LocalError):
            call()
