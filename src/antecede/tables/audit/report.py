"""Result of an audit: values, JSON, and text."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from antecede.formatting import count_and_part, duration, pluralize, table
from antecede.quantiles import quantile
from antecede.tables.audit import skew_text, violations
from antecede.tables.audit.channels import describe_channels
from antecede.tables.audit.pairs import CONFIDENCE_NAME, ESTIMATED
from antecede.tables.trace import NONE, QUARANTINE_SCHEMA, Causes, evidence, sequence, time_text
from antecede.tables.trace.user_tables import describe_guessed_columns, list_separators

SHOWN_INCONSISTENCIES = 3
SHOWN_REASONS = 5
OUTLIER_FACTOR = 3
"""A receiver is an outlier if its offset is this many times as far from the median as any other."""

_FORMAT_NOUNS = {  # format -> nouns of events, members and edges
    "mail": ("messages", "senders", "replies"),
    "git": ("commits", "authors", "parent links"),
    "shiviz": ("events", "hosts", "message edges"),
    "spans": ("spans", "processes", "parent links"),
    "irc": ("lines", "nicks", "replies"),
    "editing": ("changes", "editors", "parent links"),
    "matrix": ("events", "users", "links"),
    "automerge": ("changes", "actors", "dependencies"),
    "nostr": ("events", "authors", "references"),
    "cloudevents": ("events", "sources", "links"),
    "lora": ("uplinks", "devices", "links to the uplink before"),
}
_ORDER_TEXT = {
    "arrival": "by arrival time",
    "ingest": "in archive order",
    "send_time": "by the sender's clock",
    "commit_time": "by commit time",
    "author_time": "by author time",
    "start_time": "by start time",
    "file_order": "in file order",
}
_DETAIL_LABELS = {  # details counted by readers, shown if not 0
    "uplinks_not_heard": "uplinks not received, by the counter",
    "repeated_records": "uplinks reported again",
    "late_records": "uplinks listed late",
    "other_records": "records other than uplinks",
    "lines_not_annotated": "lines without annotation",
    "system_lines": "system lines",
    "context_lines": "lines annotated only as causes",
    "nearest_ancestors": "missing parent mail, nearest known ancestor used",
}
_CLOCK_NOTES = {  # detail -> noun, finding, advice
    "repeated_counters": (
        "event",
        "with the number of the host's previous event",
        "clocks do not distinguish such events; pairs are not counted",
    ),
    "mutual_events": (
        "event",
        "before itself, by the clocks",
        "two events are in each other's past: a wrong merge; pairs are not counted",
    ),
    "unmerged_events": (
        "event",
        "with an event in its past, but not all of that event's past",
        "their clocks were not merged entry by entry: order may be lost",
    ),
    "clock_gaps": ("gap", "in the hosts' own numbers", "events are missing in the log"),
}
_READING_NOTES = {
    "counter_resets": (
        "time",
        "a device began to count again from a lower number",
        "the counter gives no order across a reset: uplinks on both sides count as concurrent",
    ),
    "lost_changes": (
        "change",
        "lost in damaged blocks, by the positions of later changes",
        "positions there are those in later changes; see --quarantine FILE",
    ),
}
_POSITIONS = ("ingest", "file_order")
Notes = Iterator[tuple[str, str]]  # observation, advice


class Finding(NamedTuple):
    """Observation for the user, and advice."""

    what: str
    advice: str


def format_summary(report: AuditReport) -> str:
    """Return the report as text, without a final line break."""
    events, members, _ = _get_nouns(report)
    where = ", ".join(Path(path).name or path for path in report.paths[:3]) or "table"
    more = f" and {len(report.paths) - 3} more" if len(report.paths) > 3 else ""
    what = events[:-1] if report.messages == 1 else events
    head = f"{where}{more}: {report.format}, {report.messages:,} {what}"
    if report.members:
        one = {"processes": "process"}.get(members, members[:-1])
        head += f" of {report.members:,} {members if report.members > 1 else one}"
    found = list(list_findings(report))
    lines = [head, "", "Findings"]
    for finding in found or [Finding(_describe_no_findings(report), "")]:
        lines.append(f"  - {finding.what}")
        if finding.advice:
            lines.append(f"    {finding.advice}")
    lines += ["", "Counts", table(("",) * 3, _list_counts(report)).partition("\n")[2]]
    lines += ["", f"{evidence.SOURCE}: {report.causality_source}"]
    if columns := describe_guessed_columns(report.details):
        lines += ["", f"Columns: {columns}"]
    if guessed := time_text.describe_guessed_unit(report.details):
        lines += ["", f"Times {guessed}"]
    if groups := report.details.get("further_groups"):
        lines += ["", f"Groups of the expression kept as extra columns: {groups}"]
    if models := report.details.get("channels"):
        lines += [
            "",
            "Channels, by the file order of each member's rows",
            *(f"  {line}" for line in describe_channels(models)),
        ]
    if report.inversions and report.edges:
        rows = [
            (_ORDER_TEXT[order], _format_part(report, order), _format_largest(report, order))
            for order, _ in _sort_inversions(report)
        ]
        header = (_make_inversions_title(report), "edges", "largest step back")
        lines += ["", table(header, rows, indent="")]
    clocks = skew_text.format_pairs(report.details.get("clock_skew") or {"pairs": ()})
    lines += ["", clocks] if clocks else []
    if missing := report.details.get("missing"):
        lines += ["", _format_missing(missing, report.details["missing_ids"])]
    return "\n".join(lines)


def _format_missing(missing: list[dict[str, Any]], ids: int) -> str:
    rows = [
        (
            one["id"] + (f" (run {one['run']})" if one["run"] else ""),
            f"{one['references']:,}",
            f"{one['first']}" + ("; its own row is quarantined" if one["quarantined"] else ""),
        )
        for one in missing
    ]
    shown = table(("Missing ids", "references", "first named by"), rows, indent="")
    more = ids - len(rows)
    hint = f"\n{pluralize(more, 'more id')} (--list-missing {ids} lists all)"
    return shown + (hint if more else "")


def _describe_no_findings(report: AuditReport) -> str:
    if not report.edges:
        return "none; no event has a cause in the trace, so no order was compared"
    compared = [_ORDER_TEXT[order] for order in report.inversions]
    if not compared:
        return "none; no order and no times to compare with the causes"
    deliveries = report.details.get("violations")
    delivered = violations.describe_no_violations(deliveries) if deliveries else ""
    times = "" if set(report.inversions) - set(_POSITIONS) else "; no times to check"
    comes = "is sent" if delivered else "comes"
    consistent = [_ORDER_TEXT[order] for order, count in report.inversions.items() if not count]
    shown = (
        ", ".join(consistent[:-1]) + (" and " if len(consistent) > 1 else "") + consistent[-1]
        if consistent
        else ""
    )
    sent = f"no effect {comes} before its cause {shown}{times}" if consistent else ""
    rest = delivered if sent else delivered.removeprefix(", and ")
    return f"none: {sent}{rest}{_describe_listed_apart(report)}"


def _describe_listed_apart(report: AuditReport) -> str:
    apart = [
        f"; {count_and_part(count, report.details['compared_edges'][order])} of the effects "
        f"precede their cause {_ORDER_TEXT[order]}, with each member's rows together"
        for order, count in report.inversions.items()
        if count and order in _POSITIONS
    ]
    return "".join(apart)


def _has_delivery_counts(report: AuditReport) -> bool:
    deliveries = report.details.get("violations")
    return bool(deliveries and deliveries["deliveries"])


def list_findings(report: AuditReport) -> Iterator[Finding]:
    """Yield what is wrong or surprising, the worst first."""
    yield from itertools.starmap(Finding, _list_notes(report))


def _list_notes(report: AuditReport) -> Notes:
    details = report.details
    yield from _list_clock_findings(report)
    yield from _list_lost_rows(report)
    if skew := details.get("clock_skew"):
        yield from skew_text.skew_findings(skew, _FORMAT_NOUNS.get(report.format, ("events",))[0])
    if deliveries := details.get("violations"):
        yield from violations.list_findings(deliveries)
    if arrivals := details.get("arrivals"):
        yield from list_arrival_findings(arrivals, report.edges)
    yield from _list_counted_details(details, _READING_NOTES)
    yield from _list_inversions(report)
    if report.missing_causes:
        ids = details.get("missing_ids")
        to = "" if ids is None else f" to {pluralize(ids, 'id')}"
        yield (
            f"{pluralize(report.missing_causes, 'reference')}{to} not in the trace",
            "a consumer that waits for them never continues; --list-missing lists the ids",
        )
    if hint := details.get("separator_hint"):
        what, say = list_separators.words(hint)
        yield what, f"{say}, then audit again"
    if details.get("shallow"):
        yield (
            "the repository is a shallow clone: its oldest commits lack their parents",
            "`git fetch --unshallow`, then audit again",
        )
    yield from Causes(report.self_causes or 0).with_read(details).notes()
    if report.duplicates:
        rows = details.get("conflicting_rows", 0)
        quarantined = f"; {rows:,} of them, which differ from it, are quarantined" if rows else ""
        yield (
            f"{pluralize(report.duplicates, 'later row')} of an id already seen",
            f"the first row of an id counts{quarantined}",
        )
    if report.redundant_edges and report.roots is not None:  # with clocks they are steps of members
        part = count_and_part(report.redundant_edges, report.edges)
        yield (
            f"{part} of {report.edges:,} {_get_nouns(report)[2]} are transitively implied",
            "control information could omit them",
        )


def _list_counted_details(details: dict[str, Any], notes: dict[str, tuple[str, str, str]]) -> Notes:
    for name, (one, what, advice) in notes.items():
        if count := details.get(name):
            yield f"{pluralize(count, one)} {what}", advice


def _list_clock_findings(report: AuditReport) -> Notes:
    defects = report.clock_inconsistencies or []
    if defects:
        shown = ", ".join(
            _describe_inconsistency(defect) for defect in defects[:SHOWN_INCONSISTENCIES]
        )
        more = (
            f" and {len(defects) - SHOWN_INCONSISTENCIES:,} more"
            if len(defects) > SHOWN_INCONSISTENCIES
            else ""
        )
        yield (
            f"{pluralize(len(defects), 'clock')} with a missing or lower entry: {shown}{more}",
            "a restart, or several executions in one file (--run-delimiter)? pairs are not counted",
        )
    yield from _list_counted_details(report.details, _CLOCK_NOTES)
    if hosts := report.details.get("unlogged_hosts"):
        entries = pluralize(report.details["unlogged_entries"], "clock entry", "clock entries")
        shown = "; ".join(_describe_place(place) for place in hosts[:SHOWN_INCONSISTENCIES])
        rest = len(hosts) - SHOWN_INCONSISTENCIES
        more = f"; and {pluralize(rest, 'more host')}" if rest > 0 else ""
        yield (
            f"{entries} beyond the last logged event of a host: {shown}{more}",
            "the log is truncated or lacks a host, or a clock is wrong; missing events order "
            "nothing",
        )


def _describe_place(place: dict[str, Any]) -> str:
    where = [str(place["source"])] if place["source"] else []
    where += [f"line {place['line']}"] if place["line"] else [str(place["id"])]
    run = f" of {place['run']}" if place["run"] else ""
    last = f"last logged {place['logged']:,}" if place["logged"] else "none logged"
    return f"{', '.join(where)}: {place['count']:,} of host {place['host']!r}{run}, {last}"


def _list_lost_rows(report: AuditReport) -> Notes:
    details = report.details
    for note in sequence.notes(details):
        yield note, "source of order: each member's own numbers (--by seq)"
    if cycles := details.get("cycles"):
        yield (
            f"{pluralize(details['events_on_cycles'], 'event')} that cause each other quarantined, "
            f"in {pluralize(cycles, 'cycle')}",
            "they have no causal order; the reasons name the ids (--quarantine FILE)",
        )
    reasons = list(details.get("quarantine", {}).items())
    if reasons:
        shown = "; ".join(f"{count:,} x {reason}" for reason, count in reasons[:SHOWN_REASONS])
        yield (
            f"{pluralize(details['quarantined'], 'bad row')} quarantined: {shown}",
            "the other rows were counted; --quarantine FILE writes the bad ones",
        )
    if report.causality_source == evidence.NONE:
        yield (
            str(details[evidence.WHY]),
            "so every event counts as a root, and every pair as concurrent",
        )
    elif report.causality_source == evidence.RECEIPTS:
        yield (
            "no event declares a cause in the trace; the source of causality is receipts and "
            "deliveries",
            "causal violations use these; roots, edges and pairs use declared causes only",
        )
    if unreadable := time_text.unreadable(details):
        yield unreadable, f"excluded from inversions; {time_text.WHAT_IS_READABLE}"
    if zones := time_text.unknown_zones(details):
        yield zones, f"excluded from inversions; {time_text.KNOWN_ZONES}"
    yield from time_text.suspicions(details)


def _list_inversions(report: AuditReport) -> Notes:
    # With delivery counts, files of several members were usually concatenated. Then a position in
    # the file is no time, and only each member's own rows are compared.
    apart = _POSITIONS if _has_delivery_counts(report) else ()
    wrong = [(one, count) for one, count in _sort_inversions(report) if count and one not in apart]
    if wrong:
        order, count = wrong[0]
        compared = report.details["compared_edges"][order]
        known_ends = "" if compared == report.edges else " with both ends known"
        others = " and ".join(_ORDER_TEXT[other] for other, _ in wrong[1:])
        also = f'; also {others} (table "{_make_inversions_title(report)}")' if others else ""
        worst = report.details.get("worst_inversions", {}).get(order)
        by_time = any(one not in _POSITIONS for one, _ in wrong)
        helps = "sorting by time does not help; " if by_time else ""
        named = f" ({worst['effect']} before its cause {worst['cause']})" if worst else ""
        yield (
            f"{count_and_part(count, compared)} of {compared:,} {_get_nouns(report)[2]}"
            f"{known_ends} have the effect before its cause {_ORDER_TEXT[order]}, by up to "
            f"{_format_largest(report, order)}{named}{also}",
            f"{helps}`antecede order` puts every cause before its effects",
        )


def _make_inversions_title(report: AuditReport) -> str:
    # Rows of deliveries differ from those of the orders.
    return f"Effects {'sent ' if _has_delivery_counts(report) else ''}before their cause"


def _format_part(report: AuditReport, order: str) -> str:
    """Return inversions and their share; with the number of compared edges if that is not all."""
    compared = report.details["compared_edges"][order]
    part = count_and_part(report.inversions[order], compared)
    return part if compared == report.edges else f"{part} of {compared:,}"


def _sort_inversions(report: AuditReport) -> list[tuple[str, int]]:
    return sorted(report.inversions.items(), key=lambda pair: -pair[1])


def _list_counts(report: AuditReport) -> Iterator[tuple[str, str, str]]:
    _, members, edges = _get_nouns(report)
    # With clocks, immediate dependencies include each member's previous event.
    steps = "program order included" if report.roots is None else ""
    shown = (
        (edges, report.edges, "program order not included" if steps else ""),
        (f"of these between {members}", report.cross_member_edges, ""),
        ("immediate dependencies", report.immediate_edges, steps),
        ("roots", report.roots, ""),
        ("merges", report.merges, ""),
        ("most causes of an event", report.max_causes, ""),
    )
    for name, value, note in shown:
        if value is not None:
            yield name, f"{value:,}", note
    for name, label in _DETAIL_LABELS.items():
        if value := report.details.get(name):
            yield label, f"{value:,}", ""
    if arrivals := report.details.get("arrivals"):
        yield from list_arrival_counts(arrivals)
    if deliveries := report.details.get("violations"):
        yield from violations.list_counts(deliveries)
    if report.ordered_pairs is not None and report.concurrent_pairs is not None:
        total = report.ordered_pairs + report.concurrent_pairs
        for name, value in (
            ("ordered pairs", report.ordered_pairs),
            ("concurrent pairs", report.concurrent_pairs),
        ):
            yield name, f"{value:,}", f"{value / total:.1%}" if total else ""
    yield from _list_estimates(report.details)


def _list_estimates(details: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    if CONFIDENCE_NAME in details:
        figures = [f"{details[name]:,}" for name in ESTIMATED]
        sure = f"with {details[CONFIDENCE_NAME]:.0%} confidence, not counted exactly"
        for name, k in (("ordered", 0), ("concurrent", 3)):
            what, low, high = figures[k : k + 3]
            yield f"{name} pairs, estimated", what, f"{low} to {high} {sure}"
        yield "immediate dependencies", "unknown", "not counted where pairs are estimated"


def _describe_inconsistency(defect: dict[str, object]) -> str:
    line = f", line {defect['line']}" if defect["line"] else ""
    return f"{defect['member']} at {defect['position']}{line}"


def _format_largest(report: AuditReport, order: str) -> str:
    value = report.details.get("max_inversions", {}).get(order)
    if value is None:
        return ""
    return pluralize(value, "place") if order in _POSITIONS else duration(value / 1e6)


def _get_nouns(report: AuditReport) -> tuple[str, str, str]:
    return _FORMAT_NOUNS.get(report.format, ("events", "members", "edges"))


def list_arrival_findings(arrivals: dict[str, Any], edges: int) -> Notes:
    """Yield (what, advice) on receivers whose arrivals contradict causes or each other."""
    if late := arrivals["edges_late_at_a_receiver"]:
        yield (
            f"{count_and_part(late, edges)} of {edges:,} edges have the effect before its cause "
            "by the clock of one receiver",
            "the cause arrived late there, or that clock was set back",
        )
    if late := arrivals["edges_late_over_all_receivers"]:
        yield (
            f"{count_and_part(late, edges)} of {edges:,} edges have the effect before its cause "
            "where arrivals at different receivers are compared",
            "compare times of one receiver only, or use the sender's own numbers",
        )
    if off := find_farthest(arrivals["offsets_ns"]):
        name, ahead = off
        where = "ahead of" if ahead > 0 else "behind"
        yield (
            f"{name} has times {duration(abs(ahead) / 1e6)} {where} the typical "
            "receiver's (median)",
            "its clock is wrong, or it reports late",
        )


def list_arrival_counts(arrivals: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield rows of the table of counts."""
    yield "receivers", f"{arrivals['receivers']:,}", ""
    yield "receipts without a time", f"{arrivals['receipts_without_time']:,}", ""
    several = arrivals["messages_with_several_times"]
    yield "with times of several receivers", f"{several:,}", ""
    if spread := arrivals["spread_ns"]:
        for name, value in spread.items():
            shown = {"min": "least", "max": "largest"}.get(name, name)
            yield f"  spread, {shown}", duration(value / 1e6), ""


def find_farthest(offsets_ns: dict[str, int]) -> tuple[str, int] | None:
    """Return the receiver farthest from the median receiver, and its offset; None without an
    outlier.
    """
    if len(offsets_ns) < 3:
        return None
    middle = quantile(sorted(offsets_ns.values()), 0.5)
    apart = sorted((abs(value - middle), name) for name, value in offsets_ns.items())
    (second, _), (most, name) = apart[-2:]
    return (name, offsets_ns[name] - middle) if most > OUTLIER_FACTOR * second else None


@dataclass(frozen=True, slots=True)
class AuditReport:
    """Exact counts over a trace; None if a count does not apply. See docs/design/traces.md."""

    format: str
    members: int | None
    messages: int
    duplicates: int
    edges: int
    cross_member_edges: int | None
    immediate_edges: int | None
    redundant_edges: int | None
    roots: int | None
    merges: int | None
    max_causes: int | None
    missing_causes: int | None
    self_causes: int | None
    ordered_pairs: int | None
    concurrent_pairs: int | None
    inversions: dict[str, int]
    clock_inconsistencies: list[dict[str, Any]] | None
    details: dict[str, Any]
    quarantine: pa.Table = field(default_factory=QUARANTINE_SCHEMA.empty_table, repr=False)
    paths: tuple[str, ...] = ()
    causality_source: str = NONE
    """Source of causality of the counts of edges and pairs (`antecede.tables.trace.evidence`)."""

    def to_dict(self) -> dict[str, Any]:
        """Return the keys of `antecede audit --json`; numbers, text, lists and maps only."""
        beside = ("quarantine", "paths")
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name not in beside}

    def summary(self) -> str:
        """Return the report as text: findings first, then the counts."""
        return format_summary(self)
