"""Compiled kernel against the reference, step by step, and by hand."""

from __future__ import annotations

import itertools
import random
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from antecede.errors import InputError
from antecede.tables.order.stream import held
from antecede.tables.order.stream.kernels import rows as shape
from antecede.tables.order.stream.kernels.interning import NameTable, Text
from antecede.tables.order.stream.kernels.rows import NO_TIME
from antecede.tables.order.stream.kernels.tie_break import compare_names
from antecede.tables.order.stream.shard import Shard
from antecede.tables.order.stream.storage import id_table
from antecede.tables.order.stream.storage.blobs import Memory
from antecede.tables.order.stream.types import ControlColumns, ReleasedCauses, ShardPlan
from tests.tables.order.stream.reference import Item, Left, Reference

OUTCOMES = ["ORDERED", "MISSING", "DUPLICATE", "CONFLICT", "SELF", "CYCLE", "NULL", "BAD", "LATE"]
NAMES = {getattr(shape, name): name for name in [*OUTCOMES, "DROPPED"]}


def text(strings: list[bytes]) -> Text:
    ends = np.cumsum([0, *map(len, strings)], dtype=np.int64)
    return Text(np.frombuffer(b"".join(strings), np.uint8), ends)


def batch(items: list[Item]) -> ControlColumns:
    causes = [cause for item in items for cause in item.causes]
    return ControlColumns(
        text([item.group for item in items]),
        text([item.name for item in items]),
        np.array([item.number for item in items], np.int64),
        np.array([item.time for item in items], np.int64),
        np.array([item.digest for item in items], np.int64),
        np.array([item.invalid for item in items], np.uint8),
        np.cumsum([0, *(len(item.causes) for item in items)], dtype=np.int64),
        text([name for name, _ in causes]),
        np.array([count for _, count in causes], np.int64),
    )


class Packed:
    """Driver of a Shard as in a stream: through bytes after every step."""

    def __init__(self, plan: ShardPlan) -> None:
        self.plan = plan
        self.state = Memory()
        self.rows: list[object] = []

    @property
    def held(self) -> list[object]:
        held, tables = Shard(self.plan, self.state).held.read_all()
        assert sum(table.num_rows for table in tables) == held.size
        return [self.rows[number] for table in tables for number in numbers_of(table)]

    @property
    def size(self) -> int:
        return sum(map(len, self.state.values()))

    def step(self, items: list[Item], now: int = NO_TIME) -> list[Left]:
        begin = len(self.rows)
        self.rows += [item.row for item in items]
        table = pa.table({"row": pa.array(range(begin, len(self.rows)), pa.int64())})
        before = Memory(self.state)
        try:
            out = Shard(self.plan, self.state).step(batch(items), now, table)
        except InputError:
            self.state = before  # as Spark: a failed micro-batch changes nothing
            raise
        return [
            Left(
                self.rows[number],
                int(out.status[k]),
                int(out.position[k]),
                int(out.waited_units[k]),
                causes_of(out.waited, k),
                causes_of(out.missing_causes, k),
                int(out.released[k]),
            )
            for k, number in enumerate(numbers_of(out.rows))
        ]


def numbers_of(table: Any) -> list[int]:
    found: list[int] = table.column("row").to_pylist()
    return found


def causes_of(links: ReleasedCauses, row: int) -> tuple[tuple[bytes, int], ...]:
    each = range(links.first[row], links.first[row + 1])
    return tuple((links.name.get(k), int(links.number[k])) for k in each)


def in_order(lefts: list[Left]) -> tuple[list[Left], set[Left]]:
    """Return the rows with a position in order, without excluded ones."""
    return [left for left in lefts if left.position >= 0], {
        left for left in lefts if left.position < 0
    }


WRITTEN = [b"2", b"10", b"-3", b"-20", b"0", b"1.50", b"1.25", b"1e+20", b"5e-7"]
GROUPS = st.sampled_from([b"g", b"h"])
POLICIES = st.sampled_from(["hold", "release", "drop"])


@st.composite
def plans(draw: st.DrawFn) -> ShardPlan:
    return ShardPlan(
        counted=draw(st.booleans()),
        timed=draw(st.booleans()),
        policy=draw(POLICIES),
        patience=draw(st.integers(0, 6)),
        state_ttl=draw(st.sampled_from([-1, -1, 0, 3, 9])),
        numbers=draw(st.booleans()),
        max_held_rows=draw(st.sampled_from([-1, -1, 1, 3])),
        on_overflow=draw(st.sampled_from(["release", "drop"])),
    )


@st.composite
def streams(draw: st.DrawFn, plan: ShardPlan) -> list[tuple[list[Item], int]]:
    """Draw any stream: repeats, cycles, absent causes, rows without identity."""
    numbers = st.integers(1, 5) if plan.counted else st.just(0)
    names = st.sampled_from([b"a", b"b"] if plan.counted else [b"a", b"ab", b"b", b"c", b"d", b""])
    if plan.numbers:
        names = st.sampled_from([b"10", b"9"] if plan.counted else WRITTEN)
    cause = st.tuples(names, numbers)
    times = st.integers(0, 12) | st.just(NO_TIME)
    row = itertools.count()
    steps, now = [], 0
    for _ in range(draw(st.integers(1, 6))):
        items = []
        for _ in range(draw(st.integers(0, 6))):
            invalid = draw(st.sampled_from([0] * 9 + [shape.NULL]))
            causes = () if invalid else tuple(draw(st.lists(cause, max_size=3)))
            items.append(
                Item(
                    next(row),
                    draw(GROUPS),
                    draw(names),
                    causes,
                    draw(numbers),
                    draw(times),
                    0 if plan.counted else draw(st.integers(0, 1)),
                    invalid,
                )
            )
        now += draw(st.integers(0, 4))
        clock = max((i.time for i in items), default=NO_TIME) if plan.timed else now
        steps.append((items, clock))
    return steps


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Merge segments after two or three rows, so that every step does."""
    for name, value in {"_FAN": 2, "_SMALL": 1, "_CAP": 8}.items():
        monkeypatch.setattr(held, name, value)
    monkeypatch.setattr(id_table, "_SMALL", 1)
    make = id_table.IdTable.__init__

    def with_small_fan(self: Any, name: str, parts: Any, fan: int, cap: int) -> None:
        make(self, name, parts, 2, 8 if name == "i" else cap)

    monkeypatch.setattr(id_table.IdTable, "__init__", with_small_fan)


@pytest.mark.slow
@given(st.data())
@settings(max_examples=250, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_lockstep_while_parts_are_merged_all_the_time(
    small_parts: None, data: st.DataObject
) -> None:
    test_kernel_and_reference_go_in_lockstep.hypothesis.inner_test(data)


@pytest.mark.slow
@given(st.data())
@settings(max_examples=400)
def test_kernel_and_reference_go_in_lockstep(data: st.DataObject) -> None:
    plan = data.draw(plans())
    kernel, reference = Packed(plan), Reference(plan)
    for items, now in data.draw(streams(plan)):
        try:
            expected = reference.step(items, now)
        except InputError:
            with pytest.raises(InputError, match="max_held_rows"):
                kernel.step(items, now)
            return
        assert in_order(kernel.step(items, now)) == in_order(expected)


NUMBERS = (
    st.integers(-(10**40), 10**40).map(str)
    | st.floats(allow_nan=False).map(lambda number: pa.scalar(number).cast(pa.string()).as_py())
    | st.decimals(allow_nan=False, allow_infinity=False, places=3).map(str)
)


@given(NUMBERS, NUMBERS)
def test_numbers_are_compared_by_value_whatever_their_size(one: str, other: str) -> None:
    written = text([one.encode(), other.encode()])
    names = shape.TieNames(np.array(written.data), written.ends, True)
    left, right = Decimal(one), Decimal(other)
    side = compare_names(names, 0, 1)
    if left != right:
        assert side == (-1 if left < right else 1)
    else:
        assert (side == 0) == (one == other)


def history(seed: int, size: int, *, timed: bool = True) -> list[Item]:
    """Draw a complete history in causal order, two groups, causes among earlier rows."""
    rng = random.Random(seed)
    past: dict[bytes, list[bytes]] = {b"g": [], b"h": []}
    items = []
    for number in range(size):
        group = rng.choice([b"g", b"h"])
        name = f"{rng.randrange(10**6)}-{number}".encode()
        causes = rng.sample(past[group], min(len(past[group]), rng.randrange(4)))
        time = rng.randrange(1000) if timed else NO_TIME
        items.append(Item(name, group, name, tuple((c, 0) for c in causes), 0, time))
        past[group].append(name)
    return items


def cut(items: list[Item], seed: int, pieces: int) -> list[list[Item]]:
    rng = random.Random(seed)
    shuffled = rng.sample(items, len(items))
    edges = sorted(rng.randrange(len(items) + 1) for _ in range(pieces - 1))
    return [shuffled[a:b] for a, b in itertools.pairwise([0, *edges, len(items)])]


@pytest.mark.parametrize("seed", range(20))
def test_batch_boundaries_change_neither_what_is_released_nor_the_wait(seed: int) -> None:
    items = history(seed, 120)
    plan = ShardPlan(counted=False, timed=True)
    whole = {left.row: left for left in Packed(plan).step(items)}
    stream = Packed(plan)
    parts: list[Left] = []
    for piece in cut(items, seed, 7):
        parts += stream.step(piece)
    assert stream.held == []
    assert {left.row for left in parts} == {item.row for item in items}
    place = {left.row: index for index, left in enumerate(parts)}
    for item in items:
        assert all(place[name] < place[item.row] for name, _ in item.causes)
    for group in (b"g", b"h"):
        of_group = [
            left for left in parts if left.row in {i.row for i in items if i.group == group}
        ]
        assert [left.position for left in of_group] == list(range(len(of_group)))
    for left in parts:
        assert left._replace(position=0) == whole[left.row]._replace(position=0)


@pytest.mark.parametrize("seed", range(5))
def test_order_of_rows_within_a_batch_does_not_matter(seed: int) -> None:
    items = history(seed, 60)
    plan = ShardPlan(counted=False, timed=True)
    again = random.Random(seed).sample(items, len(items))
    assert Packed(plan).step(items) == Packed(plan).step(again)


def statuses(lefts: list[Left]) -> dict[object, str]:
    return {left.row: NAMES[left.status] for left in lefts}


def one(name: bytes, *causes: bytes, time: int = 0, digest: int = 0) -> Item:
    return Item(name, b"", name, tuple((c, 0) for c in causes), 0, time, digest)


@pytest.mark.parametrize("make", [Packed, Reference])
class TestPolicies:
    def test_hold_waits_for_good(self, make: type[Packed]) -> None:
        shard = make(ShardPlan(False, True, "hold", 1))
        assert shard.step([one(b"b", b"a")], 10**6) == []
        assert shard.step([], 10**9) == []
        done = shard.step([one(b"a", time=7)], 10**9)
        assert done == [
            Left(b"a", 1, 0, 0, (), (), 10**9),
            Left(b"b", 1, 1, 7, ((b"a", 0),), (), 10**9),
        ]

    def test_release_marks_the_row_and_then_the_cause(self, make: type[Packed]) -> None:
        shard = make(ShardPlan(False, True, "release", 10))
        assert shard.step([one(b"b", b"a"), one(b"c", b"b")], 9) == []
        gone = shard.step([], 10)
        assert gone == [
            Left(b"b", shape.MISSING, 0, 10, (), ((b"a", 0),), 10),
            Left(b"c", shape.ORDERED, 1, 10, ((b"b", 0),), (), 10),
        ]
        assert statuses(shard.step([one(b"a", time=11)], 11)) == {b"a": "LATE"}

    def test_a_cause_that_came_is_never_overtaken(self, make: type[Packed]) -> None:
        shard = make(ShardPlan(False, True, "release", 10))
        assert shard.step([one(b"c", b"b", b"x")], 0) == []
        assert shard.step([one(b"b", b"a", time=9)], 9) == []
        assert shard.step([], 15) == []  # c is overdue, but b may still come
        assert [left.row for left in shard.step([], 19)] == [b"b", b"c"]

    def test_drop_takes_what_follows_along(self, make: type[Packed]) -> None:
        shard = make(ShardPlan(False, True, "drop", 10))
        shard.step([one(b"b", b"a"), one(b"c", b"b", time=5)], 5)
        assert statuses(shard.step([], 10)) == {b"b": "DROPPED", b"c": "DROPPED"}
        late = shard.step([one(b"d", b"c", time=10), one(b"a", time=10)], 10)
        assert statuses(late) == {b"a": "ORDERED", b"d": "DROPPED"}
        assert statuses(shard.step([one(b"b", b"a")], 10)) == {b"b": "DUPLICATE"}

    def test_repeats_conflicts_cycles_and_self_parents(self, make: type[Packed]) -> None:
        shard = make(ShardPlan(False, True))
        first = [one(b"x", b"y"), one(b"s", b"s"), one(b"z", b"y"), one(b"a", digest=1)]
        assert statuses(shard.step(first)) == {b"s": "SELF", b"a": "ORDERED"}
        second = [one(b"y", b"x")]
        assert statuses(shard.step(second)) == {b"x": "CYCLE", b"y": "CYCLE"}
        repeats = shard.step([one(b"a", digest=1), one(b"z", b"y"), one(b"a", digest=2)])
        assert [NAMES[left.status] for left in repeats] == ["DUPLICATE", "DUPLICATE", "CONFLICT"]


def fifo(count: int, first: int = 1) -> Item:
    causes = ((b"s", count - 1),) if count > first else ()
    return Item(count, b"", b"s", causes, count)


def test_fifo_state_stays_small_however_long_the_stream() -> None:
    stream = Packed(ShardPlan(counted=True, timed=False))
    sizes = []
    for start in range(1, 2001, 100):
        piece = [fifo(number) for number in range(start, start + 100)]
        assert [left.row for left in stream.step(piece[::-1], 0)] == [item.row for item in piece]
        sizes.append(stream.size)
    assert max(sizes[-5:]) <= max(sizes[:5])
    assert statuses(stream.step([fifo(3)], 0)) == {3: "DUPLICATE"}


@pytest.mark.parametrize("make", [Packed, Reference])
def test_giving_up_one_number_does_not_overtake_earlier_ones(make: type[Packed]) -> None:
    shard = make(ShardPlan(True, False, "release", 10))
    assert shard.step([fifo(7)], 0) == []
    assert shard.step([fifo(5)], 5) == []
    assert shard.step([], 10) == []  # 7 is overdue, but 5 is here and must go first
    assert [(left.row, NAMES[left.status]) for left in shard.step([], 15)] == [
        (5, "MISSING"),
        (7, "MISSING"),
    ]
    assert statuses(shard.step([fifo(6)], 15)) == {6: "LATE"}


def test_an_absurd_number_costs_one_row_of_memory() -> None:
    stream = Packed(ShardPlan(counted=True, timed=False))
    assert stream.step([fifo(2**63 - 1)], 0) == []
    assert stream.size < 4000


def test_remember_forgets_old_ids_and_their_memory() -> None:
    stream = Packed(ShardPlan(counted=False, timed=True, state_ttl=10))
    sizes = []
    for now in range(0, 1000, 5):
        stream.step([one(str(now).zfill(4).encode(), time=now)], now)
        sizes.append(stream.size)
    assert max(sizes[100:]) <= max(sizes[20:100])
    assert statuses(stream.step([one(b"0990", time=990)], 995)) == {b"0990": "DUPLICATE"}
    assert stream.step([one(b"x", b"0100", time=995)], 995) == []  # forgotten: held as absent


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(0, 2), st.binary(max_size=20)), max_size=60))
def test_names_are_numbered_exactly(names: list[tuple[int, bytes]]) -> None:
    table, known = NameTable(), dict[tuple[int, bytes], int]()
    for piece in (names[:20], names[20:]):
        owners = np.array([owner for owner, _ in piece], np.int32)
        got = table.intern(owners, text([name for _, name in piece]))
        assert got.tolist() == [known.setdefault(name, len(known)) for name in piece]


def test_what_a_step_writes_does_not_follow_what_is_remembered() -> None:
    stream, written = Packed(ShardPlan(counted=False, timed=True)), []
    for start in range(0, 20_000, 100):
        items = [one(str(number).encode(), time=number) for number in range(start, start + 100)]
        shard = Shard(stream.plan, stream.state)
        shard.step(batch(items), start + 100)
        written.append(shard.parts.written)
    assert stream.size > 10 * np.mean(written)
    assert np.mean(written[-100:]) < 1.5 * np.mean(written[:100])


def test_a_group_that_was_idle_for_too_long_begins_anew() -> None:
    stream = Packed(ShardPlan(counted=False, timed=True, state_ttl=10))
    first = stream.step([one(b"a", time=0), one(b"b", time=1)], 1)
    assert [left.position for left in first] == [0, 1]
    other = Item("clock", b"other", b"clock", (), 0, 20)
    stream.step([other], 20)
    again = stream.step([one(b"c", time=21), one(b"d", time=22)], 22)
    assert [(left.position, left.status) for left in again] == [
        (0, shape.RESTARTED),
        (1, shape.ORDERED),
    ]
    stream.step([other._replace(row="later", name=b"later", time=90)], 90)
    much_later = stream.step([one(b"e", time=91)], 91)  # all is forgotten
    assert [(left.position, left.status) for left in much_later] == [(0, shape.ORDERED)]


def test_a_group_with_a_row_that_waits_is_not_forgotten() -> None:
    stream = Packed(ShardPlan(counted=False, timed=True, state_ttl=10))
    stream.step([one(b"a", time=0), one(b"c", b"b", time=1)], 1)
    stream.step([Item("clock", b"other", b"clock", (), 0, 90)], 90)
    left = stream.step([one(b"b", time=91)], 91)
    assert [(x.row, x.position, x.status) for x in left] == [
        (b"b", 1, shape.ORDERED),
        (b"c", 2, shape.ORDERED),
    ]


@pytest.mark.parametrize("make", [Packed, Reference])
def test_more_rows_than_may_be_held(make: type[Packed]) -> None:
    rows = [one(str(k).encode(), b"never" + str(k).encode(), time=k) for k in range(5)]
    with pytest.raises(InputError):
        make(ShardPlan(False, True, "hold", 100, max_held_rows=4)).step(rows, 5)
    gone = make(ShardPlan(False, True, "hold", 100, max_held_rows=3, on_overflow="release")).step(
        rows, 5
    )
    assert [(left.row, NAMES[left.status]) for left in gone] == [
        (b"0", "MISSING"),
        (b"1", "MISSING"),
    ]
    gone = make(ShardPlan(False, True, "hold", 100, max_held_rows=4, on_overflow="drop")).step(
        rows, 5
    )
    assert statuses(gone) == {b"0": "DROPPED"}


@pytest.mark.parametrize("make", [Packed, Reference])
def test_no_row_leaves_before_the_clock_of_those_that_left_earlier(make: type[Packed]) -> None:
    shard = make(ShardPlan(False, True))
    assert [left.released for left in shard.step([one(b"a", time=50)], 50)] == [50]
    assert [left.released for left in shard.step([one(b"b", time=10)], 50)] == [50]
    shard.step([one(b"d", b"c", time=60)], 60)
    last = shard.step([one(b"c", time=70)], 75)
    assert [(left.row, left.released) for left in last] == [(b"c", 70), (b"d", 70)]


@pytest.mark.parametrize("make", [Packed, Reference])
def test_a_micro_batch_of_rows_without_identity_while_others_wait(make: type[Packed]) -> None:
    one = make(ShardPlan(False, False, "hold", 0, -1, False, -1, "fail", ""))
    one.step([Item(0, b"", b"b", ((b"a", 0),))])
    left = one.step([Item(k, b"", b"", invalid=7) for k in (1, 2)])
    assert [out.row for out in left] == [1, 2]
    assert [out.row for out in one.step([Item(3, b"", b"a")])] == [3, 0]


@pytest.mark.parametrize("make", [Packed, Reference])
def test_a_cycle_through_a_row_whose_patience_is_over_is_found(make: type[Packed]) -> None:
    one = make(ShardPlan(True, True, "release", 1, -1, False, -1, "fail", ""))
    assert not one.step([Item(9, b"g", b"b", number=1, time=0, invalid=0)], 0)[1:]
    waits = [(0, 1, ((b"a", 5),)), (1, 5, ((b"a", 2),))]
    assert not one.step([Item(row, b"g", b"a", named, k, 0) for row, k, named in waits], 1)
    left = one.step([Item(2, b"g", b"a", ((b"a", 1), (b"a", 3)), 2, 0)], 1)
    assert {(out.row, out.status) for out in left} == {(k, shape.CYCLE) for k in range(3)}
    assert not one.held
