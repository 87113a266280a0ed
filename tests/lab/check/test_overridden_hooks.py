"""A subclass of an order by clocks is checked by its own decisions, not by the index."""

from __future__ import annotations

from pathlib import Path

import pytest

from antecede.core.clocks.bounds import Bounds
from antecede.core.protocols.clock_based.delivery import HOOKS, ClockDelivery
from antecede.core.protocols.clock_based.index import can_index
from antecede.core.protocols.clock_based.linear_physical import LinearPhysical
from antecede.lab.check.check import find_target
from antecede.lab.check.model_checker.explorer import explore
from antecede.lab.check.results import EARLY
from antecede.lab.check.search_plans import SearchSize, plan_searches

FILE = """
from antecede.core.protocols.clock_based.linear_physical import LinearPhysical

class Mine(LinearPhysical):
    def __init__(self, me, members, **options):
        super().__init__(me, members, **{{**options, "delivery": "{delivery}"}})

    {method}
"""


def first_failure(tmp_path: Path, delivery: str, method: str) -> str | None:
    file = tmp_path / "mine.py"
    file.write_text(FILE.format(delivery=delivery, method=method), encoding="utf-8")
    target = find_target(f"{file}:Mine")
    found = (explore(*search).failure for search in plan_searches(target, SearchSize()))
    failure = next((one for one in found if one is not None), None)
    return failure and failure.what


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("delivery", "method"),
    [
        (
            "bound",
            "def _has_waited(self, message, now): return super()._has_waited(message, now + 1)",
        ),
        ("bound", "def _since_ns(self, message): return super()._since_ns(message) - 1"),
        ("bound", "def _is_due(self, key, now): return True"),
        ("null", "def _is_clear(self, member, message): return True"),
        ("null", "def _find_blocking_member(self, key): return None"),
        ("bound", "def wait_ns(self, sender): return super().wait_ns(sender) - 1"),
    ],
)
def test_a_defective_override_is_refuted(tmp_path: Path, delivery: str, method: str) -> None:
    assert first_failure(tmp_path, delivery, method) == EARLY


def test_every_hook_is_a_method_that_the_definition_calls() -> None:
    assert all(callable(getattr(ClockDelivery, name)) for name in HOOKS)


@pytest.mark.parametrize("name", HOOKS)
def test_with_a_hook_of_its_own_the_index_is_not_used(name: str) -> None:
    bounds = Bounds[int](accuracy_s=1, least_s=1, most_s=3)
    assert can_index(LinearPhysical(0, (0, 1, 2), bounds=bounds))
    own = type("Own", (LinearPhysical,), {name: lambda self, *given: None})
    assert not can_index(own(0, (0, 1, 2), bounds=bounds))
    member = LinearPhysical(0, (0, 1, 2), bounds=bounds)
    setattr(member, name, lambda *given: None)
    assert not can_index(member)


def test_with_a_relation_of_its_own_the_index_is_not_used() -> None:
    bounds = Bounds[int](accuracy_s=1, least_s=1, most_s=3)
    member = LinearPhysical(0, (0, 1, 2), bounds=bounds)
    own = type("Own", (type(member.relation),), {})
    member.relation = own(member.separation)
    assert not can_index(member)
