"""Texts of the command order about the rows that it ordered."""

from __future__ import annotations

import textwrap

from antecede.formatting import counted
from antecede.tables.order import OrderSpec
from antecede.tables.trace import evidence


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


def print_no_causes(why: str) -> None:
    """Print that the order is by ties alone; both engines print it."""
    text = f"no causes   the order is by ties: {why}"
    print(textwrap.fill(text, 100, subsequent_indent=" " * 12, break_on_hyphens=False))


def missing_words(spec: OrderSpec, events: int, names: int) -> str:
    """Return the line on causes that are nowhere; both engines print it."""
    if spec.sender is not None:
        return f"missing     {counted(events, 'gap')} in members' own numbers"
    where = "the trace" if spec.group is None else "their run"
    return (
        f"missing     {counted(events, 'event')} with causes that are nowhere in {where}: "
        f"{counted(names, 'reference')}"
    )
