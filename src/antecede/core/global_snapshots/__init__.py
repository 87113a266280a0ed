"""Global snapshots: algorithms that record a consistent global state of a running program.

`ChandyLamport` (1985) needs FIFO channels, `LaiYang` (1987, with Mattern's counting, 1993) does
not. `Snapshots` piggybacks either on payloads of a `Group` or a live `Peer`.
"""

from __future__ import annotations

from antecede.core.global_snapshots.base import (
    Algorithm,
    Complete,
    Content,
    Effect,
    Make,
    Marker,
    Record,
    Tell,
)
from antecede.core.global_snapshots.chandy_lamport import ChandyLamport
from antecede.core.global_snapshots.lai_yang import LaiYang
from antecede.core.global_snapshots.piggyback import (
    ALGORITHMS,
    GlobalState,
    Snapshots,
    UnwrapResult,
)

__all__ = [
    "ALGORITHMS",
    "Algorithm",
    "ChandyLamport",
    "Complete",
    "Content",
    "Effect",
    "GlobalState",
    "LaiYang",
    "Make",
    "Marker",
    "Record",
    "Snapshots",
    "Tell",
    "UnwrapResult",
]
