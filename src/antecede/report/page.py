"""Self-contained HTML pages: one file, readable offline, light and dark, desktop and phone."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from antecede.errors import MissingExtraError
from antecede.formatting import count_and_part, duration

try:
    import jinja2
    import markupsafe
except ModuleNotFoundError as error:
    raise MissingExtraError("a report page", "report") from error

_environment = jinja2.Environment(
    loader=jinja2.PackageLoader("antecede.report"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=False,
    keep_trailing_newline=True,
)


def _prose(text: str) -> markupsafe.Markup:
    """Escape text; what stands between backticks is code."""
    return markupsafe.Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(markupsafe.escape(text))))


_environment.filters["prose"] = _prose


class Figure(NamedTuple):
    """A drawing with the text that goes with it; `svg` is our own and is not escaped."""

    svg: str
    caption: str
    title: str = ""
    text: str = ""


class Row(NamedTuple):
    """One line of the table of schemes; waits in milliseconds, None where there are none."""

    scheme: str
    rows: int
    dropped: int
    inverted: int
    broken: int
    p50_ms: float | None
    p99_ms: float | None
    ours: bool = False


def render(template: str, **values: Any) -> str:
    """Return a page of `templates/`; raises jinja2.UndefinedError when a value is missing."""
    return _environment.get_template(template).render(**values)


def write_tour(
    path: Path,
    *,
    title: str,
    finding: str,
    lead: str,
    outcomes: Iterable[Row],
    outcomes_note: str,
    stretch: Figure | None,
    held: str | None,
    counterexample: Figure | None,
    evaluation: str | None = None,
    evaluation_note: str = "",
    conditions: str,
) -> None:
    """Write the page of the demo's tour."""
    outcomes = list(outcomes)
    widest = max((row.p99_ms or 0.0 for row in outcomes), default=0.0)
    page = render(
        "tour.html",
        title=title,
        finding=finding,
        lead=lead,
        outcomes=[_cells(row, widest) for row in outcomes],
        outcomes_note=outcomes_note,
        stretch=stretch,
        held=held,
        counterexample=counterexample,
        evaluation=evaluation,
        evaluation_note=evaluation_note,
        conditions=conditions,
    )
    path.write_text(page, encoding="utf-8")


def _cells(row: Row, widest_ms: float) -> dict[str, Any]:
    part = 100 * (row.p99_ms or 0.0) / widest_ms if widest_ms else 0.0
    return {
        **row._asdict(),
        "dropped_text": count_and_part(row.dropped, row.rows),
        "inverted_text": f"{row.inverted:,}",
        "broken_text": f"{row.broken:,}",
        "p50_text": duration(row.p50_ms),
        "p99_text": duration(row.p99_ms),
        "p99_part": f"{part:.1f}",
    }
