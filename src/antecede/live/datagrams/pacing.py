"""What waits to be sent to one member, and how fast it may go: a token bucket.

A burst that overruns the receiver's socket buffer is lost, and sent again in the next burst.
"""

from __future__ import annotations

from collections import deque

from antecede.clocks.wire import block
from antecede.live.settings import NS

MOST_QUEUED = 8 << 20
"""Bytes that wait for one member; more is dropped, and recovered as what the network drops."""


class Pace:
    """A queue of packets to one member."""

    def __init__(self, rate: int, burst: int, datagram: int) -> None:
        self._rate, self._burst, self._datagram = rate, burst, datagram
        self._tokens, self._filled_ns = burst * NS, 0
        self._urgent: deque[bytes] = deque()
        self._others: deque[bytes] = deque()
        self._there: set[bytes] = set()
        """What waits, so that what is asked for twice goes once."""
        self.bytes = 0
        self.dropped = 0

    def add(self, packet: bytes, *, urgent: bool = False) -> None:
        """Queue a packet, unless it waits already; `urgent`: before what is not."""
        if packet in self._there:
            return
        if self.bytes + len(packet) > MOST_QUEUED:
            self.dropped += 1
            return
        self._there.add(packet)
        self.bytes += len(packet)
        (self._urgent if urgent else self._others).append(packet)

    def __contains__(self, packet: bytes) -> bool:
        """Tell whether a packet waits."""
        return packet in self._there

    def take(self, now: int) -> list[bytes]:
        """Return the datagrams that may go now."""
        spent = max(0, now - self._filled_ns)
        self._tokens = min(self._burst * NS, self._tokens + spent * self._rate)
        self._filled_ns = now
        found = []
        while self._tokens > 0 and (self._urgent or self._others):
            datagram = self._next()
            self._tokens -= len(datagram) * NS
            found.append(datagram)
        return found

    def _next(self) -> bytes:
        parts, size = list[bytes](), 0
        for queue in (self._urgent, self._others):
            while queue and (not parts or size + len(queue[0]) + 3 <= self._datagram):
                packet = queue.popleft()
                self._there.discard(packet)
                self.bytes -= len(packet)
                parts.append(block(packet))
                size += len(parts[-1])
        return b"".join(parts)

    def due(self, now: int) -> int | None:
        """Return when more may go; None: nothing waits."""
        if not self._urgent and not self._others:
            return None
        if self._tokens > 0:
            return now
        return self._filled_ns + -self._tokens // self._rate + 1
