"""Columns by JMESPath, ids of several parts, usual names of columns with causes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede.cli import main
from antecede.errors import FormatError, InputError
from antecede.tables.trace.arrow import Trace, read
from antecede.tables.trace.reader import ReadOptions
from antecede.tables.trace.schema import Event
from antecede.tables.trace.user_tables.reader import TableReader
from antecede.tables.trace.user_tables.values import can_be_joined_id, join_id
from tests.tables.trace.files import get_causes, join_lines, run_command, write_file, write_lines

pa: Any = pyarrow


def options(**columns: str | tuple[str, ...]) -> ReadOptions:
    return ReadOptions(columns={k: (v,) if isinstance(v, str) else v for k, v in columns.items()})


def both(path: Path, given_options: ReadOptions) -> Trace:
    """Read vectorized and by rows; assert the same result."""
    trace = read([path], options=given_options)
    by_rows = [one for one in TableReader().read(path, given_options) if isinstance(one, Event)]
    assert [(one.id, list(one.causes)) for one in by_rows] == list(get_causes(trace).items())
    return trace


NOTES: list[dict[str, Any]] = [
    {"key": {"hash": "r"}, "by": {"name": "p"}, "tags": [], "at": {"s": 3}},
    {
        "key": {"hash": "s"},
        "by": {"name": "q"},
        "tags": [["e", "r", ""], ["p", "x"]],
        "at": {"s": 2},
    },
    {"key": {"hash": "t"}, "by": {"name": "p"}, "tags": [["e", "r"], ["e", "s"], ["e"]]},
]


@pytest.mark.parametrize("format", ["jsonl", "parquet"])
def test_expressions_on_nested_values(format: str, tmp_path: Path) -> None:
    path = tmp_path / f"notes.{format}"
    if format == "jsonl":
        write_lines(path, NOTES)
    else:
        pyarrow.parquet.write_table(pa.Table.from_pylist(NOTES), path)
    trace = both(
        path,
        options(id="key.hash", causes="tags[?[0]=='e'][1]", member="by.name", send_time="at.s"),
    )
    assert get_causes(trace) == {"r": [], "s": ["r"], "t": ["r", "s"]}
    assert trace.events["member"].to_pylist() == ["p", "q", "p"]
    assert trace.events["send_time"].to_pylist() == [3 * 10**9, 2 * 10**9, None]


def test_expressions_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    path, out = write_lines(tmp_path / "notes.jsonl", NOTES), tmp_path / "out.jsonl"
    chosen = ["--id", "key.hash", "--after", "tags[?[0]=='e'][1]"]
    assert main(["order", str(path), "-o", str(out), *chosen]) == 0
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["key"]["hash"] for row in rows] == ["r", "s", "t"]
    assert main(["audit", str(path), "--id", "key.hash", "--after", "tags[?[0]=='x'][1]"]) == 0
    assert "tags[?[0]=='x'][1] selects nothing in any row" in capsys.readouterr().out


def test_a_column_of_that_name_is_no_expression(tmp_path: Path) -> None:
    rows = [{"a.b": "x", "a": {"b": "y"}, "after": []}, {"a": {"b": "z"}, "after": ["x"]}]
    assert get_causes(both(write_lines(tmp_path / "t.jsonl", rows), options(id="a.b")))["x"] == []
    csv = write_file(tmp_path, "a-b,after (id),c.d\nx,,1\ny,x,2\n", "t.csv")
    trace = both(csv, options(id="a-b", causes="after (id)", seq="c.d"))
    assert get_causes(trace) == {"x": [], "y": ["x"]}
    assert trace.events["seq"].to_pylist() == [1, 2]


@pytest.mark.parametrize("wrong", ["tags[?[0]=='e'[1]", "a.", "[a,", "a b(", "{a:"])
@pytest.mark.parametrize("option", ["id", "causes"])
def test_a_broken_expression_is_refused(wrong: str, option: str, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "t.jsonl", [{"id": "x", "tags": []}])
    with pytest.raises(FormatError, match=r"no column .* and not a JMESPath expression \("):
        read([path], options=options(**{option: wrong}))


def test_a_function_that_refuses_a_value_sets_the_row_aside(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"id": "x", "n": [1]},
        {"id": "y", "n": 7},
        {"id": "z", "n": ["x", "y"]},
    ]
    trace = both(write_lines(tmp_path / "t.jsonl", rows), options(causes="n[*] | sort(@)"))
    trace = both(write_lines(tmp_path / "t.jsonl", rows), options(causes="sort(n)"))
    assert get_causes(trace) == {"x": ["1"], "z": ["x", "y"]}
    assert "in sort(n)" in str(trace.quarantine["reason"][0])


def test_an_id_is_one_value(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"d": ["x"]}, {"d": []}, {"d": ["y", "z"]}]
    trace = both(write_lines(tmp_path / "t.jsonl", rows), options(id="d[*]"))
    assert [*get_causes(trace)] == ["x"]
    reasons = sorted(map(str, trace.quarantine["reason"].to_pylist()))
    assert reasons == ["id: d[*] selects several values: ['y', 'z']", "no id: d[*] selects nothing"]


def test_an_object_as_an_id_points_to_an_expression(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "t.jsonl", [{"key": {"hash": "x"}}])
    with pytest.raises(FormatError, match=r"an expression can select a part: key\.hash"):
        read([path], options=options(id="key"))


# -- ids of several parts --------------------------------------------------------------------------

CLOUD: list[dict[str, Any]] = [
    {"source": "/shop", "id": "1", "after": []},
    {"source": "/pay", "id": "1", "from": "/shop", "cause": "1"},
    {"source": "/pay", "id": 2, "from": ["/shop", "/pay"], "cause": ["1", "1"]},
    {"source": "/pay", "id": "2", "from": None, "cause": None},
    {"source": " ", "id": "3"},
]
WANTED = {"/shop:1": [], "/pay:1": ["/shop:1"], "/pay:2": ["/shop:1", "/pay:1"]}


@pytest.mark.parametrize(
    ("of_id", "causes"),
    [
        (("source", "id"), ("from", "cause")),
        (("[source, id]",), ("from", "cause")),
        (("source", "id"), ("[from, cause]",)),
    ],
)
def test_ids_of_several_parts(of_id: Any, causes: Any, tmp_path: Path) -> None:
    """Findings T16: ids that repeat across sources were dropped as duplicates."""
    path = write_lines(tmp_path / "t.jsonl", [*CLOUD[:3], CLOUD[4]])
    trace = both(path, options(id=of_id, causes=causes))
    assert get_causes(trace) == WANTED
    assert "1 of 2 parts are blank (" in str(trace.quarantine["reason"][0])
    assert not any(trace.details.get(name) for name in ("unreadable_causes", "partial_causes"))


@pytest.mark.parametrize(
    ("causes", "blank"), [(("from", "cause"), 2), (("[from, cause]",), 2), (("source", "cause"), 0)]
)
def test_a_cause_without_its_last_part_is_none_and_counted(
    causes: Any, blank: int, tmp_path: Path
) -> None:
    rows: list[dict[str, Any]] = [
        {"source": "s", "id": "1", "from": "s", "cause": None},
        {"source": "s", "id": "2", "from": "s", "cause": "1"},
        {"source": "s", "id": "3", "from": "s", "cause": " "},
        {"source": "s", "id": "4", "from": None, "cause": None},
    ]
    trace = both(
        write_lines(tmp_path / "t.jsonl", rows), options(id=("source", "id"), causes=causes)
    )
    assert get_causes(trace)["s:2"] == ["s:1"]
    assert trace.details.get("blank_causes", 0) == blank


def test_whole_ids_in_one_column(tmp_path: Path) -> None:
    rows = [
        {"t": "a", "p": 0, "o": 1},
        {"t": "a", "p": 0, "o": 2, "after": "a:0:1"},
        {"t": "a:0", "p": 0, "o": 2, "after": [["a", 0, 1], ["a", 0, 2], "a:0:2", ["a", None, 1]]},
        {"t": "b", "p": 0, "o": 2, "after": ["1", ["a", 0]]},
    ]
    path = write_lines(tmp_path / "t.jsonl", rows)
    trace = both(path, options(id=("t", "p", "o"), causes="after"))
    assert [*get_causes(trace)] == ["a:0:1", "a:0:2", r"a\:0:0:2", "b:0:2"]
    assert get_causes(trace)["a:0:2"] == ["a:0:1"]
    assert get_causes(trace)[r"a\:0:0:2"] == ["a:0:1", "a:0:2", "['a', None, 1] (not an id)"]
    assert trace.details["partial_causes"] == 1
    assert trace.details["unreadable_causes"] == 2
    assert trace.details["repeated_causes"] == 1


def test_causes_of_other_parts_are_refused(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "t.jsonl", [{"a": 1, "b": 1, "c": 1, "x": 1, "y": 2}])
    with pytest.raises(InputError, match=r"--id has 3 parts, so --after needs 3 columns"):
        read([path], options=options(id=("a", "b", "c"), causes=("x", "y")))


@given(st.lists(st.lists(st.text("a:\\", max_size=3), min_size=3, max_size=3), max_size=20))
def test_no_two_ids_of_several_parts_are_written_alike(ids: list[list[str]]) -> None:
    written = {join_id(parts): parts for parts in ids}
    assert all(written[join_id(parts)] == parts for parts in ids)
    assert all(can_be_joined_id(text, 3) for text in written)


# -- columns that hold causes ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "column",
    [
        *("prev_events", "prevEvents", "parent_ids", "parentIds", "parentId", "Parent-Id"),
        *("reply_to_id", "in_reply_to", "in_reply_to_id", "causationid", "causationId"),
        *("causation_id", "dependsOn", "predecessors", "parentEventId"),
    ],
)
def test_usual_columns_of_causes_are_read_and_named(column: str, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "t.jsonl", [{"id": "b", column: "a"}, {"id": "a", column: None}])
    trace = both(path, ReadOptions())
    assert get_causes(trace) == {"b": ["a"], "a": []}
    assert trace.details["guessed_columns"] == f"causes is {column}"


LIKELY = ["previous", "prev", "deps", "heads", "thread_ts", "references", "causal_history"]


@pytest.mark.parametrize("column", LIKELY)
def test_likely_columns_of_causes_are_read_if_they_name_ids(
    column: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"id": "b", column: ["a"]}, {"id": "a", column: []}]
    trace = both(write_lines(tmp_path / "t.jsonl", rows), ReadOptions())
    assert get_causes(trace) == {"b": ["a"], "a": []}
    assert trace.details["guessed_columns"] == f"causes is {column}"
    path = write_file(tmp_path, f"id,{column}\nb,12.5\na,\n", "t.csv")
    assert get_causes(both(path, ReadOptions())) == {"b": [], "a": []}
    for words in (["audit"], ["order", "-o", str(tmp_path / "o.csv")]):
        shown = join_lines(run_command(capsys, *words, str(path)))
        assert f"{column} may contain causes but is not read; give --after COLUMN" in shown
        assert "causality_source: none" in shown
    assert main(["false-causality", str(path)]) == 2
    assert f"columns are id, {column}; give --after COLUMN" in capsys.readouterr().err


@pytest.mark.parametrize("column", ["next", "nextId", "children", "successors"])
def test_columns_of_later_events_are_no_causes(
    column: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_lines(tmp_path / "t.jsonl", [{"id": "a", column: "b"}, {"id": "b", column: None}])
    assert get_causes(both(path, ReadOptions())) == {"a": [], "b": []}
    shown = join_lines(run_command(capsys, "audit", str(path)))
    assert f"{column} contains later events and is not read; causes are earlier events" in shown


@pytest.mark.parametrize(
    ("cells", "read_one", "unread"),
    [
        (({"parent_id": None}, {"parent_id": "a"}), "parent_id", None),
        (({"parent_id": None, "prev_events": []}, {"parent_id": "a", "prev_events": ["a"]}),
         "parent_id", "prev_events"),
        (({"parent_id": None, "prev_events": []}, {"parent_id": None, "prev_events": ["a"]}),
         "prev_events", None),
        (({"parent_id": "root", "prev_events": []}, {"parent_id": "root", "prev_events": ["a"]}),
         "prev_events", "parent_id"),
        (({"after": "x", "deps": []}, {"after": "y", "deps": ["a"]}), "deps", "after"),
        (({"after": "a", "causes": "x"}, {"after": "a", "causes": None}), "after", "causes"),
    ],
)  # fmt: skip
def test_of_usual_columns_of_causes_one_is_read_and_the_others_are_named(
    cells: tuple[dict[str, Any], ...], read_one: str, unread: str | None, tmp_path: Path
) -> None:
    rows = [{"id": name, **row} for name, row in zip("ab", cells, strict=True)]
    details = read([write_lines(tmp_path / "t.jsonl", rows)]).details
    assert f"causes is {read_one}" in str(details["guessed_columns"])
    assert details.get("unread_causes") == unread


@pytest.mark.parametrize("name", ["run", "member"])
@pytest.mark.parametrize("value", [{"x": 1}, [1], True, 1.5, [{"x": 1}]])
def test_what_is_no_name_sets_its_row_aside(name: str, value: object, tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"id": k, name: v} for k, v in zip("abc", ("m", value, None), strict=True)
    ]
    trace = read(
        [write_lines(tmp_path / "t.jsonl", rows)], options=ReadOptions(columns={name: (name,)})
    )
    assert trace.events["id"].to_pylist() == ["a", "c"]
    reason = str(trace.quarantine["reason"][0])
    assert reason.startswith(f"invalid {name}: ")
    assert ("an expression can select" in reason) is ("x" in str(value))


@pytest.mark.parametrize("value", [{"x": 1}, [1], True])
def test_a_usual_column_of_objects_is_not_taken_for_members(value: object, tmp_path: Path) -> None:
    rows = [{"id": "a", "host": value}, {"id": "b", "host": value, "node": "n"}]
    trace = read([write_lines(tmp_path / "t.jsonl", rows)])
    assert trace.events["member"].to_pylist() == [None, "n"]


def test_a_second_column_of_causes_is_named(tmp_path: Path) -> None:
    rows = [{"id": "a", "causes": [], "deps": []}, {"id": "b", "causes": [], "deps": ["a"]}]
    trace = read([write_lines(tmp_path / "t.jsonl", rows)])
    assert trace.details["unread_causes"] == "deps"
    rows[1]["deps"] = ["numpy"]
    assert "unread_causes" not in read([write_lines(tmp_path / "t.jsonl", rows)]).details
