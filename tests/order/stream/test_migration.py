"""States that the first format wrote (`tests/golden/stream_state_1.json`) go on as they would have.

The file was written once by the version that had this format, and is never written again: twelve
plans, some micro-batches each, and the two values that were kept then.
"""

from __future__ import annotations

import base64
import json
import random
from pathlib import Path
from typing import Any

import pytest

from antecede.errors import InputError
from antecede.order.stream.blobs import Memory
from antecede.order.stream.interface import ShardPlan
from antecede.order.stream.kernels.rows import NO_TIME
from antecede.order.stream.migration import migrated
from tests.order.stream.reference import Item, Reference
from tests.order.stream.test_shard import Packed, in_order

CASES = json.loads((Path(__file__).parents[2] / "golden" / "stream_state_1.json").read_text())
ABOUT = json.dumps({"shards": 4, "id": "id (string)"})


def item(fields: list[Any]) -> Item:
    row, group, name, causes, *rest = fields
    named = tuple((cause.encode("latin1"), number) for cause, number in causes)
    return Item(row, group.encode("latin1"), name.encode("latin1"), named, *rest)


def started(case: dict[str, Any]) -> tuple[Packed, Reference, int, int]:
    """Return a kernel over the migrated state, and the reference taken through the same steps."""
    plan = ShardPlan(**case["plan"], about=ABOUT)
    reference, kernel = Reference(plan), Packed(plan)
    clock, rows = NO_TIME, 0
    for fields, now in case["steps"]:
        items = [item(one) for one in fields]
        reference.step(items, now)
        clock, rows = max(clock, now), rows + len(items)
    kernel.rows = list(range(rows))
    control, held = (base64.b64decode(case[key]) for key in ("control", "held"))
    migrated(plan, kernel.state, control, held)
    return kernel, reference, clock, rows


def later(case: dict[str, Any], rows: int, seed: int) -> list[Item]:
    """Make rows that repeat, need and release what the old state knows."""
    rng = random.Random(seed)
    known = [item(one) for fields, _ in case["steps"] for one in fields]
    found = []
    for row in range(rows, rows + 12):
        one = rng.choice([one for one in known if not one.invalid])
        cause = rng.choice([*one.causes, *((k.name, k.number) for k in known)])
        name, number = rng.choice([cause, (one.name, one.number)])
        causes = tuple(c for c in [cause] if c != (name, number) and rng.random() < 0.5)
        time = rng.choice([NO_TIME, 9, 15, 30])
        found.append(Item(row, one.group, name, causes, number, time, one.digest))
    return found


@pytest.mark.parametrize("number", range(len(CASES)))
def test_an_old_state_goes_on(number: int) -> None:
    case = CASES[number]
    kernel, reference, clock, rows = started(case)
    assert len(kernel.held) == len(reference.held)
    for seed in range(4):
        items = later(case, rows, seed)
        rows += len(items)
        clock = max(clock, 0) + 3
        assert in_order(kernel.step(items, clock)) == in_order(reference.step(items, clock))


def test_the_cases_hold_what_matters() -> None:
    assert {(c["plan"]["counted"], c["plan"]["policy"]) for c in CASES} == {
        (counted, policy) for counted in (False, True) for policy in ("hold", "release", "drop")
    }
    assert sum(len(started(case)[0].held) for case in CASES) > 20


def test_an_old_state_of_another_stream_is_refused() -> None:
    case = CASES[0]
    control = base64.b64decode(case["control"])
    plan = ShardPlan(**case["plan"], about=json.dumps({"shards": 5}))
    with pytest.raises(InputError, match="shards was 4, is 5"):
        migrated(plan, Memory(), control, None)
    with pytest.raises(InputError, match="state of a shard"):
        migrated(plan, Memory(), control[:-8], None)
