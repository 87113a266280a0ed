"""Messages of the study of Bhavanasi and Iyer: random threads, and threads of traces.

Random replies are those of `lab.simulate.workload`. A reply of a trace is not sent before all of
its parents are delivered.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from antecede.errors import InputError
from antecede.lab.reproductions.framework.user_files import compute_file_digest
from antecede.lab.simulate import Ints, Mesh, Traffic, replay_trace
from antecede.lab.simulate.config import SimulationConfig, Workload

MAX_AUTHORS = 1 << 20
FIRST_LENGTH_S = 1e9  # Length to which a trace is first scaled, s. Gaps keep their proportions.
_MULTI_FILE_LOG = re.compile(r"(.+)\.(annotation|ascii|raw)(\.[\w-]+)?\.txt(\.gz)?")


class MessageLoad(NamedTuple):
    """The messages of a run, by number."""

    time_us: Ints  # [messages] due time, ascending
    sender: Ints  # [messages] from 0
    parents: Sequence[Sequence[int]] | None  # Parents by message (None: replies are random)
    draw_parent: Callable[[int, Sequence[int]], int | None] = lambda number, recent: None
    """(message, messages delivered recently to its sender) -> its parent."""
    recent: int = 0


def make_thread_load(config: SimulationConfig, seed: int) -> MessageLoad:
    """Return the messages of a configuration without a trace."""
    traffic = Traffic(config, seed)
    time_us, sender = traffic.schedule
    return MessageLoad(time_us, sender, None, traffic.choose_parent, config.workload.recent)


def make_trace_load(path: str, messages: int | None, gap_ms: float) -> MessageLoad:
    """Return the first messages of a trace, scaled to a median gap of `gap_ms`."""
    time_us, sender, parents = _read_first_messages(path, messages)
    gaps = np.diff(time_us)
    middle = float(np.median(gaps)) if len(gaps) else 0.0
    if not middle:  # half of the messages have the time of their predecessor
        middle = float(gaps.mean()) if len(gaps) and gaps.any() else 1.0
    factor = gap_ms * 1000 / middle
    pressed = np.round(time_us * factor).astype(np.int64)
    return MessageLoad(pressed, sender, parents)


@functools.lru_cache(maxsize=2)
def _read_first_messages(
    path: str, messages: int | None
) -> tuple[Ints, Ints, Sequence[Sequence[int]]]:
    load = Workload("replay", path=path, messages=messages)
    config = SimulationConfig(Mesh(MAX_AUTHORS), workload=load, duration_s=FIRST_LENGTH_S)
    found = replay_trace(config)
    return found.schedule.time_us, found.schedule.sender, found.parents


def digest_trace(path: Path) -> str:
    """Return a digest of a trace and the files that belong to it. Raises InputError."""
    if path.is_dir():
        raise InputError("this is a folder; name the trace files", path=str(path))
    parts, several = {path}, _MULTI_FILE_LOG.fullmatch(path.name)
    if several is not None and path.is_file():
        named = ((one, _MULTI_FILE_LOG.fullmatch(one.name)) for one in path.parent.iterdir())
        parts |= {one for one, found in named if found and found[1] == several[1]}
    return compute_file_digest(*sorted(parts))[:16]
