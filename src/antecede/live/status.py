"""Status of a live peer: as text, as JSON, and for Prometheus.

A `Status` is a reading of a `Node`. All times are seconds.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from antecede.errors import MissingExtraError
from antecede.formatting import pluralize
from antecede.live.clock_status import ClockStatus, clock_status
from antecede.live.clock_status import clock_status_from_json as clock_from_plain
from antecede.live.clock_status import clock_status_to_json as clock_status_plain
from antecede.live.clock_status import format_clock_status as clock_lines
from antecede.live.events import Id, member_of
from antecede.live.hierarchy.super_peer import SuperNode
from antecede.live.node import Node
from antecede.live.settings import NS

OLDEST: Final = 20
CAUSES: Final = 10
"""Causes that the status lists for each held message."""
DAY_S: Final = 24 * 3600
WARN_S: Final = 14 * DAY_S
"""Remaining validity of a certificate that raises a warning."""
LIVE, LAGGING, AWAY = "live", "lagging", "away"


class MemberStatus(NamedTuple):
    """Another member as this one sees it."""

    name: str
    sender_id: str
    address: str
    state: str
    """live; lagging: its next batch is only in the store; away: not connected."""
    lag: int
    """Batches of all senders that it has not acknowledged."""
    round_trip_s: float | None
    last_heard_s_ago: float | None
    """Time since the last received bytes. None: not connected in this incarnation."""
    topics: tuple[str, ...] = ()


class HeldStatus(NamedTuple):
    """Held batch."""

    id: str
    """Sender id and number of the batch."""
    sender: str
    waits_for: tuple[str, ...]
    """The first ten missing causes."""
    held_s: float
    """Lower limit of the time held, measured four times a second."""


class TrafficStatus(NamedTuple):
    """Control information in one direction of a hierarchy, since the start."""

    direction: str
    """up (from internal peers), down (into the internal group, counted once), outside (own log)."""
    messages: int
    control_bytes: int
    control_message_bytes: int


class SuperPeerStatus(NamedTuple):
    """Internal group of a super peer."""

    connected: int
    away: int
    joining: int
    """Joining peers that wait until their batches are here."""
    not_durable: int
    """Messages not sent down yet, since a crash of this peer could undo them."""
    retained: int
    """Messages kept for internal peers, here or behind another super peer."""
    retained_bytes: int
    traffic: tuple[TrafficStatus, ...]


@dataclasses.dataclass(frozen=True)
class Status:
    """Status of a peer."""

    name: str
    sender_id: str
    group_name: str
    order: str
    address: str
    is_healthy: bool
    """In a group, accepted by at least as many connected members as reject it, with a working
    store."""
    unhealthy_reason: str
    in_minority: bool
    """Blocked in a part without the majority that the group needs."""
    members: tuple[MemberStatus, ...]
    held: int
    oldest_held: tuple[HeldStatus, ...]
    sent: int
    delivered: int
    pending_messages: int
    """Delivered messages that the application has not finished."""
    batches_sent: int
    relayed: int
    abandoned: int
    """Batches of departed members whose causes no member has."""
    rejected: dict[str, int]
    last_rejection: str
    memory_bytes: int
    disk_bytes: int
    """Batches beyond the memory limit that some member lacks."""
    memory_limit: int
    disk_limit: int
    is_durable: bool
    pending_writes: int
    """Received batches that the store has not written yet."""
    bytes_in: int
    bytes_out: int
    trace_rows_dropped: int
    """Rows missing from the trace of this run."""
    certificate_expires_in_s: float | None
    """Remaining validity of the own certificate. None: no certificate."""
    super_peer: SuperPeerStatus | None = None
    topics: tuple[str, ...] | None = None
    skipped_batches: int = 0
    """Batches sent as numbers only, since the receiver subscribes to none of their topics."""
    clock: ClockStatus | None = None
    inbox_bytes: int = 0
    """Delivered messages that the application has not taken, with 64 bytes of overhead each. With
    acknowledge="explicit" and a store: those that it has not acknowledged."""
    inbox_limit: int = 0
    """Size of the inbox beyond which batches are not acknowledged."""
    unacknowledged_bytes: int = 0
    """Own messages in no batch yet, or not acknowledged by some member."""
    unacknowledged_limit: int = 0
    """Size beyond which `send` waits: this sender's share of the least budget of all members."""
    connection_bytes: int = 0
    """Bytes written to connections that the system has not sent yet."""
    rejected_by: dict[str, str] = dataclasses.field(default_factory=dict)
    """Name of a member that rejects this one -> reason."""

    @property
    def others(self) -> str:
        """Number of other members by state, as text."""
        states = [one.state for one in self.members]
        found = [f"{states.count(s)} {s}" for s in (LIVE, LAGGING, AWAY) if s in states]
        return ", ".join(found) or "no other member"


def status_of(
    node: Node,
    now: int,
    unhealthy_reason: str = "",
    done: int | None = None,
    *,
    trace_rows_dropped: int = 0,
    certificate_expires_in_s: float | None = None,
    connection_bytes: int = 0,
) -> Status:
    """Return the status of a peer at `now` (ns). The driver knows `unhealthy_reason`, `done`
    (messages that the application has finished), `trace_rows_dropped`, `certificate_expires_in_s`
    and `connection_bytes`.
    """
    done = node.done if done is None else done
    ordering, settings = node.ordering, node.settings
    unhealthy_reason = (
        unhealthy_reason
        or node.out
        or node.why_nothing_is_heard()
        or ("" if ordering is not None else "not in a group yet")
        or _rejection(node)
    )
    lanes = ordering.lanes if ordering is not None else None
    safe = node.safe()
    newest = lanes.frontier() if lanes is not None else {}
    return Status(
        *(node.name, node.lane, settings.group_name, settings.order, node.address),
        *(not unhealthy_reason, unhealthy_reason, node.in_minority, tuple(members_of(node, now))),
        held=ordering.group.stats().held if ordering is not None else 0,
        oldest_held=tuple(_list_held(node, now)),
        sent=ordering.said if ordering is not None else 0,
        delivered=ordering.place if ordering is not None else 0,
        pending_messages=max(0, ordering.place - done) if ordering else 0,
        batches_sent=newest.get(node.lane, 0),
        relayed=node.outbound.resent,
        abandoned=ordering.given_up if ordering is not None else 0,
        rejected=dict(node.rejected),
        last_rejection=node.last_rejection,
        memory_bytes=lanes.bytes if lanes is not None else 0,
        disk_bytes=lanes.spilled_bytes if lanes is not None else 0,
        memory_limit=settings.max_memory_bytes,
        disk_limit=settings.max_disk_bytes if node.durable else 0,
        is_durable=node.durable,
        pending_writes=sum(max(0, number - safe.get(lane, 0)) for lane, number in newest.items()),
        bytes_in=node.bytes_in,
        bytes_out=node.bytes_out,
        trace_rows_dropped=trace_rows_dropped,
        certificate_expires_in_s=certificate_expires_in_s,
        super_peer=_star(node) if isinstance(node, SuperNode) else None,
        topics=node.topic_filter.mine if node.topic_filter is not None else None,
        skipped_batches=node.topic_filter.runs_sent if node.topic_filter is not None else 0,
        clock=clock_status(node.clock_monitor),
        inbox_bytes=ordering.backlog.bytes if ordering is not None else 0,
        inbox_limit=node.inbox_limit,
        unacknowledged_bytes=node.flow.unacknowledged,
        unacknowledged_limit=node.flow.limit,
        connection_bytes=connection_bytes,
        rejected_by=dict(node.rejections.by),
    )


def _rejection(node: Node) -> str:
    others = map(member_of, node.ordering.others()) if node.ordering is not None else ()
    return node.rejections.reason({*others}, map(member_of, node.greeted))


def _star(node: SuperNode) -> SuperPeerStatus:
    hub = node.hub
    away = sum(one.link is None for one in hub.inside.values())
    ways = {"up": hub.up, "down": hub.down}
    if node.ordering is not None:
        ways["outside"] = node.mesh_ordering.mesh.out
    return SuperPeerStatus(
        *(len(hub.inside) - away, away, len(hub.waiting)),
        *(hub.log.newest - hub.log.passed, len(hub.log.entries), hub.log.bytes),
        tuple(TrafficStatus(w, t.messages, t.control, t.notes) for w, t in ways.items()),
    )


def members_of(node: Node, now: int) -> Iterator[MemberStatus]:
    """Yield the status of the other members at `now` (ns)."""
    ordering = node.ordering
    if ordering is None:
        return
    lanes, subscriptions = ordering.lanes, ordering.subscriptions
    for lane in sorted(ordering.others()):
        link, heard = node.greeted.get(lane), lanes.heard.get(lane, {})
        lacks = [
            n for n, one in lanes.by_name.items() if n != lane and heard.get(n, 0) < one.newest
        ]
        # Batches from before the own join were never here. Other members relay them.
        kept = [
            (lanes.by_name[n].oldest, heard.get(n, 0) + 1, lanes.by_name[n].first) for n in lacks
        ]
        behind = any(oldest <= needed < first for oldest, needed, first in kept)
        trip = link.round_trip_ns if link is not None else None
        yield MemberStatus(
            *(member_of(lane), lane, ordering.members[lane]),
            AWAY if link is None else LAGGING if behind else LIVE,
            sum(lanes.by_name[n].newest - heard.get(n, 0) for n in lacks),
            None if trip is None else trip / NS,
            None if link is None else max(0, now - link.heard_ns) / NS,
            subscriptions.get(lane, ()),
        )


def _list_held(node: Node, now: int) -> Iterator[HeldStatus]:
    ordering, since = node.ordering, node.timers.held
    if ordering is None:
        return
    since.sample(ordering.group, now)
    held = [(Id(*one.message.id), one) for one in ordering.group.list_held()]
    held.sort(key=lambda one: -since.of(one[0], now))
    for name, one in held[:OLDEST]:
        shown = tuple(str(Id(*cause)) for cause in one.waits_for[:CAUSES])
        if one.until_ns is not None and ordering.clock.reading is not None:
            left = max(0, one.until_ns - ordering.clock.reading) / NS
            shown = (*shown, f"the clock, {left:.3f} s more")
        yield HeldStatus(str(name), name.sender, shown, since.of(name, now) / NS)


# -- formats ---------------------------------------------------------------------------------------


def status_to_json(status: Status) -> dict[str, Any]:
    """Return a status as JSON values."""
    plain = dataclasses.asdict(status)
    plain["members"] = [one._asdict() for one in status.members]
    plain["clock"] = clock_status_plain(status.clock)
    plain["oldest_held"] = [one._asdict() for one in status.oldest_held]
    if status.super_peer is not None:
        ways = [one._asdict() for one in status.super_peer.traffic]
        plain["super_peer"] = {**status.super_peer._asdict(), "traffic": ways}
    return plain


def status_from_json(plain: dict[str, Any]) -> Status:
    """Return the status of JSON values. Raises KeyError or TypeError for other values."""
    members = tuple(
        MemberStatus(**{**one, "topics": tuple(one.get("topics", ()))}) for one in plain["members"]
    )
    held = tuple(
        HeldStatus(**{**one, "waits_for": tuple(one["waits_for"])}) for one in plain["oldest_held"]
    )
    star = plain.get("super_peer")
    if star is not None:
        traffic = tuple(TrafficStatus(**one) for one in star["traffic"])
        star = SuperPeerStatus(**{**star, "traffic": traffic})
    topics, clock = plain.get("topics"), clock_from_plain(plain.get("clock"))
    more = {"topics": None if topics is None else tuple(topics), "clock": clock, "super_peer": star}
    return Status(**{**plain, "members": members, "oldest_held": held, **more})


def format_status(status: Status) -> str:
    """Return a status as text for a terminal."""
    lines = [
        f"{status.name} in group {status.group_name!r}, order {status.order}"
        + (f", at {status.address}" if status.address else ""),
        f"  {_condition(status)}",
        f"  {status.others}; {pluralize(status.sent, 'message')} sent, {status.delivered:,} "
        f"delivered, {status.held:,} held, {status.pending_messages:,} pending for the application",
        f"  {_format_memory(status)}",
        f"  inbox {_size(status.inbox_bytes)} of {_size(status.inbox_limit)}, unacknowledged "
        f"{_size(status.unacknowledged_bytes)} of {_size(status.unacknowledged_limit)}",
    ]
    if status.relayed or status.abandoned:
        lines.append(
            f"  {pluralize(status.relayed, 'batch', 'batches')} relayed, "
            f"{status.abandoned:,} abandoned"
        )
    if status.super_peer is not None:
        lines += _star_lines(status.super_peer)
    if status.trace_rows_dropped:
        lines.append(f"  trace incomplete: {pluralize(status.trace_rows_dropped, 'row')} dropped")
    if (left := status.certificate_expires_in_s) is not None and left < WARN_S:
        when = f"expires in {left / DAY_S:.1f} days" if left > 0 else "HAS EXPIRED: renew it"
        lines.append(f"  certificate {when}")
    if status.rejected:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(status.rejected.items()))
        lines.append(f"  rejected: {kinds}; last: {status.last_rejection or 'unknown reason'}")
    lines += [f"  rejected by {name}: {why}" for name, why in sorted(status.rejected_by.items())]
    lines += _topic_lines(status) + clock_lines(status.clock)
    lines += _member_table(status.members)
    lines += _format_held(status)
    return "\n".join(_printable(line) for line in lines)


def _star_lines(star: SuperPeerStatus) -> list[str]:
    ways = [
        f"{one.direction} {one.control_bytes / one.messages:.1f} B"
        for one in star.traffic
        if one.messages
    ]
    return [
        f"  internal peers: {star.connected:,} connected, {star.away:,} away, {star.joining:,} "
        f"joining; {pluralize(star.not_durable, 'message')} not durable, {star.retained:,} "
        f"retained ({_size(star.retained_bytes)})",
        f"  control information per message: {', '.join(ways) or 'no message yet'}",
    ]


def _printable(line: str) -> str:
    """Return a line without control characters: names and addresses come from other members."""
    return "".join(c if c.isprintable() else "?" for c in line)


def _condition(status: Status) -> str:
    if not status.is_healthy:
        return f"UNHEALTHY: {status.unhealthy_reason}"
    return "IN MINORITY: sends and delivers nothing" if status.in_minority else "healthy"


def _format_memory(status: Status) -> str:
    kept = f"{_size(status.memory_bytes)} of {_size(status.memory_limit)} in memory"
    if not status.is_durable:
        return f"{kept}; no store: a crash loses undelivered messages"
    return (
        f"{kept}, {_size(status.disk_bytes)} of {_size(status.disk_limit)} in the store, "
        f"{pluralize(status.pending_writes, 'batch', 'batches')} not written yet"
    )


def _topic_lines(status: Status) -> list[str]:
    if status.topics is None:
        return []
    found = [f"  subscribes to {', '.join(status.topics) or 'nothing'}"]
    found += [
        f"  {one.name} subscribes to {', '.join(one.topics) or 'nothing'}" for one in status.members
    ]
    if status.skipped_batches:
        batches = pluralize(status.skipped_batches, "batch", "batches")
        found.append(f"  {batches} sent as numbers only (no subscribed topic)")
    return found


def _member_table(members: Iterable[MemberStatus]) -> list[str]:
    rows = [("member", "state", "lag", "round trip", "last heard", "address")]
    rows += [
        (
            *(one.name, one.state, f"{one.lag:,}"),
            "-" if one.round_trip_s is None else f"{1000 * one.round_trip_s:.1f} ms",
            "-" if one.last_heard_s_ago is None else f"{one.last_heard_s_ago:.1f} s",
            one.address or "dials in",
        )
        for one in members
    ]
    if len(rows) == 1:
        return []
    widths = [max(map(_cells, column)) for column in zip(*rows, strict=True)]
    return ["", *("  " + _row(row, widths) for row in rows)]


def _row(row: tuple[str, ...], widths: list[int]) -> str:
    cells = [
        f"{' ' * (width - _cells(cell))}{cell}"
        if k in (2, 3, 4)
        else f"{cell}{' ' * (width - _cells(cell))}"
        for k, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
    return "  ".join(cells).rstrip()


def _cells(text: str) -> int:
    try:
        from antecede.live.chat.words import cells
    except MissingExtraError:  # neither the peer nor its status needs the extra
        return len(text)
    return cells(text)


def _format_held(status: Status) -> list[str]:
    if not status.held:
        return []
    more = status.held - len(status.oldest_held)
    lines = ["", f"  held{f' (the {OLDEST} oldest)' if more > 0 else ''}:"]
    for one in status.oldest_held:
        causes = ", ".join(one.waits_for) or "its sender's earlier messages"
        lines.append(f"    {one.id}  held for {one.held_s:.1f} s, waits for {causes}")
    return lines


def _size(count: int) -> str:
    size, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
