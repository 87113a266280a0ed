"""External peer of the hierarchical protocol: extended vector time VTx and CI.

Source: Evropeytsev et al. 2016, Listings 2, 9, 10, 11 and 12, with Listing 12 line 21 as `CI[i] :=
CI[i] & ~dep` (the NOT is lost in print; `as_published={"listing12"}` keeps the printed line).

CI names the immediate dependencies of the next message. For an external peer it has the number of
its latest message that no later delivery names, for a super peer a bit vector of such messages.
Sending attaches CI and empties it. `ExternalClock` has VTx and the delivery condition.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from typing import Any, ClassVar

from antecede.core.clocks import positions, span_bytes, trim
from antecede.core.protocols.base import (
    AFTER_LEAVE,
    NOTHING,
    Deliver,
    Discard,
    Effect,
    Guarantee,
    Held,
    MessageId,
    Relation,
    Transmit,
)
from antecede.core.protocols.hierarchical.clock import ExternalClock, ExternalRole
from antecede.core.protocols.hierarchical.internal import add_position, format_window
from antecede.core.protocols.hierarchical.messages import EMPTY, PAIR_BYTES, External, Flush, Window
from antecede.core.protocols.membership import changes

LISTING12 = "listing12"


class ExternalPeer(ExternalRole):
    """Peer of the external group, which consists of `peers` and `super_peers`."""

    guarantee: Guarantee = Guarantee(Relation.BY_DELIVERY, joins=True, leaves=True)
    accepted: ClassVar[tuple[type, ...]] = (External, Flush)

    def __init__(
        self,
        me: int,
        peers: Iterable[int],
        super_peers: Iterable[int],
        *,
        as_published: Collection[str] = (),
    ) -> None:
        """Initialize the state by Listing 2: VTx all zero, CI empty."""
        peers, super_peers = tuple(peers), tuple(super_peers)
        super().__init__(me, (*peers, *super_peers))
        self.uses_published_listing = LISTING12 in as_published
        self.number = 0  # VTx[me]
        self.clock = ExternalClock(me, peers, super_peers)
        self.counts: dict[int, int] = {}  # CI, pairs with an integer
        self.vectors: dict[int, Window] = {}  # CI, pairs with a bit vector

    def send(
        self, payload: Any, *, now: int | None = None, after: Sequence[MessageId] = ()
    ) -> Sequence[Effect]:
        """Send to all external peers and super peers, with CI (Listing 9)."""
        self.number += 1
        counts, vectors = self._ci_pairs()
        message = External(self.me, self.number, counts, vectors, EMPTY, payload)
        self.counts, self.vectors = {}, {}
        return (Transmit(self.others(), message),)

    def _ci_pairs(self) -> tuple[tuple[tuple[int, int], ...], tuple[tuple[int, Window], ...]]:
        return tuple(sorted(self.counts.items())), tuple(sorted(self.vectors.items()))

    def _take(self, ready: Iterable[External]) -> list[Effect]:
        effects: list[Effect] = []
        for message in ready:
            self._update_ci(message)
            effects.append(Deliver(message))
        return effects

    def _update_ci(self, message: External) -> None:
        """Update CI: Listing 12 lines 6 to 23; pairs with an empty vector are removed."""
        sender = message.sender
        if sender in self.clock.counts:
            self.counts[sender] = message.seq
        else:
            self.vectors[sender] = add_position(*self.vectors.get(sender, EMPTY), message.seq)
        for peer, seq in message.counts:
            if self.counts.get(peer, seq + 1) <= seq:
                del self.counts[peer]
        for super_peer, named in message.vectors:
            if super_peer in self.vectors:
                kept = self._subtract(self.vectors[super_peer], named)
                if kept[1]:
                    self.vectors[super_peer] = kept
                else:
                    del self.vectors[super_peer]

    def _subtract(self, dep: Window, named: Window) -> Window:
        """Return `CI[i] & ~dep` (Listing 12 line 21); as printed, `CI[i] & dep`."""
        if self.uses_published_listing:
            kept = EMPTY
            for position in sorted(set(positions(*dep)) & set(positions(*named))):
                kept = add_position(*kept, position)
            return kept
        (base, bits), (named_base, named_bits) = dep, named
        if named_base < base:
            return trim(base, bits & ~(named_bits >> (base - named_base)))
        # Truncate both ends to existing bits: memory must not depend on a position.
        low = named_base - base
        if low >= bits.bit_length():
            return dep
        return trim(base, bits & ~((named_bits & ((1 << (bits.bit_length() - low)) - 1)) << low))

    def list_held(self) -> tuple[Held, ...]:
        return self.clock.list_held()

    def count_held(self) -> int:
        return len(self.clock.held)

    # -- membership -------------------------------------------------------------------------

    def join_state(self) -> Hashable:
        """Return (members, VTx integers and bit vectors, CI, last numbers of departed members)."""
        counts, vectors = self._ci_pairs()
        clock_counts, clock_vectors = self.clock.frontier()
        own = ((self.me, self.number),)
        ci = (*counts, *own) if self.number else counts
        last = tuple(self.clock.last.items())
        return self.members, (*clock_counts, *own), clock_vectors, ci, vectors, last

    def install_join_state(self, state: Any) -> None:
        members, clock_counts, clock_vectors, counts, vectors, last = state
        self.members = tuple(sorted({*members, self.me}))
        self.clock.restore((sorted(clock_counts), clock_vectors, (), last))
        self.clock.counts.pop(self.me, None)
        self.counts, self.vectors = dict(counts), dict(vectors)

    def join(self, member: int) -> Sequence[Effect]:
        self.clock.join(member)
        self.members = changes.add_members(self.members, self.members, (member,))
        return NOTHING

    def join_super_peer(self, member: int) -> Sequence[Effect]:
        self.clock.join_super_peer(member)
        self.members = changes.add_members(self.members, self.members, (member,))
        return NOTHING

    def leave(self, member: int, last: int) -> Sequence[Effect]:
        changes.check_departure(self.members, self.me, member)
        late = self.clock.leave(member, last)
        self.members = changes.remove_members(self.members, (member,))
        return tuple(Discard(message, AFTER_LEAVE) for message in late)

    # -- snapshot, size, wire ---------------------------------------------------------------

    def snapshot(self) -> Hashable:
        return self.members, self.number, self._ci_pairs(), self.clock.snapshot()

    def restore(self, state: Any) -> None:
        self.members, self.number, ci, clock = state
        self.counts, self.vectors = dict(ci[0]), dict(ci[1])
        self.clock.restore(clock)

    def check_whole(self) -> None:
        self.clock.check_whole(self.others())
        clock = self.clock
        if self.me not in self.members or not clock.counts.keys() >= self.counts.keys():
            raise ValueError(f"CI: integers of processes {sorted(self.counts)}")
        if not clock.vectors.keys() >= self.vectors.keys():
            raise ValueError(f"CI: bit vectors of processes {sorted(self.vectors)}")

    def describe(self) -> dict[str, str]:
        shown = {peer: str(seq) for peer, seq in self.counts.items()}
        shown |= {super_peer: format_window(window) for super_peer, window in self.vectors.items()}
        pairs = ", ".join(f"<{process}, {shown[process]}>" for process in sorted(shown))
        return {"VTx": self.clock.describe(self.number), "CI": pairs or "Ø"}

    def storage_bytes(self) -> int:
        """Return the source's count: VTx, 8 per pair of CI, the spans of its bit vectors."""
        vectors = sum(span_bytes(bits) for _, bits in self.vectors.values())
        return self.clock.storage_bytes() + PAIR_BYTES * len(self.counts) + vectors
