"""The hierarchical protocol through `Group`: roles, bytes and forwarding, judged by the oracle."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede import Group
from antecede.core.group.message import Packet
from antecede.core.oracle.history import History
from antecede.core.protocols.base import Protocol
from antecede.core.protocols.hierarchical.messages import Downward, Upward, encode
from antecede.core.protocols.hierarchical.roles import Topology, hierarchical
from antecede.errors import ConflictError, DecodeError, LocalError, SequenceError
from antecede.tables.trace.schema import DELIVER, RECEIVE, SEND, Event
from tests.helpers.stored_groups import forged_frame
from tests.helpers.unchanged import unchanged

TOPOLOGY = Topology({10: (0, 1, 2), 11: (3, 4)}, (20, 21))
NAMES = {address: f"p{address}" for address in TOPOLOGY.addresses}
SUPER_PEERS = {NAMES[address] for address in TOPOLOGY.super_peers}


def role(name: str, ack_after: int = 1) -> Protocol:
    return hierarchical(TOPOLOGY, ack_after=ack_after)[int(name[1:])]


def system(ack_after: int = 1) -> dict[str, Group]:
    return {
        name: Group.from_protocol(role(name, ack_after), NAMES, order="hierarchical")
        for name in NAMES.values()
    }


class Network:
    """Messages in transit between groups as bytes; rows for the oracle."""

    def __init__(self, groups: Mapping[str, Group], seed: int) -> None:
        self.groups = dict(groups)
        self.random = random.Random(seed)
        self.flying: list[tuple[str, bytes]] = []
        self.rows: list[Event] = []

    def post(self, name: str, payload: bytes) -> None:
        self.rows.append(Event(kind=SEND, id=payload.decode(), member=name))
        self.put(self.groups[name].send_packets(payload))

    def put(self, packets: list[Packet]) -> None:
        for packet in packets:
            copies = self.random.choice((1, 1, 2))
            self.flying += [(name, packet.wire) for name in packet.to for _ in range(copies)]

    def step(self) -> None:
        name, wire = self.flying.pop(self.random.randrange(len(self.flying)))
        group = self.groups[name]
        for message in group.receive(wire):
            self.rows += [
                Event(kind=kind, id=message.payload.decode(), member=name)
                for kind in (RECEIVE, DELIVER)
            ]
            assert message.sender in message.payload.decode(), "the origin's name travels"
        self.put(group.take_control_packets())

    def restart(self, name: str) -> None:
        """Go on from a snapshot, taken with packets still in the outbox."""
        again = Group.from_protocol(role(name), NAMES, order="hierarchical")
        again.restore(self.groups[name].snapshot())
        self.groups[name] = again


@given(seed=st.integers(0, 2**32))
def test_every_role_forwards_and_delivers_in_causal_order(seed: int) -> None:
    network = Network(system(), seed)
    talkers = sorted(network.groups.keys() - SUPER_PEERS)
    sent = []
    for k in range(15):
        name = network.random.choice(talkers)
        sent.append(f"{k}:{name}")
        network.post(name, sent[-1].encode())
        for _ in range(network.random.randrange(8)):
            if network.flying:
                network.step()
        network.restart(network.random.choice(sorted(network.groups)))
    while network.flying:
        network.step()
    history = History(network.rows, dict.fromkeys(sent, talkers))
    assert history.early("delivery") == []
    assert history.faults("delivery") == []
    for name in talkers:
        seen = {row.id for row in network.rows if row.member == name and row.kind != RECEIVE}
        assert seen == set(sent), "everybody has everything"
    assert all(group.list_held() == [] for group in network.groups.values())


def test_an_acknowledgement_goes_up_and_is_no_message() -> None:
    groups = system(ack_after=1)
    (up,) = groups["p0"].send_packets(b"hello")
    assert groups["p10"].receive(up.wire) == []
    inside, outside = groups["p10"].take_control_packets()
    assert inside.to == ("p0", "p1", "p2")
    assert set(outside.to) == {"p11", "p20", "p21"}
    (message,) = groups["p1"].receive(inside.wire)
    assert message[:3] == ("p0", 1, b"hello")
    assert groups["p0"].receive(inside.wire) == [], "the own copy is no message"
    groups["p0"].restore(groups["p0"].snapshot())
    (note,) = groups["p0"].take_control_packets()
    assert note.to == ("p10",)
    assert groups["p10"].receive(note.wire) == []
    assert groups["p10"].take_control_packets() == []
    assert groups["p10"].list_held() == []


@pytest.mark.parametrize(
    "payload", [b"", b"\x05ab", b"\x02\xff\xff\x01", b"\x00\x01x", b"\x02p2\x00x"], ids=repr
)
def test_a_payload_without_its_origin_is_refused_by_every_role(payload: bytes) -> None:
    groups = system()
    forged = {
        "p1": encode(Downward(2, 1, 0, (0, 0), payload)),
        "p10": encode(Upward(2, 1, (0, 0), 0, payload)),
    }
    for name, control in forged.items():
        with unchanged(groups[name]), pytest.raises(DecodeError):
            groups[name].receive(forged_frame(groups[name], control, payload))


def test_calls_that_a_role_cannot_serve_change_nothing() -> None:
    groups = system()
    before = groups["p10"].snapshot()
    with pytest.raises(LocalError, match="which only forwards"):
        groups["p10"].send(b"x")
    with pytest.raises(LocalError, match="several roles"):
        groups["p10"].invite("p30")
    assert groups["p10"].snapshot() == before
    with pytest.raises(LocalError, match="snapshot is of 'p0'; this is the group of 'p1'"):
        groups["p1"].restore(groups["p0"].snapshot())


def test_every_address_has_a_name_of_its_own() -> None:
    with pytest.raises(LocalError, match=r"missing addresses: \[10\]"):
        Group.from_protocol(
            role("p0"), {k: v for k, v in NAMES.items() if k != 10}, order="hierarchical"
        )
    with pytest.raises(LocalError, match="a unique name"):
        Group.from_protocol(role("p0"), {**NAMES, 1: "p0"}, order="hierarchical")


AGAIN = "message 1 of {} is known with other content"
BEHIND = "peer 2 has delivered up to 1, but only 0 have been numbered"


@pytest.mark.parametrize(
    ("role_of", "error", "says"),
    [
        ("p0", ConflictError, AGAIN.format("p0")),
        ("p20", ConflictError, AGAIN.format("p20")),
        ("p10", SequenceError, BEHIND),
    ],
)
def test_a_role_that_gives_numbers_out_again_is_found_out(
    role_of: str, error: type[Exception], says: str
) -> None:
    groups = system()
    stored = groups[role_of].snapshot()

    def spread(packets: list[Packet]) -> None:
        for packet in packets:
            for name in packet.to:
                groups[name].receive(packet.wire)
                spread(groups[name].take_control_packets())

    talker = "p1" if role_of == "p10" else role_of
    spread(groups[talker].send_packets(b"first"))
    again = Group.from_protocol(role(role_of), NAMES, order="hierarchical")
    again.restore(stored)
    groups[role_of] = again
    talker = "p2" if role_of == "p10" else role_of
    with pytest.raises(error, match=says):
        spread(groups[talker].send_packets(b"second"))
