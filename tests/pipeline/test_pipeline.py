"""Whole pipeline with its kills: over files, and over Kafka and Delta on request."""

from __future__ import annotations

import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from antecede.errors import SetupError
from antecede.formatting import pluralize
from antecede.spark.java import find_java
from pipeline.page import describe_result, format_summary, list_checks, write_page
from pipeline.processes import list_spark_pids
from pipeline.run import Options, RunResult, prepare_folder, run

NEEDED_MIB = 4_000
ASKED = "ANTECEDE_PIPELINE"


def machine() -> None:
    """Skip where Spark or four more processes cannot run."""
    try:
        find_java()
    except SetupError as error:
        pytest.skip(str(error))
    if not sys.platform.startswith("linux"):
        pytest.skip("free memory is read from /proc, which only Linux has")
    free = Path("/proc/meminfo").read_text().partition("MemAvailable:")[2].split()[0]
    if int(free) < NEEDED_MIB * 1024:
        pytest.skip(f"the pipeline needs {NEEDED_MIB} MiB; {int(free) // 1024} are free")


def check_killed_run(ran: RunResult, folder: Path) -> None:
    """Check the properties of every run."""
    assert ran.verdict.is_ok, ran.verdict
    assert ran.verdict.messages > 50
    assert ran.verdict.copies > ran.verdict.messages
    assert ran.figures.waited > 0
    kills = [line for _, line in ran.figures.kills]
    assert [line["what"] for line in kills] == ["executor", "driver"]
    assert all(line["pids"] and line["within_a_batch"] for line in kills)
    assert ran.figures.rows == ran.verdict.messages
    assert ran.figures.outcomes[-1].inverted == 0
    assert list_spark_pids(folder) == []


@pytest.mark.slow
def test_over_files_while_an_executor_and_the_driver_are_killed(tmp_path: Path) -> None:
    machine()
    folder = prepare_folder(tmp_path / "run")
    plan = (("executor", 1), ("driver", 1))
    one = "local-cluster[1,2,900]"  # cheaper to start than two executors
    options = Options(folder, 7.0, 3, files=True, master=one, plan=plan, max_per_batch=10)
    ran = run(options)
    check_killed_run(ran, folder)
    assert ran.sink == "parquet"

    page = write_page(folder / "index.html", ran, options).read_text()
    assert f"{pluralize(ran.verdict.messages, 'event')} from three services" in page
    assert "There was no broker: requested by --files" in page
    assert "while an executor and the driver were killed" in page
    assert page.count("<svg") == 3
    assert not any("WRONG" in line for line in format_summary(ran))

    lost = ran._replace(verdict=ran.verdict._replace(lost=["orders:1:7"]))
    assert "something is wrong" in describe_result(lost.verdict, lost.figures)
    assert list_checks(lost.verdict)[0]["wrong"] == 1
    page = write_page(folder / "index.html", lost, options).read_text()
    assert "lost orders:1:7" in page
    assert "1 row was lost or written twice" in page
    assert any("WRONG: lost orders:1:7" in line for line in format_summary(lost))


def test_over_kafka_and_delta_while_an_executor_and_the_driver_are_killed(tmp_path: Path) -> None:
    if not os.environ.get(ASKED):
        pytest.skip(f"takes two minutes: `make pipeline` runs the same, and so does {ASKED}=1")
    if shutil.which("mvn") is None:
        pytest.skip("no Maven here")
    if find_spec("confluent_kafka") is None:
        pytest.skip("no Kafka client here: run by .venv-pipeline's Python")
    machine()
    folder = prepare_folder(tmp_path / "run")
    ran = run(Options(folder, seconds=20.0))
    check_killed_run(ran, folder)
    assert ran.sink == "delta", ran.files_reason
