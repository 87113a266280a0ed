"""Questions to a group: what waits and for what, what was delivered, what others have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import Any

from antecede.errors import LocalError
from antecede.group_frames import Frames
from antecede.group_state import GroupState
from antecede.message import Blocked, Id, Message, Missing, Packet, Sent, Stats, Thread
from antecede.protocols.base import Held, MessageId
from antecede.words import shown


class Questions:
    """Answers from the state alone; asking changes nothing."""

    def __init__(self, state: GroupState, frames: Frames) -> None:
        self._state, self._frames = state, frames

    def blocked_on(self) -> list[Blocked]:
        """See `Group.blocked_on`."""
        state = self._state
        joins = len(state.roster.joined)
        held = self._all_blocked(state.protocol.blocked_on())
        return held + [Blocked(m, (), (), None, at - joins) for m, at, _ in state.ahead.values()]

    def blocked_by_id(self) -> dict[tuple[int, int], Blocked]:
        """See `Group.blocked_by_id`."""
        protocol = self._state.protocol
        held = protocol.blocked_on()
        ids = (protocol.identity(one.message) for one in held)
        shown = self._all_blocked(held)
        return {(key.sender, key.seq): one for key, one in zip(ids, shown, strict=True)}

    def _all_blocked(self, held: Sequence[Held]) -> list[Blocked]:
        """Return what is held by names; thousands of messages may wait for one and the same."""
        state, found = self._state, []
        missing: tuple[MessageId, ...] | None = None
        waits_for: tuple[Id, ...] = ()
        for one in held:
            if one.missing is not missing:
                missing, waits_for = one.missing, state.named(one.missing)
            silent = tuple([state.roster.name(k) for k in one.silent]) if one.silent else ()
            message = state.message(one.message)
            found.append(Blocked(message, waits_for, silent, one.until_ns, 0, one.reason))
        return found

    def missing(self) -> list[Missing]:
        """See `Group.missing`."""
        protocol, name = self._state.protocol, self._state.roster.name
        blocked = protocol.blocked_on()
        here = {protocol.identity(one.message) for one in blocked}
        messages = Counter(chain.from_iterable(one.missing for one in blocked))
        members = Counter(chain.from_iterable(one.silent for one in blocked))
        roots: list[tuple[str, int | None, int]] = [
            (name(sender), seq, count)
            for (sender, seq), count in messages.items()
            if (sender, seq) not in here
        ]
        roots += [(name(member), None, count) for member, count in members.items()]
        return [Missing(*root) for root in sorted(roots, key=lambda root: (root[0], root[1] or 0))]

    def stats(self) -> Stats:
        """See `Group.stats`."""
        state = self._state
        tally = state.tally
        oldest = next(iter(tally.since), None)
        return Stats(
            members=len(state.protocol.members),
            sent=tally.sent,
            delivered=tally.delivered,
            released=tally.released,
            held=state.protocol.held_count(),
            ahead=len(state.ahead),
            oldest=None if oldest is None else state.named([oldest])[0],
            held_since_ns=None if oldest is None else tally.since[oldest],
            duplicates=tally.duplicates,
            discarded=dict(tally.discarded),
            refused=dict(tally.refused),
        )

    def frontier(self) -> dict[str, tuple[tuple[int, int], ...]]:
        """See `Group.frontier`."""
        if self._state.renumbers:
            raise LocalError(
                f"order {self._state.order!r} numbers messages anew on their way, and keeps no "
                "numbers of their senders: what was delivered of whom cannot be told by them"
            )
        runs: dict[str, tuple[tuple[int, int], ...]] = {}
        for member, bounds in sorted(self._state.protocol.delivered_runs().items()):
            pairs = zip(bounds[::2], bounds[1::2], strict=True)
            runs[self._state.roster.name(member)] = tuple((a, stop - 1) for a, stop in pairs)
        return runs

    def last(self, member: str | None) -> int:
        """See `Group.last`."""
        state = self._state
        name = state.name if member is None else member
        number = state.number(name)
        if state.renumbers and (name != state.name or not state.protocol.application):
            raise LocalError(
                f"order {state.order!r} numbers messages anew on their way: no number of {name} is "
                "known here. Who sends knows its own: last() in its own group"
            )
        told = state.protocol.departed().get(number)
        return state.lives.heard(name) if told is None else told

    def held(self) -> list[Packet]:
        """See `Group.held`."""
        state = self._state
        wires = [self._frames.wire(one.message) for one in state.protocol.blocked_on()]
        return [Packet((), wire) for wire in (*wires, *state.ahead)]

    def thread(self, message: Message | Sent | Id) -> Thread:
        """See `Group.thread`."""
        state = self._state
        if not state.by_reply:
            raise LocalError(f"order {state.order!r} keeps no answers, so it has no threads")
        named = state.answered(message, "a thread's message")
        if len(named) != 1:
            raise LocalError(
                f"a thread is that of one message, not of {len(named)}: give one delivered "
                "Message, what send returned, or (sender, number)"
            )
        (one,) = named
        if one not in state.threads:
            raise LocalError(f"{one[0]}'s message {shown(one[1])} is not (or no longer) known here")
        return state.threads.tree(state.threads.root(one))

    def knows(self, member: str, of: str) -> int:
        """See `Group.knows`."""
        return int(self._matrix("knows")(self._state.number(member), self._state.number(of)))

    def stable(self) -> dict[str, int]:
        """See `Group.stable`."""
        found = self._matrix("stable")()
        return {self._state.roster.name(number): count for number, count in sorted(found.items())}

    def _matrix(self, method: str) -> Any:
        found = getattr(self._state.protocol, method, None)
        if found is None:
            raise LocalError(
                f"order {self._state.order!r} does not know what others have: use 'matrix'"
            )
        return found

    def topics(self) -> tuple[str, ...]:
        """See `Group.topics`."""
        subscriptions = getattr(self._state.protocol, "subscriptions", None)
        if subscriptions is None:
            raise LocalError(f"with order {self._state.order!r} nobody subscribes to topics")
        return tuple(subscriptions.all_topics())
