"""Limits on how far the times of one message may be above those known here.

Receivers take over linear times, topic counts and vector entries. One absurd number would let the
numbers of the whole group run out. A message that waits by a physical time far in the future is
held for ever. Neither paper limits them (Tsuneizumi et al., Nakayama 2017); these limits are ours.

An honest linear time is above one's own by no more than the messages that the group has sent since
one last heard of it. The bound is of one message: many messages can raise a time by as much with
each, 2^26 of them until a topic count runs out. Messages that depend on one at the bound, which was
sent to some members only, are refused elsewhere until that message arrives; they may be offered
again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from antecede.core.clocks import Seconds, plain, seconds_text, span_ns
from antecede.errors import LimitError, LocalError

MAX_JUMP = 1 << 36
"""Default of `max_jump`: 10,000 messages a second for 79 days, of which none came here."""
MAX_AHEAD_S = 60.0
"""Default of `max_ahead_s`: a minute beyond what the clocks' accuracies explain."""


def _whose(message: Any) -> str:
    which = f"message {message.seq}" if message.seq else "a null message"
    return f"{which} of member {message.sender}"


class Limits(NamedTuple):
    """What is believed of a message's times; None: anything."""

    jump: int | None
    ahead_ns: int | None

    @classmethod
    def of(
        cls,
        max_jump: int | None,
        max_ahead_s: Seconds | None = MAX_AHEAD_S,
        *,
        counts: bool = True,
        clocks: bool = False,
    ) -> Limits:
        """Return the limits that options ask for. Raises LocalError, also for idle ones.

        `counts`, `clocks`: whether messages carry linear times or counts, and physical times.
        """
        if not counts and max_jump != MAX_JUMP:
            raise LocalError("max_jump limits linear times, and messages here carry none")
        if not clocks and max_ahead_s != MAX_AHEAD_S:
            raise LocalError("max_ahead_s limits physical times, and messages here carry none")
        max_jump = plain(max_jump)
        if max_jump is not None and (type(max_jump) is not int or max_jump < 1):
            raise LocalError(f"max_jump is {max_jump!r}; it is 1 or more, or None for without")
        ahead_ns = None if max_ahead_s is None else span_ns(max_ahead_s, "max_ahead_s")
        return cls(max_jump, ahead_ns)

    def check_number(self, message: Any, what: str, number: int, here: int) -> None:
        """Raise LimitError for a number that is too far above the one known here."""
        if self.jump is not None and number - here > self.jump:
            raise LimitError(
                f"{_whose(message)} has {what} {number}, which is {number - here} above the one "
                f"known here; {self.jump} is the most that is believed (max_jump)"
            )

    def check_reading(self, message: Any, pt_ns: int, now: int, error_ns: int) -> None:
        """Raise LimitError for a physical time beyond `now`, the clocks' error and the limit."""
        if self.ahead_ns is not None and pt_ns - now - error_ns > self.ahead_ns:
            raise LimitError(
                f"{_whose(message)} has physical time {seconds_text(pt_ns)} s, which is "
                f"{seconds_text(pt_ns - now)} s above the own clock: both clocks err by "
                f"{seconds_text(error_ns)} s together, and {seconds_text(self.ahead_ns)} s more "
                "is the most that is believed (max_ahead_s). If that member's clock is ahead, it "
                "is to set it right and to call correct_clock()"
            )
