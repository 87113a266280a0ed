"""Metrics of a compiled run of the hierarchical protocol, from its sums."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from antecede.lab.simulate.compiled.hierarchy import records
from antecede.lab.simulate.compiled.hierarchy.state import ROLES, HierarchyState
from antecede.lab.simulate.delays import US
from antecede.lab.simulate.outputs.metrics import compute_binned_wait_metrics

ACK_BYTES = 4


def compute_metrics(s: HierarchyState) -> dict[str, float]:
    """Return the metrics of `lab.simulate.outputs.result`, and `ds.control_bytes`."""
    found: dict[str, float] = {
        "sent": len(s.message),
        "arrivals": int(s.counters.arrivals),
        "deliveries": int(s.counters.deliveries),
        "held_at_end": int(s.process["held"][len(s.group) - 1 :].sum()),
        "lost": 0,
        "duplicates": 0,
        **_compute_violation_metrics(s),
        **_compute_size_metrics(s),
        **_compute_storage_metrics(s),
        **_compute_wait_metrics(s),
    }
    if s.counters.acknowledgements:
        found |= {
            "control_messages": int(s.counters.acknowledgements),
            "control_message_bytes": ACK_BYTES * int(s.counters.acknowledgements),
        }
    owed = found["sent"] * (len(s.process) - len(s.group)) - found["deliveries"]
    return found | ({"undelivered": owed} if owed else {})


def _compute_violation_metrics(s: HierarchyState) -> dict[str, float]:
    if not s.selection.violations:
        return {}
    return {
        "promise_violations": int(s.counters.violations),
        "violations.by_delivery": int(s.counters.violations),  # the promised order
        "violations.checked": int(s.counters.deliveries),
        "lemma3.missing": int(s.counters.missing),
        "lemma3.extra": int(s.counters.extra),
    }


def _compute_size_metrics(s: HierarchyState) -> dict[str, float]:
    found: dict[str, float] = {}
    for role in ROLES:
        sums = getattr(s, role)
        count, total, squares = int(sums.count), int(sums.total), int(sums.squares)
        if count and (s.selection.sizes or role in ("idr", "ds")):
            found[f"{role}.control_bytes"] = total / count
            found[f"{role}.control_bytes_sd"] = math.sqrt(count * squares - total**2) / count
        if count and s.selection.encoded and role != "ds":  # DS messages are not sent
            found[f"{role}.wire_bytes"] = int(sums.wire) / count
    messages = int(s.internal.count)
    if messages and s.selection.sizes:
        found["internal.entropy_bytes"] = float(s.entropy[0]) / messages
    return found


def _list_columns(s: HierarchyState) -> dict[str, tuple[int, int]]:
    groups, inside = len(s.group) - 1, int(s.group["first"][-1]) - len(s.group) + 1
    outside = len(s.process) - groups - inside
    roles = {
        "internal.storage_bytes": (records.AT_INTERNAL, inside),
        "external.storage_bytes": (records.AT_EXTERNAL, outside),
        "super.storage_bytes": (records.AT_SUPER, groups),
        "idr.storage_bytes": (records.AT_IDR, (inside + outside) * s.selection.violations),
        "held": (records.AT_HELD, inside + outside),
        "tt": (records.AT_TT, groups),
    }
    return {name: (int(column), count) for name, (column, count) in roles.items() if count}


def _compute_storage_metrics(s: HierarchyState) -> dict[str, float]:
    found: dict[str, float] = {}
    samples = len(s.storage)
    for name, (column, count) in _list_columns(s).items() if samples else ():
        bytes_ = name.endswith("bytes")
        mean = int(s.storage["total"][:, column].sum()) / (samples * count)
        found[name if bytes_ else f"{name}.mean"] = mean
        most = int(s.storage["maximum"][:, column].max())
        found[f"{name}_max" if bytes_ else f"{name}.max"] = most
    return found


def compute_series(s: HierarchyState) -> dict[str, Sequence[float]]:
    """Return storage and held messages over time, means over members."""
    if not len(s.storage):
        return {}
    found: dict[str, Sequence[float]] = {"time_s": (s.sample_us[:-1] / US).tolist()}
    for name, (column, count) in _list_columns(s).items():
        if name != "tt":
            found[name] = (s.storage["total"][:, column] / count).tolist()
    return found


def _compute_wait_metrics(s: HierarchyState) -> dict[str, float]:
    at = s.counters
    return compute_binned_wait_metrics(
        s.wait_us.astype(np.int64), int(at.counted), int(at.waited_us), int(at.longest_wait_us)
    )
