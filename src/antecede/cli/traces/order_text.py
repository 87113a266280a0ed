"""Lines that `antecede order` prints with both engines."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from antecede.formatting import pluralize
from antecede.tables.order import OrderSpec, Prepared
from antecede.tables.trace import evidence, time_text
from antecede.tables.trace.user_tables import describe_guessed_columns, list_separators

if TYPE_CHECKING:
    from antecede.spark.sources import Done


def print_ordered(spec: OrderSpec, late: int, source: str, lacking: int, names: int) -> None:
    """Print the source of order, and the numbers of events that waited or lack a cause."""
    causes = {
        evidence.CLOCKS: "vector clocks",
        evidence.CAUSES: "declared causes",
        evidence.SEQUENCE: "each member's sequence numbers",
    }.get(source, "no causes")
    causes += f" ({evidence.SOURCE}: {source})"
    print(f"            by {causes}; ties by {spec.time}, then id")
    print(f"waited      {pluralize(late, 'event')}, by {spec.time}, until a cause was released")
    if lacking and spec.sender is not None:
        print(f"missing     {pluralize(lacking, 'gap')} in the sequence numbers of members")
    elif lacking:
        where = "the trace" if spec.group is None else "their run"
        print(
            f"missing     {pluralize(lacking, 'event')} with causes that are not in {where}: "
            f"{pluralize(names, 'reference')}"
        )


def print_joined_ids(hint: Mapping[str, Any], sample: str = "") -> None:
    """Print finding and remedy of `several_in_one`; `sample`: the references it is about."""
    if hint:
        finding, remedy = list_separators.words(hint)
        print(f"            {sample}{finding}")
        print(f"            {remedy}")


def print_no_causes(why: str) -> None:
    """Print that only ties decide the order."""
    text = f"no causes   the order is by ties: {why}"
    print(textwrap.fill(text, 100, subsequent_indent=" " * 12, break_on_hyphens=False))


def print_columns(details: Mapping[str, Any], topics: int, renamed: Mapping[str, str]) -> None:
    """Print guesses about columns, and columns that were added under another name."""
    if text := describe_guessed_columns(details):
        print(f"columns     {text}")
    for text in time_text.notes(details):
        print(f"times       {text}")
    if topics:
        print(f"positions   within each of {pluralize(topics, 'topic')}; causes hold across them")
    for name, written in renamed.items():
        print(f"renamed     the added column {name} is {written}: the table has a {name} already")


def print_excluded(of: Prepared | Done) -> None:
    """Print the rows and causes that the order excludes."""
    if of.receipts or of.deliveries:
        print(
            f"excluded    {pluralize(of.receipts, 'receipt')} and "
            f"{pluralize(of.deliveries, 'delivery', 'deliveries')}: the message itself is one event"
        )
    if of.duplicates:
        same = "clock and text" if of.spec.clock else "member, causes and clock"
        rows = pluralize(of.duplicates, "repeated row")
        print(f"excluded    {rows}: the first row of an id counts;")
        print(f"            {same} agree; other columns were not compared")
    for what, fate in of.causes.notes():
        print(f"causes      {what}, {fate}")


def print_quarantined(reasons: Mapping[str, int], where: Path | str) -> None:
    """Print the number of quarantined rows by reason; nothing for none."""
    if rows := sum(reasons.values()):
        print(f"quarantined {pluralize(rows, 'row')}, with reasons -> {where}")
    for reason, count in reasons.items():
        print(f"            {count:,} {reason}")
