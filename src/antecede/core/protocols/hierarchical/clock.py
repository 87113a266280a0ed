"""VTx, the extended vector time of the external group, and the messages that wait for it.

Source: Evropeytsev et al. 2016, Listings 10 and 11, and the clock part of Listings 12 and 13.
Listing 11 line 2 is lost in print. It is: for each <i, dep> in m.CI with i other than this process,
`dep <= VTx[i]` where VTx[i] is an integer, else `dep & VTx[i] = dep`.

Theory of operation
-------------------
External peers and super peers share these rules for messages of the external group. VTx has an
integer for each external peer and a bit vector for each super peer, as a window with its leading
ones below the base. A held message is indexed under its first missing message and checked again
when that is delivered. This class delivers nothing: `accept` returns messages in the order in which
the role must process them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from antecede.core.clocks import MAX_SPAN, absorb, positions, window_bytes
from antecede.core.protocols.base import DUPLICATE, OWN, Discard, Effect, Held, Hold, MessageId
from antecede.core.protocols.hierarchical.messages import (
    EMPTY,
    INTEGER_BYTES,
    External,
    Flush,
    Role,
    Window,
)
from antecede.core.protocols.membership import changes
from antecede.errors import SequenceError, UnknownMemberError


class ExternalClock:
    """VTx of process `me` without its own element, and its held messages."""

    def __init__(self, me: int, peers: Iterable[int], super_peers: Iterable[int]) -> None:
        self.me = me
        self.counts = {peer: 0 for peer in sorted(peers) if peer != me}
        self.vectors: dict[int, Window] = {s: EMPTY for s in sorted(super_peers) if s != me}
        self.held: dict[MessageId, External] = {}
        self.waiting: dict[MessageId, list[MessageId]] = {}
        self.last: dict[int, int] = {}

    def accept(self, message: External) -> list[External]:
        """Accept a checked message; return the deliverable messages in order, already in VTx."""
        ready: list[External] = []
        woken = self._record_translated(message)
        self._offer(message, ready)
        self._retry(woken, ready)
        return self._take_dependents(ready)

    def accept_flush(self, note: Flush) -> list[External]:
        """Return the messages that I unblocks. Raises UnknownMemberError and SequenceError."""
        if note.sender not in self.vectors:
            raise UnknownMemberError(
                f"flush of I from {note.sender}, which is not another super peer"
            )
        base, bits = note.translated
        have = self.vectors[note.sender][0]
        if not bits or bits.bit_length() > MAX_SPAN or base > have + MAX_SPAN:
            raise SequenceError(
                f"flush of I from {note.sender} above {base}, {bits.bit_length()} wide; "
                f"expected 1 to {MAX_SPAN} wide, starting at most as far above {have}"
            )
        ready: list[External] = []
        self._retry(self._record_translated(note), ready)
        return self._take_dependents(ready)

    def _take_dependents(self, ready: list[External]) -> list[External]:
        for done in ready:  # grows during the loop
            self._retry(self.waiting.pop(MessageId(done.sender, done.seq), []), ready)
        return ready

    def _retry(self, woken: list[MessageId], ready: list[External]) -> None:
        for key in sorted(woken):
            self._offer(self.held.pop(key), ready)

    def _offer(self, message: External, ready: list[External]) -> None:
        missing = self.list_missing(message)
        if missing:
            key = MessageId(message.sender, message.seq)
            self.held[key] = message
            self.waiting.setdefault(missing[0], []).append(key)
        else:
            self._advance(message)
            ready.append(message)

    # -- listings ---------------------------------------------------------------------------

    def _record_translated(self, message: External | Flush) -> list[MessageId]:
        """Record the numbers in I (Listing 10); return the held messages that waited for them."""
        base, bits = message.translated
        if not bits:
            return []
        have_base, have = self.vectors[message.sender]
        shift = base - have_base
        fresh = (bits << shift if shift >= 0 else bits >> -shift) & ~have
        self.vectors[message.sender] = absorb(have_base, have | fresh)
        if not self.waiting:
            return []
        numbers = positions(have_base, fresh)
        return [k for n in numbers for k in self.waiting.pop(MessageId(message.sender, n), ())]

    def list_missing(self, message: External) -> tuple[MessageId, ...]:
        """Return the missing messages by Listing 11, the newest position first."""
        absent: list[MessageId] = []
        count = self.counts.get(message.sender)
        if count is not None and message.seq != count + 1:
            absent.append(MessageId(message.sender, message.seq - 1))
        for peer, seq in message.counts:
            if peer != self.me and seq > self.counts[peer]:
                absent.append(MessageId(peer, seq))
        for super_peer, needed in message.vectors:
            if super_peer != self.me:
                absent += self._list_missing_positions(super_peer, needed)
        return tuple(absent)

    def _list_missing_positions(self, super_peer: int, needed: Window) -> list[MessageId]:
        base, bits = needed
        have_base, have = self.vectors[super_peer]
        if base < have_base:
            base, bits = have_base, bits >> (have_base - base)
        # Shift VTx down, not the needed bits up: memory must not depend on a position.
        absent = bits & ~(have >> (base - have_base))
        return [MessageId(super_peer, n) for n in reversed(list(positions(base, absent)))]

    def _advance(self, message: External) -> None:
        """Advance VTx: Listings 12 and 13, lines 1 to 5."""
        if message.sender in self.counts:
            self.counts[message.sender] = message.seq
        else:
            base, bits = self.vectors[message.sender]
            if message.seq > base:
                bits |= 1 << (message.seq - base - 1)
            self.vectors[message.sender] = absorb(base, bits)

    # -- checks -----------------------------------------------------------------------------

    def is_duplicate(self, message: External) -> bool:
        sender, seq = message.sender, message.seq
        if MessageId(sender, seq) in self.held:
            return True
        if sender in self.counts:
            return seq <= self.counts[sender]
        base, bits = self.vectors[sender]
        return seq <= base or bool((bits >> (seq - base - 1)) & 1)

    def check(self, message: External) -> None:
        sender, seq = message.sender, message.seq
        if sender not in self.counts and sender not in self.vectors:
            raise UnknownMemberError(f"message {seq} from {sender}, not in the external group")
        for peer, named in message.counts:
            if peer not in self.counts and peer != self.me:
                raise UnknownMemberError(f"message {seq} of {sender} names external peer {peer}")
            if named < 1 or (peer == sender and named >= seq) or named > self.last.get(peer, named):
                raise SequenceError(f"message {seq} of {sender} names message {named} of {peer}")
        for super_peer, (base, bits) in message.vectors:
            if super_peer != self.me and super_peer not in self.vectors:
                raise UnknownMemberError(f"message {seq} of {sender} names super peer {super_peer}")
            if super_peer == sender and base + bits.bit_length() >= seq:
                raise SequenceError(f"message {seq} of super peer {sender} names a later one")
        if sender in self.counts:
            if seq < 1 or seq > self.last.get(sender, seq):
                last = self.last.get(sender)
                bound = "numbers start at 1" if last is None else f"it left after message {last}"
                raise SequenceError(f"message {seq} from external peer {sender}; {bound}")
            if message.translated[1]:
                raise SequenceError(
                    f"message {seq} of {sender} has I; only a super peer translates"
                )
        else:
            if seq > self.last.get(sender, seq):
                raise SequenceError(
                    f"message {seq} from super peer {sender}; it left after {self.last[sender]}"
                )
            self._check_span(message)

    def _check_span(self, message: External) -> None:
        """Raise SequenceError if VTx would span more than MAX_SPAN beyond I."""
        base, bits = message.translated
        have = self.vectors[message.sender][0]
        top = base + bits.bit_length()
        if message.seq < 1 or top >= message.seq:
            raise SequenceError(
                f"message {message.seq} of super peer {message.sender} has I up to {top}; "
                "it must be below the message's own number"
            )
        wide = bits.bit_length() > MAX_SPAN
        if wide or base > have + MAX_SPAN or message.seq > max(have, top) + MAX_SPAN:
            raise SequenceError(
                f"message {message.seq} of super peer {message.sender}, with I above {base} and "
                f"{bits.bit_length()} wide, is more than {MAX_SPAN} above {have}, up to which all "
                "is delivered, or wider"
            )

    # -- membership, snapshot, size ---------------------------------------------------------

    def join(self, peer: int) -> None:
        changes.add_members((), {self.me, *self.counts, *self.vectors}, (peer,))
        self.counts[peer] = 0

    def join_super_peer(self, super_peer: int) -> None:
        changes.add_members((), {self.me, *self.counts, *self.vectors}, (super_peer,))
        self.vectors[super_peer] = EMPTY

    def leave(self, peer: int, last: int) -> list[External]:
        """Reject messages of a process after `last`; return its held ones. VTx is unchanged."""
        here = (self.counts.keys() | self.vectors.keys()) - self.last.keys()
        changes.check_departure(here, self.me, peer)
        changes.check_last_number(peer, last, self.counts.get(peer, 0))
        self.last[peer] = last
        late = sorted(key for key in self.held if key.sender == peer and key.seq > last)
        given_up = [self.held.pop(key) for key in late]
        if late:
            self._index_held(tuple(self.held.values()))
        return given_up

    def list_held(self) -> tuple[Held, ...]:
        return tuple(Held(m, self.list_missing(m)) for _, m in sorted(self.held.items()))

    def frontier(self) -> tuple[tuple[tuple[int, int], ...], tuple[tuple[int, Window], ...]]:
        return tuple(self.counts.items()), tuple(self.vectors.items())

    def snapshot(self) -> Hashable:
        held = tuple(message for _, message in sorted(self.held.items()))
        return *self.frontier(), held, tuple(self.last.items())

    def restore(self, state: Any) -> None:
        counts, vectors, held, last = state
        self.counts, self.vectors, self.last = dict(counts), dict(vectors), dict(last)
        known = self.counts.keys() | self.vectors.keys()
        if unknown := {message.sender for message in held} - known:
            raise ValueError(f"held: a message of {min(unknown)}, who is not in the group")
        self._index_held(held)

    def check_whole(self, others: Iterable[int]) -> None:
        known = self.counts.keys() | self.vectors.keys()
        twice = self.counts.keys() & self.vectors.keys()
        if twice or self.me in known or not known >= self.last.keys():
            raise ValueError("VTx: a process twice, or a departed one that is missing")
        if known - self.last.keys() != set(others):
            raise ValueError(f"VTx: processes {sorted(known)}")

    def _index_held(self, held: Iterable[External]) -> None:
        self.held, self.waiting = {}, {}
        for message in held:
            key = MessageId(message.sender, message.seq)
            self.held[key] = message
            self.waiting.setdefault(self.list_missing(message)[0], []).append(key)

    def storage_bytes(self) -> int:
        """Return the source's count: 4 per integer, and each bit vector's window."""
        vectors = sum(window_bytes(bits) for _, bits in self.vectors.values())
        return INTEGER_BYTES * (len(self.counts) + 1) + vectors

    def describe(self, own: int) -> str:
        """Return VTx in the source's notation, by process."""
        shown: dict[int, str] = {self.me: str(own)}
        shown |= {peer: str(count) for peer, count in self.counts.items()}
        for process, (base, bits) in self.vectors.items():
            shown[process] = "1" * base + bin(bits)[:1:-1] * bool(bits) or "Ø"
        return f"({', '.join(shown[process] for process in sorted(shown))})"


class ExternalRole(Role):
    """Base of the roles in the external group."""

    clock: ExternalClock

    def receive(self, message: Any, *, now: int | None = None) -> Sequence[Effect]:
        """Process a message of the external group: Listings 10 to 13."""
        if message.sender == self.me:
            return (Discard(message, OWN),)
        clock = self.clock
        if isinstance(message, Flush):
            return self._take(clock.accept_flush(message))
        clock.check(message)
        self._check_own(message)
        if clock.is_duplicate(message):
            return (Discard(message, DUPLICATE),)
        effects = self._take(clock.accept(message))
        if clock.held and MessageId(message.sender, message.seq) in clock.held:
            effects.insert(0, Hold(message, clock.list_missing(message)))
        return effects

    @abstractmethod
    def _take(self, ready: Iterable[External]) -> list[Effect]:
        """Deliver or forward deliverable messages, in this order."""

    def _check_own(self, message: External) -> None:
        """Raise SequenceError if a message names own messages that were not sent."""
