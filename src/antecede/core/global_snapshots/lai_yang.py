"""Lai-Yang snapshot algorithm (1987) for channels in any order, with Mattern's counting (1993).

Every message carries the number of snapshots that its sender had recorded. A message of a later
snapshot makes its receiver record first. A message of an earlier one that arrives after was in
transit. Messages may overtake markers, so a marker cannot show that all have arrived. Instead it
contains the number of messages sent on that channel before.
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


class LaiYang(Algorithm):
    """One member's state machine. Control information: a number per message, a count per marker."""

    needs_fifo = False
    stamped = True

    def __init__(self, me: str, members: Iterable[str]) -> None:
        super().__init__(me, members)
        self._sent = dict.fromkeys(self.others, 0)
        self._came = dict.fromkeys(self.others, 0)
        """Member -> messages received from it; `_sent`: messages sent to it."""
        self._told: dict[tuple[int, str], int] = {}
        """(snapshot, member) -> number of messages that the member had sent before."""

    def send(self, to: str) -> int:
        """Count the message, and return the number of the newest snapshot here."""
        self._sent[to] += 1
        return self.number

    def arrive(self, sender: str, stamp: int, message: Hashable) -> Sequence[Effect]:
        self._check(sender, stamp)
        effects = self._record_up_to(stamp)
        self._came[sender] += 1
        for number in [number for number in self._open if number > stamp]:
            if sender in self._open[number]:
                here, kept = self._open[number][sender]
                self._open[number][sender] = here + 1, (*kept, message)
                effects += self._closed(number, sender)
        return effects

    def marker(self, sender: str, marker: Marker) -> Sequence[Effect]:
        self._check(sender, marker.number)
        if (marker.number, sender) in self._told or marker.number < 1 or marker.sent < 0:
            raise SequenceError(f"marker {marker.number} of {sender} is invalid or a duplicate")
        effects = self._record_up_to(marker.number)
        if sender not in self._open.get(marker.number, {}):
            raise SequenceError(f"marker {marker.number} of {sender} is a duplicate")
        self._told[marker.number, sender] = marker.sent
        return effects + self._closed(marker.number, sender)

    def _record(self, number: int) -> list[Effect]:
        # (received messages sent before the snapshot, those of them received after it)
        self._open[number] = {name: (count, ()) for name, count in self._came.items()}
        told = [Tell(name, Marker(number, count)) for name, count in self._sent.items()]
        return [Record(number), *told, *self._completed(number)]

    def _closed(self, number: int, sender: str) -> list[Effect]:
        """Close a channel once all messages sent on it before the snapshot have arrived."""
        here, kept = self._open[number][sender]
        if self._told.get((number, sender)) != here:
            return []
        del self._open[number][sender], self._told[number, sender]
        return [Content(number, sender, kept), *self._completed(number)]

    def snapshot(self) -> Hashable:
        kept = tuple((n, tuple(sorted(of.items()))) for n, of in sorted(self._open.items()))
        counts = tuple(self._sent.values()), tuple(self._came.values())
        return self.number, *counts, kept, tuple(sorted(self._told.items()))

    def restore(self, state: Any) -> None:
        self.number, sent, came, kept, told = state
        self._sent = dict(zip(self.others, sent, strict=True))
        self._came = dict(zip(self.others, came, strict=True))
        self._open = {number: dict(channels) for number, channels in kept}
        self._told = dict(told)
