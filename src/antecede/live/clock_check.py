"""Comparison of a member's system clock with the clocks of the other members.

A batch that is stamped far ahead blocks its sender: in orders by physical time the others take
neither it nor anything after it before their clocks have come there. So a member does not follow
its system clock when that jumps ahead by more than `FAR_NS`. Each answer to a heartbeat (PONG) says
what the clock of the other member shows. If most of those that are connected agree with the system
clock, the member follows it: its machine slept, or was set right. If most do not, it goes on from
its last reading. Without answers it waits for `WAIT_NS` and then follows its system clock.
"""

from __future__ import annotations

from typing import Final

from antecede.live.settings import NS

FAR_NS: Final = 60 * NS
"""A difference between clocks that nothing but a wrong one explains; a minute, as `max_ahead_s`."""
WAIT_NS: Final = 10 * NS
"""Longest wait for the clocks of others before a member follows its own."""


class ClockCheck:
    """Comparison of the own clock with those of other members."""

    def __init__(self) -> None:
        self.is_pending = False
        """True if the system clock jumped ahead and the others have not been asked yet."""
        self.is_contradicted = False
        """True if the system clock jumped ahead and most of the others disagree with it."""
        self._since: int | None = None
        self._offsets: dict[str, int] = {}
        """Lane of another member -> what its clock shows, less the own time that never goes back.
        """
        self._middle: int | None = None
        """Of these: more than half are not above it."""

    def hear(self, lane: str, clock_ns: int, now: int) -> None:
        """Note what the clock of another member shows now."""
        self._offsets[lane] = clock_ns - now
        self._middle = sorted(self._offsets.values())[len(self._offsets) // 2]

    def forget(self, lane: str) -> None:
        """Count the clock of a member no more: it is not connected."""
        self._offsets.pop(lane, None)
        known = sorted(self._offsets.values())
        self._middle = known[len(known) // 2] if known else None

    def follows(self, clock_ns: int, reading: int, now: int, *, alone: bool) -> bool:
        """Return whether the order goes by the system clock; `reading`: what it would be else.

        `alone`: no other member is in the group.
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
        """Return by how much the reading is ahead of most others' clocks; 0: it is not far."""
        ahead = 0 if self._middle is None else reading - self._middle - now
        return ahead if ahead > FAR_NS else 0


__all__ = ["ClockCheck"]
