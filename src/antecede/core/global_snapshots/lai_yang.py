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
        self._received = dict.fromkeys(self.others, 0)
        """Member -> messages received from it; `_sent`: messages sent to it."""
        self._announced: dict[tuple[int, str], int] = {}
        """(snapshot, member) -> number of messages that the member had sent before."""

    def send(self, to: str) -> int:
        """Count the message, and return the number of the newest snapshot here."""
        self._sent[to] += 1
        return self.number

    def arrive(self, sender: str, snapshot_number: int, message: Hashable) -> Sequence[Effect]:
        self._check(sender, snapshot_number)
        effects = self._record_up_to(snapshot_number)
        self._received[sender] += 1
        for number in [number for number in self._open_channels if number > snapshot_number]:
            if sender in self._open_channels[number]:
                count, messages = self._open_channels[number][sender]
                self._open_channels[number][sender] = count + 1, (*messages, message)
                effects += self._close_if_complete(number, sender)
        return effects

    def marker(self, sender: str, marker: Marker) -> Sequence[Effect]:
        self._check(sender, marker.number)
        if (marker.number, sender) in self._announced or marker.number < 1 or marker.sent < 0:
            raise SequenceError(f"marker {marker.number} of {sender} is invalid or a duplicate")
        effects = self._record_up_to(marker.number)
        if sender not in self._open_channels.get(marker.number, {}):
            raise SequenceError(f"marker {marker.number} of {sender} is a duplicate")
        self._announced[marker.number, sender] = marker.sent
        return effects + self._close_if_complete(marker.number, sender)

    def _record(self, number: int) -> list[Effect]:
        # (received messages sent before the snapshot, those of them received after it)
        self._open_channels[number] = {name: (count, ()) for name, count in self._received.items()}
        markers = [Tell(name, Marker(number, count)) for name, count in self._sent.items()]
        return [Record(number), *markers, *self._complete_if_closed(number)]

    def _close_if_complete(self, number: int, sender: str) -> list[Effect]:
        """Close a channel once all messages sent on it before the snapshot have arrived."""
        count, messages = self._open_channels[number][sender]
        if self._announced.get((number, sender)) != count:
            return []
        del self._open_channels[number][sender], self._announced[number, sender]
        return [Content(number, sender, messages), *self._complete_if_closed(number)]

    def snapshot(self) -> Hashable:
        open_channels = tuple(
            (n, tuple(sorted(channels.items())))
            for n, channels in sorted(self._open_channels.items())
        )
        counts = tuple(self._sent.values()), tuple(self._received.values())
        return self.number, *counts, open_channels, tuple(sorted(self._announced.items()))

    def restore(self, state: Any) -> None:
        self.number, sent, received, open_channels, announced = state
        self._sent = dict(zip(self.others, sent, strict=True))
        self._received = dict(zip(self.others, received, strict=True))
        self._open_channels = {number: dict(channels) for number, channels in open_channels}
        self._announced = dict(announced)
