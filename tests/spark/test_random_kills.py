"""SIGKILL of driver, executor and Python workers at random times: equal results.

The seed, printed by a failing test, determines the kills. `make check` runs one stream with three
kills. `make soak` runs 20 kills per sink, also over Delta and Kafka; both need the environment of
`make pipeline`.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from antecede.errors import SetupError
from antecede.spark.streams.ordering import order_stream
from pipeline.broker import broker, resolve
from tests.pipeline.test_pipeline import machine
from tests.spark.kill_data import SPEC, check_rows, make_files
from tests.spark.random_kills import ROOT, KilledStream, run_with_kills
from tests.spark.test_stream import finish, source

PARTS = make_files(14, seed=11)
KILLS, SAMPLED = 5, 3
SEEDS = (2, 3, 4, 5)
"""Seeds of `make soak`: 20 kills per sink."""
OTHER_PYTHON = ROOT / ".venv-pipeline" / "bin" / "python"


@pytest.fixture(scope="module")
def undisturbed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> pa.Table:
    """Output of a stream without kills over the same micro-batches."""
    folder = tmp_path_factory.mktemp("undisturbed")
    return finish(order_stream(source(spark, folder / "in", PARTS), SPEC), folder)


def check_killed_stream(
    stream: KilledStream, seed: int, undisturbed: pa.Table, kills: int = KILLS
) -> None:
    rows, killed = run_with_kills(stream, PARTS, kills, seed)
    print(f"seed {seed}", *killed, sep="\n  ", file=sys.stderr)
    assert len(killed) == kills
    assert any(kill.within_a_batch and kill.commits for kill in killed), killed
    check_rows(rows, PARTS, undisturbed)


@pytest.mark.slow
def test_the_rows_of_a_stream_that_is_killed_three_times(
    tmp_path: Path, undisturbed: pa.Table
) -> None:
    machine()
    check_killed_stream(KilledStream(tmp_path), 1, undisturbed, SAMPLED)


@pytest.mark.soak
@pytest.mark.parametrize("seed", SEEDS)
def test_killed_over_files(tmp_path: Path, undisturbed: pa.Table, seed: int) -> None:
    machine()
    check_killed_stream(KilledStream(tmp_path), seed, undisturbed)


@pytest.fixture(scope="module")
def jars() -> tuple[Path, Path]:
    """Jars of the broker, and of Spark's Delta and Kafka; skip if they are missing."""
    machine()
    if not OTHER_PYTHON.exists():
        pytest.skip("Delta and Kafka need the environment of `make pipeline`, which is not there")
    if shutil.which("mvn") is None:
        pytest.skip("Delta and Kafka need jars, which Maven brings: no mvn here")
    try:
        return resolve(ROOT / ".cache" / "pipeline")
    except SetupError as error:
        pytest.skip(str(error))


@pytest.mark.soak
@pytest.mark.parametrize("seed", SEEDS)
def test_killed_into_a_delta_table(
    tmp_path: Path, undisturbed: pa.Table, jars: tuple[Path, Path], seed: int
) -> None:
    stream = KilledStream(tmp_path, sink="delta", python=str(OTHER_PYTHON), jars=jars[1])
    check_killed_stream(stream, seed, undisturbed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", SEEDS)
def test_killed_from_a_topic_into_a_delta_table(
    tmp_path: Path, undisturbed: pa.Table, jars: tuple[Path, Path], seed: int
) -> None:
    folder = tmp_path / "stream"
    folder.mkdir()
    with broker(jars[0], tmp_path / "broker") as address:
        stream = KilledStream(
            folder, source=address, sink="delta", python=str(OTHER_PYTHON), jars=jars[1]
        )
        check_killed_stream(stream, seed, undisturbed)
