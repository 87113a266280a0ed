"""Chandy-Lamport snapshot algorithm (1985) for FIFO channels.

A member that records sends a marker on every channel before anything else. The first marker makes
its receiver record, and the channel of that marker was empty. Messages on another channel before
its marker were in transit. A message that overtakes the marker is inside at its receiver and
outside at its sender (`antecede check --snapshots chandy-lamport --channels any`).
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
        self._newest_markers = dict.fromkeys(self.others, 0)

    def send(self, to: str) -> int:
        """Return 0: messages carry no number."""
        return 0

    def arrive(self, sender: str, snapshot_number: int, message: Hashable) -> Sequence[Effect]:
        self._check(sender, snapshot_number)
        for channels in self._open_channels.values():
            if sender in channels:
                channels[sender] += (message,)
        return ()

    def marker(self, sender: str, marker: Marker) -> Sequence[Effect]:
        self._check(sender, marker.number)
        if marker.number != self._newest_markers[sender] + 1:
            raise SequenceError(
                f"marker {marker.number} of {sender} after {self._newest_markers[sender]}: its "
                "channel is not FIFO, or a marker was lost"
            )
        self._newest_markers[sender] = marker.number
        effects = self._record_up_to(marker.number)
        channels = self._open_channels[marker.number]
        effects.append(Content(marker.number, sender, channels.pop(sender)))
        return effects + self._complete_if_closed(marker.number)

    def _record(self, number: int) -> list[Effect]:
        self._open_channels[number] = dict.fromkeys(self.others, ())
        markers = [Tell(name, Marker(number)) for name in self.others]
        return [Record(number), *markers, *self._complete_if_closed(number)]

    def snapshot(self) -> Hashable:
        open_channels = tuple(
            (n, tuple(sorted(channels.items())))
            for n, channels in sorted(self._open_channels.items())
        )
        return self.number, tuple(self._newest_markers.values()), open_channels

    def restore(self, state: Any) -> None:
        self.number, marked, open_channels = state
        self._newest_markers = dict(zip(self.others, marked, strict=True))
        self._open_channels = {number: dict(channels) for number, channels in open_channels}
