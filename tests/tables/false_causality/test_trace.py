"""Pair counts of traces without receipts: declared causes, vector-clock logs, excluded rows."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antecede.core.clocks.bounds import Bounds
from antecede.errors import InputError
from antecede.tables.audit.engine import audit_events
from antecede.tables.false_causality.count import make_plan
from antecede.tables.false_causality.executions import FILE_ORDER
from antecede.tables.false_causality.kernels.causal_past import (
    compute_linear_times,
    count_causal_pairs,
)
from antecede.tables.false_causality.kernels.rule_terms import FAR, RulePlan
from antecede.tables.false_causality.measure import measure, select_observed
from antecede.tables.false_causality.rules import RULES
from antecede.tables.false_causality.summary import summarize
from antecede.tables.false_causality.trace import runs_of
from antecede.tables.kernels.graph import build_graph
from antecede.tables.trace.arrow import read
from antecede.tables.trace.schema import SEND, Event
from tests.reference.cause_graph import Graph
from tests.reference.meter_pairs import past_of
from tests.tables.events import clocked, moves, table_of

SECOND_NS = 1_000_000_000


def thread(seed: int, n: int = 30) -> list[Event]:
    """Return replies with up to three causes, partly out of order."""
    rng = random.Random(seed)
    rows = [
        Event(
            id=f"m{k}",
            member=rng.choice("PQR"),
            causes=tuple({f"m{rng.randrange(k)}" for _ in range(rng.randrange(4))} if k else ()),
            send_time=(k + rng.randint(-3, 3)) * SECOND_NS,
        )
        for k in range(n)
    ]
    late = rng.sample(range(n), 6)
    return [row for k, row in enumerate(rows) if k not in late] + [rows[k] for k in late]


def longest(graph: Graph[str], node: str) -> int:
    return max((longest(graph, cause) + 1 for cause in graph.causes[node]), default=0)


def says(rule: str, one: Event, other: Event, lt: dict[str, int], bounds: Bounds[str]) -> bool:
    apart = (other.send_time or 0) - (one.send_time or 0)
    near = 0 if one.member == other.member else bounds.least_ns
    error = bounds.error_ns(one.member or "") + bounds.error_ns(other.member or "")
    physical = apart >= near - error
    surely = apart > bounds.most_ns + error
    return {
        "linear": lt[one.id] < lt[other.id],
        "physical": physical,
        "linear-physical": lt[one.id] < lt[other.id] and physical,
        "physical:published": surely,
    }[rule]


@pytest.mark.parametrize("rule", ["linear", "physical", "linear-physical", "physical:published"])
@pytest.mark.parametrize(
    "bounds",
    [
        Bounds[str](accuracy_s=1, least_s=0, most_s=1),
        Bounds[str](accuracy_s=1, least_s=2, most_s=4),
        Bounds[str](accuracy_s=1, least_s=1, most_s=4, clocks={"P": 3.0}),
    ],
)
def test_declared_causes_are_counted_as_sets(rule: str, bounds: Bounds[str]) -> None:
    """One observer receives all in the order of the file; causality is ancestry."""
    for seed in range(6):
        rows = thread(seed)
        graph = Graph({row.id: row.causes for row in rows})
        lt = {row.id: longest(graph, row.id) for row in rows}
        causal = {(above, row.id) for row in rows for above in graph.ancestors(row.id)}
        ordered = {
            (one.id, other.id)
            for one in rows
            for other in rows
            if one is not other and says(rule, one, other, lt, bounds)
        }
        (found,) = measure(table_of(rows), [rule], bounds=bounds).to_pylist()
        assert found["observer"] == FILE_ORDER
        assert (found["ordered"], found["causal"]) == (len(ordered), len(causal))
        assert found["false_pairs"] == len(ordered - causal)
        assert found["missed_pairs"] == len(causal - ordered)


def test_total_orders_of_a_thread() -> None:
    rows = thread(2)
    graph = Graph({row.id: row.causes for row in rows})
    place = {row.id: at for at, row in enumerate(rows)}
    missed = sum(place[a] > place[row.id] for row in rows for a in graph.ancestors(row.id))
    (found,) = measure(table_of(rows), ["arrival"]).to_pylist()
    assert (found["ordered"], found["missed_pairs"]) == (30 * 29 // 2, missed)
    assert missed


def test_narrow_blocks_of_bits_count_the_same() -> None:
    rows = thread(4, 200)
    (run,) = runs_of(table_of(rows))
    (one,) = select_observed(run)
    plan = make_plan(one.timestamps, RULES["linear"])
    assert run.past is not None
    wide = count_causal_pairs(run.past, one.timestamps.sender, plan)
    assert count_causal_pairs(run.past, one.timestamps.sender, plan, words=1) == wide


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 3), st.sampled_from((1, 3)))
def test_windows_over_declared_causes_are_counted_as_pair_by_pair(
    seed: int, causes: int, senders: int
) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(0, 90))
    effect = np.repeat(np.arange(1, max(n, 1)), rng.integers(0, causes + 1, max(n - 1, 0)))
    cause = (rng.random(len(effect)) * effect).astype(np.int64)
    if causes == 1:  # a reply answers one message
        effect, first = np.unique(effect, return_index=True)
        cause = cause[first]
    shuffled = rng.permutation(n)
    of = build_graph(n, shuffled[effect], shuffled[cause])
    terms = int(rng.integers(1, 3))
    low = rng.integers(-9, 9, (terms, senders, senders))
    if terms == 2:  # no pair may be in two windows of a plan
        low[1] += 40
    high = np.where(rng.random(low.shape) < 0.3, FAR, low + rng.integers(0, 12, low.shape))
    high[0] = np.minimum(high[0], low[0] + 19)
    linear = rng.integers(0, 3, terms)
    plan = RulePlan(compute_linear_times(of), rng.integers(-30, 30, n), linear, low, high)
    sender = rng.integers(0, senders, n)
    after, before = np.nonzero(past_of(n, of.start, of.cause).T)
    apart = plan.value[after] - plan.value[before]
    window = slice(None), sender[before], sender[after]
    both = int(((low[window] <= apart) & (apart <= high[window])).sum())
    assert count_causal_pairs(of, sender, plan, words=1) == (len(after), both)
    assert count_causal_pairs(of, sender, plan) == (len(after), both)


# -- vector-clock logs -----------------------------------------------------------------------


def make_log(seed: int) -> list[Event]:
    """Return events of three members that count each of them, in the order of time."""
    rng = random.Random(seed)
    clocks = {name: dict.fromkeys("PQR", 0) for name in "PQR"}
    rows = []
    for number in range(40):
        name, other = rng.choice("PQR"), rng.choice("PQR")
        if rng.random() < 0.4:
            clocks[name] = {k: max(clocks[name][k], clocks[other][k]) for k in "PQR"}
        clocks[name][name] += 1
        known = {k: count for k, count in clocks[name].items() if count}
        rows.append(clocked(f"e{number}", name, known))
    return rows


@pytest.mark.parametrize("seed", range(5))
def test_a_clock_log_is_counted_by_its_vectors(seed: int) -> None:
    events = table_of(make_log(seed))
    (found,) = measure(events, ["linear"]).to_pylist()
    assert found["causal"] == audit_events(events, "shiviz").ordered_pairs
    assert found["missed_pairs"] == 0
    assert found["ordered"] > found["causal"]


@st.composite
def scale_counters(draw: st.DrawFn) -> list[Event]:
    """Return a part of a log's events, with each member's counters shifted and scaled."""
    rows = make_log(draw(st.integers(0, 10**6)))
    kept = draw(st.sets(st.integers(0, len(rows) - 1), min_size=2))
    huge = 2**62 - 2
    scale = {name: draw(st.sampled_from((1, 3, 10**6, 2**40, 2**55))) for name in "PQR"}
    shift = {name: draw(st.integers(0, huge - 41 * scale[name])) for name in "PQR"}
    return [
        row._replace(
            clock_counts=tuple(
                shift[name] + scale[name] * count
                for name, count in zip(row.clock_members or (), row.clock_counts or (), strict=True)
            )
        )
        for at, row in enumerate(rows)
        if at in kept
    ]


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(scale_counters())
def test_counters_of_any_size_and_step_give_the_pairs_that_the_audit_counts(
    rows: list[Event],
) -> None:
    (found,) = measure(table_of(rows), ["linear"]).to_pylist()
    assert found["events"] == len(rows)
    assert found["causal"] == audit_events(table_of(rows), "shiviz").ordered_pairs
    assert found["missed_pairs"] == 0


@pytest.mark.parametrize("absurd", [2**62 - 1, 2**63 - 1, -5])
@pytest.mark.parametrize("whose", ["own", "other"])
def test_a_row_with_an_absurd_counter_is_set_aside_and_the_rest_counted(
    absurd: int, whose: str
) -> None:
    check_set_aside(absurd, whose, 16, "a counter of the clock is no count (negative, or 2^62")


def test_a_claim_to_know_what_is_yet_to_come_is_set_aside() -> None:
    check_set_aside(10**12, "other", 0, "the clock knows what its member's own past forbids")


def check_set_aside(counter: int, whose: str, first: int, reason: str) -> None:
    """Change a counter of one event and check that only this event is excluded."""
    rows = make_log(3)
    at = next(k for k, row in enumerate(rows) if k >= first and len(row.clock_members or ()) == 3)
    row = rows[at]
    changed = next(m for m in "PQR" if (m == row.member) is (whose == "own"))
    clock = dict(zip(row.clock_members or (), row.clock_counts or (), strict=True))
    bad = row._replace(clock_counts=tuple({**clock, changed: counter}.values()))
    events = table_of([*rows[:at], bad, *rows[at + 1 :]])
    (run,) = runs_of(events)
    ((said, count),) = run.excluded_rows.items()
    assert said.startswith(reason)
    assert count == 1
    rest = measure(table_of(rows[:at] + rows[at + 1 :]), ["linear"])
    assert measure(events, ["linear"]).equals(rest)


def test_clocks_that_contradict_each_other_are_said_to() -> None:
    rows = [clocked("a", "P", {"P": 1, "Q": 5}), clocked("b", "P", {"P": 2, "Q": 3})]
    rows.append(clocked("q", "Q", {"Q": 4}))
    said = summarize(table_of(rows))
    assert said.clock_inconsistencies == 1
    assert any("inconsistent" in line for line in said.lines())
    assert not any("contradict" in line for line in summarize(table_of(make_log(0))).lines())


def test_events_whose_clock_says_nothing_are_left_out() -> None:
    rows = make_log(0)
    rows[5] = rows[5]._replace(clock_members=None, clock_counts=None)
    rows[9] = rows[9]._replace(clock_members=("Z",), clock_counts=(3,))
    rows.append(rows[0]._replace(id="again"))
    rows.append(rows[0]._replace(id="nobody", member=None))
    (run,) = runs_of(table_of(rows))
    assert run.excluded_rows["no member whose clock it is"] == 1
    assert sum(run.excluded_rows.values()) == 4
    assert len(run.ids) == 38
    assert measure(table_of(rows), ["linear"])["events"].to_pylist() == [38]


@pytest.mark.parametrize("name", ["chord.log", "ewd998.log", "RpcClientServer.log"])
def test_real_logs_have_the_pairs_that_the_audit_counts(name: str, shared_data: Path) -> None:
    trace = read([shared_data / "shiviz" / name], "shiviz")
    report = audit_events(trace.events, "shiviz")
    found = measure(trace.events, ["linear"]).to_pylist()
    assert sum(row["causal"] for row in found) == report.ordered_pairs
    assert sum(row["missed_pairs"] for row in found) == 0


@pytest.mark.parametrize("name", ["speakup.jsonl.gz", "linux-edac.jsonl.gz"])
def test_real_mail_has_the_pairs_that_the_audit_counts(name: str, shared_data: Path) -> None:
    trace = read([shared_data / "lore" / name])
    report = audit_events(trace.events, trace.format)
    for row in measure(trace.events, ["linear", "arrival"]).to_pylist():
        assert row["causal"] == report.ordered_pairs


# -- what a trace lacks, and what is left out ------------------------------------------------


def test_a_message_without_time_takes_the_rules_by_time_away() -> None:
    rows = thread(0)
    rows[3] = rows[3]._replace(send_time=None)
    rules = measure(table_of(rows), bounds=Bounds[str]())["rule"].to_pylist()
    assert rules == ["linear", "arrival"]
    with pytest.raises(InputError, match="not all messages have a send time"):
        measure(table_of(rows), ["timestamp"])


def test_rows_that_cannot_be_used_are_counted() -> None:
    rows = [*moves("P!a Q!a Q?a Q?ghost"), Event(kind=SEND, id="b"), Event(id="c", member="P")]
    (run,) = runs_of(table_of(rows))
    assert run.excluded_rows == {
        "neither sent, received nor delivered": 1,
        "no member": 1,
        "received or delivered, never sent": 1,
        "sent twice": 1,
    }
    assert {name: came.tolist() for name, came in run.arrivals.items()} == {"Q": [0]}


def test_circles_of_declared_causes_are_left_out() -> None:
    rows = [Event(id="a", causes=("b",)), Event(id="b", causes=("a",)), Event(id="c")]
    (run,) = runs_of(table_of(rows))
    assert run.excluded_rows == {"causes form a cycle": 2}
    assert list(run.ids) == ["c"]


def test_only_the_identity_is_needed() -> None:
    events = pa.table({"id": ["a", "b"], "causes": [[], ["a"]]})
    found = measure(events).to_pylist()
    assert [(row["rule"], row["causal"], row["missed_pairs"]) for row in found] == [
        ("linear", 1, 0),
        ("arrival", 1, 0),
    ]
    for bad, message in (
        (pa.table({"member": ["P"]}), "no column id"),
        (pa.table({"id": ["a"]}), "no source of causality"),
    ):
        with pytest.raises(InputError, match=message):
            measure(bad)


def test_the_relation_must_be_told_by_the_trace() -> None:
    with pytest.raises(InputError, match="needs rows of kind send and deliver"):
        measure(table_of(moves("P!a")), relation="delivery")
    with pytest.raises(InputError, match="unknown relation 'x'"):
        measure(table_of([Event(id="a")]), relation="x")


def test_runs_have_observers_of_their_own() -> None:
    one, other = moves("P!a Q.a", run="x"), moves("Q!a P.a", run="y")
    found = measure(table_of([one[0], *other, one[1]]), ["arrival"]).to_pylist()
    observers = [(row["run"], row["observer"], row["events"]) for row in found]
    assert observers == [("x", "Q", 1), ("y", "P", 1)]
