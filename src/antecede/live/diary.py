"""What a peer's log says: who came and went, which links stand, what was refused, who lags.

Nothing is said a message. It is looked at now and then, so what came and went in between is
not told, but in the counts. The fields of each entry go with the record (`extra=`), as
`antecede_...`, and the event has one of the names of `EVENTS`.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from antecede.live.events import member_of
from antecede.live.node import Node
from antecede.live.settings import NS
from antecede.live.status import LAGGING, members_of

EVENTS: Final = {
    "joined": logging.INFO,
    "gone": logging.INFO,
    "connected": logging.INFO,
    "disconnected": logging.INFO,
    "unheard": logging.WARNING,
    "refused": logging.WARNING,
    "rejected": logging.WARNING,
    "lagging": logging.WARNING,
    "caught_up": logging.INFO,
    "given_up": logging.ERROR,
    "lost": logging.ERROR,
    "stopped": logging.ERROR,
    "going_on": logging.INFO,
    "out": logging.ERROR,
    "clock": logging.WARNING,
    "store_failed": logging.ERROR,
    "trace_failed": logging.ERROR,
    "certificate": logging.WARNING,
}
"""Every event, and how grave it is."""
AGAIN_NS: Final = 300 * NS
"""Time until the same words about a refusal are logged again."""
MOST_WORDS: Final = 256
"""Different words about refusals that are remembered."""
LAGGING_NS: Final = NS
"""So often it is looked who lags."""


class LogEntry(NamedTuple):
    """One line."""

    event: str
    text: str
    fields: dict[str, Any]

    @property
    def level(self) -> int:
        """Of `logging`."""
        return EVENTS[self.event]


class StatusLogger:
    """Compares what is with what was."""

    def __init__(self) -> None:
        self._members: frozenset[str] = frozenset()
        self._connected: frozenset[str] = frozenset()
        self._heard_ns: dict[str, int] = {}
        """Lane of a member -> when something came from it last."""
        self._met: set[str] = set()
        """Lanes that were connected before."""
        self._unheard: set[str] = set()
        """Those of whom it was said that they are not heard."""
        self._lagging: frozenset[str] = frozenset()
        self._refused: Counter[str] = Counter()
        self._logged_ns: dict[str, int] = {}
        """Words about a refusal -> when they were logged last."""
        self._rejected: dict[str, str] = {}
        self._given_up = 0
        self._stopped = False
        self._out = False
        self._lagged_ns: int | None = None

    def look(self, node: Node, now: int) -> Iterator[LogEntry]:
        """Yield what there is to say at a moment (ns)."""
        yield from self._coming_and_going(node)
        yield from self._links(node)
        yield from self._silent(node, now)
        yield from self._refusals(node, now)
        yield from self._rejections(node)
        if self._lagged_ns is None or now - self._lagged_ns >= LAGGING_NS:
            self._lagged_ns = now
            yield from self._laggards(node, now)
        yield from self._condition(node)

    def _coming_and_going(self, node: Node) -> Iterator[LogEntry]:
        ordering = node.ordering
        if ordering is None:
            return
        members = frozenset(ordering.others())
        for lane in sorted(members - self._members):
            name = member_of(lane)
            address = ordering.members[lane]
            yield LogEntry(
                "joined", f"{name} is in the group", {"member": name, "address": address}
            )
        for lane in sorted(self._members - members):
            name = member_of(lane)
            yield LogEntry("gone", f"{name} is out of the group", {"member": name})
        self._members = members

    def _links(self, node: Node) -> Iterator[LogEntry]:
        connected = frozenset(node.greeted)
        for lane in sorted(connected - self._connected):
            name = member_of(lane)
            again = "again " if lane in self._met else ""
            self._met.add(lane)
            yield LogEntry("connected", f"connected {again}with {name}", {"member": name})
        for lane in sorted(self._connected - connected):
            name = member_of(lane)
            if lane in self._members:
                yield LogEntry("disconnected", f"not connected with {name}", {"member": name})
        self._connected = connected

    def _silent(self, node: Node, now: int) -> Iterator[LogEntry]:
        """Say who is not connected and was not heard for longer than silence is allowed to last:
        one that ends, to come back later, is away, which may be as it should.
        """
        self._heard_ns.update({lane: link.heard_ns for lane, link in node.greeted.items()})
        for lane in self._heard_ns.keys() - self._members - self._connected:
            del self._heard_ns[lane]
        self._unheard &= self._members - self._connected
        for lane in sorted(self._members - self._connected - self._unheard):
            silent = now - self._heard_ns.setdefault(lane, now)
            if silent > node.settings.failure_timeout_ns:
                self._unheard.add(lane)
                name, seconds = member_of(lane), silent / NS
                fields = {"member": name, "seconds": round(seconds, 1)}
                yield LogEntry("unheard", f"{name} was not heard for {seconds:.1f} s", fields)

    def _refusals(self, node: Node, now: int) -> Iterator[LogEntry]:
        """Log refusals; of those with the words of an earlier one the number, each five minutes."""
        if node.rejected == self._refused:
            return
        words, before = node.last_rejection, self._logged_ns
        if words in before and now - before[words] < AGAIN_NS:
            return
        before.pop(words, None)
        before[words] = now
        if len(before) > MOST_WORDS:
            del before[next(iter(before))]
        for kind, count in sorted((node.rejected - self._refused).items()):
            times = "once" if count == 1 else f"{count} times"
            last = "" if count == 1 else "last: "
            text = f"refused {times} ({kind}), {last}{node.last_rejection or 'why was not said'}"
            fields = {"reason": kind, "count": count, "last": node.last_rejection}
            yield LogEntry("refused", text, fields)
        self._refused = node.rejected.copy()

    def _rejections(self, node: Node) -> Iterator[LogEntry]:
        for name, why in sorted(node.rejections.by.items()):
            if self._rejected.get(name) != why and not node.last_rejection.endswith(why):
                fields = {"member": name, "reason": why}
                yield LogEntry("rejected", f"{name} rejects this member: {why}", fields)
        self._rejected = dict(node.rejections.by)

    def _laggards(self, node: Node, now: int) -> Iterator[LogEntry]:
        ordering = node.ordering
        spilled = ordering is not None and ordering.lanes.spilled_bytes > 0
        members = members_of(node, now) if spilled else ()  # who is asked in vain is many
        lagging = {one.sender_id: one for one in members if one.state == LAGGING}
        for lane in sorted(lagging.keys() - self._lagging):
            one = lagging[lane]
            text = f"{one.name} lags: {one.lag} batches, the next of them in the store alone"
            yield LogEntry("lagging", text, {"member": one.name, "lacks": one.lag})
        for lane in sorted(self._lagging - lagging.keys()):
            name = member_of(lane)
            yield LogEntry("caught_up", f"{name} does not lag any more", {"member": name})
        self._lagging = frozenset(lagging)

    def _condition(self, node: Node) -> Iterator[LogEntry]:
        ordering = node.ordering
        if ordering is not None and ordering.given_up > self._given_up:
            count = ordering.given_up - self._given_up
            text = f"{count} batches given up: what they depend on died with its sender"
            yield LogEntry("given_up", text, {"count": count})
            self._given_up = ordering.given_up
        if node.in_minority != self._stopped:
            self._stopped = node.in_minority
            if node.in_minority:
                yield LogEntry("stopped", "no majority of the group is heard: nothing is sent", {})
            else:
                yield LogEntry("going_on", "a majority of the group is heard again", {})
        if node.out and not self._out:
            self._out = True
            yield LogEntry("out", f"out of the group: {node.out}", {"reason": node.out})


def write(log: logging.Logger, peer: str, room: str, entry: LogEntry) -> None:
    """Write an entry to a log: words of others without control characters."""
    if log.isEnabledFor(entry.level):
        text = "".join(c if c.isprintable() else "?" for c in entry.text)
        fields = {"event": entry.event, "peer": peer, "room": room, **entry.fields}
        extra = {f"antecede_{name}": value for name, value in fields.items()}
        log.log(entry.level, "%s: %s", peer, text, extra=extra)
