"""Page of the demo: results first, then the table and the diagrams."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from antecede.formatting import count_and_part, duration, pluralize
from antecede.lab.demo.demo import DemoFindings
from antecede.lab.demo.evaluation import DELAY, format_evaluation
from antecede.lab.demo.held_message_story import HeldMessageStory
from antecede.lab.diagram import draw_svg, from_events, from_run
from antecede.lab.report import Figure, render
from antecede.tables.order import BaselineOutcome
from antecede.tables.trace import Event


def write_page(
    path: Path, findings: DemoFindings, events: Sequence[Event], conditions: str
) -> None:
    """Write the page of a demo."""
    page = render(
        "demo.html",
        title="antecede: demo",
        finding=_format_finding(findings.outcomes),
        lead=(
            "Effects arrive before their causes. Sorting by timestamp trusts clocks that differ; "
            "a watermark drops late rows and delays all others. A message that names its causes "
            "waits for these, and for nothing else."
        ),
        outcomes=_make_rows(findings.outcomes),
        outcomes_note=(
            "Waits are counted from arrival to release, over all released rows. Rows that a "
            "watermark still held when the data ended are not in its waits."
        ),
        stretch=_draw_held(findings.held, events) if findings.held else None,
        held="\n".join(findings.held.lines()) if findings.held else None,
        counterexample=_draw_counterexample(findings),
        evaluation=format_evaluation(findings.evaluation),
        evaluation_note=(
            "Control information of Evropeytsev et al.'s hierarchical "
            "protocol, simulated, delays "
            f"{DELAY}; its slopes are stated for up to 900 peers. All of it: antecede reproduce "
            "hierarchy."
        ),
        conditions=conditions,
    )
    path.write_text(page, encoding="utf-8")


def _format_finding(outcomes: Sequence[BaselineOutcome]) -> str:
    causal = outcomes[-1]
    p99 = causal.wait_ms(0.99)
    text = f"Causal release dropped {causal.dropped:,} of {causal.rows:,} rows"
    text += f" and inverted {pluralize(causal.inverted, 'pair')}"
    text += f"; 99 % of the rows waited {duration(p99)} or less" if p99 is not None else ""
    by_time = next((o for o in outcomes if o.scheme == "sort by timestamp"), None)
    if by_time is not None and by_time.inverted:
        text += f"; sorting by timestamp inverted {pluralize(by_time.inverted, 'pair')}"
        text += " of cause and effect"
    return text + "."


def _make_rows(outcomes: Sequence[BaselineOutcome]) -> list[dict[str, Any]]:
    widest = max((outcome.wait_ms(0.99) or 0.0 for outcome in outcomes), default=0.0)
    return [
        {
            "scheme": one.scheme,
            "ours": one is outcomes[-1],
            "dropped": one.dropped,
            "dropped_text": count_and_part(one.dropped, one.rows),
            "inverted": one.inverted,
            "inverted_text": f"{one.inverted:,}",
            "broken": one.broken,
            "broken_text": f"{one.broken:,}",
            "p50_text": duration(one.wait_ms(0.5)),
            "p99_text": duration(one.wait_ms(0.99)),
            "p99_part": f"{100 * (one.wait_ms(0.99) or 0.0) / widest if widest else 0.0:.1f}",
        }
        for one in outcomes
    ]


def _draw_held(held: HeldMessageStory, events: Sequence[Event]) -> Figure:
    first, last = held.window_ns
    drawing = from_events(events, first=first, last=last, members=held.members)
    caption = (
        f"Time of the recorder in milliseconds. A bar on a line is a message that has arrived and "
        f"waits: {held.sent.id} waits {held.wait_ms:.0f} ms at {held.at} for {held.cause.id}."
    )
    return Figure(draw_svg(drawing), caption)


def _draw_counterexample(findings: DemoFindings) -> Figure:
    result = findings.counterexample
    return Figure(
        draw_svg(from_run(result.run)),
        f"The smallest counterexample, found after {result.states:,} states of all interleavings.",
        "Counterexample of a published rule",
        "Sahai et al. 2020 print the second delivery condition of Birman, Schiper "
        "and Stephenson as "
        f"C_j[k] <= t[k]. It must be >=. With the printed sign: {result.failure.sentence()}.",
    )
