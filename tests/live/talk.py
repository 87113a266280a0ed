"""Three members that know each other, and frames into one of them, one at a time.

As the simulated network, without time, ways and stores. A talk can be pickled.
"""

from __future__ import annotations

from antecede.live import wire
from antecede.live.node import Node
from antecede.live.settings import NS, Settings
from tests.live.byzantine import KeyedSeals
from tests.live.observation import Observation, observe, snapshot_state


class Talk:
    """Three nodes that know each other, and all frames that went over their links."""

    def __init__(self, order: str, strict: bool) -> None:
        settings = Settings(order=order, verify_all_signatures=strict)
        self.nodes = {name: _new_node(name, settings) for name in "abm"}
        self.frames: list[bytes] = []
        self.now = 0
        self._links = 0
        a, b, m = self.nodes.values()
        a.bootstrap(b"12345678")
        for caller, called in ((b, a), (m, a), (m, b)):
            self._connect(caller, called)
            self.exchange()
        for name in self.nodes:
            for k in range(3):
                self.send(name, b"%d" % k)
                self.exchange()
        self.frames.sort()

    def _connect(self, caller: Node, called: Node) -> None:
        self._links += 1
        caller.link_up(self._links, called.name, self.now, dialed=True)
        called.link_up(self._links, caller.name, self.now, dialed=False)

    def exchange(self) -> None:
        """Let all that is to be said arrive."""
        for _ in range(12):
            self.now += NS // 50
            for one in self.nodes.values():
                one.tick(self.now)
                one.turn()
                for number in list(one.links):
                    data = self.pull(one.name, number)
                    for other in self.nodes.values():
                        if other is not one and number in other.links and data:
                            other.receive(number, data, self.now)
                            found, _, _ = wire.split_frames(data)
                            self.frames += [wire.pack_frame(k, data[s:e]) for k, s, e in found]

    def isolate(self, name: str, sponsor: str) -> int:
        """Begin anew with one node alone that dials its sponsor; return its connection."""
        self.nodes = {name: _new_node(name, self.nodes[name].settings)}
        self.nodes[name].link_up(1, sponsor, self.now, dialed=True)
        return 1

    def call(self, name: str, by: str) -> int:
        """Let somebody call a member; return the connection."""
        self._links += 1
        self.nodes[name].link_up(self._links, by, self.now, dialed=False)
        return self._links

    def hang_up(self, name: str, link: int) -> None:
        """End a connection."""
        self.nodes[name].link_down(link, self.now)

    def link(self, name: str, other: str) -> int:
        """Return the connection of a member to another."""
        return next(n for n, link in self.nodes[name].links.items() if link.name == other)

    def send(self, name: str, payload: bytes) -> None:
        """Let a member say something."""
        self.nodes[name].send(payload)
        self.nodes[name].turn()

    def receive(self, name: str, link: int, data: bytes) -> None:
        """Let bytes come to a member."""
        self.nodes[name].receive(link, data, self.now)

    def pull(self, name: str, link: int) -> bytes:
        """Return what a member writes on a connection."""
        return b"".join(self.nodes[name].pull(link, 1 << 16, self.now))

    def go_on(self, name: str) -> None:
        """Let a member do what is to be done; what it writes is lost."""
        node = self.nodes[name]
        node.turn()
        node.tick(self.now)
        for link in list(node.links):
            self.pull(name, link)

    def is_open(self, name: str, link: int) -> bool:
        """Return whether a member keeps a connection."""
        return not self.nodes[name].links[link].closing

    def is_identified(self, name: str, link: int) -> bool:
        """Return whether a member knows who is at the other end."""
        return bool(self.nodes[name].links[link].lane)

    def place(self, name: str, link: int, sender_id: str) -> int:
        """Return the index of a sender id on a connection, as its other end told it."""
        return self.nodes[name].links[link].names.index(sender_id)

    def observe(self, name: str) -> Observation:
        """Return the state of a member."""
        return observe(self.nodes[name])

    def snapshot(self, name: str) -> object:
        """Return all state of the group at a member."""
        return snapshot_state(self.nodes[name])


def _new_node(name: str, settings: Settings) -> Node:
    seals = KeyedSeals(f"{name}~{name}0000000")
    return Node(name, settings, f"{name}0000000", name, seals=seals)
