"""Workload from a trace: its authors are the peers, its causes the parents of replies.

Every message of the trace (send and event rows) becomes a message of the run, ordered by the first
of these columns that all messages have: arrival, send, commit, author, start time, row. A message
dated before its parent gets the parent's time. The trace's span is scaled to `duration_s`.
Otherwise, with months between messages, none would be in flight when another is sent.

Author k, by first appearance, is the peer k modulo the number of peers. `messages` limits the
number, from the beginning. A reply waits until the peer has its parents. Rows without an author,
unknown parents, and parents that would close a cycle are skipped.
"""

from __future__ import annotations

import functools
import heapq
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from antecede.errors import InputError
from antecede.lab.simulate.config.model import SimulationConfig
from antecede.lab.simulate.config.tables import make_error
from antecede.lab.simulate.delays import US
from antecede.lab.simulate.schedule import Schedule
from antecede.tables.trace import DELIVER, RECEIVE, SEND, read

TIME_COLUMNS = ("arrival", "send_time", "commit_time", "author_time", "start_time", "file_order")


class TraceMessage(NamedTuple):
    """A message of a trace."""

    id: str
    author: str
    parents: tuple[str, ...]
    time: int


class ReplayedWorkload(NamedTuple):
    """A schedule, and the parents of each message, ascending."""

    schedule: Schedule
    parents: Sequence[tuple[int, ...]]


def replay_trace(config: SimulationConfig) -> ReplayedWorkload:
    """Return the messages of the workload's trace. Raises ConfigError if it has none."""
    if not config.workload.path:
        raise make_error("workload.path", "empty; expected the path of a trace")
    path = Path(config.workload.path)
    changed = path.stat().st_mtime_ns if path.is_file() else 0
    try:
        messages = _read_messages(path, changed)[: config.workload.messages]
    except InputError as error:
        raise make_error("workload.path", str(error)) from error
    if not messages:
        raise make_error("workload.path", f"{path}: no message has an author")
    order, times, parents = _sort_by_causes(messages)
    senders = config.topology.senders()
    authors: dict[str, int] = {}
    for message in messages:
        authors.setdefault(message.author, len(authors))
    number = {at: k for k, at in enumerate(order)}
    first, span = times[0], max(1, times[-1] - times[0])
    last_us = round(config.duration_s * US) - 1
    return ReplayedWorkload(
        Schedule(
            np.array([(time - first) * last_us // span for time in times], dtype=np.int64),
            np.array(
                [senders[authors[messages[at].author] % len(senders)] for at in order],
                dtype=np.int64,
            ),
        ),
        [tuple(sorted(number[parent] for parent in parents[at])) for at in order],
    )


@functools.lru_cache(maxsize=4)
def _read_messages(path: Path, changed_ns: int) -> list[TraceMessage]:
    """Return the messages of a trace by time. `changed_ns` is part of the cache's key."""
    events = read([path]).events
    rows = [row for row in events.to_pylist() if row["kind"] not in (RECEIVE, DELIVER)]
    if any(row["kind"] == SEND for row in rows):  # other rows are local events
        rows = [row for row in rows if row["kind"] == SEND]
    rows = [row for row in rows if row["member"]]
    column = next(name for name in TIME_COLUMNS if all(row[name] is not None for row in rows))
    found: dict[str, TraceMessage] = {}
    for row in rows:
        name = row["id"]
        found.setdefault(name, TraceMessage(name, row["member"], tuple(row["causes"]), row[column]))
    return sorted(found.values(), key=lambda message: message.time)


def _sort_by_causes(
    messages: Sequence[TraceMessage],
) -> tuple[list[int], list[int], list[list[int]]]:
    """Return an order with parents first, its times, and the parents without cycles."""
    position = {message.id: at for at, message in enumerate(messages)}
    parents = [
        sorted({position[name] for name in message.parents if name in position} - {at})
        for at, message in enumerate(messages)
    ]
    children: dict[int, list[int]] = {}
    for at, above in enumerate(parents):
        for parent in above:
            children.setdefault(parent, []).append(at)
    left = [len(above) for above in parents]
    time = [message.time for message in messages]
    ready = [(time[at], at) for at, above in enumerate(parents) if not above]
    heapq.heapify(ready)
    order: list[int] = []
    done = [False] * len(messages)
    while len(order) < len(messages):
        if not ready:
            stuck = next(at for at, is_done in enumerate(done) if not is_done)
            parents[stuck] = [parent for parent in parents[stuck] if done[parent]]
            ready = [(max(time[stuck], time[order[-1]] if order else 0), stuck)]
        now, at = heapq.heappop(ready)
        if done[at]:
            continue
        done[at], time[at] = True, now
        order.append(at)
        for child in children.get(at, ()):
            left[child] -= 1
            time[child] = max(time[child], now)
            if not left[child] and not done[child]:
                heapq.heappush(ready, (time[child], child))
    return order, [time[at] for at in order], parents
