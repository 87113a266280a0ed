"""Messages kept for those who may still lack them, until they are known to be stable.

A message is stable when every member is known to have it (Sahai et al. 2020, Matrix Time: the
least of its sender's column). Until then anybody who has it may be asked for it.

Theory of operation
-------------------
Messages of one sender come in without gaps (they are kept when they are delivered), so each
sender has one run: the number of its first kept message, and the messages. Forgetting up to
given counts cuts runs at the front and costs what it drops.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator, Mapping
from typing import Any

from antecede.errors import LocalError
from antecede.protocols.base import MessageId


class StableBuffer:
    """Runs of messages by sender, and the bytes that they take."""

    def __init__(self) -> None:
        self.bytes = 0
        """Sum of the sizes given to `keep`, for what is kept now."""
        self._runs: dict[int, tuple[int, deque[tuple[Any, int]]]] = {}

    def keep(self, sender: int, seq: int, message: Any, size_bytes: int) -> None:
        """Keep a message. Raises LocalError unless it follows the sender's one before it."""
        first, run = self._runs.setdefault(sender, (seq, deque()))
        if seq != first + len(run):
            raise LocalError(f"message {seq} of member {sender} does not follow those kept")
        run.append((message, size_bytes))
        self.bytes += size_bytes

    def get(self, sender: int, seq: int) -> Any | None:
        """Return a kept message, or None."""
        first, run = self._runs.get(sender, (0, ()))
        return run[seq - first][0] if first <= seq < first + len(run) else None

    def of(self, sender: int) -> range:
        """Return the numbers of the kept messages of one sender."""
        first, run = self._runs.get(sender, (0, ()))
        return range(first, first + len(run))

    def forget(self, counts: Mapping[int, int]) -> int:
        """Drop every message numbered up to its sender's count; return how many these were."""
        dropped = 0
        for sender in tuple(self._runs):
            first, run = self._runs[sender]
            while run and first <= counts.get(sender, 0):
                self.bytes -= run.popleft()[1]
                first += 1
                dropped += 1
            if run:
                self._runs[sender] = first, run
            else:
                del self._runs[sender]
        return dropped

    def __iter__(self) -> Iterator[MessageId]:
        """Yield the id of every kept message, by sender and number."""
        for sender in sorted(self._runs):
            for seq in self.of(sender):
                yield MessageId(sender, seq)

    def __len__(self) -> int:
        """Return how many messages are kept."""
        return sum(len(run) for _, run in self._runs.values())

    def snapshot(self) -> Hashable:
        """Return what is kept as nested tuples."""
        return tuple(
            (sender, first, tuple(run)) for sender, (first, run) in sorted(self._runs.items())
        )

    def restore(self, state: Any) -> None:
        """Become what `snapshot` returned."""
        self._runs = {sender: (first, deque(run)) for sender, first, run in state}
        self.bytes = sum(size for _, _, run in state for _, size in run)
