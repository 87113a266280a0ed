"""Faults of a peer over TCP, and parts of its state that only few tests look at.

Like `observation`, this module reads the internals of `antecede.live`, so that tests need not.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from antecede.core.clocks.encoding.wire import block, varint
from antecede.live import greeting, lanes, node, upkeep, wire
from antecede.live.chat.session import Chat
from antecede.live.chat.web import Page
from antecede.live.drivers import door
from antecede.live.drivers.tcp import TcpDriver
from antecede.live.events import Change, ChangeKind, member_of
from antecede.live.hierarchy.internal import InternalNode
from antecede.live.hierarchy.super_peer import SuperNode
from antecede.live.lanes import SignedBatch
from antecede.live.links import Link
from antecede.live.node import Node
from antecede.live.ordering import Ordering
from antecede.live.peer import Peer

HALF_OPEN = door.HALF_OPEN
"""Connections without a certificate, at most."""
SILENT = node.UNGREETED
"""Connections of one name that have sent no HELLO, at most."""
OF_ONE_NAME = greeting.OF_ONE_NAME
"""Connected incarnations of one name, at most."""
UNREAD = node.UNREAD
"""Control frames queued on a connection, at most."""
ASKED_STRANGERS, REPORTED_STRANGERS = upkeep.STRANGERS, lanes.STRANGERS
"""Unknown senders that are asked for, and that one member may report, at most."""

# Names of limits, for tests that replace one by `monkeypatch.setattr(name, value)`.
EVICTION_VOTE_NS = "antecede.live.charges.WHILE_NS"
FALLBACK_BYTES = "antecede.live.upkeep.FALLBACK_BYTES"
HANDSHAKE_S = "antecede.live.drivers.door.HANDSHAKE_S"
MAX_EVICTED_STRANGERS = "antecede.live.ordering.STRANGERS"
MAX_INCARNATIONS = "antecede.live.ordering.MAX_INCARNATIONS"
MAX_READY = "antecede.live.peer.MAX_READY"


# -- connections -----------------------------------------------------------------------------------


class ConnectionObservation(NamedTuple):
    """State of one connection."""

    is_greeted: bool
    """True after HELLO of the other end."""
    is_closing: bool
    queued_frames: int
    """Control frames that are not written."""
    relayed: int
    """Senders whose batches are sent here."""
    named: int
    """Senders that the other end has named."""


def watch_connection(peer: Peer, other: str) -> Callable[[], ConnectionObservation]:
    """Return a function that observes the connection to a member, after its end too."""
    return partial(_observe_connection, peer.node.greeted[other])


def observe_connections(peer: Peer) -> list[ConnectionObservation]:
    """Return the state of all connections."""
    return [_observe_connection(link) for link in peer.node.links.values()]


def _observe_connection(link: Link) -> ConnectionObservation:
    return ConnectionObservation(
        *(bool(link.lane), bool(link.closing)),
        *(len(link.control), len(link.cursors), len(link.names)),
    )


def count_sockets(peer: Peer) -> int:
    """Return the number of sockets behind the handshake."""
    return len(_driver(peer).connections)


def count_half_open(peer: Peer) -> int:
    """Return the number of clients that have not presented a certificate."""
    return len(_listener(peer)._half_open)


def count_dropped(peer: Peer) -> int:
    """Return the number of clients that were closed for newer ones before the handshake."""
    return _listener(peer).dropped


def is_reading(peer: Peer) -> bool:
    """Return whether a peer reads from its connections."""
    return _driver(peer)._reading


def dial(peer: Peer, address: str) -> None:
    """Dial an address without a reason."""
    _driver(peer).call(address)


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
    _driver(peer)._turn()


def make_batch(peer: Peer) -> None:
    """Make a batch of the sent messages now."""
    peer.node.turn()


def abort_connections(peer: Peer) -> None:
    """End all connections as a crash does."""
    for connection in list(_driver(peer).connections.values()):
        assert connection.transport is not None
        connection.transport.abort()


def pause_writing(peer: Peer, other: str) -> Callable[[], None]:
    """Write nothing more to a member, as if its socket were full. Returns how to resume."""
    [link] = [one for lane, one in peer.node.greeted.items() if other in (lane, member_of(lane))]
    connection = _driver(peer).connections[link.number]
    connection.paused_since = time.monotonic_ns()
    return connection.resume_writing


# -- logs ------------------------------------------------------------------------------------------


def read_batch(peer: Peer, sender_id: str, number: int) -> SignedBatch:
    """Return a batch in the memory of a peer."""
    return peer.node.active.lanes.by_name[sender_id].get(number)


def is_sending(peer: Peer) -> bool:
    """Return whether some messages or changes of a peer are in no batch yet."""
    return bool(peer.node.active.unsent)


def find_oldest(peer: Peer, sender_id: str) -> int:
    """Return the number of the oldest batch of a sender that is kept for others."""
    return peer.node.active.lanes.by_name[sender_id].oldest


def receive_relayed(peer: Peer, by: str, sender_id: str, number: int, batch: SignedBatch) -> None:
    """Receive a batch that another member relays."""
    link = peer.node.greeted[by]
    link.names.append(sender_id)
    place = varint(len(link.names) - 1)
    frame = wire.pack_frame(wire.BATCH, place, varint(number), block(batch.seal), batch.wire)
    peer.node.receive(link.number, frame, link.heard_ns)
    link.names.pop()
    _driver(peer).soon()


def find_equivocation(peer: Peer, sender_id: str) -> tuple[int, SignedBatch, SignedBatch]:
    """Return the proof of a sender's equivocation: a number and two batches."""
    proof = peer.node.proofs[sender_id]
    return proof.number, proof.one, proof.other


def count_named_senders(peer: Peer) -> int:
    """Return the number of senders that a peer has named on its connections."""
    return len(peer.node.outbound.places)


def count_incarnations(peer: Peer) -> int:
    """Return the number of incarnations, past ones too, that the ordering group knows."""
    return len(peer.node.active.group.frontier())


def fill_store(peer: Peer, pages: int) -> None:
    """Let a store have room for a few more pages, as on a full disk."""
    store = _driver(peer)._store
    assert store is not None
    [used] = store._db.execute("PRAGMA page_count").fetchone()
    store._db.execute(f"PRAGMA max_page_count={used + pages}")


# -- membership ------------------------------------------------------------------------------------


def end_incarnation(peer: Peer, reason: str) -> None:
    """Leave the group for good, as after an eviction."""
    peer.node.go_out(reason)


def send_after_leave(peer: Peer, payload: bytes) -> None:
    """Announce the leave, and send a batch after it, as no program can."""
    peer.node.leave()
    peer.node.active.say(payload)
    peer.node.active.flush()
    _driver(peer).soon()


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
    timers, handshake = peer.node.timers, peer.node.handshake
    timers._end_lives_beside = lambda: None  # type: ignore[method-assign]
    handshake._announce = partial(_announce, peer.node)  # type: ignore[method-assign]

    def learn() -> None:
        del timers._end_lives_beside

    return learn


def _announce(node: Node, ordering: Ordering) -> None:
    ordering.change(Change(ChangeKind.JOINED, node.lane, node.address))
    ordering.flush()


def check_certificates_at(peer: Peer, clock: Callable[[], float]) -> None:
    """Let a peer check certificates of senders by another clock."""
    peer.node.seals._clock = clock  # type: ignore[attr-defined]


def list_others(peer: Peer) -> list[str]:
    """Return the sender ids of all other members, of both groups at a super peer."""
    return peer.node.others()


def list_internal_peers(peer: Peer) -> list[str]:
    """Return the sender ids in the internal group of a super peer."""
    assert isinstance(peer.node, SuperNode)
    return list(peer.node.hub.inside)


def find_internal_address(peer: Peer) -> int:
    """Return the number of an internal peer at its super peer."""
    assert isinstance(peer.node, InternalNode)
    return peer.node._address


# -- chat ------------------------------------------------------------------------------------------


def count_views(chat: Chat) -> int:
    """Return the number of views of a chat."""
    return len(chat._views)


async def close_page(page: Page) -> None:
    """Stop the server of a chat page."""
    page._server.close()


async def reopen_page(page: Page, port: int) -> None:
    """Start it again."""
    await page._server.open("127.0.0.1", port)


def _driver(peer: Peer) -> TcpDriver:
    assert peer._driver is not None
    return peer._driver


def _listener(peer: Peer) -> door.Listener:
    listener = _driver(peer)._door
    assert listener is not None
    return listener
