"""Deliveries before a cause in the compiled mesh, whatever the protocol promises.

Theory of operation
-------------------
Everything is for everybody and each sender's messages are delivered in their order, under every
protocol that runs here. So the past of a message is a number of each sender, what a member has is
one too, and a delivery is early when some number of the message's past is above what the member
has of that sender. Two pasts are followed: by delivery (what the sender had been handed or had
sent) and by receipt (what had arrived). Nothing that a protocol carries or waits for is looked at.

Work: O(members) for each arrival and each delivery; only where `State.done` has rows.
"""

from __future__ import annotations

import numpy as np

from antecede.kernels.jit import inlined_lent as inlined
from antecede.simulate.compiled.mesh.state import State


@inlined
def judge_send(s: State, member: np.uint64, slot: np.uint64) -> None:
    """Let a message's pasts be what its sender knows."""
    for other in range(len(s.done)):
        s.past[0, slot, other] = s.knows[0, member, other]
        s.past[1, slot, other] = s.knows[1, member, other]
    number = np.uint32(s.seq[s.number[slot]])
    s.knows[0, member, member] = number
    s.knows[1, member, member] = number
    s.done[member, member] = number


@inlined
def judge_arrival(s: State, member: np.uint64, slot: np.uint64) -> None:
    """Let a member know by receipt of a message and its past."""
    _learn(s, 1, member, slot)


@inlined
def judge_delivery(s: State, member: np.uint64, slot: np.uint64) -> None:
    """Count a delivery that lacks something of its message's past."""
    s.at.early += _lacks(s, 0, member, slot)
    s.at.early_by_receipt += _lacks(s, 1, member, slot)
    message = s.number[slot]
    number = np.uint32(s.seq[message])
    s.at.overtaking += np.uint64(s.done[member, s.sender[message]] + np.uint32(1) != number)
    s.done[member, s.sender[message]] = number
    _learn(s, 0, member, slot)


@inlined
def _lacks(s: State, how: int, member: np.uint64, slot: np.uint64) -> np.uint64:
    missing = False
    for other in range(len(s.done)):
        missing |= s.past[how, slot, other] > s.done[member, other]
    return np.uint64(missing)


@inlined
def _learn(s: State, how: int, member: np.uint64, slot: np.uint64) -> None:
    message = s.number[slot]
    for other in range(len(s.done)):
        s.knows[how, member, other] = max(s.knows[how, member, other], s.past[how, slot, other])
    sender = s.sender[message]
    number = np.uint32(s.seq[message])
    s.knows[how, member, sender] = max(s.knows[how, member, sender], number)
