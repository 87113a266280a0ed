"""Chandy-Lamport snapshot algorithm (1985) for FIFO channels.

A member that records sends a marker on every channel before anything else. The first marker makes
its receiver record, and the channel of that marker was empty. Messages on another channel before
its marker were in transit. A message that overtakes the marker is inside at its receiver and
outside at its sender (`antecede snapshot chandy-lamport --channels any`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from antecede.core.global_snapshots.base import (
    Algorithm,
    Content,
    Effect,
    Marker,
    Record,
    Tell,
)
from antecede.errors import SequenceError


class ChandyLamport(Algorithm):
    """One member's state machine. Control information: one marker per channel and snapshot."""

    def __init__(self, me: str, members: Iterable[str]) -> None:
        super().__init__(me, members)
        self._marked = dict.fromkeys(self.others, 0)

    def send(self, to: str) -> int:
        """Return 0: messages carry no number."""
        return 0

    def arrive(self, sender: str, stamp: int, message: Hashable) -> Sequence[Effect]:
        self._check(sender, stamp)
        for channels in self._open.values():
            if sender in channels:
                channels[sender] += (message,)
        return ()

    def marker(self, sender: str, marker: Marker) -> Sequence[Effect]:
        self._check(sender, marker.number)
        if marker.number != self._marked[sender] + 1:
            raise SequenceError(
                f"marker {marker.number} of {sender} after {self._marked[sender]}: its channel is "
                "not FIFO, or a marker was lost"
            )
        self._marked[sender] = marker.number
        effects = self._record_up_to(marker.number)
        channels = self._open[marker.number]
        effects.append(Content(marker.number, sender, channels.pop(sender)))
        return effects + self._completed(marker.number)

    def _record(self, number: int) -> list[Effect]:
        self._open[number] = dict.fromkeys(self.others, ())
        told = [Tell(name, Marker(number)) for name in self.others]
        return [Record(number), *told, *self._completed(number)]

    def snapshot(self) -> Hashable:
        kept = tuple((n, tuple(sorted(of.items()))) for n, of in sorted(self._open.items()))
        return self.number, tuple(self._marked.values()), kept

    def restore(self, state: Any) -> None:
        self.number, marked, kept = state
        self._marked = dict(zip(self.others, marked, strict=True))
        self._open = {number: dict(channels) for number, channels in kept}
