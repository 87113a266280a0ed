"""Confidence intervals (95 %) of metrics, from several runs or from batches of one.

Runs with different seeds are independent, so Student's t gives the interval of their mean. A single
run is divided into `BATCHES` spans of sending time after `warm_s`. Spans are about as independent
as runs if a span is longer than messages are in flight. Otherwise the interval is too narrow
(`short_batches`).

Source: method of batch means, for instance Law, Simulation Modeling and Analysis.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

import numpy as np

from antecede.lab.simulate.config.model import SimulationConfig
from antecede.lab.simulate.delays import US
from antecede.lab.simulate.outputs.needless_holds import DeliveryWaits
from antecede.lab.simulate.outputs.recording import Recording
from antecede.lab.simulate.outputs.result import Result
from antecede.lab.simulate.random_streams import Ints
from antecede.lab.simulate.topology import PEER

BATCHES = 10
_STUDENT_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""Student's t for 95 %, two-sided, by degrees of freedom from 1."""
_STUDENT_T_ABOVE = ((15, 2.131), (20, 2.086), (30, 2.042), (60, 2.000))
"""The same for more degrees. Between two of these the larger t holds."""
MS_US = US // 1000
WAIT_METRIC = "wait_ms.mean"
SHARE_METRICS = {
    "causal.held": "wait_us",
    "causal.needless_holds": "needless_us",
    "causal.violations": "violations",
    "violations.by_receipt": "receipt_violations",
}
"""Metrics that are shares of all deliveries, and the outcome that each counts."""


def half_width(values: Sequence[float]) -> float | None:
    """Return half of the 95 % interval of the mean of independent values (None: fewer than 2)."""
    if len(values) < 2:
        return None
    return _find_student_t(len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))


def _find_student_t(degrees: int) -> float:
    if degrees <= len(_STUDENT_T):
        return _STUDENT_T[degrees - 1]
    return [_STUDENT_T[-1], *(t for least, t in _STUDENT_T_ABOVE if degrees >= least)][-1]


def short_batches(config: SimulationConfig) -> bool:
    """Return True if a batch is shorter than the largest delay of a message."""
    return (config.duration_s - config.warm_s) / BATCHES < config.links.delay.high_s


def half_widths(result: Result, run: Recording, waits: DeliveryWaits | None) -> Mapping[str, float]:
    """Return metric -> half of its 95 % interval, from the batches of one run.

    Metrics: `wait_ms.mean`, SHARE_METRICS, bytes of messages, storage of peers; if batches suffice.
    """
    config = result.config
    found: dict[str, float | None] = {}
    if waits is not None:
        batch = _assign_batches(config, [run.sent_us[message] or 0 for message in waits.message])
        found[WAIT_METRIC] = _compute_batch_half_width(
            batch, [wait / MS_US for wait in waits.wait_us]
        )
        for name, outcome in SHARE_METRICS.items():
            found[name] = _compute_batch_half_width(
                batch, [value > 0 for value in getattr(waits, outcome)]
            )
    peers = [sent for sent in run.transmissions if config.topology.role(sent.source) == PEER]
    batch = _assign_batches(config, [sent.time_us for sent in peers])
    found["peer.control_bytes"] = _compute_batch_half_width(
        batch, [sent.control_bytes for sent in peers]
    )
    encoded = [sent.wire_bytes for sent in peers if sent.wire_bytes is not None]
    if len(encoded) == len(peers):
        found["peer.wire_bytes"] = _compute_batch_half_width(batch, encoded)
    stored = result.series.get("peer.storage_bytes", ())
    times_us = [round(time_s * US) for time_s in result.series.get("time_s", ())]
    found["peer.storage_bytes"] = _compute_batch_half_width(
        _assign_batches(config, times_us[: len(stored)]), stored
    )
    return {name: half for name, half in found.items() if half is not None}


def _assign_batches(config: SimulationConfig, times_us: Sequence[int]) -> Ints:
    """Return the batch of each time (-1: before the first)."""
    warm_us = round(config.warm_s * US)
    span_us = (round(config.duration_s * US) - warm_us) / BATCHES
    since_us = np.array(times_us, dtype=np.int64) - warm_us
    return np.where(since_us < 0, -1, np.minimum((since_us / span_us).astype(int), BATCHES - 1))


def _compute_batch_half_width(batch: Ints, values: Sequence[float]) -> float | None:
    counts = np.bincount(batch[batch >= 0], minlength=BATCHES)
    sums = np.bincount(batch[batch >= 0], np.array(values, float)[batch >= 0], BATCHES)
    means = (sums[counts > 0] / counts[counts > 0]).tolist()
    return half_width(means) if len(means) > BATCHES // 2 else None
