"""Queries about the events of a trace, against sets computed naively."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede.cli.traces.ask import split_words
from antecede.errors import InputError
from antecede.tables.causality.queries import CAUSES, CLOCKS, EVENTS, Causality
from antecede.tables.causality.queries import EventRef as Named
from antecede.tables.trace.arrow import write_events
from antecede.tables.trace.schema import DELIVER, RECEIVE, SEND, Event
from tests.core.oracle.executions import executions
from tests.reference.cause_graph import Graph
from tests.tables.conftest import Command
from tests.tables.events import clocked, moves, table_of


def places(table: pa.Table) -> list[int]:
    rows: list[Any] = table["file_order"].to_pylist()
    return rows


def follows(rows: Sequence[Event]) -> dict[int, set[int]]:
    """Return the rows that each row directly follows: at its member, and its send."""
    sent: dict[str, int] = {}
    for k, row in enumerate(rows):
        if row.kind == SEND:
            sent.setdefault(row.id, k)
    came = set()
    last: dict[str | None, int] = {}
    found: dict[int, set[int]] = {}
    for k, row in enumerate(rows):
        found[k] = {last[row.member]} if row.member in last else set()
        arrival = (row.id, row.member)  # a later one follows the first
        if row.kind in (RECEIVE, DELIVER) and row.id in sent and arrival not in came:
            found[k].add(sent[row.id])
            came.add(arrival)
        last[row.member] = k
    return found


def name_of(rows: Sequence[Event], k: int) -> Named | None:
    """Return the reference of a row, if it is the first one with it."""
    row = rows[k]
    named = Named(row.id, None if row.kind == SEND else row.member)
    alike = [
        j
        for j, other in enumerate(rows)
        if other.id == row.id and (named.member is None) == (other.kind == SEND)
        if named.member is None or other.member == row.member
    ]
    own = row.kind != SEND and any(r.kind == SEND and r.member == row.member for r in rows)
    return named if alike[0] == k and not own else None


@given(executions(steps=24))
def test_an_execution_is_asked_by_its_rows(rows: list[Event]) -> None:
    kinds = {row.kind for row in rows}
    if not (SEND in kinds and kinds & {RECEIVE, DELIVER}):
        return
    asked, graph = Causality(table_of(rows)), Graph(follows(rows))
    assert asked.by == EVENTS
    named = {k: name for k in range(len(rows)) if (name := name_of(rows, k)) is not None}
    for k, name in named.items():
        before = graph.ancestors(k)
        after = {j for j in range(len(rows)) if k in graph.ancestors(j)}
        assert places(asked.past(name)) == sorted(before)
        assert places(asked.future(name)) == sorted(after)
        assert places(asked.concurrent(name)) == sorted(
            set(range(len(rows))) - before - after - {k}
        )
    ends = sorted(named)[:4]
    for a in ends:
        for b in ends:
            check_pair(asked, graph, a, b, named, graph.causes)


def immediate(graph: Graph[int]) -> dict[int, set[int]]:
    """Return the causes of each row that no other of its causes has in its past."""
    return {
        row: {one for one in above if not any(one in graph.ancestors(other) for other in above)}
        for row in graph.causes
        for above in [graph.ancestors(row)]
    }


def check_pair(
    asked: Causality,
    graph: Graph[int],
    a: int,
    b: int,
    named: Mapping[int, Named],
    direct: Mapping[int, set[int]],
) -> None:
    before = a in graph.ancestors(b)
    assert asked.precedes(named[a], named[b]) == before
    chain = places(asked.path(named[a], named[b]))
    between = {j for j in graph.ancestors(b) if a in graph.ancestors(j)}
    assert places(asked.between(named[a], named[b])) == sorted(between)
    if not before:
        assert chain == []
        return
    assert (chain[0], chain[-1]) == (a, b)
    assert all(one in direct[other] for one, other in pairwise(chain))
    assert len(chain) == (steps(direct, a, b) or 0) + 1


@st.composite
def draw_events(draw: st.DrawFn) -> dict[str, list[str]]:
    names = [f"e{k}" for k in range(draw(st.integers(2, 9)))]
    return {
        name: draw(st.lists(st.sampled_from([*names[:k], "nowhere"]), max_size=3, unique=True))
        for k, name in enumerate(names)
    }


def steps(causes: Mapping[Any, Collection[Any]], a: Any, b: Any) -> int | None:
    """Return the length of a shortest chain from a to b."""
    far, todo = {b: 0}, deque([b])
    while todo:
        name = todo.popleft()
        for cause in causes.get(name, ()):
            if cause not in far:
                far[cause] = far[name] + 1
                todo.append(cause)
    return far.get(a)


@given(draw_events(), st.randoms())
def test_declared_causes_are_asked_in_whatever_order_rows_come(
    causes: dict[str, list[str]], random: Any
) -> None:
    graph = Graph(causes)
    names = list(causes)
    random.shuffle(names)
    rows = [Event(id=name, member="m", causes=tuple(causes[name])) for name in names]
    asked = Causality(table_of(rows), by=CAUSES, unproven=True)
    lacking = sum(cause not in causes for of in causes.values() for cause in of)
    proven = any(cause in causes for of in causes.values() for cause in of)
    assert asked.source == ("causes" if proven else "none")
    assert len(asked.notes) == bool(lacking) + (not proven)
    for a in names:
        assert set(asked.past(a)["id"].to_pylist()) == graph.ancestors(a)
        for b in names:
            before = a in graph.ancestors(b)
            assert asked.precedes(a, b) == before
            chain: list[Any] = asked.path(a, b)["id"].to_pylist()
            assert len(chain) == ((steps(causes, a, b) or 0) + 1 if before else 0)
            assert all(x in causes[y] for x, y in pairwise(chain))


def add_clocks(rows: Sequence[Event]) -> list[Event]:
    """Return the same execution as a log of vector clocks."""
    sent: dict[str, dict[str, int]] = {}
    now: dict[str, dict[str, int]] = {}
    found = []
    for row in rows:
        member = str(row.member)
        clock = dict(now.get(member, {}))
        if row.kind != SEND:
            for name, count in sent[row.id].items():
                clock[name] = max(clock.get(name, 0), count)
        clock[member] = now.get(member, {}).get(member, 0) + 1
        now[member] = clock
        if row.kind == SEND:
            sent[row.id] = clock
        found.append(clocked(f"{member}:{clock[member]}", member, clock))
    return found


@given(executions(steps=20))
def test_vector_clocks_say_what_the_rows_say(rows: list[Event]) -> None:
    if not rows:
        return
    log = add_clocks(rows)
    asked, graph = Causality(table_of(log)), Graph(follows(rows))
    assert asked.by == CLOCKS
    named = {k: Named(row.id) for k, row in enumerate(log)}
    for k in named:
        assert places(asked.past(named[k])) == sorted(graph.ancestors(k))
    for a in list(named)[:4]:
        for b in list(named)[-4:]:
            check_pair(asked, graph, a, b, named, immediate(graph))


def test_a_chain_of_a_clock_log_is_a_shortest_one_of_immediate_causes() -> None:
    log = [
        *(("q", "q1"), ("p", "p1q1"), ("p", "p2q1"), ("r", "q1r1")),
        *(("p", "p3q1"), ("p", "p4q1r1")),
    ]
    rows = []
    for member, text in log:
        clock = {text[k]: int(text[k + 1]) for k in range(0, len(text), 2)}
        rows.append(clocked(f"{member}:{clock[member]}", member, clock))
    asked = Causality(table_of(rows))
    assert asked.path("q:1", "p:4")["id"].to_pylist() == ["q:1", "r:1", "p:4"]


@given(executions(steps=24))
def test_depths_are_the_longest_chains(rows: list[Event]) -> None:
    if not rows:
        return
    graph = Graph(follows(rows))
    naive: dict[int, int] = {}
    for k in sorted(graph.causes, key=lambda row: len(graph.ancestors(row))):
        naive[k] = max((naive[one] + 1 for one in graph.causes[k]), default=0)
    want = [naive[k] for k in range(len(rows))]
    assert Causality(table_of(add_clocks(rows))).depths.tolist() == want
    kinds = {row.kind for row in rows}
    if SEND in kinds and kinds & {RECEIVE, DELIVER}:
        assert Causality(table_of(rows)).depths.tolist() == want


# -- what is refused -------------------------------------------------------------------------------

FORK = [
    Event(id="a", member="m"),
    Event(id="b", member="n", causes=("a",)),
    Event(id="c", member="o", causes=("a", "lost")),
]


def test_what_is_not_there_is_refused_with_what_looks_like_it() -> None:
    asked = Causality(table_of([*FORK, Event(id="abc", member="m")]))
    with pytest.raises(InputError, match=r"no event has the id ab; ids that contain it: abc"):
        asked.past("ab")
    with pytest.raises(InputError, match=r"b at m is not in the trace; the id b is, at n$"):
        asked.past(Named("b", "m"))
    with pytest.raises(InputError, match="by='magic': choose from"):
        Causality(table_of(FORK), by="magic")
    with pytest.raises(InputError, match="the trace lacks rows of sends"):
        Causality(table_of(FORK), by=EVENTS)
    with pytest.raises(
        InputError, match=r"by clocks: the source of causality of this trace is causes"
    ):
        Causality(table_of(FORK), by=CLOCKS)


def test_who_knows_no_id_is_told_what_ids_are_like() -> None:
    rows = [
        Event(id="p:1", member="p", text="sends a Vote"),
        Event(id="p:2", member="p", text="waits", causes=("p:1",)),
    ]
    asked = Causality(table_of(rows))
    with pytest.raises(InputError, match=r"no event has the id 17; ids are for instance p:1, p:2$"):
        asked.past("17")
    with pytest.raises(InputError, match=r"id vote; the texts of these events contain it: p:1$"):
        asked.past("vote")
    with pytest.raises(InputError, match=r"id P:2; ids that contain it: p:2$"):
        asked.past("P:2")
    long = "x" * 500
    with pytest.raises(InputError, match=r"ids are for instance x{77}\.\.\.$"):
        Causality(table_of([Event(id=long, member="p")]), unproven=True).past("y")


def test_causes_that_are_nowhere_are_named_and_taken_apart() -> None:
    rows = [
        Event(id="a", member="m"),
        Event(id="b", member="m"),
        Event(id="c", member="n", causes=("a;b", "zzz")),
    ]
    (lacking, several, _) = Causality(table_of(rows), unproven=True).notes
    assert lacking.startswith("2 causes (a;b, zzz) missing from the trace")
    assert "several ids in one, as in 'a;b'" in several
    assert several.endswith("give --list-separator ';'")
    many = [Event(id="c", member="n", causes=tuple(f"x{k}" for k in range(9)))]
    lacking = Causality(table_of(many), unproven=True).notes[0]
    assert lacking.startswith("9 causes (x0, x1, x2, x3, x4, ...)")


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"id": ["a"], "causes": [[]]}, "got dict: use pyarrow"),
        (["a"], "got list"),
        (pa.table({"x": [1]}), "no column id"),
        (
            pa.table({"id": ["a", "b"], "caused_by": [[], ["a"]]}),
            "no source of causality.* the columns are id, caused_by$",
        ),
    ],
)
def test_what_tells_nothing_is_not_asked(table: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        Causality(table)


def test_an_id_of_several_runs_needs_one() -> None:
    rows = [row._replace(run=run) for run in "xy" for row in FORK[:2]]
    asked = Causality(table_of(rows))
    with pytest.raises(InputError, match=r"b is in 2 runs: choose one \(x, y\)"):
        asked.past("b")
    assert asked.past(Named("b", run="y")).select(["id", "run"]).to_pylist() == [
        {"id": "a", "run": "y"}
    ]
    assert not len(asked.concurrent(Named("b", run="y")))  # events of other runs are not concurrent


def test_the_package_is_asked_by_its_name() -> None:
    import antecede.tables.causality as causality

    asked: Causality = causality(table_of(FORK))  # type: ignore[operator]
    assert asked.precedes("a", "c")


def test_rows_on_a_cycle_have_no_place() -> None:
    rows = [Event(id="a", causes=("b",)), Event(id="b", causes=("a",)), Event(id="c")]
    asked = Causality(table_of(rows))
    assert "2 rows without a position" in " ".join(asked.notes)
    with pytest.raises(InputError, match="a has no position"):
        asked.future("a")


def test_arrivals_of_what_nobody_sent_are_told() -> None:
    asked = Causality(table_of(moves("P!a Q.a Q.x")))
    assert asked.notes == [
        "1 arrival of messages without a send row: events before these are unknown"
    ]
    assert asked.precedes("a", "x")


# -- the command -----------------------------------------------------------------------------------


def test_words_are_paths_a_question_and_ids() -> None:
    assert split_words(["p", "q", "past", "a", "b"]) == (["p", "q"], "past", ["a", "b"])
    assert split_words(["past", "past", "a"]) == (["past"], "past", ["a"])  # a file called so
    for words, why in (
        (["p"], "no question"),
        (["p", "past"], "past: expected ID... behind the question, got 0 ids"),
        (["p", "before", "a"], "before: expected A B behind the question, got 1 id"),
        (["p", "concurrent", "a", "b"], "concurrent: expected ID behind the question, got 2 ids"),
    ):
        with pytest.raises(InputError, match=why):
            split_words(words)


def write_table(folder: Path, rows: Sequence[Event]) -> Path:
    path = folder / "log.parquet"
    write_events([row._replace(file_order=k) for k, row in enumerate(rows)], path)
    return path


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("past b", 0, "1 of 3 events happened before b, by declared causes:\n"),
        ("past b", 0, "Note: 1 cause (lost) missing from the trace"),
        ("before a b", 0, "yes: a happened before b; a chain of 1 step, by declared causes:"),
        ("before b a", 1, "no: a happened before b; a chain of 1 step"),
        ("before b c", 1, "no: b and c are concurrent"),
        ("before b b", 1, "no: b and b are one event"),
        ("between b c", 0, "none: b did not happen before c"),
        ("concurrent b", 0, "1 of 3 events is concurrent with b, by"),
    ],
)
def test_the_command_answers(
    words: str, code: int, said: str, tmp_path: Path, command: Command
) -> None:
    found = command("ask", write_table(tmp_path, FORK), *words.split())
    assert found.code == code
    assert said in found.out


def test_the_command_writes_its_answer(tmp_path: Path, command: Command) -> None:
    path, out = write_table(tmp_path, FORK), tmp_path / "out.csv"
    plain = command("ask", path, "future", "a", "--json").json
    assert (plain["answer"], [row["id"] for row in plain["rows"]]) == (2, ["b", "c"])
    assert "2 rows -> " in command("ask", path, "future", "a", "-o", out).out
    assert len(out.read_text().splitlines()) == 3
    assert command("ask", path, "future", "a", "-o", out).code == 2


def test_arrivals_are_named_by_member(tmp_path: Path, command: Command) -> None:
    path = write_table(tmp_path, moves("P!a@x Q.a@x Q!b"))
    said = "1 of 3 events happened before a@x at Q, by send and receive events"
    assert command("ask", path, "past", "a@x@Q").out.startswith(said)
    assert command("ask", path, "past", "a@x").out.startswith("0 of 3 events happened before a@x,")
    assert "a@x at R is not in the trace" in command("ask", path, "past", "a@x@R").err


def test_cells_hold_no_control_characters(tmp_path: Path, command: Command) -> None:
    rows = [Event(id="a", member="\x1b[2Jm", text="x\ny\x07" + "z" * 99), Event(id="b")]
    path = write_table(tmp_path, [*rows, Event(id="c", causes=("b",))])
    said = command("ask", path, "concurrent", "b", "--table").out
    assert not {"\x1b", "\x07"} & set(said)
    assert len(said.splitlines()) == 2
    assert max(map(len, said.splitlines())) < 100


def test_bytes_that_are_no_text_are_in_no_trace(tmp_path: Path, command: Command) -> None:
    file = tmp_path / "t.csv"
    file.write_text("id,causes\na,\nb,a\n")
    calls = ["past", "b\udcff"], ["before", "a", "b@\udcff"], ["past", "b", "--run-id", "\udcff"]
    for words in calls:
        found = command("ask", file, *words)
        assert found.code == 2
        assert "expected text" in found.err
    found = command("view", file, "--focus", "b\udcff@x", "-o", tmp_path / "t.html")
    assert found.code == 2
    assert "expected text" in found.err


def test_what_a_log_calls_its_events_moves_no_cursor(tmp_path: Path, command: Command) -> None:
    file = tmp_path / "t.jsonl"
    forged = {"id": "a\x1b[2J\u202e\nforged: line", "member": "P\x07"}
    effect = {"id": "b", "member": "P\x07", "causes": [forged["id"]]}
    file.write_text(json.dumps(forged) + "\n" + json.dumps(effect) + "\n")
    told = command("ask", file, "past", "a\x1b").err
    assert "a\\x1b[2J\\u202e" in told
    told += command("cut", file, "Z=1").err
    assert "P\\x07" in told
    assert not {"\x1b", "\u202e", "\x07"} & set(told)


def test_causes_that_another_run_has_are_counted_and_named() -> None:
    rows = {
        "run": ["x", "x", "x", "y"],
        "id": ["a", "b", "c", "d"],
        "causes": [[], ["a", "d"], ["d"], []],
    }
    asked = Causality(pa.table(rows))
    assert asked.notes == [
        "2 causes of 1 id (d) missing from the run of their effect, so earlier events are unknown"
    ]
