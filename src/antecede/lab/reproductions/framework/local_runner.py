"""Engine of worker processes on this machine, for `antecede sweep --engine local`.

A worker gets a run as plain values. If a worker dies, each submitted run is tried once more, alone.
A run whose worker dies again is reported. Workers ignore Ctrl-C and end with their parent.
"""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import pyarrow

from antecede.lab.reproductions.framework.execute import (
    SCHEMA,
    execute_run,
    make_failure,
    sort_by_cost,
)
from antecede.lab.reproductions.framework.runs import Run
from antecede.lab.reproductions.framework.study import Study

pa: Any = pyarrow  # its stubs know too few of the types that meet here

RUNS_PER_WORKER = 2  # Submitted runs per worker: one in progress, one ready
TICK_S = 0.2
WATCH_S = 0.5


def cores() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Processes:
    """Engine (see `runner`) of worker processes."""

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def __call__(self, study: Study, runs: Sequence[Run]) -> Iterator[pyarrow.Table]:
        """Execute the runs, dearest first. Yield each outcome, in any order."""
        function_path = (study.execute.__module__, study.execute.__qualname__)
        waiting, suspects = deque(sort_by_cost(runs)), deque[Run]()
        while waiting or suspects:
            alone = bool(suspects)
            queue, workers, room = (
                (suspects, 1, 1)
                if alone
                else (waiting, self.workers, self.workers * RUNS_PER_WORKER)
            )
            spawning = multiprocessing.get_context("spawn")
            pool = ProcessPoolExecutor(workers, spawning, _start_worker, (os.getpid(),))
            under_way: dict[Future[pyarrow.RecordBatch], Run] = {}
            try:
                yield from _run_queue(pool, function_path, queue, room, under_way)
            finally:
                _stop_pool(pool)
            for run in under_way.values():  # a worker died
                if alone:
                    reason = "the worker died twice (out of memory, or killed)"
                    yield pa.Table.from_batches([make_failure(run.key, reason)])
                else:
                    suspects.append(run)


def _run_queue(
    pool: ProcessPoolExecutor,
    function_path: tuple[str, str],
    queue: deque[Run],
    room: int,
    under_way: dict[Future[pyarrow.RecordBatch], Run],
) -> Iterator[pyarrow.Table]:
    """Execute a queue until a worker dies, which leaves its runs in `under_way`."""
    with contextlib.suppress(BrokenProcessPool):  # raised by submit
        while queue or under_way:
            while queue and len(under_way) < room:
                future = pool.submit(_execute_in_worker, *function_path, queue[0].to_text())
                under_way[future] = queue.popleft()
            over, _ = wait(under_way, TICK_S, FIRST_COMPLETED)
            broken = {f for f in over if isinstance(f.exception(), BrokenProcessPool)}
            done = [future.result() for future in over - broken]
            for future in over - broken:
                del under_way[future]
            # One table for all finished runs: each table becomes a file.
            yield pa.Table.from_batches(done, SCHEMA)
            if broken:
                return


def _start_worker(parent: int) -> None:
    """Ignore Ctrl-C in a worker, and end the worker when its parent has ended."""

    def follow() -> None:
        while os.getppid() == parent:
            time.sleep(WATCH_S)
        os._exit(1)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=follow, daemon=True).start()


def _execute_in_worker(module: str, function: str, text: str) -> pyarrow.RecordBatch:
    return execute_run(Run.from_text(text), getattr(importlib.import_module(module), function))


def _stop_pool(pool: ProcessPoolExecutor) -> None:
    workers = list((getattr(pool, "_processes", None) or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for worker in workers:
        worker.terminate()
    for worker in workers:
        worker.join()
