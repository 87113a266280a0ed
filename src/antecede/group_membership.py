"""Membership: invitations, joins, leaves, and who subscribes to what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from antecede.clocks.intervals import MAX_NUMBER
from antecede.errors import DecodeError, LocalError, MismatchError
from antecede.group_effects import Effects
from antecede.group_parts import (
    GROUP,
    by_number,
    can_be_open,
    checked,
    limits_of,
    made,
    options_code,
    room_code,
    roster_of,
)
from antecede.group_receiving import Receiving
from antecede.group_state import GroupState
from antecede.identity import Lives, agreeing
from antecede.message import Message
from antecede.protocols.registry import ENTRIES, flat_class
from antecede.protocols.shapes import misfit
from antecede.protocols.storage import pack_state, unpack_state
from antecede.words import shown


class Membership:
    """Lets members in and out, and tells the protocol."""

    def __init__(self, state: GroupState, effects: Effects, receiving: Receiving) -> None:
        self._state, self._effects, self._receiving = state, effects, receiving

    def invite(self, newcomer: str) -> bytes:
        """See `Group.invite`."""
        state = self._state
        self._effects.begin()
        self._check_new(newcomer)
        flat_class(state.order)  # what `accept` cannot make, nobody is invited to
        frontier = state.protocol.frontier()
        # What waited for this join is handed over by `delivered`, or with the next messages.
        state.inbox = [*self.join(newcomer), *state.inbox]
        return pack_state(
            (
                (state.order, state.open, state.room, state.options),
                state.roster.table(),
                state.lives.state(),
                frontier,
            )
        )

    def join(self, newcomer: str) -> list[Message]:
        """See `Group.join`."""
        state = self._state
        self._effects.begin()
        self._check_new(newcomer)
        number = state.roster.next_number
        with state.named_errors():
            delivered = self._effects.carry_out(state.protocol.join(number), None)
        state.roster.add(number, newcomer)
        state.record("join", newcomer)
        return delivered + self._receiving.take_in_ahead()

    def _check_new(self, newcomer: str) -> None:
        if checked(newcomer) in self._state.roster.numbers:
            raise LocalError(f"{newcomer!r} is or was in the group; a name is never reused")

    def leave(self, member: str, last: int) -> list[Message]:
        """See `Group.leave`."""
        self._effects.begin()
        if type(last) is not int or not 0 <= last <= MAX_NUMBER:
            raise LocalError(
                f"{shown(member)} left after message {shown(last)}: the number of its last message "
                "is a whole number (0: it sent none), as last() in its own group tells"
            )
        state, protocol, carry_out = self._state, self._state.protocol, self._effects.carry_out
        if member == state.name:
            raise LocalError(
                f"{member!r} is this member itself, and its own group is not told that it leaves: "
                f"the others call leave({member!r}, last), with what last() says here"
            )
        if not state.open or checked(member) in state.roster.numbers:
            with state.named_errors():
                effects = protocol.leave(state.number(member), last)
            delivered = carry_out(effects, None)
        else:
            with state.unchanged_by_errors(), state.named_errors():
                number = state.roster.next_number
                delivered = carry_out(protocol.join(number), None)
                state.roster.add(number, member)
                delivered += carry_out(protocol.leave(number, last), None)
        state.record("leave", member, last)
        return delivered

    def subscribe(self, member: str, topics: Iterable[str]) -> list[Message]:
        """See `Group.subscribe`."""
        state = self._state
        self._effects.begin()
        change = getattr(state.protocol, "subscribe", None)
        if change is None:
            raise LocalError(f"with order {state.order!r} nobody subscribes to topics")
        if isinstance(topics, str) or not isinstance(topics, Iterable):
            raise LocalError(f"topics are a list of names, not {shown(topics)}")
        chosen = tuple(topics)
        with state.named_errors():
            effects = change(state.number(member), chosen)
        state.record("subscribe", member, chosen)
        return self._effects.carry_out(effects, None)


def accepted(
    name: str, invitation: bytes, room: str | None, keep_log: bool, options: Mapping[str, Any]
) -> GroupState:
    """Return what a newcomer begins from: see `Group.accept`."""
    from antecede.protocols.stored_shapes import check_frontier  # for those who join or restart

    head, table, lives, frontier = unpack_state(invitation, 4)
    if misfit((head, lives), (GROUP, Lives.SHAPE)):
        raise DecodeError("an invitation that does not say of what group")
    order, is_open, told_room, told_options = head
    if order not in ENTRIES or not ENTRIES[order].flat:
        raise DecodeError(f"an invitation to a group of {order!r:.40}, which is no order here")
    roster = roster_of(table)
    if checked(name) not in roster.numbers:
        raise MismatchError("members", f"this invitation is not for {name!r}")
    limits, own = limits_of(options, order, is_open)
    own = by_number(order, own, roster.numbers)
    protocol = made(order, roster.numbers[name], roster.numbers, own)
    common = agreeing(protocol, own)[0]
    if told_options != options_code(order, common):
        raise MismatchError(
            "options", f"an invitation to a group of {order} made with other options: {common}"
        )
    if room is not None and told_room != room_code(room):
        raise MismatchError("room", f"an invitation to another room than {room!r}")
    check_frontier(protocol, frontier, roster.names)
    if is_open and not can_be_open(protocol):
        raise DecodeError(f"an invitation to an open group of {order}, which is always closed")
    try:
        protocol.adopt(frontier)
    except (TypeError, ValueError, LookupError, LocalError) as error:
        raise DecodeError(f"an invitation whose frontier is none of {order}") from error
    if not set(protocol.members) <= roster.names.keys():
        raise DecodeError("an invitation whose frontier speaks of members without a name")
    state = GroupState(
        *(order, protocol, roster, is_open),
        room=told_room,
        options=told_options,
        limits=limits,
        keep_log=keep_log,
    )
    state.lives = Lives.of_state(lives)
    return state
