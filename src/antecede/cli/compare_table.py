"""What `antecede compare` says: the table, what its columns mean, remarks; or plain values."""

from __future__ import annotations

import argparse
import statistics
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from antecede.check.company import relation_of
from antecede.cli.columns import Column, columns, explained, short
from antecede.protocols.base import Protocol, Relation
from antecede.protocols.registry import entry
from antecede.simulate.delay_text import delay_words
from antecede.simulate.scenario import Scenario
from antecede.simulate.scenario_file import scenario_mapping
from antecede.simulate.topology import EXTERNAL, INTERNAL, PEER, Hierarchy, Mesh, PubSub
from antecede.words import counted


class Compared(NamedTuple):
    """One protocol and its runs."""

    name: str
    scenario: Scenario
    order: str
    """What it keeps, in the words of `antecede protocols`."""
    remarks: tuple[str, ...]
    runs: tuple[Mapping[str, float], ...]
    """Figures by seed."""

    def mean(self, figure: str) -> float | None:
        """Return the mean of a figure over the seeds; None where no run has it."""
        found = [run[figure] for run in self.runs if figure in run]
        return statistics.fmean(found) if found else None

    def part(self, figure: str, of: str) -> float | None:
        """Return a figure in percent of another, over all seeds."""
        whole = sum(run.get(of, 0) for run in self.runs)
        return 100 * sum(run.get(figure, 0) for run in self.runs) / whole if whole else None


def compared(
    name: str,
    scenario: Scenario,
    members: Mapping[int, Protocol],
    runs: Sequence[Mapping[str, float]],
    topology: str,
) -> Compared:
    """Return a protocol with its runs; `topology` is the kind that was asked for."""
    remarks = [one.guarantee.remark for one in members.values()][:1]
    if name.partition("/")[2] in entry(scenario.protocol).defective:
        remarks.append("as published, with its defect: meant to show what goes wrong")
    if scenario.protocol == "sb" and not scenario.workload.answers:
        remarks.append("nothing is an answer here (--answers), so nothing has an order")
    if topology == "hierarchy" and isinstance(scenario.topology, Mesh):
        remarks.append("flat: as many peers, each channel direct, arrivals of its own")
    owed = sum(run.get("undelivered", 0) for run in runs)
    if owed:
        why = _unrecovered(scenario) if scenario.links.loss else "messages are stuck"
        remarks.append(f"{owed:,.0f} deliveries never happened: {why}")
    if broken := sum(run["violations"] for run in runs):
        checked = sum(run["violations.checked"] for run in runs)
        remarks.append(f"its own order was broken by {broken:,.0f} of {checked:,.0f} deliveries")
    refused = sum(run.get("refused", 0) + run.get("discarded", 0) for run in runs)
    if refused:
        remarks.append(f"{refused:,.0f} messages were refused or given up on arrival")
    told = tuple(remark for remark in remarks if remark)
    return Compared(name, scenario, SHORT[relation_of(members)], told, tuple(runs))


def _unrecovered(scenario: Scenario) -> str:
    """Say that what is lost is lost, and which variant would bring it back."""
    found = entry(scenario.protocol)
    able = [name for name in found.variants if "recover" in name and name != scenario.variant]
    hint = f" ({found.name}/{able[0]} does)" if able and "recover" not in scenario.variant else ""
    return f"what is lost is not recovered{hint}"


SHORT = {
    Relation.NONE: "none",
    Relation.FIFO: "fifo",
    Relation.BY_DELIVERY: "causal",
    Relation.BY_RECEIPT: "receipt",
    Relation.BY_REPLY: "replies",
    Relation.BY_TOPIC: "topics",
}
COLUMNS = (
    Column(("", "", "protocol"), words=True),
    Column(("", "", "order"), words=True),
    Column(("control", "counted", "B")),
    Column(("", "wire", "B")),
    Column(("", "stored", "B")),
    Column(("wait", "mean", "ms")),
    Column(("", "p99", "ms")),
    Column(("", "held", "%")),
    Column(("too", "early", "%")),
    Column(("in", "vain", "%")),
    Column(("", "notes", "")),
)


def report(done: Sequence[Compared], args: argparse.Namespace, width: int) -> Iterator[str]:
    """Yield the question, the table, what its columns mean, and remarks."""
    for line in _question(done, args):
        yield from textwrap.wrap(line, width)
    yield ""
    rows = [cells for one in done for cells in _cells(one)]
    yield from columns(COLUMNS, rows, width)
    yield ""
    orders = {one.order: MEANING[one.order] for one in done}
    yield from explained(
        [("order", "; ".join(f"{word}: {what}" for word, what in orders.items())), *LEGEND], width
    )
    remarks = [(one.name, "; ".join(one.remarks)) for one in done if one.remarks]
    if remarks:
        yield ""
        yield from explained(remarks, width)


MEANING = {
    SHORT[relation]: words
    for relation, words in {
        Relation.NONE: "no order",
        Relation.FIFO: "of each sender",
        Relation.BY_DELIVERY: "after all that its sender had delivered or sent",
        Relation.BY_RECEIPT: "after all that had arrived at its sender",
        Relation.BY_REPLY: "an answer after what it answers",
        Relation.BY_TOPIC: "causal among messages with a common topic",
    }.items()
}
LEGEND = (
    ("control", "information of a message: bytes as its source counts them, and as on the wire"),
    ("stored", "what a member keeps for ordering, mean over members and time"),
    ("wait", "from arrival to delivery, over all deliveries; held: those that waited at all"),
    (
        "too early",
        "delivered before, or without, a message that it causally follows (under-ordering)",
    ),
    ("in vain", "held although all that it causally follows had been delivered (over-ordering)"),
    ("notes", "copies of the protocol's own messages, for each message of the application"),
)


def _question(done: Sequence[Compared], args: argparse.Namespace) -> Iterator[str]:
    scenario = done[0].scenario
    sent = sum(run["sent"] for run in done[0].runs) / len(done[0].runs)
    channels = "FIFO channels" if args.fifo else "channels reorder"
    where = {"mesh": "a mesh", "hierarchy": "a hierarchy, half inside"}
    delay, lost = delay_words(scenario.links.delay), f", {args.loss:.2%} lost" if args.loss else ""
    place = where.get(args.topology, "")
    if isinstance(scenario.topology, PubSub):
        place = counted(len(scenario.topology.subgroups), "subgroup")
        place += f", {counted(scenario.topology.topics, 'topic')}"
    yield f"{counted(args.members, 'peer')} in {place}, delay {delay}, {channels}{lost}"
    seeds = f"seed {args.seed}" if args.seeds == 1 else f"means of {args.seeds} seeds"
    answers = scenario.workload.answers
    yield (
        f"{args.rate:g} messages a second each for {scenario.duration_s:g} s: {sent:,.0f} message"
        + "s" * (round(sent) != 1)
        + (f", {answers:.0%} of them answers" if answers else "")
    )
    yield f"bytes and waits of what is sent from {scenario.warm_s:.3g} s on; {seeds}"


def _cells(one: Compared) -> Iterator[tuple[str, ...]]:
    """Yield a line, or two for a hierarchy: inside and outside."""
    if not isinstance(one.scenario.topology, Hierarchy):
        yield (one.name, one.order, *_bytes(one, PEER), *_waits(one))
        return
    yield (one.name, one.order, "", "", "", *_waits(one))
    yield ("  internal", "", *_bytes(one, INTERNAL), *[""] * 6)
    yield ("  external", "", *_bytes(one, EXTERNAL), *[""] * 6)


def _bytes(one: Compared, role: str) -> tuple[str, ...]:
    return tuple(
        short(one.mean(f"{role}.{figure}"))
        for figure in ("overhead_bytes", "encoded_bytes", "storage_bytes")
    )


def _waits(one: Compared) -> tuple[str, ...]:
    notes = one.part("notes", "sent")
    return (
        short(one.mean("wait_ms.mean")),
        short(one.mean("wait_ms.p99")),
        short(one.part("causal.held", "causal.checked")),
        short(one.part("causal.early", "causal.checked"), 2),
        short(one.part("causal.vain", "causal.checked")),
        short(None if notes is None else notes / 100, 2),
    )


def plain_values(done: Sequence[Compared], seeds: range) -> dict[str, Any]:
    """Return every figure of every run."""
    return {
        "seeds": list(seeds),
        "protocols": [
            {
                "name": one.name,
                "order": one.order,
                "remarks": list(one.remarks),
                "mean": {
                    figure: one.mean(figure)
                    for figure in dict.fromkeys(name for run in one.runs for name in run)
                },
                "runs": [
                    {"seed": seed, "figures": dict(run)}
                    for seed, run in zip(seeds, one.runs, strict=True)
                ],
                "scenario": scenario_mapping(one.scenario),
            }
            for one in done
        ],
    }
