"""Computed vector clocks contain exactly the causes and the members' own orders."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede.lab.record.recorder import record
from antecede.tables.audit import audit, audit_events
from antecede.tables.audit.add_vector_clocks import with_clocks
from antecede.tables.trace.arrow import read, write_events
from antecede.tables.trace.formats.shiviz_writer import ShivizEvent, write_log_file
from antecede.tables.trace.schema import DELIVER, RECEIVE, SEND, Event
from tests.reference.cause_graph import Graph
from tests.tables.events import moves, table_of


def entries_of(events: Sequence[Event], format: str = "table") -> list[ShivizEvent]:
    return list(with_clocks(table_of(events), format).entries)


def before(one: ShivizEvent, other: ShivizEvent) -> bool:
    """Clock comparison, happened-before: `other` knows `one`'s own event."""
    return one is not other and other.clock.get(one.host, 0) >= one.clock[one.host]


dags = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c", None]),
        st.sets(st.integers(0, 9), max_size=3),
        st.integers(0, 5),
    ),
    max_size=10,
)


@given(dags, st.randoms(use_true_random=False), st.booleans())
def test_clocks_say_the_causes_and_the_members_orders(
    rows: list[tuple[str | None, set[int], int]],
    shuffler: random.Random,
    timed: bool,
) -> None:
    events = [
        Event(
            id=str(k), member=member, text=str(k), start_time=time if timed else None,
            causes=tuple(str(p) for p in causes if p < k),
        )
        for k, (member, causes, time) in enumerate(rows)
    ]  # fmt: skip
    listed = list(events)
    shuffler.shuffle(listed)
    entries = entries_of(listed)
    assert sorted(int(entry.text) for entry in entries) == list(range(len(events)))
    number = {entry.text: k for k, entry in enumerate(entries)}
    edges = {(number[p], number[e.id]) for e in events for p in e.causes}
    for host in {entry.host for entry in entries}:
        own = [k for k, entry in enumerate(entries) if entry.host == host]
        assert [entries[k].clock[host] for k in own] == list(range(1, len(own) + 1))
        edges |= set(itertools.pairwise(own))
    said = {(k, m) for k, a in enumerate(entries) for m, b in enumerate(entries) if before(a, b)}
    graph = Graph({m: {k for k, other in edges if other == m} for m in range(len(entries))})
    assert said == {(k, m) for m in range(len(entries)) for k in graph.ancestors(m)}


@given(dags)
def test_members_keep_their_own_clock_where_causes_let_them(
    rows: list[tuple[str | None, set[int], int]],
) -> None:
    """Start times grow from cause to effect, so they order each member's events."""
    events = [
        Event(id=str(k), member=m, text=str(k), start_time=k, causes=tuple(map(str, ps)))
        for k, (m, ps, _) in enumerate(
            (m, {p for p in ps if p < k}, t) for k, (m, ps, t) in enumerate(rows)
        )
    ]
    entries = entries_of(events[::-1])
    for host in {entry.host for entry in entries}:
        own = [int(entry.text) for entry in entries if entry.host == host]
        assert own == sorted(own)


def test_a_members_clock_that_contradicts_causes_gives_way() -> None:
    """b's clock puts 3 before 2, but 2 is a cause of 3 through a."""
    events = [
        Event(id="3", member="b", start_time=1, causes=("x",), text="3"),
        Event(id="2", member="b", start_time=2, text="2"),
        Event(id="x", member="a", start_time=9, causes=("2",), text="x"),
        Event(id="4", member="b", start_time=3, text="4"),
    ]
    order = [entry.text for entry in entries_of(events)]
    assert order.index("2") < order.index("x") < order.index("3")
    own = [text for text in order if text != "x"]
    assert own.index("2") < own.index("4")
    # Another member's order stands: its later event is a cause of the first of all.
    others = [
        Event(id="c5", member="c", start_time=5, text="c5"),
        Event(id="c8", member="c", start_time=8, text="c8"),
        Event(id="d", member="d", start_time=0, causes=("c8",), text="d"),
    ]
    order = [entry.text for entry in entries_of([*events, *others])]
    assert order.index("c5") < order.index("c8") < order.index("d")


def test_a_cycle_of_causes_is_left_out_and_told() -> None:
    events = [
        Event(id="1", member="a", causes=("2",)), Event(id="2", member="b", causes=("1",)),
        Event(id="3", member="a", causes=("2",)), Event(id="3", member="a"),
    ]  # fmt: skip
    log = with_clocks(table_of(events))
    assert [(entry.text, entry.clock) for entry in log.entries] == [("3", {"a": 1})]
    assert log.left_out == {"a later row of an id": 1, "caused by itself, through others": 2}
    assert entries_of([]) == []


def test_receipts_and_deliveries_are_events_of_their_member() -> None:
    rows = moves("a!m b.m b?m b!n<m c?n<m c?m c?lost")
    times = (1, 4, 4, 5, 6, 7, 8)
    events = [row._replace(arrival=time) for row, time in zip(rows, times, strict=True)]
    events[0] = events[0]._replace(text="hello")
    assert [(e.host, e.text, e.clock) for e in entries_of(events)] == [
        ("a", "send m: hello", {"a": 1}),
        ("b", "receive m", {"a": 1, "b": 1}),
        ("b", "deliver m", {"a": 1, "b": 2}),
        ("b", "send n", {"a": 1, "b": 3}),
        ("c", "receive n", {"a": 1, "b": 3, "c": 1}),
        ("c", "receive m", {"a": 1, "b": 3, "c": 2}),
        ("c", "receive lost", {"a": 1, "b": 3, "c": 3}),
    ]


@pytest.mark.slow
def test_a_recorded_run(tmp_path: Path) -> None:
    """The log has every row, and the pairs equal those of sets of pasts."""
    path, log_path = tmp_path / "run.parquet", tmp_path / "run.log"
    recording = record(4, 1.5, seed=3)
    write_events(recording.events, path)
    log = with_clocks(read([path]).events)
    assert write_log_file(log.entries, log_path, log.several_runs) == len(recording.events)
    report = audit([log_path])
    assert (report.messages, report.members) == (len(recording.events), 4)
    assert (report.clock_inconsistencies, report.inversions) == ([], {"file_order": 0})
    past: dict[int, set[int]] = {}
    sent: dict[str, int] = {}
    last: dict[str | None, int] = {}
    in_order = sorted(
        recording.events, key=lambda e: (e.arrival, e.kind != SEND, e.kind == DELIVER)
    )
    for k, event in enumerate(in_order):
        causes = [last[event.member]] if event.member in last else []
        causes += [sent[event.id]] if event.kind != SEND else [sent[p] for p in event.causes]
        past[k] = set().union(*(past[c] | {c} for c in causes))
        last[event.member] = k
        if event.kind == SEND:
            sent[event.id] = k
    assert report.ordered_pairs == sum(map(len, past.values()))
    message_edges = sum(event.kind == RECEIVE for event in in_order)
    assert 0 < report.edges <= message_edges


def test_a_run_is_an_execution_of_its_own() -> None:
    events = [
        Event(run="x", id="1", member="a", text="x1"),
        Event(run="y", id="1", member="a", text="y1"),
        Event(run="x", id="2", member="b", causes=("1",), text="x2"),
        Event(run="y", id="3", member="b", text="y3"),
    ]  # fmt: skip
    assert [(e.run, e.text, e.clock) for e in entries_of(events)] == [
        ("x", "x1", {"a": 1}), ("x", "x2", {"a": 1, "b": 1}),
        ("y", "y1", {"a": 1}), ("y", "y3", {"b": 1}),
    ]  # fmt: skip


def test_traces_of_spans_are_executions_unless_links_join_them() -> None:
    apart = [
        Event(id="t/1", member="a", topics=("t",)), Event(id="u/1", member="a", topics=("u",)),
        Event(id="t/2", member="b", topics=("t",), causes=("t/1",)),
    ]  # fmt: skip
    assert [entry.run for entry in entries_of(apart, "spans")] == ["t", "t", "u"]
    joined = [*apart, Event(id="u/2", member="b", topics=("u",), causes=("t/1",))]
    assert [entry.run for entry in entries_of(joined, "spans")] == [None] * 4
    assert [entry.run for entry in entries_of(apart)] == [None] * 3


@pytest.mark.slow
def test_message_edges_of_spans_are_the_causes_between_pods(
    shared_data: Path, tmp_path: Path
) -> None:
    trace = read([shared_data / "traces/trainticket-08_50.csv.gz"])
    log = with_clocks(trace.events, trace.format)
    write_log_file(log.entries, tmp_path / "t.log", log.several_runs)
    report = audit([tmp_path / "t.log"])
    spans = audit_events(trace.events, "spans")
    assert report.messages == spans.messages
    assert report.details["executions"] == spans.details["traces"]
    assert report.edges == spans.cross_member_edges


@pytest.mark.slow
def test_clocks_of_concurrent_editing_give_its_true_counts(
    shared_data: Path, tmp_path: Path
) -> None:
    """The trace itself orders an agent's changes, so nothing is added."""
    name = "crdt/clownschool.json.gz"
    truth = json.loads((shared_data / "GROUND_TRUTH.json").read_text())[name]
    trace = read([shared_data / name])
    log = with_clocks(trace.events, trace.format)
    write_log_file(log.entries, tmp_path / "t.log", log.several_runs)
    report = audit([tmp_path / "t.log"])
    assert (report.messages, report.members) == (truth["events"], truth["processes"])
    assert report.edges == truth["cross_process_edges"]
    assert report.immediate_edges == truth["immediate_edges"]
    assert report.concurrent_pairs == truth["concurrent_pairs"]
