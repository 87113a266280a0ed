"""Traces: event schema, readers of many formats, quarantine of bad records.

`read`, `read_batches` and `Trace` need pyarrow. Custom readers use the other names in `__all__`
(docs/own-reader.md). All remaining names are internal.
"""

from typing import TYPE_CHECKING

from antecede.lazy import lazy_names

if TYPE_CHECKING:
    from antecede.tables.trace.arrow import (
        Trace,
        find_implied_format,
        read,
        read_batches,
        to_batch,
        write_events,
    )
    from antecede.tables.trace.batches import QUARANTINE_SCHEMA, SCHEMA, EventBatch, Waiting, note
    from antecede.tables.trace.causes import (
        BLANK,
        CAUSE_COLUMNS,
        REPEATED,
        ROUNDED_CAUSES,
        TOLD_BY,
        UNREADABLE_CAUSES,
        Causes,
    )
    from antecede.tables.trace.evidence import (
        BY_NATURE,
        CAUSES,
        CLOCKS,
        NONE,
        RECEIPTS,
        SEQUENCE,
        SOURCE,
        WHY,
        Cells,
        cells_of,
        describe_cells,
        describe_other,
        describe_unsupported,
        warn_none,
        without_columns,
    )
    from antecede.tables.trace.expressions import is_expression
    from antecede.tables.trace.identities import (
        BLANKS,
        MAX_EXACT,
        ROUNDED,
        UNREADABLE,
        are_blank,
        float_causes,
        ids_of,
        in_run,
        is_blank,
        is_text,
        keys,
        whole_numbers,
        without_blanks,
    )
    from antecede.tables.trace.paths import Paths, all_inputs, inputs, list_paths
    from antecede.tables.trace.reader import (
        NO_ID,
        Detail,
        Item,
        Reader,
        ReadOptions,
        names,
        register,
    )
    from antecede.tables.trace.rows import (
        BAD_CLOCK,
        CONTENT,
        NO_CLOCK,
        clock_refusal,
        conform,
        distinct,
        no_own_entry,
        refuse,
    )
    from antecede.tables.trace.schema import (
        COLUMNS,
        DELIVER,
        EVENT,
        KINDS,
        NAMES,
        ORDERS,
        RECEIVE,
        SEND,
        Event,
        Quarantined,
    )
    from antecede.tables.trace.sequence import (
        NEGATIVE,
        NO_NUMBER,
        SEQ,
        TAKEN,
        UNTOLD,
        by_sequence,
        steps_back,
    )
    from antecede.tables.trace.text import files_below
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "arrow": "Trace find_implied_format read read_batches to_batch write_events",
            "batches": "EventBatch QUARANTINE_SCHEMA SCHEMA Waiting note",
            "causes": (
                "BLANK CAUSE_COLUMNS Causes REPEATED ROUNDED_CAUSES TOLD_BY UNREADABLE_CAUSES"
            ),
            "evidence": (
                "BY_NATURE CAUSES CLOCKS Cells NONE RECEIPTS SEQUENCE SOURCE WHY cells_of "
                "describe_cells describe_other describe_unsupported warn_none without_columns"
            ),
            "expressions": "is_expression",
            "identities": (
                "BLANKS MAX_EXACT ROUNDED UNREADABLE are_blank float_causes ids_of in_run "
                "is_blank is_text keys whole_numbers without_blanks"
            ),
            "paths": "Paths all_inputs inputs list_paths",
            "reader": "Detail Item NO_ID ReadOptions Reader names register",
            "rows": "BAD_CLOCK CONTENT NO_CLOCK clock_refusal conform distinct no_own_entry refuse",
            "schema": "COLUMNS DELIVER EVENT Event KINDS NAMES ORDERS Quarantined RECEIVE SEND",
            "sequence": "NEGATIVE NO_NUMBER SEQ TAKEN UNTOLD by_sequence steps_back",
            "text": "files_below",
        },
    )

__all__ = [
    "Detail",
    "Event",
    "Item",
    "Quarantined",
    "ReadOptions",
    "Reader",
    "Trace",
    "read",
    "read_batches",
    "register",
]
