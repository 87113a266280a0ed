"""One short story for every order: a member that holds a message back, as it is stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from antecede import Group
from antecede.core.clocks.bounds import Bounds
from antecede.core.group.frames.format import Frame, Incarnation, pack
from antecede.core.protocols.hierarchical.roles import Topology, hierarchical
from antecede.core.protocols.registry import ENTRIES
from antecede.core.protocols.serialization.codec import pack_state, unpack_state
from antecede.core.protocols.topics.subscriptions import Subscriptions

NAMES = ("alice", "bob", "carol")
BOUNDS: Bounds[str] = Bounds(accuracy_s=0.01, least_s=0.1, most_s=1.0)
TOPICS = ("tv", "tv-lt", "tv-pt", "tv-vt", "htbc")
ORDERS = tuple(name for name, entry in ENTRIES.items() if entry.flat)
JOINABLE = tuple(name for name in ORDERS if ENTRIES[name].load().guarantee.joins)
ROLES = ("internal", "super", "external")
TOPOLOGY = Topology({10: (0, 1), 11: (3, 4)}, (20, 21))
ADDRESSES = {address: f"p{address}" for address in TOPOLOGY.addresses}
START_S = 1000.0


class Story(NamedTuple):
    """A member's group that holds something, and what still has to come for it to go."""

    group: Group
    late: list[bytes]


def options_of(order: str) -> dict[str, Any]:
    """Return the options under which the story of an order is told."""
    if order in TOPICS:
        return {
            "bounds": BOUNDS,
            "subscriptions": Subscriptions(dict.fromkeys(NAMES, ("news", "sport"))),
        }
    if order in ("linear", "physical", "linear-physical"):
        return {"bounds": BOUNDS, "heartbeat_s": 0.5}
    if order == "sb":
        return {"several_parents": True}
    return {"recovering": True} if order == "matrix" else {}


def fresh(order: str, name: str = "carol") -> Group:
    """Return a member's group as it is before anything happened."""
    if order in ROLES:
        address = {"internal": 1, "super": 10, "external": 20}[order]
        return role(f"p{address}")
    return Group(name, NAMES, order=order, incarnation=len(name), **options_of(order))


def role(name: str) -> Group:
    """Return one peer of a hierarchical system."""
    protocol = hierarchical(TOPOLOGY)[int(name[1:])]
    return Group.from_protocol(protocol, ADDRESSES, order="hierarchical", incarnation=7)


def story(order: str) -> Story:
    """Let carol (or a role) hear an answer before what it answers."""
    return _in_roles(order) if order in ROLES else _flat(order)


def _flat(order: str) -> Story:
    alice, bob, carol = (fresh(order, name) for name in NAMES)
    how: dict[str, Any] = {"topics": ("news",)} if order in TOPICS else {}
    first = alice.send(b"hello", now=START_S, **how)
    bob.receive(first, now=START_S + 0.1)
    heard = [*carol.receive(first, now=START_S + 0.2), *carol.tick(START_S + 5.0)]
    assert [message.payload for message in heard] in ([b"hello"], []), order
    question = alice.send(b"lunch?", now=START_S + 6.0, **how)
    read = bob.receive(question, now=START_S + 6.1) + bob.tick(START_S + 12.0)
    parents = [m for m in read if m.payload == b"lunch?"] if order == "sb" else []
    answer = bob.send(b"yes", reply_to=parents, now=START_S + 12.5, **how)
    last = alice.send(b"at noon", now=START_S + 12.6, **how)
    carol.receive(last, now=START_S + 13.0)
    carol.receive(answer, now=START_S + 13.1)
    carol.send(b"mine", now=START_S + 13.2, **how)
    assert order == "unordered" or carol.list_held(), order
    return Story(carol, [question])


def _in_roles(order: str) -> Story:
    groups = {name: role(name) for name in ADDRESSES.values()}
    receiver = groups[fresh(order).name]
    late: list[bytes] = []

    def forward(name: str, wire: bytes, hide: bytes) -> None:
        if name == receiver.name and hide in wire:
            late.append(wire)
            return
        groups[name].receive(wire)
        for packet in groups[name].take_control_packets():
            for other in packet.to:
                forward(other, packet.wire, hide)

    hide = b"lunch?"
    for sender, payload in (("p0", b"hello"), ("p0", hide), ("p0", b"at noon")):
        for packet in groups[sender].send_packets(payload):
            for name in packet.to:
                forward(name, packet.wire, hide)
    assert receiver.list_held(), order
    return Story(receiver, late)


def forged_invitation(order: str, frontier: object, **options: Any) -> bytes:
    """Return alice's invitation for dave with another frontier in it."""
    honest = Group("alice", ["alice"], order=order, **options).invite("dave")
    return pack_state((*unpack_state(honest, 4)[:3], frontier))


def forged_frame(
    like: Group, control: bytes, payload: bytes, names: Mapping[int, str] | None = None
) -> bytes:
    """Return a frame of the group of a member, with any control information and names."""
    parts = Frame(
        order=like.order,
        room=like._state.room,
        options=like._state.options,
        view=None if like.is_open else like._state.roster.view,
        by=Incarnation(0, 7),
        names=names or {},
        known=(),
        control=control,
        payload=payload,
    )
    return pack(parts)
