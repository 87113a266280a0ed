"""Orders that recover what is lost, over sockets of one's own."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from antecede import Group
from antecede.core.group.message import Message
from examples.lossy_sockets import ORDERS, talk


def early(delivered: list[Message]) -> list[str]:
    """Return the messages that were delivered before an earlier one of their sender."""
    last: dict[str, int] = {}
    found = []
    for message in delivered:
        if message.seq != last.get(message.sender, 0) + 1:
            found.append(f"{message.sender} {message.seq}")
        last[message.sender] = message.seq
    return found


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("order", ORDERS)
def test_everything_is_delivered_once_and_in_order_over_a_network_that_loses(
    order: str, seed: int
) -> None:
    said = talk(order, messages=12, loss=0.3, seed=seed)
    for name, delivered in said.items():
        others = said.keys() - {name}
        expected = {(other, f"{other} {k}".encode()) for other in others for k in range(1, 13)}
        assert {(one.sender, one.payload) for one in delivered} == expected
        assert len(delivered) == len(expected)
        assert early(delivered) == []


@pytest.mark.parametrize("order", ORDERS)
def test_an_answer_whose_cause_was_lost_waits_for_it(order: str) -> None:
    names = ["alice", "bob", "carol"]
    groups = {name: Group(name, names, order=order, **ORDERS[order]) for name in names}
    delivered: dict[str, list[bytes]] = {name: [] for name in names}
    now_ns = 10**15

    def tick_range(heard: Collection[str]) -> None:
        nonlocal now_ns
        now_ns += 10**7
        for name, group in groups.items():
            delivered[name] += [one.payload for one in group.tick(now_ns=now_ns)]
            for packet in group.take_control_packets():
                for other in {*packet.to} & {*heard}:
                    take(other, packet.wire)

    def take(name: str, wire: bytes) -> None:
        found = groups[name].receive(wire, now_ns=now_ns)
        delivered[name] += [one.payload for one in found]

    take("bob", groups["alice"].send(b"question", now_ns=now_ns))
    for _ in range(400):
        tick_range(heard=["bob"])
    assert delivered["bob"] == [b"question"]
    take("carol", groups["bob"].send(b"answer", now_ns=now_ns))
    assert delivered["carol"] == [], "the question is missing"
    for _ in range(400):
        tick_range(heard=names)
    assert delivered["carol"] == [b"question", b"answer"]
