"""A space-time diagram as SVG: one horizontal line a member, time runs to the right.

Self-contained: no script, no font, no reference to anything outside. Colours follow the
reader's light or dark scheme and can be overridden by the page through the custom properties in
`STYLE`. `diagram.placing` places the names of messages, so that they do not cover each other;
what finds no place is left to the tooltip.
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Iterable
from xml.sax import saxutils
from xml.sax.saxutils import quoteattr

from antecede.diagram import model
from antecede.diagram.model import MEANING, Arrow, Diagram, Held, Mark
from antecede.diagram.placing import Box, Placing

WIDTH = 1040.0
LANE_GAP = 76.0
BAR_HEIGHT, BAR_STEP = 15.0, 18.0
CHARACTER = 7.8
"""Width of an average character of bold 12 px text in a wide font, in px."""
SMALL_CHARACTER = 6.4
"""The same for plain 11 px text."""
_NOT_XML = re.compile("[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\ud800-\\udfff\\ufffe\\uffff]")

STYLE = """
.ac{--ac-paper:#fff;--ac-ink:#1f2933;--ac-faint:#8593a3;--ac-line:#c3ccd6;--ac-sent:#1d4ed8;
--ac-done:#15803d;--ac-held:#fde8b5;--ac-held-edge:#d99a1c;--ac-held-ink:#6b4400;
--ac-wrong:#c81e1e;color:var(--ac-ink);
font:12px system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
@media (prefers-color-scheme:dark){.ac{--ac-paper:#14181d;--ac-ink:#e6ebf0;--ac-faint:#93a1b0;
--ac-line:#46525f;--ac-sent:#8ab4ff;--ac-done:#5fd38a;--ac-held:#4a3608;--ac-held-edge:#e0aa3a;
--ac-held-ink:#ffe2a1;--ac-wrong:#ff7b72}}
.ac text{fill:currentColor;paint-order:stroke;stroke:var(--ac-paper);stroke-width:3px;
stroke-linejoin:round}
.ac .paper{fill:var(--ac-paper)}.ac .name{font-weight:600;font-size:14px}
.ac .title{font-weight:600;font-size:15px}.ac .small{fill:var(--ac-faint);font-size:11px}
.ac .lane{stroke:var(--ac-line);stroke-width:1.5}.ac .grid{stroke:var(--ac-line);
stroke-width:1;stroke-dasharray:1 5}.ac .arrow{stroke:var(--ac-sent);stroke-width:1.4;
opacity:.75}.ac .head{fill:var(--ac-sent);opacity:.9}
.ac .label{font-weight:600}.ac .sent{fill:var(--ac-sent)}.ac .deliver{fill:var(--ac-done)}
.ac .hold,.ac .release{fill:var(--ac-paper);stroke:var(--ac-held-edge);stroke-width:2}
.ac .discard,.ac .edge{stroke:var(--ac-faint);stroke-width:2;fill:none}
.ac .bar{fill:var(--ac-held);stroke:var(--ac-held-edge);stroke-width:1}
.ac .record{fill:var(--ac-held-ink)}.ac .dim{opacity:.22}.ac .passed{fill:var(--ac-faint)}
.ac text.why{fill:var(--ac-held-ink);font-size:11px;stroke:var(--ac-held)}
.ac text.beside{stroke:var(--ac-paper)}
.ac .wrong{stroke:var(--ac-wrong);stroke-width:2.5;fill:none}.ac text.bad{fill:var(--ac-wrong);
font-weight:600}.ac .late{stroke:var(--ac-wrong)}.ac .late-head{fill:var(--ac-wrong)}
"""


def draw_svg(diagram: Diagram) -> str:
    """Return the diagram as one SVG document."""
    return _Picture(diagram).document()


class _Picture:
    def __init__(self, diagram: Diagram) -> None:
        self.diagram = diagram
        self.rows = _rows(diagram.holds)
        names = max((len(lane.name) for lane in diagram.lanes), default=0)
        self.left = 38.0 + names * 9.6
        self.span = max(diagram.end - diagram.begin, 1e-9)
        room = WIDTH - self.left - 40.0
        if diagram.unit == "step":
            room = self.span * min(92.0, max(46.0, room / self.span))
        self.room = room
        self.top = 78.0 if diagram.title else 48.0
        self.lane_y = self._lane_positions()
        self.bottom = (self.lane_y[-1] if self.lane_y else self.top) + self._depth(-1) + 34.0
        self.placing = Placing()
        self.parts: list[str] = []

    def _lane_positions(self) -> list[float]:
        y, positions = self.top, []
        for lane in range(len(self.diagram.lanes)):
            positions.append(y)
            y += LANE_GAP + max(0.0, self._depth(lane) - BAR_STEP)
        return positions

    def _depth(self, lane: int) -> float:
        """Return the height in px of the bars below a lane."""
        lane %= max(1, len(self.diagram.lanes))
        used = [row for held, row in self.rows.items() if held.lane == lane]
        return (max(used) + 1) * BAR_STEP if used else 0.0

    def x(self, at: float) -> float:
        return self.left + (at - self.diagram.begin) / self.span * self.room

    def document(self) -> str:
        self._axis()
        self._lanes()
        for held in self.diagram.holds:
            self._bar(held)
        for arrow in sorted(self.diagram.arrows, key=lambda arrow: not arrow.faint):
            self._arrow(arrow)
        for arrow in self.diagram.bare_arrivals():
            self._passed_on(arrow)
        for held in self.diagram.holds:
            self._reason(held)
        for mark in sorted(self.diagram.marks, key=lambda mark: not mark.faint):
            self._mark(mark)
        for mark in sorted(self.diagram.marks, key=lambda mark: not mark.wrong):
            if not mark.faint:
                self._label(mark)
        width, height = self.left + self.room + 40.0, self._legend()
        words = self.diagram.words()
        # Several diagrams may stand in one page: their ids must differ.
        key = f"ac{zlib.crc32((self.diagram.title + words).encode()):08x}"
        title = escape(self.diagram.title or "Space-time diagram")
        return "\n".join(
            (
                f'<svg xmlns="http://www.w3.org/2000/svg" class="ac" role="img" '
                f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
                f'height="{height:.0f}" aria-labelledby="{key}t {key}d" '
                f'style="max-width:100%;height:auto">',
                f'<title id="{key}t">{title}</title>',
                f'<desc id="{key}d">{escape(words)}</desc>',
                f"<style>{STYLE}</style>",
                f'<rect class="paper" width="{width:.0f}" height="{height:.0f}" rx="8"/>',
                *self.parts,
                "</svg>",
            )
        )

    # -- the scene --------------------------------------------------------------------------

    def _axis(self) -> None:
        if self.diagram.title:
            self._text(20.0, 28.0, self.diagram.title, "title")
        y = self.bottom
        for tick in self.diagram.ticks:
            x = self.x(tick.at)
            self._line("grid", x, self.top - 18.0, x, y - 14.0)
            self._text(x, y, tick.label, "small", anchor="middle")
        self._text(20.0, y, self.diagram.unit, "small")

    def _lanes(self) -> None:
        for number, lane in enumerate(self.diagram.lanes):
            y = self.lane_y[number]
            begin = self.diagram.begin if lane.begin is None else lane.begin
            end = self.diagram.end if lane.end is None else lane.end
            self._text(20.0, y + 5.0, lane.name, "name")
            self.placing.block(Box(0.0, y - 10.0, self.left - 4.0, y + 8.0))
            if lane.forwards:
                self._text(20.0, y + 20.0, "forwards", "small")
            self._line("lane", self.x(begin), y, self.x(end), y)
            self.placing.line(self.x(begin), y, self.x(end), y)

    def _arrow(self, arrow: Arrow) -> None:
        x1, y1 = self.x(arrow.sent), self.lane_y[arrow.source]
        x2, y2 = self.x(arrow.arrived), self.lane_y[arrow.target]
        if x1 < self.left:
            # It was sent before the picture begins: cut the line at the edge.
            x1, y1 = self.left, y2 + (y1 - y2) * (x2 - self.left) / (x2 - x1)
        length = math.hypot(x2 - x1, y2 - y1) or 1.0
        ux, uy = (x2 - x1) / length, (y2 - y1) / length
        tip_x, tip_y = x2 - 6.5 * ux, y2 - 6.5 * uy
        late = any(
            mark.wrong and (mark.lane, mark.label) == (arrow.target, arrow.label)
            for mark in self.diagram.marks
        )
        red = (" late", " late-head") if late else ("", "")
        dim = ' class="dim"' if arrow.faint else ""
        self.parts.append(f"<g{dim}>{_tip(self._journey(arrow))}")
        self._line(f"arrow{red[0]}", x1, y1, tip_x - 6.0 * ux, tip_y - 6.0 * uy)
        wings = [(tip_x, tip_y)]
        wings += [(tip_x - 9 * ux - s * 3.8 * uy, tip_y - 9 * uy + s * 3.8 * ux) for s in (1, -1)]
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in wings)
        self.parts.append(f'<polygon class="head{red[1]}" points="{points}"/></g>')
        if not arrow.faint:
            self.placing.line(x1, y1, x2, y2)

    def _journey(self, arrow: Arrow) -> str:
        names = [lane.name for lane in self.diagram.lanes]
        text = f"{arrow.label}: {names[arrow.source]} to {names[arrow.target]}"
        if self.diagram.unit == "step":
            return text
        return f"{text}, {arrow.arrived - arrow.sent:.1f} {self.diagram.unit} on its way"

    def _bar(self, held: Held) -> None:
        box = self._bar_box(held)
        still = " to the end" if held.end is None else ""
        self.parts.append(
            f"<g>{_tip(_why(held) + still)}"
            f'<rect class="bar" x="{box.left:.1f}" y="{box.top:.1f}" '
            f'width="{box.right - box.left:.1f}" height="{BAR_HEIGHT}" rx="3"/></g>'
        )
        self.placing.block(box)

    def _bar_box(self, held: Held) -> Box:
        left = self.x(held.begin)
        right = self.x(self.diagram.end if held.end is None else held.end)
        top = self.lane_y[held.lane] + 8.0 + self.rows[held] * BAR_STEP
        return Box(left, top, max(left + 3.0, right), top + BAR_HEIGHT)

    def _reason(self, held: Held) -> None:
        """Write what a message waits for into its bar, or beside it where there is room."""
        bar, text = self._bar_box(held), _why(held)
        width = len(text) * SMALL_CHARACTER + 8.0
        if width <= bar.right - bar.left:
            self._text(bar.left + 5.0, bar.top + 11.5, text, "why")
            return
        places = [
            Box(left, top, left + width, top + BAR_HEIGHT)
            for left, top in (
                (bar.right + 2.0, bar.top),
                (bar.left - width - 2.0, bar.top),
                (bar.left, bar.bottom + 1.0),
            )
        ]
        box = self.placing.take([place for place in places if self._within(place)])
        if box is not None:
            self._text(box.left + 4.0, box.top + 11.5, text, "why beside")

    def _within(self, box: Box) -> bool:
        return box.left >= self.left - 14.0 and box.right <= self.left + self.room + 36.0

    def _passed_on(self, arrow: Arrow) -> None:
        """Mark an arrival that is neither delivered nor held at once, as at a super peer."""
        x, y = self.x(arrow.arrived), self.lane_y[arrow.target]
        self.parts.append(f'<circle class="passed" cx="{x:.1f}" cy="{y:.1f}" r="3"/>')

    # -- marks ------------------------------------------------------------------------------

    def _mark(self, mark: Mark) -> None:
        x, y = self.x(mark.at), self.lane_y[mark.lane]
        what = f"{self.diagram.lanes[mark.lane].name}: {mark.label} {_VERBS[mark.kind]}"
        tip = _tip(f"{what} {mark.note}".strip())
        shape = _shape(_WRONG if mark.wrong else mark.kind, x, y)
        dim = ' class="dim"' if mark.faint else ""
        self.parts.append(f"<g{dim}>{tip}{shape}</g>")
        if mark.faint:
            return
        self.placing.block(Box(x - 6.0, y - 6.0, x + 6.0, y + 6.0))

    def _label(self, mark: Mark) -> None:
        text, css = mark.label, "label"
        if mark.wrong:
            text, css = f"{mark.label} {mark.note}", "label bad"
        elif mark.kind in (model.JOIN, model.LEAVE, model.RECORD):
            text, css = _VERBS[mark.kind], "small"
        x, y = self.x(mark.at), self.lane_y[mark.lane]
        half = len(text) * CHARACTER / 2
        candidates = [
            Box(centre - half, base - 11.0, centre + half, base + 3.0)
            for base in (y - 10.0, y + 20.0, y - 24.0)
            for centre in (x, x + half + 4.0, x - half - 4.0)
        ]
        box = self.placing.take([box for box in candidates if self._within(box)])
        if box is not None:
            self._text((box.left + box.right) / 2, box.bottom - 3.0, text, css, anchor="middle")

    def _legend(self) -> float:
        """Draw the legend below the axis; returns the height of the picture."""
        x, y = 20.0, self.bottom + 26.0
        used = {mark.kind for mark in self.diagram.marks if not mark.wrong}
        for kind in (k for k in MEANING if k in used and k not in (model.JOIN, model.LEAVE)):
            self.parts.append(_shape(kind, x + 6.0, y))
            x = self._legend_text(x + 18.0, y, _WAITS if kind == model.HOLD else MEANING[kind])
        if self.diagram.holds:
            self.parts.append(
                f'<rect class="bar" x="{x:.1f}" y="{y - 7:.1f}" width="26" height="14" rx="3"/>'
            )
            x = self._legend_text(x + 32.0, y, "held back")
        if any(mark.wrong for mark in self.diagram.marks):
            self.parts.append(_shape(_WRONG, x + 6.0, y))
            self._legend_text(x + 18.0, y, self.diagram.wrong_means)
        return y + 20.0

    def _legend_text(self, x: float, y: float, text: str) -> float:
        self._text(x, y + 4.0, text, "small")
        return x + len(text) * 6.2 + 22.0

    # -- drawing ----------------------------------------------------------------------------

    def _line(self, css: str, x1: float, y1: float, x2: float, y2: float) -> None:
        self.parts.append(
            f'<line class={quoteattr(css)} x1="{x1:.1f}" y1="{y1:.1f}" '
            f'x2="{x2:.1f}" y2="{y2:.1f}"/>'
        )

    def _text(self, x: float, y: float, text: str, css: str, anchor: str = "start") -> None:
        self.parts.append(
            f'<text class={quoteattr(css)} x="{x:.1f}" y="{y:.1f}" '
            f'text-anchor="{anchor}">{escape(text)}</text>'
        )


_WRONG = "wrong"
_WAITS = "arrived, must wait"
"""Of HOLD: the bar beside it says that it is held back."""


def _shape(kind: str, x: float, y: float) -> str:
    """Return the sign of a kind of mark, or of _WRONG, around a point."""
    match kind:
        case model.SEND:
            return f'<circle class="sent" cx="{x:.1f}" cy="{y:.1f}" r="5"/>'
        case model.HOLD:
            return f'<circle class="hold" cx="{x:.1f}" cy="{y:.1f}" r="4.5"/>'
        case model.DELIVER | model.RELEASE:
            return f'<path class="{kind}" d="M{x:.1f} {y - 6:.1f}l6 6l-6 6l-6-6z"/>'
        case model.DISCARD | model.LOSE:
            return f'<path class="discard" d="M{x - 4:.1f} {y - 4:.1f}l8 8m0-8l-8 8"/>'
        case "wrong":
            return f'<path class="wrong" d="M{x - 6:.1f} {y - 6:.1f}l12 12m0-12l-12 12"/>'
        case model.RECORD:
            return f'<rect class="record" x="{x - 5:.1f}" y="{y - 5:.1f}" width="10" height="10"/>'
    return f'<path class="edge" d="M{x:.1f} {y - 9:.1f}v18"/>'


_VERBS = {
    model.SEND: "sent",
    model.DELIVER: "delivered",
    model.HOLD: "arrives",
    model.RELEASE: "released",
    model.DISCARD: "discarded:",
    model.LOSE: "",
    model.JOIN: "joins",
    model.LEAVE: "leaves",
    model.RECORD: "records",
}


def _why(held: Held) -> str:
    waits = f"waits for {', '.join(held.waits_for)}" if held.waits_for else "is held back"
    return f"{held.label} {waits}"


def _tip(text: str) -> str:
    return f"<title>{escape(text)}</title>"


def _rows(holds: Iterable[Held]) -> dict[Held, int]:
    """Return the row below its lane for each hold, so that bars at the same time do not meet."""
    rows: dict[Held, int] = {}
    free: dict[tuple[int, int], float] = {}
    for held in sorted(holds, key=lambda held: (held.begin, held.label)):
        row = 0
        while free.get((held.lane, row), -math.inf) > held.begin:
            row += 1
        rows[held] = row
        free[held.lane, row] = math.inf if held.end is None else held.end
    return rows


def escape(text: str) -> str:
    """Return text for XML; the control characters that it cannot hold become question marks."""
    return saxutils.escape(_NOT_XML.sub("?", text))
