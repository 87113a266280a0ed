"""Questions to a group: what waits and for what, what was delivered, what others have."""

from __future__ import annotations

from typing import Any

from antecede.errors import LocalError
from antecede.group_frames import Frames
from antecede.group_state import GroupState
from antecede.message import Blocked, Id, Message, Missing, Packet, Sent, Stats, Thread
from antecede.protocols.base import Held


class Questions:
    """Answers from the state alone; asking changes nothing."""

    def __init__(self, state: GroupState, frames: Frames) -> None:
        self._state, self._frames = state, frames

    def blocked_on(self) -> list[Blocked]:
        """See `Group.blocked_on`."""
        state = self._state
        joins = len(state.roster.joined)
        held = [self._blocked(one) for one in state.protocol.blocked_on()]
        return held + [Blocked(m, (), (), None, at - joins) for m, at, _ in state.ahead.values()]

    def blocked_by_id(self) -> dict[tuple[int, int], Blocked]:
        """See `Group.blocked_by_id`."""
        protocol = self._state.protocol
        ids = ((protocol.identity(one.message), one) for one in protocol.blocked_on())
        return {(key.sender, key.seq): self._blocked(one) for key, one in ids}

    def _blocked(self, one: Held) -> Blocked:
        state = self._state
        return Blocked(
            state.message(one.message),
            state.named(one.missing),
            tuple([state.roster.name(member) for member in one.silent]),
            one.until_ns,
            reason=one.reason,
        )

    def missing(self) -> list[Missing]:
        """See `Group.missing`."""
        protocol, name = self._state.protocol, self._state.roster.name
        blocked = protocol.blocked_on()
        here = {protocol.identity(one.message) for one in blocked}
        counts: dict[tuple[str, int | None], int] = {}
        for one in blocked:
            roots: list[tuple[int, int | None]] = [(k, None) for k in one.silent]
            roots += [key for key in one.missing if key not in here]
            for sender, seq in roots:
                named = name(sender), seq
                counts[named] = counts.get(named, 0) + 1
        return [
            Missing(sender, seq, count)
            for (sender, seq), count in sorted(
                counts.items(), key=lambda item: (item[0][0], item[0][1] or 0)
            )
        ]

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
        runs: dict[str, tuple[tuple[int, int], ...]] = {}
        for member, bounds in sorted(self._state.protocol.delivered_runs().items()):
            pairs = zip(bounds[::2], bounds[1::2], strict=True)
            runs[self._state.roster.name(member)] = tuple((a, stop - 1) for a, stop in pairs)
        return runs

    def last(self, member: str | None) -> int:
        """See `Group.last`."""
        name = self._state.name if member is None else member
        self._state.number(name)
        return self._state.lives.heard(name)

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
        (one,) = state.answered(message) or ((state.name, 0),)
        if one not in state.threads:
            raise LocalError(f"{one[0]}'s message {one[1]} is not (or no longer) known here")
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
