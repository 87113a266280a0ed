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
from antecede.core.diagram_model import MEANING, Arrow, Diagram, HeldSpan, Mark
from antecede.lab.diagram.svg_layout import CHARACTER as STATE_CHARACTER
from antecede.lab.diagram.svg_layout import LINE as STATE_LINE
from antecede.lab.diagram.svg_layout import (
    Box,
    LabelPlacement,
    PlacedState,
    Point,
    find_route,
    place_states,
)
from antecede.lab.diagram.themes import IN_PAGE, PAGE, PLAIN_FONT, inline_styles, make_style_sheet

WIDTH = 1040.0
TIMELINE_GAP = 76.0
BAR_HEIGHT, BAR_STEP = 15.0, 18.0
CHARACTER = 7.8
"""Average width of bold 12 px text, px."""
SMALL_CHARACTER = 6.4
STATE_TOP = 20.0
"""Distance of states from their timeline, px: space for arrowheads."""
MIN_STATE_WIDTH = 110.0
"""Minimum width of a step with states, px."""
LEGEND_LEFT, LEGEND_CHARACTER = 20.0, 6.2
"""Left end of the legend, and average width of its text, px."""
TITLE_CHARACTER = 8.4
MIN_SCALE = 0.8
"""Minimum scale of a diagram in a page that scrolls."""
IN_FLIGHT_PART = 0.72
_NOT_XML = re.compile("[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\ud800-\\udfff\\ufffe\\uffff]")


def draw_svg(diagram: Diagram, theme: str = PAGE) -> str:
    """Return an SVG document; `theme`: "page" (the reader's scheme), "light", "dark", "print"."""
    return draw_stacked([diagram], theme)


def draw_stacked(diagrams: Sequence[Diagram], theme: str = PAGE) -> str:
    """Return diagrams below each other as an SVG document with one legend."""
    pictures = [_SvgDiagram(diagram, diagrams) for diagram in diagrams]
    width = max(picture.width for picture in pictures)
    parts: list[str] = []
    y = 0.0
    for picture in pictures:
        picture.paint()
        last = picture is pictures[-1]
        height = picture.draw_legend(width) if last else picture.bottom + 14.0
        shift = f' transform="translate(0 {y:.1f})"' if y else ""
        parts += [f"<g{shift}>", *picture.parts, "</g>"]
        y += height
    return _make_document(diagrams, parts, width, y, theme)


def _make_document(
    diagrams: Sequence[Diagram], parts: Sequence[str], width: float, height: float, theme: str
) -> str:
    title = " / ".join(dict.fromkeys(one.title for one in diagrams if one.title))
    words = " ".join(one.words() for one in diagrams)
    # A page may have several diagrams, whose ids must differ.
    key = f"ac{zlib.crc32((title + words).encode()):08x}"
    paper = f'<rect class="paper" width="{width:.0f}" height="{height:.0f}" rx="8"/>'
    shapes, look, style = (
        [paper, *parts],
        'class="ac"',
        [f"<style>{make_style_sheet(theme)}</style>"],
    )
    least = f";min-width:{MIN_SCALE * width:.0f}px" if theme == IN_PAGE else ""
    if theme not in (PAGE, IN_PAGE):
        shapes = inline_styles(shapes, theme)
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


class _SvgDiagram:
    def __init__(self, diagram: Diagram, diagrams: Sequence[Diagram]) -> None:
        self.diagram, self.diagrams = diagram, diagrams
        self.rows = _assign_rows(diagram.holds)
        names = max((len(lane.name) for one in diagrams for lane in one.lanes), default=0)
        self.left = 38.0 + names * 9.6
        self.span = max(diagram.end - diagram.begin, 1e-9)
        room = WIDTH - self.left - 40.0
        if diagram.unit == "step":
            least = MIN_STATE_WIDTH if any(one.states for one in diagrams) else 46.0
            room = self.span * min(max(92.0, least), max(least, room / self.span))
        self.drawing_width = room
        self.top = 78.0 if diagram.title else 48.0
        self.states = [self._place_states(lane) for lane in range(len(diagram.lanes))]
        self.timeline_y = self._compute_timeline_y()
        self.bottom = (
            (self.timeline_y[-1] if self.timeline_y else self.top) + self._compute_depth(-1) + 34.0
        )
        self.labels = LabelPlacement()
        self.parts: list[str] = []

    def _compute_timeline_y(self) -> list[float]:
        y, positions = self.top, []
        for lane in range(len(self.diagram.lanes)):
            positions.append(y)
            y += TIMELINE_GAP + max(0.0, self._compute_depth(lane) - BAR_STEP)
        return positions

    def _compute_depth(self, timeline: int) -> float:
        timeline %= max(1, len(self.diagram.lanes))
        states = self.states[timeline][1] if self.states else 0.0
        return self._compute_bars_depth(timeline) + (states + STATE_TOP - 6.0 if states else 0.0)

    def _compute_bars_depth(self, timeline: int) -> float:
        used = [row for held, row in self.rows.items() if held.lane == timeline]
        return (max(used) + 1) * BAR_STEP if used else 0.0

    def _place_states(self, timeline: int) -> tuple[list[PlacedState], float]:
        own = [state for state in self.diagram.states if state.lane == timeline]
        return place_states(own, self.to_x, self.left - 8.0, self.left + self.drawing_width + 34.0)

    def to_x(self, at: float) -> float:
        return self.left + (at - self.diagram.begin) / self.span * self.drawing_width

    def paint(self) -> None:
        self._draw_axis()
        self._draw_timelines()
        for held in self.diagram.holds:
            self._draw_bar(held)
        for arrow in sorted(self.diagram.arrows, key=lambda arrow: not arrow.faint):
            self._draw_arrow(arrow)
        for arrow in self.diagram.bare_arrivals():
            self._draw_relay(arrow)
        for lane in range(len(self.diagram.lanes)):
            self._draw_states(lane)
        for held in self.diagram.holds:
            self._draw_reason(held)
        for mark in sorted(self.diagram.marks, key=lambda mark: not mark.faint):
            self._draw_mark(mark)
        for mark in sorted(self.diagram.marks, key=lambda mark: not mark.wrong):
            if not mark.faint:
                self._draw_label(mark)

    @property
    def width(self) -> float:
        title = 40.0 + len(self.diagram.title) * TITLE_CHARACTER
        return max(self.left + self.drawing_width + 40.0, title)

    def _draw_axis(self) -> None:
        if self.diagram.title:
            self._draw_text(20.0, 28.0, self.diagram.title, "title")
        y = self.bottom
        for tick in self.diagram.ticks:
            x = self.to_x(tick.at)
            self._draw_line("grid", x, self.top - 18.0, x, y - 14.0)
            self._draw_text(x, y, tick.label, "small", anchor="middle")
        self._draw_text(20.0, y, self.diagram.unit, "small")

    def _draw_timelines(self) -> None:
        for number, lane in enumerate(self.diagram.lanes):
            y = self.timeline_y[number]
            begin = self.diagram.begin if lane.begin is None else lane.begin
            end = self.diagram.end if lane.end is None else lane.end
            self._draw_text(20.0, y + 5.0, lane.name, "name")
            self.labels.block(Box(0.0, y - 10.0, self.left - 4.0, y + 8.0))
            if lane.forwards:
                self._draw_text(20.0, y + 20.0, "forwards", "small")
            self._draw_line("timeline", self.to_x(begin), y, self.to_x(end), y)
            self.labels.add_line(self.to_x(begin), y, self.to_x(end), y)

    def _draw_arrow(self, arrow: Arrow) -> None:
        x1, y1 = self.to_x(arrow.sent), self.timeline_y[arrow.source]
        x2, y2 = self.to_x(arrow.arrived), self.timeline_y[arrow.target]
        if arrow.flying:  # cut at the end of the diagram
            y2 = y1 + (y2 - y1) * IN_FLIGHT_PART
        if x1 < self.left:
            # Sent before the start of the diagram: cut the line at the edge.
            x1, y1 = self.left, y2 + (y1 - y2) * (x2 - self.left) / (x2 - x1)
        way = find_route((x1, y1), (x2, y2), self._find_passed_marks(arrow))
        late = any(
            mark.wrong and (mark.lane, mark.label) == (arrow.target, arrow.label)
            for mark in self.diagram.marks
        )
        red = (" late", " late-head") if late else ("", "")
        red = (" flying", "") if arrow.flying else red
        dim = ' class="dim"' if arrow.faint else ""
        self.parts.append(f"<g{dim}>{_make_tooltip(self._describe_arrow(arrow))}")
        self.parts.append(f'<path class="arrow{red[0]}" d="{way.to_path()}"/>')
        head = way.compute_head()
        corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in head)
        self.parts.append(f'<polygon class="head{red[1]}" points="{corners}"/></g>')
        if not arrow.faint:
            across, down = zip(*head, strict=True)
            self.labels.block(Box(min(across), min(down), max(across), max(down)))
            for piece in way.to_segments():
                self.labels.add_line(*piece)
        if arrow.flying:
            self._label_in_flight(arrow.label, x2, y2)

    def _find_passed_marks(self, arrow: Arrow) -> list[Point]:
        low, high = sorted((arrow.source, arrow.target))
        return [
            (self.to_x(mark.at), self.timeline_y[mark.lane])
            for mark in self.diagram.marks
            if low < mark.lane < high
        ]

    def _label_in_flight(self, label: str, x: float, y: float) -> None:
        half = len(label) * SMALL_CHARACTER / 2
        box = self.labels.place(
            [
                Box(x + dx - half, y + dy - 11.0, x + dx + half, y + dy + 3.0)
                for dx, dy in ((half + 10.0, 4.0), (-half - 8.0, 4.0), (0.0, -8.0), (0.0, 18.0))
            ]
        )
        if box is not None:
            self._draw_text((box.left + box.right) / 2, box.bottom - 3.0, label, "small", "middle")

    def _describe_arrow(self, arrow: Arrow) -> str:
        names = [lane.name for lane in self.diagram.lanes]
        text = f"{arrow.label}: {names[arrow.source]} to {names[arrow.target]}"
        if arrow.flying:
            return f"{text}, still on its way"
        if self.diagram.unit == "step":
            return text
        return f"{text}, {arrow.arrived - arrow.sent:.1f} {self.diagram.unit} on its way"

    def _draw_bar(self, held: HeldSpan) -> None:
        box = self._compute_bar_box(held)
        still = " to the end" if held.end is None else ""
        self.parts.append(
            f"<g>{_make_tooltip(_describe_hold(held) + still)}"
            f'<rect class="bar" x="{box.left:.1f}" y="{box.top:.1f}" '
            f'width="{box.right - box.left:.1f}" height="{BAR_HEIGHT}" rx="3"/></g>'
        )
        self.labels.block(box)

    def _compute_bar_box(self, held: HeldSpan) -> Box:
        left = self.to_x(held.begin)
        right = self.to_x(self.diagram.end if held.end is None else held.end)
        top = self.timeline_y[held.lane] + 8.0 + self.rows[held] * BAR_STEP
        return Box(left, top, max(left + 3.0, right), top + BAR_HEIGHT)

    def _draw_reason(self, held: HeldSpan) -> None:
        bar, text = self._compute_bar_box(held), _describe_hold(held)
        width = len(text) * SMALL_CHARACTER + 8.0
        if width <= bar.right - bar.left:
            self._draw_text(bar.left + 5.0, bar.top + 11.5, text, "why")
            return
        places = [
            Box(left, top, left + width, top + BAR_HEIGHT)
            for left, top in (
                (bar.right + 2.0, bar.top),
                (bar.left - width - 2.0, bar.top),
                (bar.left, bar.bottom + 1.0),
            )
        ]
        box = self.labels.place([place for place in places if self._is_within(place)])
        if box is not None:
            self._draw_text(box.left + 4.0, box.top + 11.5, text, "why beside")

    def _draw_states(self, timeline: int) -> None:
        top = self.timeline_y[timeline] + max(STATE_TOP, self._compute_bars_depth(timeline) + 10.0)
        for state, left, below in self.states[timeline][0]:
            y = top + below
            width = max(map(len, state.lines)) * STATE_CHARACTER
            height = len(state.lines) * STATE_LINE + 4.0
            self.labels.block(Box(left - 8.0, y, left + width + 4.0, y + height))
            # Arrows are drawn behind the text.
            self.parts.append(
                f'<rect class="card" x="{left - 3.0:.1f}" y="{y:.1f}" width="{width + 3.0:.1f}" '
                f'height="{height:.1f}" rx="3"/>'
            )
            x = self.to_x(state.at)
            self._draw_line("grid", x, self.timeline_y[timeline] + 8.0, x, y + 1.0)
            for k, line in enumerate(state.lines, 1):
                self._draw_text(left, y + k * STATE_LINE, line, "state")

    def _is_within(self, box: Box) -> bool:
        return box.left >= self.left - 14.0 and box.right <= self.left + self.drawing_width + 36.0

    def _draw_relay(self, arrow: Arrow) -> None:
        x, y = self.to_x(arrow.arrived), self.timeline_y[arrow.target]
        self.parts.append(f'<circle class="passed" cx="{x:.1f}" cy="{y:.1f}" r="3"/>')

    def _draw_mark(self, mark: Mark) -> None:
        x, y = self.to_x(mark.at), self.timeline_y[mark.lane]
        what = f"{self.diagram.lanes[mark.lane].name}: {mark.label} {_VERBS[mark.kind]}"
        tip = _make_tooltip(f"{what} {mark.note}".strip())
        shape = _make_shape(_VIOLATION if mark.wrong else mark.kind, x, y)
        dim = ' class="dim"' if mark.faint else ""
        self.parts.append(f"<g{dim}>{tip}{shape}</g>")
        if mark.faint:
            return
        self.labels.block(Box(x - 6.0, y - 6.0, x + 6.0, y + 6.0))

    def _draw_label(self, mark: Mark) -> None:
        text, css = mark.label, "label"
        if mark.wrong:
            text, css = f"{mark.label} {mark.note}", "label bad"
        elif mark.kind in (diagram_model.JOIN, diagram_model.LEAVE, diagram_model.RECORD):
            text, css = _VERBS[mark.kind], "small"
        x, y = self.to_x(mark.at), self.timeline_y[mark.lane]
        half = len(text) * CHARACTER / 2
        candidates = [
            Box(centre - half, base - 11.0, centre + half, base + 3.0)
            for base in (y - 10.0, y + 20.0, y - 24.0)
            for centre in (x, x + half + 4.0, x - half - 4.0)
        ]
        box = self.labels.place([box for box in candidates if self._is_within(box)])
        if box is not None:
            self._draw_text(
                (box.left + box.right) / 2, box.bottom - 3.0, text, css, anchor="middle"
            )

    def draw_legend(self, right: float) -> float:
        """Draw the legend of all diagrams up to the x `right`; return the total height."""
        x, y = LEGEND_LEFT, self.bottom + 26.0
        for room, draw, text in self._list_legend_entries():
            after = x + room + len(text) * LEGEND_CHARACTER
            if after > right and x > LEGEND_LEFT:
                x, y = LEGEND_LEFT, y + 20.0
                after = x + room + len(text) * LEGEND_CHARACTER
            self.parts.append(draw(x, y))
            self._draw_text(x + room, y + 4.0, text, "small")
            x = after + 22.0
        return y + 20.0

    def _list_legend_entries(self) -> Iterator[tuple[float, Callable[[float, float], str], str]]:
        marks = [mark for one in self.diagrams for mark in one.marks]
        used = {mark.kind for mark in marks if not mark.wrong}
        for kind in (
            k for k in MEANING if k in used and k not in (diagram_model.JOIN, diagram_model.LEAVE)
        ):
            sign = functools.partial(_make_small_shape, kind)
            yield 18.0, sign, _HOLD_TEXT if kind == diagram_model.HOLD else MEANING[kind]
        if any(one.holds for one in self.diagrams):
            yield 32.0, _make_small_bar, "held back"
        if any(arrow.flying for one in self.diagrams for arrow in one.arrows):
            yield 32.0, _make_small_arrow, "still on its way"
        if any(mark.wrong for mark in marks):
            yield 18.0, functools.partial(_make_small_shape, _VIOLATION), self.diagram.wrong_means

    def _draw_line(self, css: str, x1: float, y1: float, x2: float, y2: float) -> None:
        self.parts.append(
            f'<line class={quoteattr(css)} x1="{x1:.1f}" y1="{y1:.1f}" '
            f'x2="{x2:.1f}" y2="{y2:.1f}"/>'
        )

    def _draw_text(self, x: float, y: float, text: str, css: str, anchor: str = "start") -> None:
        self.parts.append(
            f'<text class={quoteattr(css)} x="{x:.1f}" y="{y:.1f}" '
            f'text-anchor="{anchor}">{escape(text)}</text>'
        )


def _make_small_shape(kind: str, x: float, y: float) -> str:
    return _make_shape(kind, x + 6.0, y)


def _make_small_bar(x: float, y: float) -> str:
    return f'<rect class="bar" x="{x:.1f}" y="{y - 7:.1f}" width="26" height="14" rx="3"/>'


def _make_small_arrow(x: float, y: float) -> str:
    return f'<path class="arrow flying" d="M{x:.1f} {y:.1f}L{x + 26:.1f} {y:.1f}"/>'


_VIOLATION = "wrong"
_HOLD_TEXT = "arrived, must wait"
"""HOLD in the legend; the bar beside it means "held back"."""


def _make_shape(kind: str, x: float, y: float) -> str:
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


def _describe_hold(held: HeldSpan) -> str:
    waits = f"waits for {', '.join(held.waits_for)}" if held.waits_for else "is held back"
    return f"{held.label} {waits}"


def _make_tooltip(text: str) -> str:
    return f"<title>{escape(text)}</title>"


def _assign_rows(holds: Iterable[HeldSpan]) -> dict[HeldSpan, int]:
    rows: dict[HeldSpan, int] = {}
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
