"""Spark engine: a DataFrame of runs becomes a DataFrame of outcomes, one batch per job.

Theory of operation
-------------------
`compute_outcomes` maps a DataFrame to a DataFrame. A worker turns each run into rows of metrics, so
results do not depend on partitioning. `spark_engine` feeds it.

One large job would give nothing until its last task ends. A run that kills its worker would fail
all others. So every batch of runs is a job of one task. The dearest runs start first, each alone.
Cheap runs are batched to about a second. Threads keep a few more jobs submitted than there are task
slots. Slots are counted repeatedly, since executors come and go. Spark serves jobs in order of
submission, so a free slot takes one of the dearest remaining runs.

Only the driver writes results (`store`). Executors need the package and no shared file system.

An exception of a run is an outcome. If a worker or executor dies, its job fails after Spark's own
retries. Its runs are tried once more, one by one. A run whose worker dies again is reported.
Executors without the package, or with other code, end the study at once.

A classic session is queried through its SparkContext. Spark Connect has none. There, tags are set
by the client, slots are the partitions of a range (counted once), and a server that answers is
alive.
"""

from __future__ import annotations

import contextlib
import importlib
import re
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from antecede.errors import SetupError
from antecede.lab.reproductions.framework.code_digest import code_digest, collect_modules
from antecede.lab.reproductions.framework.execute import (
    SCHEMA,
    execute_run,
    make_failure,
    sort_by_cost,
)
from antecede.lab.reproductions.framework.runner import Engine
from antecede.lab.reproductions.framework.runs import Run
from antecede.lab.reproductions.framework.study import Metrics, Study


class ClassicSession:
    """A session whose JVM belongs to this process."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session

    def count_slots(self) -> int:
        """Return the default parallelism, which follows the number of executors."""
        return int(self.session.sparkContext.defaultParallelism)

    def tag(self, name: str) -> None:
        """Tag the jobs that this thread submits from now on."""
        self.session.sparkContext.addJobTag(name)

    def cancel(self, name: str) -> None:
        """Cancel the jobs of a tag."""
        self.session.sparkContext.cancelJobsWithTag(name)

    def is_alive(self) -> bool:
        """Return True if the SparkContext of the JVM is running."""
        try:
            context: Any = self.session.sparkContext._jsc
            return not context.sc().isStopped()
        except Exception:
            return False

    def is_local(self) -> bool:
        """Return True if workers have the driver's files for certain."""
        return str(self.session.sparkContext.master).startswith("local")


class ConnectSession:
    """A session of a Spark Connect server."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session
        self._slots: int | None = None

    def count_slots(self) -> int:
        """Return the partitions of a range, counted once."""
        if self._slots is None:
            numbers = self.session.range(100_000).select(F.spark_partition_id().alias("p"))
            found = numbers.agg(F.max("p").alias("p")).collect()[0]
            self._slots = int(found.p) + 1
        return self._slots

    def tag(self, name: str) -> None:
        """Tag the operations of this thread."""
        self.session.addTag(name)

    def cancel(self, name: str) -> None:
        """Interrupt the operations of a tag."""
        self.session.interruptTag(name)

    def is_alive(self) -> bool:
        """Return True if the server answers a request for a setting."""
        try:
            self.session.conf.get("spark.sql.shuffle.partitions")
        except Exception:
            return False
        return True

    def is_local(self) -> bool:
        """Return False: the location of a server is unknown."""
        return False


SessionHandle: TypeAlias = ClassicSession | ConnectSession


def wrap_session(session: SparkSession) -> SessionHandle:
    """Return the handle of a session, classic or of Spark Connect."""
    return (
        ClassicSession(session) if hasattr(session, "_jsparkSession") else ConnectSession(session)
    )


pa: Any = pyarrow  # its stubs know too few of the types that meet here

OUTCOME_SCHEMA = "run string, quantity string, value double, series array<double>, reason string"
BUNDLE_S = 1.0  # Estimated cost of a batch of cheap runs, s. Starting a job takes a tenth of it.
BUNDLES_A_SLOT = 4  # Smallest number of batches per task slot
JOBS_PER_SLOT = 2  # Submitted jobs per slot: one in progress, one ready
MAX_JOBS = 1_000
TICK_S = 0.2
NO_OUTCOMES: pyarrow.Table = SCHEMA.empty_table()
"""Empty table that triggers an update of the progress line."""


@dataclass(frozen=True)
class Work:
    """Function of a worker, by name, for `mapInArrow`."""

    module: str
    function: str
    modules: tuple[str, ...]
    code: str | None  # Digest of the driver's sources (None: workers share its files)

    def __call__(self, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        """Execute the runs of a partition. Raises SetupError."""
        execute = self.load()
        for batch in batches:
            for text in batch.column("text").to_pylist():
                yield execute_run(Run.from_text(str(text)), execute)

    def load(self) -> Callable[[Run], Metrics]:
        """Import the function. Raises SetupError if the worker's code differs from the driver's."""
        if self.code is not None and code_digest(self.modules) != self.code:
            raise SetupError(
                "the executors and the driver have different versions of antecede; ship one"
            )
        execute: Callable[[Run], Metrics] = getattr(
            importlib.import_module(self.module), self.function
        )
        return execute


def work_of(study: Study, spark: SparkSession) -> Work:
    """Return the worker function for runs of the study."""
    modules = collect_modules(study)
    code = None if wrap_session(spark).is_local() else code_digest(modules)
    return Work(study.execute.__module__, study.execute.__qualname__, modules, code)


def runs_frame(spark: SparkSession, runs: Sequence[Run]) -> DataFrame:
    """Return runs as a DataFrame: `run` (key), `cost_s` and `text` (the whole run)."""
    table = pa.table(
        {
            "run": pa.array([run.key for run in runs], pa.string()),
            "cost_s": pa.array([run.cost_s for run in runs], pa.float64()),
            "text": pa.array([run.to_text() for run in runs], pa.string()),
        }
    )
    return spark.createDataFrame(table)


def outcomes(runs: DataFrame, work: Work) -> DataFrame:
    """Return the outcomes of a DataFrame of `runs_frame`."""
    return runs.mapInArrow(work, OUTCOME_SCHEMA)


def spark_engine(spark: SparkSession) -> Engine:
    """Return the engine (see `runner`) of a session, also of Spark Connect."""

    def engine(study: Study, runs: Sequence[Run]) -> Iterator[pyarrow.Table]:
        return _Jobs(spark, work_of(study, spark)).run(runs)

    return engine


def bundles(runs: Iterable[Run], slots: int) -> list[list[Run]]:
    """Return the runs in starting order, cheap ones batched."""
    ordered = sort_by_cost(runs)
    room = min(BUNDLE_S, sum(run.cost_s for run in ordered) / (slots * BUNDLES_A_SLOT))
    found: list[list[Run]] = []
    cost = room
    for run in ordered:
        if cost + run.cost_s > room:
            found.append([])
            cost = 0.0
        found[-1].append(run)
        cost += run.cost_s
    return found


class _Jobs:
    def __init__(self, spark: SparkSession, work: Work) -> None:
        self.spark, self.work, self.handle = spark, work, wrap_session(spark)
        self.tag = f"antecede-study-{uuid.uuid4().hex}"
        self.under_way: dict[Future[pyarrow.Table], list[Run]] = {}
        self.waiting: deque[list[Run]] = deque()
        self.killed_runs: set[str] = set()
        """Keys of runs to be tried alone, after their worker died."""

    def run(self, runs: Sequence[Run]) -> Iterator[pyarrow.Table]:
        self.waiting.extend(bundles(runs, self.count_slots()))
        pool = ThreadPoolExecutor(MAX_JOBS, thread_name_prefix="study")
        try:
            while self.waiting or self.under_way:
                self.submit(pool)
                over, _ = wait(self.under_way, TICK_S, FIRST_COMPLETED)
                for future in over:
                    yield self.collect_outcomes(future, self.under_way.pop(future))
                if not over:
                    yield NO_OUTCOMES
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            self.cancel()

    def cancel(self) -> None:
        """Cancel the jobs in progress, also those that a thread is about to submit."""
        while self.under_way and wait(self.under_way, 0).not_done:
            with contextlib.suppress(Exception):  # Spark may have stopped
                self.handle.cancel(self.tag)
            wait(self.under_way, TICK_S)

    def count_slots(self) -> int:
        """Return the current number of task slots."""
        try:
            return max(1, self.handle.count_slots())
        except Exception as error:
            raise self.make_stopped_error(error) from error

    def submit(self, pool: ThreadPoolExecutor) -> None:
        room = min(self.count_slots() * JOBS_PER_SLOT, MAX_JOBS)
        while self.waiting and len(self.under_way) < room:
            batch = self.waiting.popleft()
            self.under_way[pool.submit(self.run_job, batch)] = batch

    def run_job(self, batch: Sequence[Run]) -> pyarrow.Table:
        """Execute a batch in one task. Called in a thread."""
        self.handle.tag(self.tag)
        frame = runs_frame(self.spark, batch).coalesce(1)
        made: pyarrow.Table = outcomes(frame, self.work).toArrow().cast(SCHEMA)
        return made

    def collect_outcomes(self, future: Future[pyarrow.Table], batch: list[Run]) -> pyarrow.Table:
        """Return the outcomes of a job. For a failed job, return those that are certain."""
        error = future.exception()
        if error is None:
            return future.result()
        if not isinstance(error, Exception):
            raise error
        if not self.handle.is_alive():
            raise self.make_stopped_error(error) from error
        _check_setup(error, self.work)
        if len(batch) > 1 or batch[0].key not in self.killed_runs:
            self.killed_runs.update(run.key for run in batch)
            self.waiting.extendleft([run] for run in reversed(batch))
            return NO_OUTCOMES
        reason = f"the worker died twice: {_find_cause(error)}"
        lost: pyarrow.Table = pa.Table.from_batches([make_failure(batch[0].key, reason)])
        return lost

    def make_stopped_error(self, error: Exception) -> SetupError:
        return SetupError(
            f"Spark has stopped ({_find_cause(error)}); run the command again to continue"
        )


_MISSING = re.compile(r"(ModuleNotFoundError|ImportError|AttributeError): (.*)")
_SETUP = re.compile(r"antecede\.errors\.(?:SetupError|MissingExtraError): (.*)")
_SHIPPING_HINT = "docs/design/studies.md describes how to ship the package"
_CAUSE_LINE = re.compile(
    r"(?i)(Python worker [^\n]*|ExecutorLostFailure[^\n]*|[^\n]*(?:OutOfMemory|exit code)[^\n]*)"
)


def _check_setup(error: Exception, work: Work) -> None:
    """Raise SetupError if no run can work. Errors of runs are outcomes, not job failures."""
    text = str(error)
    if found := _SETUP.search(text):
        raise SetupError(f"{found[1].strip()}; {_SHIPPING_HINT}") from error
    if found := _MISSING.search(text):
        what = f"{found[2].strip()} (for {work.module}.{work.function})"
        raise SetupError(
            f"the executors cannot import the code of the runs: {what}; {_SHIPPING_HINT}"
        ) from error


def _find_cause(error: Exception) -> str:
    text = str(error).strip()
    found = _CAUSE_LINE.search(text)
    line = found[1] if found else (text.splitlines() or [type(error).__name__])[0]
    return line.strip()[:300]
