"""Matrix, Automerge, Nostr, CloudEvents: ids, causes and times of each format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from antecede.cli import main
from antecede.errors import InputError
from antecede.tables.audit import audit
from antecede.tables.trace.arrow import read
from antecede.tables.trace.causes import AMBIGUOUS_CAUSES, BLANK
from antecede.tables.trace.formats.document_formats import FORMATS
from antecede.tables.trace.reader import ReadOptions
from antecede.tables.trace.time_text import UNREADABLE_TIMES
from tests.tables.trace.files import get_causes, get_column, run_command, write_file
from tests.tables.trace.files import write_lines as write_lines

S, MS = 10**9, 10**6


def lines(folder: Path, *records: Any, name: str = "t.jsonl") -> Path:
    return write_lines(folder / name, records)


# --- Matrix ---------------------------------------------------------------------------------


def matrix(identity: str, at: int, **more: Any) -> dict[str, Any]:
    event = {"event_id": identity, "room_id": "!r:h", "sender": "@u:h", "type": "m.room.message"}
    return {**event, "origin_server_ts": at, **more}


def relates(**what: Any) -> dict[str, Any]:
    return {"body": "hi", "m.relates_to": what}


ROOM = (
    matrix("$1", 5, prev_events=[]),
    matrix("$2", 4, prev_events=["$1"], content={"body": "hello"}),
    matrix("$3", 3, prev_events=[["$1", {"sha256": "x"}], ["$2", {}]]),
    matrix("$4", 6, content=relates(**{"m.in_reply_to": {"event_id": "$3"}})),
    matrix("$5", 7, content=relates(rel_type="m.annotation", event_id="$4", key="+1")),
    matrix("$6", 8, prev_events=["$5"], redacts="$5"),
    matrix("$7", 9, prev_events=["$6"], content={"redacts": "$2"}),
    matrix("$8", 9, prev_events=["$7", ""]),
)
ROOM_CAUSES = {
    "$1": [],
    "$2": ["$1"],
    "$3": ["$1", "$2"],
    "$4": ["$3"],
    "$5": ["$4"],
    "$6": ["$5"],
    "$7": ["$6", "$2"],
    "$8": ["$7"],
}


def test_matrix_events_as_lines_and_as_exports_of_a_room(tmp_path: Path) -> None:
    found = read([lines(tmp_path, *ROOM)])
    assert found.format == "matrix"
    assert get_causes(found) == ROOM_CAUSES
    assert get_column(found, "send_time")[:2] == [5 * MS, 4 * MS]
    assert get_column(found, "topics")[0] == ["!r:h"]
    assert get_column(found, "text")[:2] == ["m.room.message", "hello"]
    assert get_column(found, "line") == list(range(1, 9))
    assert found.details == {BLANK: 1}
    for value in (
        {"room_name": "r", "exported_by": "u", "messages": list(ROOM)},
        {"start": "t1", "chunk": list(ROOM), "end": "t2"},
        list(ROOM),
    ):
        trace = read([write_file(tmp_path, value)])
        assert (trace.format, get_causes(trace)) == ("matrix", ROOM_CAUSES)


def test_matrix_events_that_cannot_be_read_are_set_aside(tmp_path: Path) -> None:
    path = lines(
        tmp_path,
        ROOM[0],
        {key: value for key, value in ROOM[1].items() if key != "event_id"},
        matrix("$b", 2, prev_events=[{"event_id": "$1"}]),
        matrix("$c", 2, prev_events={"event_id": "$1"}),
        ["no object"],
        matrix("$d", "soon", prev_events=["$1"]),  # type: ignore[arg-type]
    )
    trace = read([path])
    assert get_causes(trace) == {"$1": [], "$d": ["$1"]}
    reasons = [row["reason"] for row in trace.quarantine.to_pylist()]
    assert "no event_id; export events with it" in reasons[0]
    assert reasons[1:3] == ["invalid cause: {'event_id': '$1'}; expected an id"] * 2
    assert reasons[3] == "not a JSON object"
    assert trace.details == {UNREADABLE_TIMES: 1}


# --- Automerge ------------------------------------------------------------------------------


def test_automerge_changes_with_dependencies_by_actor(tmp_path: Path) -> None:
    def change(actor: str, seq: int, **deps: int) -> dict[str, Any]:
        return {"actor": actor, "seq": seq, "deps": deps, "message": None, "ops": []}

    path = lines(
        tmp_path,
        change("a", 2),
        change("b", 1, a=2),
        change("a", 1),
        change("a", 3, b=1, c=4),
        change("d", 1, a=0),
    )
    trace = read([path])
    assert trace.format == "automerge"
    assert get_causes(trace) == {
        "a:2": ["a:1"],
        "b:1": ["a:2"],
        "a:1": [],
        "a:3": ["b:1", "c:4", "a:2"],
        "d:1": [],
    }
    assert get_column(trace, "seq") == [2, 1, 1, 3, 1]
    assert audit([path]).missing_causes == 1


def test_automerge_changes_with_dependencies_by_hash(tmp_path: Path) -> None:
    def change(name: str, seq: int, time: int, *deps: str) -> dict[str, Any]:
        head = {"actor": "aa", "seq": seq, "startOp": 1, "time": time, "message": "m"}
        return {**head, "deps": list(deps), "hash": name, "ops": []}

    changes = [change("h1", 1, 0), change("h2", 2, 1700000000, "h1"), change("h3", 3, 7, "h1", "x")]
    trace = read([write_file(tmp_path, changes)])
    assert get_causes(trace) == {"h1": [], "h2": ["h1"], "h3": ["h1", "x"]}
    assert get_column(trace, "send_time") == [None, 1700000000 * S, 7 * S]
    assert get_column(trace, "member") == ["aa"] * 3
    assert trace.details == {}


# --- Nostr ----------------------------------------------------------------------------------


def test_nostr_events_name_events_in_tags(tmp_path: Path) -> None:
    def event(name: str, *tags: list[str]) -> dict[str, Any]:
        head = {"id": name, "pubkey": "k", "created_at": 1700000000, "kind": 1}
        return {**head, "tags": list(tags), "content": "hi", "sig": "s"}

    path = lines(
        tmp_path,
        event("a"),
        event("b", ["e", "a", "wss://r", "root"], ["p", "k"]),
        event("c", ["e", "a", "", "root"], ["e", "b", "", "reply"], ["t", "x"]),
        event("d", ["e", ""], ["e"], ["a", "30023:k:x"]),
    )
    trace = read([path])
    assert trace.format == "nostr"
    assert get_causes(trace) == {"a": [], "b": ["a"], "c": ["a", "b"], "d": []}
    assert get_column(trace, "send_time") == [1700000000 * S] * 4
    assert trace.details == {BLANK: 1}


# --- CloudEvents ----------------------------------------------------------------------------


def cloud(source: str, identity: str, **more: Any) -> dict[str, Any]:
    event = {"specversion": "1.0", "id": identity, "source": source, "type": "t"}
    return {**event, "time": "2025-07-10T10:00:00.25Z", **more}


def test_cloudevents_are_named_by_source_and_id(tmp_path: Path) -> None:
    path = lines(
        tmp_path,
        cloud("/pay", "2", causationid="1"),
        cloud("/shop", "1"),
        cloud("/mail", "3", causationid="2"),
        cloud("/mail", "4", causationid="/pay:2"),
        cloud("/mail", "5", causationid="gone"),
        cloud("/shop", "6", correlationid="o1"),
    )
    trace = read([path])
    assert trace.format == "cloudevents"
    assert get_causes(trace) == {
        "/pay:2": ["/shop:1"],
        "/shop:1": [],
        "/mail:3": ["/pay:2"],
        "/mail:4": ["/pay:2"],
        "/mail:5": ["gone"],
        "/shop:6": [],
    }
    assert get_column(trace, "member")[0] == "/pay"
    assert get_column(trace, "send_time")[0] % S == S // 4
    assert audit([path]).duplicates == 0


def test_ids_are_those_of_a_table_by_source_and_id(tmp_path: Path) -> None:
    source = "https://a.example/x"
    path = lines(
        tmp_path,
        cloud(source, "1"),
        cloud(source, "2", causationid="1"),
        cloud("b", "3", causationid=f"{source}:2"),
    )
    trace = read([path])
    by_columns = ReadOptions(columns={"id": ("source", "id")})
    assert get_column(trace, "id") == get_column(read([path], options=by_columns), "id")
    first, second, third = get_column(trace, "id")
    assert get_causes(trace) == {first: [], second: [first], third: [second]}


def test_an_event_without_a_source_is_set_aside(tmp_path: Path) -> None:
    bare = {"specversion": "1.0", "id": "1", "type": "t"}
    trace = read([lines(tmp_path, cloud("/a", "1"), bare, cloud("/a", "2", causationid="1"))])
    assert get_causes(trace) == {"/a:1": [], "/a:2": ["/a:1"]}
    assert [row["reason"] for row in trace.quarantine.to_pylist()] == [
        "no source: ids are unique only within it"
    ]


def test_an_id_of_several_sources_names_no_cause(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = lines(
        tmp_path, cloud("/shop", "1"), cloud("/pay", "1"), cloud("/pay", "2", causationid="1")
    )
    trace = read([path])
    assert get_causes(trace)["/pay:2"] == ["1 (of 2 sources)"]
    assert trace.details == {AMBIGUOUS_CAUSES: 1}
    assert main(["false-causality", str(path)]) == 2  # this cause is not a causality source
    assert "example: '1 (of 2 sources)'" in capsys.readouterr().err


@pytest.mark.parametrize(
    "sequences",
    [("00000001", "00000002", "00000010"), ("1", "2", "10"), ("a", "b", "c"), (1, 2, 10)],
)
def test_the_sequence_of_a_source_is_its_order(sequences: Any, tmp_path: Path) -> None:
    first, second, third = sequences
    path = lines(
        tmp_path,
        cloud("/a", "z", sequence=third),
        cloud("/b", "x", sequence=second),
        cloud("/a", "y", sequence=first, sequencetype="Integer"),
        cloud("/a", "x", sequence=second),
    )
    found = get_causes(read([path]))
    assert found == {"/a:z": ["/a:x"], "/b:x": [], "/a:y": [], "/a:x": ["/a:y"]}


def test_files_given_together_are_one_trace(tmp_path: Path) -> None:
    shop = lines(tmp_path, cloud("/shop", "1"), name="shop.jsonl")
    pay = lines(tmp_path, cloud("/pay", "2", causationid="1"), name="pay.jsonl")
    together = read([shop, pay])
    assert get_causes(together)["/pay:2"] == ["/shop:1"]
    assert together.details == {}
    assert get_causes(read([pay])) == {"/pay:2": ["1"]}


@pytest.mark.parametrize("name", ["causationId", "parentid", "caused_by", "causes", "parents"])
def test_usual_names_of_causes_are_read_and_said(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cell: Any = ["1"] if name in ("causes", "parents") else "1"
    path = lines(tmp_path, cloud("/shop", "1"), cloud("/pay", "2", **{name: cell}))
    assert get_causes(read([path]))["/pay:2"] == ["/shop:1"]
    assert f"causes is {name}" in run_command(capsys, "audit", str(path))


def test_a_trace_without_causes_is_said_to_have_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = lines(tmp_path, cloud("/shop", "1", why="0"), cloud("/pay", "2", why="1"))
    assert "why" in str(read([path]).details["columns"])
    assert "give --after COLUMN" in run_command(capsys, "audit", str(path))


# --- all ------------------------------------------------------------------------------------


def test_a_user_who_names_columns_reads_a_table(tmp_path: Path) -> None:
    path = lines(tmp_path, cloud("/shop", "1"), cloud("/pay", "2", why="1"))
    trace = read([path], options=ReadOptions(columns={"causes": ("why",)}))
    assert trace.format == "table"
    assert get_causes(trace) == {"1": [], "2": ["1"]}
    with pytest.raises(InputError, match="does not use --after"):
        read([path], "cloudevents", ReadOptions(columns={"causes": ("why",)}))


def test_order_keeps_what_the_format_does_not_use(tmp_path: Path) -> None:
    path = lines(tmp_path, cloud("/a", "2", causationid="1", data={"x": 1}), cloud("/a", "1"))
    out = tmp_path / "o.jsonl"
    assert main(["order", str(path), "-o", str(out)]) == 0
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(row["id"], row["own_id"]) for row in rows] == [("/a:1", "1"), ("/a:2", "2")]
    assert rows[1]["data"] == {"x": 1}


def test_bad_lines_cost_themselves(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    good = [json.dumps(cloud("/a", str(k), causationid=str(k - 1))) for k in range(3)]
    path.write_text(f"{good[0]}\n{{broken\n{good[1]}\n7\n{good[2][:-5]}\n")
    trace = read([path])
    assert trace.format == "cloudevents"
    assert list(get_causes(trace)) == ["/a:0", "/a:1"]
    assert [row["line"] for row in trace.quarantine.to_pylist()] == [2, 4, 5]


@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.name)
def test_each_format_names_its_specification_in_the_docs(format: Any) -> None:
    page = (Path(__file__).parents[3] / "docs/design/traces.md").read_text()
    assert format.specification in page
