"""TT and I: translation of dependencies between the internal and the external group.

Source: Evropeytsev et al. 2016, Listings 14 and 15, section 3.1.2; pruning of TT in section 3.2.

TT maps each message that was translated from the external into the internal group: its number there
(`in`) and here (`out`). Dependencies on such messages leave the group as pairs (process, in) and
enter it as bits `out`.

TT must be pruned. The source deletes the entry of m1 when all internal peers have delivered some m2
that names m1 ("published"). A message that a peer sent before may still be in transit to the super
peer and name m1. Then its bit is not translated. "safe" deletes an entry when the lower bounds of
all peers have reached it: a peer announces that it will never name a number at or below its bound.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable
from itertools import takewhile
from typing import Any

from antecede.core.clocks import positions, span_bytes, trim
from antecede.core.protocols.hierarchical.internal import add_position
from antecede.core.protocols.hierarchical.messages import (
    EMPTY,
    PAIR_BYTES,
    Downward,
    External,
    Upward,
    Window,
)

SAFE, NONE, PUBLISHED = "safe", "none", "published"
PRUNING = (SAFE, NONE, PUBLISHED)


class TranslationTable:
    """TT and I of super peer `me`, whose group has `peers`."""

    def __init__(
        self, me: int, peers: Iterable[int], super_peers: Iterable[int], pruning: str
    ) -> None:
        self.me = me
        self.super_peers = frozenset({me, *super_peers})
        self.pruning = pruning
        self.lower_bounds = dict.fromkeys(peers, 0)
        self.origins: OrderedDict[int, tuple[int, int]] = OrderedDict()  # out -> (process, in)
        self.outs: dict[int, dict[int, int]] = {}  # process -> in -> out, ascending
        self.first_references: dict[
            int, int
        ] = {}  # out -> first number that names it ("published")
        self.fresh: Window = EMPTY  # I

    # -- listings ---------------------------------------------------------------------------

    def translate_outward(self, message: Upward, seq: int, last: int) -> External:
        """Return the message for the external group: Listing 14, for the bits that are set."""
        base, own = add_position(*message.dv, last) if last else message.dv
        translated, self.fresh = self.fresh, EMPTY
        counts: dict[int, int] = {}
        vectors: dict[int, Window] = {}
        for out in positions(*message.dv):
            if out not in self.origins:
                continue
            process, number = self.origins[out]
            translated = add_position(*translated, out)
            own &= ~(1 << (out - base - 1))
            if process in self.super_peers:
                vectors[process] = add_position(*vectors.get(process, EMPTY), number)
            else:
                counts[process] = max(number, counts.get(process, 0))
            self._record_reference(out, seq)
        if own:
            vectors[self.me] = trim(base, own)
        ci = tuple(sorted(counts.items())), tuple(sorted(vectors.items()))
        return External(self.me, seq, *ci, translated, message.payload)

    def translate_inward(self, message: External, seq: int) -> Downward:
        """Return the message for the internal group and record it in TT and I: Listing 15."""
        dv = EMPTY
        for process, named in message.counts:
            dv = self._add(dv, process, named)
        for process, window in message.vectors:
            if process == self.me:
                for own in positions(*window):
                    dv = add_position(*dv, own)
            else:
                for number in positions(*window):
                    dv = self._add(dv, process, number)
        outs = self.outs.setdefault(message.sender, {})
        by_count = outs and message.sender not in self.super_peers
        last = outs[next(reversed(outs))] if by_count else 0
        self.record(message.sender, message.seq, seq)
        for out in (*positions(*dv), last):
            self._record_reference(out, seq)
        return Downward(self.me, seq, last, dv, message.payload)

    def record(self, process: int, number: int, out: int) -> None:
        self.outs.setdefault(process, {})[number] = out
        self.origins[out] = (process, number)
        self.fresh = add_position(*self.fresh, out)

    def translate_window(
        self, dv: Window
    ) -> tuple[tuple[tuple[int, int], ...], tuple[tuple[int, Window], ...]]:
        """Return the messages in an internal bit vector as CI: integers, bit vectors."""
        counts: dict[int, int] = {}
        vectors: dict[int, Window] = {}
        for out in positions(*dv):
            process, number = self.origins.get(out, (self.me, out))
            if process in self.super_peers:
                vectors[process] = add_position(*vectors.get(process, EMPTY), number)
            else:
                counts[process] = max(number, counts.get(process, 0))
        return tuple(sorted(counts.items())), tuple(sorted(vectors.items()))

    def take_windows(self, most: int) -> list[Window]:
        """Take windows that span `most` numbers out of I, until it spans less."""
        found: list[Window] = []
        base, bits = self.fresh
        while bits.bit_length() >= most:
            found.append((base, bits & ((1 << most) - 1)))
            base, bits = trim(base + most, bits >> most)
        if found:
            self.fresh = (base, bits)
        return found

    def _add(self, dv: Window, process: int, number: int) -> Window:
        """Add the bit of an external message; messages that TT lacks are delivered everywhere."""
        out = self.outs.get(process, {}).get(number)
        return dv if out is None else add_position(*dv, out)

    # -- pruning ----------------------------------------------------------------------------

    def raise_lower_bound(self, peer: int, lower_bound: int) -> None:
        """Raise a peer's lower bound; delete the entries of TT that are no longer needed."""
        lowest = self._find_lowest()
        before = self.lower_bounds.get(peer)
        if before is None or lower_bound <= before:
            return
        self.lower_bounds[peer] = lower_bound
        if before == lowest:
            self.prune()

    def prune(self, heads: int = 0) -> None:
        """Delete entries that all lower bounds have passed; without peers, up to `heads`."""
        lowest = self._find_lowest() if self.lower_bounds else heads
        if self.pruning == PUBLISHED:
            done = [out for out, heir in self.first_references.items() if heir <= lowest]
        elif self.pruning == SAFE:
            done = list(takewhile(lambda out: out <= lowest, self.origins))
        else:
            done = []
        for out in done:
            process, number = self.origins.pop(out)
            del self.outs[process][number]
            self.first_references.pop(out, None)

    def _find_lowest(self) -> int:
        return min(self.lower_bounds.values(), default=0)

    def _record_reference(self, out: int, seq: int) -> None:
        if self.pruning == PUBLISHED and out in self.origins:
            self.first_references.setdefault(out, seq)

    # -- snapshot, size ---------------------------------------------------------------------

    def snapshot(self) -> Hashable:
        pairs = (
            tuple(self.lower_bounds.items()),
            tuple(self.origins.items()),
            tuple(self.first_references.items()),
        )
        return *pairs, self.fresh

    def restore(self, state: Any) -> None:
        lower_bounds, origins, heirs, self.fresh = state
        self.lower_bounds, self.origins, self.first_references = (
            dict(lower_bounds),
            OrderedDict(origins),
            dict(heirs),
        )
        self.outs = {}
        for out, (process, number) in origins:
            self.outs.setdefault(process, {})[number] = out

    def storage_bytes(self) -> int:
        """Return 8 per pair of TT, the span of I, and 4 per lower bound."""
        bound_bytes = 4 * len(self.lower_bounds) if self.pruning == SAFE else 0
        return PAIR_BYTES * len(self.origins) + span_bytes(self.fresh[1]) + bound_bytes
