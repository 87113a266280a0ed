"""Reader and writer of `summary.json`: the content of a study's page as plain values.

`rows` has all rows beside published values, for programs. `sections` has the rest of the page and
the number of rows of each section.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from antecede import __version__
from antecede.errors import InputError
from antecede.lab.report import Claim, Findings, Plot, Row, Section, Series, write_whole


def findings_to_values(findings: Findings) -> dict[str, Any]:
    """Return the findings as JSON values."""
    return {
        "study": findings.study,
        "title": findings.title,
        "source": findings.source,
        "finding": findings.finding,
        "reading": list(findings.reading),
        "conditions": list(findings.conditions),
        "version": __version__,
        "rows": [
            {"section": section.title, **row._asdict(), "ratio": row.ratio}
            for section in findings.sections
            for row in section.rows
        ],
        "not_reached": list(findings.not_reached),
        "failed": list(findings.failed),
        "reads": list(findings.reads),
        "sections": [_section_to_values(section) for section in findings.sections],
    }


def _section_to_values(section: Section) -> dict[str, Any]:
    plots = [
        {**plot._asdict(), "series": [series._asdict() for series in plot.series]}
        for plot in section.plots
    ]
    claims = [{**claim._asdict(), "verdict": claim.verdict} for claim in section.claims]
    return {**section._asdict(), "rows": len(section.rows), "plots": plots, "claims": claims}


def write_summary(findings: Findings, folder: Path) -> Path:
    """Write `summary.json` into a folder. Return its path. Raises InputError."""
    text = json.dumps(findings_to_values(findings), indent=1, ensure_ascii=False, allow_nan=False)
    return write_whole(folder / "summary.json", text + "\n")


def read_summary(path: Path) -> Findings:
    """Return the findings of a summary file. Raises InputError, OSError."""
    try:
        return findings_from_values(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        what = f"not a valid summary: {type(error).__name__}: {error}"
        raise InputError(what, path=str(path)) from error


def findings_from_values(values: Mapping[str, Any]) -> Findings:
    """Return the findings of JSON values."""
    chosen = {name: values[name] for name in Findings._fields}
    chosen["sections"] = list(_read_sections(values["sections"], iter(values["rows"])))
    return Findings(**chosen)


def _read_sections(sections: Any, rows: Iterator[dict[str, Any]]) -> Iterator[Section]:
    for section in sections:
        own = [
            Row(**{name: row[name] for name in Row._fields})
            for row in itertools.islice(rows, section["rows"])
        ]
        plots = [
            Plot(**{**plot, "series": [Series(**series) for series in plot["series"]]})
            for plot in section["plots"]
        ]
        claims = [
            Claim(**{name: claim[name] for name in Claim._fields}) for claim in section["claims"]
        ]
        yield Section(**{**section, "rows": own, "plots": plots, "claims": claims})
