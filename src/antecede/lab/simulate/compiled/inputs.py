"""Inputs of both compiled engines: limits of configurations, schedule and channels as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from antecede.errors import ConfigError
from antecede.lab.simulate.config.model import SimulationConfig
from antecede.lab.simulate.delays import US
from antecede.lab.simulate.network import make_channels
from antecede.lab.simulate.outputs.metrics import list_sample_times
from antecede.lab.simulate.random_streams import Ints, Stream, make_key
from antecede.lab.simulate.schedule import Schedule

MAX_DELAY_US = 1 << 26
FOREVER = 2**62  # Time after all times, at the end of `time_us` and `sample_us`


def find_misfit(config: SimulationConfig) -> str | None:
    """Return why workload and links do not fit the compiled engines (None: they fit)."""
    links = config.links
    if config.workload.kind == "replay":
        return "a replay delays replies until deliveries"
    if links.loss or links.duplicate or links.partitions:
        return "it has no loss, duplicates or partitions"
    if links.buffer is not None or links.service_s:
        return "it has no receive buffers"
    if find_longest_delay_us(config) > MAX_DELAY_US:
        return f"its delays are limited to {MAX_DELAY_US / US:.0f} s"
    return None


def reject(kind: str, reason: str | None) -> None:
    """Raise ConfigError if there is a reason."""
    if reason is not None:
        raise ConfigError(f"the compiled {kind} engine cannot run this configuration: {reason}")


def find_longest_delay_us(config: SimulationConfig) -> int:
    """Return the longest delay of any channel."""
    channels = make_channels(config.topology, config.links)
    return int(channels.quantiles.max()) + int(channels.location_delays_us.max())


def make_input_arrays(
    config: SimulationConfig, seed: int, sends: Schedule, samples: int
) -> dict[str, Any]:
    """Return the fields for schedule, samples and channels of both states."""
    channels = make_channels(config.topology, config.links)
    return {
        "time_us": np.append(sends.time_us, FOREVER).astype(np.uint64),
        "sample_us": np.array([*list_sample_times(config)[:samples], FOREVER], np.uint64),
        "warm": np.uint64(np.searchsorted(sends.time_us, round(config.warm_s * US))),
        "delay_key": np.uint64(make_key(seed, Stream.DELAY)),
        "table": channels.table.astype(np.uint64),
        "quantiles": channels.quantiles,
        "base": channels.location_delays_us.astype(np.uint64),
    }


def number_by_sender(sender: Ints) -> Ints:
    """Return each message's number among those of its sender, from 1."""
    order = np.argsort(sender, kind="stable")
    ordered = sender[order]
    found = np.empty(len(sender), dtype=np.int64)
    found[order] = np.arange(1, len(sender) + 1) - np.searchsorted(ordered, ordered)
    return found


def count_most_sent(sent_us: Ints, span_us: int) -> int:
    """Return the largest number of messages that are sent within a span."""
    recent = np.arange(len(sent_us)) - np.searchsorted(sent_us, sent_us - span_us) + 1
    return int(recent.max(initial=0))


def find_oldest_needed(sent_us: Ints, everywhere_us: int, after_us: int) -> Ints:
    """Return the oldest message that is needed when each message is sent.

    It is needed until `after_us` after the first send later than `everywhere_us` after its own.
    """
    later = np.searchsorted(sent_us, sent_us + everywhere_us, side="right")
    free_us = np.append(sent_us, np.int64(FOREVER // 2))[later] + after_us
    return np.searchsorted(free_us, sent_us)
