"""Prometheus example: metrics over HTTP equal the rows, and names agree everywhere."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
import urllib.request
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from antecede.spark import order
from antecede.spark.streams.processor import METRICS
from antecede.tables.order.spec import Status
from tests.spark.test_stream import source

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "monitoring"
NAMED = re.compile(r"\bantecede_(?!status)[a-z_]+")
WITHOUT_CLIENT = "prometheus_client is not installed: the example is not run"
WITHOUT_PROMTOOL = "promtool is not installed: its checks are not run"
client = pytest.mark.skipif(find_spec("prometheus_client") is None, reason=WITHOUT_CLIENT)
promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason=WITHOUT_PROMTOOL)


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(EXAMPLE))
    return import_module("order_metrics")


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((EXAMPLE / "dashboard.json").read_text())
    return found


def expressions() -> list[str]:
    return [target["expr"] for panel in dashboard()["panels"] for target in panel["targets"]]


def said(**figures: int | None) -> dict[str, Any]:
    return dict.fromkeys(METRICS, 0) | figures


def test_the_example_takes_every_figure_that_an_order_observes(example: ModuleType) -> None:
    assert tuple(example.FIGURES) + tuple(map(str, Status)) == METRICS


def test_figures_become_samples(example: ModuleType) -> None:
    figures = said(held=2, oldest_wait_ms=1500, state_bytes=7, written_bytes=5, late=3)
    found = {(s.metric, s.labels): s.value for s in example.samples("q", {"o": figures})}
    assert found["antecede_held", ("q", "o")] == 2
    assert found["antecede_oldest_wait_seconds", ("q", "o")] == 1.5
    assert found["antecede_state_bytes", ("q", "o")] == 7
    assert found["antecede_written_bytes_total", ("q", "o")] == 5
    assert found["antecede_rows_total", ("q", "o", "late")] == 3
    assert len(found) == 4 + len(Status)
    for metric, labels in found:
        assert len(labels) == len(example.METRICS[metric].labels)


def test_no_wait_is_zero_and_an_unknown_one_is_no_number(example: ModuleType) -> None:
    def wait(**figures: int | None) -> float:
        samples = example.samples("q", {"o": said(**figures)})
        return float({s.metric: s.value for s in samples}["antecede_oldest_wait_seconds"])

    assert wait(held=0, oldest_wait_ms=None) == 0
    assert math.isnan(wait(held=1, oldest_wait_ms=None))


def test_a_batch_without_rows_and_others_observations_say_nothing(example: ModuleType) -> None:
    empty = dict.fromkeys(METRICS)
    assert list(example.samples("q", {"antecede": empty, "mine": {"held": 1}})) == []


def test_rules_dashboard_and_page_name_what_the_exporter_has(example: ModuleType) -> None:
    rules = (EXAMPLE / "rules.yml").read_text()
    assert set(NAMED.findall(rules)) <= set(example.METRICS)
    assert set(NAMED.findall("\n".join(expressions()))) == set(example.METRICS)
    rows = re.findall(r"^\| `(antecede_\w+)` \| ([a-z, ]+) \|", page(), re.MULTILINE)
    labels = {name: tuple(words.split(", ")) for name, words in rows}
    assert labels == {name: metric.labels for name, metric in example.METRICS.items()}
    statuses = re.findall(r'status=~"([a-z_|]+)"', rules + "\n".join(expressions()))
    assert statuses
    assert {one for some in statuses for one in some.split("|")} <= set(map(str, Status))


def page() -> str:
    return (ROOT / "docs" / "monitoring.md").read_text()


def test_panels_stand_beside_each_other_and_know_their_source() -> None:
    panels = dashboard()["panels"]
    places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}
    assert len(places) == len(panels) == len({panel["id"] for panel in panels}) == 8
    variables = {variable["name"] for variable in dashboard()["templating"]["list"]}
    used = set(re.findall(r"\$\{?(\w+)\}?", json.dumps(panels)))
    assert used - {"__rate_interval"} <= variables


@promtool
@pytest.mark.parametrize(
    "words",
    [
        ("check", "config", "prometheus.yml"),
        ("check", "rules", "rules.yml"),
        ("test", "rules", "rules_test.yml"),
    ],
)
def test_promtool_takes_the_files_and_the_alerts_fire(words: tuple[str, ...]) -> None:
    run(*words)


@promtool
def test_promtool_can_read_every_expression_of_the_dashboard(tmp_path: Path) -> None:
    filled = [e.replace("$__rate_interval", "1m").replace("$query", ".*") for e in expressions()]
    rules = [{"record": f"panel:{k}", "expr": e} for k, e in enumerate(filled)]
    groups = {"groups": [{"name": "panels", "rules": rules}]}
    (tmp_path / "panels.yml").write_text(json.dumps(groups))  # JSON is YAML
    run("check", "rules", str(tmp_path / "panels.yml"))


def run(*words: str) -> None:
    done = subprocess.run(
        ["promtool", *words], cwd=EXAMPLE, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def scrape(port: int) -> dict[str, float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    pairs = (line.rsplit(" ", 1) for line in lines if line.startswith("antecede_"))
    return {name: float(value) for name, value in pairs}


@pytest.mark.slow
@client
def test_a_query_is_seen_over_http(
    rocks: SparkSession, tmp_path: Path, example: ModuleType
) -> None:
    tables = [
        pa.table({"id": ["b", "x"], "after": ["a", "lost"], "at": [1_000, 2_000]}),
        pa.table({"id": ["a", "c", "c"], "after": pa.nulls(3, pa.string()), "at": [4_000] * 3}),
        pa.table({"id": ["z"], "after": ["x"], "at": [9_000]}),
    ]
    df = source(rocks, tmp_path / "in", tables)
    ordered = order(df, id="id", after="after", time="at", time_unit="ms", shards=2)
    listener = import_module("exporter").Exporter()
    rocks.streams.addListener(listener)
    server, thread = listener.serve(0)
    try:
        assert scrape(server.server_port) == {}
        writer = ordered.writeStream.queryName("seen").format("noop").trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        assert query.awaitTermination(120)
        rocks.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
        found = scrape(server.server_port)
    finally:
        rocks.streams.removeListener(listener)
        server.shutdown()
        server.server_close()
        thread.join()
    of = 'order="antecede",query="seen"'
    assert found[f"antecede_held{{{of}}}"] == 2
    assert found[f"antecede_oldest_wait_seconds{{{of}}}"] == 7
    assert found[f"antecede_state_bytes{{{of}}}"] > 0
    assert found[f"antecede_written_bytes_total{{{of}}}"] > 0
    assert found[f'antecede_rows_total{{{of},status="ordered"}}'] == 3
    assert found[f'antecede_rows_total{{{of},status="duplicate"}}'] == 1
    assert found['antecede_query_running{query="seen"}'] == 0
    assert found['antecede_micro_batches_total{query="seen"}'] >= 3
    named = {name.partition("{")[0] for name in found}
    assert {name for name in named if not name.endswith("_created")} == set(example.METRICS)
