"""Samples of the compiled hierarchy: what each process keeps, by Evropeytsev et al.'s
accounting.
"""

from __future__ import annotations

import numpy as np

from antecede.simulate.compiled.hierarchy.accounting import (
    ci_bytes,
    span_bytes,
    span_inside,
    vtx_bytes,
)
from antecede.simulate.compiled.hierarchy.columns import (
    AT_EXTERNAL,
    AT_HELD,
    AT_IDR,
    AT_INTERNAL,
    AT_SUPER,
    AT_TT,
    FIRST,
    GIVEN,
    HELD,
    HOME,
    KEPT,
    NEWEST,
    NOWHERE,
    NUMBER,
    OWN,
    OWN_FIRST,
    OWNED,
    SAFE,
    SAMPLED,
    SHADOW,
    TRANSLATED,
)
from antecede.simulate.compiled.hierarchy.internal import prefix
from antecede.simulate.compiled.hierarchy.jit import inlined, njit
from antecede.simulate.compiled.hierarchy.network import place_of
from antecede.simulate.compiled.hierarchy.sets import count_member, list_member, trim
from antecede.simulate.compiled.hierarchy.state import State

_0, _1, _3, _4, _7, _8 = (np.uint64(k) for k in (0, 1, 3, 4, 7, 8))


@njit
def sample(s: State) -> None:
    """Look at every process."""
    row = s.at[SAMPLED]
    s.at[SAMPLED] += _1
    groups, addresses = np.uint64(len(s.group) - 1), np.uint64(len(s.process))
    outside = addresses - s.group[groups, FIRST]
    for one in range(groups):
        at = np.uint64(one)
        _count(s, row, AT_SUPER, _at_super(s, at, outside))
        _count(s, row, AT_TT, s.group[at, TRANSLATED])
    for one in range(groups, addresses):
        at = np.uint64(one)
        trim(s, at)
        if s.process[at, HOME] == NOWHERE:
            _count(s, row, AT_EXTERNAL, _at_external(s, at, outside))
        else:
            _count(s, row, AT_INTERNAL, _at_internal(s, at))
        pairs = count_member(s, SHADOW, at)
        _count(s, row, AT_IDR, _4 * (addresses - groups) + _8 * pairs)
        _count(s, row, AT_HELD, s.process[at, HELD])


@inlined
def _count(s: State, row: np.uint64, column: np.uint64, value: np.uint64) -> None:
    s.stored[row, column, 0] += np.int64(value)
    s.stored[row, column, 1] = max(s.stored[row, column, 1], np.int64(value))


@njit
def _at_internal(s: State, at: np.uint64) -> np.uint64:
    """Return the bytes of RV from its first gap to its last bit, and of DV."""
    size = (s.process[at, NEWEST] - prefix(s, at) + _7) >> _3
    count = list_member(s, KEPT, at)
    if count != _0:
        lowest, highest = span_inside(s, s.process[at, HOME], count)
        size += span_bytes(lowest, highest)
    return np.uint64(size)


@njit
def _at_external(s: State, at: np.uint64, outside: np.uint64) -> np.uint64:
    """Return the bytes of VTx and CI."""
    size = _4 * outside + ci_bytes(s, list_member(s, KEPT, at))
    for group in range(np.uint64(len(s.group) - 1)):
        size += vtx_bytes(s, place_of(s, at), at, np.uint64(group))
    return np.uint64(size)


@njit
def _at_super(s: State, at: np.uint64, outside: np.uint64) -> np.uint64:
    """Return the bytes of VTx, LR, TT, I, and with safe pruning floors."""
    size = _4 * (outside + _1) + _8 * s.group[at, TRANSLATED]
    for group in range(np.uint64(len(s.group) - 1)):
        if group != at:
            size += vtx_bytes(s, at, at, np.uint64(group))
    last = _0
    if s.group[at, OWNED] != _0:
        place = s.group[at, OWN_FIRST] + s.group[at, OWNED] - _1
        last = np.uint64(s.numbers[NUMBER, at, np.uint64(s.message[place, OWN])])
    peers = s.group[at + _1, FIRST] - s.group[at, FIRST]
    floors = _4 * peers if s.pruning == SAFE else _0
    return np.uint64(size + ((s.group[at, GIVEN] - last + _7) >> _3) + _8 * peers + floors)
