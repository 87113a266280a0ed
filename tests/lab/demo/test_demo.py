"""Demo: comparisons, story and page."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pytest

from antecede.cli import main
from antecede.lab.demo import demo, engines
from antecede.lab.demo.arrivals import (
    arrivals_of,
    choose_watermarks,
    events_of,
    with_declared_causes,
)
from antecede.lab.demo.demo import (
    check_published_bss,
    compare,
    find_delivering_arrivals,
    find_releasing_arrivals,
)
from antecede.lab.demo.engines import OrderedRows, order_locally
from antecede.lab.demo.held_message_story import find_held
from antecede.tables.order.baselines import Arrival, streams
from antecede.tables.order.spec import OrderSpec
from antecede.tables.order.table import order_table
from antecede.tables.trace.arrow import to_batch
from antecede.tables.trace.schema import DELIVER, RECEIVE, SEND, Event
from tests.helpers.fixtures import Call, Capture

MS = 1_000_000


def story() -> list[Event]:
    """Bob replies to alice; at carol the reply overtakes the question by 50 ms."""
    rows = [
        (SEND, "alice-1", "alice", (), 0, 5, "lunch?"),
        (RECEIVE, "alice-1", "bob", (), 20, None, "lunch?"),
        (DELIVER, "alice-1", "bob", (), 20, None, "lunch?"),
        (SEND, "bob-1", "bob", ("alice-1",), 30, 2, "yes"),
        (RECEIVE, "bob-1", "carol", ("alice-1",), 40, None, "yes"),
        (RECEIVE, "bob-1", "alice", ("alice-1",), 45, None, "yes"),
        (DELIVER, "bob-1", "alice", (), 45, None, "yes"),
        (RECEIVE, "alice-1", "carol", (), 90, None, "lunch?"),
        (DELIVER, "alice-1", "carol", (), 90, None, "lunch?"),
        (DELIVER, "bob-1", "carol", (), 90, None, "bob's message 1 waits for alice's message 1"),
    ]
    return [
        Event(
            kind=kind,
            id=name,
            member=member,
            seq=1,
            causes=causes,
            file_order=k,
            arrival=at * MS,
            send_time=None if sent is None else sent * MS,
            text=text,
        )
        for k, (kind, name, member, causes, at, sent, text) in enumerate(rows)
    ]


def table_of(events: list[Event]) -> pa.Table:
    return pa.Table.from_batches([to_batch(events)])


def test_the_engine_agrees_with_the_processes() -> None:
    ordered = order_locally(arrivals_of(table_of(story()))).table
    agreement = compare(find_releasing_arrivals(ordered), find_delivering_arrivals(story()))
    assert (agreement.compared, str(agreement)) == (4, "identical")


def test_the_first_call_is_left_out_of_the_time_and_named(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    arrivals, sizes = arrivals_of(table_of(story())), []
    monkeypatch.setattr(engines, "FIRST_ROWS", 3)

    def count_rows(table: pa.Table, spec: OrderSpec) -> pa.Table:
        sizes.append(table.num_rows)
        return order_table(table, spec)

    monkeypatch.setattr("antecede.tables.order.order_table", count_rows)
    made = order_locally(arrivals)
    assert sizes == [3, arrivals.table.num_rows]
    for first_s, said in ((1.6, "in 9.0 ms (first call compiles: 1.6 s): "), (0.01, "in 9.0 ms: ")):
        timed = OrderedRows(made.table, 0.009, first_s)
        monkeypatch.setattr(engines, "order_locally", lambda given, timed=timed: timed)
        demo.order_twice(arrivals, story(), None)
        assert f"rows in causal order {said}identical" in capsys.readouterr().out


def test_a_process_that_delivered_too_early_is_noticed() -> None:
    events = story()
    early = [*events[:5], events[9], *events[5:9]]
    events = [event._replace(file_order=k) for k, event in enumerate(early)]
    ordered = order_locally(arrivals_of(table_of(events))).table
    agreement = compare(find_releasing_arrivals(ordered), find_delivering_arrivals(events))
    assert agreement.differences == ("bob-1 at carol: arrival 2 against 1",)


def test_a_message_that_was_never_delivered_is_noticed() -> None:
    ordered = order_locally(arrivals_of(table_of(story()))).table
    agreement = compare(find_releasing_arrivals(ordered), find_delivering_arrivals(story()[:-1]))
    assert agreement.differences == ("bob-1 at carol: arrival 2 against None",)


def test_events_survive_the_table() -> None:
    assert events_of(table_of(story())) == story()


def test_the_held_message_is_told() -> None:
    held = find_held(story())
    assert held is not None
    assert (held.at, held.sent.id, held.cause.id, held.wait_ms) == ("carol", "bob-1", "alice-1", 50)
    assert held.members == ("alice", "bob", "carol")


def test_a_message_is_told_only_with_the_cause_that_released_it() -> None:
    rows = [
        (SEND, "alice-1", "alice", ()),
        (SEND, "bob-1", "bob", ()),
        (SEND, "bob-2", "bob", ("alice-1", "bob-1")),
        (RECEIVE, "bob-2", "carol", ("alice-1", "bob-1")),
        (RECEIVE, "alice-1", "carol", ()),
        (DELIVER, "alice-1", "carol", ()),
        (RECEIVE, "bob-1", "carol", ()),
        (DELIVER, "bob-1", "carol", ()),
        (DELIVER, "bob-2", "carol", ()),
    ]
    events = [
        Event(kind=kind, id=name, member=member, causes=causes, file_order=k, arrival=k * MS)
        for k, (kind, name, member, causes) in enumerate(rows)
    ]
    assert find_held(events) is None, "released by a message of its own sender"
    swapped = [*events[:4], *events[6:8], *events[4:6], events[8]]
    held = find_held(swapped)
    assert held is not None
    assert (held.sent.id, held.cause.id) == ("bob-2", "alice-1")


def test_receipts_carry_their_senders_timestamps() -> None:
    rows = arrivals_of(table_of(story())).rows()
    assert {(row.stream, row.id, row.sent_ns // MS) for row in rows} == {
        ("bob", "alice-1", 5),
        ("carol", "bob-1", 2),
        ("alice", "bob-1", 2),
        ("carol", "alice-1", 5),
    }


def test_widths_reach_from_too_narrow_to_wide_enough() -> None:
    rows = [Arrival("r", str(k), (), k * MS, (1000 - 10 * k) * MS) for k in range(90)]
    names = [name for _, name in choose_watermarks(streams(rows))]
    assert names == ["1 s"] or len(names) > 1
    assert choose_watermarks(streams(rows))[-1][0] >= 890 * MS
    in_order = [Arrival("r", str(k), (), k, k) for k in range(5)]
    assert choose_watermarks(streams(in_order)) == [(50 * MS, "50 ms")]


def test_the_counterexample_is_three_messages_at_most_and_real() -> None:
    found = check_published_bss()
    sends = [step for step in found.run.occurrences() if step.kind == "send"]
    assert len(sends) <= 3
    assert len(found.run.violations()) == 1


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.links += [value or "" for name, value in attrs if name in ("href", "src")]


@pytest.mark.slow
def test_the_tour_of_a_recording(tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "tour"
    assert main(["demo", "--engine", "local", "--seconds", "1.5", "-o", str(out)]) == 0
    printed = capsys.readouterr()
    assert "identical to the deliveries of the processes" in printed.out
    assert "emulated" in printed.out
    assert "causal release" in printed.out
    assert printed.err == ""
    tags = _Tags()
    tags.feed((out / "index.html").read_text())
    assert {"svg", "table", "h1"} <= tags.seen
    assert [link for link in tags.links if not link.startswith("#")] == [], "one file, offline"
    assert (out / "trace.parquet").exists()


def test_the_tour_of_ones_own_file(tmp_path: Path, said: Call) -> None:
    own = tmp_path / "mails.jsonl"
    own.write_text(
        '{"id":"b","parent":"a","sender":"y","date":20,"arrived":30}\n'
        '{"id":"a","parent":null,"sender":"x","date":10,"arrived":40}\n'
        "this is no JSON\n"
    )
    out = tmp_path / "tour"
    arguments = ["demo", "--engine", "local", "--trace", str(own), "--format", "mail"]
    printed = said(*arguments, "-o", str(out))
    assert "2 events read" in printed
    assert "1 row was quarantined" in printed
    assert "1 (50.0%) of 2 arrived before a declared cause: 1 pair" in printed


def test_a_file_that_is_not_there(capsys: Capture, tmp_path: Path) -> None:
    absent = str(tmp_path / "absent.log")
    code = main(["demo", "--engine", "local", "--trace", absent, "-o", str(tmp_path / "o")])
    assert code == 2
    assert "absent.log" in capsys.readouterr().err


def test_a_vector_clock_log_gets_its_causes_from_the_clocks() -> None:
    clocks = [("a1", "a", {"a": 1}), ("b1", "b", {"a": 1, "b": 1}), ("a2", "a", {"a": 2})]
    events = [
        Event(
            id=name,
            member=member,
            seq=clock[member],
            clock_members=tuple(clock),
            clock_counts=tuple(clock.values()),
            file_order=k,
        )
        for k, (name, member, clock) in enumerate(clocks)
    ]
    filled = with_declared_causes(table_of(events))
    assert dict(zip(*(filled.column(c).to_pylist() for c in ("id", "causes")), strict=True)) == {
        "a1": [],
        "a2": ["a1"],
        "b1": ["a1"],
    }
    told = table_of([event._replace(causes=("x",)) for event in events])
    assert with_declared_causes(told) is told, "declared causes are left alone"
