"""Index of the held messages that no later message can precede.

Used for delivery by null messages when all pairs have the same separation. A message b is clear
when every other member's lower bound has an LT that is not less than b's, or a PT above b.PT less
the separation.

Theory of operation
-------------------
Let f(x) be the least PT of the lower bounds whose LT is below x. Then b is clear when f(b.LT) is
above its limit, b.PT less the separation. Lower bounds only rise, so f does. Its least value is the
PT of the member with the lowest bound. Messages with a lower limit are clear whatever their LT, and
a list by limit finds them. For an LT above that member's, f has no other value. For the few held LT
up to it, f is computed from the bounds by LT. A sender's own bound is past its messages.

Work is deferred. The heap of bounds has one entry per member, renewed at the top. Bounds are
indexed by LT when f is computed. Lists keep removed messages until they are searched or consist
mostly of these.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Iterable

from antecede.core.clocks import LONGEST_NS
from antecede.core.protocols.base import MessageId

_NO_BOUND = 8 * LONGEST_NS


class LowerBoundIndex:
    """Lower bounds of the members that can still send, and the messages that wait for them."""

    def __init__(self, lower_bounds: Iterable[tuple[int, int, int]]) -> None:
        self.bounds: dict[int, tuple[int, int]] = {}
        """LT and PT by member, without members that can send no more."""
        self._lowest: list[tuple[int, int, int]] = []
        """Heap of (PT, LT, member), whose entries may be outdated."""
        self._changed: set[int] = set()
        """Members whose current bound is not indexed by LT."""
        self._bounds_by_lt: dict[int, list[tuple[int, int]]] = {}
        self._lts: list[int] = []
        self._indexed_count = 0
        self._waiting: set[MessageId] = set()
        self._limits: list[tuple[int, MessageId]] = []
        self._far: list[tuple[int, int, MessageId]] = []
        """(LT, limit, message), ascending, for LT above that of the lowest bound."""
        self._near: dict[int, list[tuple[int, MessageId]]] = {}
        """By LT: a heap of the other messages, by limit."""
        for member, lt, pt_ns in lower_bounds:
            self.raise_bound(member, lt, pt_ns)

    def raise_bound(self, member: int, lt: int, pt_ns: int) -> None:
        lower_bound, before = (lt, pt_ns), self.bounds.get(member)
        if lower_bound == before:
            return
        self.bounds[member] = lower_bound
        self._changed.add(member)
        if before is None:
            heapq.heappush(self._lowest, (pt_ns, lt, member))

    def close(self, member: int) -> None:
        self.bounds.pop(member, None)

    def add(self, key: MessageId, lt: int, limit_ns: int) -> None:
        self._waiting.add(key)
        insort(self._limits, (limit_ns, key))
        insort(self._far, (lt, limit_ns, key))
        most = 2 * len(self._waiting) + 64
        if len(self._limits) > most:
            self._limits = [one for one in self._limits if one[1] in self._waiting]
        if len(self._far) > most:
            self._far = [one for one in self._far if one[2] in self._waiting]

    def take_clear(self) -> list[MessageId]:
        lowest, far = self._find_lowest(), self._far
        if lowest is None:
            found = sorted(self._waiting)
            self._waiting, self._limits, self._far, self._near = set(), [], [], {}
            return found
        pt_ns, lt, _ = lowest
        found = self._take_below(pt_ns)
        if self._near or (far and far[0][0] <= lt):
            found += self._take_by_lt(lt)
        return found

    def _find_lowest(self) -> tuple[int, int, int] | None:
        """Return PT, LT and member of the lowest bound, by PT first."""
        lowest, lower_bounds = self._lowest, self.bounds
        while lowest:
            pt_ns, lt, member = lowest[0]
            lower_bound = lower_bounds.get(member)
            if lower_bound is None:
                heapq.heappop(lowest)
            elif lower_bound[1] == pt_ns and lower_bound[0] == lt:
                return lowest[0]
            else:
                heapq.heapreplace(lowest, (lower_bound[1], lower_bound[0], member))
        return None

    def _take_below(self, pt_ns: int) -> list[MessageId]:
        limits, waiting = self._limits, self._waiting
        if not limits or limits[0][0] >= pt_ns:
            return []
        end = bisect_left(limits, (pt_ns,))
        found = [key for _, key in limits[:end] if key in waiting]
        del limits[:end]
        waiting.difference_update(found)
        return found

    def _take_by_lt(self, most: int) -> list[MessageId]:
        """Take the clear messages with an LT up to this."""
        far, near, end = self._far, self._near, bisect_left(self._far, (most + 1,))
        for lt, limit_ns, key in far[:end]:
            if key in self._waiting:
                heapq.heappush(near.setdefault(lt, []), (limit_ns, key))
        del far[:end]
        found: list[MessageId] = []
        for lt in [lt for lt in near if lt <= most]:
            heap = near[lt]
            self._drop_taken(heap)
            if heap:
                found += self._take_from_heap(heap, self._find_least_pt(lt))
            if not heap:
                del near[lt]
        return found

    def _drop_taken(self, heap: list[tuple[int, MessageId]]) -> None:
        """Drop messages that were taken by their limit; they are on top of the heap."""
        while heap and heap[0][1] not in self._waiting:
            heapq.heappop(heap)

    def _take_from_heap(self, heap: list[tuple[int, MessageId]], above_ns: int) -> list[MessageId]:
        found = []
        while heap and heap[0][0] < above_ns:
            key = heapq.heappop(heap)[1]
            self._waiting.remove(key)
            found.append(key)
        return found

    def _find_least_pt(self, lt: int) -> int:
        """Return the least PT of the bounds with an LT below this."""
        self._index_by_lt()
        least, empty = _NO_BOUND, []
        for bound_lt in self._lts:
            if bound_lt >= lt:
                break
            heap = self._bounds_by_lt[bound_lt]
            while heap and self.bounds.get(heap[0][1]) != (bound_lt, heap[0][0]):
                heapq.heappop(heap)
            if heap:
                least = min(least, heap[0][0])
            else:
                empty.append(bound_lt)
        for bound_lt in empty:
            del self._bounds_by_lt[bound_lt]
            self._lts.remove(bound_lt)
        return least

    def _index_by_lt(self) -> None:
        """Index changed bounds by LT; rebuild the index when most of it is outdated."""
        moved = self._changed
        self._indexed_count += len(moved)
        if self._indexed_count > 4 * len(self.bounds) + 64:
            self._bounds_by_lt, self._lts = {}, []
            moved = set(self.bounds)
            self._indexed_count = len(moved)
        for member in moved & self.bounds.keys():
            lt, pt_ns = self.bounds[member]
            if lt not in self._bounds_by_lt:
                self._bounds_by_lt[lt] = []
                insort(self._lts, lt)
            heapq.heappush(self._bounds_by_lt[lt], (pt_ns, member))
        self._changed = set()
