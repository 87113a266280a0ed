"""Readers of trace formats."""

from typing import TYPE_CHECKING

from antecede.lazy import lazy_names

if TYPE_CHECKING:
    from antecede.tables.trace.formats.git import count_commits, is_repository
    from antecede.tables.trace.formats.partial_span import CLIENT, INSTANCE, ROLES, SERVER
    from antecede.tables.trace.formats.shiviz_writer import ShivizEvent, write_log_file
    from antecede.tables.trace.formats.spans_ids import DIGITS, SPAN_BYTES, TRACE_BYTES
    from antecede.tables.trace.formats.spans_jaeger import HOSTS
    from antecede.tables.trace.formats.spans_otlp import KINDS
    from antecede.tables.trace.formats.spans_table import (
        COLUMNS,
        SpanColumns,
        find_span_columns,
        pairs_in,
        table_of,
    )
    from antecede.tables.trace.formats.spans_times import FACTORS, RANGES
    from antecede.tables.trace.formats.zipkin_table import (
        check_zipkin,
        is_zipkin,
        plain_name,
        rows_of,
        used,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "git": "count_commits is_repository",
            "partial_span": "CLIENT INSTANCE ROLES SERVER",
            "shiviz_writer": "ShivizEvent write_log_file",
            "spans_ids": "DIGITS SPAN_BYTES TRACE_BYTES",
            "spans_jaeger": "HOSTS",
            "spans_otlp": "KINDS",
            "spans_table": "COLUMNS SpanColumns find_span_columns pairs_in table_of",
            "spans_times": "FACTORS RANGES",
            "zipkin_table": "check_zipkin is_zipkin plain_name rows_of used",
        },
    )
