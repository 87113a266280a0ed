"""DS: causal broadcast by dependency sequences, the second comparator of Evropeytsev et al. 2016.

Source: Evropeytsev et al. 2016, section 3.2, whose reference 15 is Prakash and Singhal, "Dependency
sequences and hierarchical clocks" (1997). Neither states the rule for one-peer groups. The rule
here: a message carries, for every process in its causal past, the sequences of that process's send
numbers that are in the past.

With one peer per group there is one sequence per process, from 1, and only its end is sent. So DS
is BSS: the same causes, bytes and deliveries. Only the accounting and the description differ.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, ClassVar

from antecede.core.clocks import Intervals, items
from antecede.core.protocols.vector.base import INTEGER_BYTES, CausesMessage
from antecede.core.protocols.vector.bss import Bss


class DsMessage(CausesMessage):
    """Message whose `causes` are the ends of its sequences."""

    __slots__ = ()


class Ds(Bss):
    """Member of a group with causal order; needs a reliable channel."""

    message_type: ClassVar[type[CausesMessage]] = DsMessage

    def __init__(self, me: int, members: Iterable[int]) -> None:
        super().__init__(me, members)

    def extra_state(self) -> Hashable:
        return ()

    def set_extra_state(self, extra: Any) -> None:
        self.differences, self.as_published, self.last_timestamp = False, False, 0

    def sequences(self, message: CausesMessage) -> dict[int, Intervals]:
        """Return the send numbers in a message's past by process; the sender's own are implied."""
        found = dict(items(message.causes))
        found[message.sender] = message.seq - 1
        return {process: Intervals.up_to(end) for process, end in sorted(found.items()) if end}

    def describe(self, names: Mapping[int, str]) -> dict[str, str]:
        """Return the sequences that the next message would carry, its own process included."""
        ends = {**self.counts, self.me: self.sent}
        shown = [f"{names[process]}: [1, {end}]" for process, end in sorted(ends.items()) if end]
        return {"DS": ", ".join(shown) or "Ø"}

    # -- size ---------------------------------------------------------------------------------

    def control_bytes(self, message: CausesMessage) -> int:
        """Return 8 bytes per sequence for process and end, as Evropeytsev et al. 2016 count."""
        return self.pair_bytes(message)

    def storage_bytes(self) -> int:
        return INTEGER_BYTES * (len(self.counts) + 1)
