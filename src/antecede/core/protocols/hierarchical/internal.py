"""Internal peer of the hierarchical protocol: bit vectors RV and DV over the group's numbers.

Source: Evropeytsev et al. 2016, Listings 1, 4, 5 and 6, with Listing 6 line 3 as `DV := DV & ~m.DV`
(the NOT is lost in print; `as_published={"listing6"}` keeps the printed line).

Theory of operation
-------------------
The super peer numbers all messages of the group 1, 2, 3, ... RV has the numbers that arrived and
were delivered. DV has those delivered since the last send that no later delivery names: the
immediate dependencies of the next message. Both are windows of packed integers, so a delivery
condition is a shift and an AND. A held message is indexed under its newest missing number.

The peer learns the number of its own message only from the copy that the super peer returns. A
dependent message that overtakes the copy waits for it. This unnecessary wait is part of the
protocol (docs/protocols/hierarchical.md).

For safe pruning, each message carries a lower bound: later messages of this peer name no number at
or below it. After `ack_after` deliveries without a send, an acknowledgement carries it alone.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from typing import Any, ClassVar

from antecede.core.clocks import MAX_SPAN, absorb, plain, positions, span_bytes, trim, window_bytes
from antecede.core.protocols.base import (
    DUPLICATE,
    NOTHING,
    OWN,
    Deliver,
    Discard,
    Effect,
    Guarantee,
    Held,
    Hold,
    MessageId,
    Relation,
    Transmit,
)
from antecede.core.protocols.hierarchical.messages import (
    EMPTY,
    Acknowledgement,
    Downward,
    Role,
    Upward,
    Window,
)
from antecede.core.protocols.membership import changes
from antecede.errors import LocalError, SequenceError

LISTING6 = "listing6"


def follow(dv: Window, message: Downward) -> Window:
    """Return DV after a delivery: Listing 6 lines 3 to 5, repaired."""
    base, bits = dv
    named_base, named = message.dv
    if bits:
        if named:
            shift = named_base - base
            bits &= ~(named << shift if shift >= 0 else named >> -shift)
        if base < message.last <= base + bits.bit_length():
            bits &= ~(1 << (message.last - base - 1))
    return add_position(base, bits, message.seq)


def add_position(base: int, bits: int, position: int) -> Window:
    """Return a trimmed window with one more position."""
    if not bits:
        return position - 1, 1
    if position > base:
        bits |= 1 << (position - base - 1)
        return (base, bits) if bits & 1 else trim(base, bits)
    return trim(position - 1, bits << (base - position + 1) | 1)


class InternalPeer(Role):
    """Internal peer; `super_peer` is the address of the super peer of its group."""

    guarantee: Guarantee = Guarantee(
        Relation.BY_DELIVERY, no_unnecessary_wait=False, joins=True, leaves=True
    )
    accepted: ClassVar[tuple[type, ...]] = (Downward,)

    def __init__(
        self,
        me: int,
        members: Iterable[int],
        super_peer: int,
        *,
        pruning: str = "safe",
        as_published: Collection[str] = (),
        ack_after: int = 64,
        ack_payload: Any = b"",
    ) -> None:
        """Initialize the state by Listing 1: SN = 0, RV and DV empty."""
        super().__init__(me, members)
        if super_peer == me or super_peer not in self.members:
            raise LocalError(f"super peer {super_peer} of peer {me} is not in {self.members}")
        self.super_peer = super_peer
        self.pruning = pruning
        self.uses_published_listing = LISTING6 in as_published
        self.ack_after = plain(ack_after) if pruning != "none" else 0
        self.ack_payload = ack_payload
        self.sn = 0
        self.base, self.bits = EMPTY  # RV
        self.dv: Window = EMPTY
        self.held: dict[int, Downward] = {}
        self.waiting: dict[int, list[int]] = {}
        self.deliveries_since_send = 0
        self.announced_lower_bound = 0

    # -- sending (Listing 4) ----------------------------------------------------------------

    def send(
        self, payload: Any, *, now: int | None = None, after: Sequence[MessageId] = ()
    ) -> Sequence[Effect]:
        """Send to the super peer, which numbers the message and sends it to the group."""
        self.sn += 1
        dv, self.dv = self.dv, EMPTY
        self.announced_lower_bound = self._find_lower_bound()
        self.deliveries_since_send = 0
        message = Upward(self.me, self.sn, dv, self.announced_lower_bound, payload)
        return (Transmit((self.super_peer,), message),)

    def _find_lower_bound(self) -> int:
        if self.pruning != "safe" or not self.dv[1]:
            return self.base
        return min(self.base, self.dv[0])

    # -- receiving (Listings 5 and 6) -------------------------------------------------------

    def receive(self, message: Downward, *, now: int | None = None) -> Sequence[Effect]:
        """Deliver the message when all messages that it names are delivered, else hold it."""
        seq = message.seq
        distance = seq - self.base - 1
        if not 0 <= distance < MAX_SPAN and not 0 < seq <= self.base:
            raise SequenceError(
                f"message {seq} from super peer {self.super_peer}: numbers are from 1 to "
                f"{MAX_SPAN} above {self.base}, up to which all is delivered"
            )
        if message.last >= seq or message.dv[0] + message.dv[1].bit_length() >= seq:
            raise SequenceError(f"message {seq} of super peer {self.super_peer} names a later one")
        if distance < 0 or self.bits >> distance & 1 or seq in self.held:
            return (Discard(message, DUPLICATE),)
        absent = self._find_absent(message)
        if absent:
            self.held[seq] = message
            self.waiting.setdefault(self.base + absent.bit_length(), []).append(seq)
            return (Hold(message, self._absent_to_ids(absent)),)
        effects = self._deliver(message)
        if seq in self.waiting:
            self._release(seq, effects)
        if self.ack_after and self.deliveries_since_send >= self.ack_after:
            self._acknowledge(effects)
        return effects

    def _find_absent(self, message: Downward) -> int:
        """Return the named positions that RV lacks, as bits above RV's base (Listing 5)."""
        base = self.base
        shift = message.dv[0] - base
        need = message.dv[1] << shift if shift >= 0 else message.dv[1] >> -shift
        if message.last > base:
            need |= 1 << (message.last - base - 1)
        return need & ~self.bits

    def _deliver(self, message: Downward) -> list[Effect]:
        """Update RV and DV (Listing 6); a returned own message only updates RV."""
        seq = message.seq
        if seq == self.base + 1 and not self.bits:
            self.base = seq
        else:
            self.base, self.bits = absorb(self.base, self.bits | 1 << (seq - self.base - 1))
        self.deliveries_since_send += 1
        if message.sender == self.me:
            return [Discard(message, OWN)]
        if self.uses_published_listing:
            self.dv = self._update_dv_as_published(message)
        else:
            self.dv = follow(self.dv, message)
        return [Deliver(message)]

    def _update_dv_as_published(self, message: Downward) -> Window:
        """Return DV by Listing 6 as printed: `DV := DV & m.DV` loses dependencies that m lacks."""
        kept = set(positions(*self.dv)) & set(positions(*message.dv)) - {message.last}
        dv = EMPTY
        for position in sorted({*kept, message.seq}):
            dv = add_position(*dv, position)
        return dv

    def _release(self, position: int, effects: list[Effect]) -> None:
        queue = self.waiting.pop(position)
        while queue:
            queue.sort(reverse=True)
            message = self.held[queue.pop()]
            absent = self._find_absent(message)
            if absent:
                newest = self.base + absent.bit_length()
                self.waiting.setdefault(newest, []).append(message.seq)
                continue
            del self.held[message.seq]
            effects += self._deliver(message)
            queue += self.waiting.pop(message.seq, ())

    def _acknowledge(self, effects: list[Effect]) -> None:
        self.deliveries_since_send = 0
        lower_bound = self._find_lower_bound()
        if lower_bound > self.announced_lower_bound:
            self.announced_lower_bound = lower_bound
            note = Acknowledgement(self.me, self.sn, lower_bound, self.ack_payload)
            effects.append(Transmit((self.super_peer,), note))

    def _absent_to_ids(self, absent: int) -> tuple[MessageId, ...]:
        return tuple(MessageId(self.super_peer, p) for p in positions(self.base, absent))

    def identity(self, message: Any) -> MessageId:
        return MessageId(self.super_peer, message.seq)

    def list_held(self) -> tuple[Held, ...]:
        return tuple(
            Held(message, self._absent_to_ids(self._find_absent(message)))
            for _, message in sorted(self.held.items())
        )

    def count_held(self) -> int:
        return len(self.held)

    # -- membership -------------------------------------------------------------------------

    def install_join_state(self, state: Any) -> None:
        members, self.base, self.dv = state
        self.members = tuple(sorted({*members, self.me}))
        self.announced_lower_bound = self._find_lower_bound()

    def join(self, member: int) -> Sequence[Effect]:
        self.members = changes.add_members(self.members, self.members, (member,))
        return NOTHING

    def leave(self, member: int, last: int) -> Sequence[Effect]:
        if member not in self.members or member in (self.me, self.super_peer):
            raise LocalError(f"member {member} cannot leave the group of {self.members}")
        self.members = changes.remove_members(self.members, (member,))
        return NOTHING

    # -- snapshot, size, wire ---------------------------------------------------------------

    def snapshot(self) -> Hashable:
        held = tuple(message for _, message in sorted(self.held.items()))
        rest = (
            (self.deliveries_since_send, self.announced_lower_bound) if self.ack_after else (0, 0)
        )
        return self.members, self.sn, self.base, self.bits, self.dv, held, rest

    def restore(self, state: Any) -> None:
        self.members, self.sn, self.base, self.bits, self.dv, held, rest = state
        self.deliveries_since_send, self.announced_lower_bound = rest
        self.held = {message.seq: message for message in held}
        self.waiting = {}
        for message in held:
            newest = self.base + self._find_absent(message).bit_length()
            self.waiting.setdefault(newest, []).append(message.seq)

    def check_whole(self) -> None:
        if self.me not in self.members or self.super_peer not in self.members:
            raise ValueError(f"members {self.members} without this peer or its super peer")

    def describe(self) -> dict[str, str]:
        rv = "1" * self.base + bin(self.bits)[:1:-1] * bool(self.bits)
        return {"SN": str(self.sn), "RV": rv or "Ø", "DV": format_window(self.dv)}

    def storage_bytes(self) -> int:
        """Return the source's count: RV from its first gap to its last bit, the span of DV."""
        return window_bytes(self.bits) + span_bytes(self.dv[1])


def format_window(window: Window) -> str:
    """Return a bit vector in the source's notation, position 1 first; Ø when empty."""
    base, bits = window
    return "0" * base + bin(bits)[:1:-1] if bits else "Ø"
