"""Event log of a peer: membership, connections, rejections, lagging members.

Messages are not logged. The status is sampled, so short changes appear only in counts. The fields
of an entry are attributes of the log record (`extra=`), named `antecede_...`. The event is one of
`EVENTS`.
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
    "departed": logging.INFO,
    "connected": logging.INFO,
    "disconnected": logging.INFO,
    "unheard": logging.WARNING,
    "rejected": logging.WARNING,
    "rejected_by": logging.WARNING,
    "lagging": logging.WARNING,
    "caught_up": logging.INFO,
    "abandoned": logging.ERROR,
    "lost": logging.ERROR,
    "in_minority": logging.ERROR,
    "in_majority": logging.INFO,
    "evicted": logging.ERROR,
    "bound_violation": logging.WARNING,
    "store_failed": logging.ERROR,
    "trace_failed": logging.ERROR,
    "certificate": logging.WARNING,
}
AGAIN_NS: Final = 300 * NS
"""Time before a repeated rejection is logged again."""
MOST_WORDS: Final = 256
LAGGING_NS: Final = NS
"""Interval of samples of lagging members."""


class LogEntry(NamedTuple):
    """Entry of the log."""

    event: str
    text: str
    fields: dict[str, Any]

    @property
    def level(self) -> int:
        """Level of `logging`."""
        return EVENTS[self.event]


class StatusLogger:
    """Comparison of the status with the previous sample."""

    def __init__(self) -> None:
        self._members: frozenset[str] = frozenset()
        self._connected: frozenset[str] = frozenset()
        self._heard_ns: dict[str, int] = {}
        """Sender id of a member -> time of its last bytes."""
        self._met: set[str] = set()
        self._unheard: set[str] = set()
        self._lagging: frozenset[str] = frozenset()
        self._refused: Counter[str] = Counter()
        self._logged_ns: dict[str, int] = {}
        """Text of a rejection -> time of its last entry."""
        self._rejected: dict[str, str] = {}
        self._given_up = 0
        self._stopped = False
        self._out = False
        self._lagged_ns: int | None = None

    def sample(self, node: Node, now: int) -> Iterator[LogEntry]:
        """Yield the entries of a sample at `now` (ns)."""
        yield from self._log_membership(node)
        yield from self._log_connections(node)
        yield from self._log_silence(node, now)
        yield from self._log_rejections(node, now)
        yield from self._log_rejecting_members(node)
        if self._lagged_ns is None or now - self._lagged_ns >= LAGGING_NS:
            self._lagged_ns = now
            yield from self._log_lagging(node, now)
        yield from self._log_condition(node)

    def _log_membership(self, node: Node) -> Iterator[LogEntry]:
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
            yield LogEntry("departed", f"{name} has left the group", {"member": name})
        self._members = members

    def _log_connections(self, node: Node) -> Iterator[LogEntry]:
        connected = frozenset(node.greeted)
        for lane in sorted(connected - self._connected):
            name = member_of(lane)
            again = "again " if lane in self._met else ""
            self._met.add(lane)
            yield LogEntry("connected", f"connected {again}to {name}", {"member": name})
        for lane in sorted(self._connected - connected):
            name = member_of(lane)
            if lane in self._members:
                yield LogEntry("disconnected", f"disconnected from {name}", {"member": name})
        self._connected = connected

    def _log_silence(self, node: Node, now: int) -> Iterator[LogEntry]:
        """Report disconnected members that were not heard for longer than the failure timeout. A
        member that closed and will return is away too, which may be intended.
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
                yield LogEntry("unheard", f"{name} is silent for {seconds:.1f} s", fields)

    def _log_rejections(self, node: Node, now: int) -> Iterator[LogEntry]:
        """Log rejections. A repeated text appears with its number every five minutes."""
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
            text = f"rejected {times} ({kind}), {last}{node.last_rejection or 'unknown reason'}"
            fields = {"reason": kind, "count": count, "last": node.last_rejection}
            yield LogEntry("rejected", text, fields)
        self._refused = node.rejected.copy()

    def _log_rejecting_members(self, node: Node) -> Iterator[LogEntry]:
        for name, why in sorted(node.rejections.by.items()):
            if self._rejected.get(name) != why and not node.last_rejection.endswith(why):
                fields = {"member": name, "reason": why}
                yield LogEntry("rejected_by", f"{name} rejects this member: {why}", fields)
        self._rejected = dict(node.rejections.by)

    def _log_lagging(self, node: Node, now: int) -> Iterator[LogEntry]:
        ordering = node.ordering
        spilled = ordering is not None and ordering.lanes.spilled_bytes > 0
        members = members_of(node, now) if spilled else ()  # the list of members costs more
        lagging = {one.sender_id: one for one in members if one.state == LAGGING}
        for lane in sorted(lagging.keys() - self._lagging):
            one = lagging[lane]
            text = f"{one.name} lags by {one.lag} batches, the next only in the store"
            yield LogEntry("lagging", text, {"member": one.name, "lag": one.lag})
        for lane in sorted(self._lagging - lagging.keys()):
            name = member_of(lane)
            yield LogEntry("caught_up", f"{name} has caught up", {"member": name})
        self._lagging = frozenset(lagging)

    def _log_condition(self, node: Node) -> Iterator[LogEntry]:
        ordering = node.ordering
        if ordering is not None and ordering.given_up > self._given_up:
            count = ordering.given_up - self._given_up
            text = f"{count} batches abandoned: their causes are lost with departed senders"
            yield LogEntry("abandoned", text, {"count": count})
            self._given_up = ordering.given_up
        if node.in_minority != self._stopped:
            self._stopped = node.in_minority
            if node.in_minority:
                yield LogEntry("in_minority", "in a minority part: sends nothing", {})
            else:
                yield LogEntry("in_majority", "in a majority part again", {})
        if node.out and not self._out:
            self._out = True
            yield LogEntry("evicted", f"out of the group: {node.out}", {"reason": node.out})


def write(log: logging.Logger, peer: str, room: str, entry: LogEntry) -> None:
    """Write an entry to a log. Texts of other members lose control characters."""
    if log.isEnabledFor(entry.level):
        text = "".join(c if c.isprintable() else "?" for c in entry.text)
        fields = {"event": entry.event, "peer": peer, "group_name": room, **entry.fields}
        extra = {f"antecede_{name}": value for name, value in fields.items()}
        log.log(entry.level, "%s: %s", peer, text, extra=extra)
