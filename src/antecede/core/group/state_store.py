"""Snapshots of a `Group`, its log of inputs, and restore."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from antecede.core.group.assumptions import Assumptions
from antecede.core.group.counters import GroupCounters
from antecede.core.group.effects import GroupPart
from antecede.core.group.frames.format import Incarnation
from antecede.core.group.incarnations import IncarnationTable, Roster, check_nonce
from antecede.core.group.message import Message, Packet
from antecede.core.group.options import SNAPSHOT_SHAPE, read_member_table
from antecede.core.group.state import Threads, replay_input
from antecede.core.protocols.serialization import misfit, pack_state, unpack_state
from antecede.errors import DecodeError, LocalError, ProtocolError
from antecede.formatting import quote

InputHandlers = Mapping[str, Callable[..., Any]]
_INVALID = (TypeError, ValueError, LookupError, ProtocolError, ArithmeticError)
"""Errors of a protocol for an invalid state or input."""


class StateStore(GroupPart):
    """Saves and restores a group's state."""

    def snapshot(self) -> bytes:
        """Return the whole state as bytes for a restart, and clear the log."""
        state = self._state
        state.records = []
        assumptions = state.assumptions
        return pack_state(
            (
                (state.order, state.is_open, state.room, state.options),
                state.name,
                state.roster.state(),
                (state.sent, tuple(state.incarnation), state.incarnations.state()),
                tuple((packet.to, bytes(packet.wire)) for packet in state.outbox),
                tuple(tuple(message) for message in state.inbox),
                tuple(
                    (w, *content[:3], at, now)
                    for w, (content, at, now) in state.newer_view_frames.items()
                ),
                state.counters.state(),
                state.threads.state(),
                state.protocol.snapshot(),
                *(() if assumptions is None else (assumptions.state(),)),
            )
        )

    def take_log(self) -> list[bytes]:
        """Return inputs since the last snapshot or call, and clear the log.

        `restore` takes them after the snapshot. Raises LocalError without `keep_log=True`.
        """
        state = self._state
        if not state.keep_log:
            raise LocalError("the group has no log; create it with keep_log=True")
        records, state.records = state.records, []
        return records

    def _restore(
        self,
        stored: bytes,
        log: Iterable[bytes],
        handlers: InputHandlers,
        resume: bool,
        incarnation: int | None,
    ) -> None:
        from antecede.core.protocols.serialization import check_state

        # Reject invalid input before anything changes.
        nonce = check_nonce(incarnation)
        records = _list_records(log)
        most = len(SNAPSHOT_SHAPE) + 1  # the last field exists with assumptions
        fields = unpack_state(stored, most - 1, most)
        shape = SNAPSHOT_SHAPE if len(fields) < most else (*SNAPSHOT_SHAPE, Assumptions.SHAPE)
        if where := misfit(fields, shape):
            raise DecodeError(f"invalid group snapshot: {where}")
        head, name, table, identity, outbox, inbox, ahead, tally, links, inner, *assumed = fields
        state = self._state
        self._check_head(head, name)
        roster = read_member_table(table)
        self._check_members(roster)
        check_state(state.protocol, inner, roster.names)
        before = state.protocol.snapshot(), dict(vars(state))
        try:
            self._install(roster, inner)
            state.sent, current, known = identity
            state.incarnation, state.incarnations = (
                Incarnation(*current),
                IncarnationTable.from_state(known),
            )
            state.outbox = [Packet(*packet) for packet in outbox]
            state.inbox = [Message(*message) for message in inbox]
            state.newer_view_frames = {
                w: (Message(*content), at, now) for w, *content, at, now in ahead
            }
            state.counters, state.recent = GroupCounters.from_state(tally), OrderedDict()
            state.threads = Threads(state.limits.threads, links)
            state.assumptions = Assumptions.from_state(assumed[0]) if assumed else None
            if state.assumptions is not None and state.assumptions.starts_at_first_heard:
                state.protocol.check_listening()
            if state.is_total:  # earlier versions did not store when own messages were sent
                for held in state.protocol.list_held():
                    state.counters.record_hold(state.protocol.identity(held.message), None)
        except _INVALID as error:
            self._roll_back(before)
            raise DecodeError(
                f"snapshot has an invalid state for order {state.order}: {error}"
            ) from error
        self._replay(records, handlers, before)
        if not resume:
            first = max(state.sent, state.incarnations.find_highest_seq(state.name)) + 1
            state.start_incarnation(Incarnation(state.incarnation.generation + 1, nonce, first))

    def _check_head(self, head: Any, name: str) -> None:
        state = self._state
        order, is_open, room, options = head
        if (order, is_open) != (state.order, state.is_open):
            theirs, ours = ("open" if o else "closed" for o in (is_open, state.is_open))
            raise LocalError(
                f"snapshot is of a {order} group, {theirs}; this is {state.order}, {ours}"
            )
        if name != state.name:
            raise LocalError(f"snapshot is of {name!r}; this is the group of {state.name!r}")
        if room != state.room:
            raise LocalError("snapshot is of another room")
        if options != state.options:
            raise LocalError(f"snapshot is of a {order} group with other options")

    def _check_members(self, members: Roster) -> None:
        """Reject a snapshot of another first member list, if that is decidable."""
        ours = self._state.roster
        same = ours.digests[0] == members.digests[0]
        if self._state.is_open or ours.joins or members.joins or same:
            return
        if ours.names == members.names:
            raise LocalError("snapshot is of a group with other bounds or subscriptions of members")
        raise LocalError(
            f"snapshot is of a group with another member list: {sorted(members.numbers)}"
        )

    def _install(self, members: Roster, inner: Any) -> None:
        """Install a stored state. Raise ValueError or another error of `_INVALID`."""
        state, protocol = self._state, self._state.protocol
        me = protocol.me
        protocol.restore(inner)
        state.roster = members
        if protocol.snapshot() != inner or protocol.me != me or me not in protocol.members:
            raise ValueError("its restored state differs from the stored one")
        protocol.check_whole()
        for held in protocol.list_held():
            written = protocol.encode(held.message)
            if protocol.decode(written, held.message.payload) != held.message:
                raise ValueError("a held message has an impossible encoding")
            state.to_message(held.message)

    def _replay(
        self, log: Sequence[bytes], handlers: InputHandlers, before: tuple[Any, Any]
    ) -> None:
        state = self._state
        keep, state.keep_log = state.keep_log, False
        for number, record in enumerate(log, 1):
            try:
                replay_input(record, handlers)
            except _INVALID as error:
                self._roll_back(before)
                raise DecodeError(f"record {number} of the log is invalid: {error}") from error
        state.keep_log = keep

    def _roll_back(self, before: tuple[Any, Any]) -> None:
        self._state.protocol.restore(before[0])
        vars(self._state).update(before[1])


def _list_records(log: Iterable[bytes]) -> Sequence[bytes]:
    if isinstance(log, str | bytes | bytearray | memoryview) or not isinstance(log, Iterable):
        raise LocalError(f"log is {quote(log)}; expected records, as returned by log()")
    return list(log)
