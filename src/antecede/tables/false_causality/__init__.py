"""False and missed causality: pairs that an ordering rule orders although concurrent, or fails to
order.
"""

from typing import TYPE_CHECKING

from antecede.lazy import lazy_names

if TYPE_CHECKING:
    from antecede.tables.false_causality.count import count_rules
    from antecede.tables.false_causality.executions import RELATIONS, REPLY
    from antecede.tables.false_causality.kernels.rule_terms import Words
    from antecede.tables.false_causality.kernels.timestamps import (
        ClockColumns,
        Happenings,
        clocks_of,
    )
    from antecede.tables.false_causality.measure import (
        MEASURE_SCHEMA,
        ObserverMessages,
        rows_of,
        select_observed,
        table_of,
    )
    from antecede.tables.false_causality.rules import CAUSAL, RULES, TOPIC_CAUSAL, rule_named
    from antecede.tables.false_causality.summary import Summary, part_of, summarize, summary_of
    from antecede.tables.false_causality.timestamps import (
        ALL_TOPICS,
        BoundColumns,
        Stamps,
        limits_of,
    )
    from antecede.tables.false_causality.trace import runs_of, runs_with_rows, split_by_run
    from antecede.tables.false_causality.violation_counts import (
        RELATION_TEXT,
        Tally,
        ViolationCounts,
        add_tallies,
        count_violations,
        describe_checked,
        describe_relation,
        merge_counts,
        select_observed_runs,
    )
    from antecede.tables.false_causality.violations import VIOLATION_SCHEMA, find_violations
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "count": "count_rules",
            "executions": "RELATIONS REPLY",
            "kernels.rule_terms": "Words",
            "kernels.timestamps": "ClockColumns Happenings clocks_of",
            "measure": "MEASURE_SCHEMA ObserverMessages select_observed rows_of table_of",
            "rules": "CAUSAL RULES TOPIC_CAUSAL rule_named",
            "summary": "Summary part_of summarize summary_of",
            "timestamps": "ALL_TOPICS BoundColumns Stamps limits_of",
            "trace": "split_by_run runs_of runs_with_rows",
            "violation_counts": (
                "RELATION_TEXT Tally ViolationCounts add_tallies count_violations describe_checked "
                "describe_relation merge_counts select_observed_runs"
            ),
            "violations": "VIOLATION_SCHEMA find_violations",
        },
    )
