"""Report of held rows, against sets."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antecede.tables.order.stream.held_report import list_waiting_rows
from antecede.tables.order.stream.types import ShardPlan
from tests.tables.order.stream.reference import Reference
from tests.tables.order.stream.test_shard import Packed, one, plans, streams


def test_a_chain_behind_a_missing_cause() -> None:
    stream = Packed(ShardPlan(counted=False, timed=True))
    stream.step(
        [one(b"b", b"a", time=1), one(b"c", b"b", time=2), one(b"d", b"c", b"x", time=3)], 3
    )
    told = {w.name: w for w in list_waiting_rows(stream.state)}
    assert [w.name for w in list_waiting_rows(stream.state)] == ["b", "c", "d"]
    assert [told[name].behind for name in "bcd"] == [2, 1, 0]
    assert [told[name].causes for name in "bcd"] == [["a"], ["b"], ["c", "x"]]
    assert [told[name].missing_causes for name in "bcd"] == [["a"], ["a"], ["a", "x"]]
    assert [told[name].since for name in "bcd"] == [1, 2, 3]


@pytest.mark.slow
@given(st.data())
@settings(max_examples=100)
def test_roots_and_rows_behind_are_those_of_plain_sets(data: st.DataObject) -> None:
    plan = data.draw(plans())._replace(max_held_rows=-1)
    kernel, reference = Packed(plan), Reference(plan)
    for items, now in data.draw(streams(plan)):
        kernel.step(items, now)
        reference.step(items, now)
    needs = {key: set(waiting.open) for key, waiting in reference.held.items()}

    def text(key: tuple[bytes, bytes, int]) -> str:
        return f"{key[1].decode()}:{key[2]}" if plan.counted else key[1].decode()

    def roots(key: tuple[bytes, bytes, int]) -> set[str]:
        return {
            name
            for cause in needs[key]
            for name in (roots(cause) if cause in needs else {text(cause)})
        }

    def past(key: tuple[bytes, bytes, int]) -> set[tuple[bytes, bytes, int]]:
        here = needs[key] & needs.keys()
        return here.union(*map(past, here))

    told = {(w.group, w.name): w for w in list_waiting_rows(kernel.state)}
    assert told.keys() == {(key[0].decode(), text(key)) for key in needs}
    for key in needs:
        waiting = told[key[0].decode(), text(key)]
        assert set(waiting.causes) == {text(cause) for cause in needs[key]}
        assert set(waiting.missing_causes) == roots(key)
        assert waiting.behind == sum(key in past(other) for other in needs)
