"""Clock skew of spans: bounds of pairs, shifts that explain all, contradictions."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede.tables.audit import audit, audit_events, difference_constraints
from antecede.tables.audit.clock_diagnosis import diagnose_clocks, find_conflict
from antecede.tables.audit.difference_constraints import Arc, solve
from antecede.tables.audit.report import AuditReport
from antecede.tables.audit.skew_text import format_offset
from antecede.tables.trace.arrow import SCHEMA, to_batch
from antecede.tables.trace.schema import Event

MS = 10**6


def span(
    id: str,
    member: str,
    start: int | None,
    end: int | None = None,
    parent: str | None = None,
    role: str | None = None,
) -> Event:
    causes = () if parent is None else (parent,)
    return Event(id=id, member=member, start_time=start, end_time=end, causes=causes, role=role)


def report_of(*spans: Event) -> AuditReport:
    return audit_events(pa.Table.from_batches([to_batch(spans)], SCHEMA), "spans")


def skew_of(*spans: Event) -> dict[str, Any]:
    found: dict[str, Any] = report_of(*spans).details["clock_skew"]
    json.dumps(found)  # plain numbers, text, lists and maps
    return found


# --- the system of bounds, against all possibilities ---------------------------------------

PROCESSES, LARGEST = 3, 3
REACH = LARGEST * (PROCESSES - 1)
ALL = list(itertools.product(range(-REACH, REACH + 1), repeat=PROCESSES))


def arcs_of(processes: int, least: int, most: int, size: int) -> st.SearchStrategy[list[Arc]]:
    number = st.integers(0, processes - 1)
    arc = st.builds(Arc, number, number, st.integers(least, most))
    return st.lists(arc.filter(lambda arc: arc.before != arc.after), max_size=size)


def satisfies_bounds(shifts: dict[int, int] | Sequence[int], arcs: list[Arc]) -> bool:
    of = shifts if isinstance(shifts, dict) else dict(enumerate(shifts))
    return all(of.get(arc.after, 0) <= of.get(arc.before, 0) + arc.weight for arc in arcs)


@pytest.mark.slow
@given(arcs_of(PROCESSES, -LARGEST, LARGEST, 6))
def test_shifts_are_the_least_of_all_that_keep_the_bounds(arcs: list[Arc]) -> None:
    found = solve(PROCESSES, arcs)
    possible = [shifts for shifts in ALL if satisfies_bounds(shifts, arcs)]
    if found.shifts is None:
        assert not possible
        assert found.least_largest is None
        cycle = found.contradiction
        assert all(one.after == two.before for one, two in itertools.pairwise([*cycle, cycle[0]]))
        assert sum(arc.weight for arc in cycle) < 0
        assert set(cycle) <= set(arcs)
        return
    assert satisfies_bounds(found.shifts, arcs)
    assert sum(map(abs, found.shifts)) == min(sum(map(abs, shifts)) for shifts in possible)
    assert found.least_largest == min(max(map(abs, shifts)) for shifts in possible)
    assert found.contradiction == []


@given(arcs_of(PROCESSES, -LARGEST, LARGEST, 6))
def test_shifts_that_are_not_the_least_keep_the_bounds_too(arcs: list[Arc]) -> None:
    """Beyond the limit of steps; arcs away from one process form no cycle."""
    arcs = [arc._replace(before=0, after=1 + k % 2) for k, arc in enumerate(arcs)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(difference_constraints, "MAX_STEPS", -1000)
        found = solve(PROCESSES, arcs)
    assert found.shifts is not None
    assert satisfies_bounds(found.shifts, arcs)
    assert not found.has_least_sum
    assert found.least_largest == solve(PROCESSES, arcs).least_largest


def test_numbers_of_any_size() -> None:
    huge = 1 << 70
    found = solve(3, [Arc(0, 1, -huge), Arc(1, 2, -huge)])
    assert found.shifts is not None
    assert (sum(map(abs, found.shifts)), found.least_largest) == (2 * huge, huge)


# --- bounds of a pair ----------------------------------------------------------------------


def test_the_known_skew_of_a_zipkin_trace(shared_data: Path) -> None:
    """Client 74.202 to 168.741, server 8.761 to 102.338 ms: the server's clock is behind."""
    report = audit([shared_data / "traces/skew.json"])
    skew = report.details["clock_skew"]
    (pair,) = skew["pairs"]
    assert (pair["of"], pair["against"]) == ("serviceb@192.0.0.0", "servicea@127.0.0.0")
    assert (pair["lower_ns"], pair["upper_ns"]) == (65_441_000, 66_403_000)
    assert (pair["least_shift_ns"], pair["middle_ns"]) == (65_441_000, 65_922_000)
    assert (pair["edges"], pair["calls"], pair["violations"]) == (1, 1, 1)
    assert skew["consistent"]
    assert skew["shifts_ns"] == {"serviceb@192.0.0.0": 65_441_000}
    assert (
        "shifting serviceb@192.0.0.0 by +65.441 ms (+65.441 ms to +66.403 ms) explains all of it; "
        "so does another choice of as many processes"
    ) in report.summary()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["onlineboutique-03_53", "onlineboutique-17_00"])
def test_one_pod_explains_all_inversions_of_a_trace(name: str, shared_data: Path) -> None:
    truth = json.loads((shared_data / "GROUND_TRUTH.json").read_text())[f"traces/{name}.csv.gz"]
    skew = audit([shared_data / f"traces/{name}.csv.gz"]).details["clock_skew"]
    ((pod, shift),) = skew["shifts_ns"].items()
    assert pod.startswith("adservice")
    assert shift == skew["total_shift_ns"] == truth["max_skew_ns"]
    violations = sum(pair["violations"] for pair in skew["pairs"])
    assert violations + skew["violations_within_a_process"] == truth["child_starts_before_parent"]
    assert sum(pair["edges"] for pair in skew["pairs"]) == truth["cross_process_edges"]
    assert all(pair["upper_ns"] is None for pair in skew["pairs"] if not pair["calls"])


def test_only_a_call_bounds_from_above() -> None:
    """A parent that delegates work does not wait for it."""
    for above, below, upper in (
        ("client", "server", 60),
        ("producer", "consumer", None),
        (None, None, None),
        ("client", "consumer", None),
    ):
        skew = skew_of(span("p", "A", 0, 100, role=above), span("c", "B", 10, 40, "p", below))
        (pair,) = skew["pairs"]
        assert (pair["lower_ns"], pair["upper_ns"]) == (-10, upper)
        assert pair["least_shift_ns"] == 0


def test_a_server_that_works_on_after_its_answer_bounds_nothing_from_above() -> None:
    skew = skew_of(span("p", "A", 0, 100, role="client"), span("c", "B", 10, 190, "p", "server"))
    assert (skew["pairs"][0]["upper_ns"], skew["pairs"][0]["calls"]) == (None, 0)
    assert skew["consistent"]


def test_edges_of_both_directions_bound_from_both_sides() -> None:
    skew = skew_of(
        span("p", "A", 100), span("c", "B", 95, parent="p"), span("d", "A", 120, None, "c")
    )
    (pair,) = skew["pairs"]
    assert (pair["of"], pair["against"]) == ("B", "A")
    assert (pair["lower_ns"], pair["upper_ns"], pair["least_shift_ns"]) == (5, 25, 5)
    assert (pair["edges"], pair["violations"]) == (2, 1)


def test_within_a_process_no_shift_explains_anything() -> None:
    skew = skew_of(span("p", "A", 100), span("c", "A", 95, parent="p"))
    assert (skew["pairs"], skew["violations_within_a_process"]) == ([], 1)
    assert skew["consistent"]


def test_spans_without_time_or_process_say_nothing() -> None:
    skew = skew_of(
        span("p", "A", None, 7),
        span("c", "B", 1, 2, "p"),
        span("d", "C", None, None, "c"),
        Event(id="e", start_time=0, causes=("c",)),
    )
    assert skew["pairs"] == []
    assert skew["total_shift_ns"] == 0


CALLS = st.tuples(
    st.sampled_from([(0, 1), (1, 0), (1, 2), (2, 0)]),
    *(st.integers(0, most) for most in (1000, 30, 30, 30)),
)


@given(
    st.lists(st.integers(-50, 50), min_size=3, max_size=3), st.lists(CALLS, min_size=1, max_size=8)
)
def test_true_offsets_are_within_the_bounds(
    offsets: list[int], calls: list[tuple[tuple[int, int], int, int, int, int]]
) -> None:
    spans = []
    for number, ((a, b), at, out, work, back) in enumerate(calls):
        end = at + out + work + back
        spans.append(span(f"p{number}", str(a), at + offsets[a], end + offsets[a], None, "client"))
        start, stop = at + out + offsets[b], at + out + work + offsets[b]
        spans.append(span(f"c{number}", str(b), start, stop, f"p{number}", "server"))
    skew = skew_of(*spans)
    assert skew["consistent"]
    for pair in skew["pairs"]:
        true = offsets[int(pair["against"])] - offsets[int(pair["of"])]
        assert pair["lower_ns"] <= true <= pair["upper_ns"]
        least = pair["least_shift_ns"]
        assert pair["lower_ns"] <= least <= pair["upper_ns"]
        assert (least == 0) == (pair["lower_ns"] <= 0 <= pair["upper_ns"])
    assert skew["total_shift_ns"] <= sum(map(abs, offsets))
    assert skew["least_largest_shift_ns"] <= max(map(abs, offsets))


def test_a_contradiction_names_the_spans() -> None:
    """B is 50 behind in one call and 50 ahead in the other: its clock stepped."""
    spans = (
        span("p", "A", 100, 200, role="client"),
        span("c", "B", 50, 140, "p", "server"),
        span("q", "A", 300, 400, role="client"),
        span("d", "B", 360, 450, "q", "server"),
    )
    skew = skew_of(*spans)
    assert not skew["consistent"]
    assert skew["shifts_ns"] is skew["total_shift_ns"] is skew["least_largest_shift_ns"] is None
    assert skew["pairs"][0]["least_shift_ns"] is None
    assert {(b["child"], b.get("least_ns"), b.get("most_ns")) for b in skew["contradiction"]} == {
        ("c", 50, None),
        ("d", None, -50),
    }
    text = report_of(*spans).summary()
    assert "no constant shifts explain them all" in text
    assert "B at least +50 ns against A (c)" in text


def test_a_contradiction_over_three_processes() -> None:
    """Each pair alone has a shift, the three together have none."""
    skew = skew_of(
        *(
            one
            for k, (a, b) in enumerate((("A", "B"), ("B", "C"), ("C", "A")))
            for one in (span(f"p{k}", a, 10), span(f"c{k}", b, 3, None, f"p{k}"))
        )
    )
    assert all(pair["least_shift_ns"] is not None for pair in skew["pairs"])
    circle = skew["contradiction"]
    assert {bound["child"] for bound in circle} == {"c0", "c1", "c2"}
    assert [bound["against"] for bound in circle] == [b["of"] for b in circle[1:] + circle[:1]]


def test_times_at_the_ends_of_their_range() -> None:
    least, most = -(1 << 63), (1 << 63) - 1
    skew = skew_of(
        span("p", "A", most, least, role="client"), span("c", "B", least, most, "p", "server")
    )
    assert skew["pairs"] == []
    skew = skew_of(span("p", "A", most // 2), span("c", "B", least // 2 + 1, None, "p"))
    assert skew["shifts_ns"] == {"B": most - 1}


@pytest.mark.parametrize(
    ("time_ns", "shown"),
    [
        (0, "0"),
        (None, "any"),
        (-7, "-7 ns"),
        (1500, "+1.5 µs"),
        (65 * MS, "+65 ms"),
        (-12_345_678_901, "-12.346 s"),
    ],
)
def test_offsets_in_words(time_ns: int | None, shown: str) -> None:
    assert format_offset(time_ns) == shown


@given(arcs_of(5, -6, 20, 14))
def test_the_fewest_hosts_are_blamed(arcs: list[Arc]) -> None:
    known = solve(5, arcs).shifts
    if known is None:
        return
    found = diagnose_clocks(5, arcs, known)
    assert found.is_minimal
    assert satisfies_bounds(found.shifts, arcs)
    by_size = [
        [c for c in itertools.combinations(range(5), n) if not find_conflict(arcs, frozenset(c))]
        for n in range(6)
    ]
    least = next(sets for sets in by_size if sets)
    assert (len(least[0]), len(least) - 1) == (len(found.shifts), found.other_choices)
    for host, (low, high) in found.ranges.items():
        shift = found.shifts[host]
        assert low is None or low <= shift
        assert high is None or shift <= high


@given(arcs_of(3, -3, 4, 6), st.sets(st.integers(0, 2), max_size=2))
def test_a_conflict_is_told_where_no_shifts_of_the_chosen_hosts_would_do(
    arcs: list[Arc], chosen: set[int]
) -> None:
    if solve(3, arcs).shifts is None:
        return
    possible = any(
        satisfies_bounds(dict(zip(chosen, shifts, strict=True)), arcs)
        for shifts in itertools.product(range(-9, 10), repeat=len(chosen))
    )
    between = find_conflict(arcs, frozenset(chosen))
    assert (between is None) == possible
    assert between is None or not between & chosen


def test_two_of_six_hosts_are_named_with_amounts_bounds_and_the_worst_event(tmp_path: Path) -> None:
    rng = random.Random(1)
    off = {"h1": 300, "h4": -500}
    now, lines = 1_700_000_000_000, ["id,after,host,time"]
    for number in range(600):
        host, now = f"h{rng.randrange(6)}", now + rng.randrange(1, 20)
        after = f"m{rng.randrange(max(0, number - 10), number)}" if number else ""
        lines.append(f"m{number},{after},{host},{now + off.get(host, 0)}")
    path = tmp_path / "t.csv"
    path.write_text("\n".join(lines))
    report = audit([path])
    skew = report.details["clock_skew"]
    assert [one["host"] for one in skew["hosts"]] == ["h4", "h1"]
    for one in skew["hosts"]:
        assert one["from_ns"] <= -off[one["host"]] * 10**6 <= one["to_ns"]
    assert (skew["minimal"], skew["other_choices"]) == (True, 0)
    worst = skew["worst"]
    assert {worst["of"], worst["against"]} == {"h1", "h4"}
    text = report.summary()
    assert "shifting h4 by +" in text
    assert f"{worst['effect']} of h4" in text
    assert f"({worst['effect']} before its cause {worst['cause']})" in text


def test_vector_clock_logs_with_times_tell_of_clocks_too(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_text(
        r"(?<ts>\d+) (?<host>\w+) (?<clock>{.*}) (?<event>.*)" + "\n\n"
        '1700000000 a {"a":1} asks\n1699999995 b {"b":1,"a":1} hears\n'
        '1699999996 b {"b":2,"a":1} answers\n1700000002 a {"a":2,"b":2} hears\n'
        '1700000001 c {"c":1,"a":1} hears\n1699999997 b {"b":3,"a":1,"c":1} hears c\n'
    )
    skew = audit([path]).details["clock_skew"]
    (host,) = skew["hosts"]
    assert (host["host"], host["shift_ns"]) == ("b", 5 * 10**9)
