"""Deliveries before a cause of a whole trace: the one count that meter and audit both give.

A run that tells of deliveries is judged by them, any other by its receipts; what causality goes
by is counted in both ways (by delivery, by receipt) where every run tells of both.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from antecede.errors import InputError
from antecede.meter.trace import DELIVERY, RECEIPT
from antecede.meter.violations import SCHEMA, Found, found_in
from antecede.trace.schema import DELIVER, RECEIVE
from antecede.words import count_and_part, counted


@dataclass(frozen=True)
class Early:
    """What came before a cause, and how much was looked at."""

    deliveries: int = 0
    """How many were looked at; 0: the trace tells of none."""
    by: dict[str, int] = field(default_factory=dict)
    """Early ones by what causality goes by; that of `table` first."""
    table: pa.Table = field(default_factory=SCHEMA.empty_table)
    """As `violations.SCHEMA`."""
    partial: int = 0
    """Messages that came to some receiving members only."""
    receipts: bool = False
    """Whether receipts were judged, for want of any row of a delivery."""

    def sentences(self) -> Iterator[str]:
        """Yield a sentence for each way of telling causes; nothing where nothing was judged."""
        if self.deliveries:
            for relation, early in self.by.items():
                part = f"{count_and_part(early, self.deliveries)} of {self.judged()}"
                yield f"{part} came before a cause, by {relation}"

    def judged(self) -> str:
        """Return how many of what were looked at, in words."""
        one, many = ("receipt", "receipts") if self.receipts else ("delivery", "deliveries")
        return counted(self.deliveries, one, many)


def early_deliveries(
    events: pa.Table, relation: str | None = None, *, to_everybody: bool = False
) -> Early:
    """Return the deliveries before a cause; options and errors are those of `found_in`."""
    found = list(found_in(events, relation, to_everybody=to_everybody))
    if not found:
        return Early()
    kinds = {str(kind) for kind in events["kind"].unique().to_pylist()}
    return Early(
        sum(one.checked for one in found),
        _by(events, relation, found, to_everybody, kinds),
        pa.concat_tables([SCHEMA.empty_table(), *(one.table for one in found)]),
        sum(one.partial for one in found),
        DELIVER not in kinds,
    )


def _by(
    events: pa.Table,
    relation: str | None,
    found: Sequence[Found],
    to_everybody: bool,
    kinds: set[str],
) -> dict[str, int]:
    """Count the early deliveries by both causalities, as far as the trace tells of both."""
    chosen = relation or found[0].run.relation
    counts = {chosen: sum(len(one.table) for one in found)}
    for other, kind in ((DELIVERY, DELIVER), (RECEIPT, RECEIVE)):
        if other not in counts and kind in kinds:
            with contextlib.suppress(InputError):  # some run has no such rows
                again = found_in(events, other, to_everybody=to_everybody)
                counts[other] = sum(len(one.table) for one in again)
    return counts
