"""Packed lanes one by one."""

from __future__ import annotations

import pytest

from antecede.core.clocks.lanes import MAX_MEMBER, MAX_VALUE, items, pack


@pytest.mark.parametrize("member", [0, 1, 126, 127, 128, 129, 255, 256, 300, MAX_MEMBER])
def test_items_finds_every_counter_across_the_parts_of_a_long_vector(member: int) -> None:
    for pairs in ([(member, MAX_VALUE)], [(2, 7), (member + 3, 1), (member + 400, MAX_VALUE)]):
        assert list(items(pack(pairs))) == pairs
    assert list(items(pack((k, k) for k in range(1, member % 500)))) == [
        (k, k) for k in range(1, member % 500)
    ]


def test_an_empty_vector_has_no_items() -> None:
    assert list(items(0)) == []
