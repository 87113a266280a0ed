"""Rules of causal release in plain Python, row by row.

Tests feed `antecede.tables.order.stream.shard.Shard` and this reference the same batches, and
compare every row, status, position and wait.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, NamedTuple

from antecede.errors import InputError
from antecede.tables.order.stream.kernels.rows import (
    CONFLICT,
    CYCLE,
    DROPPED,
    DUPLICATE,
    LATE,
    MISSING,
    NO_TIME,
    ORDERED,
    RESTARTED,
    SELF,
)
from antecede.tables.order.stream.types import ShardPlan

Key = tuple[bytes, bytes, int]
"""Identity of a row: group, name (id or member) and number (0 for ids)."""


class Item(NamedTuple):
    """New row; `invalid` is 0, or the status of a row without an identity."""

    row: Any
    group: bytes
    name: bytes
    causes: tuple[tuple[bytes, int], ...] = ()
    number: int = 0
    time: int = NO_TIME
    digest: int = 0
    invalid: int = 0

    @property
    def key(self) -> Key:
        return (self.group, self.name, self.number)

    @property
    def needs(self) -> tuple[Key, ...]:
        return tuple((self.group, name, count) for name, count in dict.fromkeys(self.causes))

    def tie(self, numbers: bool) -> tuple[Any, ...]:
        """Return the key that orders rows of one release; `numbers`: names go by their value."""
        value = Decimal(self.name.decode()) if numbers else 0
        return (self.time == NO_TIME, self.time, value, self.name, self.number, self.digest)


class Left(NamedTuple):
    """Row that leaves: status, position (or -1), wait (or -1) and awaited causes."""

    row: Any
    status: int
    position: int
    waited_units: int
    waited_for: tuple[tuple[bytes, int], ...]
    missing: tuple[tuple[bytes, int], ...] = ()
    released: int = NO_TIME
    """Clock at the release; NO_TIME for excluded rows."""


class _Waiting:
    """Held row: its place in the step, its awaited and its abandoned causes."""

    def __init__(self, item: Item, arrived: int, place: int) -> None:
        self.item = item
        self.arrived = arrived
        self.place = place
        self.waited: set[Key] = set()
        self.given: set[Key] = set()
        self.settled: dict[Key, int] = {}
        """Causes that were released before this step, and their releases."""
        self.late = False

    @property
    def open(self) -> list[Key]:
        return [c for c in self.item.needs if c not in self.given and c not in self.settled]


class Reference:
    """Reference with the interface of `Shard`, over Python objects."""

    def __init__(self, plan: ShardPlan) -> None:
        self.plan = plan
        self.clock = self.before = NO_TIME
        self.held: dict[Key, _Waiting] = {}
        self.released: dict[Key, int] = {}
        self.aside: set[Key] = set()
        self.given_up: set[Key] = set()
        self.content: dict[Key, int] = {}
        self.stamp: dict[Key, int] = {}
        """Time of the last change of an identity, a group or a member, for its expiry."""
        self.next: dict[bytes, int] = {}
        self.group_stamp: dict[bytes, int] = {}
        self.anew: set[bytes] = set()
        self.member_stamp: dict[tuple[bytes, bytes], int] = {}
        self._gone: dict[int, Left] = {}
        self._depth: dict[Key, int] = {}
        self._now: dict[Key, int] = {}
        """Releases of this step by the rows' times."""
        self._cutoff = NO_TIME

    def step(self, items: list[Item], now: int = NO_TIME) -> list[Left]:
        """Process a micro-batch; return the rows with a position in order, then the others.

        Raises InputError, and undoes the step, when too many rows would be held.
        """
        self.before, self.clock = self.clock, max(self.clock, now)
        self._gone, self._depth, self._now = {}, {}, {}
        self._cutoff = NO_TIME if self.clock == NO_TIME else self.clock - self.plan.patience
        self._forget(items)
        new = self._admit(items, self.before)
        out = self._drain()
        self._cycles()
        out += self._by_policy(self.plan.policy)
        while 0 <= self.plan.max_held_rows < len(self.held):
            out += self._end_patience()
        if not self.plan.timed:
            for key in new & self.held.keys():
                waiting = self.held[key]
                waiting.waited = {c for c in waiting.item.needs if c not in self.released}
        self._settle()
        return out + [left for _, left in sorted(self._gone.items())]

    def _by_policy(self, policy: str) -> list[Left]:
        out: list[Left] = []
        if policy == "drop":
            self._drop()
        elif policy == "release":
            while self._give_up():
                out += self._drain()
        return out

    def _end_patience(self) -> list[Left]:
        """End the patience of the oldest rows beyond the limit."""
        if self.plan.on_overflow == "fail" or self.clock == NO_TIME:
            raise InputError("too many rows held")
        over = len(self.held) - self.plan.max_held_rows
        later = sorted(w.arrived for w in self.held.values() if w.arrived > self._cutoff)
        if not later:
            raise InputError("rows wait for rows that wait")
        self._cutoff = later[min(over, len(later)) - 1]
        return self._by_policy(self.plan.on_overflow)

    def _forget(self, items: list[Item]) -> None:
        """Delete entries older than `state_ttl` at the clock before this step."""
        if self.plan.state_ttl < 0 or self.before == NO_TIME:
            return
        limit = self.before - self.plan.state_ttl
        members = {key[:2] for key in self.held}
        for key in list(self.stamp):
            by = self.stamp[key]
            if self.plan.counted and key in self.released:
                by = NO_TIME if key[:2] in members else self.member_stamp[key[:2]]
            if by != NO_TIME and by < limit:
                del self.stamp[key]
                if key not in self.held:
                    self.content.pop(key, None)
                self.released.pop(key, None)
                self.aside.discard(key)
                self.given_up.discard(key)
        groups = {key[0] for key in self.held}
        for group in {item.group for item in items if not item.invalid} - groups:
            by = self.group_stamp.get(group, NO_TIME)
            if by != NO_TIME and by < limit:
                self.next[group] = 0
                self.anew.discard(group)
                if by >= limit - self.plan.state_ttl:
                    self.anew.add(group)

    def _settle(self) -> None:
        """Keep the facts of released causes that held rows need."""
        for waiting in self.held.values():
            for cause in waiting.open:
                if cause in self.released:
                    at = self._find_release(cause) if self.plan.timed else NO_TIME
                    waiting.settled[cause] = at
                    if self.plan.timed and at > waiting.item.time > NO_TIME:
                        waiting.waited.add(cause)
        if self.plan.counted:
            self._fold()

    def _fold(self) -> None:
        """Keep only the last number's release and content of each range."""
        for group, name, number in self.released:
            if (group, name, number + 1) in self.released:
                self.released[group, name, number] = NO_TIME
                self.content.pop((group, name, number), None)

    def _admit(self, items: list[Item], before: int) -> set[Key]:
        """Hold every row that represents a new identity, by the tie rule."""
        for place, waiting in enumerate(self.held.values()):
            waiting.place = place
        old = len(self.held)
        best: dict[Key, int] = {}
        for index, item in enumerate(items):
            settled = item.key in self.released or item.key in self.aside or item.key in self.held
            if not item.invalid and not settled and item.key not in item.needs:
                rival = best.get(item.key)
                if rival is None or item.tie(self.plan.numbers) < items[rival].tie(
                    self.plan.numbers
                ):
                    best[item.key] = index
        for key, index in best.items():
            self.content[key] = items[index].digest
        for index, item in enumerate(items):
            if best.get(item.key) == index and not item.invalid:
                arrived = self._arrival(item, before)
                waiting = self.held[item.key] = _Waiting(item, arrived, old + index)
                waiting.late = item.key in self.given_up
                self._is_known(item)
                continue
            status = item.invalid
            if not status:
                self.group_stamp[item.group] = self.clock
            if not status and item.key in item.needs:
                status = SELF
            if not status:
                known = self.content.get(item.key, item.digest)
                status = DUPLICATE if known == item.digest else CONFLICT
            self._gone[old + index] = Left(item.row, status, -1, -1, ())
        return set(best)

    def _is_known(self, item: Item) -> None:
        self.group_stamp[item.group] = self.clock
        self.member_stamp[item.group, item.name] = self.clock

    def _arrival(self, item: Item, before: int) -> int:
        if not self.plan.timed:
            return self.clock
        return max(before, self.clock if item.time == NO_TIME else item.time)

    def _set_aside(self, key: Key, status: int) -> None:
        waiting = self.held.pop(key)
        self._is_known(waiting.item)
        self.aside.add(key)
        self.stamp[key] = self.clock
        self._gone[waiting.place] = Left(waiting.item.row, status, -1, -1, ())

    def _drain(self) -> list[Left]:
        """Release, repeatedly, the first deliverable row by (r, d, tie rule)."""
        out: list[Left] = []
        while True:
            free = [
                waiting
                for waiting in self.held.values()
                if all(c in self.released for c in waiting.open)
            ]
            if not free:
                return out
            out.append(self._release(min(free, key=self._rank)))

    def _rank(self, waiting: _Waiting) -> tuple[Any, ...]:
        return (
            *self._compute_release(waiting),
            *waiting.item.tie(self.plan.numbers),
            waiting.place,
        )

    def _compute_release(self, waiting: _Waiting) -> tuple[int, int]:
        """Return the release of a row, and its depth among those of that time in this step."""
        item = waiting.item
        causes = {c: self._find_release(c) for c in waiting.open}
        given = [min(waiting.arrived + self.plan.patience, self.clock) for _ in waiting.given]
        at = max([item.time, *causes.values(), *waiting.settled.values(), *given])
        return at, max([0, *(self._depth.get(c, -1) + 1 for c in causes if causes[c] == at)])

    def _find_release(self, key: Key) -> int:
        return self.released[key] if self.plan.timed else self._now.get(key, NO_TIME)

    def _release(self, waiting: _Waiting) -> Left:
        item, key = waiting.item, waiting.item.key
        del self.held[key]
        at, self._depth[key] = self._compute_release(waiting)
        self._now[key] = at
        for cause in waiting.open:
            later = self._find_release(cause) > item.time
            if self.plan.timed and later and item.time != NO_TIME:
                waiting.waited.add(cause)
        status = MISSING if waiting.given else ORDERED
        status = LATE if waiting.late else status
        self.released[key] = at if self.plan.timed else self.clock
        self.stamp[key] = max(self.released[key], self.before)
        self._is_known(item)
        position = self.next.get(item.group, 0)
        self.next[item.group] = position + 1
        if item.group in self.anew:
            status = RESTARTED
            self.anew.remove(item.group)
        wait = at - item.time if self.plan.timed and item.time != NO_TIME else -1
        missing = [c for c in item.needs if c in waiting.given]
        waited = [c for c in item.needs if c in waiting.waited - waiting.given]
        waited_for, lacking = (tuple((c[1], c[2]) for c in causes) for causes in (waited, missing))
        left = max(at if self.plan.timed else NO_TIME, self.before)
        return Left(item.row, status, position, wait, waited_for, lacking, left)

    def _cycles(self) -> None:
        """Exclude every held row that reaches itself over held causes."""
        cyclic = []
        for key in self.held:
            seen: set[Key] = set()
            todo = list(self._open(key))
            while todo:
                cause = todo.pop()
                if cause in self.held and cause not in seen:
                    seen.add(cause)
                    todo += self._open(cause)
            if key in seen:
                cyclic.append(key)
        for key in cyclic:
            self._set_aside(key, CYCLE)

    def _open(self, key: Key) -> list[Key]:
        return self.held[key].open

    def _overdue(self, waiting: _Waiting) -> bool:
        return self.clock != NO_TIME and waiting.arrived <= self._cutoff

    def _absent(self, cause: Key) -> bool:
        return cause not in self.released and cause not in self.held

    def _drop(self) -> None:
        """Exclude rows whose cause never came, then all that need an excluded row."""
        doomed = [
            key
            for key, waiting in self.held.items()
            if self._overdue(waiting) and any(map(self._absent, waiting.open))
        ]
        for key in doomed:
            self._set_aside(key, DROPPED)
        while True:
            doomed = [
                key
                for key, waiting in self.held.items()
                if any(cause in self.aside for cause in waiting.open)
            ]
            if not doomed:
                return
            for key in doomed:
                self._set_aside(key, DROPPED)

    def _give_up(self) -> bool:
        """Abandon causes of overdue rows, unless an earlier number is still held."""
        lowest: dict[tuple[bytes, bytes], int] = {}
        for group, name, count in self.held:
            lowest[group, name] = min(count, lowest.get((group, name), count))
        any_given = False
        for waiting in self.held.values():
            if self._overdue(waiting):
                for cause in waiting.open:
                    stand_in = lowest.get(cause[:2], cause[2]) < cause[2]
                    if self._absent(cause) and not stand_in:
                        waiting.given.add(cause)
                        if cause not in self.given_up:
                            self.given_up.add(cause)
                            self.stamp[cause] = self.clock
                        any_given = True
        return any_given
