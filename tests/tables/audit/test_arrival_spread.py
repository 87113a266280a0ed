"""Arrival spread: late edges at one receiver and over all, and outliers."""

from __future__ import annotations

import random
from typing import Any

from antecede.tables.audit import audit_events
from antecede.tables.audit.arrival_spread import summarize_arrivals
from antecede.tables.audit.counts import by_causes
from antecede.tables.audit.report import find_farthest, list_arrival_findings
from antecede.tables.trace.rows import conform, distinct
from antecede.tables.trace.schema import RECEIVE, SEND, Event
from tests.tables.events import table_of


def of(events: list[Event]) -> dict[str, Any]:
    table = conform(table_of(events))
    return summarize_arrivals(table, by_causes(distinct(table, by_clock=False).events))


def make_send(name: str, *causes: str, at: int | None = None) -> Event:
    return Event(kind=SEND, id=name, member="s", causes=causes, arrival=at)


def make_receipt(name: str, member: str, at: int | None) -> Event:
    return Event(kind=RECEIVE, id=name, member=member, arrival=at)


def test_spread_and_receivers() -> None:
    rows = [
        make_send("a"),
        make_receipt("a", "x", 5),
        make_receipt("a", "y", 25),
        make_receipt("a", "z", None),
    ]
    rows += [
        make_send("b"),
        make_receipt("b", "x", 7),
        make_receipt("b", "y", 7),
        make_receipt("b", "x", 1000),
    ]
    rows += [make_send("c"), make_receipt("c", "x", 9), make_receipt("nobody sent it", "w", 3)]
    found = of(rows)
    assert found["receivers"] == 4
    assert found["receipts_without_time"] == 1
    assert found["messages_with_several_times"] == 2  # a, b: the first arrival at x counts
    assert found["spread_ns"] == {"min": 0, "p50": 0, "p99": 20, "max": 20}


def test_late_at_one_receiver_or_only_over_all() -> None:
    rows = [make_send("a"), make_send("b", "a"), make_send("c", "b"), make_send("d", "c")]
    rows += [make_receipt("a", "x", 10), make_receipt("b", "x", 9)]  # late at x
    rows += [
        make_receipt("b", "y", 50),
        make_receipt("c", "z", 30),
    ]  # at no receiver, but y and z disagree
    rows += [make_receipt("d", "z", 60), make_receipt("d", "y", 51)]
    found = of(rows)
    assert found["edges_late_at_a_receiver"] == 1
    assert found["edges_late_over_all_receivers"] == 2


def test_offsets_from_the_archives_clock() -> None:
    rows = [make_send("a", at=100), make_send("b", at=200), make_send("c")]
    rows += [make_receipt("a", "x", 90), make_receipt("b", "x", 170), make_receipt("c", "x", 5)]
    rows += [make_receipt("a", "y", 101), make_receipt("c", "z", 7)]
    assert of(rows)["offsets_ns"] == {"x": -30, "y": 1}  # of two, the lower is the median


def test_no_receipts_at_all() -> None:
    found = of([make_send("a"), make_send("b", "a")])
    assert found["spread_ns"] is None
    assert found["offsets_ns"] == {}
    assert (found["receivers"], found["edges_late_over_all_receivers"]) == (0, 0)


def test_against_plain_loops() -> None:
    random_source = random.Random(7)
    for _ in range(40):
        names = [str(k) for k in range(random_source.randrange(1, 9))]
        edges = {(a, b) for a in names for b in names if a < b and random_source.random() < 0.3}
        rows = [make_send(n, *(a for a, b in sorted(edges) if b == n)) for n in names]
        first: dict[str, dict[str, int]] = {n: {} for n in names}
        for _ in range(random_source.randrange(20)):
            name, member = random_source.choice(names), random_source.choice("xyz")
            at = random_source.randrange(12)
            rows.append(make_receipt(name, member, at))
            first[name][member] = min(at, first[name].get(member, at))
        found = of(rows)
        one = [
            (a, b) for a, b in edges if any(first[b].get(m, 99) < t for m, t in first[a].items())
        ]
        both = [
            (a, b)
            for a, b in edges
            if first[a] and first[b] and max(first[a].values()) > min(first[b].values())
        ]
        assert found["edges_late_at_a_receiver"] == len(one)
        assert found["edges_late_over_all_receivers"] == len(both)


def test_the_receiver_that_stands_out() -> None:
    assert find_farthest({"x": 1, "y": 2}) is None  # of two receivers, either may be wrong
    assert find_farthest({"x": 1, "y": 2, "z": 9}) == ("z", 7)
    assert find_farthest({"x": 1, "y": 2, "z": 3}) is None
    assert find_farthest({"x": 5, "y": 5, "z": 5}) is None


def test_findings_in_words() -> None:
    minute = 60 * 10**9
    rows = [make_send("a", at=0), make_send("b", "a", at=0)]
    rows += [
        make_receipt("a", "x", minute),
        make_receipt("b", "x", 0),
        make_receipt("a", "y", 0),
        make_receipt("a", "z", 0),
    ]
    rows += [make_send("c", at=0), make_receipt("c", "x", minute)]  # so that x's median is a minute
    report = audit_events(table_of(rows), "lora")
    said = [what for what, _ in list_arrival_findings(report.details["arrivals"], report.edges)]
    assert len(said) == 3
    assert said[0].startswith("1 (100.0%) of 1 edges have the effect before its cause by the clock")
    assert said[2].startswith("x has times 1.0 min ahead of the typical")
    assert all(line in report.summary() for line in said)
