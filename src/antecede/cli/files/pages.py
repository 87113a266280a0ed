"""Pages that commands write, and the hint on exploring a trace."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from antecede.cli.files.output import save_text
from antecede.errors import AntecedeError, InputError, MissingExtraError

if TYPE_CHECKING:
    import pyarrow

    from antecede.core.diagram_model import Diagram
    from antecede.tables.trace import ReadOptions


LOOKED_AT: Final = 1000
"""Rows of the test whether a table can be read as a trace."""


def suggest_view(trace: str | Path) -> str:
    """Return the hint on exploring a trace."""
    return f"Explore it: antecede view {shlex.quote(str(trace))}"


def suggest_view_if_readable(
    table: pyarrow.Table, out: Path, options: ReadOptions, words: Sequence[str]
) -> str:
    """Return the hint on exploring a written table, "" if it is not readable as a trace.

    `words`: options for its columns. The first rows are written to a temporary file and read.
    """
    from antecede.tables.causality import Causality
    from antecede.tables.trace import read
    from antecede.tables.trace.user_tables import format_of, write_table

    try:
        with tempfile.TemporaryDirectory(prefix="antecede-look-") as folder:
            part = Path(folder) / f"part{out.suffix}"
            write_table(table.slice(0, LOOKED_AT), part, format_of(out))
            # The input may have been a log; the output is a table.
            read_again = read([part], None, replace(options, regex=None, delimiter=None))
            Causality(read_again, unproven=True)
    except (AntecedeError, OSError):
        return ""
    return " ".join([suggest_view(out), *map(shlex.quote, words)])


def check_page(out: str | None) -> None:
    """Raise InputError for another ending than .html, and MissingExtraError without `trace`."""
    if out is None:
        return
    if Path(out).suffix.lower() not in (".html", ".htm"):
        raise InputError("--output-html: expected a file name that ends in .html", path=out)
    try:
        import antecede.tables.view  # noqa: F401
    except ModuleNotFoundError as error:
        raise MissingExtraError(f"a page ({error.name} is missing)", "trace") from error


def write_page_of_files(
    paths: Sequence[str], format: str | None, options: ReadOptions, out: Path, by: str | None = None
) -> None:
    """Write the page of a trace with its extra columns; `by`: as for `audit`. Raise InputError."""
    from antecede.tables.trace import SEQ, by_sequence, read
    from antecede.tables.trace.user_tables import with_further
    from antecede.tables.view import picture, render_page

    title = ", ".join(Path(path).resolve().name or path for path in paths)
    title = title.encode(errors="backslashreplace").decode()
    trace = read(paths, format, options, own=True)
    if by == SEQ:
        trace = by_sequence(trace)
    trace = with_further(trace, options)
    save_text(out, render_page(picture(trace, title=title)))


def write_page_of_table(events: pyarrow.Table, title: str, finding: str, out: Path) -> None:
    """Write the page of a table in the event schema; `finding`: rows that it excludes, or ""."""
    from antecede.tables.trace import QUARANTINE_SCHEMA, Trace
    from antecede.tables.view import picture, render_page

    trace = Trace(events, QUARANTINE_SCHEMA.empty_table(), "log", {})
    also = [{"what": finding, "advice": "", "rows": []}] if finding else []
    title = title.encode(errors="backslashreplace").decode()
    save_text(out, render_page(picture(trace, title=title, also=also)))


def write_page_of(diagram: Diagram, failure: str, out: Path) -> None:
    """Write the page of a scenario that was run; `failure`: its violation, as text."""
    from antecede.tables.view import (
        find_broken,
        find_in_transit,
        picture,
        render_page,
        trace_of,
    )

    trace = trace_of(diagram)
    wrong = find_broken(trace)
    finding = {"what": failure, "advice": "", "rows": wrong[:1]}
    title = diagram.title or "a counterexample"
    in_transit = find_in_transit(diagram, trace)
    model = picture(trace, title=title, also=[finding], broken=wrong, in_transit=in_transit)
    save_text(out, render_page(model))
