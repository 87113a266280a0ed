"""Space-time diagram as text: one column per member, one row per event.

An arrow shows an arrival; its send is further up, under the same label. The timeline of a member
that holds messages back is heavy.
"""

from __future__ import annotations

from collections.abc import Iterator

from antecede.core import diagram_model
from antecede.core.diagram_model import MEANING, Arrow, Diagram, Mark

MIN_COLUMN, MAX_COLUMN = 6, 16
NOTE_WIDTH = 24
MIN_READABLE_COLUMN = 8

_GLYPH = {
    diagram_model.SEND: "●",
    diagram_model.DELIVER: "◆",
    diagram_model.HOLD: "○",
    diagram_model.RELEASE: "◇",
    diagram_model.DISCARD: "×",
    diagram_model.LOSE: "⊘",
    diagram_model.JOIN: "┬",
    diagram_model.LEAVE: "┴",
    diagram_model.RECORD: "■",
    diagram_model.LOCAL: "•",
}
_VIOLATION = "✗"
_UNNAMED = (diagram_model.JOIN, diagram_model.LEAVE, diagram_model.RECORD)
_RELAYED = "◦"
_ARRIVE = "arrive"
_CODES = {
    "faint": "2",
    "send": "1;34",
    "deliver": "32",
    "hold": "33",
    "release": "33",
    "discard": "2",
    "lose": "31",
    "join": "1",
    "leave": "1",
    "record": "1;35",
    "local": "1",
    "wrong": "1;31",
    "bold": "1",
    "arrow": "36",
}


def draw_text(diagram: Diagram, *, width: int = 80, color: bool = False) -> str:
    """Return lines of at most `width` characters, if possible; `color`: ANSI escape codes."""
    sheet = _TextDiagram(diagram, width)
    lines = [sheet.make_header(), *sheet.make_rows(), _TextLine(0), *sheet.make_legend()]
    return "\n".join(line.render(color) for line in lines)


class _TextLine:
    def __init__(self, width: int) -> None:
        self.cells: list[tuple[str, str]] = [(" ", "")] * width

    def put(self, column: int, text: str, style: str = "") -> None:
        """Write text at a column; text beyond the end is cut with an ellipsis."""
        room = len(self.cells) - column
        if len(text) > room:
            text = text[: max(0, room - 1)] + "…"[: max(0, room)]
        for offset, character in enumerate(text):
            self.cells[column + offset] = (character, style)

    def render(self, color: bool) -> str:
        out: list[str] = []
        current = ""
        for character, style in self.cells:
            if color and style != current:
                out.append("\x1b[0m" if current else "")
                out.append(f"\x1b[{_CODES[style]}m" if style else "")
                current = style
            out.append(character)
        return "".join(out).rstrip() + ("\x1b[0m" if current else "")


class _TextDiagram:
    def __init__(self, diagram: Diagram, width: int) -> None:
        self.diagram = diagram
        lanes = max(1, len(diagram.lanes))
        self.margin = max([len(tick.label) for tick in diagram.ticks] + [4]) + 2
        notes = NOTE_WIDTH if any(mark.note for mark in diagram.marks) else 0
        fair = (width - self.margin - notes) // lanes
        if fair < MIN_READABLE_COLUMN:
            # Omit the notes: the heavy lines show the same, and timelines need the space.
            fair = (width - self.margin) // lanes
        self.column = max(MIN_COLUMN, min(MAX_COLUMN, fair))
        self.notes_at = self.margin + self.column * lanes
        self.width = max(width, self.notes_at)

    def to_column(self, timeline: int) -> int:
        return self.margin + timeline * self.column

    def make_header(self) -> _TextLine:
        line = _TextLine(self.width)
        line.put(0, self.diagram.unit, "faint")
        for number, lane in enumerate(self.diagram.lanes):
            name = lane.name[: self.column - 1]
            line.put(self.to_column(number), name, "bold")
        return line

    def make_rows(self) -> Iterator[_TextLine]:
        diagram = self.diagram
        labels = {tick.at: tick.label for tick in diagram.ticks}
        arrows = {(a.target, a.arrived, a.label): a for a in diagram.arrows}
        seen: set[str] = set()
        marks = sorted(diagram.marks, key=lambda mark: mark.at)
        arrivals = [
            Mark(arrow.target, arrow.arrived, _ARRIVE, arrow.label)
            for arrow in diagram.bare_arrivals()
        ]
        for mark in sorted([*marks, *arrivals], key=lambda mark: mark.at):
            label = labels.get(mark.at, "") if diagram.unit == "step" else f"{mark.at:.0f}"
            shown = "" if label in seen else label
            seen.add(label)
            if mark.kind == diagram_model.LOCAL:
                yield from self._make_local_rows(mark, shown)
            else:
                yield self._make_row(mark, arrows.get((mark.lane, mark.at, mark.label)), shown)

    def _make_local_rows(self, mark: Mark, shown: str) -> Iterator[_TextLine]:
        here = mark.lane, mark.at
        reach = [one for one in self.diagram.arrows if (one.target, one.arrived) == here]
        for arrow in reach[:-1]:
            yield self._make_row(Mark(*here, _ARRIVE, arrow.label), arrow, shown)
            shown = ""
        yield self._make_row(mark, reach[-1] if reach else None, shown)

    def _make_row(self, mark: Mark, arrow: Arrow | None, label: str) -> _TextLine:
        line = _TextLine(self.width)
        line.put(max(0, self.margin - 2 - len(label)), label, "faint")
        self._draw_timelines(line, mark.at)
        if arrow is not None:
            self._draw_arrow(line, arrow)
        x = self.to_column(mark.lane)
        if mark.kind == _ARRIVE:
            line.put(x, _RELAYED, "arrow")
        else:
            glyph = _VIOLATION if mark.wrong else _GLYPH[mark.kind]
            line.put(x, glyph, "wrong" if mark.wrong else mark.kind)
        if arrow is None and mark.kind not in _UNNAMED:
            room = self.column - 3
            line.put(x + 2, mark.label[:room], "wrong" if mark.wrong else "bold")
        if mark.note and self.notes_at + len(mark.label) + 8 <= self.width:
            style = "wrong" if mark.wrong else mark.kind
            line.put(self.notes_at, f"{mark.label} {mark.note}", style)
        elif mark.kind in _UNNAMED and self.notes_at + 8 <= self.width:
            line.put(self.notes_at, f"{mark.label} {MEANING[mark.kind]}", "bold")
        return line

    def _draw_timelines(self, line: _TextLine, at: float) -> None:
        for number, lane in enumerate(self.diagram.lanes):
            if (lane.begin is None or lane.begin <= at) and (lane.end is None or at <= lane.end):
                holds = any(
                    held.lane == number and held.begin < at and (held.end is None or at < held.end)
                    for held in self.diagram.holds
                )
                line.put(self.to_column(number), *(("┃", "hold") if holds else ("│", "faint")))

    def _draw_arrow(self, line: _TextLine, arrow: Arrow) -> None:
        source, target = self.to_column(arrow.source), self.to_column(arrow.target)
        left, right = min(source, target), max(source, target)
        if left == right:
            line.put(left + 2, f"{arrow.label} comes back"[: self.column - 3], "arrow")
            return
        for column in range(left, right + 1):
            crossing = {"│": "┼", "┃": "╂"}.get(line.cells[column][0], "─")
            line.put(column, crossing, "arrow")
        line.put(source, "├" if source == left else "┤", "arrow")
        line.put(target + (1 if target == left else -1), "◀" if target == left else "▶", "arrow")
        name = f" {arrow.label} "[: right - left - 2]
        middle = max(1, (self.column - len(name)) // 2)
        beside = target + middle + 1 if target == left else target - middle - len(name)
        line.put(beside, name, "bold")

    def make_legend(self) -> Iterator[_TextLine]:
        used = {mark.kind for mark in self.diagram.marks}
        parts = [f"{_GLYPH[kind]} {MEANING[kind]}" for kind in _GLYPH if kind in used]
        if self.diagram.bare_arrivals():
            parts.append(f"{_RELAYED} taken in")
        if self.diagram.holds:
            parts.append("┃ holds messages back")
        if any(mark.wrong for mark in self.diagram.marks):
            parts.append(f"{_VIOLATION} {self.diagram.wrong_means}")
        text = ""
        for part in parts:
            if text and len(text) + 3 + len(part) > self.width:
                yield self._make_faint_line(text)
                text = ""
            text = f"{text}   {part}" if text else part
        yield self._make_faint_line(text)

    def _make_faint_line(self, text: str) -> _TextLine:
        line = _TextLine(self.width)
        line.put(0, text, "faint")
        return line
