"""Model of a space-time diagram, independent of its drawing.

A `Diagram` has one timeline per member, marks on it (sent, delivered, ...), arrows from a send to
an arrival, and holds from the arrival of a message to its delivery. Packages `lab.diagram` and
`lab.play` build and draw it.
"""

from __future__ import annotations

from typing import NamedTuple

SEND, DELIVER, HOLD, RELEASE, DISCARD, LOSE, JOIN, LEAVE, RECORD, LOCAL = (
    "send",
    "deliver",
    "hold",
    "release",
    "discard",
    "lose",
    "join",
    "leave",
    "record",
    "local",
)
"""Kinds of marks. HOLD: a message arrives and must wait. LOSE: a lost message would arrive."""


MEANING = {
    SEND: "sent",
    DELIVER: "delivered",
    HOLD: "arrived, held back",
    RELEASE: "released without its cause",
    DISCARD: "discarded",
    LOSE: "lost on the way",
    JOIN: "joins",
    LEAVE: "leaves",
    RECORD: "records its state",
    LOCAL: "event",
}
VIOLATION = "delivered before its cause"


class Lane(NamedTuple):
    """Lane of one member."""

    name: str
    begin: float | None = None
    """Time of the join; None: present from the start."""
    end: float | None = None
    """Time of the departure; None: never."""
    forwards: bool = False
    """True for a super peer, which neither sends nor delivers."""


class Mark(NamedTuple):
    """Event on a timeline."""

    lane: int
    at: float
    kind: str
    label: str
    note: str = ""
    wrong: bool = False
    """True if the delivery came before a cause."""
    faint: bool = False
    """True for an event off topic, drawn small and without name."""


class Arrow(NamedTuple):
    """One copy of a message, from send (or relay) to arrival."""

    label: str
    source: int
    sent: float
    target: int
    arrived: float
    faint: bool = False
    flying: bool = False
    """True if it has not arrived: `arrived` is the end of the diagram."""


class HeldSpan(NamedTuple):
    """A held message on a timeline, from its arrival."""

    lane: int
    label: str
    begin: float
    end: float | None
    """Time of delivery; None: held to the end."""
    waits_for: tuple[str, ...] = ()


class StateLabel(NamedTuple):
    """Text of a member's protocol state after an event."""

    lane: int
    at: float
    lines: tuple[str, ...]


class AxisTick(NamedTuple):
    """Labelled time on the axis."""

    at: float
    label: str


class Diagram(NamedTuple):
    """Everything drawn from `begin` to `end`. An arrow may start earlier."""

    title: str
    lanes: tuple[Lane, ...]
    marks: tuple[Mark, ...]
    arrows: tuple[Arrow, ...]
    holds: tuple[HeldSpan, ...]
    begin: float
    end: float
    unit: str
    """Unit of the time axis: "step" or "ms"."""
    ticks: tuple[AxisTick, ...]
    wrong_means: str = VIOLATION
    states: tuple[StateLabel, ...] = ()

    def bare_arrivals(self) -> tuple[Arrow, ...]:
        """Return the arrows that end without a mark, as at a super peer or in a trace."""
        marked = {(mark.lane, mark.at) for mark in self.marks}
        return tuple(a for a in self.arrows if not a.flying and (a.target, a.arrived) not in marked)

    def words(self) -> str:
        """Return the diagram as one sentence, for screen readers."""
        wrong = [mark for mark in self.marks if mark.wrong]
        sent = sum(mark.kind == SEND for mark in self.marks)
        names = ", ".join(lane.name for lane in self.lanes)
        parts = [f"Space-time diagram of members {names}: {sent} messages are sent"]
        parts += [f"{len(self.holds)} are held back" if self.holds else "none is held back"]
        parts += [f"{self.lanes[m.lane].name} delivers {m.label} {m.note}" for m in wrong]
        return "; ".join(parts) + "."
