"""Inputs of both compiled engines: limits of scenarios, schedule and channels as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from antecede.errors import ScenarioError
from antecede.lab.simulate.config.model import Scenario
from antecede.lab.simulate.delays import US
from antecede.lab.simulate.network import make_channels
from antecede.lab.simulate.outputs.metrics import list_sample_times
from antecede.lab.simulate.random_streams import Ints, Stream, make_key
from antecede.lab.simulate.schedule import Schedule

MAX_DELAY_US = 1 << 26
FOREVER = 2**62  # time after all times that ends `time_us` and `sample_us`


def find_misfit(scenario: Scenario) -> str | None:
    """Return why the workload and links of a scenario fit no compiled engine, or None."""
    links = scenario.links
    if scenario.workload.kind == "replay":
        return "answers of a replay wait for what is delivered"
    if links.loss or links.duplicate or links.partitions:
        return "its links lose and double nothing, and there are no partitions"
    if links.buffer is not None or links.service_s:
        return "its receivers take a copy at once"
    if find_longest_delay_us(scenario) > MAX_DELAY_US:
        return f"its delays are below {MAX_DELAY_US / US:.0f} s"
    return None


def reject(kind: str, reason: str | None) -> None:
    """Raise ScenarioError where there is a reason why an engine cannot run a scenario."""
    if reason is not None:
        raise ScenarioError(f"the compiled engine of a {kind} can not run this: {reason}")


def find_longest_delay_us(scenario: Scenario) -> int:
    """Return the longest delay of any channel."""
    of = make_channels(scenario.topology, scenario.links)
    return int(of.quantiles.max()) + int(of.location_delays_us.max())


def make_input_arrays(
    scenario: Scenario, seed: int, sends: Schedule, samples: int
) -> dict[str, Any]:
    """Return the fields that both states have of schedule, samples and channels."""
    of = make_channels(scenario.topology, scenario.links)
    return {
        "time_us": np.append(sends.time_us, FOREVER).astype(np.uint64),
        "sample_us": np.array([*list_sample_times(scenario)[:samples], FOREVER], np.uint64),
        "warm": np.uint64(np.searchsorted(sends.time_us, round(scenario.warm_s * US))),
        "delay_key": np.uint64(make_key(seed, Stream.DELAY)),
        "table": of.table.astype(np.uint64),
        "quantiles": of.quantiles,
        "base": of.location_delays_us.astype(np.uint64),
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
    """Return for each message the oldest that something may ask for when it is sent.

    A message is delivered everywhere `everywhere_us` after its sending. Nothing asks for it
    `after_us` after the first sending that is later than that.
    """
    later = np.searchsorted(sent_us, sent_us + everywhere_us, side="right")
    free_us = np.append(sent_us, np.int64(FOREVER // 2))[later] + after_us
    return np.searchsorted(free_us, sent_us)
