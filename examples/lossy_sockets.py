"""A group over UDP: the protocol recovers lost datagrams.

    python examples/lossy_sockets.py

Three members use a network that loses a fifth of the datagrams, duplicates some, and reorders them.
`matrix` with `recovering` and `linear-physical` request missing messages.
"""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Mapping
from typing import Any

from antecede import Bounds, Group, Message

ORDERS: Mapping[str, Mapping[str, Any]] = {
    "matrix": {"recovering": True, "heartbeat_s": 0.02, "retry_s": 0.02},
    "linear-physical": {
        "bounds": Bounds(accuracy_s=0.05, least_s=0, most_s=2),
        "heartbeat_s": 0.02,
        "retry_s": 0.02,
    },
}
TICK_S = 0.005


class Member:
    """One member: a UDP socket and a `Group`."""

    def __init__(self, name: str, names: list[str], order: str, loss: float, seed: int) -> None:
        self.group = Group(name, names, order=order, **ORDERS[order])
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.setblocking(False)
        self.addresses: dict[str, Any] = {}
        self.delivered: list[Message] = []
        self.loss, self.random = loss, random.Random(f"{name} {seed}")
        self.late: list[tuple[bytes, Any]] = []

    def say(self, payload: bytes) -> None:
        """Send a message to all others."""
        sent = self.group.send(payload, now_ns=time.monotonic_ns())
        self.transmit(sent, sent.to)

    def transmit(self, wire: bytes, to: tuple[str, ...]) -> None:
        """Send a datagram to each receiver through the lossy network."""
        for name in to:
            copies = 0 if self.random.random() < self.loss else 1 + (self.random.random() < 0.1)
            self.late += [(wire, self.addresses[name])] * copies
        self.random.shuffle(self.late)
        while len(self.late) > 4:
            self.socket.sendto(*self.late.pop())

    def turn(self) -> None:
        """Receive datagrams, advance time, and send what the protocol requests."""
        while True:
            try:
                wire = self.socket.recv(65_535)
            except BlockingIOError:
                break
            self.delivered += self.group.receive(wire, now_ns=time.monotonic_ns())
        self.delivered += self.group.tick(now_ns=time.monotonic_ns())
        for packet in self.group.take_control_packets():
            self.transmit(packet.wire, packet.to)


def talk(
    order: str, *, messages: int, loss: float = 0.2, seed: int = 1
) -> dict[str, list[Message]]:
    """Let three members send some messages each; return the deliveries of each."""
    names = ["alice", "bob", "carol"]
    members = [Member(name, names, order, loss, seed) for name in names]
    for one in members:
        one.addresses = {other.group.name: other.socket.getsockname() for other in members}
    due, end = [messages] * len(members), time.monotonic() + 60
    while min(len(one.delivered) for one in members) < messages * (len(members) - 1):
        if time.monotonic() > end:
            waits = [str(blocked) for one in members for blocked in one.group.list_held()]
            raise TimeoutError(f"not everything was delivered within a minute: {waits}")
        for place, one in enumerate(members):
            if due[place]:
                one.say(f"{one.group.name} {messages - due[place] + 1}".encode())
                due[place] -= 1
            one.turn()
        time.sleep(TICK_S)
    for one in members:
        one.socket.close()
    return {one.group.name: one.delivered for one in members}


if __name__ == "__main__":
    for kind in ORDERS:
        for member, got in talk(kind, messages=20).items():
            print(f"{kind}: {member} delivered {len(got)} messages in order")
