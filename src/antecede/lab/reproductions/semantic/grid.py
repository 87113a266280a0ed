"""Parameters of the study of Bhavanasi and Iyer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from antecede.lab.simulate import Delay

USUAL: Mapping[str, Any] = {
    "members": 30,
    "answers": 0.5,
    "delay": "50-250 ms",
    "rate_hz": 2.0,
    "recent": 8,
}
"""Values of parameters that a sweep does not vary."""
LABELS = {
    "sb": "S_b",
    "causal": "causal order",
    "total": "total order",
    "sequencer": "total order, by a sequencer",
}
"""The orders, as pages call them."""
DELAYS = {
    "50-50 ms": Delay(0.05, 0.05, "constant"),
    "0-50 ms": Delay(0.0, 0.05),
    "50-250 ms": Delay(0.05, 0.25),
    "50-550 ms": Delay(0.05, 0.55),
    "20-2000 ms": Delay(0.02, 2.0, "lognormal"),
}
SWEEPS: Mapping[str, tuple[Any, ...]] = {
    "answers": (0.0, 0.25, 0.5, 0.75, 1.0),
    "members": (10, 20, 30, 50, 100),
    "rate_hz": (0.2, 0.5, 1.0, 2.0, 5.0, 10.0),
    "recent": (1, 2, 4, 8, 16, 64),
    "delay": tuple(DELAYS),
}
QUICK: Mapping[str, tuple[Any, ...]] = {
    "answers": (0.0, 0.5, 1.0),
    "members": (10, 30, 100),
    "rate_hz": (0.5, 2.0, 5.0),
    "recent": (1, 8, 64),
    "delay": tuple(DELAYS),
}
MESSAGES, QUICK_MESSAGES = 3000, 600
"""About so many a run."""
SEEDS, QUICK_SEEDS = (1, 2, 3), (1,)
GAPS_MS, QUICK_GAPS_MS = (10.0, 100.0, 1000.0, 10_000.0), (10.0, 1000.0)
OF_TRACE, QUICK_OF_TRACE = 12_000, 1_500
"""Largest number of messages of a trace."""
TRACE_DELAY = "50-250 ms"
EXTREMES = (29, 100)
"""Senders, and messages of each."""
