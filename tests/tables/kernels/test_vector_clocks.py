"""Vector-clock kernels against definitions written out on small random executions."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede.tables.kernels import vector_clocks
from antecede.tables.trace.arrow import to_batch
from antecede.tables.trace.schema import Event

Clock = dict[str, int]


@st.composite
def executions(draw: st.DrawFn) -> list[tuple[str, Clock]]:
    """Events of three hosts with correct clocks; some left out of the log; any file order."""
    latest: dict[str, Clock] = {host: {} for host in "abc"}
    events: list[tuple[str, Clock]] = []
    for _ in range(draw(st.integers(1, 14))):
        host = draw(st.sampled_from("abc"))
        clock = dict(latest[host])
        heard = draw(st.integers(-1, len(events) - 1))
        if heard >= 0:
            for member, count in events[heard][1].items():
                clock[member] = max(count, clock.get(member, 0))
        clock[host] = clock.get(host, 0) + 1
        latest[host] = clock
        events.append((host, clock))
    logged = draw(st.lists(st.integers(0, len(events) - 1), min_size=1, unique=True))
    return [events[k] for k in logged]


def table(events: list[tuple[str, Clock]], run: str | None = None) -> pa.Table:
    rows = [
        Event(
            run=run,
            id=f"{host}:{clock.get(host)}",
            member=host,
            clock_members=tuple(clock),
            clock_counts=tuple(clock.values()),
        )
        for host, clock in events
    ]
    return pa.Table.from_batches([to_batch(rows)])


def before(one: tuple[str, Clock], two: tuple[str, Clock]) -> bool:
    host, clock = one
    return one != two and two[1].get(host, 0) >= clock[host]


def naive_edges(events: list[tuple[str, Clock]]) -> tuple[set[tuple[int, int]], int]:
    """Message edges (sender, receiver) by rows, and the immediate edges, by definition."""
    edges, steps = set(), set()
    for k, (host, clock) in enumerate(events):
        earlier = [j for j, e in enumerate(events) if e[0] == host and e[1][host] < clock[host]]
        last = max(earlier, key=lambda j: events[j][1][host], default=None)
        if last is not None:
            steps.add((last, k))
        new = [
            j
            for j, (other, sent) in enumerate(events)
            if other != host
            and clock.get(other, 0) == sent[other]
            and (last is None or events[last][1].get(other, 0) < sent[other])
        ]
        edges |= {(j, k) for j in new if not any(before(events[j], events[i]) for i in new)}
    known = edges | steps
    immediate = {
        (j, k)
        for j, k in known
        if not any(i != j and before(events[j], events[i]) for i, e in known if e == k)
    }
    return edges, len(immediate)


@given(executions())
def test_counts(events: list[tuple[str, Clock]]) -> None:
    log = vector_clocks.clock_log(table(events))
    found = vector_clocks.clock_edges(log)
    rows = zip(log.row[found.sender].tolist(), log.row[found.receiver].tolist(), strict=True)
    edges, immediate = naive_edges(events)
    assert set(rows) == edges
    steps = len(events) - len({host for host, _ in events})
    assert steps + len(edges) - found.redundant_steps == immediate
    pairs = vector_clocks.count_clock_pairs(log, table(events))
    assert pairs.ordered == sum(before(a, b) for a in events for b in events)
    assert pairs.ordered + pairs.concurrent == len(events) * (len(events) - 1) // 2
    defects = vector_clocks.find_clock_inconsistencies(log)
    assert not defects.lowered.any()
    assert (defects.repeated, defects.mutual, defects.unmerged) == (0, 0, 0)


@given(executions(), executions())
def test_executions_do_not_mix(one: list[tuple[str, Clock]], two: list[tuple[str, Clock]]) -> None:
    both = pa.concat_tables([table(one, "one"), table(two, "two")])
    apart = [
        vector_clocks.count_clock_pairs(vector_clocks.clock_log(t), t)
        for t in (table(one), table(two))
    ]
    together = vector_clocks.count_clock_pairs(vector_clocks.clock_log(both), both)
    assert together.ordered == sum(pairs.ordered for pairs in apart)
    assert together.concurrent == sum(pairs.concurrent for pairs in apart)


def defects(*events: tuple[str, Clock]) -> vector_clocks.ClockInconsistencies:
    return vector_clocks.find_clock_inconsistencies(vector_clocks.clock_log(table(list(events))))


LOWERED = {
    "a lost entry, even of a host without events": (
        [("a", {"a": 1, "ghost": 3}), ("a", {"a": 2})],
        [False, True],
    ),
    "a lowered entry": (  # by host: a, a, b
        [("a", {"a": 1, "b": 2}), ("b", {"b": 1}), ("a", {"a": 2, "b": 1})],
        [False, True, False],
    ),
    "a restart": ([("a", {"a": 1}), ("a", {"a": 2}), ("a", {"a": 1})], [False, False, True]),
    "events out of order": ([("a", {"a": 1}), ("a", {"a": 3}), ("a", {"a": 2})], [False] * 3),
}


@pytest.mark.parametrize("case", LOWERED)
def test_lowered_entries(case: str) -> None:
    events, lowered = LOWERED[case]
    assert defects(*events).lowered.tolist() == lowered


def test_gap_repetition_circle_and_forgetful_merge() -> None:
    assert defects(("a", {"a": 2}), ("a", {"a": 5})).gaps == 2
    assert defects(("a", {"a": 1}), ("a", {"a": 3}), ("a", {"a": 2})).gaps == 0
    assert defects(("a", {"a": 1}), ("a", {"a": 1, "b": 1})).repeated == 1
    assert defects(("a", {"a": 1, "b": 1}), ("b", {"a": 1, "b": 1})).mutual == 2
    forgetful = defects(("a", {"a": 1}), ("b", {"a": 1, "b": 1}), ("c", {"b": 1, "c": 1}))
    assert (forgetful.unmerged, forgetful.mutual) == (1, 0)
