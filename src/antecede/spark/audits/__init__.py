"""Audit and false-causality reports over DataFrames."""

from typing import TYPE_CHECKING

from antecede.lazy import lazy_names

if TYPE_CHECKING:
    from antecede.spark.audits.false_causality import meter_report
    from antecede.spark.audits.quarantine import find_quarantined
    from antecede.spark.audits.totals import total_by_causes, total_by_clocks, with_read
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "false_causality": "meter_report",
            "quarantine": "find_quarantined",
            "totals": "total_by_causes total_by_clocks with_read",
        },
    )
