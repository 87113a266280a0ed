"""The readable engine: every protocol of the registry, and users' own, through their classes.

It is what the compiled engines are held against, event by event: the classes are those that a
group uses, the loop (`loop`) is plain. It takes in 20,000 to 100,000
copies a second.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, overload

from antecede.protocols.base import Relation
from antecede.simulate.members import make_members
from antecede.simulate.outputs import global_states, violations
from antecede.simulate.outputs.metrics import RunMetrics
from antecede.simulate.outputs.recording import Recording
from antecede.simulate.outputs.result import Result
from antecede.simulate.scenario.model import Scenario
from antecede.simulate.topology import Hierarchy
from antecede.simulate.world import EventLoop

ENGINE = "readable"


@overload
def run_readable(
    scenario: Scenario,
    seed: int,
    record: Literal[False] = False,
    progress: Callable[[float], None] | None = None,
) -> Result: ...
@overload
def run_readable(
    scenario: Scenario,
    seed: int,
    record: Literal[True],
    progress: Callable[[float], None] | None = None,
) -> tuple[Result, Recording]: ...


def run_readable(
    scenario: Scenario,
    seed: int,
    record: bool = False,
    progress: Callable[[float], None] | None = None,
) -> Result | tuple[Result, Recording]:
    """Return what a run gives; with `record` also what happened, event by event.

    `progress` is told now and then what part of the sending time is over.

    Raises ScenarioError for a protocol that cannot run in the scenario, with what can.
    """
    made = make_members(scenario, seed)
    metrics = RunMetrics(scenario, made.members, record=record, progress=progress)
    loop = EventLoop(scenario, seed, made, metrics)
    loop.go()
    run = loop.recording
    run.transmissions, run.numbered = metrics.transmissions, metrics.numbered
    overruns = metrics.counts["overruns"]
    held = sum(map(len, loop.arrived))
    figures: dict[str, float] = {
        **metrics.figures(),
        "held_at_end": held,
        "lost": loop.network.lost + overruns,
        "duplicates": loop.network.duplicates,
    }
    unsent = loop.answers.unsent()
    figures |= {
        name: count for name, count in (("unsent", unsent), ("undelivered", loop.owed)) if count
    }
    states = loop.snapshots.states() if loop.snapshots is not None else []
    if loop.snapshots is not None:
        figures |= global_states.figures(states, loop.snapshots.stamp_bytes)
    found, caveats = violations.judged(run)
    figures |= found
    if run.relation is Relation.TOTAL:
        figures["violations"] += violations.disagreements(run)
    if isinstance(scenario.topology, Hierarchy):
        if caveats:
            why = "all pasts are needed, and they are kept of "
            caveats["lemma3.missing"] = f"{why}{violations.FULL:,} messages at most"
        else:
            missing, extra = violations.lemma_3(run)
            figures |= {"lemma3.missing": missing, "lemma3.extra": extra}
    result = Result(
        scenario, seed, ENGINE, figures, metrics.series(), run.relation, caveats, tuple(states)
    )
    return (result, run) if record else result
