"""Comparison of the own system clock with the clocks of other members.

In orders by physical time, members hold a batch until their clocks reach its timestamp, and all
later batches of its sender too. So a member does not follow its system clock over a jump of more
than `FAR_NS`. Each PONG contains the clock of another member. If most connected members agree with
the system clock, the member follows it: its machine was suspended, or the clock was corrected. If
most disagree, it continues from its last reading. Without answers it waits for `WAIT_NS` and then
follows its system clock.
"""

from __future__ import annotations

from typing import Final

from antecede.live.settings import NS

FAR_NS: Final = 60 * NS
"""Difference that proves a wrong clock: a minute, as `max_ahead_s`."""
WAIT_NS: Final = 10 * NS
"""Longest wait for other clocks before a member follows its own."""


class ClockCheck:
    """Comparison of the own clock with those of other members."""

    def __init__(self) -> None:
        self.is_pending = False
        """True if the system clock jumped ahead and the others have not been asked yet."""
        self.is_contradicted = False
        """True if the system clock jumped ahead and most other clocks disagree with it."""
        self._since: int | None = None
        self._offsets: dict[str, int] = {}
        self._middle: int | None = None

    def hear(self, lane: str, clock_ns: int, now: int) -> None:
        """Take the clock of another member."""
        self._offsets[lane] = clock_ns - now
        self._middle = sorted(self._offsets.values())[len(self._offsets) // 2]

    def forget(self, lane: str) -> None:
        """Forget the clock of a disconnected member."""
        self._offsets.pop(lane, None)
        known = sorted(self._offsets.values())
        self._middle = known[len(known) // 2] if known else None

    def follows(self, clock_ns: int, reading: int, now: int, *, alone: bool) -> bool:
        """Return whether the order follows the system clock; `reading`: its reading otherwise.
        `alone`: the group has no other member.
        """
        self.is_pending = self.is_contradicted = False
        if alone or clock_ns - reading <= FAR_NS:
            self._since = None
            return True
        self._since = now if self._since is None else self._since
        shown = [one + now for one in self._offsets.values()]
        agreeing = sum(abs(one - clock_ns) <= FAR_NS for one in shown)
        if 2 * agreeing > len(shown):
            return True
        self.is_contradicted = 2 * agreeing < len(shown)
        self.is_pending = not self.is_contradicted and now - self._since < WAIT_NS
        return not (self.is_contradicted or self.is_pending)

    def ahead_of_others(self, reading: int, now: int) -> int:
        """Return the lead of the reading over most other clocks, if large; else 0."""
        ahead = 0 if self._middle is None else reading - self._middle - now
        return ahead if ahead > FAR_NS else 0


__all__ = ["ClockCheck"]
