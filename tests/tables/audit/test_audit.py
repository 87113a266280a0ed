"""Audits of small tables: every key, quarantined rows, counted rows."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede.errors import InputError
from antecede.tables.audit import AuditReport, audit, audit_events
from antecede.tables.trace.schema import DELIVER, RECEIVE, SEND, Event
from tests.tables.conftest import Command
from tests.tables.events import clocked as clocked_event
from tests.tables.events import moves, table_of

KEYS = [
    *("format", "members", "messages", "duplicates", "edges", "cross_member_edges"),
    *("immediate_edges", "redundant_edges", "roots", "merges", "max_causes"),
    *("missing_causes", "self_causes", "ordered_pairs", "concurrent_pairs"),
    *("inversions", "clock_inconsistencies", "details", "causality_source"),
]


def report(*events: Event) -> AuditReport:
    return audit_events(table_of(events))


def reasons(of: AuditReport) -> list[str]:
    return [str(reason) for reason in of.quarantine["reason"].to_pylist()]


def test_diamond_with_an_implied_edge() -> None:
    found = report(
        Event(id="a", member="x", arrival=40),
        Event(id="b", member="y", causes=("a",), arrival=30),
        Event(id="c", member="x", causes=("a",), arrival=40),
        Event(id="d", member="x", causes=("b", "c", "a", "gone", "d"), arrival=35),
    )
    assert found.to_dict() | {"details": {}} == {
        "format": "table",
        "members": 2,
        "messages": 4,
        "duplicates": 0,
        "edges": 5,
        "cross_member_edges": 2,
        "immediate_edges": 4,
        "redundant_edges": 1,
        "roots": 1,
        "merges": 1,
        "max_causes": 4,
        "missing_causes": 1,
        "self_causes": 1,
        "ordered_pairs": 5,
        "concurrent_pairs": 1,
        "inversions": {"arrival": 3, "file_order": 0},
        "clock_inconsistencies": None,
        "details": {},
        "causality_source": "causes",
    }
    assert found.details["max_inversions"] == {"arrival": 10}
    assert list(found.to_dict()) == KEYS


def test_a_cycle_is_named_and_the_rest_is_counted() -> None:
    found = report(
        Event(id="root"),
        Event(id="a", causes=("c", "root")),
        Event(id="b", causes=("a",)),
        Event(id="c", causes=("b",)),
        Event(id="child", causes=("root", "c")),
    )
    assert (found.messages, found.edges, found.missing_causes) == (2, 1, 1)
    assert found.quarantine["id"].to_pylist() == ["a", "b", "c"]
    assert set(reasons(found)) == {"causes form a cycle: a <- c <- b <- a"}
    assert (found.details["cycles"], found.details["events_on_cycles"]) == (1, 3)
    assert "3 events that cause each other quarantined, in 1 cycle" in found.summary()


def test_later_rows_of_an_id() -> None:
    found = report(
        Event(id="a", member="x", arrival=1),
        Event(id="a", member="x", arrival=9),
        Event(id="a", member="y"),
        Event(id="b", causes=("a",)),
    )
    assert (found.messages, found.duplicates, found.edges, found.members) == (2, 2, 1, 1)
    assert reasons(found) == ["an earlier row of this id differs in member; that one counts"]


def test_receipts_and_deliveries_are_no_further_messages() -> None:
    found = report(*moves("y?a x!a y.a y?heard<a"))
    assert (found.messages, found.duplicates, found.edges) == (2, 0, 1)
    assert (found.details["receipts"], found.details["deliveries"]) == (2, 1)
    assert len(found.quarantine) == 0


def test_null_ids_and_absent_columns() -> None:
    table = pa.table({"id": ["a", None, "", "b"], "causes": [[], ["a"], [], ["a"]]})
    found = audit_events(table)
    assert (found.messages, found.edges, found.members) == (2, 1, None)
    assert found.cross_member_edges is None
    assert reasons(found) == ["no id", "no id"]


def test_columns_that_are_not_of_the_schema() -> None:
    with pytest.raises(InputError, match="no column id"):
        audit_events(pa.table({"name": ["a"]}))
    with pytest.raises(InputError, match="column seq"):
        audit_events(pa.table({"id": ["a"], "seq": ["first"]}))


@pytest.mark.parametrize("name", ["shiviz", "mail", "spans", "editing", "lora", "git", "table"])
def test_each_format_counts_events_that_have_ids_and_causes_only(name: str) -> None:
    found = audit_events(table_of([Event(id="a"), Event(id="b", causes=("a",))]), name)
    aside = {"no clock": 2} if name == "shiviz" else {}
    assert found.details["quarantine"] == aside
    assert (found.messages or 0) + sum(aside.values()) == 2


def test_inversions_know_the_whole_range_of_times() -> None:
    found = report(
        Event(id="a", send_time=2**63 - 1), Event(id="b", causes=("a",), send_time=-(2**63))
    )
    assert found.inversions == {"send_time": 1, "file_order": 0}
    assert found.details["max_inversions"]["send_time"] == 2**63 - 1


def make_clock_event(member: str, line: int, text: str = "", **clock: int) -> Event:
    return clocked_event(f"{member}:{clock.get(member)}", member, clock, text=text, line=line)


def test_clock_defects_leave_pairs_uncounted() -> None:
    found = report(
        make_clock_event("a", 1, a=1),
        make_clock_event("b", 2, a=1, b=1),
        make_clock_event("b", 3, b=2),
        make_clock_event("a", 4, a=2),
    )
    assert found.clock_inconsistencies is not None
    (defect,) = found.clock_inconsistencies
    assert (defect["member"], defect["position"], defect["line"]) == ("b", 2, 3)
    assert defect["entries"] == {"a": [1, 0]}
    assert found.ordered_pairs is None
    assert found.concurrent_pairs is None
    assert (found.messages, found.edges) == (4, 1)
    assert "b at 2, line 3" in found.summary()


def test_a_restart_keeps_its_events_and_a_repeated_file_does_not() -> None:
    first, second = make_clock_event("a", 1, "up", a=1), make_clock_event("a", 2, a=2)
    restart = report(first, second, make_clock_event("a", 3, "up again", a=1))
    assert (restart.messages, restart.duplicates) == (3, 0)
    assert restart.clock_inconsistencies is not None
    assert [defect["position"] for defect in restart.clock_inconsistencies] == [3]
    twice = report(first, second, first)
    assert (twice.messages, twice.duplicates, twice.ordered_pairs) == (2, 1, 1)


def test_a_clock_without_its_own_entry_is_set_aside() -> None:
    found = report(
        make_clock_event("a", 1, a=1), make_clock_event("b", 2, a=1), Event(id="c", member="c")
    )
    assert found.messages == 1
    assert reasons(found) == ["the clock has no entry of its own member 'b'", "no clock"]


names = st.sampled_from(["a", "b", "c", "d", ""])
drawn: dict[str, st.SearchStrategy[Any]] = {
    "id": names,
    "member": st.none() | names,
    "causes": st.lists(names, max_size=3).map(tuple),
    "kind": st.sampled_from([SEND, RECEIVE, DELIVER]),
    "arrival": st.none() | st.integers(-(2**63), 2**63 - 1),
}
rows = st.fixed_dictionaries(drawn).map(lambda fields: Event(**fields))


@given(st.lists(rows, max_size=8))
def test_every_row_is_counted_once_whatever_the_table(events: list[Event]) -> None:
    found = report(*events) if events else audit_events(pa.table({"id": pa.array([], "string")}))
    unnamed = sum(not event.id for event in events)
    on_cycles = found.details.get("events_on_cycles", 0)
    assert found.messages + on_cycles == len({event.id for event in events if event.id})
    assert sum(reason == "no id" for reason in reasons(found)) == unnamed
    assert found.ordered_pairs is not None
    assert found.concurrent_pairs is not None
    pairs = found.ordered_pairs + found.concurrent_pairs
    assert pairs == found.messages * (found.messages - 1) // 2
    assert found.summary()
    json.dumps(found.to_dict())


# --- the command ---------------------------------------------------------------------------


@pytest.fixture
def csv_file(tmp_path: Path) -> Path:
    path = tmp_path / "orders.csv"
    path.write_text("event_id,caused_by,host\nb,a,y\na,,x\nc,b,x,too many\n")
    return path


def test_json_and_quarantine(csv_file: Path, command: Command) -> None:
    aside = csv_file.with_name("bad.csv")
    printed = command("audit", csv_file, "--json", "--quarantine", aside).json
    assert list(printed) == KEYS
    assert (printed["messages"], printed["edges"], printed["details"]["quarantined"]) == (2, 1, 1)
    assert "4 cells" in aside.read_text()


def test_summary_names_the_findings_first(csv_file: Path, command: Command) -> None:
    shown = command("audit", csv_file).out
    assert shown.startswith("orders.csv: table, 2 events of 2 members\n\nFindings\n")
    assert "1 (100.0%) of 1 edges have the effect before its cause in file order" in shown
    assert shown.index("Findings") < shown.index("Counts")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere.csv"], "no such file"),
        (["orders.csv", "--format", "verse"], "unknown format 'verse'"),
        (["orders.csv", "--format", "mail"], "no readable record of format mail"),
        (["orders.csv", "--after", "cause"], "no column 'cause'"),
        (["orders.csv", "--quarantine", "bad.txt"], "unknown file ending"),
    ],
)
def test_clear_errors(
    arguments: list[str],
    said: str,
    csv_file: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: Command,
) -> None:
    monkeypatch.chdir(csv_file.parent)
    code, _, err = command("audit", *arguments)
    assert code == 2
    assert said in err


def test_two_formats_are_two_traces(csv_file: Path) -> None:
    other = csv_file.with_name("mail.jsonl")
    other.write_text('{"id":"a","parent":null,"sender":"s","date":1,"arrived":2}\n')
    with pytest.raises(InputError, match="format mail, but"):
        audit([csv_file, other])


def test_times_that_cannot_be_read_are_a_finding(tmp_path: Path) -> None:
    path = tmp_path / "times.csv"
    path.write_text("id,parent,time\na,,2024-01-01T00:00:00Z\nb,a,yesterday\n")
    assert "1 time not readable" in audit([path]).summary()
    path.write_text("id,parent,time\na,,2024-01-01T00:00:00Z\nb,a,2024-01-01\n")
    assert "not readable" not in audit([path]).summary()


@pytest.mark.parametrize(
    ("events", "says"),
    [
        (
            [Event(id="a", send_time=1, file_order=0), Event(id="b", causes=("a",), send_time=2)],
            "none: no effect comes before its cause by the sender's clock and in file order",
        ),
        (
            [Event(id="a"), Event(id="b", causes=("a",))],
            "none: no effect comes before its cause in file order; no times to check",
        ),
        ([Event(id="a", send_time=1)], "no data on causality"),
    ],
)
def test_a_finding_says_what_was_compared(events: list[Event], says: str) -> None:
    assert says in report(*events).summary()


def test_times_of_a_vector_clock_log_are_held_against_its_causes(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_text(
        r"(?<date>\S+ \S+) (?<event>.*)\n(?<host>\w+) (?<clock>{.*})" + "\n\n"
        '2024-01-01 10:00:05,250 asks\na {"a":1}\n2024-01-01 10:00:01,000 hears\nb {"b":1,"a":1}\n'
    )
    found = audit([log])
    assert found.inversions == {"send_time": 1, "file_order": 0}
    assert "by the sender's clock, by up to 4.2 s" in found.summary()
    log.write_text(log.read_text().replace("<date>", "<moment>"))
    found = audit([log])
    assert found.inversions == {"file_order": 0}
    assert "in file order; no times to check" in found.summary()
    assert "Groups of the expression kept as extra columns: moment" in found.summary()


def test_missing_ids_are_listed_and_told_from_references(tmp_path: Path, command: Command) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id,after\na,gone\nb,gone\nc,lost\nd,bad\nbad,x,too many\n")
    report = audit([path], missing=2)
    assert (report.missing_causes, report.details["missing_ids"]) == (4, 3)
    assert report.details["missing"] == [
        {"id": "gone", "run": None, "references": 2, "first": "a", "quarantined": False},
        {"id": "lost", "run": None, "references": 1, "first": "c", "quarantined": False},
    ]
    assert "4 references to 3 ids not in the trace" in report.summary()
    assert re.search(r"gone +2 +a\n", command("audit", path, "--list-missing").out)
    assert (
        "2 more ids (--list-missing 3 lists all)" in command("audit", path, "--list-missing", 1).out
    )
    assert command("audit", path, "--list-missing", "-1").code == 2


def test_clocks_that_count_events_which_the_log_lacks_are_a_finding(
    tmp_path: Path, command: Command
) -> None:
    log = tmp_path / "clocks.log"
    log.write_text(
        'a {"a":1}\nstart\nb {"b":1,"a":9}\nheard of nine\nb {"b":2,"a":9,"ghost":3}\nand ghosts\n'
    )
    found = audit([log])
    assert found.details["unlogged_entries"] == 3
    hosts = found.details["unlogged_hosts"]
    assert [(one["host"], one["count"], one["logged"], one["line"]) for one in hosts] == [
        ("a", 9, 1, 3),
        ("ghost", 3, 0, 5),
    ]
    assert found.ordered_pairs == 3  # a:1 before b:1 before b:2
    text = found.summary()
    assert "3 clock entries beyond the last logged event of a host" in text
    assert f"{log}, line 3: 9 of host 'a', last logged 1" in text
    assert f"{log}, line 5: 3 of host 'ghost', none logged" in text
    said = "this trace has vector clocks, so no ids are listed"
    assert said in command("audit", log, "--list-missing").err
    assert command("audit", log).err == ""
    log.write_text('a {"a":1}\nstart\nb {"b":1,"a":1}\nheard\n')
    sound = audit([log])
    assert "unlogged_hosts" not in sound.details
    assert "beyond" not in sound.summary()


def test_events_of_a_host_in_another_execution_are_not_those_of_this_one() -> None:
    one = make_clock_event("a", 1, a=9)._replace(run="one")
    two = make_clock_event("b", 2, b=1, a=2)._replace(run="two")
    (place,) = report(one, two).details["unlogged_hosts"]
    assert (place["host"], place["count"], place["logged"], place["run"]) == ("a", 2, 0, "two")
    assert "2 of host 'a' of two, none logged" in report(one, two).summary()


@pytest.mark.parametrize("separator", [";", ",", "|", " "])
def test_several_ids_in_one_cell_get_a_hint(
    separator: str, tmp_path: Path, command: Command
) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f'id,after\na,\nc,\nd,"a{separator}c"\ne,"a{separator}gone"\n')
    other = "," if separator == ";" else ";"
    said = command("audit", path, "--list-separator", other).out
    assert f"1 of these references is several ids in one, as in 'a{separator}c'" in said
    assert f"give --list-separator {separator!r}" in said
    assert "several ids in one" not in command("audit", path, "--list-separator", separator).out


def test_events_of_two_runs_are_no_concurrent_pair() -> None:
    rows = [
        Event(run=run, id=str(k), causes=(str(k - 1),) if k else ())
        for run in "xy"
        for k in range(3)
    ]
    rows += [Event(run="", id="one"), Event(run=None, id="two")]
    found = report(*rows)
    assert (found.ordered_pairs, found.concurrent_pairs) == (6, 1)


def test_shares_of_inversions_are_of_the_edges_that_both_ends_tell() -> None:
    times = {"a": 5, "b": 1, "c": None, "d": 7}
    rows = [
        Event(id=name, causes=("a",) if name != "a" else (), arrival=time)
        for name, time in times.items()
    ]
    found = report(*rows)
    assert found.inversions["arrival"] == 1
    assert found.details["compared_edges"]["arrival"] == 2
    said = " ".join(found.summary().split())
    assert "1 (50.0%) of 2 edges with both ends known have the effect before its cause" in said
