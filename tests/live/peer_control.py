"""Faults of a peer over TCP, and parts of its state that only few tests look at.

Like `observation`, this module reads the internals of `antecede.live`, so that tests need not.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from antecede.live import greeting, lanes, node, upkeep
from antecede.live.chat import waits
from antecede.live.chat.session import Chat
from antecede.live.chat.web import Page
from antecede.live.drivers import door
from antecede.live.events import Change, ChangeKind, Id, member_of
from antecede.live.hierarchy.internal import InternalNode
from antecede.live.http_server import HttpServer
from antecede.live.lanes import SignedBatch
from antecede.live.links import Link
from antecede.live.ordering import Ordering
from antecede.live.peer import Peer
from tests.live.observation import HasNode

# Limits of a peer.
HALF_OPEN, SILENT, UNREAD = door.HALF_OPEN, node.UNGREETED, node.UNREAD
OF_ONE_NAME = greeting.OF_ONE_NAME
ASKED_STRANGERS, REPORTED_STRANGERS = upkeep.STRANGERS, lanes.STRANGERS
# Names of limits, for tests that replace one by `monkeypatch.setattr(name, value)`.
EVICTION_VOTE_NS = "antecede.live.charges.WHILE_NS"
FALLBACK_BYTES = "antecede.live.upkeep.FALLBACK_BYTES"
HANDSHAKE_S = "antecede.live.drivers.door.HANDSHAKE_S"
MAX_EVICTED_STRANGERS = "antecede.live.ordering.STRANGERS"
MAX_INCARNATIONS = "antecede.live.ordering.MAX_INCARNATIONS"
MAX_READY = "antecede.live.peer.MAX_READY"


class ConnectionObservation(NamedTuple):
    """State of one connection: control frames that are not written, senders whose batches are sent
    here, senders that the other end has named.
    """

    is_greeted: bool
    is_closing: bool
    queued_frames: int
    relayed: int
    named: int


def watch_connection(peer: Peer, other: str) -> Callable[[], ConnectionObservation]:
    """Return a function that observes the connection to a member, after its end too."""
    return partial(_observe_connection, peer.node.greeted[other])


def observe_connections(peer: Peer) -> list[ConnectionObservation]:
    """Return the state of all connections."""
    return [_observe_connection(link) for link in peer.node.links.values()]


def _observe_connection(link: Link) -> ConnectionObservation:
    counts = len(link.control), len(link.cursors), len(link.names)
    return ConnectionObservation(bool(link.lane), bool(link.closing), *counts)


def count_clients(peer: Peer) -> tuple[int, int]:
    """Return how many clients are before the handshake, and were closed there for newer ones."""
    listener = peer._running._door
    assert listener is not None
    return len(listener._half_open), listener.dropped


def is_reading(peer: Peer) -> bool:
    """Return whether a peer reads from its connections."""
    return peer._running._reading


def dial(peer: Peer, address: str) -> None:
    """Dial an address without a reason."""
    peer._running.call(address)


def list_dials(peer: Peer) -> list[tuple[str, str]]:
    """Return the members that a peer would dial at some time, with their addresses."""
    return peer.node.timers.dials(1 << 62)


def disconnect(peer: Peer, other: str) -> int:
    """Begin to close the connection to a member with the next step; return its number."""
    link = peer.node.greeted[other]
    peer.node.end(link, "for the test")
    return link.number


def queue_frame(peer: Peer, number: int, frame: bytes) -> None:
    """Queue a control frame on a connection, closing or not."""
    peer.node.links[number].control.append(frame)


def run_step(peer: Peer) -> None:
    """Run a step of the driver now."""
    peer._running._turn()


def abort_connections(peer: Peer) -> None:
    """End all connections as a crash does."""
    for connection in list(peer._running.connections.values()):
        assert connection.transport is not None
        connection.transport.abort()


def pause_writing(peer: Peer, other: str) -> Callable[[], None]:
    """Write nothing more to a member, as if its socket were full. Returns how to resume."""
    [link] = [one for lane, one in peer.node.greeted.items() if other in (lane, member_of(lane))]
    connection = peer._running.connections[link.number]
    connection.paused_since = time.monotonic_ns()
    return connection.resume_writing


def read_batch(peer: Peer, sender_id: str, number: int) -> SignedBatch:
    """Return a batch in the memory of a peer."""
    return peer.node.active.lanes.by_name[sender_id].get(number)


def is_sending(peer: Peer) -> bool:
    """Return whether some messages or changes of a peer are in no batch yet."""
    return bool(peer.node.active.unsent)


def find_equivocation(peer: Peer, sender_id: str) -> tuple[int, SignedBatch, SignedBatch]:
    """Return the proof of a sender's equivocation: a number and two batches."""
    return peer.node.proofs[sender_id][1:]


def count_named_senders(peer: Peer) -> int:
    """Return the number of senders that a peer has named on its connections."""
    return len(peer.node.outbound.places)


def count_incarnations(peer: Peer) -> int:
    """Return the number of incarnations, past ones too, that the ordering group knows."""
    return len(peer.node.active.group.frontier())


def fill_store(peer: Peer, pages: int) -> None:
    """Let a store have room for a few more pages, as on a full disk."""
    store = peer._running._store
    assert store is not None
    [used] = store._db.execute("PRAGMA page_count").fetchone()
    store._db.execute(f"PRAGMA max_page_count={used + pages}")


def send_after_leave(peer: Peer, payload: bytes) -> None:
    """Announce the leave, and send a batch after it, as no program can."""
    peer.node.leave()
    peer.node.active.say(payload)
    peer.node.active.flush()
    peer._running.soon()


def list_left(peer: Peer) -> set[str]:
    """Return the senders that announced their leave."""
    return peer.node.active.lanes.left


def keep_quiet_to_replaced(peer: Peer) -> None:
    """Let a new incarnation not tell earlier ones that it has started."""
    peer.node.timers.tell = lambda address: None  # type: ignore[method-assign]


def join_beside_others(peer: Peer) -> Callable[[], None]:
    """Let an incarnation join as if it were told of no other one of its name. Returns how it learns
    of them.
    """
    node, timers = peer.node, peer.node.timers

    def announce(ordering: Ordering) -> None:
        ordering.change(Change(ChangeKind.JOINED, node.lane, node.address))
        ordering.flush()

    timers._end_lives_beside = lambda: None  # type: ignore[method-assign]
    node.handshake._announce = announce  # type: ignore[method-assign]
    return partial(delattr, timers, "_end_lives_beside")


def check_certificates_at(peer: Peer, clock: Callable[[], float]) -> None:
    """Let a peer check certificates of senders by another clock."""
    peer.node.seals._clock = clock  # type: ignore[attr-defined]


def find_internal_address(peer: Peer) -> int:
    """Return the number of an internal peer at its super peer."""
    assert isinstance(peer.node, InternalNode)
    return peer.node._address


def list_waits(member: HasNode) -> dict[Id, tuple[Id, str]]:
    """Return what a chat says of each held answer: what it waits for, and why."""
    assert member.node is not None
    return waits.list_held(member.node)


def forget_acknowledged(member: HasNode, other: str) -> None:
    """Let a member forget what another has acknowledged."""
    assert member.node is not None
    member.node.active.lanes.heard[other].clear()


def count_views(chat: Chat) -> int:
    """Return the number of views of a chat."""
    return len(chat._views)


def find_server(page: Page) -> HttpServer:
    """Return the server of a chat page."""
    return page._server
