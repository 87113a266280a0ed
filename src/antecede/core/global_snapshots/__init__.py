"""Global states recorded while a program runs: snapshot algorithms as state machines.

`ChandyLamport` (1985) for channels that keep their order, `LaiYang` (1987, with the counting of
Mattern 1993) for any. `Snapshots` puts either around the payloads of a `Group` or of a live `Peer`.
No input and output here: `antecede.lab.check.global_states` explores and judges them.
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
    Unwrapped,
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
    "Unwrapped",
]
