"""Audits of vector-clock logs on Spark: each run as in the local engine."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pytest
from pyspark.sql import SparkSession

from antecede.spark import audit
from antecede.spark.audits.audit import remove_order_counts
from antecede.spark.audits.clocks import find_large_runs
from antecede.spark.audits.event_columns import ROW_ORDER, RUN_KEY, select_events
from antecede.tables.audit import audit_events
from antecede.tables.trace.arrow import read, to_batch
from antecede.tables.trace.schema import DELIVER, EVENT, RECEIVE, SEND, Event
from tests.spark.sampling import sample_cases
from tests.spark.test_audit_frame import audit_locally, check_same, rows_to_reports, write_spread

pc: Any = pyarrow.compute  # its stubs know too few kinds of arrays

HOSTS = ("a", "b", "c", "é:1", "'", "", " ")
LARGEST = 2**63 - 1


def make_execution(rng: random.Random, run: str | None, n: int) -> list[Event]:
    """Return events with right clocks, in no order, some left out of the log."""
    hosts = rng.sample(HOSTS, rng.choice((1, 2, 4, 6)))
    latest: dict[str, dict[str, int]] = {host: {} for host in hosts}
    events: list[Event] = []
    for k in range(n):
        host = rng.choice(hosts)
        clock = dict(latest[host])
        if events and rng.random() < 0.5:
            heard = rng.choice(events[-8:])
            for name, count in zip(
                heard.clock_members or (), heard.clock_counts or (), strict=True
            ):
                clock[name] = max(count, clock.get(name, 0))
        clock[host] = clock.get(host, 0) + 1
        latest[host] = clock
        events.append(
            Event(
                run=run,
                id=f"{run} {k}",
                member=host,
                clock_members=tuple(clock),
                clock_counts=tuple(clock.values()),
                text=rng.choice((None, "x")),
                arrival=rng.choice((None, k, n - k, LARGEST)),
                source=rng.choice((None, 'f"1')),
                line=rng.choice((None, k)),
            )
        )
    return [event for event in events if rng.random() < 0.95]


def spoil_event(rng: random.Random, event: Event, other: Event) -> Event:
    """Return an event with something wrong with its clock, or with a repeat of its number."""
    clock: dict[Any, Any] = dict(
        zip(event.clock_members or (), event.clock_counts or (), strict=True)
    )
    names = [*clock]
    what = rng.randrange(16)
    if what < 4:  # an entry that is raised, lowered or lost, be it the event's own
        clock[rng.choice([*HOSTS, *names])] = rng.choice((0, 1, 2, 5, 9, LARGEST, LARGEST - 1))
    elif what < 6:
        clock.pop(rng.choice(names))
    elif what == 6:
        clock[rng.choice(("ghost", "other ghost", names[0]))] = rng.choice((3, -1, None))
    elif what == 7:
        return event._replace(clock_members=None, clock_counts=None)
    elif what == 8:
        return event._replace(clock_members=(*names, names[0], *rng.choice(((), (None,)))))
    elif what == 9:
        return event._replace(clock_counts=rng.choice((None, (), (1, 2, 3))))
    elif what == 10:
        return event._replace(member=rng.choice((None, "nobody", "no: body", 'it\'s "x"')))
    elif what < 14:  # what another event knows, perhaps a later one
        clock |= dict(zip(other.clock_members or (), other.clock_counts or (), strict=True))
        clock[event.member] = dict(zip(names, event.clock_counts or (), strict=True))[event.member]
    elif what < 15:  # the number of the member's event before
        clock[event.member] = max(1, clock[event.member] - 1)
    else:
        return event._replace(id=rng.choice(("", event.id)), text=rng.choice((None, "again")))
    return event._replace(clock_members=tuple(clock), clock_counts=tuple(clock.values()))


def make_copy(rng: random.Random, event: Event) -> Event:
    """Return a row of a receipt or delivery at any host in the clock."""
    host = rng.choice(event.clock_members or (None,))
    return event._replace(kind=rng.choice((RECEIVE, RECEIVE, DELIVER, EVENT)), member=host)


def make_odd_log(seed: int) -> pa.Table:
    """Return logs of some runs, from valid to invalid ones, with rows in any order."""
    rng = random.Random(seed)
    rows: list[Event] = []
    for run, wrong in ((None, 0.0), ("", 0.0), ("r", 0.04), ("s", 0.3), ("t:1", rng.random())):
        talks = rng.random() < 0.5
        events = make_execution(rng, run, rng.choice((1, 20, 60)))
        events = [e._replace(kind=SEND) for e in events] if talks else events
        rows += [
            spoil_event(rng, e, rng.choice(events)) if rng.random() < wrong else e for e in events
        ]
        rows += rng.sample(events, len(events) // 9)  # listed twice
        rows += [make_copy(rng, e) for e in rng.sample(events, len(events) // 3) if talks]
    rows += [Event(run="bad", id=str(k), member=rng.choice(HOSTS)) for k in range(3)]
    rng.shuffle(rows)
    return pa.Table.from_batches([to_batch([r._replace(file_order=k) for k, r in enumerate(rows)])])


@pytest.mark.slow
@pytest.mark.parametrize("seed", sample_cases(range(6), {0, 2, 4}))
def test_each_run_as_locally_over_odd_logs(spark: SparkSession, seed: int) -> None:
    table = make_odd_log(seed)
    check_same(
        rows_to_reports(audit(write_spread(spark, table), by="clocks", large_groups="always")),
        audit_locally(table, clocked=True),
    )


def test_the_odd_logs_have_whatever_can_be_wrong() -> None:
    seen = dict[str, int]()
    for seed in range(6):
        for report in audit_locally(make_odd_log(seed), clocked=True).values():
            details = report["details"] | {"defects": report["clock_inconsistencies"]}
            details["absent"] = [h for h in details.get("unlogged_hosts", ()) if not h["logged"]]
            details["implied"] = report["redundant_edges"]
            details["none wrong"] = report["ordered_pairs"]
            for name, value in details.items():
                seen[name] = seen.get(name, 0) + bool(value)
    wanted = ("clock_gaps", "repeated_counters", "mutual_events", "unmerged_events", "defects")
    assert all(seen[name] > 1 for name in wanted), seen
    rest = (
        "unlogged_hosts",
        "absent",
        "implied",
        "none wrong",
        "violations",
        "channels",
        "quarantine",
    )
    assert all(seen[name] > 1 for name in rest), seen


@pytest.mark.slow
def test_a_log_without_an_order_of_rows(spark: SparkSession) -> None:
    df = write_spread(spark, make_odd_log(11)).drop("file_order")
    rows = select_events(df).sort(ROW_ORDER).toArrow()
    found = rows_to_reports(audit(df, by="clocks", large_groups="always"))
    assert len(found) > 2
    expected = {}
    for run in found:
        table = rows.filter(pc.equal(rows[RUN_KEY], run)).drop_columns([RUN_KEY, ROW_ORDER])
        expected[run] = remove_order_counts(
            audit_events(table, clocked=True).to_dict(), is_ordered=False
        )
    check_same(found, expected)


@pytest.mark.slow
def test_columns_that_are_not_there_and_pairs_that_nobody_wants(spark: SparkSession) -> None:
    log = [("a", ["a"], [1]), ("b", ["a", "b"], [1, 1]), ("b", ["a", "b"], [1, 2]), ("c", [], [])]
    df = spark.createDataFrame(
        [(f"{k}", *row) for k, row in enumerate(log)],
        "id string, member string, clock_members array<string>, clock_counts array<long>",
    )
    (row,) = audit(df, large_groups="always").collect()
    assert (row.messages, row.members, row.edges, row.immediate_edges) == (3, 2, 1, 2)
    assert (row.ordered_pairs, row.concurrent_pairs, row.quarantined) == (3, 0, 1)
    assert row.quarantine == {"the clock has no entry of its own member 'c'": 1}
    (row,) = audit(df, pairs=False, large_groups="always").collect()
    assert (row.messages, row.edges, row.ordered_pairs, row.immediate_edges) == (3, 1, None, None)
    (row,) = audit(df, pairs="estimate", pair_steps=0, large_groups="always").collect()
    assert (row.ordered_pairs, row.ordered_pairs_estimated) == (3, None)
    (row,) = audit(df.select("id"), by="clocks", large_groups="always").collect()
    assert (row.messages, row.rows, row.quarantine) == (0, 4, {"no clock": 4})


@pytest.mark.slow
def test_real_logs_as_locally(spark: SparkSession, shared_data: Path) -> None:
    table = read([shared_data / "shiviz/simpledb.log"]).events
    check_same(
        rows_to_reports(audit(write_spread(spark, table), by="clocks", large_groups="always")),
        audit_locally(table, clocked=True),
    )


@pytest.mark.slow
def test_large_runs_by_columns_and_all_others_a_task_each(spark: SparkSession) -> None:
    table = make_odd_log(4)
    df = write_spread(spark, table)
    runs = pc.fill_null(table["run"], "")
    sizes = {run: table.filter(pc.equal(runs, run)).nbytes for run in runs.unique().to_pylist()}
    most = max(sizes.values()) * 6 // 5
    large = find_large_runs(select_events(df), most)
    assert 0 < len(large) < len(sizes)
    check_same(
        rows_to_reports(audit(df, by="clocks", max_run_bytes=most)),
        audit_locally(table, clocked=True),
    )
