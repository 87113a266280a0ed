"""Space-time diagram as SVG: one horizontal timeline per member.

Self-contained: no script, font or reference. `lab.diagram.themes` has the colors,
`lab.diagram.svg_layout` places labels. Labels without free space are in tooltips only.
"""

from __future__ import annotations

import functools
import math
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from xml.sax import saxutils
from xml.sax.saxutils import quoteattr

from antecede.core import diagram_model
from antecede.core.diagram_model import MEANING, Arrow, Diagram, Held, Mark
from antecede.lab.diagram.svg_layout import CHARACTER as STATE_CHARACTER
from antecede.lab.diagram.svg_layout import LINE as STATE_LINE
from antecede.lab.diagram.svg_layout import Box, Placing, Point, Written, course, written
from antecede.lab.diagram.themes import IN_PAGE, PAGE, PLAIN_FONT, style_sheet, written_out

WIDTH = 1040.0
LANE_GAP = 76.0
BAR_HEIGHT, BAR_STEP = 15.0, 18.0
CHARACTER = 7.8
"""Average width of bold 12 px text, px."""
SMALL_CHARACTER = 6.4
"""Average width of plain 11 px text, px."""
STATE_TOP = 20.0
"""Distance of states from their timeline, px: space for arrowheads."""
STATE_STEP = 110.0
"""Minimum width of a step with states, px."""
LEGEND_LEFT, LEGEND_CHARACTER = 20.0, 6.2
"""Left end of the legend, and average width of its text, px."""
TITLE_CHARACTER = 8.4
"""Average width of the bold 15 px title, px."""
SMALLEST = 0.8
"""Minimum scale of a diagram in a page that scrolls."""
FLOWN = 0.72
_NOT_XML = re.compile("[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\ud800-\\udfff\\ufffe\\uffff]")


def draw_svg(diagram: Diagram, theme: str = PAGE) -> str:
    """Return the diagram as an SVG document.

    `theme`: "page" follows the reader's scheme; "light", "dark" and "print" write the colors out.
    """
    return draw_stacked([diagram], theme)


def draw_stacked(diagrams: Sequence[Diagram], theme: str = PAGE) -> str:
    """Return diagrams below each other as an SVG document with one legend."""
    pictures = [_Picture(diagram, diagrams) for diagram in diagrams]
    width = max(picture.width for picture in pictures)
    parts: list[str] = []
    y = 0.0
    for picture in pictures:
        picture.paint()
        last = picture is pictures[-1]
        height = picture.legend(width) if last else picture.bottom + 14.0
        shift = f' transform="translate(0 {y:.1f})"' if y else ""
        parts += [f"<g{shift}>", *picture.parts, "</g>"]
        y += height
    return _document(diagrams, parts, width, y, theme)


def _document(
    diagrams: Sequence[Diagram], parts: Sequence[str], width: float, height: float, theme: str
) -> str:
    title = " / ".join(dict.fromkeys(one.title for one in diagrams if one.title))
    words = " ".join(one.words() for one in diagrams)
    # A page may have several diagrams, whose ids must differ.
    key = f"ac{zlib.crc32((title + words).encode()):08x}"
    paper = f'<rect class="paper" width="{width:.0f}" height="{height:.0f}" rx="8"/>'
    shapes, look, style = [paper, *parts], 'class="ac"', [f"<style>{style_sheet(theme)}</style>"]
    least = f";min-width:{SMALLEST * width:.0f}px" if theme == IN_PAGE else ""
    if theme not in (PAGE, IN_PAGE):
        shapes = written_out(shapes, theme)
        look, style = f'font-family="{PLAIN_FONT}" font-size="12"', []
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" {look} role="img" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
            f'height="{height:.0f}" aria-labelledby="{key}t {key}d" '
            f'style="max-width:100%;height:auto{least}">',
            f'<title id="{key}t">{escape(title or "Space-time diagram")}</title>',
            f'<desc id="{key}d">{escape(words)}</desc>',
            *style,
            *shapes,
            "</svg>",
        )
    )


class _Picture:
    def __init__(self, diagram: Diagram, together: Sequence[Diagram]) -> None:
        self.diagram, self.together = diagram, together
        self.rows = _rows(diagram.holds)
        names = max((len(lane.name) for one in together for lane in one.lanes), default=0)
        self.left = 38.0 + names * 9.6
        self.span = max(diagram.end - diagram.begin, 1e-9)
        room = WIDTH - self.left - 40.0
        if diagram.unit == "step":
            least = STATE_STEP if any(one.states for one in together) else 46.0
            room = self.span * min(max(92.0, least), max(least, room / self.span))
        self.room = room
        self.top = 78.0 if diagram.title else 48.0
        self.states = [self._written(lane) for lane in range(len(diagram.lanes))]
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
        lane %= max(1, len(self.diagram.lanes))
        states = self.states[lane][1] if self.states else 0.0
        return self._bars_depth(lane) + (states + STATE_TOP - 6.0 if states else 0.0)

    def _bars_depth(self, lane: int) -> float:
        used = [row for held, row in self.rows.items() if held.lane == lane]
        return (max(used) + 1) * BAR_STEP if used else 0.0

    def _written(self, lane: int) -> tuple[list[Written], float]:
        own = [state for state in self.diagram.states if state.lane == lane]
        return written(own, self.x, self.left - 8.0, self.left + self.room + 34.0)

    def x(self, at: float) -> float:
        return self.left + (at - self.diagram.begin) / self.span * self.room

    def paint(self) -> None:
        self._axis()
        self._lanes()
        for held in self.diagram.holds:
            self._bar(held)
        for arrow in sorted(self.diagram.arrows, key=lambda arrow: not arrow.faint):
            self._arrow(arrow)
        for arrow in self.diagram.bare_arrivals():
            self._passed_on(arrow)
        for lane in range(len(self.diagram.lanes)):
            self._write_states(lane)
        for held in self.diagram.holds:
            self._reason(held)
        for mark in sorted(self.diagram.marks, key=lambda mark: not mark.faint):
            self._mark(mark)
        for mark in sorted(self.diagram.marks, key=lambda mark: not mark.wrong):
            if not mark.faint:
                self._label(mark)

    @property
    def width(self) -> float:
        title = 40.0 + len(self.diagram.title) * TITLE_CHARACTER
        return max(self.left + self.room + 40.0, title)

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
        if arrow.flying:  # cut at the end of the diagram
            y2 = y1 + (y2 - y1) * FLOWN
        if x1 < self.left:
            # Sent before the start of the diagram: cut the line at the edge.
            x1, y1 = self.left, y2 + (y1 - y2) * (x2 - self.left) / (x2 - x1)
        way = course((x1, y1), (x2, y2), self._passed_by(arrow))
        late = any(
            mark.wrong and (mark.lane, mark.label) == (arrow.target, arrow.label)
            for mark in self.diagram.marks
        )
        red = (" late", " late-head") if late else ("", "")
        red = (" flying", "") if arrow.flying else red
        dim = ' class="dim"' if arrow.faint else ""
        self.parts.append(f"<g{dim}>{_tip(self._journey(arrow))}")
        self.parts.append(f'<path class="arrow{red[0]}" d="{way.shaft()}"/>')
        head = way.head()
        corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in head)
        self.parts.append(f'<polygon class="head{red[1]}" points="{corners}"/></g>')
        if not arrow.faint:
            across, down = zip(*head, strict=True)
            self.placing.block(Box(min(across), min(down), max(across), max(down)))
            for piece in way.pieces():
                self.placing.line(*piece)
        if arrow.flying:
            self._still(arrow.label, x2, y2)

    def _passed_by(self, arrow: Arrow) -> list[Point]:
        low, high = sorted((arrow.source, arrow.target))
        return [
            (self.x(mark.at), self.lane_y[mark.lane])
            for mark in self.diagram.marks
            if low < mark.lane < high
        ]

    def _still(self, label: str, x: float, y: float) -> None:
        half = len(label) * SMALL_CHARACTER / 2
        box = self.placing.take(
            [
                Box(x + dx - half, y + dy - 11.0, x + dx + half, y + dy + 3.0)
                for dx, dy in ((half + 10.0, 4.0), (-half - 8.0, 4.0), (0.0, -8.0), (0.0, 18.0))
            ]
        )
        if box is not None:
            self._text((box.left + box.right) / 2, box.bottom - 3.0, label, "small", "middle")

    def _journey(self, arrow: Arrow) -> str:
        names = [lane.name for lane in self.diagram.lanes]
        text = f"{arrow.label}: {names[arrow.source]} to {names[arrow.target]}"
        if arrow.flying:
            return f"{text}, still in flight"
        if self.diagram.unit == "step":
            return text
        return f"{text}, {arrow.arrived - arrow.sent:.1f} {self.diagram.unit} in flight"

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
        """Write the missing causes into the bar, or beside it if there is space."""
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

    def _write_states(self, lane: int) -> None:
        top = self.lane_y[lane] + max(STATE_TOP, self._bars_depth(lane) + 10.0)
        for state, left, below in self.states[lane][0]:
            y = top + below
            width = max(map(len, state.lines)) * STATE_CHARACTER
            height = len(state.lines) * STATE_LINE + 4.0
            self.placing.block(Box(left - 8.0, y, left + width + 4.0, y + height))
            # Arrows are drawn behind the text.
            self.parts.append(
                f'<rect class="card" x="{left - 3.0:.1f}" y="{y:.1f}" width="{width + 3.0:.1f}" '
                f'height="{height:.1f}" rx="3"/>'
            )
            x = self.x(state.at)
            self._line("grid", x, self.lane_y[lane] + 8.0, x, y + 1.0)
            for k, line in enumerate(state.lines, 1):
                self._text(left, y + k * STATE_LINE, line, "state")

    def _within(self, box: Box) -> bool:
        return box.left >= self.left - 14.0 and box.right <= self.left + self.room + 36.0

    def _passed_on(self, arrow: Arrow) -> None:
        x, y = self.x(arrow.arrived), self.lane_y[arrow.target]
        self.parts.append(f'<circle class="passed" cx="{x:.1f}" cy="{y:.1f}" r="3"/>')

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
        elif mark.kind in (diagram_model.JOIN, diagram_model.LEAVE, diagram_model.RECORD):
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

    def legend(self, right: float) -> float:
        """Draw the legend of all diagrams up to the x `right`; return the total height."""
        x, y = LEGEND_LEFT, self.bottom + 26.0
        for room, draw, text in self._legend_entries():
            after = x + room + len(text) * LEGEND_CHARACTER
            if after > right and x > LEGEND_LEFT:
                x, y = LEGEND_LEFT, y + 20.0
                after = x + room + len(text) * LEGEND_CHARACTER
            self.parts.append(draw(x, y))
            self._text(x + room, y + 4.0, text, "small")
            x = after + 22.0
        return y + 20.0

    def _legend_entries(self) -> Iterator[tuple[float, Callable[[float, float], str], str]]:
        marks = [mark for one in self.together for mark in one.marks]
        used = {mark.kind for mark in marks if not mark.wrong}
        for kind in (
            k for k in MEANING if k in used and k not in (diagram_model.JOIN, diagram_model.LEAVE)
        ):
            sign = functools.partial(_small_shape, kind)
            yield 18.0, sign, _WAITS if kind == diagram_model.HOLD else MEANING[kind]
        if any(one.holds for one in self.together):
            yield 32.0, _small_bar, "held back"
        if any(arrow.flying for one in self.together for arrow in one.arrows):
            yield 32.0, _small_arrow, "still in flight"
        if any(mark.wrong for mark in marks):
            yield 18.0, functools.partial(_small_shape, _WRONG), self.diagram.wrong_means

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


def _small_shape(kind: str, x: float, y: float) -> str:
    return _shape(kind, x + 6.0, y)


def _small_bar(x: float, y: float) -> str:
    return f'<rect class="bar" x="{x:.1f}" y="{y - 7:.1f}" width="26" height="14" rx="3"/>'


def _small_arrow(x: float, y: float) -> str:
    return f'<path class="arrow flying" d="M{x:.1f} {y:.1f}L{x + 26:.1f} {y:.1f}"/>'


_WRONG = "wrong"
_WAITS = "arrived, must wait"
"""HOLD in the legend; the bar beside it means "held back"."""


def _shape(kind: str, x: float, y: float) -> str:
    """Return the symbol of a kind of mark, or of _VIOLATION, around a point."""
    match kind:
        case diagram_model.SEND:
            return f'<circle class="sent" cx="{x:.1f}" cy="{y:.1f}" r="5"/>'
        case diagram_model.LOCAL:
            return f'<circle class="local" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>'
        case diagram_model.HOLD:
            return f'<circle class="hold" cx="{x:.1f}" cy="{y:.1f}" r="4.5"/>'
        case diagram_model.DELIVER | diagram_model.RELEASE:
            return f'<path class="{kind}" d="M{x:.1f} {y - 6:.1f}l6 6l-6 6l-6-6z"/>'
        case diagram_model.DISCARD | diagram_model.LOSE:
            return f'<path class="discard" d="M{x - 4:.1f} {y - 4:.1f}l8 8m0-8l-8 8"/>'
        case "wrong":
            return f'<path class="wrong" d="M{x - 6:.1f} {y - 6:.1f}l12 12m0-12l-12 12"/>'
        case diagram_model.RECORD:
            return f'<rect class="record" x="{x - 5:.1f}" y="{y - 5:.1f}" width="10" height="10"/>'
    return f'<path class="edge" d="M{x:.1f} {y - 9:.1f}v18"/>'


_VERBS = {
    diagram_model.SEND: "sent",
    diagram_model.DELIVER: "delivered",
    diagram_model.HOLD: "arrives",
    diagram_model.RELEASE: "released",
    diagram_model.DISCARD: "discarded:",
    diagram_model.LOSE: "",
    diagram_model.JOIN: "joins",
    diagram_model.LEAVE: "leaves",
    diagram_model.RECORD: "records",
    diagram_model.LOCAL: "",
}


def _why(held: Held) -> str:
    waits = f"waits for {', '.join(held.waits_for)}" if held.waits_for else "is held back"
    return f"{held.label} {waits}"


def _tip(text: str) -> str:
    return f"<title>{escape(text)}</title>"


def _rows(holds: Iterable[Held]) -> dict[Held, int]:
    """Return a row below its timeline for each hold; simultaneous bars get different rows."""
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
    """Escape text for XML; invalid control characters become question marks."""
    return saxutils.escape(_NOT_XML.sub("?", text))
