"""Texts of the command order about the rows that it ordered."""

from __future__ import annotations

from antecede.formatting import counted
from antecede.order.spec import OrderSpec
from antecede.trace import evidence


def how_ordered(spec: OrderSpec, late: int, source: str) -> tuple[str, str]:
    """Say by what events were ordered, and how many waited; both engines say it."""
    causes = {
        evidence.CLOCKS: "vector clocks",
        evidence.CAUSES: "declared parents",
        evidence.SEQUENCE: "each member's own numbers",
    }.get(source, "no causes")
    causes += f" ({evidence.SOURCE}: {source})"
    waited = counted(late, "event")
    return (
        f"            by {causes}; ties by {spec.time}, then identity",
        f"waited      {waited}, by {spec.time}, until a cause was released",
    )


def repeated(rows: int, spec: OrderSpec) -> str:
    """Say how many rows of an id that came before are left out; both engines say it."""
    same = "clock and text" if spec.clock else "member, causes and clock"
    return (
        f"left out    {counted(rows, 'repeated row')}: the first row of an id counts;\n"
        f"            they agree in {same}; other columns were not compared"
    )
