"""Operations of the ledger with their reference programs.

Reference programs need no antecede: a sort by timestamp, a reader without causality, the same Spark
plan without ordering, SimPy, a C program, raw TCP.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.json
import pyarrow.parquet
from pyspark.sql import DataFrame

from antecede.lab.simulate import simulate
from antecede.spark import local_session, order_with
from antecede.spark.streams.ordering import order_stream
from antecede.tables.audit import audit_events
from antecede.tables.causality import Causality
from antecede.tables.false_causality.measure import measure
from antecede.tables.order import order_table
from antecede.tables.order.replay import deliver_table
from antecede.tables.trace import read
from bench import engines, groups, live_rate, replay_rate, simulators, stream_rate
from bench import false_causality as false_causality_traces
from bench.ledger import Comparison, Work, measure_cpu

pa: Any = pyarrow

ROWS = 300_000
STREAM_ROWS = 50_000
"""Rows of a file; a file is a micro-batch."""
BURST = 64
SIMULATED_S = 20.0
MEASURED_S = 1.0
"""Minimum duration of a measurement; short work is repeated."""


def make_comparisons() -> Iterator[Comparison]:
    """Yield all operations of the ledger, Spark last."""
    yield from compare_tables()
    yield from compare_groups()
    yield from compare_simulators()
    yield from compare_peers()
    yield from compare_spark()


def compare_tables() -> Iterator[Comparison]:
    events = engines.make_log(ROWS, engines.GROUPS)
    by_time = _measure_rows(lambda: events.sort_by("send_time"), ROWS)
    yield Comparison(
        "order_table / pyarrow sort by time", _measure_rows(_order(events), ROWS), by_time
    )
    yield Comparison(
        "audit / pyarrow sort by time", _measure_rows(lambda: audit_events(events), ROWS), by_time
    )
    few = events.slice(0, ROWS // 10)
    yield Comparison(
        "Causality(...).past / pyarrow sort by time",
        _measure_rows(lambda: _find_past(few), len(few)),
        _measure_rows(lambda: few.sort_by("send_time"), len(few)),
    )
    threads = false_causality_traces.make_threads("replies", ROWS // 10)
    yield Comparison(
        "measure linear, timestamp / pyarrow sort by time",
        _measure_rows(lambda: measure(threads, ["linear", "timestamp"]), len(threads)),
        _measure_rows(lambda: threads.sort_by("send_time"), len(threads)),
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "log.jsonl")
        some = events.slice(0, ROWS // 3).select(["run", "id", "member", "causes", "send_time"])
        path.write_text("".join(f"{_to_json(row)}\n" for row in some.to_pylist()))
        yield Comparison(
            "read JSON lines / pyarrow.json",
            _measure_rows(lambda: read(path), len(some)),
            _measure_rows(lambda: pa.json.read_json(path), len(some)),
        )
    spec = replay_rate.make_spec("bss")
    frames = replay_rate.make_logs(spec)
    yield Comparison(
        "deliver_table bss / rows to Python, sorted",
        _measure_rows(lambda: deliver_table(frames, spec), len(frames)),
        _measure_rows(lambda: frames.sort_by("time").to_pylist(), len(frames)),
    )


def compare_groups() -> Iterator[Comparison]:
    for order in ("bss", "idr"):
        traffic = groups.make_traffic(order, 100)
        start = traffic.protocol.snapshot()
        yield Comparison(
            f"Group.receive {order}, 100 members / protocol",
            partial(_receive, groups.time_group, traffic, start),
            partial(_receive, groups.time_protocol, traffic, start),
        )


def compare_simulators(c_programs: Path | None = None) -> Iterator[Comparison]:
    for name, program in (
        ("mesh of 100, idr", simulators.FLAT_C),
        ("hierarchy of 100", simulators.HIERARCHY_C),
    ):
        scenario = simulators.make_config(program, 100, SIMULATED_S)
        operation = measure_cpu(lambda: simulate(scenario, 1).figures["deliveries"])  # noqa: B023
        if c_programs is None:
            yield Comparison(f"simulate {name} / SimPy", operation, _run_simpy)
            continue
        with tempfile.TemporaryDirectory() as folder:
            binary = simulators.compile_c(c_programs, program, Path(folder))
            yield Comparison(f"simulate {name} / C", operation, partial(_run_c, binary))


def compare_peers() -> Iterator[Comparison]:
    for kind in ("peer batches tls", "peer tls"):
        yield Comparison(
            f"live, {kind} / raw TCP", partial(_run_mesh, kind), partial(_run_mesh, "raw"), rounds=3
        )


def compare_spark() -> Iterator[Comparison]:
    settings = {
        "spark.sql.streaming.stateStore.providerClass": stream_rate.ROCKSDB,
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    }
    spark = local_session(cores=2, settings=settings, memory="3g")
    with tempfile.TemporaryDirectory() as folder:
        events = engines.make_log(ROWS, engines.GROUPS)
        pa.parquet.write_table(events, f"{folder}/log.parquet", compression="zstd")
        frame = spark.read.parquet(f"{folder}/log.parquet")
        placed = frame.repartition(frame["run"]).mapInArrow(_pass_through, frame.schema)
        yield Comparison(
            "order on Spark / rows to Python and back",
            _measure_rows(lambda: _write(frame.transform(order_with(engines.SPEC))), ROWS),
            _measure_rows(lambda: _write(placed), ROWS),
        )
        source = Path(folder, "stream")
        source.mkdir()
        stream_rate.write_input(source, STREAM_ROWS, files=5, groups=engines.GROUPS, late=0.1)
        yield Comparison(
            "order a stream on Spark / stream to Python and back",
            measure_cpu(
                lambda: _run_stream(
                    spark, source, lambda df: order_stream(df, stream_rate.DECLARED)
                )
            ),
            measure_cpu(lambda: _run_stream(spark, source, stream_rate.pass_through_arrow)),
            rounds=3,
        )
    spark.stop()


def _measure_rows(work: Callable[[], object], rows: int) -> Callable[[], Work]:
    def until_measurable() -> float:
        begin, count = time.perf_counter(), 0
        while time.perf_counter() - begin < MEASURED_S:
            work()
            count += 1
        return float(rows * count)

    return measure_cpu(until_measurable)


def _order(events: Any) -> Callable[[], object]:
    return lambda: order_table(events, engines.SPEC)


def _find_past(events: Any) -> object:
    return Causality(events).past(events["id"][-1].as_py())


def _to_json(row: dict[str, Any]) -> str:
    return json.dumps(row)


def _receive(run: Callable[..., tuple[float, int]], traffic: groups.Traffic, start: Any) -> Work:
    traffic.protocol.restore(start)
    spent, _ = run(traffic, False)
    return Work(len(traffic.measured), spent)


def _run_simpy() -> Work:
    rate = simulators.run_simpy(100, simulators.SIMPY_S[100])
    return Work(rate.deliveries, rate.spent_s)


def _run_c(binary: Path) -> Work:
    rate = simulators.run_c(binary, 100, SIMULATED_S)
    return Work(rate.deliveries, rate.spent_s)


def _run_mesh(kind: str) -> Work:
    _, cpu_us = live_rate.measure_mesh(kind, BURST, seconds=2.0)
    return Work(1.0, cpu_us / 1e6)


def _run_stream(spark: Any, source: Path, make: Callable[[DataFrame], DataFrame]) -> float:
    return float(stream_rate.measure(spark, source, make).written)


def _pass_through(batches: Iterable[Any]) -> Iterator[Any]:
    yield from batches


def _write(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()
