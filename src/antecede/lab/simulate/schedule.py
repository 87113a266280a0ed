"""Send times of a run, the same for all engines.

Message m is the m-th by time, then by sender. Draws use m, so a protocol changes no send or delay.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from antecede.lab.simulate.config.model import SimulationConfig
from antecede.lab.simulate.delays import US, pick_array
from antecede.lab.simulate.random_streams import Ints, Stream, draw_array, draw_unit_array, make_key
from antecede.lab.simulate.topology import Topology

BYTES_PER_LINE = 40  # Smallest size of a line of a replayed trace


class Schedule(NamedTuple):
    """The application's messages in send order."""

    time_us: Ints  # [messages] microseconds from the start, ascending
    sender: Ints  # [messages] address


def build_schedule(config: SimulationConfig, seed: int) -> Schedule:
    """Return the send times of a run. For replays: `antecede.lab.simulate.replay`."""
    senders = list_active_senders(config.topology, config.workload.silent)
    kind = config.workload.kind
    if kind == "random":
        return _draw_random(config, seed, senders)
    starts, gaps = (_draw_periodic if kind == "periodic" else _draw_poisson)(config, seed, senders)
    times = starts[:, None] + np.concatenate(
        [np.zeros((len(senders), 1), np.int64), np.cumsum(gaps, axis=1)], axis=1
    )
    who = np.broadcast_to(senders[:, None], times.shape)
    inside = times < round(config.duration_s * US)
    return _sort_schedule(times[inside], who[inside])


def estimate_messages(config: SimulationConfig) -> float:
    """Return the approximate number of messages of a run, without drawing them."""
    workload = config.workload
    senders = len(config.topology.senders()) - workload.silent
    if workload.kind == "random":
        return float(workload.messages or 0)
    if workload.kind == "replay":
        path = Path(workload.path or "")
        return path.stat().st_size / BYTES_PER_LINE if path.is_file() else 0.0
    if workload.total_hz is not None:
        return workload.total_hz * config.duration_s
    hz = workload.rate_hz if workload.kind == "poisson" else 1 / max(workload.interval.mean_s, 1e-6)
    return senders * hz * config.duration_s


def list_active_senders(topology: Topology, silent: int) -> Ints:
    """Return the addresses that send. Silent peers are the last of each role, in proportion."""
    everybody = topology.senders()
    roles: dict[str, list[int]] = {}
    for address in everybody:
        roles.setdefault(topology.role(address), []).append(address)
    found: list[int] = []
    left, total = silent, len(everybody)
    for members in roles.values():
        quiet = round(left * len(members) / total) if total else 0
        found += members[: len(members) - quiet]
        left, total = left - quiet, total - len(members)
    return np.array(sorted(found), dtype=np.int64)


def _draw_periodic(config: SimulationConfig, seed: int, senders: Ints) -> tuple[Ints, Ints]:
    interval = config.workload.interval
    if config.workload.total_hz is not None:
        interval = interval.scale(len(senders) / config.workload.total_hz / interval.mean_s)
    table = interval.quantiles()
    mean_us = interval.mean_s * US
    count = int(config.duration_s * US / max(int(table[0]), 1)) + 1
    starts = (draw_unit_array(make_key(seed, Stream.START), senders) * mean_us).astype(np.int64)
    words = draw_array(make_key(seed, Stream.INTERVAL), senders[:, None], np.arange(count)[None, :])
    return starts, pick_array(table, words)


def _draw_poisson(config: SimulationConfig, seed: int, senders: Ints) -> tuple[Ints, Ints]:
    rate = config.workload.rate_hz
    if config.workload.total_hz is not None:
        rate = config.workload.total_hz / len(senders)
    expected = rate * config.duration_s
    count = int(expected + 10 * np.sqrt(expected) + 20)
    starts = np.zeros(len(senders), dtype=np.int64)
    parts = draw_unit_array(
        make_key(seed, Stream.INTERVAL), senders[:, None], np.arange(count + 1)[None, :]
    )
    gaps = np.round(-np.log1p(-parts) / rate * US).astype(np.int64)
    return starts + gaps[:, 0], gaps[:, 1:]


def _draw_random(config: SimulationConfig, seed: int, senders: Ints) -> Schedule:
    count = np.arange(config.workload.messages or 0)
    times = draw_unit_array(make_key(seed, Stream.SEND_TIME), count) * config.duration_s * US
    which = (draw_unit_array(make_key(seed, Stream.SENDER), count) * len(senders)).astype(np.int64)
    return _sort_schedule(times.astype(np.int64), senders[which])


def _sort_schedule(times: Ints, senders: Ints) -> Schedule:
    order = np.lexsort((senders, times))
    return Schedule(times[order], senders[order])
