"""Complete run of the pipeline: processes, kills, check."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from antecede.errors import SetupError
from antecede.formatting import pluralize
from pipeline import broker, check, courier, figures, spark_job
from pipeline.processes import Killer, Processes
from pipeline.services import TOPICS
from pipeline.transport import make_topics

SKEW_MS = {"orders": 0.0, "payments": -150.0, "shipping": 120.0}
"""Clock error of each service."""
PLAN = (("executor", 2), ("driver", 3))
"""Kill targets, and the micro-batches to finish before each."""
OUTAGE = (0.45, 0.6)
"""Start and end of the outage, as fractions of the duration."""
MASTER = "local-cluster[2,1,900]"
DRAIN_S = 600.0
"""Time limit of waits."""


class Options(NamedTuple):
    """Parameters of a run."""

    out: Path
    seconds: float = 40.0
    seed: int = 1
    files: bool = False
    cache: Path = Path(".cache/pipeline")
    master: str = MASTER
    plan: tuple[tuple[str, int], ...] = PLAN
    max_per_batch: int = 0
    """Maximum records (with files: files) of a micro-batch; 0: default of the job."""


class RunResult(NamedTuple):
    """Finished run."""

    address: str
    sink: str
    files_reason: str
    """Reason for files instead of a broker; empty with a broker."""
    verdict: check.Verdict
    figures: figures.RunMetrics


def run(options: Options) -> RunResult:
    """Run the whole pipeline in the empty folder `out`."""
    jars, why = resolve_jars(options)
    folder = options.out
    with contextlib.ExitStack() as stack:
        if jars is None:
            address, sink = f"files:{(folder / 'topics').resolve()}", "parquet"
        else:
            print_progress("starting a broker")
            address, sink = stack.enter_context(broker.broker(jars[0], folder / "broker")), "delta"
        make_topics(address, TOPICS, courier.LAKE)
        processes = Processes(folder)
        stack.callback(processes.stop)
        _drive(options, processes, address, sink, None if jars is None else jars[1])
    print_progress("checking")
    rows = figures.read_table(folder)
    verdict = check.check_table(check.read_history(folder, TOPICS), rows)
    return RunResult(address, sink, why, verdict, figures.compute_metrics(folder, rows, sink))


def resolve_jars(options: Options) -> tuple[tuple[Path, Path] | None, str]:
    """Return the jars of broker and Spark, or None and the reason for files."""
    if options.files:
        return None, "requested by --files"
    try:
        return broker.resolve(options.cache), ""
    except SetupError as error:
        return None, str(error)


def _drive(
    options: Options, processes: Processes, address: str, sink: str, jars: Path | None
) -> None:
    folder, seconds = options.out, options.seconds
    words = ["--address", address, "--folder", str(folder.resolve()), "--sink", sink]
    words += ["--master", options.master, "--a-batch", str(options.max_per_batch)]
    words += [] if jars is None else ["--jars", str(jars.resolve())]
    killer = Killer(processes, words, list(options.plan))
    common = ["--address", address, "--folder", str(folder.resolve()), "--seed", str(options.seed)]
    print_progress("starting Spark")
    killer.start()
    _wait_for_file(folder / spark_job.PIDS_FILE, processes)
    print_progress(
        f"starting orders, payments, shipping and the courier; orders for {seconds:.0f} s"
    )
    outage = ["--outage", *(str(part * seconds) for part in OUTAGE)]
    processes.start("courier", "pipeline.courier", *common, *outage)
    for name in TOPICS:
        more = ["--seconds", str(seconds), "--skew-ms", str(SKEW_MS[name])]
        processes.start(name, "pipeline.services", name, *common, *more)
    for what in _wait_for_end(processes, killer, seconds):
        print_progress(what)
    processes.wait(["spark"], DRAIN_S)


def _wait_for_file(path: Path, processes: Processes) -> None:
    end = time.monotonic() + DRAIN_S
    while not path.exists():
        processes.check()
        if time.monotonic() > end:
            raise SetupError(f"Spark has not started within {DRAIN_S:.0f} s")
        time.sleep(0.05)


def _wait_for_end(processes: Processes, killer: Killer, seconds: float) -> Iterator[str]:
    """Yield progress until all planned kills are done and all records are copied."""
    folder, end = processes.folder, time.monotonic() + seconds + DRAIN_S
    reported = 0
    while True:
        processes.check()
        over = processes.running["courier"].poll() == 0
        planned = killer.step(over=over)
        for killed in killer.kills[reported:]:
            reported += 1
            yield (
                f"killed {killed.what} ({pluralize(len(killed.pids), 'process', 'processes')}, "
                f"SIGKILL) after {pluralize(killed.commits, 'micro-batch', 'micro-batches')}"
            )
        if all(processes.running[name].poll() == 0 for name in TOPICS):
            (folder / courier.DONE_FILE).touch()
        if planned and over:
            (folder / spark_job.FINISH_FILE).touch()
            yield "all records are copied; Spark processes the rest"
            return
        if time.monotonic() > end:
            left = ", ".join(what for what, _ in killer.plan)
            raise SetupError(
                f"no kill of {left} within a micro-batch, or records are still in transit: too few "
                "records; increase --seconds"
            )
        time.sleep(0.01)


def print_progress(text: str) -> None:
    """Print a progress line."""
    print(f"  {text}", flush=True)


def prepare_folder(folder: Path) -> Path:
    """Return the folder, emptied if it holds an earlier run; raise SetupError otherwise."""
    if folder.exists() and any(folder.iterdir()):
        if not (folder / ".pipeline").exists():
            raise SetupError(f"{folder} is not empty and not of a pipeline: choose another with -o")
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".pipeline").touch()
    return folder
