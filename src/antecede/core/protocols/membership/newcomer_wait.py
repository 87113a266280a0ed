"""Wait of a newcomer before its first message, in orders that go by times of the network.

Theory of operation
-------------------
What a newcomer sends comes after all that its sponsor had sent or received. Such an order separates
the two by time: a cause is sent the least delay of a path before its effect. An invitation that
comes over the network takes that long. One that is handed over in no time does not, so the newcomer
waits: the invitation was made before its first reading, hence until its clock shows more by

    D + 2 * (accuracy of its clock),    D: the largest of the least delays of paths to it.

`entry` is () when there is nothing to wait for, (None,) before the first reading, and then that
reading. It stands at the end of a snapshot while it is not ().
"""

from __future__ import annotations

from typing import Any

from antecede.core.clocks import seconds_text
from antecede.errors import EarlyError


class NewcomerWait:
    """Part of a protocol that a newcomer's first message waits for."""

    entry: tuple[int | None, ...] = ()

    def entry_wait_ns(self) -> int:
        """Return the wait of a newcomer after its first reading; 0: no times of the network."""
        raise NotImplementedError

    def enter(self) -> None:
        """As newcomer: begin to wait."""
        self.entry = (None,) if self.entry_wait_ns() else ()

    def note_entry(self, reading: int) -> None:
        """Note the first reading."""
        if self.entry == (None,):
            self.entry = (reading,)

    def check_entry(self, reading: int) -> None:
        """Raise EarlyError before the wait is over; end it otherwise."""
        (first,) = self.entry
        wait_ns = self.entry_wait_ns()
        if first is None:
            raise EarlyError(
                "a newcomer sends nothing before the least delay has passed since its invitation, "
                "and its group was told no time yet: call tick(now) now, and send "
                f"{seconds_text(wait_ns)} s later. Where the invitation came over the same "
                "channels as messages, give accept by_channel=True"
            )
        if reading - first < wait_ns:
            raise EarlyError(
                f"nothing is sent before the own clock shows {seconds_text(first + wait_ns)} s; it "
                f"shows {seconds_text(reading)} s. A newcomer waits for the least delay since its "
                "invitation (unless accept is given by_channel=True), and a member whose clock was "
                "corrected until it is past all that it may have said",
                from_ns=first + wait_ns,
            )
        self.entry = ()

    def bar_until(self, reading: int) -> None:
        """Send nothing before the own clock shows this."""
        self.entry = (reading - self.entry_wait_ns(),)

    def take_entry(self, rest: tuple[Any, ...]) -> None:
        """Take over what stood at the end of a snapshot."""
        self.entry = rest
