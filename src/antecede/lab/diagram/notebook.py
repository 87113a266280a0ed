"""Diagrams in notebooks: SVG, or text if the notebook shows no images.

    draw_notebook(run_scenario(parse_scenario(text)))              one run
    draw_notebook(wrong, right, titles=["as published", ...])      several on one axis

Colors follow the theme of the notebook (`themes.page_switches`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from antecede.core.diagram_model import Diagram
from antecede.errors import LocalError
from antecede.lab.check.scenario import ScenarioRun, format_action
from antecede.lab.diagram.scenario_diagram import stack_diagrams
from antecede.lab.diagram.svg import draw_stacked
from antecede.lab.diagram.text import draw_text
from antecede.lab.diagram.themes import IN_PAGE

SVG, TEXT = "image/svg+xml", "text/plain"
TEXT_WIDTH: Final = 100


class Picture:
    """Diagram as SVG and as text, displayed as the last value of a cell."""

    def __init__(self, svg: str, text: str) -> None:
        self.svg, self.text = svg, text

    def __repr__(self) -> str:
        return self.text

    def _repr_mimebundle_(self, **_: Any) -> Mapping[str, str]:
        return {SVG: self.svg, TEXT: self.text}


def draw_notebook(*shown: ScenarioRun | Diagram, titles: Sequence[str] = ()) -> Picture:
    """Draw runs of scenarios, or diagrams, below each other; `titles` replace those of runs."""
    runs = [one for one in shown if isinstance(one, ScenarioRun)]
    diagrams = [one for one in shown if isinstance(one, Diagram)]
    if not shown or (runs and diagrams):
        raise LocalError("expected runs or diagrams, at least one, and not both")
    if titles and len(titles) != len(runs):
        raise LocalError(f"{len(titles)} titles for {len(runs)} runs")
    if runs:
        diagrams = stack_diagrams(runs, titles or [run.scenario.title for run in runs])
    texts = [f"{one.title}\n\n{draw_text(one, width=TEXT_WIDTH)}" for one in diagrams]
    return Picture(draw_stacked(diagrams, IN_PAGE), "\n\n".join(texts))


def collect_states(run: ScenarioRun) -> dict[tuple[int, str], dict[str, str]]:
    """Return changed fields by (step, member) of a run with `states=True`; else nothing."""
    return {
        (result.number, name): dict(fields)
        for result in run.results
        for name, fields in result.states.items()
    }


def format_states(run: ScenarioRun) -> str:
    """Return `collect_states` as a table: step, action, member, fields."""
    done = {result.number: format_action(result.command.action) for result in run.results}
    rows = [("step", "", "at", "state")]
    rows += [
        (str(step), done[step], name, ", ".join(f"{k} = {v}" for k, v in fields.items()))
        for (step, name), fields in collect_states(run).items()
    ]
    widths = [max(len(row[k]) for row in rows) for k in range(3)]
    return "\n".join(
        f"{step:>{widths[0]}}  {what:<{widths[1]}}  {name:<{widths[2]}}  {keeps}"
        for step, what, name, keeps in rows
    )
