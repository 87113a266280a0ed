"""State of a member as plain values, for tests of behaviour.

Only this module reads the internals of `antecede.live`. Tests that assert on a member call
`observe`, so they stay unchanged when the internals change.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple, Protocol

from antecede import Missing
from antecede.live.events import Id
from antecede.live.node import Node


class LogObservation(NamedTuple):
    """Log of one sender at the observed member."""

    newest: int
    """Number of its newest batch here; 0: none."""
    stored: int
    """Number of its newest batch that survives a crash."""
    retained_bytes: int
    signer: bytes
    """Proof of its owner; empty: unknown, or without certificates."""


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
    connected: frozenset[str]
    """Members with a connection."""
    members: dict[str, str]
    """Member -> address."""
    admitted: frozenset[str]
    """Joining members that have not announced their join."""
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
    """Causes that these wait for."""
    abandoned: int
    history: tuple[Id, ...]
    """Ids of the messages kept for joining members."""
    subscriptions: dict[str, tuple[str, ...]]
    memory_bytes: int
    """Batches in memory."""
    rejected: Counter[str]
    """Rejections by error class."""
    last_rejection: str

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
    logs = ordering.lanes.by_name if ordering is not None else {}
    safe = node.safe()
    return Observation(
        sender_id=node.lane,
        group_id=node.group_tag,
        is_in_group=is_open and not node.out,
        is_in_minority=node.in_minority,
        has_left=node.left,
        end_reason=node.out,
        connections=frozenset(node.links),
        connected=frozenset(node.greeted),
        members=dict(ordering.members) if ordering is not None else {},
        admitted=frozenset(ordering.guests) if ordering is not None else frozenset(),
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
        held=tuple(Id(*one.message.id) for one in ordering.group.list_held()) if ordering else (),
        missing=tuple(ordering.group.list_missing()) if ordering else (),
        abandoned=ordering.given_up if ordering is not None else 0,
        history=tuple(one.id for one in ordering.history) if ordering is not None else (),
        subscriptions=dict(ordering.subscriptions) if ordering is not None else {},
        memory_bytes=ordering.lanes.bytes if ordering is not None else 0,
        rejected=node.rejected.copy(),
        last_rejection=node.last_rejection,
    )
