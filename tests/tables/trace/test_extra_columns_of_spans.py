"""Extra columns of spans and logs: read, shown, searched, written."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from antecede.cli import main
from antecede.tables.trace.arrow import read
from antecede.tables.trace.formats import spans
from antecede.tables.trace.user_tables.append_columns import rename_extra_columns
from antecede.tables.view.render_model import picture
from tests.tables.trace.files import write_file, write_lines
from tests.tables.trace.test_span_notations import AT, CHILD, ROOT, TRACE, otlp, span
from tests.tables.view.unpacked import unpacked


def attribute(key: str, **value: Any) -> dict[str, Any]:
    return {"key": key, "value": value}


def otlp_file(tmp_path: Path) -> Path:
    failed: dict[str, Any] = {
        "status": {"code": 2, "message": "out of stock"},
        "kind": 1,
        "attributes": [
            attribute("http.method", stringValue="GET"),
            attribute("n", intValue="3"),
            attribute("tags", arrayValue={"values": [{"stringValue": "x"}, {"boolValue": True}]}),
            attribute("text", stringValue="of the attribute"),
            attribute("position", intValue=7),
        ],
    }
    good: dict[str, Any] = {"status": {"code": "STATUS_CODE_OK"}, "kind": "SPAN_KIND_SERVER"}
    spans_ = [span(ROOT, **good), span(CHILD, ROOT, **failed)]
    return write_file(tmp_path, otlp(*spans_))


def read_extra(path: Path) -> list[dict[str, Any]]:
    trace = read([path], own=True)
    assert trace.own is not None
    assert trace.own.num_rows == trace.events.num_rows
    return [
        {name: value for name, value in row.items() if value is not None}
        for row in trace.own.to_pylist()
    ]


def test_otlp(tmp_path: Path) -> None:
    assert read_extra(otlp_file(tmp_path)) == [
        {"status": "ok", "span_kind": "server", "resource.service.name": "shop"},
        {
            "status": "error",
            "span_kind": "internal",
            "status_message": "out of stock",
            "http.method": "GET",
            "n": 3,
            "tags": '["x", true]',  # lists of several types become JSON
            "text": "of the attribute",
            "position": 7,
            "resource.service.name": "shop",
        },
    ]


ZIPKIN = {"traceId": TRACE, "localEndpoint": {"serviceName": "s"}, "timestamp": AT * 10**6}


@pytest.mark.parametrize(
    ("tags", "status"),
    [
        ({"error": "timeout"}, "error"),
        ({"error": ""}, "error"),
        ({"error": "false"}, None),
        ({"otel.status_code": "OK"}, "ok"),
        ({"otel.status_code": "ERROR"}, "error"),
        ({}, None),
    ],
)
def test_status_of_zipkin(tags: dict[str, str], status: str | None, tmp_path: Path) -> None:
    [row] = read_extra(
        write_file(tmp_path, [{**ZIPKIN, "id": ROOT, "kind": "CLIENT", "tags": tags}])
    )
    assert row.get("status") == status
    assert row["span_kind"] == "client"


def test_pieces_of_a_zipkin_span_keep_the_tags_of_both(tmp_path: Path) -> None:
    late = {"traceId": TRACE, "id": ROOT, "localEndpoint": {"serviceName": "s"}}
    rows = [{**ZIPKIN, "id": ROOT, "tags": {"a": "1"}}, {**late, "tags": {"b": "2", "error": "x"}}]
    [row] = read_extra(write_file(tmp_path, rows))
    assert (row["a"], row["b"], row["status"]) == ("1", "2", "error")


def test_jaegers_tags(tmp_path: Path) -> None:
    row = {
        "traceID": TRACE,
        "spanID": ROOT,
        "operationName": "o",
        "startTime": AT * 10**6,
        "tags": [
            {"key": "error", "type": "bool", "value": True},
            {"key": "span.kind", "type": "string", "value": "internal"},
            {"key": "http.status_code", "type": "int64", "value": 500},
        ],
        "process": {"serviceName": "s", "tags": [{"key": "version", "value": "2"}]},
    }
    [found] = read_extra(write_file(tmp_path, row))
    assert found["status"] == "error"
    assert found["span_kind"] == "internal"
    assert (found["http.status_code"], found["resource.version"]) == (500, "2")


def test_many_attributes_share_a_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spans, "MAX_EXTRA_COLUMNS", 4)
    found = read_extra(otlp_file(tmp_path))[1]
    assert (found["status"], found["resource.service.name"]) == ("error", "shop")
    others = json.loads(found["other_attributes"])
    assert others["status_message"] == "out of stock"
    assert others["tags"] == ["x", True]


LOG = """(?<level>[A-Za-z]+) (?<host>\\S+) (?<clock>{.*}) (?<event>.*)
INFO a {"a":1} start
ERROR a {"a":2} failed
WARN b {"a":1,"b":1} late
error b {"a":1,"b":2} also failed
"""


def log_file(tmp_path: Path) -> Path:
    return write_file(tmp_path, LOG, "service.log")


def json_file(tmp_path: Path) -> Path:
    rows = [
        {"id": "a:1", "causes": [], "member": "a", "level": "INFO"},
        {"id": "a:2", "causes": ["a:1"], "member": "a", "level": "ERROR"},
        {"id": "b:1", "causes": ["a:1"], "member": "b", "level": "WARN"},
        {"id": "b:2", "causes": ["b:1"], "member": "b", "level": "error"},
    ]
    return write_lines(tmp_path / "service.jsonl", rows)


def ask(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = main(["ask", *map(str, words)])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_groups_of_a_log_are_columns(tmp_path: Path) -> None:
    assert [row["level"] for row in read_extra(log_file(tmp_path))] == [
        "INFO",
        "ERROR",
        "WARN",
        "error",
    ]


@pytest.mark.parametrize("file", [log_file, json_file])
def test_ask_by_level(file: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = file(tmp_path)
    _, told, _ = ask(capsys, path, "past", "level:error", "--json")
    rows = {row["id"]: row["level"] for row in json.loads(told)["rows"]}
    assert rows == {"a:1": "INFO", "b:1": "WARN"}
    _, told, _ = ask(capsys, path, "future", "level:INFO")
    assert told.startswith("3 of 4 events happened after a:1")
    assert "level" in told.splitlines()[1]
    assert ask(capsys, path, "before", "level:INFO", "b:2")[0] == 0
    code, _, said = ask(capsys, path, "concurrent", "level:ERROR")
    assert code == 2
    assert "level:ERROR: found in 2 events (a:2, b:2)" in said
    code, _, said = ask(capsys, path, "past", "level:DEBUG")
    assert code == 2
    assert "no event has 'DEBUG' in its column level" in said
    code, _, said = ask(capsys, path, "past", "colour:red")
    assert code == 2
    assert "no event has the id colour:red" in said


def test_ask_by_status(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = otlp_file(tmp_path), tmp_path / "rows.jsonl"
    _, told, _ = ask(capsys, path, "past", "status:error", "-o", out)
    assert told.startswith(f"1 of 2 events happened before {TRACE}/{CHILD}")
    assert json.loads(out.read_text())["status"] == "ok"
    _, told, _ = ask(capsys, path, "future", "span_kind:server")
    assert "error" in told.splitlines()[2]
    assert "span_kind" in told.splitlines()[1]


def test_an_id_that_looks_like_a_search_is_an_id(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"id": "level:x", "causes": [], "level": "y"}, {"id": "b", "causes": ["level:x"]}]
    path = write_lines(tmp_path / "t.jsonl", rows)
    assert ask(capsys, path, "future", "level:x")[1].startswith(
        "1 of 2 events happened after level"
    )


def test_order_and_convert_write_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = otlp_file(tmp_path)
    ordered, converted = tmp_path / "ordered.jsonl", tmp_path / "converted.jsonl"
    assert main(["order", str(path), "-o", str(ordered)]) == 0
    assert main(["convert", str(path), "-o", str(converted)]) == 0
    capsys.readouterr()
    first, second = map(json.loads, ordered.read_text().splitlines())
    assert (first["antecede_status"], first["status"]) == ("ordered", "ok")
    assert first["id"] == f"{TRACE}/{ROOT}"
    assert (second["http.method"], second["text"], second["own_text"]) == (
        "GET", "n", "of the attribute",
    )  # fmt: skip
    assert (second["position"], second["own_position"]) == (1, 7)
    assert json.loads(converted.read_text().splitlines()[1])["status"] == "error"


def test_the_page_has_them_and_says_what_was_suspected(tmp_path: Path) -> None:
    late = span(ROOT, startTimeUnixNano=AT * 10**6, status={"code": 2})
    trace = read([write_file(tmp_path, otlp(late))], own=True)
    assert trace.own is not None
    trace = replace(trace, own=rename_extra_columns(trace.events, trace.own))
    meta, _ = unpacked(picture(trace, title="t").pack())
    assert meta["own"] == ["status", "span_kind", "resource.service.name"]
    said = [one["what"] for one in meta["findings"]]
    assert any("1 span with times in us" in one for one in said)


def test_view_keeps_all_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[list[str]] = []

    def note(trace: Any, **more: Any) -> Any:
        found = picture(trace, **more)
        shown.append(found.meta["own"])
        return found

    monkeypatch.setattr("antecede.tables.view.picture", note)
    one = span(ROOT, attributes=[attribute("host", stringValue="h")])
    path, page = write_file(tmp_path, otlp(one)), tmp_path / "page.html"
    assert main(["view", str(path), "-o", str(page)]) == 0
    assert shown == [["status", "span_kind", "host", "resource.service.name"]]
