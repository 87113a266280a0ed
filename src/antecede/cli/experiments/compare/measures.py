"""Measures of `antecede compare`: a value, and half of its 95 % interval."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from antecede.core.protocols import Protocol, Relation, entry, relation_of
from antecede.formatting import counted, were
from antecede.lab.check import is_file_target
from antecede.lab.simulate import EXTERNAL, INTERNAL, PEER, Hierarchy, Mesh
from antecede.lab.simulate.config import Scenario
from antecede.lab.simulate.outputs import FULL, half_width

ORDERS = {
    "NONE": ("none", "no order"),
    "FIFO": ("fifo", "of each sender"),
    "BY_DELIVERY": ("causal", "after all that its sender had delivered or sent"),
    "BY_RECEIPT": ("receipt", "after all that had arrived at its sender"),
    "BY_REPLY": ("replies", "an answer after what it answers"),
    "BY_TOPIC": ("topics", "causal among messages with a common topic"),
    "TOTAL": ("total", "causal, and the same for all; own messages in their turn, waits counted"),
}
"""Name of a relation -> the word in the table, and what it means."""
SHORT = {relation: ORDERS[relation.name][0] for relation in Relation}
MEANING = dict(ORDERS.values())


class Measure(NamedTuple):
    """One column of figures."""

    name: str
    figure: str
    """Name of a figure of a run; one that begins with a point is of each role."""
    of: str = ""
    scale: float = 1.0
    """100: shown in percent."""
    digits: int = 1


BYTES = (
    Measure("control_bytes", ".control_bytes"),
    Measure("wire_bytes", ".wire_bytes"),
    Measure("storage_bytes", ".storage_bytes"),
)
REST = (
    Measure("wait_mean_ms", "wait_ms.mean"),
    Measure("wait_p99_ms", "wait_ms.p99", digits=0),
    Measure("held_percent", "causal.held", "causal.checked", 100),
    Measure("violation_percent", "causal.violations", "causal.checked", 100, 2),
    Measure("receipt_violation_percent", "violations.by_receipt", "violations.checked", 100, 2),
    Measure("needless_hold_percent", "causal.needless_holds", "causal.checked", 100),
    Measure("control_messages_per_message", "control_messages", "sent", 1, 2),
    Measure("promise_violation_percent", "promise_violations", "violations.checked", 100, 2),
)
MEASURES = (*BYTES, *REST)


class Value(NamedTuple):
    """A figure and half of its interval."""

    value: float | None
    half: float | None = None
    """None: not known, for a run too short for batches."""

    @property
    def doubtful(self) -> bool:
        """Tell whether the interval is wider than a tenth of the figure to each side."""
        if self.value is None or self.half is None:
            return False
        return self.half > abs(self.value) / 10 and self.half > 0


class Ran(NamedTuple):
    """One run."""

    seed: int
    figures: Mapping[str, float]
    halves: Mapping[str, float]
    """Half of the 95 % interval by figure, from batches; see `lab.simulate.outputs.confidence`."""
    caveats: Mapping[str, str] = {}


class Compared(NamedTuple):
    """One protocol in a group of one size, and its runs."""

    name: str
    scenario: Scenario
    order: str
    remarks: tuple[str, ...]
    runs: tuple[Ran, ...]

    @property
    def members(self) -> int:
        """Members with an application."""
        return len(self.scenario.topology.senders())

    @property
    def roles(self) -> tuple[str, ...]:
        """Whose messages are counted apart."""
        tree = isinstance(self.scenario.topology, Hierarchy)
        return (INTERNAL, EXTERNAL) if tree else (PEER,)

    def mean(self, figure: str) -> float | None:
        """Return the mean of a figure over the seeds; None where no run has it."""
        found = [run.figures[figure] for run in self.runs if figure in run.figures]
        return statistics.fmean(found) if found else None

    def total(self, figure: str) -> float:
        """Return the sum of what is counted, over the seeds."""
        return sum(run.figures.get(figure, 0) for run in self.runs)

    def value(self, measure: Measure, role: str = "") -> Value:
        """Return a measure over the seeds; its value is None where nothing was measured."""
        figure = role + measure.figure if measure.figure.startswith(".") else measure.figure
        each = [_of_run(run, measure, figure) for run in self.runs]
        found = [one for one in each if one is not None]
        if not found:
            return Value(None)
        if len(self.runs) > 1:
            half = half_width(found)
        else:
            half = self.runs[0].halves.get(figure)
            half = None if half is None else half * measure.scale
        whole = self.total(measure.of) if measure.of else 0
        pooled = measure.scale * self.total(figure) / whole if whole else None
        return Value(statistics.fmean(found) if pooled is None else pooled, half)

    def doubtful(self) -> bool:
        """Tell whether the interval of any figure is wider than a tenth of it to each side."""
        values = [self.value(one, role) for role in self.roles for one in BYTES]
        return any(one.doubtful for one in [*values, *map(self.value, REST)])


def _of_run(run: Ran, measure: Measure, figure: str) -> float | None:
    """Return a measure of one run; a count that a run does not have is 0 where it counts others."""
    if not measure.of:
        return run.figures.get(figure)
    whole = run.figures.get(measure.of, 0)
    if not whole or (figure not in run.figures and figure != "control_messages"):
        return None
    return measure.scale * run.figures.get(figure, 0) / whole


def compared(
    name: str,
    scenario: Scenario,
    members: Mapping[int, Protocol],
    runs: Sequence[Ran],
    topology: str,
) -> Compared:
    """Return a protocol with its runs; `topology` is the kind that was asked for."""
    own = is_file_target(scenario.protocol)
    remarks = [one.guarantee.remark for one in members.values()][:1]
    if not own and scenario.variant in entry(scenario.protocol).defective:
        remarks.append("as published, with its defect: meant to show what goes wrong")
    if scenario.protocol == "sb" and not scenario.workload.answers:
        remarks.append("nothing is an answer here (--answers), so nothing has an order")
    if topology == "hierarchy" and isinstance(scenario.topology, Mesh):
        remarks.append("flat: as many peers, each channel direct, arrivals of its own")
    found = Compared(name, scenario, SHORT[relation_of(members)], (), tuple(runs))
    remarks += _what_went_wrong(found)
    if any("causal.checked" not in run.figures for run in runs):
        remarks.append(f"held, too early and unnecessary are looked for in up to {FULL:,} messages")
    remarks += dict.fromkeys(
        f"{', '.join(name for name, reason in run.caveats.items() if reason == why)}: {why}"
        for run in runs
        for why in run.caveats.values()
    )
    return found._replace(remarks=tuple(remark for remark in remarks if remark))


def _what_went_wrong(found: Compared) -> list[str]:
    remarks = []
    if owed := found.total("undelivered"):
        why = _unrecovered(found.scenario) if found.scenario.links.loss else "messages are stuck"
        remarks.append(f"{counted(round(owed), 'delivery', 'deliveries')} never happened: {why}")
    if broken := found.total("promise_violations"):
        checked = found.total("violations.checked")
        of = counted(round(checked), "delivery", "deliveries")
        remarks.append(f"its own order was broken by {broken:,.0f} of {of}")
    if refused := found.total("rejected") + found.total("discarded"):
        remarks.append(
            f"{counted(round(refused), 'message')} {were(round(refused))} refused or given up "
            "on arrival"
        )
    if unsent := found.total("unsent"):
        remarks.append(
            f"{counted(round(unsent), 'answer')} {were(round(unsent))} never sent: "
            "what is answered never came"
        )
    return remarks


def _unrecovered(scenario: Scenario) -> str:
    """Say that what is lost is lost, and which variant would bring it back."""
    if is_file_target(scenario.protocol):
        return "what is lost is not recovered"
    found = entry(scenario.protocol)
    able = [name for name in found.variants if "recover" in name and name != scenario.variant]
    hint = f" ({found.name}/{able[0]} does)" if able and "recover" not in scenario.variant else ""
    return f"what is lost is not recovered{hint}"
