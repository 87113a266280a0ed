"""Consistent cuts of an execution, and the messages in their channels.

Source: Sahai et al. 2020, "Global State of a Distributed System", with the NOTs lost in print
restored. A channel SC_ij holds messages sent in LS_i and not received in LS_j. For every message,
send not in LS_i implies message not in SC_ij and receive not in LS_j.

A cut maps each member to the number of its events inside, its local state LS (default 0). A message
without a receive event is received where it is delivered.

If rows have vector clocks, these decide: no event inside may count an event outside. Rows that are
neither sends nor receives and have no clock are local events.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from antecede.core.oracle.events import DELIVER, RECEIVE, SEND, EventLike
from antecede.errors import InputError

Cut = Mapping[str, int]


class Channel(NamedTuple):
    """Channel from one member to another."""

    source: str
    target: str


class Witness(NamedTuple):
    """Witness in a cut: a message or an event that breaks a rule."""

    what: str
    id: str
    """Message, or event with the clock."""
    source: str
    """Sender, or member of the event outside; empty if there is none."""
    target: str
    """Receiving, or member of the event with the clock."""


UNSENT_RECEIVED = "received inside, sent outside"
UNSENT_IN_CHANNEL = "in a channel, and not sent inside"
WRONG_CHANNEL = "in a channel that does not begin at its sender"
TWICE = "in its channel, and received inside"
LOST = "sent inside, neither received nor in its channel"
KNOWS_OUTSIDE = "its clock counts an event outside"


class Cuts:
    """Cuts of one execution. Raises InputError for rows without member or with falling clocks."""

    def __init__(self, rows: Iterable[EventLike]) -> None:
        self.length: dict[str, int] = {}
        self.sent: dict[str, tuple[str, int]] = {}
        """Message -> (sender, position of the send among the sender's events, from 1)."""
        self.received: dict[tuple[str, str], int] = {}
        """(message, receiver) -> position of the receive."""
        self._clocks: dict[str, list[tuple[str, Mapping[str, int]]]] = {}
        """Member -> (id, vector clock) of its events."""
        delivered: dict[tuple[str, str], int] = {}
        for row in rows:
            if row.member is None:
                raise InputError("row has no member", record_id=row.id)
            position = self.length.get(row.member, 0) + 1
            self.length[row.member] = position
            if row.kind == SEND:
                if row.id in self.sent:
                    raise InputError("message is sent twice", record_id=row.id)
                self.sent[row.id] = (row.member, position)
            elif row.kind == RECEIVE:
                self.received.setdefault((row.id, row.member), position)
            elif row.kind == DELIVER:
                delivered.setdefault((row.id, row.member), position)
            self._record_clock(row, row.member, position)
        self.received = {**delivered, **self.received}
        self._check_clocks()

    def _record_clock(self, row: EventLike, member: str, position: int) -> None:
        if row.clock_members is None:
            return
        clock = dict(zip(row.clock_members, row.clock_counts or (), strict=False))
        events = self._clocks.setdefault(member, [])
        before = events[-1][1].get(member, 0) if events else 0
        if clock.get(member, 0) <= before:
            why = (
                f"vector clock of {member} has own counter {clock.get(member, 0)} after {before}; "
                "expected a larger one"
            )
            raise InputError(why, record_id=row.id)
        events.append((row.id, clock))
        if len(events) < position:
            raise InputError("vector clock after rows of this member without", record_id=row.id)

    def _check_clocks(self) -> None:
        if not self._clocks:
            return
        for member, length in self.length.items():
            if len(self._clocks.get(member, ())) < length:
                raise InputError(
                    f"rows of {member} with and without vector clock; expected all or none"
                )

    # -- checks -----------------------------------------------------------------------------

    def consistent(
        self,
        cut: Cut,
        channels: Mapping[Channel, Collection[str]] | None = None,
        recipients: Mapping[str, Collection[str]] | None = None,
    ) -> bool:
        """Return whether a cut is a consistent global state; see `why_not`."""
        return self.why_not(cut, channels, recipients) is None

    def why_not(
        self,
        cut: Cut,
        channels: Mapping[Channel, Collection[str]] | None = None,
        recipients: Mapping[str, Collection[str]] | None = None,
    ) -> Witness | None:
        """Return the first contradiction of a cut and its channels; None: it is consistent.

        Without `channels` only local states are checked. With them, every message sent inside must
        be received inside or in its channel, not both. `recipients`: by message (default: receivers
        in the log or its channels). Raises InputError for unknown members and positions.
        """
        return next(self.wrongs(cut, channels, recipients), None)

    def wrongs(
        self,
        cut: Cut,
        channels: Mapping[Channel, Collection[str]] | None = None,
        recipients: Mapping[str, Collection[str]] | None = None,
    ) -> Iterator[Witness]:
        """Yield all contradictions of a cut; see `why_not`."""
        self._check_arguments(cut, channels)
        yield from self._find_clock_violations(cut)
        yield from self._find_unsent(cut)
        if channels is not None:
            yield from self._find_channel_errors(cut, channels, recipients or {})

    def _check_arguments(
        self, cut: Cut, channels: Mapping[Channel, Collection[str]] | None
    ) -> None:
        mentioned = {*cut, *(member for channel in channels or () for member in channel)}
        if unknown := sorted(mentioned - self.length.keys()):
            raise InputError(f"unknown member {unknown[0]}: it has no row in the log")
        for member, position in cut.items():
            if not 0 <= position <= self.length[member]:
                raise InputError(
                    f"position {position} of {member} is outside 0 to {self.length[member]}"
                )
        if self.length and not (self.sent or self.received or self._clocks):
            raise InputError("rows have no sends, receives or vector clocks; causality is unknown")
        if channels is not None and not (self.sent or self.received):
            raise InputError("channels are given, but the log names no messages")

    def _find_clock_violations(self, cut: Cut) -> Iterator[Witness]:
        for member, events in self._clocks.items():
            position = cut.get(member, 0)
            if position:
                name, clock = events[position - 1]
                for peer in clock:
                    if peer != member and self._counts_outside(peer, clock[peer], cut):
                        yield Witness(KNOWS_OUTSIDE, name, peer, member)

    def _counts_outside(self, member: str, count: int, cut: Cut) -> bool:
        events, position = self._clocks.get(member, []), cut.get(member, 0)
        return position < len(events) and count >= events[position][1][member]

    def _find_unsent(self, cut: Cut) -> Iterator[Witness]:
        for (message, receiver), position in self.received.items():
            if position <= cut.get(receiver, 0) and not self._is_sent(message, cut):
                sender = self.sent.get(message, ("", 0))[0]
                yield Witness(UNSENT_RECEIVED, message, sender, receiver)

    def _find_channel_errors(
        self,
        cut: Cut,
        channels: Mapping[Channel, Collection[str]],
        recipients: Mapping[str, Collection[str]],
    ) -> Iterator[Witness]:
        recorded: dict[str, set[str]] = {}
        for channel, content in channels.items():
            for message in content:
                sender = self.sent.get(message, ("", 0))[0]
                if not self._is_sent(message, cut):
                    yield Witness(UNSENT_IN_CHANNEL, message, sender, channel.target)
                elif sender != channel.source or channel.target == sender:
                    yield Witness(WRONG_CHANNEL, message, sender, channel.target)
                elif self._is_received(message, channel.target, cut):
                    yield Witness(TWICE, message, sender, channel.target)
                recorded.setdefault(message, set()).add(channel.target)
        for message, (sender, position) in self.sent.items():
            if position <= cut.get(sender, 0):
                channels_of_message = recorded.get(message, set())
                yield from self._find_lost(
                    message, sender, channels_of_message, cut, recipients.get(message)
                )

    def _find_lost(
        self,
        message: str,
        sender: str,
        recorded: set[str],
        cut: Cut,
        recipients: Collection[str] | None,
    ) -> Iterator[Witness]:
        targets = set(recipients or ())
        if recipients is None:
            targets = recorded | {
                to for sent_message, to in self.received if sent_message == message
            }
            if not targets:
                yield Witness(LOST, message, sender, "")
        for target in sorted(targets - {sender}):
            if target not in recorded and not self._is_received(message, target, cut):
                yield Witness(LOST, message, sender, target)

    # -- channels and cuts ------------------------------------------------------------------

    def in_channels(
        self, cut: Cut, recipients: Mapping[str, Collection[str]] | None = None
    ) -> dict[Channel, list[str]]:
        """Return the messages sent and not received in the cut, by nonempty channel, as sent."""
        contents: dict[Channel, list[str]] = {}
        for message, (sender, position) in sorted(self.sent.items(), key=lambda item: item[1]):
            if position > cut.get(sender, 0):
                continue
            targets = self.length.keys() if recipients is None else recipients.get(message, ())
            for target in sorted(set(targets) - {sender}):
                if not self._is_received(message, target, cut):
                    contents.setdefault(Channel(sender, target), []).append(message)
        return contents

    def greatest_consistent(self, limit: Cut) -> dict[str, int]:
        """Return the greatest consistent cut at or below the positions of `limit`."""
        cut = {m: max(0, min(limit.get(m, 0), length)) for m, length in self.length.items()}
        lowered = True
        while lowered:
            lowered = False
            for (message, receiver), position in self.received.items():
                if position <= cut[receiver] and not self._is_sent(message, cut):
                    cut[receiver] = position - 1
                    lowered = True
            if (wrong := next(self._find_clock_violations(cut), None)) is not None:
                cut[wrong.target] -= 1
                lowered = True
        return cut

    def _is_sent(self, message: str, cut: Cut) -> bool:
        if message not in self.sent:
            return False
        sender, position = self.sent[message]
        return position <= cut.get(sender, 0)

    def _is_received(self, message: str, receiver: str, cut: Cut) -> bool:
        position = self.received.get((message, receiver))
        return position is not None and position <= cut.get(receiver, 0)
