"""Costs: every protocol can be measured, and equal runs give equal bytes."""

from __future__ import annotations

import pytest

from antecede.core.protocols.registry import ENTRIES
from bench.costs import GroupRun, load, make_group
from bench.costs_figures import BOUNDS


def bytes_of(name: str, size: int) -> dict[str, tuple[float, ...]]:
    run = GroupRun(make_group(ENTRIES[name], "", size))
    run.run()
    return {row.curve: row[2:5] for row in run.make_rows()}


@pytest.mark.parametrize("name", ENTRIES)
def test_every_protocol_can_be_measured_and_repeats_its_bytes(name: str) -> None:
    first = bytes_of(name, 4)
    assert first == bytes_of(name, 4)
    assert all(value > 0 for sizes in first.values() for value in sizes)


def test_bss_costs_four_bytes_a_member() -> None:
    assert bytes_of("bss", 6)["bss"][0] == 24


@pytest.mark.parametrize("curve", BOUNDS)
def test_what_was_measured_keeps_the_bound_that_is_drawn_beside_it(curve: str) -> None:
    """Evropeytsev et al. 2016, section 3.1.5: O(n) bits inside, O(l) pairs and O(n) bits
    outside.
    """
    _, bound = BOUNDS[curve]
    rows = [row for row in load() if row.curve == curve]
    assert len(rows) >= 5
    assert all(row.control_bytes <= bound(row.members) for row in rows)
