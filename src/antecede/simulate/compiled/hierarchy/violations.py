"""Deliveries before a cause in the compiled hierarchy: counted exactly, also where many follow.

Theory of operation
-------------------
Deliveries are held against IDR, which is kept beside the protocol from deliveries alone. Where
everything that IDR carries is there, and nothing delivered here lacks a cause, the whole causal
past of a message is there. Else the past is searched, through what IDR carries. The missing
messages of what was delivered at a process are its debts; they are few and young, so searches
pass over everything older than the oldest debt.
"""

from __future__ import annotations

import numpy as np

from antecede.kernels.bits import ones
from antecede.simulate.compiled.hierarchy.columns import (
    BEFORE,
    BOTTOM,
    DEBT,
    DEBTS,
    EARLY,
    EXACT,
    FAR,
    FULL,
    HAVE,
    PUBLISHED,
    ROW_IN,
    ROWS,
    SEEN,
    SENDER,
    SHADOW,
    STACK,
    STAMP,
)
from antecede.simulate.compiled.hierarchy.jit import inlined, njit
from antecede.simulate.compiled.hierarchy.sets import add, drop, has
from antecede.simulate.compiled.hierarchy.state import State

_0, _1, _6, _9 = (np.uint64(k) for k in (0, 1, 6, 9))


@njit
def judge(s: State, at: np.uint64, message: np.uint64) -> None:
    """Look at a delivery that lacks something, or at a process that has debts."""
    settled = s.process[at, DEBT] != _0 and _settle(s, at, message)
    lacking = _borrow(s, at, message)
    if not lacking and s.process[at, DEBT] != _0:
        lacking = _is_indebted(s, at, message)
    s.at[EARLY] += _1 if lacking else _0
    if s.pruning == PUBLISHED:
        _follow_exactly(s, at, message, lacking, settled)


@njit
def follow_exactly(s: State, at: np.uint64, message: np.uint64) -> None:
    """Keep the exact immediate dependencies of a process's next message."""
    _follow_exactly(s, at, message, False, False)


@inlined
def _follow_exactly(
    s: State, at: np.uint64, message: np.uint64, lacking: bool, settled: bool
) -> None:
    """`settled`: the message is in the past of one that was delivered before it."""
    if settled:
        return
    if lacking:
        _forget_past(s, at, message)
    else:
        _forget_named(s, at, message)
    add(s, EXACT, at, message)


@inlined
def _forget_named(s: State, at: np.uint64, message: np.uint64) -> None:
    bottom, row = np.uint64(s.message[message, BOTTOM]), np.uint64(s.message[message, ROW_IN])
    for k in range(np.uint64(s.message[message, ROWS])):
        for word in range(8):
            s.sets[bottom + k, at, EXACT, word] &= ~s.needs[row + k, 1, word]
    if s.message[message, FAR] != 0:
        drop(s, EXACT, at, np.uint64(s.message[message, FAR]) - _1)


@njit
def _forget_past(s: State, at: np.uint64, message: np.uint64) -> None:
    s.at[STAMP] += _1
    count = _push_named(s, message, _0, _0)
    while count != _0:
        count -= _1
        other = s.scratch[STACK, count]
        drop(s, EXACT, at, other)
        count = _push_named(s, other, count, _0)


@njit
def _push_named(s: State, message: np.uint64, count: np.uint64, least: np.uint64) -> np.uint64:
    """Put what IDR carries with a message on the stack, from `least` on, each once a search."""
    bottom, row = np.uint64(s.message[message, BOTTOM]), np.uint64(s.message[message, ROW_IN])
    for k in range(np.uint64(s.message[message, ROWS])):
        for word in range(_0, np.uint64(8)):
            bits = s.needs[row + k, 1, word]
            while bits != _0:
                lowest = bits & (~bits + _1)
                bits ^= lowest
                other = ((bottom + k) << _9) + (word << _6) + ones(lowest - _1)
                count = _push(s, other, count, least)
    if s.message[message, FAR] != 0:
        count = _push(s, np.uint64(s.message[message, FAR]) - _1, count, least)
    return count


@inlined
def _push(s: State, message: np.uint64, count: np.uint64, least: np.uint64) -> np.uint64:
    if message >= least and s.message[message, SEEN] != s.at[STAMP]:
        s.message[message, SEEN] = s.at[STAMP]
        s.scratch[STACK, count] = message
        count += _1
    return count


# -- debts ----------------------------------------------------------------------------------------


@njit
def _settle(s: State, at: np.uint64, message: np.uint64) -> bool:
    """Cancel the debt of a message; tell whether there was one."""
    for k in range(s.at[DEBTS]):
        if s.debts[k, 0] == at and s.debts[k, 1] == message:
            last = s.at[DEBTS] - _1
            s.debts[k, 0], s.debts[k, 1] = s.debts[last, 0], s.debts[last, 1]
            s.at[DEBTS] = last
            s.process[at, DEBT] -= _1
            return True
    return False


@njit
def _borrow(s: State, at: np.uint64, message: np.uint64) -> bool:
    """Make debts of all that misses along a message's past; tell whether it names any.

    What is there has only missing causes that are debts already.
    """
    s.at[STAMP] += _1
    found = False
    count = _push_named(s, message, _0, _0)
    direct = count
    while count != _0:
        count -= _1
        other = s.scratch[STACK, count]
        if s.message[other, SENDER] != at and has(s, HAVE, at, other) == _0:
            found = True
            if count < direct:
                _imply_older(s, at, other)
            direct = min(direct, count)
            if not _owes(s, at, other):
                _owe(s, at, other)
            count = _push_named(s, other, count, _0)
    return found


@inlined
def _imply_older(s: State, at: np.uint64, message: np.uint64) -> None:
    """A pair of CI goes when a later one of its sender is named, though that is not here."""
    while s.message[message, BEFORE] != 0:
        message = np.uint64(s.message[message, BEFORE]) - _1
        if has(s, HAVE, at, message) == _1:
            drop(s, SHADOW, at, message)
            return


@inlined
def _owe(s: State, at: np.uint64, message: np.uint64) -> None:
    if s.at[DEBTS] == np.uint64(len(s.debts)):
        s.at[FULL] = _1
        return
    s.debts[s.at[DEBTS], 0], s.debts[s.at[DEBTS], 1] = at, message
    s.at[DEBTS] += _1
    s.process[at, DEBT] += _1


@njit
def _owes(s: State, at: np.uint64, message: np.uint64) -> bool:
    if s.process[at, DEBT] != _0:
        for k in range(s.at[DEBTS]):
            if s.debts[k, 0] == at and s.debts[k, 1] == message:
                return True
    return False


@njit
def _is_indebted(s: State, at: np.uint64, message: np.uint64) -> bool:
    """Tell whether a debt of a process is in a message's past."""
    least = np.uint64(len(s.message))
    for k in range(s.at[DEBTS]):
        if s.debts[k, 0] == at:
            least = min(least, np.uint64(s.debts[k, 1]))
    s.at[STAMP] += _1
    count = _push_named(s, message, _0, least)
    while count != _0:
        count -= _1
        other = s.scratch[STACK, count]
        if _owes(s, at, other):
            return True
        count = _push_named(s, other, count, least)
    return False
