"""HTML page of a study, with plots as separate files.

    folder/index.html            self-contained: no network, no script
    folder/figures/KEY.svg, .png each plot

Deviation marks follow from the rows alone. "Deviations" lists every row beyond 10 %. The same
findings give the same bytes.
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from antecede.errors import LocalError
from antecede.formatting import pluralize
from antecede.lab.report.atomic_files import write_whole
from antecede.lab.report.drawing import DARK, LIGHT, PLOT_RULES, declare_colours, inline_svg
from antecede.lab.report.model import Findings, Plot, Row, Section
from antecede.lab.report.page import render
from antecede.lab.report.plots import draw_plot, slots_of

MAX_UNFOLDED_ROWS = 15
SWEEP_COMMAND = "antecede sweep"
"""Command whose pages have no published values."""
_NUMBER = re.compile(r"[-−+±]?[\d.,]|–?\Z")
MAX_SUMMARY_LINES = 5
"""Largest number of lines in the summary of deviations."""


class DeviationMark(NamedTuple):
    """Class of deviation from the published value: a sign beside the ratio, and a colour."""

    name: str
    sign: str
    text: str
    max_deviation: float
    """Largest distance of the ratio from 1."""


MARKS = (
    DeviationMark("near", "●", "within 6\u00a0%", 0.06),
    DeviationMark("fair", "◐", "within 10\u00a0%", 0.10),
    DeviationMark("far", "○", "beyond 10\u00a0%", math.inf),
)


VERDICTS = {True: "near", False: "far", None: "soft"}
"""Claim.holds -> colour of its verdict."""


def find_mark(row: Row) -> DeviationMark | None:
    """Return the deviation class of a row (None: no published value)."""
    if row.ratio is None or not math.isfinite(row.ratio):
        return None
    distance = abs(row.ratio - 1) - 1e-9
    return next(mark for mark in MARKS if distance <= mark.max_deviation)


def write_study(findings: Findings, folder: Path, *, command: str = "") -> Path:
    """Write the page and its plots. Return the path of the page.

    `command`: text of the command that makes the page again. Raises LocalError for two plots with
    the same key, an invalid plot (`plots.draw_plot`) and a table with rows of unequal length.
    """
    plots = [plot for section in findings.sections for plot in section.plots]
    twice = [key for key, count in Counter(plot.key for plot in plots).items() if count > 1]
    if twice:
        raise LocalError(f"study {findings.study}: two plots with the key {twice[0]!r}; rename one")
    drawn = _write_plots(plots, folder / "figures")
    rows = [row for section in findings.sections for row in section.rows]
    beyond = list(dict.fromkeys(row for row in rows if find_mark(row) is MARKS[-1]))
    page = render(
        "study.html",
        findings=findings,
        short=_summarize(findings, rows, beyond),
        sections=[_prepare_section(section, drawn) for section in findings.sections],
        beyond=_prepare_comparison(beyond) if beyond else None,
        marks=MARKS,
        command=command or f"antecede reproduce {findings.study}",
        ours=command.startswith(SWEEP_COMMAND),
        kicker=SWEEP_COMMAND
        if command.startswith(SWEEP_COMMAND)
        else f"antecede reproduce {findings.study}",
        **look(),
    )
    return write_whole(folder / "index.html", page)


def look() -> dict[str, str]:
    """Return colours and rules of inlined plots for `study.css`."""
    light, dark = ({k: v for k, v in s.items() if k not in _PAGE_COLOURS} for s in (LIGHT, DARK))
    return {
        "light": declare_colours(light),
        "dark": declare_colours(dark),
        "plot_rules": PLOT_RULES,
    }


_PAGE_COLOURS = ("ink", "line")
"""Colours that `base.css` declares for the whole page."""


def _write_plots(plots: Sequence[Plot], folder: Path) -> dict[str, str]:
    folder.mkdir(parents=True, exist_ok=True)
    colours = slots_of(plots)
    parts = {}
    for k, plot in enumerate(plots):
        drawn = draw_plot(plot, colours)
        write_whole(folder / f"{plot.key}.svg", drawn.svg)
        write_whole(folder / f"{plot.key}.png", drawn.png)
        parts[plot.key] = inline_svg(drawn.svg, f"plot{k}")
    return parts


def _summarize(findings: Findings, rows: Sequence[Row], beyond: Sequence[Row]) -> dict[str, Any]:
    counts = _count_marks(rows)
    claims = [claim for section in findings.sections for claim in section.claims]
    verdicts = Counter(claim.verdict for claim in claims)
    first_sentence = re.compile(r"(?<=[.!?])\s+(?=[A-Z`(])")
    lines = [first_sentence.split(text.strip(), maxsplit=1)[0] for text in findings.not_reached]
    if beyond and not lines:
        lines = [
            f"{row.quantity}, {row.condition} ({row.figure}): {format_ratio(row)} of the paper's"
            for row in beyond
        ]
    if len(lines) > MAX_SUMMARY_LINES:
        lines = [*lines[:MAX_SUMMARY_LINES], f"and {len(lines) - MAX_SUMMARY_LINES} more"]
    failed = len(findings.failed)
    nothing = "Every published value is reproduced within 10 %."
    if claims and not verdicts["does not hold"]:
        nothing = f"{nothing} No claim fails."
    return {
        "tally": _describe_deviations(rows),
        "verdicts": _describe_verdicts(verdicts),
        "parts": [{"name": m.name, "count": counts[m.name]} for m in MARKS if counts[m.name]],
        "not_reached": lines,
        "failed": f"{pluralize(failed, 'run')} failed",
        "open": bool(lines or failed),
        "nothing": nothing if counts else "The source has no values to compare with.",
    }


def _describe_verdicts(verdicts: Counter[str]) -> str:
    many = {
        "holds": "hold",
        "does not hold": "do not hold",
        "not run": "not run",
        "undecided": "undecided",
    }
    parts = [
        pluralize(verdicts[one], one, several) for one, several in many.items() if verdicts[one]
    ]
    return f"Of {pluralize(verdicts.total(), 'claim')} {', '.join(parts)}." if parts else ""


def _count_marks(rows: Iterable[Row]) -> Counter[str]:
    return Counter(mark.name for mark in map(find_mark, rows) if mark)


def _describe_deviations(rows: Sequence[Row]) -> str:
    counts = _count_marks(rows)
    total = sum(counts.values())
    if not total:
        return "The source has no values to compare with: all values are ours."
    parts = [f"{counts[mark.name]} {mark.text}" for mark in MARKS if counts[mark.name]]
    return f"Of {pluralize(total, 'published value')}: {', '.join(parts)}."


def _prepare_section(section: Section, drawn: dict[str, str]) -> dict[str, Any]:
    return {
        "title": section.title,
        "finding": section.finding,
        "about": section.about,
        "claims": [
            {**claim._asdict(), "verdict": claim.verdict, "mark": VERDICTS[claim.holds]}
            for claim in section.claims
        ],
        "beside": _prepare_comparison(section.rows) if section.rows else None,
        "plain": _prepare_table(section) if section.table else None,
        "plots": [
            {"key": plot.key, "caption": plot.caption, "svg": drawn[plot.key]}
            for plot in section.plots
        ],
    }


def _prepare_comparison(rows: Sequence[Row]) -> dict[str, Any]:
    marks = [find_mark(row) for row in rows]
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(row.figure, []).append(_prepare_row(row))
    return {
        "groups": groups,
        "count": len(rows),
        "marks": any(marks),
        "dashes": not all(marks),
        "summary": f"Table of {pluralize(len(rows), 'value')}. {_describe_deviations(rows)}",
        "folded": len(rows) > MAX_UNFOLDED_ROWS,
    }


def _prepare_row(row: Row) -> dict[str, Any]:
    return {
        "quantity": row.quantity,
        "condition": row.condition,
        "note": row.note,
        "unit": row.unit,
        "paper": "–" if row.paper is None else _format_number(row.paper, 10),
        "ours": _format_number(row.ours, 4),
        "ratio": format_ratio(row),
        "mark": find_mark(row),
    }


def format_ratio(row: Row) -> str:
    """Return the ratio with three decimals, or a dash."""
    if find_mark(row) is None or row.ratio is None:
        return "–"
    return f"{row.ratio:,.3f}".replace("-", "−") if abs(row.ratio) < 100 else f"{row.ratio:,.0f}"


def _format_number(value: float, digits: int) -> str:
    if not math.isfinite(value):
        return "–"
    whole = abs(value) >= 1000 and digits < 10
    text = f"{value:,.0f}" if whole or value == round(value) else f"{value:,.{digits}g}"
    return text.replace("-", "−", 1) if value < 0 else text


def _prepare_table(section: Section) -> dict[str, Any]:
    for row in section.table:
        if len(row) != len(section.columns):
            raise LocalError(
                f"section {section.title!r}: a row has {len(row)} cells, expected "
                f"{len(section.columns)}"
            )
    text = [
        k == 0 or not all(_NUMBER.match(row[k]) for row in section.table)
        for k in range(len(section.columns))
    ]
    return {
        "columns": _mark_text_cells(section.columns, text),
        "rows": [_mark_text_cells(row, text) for row in section.table],
        "summary": f"Table of {pluralize(len(section.table), 'row')}.",
        "folded": len(section.table) > MAX_UNFOLDED_ROWS,
    }


def _mark_text_cells(cells: Sequence[str], text: Sequence[bool]) -> list[dict[str, Any]]:
    return [{"words": cell, "text": left} for cell, left in zip(cells, text, strict=True)]


def write_overview(folder: Path, studies: Iterable[tuple[str, str, str, Path]]) -> Path:
    """Write folder/index.html: name, title, finding, page path of each study. Return its path."""
    cards = [
        {
            "study": study,
            "title": title,
            "finding": finding,
            "link": quote(Path(os.path.relpath(page, folder)).as_posix()),
            "svg": _read_first_plot(page, f"card{k}"),
        }
        for k, (study, title, finding, page) in enumerate(studies)
    ]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "index.html"
    path.write_text(render("overview.html", cards=cards, **look()), encoding="utf-8")
    return path


def _read_first_plot(page: Path, prefix: str) -> str:
    linked = re.search(r'href="(figures/[^"/]+\.svg)"', page.read_text(encoding="utf-8"))
    if linked is None or not (page.parent / linked[1]).exists():
        return ""
    return inline_svg((page.parent / linked[1]).read_text(encoding="utf-8"), prefix)
