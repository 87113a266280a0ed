"""Measures of `antecede compare`: values with half of their 95 % intervals."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from antecede.core.protocols import Protocol, Relation, entry, relation_of
from antecede.formatting import pluralize, were
from antecede.lab.check import is_file_target
from antecede.lab.simulate import EXTERNAL, INTERNAL, PEER, Hierarchy, Mesh
from antecede.lab.simulate.config import SimulationConfig
from antecede.lab.simulate.outputs import FULL, half_width

ORDERS = {
    "NONE": ("none", "no order"),
    "FIFO": ("fifo", "the order of each sender"),
    "BY_DELIVERY": ("causal", "after all messages that its sender had delivered or sent"),
    "BY_RECEIPT": ("receipt", "after all messages that had arrived at its sender"),
    "BY_REPLY": ("replies", "replies after their parent"),
    "BY_TOPIC": ("topics", "causal among messages with a common topic"),
    "TOTAL": ("total", "causal, and the same for all members, own messages included"),
}
"""Name of a relation -> term in the table, and its meaning."""
SHORT = {relation: ORDERS[relation.name][0] for relation in Relation}
MEANING = dict(ORDERS.values())


class Measure(NamedTuple):
    """Column of figures."""

    name: str
    figure: str
    """Name of a metric of a run; with a leading point it is of each role."""
    of: str = ""
    scale: float = 1.0
    """Factor of the shown value; 100 for percent."""
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
    """None: the run is too short for batches."""

    @property
    def is_doubtful(self) -> bool:
        """True if half of the interval exceeds a tenth of the figure."""
        if self.value is None or self.half is None:
            return False
        return self.half > abs(self.value) / 10 and self.half > 0


class SeedRun(NamedTuple):
    """Metrics of a run."""

    seed: int
    figures: Mapping[str, float]
    halves: Mapping[str, float]
    """Half of the 95 % interval by metric, from batches (`lab.simulate.outputs.confidence`)."""
    caveats: Mapping[str, str] = {}


class ProtocolRuns(NamedTuple):
    """Runs of a protocol in a group of one size."""

    name: str
    config: SimulationConfig
    order: str
    remarks: tuple[str, ...]
    runs: tuple[SeedRun, ...]

    @property
    def members(self) -> int:
        """Number of members with an application."""
        return len(self.config.topology.senders())

    @property
    def roles(self) -> tuple[str, ...]:
        """Roles with separate counts."""
        tree = isinstance(self.config.topology, Hierarchy)
        return (INTERNAL, EXTERNAL) if tree else (PEER,)

    def mean(self, figure: str) -> float | None:
        """Return the mean of a metric over the seeds; None without values."""
        found = [run.figures[figure] for run in self.runs if figure in run.figures]
        return statistics.fmean(found) if found else None

    def total(self, figure: str) -> float:
        """Return the sum of a count over the seeds."""
        return sum(run.figures.get(figure, 0) for run in self.runs)

    def value(self, measure: Measure, role: str = "") -> Value:
        """Return a measure over the seeds; value None: not measured."""
        figure = role + measure.figure if measure.figure.startswith(".") else measure.figure
        each = [_measure(run, measure, figure) for run in self.runs]
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

    def is_doubtful(self) -> bool:
        """Return whether half of an interval exceeds a tenth of its figure."""
        values = [self.value(one, role) for role in self.roles for one in BYTES]
        return any(one.is_doubtful for one in [*values, *map(self.value, REST)])


def _measure(run: SeedRun, measure: Measure, figure: str) -> float | None:
    """Return a measure of one run, or None."""
    if not measure.of:
        return run.figures.get(figure)
    whole = run.figures.get(measure.of, 0)
    if not whole or (figure not in run.figures and figure != "control_messages"):
        return None
    return measure.scale * run.figures.get(figure, 0) / whole


def summarize_runs(
    name: str,
    config: SimulationConfig,
    members: Mapping[int, Protocol],
    runs: Sequence[SeedRun],
    topology: str,
) -> ProtocolRuns:
    """Return the comparison of a protocol with remarks; `topology`: the requested kind."""
    own = is_file_target(config.protocol)
    remarks = [one.guarantee.remark for one in members.values()][:1]
    if not own and config.variant in entry(config.protocol).defective:
        remarks.append("as published, with a known defect")
    if config.protocol == "sb" and not config.workload.reply_fraction:
        remarks.append("without replies (--reply-fraction) it promises no order")
    if topology == "hierarchy" and isinstance(config.topology, Mesh):
        remarks.append("flat: as many peers with direct channels and other arrivals")
    found = ProtocolRuns(name, config, SHORT[relation_of(members)], (), tuple(runs))
    remarks += _describe_failures(found)
    if any("causal.checked" not in run.figures for run in runs):
        remarks.append(
            f"held, violations and needless holds are counted in up to {FULL:,} messages"
        )
    remarks += dict.fromkeys(
        f"{', '.join(name for name, reason in run.caveats.items() if reason == why)}: {why}"
        for run in runs
        for why in run.caveats.values()
    )
    return found._replace(remarks=tuple(remark for remark in remarks if remark))


def _describe_failures(found: ProtocolRuns) -> list[str]:
    remarks = []
    if owed := found.total("undelivered"):
        why = (
            _describe_loss(found.config) if found.config.links.loss else "messages are held forever"
        )
        remarks.append(f"{pluralize(round(owed), 'delivery', 'deliveries')} never happened: {why}")
    if broken := found.total("promise_violations"):
        checked = found.total("violations.checked")
        of = pluralize(round(checked), "delivery", "deliveries")
        remarks.append(f"{broken:,.0f} of {of} broke the promised order")
    if rejected := found.total("rejected") + found.total("discarded"):
        remarks.append(
            f"{pluralize(round(rejected), 'message')} {were(round(rejected))} rejected or "
            "discarded on arrival"
        )
    if unsent := found.total("unsent"):
        remarks.append(
            f"{pluralize(round(unsent), 'reply', 'replies')} {were(round(unsent))} never sent: "
            "their parents never came"
        )
    return remarks


def _describe_loss(config: SimulationConfig) -> str:
    """Return the text about lost messages, with a variant that recovers them."""
    if is_file_target(config.protocol):
        return "lost messages are not recovered"
    found = entry(config.protocol)
    able = [name for name in found.variants if "recover" in name and name != config.variant]
    hint = f" ({found.name}/{able[0]} does)" if able and "recover" not in config.variant else ""
    return f"lost messages are not recovered{hint}"
