"""Spans of Nezha, Zipkin and OpenTelemetry: identities, sides of a shared span, causes, times."""

from __future__ import annotations

import gzip
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from antecede.errors import FormatError
from antecede.tables.audit import audit
from antecede.tables.trace.arrow import Trace, read
from antecede.tables.trace.schema import EVENT
from tests.tables.trace.files import get_causes, write_file
from tests.tables.trace.test_readers_fuzz import check

MS = 10**6
T = "00000000000000aa"


def rows(trace: Trace) -> dict[str, dict[str, Any]]:
    found = {row["id"]: row for row in trace.events.to_pylist()}
    assert len(found) == trace.events.num_rows
    return found


# --- real files ----------------------------------------------------------------------------

ZIPKIN = {  # file: rows, events, missing parents, shared spans
    "ascend": (8, 8, 0, 2),
    "envoy": (1, 1, 0, None),
    "messaging": (4, 4, 0, None),
    "messaging2": (11, 11, 6, None),
    "messaging-kafka": (28, 28, 0, None),
    "simple-db-p6": (5, 5, 0, None),
    "skew": (4, 4, 0, 1),
    "smartthings-mobile-web-install": (1041, 957, 0, 290),
    "smartthings-oauth-authorization": (175, 175, 0, 41),
    "yelp": (16, 16, 0, 3),
}


@pytest.mark.parametrize("name", ZIPKIN)
def test_every_zipkin_file_is_read(name: str, shared_data: Path) -> None:
    path = shared_data / f"traces/{name}.json"
    report = audit([path])
    read_rows, events, missing, shared = ZIPKIN[name]
    assert len(json.loads(path.read_text())) == read_rows
    details = report.details
    assert (report.format, details["quarantined"]) == ("spans", 0)
    assert details["rows"] == events == read_rows - details.get("merged_rows", 0)
    assert report.missing_causes == missing
    assert details.get("shared_spans") == shared
    assert details["traces"] == 1
    assert report.roots == 1 or missing


def test_client_and_server_of_a_shared_span_are_two_events(shared_data: Path) -> None:
    trace = read([shared_data / "traces/skew.json"])
    t = "1e223ff1f80f1c69"
    server = f"{t}/74280ae0c10d8062/serviceb@192.0.0.0"
    assert get_causes(trace) == {
        f"{t}/43210ae0c10d1234": [server],
        server: [f"{t}/74280ae0c10d8062"],
        f"{t}/bf396325699c84bf": [],
        f"{t}/74280ae0c10d8062": [f"{t}/bf396325699c84bf"],
    }
    row = rows(trace)[server]
    assert (row["member"], row["role"], row["text"]) == ("serviceb@192.0.0.0", "server", "post")
    assert (row["start_time"], row["end_time"]) == (1470150004008761000, 1470150004102338000)
    assert (row["topics"], row["kind"], row["run"]) == ([t], EVENT, None)


# --- Zipkin --------------------------------------------------------------------------------


def zipkin(id: str, service: str | None = None, parent: str | None = None, **more: Any) -> Any:
    record: dict[str, Any] = {"traceId": T, "id": id, **more}
    if parent is not None:
        record["parentId"] = parent
    if service is not None:
        record["localEndpoint"] = {"serviceName": service}
    return record


CLIENT: dict[str, Any] = {"kind": "CLIENT", "timestamp": 1, "duration": 9}
SERVER: dict[str, Any] = {"kind": "SERVER", "timestamp": 2, "duration": 3, "shared": True}
SHARED = [
    zipkin("2", "front", "1", **CLIENT),
    zipkin("2", "back", "1", **SERVER),
    zipkin("1", "front", kind="SERVER", timestamp=1, duration=9),
    zipkin("3", "back", "2", timestamp=3),
    zipkin("4", "front", "2", timestamp=4),
]
SHARED_CAUSES = {
    f"{T}/{1:016}": [],
    f"{T}/{2:016}": [f"{T}/{1:016}"],
    f"{T}/{2:016}/back": [f"{T}/{2:016}"],
    f"{T}/{3:016}": [f"{T}/{2:016}/back"],
    f"{T}/{4:016}": [f"{T}/{2:016}"],
}


@given(st.permutations(SHARED), st.sampled_from(["array", "arrays", "lines"]))
def test_sides_are_told_whatever_the_order_of_rows(order: list[Any], shape: str) -> None:
    whole = {
        "array": json.dumps(order),
        "arrays": json.dumps([order[:2], [], order[2:]], indent=1),
        "lines": "\n".join(map(json.dumps, order)),
    }[shape]
    with tempfile.TemporaryDirectory() as folder:
        trace = read([write_file(Path(folder), whole)])
    assert trace.format == "spans"
    assert get_causes(trace) == SHARED_CAUSES
    assert trace.details == {"shared_spans": 1}


def test_a_server_is_told_without_the_mark(tmp_path: Path) -> None:
    unmarked = [{k: v for k, v in record.items() if k != "shared"} for record in SHARED]
    assert get_causes(read([write_file(tmp_path, unmarked)])) == SHARED_CAUSES


def test_a_server_whose_client_is_not_reported_follows_the_clients_parent(tmp_path: Path) -> None:
    trace = read([write_file(tmp_path, [*SHARED[1:]])])
    assert get_causes(trace) == {
        f"{T}/{1:016}": [],
        f"{T}/{2:016}": [f"{T}/{1:016}"],
        f"{T}/{3:016}": [f"{T}/{2:016}"],
        f"{T}/{4:016}": [f"{T}/{2:016}"],
    }


def test_several_servers_of_one_call(tmp_path: Path) -> None:
    trace = read([write_file(tmp_path, [*SHARED, zipkin("2", "other", "1", **SERVER)])])
    assert get_causes(trace) == {**SHARED_CAUSES, f"{T}/{2:016}/other": [f"{T}/{2:016}"]}


def test_several_servers_of_a_call_whose_client_is_not_reported(tmp_path: Path) -> None:
    two = [zipkin("2", "back", "1", **SERVER), zipkin("2", "other", "1", **SERVER)]
    trace = read([write_file(tmp_path, [*two, zipkin("3", "back", "2")])])
    assert get_causes(trace) == {
        f"{T}/{2:016}/back": [f"{T}/{1:016}"],
        f"{T}/{2:016}/other": [f"{T}/{1:016}"],
        f"{T}/{3:016}": [f"{T}/{2:016}/back"],
    }


def test_protobufs_own_names(tmp_path: Path) -> None:
    span = {"trace_id": TRACE, "span_id": A, "parent_span_id": B, "start_time_unix_nano": 5}
    block = {"resource_spans": [{"scope_spans": [{"spans": [span]}]}]}
    trace = read([write_file(tmp_path, block)])
    assert get_causes(trace) == {f"{TRACE}/{A}": [f"{TRACE}/{B}"]}
    assert trace.events["start_time"].to_pylist() == [5]


def test_rows_without_times_are_merged_into_the_side_of_their_process(tmp_path: Path) -> None:
    piece = zipkin("2", "back", "1", name="late name")
    trace = read([write_file(tmp_path, [piece, *SHARED])])
    assert get_causes(trace) == SHARED_CAUSES
    row = rows(trace)[f"{T}/{2:016}/back"]
    assert (row["start_time"], row["end_time"], row["role"]) == (2000, 5000, "server")
    assert row["text"] == "late name"
    assert trace.details == {"shared_spans": 1, "merged_rows": 1}


def test_rows_with_times_are_not_merged(tmp_path: Path) -> None:
    path = write_file(tmp_path, [*SHARED, zipkin("3", "back", "2", timestamp=7)])
    report = audit([path])
    assert (report.duplicates, report.messages) == (1, 5)
    assert report.details["duplicate_rows"] == 1


def test_version_1_with_both_sides_in_one_row(tmp_path: Path) -> None:
    def note(value: str, at: int, service: str) -> dict[str, Any]:
        return {
            "timestamp": at,
            "value": value,
            "endpoint": {"serviceName": service, "ipv4": "1.2.3.4"},
        }

    both = {
        "traceId": T, "id": "2", "parentId": "1", "name": "get", "timestamp": 10, "duration": 90,
        "annotations": [
            note("cs", 10, "front"), note("sr", 30, "back"), note("note", 31, "back"),
            note("ss", 60, "back"), note("cr", 100, "front"),
        ],
        "binaryAnnotations": [{"key": "sa", "value": True, "endpoint": {"serviceName": "x"}}],
    }  # fmt: skip
    local = {
        "traceId": T, "id": "3", "parentId": "2", "name": "local", "timestamp": 40, "duration": 5,
        "binaryAnnotations": [
            {"key": "sa", "value": True, "endpoint": {"serviceName": "x"}},
            {"key": "lc", "value": "", "endpoint": {"serviceName": "back", "ipv4": "1.2.3.4"}},
        ],
    }  # fmt: skip
    trace = read([write_file(tmp_path, [local, both])])
    server = f"{T}/{2:016}/back@1.2.3.4"
    assert get_causes(trace) == {
        f"{T}/{3:016}": [server],
        f"{T}/{2:016}": [f"{T}/{1:016}"],
        server: [f"{T}/{2:016}"],
    }
    found = rows(trace)
    times = {id: (row["start_time"], row["end_time"], row["role"]) for id, row in found.items()}
    assert times == {
        f"{T}/{3:016}": (40_000, 45_000, None),
        f"{T}/{2:016}": (10_000, 100_000, "client"),
        server: (30_000, 60_000, "server"),
    }


def test_version_1_with_a_row_a_side(tmp_path: Path) -> None:
    def side(service: str, *values: str) -> dict[str, Any]:
        notes = [
            {"timestamp": 10 + k, "value": value, "endpoint": {"serviceName": service}}
            for k, value in enumerate(values)
        ]
        return {"traceId": T, "id": "2", "name": "get", "annotations": notes}

    trace = read([write_file(tmp_path, [side("back", "sr", "ss"), side("front", "cs", "cr")])])
    assert get_causes(trace) == {f"{T}/{2:016}": [], f"{T}/{2:016}/back": [f"{T}/{2:016}"]}
    assert rows(trace)[f"{T}/{2:016}/back"]["end_time"] == 11_000


def test_version_1_messaging(tmp_path: Path) -> None:
    notes = [
        {"timestamp": 10, "value": "ms", "endpoint": {"serviceName": "front"}},
        {"timestamp": 15, "value": "mr", "endpoint": {"serviceName": "back"}},
    ]
    trace = read([write_file(tmp_path, [{"traceId": T, "id": "2", "annotations": notes}])])
    assert {id: row["role"] for id, row in rows(trace).items()} == {
        f"{T}/{2:016}": "producer",
        f"{T}/{2:016}/back": "consumer",
    }


def test_no_time_is_null_and_a_bad_one_is_counted(tmp_path: Path) -> None:
    spans = [
        zipkin("1"),
        zipkin("2", timestamp=0),
        zipkin("3", timestamp="x"),
        zipkin("4", timestamp=1e300),
    ]
    trace = read([write_file(tmp_path, spans)])
    assert trace.events["start_time"].to_pylist() == [None] * 4
    assert trace.details == {"unreadable_times": 2}


def test_bad_rows_cost_themselves(tmp_path: Path) -> None:
    good = [json.dumps(zipkin(str(k), "a", timestamp=k)) for k in range(1, 4)]
    bad = ["7", "{}", '{"traceId": "x"}', '{"traceId": true, "id": "1"}', '{"traceId": "x", }']
    text = f"[{good[0]},\n{bad[0]},\n{bad[1]}, {good[1]},\n{bad[2]},{bad[3]},\n{bad[4]},{good[2]}]"
    trace = read([write_file(tmp_path, text)])
    assert list(rows(trace)) == [f"{T}/{k:016}" for k in (1, 2, 3)]
    assert trace.quarantine["line"].to_pylist() == [2, 3, 4, 4, 5]
    reasons = trace.quarantine["reason"].to_pylist()
    assert reasons[:4] == ["not a JSON object", "no id", "no id", "no id"]
    assert str(reasons[4]).startswith("invalid JSON")


# --- OpenTelemetry -------------------------------------------------------------------------

TRACE, OTHER = "5b8efff798038103d269b633813fc60c", "6b8efff798038103d269b633813fc60c"


def otlp(spans: list[Any], scopes: str = "scopeSpans", **attributes: str) -> dict[str, Any]:
    listed = [
        {"key": k.replace("_", "."), "value": {"stringValue": v}} for k, v in attributes.items()
    ]
    block = {"resource": {"attributes": listed}, scopes: [{"scope": {}, "spans": spans}]}
    return {"resourceSpans": [block]}


def otlp_span(span: str, parent: str = "", trace: str = TRACE, **more: Any) -> dict[str, Any]:
    return {"traceId": trace, "spanId": span, "parentSpanId": parent, "name": "n", **more}


A, B, C = "eee19b7ec3c1b174", "eee19b7ec3c1b173", "aaa19b7ec3c1b173"


@pytest.mark.parametrize("shape", ["object", "lines", "array", "indented"])
@pytest.mark.parametrize("scopes", ["scopeSpans", "scope_spans", "instrumentationLibrarySpans"])
def test_open_telemetry(shape: str, scopes: str, tmp_path: Path) -> None:
    start, end = "1544712660000000000", "1544712661000000000"
    times = {"startTimeUnixNano": start, "endTimeUnixNano": end}
    one = otlp([otlp_span(B, kind=3, **times)], scopes, service_name="front", host_name="h1")
    two = otlp([otlp_span(A, B, kind="SPAN_KIND_SERVER")], scopes, service_name="back")
    whole = {
        "object": json.dumps({"resourceSpans": one["resourceSpans"] + two["resourceSpans"]}),
        "lines": json.dumps(one) + "\n" + json.dumps(two),
        "array": json.dumps([one, two]),
        "indented": json.dumps(one, indent=2) + "\n" + json.dumps(two, indent=2),
    }[shape]
    trace = read([write_file(tmp_path, whole)])
    assert trace.format == "spans"
    assert get_causes(trace) == {f"{TRACE}/{B}": [], f"{TRACE}/{A}": [f"{TRACE}/{B}"]}
    first, second = trace.events.to_pylist()
    assert (first["member"], first["role"], first["start_time"], first["end_time"]) == (
        "front@h1", "client", int(start), int(end),
    )  # fmt: skip
    assert (second["member"], second["role"], second["start_time"]) == ("back", "server", None)


def test_links_are_further_causes_into_other_traces_too(tmp_path: Path) -> None:
    links = [{"traceId": TRACE, "spanId": B}, {"traceId": OTHER, "spanId": B}, {"spanId": B}, 7]
    spans = [
        otlp_span(B, kind=4), otlp_span(B, trace=OTHER, kind="SPAN_KIND_PRODUCER"),
        otlp_span(A, B, kind=5, links=links), otlp_span(C, kind=5, links=links[1:2]),
    ]  # fmt: skip
    report = audit([write_file(tmp_path, otlp(spans))])
    assert (report.edges, report.merges, report.missing_causes) == (3, 1, 0)
    trace = read([write_file(tmp_path, otlp(spans))])
    assert get_causes(trace)[f"{TRACE}/{A}"] == [f"{TRACE}/{B}", f"{OTHER}/{B}"]


def test_a_zero_identity_is_none(tmp_path: Path) -> None:
    spans = [
        otlp_span(B, "0" * 16),
        otlp_span("0" * 16),
        {"name": "x"},
        [],
        otlp_span(A, B, "0" * 32),
    ]
    trace = read([write_file(tmp_path, otlp(spans))])
    assert get_causes(trace) == {f"{TRACE}/{B}": []}
    assert trace.quarantine["reason"].to_pylist() == [
        *("no id", "no id", "not a JSON object", "no id"),
    ]


def test_the_pod_is_the_process(tmp_path: Path) -> None:
    block = otlp([otlp_span(B)], service_name="s", k8s_pod_name="s-1", host_name="h")
    assert read([write_file(tmp_path, block)]).events["member"].to_pylist() == ["s-1"]


# --- CSV of Nezha --------------------------------------------------------------------------

HEADER = "TraceID,SpanID,ParentID,PodName,OperationName,StartTimeUnixNano,EndTimeUnixNano,Duration"


def test_csv(tmp_path: Path) -> None:
    lines = [HEADER, "t,1,root,p,op,1661140374351773094,1661140374362982609,1",
             "t,2,1,q,op,x,,1", "u,2,1,q,op,5,6,1", "t,3,1", ",,,,,,,"]  # fmt: skip
    trace = read([write_file(tmp_path, "\n".join(lines) + "\n", "t.csv")])
    one, two = f"{1:016}", f"{2:016}"
    assert get_causes(trace) == {f"t/{one}": [], f"t/{two}": [f"t/{one}"], f"u/{two}": [f"u/{one}"]}
    row = rows(trace)[f"t/{one}"]
    assert (row["start_time"], row["end_time"]) == (1661140374351773094, 1661140374362982609)
    assert (row["member"], row["text"], row["topics"]) == ("p", "op", ["t"])
    assert trace.quarantine["line"].to_pylist() == [5]
    assert trace.details == {"unreadable_times": 1}


def test_a_column_less_is_told(tmp_path: Path) -> None:
    path = write_file(tmp_path, HEADER.replace("PodName", "Pod") + "\na,b,c,d,e,1,2,3\n", "t.csv")
    with pytest.raises(FormatError, match="PodName"):
        read([path], "spans")


# --- any input -----------------------------------------------------------------------------

pieces = st.sampled_from(
    [
        *map(json.dumps, SHARED), json.dumps(otlp([otlp_span(B)])), HEADER, "t,1,root,p,op,1,2,3",
        '{"resourceSpans":[', '{"resourceSpans":7}', '{"scopeSpans":[{"spans":[{}]}]}', "[", "]",
        ",", "\n", "{", "}", '"traceId":"1"', '"id":"', "\\", "\x00", "null",
        '{"traceId":"\\ud800","id":"1"}',
        '{"traceId":"a","id":"1","timestamp":1e999,"duration":-5,"localEndpoint":{"ipv4":[]}}',
        '{"traceId":"a","id":"1","annotations":[{"timestamp":{},"value":[]},{"timestamp":1,"value":"cs"}]}',
    ]
)  # fmt: skip
contents = st.binary(max_size=60) | st.lists(pieces | st.text(max_size=4), max_size=12).map(
    lambda parts: "".join(parts).encode("utf-8", "surrogatepass")
)


@pytest.mark.parametrize("format", [None, "spans"])
@given(content=contents)
@example(content=b"[" * 100_000)
@example(content=b'[{"traceId":"1","id":' + b"[" * 100_000)
@example(content=b'{"resourceSpans":' + b'{"a":' * 100_000)
@example(content=gzip.compress(json.dumps(SHARED * 50).encode())[:-9])
@example(content=(HEADER + '\nt,1,"root,p,op,1,2,3\nt,2,1,p,op,1,2,3\n').encode())
def test_any_bytes(format: str | None, content: bytes) -> None:
    check(content, format, "t")


@given(
    st.lists(st.sampled_from(["good", "{}", "7", '{"traceId":"1","id":}', '{"traceId":[', '"x']))
)
def test_good_spans_are_never_lost(kinds: list[str]) -> None:
    texts = [
        json.dumps(zipkin(f"m{k}")) if kind == "good" else kind for k, kind in enumerate(kinds)
    ]
    with tempfile.TemporaryDirectory() as folder:
        whole = "[" + ",\n".join([json.dumps(zipkin("first")), *texts]) + "]"
        trace = read([write_file(Path(folder), whole)], "spans")
    good = [f"{T}/m{k}" for k, kind in enumerate(kinds) if kind == "good"]
    assert trace.events["id"].to_pylist() == [f"{T}/first", *good]
    assert (len(trace.quarantine) > 0) == (len(good) < len(kinds))
