"""Hold-back queue for orders that are relations on timestamps.

Source: Tsuneizumi et al., Nakayama 2017. A message is deliverable when its time has come and no
held message precedes it. `take_deliverable` is the readable definition. `HoldBackQueue` releases
the same messages in the same order without scanning all held ones.

A predecessor has a lesser rank. If physical time is part of the relation, its physical time is less
by at least `apart_ns`, or it has the same sender. So the candidates are a prefix of the held
messages by rank, and one by physical time. The shorter prefix is searched. With clocks much coarser
than the network, a prefix may contain all held messages.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Hashable, Iterable, MutableMapping
from typing import Any, NamedTuple, TypeVar

from antecede.core.protocols.base import MessageId

Key = TypeVar("Key", bound=Hashable)


def take_deliverable(
    held: MutableMapping[Key, Any],
    is_ready: Callable[[Any], bool],
    precedes: Callable[[Any, Any], bool],
    rank: Callable[[Any], Any],
) -> list[Any]:
    """Take all deliverable messages out of `held` and return them in order.

    `precedes(a, b)` must not be cyclic on the held messages, or a cycle stays held for ever. `rank`
    breaks ties between messages that become deliverable together. O(h^2) calls of `precedes` for h
    held messages.
    """
    free: list[Any] = []
    found = True
    while found:
        found = False
        for key, message in sorted(held.items(), key=lambda item: rank(item[1])):
            others = (other for other in held.values() if other is not message)
            if is_ready(message) and not any(precedes(other, message) for other in others):
                del held[key]
                free.append(message)
                found = True
    return free


_LAST = 1 << 200


class QueueEntry(NamedTuple):
    """Held message in the queue."""

    item: Any
    rank: tuple[int, ...]
    """Ends with sender and number."""
    pt_ns: int


class HoldBackQueue:
    """Held messages by rank, by physical time and by sender; `precedes` respects the rank.

    `apart_ns`: least difference in physical time to a cause of another sender, or None.
    """

    def __init__(self, precedes: Callable[[Any, Any], bool], apart_ns: int | None) -> None:
        self.precedes, self.apart_ns = precedes, apart_ns
        self.entries: dict[MessageId, QueueEntry] = {}
        self._by_rank: list[tuple[int, ...]] = []
        self._by_time: list[tuple[int, ...]] = []
        self._of_sender: dict[int, list[MessageId]] = {}
        self._behind: dict[MessageId, list[MessageId]] = {}

    def add(self, key: MessageId, item: Any, rank: tuple[int, ...], pt_ns: int) -> None:
        self.entries[key] = QueueEntry(item, rank, pt_ns)
        insort(self._by_rank, rank)
        if self.apart_ns is not None:
            insort(self._by_time, (pt_ns, *key))
        own = self._of_sender.get(key.sender)
        if own is None:
            self._of_sender[key.sender] = [key]
        else:
            own.append(key)

    def release(
        self, keys: Iterable[MessageId], is_ready: Callable[[MessageId], bool] | None = None
    ) -> list[MessageId]:
        """Take those messages of `keys`, and of their dependents, that no held message precedes.

        `is_ready` (None: all) drops keys, which the caller must pass again later.
        """
        entries = self.entries
        current = [(entries[key].rank, key) for key in keys if is_ready is None or is_ready(key)]
        following: list[tuple[tuple[int, ...], MessageId]] = []
        if len(current) > 1:
            heapq.heapify(current)
        free: list[MessageId] = []
        while current:
            rank, key = heapq.heappop(current)
            blocker = self._find_blocker(key)
            if blocker is not None:
                self._behind.setdefault(blocker, []).append(key)
            else:
                self._remove(key)
                free.append(key)
                for other in self._behind.pop(key, ()) if self._behind else ():
                    if is_ready is None or is_ready(other):
                        its = entries[other].rank
                        if its > rank:
                            heapq.heappush(current, (its, other))
                        else:
                            following.append((its, other))
            if not current and following:
                current, following = following, []
                heapq.heapify(current)
        return free

    def _find_blocker(self, key: MessageId) -> MessageId | None:
        precedes, entries = self.precedes, self.entries
        item, rank, pt_ns = entries[key]
        own = self._of_sender[key.sender]
        if len(own) > 1:
            for other in own:
                if other != key and precedes(entries[other].item, item):
                    return other
        prefix = self._by_rank
        if prefix[0] >= rank:
            return None
        end = bisect_left(prefix, rank)
        if self.apart_ns is not None:
            latest_ns = pt_ns - self.apart_ns
            if self._by_time[0][0] > latest_ns:
                return None
            near = bisect_right(self._by_time, (latest_ns, _LAST))
            if near < end:
                end, prefix = near, self._by_time
        for at in range(end):
            its = MessageId(*prefix[at][-2:])
            if its != key and precedes(entries[its].item, item):
                return its
        return None

    def _remove(self, key: MessageId) -> None:
        _, rank, pt_ns = self.entries.pop(key)
        ranks, times = self._by_rank, self._by_time
        del ranks[0 if ranks[0] == rank else bisect_left(ranks, rank)]
        if self.apart_ns is not None:
            time = (pt_ns, *key)
            del times[0 if times[0] == time else bisect_left(times, time)]
        own = self._of_sender[key.sender]
        if len(own) > 1:
            own.remove(key)
        else:
            del self._of_sender[key.sender]
