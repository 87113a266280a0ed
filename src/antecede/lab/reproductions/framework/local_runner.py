"""Engine of worker processes on this machine, for `antecede sweep --engine local`.

A worker gets a run as plain values. If it dies, the submitted runs are tried once more, each alone,
and the run whose worker dies again is reported. Workers ignore Control-C and end with their parent.
"""

from __future__ import annotations

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

from antecede.lab.reproductions.framework.execute import SCHEMA, failed, largest_first, outcome
from antecede.lab.reproductions.framework.runs import Run
from antecede.lab.reproductions.framework.study import Study

pa: Any = pyarrow  # its stubs know too few of the types that meet here

AHEAD = 2
"""Submitted runs of a worker: one under way, one ready."""
TICK_S = 0.2
WATCH_S = 0.5


def cores() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Processes:
    """An engine (see `runner`) of worker processes."""

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def __call__(self, study: Study, runs: Sequence[Run]) -> Iterator[pyarrow.Table]:
        """Carry the runs out, dearest first; yield the outcome of each, in any order."""
        execute = study.execute
        self.place = (execute.__module__, execute.__qualname__)
        waiting, suspects = deque(largest_first(runs)), deque[Run]()
        while waiting or suspects:
            if suspects:
                yield from self._alone(suspects)
            else:
                yield from self._together(waiting, suspects)

    def _together(self, waiting: deque[Run], suspects: deque[Run]) -> Iterator[pyarrow.Table]:
        """Carry out what waits; when a worker dies, leave what was submitted in `suspects`."""
        pool = self._pool(self.workers)
        under_way: dict[Future[pyarrow.RecordBatch], Run] = {}
        try:
            while waiting or under_way:
                while waiting and len(under_way) < self.workers * AHEAD:
                    future = pool.submit(_carry_out, *self.place, waiting[0].to_text())
                    under_way[future] = waiting.popleft()
                over, _ = wait(under_way, TICK_S, FIRST_COMPLETED)
                broken = {f for f in over if isinstance(f.exception(), BrokenProcessPool)}
                done = [future.result() for future in over - broken]
                for future in over - broken:
                    del under_way[future]
                # One table for all that ended meanwhile: each is a file on the disk.
                yield pa.Table.from_batches(done, SCHEMA)
                if broken:
                    break
        except BrokenProcessPool:  # met while submitting
            pass
        finally:
            suspects.extend(under_way.values())
            _end(pool)

    def _alone(self, suspects: deque[Run]) -> Iterator[pyarrow.Table]:
        """Carry out one run after the other; report the one whose worker dies."""
        pool = self._pool(1)
        try:
            while suspects:
                run = suspects.popleft()
                future = pool.submit(_carry_out, *self.place, run.to_text())
                while not wait([future], TICK_S).done:
                    yield SCHEMA.empty_table()
                try:
                    yield pa.Table.from_batches([future.result()])
                except BrokenProcessPool:
                    _end(pool)
                    reason = "the worker died twice (out of memory, or killed)"
                    yield pa.Table.from_batches([failed(run.key, reason)])
                    pool = self._pool(1)
        finally:
            _end(pool)

    def _pool(self, workers: int) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(
            workers, multiprocessing.get_context("spawn"), _begin, (os.getpid(),)
        )


def _begin(parent: int) -> None:
    """Prepare a worker: it leaves Control-C to its parent, and ends when that has gone."""

    def follow() -> None:
        while os.getppid() == parent:
            time.sleep(WATCH_S)
        os._exit(1)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=follow, daemon=True).start()


def _carry_out(module: str, function: str, text: str) -> pyarrow.RecordBatch:
    """Carry out one run in a worker; return its outcome."""
    return outcome(Run.from_text(text), getattr(importlib.import_module(module), function))


def _end(pool: ProcessPoolExecutor) -> None:
    """End a pool now; what runs is lost."""
    workers = list((getattr(pool, "_processes", None) or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for worker in workers:
        worker.terminate()
    for worker in workers:
        worker.join()
