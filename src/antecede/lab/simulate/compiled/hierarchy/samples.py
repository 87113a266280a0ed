"""Samples of storage in the compiled hierarchy, by Evropeytsev et al.'s accounting."""

from __future__ import annotations

import numpy as np

from antecede.lab.simulate.compiled.hierarchy import accounting, records
from antecede.lab.simulate.compiled.hierarchy.internal import advance_prefix
from antecede.lab.simulate.compiled.hierarchy.jit import inlined, njit
from antecede.lab.simulate.compiled.hierarchy.network import find_external_index
from antecede.lab.simulate.compiled.hierarchy.sets import count_set, list_set, trim
from antecede.lab.simulate.compiled.hierarchy.state import HierarchyState

_0, _1, _3, _4, _7, _8 = (np.uint64(k) for k in (0, 1, 3, 4, 7, 8))


@njit
def take_sample(s: HierarchyState) -> None:
    """Look at every process."""
    row = s.counters.sampled
    s.counters.sampled += _1
    groups, addresses = np.uint64(len(s.group) - 1), np.uint64(len(s.process))
    outside = addresses - s.group[groups].first
    for one in range(groups):
        at = np.uint64(one)
        _count(s, row, records.AT_SUPER, _measure_super_peer(s, at, outside))
        _count(s, row, records.AT_TT, s.group[at].translated)
    for one in range(groups, addresses):
        at = np.uint64(one)
        trim(s, at)
        if s.process[at].group == records.NOWHERE:
            _count(s, row, records.AT_EXTERNAL, _measure_external(s, at, outside))
        else:
            _count(s, row, records.AT_INTERNAL, _measure_internal(s, at))
        if s.selection.violations:
            pairs = count_set(s, records.IDR_DEPENDENCIES, at)
            _count(s, row, records.AT_IDR, _4 * (addresses - groups) + _8 * pairs)
        _count(s, row, records.AT_HELD, s.process[at].held)


@inlined
def _count(s: HierarchyState, row: np.uint64, column: np.uint64, value: np.uint64) -> None:
    s.storage[row, column].total += np.int64(value)
    s.storage[row, column].maximum = max(s.storage[row, column].maximum, np.int64(value))


@njit
def _measure_internal(s: HierarchyState, at: np.uint64) -> np.uint64:
    """Return the bytes of RV from its first gap to its last bit, and of DV."""
    size = (s.process[at].newest - advance_prefix(s, at) + _7) >> _3
    count = list_set(s, records.DEPENDENCIES, at)
    if count != _0:
        lowest, highest = accounting.find_internal_span(s, s.process[at].group, count)
        size += accounting.measure_span(lowest, highest)
    return np.uint64(size)


@njit
def _measure_external(s: HierarchyState, at: np.uint64, outside: np.uint64) -> np.uint64:
    """Return the bytes of VTx and CI."""
    size = _4 * outside + accounting.measure_ci(s, list_set(s, records.DEPENDENCIES, at))
    for group in range(np.uint64(len(s.group) - 1)):
        size += accounting.measure_vtx(s, find_external_index(s, at), at, np.uint64(group))
    return np.uint64(size)


@njit
def _measure_super_peer(s: HierarchyState, at: np.uint64, outside: np.uint64) -> np.uint64:
    """Return the bytes of VTx, LR, TT, I, and with safe pruning floors."""
    size = _4 * (outside + _1) + _8 * s.group[at].translated
    for group in range(np.uint64(len(s.group) - 1)):
        if group != at:
            size += accounting.measure_vtx(s, at, at, np.uint64(group))
    last = _0
    if s.group[at].own_count != _0:
        place = s.group[at].own_first + s.group[at].own_count - _1
        last = np.uint64(s.number[at, np.uint64(s.message[place].own)])
    peers = s.group[at + _1].first - s.group[at].first
    floors = _4 * peers if s.pruning == records.SAFE else _0
    return np.uint64(size + ((s.group[at].last_number - last + _7) >> _3) + _8 * peers + floors)
