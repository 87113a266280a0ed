"""State of a member as plain values, for tests of behaviour.

Only this module reads the internals of `antecede.live`. Tests that assert on a member call
`observe`, so they stay unchanged when the internals change.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from antecede import Missing
from antecede.live.events import Id, Message
from antecede.live.hierarchy.internal import InternalNode
from antecede.live.hierarchy.mesh import ExternalNode
from antecede.live.hierarchy.super_peer import SuperNode
from antecede.live.node import Node
from antecede.live.ordering import Ordering
from antecede.live.peer import Peer
from antecede.live.timekeeping import ClockMonitor


class LogObservation(NamedTuple):
    """Log of one sender at the observed member."""

    newest: int
    """Number of its newest batch here; 0: none."""
    stored: int
    """Number of its newest batch that survives a crash."""
    retained_bytes: int
    signer: bytes
    """Proof of its owner; empty: unknown, or without certificates."""


class HierarchyObservation(NamedTuple):
    """State of a member of a hierarchy. Fields of other roles are empty."""

    super_peer: str = ""
    """Super peer of this internal peer."""
    super_peers: frozenset[str] = frozenset()
    """Super peers that this internal peer knows."""
    received_from: frozenset[str] = frozenset()
    """External members by which this internal peer received its messages."""
    not_returned: int = 0
    """Messages of this internal peer that its super peer has not sent back."""
    internal_peers: Mapping[str, bool] = MappingProxyType({})
    """Internal peer of this super peer -> True if it is connected."""
    joining: int = 0
    """Internal peers that wait to be admitted."""
    evicted: Mapping[str, str] = MappingProxyType({})
    """Internal peer that this super peer evicted -> reason."""
    not_durable: int = 0
    """Messages not sent down yet."""
    retained: int = 0
    """Messages kept for internal peers."""
    retained_bytes: int = 0
    second_copies: int = 0
    """Messages that came a second time, by another super peer."""


class Observation(NamedTuple):
    """State of one member. Keys and elements are sender ids unless described otherwise."""

    sender_id: str
    group_id: bytes
    is_in_group: bool
    is_in_minority: bool
    has_left: bool
    end_reason: str
    """Reason why its incarnation is out of the group; empty: it is not."""
    connections: frozenset[int]
    """Numbers of all connections."""
    identified: frozenset[int]
    """Numbers of the connections whose other end is known."""
    connected: frozenset[str]
    """Members with a connection."""
    members: dict[str, str]
    """Member -> address."""
    admitted: frozenset[str]
    """Joining members that have not announced their join."""
    unanswered: frozenset[str]
    """Joining members whose reply waits for the store."""
    departed: frozenset[str]
    truncated: dict[str, int]
    """Departed sender -> last number of its log."""
    distrusted: dict[str, str]
    """Sender whose payloads are ignored -> reason."""
    invalid: dict[str, str]
    """Sender of which nothing more is accepted -> reason."""
    equivocations: frozenset[str]
    """Senders with a proof of equivocation."""
    stalled: frozenset[str]
    """Senders whose next batch the group cannot take yet."""
    logs: dict[str, LogObservation]
    acknowledged: dict[str, dict[str, int]]
    """Member -> sender -> newest number that it acknowledged."""
    unacknowledged_by: frozenset[str]
    """Members that have not acknowledged all own batches."""
    sent: int
    """Messages of the application."""
    delivered: int
    """Messages delivered in this incarnation, whether or not the application has taken them."""
    undelivered_events: int
    """Events that the application has not taken."""
    held: tuple[Id, ...]
    """Batches that the ordering group holds."""
    missing: tuple[Missing, ...]
    """Causes that these wait for, in flat groups."""
    waits_for: tuple[tuple[Id, ...], ...]
    """Causes that each of these waits for."""
    abandoned: int
    history: tuple[Id, ...]
    """Ids of the messages kept for joining members."""
    history_messages: tuple[Message, ...]
    subscriptions: dict[str, tuple[str, ...]]
    memory_bytes: int
    """Batches in memory."""
    rejected: Counter[str]
    """Rejections by error class."""
    last_rejection: str
    log_ends: dict[str, dict[str, bool]]
    """Sender -> member that lacks its batches -> True if it reports the end of the log."""
    hierarchy: HierarchyObservation

    def newest(self, sender_id: str) -> int:
        """Return the number of a sender's newest batch; 0: none."""
        log = self.logs.get(sender_id)
        return log.newest if log is not None else 0


class HasNode(Protocol):
    """`Peer`, or a host of the simulated network."""

    @property
    def node(self) -> Node | None:
        """State machine."""


def observe(member: HasNode | Node) -> Observation:
    """Return the state of a member."""
    node = member if isinstance(member, Node) else member.node
    assert node is not None, "no member runs there"
    ordering = node.ordering
    is_open = ordering is not None
    is_flat = not isinstance(node, ExternalNode | InternalNode)
    logs = ordering.lanes.by_name if ordering is not None else {}
    safe = node.safe()
    held = ordering.group.list_held() if ordering is not None else ()
    return Observation(
        sender_id=node.lane,
        group_id=node.group_tag,
        is_in_group=is_open and not node.out,
        is_in_minority=node.in_minority,
        has_left=node.left,
        end_reason=node.out,
        connections=frozenset(node.links),
        identified=frozenset(number for number, link in node.links.items() if link.lane),
        connected=frozenset(node.greeted),
        members=dict(ordering.members) if ordering is not None else {},
        admitted=frozenset(ordering.guests) if ordering is not None else frozenset(),
        unanswered=frozenset(node.handshake._waiting.values()),
        departed=frozenset(ordering.gone) if ordering is not None else frozenset(),
        truncated=dict(ordering.cuts) if ordering is not None else {},
        distrusted=dict(ordering.spoiled) if ordering is not None else {},
        invalid=dict(ordering.broken) if ordering is not None else {},
        equivocations=frozenset(node.proofs),
        stalled=frozenset(ordering._stalled) if ordering is not None else frozenset(),
        logs={
            name: LogObservation(log.newest, safe.get(name, 0), log.bytes, node.seals.owner(name))
            for name, log in logs.items()
        },
        acknowledged={
            name: dict(table)
            for name, table in (ordering.lanes.heard if ordering is not None else {}).items()
        },
        unacknowledged_by=frozenset(node.list_unacknowledged() if is_open and not node.out else ()),
        sent=ordering.said if ordering is not None else 0,
        delivered=ordering.place if ordering is not None else 0,
        undelivered_events=len(ordering.delivered) if ordering is not None else 0,
        held=tuple(Id(*one.message.id) for one in held),
        missing=tuple(ordering.group.list_missing()) if ordering and is_flat else (),
        waits_for=tuple(tuple(Id(*cause) for cause in one.waits_for) for one in held),
        abandoned=ordering.given_up if ordering is not None else 0,
        history_messages=tuple(ordering.history) if ordering is not None else (),
        history=tuple(one.id for one in ordering.history) if ordering is not None else (),
        subscriptions=dict(ordering.subscriptions) if ordering is not None else {},
        memory_bytes=ordering.lanes.bytes if ordering is not None else 0,
        rejected=node.rejected.copy(),
        last_rejection=node.last_rejection,
        log_ends={n: dict(by) for n, by in node.topic_filter._over.items()}
        if node.topic_filter is not None
        else {},
        hierarchy=_observe_hierarchy(node),
    )


def _observe_hierarchy(node: Node) -> HierarchyObservation:
    if isinstance(node, InternalNode):
        return HierarchyObservation(
            super_peer=node.super_lane,
            super_peers=frozenset(node.supers),
            received_from=frozenset(node._have.windows),
            not_returned=len(node._upward),
        )
    if not isinstance(node, ExternalNode) or node.ordering is None or node.out:
        return HierarchyObservation()
    found = HierarchyObservation(second_copies=node.mesh_ordering.mesh.copies.seconds)
    if not isinstance(node, SuperNode):
        return found
    hub = node.hub
    return found._replace(
        internal_peers={lane: one.link is not None for lane, one in hub.inside.items()},
        joining=len(hub.waiting),
        evicted=dict(hub.gone),
        not_durable=hub.log.newest - hub.log.passed,
        retained=len(hub.log.entries),
        retained_bytes=hub.log.bytes,
    )


def snapshot_state(member: HasNode) -> object:
    """Return all of the group's state at a member, for comparison."""
    if member.node is None or (ordering := member.node.ordering) is None:
        return None
    members = sorted(ordering.members), sorted(ordering.gone), sorted(ordering.guests)
    return ordering.state(()), members, ordering.place, dict(ordering.broken)


def put_out(peer: Peer, why: str) -> None:
    """End the incarnation of a peer, as its group does."""
    peer.node.go_out(why)
    peer._waking.wake()


def pretend_clock(peer: Peer, member: str, ahead_ns: int) -> None:
    """Let a peer believe that the clock of another member is so far ahead."""
    monitor, now = peer.node.clock_monitor, time.monotonic_ns()
    assert monitor is not None
    monitor.check.hear(member, monitor.system_clock_ns + ahead_ns, now)


@contextlib.contextmanager
def watch_clocks(
    received: Callable[[str, str, int, bool], object],
    violated: Callable[[str, str, Id | None], object],
) -> Iterator[None]:
    """Report each batch that a member takes, in orders by clocks, and each broken bound:
    `received(member, sender, number, whether it goes to the store)`, `violated(kind, name of the
    member, batch)`.
    """
    orderings: Any = Ordering
    monitors: Any = ClockMonitor
    receive, record = orderings._receive_timed, monitors._record_violation

    def watched(ordering: Ordering, name: str, number: int, *more: Any) -> Any:
        found = receive(ordering, name, number, *more)
        received(ordering.me, name, number, ordering.keep_rows)
        return found

    def recorded(monitor: ClockMonitor, kind: str, member: str, by_ns: int, batch: Any) -> None:
        record(monitor, kind, member, by_ns, batch)
        violated(kind, monitor.name, batch)

    orderings._receive_timed, monitors._record_violation = watched, recorded
    try:
        yield
    finally:
        orderings._receive_timed, monitors._record_violation = receive, record
