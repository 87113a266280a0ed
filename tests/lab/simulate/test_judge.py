"""What the simulator says of a run, the oracle says of its trace."""

from __future__ import annotations

from dataclasses import replace

import pytest

from antecede.core.oracle.history import History
from antecede.core.protocols.base import Relation
from antecede.core.protocols.registry import ENTRIES
from antecede.lab.simulate.config.model import Links
from antecede.lab.simulate.delays import Delay
from antecede.lab.simulate.outputs.recording import RELEASED, Recording
from antecede.lab.simulate.outputs.trace import events
from antecede.lab.simulate.outputs.violations import compute_pasts, find_violations
from antecede.lab.simulate.reference_engine import run_readable
from tests.lab.simulate.small_configs import config_of

CASES = [
    (entry.name, variant)
    for entry in ENTRIES.values()
    for variant in ("", *entry.defective)
    if (entry.name, variant) != ("physical", "property-7")
]
WILD = Links(Delay(0.01, 0.5, "uniform"))


def recorded(name: str, variant: str = "", **changes: object) -> Recording:
    links = Links(Delay(0.1, 0.5, "uniform")) if name == "physical" else WILD
    config = config_of(name, variant=variant, links=links, **changes)
    workload = replace(config.workload, reply_fraction=0.7, fanout=1 if name == "ses" else None)
    return run_readable(replace(config, workload=workload), 1, record=True)[1]


def history(run: Recording, relation: Relation) -> History:
    topology = run.config.topology
    name = [f"{topology.role(at)}{at}" for at in range(topology.size)]
    messages = range(len(run.sender))
    return History(
        events(run, relation),
        {f"m{m}": [name[at] for at in run.receivers(m)] for m in messages},
        {f"m{m}": run.topics[m] for m in messages},
        {name[at]: topics for at, topics in enumerate(run.subscriptions)},
    )


@pytest.mark.parametrize(("name", "variant"), CASES)
def test_the_oracle_finds_the_same(name: str, variant: str) -> None:
    run = recorded(name, variant)
    assert all(one.kind != RELEASED for one in run.events())
    for relation in {run.relation, Relation.BY_DELIVERY, Relation.BY_RECEIPT}:
        early = history(run, relation).early(relation.value)
        found = find_violations(run, relation)
        assert found.is_complete
        assert found.violations == len(early)
        assert found.checked == len(run.deliveries())
        if found.witness is not None:
            first = found.witness
            missing = {one.message: one.missing for one in early}
            assert f"m{first.missing}" in missing[f"m{first.message}"]


def test_what_comes_early_is_found_without_the_protocol() -> None:
    run = recorded("unordered", duration_s=4.0)
    assert find_violations(run).violations == 0
    assert find_violations(run, Relation.BY_DELIVERY).violations > 20


def test_a_sample_finds_a_part_and_nothing_else() -> None:
    run = recorded("unordered", duration_s=60.0)
    whole = find_violations(run, Relation.BY_DELIVERY)
    part = find_violations(run, Relation.BY_DELIVERY, max_messages=1000)
    assert not part.is_complete
    assert len(run.sender) > 1000
    assert 0 < part.violations < whole.violations
    assert part.checked == whole.checked


@pytest.mark.parametrize("name", ["idr", "hierarchical", "linear", "sent", "htbc", "unordered"])
def test_immediate_dependencies_by_masks_and_by_clocks(name: str) -> None:
    run = recorded(name)
    relation = Relation.BY_DELIVERY if run.relation is Relation.NONE else run.relation
    found = compute_pasts(run, relation)
    rows = [row for row in events(run) if row.kind == "send"]
    by_name = {row.id: row.causes for row in rows}
    for message, immediate in enumerate(found.immediate):
        named = sum(1 << int(parent[1:]) for parent in by_name[f"m{message}"])
        assert named == immediate
        assert immediate & ~found.past[message] == 0
