"""Figures of a compiled run of the hierarchical protocol, from its sums."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from antecede.lab.simulate.compiled.hierarchy import records
from antecede.lab.simulate.compiled.hierarchy.state import ROLES, State
from antecede.lab.simulate.delays import US
from antecede.lab.simulate.outputs.metrics import binned_wait_figures

ACK_BYTES = 4


def figures(s: State) -> dict[str, float]:
    """Return the figures of `lab.simulate.outputs.result`, and `ds.control_bytes`."""
    found: dict[str, float] = {
        "sent": len(s.message),
        "arrivals": int(s.at.arrivals),
        "deliveries": int(s.at.deliveries),
        "held_at_end": int(s.process["held"][len(s.group) - 1 :].sum()),
        "lost": 0,
        "duplicates": 0,
        **_judged(s),
        **_sizes(s),
        **_storage(s),
        **_waits(s),
    }
    if s.at.notes:
        found |= {
            "control_messages": int(s.at.notes),
            "control_message_bytes": ACK_BYTES * int(s.at.notes),
        }
    owed = found["sent"] * (len(s.process) - len(s.group)) - found["deliveries"]
    return found | ({"undelivered": owed} if owed else {})


def _judged(s: State) -> dict[str, float]:
    if not s.measures.causes:
        return {}
    return {
        "promise_violations": int(s.at.early),
        "violations.by_delivery": int(s.at.early),  # what it promises
        "violations.checked": int(s.at.deliveries),
        "lemma3.missing": int(s.at.missing),
        "lemma3.extra": int(s.at.extra),
    }


def _sizes(s: State) -> dict[str, float]:
    found: dict[str, float] = {}
    for role in ROLES:
        sums = getattr(s, role)
        count, total, squares = int(sums.count), int(sums.total), int(sums.squares)
        if count and (s.measures.sizes or role in ("idr", "ds")):
            found[f"{role}.control_bytes"] = total / count
            found[f"{role}.control_bytes_sd"] = math.sqrt(count * squares - total**2) / count
        if count and s.measures.encoded and role != "ds":  # nobody sends it
            found[f"{role}.wire_bytes"] = int(sums.encoded) / count
    messages = int(s.internal.count)
    if messages and s.measures.sizes:
        found["internal.entropy_bytes"] = float(s.entropy[0]) / messages
    return found


def _members(s: State) -> dict[str, tuple[int, int]]:
    """Return column of `stored` and number of members by name."""
    groups, inside = len(s.group) - 1, int(s.group["first"][-1]) - len(s.group) + 1
    outside = len(s.process) - groups - inside
    roles = {
        "internal.storage_bytes": (records.AT_INTERNAL, inside),
        "external.storage_bytes": (records.AT_EXTERNAL, outside),
        "super.storage_bytes": (records.AT_SUPER, groups),
        "idr.storage_bytes": (records.AT_IDR, (inside + outside) * s.measures.causes),
        "held": (records.AT_HELD, inside + outside),
        "tt": (records.AT_TT, groups),
    }
    return {name: (int(column), count) for name, (column, count) in roles.items() if count}


def _storage(s: State) -> dict[str, float]:
    found: dict[str, float] = {}
    samples = len(s.stored)
    for name, (column, count) in _members(s).items() if samples else ():
        bytes_ = name.endswith("bytes")
        mean = int(s.stored["total"][:, column].sum()) / (samples * count)
        found[name if bytes_ else f"{name}.mean"] = mean
        most = int(s.stored["most"][:, column].max())
        found[f"{name}_max" if bytes_ else f"{name}.max"] = most
    return found


def series(s: State) -> dict[str, Sequence[float]]:
    """Return storage and messages held over time, means over members."""
    if not len(s.stored):
        return {}
    found: dict[str, Sequence[float]] = {"time_s": (s.sample_us[:-1] / US).tolist()}
    for name, (column, count) in _members(s).items():
        if name != "tt":
            found[name] = (s.stored["total"][:, column] / count).tolist()
    return found


def _waits(s: State) -> dict[str, float]:
    """Return the figures of waits in ms, exact; quantiles above 2^20 us are left out."""
    at = s.at
    return binned_wait_figures(
        s.wait_us.astype(np.int64), int(at.counted), int(at.waited_us), int(at.longest_wait_us)
    )
