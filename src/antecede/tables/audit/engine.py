"""Local engine of audits: from paths or an Arrow table to a report.

Each step quarantines bad rows with a reason and continues.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute

from antecede.errors import InputError
from antecede.tables.audit.channels import channel_models
from antecede.tables.audit.counts import AuditCounts, add_common, by_causes, count_by_clocks
from antecede.tables.audit.examples import Named, find_examples
from antecede.tables.audit.format_metrics import compute_format_metrics
from antecede.tables.audit.pairs import (
    EXACT,
    PAIR_KEYS,
    PAIR_STEPS,
    PairChoice,
    Pairs,
    choose_pairs,
)
from antecede.tables.audit.report import AuditReport
from antecede.tables.audit.violations import early_details
from antecede.tables.kernels import RANKS
from antecede.tables.trace import (
    BLANK,
    CAUSE_COLUMNS,
    QUARANTINE_SCHEMA,
    REPEATED,
    SEQ,
    SOURCE,
    TOLD_BY,
    Paths,
    ReadOptions,
    by_sequence,
    clock_refusal,
    conform,
    distinct,
    evidence,
    list_paths,
    read,
    refuse,
)

pc: Any = pyarrow.compute  # incomplete stubs

DECLARED_ONLY = ("roots", "merges", "max_causes", "missing_causes", "self_causes")


def audit(
    paths: Paths,
    format: str | None = None,
    options: ReadOptions | None = None,
    *,
    missing: int = 0,
    pairs: Pairs = True,
    pair_steps: int = PAIR_STEPS,
    pair_ranks: int = RANKS,
    by: str | None = None,
) -> AuditReport:
    """Read files as one trace and count.

    `by`: "seq" counts the program order of each member by its own numbers
    (`antecede.tables.trace.sequence`), instead of declared causes or clocks.

    `pairs`: True counts ordered and concurrent pairs and implied edges exactly; False omits them.
    "estimate" counts exactly up to `pair_steps` (edges times events / 64, if some events have
    several causes). Beyond them these keys are null, and `details` has estimates from `pair_ranks`
    ranks of an event, with intervals (`ordered_pairs_low`, ...) and `pairs_confidence`. Implied
    edges stay null.

    Details that name events are added to those of `audit_events`: the worst inversions, wrong
    clocks, up to `missing` missing ids. Bad records are counted in `details` and kept in
    `quarantine`. Raise InputError if a path cannot be read, FormatError for an unknown format or
    without any record.
    """
    choice = choose_pairs(pairs, pair_steps, pair_ranks)
    trace = read(paths, format, options)
    if by not in (None, SEQ):
        raise InputError(f"by={by!r}: expected {SEQ!r}, or None for causes or clocks")
    if by == SEQ:
        trace = by_sequence(trace)
    return audit_events(
        trace.events,
        trace.format,
        quarantine=trace.quarantine,
        details=trace.details,
        paths=[str(path) for path in list_paths(paths)],
        named=Named(missing),
        choice=choice,
    )


def audit_events(
    events: pa.Table,
    format: str = "table",
    *,
    quarantine: pa.Table | None = None,
    details: Mapping[str, Any] | None = None,
    paths: Sequence[str] = (),
    named: Named | None = None,
    clocked: bool | None = None,
    choice: PairChoice = EXACT,
) -> AuditReport:
    """Count over a table of events in the schema; all columns but `id` are optional.

    The counts use vector clocks if the format is `shiviz`, or if events have clocks and none
    declares a cause; otherwise declared causes. `clocked` sets this for a part of a trace.
    `choice`: treatment of pairs, which are never estimated by clocks. `quarantine` and `details`:
    results of the reader. `named`: adds the details that name events. Raise InputError if a column
    is not of the schema.
    """
    table = whole = conform(events)
    if SOURCE in (details or {}):  # causes were built from members' own numbers
        clocked = False
    if clocked is None:
        declared = pc.sum(pc.list_value_length(table["causes"])).as_py()
        has_clocks = table["clock_members"].null_count < len(table)
        clocked = format == "shiviz" or (has_clocks and not declared)
    bad = [quarantine] if quarantine is not None else []
    if clocked:
        table, refused = _split_by_own_entry(table)
        bad.append(refused)
    rows = distinct(table, clocked)
    if clocked:
        counts = count_by_clocks(rows.events)
        counts.keys |= dict.fromkeys(PAIR_KEYS) if choice.pairs is False else {}
    else:
        counts = by_causes(rows.events, rows.selfish, choice)
    add_common(counts)
    bad += [rows.quarantine, *([counts.quarantine] if counts.quarantine is not None else [])]
    rejected = pa.concat_tables([QUARANTINE_SCHEMA.empty_table(), *bad])
    read_of = dict(details or {})
    source = read_of.pop(SOURCE, "") or _find_source(table, rows.events, counts, format, clocked)
    if source != evidence.NONE:
        read_of = evidence.without_columns(read_of)
    elif CAUSE_COLUMNS not in read_of:
        read_of[CAUSE_COLUMNS] = ", ".join(events.column_names)[:300]
    found = read_of | counts.details
    if source == evidence.NONE:
        found[evidence.WHY] = evidence.describe_none(whole, read_of)
        found.pop(TOLD_BY, None)
    found |= compute_format_metrics(format, counts, table, rows.duplicates, rejected)
    if named is not None:
        found |= find_examples(counts, format, clocked, rejected, named)
    found |= {
        "rows": len(events),
        "quarantined": len(rejected),
        "quarantine": _count_reasons(rejected),
    }
    causes = rows.causes.with_read(details or {})
    found |= {REPEATED: causes.repeated, BLANK: causes.blank}
    if rows.conflicts:
        found["conflicting_rows"] = rows.conflicts
    if rows.receipts or rows.deliveries:
        found |= {"receipts": rows.receipts, "deliveries": rows.deliveries}
        found["violations"] = early_details(table)
        if models := channel_models(table):
            found["channels"] = models
    keys = {"clock_inconsistencies": None, **dict.fromkeys(DECLARED_ONLY), **counts.keys}
    return AuditReport(
        format=format,
        duplicates=rows.duplicates,
        details=found,
        quarantine=rejected,
        paths=tuple(paths),
        causality_source=source,
        **keys,
    )


def _find_source(
    table: pa.Table, events: pa.Table, counts: AuditCounts, format: str, use_clocks: bool
) -> str:
    if use_clocks:
        return evidence.CLOCKS if evidence.has_clocks(events, format) else evidence.NONE
    edges = counts.keys["edges"] or counts.details.get("events_on_cycles")
    if edges or evidence.BY_NATURE.get(format) == evidence.CAUSES:
        return evidence.CAUSES
    return evidence.RECEIPTS if evidence.has_receipts(table) else evidence.NONE


def _split_by_own_entry(table: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Split events from those whose clock has no valid entry of the event's member."""
    reasons = []
    seqs = []
    columns = (table[name].to_pylist() for name in ("member", "clock_members", "clock_counts"))
    for member, names, counts in zip(*columns, strict=True):
        reasons.append(clock_refusal(member, names, counts))
        seqs.append(dict(zip(names or (), counts or (), strict=False)).get(member))
    table = table.set_column(table.column_names.index("seq"), "seq", pa.array(seqs, pa.int64()))
    good = pa.array([not reason for reason in reasons], pa.bool_())
    refused = refuse(table.filter(pc.invert(good)), [reason for reason in reasons if reason])
    return table.filter(good), refused


def _count_reasons(quarantine: pa.Table) -> dict[str, int]:
    """Count the rows of each reason, without the row-specific part after the first colon."""
    counted: dict[str, int] = {}
    for reason in quarantine["reason"].to_pylist():
        short = str(reason).partition(":")[0]
        counted[short] = counted.get(short, 0) + 1
    return dict(sorted(counted.items(), key=lambda pair: (-pair[1], pair[0])))
