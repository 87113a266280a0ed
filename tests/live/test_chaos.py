"""No acknowledged message is lost, handed over twice or before its causes, whatever is killed."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.live.chaos.harness import Plan, run_chaos
from tests.live.chaos.judge import judge
from tests.live.networks.needs import needs_namespaces

VARIANTS = {
    "causal": ("causal", "merge"),
    "bss": ("bss", "merge"),
    "majority": ("causal", "majority"),
}


@pytest.mark.slow
@needs_namespaces
@pytest.mark.parametrize("variant", ["causal", "majority"])
def test_a_group_survives_some_chaos(tmp_path: Path, variant: str) -> None:
    order, partition = VARIANTS[variant]
    plan = Plan(20, kills=5, members=5, order=order, partition=partition)
    verdict = asyncio.run(run_chaos(plan, tmp_path))
    assert verdict.acknowledged > 50, verdict
    assert verdict.starts > 2 * plan.members, verdict
    assert not verdict.faults, f"{verdict}: {verdict.faults[:5]}"


@pytest.mark.soak
@needs_namespaces
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_group_survives_chaos(tmp_path: Path, variant: str) -> None:
    order, partition = VARIANTS[variant]
    verdict = asyncio.run(run_chaos(Plan(150, 25, order=order, partition=partition), tmp_path))
    print(f"{variant}: {verdict}")
    assert verdict.acknowledged > 1000, verdict
    assert not verdict.faults, f"{verdict}: {verdict.faults[:5]}"


# -- the judge: what it is to find ---------------------------------------------------------------

SEND = [{"e": "start"}, {"e": "s", "k": "a:1:1"}, {"e": "S", "k": "a:1:1", "id": "a~x:1"}]
SEND2 = [{"e": "s", "k": "a:1:2"}, {"e": "S", "k": "a:1:2", "id": "a~x:2"}]


def handed(number: int, *, cause: int = 0, name: str = "") -> dict[str, Any]:
    causes = [f"a:1:{cause}"] if cause else []
    return {"e": "D", "k": f"a:1:{number}", "id": name or f"a~x:{number}", "p": "", "a": causes}


@pytest.mark.parametrize(
    ("other", "fault"),
    [
        ([handed(1), handed(2, cause=1)], ""),
        ([handed(1), {"e": "start"}, handed(1), handed(2, cause=1)], ""),
        ([handed(1)], "lacks a:1:2"),
        ([handed(1), handed(1), handed(2)], "twice"),
        ([handed(2, cause=1), handed(1)], "before a:1:1"),
        ([handed(1, name="a~x:9"), handed(2)], "a~x:9"),
        ([handed(1), handed(2), {"e": "die", "why": "PeerError"}], "PeerError"),
        ([handed(1), handed(2), {"e": "st", "rss": 1, "held": 1}], "holds 1"),
    ],
)
def test_the_judge_finds_what_is_wrong(
    tmp_path: Path, other: list[dict[str, Any]], fault: str
) -> None:
    for name, entries in (("a", [*SEND, *SEND2]), ("b", [{"e": "start"}, *other])):
        lines = [json.dumps(one) for one in entries]
        (tmp_path / f"{name}.log").write_text("\n".join([*lines, '{"e": "D", "k": "cut sh']))
    found = judge(tmp_path).faults
    assert bool(found) == bool(fault), found
    assert not fault or fault in found[0]
