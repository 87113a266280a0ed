"""A delivery to an application in the compiled hierarchy."""

from __future__ import annotations

import numpy as np

from antecede.lab.simulate.compiled.hierarchy.jit import inlined
from antecede.lab.simulate.compiled.hierarchy.network import MESSAGE
from antecede.lab.simulate.compiled.hierarchy.records import (
    HAVE,
)
from antecede.lab.simulate.compiled.hierarchy.sets import add, imply, imply_by_idr, note
from antecede.lab.simulate.compiled.hierarchy.state import WAIT_BINS, State

_0, _1 = np.uint64(0), np.uint64(1)
_LAST_BIN = np.uint64(WAIT_BINS)


@inlined
def deliver(s: State, at: np.uint64, message: np.uint64, now: np.uint64) -> None:
    """Hand a message of another process to an application.

    It is held against IDR, which is kept beside the protocol from deliveries alone: where all that
    IDR carries is there at every delivery, no delivery came before a cause.
    """
    imply(s, at, message)
    if s.measures.causes and imply_by_idr(s, at, message) != _0:
        s.at.early += _1
    add(s, HAVE, at, message)
    note(s, at, message)
    s.at.deliveries += _1
    if message >= s.warm:
        s.at.counted += _1
    if len(s.log) != 0:
        line = s.at.logged
        s.log[line, 0], s.log[line, 1], s.log[line, 2] = at, message, now
        s.at.logged += _1


@inlined
def count_wait(s: State, message: np.uint64, node: np.uint64, now: np.uint64) -> None:
    """Count how long a message was held back that is delivered now."""
    waited = (now - np.uint64(s.nodes[node].since)) & MESSAGE
    if message >= s.warm and waited != _0:
        s.wait_us[min(waited, _LAST_BIN)] += _1
        s.at.waited_us += waited
        s.at.longest_wait_us = max(s.at.longest_wait_us, waited)
