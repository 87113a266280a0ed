"""How a live peer is doing: for people, for programs, for Prometheus.

A `Status` is taken from a `Node` at one moment; all times in it are seconds.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from antecede.errors import MissingExtraError
from antecede.formatting import counted
from antecede.live.clock_status import ClockStatus, clock_status
from antecede.live.clock_status import as_plain as clock_status_plain
from antecede.live.clock_status import from_plain as clock_from_plain
from antecede.live.clock_status import lines as clock_lines
from antecede.live.events import Id, member_of
from antecede.live.hierarchy.super_peer import SuperNode
from antecede.live.node import Node
from antecede.live.settings import NS

OLDEST: Final = 20
"""So many of the held messages are named."""
CAUSES: Final = 10
"""So many of what each waits for."""
DAY_S: Final = 24 * 3600
WARN_S: Final = 14 * DAY_S
"""So long before its end a certificate is spoken of."""
LIVE, LAGGING, AWAY = "live", "lagging", "away"


class MemberStatus(NamedTuple):
    """Another member, as this one sees it."""

    name: str
    lane: str
    address: str
    state: str
    """live; lagging: what it lacks next is in the store alone; away: not connected."""
    lacks: int
    """Batches that it has not acknowledged, of all lanes."""
    round_trip_s: float | None
    silent_s: float | None
    """Since when nothing has come from it; None: not connected in this life."""
    topics: tuple[str, ...] = ()
    """To what it subscribes, in orders by topics."""


class HeldStatus(NamedTuple):
    """A batch that is held back."""

    id: str
    """Lane and number of the batch."""
    sender: str
    waits_for: tuple[str, ...]
    """The first ten."""
    held_s: float
    """At least so long: that is looked at four times a second."""


class WayStatus(NamedTuple):
    """Control information on one way of a hierarchy, since the peer began."""

    way: str
    """up (from peers inside), down (into the group, once for all), outside (own lane)."""
    messages: int
    control_bytes: int
    note_bytes: int
    """Control information of what is no message."""


class StarStatus(NamedTuple):
    """What a super peer has inside."""

    connected: int
    away: int
    waiting: int
    """Said hello, and wait until what they have is here."""
    unsafe: int
    """Messages that do not go down yet: a crash of this peer would take them back."""
    kept: int
    """Messages for those inside that somebody lacks, here or behind another super peer."""
    kept_bytes: int
    ways: tuple[WayStatus, ...]


@dataclasses.dataclass(frozen=True)
class Status:
    """One peer at one moment."""

    name: str
    lane: str
    room: str
    order: str
    address: str
    healthy: bool
    """In a group, not out of it, not rejected by more members than are connected, and its store
    works."""
    trouble: str
    """Why not; else empty."""
    stopped: bool
    """Cut off from the majority that the group needs."""
    members: tuple[MemberStatus, ...]
    held: int
    oldest_held: tuple[HeldStatus, ...]
    sent: int
    delivered: int
    """Messages that came out of the order; the application may be behind that."""
    waiting_for_application: int
    """Delivered, and not done yet."""
    batches_sent: int
    handed_on: int
    """Batches of others, sent to who lacked them."""
    given_up: int
    """Batches of members that are gone, which depend on what nobody has."""
    refused: dict[str, int]
    """How often something was refused, by the kind of error."""
    last_refusal: str
    memory_bytes: int
    disk_bytes: int
    """Of batches that somebody lacks, beyond what memory may hold."""
    memory_limit: int
    disk_limit: int
    durable: bool
    unstored: int
    """Batches taken that the store has not written yet."""
    bytes_in: int
    bytes_out: int
    untraced: int
    """Rows that the trace of this run lacks."""
    certificate_left_s: float | None
    """How long one's own certificate holds from now on; None: there is none."""
    star: StarStatus | None = None
    """Of a super peer."""
    topics: tuple[str, ...] | None = None
    """To what it subscribes; None: the order knows no topics."""
    in_runs: int = 0
    """Batches that others got by their numbers alone, since they are about nothing of theirs."""
    clock: ClockStatus | None = None
    """None: the order goes by no clock."""
    inbox_bytes: int = 0
    """Of delivered messages that wait for the application, 64 bytes each beside its payload; with
    acknowledge="explicit" and a store: that it has not acknowledged."""
    inbox_limit: int = 0
    """Beyond this nothing more is acknowledged to the senders."""
    own_bytes: int = 0
    """Of this member's messages that are in no batch yet, or that some member has not
    acknowledged."""
    own_limit: int = 0
    """Beyond this `send` waits: this sender's share of the least budget of all members."""
    connection_bytes: int = 0
    """Written to connections, and not taken by the system yet."""
    rejected_by: dict[str, str] = dataclasses.field(default_factory=dict)
    """Name of a member that rejects this one -> its reason."""

    @property
    def others(self) -> str:
        """How many others there are, by state, in words."""
        states = [one.state for one in self.members]
        found = [f"{states.count(s)} {s}" for s in (LIVE, LAGGING, AWAY) if s in states]
        return ", ".join(found) or "nobody else"


def status_of(
    node: Node,
    now: int,
    trouble: str = "",
    done: int | None = None,
    *,
    untraced: int = 0,
    certificate_left_s: float | None = None,
    connection_bytes: int = 0,
) -> Status:
    """Return how a peer is doing at a moment (ns).

    `trouble`, `done` (how many messages the application is done with), `untraced`,
    `certificate_left_s`, `connection_bytes`: what the driver knows better than the node.
    """
    done = node.done if done is None else done
    ordering, settings = node.ordering, node.settings
    trouble = (
        trouble
        or node.out
        or node.why_nothing_is_heard()
        or ("" if ordering is not None else "in no group yet")
        or _rejection(node)
    )
    lanes = ordering.lanes if ordering is not None else None
    safe = node.safe()
    newest = lanes.frontier() if lanes is not None else {}
    return Status(
        *(node.name, node.lane, settings.room, settings.order, node.address),
        *(not trouble, trouble, node.stopped, tuple(members_of(node, now))),
        held=ordering.group.stats().held if ordering is not None else 0,
        oldest_held=tuple(_held(node, now)),
        sent=ordering.said if ordering is not None else 0,
        delivered=ordering.place if ordering is not None else 0,
        waiting_for_application=max(0, ordering.place - done) if ordering else 0,
        batches_sent=newest.get(node.lane, 0),
        handed_on=node.outflow.resent,
        given_up=ordering.given_up if ordering is not None else 0,
        refused=dict(node.refused),
        last_refusal=node.last_refusal,
        memory_bytes=lanes.bytes if lanes is not None else 0,
        disk_bytes=lanes.spilled_bytes if lanes is not None else 0,
        memory_limit=settings.memory,
        disk_limit=settings.disk if node.durable else 0,
        durable=node.durable,
        unstored=sum(max(0, number - safe.get(lane, 0)) for lane, number in newest.items()),
        bytes_in=node.bytes_in,
        bytes_out=node.bytes_out,
        untraced=untraced,
        certificate_left_s=certificate_left_s,
        star=_star(node) if isinstance(node, SuperNode) else None,
        topics=node.audience.mine if node.audience is not None else None,
        in_runs=node.audience.runs_sent if node.audience is not None else 0,
        clock=clock_status(node.time),
        inbox_bytes=ordering.backlog.bytes if ordering is not None else 0,
        inbox_limit=node.inbox_limit,
        own_bytes=node.flow.unacknowledged,
        own_limit=node.flow.limit,
        connection_bytes=connection_bytes,
        rejected_by=dict(node.rejections.by),
    )


def _rejection(node: Node) -> str:
    others = map(member_of, node.ordering.others()) if node.ordering is not None else ()
    return node.rejections.reason({*others}, map(member_of, node.greeted))


def _star(node: SuperNode) -> StarStatus:
    hub = node.hub
    away = sum(one.link is None for one in hub.inside.values())
    ways = {"up": hub.up, "down": hub.down}
    if node.ordering is not None:
        ways["outside"] = node.mesh_ordering.mesh.out
    return StarStatus(
        *(len(hub.inside) - away, away, len(hub.waiting)),
        *(hub.log.newest - hub.log.passed, len(hub.log.entries), hub.log.bytes),
        tuple(WayStatus(w, t.messages, t.control, t.notes) for w, t in ways.items()),
    )


def members_of(node: Node, now: int) -> Iterator[MemberStatus]:
    """Yield how the other members are doing at a moment (ns)."""
    ordering = node.ordering
    if ordering is None:
        return
    lanes, subscriptions = ordering.lanes, ordering.subscriptions
    for lane in sorted(ordering.others()):
        link, heard = node.greeted.get(lane), lanes.heard.get(lane, {})
        lacks = [
            n for n, one in lanes.by_name.items() if n != lane and heard.get(n, 0) < one.newest
        ]
        # What came before one's own joining was never here, and others hand it on.
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


def _held(node: Node, now: int) -> Iterator[HeldStatus]:
    ordering, since = node.ordering, node.upkeep.held
    if ordering is None:
        return
    since.look(ordering.group, now)
    held = [(Id(*one.message.id), one) for one in ordering.group.list_held()]
    held.sort(key=lambda one: -since.of(one[0], now))
    for name, one in held[:OLDEST]:
        shown = tuple(str(Id(*cause)) for cause in one.waits_for[:CAUSES])
        if one.until_ns is not None and ordering.clock.reading is not None:
            left = max(0, one.until_ns - ordering.clock.reading) / NS
            shown = (*shown, f"the clock, {left:.3f} s more")
        yield HeldStatus(str(name), name.sender, shown, since.of(name, now) / NS)


# -- forms -----------------------------------------------------------------------------------------


def as_plain(status: Status) -> dict[str, Any]:
    """Return a status as what JSON can say."""
    plain = dataclasses.asdict(status)
    plain["members"] = [one._asdict() for one in status.members]
    plain["clock"] = clock_status_plain(status.clock)
    plain["oldest_held"] = [one._asdict() for one in status.oldest_held]
    if status.star is not None:
        ways = [one._asdict() for one in status.star.ways]
        plain["star"] = {**status.star._asdict(), "ways": ways}
    return plain


def from_plain(plain: dict[str, Any]) -> Status:
    """Return the status that `as_plain` told. Raises KeyError or TypeError for anything else."""
    members = tuple(
        MemberStatus(**{**one, "topics": tuple(one.get("topics", ()))}) for one in plain["members"]
    )
    held = tuple(
        HeldStatus(**{**one, "waits_for": tuple(one["waits_for"])}) for one in plain["oldest_held"]
    )
    star = plain.get("star")
    if star is not None:
        star = StarStatus(**{**star, "ways": tuple(WayStatus(**one) for one in star["ways"])})
    topics, clock = plain.get("topics"), clock_from_plain(plain.get("clock"))
    more = {"topics": None if topics is None else tuple(topics), "clock": clock, "star": star}
    return Status(**{**plain, "members": members, "oldest_held": held, **more})


def as_text(status: Status) -> str:
    """Return a status for a terminal."""
    lines = [
        f"{status.name} in room {status.room!r}, order {status.order}"
        + (f", at {status.address}" if status.address else ""),
        f"  {_condition(status)}",
        f"  {status.others}; {counted(status.sent, 'message')} sent, {status.delivered:,} delivered"
        f", {status.held:,} held, {status.waiting_for_application:,} waiting for the application",
        f"  {_kept(status)}",
        f"  {_size(status.inbox_bytes)} of {_size(status.inbox_limit)} wait for the application, "
        f"{_size(status.own_bytes)} of {_size(status.own_limit)} sent and not acknowledged by all",
    ]
    if status.handed_on or status.given_up:
        lines.append(
            f"  {counted(status.handed_on, 'batch', 'batches')} of others handed on, "
            f"{status.given_up:,} given up"
        )
    if status.star is not None:
        lines += _star_lines(status.star)
    if status.untraced:
        lines.append(f"  the trace is not whole: {counted(status.untraced, 'row')} are missing")
    if (left := status.certificate_left_s) is not None and left < WARN_S:
        when = f"expires in {left / DAY_S:.1f} days" if left > 0 else "HAS EXPIRED"
        lines.append(f"  the certificate {when}: nobody new gets in once it has")
    if status.refused:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(status.refused.items()))
        lines.append(f"  refused: {kinds}; last: {status.last_refusal or 'not said'}")
    lines += [f"  rejected by {name}: {why}" for name, why in sorted(status.rejected_by.items())]
    lines += _topic_lines(status) + clock_lines(status.clock)
    lines += _member_table(status.members)
    lines += _held_lines(status)
    return "\n".join(_printable(line) for line in lines)


def _star_lines(star: StarStatus) -> list[str]:
    ways = [
        f"{one.way} {one.control_bytes / one.messages:.1f} B" for one in star.ways if one.messages
    ]
    return [
        f"  inside: {star.connected:,} connected, {star.away:,} away, {star.waiting:,} waiting; "
        f"{counted(star.unsafe, 'message')} not safe yet, {star.kept:,} kept "
        f"({_size(star.kept_bytes)})",
        f"  control information a message: {', '.join(ways) or 'nothing was said yet'}",
    ]


def _printable(line: str) -> str:
    """Names and addresses are other people's words: no control characters of theirs."""
    return "".join(c if c.isprintable() else "?" for c in line)


def _condition(status: Status) -> str:
    if not status.healthy:
        return f"NOT WELL: {status.trouble}"
    return "STOPPED: it hears no majority of the group" if status.stopped else "well"


def _kept(status: Status) -> str:
    kept = f"{_size(status.memory_bytes)} of {_size(status.memory_limit)} in memory for others"
    if not status.durable:
        return f"{kept}; no store: a crash loses what was not delivered"
    return (
        f"{kept}, {_size(status.disk_bytes)} of {_size(status.disk_limit)} in the store, "
        f"{counted(status.unstored, 'batch', 'batches')} being written"
    )


def _topic_lines(status: Status) -> list[str]:
    if status.topics is None:
        return []
    found = [f"  subscribes to {', '.join(status.topics) or 'nothing'}"]
    found += [
        f"  {one.name} subscribes to {', '.join(one.topics) or 'nothing'}" for one in status.members
    ]
    if status.in_runs:
        batches = counted(status.in_runs, "batch", "batches")
        found.append(f"  {batches} told to others by number alone: about no topic of theirs")
    return found


def _member_table(members: Iterable[MemberStatus]) -> list[str]:
    rows = [("member", "state", "lacks", "round trip", "silent", "address")]
    rows += [
        (
            *(one.name, one.state, f"{one.lacks:,}"),
            "-" if one.round_trip_s is None else f"{1000 * one.round_trip_s:.1f} ms",
            "-" if one.silent_s is None else f"{one.silent_s:.1f} s",
            one.address or "calls us",
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
    """Return how many cells of a terminal a text takes."""
    try:
        from antecede.live.chat.words import cells
    except MissingExtraError:  # the peer needs no extra, and the status of one does not either
        return len(text)
    return cells(text)


def _held_lines(status: Status) -> list[str]:
    if not status.held:
        return []
    more = status.held - len(status.oldest_held)
    lines = ["", f"  held{f' (the {OLDEST} oldest)' if more > 0 else ''}:"]
    for one in status.oldest_held:
        causes = ", ".join(one.waits_for) or "its turn"
        lines.append(f"    {one.id}  for {one.held_s:.1f} s, waits for {causes}")
    return lines


def _size(count: int) -> str:
    size, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
