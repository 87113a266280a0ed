"""Membership of a `Group`: invite, join, leave, subscriptions, lost messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from antecede.core.clocks import MAX_NUMBER
from antecede.core.group.assumptions import Assumptions
from antecede.core.group.incarnations import (
    IncarnationTable,
    Roster,
    canonicalize,
    collect_shared_options,
)
from antecede.core.group.message import Id, Message
from antecede.core.group.options import (
    GROUP_SHAPE,
    can_be_open,
    check_name,
    make_protocol,
    number_member_options,
    options_code,
    read_member_table,
    room_code,
    split_limits,
)
from antecede.core.group.receiver import Receiver
from antecede.core.group.state import NO_CALL, GroupState
from antecede.core.protocols import ENTRIES, MessageId, Protocol, Relation, flat_class
from antecede.core.protocols.options import check_flags
from antecede.core.protocols.serialization import misfit, pack_state, unpack_state
from antecede.core.protocols.topics import Subscriptions
from antecede.errors import DecodeError, LocalError, MismatchError
from antecede.formatting import quote


class GroupMembership(Receiver):
    """Changes membership in the group and its protocol."""

    def invite(self, name: str, *, again: bool = False) -> bytes:
        """Add a joining member as its sponsor, and return its invitation.

        Call `join` at every other member. From then on the transport owes the joining member every
        message that `frontier` does not cover; `held` returns those that wait here. `again`: repeat
        a lost invitation. Raises LocalError for a name that is or was in the group; with `again`,
        for one that is not in it or has sent a message.
        """
        check_flags(again=again)
        state = self._state
        self._state.last_call = NO_CALL
        name = self._check_silent(name) if again else self._check_new(name)
        flat_class(state.order)  # raises for orders that `accept` cannot create
        frontier = state.protocol.join_state()
        if not again:
            # `delivered` or the next messages return what waited for this join.
            state.inbox = [*self.join(name), *state.inbox]
        return pack_state(
            (
                (state.order, state.is_open, state.room, state.options),
                state.roster.state(),
                state.incarnations.state(),
                frontier,
            )
        )

    def join(self, name: str) -> list[Message]:
        """Add a member that another one invited; return messages that become deliverable."""
        state = self._state
        self._state.last_call = NO_CALL
        name = self._check_new(name)
        number = state.roster.next_number
        with state.translate_errors():
            delivered = self._effects.carry_out(state.protocol.join(number), None)
        state.roster.add(number, name)
        state.record("join", name)
        return delivered + self._process_newer_view()

    def _check_new(self, member: str) -> str:
        name = check_name(member)
        roster = self._state.roster
        if name in roster.numbers or name in roster.forgotten:
            raise LocalError(f"{name!r} is or was in the group; use another name")
        return name

    def _check_silent(self, member: str) -> str:
        name, state = check_name(member), self._state
        number = state.number(name)
        heard = state.incarnations.find_highest_seq(
            name
        ) or state.protocol.get_delivered_ranges().get(number)
        if name == state.name or number in state.protocol.list_departed() or heard:
            raise LocalError(
                f"cannot invite {name!r} again: it has sent a message or left, or is this member; "
                "use another name"
            )
        return name

    def leave(self, member: str, last: int, *, force: bool = False) -> list[Message]:
        """Remove a member whose last message is `last` (0: it sent none).

        `last` is `last_seq()` in its own group. In an open group the member may be unknown so far.
        Its held messages above `last` are discarded, counted in `stats` and reported by `effects`.

        Raises LocalError for an unknown name, for this member (the others remove it), for a `last`
        below what was delivered here, and for one that a held message contradicts; `receive`
        rejects later ones. `force`: leave anyway; messages that depend on more than `last` stay
        held.
        """
        check_flags(force=force)
        self._state.last_call = NO_CALL
        if type(last) is not int or not 0 <= last <= MAX_NUMBER:
            raise LocalError(
                f"last={quote(last)} of {quote(member)}: expected its last sequence number, 0 to "
                f"{MAX_NUMBER} (see last_seq() in its own group)"
            )
        state, protocol, carry_out = self._state, self._state.protocol, self._effects.carry_out
        if member == state.name:
            raise LocalError(
                f"{member!r} is this member itself: the others call leave({member!r}, last) with "
                "last_seq() of this group"
            )
        if type(protocol).leave is Protocol.leave:
            raise LocalError(f"order {state.order!r} does not support leave()")
        if state.roster.forgotten and member in state.roster.forgotten:
            raise LocalError(f"{member!r} left before and was forgotten")
        if not state.is_open or check_name(member) in state.roster.numbers:
            with state.translate_errors():
                if not force:
                    self._check_last(state.number(member), last)
                effects = protocol.leave(state.number(member), last)
            delivered = carry_out(effects, None)
        else:
            with state.rollback_on_error(), state.translate_errors():
                number = state.roster.next_number
                delivered = carry_out(protocol.join(number), None)
                state.roster.add(number, check_name(member))
                delivered += carry_out(protocol.leave(number, last), None)
        state.record("leave", member, last, *((True,) if force else ()))
        return delivered

    def _check_last(self, member: int, last: int) -> None:
        state, protocol = self._state, self._state.protocol
        if state.renumbers:
            return
        for message in (*protocol.list_undelivered(), *self._decode_newer_view()):
            named = protocol.find_highest_number(message, member)
            if message.sender != member and named > last:
                raise LocalError(
                    f"member {member} cannot have left after message {last}: held "
                    f"{'message ' + str(message.seq) if message.seq else 'control message'} of "
                    f"member {message.sender} depends on message {named} of member {member}; pass "
                    "its last sequence number, and lost messages to declare_lost()"
                )

    def forget(self, member: str) -> None:
        """Drop name, numbers and digests of a departed member, and its entry in messages.

        Call it when all members know of the departure and have delivered its messages. Later
        mentions are ignored, late copies are duplicates (for the newest 4,096 names). Neither name
        nor number is reused. Supported by "fifo", "causal" (idr), "bss", "ds" and "none". Raises
        LocalError in other orders, for a present member, while a message of it is missing here, and
        while a held message mentions it.
        """
        state, protocol = self._state, self._state.protocol
        state.last_call = NO_CALL
        number = state.number(member)
        if number not in protocol.list_departed():
            raise LocalError(f"{member!r} is in the group; call leave({member!r}, last) first")
        for message in (*protocol.list_undelivered(), *self._decode_newer_view()):
            if message.sender == number or protocol.find_highest_number(message, number):
                raise LocalError(
                    f"cannot forget {member!r}: held message {message.seq} of "
                    f"{state.roster.name(message.sender)!r} mentions it; retry after its delivery"
                )
        with state.translate_errors():
            protocol.forget(number)
        state.roster.forget(number)
        state.incarnations.forget(member)
        for key in [key for key in state.recent if key[0] == member]:
            del state.recent[key]
        state.record("forget", member)

    def start_from(self, frontier: Mapping[str, int] | None = None) -> None:
        """Start after messages that never arrive here, before anything is sent or received.

        `frontier`: member -> highest sequence number that counts as delivered. Late copies are
        duplicates. In an open group it may contain unknown members. Orders by clocks accept it with
        `sender_logs`.

        None: start at the first message heard of each member, without sponsor. Earlier messages
        count as delivered, and so do causes of members not heard yet; `Message.missing_ids` names
        those.

        Raises LocalError for unknown members, for own messages, beyond the last message of a
        departed member, after something was sent or received, and in orders without support.
        """
        state = self._state
        state.last_call = NO_CALL
        if frontier is not None and not isinstance(frontier, Mapping):
            raise LocalError(
                f"frontier is {quote(frontier)}; expected a mapping of member to sequence number"
            )
        if frontier is None or frontier:
            tally = state.counters
            if tally.sent or tally.delivered or state.held:
                raise LocalError(
                    "start_from() must precede all messages, but there are "
                    f"{tally.sent} sent, {tally.delivered} delivered, {state.held} held"
                )
        with state.rollback_on_error(), state.translate_errors():
            if frontier is None:
                state.protocol.check_listening()
                if state.protocol.guarantee.relation is not Relation.NONE:
                    state.assumptions = Assumptions(starts_at_first_heard=True)
            else:
                self._start_from_frontier(frontier)
        state.record("start_from", None if frontier is None else tuple(frontier.items()))

    def _start_from_pairs(self, pairs: Iterable[tuple[str, int]] | None) -> None:
        self.start_from(None if pairs is None else dict(pairs))

    def _start_from_frontier(self, frontier: Mapping[str, int]) -> None:
        state, protocol = self._state, self._state.protocol
        for name, seq in frontier.items():
            if type(seq) is not int or not 0 <= seq <= MAX_NUMBER:
                raise LocalError(
                    f"frontier has {quote(seq)} for {quote(name)}; expected an integer from 0 to "
                    f"{MAX_NUMBER}"
                )
            if name == state.name and seq:
                raise LocalError(
                    f"frontier has own messages of {name!r}; restore a snapshot to continue after "
                    "them"
                )
        known = state.roster.numbers
        if state.is_open and not protocol.needs_lanes:
            new = [name for name in frontier if check_name(name) not in known]
            if new:
                self._add_members(new)
        newest = {state.number(name): seq for name, seq in frontier.items() if name != state.name}
        for member, last in protocol.list_departed().items():
            if newest.get(member, 0) > last:
                raise LocalError(
                    f"frontier has {newest[member]} for member {member}, who left after message "
                    f"{last}"
                )
        if newest := {member: seq for member, seq in newest.items() if seq}:
            protocol.start_from(newest)

    def subscribe(self, member: str, topics: Iterable[str]) -> list[Message]:
        """Replace a member's topics; call it at every member. Raise LocalError without topics."""
        state = self._state
        self._state.last_call = NO_CALL
        change = getattr(state.protocol, "subscribe", None)
        if change is None:
            raise LocalError(f"order {state.order!r} has no topics; use a topic order")
        if isinstance(topics, str) or not isinstance(topics, Iterable):
            raise LocalError(f"topics= is {quote(topics)}; expected a list of names")
        chosen = tuple(topics)
        with state.translate_errors():
            effects = change(state.number(member), chosen)
        state.record("subscribe", member, chosen)
        return self._effects.carry_out(effects, None)

    def declare_lost(self, lost: Iterable[Id]) -> list[Message]:
        """Declare messages lost; return the messages that waited only for them, and their
        dependents.

        Call it at every member when no member has the messages any more. Dependents have the lost
        causes in `Message.missing_ids`. Late copies are duplicates. In order "reply" they are
        delivered late, and `on_missing_parent="deliver"` uses patience instead.

        In FIFO orders a lost number is skipped in turn: pass all of a gap (`missing` has `first` to
        `seq`). With chosen receivers a number includes all missing ones before it. In orders with
        immediate dependencies ("causal", "reply"), causes of a lost message may arrive after its
        marked dependents. Own and delivered messages change nothing in FIFO orders.

        Raises LocalError, and changes nothing, in orders without waiting, for a message that is
        held or not next in turn, and for unknown members; with chosen receivers and in orders by
        clocks also for one without dependents.
        """
        state, protocol = self._state, self._state.protocol
        state.last_call = NO_CALL
        if state.renumbers:
            raise LocalError(
                f"order {state.order!r} renumbers messages, so it does not support declare_lost()"
            )
        named = state.check_ids(lost, "lost")
        numbers = [MessageId(state.number(sender), seq) for sender, seq in named]
        assumptions = None
        if not state.by_reply and numbers:  # protocols by reply mark deliveries themselves
            assumptions = state.assumptions or Assumptions()
            before = dict(assumptions.missing_causes)
            assumptions.mark_lost(protocol, numbers)
        try:
            with state.translate_errors():
                effects = protocol.declare_lost(numbers)
        except LocalError:
            if assumptions is not None:
                assumptions.missing_causes = before
            raise
        if assumptions is not None and assumptions.missing_causes:
            state.assumptions = assumptions
        state.record("release", named)
        return self._effects.carry_out(effects, None)


def accept_invitation(
    name: str,
    invitation: bytes,
    room: str | None,
    keep_log: bool,
    options: Mapping[str, Any],
    *,
    sender_logs: bool = False,
) -> GroupState:
    """Return the state of a joining member: see `Group.accept`."""
    from antecede.core.protocols.serialization import check_frontier

    identity, table, incarnations, frontier = unpack_state(invitation, 4)
    if misfit((identity, incarnations), (GROUP_SHAPE, IncarnationTable.SHAPE)):
        raise DecodeError("invitation lacks order and room")
    order, is_open, told_room, told_options = identity
    if order not in ENTRIES or not ENTRIES[order].flat:
        raise DecodeError(f"invitation to a group of unknown order {order!r:.40}")
    roster = read_member_table(table)
    if check_name(name) not in roster.numbers:
        raise MismatchError("members", f"invitation is not for {name!r}")
    limits, own = split_limits(options, order, is_open)
    own = number_member_options(order, own, roster.numbers)
    protocol = make_protocol(order, roster.numbers[name], roster.numbers, own)
    if sender_logs:
        protocol.carry_in_lanes()
    agreed = _SharedOptions(
        make_protocol(order, roster.numbers[name], roster.numbers, own), order, roster
    )
    if room is not None and told_room != room_code(room):
        raise MismatchError("room", f"invitation is to another room than {room!r}")
    check_frontier(protocol, frontier, roster.names)
    if is_open and not can_be_open(protocol):
        raise DecodeError(f"invitation to an open group of {order}, which is always closed")
    try:
        protocol.install_join_state(frontier)
    except (TypeError, ValueError, LookupError, LocalError) as error:
        raise DecodeError(f"invitation has an invalid join state for order {order}") from error
    if not set(protocol.members) <= roster.names.keys():
        raise DecodeError("join state of the invitation has members without a name")
    agreed.check(own, getattr(protocol, "subscriptions", None), told_options, is_open)
    state = GroupState(
        *(order, protocol, roster, is_open),
        room=told_room,
        options=told_options,
        limits=limits,
        keep_log=keep_log,
    )
    state.incarnations = IncarnationTable.from_state(incarnations)
    return state


class _SharedOptions:
    """Options that the invitation fixes, compared with those of the joining member."""

    def __init__(self, fresh: Protocol, order: str, roster: Roster) -> None:
        self._fresh, self._order, self._roster = fresh, order, roster
        joined = set(roster.joins)
        self._first = {k: name for k, name in roster.names.items() if k not in joined}

    def check(
        self,
        own: Mapping[str, Any],
        subscriptions: Subscriptions[int] | None,
        announced: int,
        is_open: bool,
    ) -> None:
        """Raise MismatchError if the group has other options than `own`.

        Fingerprints cover only the first members. The current `subscriptions` count as the first
        ones if the joining member specifies only its own.
        """
        first = self._first.values()
        options = dict(own)
        if (bounds := options.get("bounds")) is not None:
            options["bounds"] = bounds.among(set(first))
        tried = [options]
        if subscriptions is not None:
            given = own.get("subscriptions") or Subscriptions()
            mine = {
                candidate: topics
                for candidate, topics in given.topics.items()
                if candidate in first and topics
            }
            names = self._roster.names
            now = {names[k]: t for k, t in subscriptions.topics.items() if k in self._first}
            chosen = [mine] if mine else [mine, now]
            tried = [{**options, "subscriptions": Subscriptions(candidate)} for candidate in chosen]
        shared = [collect_shared_options(self._fresh, candidate) for candidate in tried]
        fitting = [pair for pair in shared if options_code(self._order, pair[0]) == announced]
        if not fitting:
            raise MismatchError(
                "options",
                f"invitation to a group of {self._order} with other options than {shared[0][0]}",
            )
        if self._roster.forgotten:
            return  # the first list is unknown
        lists = (Roster(self._first, extra=canonicalize(tables)) for _, tables in fitting)
        if not is_open and self._roster.digests[0] not in {
            candidate.digests[0] for candidate in lists
        }:
            raise MismatchError(
                "members",
                "invitation to a group with other bounds or subscriptions of its first members "
                f"({', '.join(self._first.values())}); pass the original ones",
            )
