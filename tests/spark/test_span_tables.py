"""Span tables: Spark, Arrow and the file reader give the same events."""

from __future__ import annotations

import base64
import json
import random
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyspark.sql import SparkSession

from antecede.errors import InputError
from antecede.spark.sources.span_tables import spans_to_events as by_spark
from antecede.tables.trace.arrow import read
from antecede.tables.trace.formats.spans_table import COLUMNS
from antecede.tables.trace.formats.spans_table import events_of_spans as by_arrow

pa: Any = pyarrow
TRACES: list[str | None] = [
    "0" * 31 + "a",
    "0" * 31 + "A",
    "f" * 32,
    "0" * 32,
    " " + "1" * 32,
    "short",
]
TRACES += ["", "\u2003", None]
TRACES += [base64.b64encode(bytes(15) + b"\x0a").decode(), base64.b64encode(bytes(16)).decode()]
TRACES += ["AAAAAAAAAAAAAAAAAAAAAR==", "A" * 22, "00", "\x1f"]
WHOLE = bytes(range(200, 216))
TRACES += [
    WHOLE.hex(),
    WHOLE.hex().upper(),
    f"0x{WHOLE.hex()}",
    f"0X{WHOLE[8:].hex()}",
    "0x0",
    "0x",
]
TRACES += [f"000{WHOLE.hex()}", WHOLE[8:].hex().lstrip("0"), "f" * 33]
TRACES += ["4bf92f35-77b3-4da6-a3ce-929d0e0e4736", "4BF92F3577B34DA6A3CE929D0E0E4736"]
TRACES += [base64.b64encode(one).decode() for one in (WHOLE.hex().encode(), b"0x" + b"a" * 16)]
TRACES += [base64.b64encode(base64.b64encode(WHOLE)).decode()]
TRACES += [base64.urlsafe_b64encode(WHOLE).decode(), base64.b64encode(WHOLE).decode()[:22]]
SPANS: list[str | None] = [
    "0" * 15 + "1",
    "0" * 15 + "2",
    "AAAAAAAAAAE=",
    "AAAAAAAAAAE==",
    "AAAAAAAAAAF=",
]
SPANS += ["x", "", None]
SPANS += ["0" * 16, "ABCDEFabcdef0123", " 0000000000000003\t", "0" * 15 + "\n"]
EIGHT = bytes(range(248, 256))
SPANS += [EIGHT.hex(), EIGHT.hex().upper(), f" 0x{EIGHT.hex()} ", "1", "a" * 17, "0" * 9 + "1" * 16]
SPANS += [base64.b64encode(EIGHT.hex().encode()).decode(), base64.b64encode(EIGHT).decode()]
SPANS += [base64.b64encode(base64.b64encode(EIGHT)).decode()]
SPANS += [base64.urlsafe_b64encode(EIGHT).decode().rstrip("="), "checkout-ab", "hello-world"]
TIMES: list[str | None] = [
    "0",
    "",
    "1700000000000000000",
    "9223372036854775807",
    "9223372036854775808",
    "x",
    "-5",
]
TIMES += [None, "+7", " 8 ", "007", "1" * 31, "\u2003"]
TIMES += [f"17000000{'0' * zeros}" for zeros in (2, 5, 8, 11)] + ["1600000000000500"]
KINDS: list[str | None] = [
    "SPAN_KIND_SERVER",
    "Client",
    "consumer",
    "PRODUCER",
    "INTERNAL",
    "",
    None,
]
KINDS += ["2", "5", "9", " 3"]
WORDS = ["svc", " svc", "pod-1", "", " ", None, "\u3000x\u3000"]
KEYS = ["service.name", "k8s.pod.name", "service.instance.id", "host.name", "host.id", "other"]


def spans(seed: int, n: int = 120) -> list[dict[str, Any]]:
    draw = random.Random(seed)

    def span() -> dict[str, Any]:
        links = [
            {"traceId": draw.choice(TRACES), "spanId": draw.choice(SPANS)}
            for _ in range(draw.choice([0, 0, 1, 3]))
        ]
        keys = draw.sample(KEYS, draw.randrange(4))
        attributes = {key: draw.choice(WORDS) for key in keys}
        usual = draw.random() < 0.7
        return {
            "traceId": draw.choice(TRACES[:3] if usual else TRACES),
            "spanId": draw.choice(SPANS[:3] if usual else SPANS),
            "parentSpanId": draw.choice(SPANS),
            "name": draw.choice(WORDS),
            "kind": draw.choice(KINDS),
            "startTimeUnixNano": draw.choice(TIMES),
            "endTimeUnixNano": draw.choice(TIMES),
            "links": links,
            "resourceAttributes": {k: v for k, v in attributes.items() if v is not None},
        }

    return [span() for _ in range(n)]


def as_table(rows: list[dict[str, Any]]) -> Any:
    text = pa.string()
    names = ("traceId", "spanId", "parentSpanId", "name", "kind", "startTimeUnixNano")
    link = pa.struct([("traceId", text), ("spanId", text)])
    fields = [(name, text) for name in (*names, "endTimeUnixNano")]
    fields += [("links", pa.list_(link)), ("resourceAttributes", pa.map_(text, text))]
    rows = [{**row, "resourceAttributes": [*row["resourceAttributes"].items()]} for row in rows]
    return pa.Table.from_pylist(rows, schema=pa.schema(fields))


def as_file(rows: list[dict[str, Any]], path: Path) -> Path:
    """OTLP's JSON, a line for the resource of each span."""
    with path.open("w") as file:
        for row in rows:
            attributes = [
                {"key": key, "value": {"stringValue": value}}
                for key, value in row["resourceAttributes"].items()
            ]
            span = {key: value for key, value in row.items() if key != "resourceAttributes"}
            block = {"resource": {"attributes": attributes}, "scopeSpans": [{"spans": [span]}]}
            file.write(json.dumps({"resourceSpans": [block]}) + "\n")
    return path


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_three_ways_to_the_same_events(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    rows = spans(seed)
    table = as_table(rows)
    here = both(spark, table)
    trace = read([as_file(rows, tmp_path / "spans.json")], "spans")
    counted = ("reason", "unreadable_times", "time_unit", "unreadable_causes")
    wanted = [name for name in COLUMNS if name not in counted]
    good: list[Any] = [row for row in here if row["reason"] is None]
    told = trace.events.select(wanted).to_pylist()
    assert [{name: row[name] for name in wanted} for row in good] == told
    assert len(here) - len(good) == trace.quarantine.num_rows
    unreadable = sum(row["unreadable_times"] for row in here)
    assert unreadable == trace.details.get("unreadable_times", 0)
    assert min(len(good), len(here) - len(good), unreadable) > 5
    lost = sum(row["unreadable_causes"] for row in here)
    assert lost == trace.details.get("unreadable_causes", 0)
    assert lost > 5


def clickhouse(rows: list[dict[str, Any]], in_bytes: bool) -> Any:
    """The same spans as ClickHouse's exporter names them; ids perhaps as bytes."""
    draw = random.Random(1)
    ids = [draw.choice([b"", bytes(16), draw.randbytes(16)]) for _ in rows]
    few = [draw.randbytes(8) for _ in range(9)] + [bytes(8), b""]
    some = [draw.choice(few) for _ in rows]
    kind = pa.binary() if in_bytes else pa.string()
    show = (lambda one: one) if in_bytes else bytes.hex
    micros = [draw.choice([None, 0, 1_700_000_000_000_000 + k]) for k in range(len(rows))]
    return pa.table(
        {
            "Timestamp": pa.array(micros, pa.timestamp("us")),
            "TraceId": pa.array(map(show, ids), kind),
            "SpanId": pa.array(map(show, some), kind),
            "ParentSpanId": pa.array(map(show, some[1:] + some[:1]), kind),
            "SpanName": [row["name"] for row in rows],
            "SpanKind": [row["kind"] for row in rows],
            "ServiceName": [draw.choice(WORDS) for _ in rows],
            "ResourceAttributes": pa.array(
                [[*row["resourceAttributes"].items()] for row in rows],
                pa.map_(pa.string(), pa.string()),
            ),
            "Duration": pa.array([draw.choice([None, 0, 5, 10**9]) for _ in rows], pa.int64()),
            "Links.TraceId": pa.array([[show(one)] * 2 for one in ids], pa.list_(kind)),
            "Links.SpanId": pa.array(
                [[show(a), show(b)] for a, b in zip(some, few * 99, strict=False)], pa.list_(kind)
            ),
        }
    )


@pytest.mark.few(1)
@pytest.mark.parametrize("in_bytes", [True, False])
def test_a_table_of_clickhouse(spark: SparkSession, in_bytes: bool) -> None:
    table = clickhouse(spans(9), in_bytes)
    here = both(spark, table)
    assert sum(row["end_time"] is not None for row in here) > 5
    assert sum(len(row["causes"]) > 1 for row in here) > 5


def both_refuse(spark: SparkSession, columns: dict[str, Any], said: str) -> None:
    table = pa.table(columns)
    with pytest.raises(InputError, match=said):
        by_arrow(table)
    with pytest.raises(InputError, match=said):
        by_spark(spark.createDataFrame(table))


def test_what_cannot_serve_is_refused(spark: SparkSession) -> None:
    both_refuse(spark, {"x": [1]}, "no columns of a trace's and a span's id")
    for column, said in (
        ({"traceId": [True]}, "column traceId must be text, bytes or integers"),
        ({"startTimeUnixNano": [0.5]}, "column startTimeUnixNano must be whole numbers"),
        ({"links": ["x"]}, "column links must be an array"),
        ({"kind": [True]}, "column kind must be a word or a number"),
        ({"resourceAttributes": ["x"]}, "column resourceAttributes must be a map"),
    ):
        frame = spark.createDataFrame(
            pa.table({"traceId": ["a"], "spanId": ["b"], "parentId": ["c"], **column})
        )
        with pytest.raises(InputError, match=said):
            by_spark(frame)


# --- tables of other programs ------------------------------------------------------------------

TRACE, ROOT, CHILD = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7", "b7ad6b7169203331"
OTHER = "c8be7c7270204442"
LINKED = [(f"{TRACE}/{ROOT}", []), (f"{TRACE}/{CHILD}", [f"{TRACE}/{ROOT}"])]
AT = 1_700_000_000_000_000
"""Microseconds."""


def both(spark: SparkSession, table: Any) -> list[dict[str, Any]]:
    """Return the rows of Arrow, which must equal those of Spark."""
    here: list[dict[str, Any]] = by_arrow(table).to_pylist()
    there = spark.createDataFrame(table).coalesce(1).transform(by_spark).toArrow().to_pylist()
    assert there == here
    return here


def jaeger(start: int = AT) -> list[dict[str, Any]]:
    def row(id: str, service: str, host: str | None, parent: str | None) -> dict[str, Any]:
        reference = {"refType": "CHILD_OF", "traceID": TRACE.upper(), "spanID": parent}
        return {
            "traceID": TRACE,
            "spanID": id,
            "operationName": "op",
            "references": [reference] if parent else [],
            "startTime": start,
            "duration": 5,
            "tags": [{"key": "x", "value": "y"}, {"key": "span.kind", "value": "Client"}],
            "process": {
                "serviceName": service,
                "tags": [{"key": "hostname", "value": host}] if host else [],
            },
            "startTimeMillis": start // 1000,
        }

    return [row(ROOT, "shop", "h1", None), row(CHILD, "pay", None, ROOT.lstrip("0"))]


def test_jaegers_rows(spark: SparkSession) -> None:
    found = both(spark, pa.Table.from_pylist(jaeger()))
    assert [(row["id"], row["causes"]) for row in found] == LINKED
    assert [row["member"] for row in found] == ["shop@h1", "pay"]
    assert {(row["start_time"], row["end_time"], row["role"]) for row in found} == {
        (AT * 1000, AT * 1000 + 5000, "client")
    }
    assert {(row["unreadable_times"], row["time_unit"]) for row in found} == {(0, None)}


@pytest.mark.slow
def test_jaegers_rows_in_another_unit_with_tags_as_fields(spark: SparkSession) -> None:
    rows = [
        {
            **row,
            "tags": [("span@kind", "server")],
            "process": {"serviceName": row["process"]["serviceName"], "tag": [("host@name", "h")]},
        }
        for row in jaeger(AT // 1000)
    ]
    texts = pa.map_(pa.string(), pa.string())
    plain = pa.Table.from_pylist(jaeger()).schema
    kinds = {"tags": texts, "process": pa.struct([("serviceName", pa.string()), ("tag", texts)])}
    schema = pa.schema([field.with_type(kinds.get(field.name, field.type)) for field in plain])
    found = both(spark, pa.Table.from_pylist(rows, schema=schema))
    assert [row["member"] for row in found] == ["shop@h", "pay@h"]
    assert {
        (row["start_time"], row["end_time"], row["role"], row["time_unit"]) for row in found
    } == {(AT * 1000, AT * 1000 + 5 * 10**6, "server", "ms")}


def test_datadogs_integers(spark: SparkSession) -> None:
    table = pa.table(
        {
            "trace_id": [1234567890123456789] * 2,
            "span_id": [-1, 17],
            "parent_id": [0, -1],
            "service": ["a", "b"],
            "name": ["x", "y"],
            "start": [AT * 1000, AT * 1000 + 9],
            "duration": [100, 1],
        }
    )
    found = both(spark, table)
    trace = f"{1234567890123456789:016x}"
    assert [(row["id"], row["causes"], row["member"], row["end_time"]) for row in found] == [
        (f"{trace}/{'f' * 16}", [], "a", AT * 1000 + 100),
        (f"{trace}/{17:016x}", [f"{trace}/{'f' * 16}"], "b", AT * 1000 + 10),
    ]


def test_ids_in_floating_point_columns(spark: SparkSession) -> None:
    def link(span: float) -> dict[str, float]:
        return {"trace_id": 7.0, "span_id": span}

    inexact = 2.0**53
    table = pa.table(
        {
            "trace_id": [7.0, 7.0, 7.0, 7.0, inexact, float("nan")],
            "span_id": pa.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], pa.float32()),
            "parent_id": [None, 1.0, float("nan"), inexact, 1.0, 1.0],
            "links": [[], [link(1.5)], None, [link(3.0), None], [], []],
        }
    )
    first, third = (f"{7:016x}/{n:016x}" for n in (1, 3))
    found = both(spark, table)
    assert [row["causes"] for row in found] == [[], [first], [], [third], [], []]
    assert [row["unreadable_causes"] for row in found] == [0, 1, 0, 2, 0, 0]
    assert [row["reason"] for row in found] == [None] * 4 + ["no id"] * 2


def test_ids_in_decimals_and_columns_of_nulls(spark: SparkSession) -> None:
    ids = [2**64 - 1, 2**64 + 5, 17, None]
    table = pa.table(
        {
            "traceId": pa.array([2**100] * 4, pa.decimal128(38, 0)),
            "spanId": pa.array([-1, 2**63, 0, 16], pa.decimal128(20, 0)),
            "parentId": pa.nulls(4),
            "Links.TraceId": pa.array([ids, ids[:1], [], None], pa.list_(pa.decimal128(38, 0))),
            "Links.SpanId": pa.array([ids, [], [], None], pa.list_(pa.decimal128(38, 0))),
        }
    )
    found = both(spark, table)
    trace = f"{2**100:032x}"
    wanted = [f"{trace}/{'f' * 16}", f"{trace}/8{'0' * 15}", None, f"{trace}/{16:016x}"]
    assert [row["id"] for row in found] == wanted
    assert [row["unreadable_causes"] for row in found] == [1, 1, 0, 0]


def test_elastics_microseconds(spark: SparkSession) -> None:
    table = pa.table(
        {
            "trace.id": [TRACE] * 2,
            "span.id": [ROOT, CHILD],
            "parent.id": [None, ROOT],
            "timestamp.us": [AT, AT + 1],
            "span.duration.us": [7, None],
            "service.name": ["a", "b"],
        }
    )
    found = both(spark, table)
    assert [(row["id"], row["causes"]) for row in found] == LINKED
    assert [(row["start_time"], row["end_time"], row["member"]) for row in found] == [
        (AT * 1000, AT * 1000 + 7000, "a"),
        (AT * 1000 + 1000, None, "b"),
    ]


@pytest.mark.few(1)
@pytest.mark.parametrize("blank", [None, ""])
def test_elastics_transactions_have_no_id_of_a_span(spark: SparkSession, blank: Any) -> None:
    table = pa.table(
        {
            "trace.id": [TRACE] * 3,
            "transaction.id": [ROOT, ROOT, OTHER],
            "span.id": [blank, CHILD, blank],
            "parent.id": [None, ROOT, CHILD],
            "timestamp.us": [AT, AT + 1, AT + 2],
            "transaction.name": ["GET /", blank, "POST /"],
            "span.name": [blank, "SELECT", blank],
            "transaction.duration.us": [9, None, 3],
            "span.duration.us": [None, 7, None],
        }
    )
    found = both(spark, table)
    root, child, other = (f"{TRACE}/{one}" for one in (ROOT, CHILD, OTHER))
    assert [(row["id"], row["causes"], row["text"]) for row in found] == [
        (root, [], "GET /"),
        (child, [root], "SELECT"),
        (other, [child], "POST /"),
    ]
    assert [row["end_time"] - row["start_time"] for row in found] == [9000, 7000, 3000]
    other_type = table.set_column(1, "transaction.id", pa.array([1, 2, 3]))
    with pytest.raises(InputError, match=r"columns span\.id and transaction\.id differ in type"):
        both(spark, other_type)


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ({"links": ["[]"]}, "column links must be an array; it is string"),
        ({"service": [{"name": "a"}]}, "column service must be text; it is struct<name: ?string>"),
        ({"beginTime": [AT]}, "beginTime may hold one: rename it"),
        ({"Start_Date": [AT], "ts": [1]}, "Start_Date, ts may hold one: rename it"),
    ],
)
def test_both_engines_refuse_what_cannot_serve(
    spark: SparkSession, column: dict[str, Any], said: str
) -> None:
    ids = {"traceId": [TRACE], "spanId": [ROOT], "parentSpanId": [CHILD]}
    both_refuse(spark, ids | column, said)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("name", "end", "ratio"),
    [("start_ns", "end_ns", 1000), ("startTimeUnixMs", "endTimeUnixMs", 0.001),
     ("@timestamp", None, 1000), ("start_us", "end.us", 1)],
)  # fmt: skip
def test_further_names_of_times(
    spark: SparkSession, name: str, end: str | None, ratio: float
) -> None:
    ids = {"traceId": [TRACE], "spanId": [ROOT], "parentSpanId": [CHILD]}
    times = {one: [round(AT * ratio)] for one in (name, end) if one is not None}
    (row,) = both(spark, pa.table({**ids, **times}))
    assert (row["start_time"], row["unreadable_times"], row["time_unit"]) == (AT * 1000, 0, None)
    assert row["end_time"] == (None if end is None else AT * 1000)


def test_an_end_in_another_unit_than_the_start(spark: SparkSession) -> None:
    table = pa.table(
        {
            "traceId": [TRACE] * 3,
            "spanId": [ROOT, CHILD, OTHER],
            "parentSpanId": [None] * 3,
            "startTimeUnixNano": [AT * 1000, AT // 1000, AT * 1000],
            "endTimeUnixNano": [AT // 1000 + 5, AT * 1000 + 5_000_000, AT * 1000 + 5_000_000],
        }
    )
    found = both(spark, table)
    assert [row["time_unit"] for row in found] == ["ms", "ms", None]
    ends = [AT // 1000 * 10**6 + 5_000_000, AT * 1000 + 5_000_000, AT * 1000 + 5_000_000]
    assert [row["end_time"] for row in found] == ends


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["timestamp", "startTime", "start"])
def test_times_whose_size_tells_another_unit(spark: SparkSession, name: str) -> None:
    times = pa.array([AT, AT // 1000, AT * 1000, AT // 10**6, 5], pa.int64())
    table = pa.table(
        {
            "traceId": [TRACE] * 5,
            "spanId": [ROOT] * 5,
            "parentSpanId": [None] * 4 + [CHILD],
            name: times,
            "duration": [1] * 5,
        }
    )
    found = both(spark, table)
    assert [row["time_unit"] for row in found] == ["us", "ms", None, "s", None]
    assert [row["start_time"] for row in found] == [AT * 1000] * 4 + [5]
    assert [row["end_time"] - row["start_time"] for row in found] == [1000, 10**6, 1, 10**9, 1]


def test_a_table_without_causes_or_of_nested_documents_is_refused(spark: SparkSession) -> None:
    ids = {"traceId": [TRACE], "spanId": [ROOT]}
    zipkin = {"traceId": [TRACE], "id": [ROOT], "timestamp": [AT]}
    nested = 'spark.read.format("antecede")'
    for columns, said in (
        ({**ids, "startTimeUnixNano": [AT]}, "no column of a span's parent"),
        ({**ids, "links": [[{"traceId": TRACE, "spanId": CHILD}]]}, "no column of a span's parent"),
        (zipkin, "no column of a span's parent"),
        ({"data": [[{"traceID": TRACE}]]}, f"looks like Jaeger's export.*{nested}"),
        ({"resourceSpans": ["x"]}, f"looks like OTLP's JSON.*{nested}"),
        ({"traceEvents": ["x"]}, f"looks like Chrome's trace events.*{nested}"),
    ):
        both_refuse(spark, columns, said.replace("(", r"\(").replace(")", r"\)"))
