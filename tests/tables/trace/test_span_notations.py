"""One number in several notations is one id; numbers in another unit than declared are reported."""

from __future__ import annotations

import base64
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from antecede.tables.audit import audit
from antecede.tables.trace.arrow import read
from antecede.tables.trace.formats.spans_ids import SPAN_BYTES, TRACE_BYTES, normalize_id
from antecede.tables.trace.formats.spans_table import COLUMNS
from antecede.tables.trace.formats.zipkin_table import rows_of
from antecede.tables.trace.reader import ReadOptions
from tests.tables.trace.files import get_causes, write_file

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
ROOT, CHILD = "00f067aa0ba902b7", "b7ad6b7169203331"
AT = 1_700_000_000


def b64(text: str | bytes) -> str:
    return base64.b64encode(text.encode() if isinstance(text, str) else text).decode()


RAW = bytes.fromhex(TRACE)


@pytest.mark.parametrize(
    "notation",
    [
        TRACE.upper(),
        f" 0x{TRACE}",
        f"0X{TRACE.upper()}",
        f"0000{TRACE}",
        "4bf92f35-77b3-4da6-a3ce-929d0e0e4736",
        b64(RAW),
        base64.urlsafe_b64encode(RAW).decode().rstrip("="),
        b64(TRACE),
        b64(TRACE.upper()),
        b64(f"0x{TRACE}"),
        b64(b64(RAW)),
        RAW,
        TRACE.encode(),
    ],
)
def test_a_trace_id_in_any_notation(notation: str | bytes) -> None:
    assert normalize_id(notation, TRACE_BYTES) == TRACE


@pytest.mark.parametrize(
    "notation",
    [
        *(ROOT, ROOT.lstrip("0"), f"{ROOT:0>32}", int(ROOT, 16), bytes.fromhex(ROOT)),
        Decimal(int(ROOT, 16)),
        *(ROOT.encode(), b64(ROOT), b64(bytes.fromhex(ROOT)), b64(b64(bytes.fromhex(ROOT)))),
    ],
)
def test_a_span_id_in_any_notation(notation: str | bytes | int) -> None:
    assert normalize_id(notation, SPAN_BYTES) == ROOT


def test_integers_are_of_64_bits_with_or_without_sign() -> None:
    assert normalize_id(-1, SPAN_BYTES) == normalize_id(2**64 - 1, SPAN_BYTES) == "f" * 16


@pytest.mark.parametrize(
    "notation", ["0", "0x0", "0" * 32, "", " ", None, 0, 0.0, bytes(8), True, 1.5, 2.0**53]
)
def test_no_id(notation: object) -> None:
    assert normalize_id(notation, SPAN_BYTES) is None


@pytest.mark.parametrize("name", ["checkout-1", "Span", "a b", "ü", "hello-world", "x" * 40])
def test_other_text_is_kept_in_its_own_case(name: str) -> None:
    assert normalize_id(name, SPAN_BYTES) == name


# --- Zipkin --------------------------------------------------------------------------------


def zipkin(trace: str, id: str, service: str, kind: str, **more: Any) -> dict[str, Any]:
    place = {"localEndpoint": {"serviceName": service}}
    return {"traceId": trace, "id": id, "kind": kind, "timestamp": AT * 10**6, **place, **more}


@pytest.mark.parametrize("other", [f"{TRACE[16:]:0>32}", TRACE[16:].upper(), f"0x{TRACE[16:]}"])
def test_both_sides_of_a_shared_root_in_two_notations(other: str, tmp_path: Path) -> None:
    rows = [zipkin(TRACE[16:], ROOT, "a", "CLIENT"), zipkin(other, ROOT, "b", "SERVER")]
    name = f"{TRACE[16:]}/{ROOT}"
    assert get_causes(read([write_file(tmp_path, rows)])) == {name: [], f"{name}/b": [name]}


def test_half_of_a_trace_id_joins_the_whole_one(tmp_path: Path) -> None:
    rows = [
        zipkin(TRACE, ROOT, "a", "CLIENT"),
        zipkin(TRACE[16:], ROOT, "b", "SERVER"),
        zipkin(TRACE[16:], CHILD, "b", "CLIENT", parentId=ROOT),
    ]
    trace = read([write_file(tmp_path, rows)])
    name = f"{TRACE}/{ROOT}"
    server = f"{name}/b"
    assert get_causes(trace) == {name: [], server: [name], f"{TRACE}/{CHILD}": [server]}
    assert trace.details == {"shared_spans": 1, "joined_traces": 1}


def test_half_of_several_trace_ids_is_reported(tmp_path: Path) -> None:
    ids = [TRACE[16:], TRACE, f"1{TRACE[1:]}"]
    path = write_file(tmp_path, [zipkin(one, ROOT, "a", "CLIENT") for one in ids])
    report = audit([path])
    assert report.details["split_traces"] == 1
    assert "1 trace id of 64 bits that end an id of 128 bits" in report.summary()


@pytest.mark.parametrize("parent", ["0", "0" * 16, "0x0", "", None])
def test_a_parent_of_zeros_is_none(parent: str | None, tmp_path: Path) -> None:
    path = write_file(tmp_path, [zipkin(TRACE, ROOT, "a", "SERVER", parentId=parent)])
    assert get_causes(read([path])) == {f"{TRACE}/{ROOT}": []}


# --- OTLP ----------------------------------------------------------------------------------


def otlp(*spans: dict[str, Any], key: str = "resourceSpans") -> dict[str, Any]:
    attributes = [{"key": "service.name", "value": {"stringValue": "shop"}}]
    return {key: [{"resource": {"attributes": attributes}, "scopeSpans": [{"spans": [*spans]}]}]}


def span(id: str, parent: str = "", trace: str = TRACE, **more: Any) -> dict[str, Any]:
    return {"traceId": trace, "spanId": id, "parentSpanId": parent, "name": "n", **more}


@pytest.mark.parametrize("write", [lambda id: f"0x{id}", b64, str.upper, lambda id: f"00{id}"])
def test_notations_mix_in_one_file(write: Any, tmp_path: Path) -> None:
    spans = [span(ROOT), span(write(CHILD), write(ROOT), write(TRACE))]
    found = get_causes(read([write_file(tmp_path, otlp(*spans))]))
    assert found == {f"{TRACE}/{ROOT}": [], f"{TRACE}/{CHILD}": [f"{TRACE}/{ROOT}"]}


def test_half_of_a_trace_id_is_reported(tmp_path: Path) -> None:
    path = write_file(tmp_path, otlp(span(ROOT), span(CHILD, ROOT, TRACE[16:])))
    report = audit([path])
    assert (report.missing_causes, report.details["split_traces"]) == (1, 1)


@pytest.mark.parametrize("parent", [1.5, [ROOT], {"id": ROOT}, 2.0**53])
@pytest.mark.parametrize("dialect", ["otlp", "zipkin", "jaeger"])
def test_references_that_name_no_span_are_counted(
    parent: object, dialect: str, tmp_path: Path
) -> None:
    links = ["x", None, {"traceId": TRACE}]
    whole: object = {
        "otlp": otlp(span(ROOT) | {"parentSpanId": parent, "links": links}),
        "zipkin": [zipkin(TRACE, ROOT, "a", "SERVER") | {"parentId": parent}],
        "jaeger": {"traceID": TRACE, "spanID": ROOT, "operationName": "x", "startTime": AT * 10**6}
        | {"references": [*links, {"traceID": TRACE, "spanID": CHILD}], "parentSpanID": parent},
    }[dialect]
    path = write_file(tmp_path, whole)
    count = 1 if dialect == "zipkin" else 4
    assert read([path]).details["unreadable_causes"] == count
    assert "not readable as an id, in column parent or links" in audit([path]).summary()


# --- units ---------------------------------------------------------------------------------

FACTORS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def make_timed_span(unit: str, at: int, id: str = ROOT, parent: str = "") -> dict[str, Any]:
    start = at * FACTORS[unit] // 1000
    return span(id, parent, startTimeUnixNano=start, endTimeUnixNano=str(start + FACTORS[unit]))


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
def test_numbers_in_another_unit_are_read_and_reported(unit: str, tmp_path: Path) -> None:
    whole = otlp(
        make_timed_span("ns", AT * 1000), make_timed_span(unit, AT * 1000 - 2000, CHILD, ROOT)
    )
    path = write_file(tmp_path, whole)
    trace = read([path])
    assert trace.events["start_time"].to_pylist() == [AT * 10**9, (AT - 2) * 10**9]
    assert trace.events["end_time"].to_pylist() == [(AT + 1) * 10**9, (AT - 1) * 10**9]
    assert trace.details == {f"spans_taken_as_{unit}": 1, "span_unit": "ns"}
    summary = audit([path]).summary()
    assert f"1 span with times in {unit} by their size, but the format declares ns" in summary
    assert f"--time-unit {unit}" in summary


def test_a_unit_that_is_given_counts(tmp_path: Path) -> None:
    path = write_file(tmp_path, otlp(make_timed_span("us", AT * 1000)))
    kept = read([path], None, ReadOptions(time_unit="ns"))
    assert kept.events["start_time"].to_pylist() == [AT * 10**6]
    given = read([path], None, ReadOptions(time_unit="us"))
    assert given.events["start_time"].to_pylist() == [AT * 10**9]
    assert kept.details == given.details == {}


def test_duration_is_in_the_unit_of_the_start(tmp_path: Path) -> None:
    row = zipkin(TRACE, ROOT, "a", "SERVER") | {"timestamp": AT * 1000, "duration": 7}
    trace = read([write_file(tmp_path, [row])])
    assert trace.events["end_time"].to_pylist() == [AT * 10**9 + 7 * 10**6]
    assert trace.details == {"spans_taken_as_ms": 1, "span_unit": "us"}


@pytest.mark.parametrize("at", [1, 10**9, 5 * 10**9, 10**15, 10**18])
def test_times_that_are_plausible_in_no_other_unit_are_left_alone(at: int, tmp_path: Path) -> None:
    trace = read([write_file(tmp_path, otlp(span(ROOT, startTimeUnixNano=at)))])
    assert trace.events["start_time"].to_pylist() == [at]
    assert trace.details == {}


def test_csv_of_nezha(tmp_path: Path) -> None:
    header = "TraceID,SpanID,ParentID,PodName,OperationName,StartTimeUnixNano,EndTimeUnixNano"
    lines = [header, f"{TRACE},{ROOT},root,p,op,{AT * 10**6},{AT * 10**6 + 5}"]
    lines.append(f"{TRACE.upper()},{CHILD},0x{ROOT},q,op,{AT * 10**9},")
    trace = read([write_file(tmp_path, "\n".join(lines), "t.csv")])
    assert get_causes(trace) == {f"{TRACE}/{ROOT}": [], f"{TRACE}/{CHILD}": [f"{TRACE}/{ROOT}"]}
    assert trace.events["start_time"].to_pylist() == [AT * 10**9] * 2
    assert trace.details == {"spans_taken_as_us": 1, "span_unit": "ns"}


@pytest.mark.parametrize("quote", ["", '"'])
def test_further_columns_of_nezha(quote: str, tmp_path: Path) -> None:
    header = "TraceID,SpanID,ParentID,PodName,StartTimeUnixNano,EndTimeUnixNano,Extra"
    row = f"{TRACE},{ROOT},root,p,{AT * 10**9},{AT * 10**9 + 5},more"
    lines = [quote + line.replace(",", f"{quote},{quote}") + quote for line in (header, row)]
    own: Any = read([write_file(tmp_path, "\n".join(lines), "t.csv")], own=True).own
    assert own["Extra"].to_pylist() == ["more"]


def test_a_time_beyond_the_calendar_in_a_zipkin_table_is_one_unreadable_time() -> None:
    columns = {
        "traceId": [TRACE, TRACE],
        "id": [ROOT, CHILD],
        "localEndpoint": [{"serviceName": "p"}] * 2,
        "timestamp": pa.array([AT * 10**6, 2**60], pa.timestamp("us", "Europe/Rome")),
    }
    unreadable = COLUMNS.index("unreadable_times")
    assert [row[unreadable] for row in rows_of(pa.table(columns))] == [0, 1]
