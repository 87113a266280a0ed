"""A member that breaks every rule of the wire by seed, in the simulated network.

It runs a node as all do, and falsifies what that says: frames of others' lanes, of its own, old
ones again, in another order, to one and not to the other. It has a valid key for its own lanes, and
no other's: seals here are keyed hashes, which are as good as signatures for one who plays fair in
this alone.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable

from antecede.core.clocks.encoding.wire import ByteReader, block, varint
from antecede.core.clocks.lanes import unit
from antecede.core.group.frames import format as frame
from antecede.core.group.frames.format import Incarnation
from antecede.errors import AntecedeError, DecodeError
from antecede.live import batches, wire
from antecede.live.batches import Batch
from antecede.live.events import Change, ChangeKind, member_of
from antecede.live.lanes import Sealed
from antecede.live.node import Node
from antecede.live.settings import NS
from antecede.tables.trace.schema import DELIVER, SEND, Event
from tests.live.memory_network import Host, MemoryNetwork
from tests.live.simulated import Plan, Run

MALLORY = "m"
OFTEN = 0.04
"""How often a frame is falsified, and how often one is added."""


class KeyedSeals:
    """Seals by a secret a lane; all check, and nobody but the owner's node seals."""

    def __init__(self, lane: str) -> None:
        self._lane = lane

    def owner(self, lane: str) -> bytes:
        return b"owner of " + lane.encode()

    def learn(self, lane: str, owner: bytes) -> None:
        if owner != self.owner(lane):
            raise DecodeError(f"{lane} is claimed without its owner's signature")

    def recall(self, lane: str, owner: bytes) -> None:
        return

    def seal(self, number: int, wire: bytes) -> bytes:
        return _mac(self._lane, number, wire)

    def check(self, lane: str, number: int, wire: bytes, seal: bytes) -> None:
        if seal != _mac(lane, number, wire):
            raise DecodeError(f"batch {number} of {lane} with a seal that is not its owner's")


def _mac(lane: str, number: int, wire: bytes) -> bytes:
    return hashlib.blake2b(b"%s %d " % (lane.encode(), number) + wire, digest_size=16).digest()


class Mallory(Node):
    """A node whose words are falsified on their way out."""

    draw = random.Random(0)
    equivocates = False

    def begin_to_lie(
        self, seed: str, forged: dict[tuple[str, int], Sealed], *, equivocates: bool
    ) -> None:
        self.draw = random.Random(seed)
        self.equivocates = equivocates
        self.pool: list[bytes] = []
        """Frames that it has heard or said."""
        self.forged = forged
        """What it says under a number of its lane: the same after a restart."""
        self.lies = 0

    def receive(self, number: int, data: bytes, now: int) -> None:
        self.pool.append(data[:2000])
        del self.pool[:-200]
        super().receive(number, data, now)

    def go_out(self, why: str) -> None:
        """It is never out."""

    def pull(self, number: int, budget: int, now: int) -> list[bytes]:
        whole = b"".join(super().pull(number, budget, now))
        if not whole:
            return []
        found, _, _ = wire.frames(whole)
        said = [(kind, whole[start:end]) for kind, start, end in found]
        out: list[bytes] = []
        for kind, body in said:
            out += self._falsified(kind, body)
            self.pool.append(wire.framed(kind, body))
        if self.draw.random() < OFTEN and len(out) > 1:
            self.draw.shuffle(out)
        return out

    def _falsified(self, kind: int, body: bytes) -> Iterable[bytes]:
        draw = self.draw
        if kind == wire.BATCH:
            body = self._own(body)
        if draw.random() > 2 * OFTEN:
            return [wire.framed(kind, body)]
        self.lies += 1
        if draw.random() < 0.5:
            return [wire.framed(kind, body), *self._more()]
        how = draw.randrange(6)
        if how == 0:
            return []
        if how == 1:
            return [wire.framed(kind, body)] * 2
        if kind == wire.BATCH and not self.settings.check_all_seals and self._is_own(body):
            return []  # else it says with a wrong seal what only one can take
        if how == 2 and body:
            return [wire.framed(kind, self._damaged(body))]
        if how == 3:
            return [wire.framed(draw.randrange(12), body)]
        if how == 4 and kind == wire.HELLO:
            return [self._false_hello(body)]
        return [wire.framed(kind, body[: draw.randrange(len(body) + 1)])]

    def _is_own(self, body: bytes) -> bool:
        place = ByteReader(body).varint()
        return place < len(self.outflow.places) and self.outflow.places[place] == self.lane

    def _damaged(self, body: bytes) -> bytes:
        damaged = bytearray(body)
        for _ in range(self.draw.randrange(1, 4)):
            damaged[self.draw.randrange(len(damaged))] ^= 1 << self.draw.randrange(8)
        return bytes(damaged)

    def _false_hello(self, body: bytes) -> bytes:
        hello = wire.unpack_hello(body)
        lanes = self.ordering.members if self.ordering is not None else ()
        frontier = {lane: self.draw.choice((0, 1, 10**6, 2**63)) for lane in lanes}
        return wire.pack_hello(hello._replace(frontier=frontier))

    # -- batches of its own ------------------------------------------------------------------------

    def _own(self, body: bytes) -> bytes:
        """Falsify batches of its own lane: the same for all, unless it equivocates."""
        reader = ByteReader(body)
        place, number = reader.varint(), reader.varint()
        if not self._is_own(body):
            return body
        sealed = Sealed(reader.block(), reader.rest())
        if self.equivocates:
            made = self._forge(number, sealed)
        else:
            key = self.lane, number
            made = self.forged.get(key) or self._forge(number, sealed)
            self.forged[key] = made
        return varint(place) + varint(number) + block(made.seal) + made.wire

    def _forge(self, number: int, sealed: Sealed) -> Sealed:
        draw, ordering = self.draw, self.ordering
        if ordering is None or number < 3 or draw.random() > 0.15:
            return sealed
        self.lies += 1
        parts = frame.unpack(ordering.group.order, sealed.wire)
        names = ordering.group._state.roster.numbers
        victims = [lane for lane in ordering.members if lane != self.lane]
        if not victims:
            return sealed
        victim = draw.choice(victims)
        how = draw.randrange(6)
        if how == 0 and ordering.group.order == "idr":  # depends on what is not, or on itself
            protocol = ordering.group._state.protocol
            message = protocol.decode(parts.control, parts.payload)
            who = draw.choice((victim, victim, self.lane))
            causes = message.causes | unit(names[who], draw.choice((number, 10**6, 2**38)))
            table = {**parts.names, names[who]: who}
            control = protocol.encode(message._replace(causes=causes))
            parts = parts._replace(names=table, control=control)
        elif how == 1:  # tells of lives of others
            life = Incarnation(1, draw.getrandbits(32), draw.choice((1, 40, 10**6)))
            parts = parts._replace(known=((victim, life),))
        elif how == 2:  # begins another life itself
            by = Incarnation(draw.randrange(1, 3), draw.getrandbits(32), draw.choice((1, number)))
            parts = parts._replace(by=by)
        elif how == 3:  # names a stranger
            parts = parts._replace(names={**parts.names, 90: "nobody~00000000"})
        elif how == 4:
            parts = parts._replace(payload=self._payload(victim))
        else:
            parts = parts._replace(control=self._damaged(parts.control or b"\0"))
        made = frame.pack(parts)
        return Sealed(_mac(self.lane, number, made), made)

    def _payload(self, victim: str) -> bytes:
        draw = self.draw
        changes = [
            Change(ChangeKind.LEFT, victim),
            Change(ChangeKind.JOINED, victim, "nowhere"),
            Change(ChangeKind.LEFT, f"{MALLORY}~{draw.randrange(10**8):08}"),
            Change(ChangeKind.PUT_OUT, f"x~{draw.randrange(10**8):08}", "why"),
            Change(ChangeKind.JOINED, self.lane, "x" * 900),
        ]
        some = draw.sample(changes, draw.randrange(3))
        return draw.choice(
            (
                batches.pack(Batch(1, [b"again"], some)),
                batches.pack(Batch(10**9, [b"", b"x"], some)),
                b"",
                draw.randbytes(30),
            )
        )

    # -- frames that nobody asked for --------------------------------------------------------------

    def _more(self) -> list[bytes]:
        draw = self.draw
        if not self.outflow.places:
            return []
        rows = [
            (place, draw.choice((0, 1, 5, 10**6, 2**63, 2**64 - 1)))
            for place in range(len(self.outflow.places))
            if draw.random() < 0.6
        ]
        place = draw.randrange(len(self.outflow.places))
        lane = self.outflow.places[place]
        if lane == self.lane and not self.settings.check_all_seals:
            return []  # as above
        newest = self.ordering.lanes.newest(lane) if self.ordering is not None else 0
        number = draw.choice((0, 1, newest, newest + 1, newest + 1, newest + 2, 10**6))
        forged = varint(place) + varint(number) + block(draw.randbytes(16)) + draw.randbytes(40)
        old = draw.choice(self.pool) if self.pool else b""
        return [
            draw.choice(
                (
                    wire.pack_rows(wire.HAVE, rows),
                    wire.pack_rows(wire.WANT, rows),
                    wire.pack_rows(wire.GONE, rows),
                    wire.framed(wire.PING, varint(draw.getrandbits(60)), bytes(range(place))),
                    wire.framed(wire.PONG, varint(draw.getrandbits(60))),
                    wire.framed(wire.BATCH, forged),
                    wire.framed(wire.BATCH, self._another_number(place, lane, number)),
                    wire.framed(wire.OWNER, block(lane.encode()), draw.randbytes(9)),
                    wire.pack_names([lane, f"{MALLORY}~{draw.randrange(10**8):08}", "y~00000000"]),
                    wire.framed(wire.BYE, b"put out of the group: " + lane.encode()),
                    wire.framed(draw.randrange(20), draw.randbytes(draw.randrange(30))),
                    wire.pack_welcome(
                        wire.Welcome(b"8" * 8, b"", {}, {self.lane: ""}, (), {}, b"\0")
                    ),
                    old,
                )
            )
        ]

    def _another_number(self, place: int, lane: str, number: int) -> bytes:
        """A batch that is somebody's, under another number, or changed and with its old seal."""
        known = self.ordering.lanes.by_name.get(lane) if self.ordering is not None else None
        if known is None or not known.batches:
            return varint(place) + varint(number)
        sealed = self.draw.choice(list(known.batches))
        raw = sealed.wire if self.draw.random() < 0.5 else self._damaged(sealed.wire)
        return varint(place) + varint(number) + block(sealed.seal) + raw


class ByzantineNetwork(MemoryNetwork):
    """One of its hosts is Mallory's."""

    equivocates = False

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.forged: dict[tuple[str, int], Sealed] = {}
        self.lanes: dict[str, str] = {}

    def new_node(self, host: Host, life: str) -> Node:
        kind = Mallory if host.name == MALLORY else Node
        lane = f"{host.name}~{life}"
        if host.store is not None:  # as the key in a store
            lane = self.lanes.setdefault(host.name, lane)
        seals = KeyedSeals(lane)
        node = kind(
            *(host.name, host.settings, life, host.name),
            seals=seals,
            durable=host.store is not None,
        )
        if isinstance(node, Mallory):
            seed = f"{host.lives} {self.random.random()}"
            node.begin_to_lie(seed, self.forged, equivocates=self.equivocates)
        return node


class ByzantineRun(Run):
    """Mallory is the last of the members; judged is what the others say to each other."""

    network: ByzantineNetwork

    def __init__(self, plan: Plan, *, equivocates: bool = False) -> None:
        self._equivocates = equivocates
        super().__init__(plan)
        self.names = [*self.names[:-1], MALLORY]

    def new_network(self) -> MemoryNetwork:
        network = ByzantineNetwork(self.plan.seed)
        network.equivocates = self._equivocates
        add = network.add

        def renamed(name: str, *rest: object, **more: object) -> Host:
            last = chr(ord("a") + self.plan.members - 1)
            return add(MALLORY if name == last else name, *rest, **more)  # type: ignore[arg-type]

        network.add = renamed  # type: ignore[method-assign]
        return network

    @property
    def honest(self) -> list[Host]:
        return [host for host in self.network.hosts.values() if host.name != MALLORY]

    @property
    def lies(self) -> int:
        node = self.network.hosts[MALLORY].node
        return node.lies if isinstance(node, Mallory) else 0

    def start(self) -> None:
        network = self.network
        network.meet(self.names)
        network.run(3 * NS)
        for host in self.honest:
            assert host.node is not None
            self.founders.add(host.node.lane)

    def say(self, name: str) -> None:
        if name != MALLORY:
            super().say(name)
            return
        node = self.network.hosts[name].node
        if node is not None and node.ordering is not None:
            try:
                self.network.say(name, b"lies")
            except AntecedeError:
                return

    def fault(self) -> None:
        if self.plan.durable:
            super().fault()
            return
        name = self.random.choice(self.names)
        after = self.random.randrange(200, 2500) * 10**6
        if self.random.random() < 0.5:
            self.network.freeze(name)
            self.network.at(after, lambda: self.network.thaw(name))
        else:
            some = set(self.random.sample(self.names, self.random.randrange(1, len(self.names))))
            self.network.cut(some, set(self.names) - some, one_way=self.random.random() < 0.5)
            self.network.at(after, self.network.heal)

    def _others(self, name: str) -> list[str]:
        return [one for one in super()._others(name) if one != MALLORY]

    # -- judgement ---------------------------------------------------------------------------------

    def judge(self) -> None:
        self.rows = {lane: rows for lane, rows in self.rows.items() if member_of(lane) != MALLORY}
        mallory = self.network.hosts.pop(MALLORY)
        for host in self.honest:
            self.write_down(host)
        for lane, rows in self.rows.items():
            self.rows[lane] = [
                row for row in rows if row[0] == SEND or member_of(row[1].lane) != MALLORY
            ]
        try:
            super().judge()
        finally:
            self.network.hosts[MALLORY] = mallory

    def _at_rest(self, host: Host) -> None:
        node, stuck = host.node, self.judgement.stuck
        if node is None or node.ordering is None or node.out:
            stuck.append(f"{host.name} is in no group: {node and node.out}")
            return
        ordering = node.ordering
        lanes = {one.node.lane for one in self.network.hosts.values() if one.node is not None}
        if lanes - ordering.members.keys():
            stuck.append(f"{host.name} sees {sorted(ordering.members)}")
        if missing := lanes - node.greeted.keys() - {node.lane}:
            stuck.append(f"{host.name} is not connected with {missing}, {node.last_refusal}")
        held = [
            one for one in ordering.group.list_held() if member_of(one.message.sender) != MALLORY
        ]
        stalled = [lane for lane in ordering._stalled if member_of(lane) != MALLORY]
        spoiled = [lane for lane in ordering.spoiled if member_of(lane) != MALLORY]
        if held or stalled or spoiled:
            stuck.append(f"{host.name} holds {held[:2]}, {stalled}, {spoiled}")

    def _events(self) -> list[Event]:
        return [
            Event(kind=kind, id=str(one), member=lane, causes=tuple(map(str, answers)))
            for lane, rows in self.rows.items()
            for kind, one, answers, _ in rows
            if kind in (SEND, DELIVER)
        ]
