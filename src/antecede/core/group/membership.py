"""Membership: invitations, joins, leaves, and who subscribes to what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from antecede.core.clocks import MAX_NUMBER
from antecede.core.group.assumptions import Assumptions
from antecede.core.group.incarnations import Lives, Roster, agreeing, canonical
from antecede.core.group.message import Id, Message
from antecede.core.group.options import (
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
from antecede.core.group.receiver import Receiving
from antecede.core.group.state import NO_CALL, GroupState
from antecede.core.protocols import ENTRIES, MessageId, Protocol, Relation, flat_class
from antecede.core.protocols.options import check_flags
from antecede.core.protocols.serialization import misfit, pack_state, unpack_state
from antecede.core.protocols.topics import Subscriptions
from antecede.errors import DecodeError, LocalError, MismatchError
from antecede.formatting import shown


class Membership(Receiving):
    """Lets members in and out, and tells the protocol."""

    def invite(self, newcomer: str, *, again: bool = False) -> bytes:
        """As sponsor: take a newcomer in and return the invitation that it starts from.

        Tell every other member to `join(newcomer)` too. From then on the transport owes the
        newcomer every message that the invitation's frontier does not cover: `frontier` says
        which, and `held` hands over those that wait here.

        `again`: the newcomer was invited before, by this member or another, and its invitation was
        lost. Raises LocalError for a name that is or was in the group; with `again`, for one that
        is not in the group or has sent a message.
        """
        check_flags(again=again)
        state = self._state
        self._state.call = NO_CALL
        newcomer = self._checked_silent(newcomer) if again else self._checked_new(newcomer)
        flat_class(state.order)  # what `accept` cannot make, nobody is invited to
        frontier = state.protocol.frontier()
        if not again:
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
        """Add a joining member that another member invited.

        Returns what can be delivered now: messages whose senders knew of it before.
        """
        state = self._state
        self._state.call = NO_CALL
        newcomer = self._checked_new(newcomer)
        number = state.roster.next_number
        with state.named_errors():
            delivered = self._effects.carry_out(state.protocol.join(number), None)
        state.roster.add(number, newcomer)
        state.record("join", newcomer)
        return delivered + self._take_in_ahead()

    def _checked_new(self, newcomer: str) -> str:
        name = checked(newcomer)
        roster = self._state.roster
        if name in roster.numbers or name in roster.forgotten:
            raise LocalError(f"{name!r} is or was in the group; a name is never reused")
        return name

    def _checked_silent(self, newcomer: str) -> str:
        """Return the name of a present member of which nothing has been heard."""
        name, state = checked(newcomer), self._state
        number = state.number(name)
        heard = state.lives.heard(name) or state.protocol.delivered_runs().get(number)
        if name == state.name or number in state.protocol.departed() or heard:
            raise LocalError(
                f"{name!r} is not invited again: it has sent a message, or left, or is this member "
                "itself; a newcomer needs a name of its own"
            )
        return name

    def leave(self, member: str, last: int, *, force: bool = False) -> list[Message]:
        """A member left; `last` is the number of its last message (0: it sent none).

        That is `last()` in its own group. In an open group it may be a member of which nothing has
        arrived here yet. Held messages of it above `last` are discarded, counted in `stats` and
        told by `effects`. Raises LocalError for a name that is not in the group, for one's own (the
        others are told), for a `last` below what was delivered here, and for one that a waiting
        message of another member contradicts; `receive` refuses a later one likewise. `force`:
        leave all the same; messages that need more than `last` stay held.
        """
        check_flags(force=force)
        self._state.call = NO_CALL
        if type(last) is not int or not 0 <= last <= MAX_NUMBER:
            raise LocalError(
                f"{shown(member)} left after message {shown(last)}: the number of its last message "
                f"is a whole number from 0 (it sent none) to {MAX_NUMBER}, as last() in its own "
                "group tells"
            )
        state, protocol, carry_out = self._state, self._state.protocol, self._effects.carry_out
        if member == state.name:
            raise LocalError(
                f"{member!r} is this member itself, and its own group is not told that it leaves: "
                f"the others call leave({member!r}, last), with what last() says here"
            )
        if type(protocol).leave is Protocol.leave:
            raise LocalError(f"order {state.order!r} does not let members leave")
        if state.roster.forgotten and member in state.roster.forgotten:
            raise LocalError(f"{member!r} left before and was forgotten")
        if not state.open or checked(member) in state.roster.numbers:
            with state.named_errors():
                if not force:
                    self._check_last(state.number(member), last)
                effects = protocol.leave(state.number(member), last)
            delivered = carry_out(effects, None)
        else:
            with state.unchanged_by_errors(), state.named_errors():
                number = state.roster.next_number
                delivered = carry_out(protocol.join(number), None)
                state.roster.add(number, checked(member))
                delivered += carry_out(protocol.leave(number, last), None)
        state.record("leave", member, last, *((True,) if force else ()))
        return delivered

    def _check_last(self, member: int, last: int) -> None:
        """Raise LocalError where something that waits here says that there is more than `last`."""
        state, protocol = self._state, self._state.protocol
        if state.renumbers:
            return
        for message in (*protocol.undelivered(), *self._decoded_ahead()):
            named = protocol.number_named(message, member)
            if message.sender != member and named > last:
                raise LocalError(
                    f"member {member} cannot have left after message {last}: "
                    f"{'message ' + str(message.seq) if message.seq else 'a note'} of member "
                    f"{message.sender}, which waits here, knows of message {named} of member "
                    f"{member}. Give the number of its last message; what never comes of it, give "
                    "to release()"
                )

    def forget(self, member: str) -> None:
        """Drop the name, numbers and digests of a member that left, and its entry in messages.

        For hosts that know that every present member was told of the departure and has delivered
        what the departed sent. Mentions of it by members that have not forgotten it yet are passed
        over; late copies of its messages are duplicates. The names of the newest 4,096 forgotten
        members are kept for that, and neither name nor number is given out again. In orders "fifo",
        "causal" (idr), "bss", "ds" and "none". Raises LocalError in others, for a member that has
        not left, while a message of it is missing here, and while something waits that names it.
        """
        state, protocol = self._state, self._state.protocol
        state.call = NO_CALL
        number = state.number(member)
        if number not in protocol.departed():
            raise LocalError(f"{member!r} is in the group: tell leave({member!r}, last) first")
        for message in (*protocol.undelivered(), *self._decoded_ahead()):
            if message.sender == number or protocol.number_named(message, number):
                raise LocalError(
                    f"{member!r} is forgotten only when nothing waits that names it: message "
                    f"{message.seq} of {state.roster.name(message.sender)!r} does"
                )
        with state.named_errors():
            protocol.forget(number)
        state.roster.forget(number)
        state.lives.forget(member)
        for key in [key for key in state.recent if key[0] == member]:
            del state.recent[key]
        state.record("forget", member)

    def begin_at(self, frontier: Mapping[str, int] | None = None) -> None:
        """Begin behind messages that never come here, before anything is sent or received.

        `frontier`: each member's messages up to its number count as delivered, and late copies of
        them are duplicates. In an open group it may name members that are not met yet. Orders by
        clocks take it where the host carries lanes.

        None: each member begins at the first message that is heard of it. Earlier ones count as
        delivered, and so do the causes that a message names of members that were not heard yet; it
        names them in `missing`. For members that listen to a gossip and have no sponsor.

        Raises LocalError for strangers, for own messages, behind the last message of a member that
        left, after something was sent or received, and, with the reason, in orders that cannot
        begin so.
        """
        state = self._state
        state.call = NO_CALL
        if frontier is not None and not isinstance(frontier, Mapping):
            raise LocalError(f"a frontier is a table of numbers by member, not {shown(frontier)}")
        if frontier is None or frontier:
            tally = state.tally
            if tally.sent or tally.delivered or state.held:
                raise LocalError(
                    "a group begins at a frontier before anything is sent or received: "
                    f"{tally.sent} sent, {tally.delivered} delivered, {state.held} held"
                )
        with state.unchanged_by_errors(), state.named_errors():
            if frontier is None:
                state.protocol.check_listening()
                if state.protocol.guarantee.relation is not Relation.NONE:
                    state.assumptions = Assumptions(listens=True)
            else:
                self._begin_behind(frontier)
        state.record("begin_at", None if frontier is None else tuple(frontier.items()))

    def _begin_at_pairs(self, pairs: Iterable[tuple[str, int]] | None) -> None:
        """Do what `begin_at` does, as a log of inputs holds it."""
        self.begin_at(None if pairs is None else dict(pairs))

    def _begin_behind(self, frontier: Mapping[str, int]) -> None:
        state, protocol = self._state, self._state.protocol
        for name, seq in frontier.items():
            if type(seq) is not int or not 0 <= seq <= MAX_NUMBER:
                raise LocalError(
                    f"{shown(seq)} is no number up to which messages of {shown(name)} are here: it "
                    f"is a whole number from 0 to {MAX_NUMBER}"
                )
            if name == state.name and seq:
                raise LocalError(
                    f"{name!r} is this member itself, and its own messages are those that it sends "
                    "here: restore a snapshot to go on behind earlier ones"
                )
        known = state.roster.numbers
        if state.open and not protocol.needs_lanes:
            new = [name for name in frontier if checked(name) not in known]
            if new:
                self._meet(new)
        newest = {state.number(name): seq for name, seq in frontier.items() if name != state.name}
        for member, last in protocol.departed().items():
            if newest.get(member, 0) > last:
                raise LocalError(
                    f"member {member} left after message {last}: nothing begins behind "
                    f"{newest[member]}"
                )
        if newest := {member: seq for member, seq in newest.items() if seq}:
            protocol.begin_at(newest)

    def subscribe(self, member: str, topics: Iterable[str]) -> list[Message]:
        """A member subscribes to these topics from now on, and to no others. Tell every member.

        Raises LocalError when the order knows no topics.
        """
        state = self._state
        self._state.call = NO_CALL
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

    def release(self, lost: Iterable[Id]) -> list[Message]:
        """These messages never come: return what waits for nothing else, marked, and what follows.

        For hosts that know that nobody has the messages any more: tell every member. Each `Message`
        that was held for one of them names it in `missing`. Late copies of them are duplicates. In
        order "reply" they are delivered late, and `missing_parent="release"` goes by patience
        instead.

        Where a sender's messages come by number, each is passed over in its turn: name all of a gap
        (`missing` gives `first` to `seq`). Where messages are for chosen receivers, a number stands
        for all before it that are not here. Where messages name only immediate causes ("causal",
        "reply"), what a lost message depended on may come behind a message that is marked. Own
        messages, and those that count as delivered, change nothing where messages come by number.

        Raises LocalError, and changes nothing, in orders in which nothing waits for a message, for
        one that is held or whose turn does not come, and for members that never were in the group;
        for chosen receivers and orders by clocks, also for one that nothing waits for.
        """
        state, protocol = self._state, self._state.protocol
        state.call = NO_CALL
        if state.renumbers:
            raise LocalError(
                f"order {state.order!r} numbers messages anew on their way, so none can be named "
                "as lost here"
            )
        named = state.ids(lost, "lost")
        numbers = [MessageId(state.number(sender), seq) for sender, seq in named]
        assumptions = None
        if not state.by_reply and numbers:  # there the protocol marks what it releases
            assumptions = state.assumptions or Assumptions()
            before = dict(assumptions.marks)
            assumptions.lose(protocol, numbers)
        try:
            with state.named_errors():
                effects = protocol.never_come(numbers)
        except LocalError:
            if assumptions is not None:
                assumptions.marks = before
            raise
        if assumptions is not None and assumptions.marks:
            state.assumptions = assumptions
        state.record("release", named)
        return self._effects.carry_out(effects, None)


def accepted(
    name: str,
    invitation: bytes,
    room: str | None,
    keep_log: bool,
    options: Mapping[str, Any],
    *,
    lanes: bool = False,
) -> GroupState:
    """Return what a newcomer begins from: see `Group.accept`."""
    from antecede.core.protocols.serialization import check_frontier

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
    if lanes:
        protocol.carry_in_lanes()
    agreed = _Agreed(made(order, roster.numbers[name], roster.numbers, own), order, roster)
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
    agreed.check(own, getattr(protocol, "subscriptions", None), told_options, is_open)
    state = GroupState(
        *(order, protocol, roster, is_open),
        room=told_room,
        options=told_options,
        limits=limits,
        keep_log=keep_log,
    )
    state.lives = Lives.of_state(lives)
    return state


class _Agreed:
    """What a newcomer is told of the options, beside what it was made with itself."""

    def __init__(self, fresh: Protocol, order: str, roster: Roster) -> None:
        self._fresh, self._order, self._roster = fresh, order, roster
        joined = set(roster.joined)
        self._first = {k: name for k, name in roster.names.items() if k not in joined}

    def check(
        self,
        own: Mapping[str, Any],
        subscribed: Subscriptions[int] | None,
        told: int,
        is_open: bool,
    ) -> None:
        """Raise MismatchError where the group was not made with these options.

        What is said of the first members is compared; of later ones the invitation's fingerprints
        say nothing. `subscribed`: the subscriptions now, as the sponsor told them. They stand for
        the first ones where a newcomer speaks of nobody's but its own.
        """
        first = self._first.values()
        options = dict(own)
        if (bounds := options.get("bounds")) is not None:
            options["bounds"] = bounds.among(set(first))
        tried = [options]
        if subscribed is not None:
            given = own.get("subscriptions") or Subscriptions()
            mine = {one: topics for one, topics in given.topics.items() if one in first and topics}
            names = self._roster.names
            now = {names[k]: t for k, t in subscribed.topics.items() if k in self._first}
            chosen = [mine] if mine else [mine, now]
            tried = [{**options, "subscriptions": Subscriptions(one)} for one in chosen]
        found = [agreeing(self._fresh, one) for one in tried]
        fitting = [pair for pair in found if options_code(self._order, pair[0]) == told]
        if not fitting:
            raise MismatchError(
                "options",
                f"an invitation to a group of {self._order} made with other options: {found[0][0]}",
            )
        if self._roster.forgotten:
            return  # the first list is not known any more
        lists = (Roster(self._first, extra=canonical(tables)) for _, tables in fitting)
        if not is_open and self._roster.digests[0] not in {one.digests[0] for one in lists}:
            raise MismatchError(
                "members",
                "an invitation to a group made with other bounds or subscriptions of its first "
                f"members ({', '.join(self._first.values())}): give those that it began with",
            )
