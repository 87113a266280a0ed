"""Report of `antecede simulate`: all metrics of the runs, in groups."""

from __future__ import annotations

import statistics
import textwrap
from collections.abc import Iterator, Mapping, Sequence

from antecede.cli.experiments.simulate.snapshots import snapshot_lines
from antecede.cli.text_table import Column, columns, explain_terms, short
from antecede.core.protocols import Relation
from antecede.formatting import pluralize
from antecede.lab.simulate import Hierarchy, Mesh, Topology, delay_in_full
from antecede.lab.simulate.config import Links, SimulationConfig
from antecede.lab.simulate.outputs import Result

ROLES = ("peer", "internal", "external", "super", "idr", "ds")
BY_ROLE = (
    ("control_bytes", Column(("control", "counted", "B"))),
    ("control_bytes_sd", Column(("", "sd", "B"))),
    ("wire_bytes", Column(("", "wire", "B"))),
    ("entropy_bytes", Column(("", "entropy", "B"))),
    ("storage_bytes", Column(("stored", "mean", "B"))),
    ("storage_bytes_max", Column(("", "max", "B"))),
)
KEPT = {
    Relation.FIFO: ", per sender",
    Relation.BY_DELIVERY: ", causal by delivery",
    Relation.BY_RECEIPT: ", causal by receipt",
    Relation.BY_REPLY: ", replies after their parent",
    Relation.BY_TOPIC: ", causal among messages with a common topic",
    Relation.TOTAL: ", causal and the same for all",
}
PAIRS = {
    "causal": "causal by receipt",
    "ordered": "ordered",
    "false_pairs": "false",
    "missed_pairs": "missed",
}
"""Pairs of the false-causality analysis: key of the metric -> text."""


def report(
    results: Sequence[Result], seconds: float, width: int, compiled: str = ""
) -> Iterator[str]:
    """Yield the metrics in groups; means over the runs, with the standard deviation.

    `compiled`: text about the compilation time, which `seconds` excludes.
    """
    figures = _Figures([result.figures for result in results])
    for line in _describe_setup(results, seconds, compiled):
        yield from textwrap.wrap(line, width, break_on_hyphens=False)
    yield ""
    pairs = [*_describe_messages(figures), *_describe_waits(figures)]
    yield from explain_terms(pairs, width)
    rows = [
        [role, *(figures.describe(f"{role}.{name}") for name, _ in BY_ROLE)]
        for role in ROLES
        if figures.has_any(f"{role}.")
    ]
    shown = [k for k in range(len(BY_ROLE)) if any(row[k + 1] for row in rows)]
    if rows:
        yield ""
        heads = [Column(("", "", "role"), words=True), *(BY_ROLE[k][1] for k in shown)]
        yield from columns(heads, [[row[0], *(row[k + 1] for k in shown)] for row in rows], width)
    rest = [
        *_describe_checks(figures, results[0].relation),
        *_describe_snapshots(figures, results),
        *_describe_caveats(results),
        *_describe_pairs(figures),
        *figures.list_rest(),
    ]
    if rest:
        yield ""
        yield from explain_terms(rest, width)


class _Figures:
    """Means of metrics; those that were not printed are listed at the end."""

    def __init__(self, runs: Sequence[Mapping[str, float]]) -> None:
        self.runs = runs
        self.names = list(dict.fromkeys(name for run in runs for name in run))
        self.printed: set[str] = set()

    def has_any(self, start: str) -> bool:
        return any(name.startswith(start) for name in self.names)

    def mean(self, name: str) -> float | None:
        self.printed.add(name)
        found = [run[name] for run in self.runs if name in run]
        return statistics.fmean(found) if found else None

    def describe(self, name: str, digits: int = 1) -> str:
        """Return the mean, with the standard deviation of several runs; "" without values."""
        mean = self.mean(name)
        if mean is None:
            return ""
        found = [run[name] for run in self.runs if name in run]
        if mean == int(mean) and len(found) == 1:
            digits = 0
        spread = f" ± {short(statistics.stdev(found), digits)}" if len(found) > 1 else ""
        return short(mean, digits) + spread

    def count(self, name: str) -> str:
        """Return the mean of a count, without its deviation."""
        return short(self.mean(name), 0)

    def total(self, name: str) -> str:
        """Return the sum over all runs."""
        self.printed.add(name)
        return short(sum(run.get(name, 0) for run in self.runs), 0)

    def list_rest(self) -> Iterator[tuple[str, str]]:
        for name in self.names:
            if name not in self.printed:
                yield name, self.describe(name, 2)


def _describe_setup(results: Sequence[Result], seconds: float, compiled: str) -> Iterator[str]:
    first = results[0]
    config = first.config
    yield title(config)
    yield ", ".join(_describe_network(config.links))
    measured = f"bytes and waits of messages sent from {config.warm_s:g} s on, counts of all"
    warm = f", {measured}" if config.warm_s else ""
    seeds = f"seed {first.seed}"
    if len(results) > 1:
        seeds = f"seeds {first.seed} to {results[-1].seed}, mean ± standard deviation"
        seeds += "; fractions of deliveries are over all runs"
    yield f"{config.duration_s:g} s of sending{warm}; {seeds}"
    rate = sum(result.figures.get("deliveries", 0) for result in results) / max(seconds, 1e-6)
    yield f"{first.engine} engine, {seconds:.1f} s, {short(rate, 0)} deliveries/s{compiled}"


def _describe_network(links: Links) -> Iterator[str]:
    special = pluralize(len(links.special), "other delay")
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
        yield f"{links.duplicate:.2%} duplicated"
    if links.partitions:
        yield pluralize(len(links.partitions), "partition")
    if links.service_s:
        yield f"{links.service_s * 1000:g} ms to process a copy"
    if links.buffer is not None and links.service_s:
        yield f"receive queue of {links.buffer:,}"


def title(config: SimulationConfig) -> str:
    """Return name, protocol and topology as a line."""
    protocol = config.protocol + (f"/{config.variant}" if config.variant else "")
    # The name may contain terminal control characters.
    shown = "".join(one if one.isprintable() else "?" for one in config.name)
    name = f"{shown}: " if shown else ""
    return f"{name}{protocol}, {_describe_topology(config.topology)}"


def _describe_topology(topology: Topology) -> str:
    if isinstance(topology, Mesh):
        return f"{pluralize(topology.peers, 'peer')} in a mesh"
    if isinstance(topology, Hierarchy):
        inside = pluralize(sum(topology.groups), "internal peer")
        groups = pluralize(len(topology.groups), "group")
        return f"{inside} in {groups}, {topology.external:,} external"
    subgroups = pluralize(len(topology.subgroups), "subgroup")
    return (
        f"{pluralize(topology.size, 'peer')} in {subgroups}, {pluralize(topology.topics, 'topic')}"
    )


_COUNTS = {
    "arrivals": "arrivals",
    "deliveries": "deliveries",
    "delivered_incomplete": "of these with a missing cause",
    "lost": "copies lost",
    "overruns": "of these by a full receive queue",
    "duplicates": "copies duplicated",
    "discarded": "discarded by the protocol",
    "rejected": "rejected as invalid",
    "unsent": "replies never sent",
    "undelivered": "deliveries that never happened",
    "held_at_end": "held at the end",
}
_SINGULAR = {"deliveries": "delivery", "copies": "copy", "replies": "reply"}


def _of(figures: _Figures, name: str, words: str) -> str:
    first, space, rest = words.partition(" ")
    one = figures.mean(name) == 1
    if one and first in ("arrivals", "deliveries", "copies", "replies", "messages"):
        first = _SINGULAR.get(first, first[:-1])
    return first + space + rest


def _describe_messages(figures: _Figures) -> Iterator[tuple[str, str]]:
    found = []
    if figures.has_any("sent"):
        found.append(f"{figures.count('sent')} {_of(figures, 'sent', 'messages')}")
    for name, words in _COUNTS.items():
        if name in figures.names and (figures.mean(name) or name in ("arrivals", "deliveries")):
            found.append(f"{figures.count(name)} {_of(figures, name, words)}")
        figures.printed.add(name)
    yield "sent", ", ".join(found)
    if figures.has_any("control_messages"):
        copies = _of(figures, "control_messages", "copies")
        text = f"{figures.count('control_messages')} {copies} of control messages"
        size = figures.count("control_message_bytes")
        yield "control", f"{text}, {size} B of control information" if size else text


def _describe_waits(figures: _Figures) -> Iterator[tuple[str, str]]:
    if figures.has_any("wait_ms."):
        mean, p50, p99, most = (
            figures.describe(f"wait_ms.{n}") or "–" for n in ("mean", "p50", "p99", "max")
        )
        yield "wait", f"mean {mean} ms, p50 {p50} ms, p99 {p99} ms, maximum {most} ms"
    if figures.has_any("held."):
        mean, most = figures.describe("held.mean", 2), figures.describe("held.max")
        yield "held", f"mean {mean} messages per member, maximum {most}"
    if figures.has_any("tt."):
        mean, most = figures.describe("tt.mean"), figures.describe("tt.max")
        yield "TT", f"mean {mean} entries of a super peer's translation table, maximum {most}"


def _describe_checks(figures: _Figures, relation: Relation | None) -> Iterator[tuple[str, str]]:
    if figures.has_any("violations.checked"):
        of = _deliveries(figures.total("violations.checked"))
        ways = (
            ("violations.by_delivery", "a cause that its sender had sent or delivered"),
            ("violations.by_receipt", "a cause that had arrived at its sender"),
        )
        for name, what in ways:
            if name in figures.names:
                early = figures.total(name)
                words = f"{early} of {of} before {what}"
                yield ("violations" if name == ways[0][0] else ""), words
        yield from _describe_needless(figures)
        broken = figures.total("promise_violations")
        if relation is Relation.NONE:
            yield "promise", "the protocol promises no order"
        else:
            what = "broke the promised order"
            kept = KEPT.get(relation, "") if relation else ""
            yield "promise", f"{broken} of {of} {what}{kept}"
    if figures.has_any("lemma3."):
        missing, extra = figures.total("lemma3.missing"), figures.total("lemma3.extra")
        yield "Lemma 3", f"{missing} bits missing, {extra} too many (Evropeytsev et al. 2016)"


def _deliveries(total: str) -> str:
    return f"{total} {'delivery' if total == '1' else 'deliveries'}"


def _describe_needless(figures: _Figures) -> Iterator[tuple[str, str]]:
    if not figures.has_any("causal.needless_holds"):
        return
    names = ("checked", "needless_holds", "held")
    of, waited, held = (figures.total(f"causal.{name}") for name in names)
    late = figures.describe("causal.needless_hold_ms")
    figures.printed.add("causal.violations")  # by delivery, or by topic where that is the promise
    yield (
        "needless",
        f"{waited} of {_deliveries(of)} were held after all their causes were delivered, {late} ms "
        f"in total; {held} were held",
    )


def _describe_snapshots(figures: _Figures, results: Sequence[Result]) -> Iterator[tuple[str, str]]:
    figures.printed.update(name for name in figures.names if name.startswith("snapshots."))
    yield from snapshot_lines(results)
    if len(results) > 1 and "snapshots.duration_s" in figures.names:
        after = figures.describe("snapshots.duration_s", 3)
        kept = figures.describe("snapshots.in_channels")
        yield "", f"complete after {after} s, {kept} messages in channels"


def _describe_caveats(results: Sequence[Result]) -> Iterator[tuple[str, str]]:
    """Yield the reasons for missing or partial metrics, with the names of the metrics."""
    reasons: dict[str, list[str]] = {}
    for result in results:
        for name, why in result.caveats.items():
            names = reasons.setdefault(why, [])
            names += [name] if name not in names else []
    for number, (why, names) in enumerate(reasons.items()):
        yield ("not counted" if not number else ""), f"{', '.join(names)}: {why}"


def _describe_pairs(figures: _Figures) -> Iterator[tuple[str, str]]:
    rules = dict.fromkeys(
        name.split(".", 1)[1].rpartition(".")[0]
        for name in figures.names
        if name.startswith("false_causality.")
    )
    for rule in rules:
        counts = (
            f"{figures.describe(f'false_causality.{rule}.{key}')} {text}"
            for key, text in PAIRS.items()
        )
        yield f"pairs, {rule}", ", ".join(counts)
