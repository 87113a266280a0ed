"""The result of an audit: the keys of its JSON, and the quarantine beside them."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import pyarrow as pa

from antecede.trace.arrow import QUARANTINE_SCHEMA
from antecede.trace.evidence import NONE


@dataclass(frozen=True, slots=True)
class AuditReport:
    """Exact counts over a trace; None where a count does not apply. See docs/design/traces.md."""

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
    max_parents: int | None
    missing_parents: int | None
    self_parents: int | None
    ordered_pairs: int | None
    concurrent_pairs: int | None
    inversions: dict[str, int]
    clock_defects: list[dict[str, Any]] | None
    details: dict[str, Any]
    quarantine: pa.Table = field(default_factory=QUARANTINE_SCHEMA.empty_table, repr=False)
    paths: tuple[str, ...] = ()
    causality_source: str = NONE
    """Source of causality of the counts of edges and pairs, a name in `antecede.trace.evidence`."""

    def to_dict(self) -> dict[str, Any]:
        """Return the keys of `antecede audit --json`; numbers, text, lists and maps only."""
        beside = ("quarantine", "paths")
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name not in beside}

    def summary(self) -> str:
        """Return the report for people: findings first, then the counts."""
        from antecede.audit.summary import summary

        return summary(self)
