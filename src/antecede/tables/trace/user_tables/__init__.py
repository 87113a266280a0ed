"""Readers and writers of users' tables: Parquet, CSV, JSON lines."""

from typing import TYPE_CHECKING

from antecede.lazy import lazy_names

if TYPE_CHECKING:
    from antecede.tables.trace.user_tables.append_columns import (
        OWN,
        Appender,
        UnlikeError,
        with_further,
        with_own,
    )
    from antecede.tables.trace.user_tables.chosen_columns import TIMES
    from antecede.tables.trace.user_tables.columns import Columns
    from antecede.tables.trace.user_tables.extra_columns import Changed, as_json, is_json, together
    from antecede.tables.trace.user_tables.list_separators import several_in_one
    from antecede.tables.trace.user_tables.reader import (
        TableReader,
        absent_keys,
        describe_guessed_columns,
        details_of,
        first_blocks,
        kind_of,
    )
    from antecede.tables.trace.user_tables.vectorized import Piece, pieces
    from antecede.tables.trace.user_tables.writing import (
        CSV,
        ENDINGS,
        JSON_LINES,
        PARQUET,
        format_of,
        remove_marks,
        table_writer,
        write_table,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "append_columns": "Appender OWN UnlikeError with_further with_own",
            "chosen_columns": "TIMES",
            "columns": "Columns",
            "extra_columns": "Changed as_json is_json together",
            "list_separators": "several_in_one",
            "reader": (
                "TableReader absent_keys details_of first_blocks describe_guessed_columns kind_of"
            ),
            "vectorized": "Piece pieces",
            "writing": (
                "CSV ENDINGS JSON_LINES PARQUET format_of table_writer remove_marks write_table"
            ),
        },
    )
