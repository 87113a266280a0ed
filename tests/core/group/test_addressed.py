"""`Group` with messages for some members, with topics, and with clocks."""

from __future__ import annotations

from typing import Any

import pytest

from antecede.core.clocks.bounds import Bounds
from antecede.core.group.group import Group
from antecede.core.group.message import Message
from antecede.core.protocols.topics.subscriptions import Subscriptions
from antecede.errors import LocalError

NAMES = ("alice", "bob", "carol")
BOUNDS: Bounds[str] = Bounds(accuracy_s=0.1, least_s=0.5, most_s=2.0)


def groups(order: str, **options: Any) -> dict[str, Group]:
    return {name: Group(name, NAMES, order=order, **options) for name in NAMES}


def payloads(messages: list[Message]) -> list[bytes]:
    return [message.payload for message in messages]


@pytest.mark.parametrize("order", ["ses", "sent"])
def test_a_note_to_one_waits_for_what_went_before_it_by_way_of_another(order: str) -> None:
    """The triangle of Sahai et al. 2020: alice writes to carol, then to bob, and bob to carol."""
    group = groups(order)
    (to_carol,) = group["alice"].send_packets(b"offer", to=["carol"])
    to_bob = group["alice"].send(b"I made carol an offer", to=["bob"])
    assert to_carol.to == ("carol",)
    assert payloads(group["bob"].receive(to_bob)) == [b"I made carol an offer"]
    question = group["bob"].send(b"what do you say to it?", to=["carol"])
    assert group["carol"].receive(question) == []
    (blocked,) = group["carol"].list_held()
    assert blocked.waits_for == (("alice", 1),)
    delivered = group["carol"].receive(to_carol.wire)
    assert payloads(delivered) == [b"offer", b"what do you say to it?"]


@pytest.mark.parametrize("order", ["ses", "sent"])
def test_without_addressees_a_message_is_for_everybody(order: str) -> None:
    (packet,) = groups(order)["alice"].send_packets(b"all")
    assert packet.to == ("bob", "carol")


@pytest.mark.parametrize("order", ["ses", "sent", "linear", "linear-physical", "tv", "htbc"])
def test_a_snapshot_goes_on_where_it_was(order: str) -> None:
    options: dict[str, Any] = {}
    if order not in ("ses", "sent"):
        options["bounds"] = BOUNDS
    if order in ("tv", "htbc"):
        options["subscriptions"] = Subscriptions(dict.fromkeys(NAMES, ("news",)))
    topics = ("news",) if order in ("tv", "htbc") else ()
    group = groups(order, **options)
    first = group["alice"].send(b"1", topics=topics, now=10.0)
    second = group["alice"].send(b"2", topics=topics, now=10.5)
    group["bob"].receive(second, now=11.5)
    again = Group("bob", NAMES, order=order, **options)
    again.restore(group["bob"].snapshot())
    delivered = again.receive(first, now=11.6)
    for second_s in range(12, 40):
        delivered += again.tick(float(second_s))
        for packet in again.take_control_packets():  # heartbeats, where the order has them
            group["alice"].receive(packet.wire, now=float(second_s))
            group["carol"].receive(packet.wire, now=float(second_s))
        for name in ("alice", "carol"):
            group[name].tick(float(second_s))
            for packet in group[name].take_control_packets():
                if "bob" in packet.to:
                    delivered += again.receive(packet.wire, now=float(second_s))
    assert payloads(delivered) == [b"1", b"2"]


def test_events_go_to_who_subscribes() -> None:
    subscriptions = Subscriptions({"alice": ("news",), "bob": ("news", "sport"), "carol": ("art",)})
    group = groups("htbc", bounds=BOUNDS, subscriptions=subscriptions)
    (packet,) = group["alice"].send_packets(b"goal", topics=["sport"], now=1.0)
    assert packet.to == ("bob",)
    for one in group.values():
        one.subscribe("carol", ["sport"])
    (packet,) = group["alice"].send_packets(b"again", topics=["sport"], now=2.0)
    assert packet.to == ("bob", "carol")


def test_what_an_order_does_not_take_is_refused_before_anything_is_numbered() -> None:
    causal = Group("alice", NAMES)
    with pytest.raises(LocalError, match="order 'idr' does not support to="):
        causal.send(b"x", to=["bob"])
    with pytest.raises(LocalError, match="has no topics"):
        causal.subscribe("bob", ["news"])
    ses = Group("alice", NAMES, order="ses")
    with pytest.raises(LocalError, match="does not support topics="):
        ses.send(b"x", topics=["news"])
    with pytest.raises(LocalError, match="lists of names"):
        ses.send(b"x", to="bob")
    with pytest.raises(LocalError, match="to= has this member"):
        ses.send(b"x", to=["alice"])
    with pytest.raises(LocalError, match="unknown member 'dave'"):
        ses.send(b"x", to=["dave"])
    (packet,) = ses.send_packets(b"x", to=["bob"])
    assert ses.inspect(packet.wire).seq == 1


def test_options_that_are_wrong_or_missing_are_named() -> None:
    with pytest.raises(LocalError, match="has no option 'speed'"):
        Group("alice", NAMES, order="ses", speed=3)
    with pytest.raises(LocalError, match="bounds"):
        Group("alice", NAMES, order="htbc")
    with pytest.raises(LocalError, match="bounds: unknown member 'dave'"):
        Group("alice", NAMES, order="linear", bounds=Bounds(clocks={"dave": 1.0}))
