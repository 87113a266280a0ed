"""Nested documents of spans: Jaeger, Tempo, OpenTelemetry's console exporters, Chrome."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from antecede.errors import FormatError
from antecede.tables.trace.arrow import read
from tests.tables.trace.files import get_causes, get_column, write_file
from tests.tables.trace.test_span_notations import AT, CHILD, ROOT, TRACE, b64, otlp, span

THIRD = "c0ffee0000000001"
LINKED = {
    f"{TRACE}/{ROOT}": [],
    f"{TRACE}/{CHILD}": [f"{TRACE}/{ROOT}"],
    f"{TRACE}/{THIRD}": [f"{TRACE}/{CHILD}"],
}


# --- Jaeger --------------------------------------------------------------------------------


def jaeger(id: str, parent: str | None, kind: str, **more: Any) -> dict[str, Any]:
    reference = {"refType": kind, "traceID": TRACE.upper(), "spanID": parent}
    return {
        "traceID": TRACE,
        "spanID": id,
        "operationName": f"op {id}",
        "references": [reference] if parent else [],
        "startTime": AT * 10**6,
        "duration": 5000,
        "tags": [{"key": "span.kind", "type": "string", "value": "server"}],
        "logs": [{"fields": [{"key": "data", "value": "x"}]}],
        **more,
    }


PROCESSES = {
    "p1": {"serviceName": "shop", "tags": [{"key": "hostname", "value": "h1"}]},
    "p2": {"serviceName": "pay", "tags": []},
}
KINDS = [(ROOT, None, "p1"), (CHILD, ROOT, "p2"), (THIRD, CHILD.lstrip("0"), "p1")]


def jaeger_trace() -> dict[str, Any]:
    spans = [jaeger(id, parent, "CHILD_OF", processID=where) for id, parent, where in KINDS]
    return {"traceID": TRACE, "spans": spans, "processes": PROCESSES}


def jaeger_rows() -> list[dict[str, Any]]:
    return [jaeger(id, to, "FOLLOWS_FROM", process=PROCESSES[at]) for id, to, at in KINDS]


@pytest.mark.parametrize("shape", ["ui", "trace", "lines", "array", "documents", "search"])
def test_jaeger(shape: str, tmp_path: Path) -> None:
    documents = [{"_index": "jaeger-span", "_source": row} for row in jaeger_rows()]
    whole: object = {
        "ui": {"data": [jaeger_trace()], "total": 0, "errors": None},
        "trace": jaeger_trace(),
        "lines": "\n".join(map(json.dumps, jaeger_rows())),
        "array": jaeger_rows(),
        "documents": "\n".join(map(json.dumps, documents)),
        "search": {"took": 3, "hits": {"total": 3, "hits": documents}},
    }[shape]
    trace = read([write_file(tmp_path, whole)], own=True)
    assert (trace.format, trace.quarantine.num_rows) == ("spans", 0)
    assert get_causes(trace) == LINKED
    assert get_column(trace, "member") == ["shop@h1", "pay", "shop@h1"]
    assert get_column(trace, "start_time") == [AT * 10**9] * 3
    assert get_column(trace, "end_time") == [AT * 10**9 + 5 * 10**6] * 3
    assert get_column(trace, "role") == ["server"] * 3


def test_older_jaeger_names_the_parent_beside_references(tmp_path: Path) -> None:
    rows = [jaeger(ROOT, None, ""), jaeger(CHILD, None, "", parentSpanID=ROOT)]
    assert get_causes(read([write_file(tmp_path, rows)]))[f"{TRACE}/{CHILD}"] == [f"{TRACE}/{ROOT}"]


def test_jaeger_of_protocol_buffers(tmp_path: Path) -> None:
    row = {
        "traceId": b64(bytes.fromhex(TRACE)),
        "spanId": b64(bytes.fromhex(CHILD)),
        "operationName": "o",
        "references": [{"traceId": b64(bytes.fromhex(TRACE)), "spanId": b64(bytes.fromhex(ROOT))}],
        "startTime": "2023-11-14T22:13:20.000000001Z",
        "duration": "0.005s",
        "process": {"serviceName": "s", "tags": [{"key": "ip", "vStr": "10.0.0.1"}]},
    }
    trace = read([write_file(tmp_path, row)])
    assert get_causes(trace) == {f"{TRACE}/{CHILD}": [f"{TRACE}/{ROOT}"]}
    assert get_column(trace, "member") == ["s@10.0.0.1"]
    assert get_column(trace, "end_time") == [AT * 10**9 + 5 * 10**6 + 1]


def test_a_bad_span_of_jaeger_costs_itself(tmp_path: Path) -> None:
    whole = jaeger_trace()
    whole["spans"][1:1] = [7, {"traceID": TRACE, "operationName": "x"}]
    trace = read([write_file(tmp_path, {"data": [whole, None]})])
    assert get_causes(trace) == LINKED
    assert trace.quarantine["reason"].to_pylist() == [
        "not a JSON object",
        "no id",
        "expected a JSON object with a trace or a span",
    ]


# --- Tempo and other homes of OTLP -----------------------------------------------------------


@pytest.mark.parametrize("way", [("batches",), ("trace", "resourceSpans"), ("trace", "batches")])
@pytest.mark.parametrize("before", [{}, {"metrics": {"bytes": "1", "data": ["a"], "hits": []}}])
def test_blocks_anywhere(way: tuple[str, ...], before: dict[str, Any], tmp_path: Path) -> None:
    ids = [b64(bytes.fromhex(one)) for one in (ROOT, CHILD, THIRD)]
    trace = b64(bytes.fromhex(TRACE))
    whole: Any = otlp(*(span(*two, trace=trace) for two in zip(ids, ["", *ids], strict=False)))
    whole = whole["resourceSpans"]
    for key in reversed(way):
        whole = {key: whole}
    assert get_causes(read([write_file(tmp_path, before | whole)])) == LINKED


def test_batches_of_something_else_are_no_spans(tmp_path: Path) -> None:
    with pytest.raises(FormatError):
        read([write_file(tmp_path, {"batches": [{"x": 1}]})])


# --- console exporters -----------------------------------------------------------------------


def make_python_span(id: str, parent: str | None) -> dict[str, Any]:
    return {
        "name": "GET",
        "context": {"trace_id": f"0x{TRACE}", "span_id": f"0x{id}", "trace_state": "[]"},
        "kind": "SpanKind.CLIENT",
        "parent_id": parent and f"0x{parent}",
        "start_time": "2023-11-14T22:13:20.000000Z",
        "end_time": "2023-11-14T22:13:20.000007Z",
        "status": {"status_code": "UNSET"},
        "links": [],
        "resource": {"attributes": {"service.name": "shop"}},
    }


def make_go_span(id: str, parent: str | None) -> dict[str, Any]:
    return {
        "Name": "GET",
        "SpanContext": {"TraceID": TRACE, "SpanID": id, "TraceFlags": "01"},
        "Parent": {"TraceID": TRACE, "SpanID": parent or "0" * 16},
        "SpanKind": 3,
        "StartTime": "2023-11-14T23:13:20+01:00",
        "EndTime": "2023-11-14T22:13:20.000007Z",
        "Links": None,
        "Status": {"Code": "Error", "Description": "no"},
        "Resource": [{"Key": "service.name", "Value": {"Type": "STRING", "Value": "shop"}}],
    }


@pytest.mark.parametrize("made", [make_python_span, make_go_span])
@pytest.mark.parametrize("indent", [None, 4])
def test_console_exporters(made: Any, indent: int | None, tmp_path: Path) -> None:
    records = [made(ROOT, None), made(CHILD, ROOT), made(THIRD, CHILD)]
    whole = "\n".join(json.dumps(one, indent=indent) for one in records)
    trace = read([write_file(tmp_path, whole)])
    assert get_causes(trace) == LINKED
    assert set(zip(*(get_column(trace, name) for name in ("member", "role")), strict=True)) == {
        ("shop", "client")
    }
    assert get_column(trace, "start_time") == [AT * 10**9] * 3
    assert get_column(trace, "end_time") == [AT * 10**9 + 7000] * 3


@pytest.mark.parametrize("parent", [ROOT, 7, [ROOT], True])
def test_a_parent_of_go_that_is_no_object_is_counted(parent: object, tmp_path: Path) -> None:
    record = make_go_span(CHILD, None) | {"Parent": parent, "Links": [{"SpanContext": ROOT}, "x"]}
    trace = read([write_file(tmp_path, json.dumps(record))])
    assert trace.details["unreadable_causes"] == 3
    for none in (None, ""):
        record = make_go_span(CHILD, None) | {"Parent": none}
        assert not read([write_file(tmp_path, json.dumps(record))]).details


# --- Chrome --------------------------------------------------------------------------------


def work(name: str, ts: float, dur: float, pid: int, tid: int = 1, **more: Any) -> dict[str, Any]:
    return {"name": name, "ph": "X", "ts": ts, "dur": dur, "pid": pid, "tid": tid, **more}


def flow(phase: str, ts: float, pid: int, id: object = 7, **more: Any) -> dict[str, Any]:
    return {"name": "m", "cat": "c", "ph": phase, "id": id, "ts": ts, "pid": pid, "tid": 1, **more}


def read_by_name(records: list[Any], tmp_path: Path) -> dict[str, list[str]]:
    """Return the causes of each event by name."""
    trace = read([write_file(tmp_path, {"traceEvents": records})])
    names = dict(zip(get_column(trace, "id"), get_column(trace, "text"), strict=True))
    return {names[id]: [names[one] for one in found] for id, found in get_causes(trace).items()}


def test_flows_are_causes_in_any_order_of_clocks(tmp_path: Path) -> None:
    records = [
        work("outer", 900, 900, 1),
        work("send", 1000, 500, 1),
        flow("s", 1200, 1),
        flow("t", 40, 3),
        work("step", 20, 50, 3),
        flow("f", 950, 2, bp="e"),
        work("receive", 900, 500, 2),
        work("later", 2000, 1, 2),
    ]
    assert read_by_name(records, tmp_path) == {
        "outer": [],
        "send": [],
        "step": ["send"],
        "receive": ["step"],
        "later": [],
    }


def test_an_end_belongs_to_the_slice_that_begins_next(tmp_path: Path) -> None:
    records = [work("a", 0, 10, 1), flow("s", 5, 1), work("b", 0, 30, 2), work("c", 40, 5, 2)]
    assert read_by_name([*records, flow("f", 20, 2)], tmp_path)["c"] == ["a"]
    assert read_by_name([*records, flow("f", 20, 2, bp="e")], tmp_path)["b"] == ["a"]


def test_other_lists_before_the_events(tmp_path: Path) -> None:
    before = {"otherData": {"data": [1], "batches": [{}]}, "systemTraceEvents": "x"}
    whole = {**before, "traceEvents": [work("a", 0, 10, 1), {"ph": "st", "ts": 1}, 7, {"ph": "X"}]}
    trace = read([write_file(tmp_path, whole)])
    assert get_column(trace, "text") == ["a"]
    assert trace.details == {"phases_not_read": "1 x st"}
    assert trace.quarantine["reason"].to_pylist() == [
        "not a JSON object",
        "no readable time (ts)",
    ]


def test_one_id_in_several_flows(tmp_path: Path) -> None:
    records = [
        work("a", 0, 10, 1),
        work("b", 20, 10, 2),
        work("c", 40, 10, 1),
        work("d", 60, 10, 2),
    ]
    flows = [flow("s", 5, 1), flow("f", 25, 2, bp="e"), flow("s", 45, 1), flow("f", 65, 2, bp="e")]
    assert read_by_name([*flows, *records], tmp_path) == {"a": [], "b": ["a"], "c": [], "d": ["c"]}


def test_slices_that_bind_themselves(tmp_path: Path) -> None:
    records = [
        work("b", 20, 5, 2, bind_id="0x1", flow_in=True),
        work("a", 0, 5, 1, bind_id="0x1", flow_out=True),
    ]
    assert read_by_name(records, tmp_path) == {"b": ["a"], "a": []}


def test_a_list_without_its_end(tmp_path: Path) -> None:
    records = [
        {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "Browser"}},
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": "Main"}},
        {"ph": "B", "name": "outer", "pid": 1, "tid": 1, "ts": 10},
        {"ph": "B", "name": "inner", "pid": 1, "tid": 1, "ts": 12.5},
        flow("s", 13, 1),
        {"ph": "E", "pid": 1, "tid": 1, "ts": 14},
        {"ph": "i", "name": "mark", "pid": 2, "tid": 3, "ts": 1},
        {"ph": "C", "name": "counter", "pid": 1, "ts": 1, "args": {"n": 1}},
        {"ph": "X", "name": "no time", "pid": 1, "tid": 1},
    ]
    text = "[" + ",\n".join(map(json.dumps, records)) + ",\n"
    trace = read([write_file(tmp_path, text)])
    assert get_column(trace, "id") == ["1/1/1", "1/1/2", "2/3/3"]
    assert get_column(trace, "member") == ["Browser (1)/Main (1)"] * 2 + ["2/3"]
    assert get_column(trace, "start_time") == [10_000, 12_500, 1_000]
    assert get_column(trace, "end_time") == [None, 14_000, None]
    assert trace.quarantine["reason"].to_pylist() == ["no readable time (ts)"]
    assert trace.details == {"phases_not_read": "1 x C", "slices_without_end": 1}
