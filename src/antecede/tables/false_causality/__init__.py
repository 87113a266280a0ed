"""The unnecessary-order meter: pairs that a rule orders, needs not, or misses."""

from typing import TYPE_CHECKING

from antecede.lazy import lazy_names

if TYPE_CHECKING:
    from antecede.tables.false_causality.count import count_rules
    from antecede.tables.false_causality.executions import RELATIONS, REPLY
    from antecede.tables.false_causality.kernels.rule_terms import Words
    from antecede.tables.false_causality.kernels.timestamps import Clocks, Happenings, clocks_of
    from antecede.tables.false_causality.measure import (
        MEASURE_SCHEMA,
        Observed,
        observed,
        rows_of,
        table_of,
    )
    from antecede.tables.false_causality.rules import CAUSAL, RULES, TOPIC_CAUSAL, rule_named
    from antecede.tables.false_causality.summary import Summary, part_of, summarize, summary_of
    from antecede.tables.false_causality.timestamps import ALL_TOPICS, Limits, Stamps, limits_of
    from antecede.tables.false_causality.trace import by_run, runs_of, runs_with_rows
    from antecede.tables.false_causality.violation_counts import (
        WORDS,
        Early,
        Tally,
        added,
        early_deliveries,
        judged,
        together,
        told,
        way,
    )
    from antecede.tables.false_causality.violations import VIOLATION_SCHEMA, find_violations
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "count": "count_rules",
            "executions": "RELATIONS REPLY",
            "kernels.rule_terms": "Words",
            "kernels.timestamps": "Clocks Happenings clocks_of",
            "measure": "MEASURE_SCHEMA Observed observed rows_of table_of",
            "rules": "CAUSAL RULES TOPIC_CAUSAL rule_named",
            "summary": "Summary part_of summarize summary_of",
            "timestamps": "ALL_TOPICS Limits Stamps limits_of",
            "trace": "by_run runs_of runs_with_rows",
            "violation_counts": "Early Tally WORDS added early_deliveries judged together told way",
            "violations": "VIOLATION_SCHEMA find_violations",
        },
    )
