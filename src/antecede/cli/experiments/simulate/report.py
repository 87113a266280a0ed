"""Report of `antecede simulate`: all figures of a run, in groups."""

from __future__ import annotations

import statistics
import textwrap
from collections.abc import Iterator, Mapping, Sequence

from antecede.cli.experiments.simulate.snapshots import snapshot_lines
from antecede.cli.text_table import Column, columns, explained, short
from antecede.core.protocols import Relation
from antecede.formatting import counted
from antecede.lab.simulate import Hierarchy, Mesh, Topology, delay_in_full
from antecede.lab.simulate.config import Links, Scenario
from antecede.lab.simulate.outputs import Result

ROLES = ("peer", "internal", "external", "super", "idr", "ds")
BY_ROLE = (
    ("control_bytes", Column(("overhead", "counted", "B"))),
    ("control_bytes_sd", Column(("", "sd", "B"))),
    ("wire_bytes", Column(("", "encoded", "B"))),
    ("entropy_bytes", Column(("", "entropy", "B"))),
    ("storage_bytes", Column(("stored", "mean", "B"))),
    ("storage_bytes_max", Column(("", "most", "B"))),
)
KEPT = {
    Relation.FIFO: ", each sender's own",
    Relation.BY_DELIVERY: ", causal by delivery",
    Relation.BY_RECEIPT: ", causal by receipt",
    Relation.BY_REPLY: ", answers after what they answer",
    Relation.BY_TOPIC: ", causal among messages with a common topic",
    Relation.TOTAL: ", causal and the same for all",
}
PAIRS = {
    "causal": "causal by receipt",
    "ordered": "ordered",
    "false_pairs": "false",
    "missed_pairs": "missed",
}
"""Pairs by the false-causality analysis: key of the metric -> text."""


def report(
    results: Sequence[Result], seconds: float, width: int, compiled: str = ""
) -> Iterator[str]:
    """Yield the figures in groups; means over the runs, with the standard deviation.

    `compiled`: words on the time of compiling, which `seconds` leaves out.
    """
    figures = _Figures([result.figures for result in results])
    for line in _head(results, seconds, compiled):
        yield from textwrap.wrap(line, width, break_on_hyphens=False)
    yield ""
    pairs = [*_messages(figures), *_waits(figures)]
    yield from explained(pairs, width)
    rows = [
        [role, *(figures.words(f"{role}.{name}") for name, _ in BY_ROLE)]
        for role in ROLES
        if figures.any_of(f"{role}.")
    ]
    shown = [k for k in range(len(BY_ROLE)) if any(row[k + 1] for row in rows)]
    if rows:
        yield ""
        heads = [Column(("", "", "role"), words=True), *(BY_ROLE[k][1] for k in shown)]
        yield from columns(heads, [[row[0], *(row[k + 1] for k in shown)] for row in rows], width)
    rest = [
        *_judged(figures, results[0].relation),
        *_snapshots(figures, results),
        *_caveats(results),
        *_meter(figures),
        *figures.left(),
    ]
    if rest:
        yield ""
        yield from explained(rest, width)


class _Figures:
    """Means of figures; it knows which have been asked for, so that none is kept back."""

    def __init__(self, runs: Sequence[Mapping[str, float]]) -> None:
        self.runs = runs
        self.names = list(dict.fromkeys(name for run in runs for name in run))
        self.told: set[str] = set()

    def any_of(self, start: str) -> bool:
        return any(name.startswith(start) for name in self.names)

    def mean(self, name: str) -> float | None:
        self.told.add(name)
        found = [run[name] for run in self.runs if name in run]
        return statistics.fmean(found) if found else None

    def words(self, name: str, digits: int = 1) -> str:
        """Return mean and, over several runs, standard deviation; empty where there is none."""
        mean = self.mean(name)
        if mean is None:
            return ""
        found = [run[name] for run in self.runs if name in run]
        if mean == int(mean) and len(found) == 1:
            digits = 0
        spread = f" ± {short(statistics.stdev(found), digits)}" if len(found) > 1 else ""
        return short(mean, digits) + spread

    def count(self, name: str) -> str:
        """Return the mean of what is counted, without its deviation."""
        return short(self.mean(name), 0)

    def total(self, name: str) -> str:
        """Return the sum over all runs."""
        self.told.add(name)
        return short(sum(run.get(name, 0) for run in self.runs), 0)

    def left(self) -> Iterator[tuple[str, str]]:
        for name in self.names:
            if name not in self.told:
                yield name, self.words(name, 2)


def _head(results: Sequence[Result], seconds: float, compiled: str) -> Iterator[str]:
    first = results[0]
    scenario = first.scenario
    yield title(scenario)
    yield ", ".join(_network(scenario.links))
    counted_from = f"bytes and waits of what is sent from {scenario.warm_s:g} s on, counts of all"
    warm = f", {counted_from}" if scenario.warm_s else ""
    seeds = f"seed {first.seed}"
    if len(results) > 1:
        seeds = f"seeds {first.seed} to {results[-1].seed}, mean ± standard deviation"
        seeds += "; parts of so many deliveries are of all runs together"
    yield f"{scenario.duration_s:g} s of sending{warm}; {seeds}"
    rate = sum(result.figures.get("deliveries", 0) for result in results) / max(seconds, 1e-6)
    yield f"{first.engine} engine, {seconds:.1f} s, {short(rate, 0)} deliveries a second{compiled}"


def _network(links: Links) -> Iterator[str]:
    special = counted(len(links.special), "other delay")
    yield (
        "delay "
        + ("from a matrix and " if links.matrix else "")
        + delay_in_full(links.delay)
        + (f" and {special} for some channels" if links.special else "")
    )
    yield "FIFO channels" if links.fifo else "channels reorder"
    if links.loss:
        yield f"{links.loss:.2%} lost"
    if links.duplicate:
        yield f"{links.duplicate:.2%} doubled"
    if links.partitions:
        yield counted(len(links.partitions), "partition")
    if links.service_s:
        yield f"{links.service_s * 1000:g} ms to take in a copy"
    if links.buffer is not None and links.service_s:
        yield f"room for {links.buffer:,}"


def title(scenario: Scenario) -> str:
    """Return who runs what, in a line."""
    protocol = scenario.protocol + (f"/{scenario.variant}" if scenario.variant else "")
    # A file from elsewhere may hold anything, also what a terminal obeys.
    shown = "".join(one if one.isprintable() else "?" for one in scenario.name)
    name = f"{shown}: " if shown else ""
    return f"{name}{protocol}, {_who(scenario.topology)}"


def _who(topology: Topology) -> str:
    if isinstance(topology, Mesh):
        return f"{counted(topology.peers, 'peer')} in a mesh"
    if isinstance(topology, Hierarchy):
        inside = counted(sum(topology.groups), "internal peer")
        groups = counted(len(topology.groups), "group")
        return f"{inside} in {groups}, {topology.external:,} external"
    subgroups = counted(len(topology.subgroups), "subgroup")
    return f"{counted(topology.size, 'peer')} in {subgroups}, {counted(topology.topics, 'topic')}"


_COUNTS = {
    "arrivals": "arrivals",
    "deliveries": "deliveries",
    "delivered_incomplete": "of these marked as lacking a cause",
    "lost": "copies lost",
    "overruns": "of these for want of room",
    "duplicates": "copies doubled",
    "discarded": "given up by the protocol",
    "rejected": "refused as impossible",
    "unsent": "answers never sent",
    "undelivered": "deliveries owed that never happened",
    "held_at_end": "held for ever",
}
_SINGULAR = {"deliveries": "delivery", "copies": "copy"}


def _of(figures: _Figures, name: str, words: str) -> str:
    first, space, rest = words.partition(" ")
    one = figures.mean(name) == 1
    if one and first in ("arrivals", "deliveries", "copies", "answers", "messages"):
        first = _SINGULAR.get(first, first[:-1])
    return first + space + rest


def _messages(figures: _Figures) -> Iterator[tuple[str, str]]:
    found = []
    if figures.any_of("sent"):
        found.append(f"{figures.count('sent')} {_of(figures, 'sent', 'messages')}")
    for name, words in _COUNTS.items():
        if name in figures.names and (figures.mean(name) or name in ("arrivals", "deliveries")):
            found.append(f"{figures.count(name)} {_of(figures, name, words)}")
        figures.told.add(name)
    yield "sent", ", ".join(found)
    if figures.any_of("control_messages"):
        copies = _of(figures, "control_messages", "copies")
        text = f"{figures.count('control_messages')} {copies} of the protocol's own messages"
        size = figures.count("control_message_bytes")
        yield "notes", f"{text}, {size} B of control information" if size else text


def _waits(figures: _Figures) -> Iterator[tuple[str, str]]:
    if figures.any_of("wait_ms."):
        mean, p50, p99, most = (
            figures.words(f"wait_ms.{n}") or "–" for n in ("mean", "p50", "p99", "max")
        )
        yield "wait", f"mean {mean} ms, p50 {p50} ms, p99 {p99} ms, at most {most} ms"
    if figures.any_of("held."):
        mean, most = figures.words("held.mean", 2), figures.words("held.max")
        yield "held", f"mean {mean} messages a member, at most {most}"
    if figures.any_of("tt."):
        mean, most = figures.words("tt.mean"), figures.words("tt.max")
        yield "TT", f"mean {mean} entries of a super peer's translation table, at most {most}"


def _judged(figures: _Figures, relation: Relation | None) -> Iterator[tuple[str, str]]:
    if figures.any_of("violations.checked"):
        of = _deliveries(figures.total("violations.checked"))
        ways = (
            ("violations.by_delivery", "a cause: what its sender had sent or been handed"),
            ("violations.by_receipt", "a cause by receipt: what had arrived at its sender"),
        )
        for name, what in ways:
            if name in figures.names:
                early = figures.total(name)
                words = f"{early} of {of} came before {what}"
                yield ("too early" if name == ways[0][0] else ""), words
        yield from _unnecessary(figures)
        broken = figures.total("promise_violations")
        if relation is Relation.NONE:
            yield "own order", "the protocol keeps no order, so none was broken"
        else:
            what = "broke the order that the protocol itself keeps to"
            kept = KEPT.get(relation, "") if relation else ""
            yield "own order", f"{broken} of {of} {what}{kept}"
    if figures.any_of("lemma3."):
        missing, extra = figures.total("lemma3.missing"), figures.total("lemma3.extra")
        yield "Lemma 3", f"{missing} bits missing, {extra} too many (Evropeytsev et al. 2016)"


def _deliveries(total: str) -> str:
    return f"{total} {'delivery' if total == '1' else 'deliveries'}"


def _unnecessary(figures: _Figures) -> Iterator[tuple[str, str]]:
    if not figures.any_of("causal.needless_holds"):
        return
    names = ("checked", "needless_holds", "held")
    of, waited, held = (figures.total(f"causal.{name}") for name in names)
    late = figures.words("causal.needless_hold_ms")
    figures.told.add("causal.violations")  # by delivery, or by topic where that is the promise
    yield (
        "unnecessary",
        f"{waited} of {_deliveries(of)} were held after all their causes were there, for {late} ms "
        f"together; {held} were held at all",
    )


def _snapshots(figures: _Figures, results: Sequence[Result]) -> Iterator[tuple[str, str]]:
    figures.told.update(name for name in figures.names if name.startswith("snapshots."))
    yield from snapshot_lines(results)
    if len(results) > 1 and "snapshots.duration_s" in figures.names:
        after = figures.words("snapshots.duration_s", 3)
        kept = figures.words("snapshots.in_channels")
        yield "", f"complete after {after} s, {kept} messages under way"


def _caveats(results: Sequence[Result]) -> Iterator[tuple[str, str]]:
    """Yield what was not counted, or in part, and why: names with the same reason together."""
    reasons: dict[str, list[str]] = {}
    for result in results:
        for name, why in result.caveats.items():
            names = reasons.setdefault(why, [])
            names += [name] if name not in names else []
    for number, (why, names) in enumerate(reasons.items()):
        yield ("not counted" if not number else ""), f"{', '.join(names)}: {why}"


def _meter(figures: _Figures) -> Iterator[tuple[str, str]]:
    rules = dict.fromkeys(
        name.split(".", 1)[1].rpartition(".")[0]
        for name in figures.names
        if name.startswith("false_causality.")
    )
    for rule in rules:
        counts = (
            f"{figures.words(f'false_causality.{rule}.{key}')} {text}"
            for key, text in PAIRS.items()
        )
        yield f"pairs, {rule}", ", ".join(counts)
