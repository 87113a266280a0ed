"""Audit of a trace: exact counts of causes, and inconsistent orders and clocks."""

from typing import TYPE_CHECKING

from antecede.lazy import lazy_names

if TYPE_CHECKING:
    from antecede.tables.audit.add_vector_clocks import with_clocks
    from antecede.tables.audit.channels import channel_models, merge_channels
    from antecede.tables.audit.counts import by_causes
    from antecede.tables.audit.engine import audit, audit_events
    from antecede.tables.audit.examples import Named
    from antecede.tables.audit.pairs import (
        CONFIDENCE_NAME,
        ESTIMATED,
        PAIR_KEYS,
        PAIR_STEPS,
        PairChoice,
        Pairs,
        PairsFound,
        choose_pairs,
        find_pairs,
    )
    from antecede.tables.audit.report import AuditReport, list_findings
    from antecede.tables.audit.skew import clock_skew
    from antecede.tables.audit.skew_text import skew_findings
    from antecede.tables.audit.violations import early_details, merge_violations, of_parts, part_of
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "add_vector_clocks": "with_clocks",
            "channels": "channel_models merge_channels",
            "counts": "by_causes",
            "engine": "audit audit_events",
            "examples": "Named",
            "pairs": (
                "CONFIDENCE_NAME ESTIMATED PAIR_KEYS PAIR_STEPS PairChoice Pairs PairsFound "
                "choose_pairs find_pairs"
            ),
            "report": "AuditReport list_findings",
            "skew": "clock_skew",
            "skew_text": "skew_findings",
            "violations": "early_details merge_violations of_parts part_of",
        },
    )

__all__ = [
    "AuditReport",
    "audit",
    "audit_events",
]
