"""Wait of a joining member before its first message, in orders that rely on network delays.

Theory of operation
-------------------
A message of a joining member must come after all that its sponsor had sent or received. These
orders separate such messages by the least delay of a path. An invitation that is passed directly
takes no time, so the joining member waits until its clock is past its first reading by more than

    D + 2 * (accuracy of its clock),    D: the largest of the least delays of paths to it.

`join_wait` is () without a wait, (None,) before the first reading, then (reading,). It is the last
part of a snapshot while it is not empty.
"""

from __future__ import annotations

from typing import Any

from antecede.core.clocks import seconds_text
from antecede.errors import EarlyError


class JoinWait:
    """Mixin for protocols in which a joining member waits before its first message."""

    join_wait: tuple[int | None, ...] = ()

    def join_wait_ns(self) -> int:
        """Return the wait after the first reading, ns; 0: the order does not rely on network
        delays.
        """
        raise NotImplementedError

    def enter(self) -> None:
        self.join_wait = (None,) if self.join_wait_ns() else ()

    def record_first_reading(self, reading: int) -> None:
        """Record the first reading."""
        if self.join_wait == (None,):
            self.join_wait = (reading,)

    def check_join_wait(self, reading: int) -> None:
        """Raise EarlyError before the wait is over; end it otherwise."""
        (first,) = self.join_wait
        wait_ns = self.join_wait_ns()
        if first is None:
            raise EarlyError(
                "a joining member must wait for the least delay since its invitation, and "
                "its group has received no time yet: call tick(now) now, and send "
                f"{seconds_text(wait_ns)} s later. If the invitation came over the same "
                "channels as messages, call accept with by_channel=True"
            )
        if reading - first < wait_ns:
            raise EarlyError(
                f"cannot send before the local clock shows {seconds_text(first + wait_ns)} "
                f"s; it shows {seconds_text(reading)} s. A joining member waits for the "
                "least delay since its invitation (unless by_channel=True), and a member "
                "with a corrected clock until it is past all times that it may have sent",
                from_ns=first + wait_ns,
            )
        self.join_wait = ()

    def block_sends_until(self, reading: int) -> None:
        """Reject sends before this clock reading."""
        self.join_wait = (reading - self.join_wait_ns(),)

    def restore_join_wait(self, rest: tuple[Any, ...]) -> None:
        """Restore the wait from the end of a snapshot."""
        self.join_wait = rest
