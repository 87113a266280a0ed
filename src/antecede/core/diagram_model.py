"""Model of a space-time diagram, apart from its drawing.

Theory of operation
-------------------
A `Diagram` has one lane a member, marks on lanes (sent, delivered, ...), arrows from a
sending to an arrival, and holds: stretches of a lane from the arrival of a message to its
delivery. `lab.diagram.scenario_diagram` makes one of a script (time counts steps),
`lab.diagram.trace_window` of a recorded trace (time is milliseconds); `lab.diagram.text` and
`lab.diagram.svg` draw it.
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
"""Kinds of marks. HOLD: a message arrives that must wait; LOSE: one that is lost would arrive."""


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
"""Kinds in the words of a legend."""
EARLY = "delivered before its cause"
"""A mark that is wrong, in these words."""


class Lane(NamedTuple):
    """The time line of one member."""

    name: str
    begin: float | None = None
    """When it joined; None: it was there from the start."""
    end: float | None = None
    """When it left; None: it stayed."""
    forwards: bool = False
    """True for a super peer, which neither sends nor delivers."""


class Mark(NamedTuple):
    """Something that happened on a lane at one time."""

    lane: int
    at: float
    kind: str
    label: str
    note: str = ""
    """A few words on the reason."""
    wrong: bool = False
    """The delivery came before a cause: a violation."""
    faint: bool = False
    """Not what the diagram is about; drawn small and without its name."""


class Arrow(NamedTuple):
    """One copy of a message, from its sending (or forwarding) to its arrival."""

    label: str
    source: int
    sent: float
    target: int
    arrived: float
    faint: bool = False
    flying: bool = False
    """It has not arrived: `arrived` is when the picture ends."""


class Held(NamedTuple):
    """A message that is held back on a lane from its arrival on."""

    lane: int
    label: str
    begin: float
    end: float | None
    """When it was delivered; None: it is held to the end."""
    waits_for: tuple[str, ...] = ()


class State(NamedTuple):
    """What a member's protocol keeps after something happened there, as it is to be written."""

    lane: int
    at: float
    lines: tuple[str, ...]


class Tick(NamedTuple):
    """A time with its label, for the axis."""

    at: float
    label: str


class Diagram(NamedTuple):
    """Everything that is drawn, from `begin` to `end`; an arrow may have been sent before."""

    title: str
    lanes: tuple[Lane, ...]
    marks: tuple[Mark, ...]
    arrows: tuple[Arrow, ...]
    holds: tuple[Held, ...]
    begin: float
    end: float
    unit: str
    """What the time axis counts: "step" or "ms"."""
    ticks: tuple[Tick, ...]
    wrong_means: str = EARLY
    """What a mark that is wrong means."""
    states: tuple[State, ...] = ()
    """Written below the lanes."""

    def bare_arrivals(self) -> tuple[Arrow, ...]:
        """Return the arrows that end without a mark, as at a super peer or in a trace."""
        marked = {(mark.lane, mark.at) for mark in self.marks}
        return tuple(a for a in self.arrows if not a.flying and (a.target, a.arrived) not in marked)

    def words(self) -> str:
        """Return the diagram in a sentence, for readers who do not see it."""
        wrong = [mark for mark in self.marks if mark.wrong]
        sent = sum(mark.kind == SEND for mark in self.marks)
        names = ", ".join(lane.name for lane in self.lanes)
        parts = [f"Space-time diagram of members {names}: {sent} messages are sent"]
        parts += [f"{len(self.holds)} are held back" if self.holds else "none is held back"]
        parts += [f"{self.lanes[m.lane].name} delivers {m.label} {m.note}" for m in wrong]
        return "; ".join(parts) + "."
