"""Delivery times under S_b, causal and total order, over the same arrivals.

Theory of operation ------------------- Arrivals do not depend on the order, so all three are
computed together, message by message in send order. Receiving r has message m at arrival a[m, r].
The sender has it at its send time. The set that an order waits for is closed, so m is delivered as
soon as m and that set have arrived:

    S_b      d[m, r] = max(a[m, r], d[p, r] of the messages that m replies to)
    causal   d[m, r] = max(a[m, r], d[p, r] of all that causal order had delivered to m's sender)
    total    d[m, r] = max(a[m, r], a[p, r] of all that was sent before m)

Total order follows send times, and its receivers know without cost that no earlier message is in
flight. So no protocol for this order waits less. Parents of a message were delivered to its sender
before. So at every copy S_b waits no longer than causal order, and causal order no longer than
total order. S_b delivers before a message of the causal past exactly where causal order waits
longer: `longer` counts both.

The application acts on the deliveries of causal order. S_b had delivered these too, total order
possibly not yet. A reply of a trace that is due before its parents' delivery is sent 1 us after it.

A message that causal order has delivered everywhere delays no later one. So only messages in flight
are stored, and immediate dependencies of next messages. `covered[p, r]` is the delivery time at r
of a message with p in its past. From d[p, r] to then p is such a dependency (IDR, Evropeytsev et
al. 2016). A message that is covered everywhere is dropped.

Schedule and arrivals are the simulator's (`lab.simulate`). Tests compare send times and deliveries
of causal order with its runs. S_b and total order are computed only here: in a run of their own,
the application would act on other deliveries.

Waits are counted over all copies. Histories, such as messages held at once, are stored for 32
`observers` at most.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np

from antecede.lab.reproductions.semantic.workload import MessageLoad
from antecede.lab.simulate import Ints, Network, Stream, draw_array, make_key

ORDERS = ("sb", "causal", "total")
MAX_OBSERVERS = 32


class Outcome(NamedTuple):
    """Outcome of a load. Messages are named by their position in send order."""

    number: Ints  # [messages] in the load
    sender: Ints
    sent_us: Ints
    parents: list[tuple[int, ...]]
    observers: Ints
    arrived_us: Ints  # [messages, observers] at the sender its send time
    delivered_us: dict[str, Ints]  # Order -> [messages, observers]
    waits: dict[str, Ints]  # Order -> waits of copies that waited, us, ascending
    copies: int  # Copies of messages sent from `warm_us` on, which `waits` and `longer` cover
    longer: dict[str, int]  # "causal", "total" -> copies that waited longer than under S_b
    past: Ints  # [messages] size of the causal past
    immediate: Ints
    """[messages] dependencies under IDR (Evropeytsev et al. 2016): the frontier of the past,
    without the sender's own message."""


def compute_orders(load: MessageLoad, network: Network, seed: int, warm_us: int = 0) -> Outcome:
    """Compute when each order delivers the messages of a load."""
    return OrderSimulation(load, network, choose_observers(network.size, seed), warm_us).run()


def choose_observers(members: int, seed: int) -> Ints:
    """Return the members with a history, ascending: all, or a random sample."""
    words = draw_array(make_key(seed, Stream.SAMPLE), np.arange(members))
    return np.sort(np.argsort(words, kind="stable")[:MAX_OBSERVERS])


class OrderSimulation:
    """Computation over all messages in send order."""

    def __init__(self, load: MessageLoad, network: Network, observers: Ints, warm_us: int) -> None:
        self.load, self.network, self.observers, self.warm_us = load, network, observers, warm_us
        self.size = network.size
        count = len(load.time_us)
        self.position = np.full(count, -1, dtype=np.int64)  # By number (-1: not sent yet)
        self.number, self.sender, self.sent_us, self.past, self.immediate = (
            np.zeros(count, dtype=np.int64) for _ in range(5)
        )
        self.parents: list[tuple[int, ...]] = []
        shape = (count, len(self.observers))
        self.arrived = np.zeros(shape, dtype=np.int64)
        self.delivered = {order: np.zeros(shape, dtype=np.int64) for order in ORDERS}
        self.window = _Window(self.size)
        self.newest = np.zeros(self.size, dtype=np.int64)
        """By member: arrival of the last message sent so far."""
        none = np.zeros(0, dtype=np.int64)
        self.waits: dict[str, list[Ints]] = {order: [none] for order in ORDERS}
        self.copies = 0
        self.longer = {"causal": 0, "total": 0}

    def run(self) -> Outcome:
        """Send each message when it is due and its sender has its parents."""
        due = list(zip(self.load.time_us.tolist(), range(len(self.position)), strict=True))
        heapq.heapify(due)
        waiting: dict[int, list[int]] = {}
        now = 0
        while due:
            time_us, number = heapq.heappop(due)
            missing = next((p for p in self._list_parents(number) if self.position[p] < 0), None)
            if missing is not None:
                waiting.setdefault(missing, []).append(number)
                continue
            ready = self._find_ready_time(number)
            if ready > time_us:
                heapq.heappush(due, (ready, number))
                continue
            now = time_us
            self._send(number, now)
            for reply in waiting.pop(number, ()):
                heapq.heappush(due, (max(now, int(self.load.time_us[reply])), reply))
        return Outcome(
            self.number,
            self.sender,
            self.sent_us,
            self.parents,
            self.observers,
            self.arrived,
            self.delivered,
            {order: np.sort(np.concatenate(found)) for order, found in self.waits.items()},
            self.copies,
            self.longer,
            self.past,
            self.immediate,
        )

    # -- parents of a message ------------------------------------------------------------------

    def _list_parents(self, number: int) -> tuple[int, ...]:
        return tuple(self.load.parents[number]) if self.load.parents is not None else ()

    def _find_ready_time(self, number: int) -> int:
        me, ready = self.load.sender[number], 0
        for parent in self._list_parents(number):
            at = int(self.position[parent])
            if at >= self.window.first and self.sender[at] != me:
                ready = max(ready, int(self.window.causal[at - self.window.first, me]) + 1)
        return ready

    def _choose_parents(self, number: int, there: Ints, delivered: Ints) -> tuple[int, ...]:
        """Return positions of the parents. `there`: positions of the sender's messages."""
        if self.load.parents is not None:
            return tuple(int(self.position[parent]) for parent in self._list_parents(number))
        others = self.sender[there] != self.load.sender[number]
        lately = there[others][np.argsort(delivered[others], kind="stable")[-self.load.recent :]]
        chosen = self.load.draw_parent(number, lately.tolist())
        return () if chosen is None else (chosen,)

    # -- one message ------------------------------------------------------------------------

    def _send(self, number: int, now: int) -> None:
        at, me, window = len(self.parents), int(self.load.sender[number]), self.window
        window.free_rows(at, now, 8 * self.load.recent)
        first, rows = window.first, at - window.first
        mine = self.sender[first:at] == me
        delivered, covered = window.causal[:rows, me], window.covered[:rows, me]
        has = mine | (delivered < now)
        last = has & (covered >= now)
        there = np.flatnonzero(has)
        self.position[number] = at
        self.number[at], self.sender[at], self.sent_us[at] = number, me, now
        self.past[at], self.immediate[at] = first + len(there), int((last & ~mine).sum())
        self.parents.append(self._choose_parents(number, there + first, delivered[there]))
        arrived = self.draw_arrivals(number, me, now)
        dependencies = np.flatnonzero(last)
        causal = np.maximum(arrived, window.causal[dependencies].max(axis=0, initial=0))
        sb = arrived
        for parent in self.parents[at]:
            if parent >= first:
                sb = np.maximum(sb, window.sb[parent - first])
        self.newest = np.maximum(self.newest, arrived)
        window.causal[rows], window.sb[rows], window.covered[rows] = causal, sb, _NEVER
        window.covered[rows, me] = _NEVER
        for dependency in dependencies:
            np.minimum(window.covered[dependency], causal, out=window.covered[dependency])
        self._record(at, me, arrived, {"sb": sb, "causal": causal, "total": self.newest})

    def draw_arrivals(self, number: int, me: int, now: int) -> Ints:
        """Return arrivals of a message that is sent now [members]; for the sender, now."""
        others = [at for at in range(self.size) if at != me]
        arrived = [copy.arrival_us for copy in self.network.send_message(number, now, me, others)]
        return np.array([*arrived[:me], now, *arrived[me:]], dtype=np.int64)

    def _record(self, at: int, me: int, arrived: Ints, found: dict[str, Ints]) -> None:
        self.arrived[at] = arrived[self.observers]
        for order, delivered in found.items():
            self.delivered[order][at] = delivered[self.observers]
            self.delivered[order][at, self.observers == me] = self.sent_us[at]
        if self.sent_us[at] < self.warm_us:
            return
        self.copies += self.size - 1
        for order, delivered in found.items():
            wait = delivered - arrived
            wait[me] = 0
            self.waits[order].append(wait[wait > 0])
            if order in self.longer:
                longer = delivered > found["sb"]
                self.longer[order] += int(longer.sum()) - int(longer[me])


_NEVER = np.iinfo(np.int64).max


class _Window:
    """Rows of messages that may still delay another, by position from `first` on."""

    def __init__(self, size: int) -> None:
        self.first, self.capacity = 0, 256
        self.causal, self.sb, self.covered = (
            np.zeros((self.capacity, size), dtype=np.int64) for _ in range(3)
        )

    def free_rows(self, at: int, now: int, keep: int) -> None:
        """Drop rows that delay nothing if all rows are used. Grow if few can be dropped."""
        rows = at - self.first
        if rows < self.capacity:
            return
        # A covered message was delivered. Once covered everywhere, it delays nothing.
        over = self.covered[:rows].max(axis=1) < now
        going = min(rows if over.all() else int(np.argmin(over)), max(rows - keep, 0))
        self.first += going
        left = rows - going
        grown = max(self.capacity, 2 * left)
        for name in ("causal", "sb", "covered"):
            old = getattr(self, name)
            new = old if grown == self.capacity else np.zeros((grown, old.shape[1]), dtype=np.int64)
            new[:left] = old[going:rows].copy()
            setattr(self, name, new)
        self.capacity = grown
