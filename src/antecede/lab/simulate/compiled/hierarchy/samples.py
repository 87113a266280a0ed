"""Samples of storage in the compiled hierarchy, by Evropeytsev et al.'s accounting."""

from __future__ import annotations

import numpy as np

from antecede.lab.simulate.compiled.hierarchy import accounting, records
from antecede.lab.simulate.compiled.hierarchy.internal import prefix
from antecede.lab.simulate.compiled.hierarchy.jit import inlined, njit
from antecede.lab.simulate.compiled.hierarchy.network import place_of
from antecede.lab.simulate.compiled.hierarchy.sets import count_member, list_member, trim
from antecede.lab.simulate.compiled.hierarchy.state import State

_0, _1, _3, _4, _7, _8 = (np.uint64(k) for k in (0, 1, 3, 4, 7, 8))


@njit
def sample(s: State) -> None:
    """Look at every process."""
    row = s.at.sampled
    s.at.sampled += _1
    groups, addresses = np.uint64(len(s.group) - 1), np.uint64(len(s.process))
    outside = addresses - s.group[groups].first
    for one in range(groups):
        at = np.uint64(one)
        _count(s, row, records.AT_SUPER, _at_super(s, at, outside))
        _count(s, row, records.AT_TT, s.group[at].translated)
    for one in range(groups, addresses):
        at = np.uint64(one)
        trim(s, at)
        if s.process[at].home == records.NOWHERE:
            _count(s, row, records.AT_EXTERNAL, _at_external(s, at, outside))
        else:
            _count(s, row, records.AT_INTERNAL, _at_internal(s, at))
        if s.measures.causes:
            pairs = count_member(s, records.SHADOW, at)
            _count(s, row, records.AT_IDR, _4 * (addresses - groups) + _8 * pairs)
        _count(s, row, records.AT_HELD, s.process[at].held)


@inlined
def _count(s: State, row: np.uint64, column: np.uint64, value: np.uint64) -> None:
    s.stored[row, column].total += np.int64(value)
    s.stored[row, column].most = max(s.stored[row, column].most, np.int64(value))


@njit
def _at_internal(s: State, at: np.uint64) -> np.uint64:
    """Return the bytes of RV from its first gap to its last bit, and of DV."""
    size = (s.process[at].newest - prefix(s, at) + _7) >> _3
    count = list_member(s, records.KEPT, at)
    if count != _0:
        lowest, highest = accounting.span_inside(s, s.process[at].home, count)
        size += accounting.span_bytes(lowest, highest)
    return np.uint64(size)


@njit
def _at_external(s: State, at: np.uint64, outside: np.uint64) -> np.uint64:
    """Return the bytes of VTx and CI."""
    size = _4 * outside + accounting.ci_bytes(s, list_member(s, records.KEPT, at))
    for group in range(np.uint64(len(s.group) - 1)):
        size += accounting.vtx_bytes(s, place_of(s, at), at, np.uint64(group))
    return np.uint64(size)


@njit
def _at_super(s: State, at: np.uint64, outside: np.uint64) -> np.uint64:
    """Return the bytes of VTx, LR, TT, I, and with safe pruning floors."""
    size = _4 * (outside + _1) + _8 * s.group[at].translated
    for group in range(np.uint64(len(s.group) - 1)):
        if group != at:
            size += accounting.vtx_bytes(s, at, at, np.uint64(group))
    last = _0
    if s.group[at].owned != _0:
        place = s.group[at].own_first + s.group[at].owned - _1
        last = np.uint64(s.number[at, np.uint64(s.message[place].own)])
    peers = s.group[at + _1].first - s.group[at].first
    floors = _4 * peers if s.pruning == records.SAFE else _0
    return np.uint64(size + ((s.group[at].given - last + _7) >> _3) + _8 * peers + floors)
