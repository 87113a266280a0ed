"""Limits of the lead of a message's times over those known here.

Receivers take over linear times, topic counts and vector entries. One absurd number could exhaust
the numbers of the whole group, and a far physical time could hold a message for ever. Neither paper
limits them (Tsuneizumi et al., Nakayama 2017).

An honest linear time leads by no more than the messages that the group has sent since this member
last heard of it. The limit is per message: many messages can raise a time by as much each, 2^26 of
them until a topic count is exhausted. Messages that depend on one at the limit are rejected where
that one is missing; they can be offered again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from antecede.core.clocks import Seconds, plain, seconds_text, span_ns
from antecede.errors import LimitError, LocalError

MAX_CLOCK_LEAD = 1 << 36
"""Default of `max_clock_lead`: 10,000 messages per second for 79 days, none of which arrived."""
MAX_AHEAD_S = 60.0
"""Default of `max_ahead_s`: a minute beyond the clocks' accuracies."""


def _describe_source(message: Any) -> str:
    which = f"message {message.seq}" if message.seq else "a null message"
    return f"{which} of member {message.sender}"


class ClockLeadLimits(NamedTuple):
    """Limits of a message's times; None: no limit."""

    max_lead: int | None
    ahead_ns: int | None

    @classmethod
    def from_options(
        cls,
        max_clock_lead: int | None,
        max_ahead_s: Seconds | None = MAX_AHEAD_S,
        *,
        has_counts: bool = True,
        has_clocks: bool = False,
    ) -> ClockLeadLimits:
        """Return the limits of the options. Raises LocalError for options without an effect."""
        if not has_counts and max_clock_lead != MAX_CLOCK_LEAD:
            raise LocalError(
                "max_clock_lead limits linear times, and messages here carry none; leave it out"
            )
        if not has_clocks and max_ahead_s != MAX_AHEAD_S:
            raise LocalError(
                "max_ahead_s limits physical times, and messages here carry none; leave it out"
            )
        max_clock_lead = plain(max_clock_lead)
        if max_clock_lead is not None and (type(max_clock_lead) is not int or max_clock_lead < 1):
            raise LocalError(
                f"max_clock_lead is {max_clock_lead!r}; expected 1 or more, or None for no limit"
            )
        ahead_ns = None if max_ahead_s is None else span_ns(max_ahead_s, "max_ahead_s")
        return cls(max_clock_lead, ahead_ns)

    def check_number(self, message: Any, what: str, number: int, here: int) -> None:
        """Raise LimitError for a number too far above the one known here."""
        if self.max_lead is not None and number - here > self.max_lead:
            raise LimitError(
                f"{_describe_source(message)} has {what} {number}, {number - here} above the known "
                f"one; the limit is {self.max_lead} (max_clock_lead)"
            )

    def check_reading(self, message: Any, pt_ns: int, now: int, error_ns: int) -> None:
        """Raise LimitError for a PT that exceeds `now` plus the clocks' error by the limit."""
        if self.ahead_ns is not None and pt_ns - now - error_ns > self.ahead_ns:
            raise LimitError(
                f"{_describe_source(message)} has physical time {seconds_text(pt_ns)} s, "
                f"{seconds_text(pt_ns - now)} s above the local clock; the clocks differ "
                f"by up to {seconds_text(error_ns)} s, and the limit is "
                f"{seconds_text(self.ahead_ns)} s more (max_ahead_s). If the sender's "
                "clock is ahead, correct it there and call correct_clock()"
            )
