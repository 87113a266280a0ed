"""Diagrams for tests: of scenario text, and of a small trace."""

from __future__ import annotations

from antecede.core.diagram_model import Diagram
from antecede.lab.check.scenario.parse import parse_scenario
from antecede.lab.check.scenario.run import run_scenario
from antecede.lab.diagram.scenario_diagram import from_run
from antecede.tables.trace.schema import Event

HELD = (
    "title b waits\nprotocol bss\nmembers P1 P2 P3\nsend P3 a\narrive P2 a\nsend P2 b\n"
    "arrive P1 b\narrive P3 b\narrive P1 a\n"
)
BROKEN = HELD.replace("protocol bss", "protocol bss as_published=true")
HIERARCHY = (
    "protocol hierarchical\ninternal S: A B\nexternal X Y\nsend A m\narrive S m\narrive B m\n"
    "send B n\narrive S n\narrive X n\narrive X m\narrive A m\n"
)
MOVES = (
    "protocol fifo\nmembers A B\nsend A m\njoin C sponsor A\nsend C n\nleave B\narrive A n\n"
    "arrive A n again\n"
)
MS = 1_000_000
T0 = 1_700_000_000_000 * MS


def diagram(text: str) -> Diagram:
    return from_run(run_scenario(parse_scenario(text)))


def row(kind: str, name: str, member: str, at_ms: float, *causes: str) -> Event:
    return Event(kind=kind, id=name, member=member, causes=causes, arrival=T0 + int(at_ms * MS))


def trace() -> list[Event]:
    """Return a trace in which C gets reply y before question x and holds it for 30 ms."""
    return [
        row("send", "x", "A", 0.0),
        row("receive", "x", "B", 10.0),
        row("deliver", "x", "B", 10.1),
        row("send", "y", "B", 20.0, "x"),
        row("receive", "y", "C", 30.0, "x"),
        row("receive", "x", "C", 60.0),
        row("deliver", "x", "C", 60.0),
        row("deliver", "y", "C", 60.0, "x"),
        row("send", "z", "C", 100.0),
        row("receive", "z", "A", 140.0),
        row("deliver", "z", "A", 140.0),
    ]
