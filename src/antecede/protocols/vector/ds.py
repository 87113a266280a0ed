"""DS: causal broadcast by dependency sequences, the second comparator of Evropeytsev et al.
2016.

Source: Evropeytsev et al. 2016, section 3.2, whose reference 15 is Prakash and Singhal,
"Dependency sequences and hierarchical clocks" (1997). Neither writes the rule for one-peer groups
out. The rule followed here: a message carries for every process in its causal past the sequences
of that process's send numbers that are in the past.

Theory of operation
-------------------
Sequences come into being where a support station numbers the sends of several hosts: some of
its numbers are in the past of a message and some are not. Evropeytsev et al. 2016 give each group
one peer. Then the past of a message contains, with one send of a process, all sends before it, so
there is exactly one sequence a process, it begins with 1, and only its end need travel: a pair
(process, end). Processes of which nothing is in the past do not appear.

Delivery: the message is its sender's next, and of every process in it all numbers up to the end
are delivered. State and waiting are those of `vector.base`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from antecede.clocks.intervals import Intervals
from antecede.clocks.lanes import items, put, unit
from antecede.protocols.base import (
    Deliver,
    Effect,
    Guarantee,
    MessageId,
    Relation,
    Transmit,
)
from antecede.protocols.vector.base import (
    INTEGER_BYTES,
    CountingProtocol,
    encode_with_pairs,
    read_with_pairs,
)


class DsMessage(NamedTuple):
    """A message, its sender's number for it from 1, and the ends of its sequences, packed."""

    sender: int
    seq: int
    payload: Any
    causes: int


class Ds(CountingProtocol):
    """One member of a group with causal order; needs a channel that loses nothing."""

    guarantee: Guarantee = Guarantee(Relation.BY_DELIVERY, joins=True, leaves=True)

    def send(
        self, payload: Any, *, now: int | None = None, after: Sequence[MessageId] = ()
    ) -> Sequence[Effect]:
        """Let the message carry the sequences of all others, and transmit it to all."""
        causes = put(self.clock ^ self.guard, self.me, 0)
        self.sent += 1
        self.clock += unit(self.me)
        return (Transmit(self.others(), DsMessage(self.me, self.sent, payload, causes)),)

    def receive(self, message: DsMessage, *, now: int | None = None) -> Sequence[Effect]:
        """Deliver the message when its past is delivered, and what waited for it; or hold it.

        Raises UnknownMemberError and SequenceError.
        """
        sender, seq, _, causes = message
        # `lacks` is written out here, as in BSS.
        if (
            self.counts.get(sender) != seq - 1
            or causes.bit_length() > self.width
            or (self.clock - causes) & self.guard != self.guard
            or sender in self.last
        ):
            return self.receive_slowly(message)
        if self.waiting and (sender, seq) in self.waiting:
            return self.release(message)
        self.record(message)
        return (Deliver(message),)

    def record(self, message: DsMessage) -> None:
        """Count the delivery."""
        self.counts[message.sender] = message.seq
        self.clock += unit(message.sender)

    def sequences(self, message: DsMessage) -> dict[int, Intervals]:
        """Return the send numbers in a message's past, by process; the sender's own are implied."""
        found = dict(items(message.causes))
        found[message.sender] = message.seq - 1
        return {process: Intervals.up_to(end) for process, end in sorted(found.items()) if end}

    def describe(self, names: Mapping[int, str]) -> dict[str, str]:
        """Return the sequences that the next message would carry, its own process included."""
        ends = {**self.counts, self.me: self.sent}
        shown = [f"{names[process]}: [1, {end}]" for process, end in sorted(ends.items()) if end]
        return {"DS": ", ".join(shown) or "Ø"}

    # -- size and wire ----------------------------------------------------------------------

    def encode(self, message: DsMessage) -> bytes:
        """Return sender and number, then processes and ends of the sequences."""
        return encode_with_pairs(message)

    def decode(self, control: bytes, payload: Any) -> DsMessage:
        """Return the message; raises DecodeError, UnknownMemberError and SequenceError."""
        sender, seq, causes = read_with_pairs(control)
        return DsMessage(sender, seq, payload, causes)

    def control_bytes(self, message: DsMessage) -> int:
        """Return 8 bytes a sequence: its process and its end, as Evropeytsev et al. 2016 count a
        pair.
        """
        return self.pair_bytes(message)

    def storage_bytes(self) -> int:
        """Return 4 bytes a member for the ends (Evropeytsev et al. 2016 give no figure)."""
        return INTEGER_BYTES * (len(self.counts) + 1)
