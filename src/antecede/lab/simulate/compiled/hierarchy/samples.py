"""Storage samples of the compiled hierarchy, by Evropeytsev et al.'s accounting."""

from __future__ import annotations

import numpy as np

from antecede.lab.simulate.compiled.hierarchy import accounting, records
from antecede.lab.simulate.compiled.hierarchy.internal import advance_prefix
from antecede.lab.simulate.compiled.hierarchy.jit import inline, njit
from antecede.lab.simulate.compiled.hierarchy.network import find_external_index
from antecede.lab.simulate.compiled.hierarchy.sets import count_set, list_set, trim
from antecede.lab.simulate.compiled.hierarchy.state import HierarchyState

_0, _1, _3, _4, _7, _8 = (np.uint64(k) for k in (0, 1, 3, 4, 7, 8))


@njit
def take_sample(s: HierarchyState) -> None:
    """Sample every process."""
    row = s.counters.sampled
    s.counters.sampled += _1
    groups, addresses = np.uint64(len(s.group) - 1), np.uint64(len(s.process))
    outside = addresses - s.group[groups].first
    for index in range(groups):
        address = np.uint64(index)
        _count(s, row, records.AT_SUPER, _measure_super_peer(s, address, outside))
        _count(s, row, records.AT_TT, s.group[address].translated)
    for index in range(groups, addresses):
        address = np.uint64(index)
        trim(s, address)
        if s.process[address].group == records.NOWHERE:
            _count(s, row, records.AT_EXTERNAL, _measure_external(s, address, outside))
        else:
            _count(s, row, records.AT_INTERNAL, _measure_internal(s, address))
        if s.selection.violations:
            pairs = count_set(s, records.IDR_DEPENDENCIES, address)
            _count(s, row, records.AT_IDR, _4 * (addresses - groups) + _8 * pairs)
        _count(s, row, records.AT_HELD, s.process[address].held)


@inline
def _count(s: HierarchyState, row: np.uint64, column: np.uint64, value: np.uint64) -> None:
    s.storage[row, column].total += np.int64(value)
    s.storage[row, column].maximum = max(s.storage[row, column].maximum, np.int64(value))


@njit
def _measure_internal(s: HierarchyState, address: np.uint64) -> np.uint64:
    size = (s.process[address].newest - advance_prefix(s, address) + _7) >> _3
    count = list_set(s, records.DEPENDENCIES, address)
    if count != _0:
        lowest, highest = accounting.find_internal_span(s, s.process[address].group, count)
        size += accounting.measure_span(lowest, highest)
    return np.uint64(size)


@njit
def _measure_external(s: HierarchyState, address: np.uint64, outside: np.uint64) -> np.uint64:
    size = _4 * outside + accounting.measure_ci(s, list_set(s, records.DEPENDENCIES, address))
    for group in range(np.uint64(len(s.group) - 1)):
        size += accounting.measure_vtx(
            s, find_external_index(s, address), address, np.uint64(group)
        )
    return np.uint64(size)


@njit
def _measure_super_peer(s: HierarchyState, address: np.uint64, outside: np.uint64) -> np.uint64:
    size = _4 * (outside + _1) + _8 * s.group[address].translated
    for group in range(np.uint64(len(s.group) - 1)):
        if group != address:
            size += accounting.measure_vtx(s, address, address, np.uint64(group))
    last = _0
    if s.group[address].own_count != _0:
        index = s.group[address].own_first + s.group[address].own_count - _1
        last = np.uint64(s.number[address, np.uint64(s.message[index].own)])
    peers = s.group[address + _1].first - s.group[address].first
    floors = _4 * peers if s.pruning == records.SAFE else _0
    return np.uint64(
        size + ((s.group[address].last_number - last + _7) >> _3) + _8 * peers + floors
    )
