"""Spark Connect with a local server: the same results, or a rejection in one sentence."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from antecede.lab.reproductions.framework.execute import run_locally
from antecede.tables.audit.engine import audit_events
from antecede.tables.false_causality.measure import measure
from antecede.tables.order.table import order_table
from antecede.tables.trace.arrow import to_batch
from tests.lab.reproductions import toy
from tests.spark.parts import run_python
from tests.spark.standalone import copy_package
from tests.spark.test_shipped import bare_python
from tests.spark.test_stream import DECLARED, check_as_batch, make_history
from tests.spark.test_study_runner import BAD, RUNS, figures
from tests.tables.false_causality.runs import ALIKE, random_run

pytestmark = [
    pytest.mark.usefixtures("java"),
    pytest.mark.skipif(importlib.util.find_spec("grpc") is None, reason="Connect needs grpcio"),
]
ROOT = Path(__file__).resolve().parents[2]
SESSION = """
import sys, json
from pathlib import Path
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
folder = sys.argv[1]
store = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
spark = SparkSession.builder.remote("local[2]").getOrCreate()
spark.conf.set("spark.sql.streaming.stateStore.providerClass", store)
spark.conf.set("spark.sql.shuffle.partitions", "2")
import antecede.spark as a
from antecede.errors import AntecedeError
said = {}
"""
ORDERED = """
how = dict(id="id", after="after", group="group", time="at")
rows = spark.read.parquet(folder + "/in")
pq.write_table(a.order(rows, **how).toArrow(), f"{folder}/batch.parquet")
for name, more in {"always": {"large_groups": "always"}, "auto": {"max_rows_per_task": 20}}.items():
    try:
        a.order(rows, **how, **more)
    except AntecedeError as error:
        said[name] = f"{type(error).__name__}: {error}"
checkpoint = folder + "/checkpoint"
def run():
    stream = spark.readStream.schema(rows.schema).option("maxFilesPerTrigger", 1)
    made = a.order(stream.parquet(folder + "/in"), checkpoint=checkpoint, **how)
    query = made.writeStream.format("parquet").option("checkpointLocation", checkpoint)
    query = query.trigger(availableNow=True).start(folder + "/out")
    assert query.awaitTermination(600)
run()
spark.conf.set("spark.sql.shuffle.partitions", "3")
run()
pq.write_table(spark.read.parquet(folder + "/out").toArrow(), folder + "/stream.parquet")
said["held"] = a.held(checkpoint).count()
try:
    a.repartition_stream(checkpoint, 4)
except AntecedeError as error:
    said["repartition"] = f"{type(error).__name__}: {error}"
Path(folder, "said").write_text(json.dumps(said))
"""
COUNTED = """
events = spark.read.parquet(folder + "/events")
pq.write_table(a.audit(events).toArrow(), folder + "/audit.parquet")
pq.write_table(a.measure_false_causality(events).toArrow(), folder + "/meter.parquet")
edges = [("a", None), ("b", "a"), ("c", "a"), ("d", "b")]
chain = spark.createDataFrame(edges, "id string, after string")
stamped = a.add_causal_labels(chain, id="id", after="after")
stamped.createOrReplaceTempView("events")
a.register(spark)
sql = (
    "SELECT x.id, y.id FROM events x JOIN events y ON {0}(x.causal_label, y.causal_label) "
    "ORDER BY 1, 2"
)
for name in ("happened_before", "concurrent"):
    before = getattr(a, name)("x.causal_label", "y.causal_label")
    pairs = stamped.alias("x").join(stamped.alias("y"), before)
    said[name] = sorted(x + y for x, y in pairs.select("x.id", "y.id").collect())
    assert said[name] == [x + y for x, y in spark.sql(sql.format(name)).collect()]
said["past"] = sorted(r.id for r in a.past(stamped, stamped.where("id = 'd'")).collect())
from antecede.lab.reproductions.framework.spark_runner import spark_engine
from tests.spark.test_study_runner import BAD, RUNS
from tests.lab.reproductions import toy
import pyarrow as pa
found = pa.concat_tables(spark_engine(spark)(toy.STUDY, [*RUNS, BAD]))
pq.write_table(found, folder + "/study.parquet")
Path(folder, "said").write_text(json.dumps(said))
"""
SHIPPED = """
import sys
folder, shipped, *paths = sys.argv[1:]
sys.path[:0] = paths
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
import antecede.spark as a
spark = SparkSession.builder.remote("local[2]").getOrCreate()
rows = spark.read.parquet(folder + "/in")
how = dict(id="id", after="after", group="group", time="at")
try:
    a.order(rows, **how).toArrow()
except Exception as error:
    assert "No module named 'antecede'" in str(error), error
else:
    raise AssertionError("the workers have antecede already")
spark.addArtifacts(shipped, pyfile=True)
made = a.order(rows, released_at="left", **how)  # another plan: the server keeps those it has seen
made = made.withColumnRenamed("left", "released_at")
pq.write_table(made.toArrow(), folder + "/made.parquet")
"""


@pytest.mark.soak
def test_workers_get_antecede_as_an_artifact(tmp_path: Path) -> None:
    table = make_history(60, seed=7)
    (tmp_path / "in").mkdir()
    pq.write_table(table, tmp_path / "in" / "0.parquet")
    copy, shipped = copy_package(tmp_path)
    environ = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    environ["PYSPARK_PYTHON"] = str(bare_python(tmp_path))
    words = (tmp_path, shipped, copy, *sys.path[1:])
    done = run_python(SHIPPED, *words, cwd=tmp_path, env=environ)
    assert done.returncode == 0, done.stderr[-4000:]
    got, want = pq.read_table(tmp_path / "made.parquet"), order_table(table, DECLARED)
    assert sorted(map(repr, got.to_pylist())) == sorted(map(repr, want.to_pylist()))


@pytest.mark.slow
def test_order_of_tables_and_streams_through_connect(tmp_path: Path) -> None:
    table = make_history(90, seed=6)
    (tmp_path / "in").mkdir()
    for k in range(2):
        pq.write_table(table.slice(45 * k, 45), tmp_path / "in" / f"{k}.parquet")
    said = _run(SESSION + ORDERED, tmp_path)
    want = order_table(table, DECLARED)
    batch = pq.read_table(tmp_path / "batch.parquet")
    assert sorted(map(repr, batch.to_pylist())) == sorted(map(repr, want.to_pylist()))
    check_as_batch(pq.read_table(tmp_path / "stream.parquet"), table)
    assert said["held"] == 0
    assert said["always"].startswith(
        'InputError: large_groups="always": the fixpoint over joins is nested too deeply'
    )
    assert said["auto"].startswith(
        "InputError: 90 rows are in groups of more than max_rows_per_task=20"
    )
    assert said["repartition"].startswith(
        "SetupError: Spark Connect cannot change the tasks of a stream"
    )


@pytest.mark.slow
def test_audit_meter_past_and_studies_through_connect(tmp_path: Path) -> None:
    events = _events()
    (tmp_path / "events").mkdir()
    pq.write_table(events, tmp_path / "events" / "0.parquet")
    said = _run(SESSION + COUNTED, tmp_path)
    assert said["past"] == ["a", "b"]
    assert said["happened_before"] == ["ab", "ac", "ad", "bd"]
    assert said["concurrent"] == ["bc", "cb", "cd", "dc"]
    [audited] = pq.read_table(tmp_path / "audit.parquet").to_pylist()
    report = audit_events(events).to_dict()
    for name in ("members", "roots", "concurrent_pairs", "missing_causes"):
        assert audited[name] == report[name], name
    assert _rows(pq.read_table(tmp_path / "meter.parquet")) == _rows(measure(events))
    found = pq.read_table(tmp_path / "study.parquet")
    assert figures([found]) == figures(run_locally(toy.STUDY, [*RUNS, BAD]))


def _run(program: str, folder: Path) -> dict[str, Any]:
    """Run a program in its own process with its server; return its output."""
    # The server's workers have the search path of this process.
    path = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
    env = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": path}
    done = run_python(program, folder, cwd=ROOT, env=env)
    assert done.returncode == 0, done.stderr[-4000:]
    said: dict[str, Any] = json.loads((folder / "said").read_text())
    return said


def _events() -> pa.Table:
    rows = [row._replace(run="one") for row in random_run(3, ALIKE, deliver=False).rows]
    return pa.Table.from_batches([to_batch(rows)])


def _rows(table: pa.Table) -> list[dict[str, Any]]:
    return sorted(table.to_pylist(), key=lambda row: [str(value) for value in row.values()])
