"""The rule of causal release in plain Python: dictionaries and sets, one row after the other.

What `release.Shard` does in compiled code over packed arrays, written to be read. Tests feed
both the same batches and compare every row, status, position and wait.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, NamedTuple

from antecede.kernels.release import Plan
from antecede.kernels.release_rows import (
    CONFLICT,
    CYCLE,
    DROPPED,
    DUPLICATE,
    LATE,
    MISSING,
    NO_TIME,
    ORDERED,
    SELF,
)

Key = tuple[bytes, bytes, int]
"""Group, name (id or member) and number (0 for ids): the identity of a row."""


class Item(NamedTuple):
    """One new row: its identity, causes (name, number), time and content; `row` is the caller's.

    `invalid` is 0, or the status of a row that has no identity.
    """

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
        """The identity."""
        return (self.group, self.name, self.number)

    @property
    def needs(self) -> tuple[Key, ...]:
        """The identities of the causes, each once."""
        return tuple((self.group, name, count) for name, count in dict.fromkeys(self.causes))

    def tie(self, numbers: bool) -> tuple[Any, ...]:
        """The rule for rows that may go at the same time; `numbers`: names go by their value."""
        value = Decimal(self.name.decode()) if numbers else 0
        return (self.time == NO_TIME, self.time, value, self.name, self.number, self.digest)


class Left(NamedTuple):
    """A row that leaves: its status, position (or -1), wait (or -1) and what it waited for."""

    row: Any
    status: int
    position: int
    waited_units: int
    waited_for: tuple[tuple[bytes, int], ...]
    missing: tuple[tuple[bytes, int], ...] = ()


class _Waiting:
    """A row that is held back: its place in the step, and what it waited for or gave up."""

    def __init__(self, item: Item, arrived: int, place: int) -> None:
        self.item = item
        self.arrived = arrived
        self.place = place
        self.waited: set[Key] = set()
        self.given: set[Key] = set()


class Reference:
    """The same interface as `Shard`, over Python objects; nothing is ever packed."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.clock = NO_TIME
        self.held: dict[Key, _Waiting] = {}
        self.released: dict[Key, int] = {}
        self.aside: set[Key] = set()
        self.given_up: set[Key] = set()
        self.content: dict[Key, int] = {}
        self.next: dict[bytes, int] = {}
        self._gone: dict[int, Left] = {}
        self._depth: dict[Key, int] = {}

    def step(self, items: list[Item], now: int = NO_TIME) -> list[Left]:
        """Take in a micro-batch; return the rows with a position in order, then the others."""
        before, self.clock = self.clock, max(self.clock, now)
        self._gone, self._depth = {}, {}
        new = self._admit(items, before)
        out = self._drain()
        self._cycles()
        if self.plan.policy == "drop":
            self._drop()
        elif self.plan.policy == "release":
            while self._give_up():
                out += self._drain()
        if not self.plan.timed:
            for key in new & self.held.keys():
                waiting = self.held[key]
                waiting.waited = {c for c in waiting.item.needs if c not in self.released}
        return out + [left for _, left in sorted(self._gone.items())]

    def _admit(self, items: list[Item], before: int) -> set[Key]:
        """Hold every row that stands for a new identity; the first by the tie rule does."""
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
                self.held[item.key] = _Waiting(item, arrived, old + index)
                continue
            status = item.invalid
            if not status and item.key in item.needs:
                status = SELF
            if not status:
                known = self.content.get(item.key, item.digest)
                status = DUPLICATE if known == item.digest else CONFLICT
            self._gone[old + index] = Left(item.row, status, -1, -1, ())
        return set(best)

    def _arrival(self, item: Item, before: int) -> int:
        if not self.plan.timed:
            return self.clock
        return max(before, self.clock if item.time == NO_TIME else item.time)

    def _set_aside(self, key: Key, status: int) -> None:
        waiting = self.held.pop(key)
        self.aside.add(key)
        self._gone[waiting.place] = Left(waiting.item.row, status, -1, -1, ())

    def _drain(self) -> list[Left]:
        """Release, again and again, the first by (r, d, tie rule) of all rows that may go."""
        out: list[Left] = []
        while True:
            free = [
                waiting
                for waiting in self.held.values()
                if all(c in self.released or c in waiting.given for c in waiting.item.needs)
            ]
            if not free:
                return out
            out.append(self._release(min(free, key=self._rank)))

    def _rank(self, waiting: _Waiting) -> tuple[Any, ...]:
        return (*self._lifted(waiting), *waiting.item.tie(self.plan.numbers), waiting.place)

    def _lifted(self, waiting: _Waiting) -> tuple[int, int]:
        """Return when a row is released, and its depth among those of that time in this step."""
        item = waiting.item
        causes = {c: self._released_at(c) for c in item.needs if c not in waiting.given}
        given = [waiting.arrived + self.plan.patience for _ in waiting.given]
        at = max([item.time, *causes.values(), *given])
        return at, max([0, *(self._depth.get(c, -1) + 1 for c in causes if causes[c] == at)])

    def _released_at(self, key: Key) -> int:
        return self.released[key] if self.plan.timed else NO_TIME

    def _release(self, waiting: _Waiting) -> Left:
        item, key = waiting.item, waiting.item.key
        del self.held[key]
        at, self._depth[key] = self._lifted(waiting)
        for cause in item.needs:
            later = cause not in waiting.given and self._released_at(cause) > item.time
            if later and item.time != NO_TIME:
                waiting.waited.add(cause)
        status = MISSING if waiting.given else ORDERED
        status = LATE if key in self.given_up else status
        self.released[key] = at if self.plan.timed else self.clock
        position = self.next.get(item.group, 0)
        self.next[item.group] = position + 1
        wait = at - item.time if self.plan.timed and item.time != NO_TIME else -1
        missing = [c for c in item.needs if c in waiting.given]
        waited = [c for c in item.needs if c in waiting.waited - waiting.given]
        names = (tuple((c[1], c[2]) for c in causes) for causes in (waited, missing))
        return Left(item.row, status, position, wait, *names)

    def _cycles(self) -> None:
        """Set aside every held row that can be reached from itself over held causes."""
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
        waiting = self.held[key]
        return [c for c in waiting.item.needs if c not in waiting.given]

    def _overdue(self, waiting: _Waiting) -> bool:
        return self.clock != NO_TIME and waiting.arrived <= self.clock - self.plan.patience

    def _absent(self, cause: Key) -> bool:
        return cause not in self.released and cause not in self.held

    def _drop(self) -> None:
        """Set aside rows whose cause never came, then whatever needs a row set aside."""
        doomed = [
            key
            for key, waiting in self.held.items()
            if self._overdue(waiting) and any(map(self._absent, waiting.item.needs))
        ]
        for key in doomed:
            self._set_aside(key, DROPPED)
        while True:
            doomed = [
                key
                for key, waiting in self.held.items()
                if any(cause in self.aside for cause in waiting.item.needs)
            ]
            if not doomed:
                return
            for key in doomed:
                self._set_aside(key, DROPPED)

    def _give_up(self) -> bool:
        """Give up causes of overdue rows, but not where an earlier number is still held."""
        lowest: dict[tuple[bytes, bytes], int] = {}
        for group, name, count in self.held:
            lowest[group, name] = min(count, lowest.get((group, name), count))
        any_given = False
        for waiting in self.held.values():
            if self._overdue(waiting):
                for cause in waiting.item.needs:
                    stand_in = lowest.get(cause[:2], cause[2]) < cause[2]
                    if self._absent(cause) and not stand_in and cause not in waiting.given:
                        waiting.given.add(cause)
                        self.given_up.add(cause)
                        any_given = True
        return any_given
