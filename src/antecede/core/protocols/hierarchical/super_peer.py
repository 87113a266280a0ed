"""Super peer: numbers the messages of its group and forwards between the groups.

Source: Evropeytsev et al. 2016, Listings 3, 7, 8 and 13; Listing 8 line 3 `VT` is `VTx`. Several
super peers may be in the external group, each with an internal group of its own.

A message from an internal peer needs only FIFO order, since its dependencies have passed through
this super peer. It gets the group's next number and is sent to the whole group (its sender too)
and, translated, to the external group. A message from the external group waits for its causal past
(`ExternalClock`). Then it gets a number, too, and is sent, translated, into the internal group.

While its group sends nothing, I and the VTx of the others grow by a bit for each message from
outside. When I spans `flush_after` numbers, it is sent alone (`Flush`), which bounds both.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, ClassVar

from antecede.core.clocks import plain, positions
from antecede.core.protocols.base import (
    AFTER_LEAVE,
    DUPLICATE,
    NOTHING,
    Discard,
    Effect,
    Guarantee,
    Held,
    Hold,
    MessageId,
    Relation,
    Transmit,
)
from antecede.core.protocols.hierarchical.clock import ExternalClock, ExternalRole
from antecede.core.protocols.hierarchical.internal import add_position, follow, format_window
from antecede.core.protocols.hierarchical.messages import (
    EMPTY,
    PAIR_BYTES,
    Acknowledgement,
    Downward,
    External,
    Flush,
    Upward,
    Window,
)
from antecede.core.protocols.hierarchical.translation import PUBLISHED, SAFE, TranslationTable
from antecede.core.protocols.membership import changes
from antecede.errors import LocalError, SequenceError, UnknownMemberError

FLUSH_AFTER = 1 << 16
"""Span of I, in numbers, at which it is sent alone."""
OVERTAKEN = "acknowledgement that overtook a message"


class SuperPeer(ExternalRole):
    """Super peer of the internal `group`, in an external group of `peers` and `super_peers`."""

    guarantee: Guarantee = Guarantee(Relation.BY_DELIVERY, joins=True, leaves=True)
    application: ClassVar[bool] = False
    accepted: ClassVar[tuple[type, ...]] = (Upward, Acknowledgement, External, Flush)

    def __init__(
        self,
        me: int,
        group: Iterable[int],
        peers: Iterable[int],
        super_peers: Iterable[int],
        *,
        pruning: str = SAFE,
        flush_after: int = FLUSH_AFTER,
        even_to_nobody: bool = False,
    ) -> None:
        """Initialize the state by Listing 3: VTx zero, LR all <0, 0>, TT and I empty.

        `sends_to_empty_groups`: transmit also without recipients, for a host that keeps messages.
        """
        flush_after = plain(flush_after)
        if not 1 <= flush_after <= FLUSH_AFTER:
            raise LocalError(f"flush_after is {flush_after}; expected 1 to {FLUSH_AFTER} numbers")
        group, peers, super_peers = tuple(group), tuple(peers), tuple(super_peers)
        super().__init__(me, (*group, *peers, *super_peers))
        self.group = tuple(sorted(group))
        self.pruning, self.flush_after = pruning, flush_after
        self.sends_to_empty_groups = even_to_nobody
        self.number = 0  # VTx[me]
        self.clock = ExternalClock(me, peers, super_peers)
        self.table = TranslationTable(me, group, super_peers, pruning)
        self.lr = dict.fromkeys(self.group, EMPTY)  # peer -> (in, out)
        self.held: dict[MessageId, Upward] = {}
        self.last: dict[int, int] = {}
        self.heads: Window = EMPTY  # dependencies of a new internal peer's first message
        self._outside: tuple[int, ...] | None = None  # cache until the members change

    def send(
        self, payload: Any, *, now: int | None = None, after: Sequence[MessageId] = ()
    ) -> Sequence[Effect]:
        """Raise LocalError: a super peer only forwards (Evropeytsev et al. 2016, section 3.1.2)."""
        raise LocalError(
            f"member {self.me} is a super peer, which only forwards; send from an internal or "
            "external peer"
        )

    def receive(
        self, message: Upward | Acknowledgement | External | Flush, *, now: int | None = None
    ) -> Sequence[Effect]:
        """Forward by Listings 7 and 8, or 10, 11 and 13. Raises a RemoteError."""
        if isinstance(message, External | Flush):
            return super().receive(message)
        if isinstance(message, Acknowledgement):
            return self._receive_acknowledgement(message)
        return self._from_inside(message)

    # -- from the internal group (Listings 7 and 8) -----------------------------------------

    def _from_inside(self, message: Upward) -> Sequence[Effect]:
        sender, seq = message.sender, message.seq
        self._check(message)
        dv = message.dv
        if dv[0] + dv[1].bit_length() > self.number:
            raise SequenceError(
                f"message {seq} of peer {sender} names a message above {self.number}, "
                "the last that the super peer has numbered"
            )
        if seq <= self.lr[sender][0] or MessageId(sender, seq) in self.held:
            return (Discard(message, DUPLICATE),)
        if seq > self.lr[sender][0] + 1:
            self.held[MessageId(sender, seq)] = message
            return (Hold(message, self._find_gap(message)),)
        effects: list[Effect] = []
        following: Upward | None = message
        while following is not None:
            self._forward(following, effects)
            following = self.held.pop(MessageId(sender, following.seq + 1), None)
        self._forget(sender)
        return effects

    def _check(self, message: Upward | Acknowledgement) -> None:
        sender, seq = message.sender, message.seq
        if sender not in self.lr:
            raise UnknownMemberError(f"message {seq} from {sender}, not in the internal group")
        if seq > self.last.get(sender, seq):
            raise SequenceError(
                f"message {seq} from peer {sender}, who left after {self.last[sender]}"
            )
        if seq < (0 if isinstance(message, Acknowledgement) else 1):
            raise SequenceError(f"message {seq} from peer {sender}; numbers start at 1")
        if message.lower_bound > self.number:
            raise SequenceError(
                f"peer {sender} has delivered up to {message.lower_bound}, but only "
                f"{self.number} have been numbered"
            )

    def _forward(self, message: Upward, effects: list[Effect]) -> None:
        """Forward a message by Listing 8."""
        sender, last = message.sender, self.lr[message.sender][1]
        self.number += 1
        self.lr[sender] = (message.seq, self.number)
        inward = Downward(sender, self.number, last, message.dv, message.payload)
        outward = self.table.translate_outward(message, self.number, last)
        self.heads = follow(self.heads, inward)
        effects += self._transmit(self.group, inward)
        effects += self._transmit(self.outside, outward)
        self.table.raise_lower_bound(sender, message.lower_bound)

    def _transmit(self, to: tuple[int, ...], message: Any) -> tuple[Effect, ...]:
        return (Transmit(to, message),) if to or self.sends_to_empty_groups else ()

    @property
    def outside(self) -> tuple[int, ...]:
        if self._outside is None:
            inside = {self.me, *self.group}
            self._outside = tuple(m for m in self.members if m not in inside)
        return self._outside

    def _find_gap(self, message: Upward) -> tuple[MessageId, ...]:
        before = message.seq - 1
        while MessageId(message.sender, before) in self.held:
            before -= 1
        return (MessageId(message.sender, before),)

    def _receive_acknowledgement(self, message: Acknowledgement) -> Sequence[Effect]:
        self._check(message)
        if self.pruning == PUBLISHED:
            # As in the source: an announcement counts at once, whatever is in transit.
            self.learn_delivered(message.sender, message.lower_bound)
            return NOTHING
        if message.seq > self.lr[message.sender][0]:
            # An earlier message is in transit and may name numbers up to this bound.
            return (Discard(message, OVERTAKEN),)
        self.table.raise_lower_bound(message.sender, message.lower_bound)
        return NOTHING

    def learn_delivered(self, peer: int, prefix: int) -> None:
        """Record out of band that a peer has delivered all numbers up to `prefix`.

        Only `pruning="published"` uses it, since Evropeytsev et al. 2016 do not define how the
        super peer learns it. Raises LocalError for a peer outside the group or a prefix above the
        last number.
        """
        if peer not in self.lr or not 0 <= prefix <= self.number:
            raise LocalError(
                f"peer {peer} with prefix {prefix}: expected one of {self.group}, and 0 to "
                f"{self.number}"
            )
        if self.pruning == PUBLISHED:
            self.table.raise_lower_bound(peer, prefix)

    # -- from the external group (Listings 10, 11 and 13) -----------------------------------

    def _take(self, messages: Iterable[External]) -> list[Effect]:
        """Number messages into the group (Listing 13); flush I when it has grown long."""
        effects: list[Effect] = []
        for ready in messages:
            self.number += 1
            inward = self.table.translate_inward(ready, self.number)
            self.heads = follow(self.heads, inward)
            effects += self._transmit(self.group, inward)
        if not self.table.lower_bounds:
            self.table.prune(self.heads[0])
        for window in self.table.take_windows(self.flush_after):
            note = Flush(self.me, 0, window, self.note_payload)
            effects += self._transmit(self.outside, note)
        return effects

    def _check_own(self, message: External) -> None:
        for process, (base, bits) in message.vectors:
            if process == self.me and base + bits.bit_length() > self.number:
                raise SequenceError(
                    f"message {message.seq} of {message.sender} names message "
                    f"{base + bits.bit_length()} of this super peer, which has sent {self.number}"
                )

    def list_held(self) -> tuple[Held, ...]:
        inside = tuple(Held(m, self._find_gap(m)) for _, m in sorted(self.held.items()))
        return inside + self.clock.list_held()

    def count_held(self) -> int:
        return len(self.held) + len(self.clock.held)

    # -- membership -------------------------------------------------------------------------

    def join_state(self) -> Hashable:
        return (*self.group, self.me), self.number, self.heads

    def join(self, member: int) -> Sequence[Effect]:
        self._add_member(member)
        self.group, self._outside = tuple(sorted((*self.group, member))), None
        self.lr[member] = EMPTY
        self.table.lower_bounds[member] = min(self.number, self.heads[0])
        return NOTHING

    def join_external(self, member: int) -> Sequence[Effect]:
        self.clock.join(member)
        self._add_member(member)
        return NOTHING

    def join_super_peer(self, member: int) -> Sequence[Effect]:
        self.clock.join_super_peer(member)
        self._add_member(member)
        self.table.super_peers |= {member}
        return NOTHING

    def _add_member(self, member: int) -> None:
        known = {*self.members, *self.lr}
        self.members = changes.add_members(self.members, known, (member,))
        self._outside = None

    def outer_frontier(self) -> Hashable:
        """Return the join state for a new external or super peer, as in `ExternalPeer`."""
        counts, vectors = self.table.translate_window(self.heads)
        own = ((self.me, (self.number, 0)),)
        clock_counts, clock_vectors = self.clock.frontier()
        last = tuple(self.clock.last.items())
        members = (*self.outside, self.me)
        return members, clock_counts, (*clock_vectors, *own), counts, vectors, last

    def install_join_state(self, state: Any) -> None:
        """Start with an empty group; messages in CI get numbers as if just translated."""
        members, clock_counts, clock_vectors, counts, vectors, last = state
        changes.check_unused(self.number, self.group)
        self.members, self._outside = tuple(sorted({*members, self.me})), None
        self.clock.restore((sorted(clock_counts), clock_vectors, (), last))
        self.table.super_peers = frozenset({self.me, *self.clock.vectors})
        named = [*counts, *((s, number) for s, window in vectors for number in positions(*window))]
        for process, number in named:
            self.number += 1
            self.table.record(process, number, self.number)
            self.heads = add_position(*self.heads, self.number)

    def leave(self, member: int, last: int) -> Sequence[Effect]:
        late: list[Any]
        if member in self.lr and member not in self.last:
            changes.check_last_number(member, last, self.lr[member][0])
            self.last[member] = last
            self.group = changes.remove_members(self.group, (member,))
            keys = sorted(k for k in self.held if k.sender == member and k.seq > last)
            late = [self.held.pop(key) for key in keys]
            self._forget(member)
        else:
            late = list(self.clock.leave(member, last))
        self.members, self._outside = changes.remove_members(self.members, (member,)), None
        return tuple(Discard(message, AFTER_LEAVE) for message in late)

    def _forget(self, peer: int) -> None:
        """Exclude a departed peer from pruning once its last message is forwarded."""
        if self.last.get(peer) == self.lr[peer][0]:
            self.table.lower_bounds.pop(peer, None)
            self.table.prune(self.heads[0])

    # -- snapshot, size, wire ---------------------------------------------------------------

    def snapshot(self) -> Hashable:
        held = tuple(message for _, message in sorted(self.held.items()))
        groups = self.members, self.group, tuple(self.lr.items()), tuple(self.last.items())
        inner = self.clock.snapshot(), self.table.snapshot()
        return *groups, self.number, self.heads, held, *inner

    def restore(self, state: Any) -> None:
        self.members, self.group, lr, last, self.number, self.heads, held, clock, table = state
        self.lr, self.last, self._outside = dict(lr), dict(last), None
        self.held = {MessageId(m.sender, m.seq): m for m in held}
        self.clock.restore(clock)
        self.table.super_peers = frozenset({self.me, *self.clock.vectors})
        self.table.restore(table)

    def check_whole(self) -> None:
        here = set(self.group)
        if here != self.lr.keys() - self.last.keys() or not self.lr.keys() >= self.last.keys():
            raise ValueError(f"LR: peers {sorted(self.lr)} in place of {sorted(here)}")
        if self.me not in self.members or not here <= set(self.members) - {self.me}:
            raise ValueError(f"members {self.members} without this peer or its group")
        waited = {k for k in self.lr if self.last.get(k) != self.lr[k][0]}
        if set(self.table.lower_bounds) != waited:
            raise ValueError(f"lower bounds: peers {sorted(self.table.lower_bounds)}")
        if any(message.sender not in self.lr for message in self.held.values()):
            raise ValueError("held: a message of a peer that is not in the group")
        self.clock.check_whole({*self.members} - here - {self.me})

    def describe(self) -> dict[str, str]:
        """Return VTx, LR (by peer), TT (by process) and I in the source's notation."""
        lr = ", ".join(f"<{taken}, {given}>" for _, (taken, given) in sorted(self.lr.items()))
        rows = [
            f"{process}: " + ", ".join(f"<{n}, {out}>" for n, out in outs.items())
            for process, outs in sorted(self.table.outs.items())
            if outs
        ]
        tt = "; ".join(rows)
        shown = {"VTx": self.clock.describe(self.number), "LR": f"({lr})", "TT": tt or "Ø"}
        return {**shown, "I": format_window(self.table.fresh)}

    def storage_bytes(self) -> int:
        """Return VTx, 8 per peer in LR, TT, I and the lower bounds (the source gives no figure)."""
        return self.clock.storage_bytes() + PAIR_BYTES * len(self.lr) + self.table.storage_bytes()
