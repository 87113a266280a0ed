"""How a peer over datagrams is doing, in the words of `antecede.live.status`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from antecede.live.datagrams.node import DatagramNode
from antecede.live.events import Id, member_of
from antecede.live.settings import NS
from antecede.live.status import AWAY, CAUSES, LIVE, OLDEST, HeldStatus, MemberStatus, Status


def status_of(
    node: DatagramNode,
    now: int,
    trouble: str,
    waiting: int,
    dropped: Counter[str],
    certificate_left_s: float | None,
) -> Status:
    """Return how a peer is doing at a moment (ns).

    `waiting`: messages that the application has not got; `dropped`: datagrams that did not open.
    """
    settings, group = node.settings, node.group
    trouble = trouble or node.membership.out or ("" if group is not None else "in no group yet")
    stats = group.stats() if group is not None else None
    return Status(
        *(node.name, node.lane, settings.room, settings.order, node.address),
        *(not trouble, trouble, False, tuple(_members(node, now))),
        held=stats.held if stats is not None else 0,
        oldest_held=tuple(_held(node)),
        sent=node.said,
        delivered=node.place,
        waiting_for_application=waiting,
        batches_sent=node.newest,
        handed_on=node.handed_on,
        given_up=node.given_up,
        refused=dict(node.refused + Counter({f"datagram {k}": n for k, n in dropped.items()})),
        last_refusal=node.last_refusal,
        memory_bytes=node.kept_bytes + node.waiting_bytes,
        disk_bytes=0,
        memory_limit=settings.memory,
        disk_limit=0,
        durable=False,
        unstored=0,
        bytes_in=node.bytes_in,
        bytes_out=node.bytes_out,
        untraced=0,
        certificate_left_s=certificate_left_s,
    )


def _members(node: DatagramNode, now: int) -> Iterator[MemberStatus]:
    membership, reached = node.membership, node.reached()
    for lane in sorted(membership.others()):
        session, rows = node.routes.get(lane), membership.rows.get(lane, {})
        lacks = sum(max(0, n - rows.get(one, 0)) for one, n in reached.items() if one != lane)
        trip = session.round_trip_ns if session is not None else None
        silent = membership.silent_ns(lane, now) / NS
        yield MemberStatus(
            *(member_of(lane), lane, membership.members[lane]),
            LIVE if session is not None and silent * NS < node.settings.silence_ns else AWAY,
            *(lacks, None if trip is None else trip / NS, silent),
        )


def _held(node: DatagramNode) -> Iterator[HeldStatus]:
    if node.group is None:
        return
    for one in node.group.blocked_on()[:OLDEST]:
        names = [str(Id(*cause)) for cause in one.waits_for] + list(one.silent)
        sender, number = one.message.id
        yield HeldStatus(f"{sender}:{number}", member_of(sender), tuple(names[:CAUSES]), 0.0)
