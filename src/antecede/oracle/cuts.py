"""Global states of an execution: consistent cuts and the messages in their channels.

Source: 001, "Global State of a Distributed System", with both NOTs that its print lost: for
every message, send not in LS_i implies message not in SC_ij and receive not in LS_j.

A cut gives each member the number of its first events that are inside: its local state LS.
Members that the cut does not name have position 0. The position of a receive is where the
message arrived; where a log has no receive for a message, its delivery counts as the receive.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from antecede.errors import InputError
from antecede.trace.schema import DELIVER, RECEIVE, SEND, Event

Cut = Mapping[str, int]


class Channel(NamedTuple):
    """The channel from one member to another."""

    source: str
    target: str


class Cuts:
    """The cuts of one execution; rows as in `oracle.history`."""

    def __init__(self, rows: Iterable[Event]) -> None:
        self.length: dict[str, int] = {}
        self.sent: dict[str, tuple[str, int]] = {}
        """Message -> (sender, position of the send among the sender's events, from 1)."""
        self.received: dict[tuple[str, str], int] = {}
        """(message, receiver) -> position of its receive."""
        delivered: dict[tuple[str, str], int] = {}
        for row in rows:
            if row.member is None:
                raise InputError("a row without a member is in no local state", record_id=row.id)
            position = self.length.get(row.member, 0) + 1
            self.length[row.member] = position
            if row.kind == SEND:
                self.sent[row.id] = (row.member, position)
            elif row.kind == RECEIVE:
                self.received.setdefault((row.id, row.member), position)
            elif row.kind == DELIVER:
                delivered.setdefault((row.id, row.member), position)
        self.received = {**delivered, **self.received}

    def consistent(
        self, cut: Cut, channels: Mapping[Channel, Collection[str]] | None = None
    ) -> bool:
        """Tell whether no message is received in the cut, or recorded in a channel, unsent."""
        recorded = {message for content in (channels or {}).values() for message in content}
        inside = {
            message
            for (message, receiver), position in self.received.items()
            if position <= cut.get(receiver, 0)
        }
        return all(self._sent_in(message, cut) for message in inside | recorded)

    def in_channels(
        self, cut: Cut, addressed: Mapping[str, Collection[str]] | None = None
    ) -> dict[Channel, list[str]]:
        """Return for each channel what is sent and not received in the cut, in order of sending.

        Channels with nothing in them are left out. `addressed` as in `History`.
        """
        found: dict[Channel, list[str]] = {}
        for message, (sender, position) in sorted(self.sent.items(), key=lambda item: item[1]):
            if position > cut.get(sender, 0):
                continue
            targets = self.length.keys() if addressed is None else addressed.get(message, ())
            for target in sorted(set(targets) - {sender}):
                at = self.received.get((message, target))
                if at is None or at > cut.get(target, 0):
                    found.setdefault(Channel(sender, target), []).append(message)
        return found

    def greatest_consistent(self, limit: Cut) -> dict[str, int]:
        """Return the greatest consistent cut at or below the positions of `limit`.

        Consistent cuts are closed under union, so there is exactly one.
        """
        cut = {m: max(0, min(limit.get(m, 0), length)) for m, length in self.length.items()}
        lowered = True
        while lowered:
            lowered = False
            for (message, receiver), position in self.received.items():
                if position <= cut[receiver] and not self._sent_in(message, cut):
                    cut[receiver] = position - 1
                    lowered = True
        return cut

    def _sent_in(self, message: str, cut: Cut) -> bool:
        if message not in self.sent:
            return False
        sender, position = self.sent[message]
        return position <= cut.get(sender, 0)
