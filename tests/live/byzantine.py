"""A member that breaks every rule of the wire by seed, in the simulated network.

Its node is as all are, and its frames are falsified on their way out: those of others' lanes, of
its own, old ones again, in another order, to one and not to the other. It has a valid key for its
own lanes, and no other's: seals here are keyed hashes, which are as good as signatures for one who
plays fair in this alone.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable
from typing import Any

from antecede.core.clocks.encoding.wire import ByteReader, block, varint
from antecede.core.clocks.lanes import unit
from antecede.core.group.frames import format as group_frame
from antecede.core.group.frames.format import Incarnation
from antecede.core.protocols.vector.idr import Idr
from antecede.errors import AntecedeError, DecodeError
from antecede.live import batches, wire
from antecede.live.batches import Batch
from antecede.live.events import Change, ChangeKind, member_of
from antecede.live.settings import NS
from antecede.tables.trace.schema import DELIVER, SEND, Event
from tests.live.memory_network import Frame, Host, MemoryNetwork
from tests.live.simulated import Plan, Run

MALLORY = "m"
Sealed = tuple[bytes, bytes]
"""Signature and bytes of a batch."""
CODEC = Idr(0, (0,))
"""Encodes the control information of causal order; it needs no state."""
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
            raise DecodeError(f"{lane} lacks the signature of its certificate")

    def recall(self, lane: str, owner: bytes) -> None:
        return

    def seal(self, number: int, wire: bytes) -> bytes:
        return _mac(self._lane, number, wire)

    def check(self, lane: str, number: int, wire: bytes, seal: bytes) -> None:
        if seal != _mac(lane, number, wire):
            raise DecodeError(f"batch {number} of {lane} has an invalid signature")


def _mac(lane: str, number: int, wire: bytes) -> bytes:
    return hashlib.blake2b(b"%s %d " % (lane.encode(), number) + wire, digest_size=16).digest()


class Liar:
    """What falsifies the frames of one life of Mallory. It knows what goes over her connections."""

    def __init__(self, network: ByzantineNetwork, seed: str) -> None:
        self.network, self.host, self.draw = network, network.hosts[MALLORY], random.Random(seed)
        self.pool: list[bytes] = []
        """Frames that it has heard or said."""
        self.lies = 0
        self.order = self.host.settings.group("m~00000000").order
        self.verifies = self.host.settings.verify_all_signatures
        self.names: dict[tuple[str, int], list[str]] = {}
        """(host, connection) -> sender ids that were told there."""
        self.batches: dict[str, list[Sealed]] = {}
        """Sender id -> batches that it has heard or said."""
        self.numbers: dict[str, int] = {}
        """Sender id -> its number in what Mallory's group writes."""

    def hear(self, frame: Frame) -> None:
        """Remember a frame from or to Mallory."""
        self.pool.append(frame.pack()[:2000])
        del self.pool[:-200]
        names = self._names_of(frame)
        if frame.kind == wire.SENDER_IDS:
            names += wire.read_names(frame.body, wire.MAX_LANES)
        elif frame.kind == wire.BATCH:
            reader = ByteReader(frame.body)
            place, _ = reader.varint(), reader.varint()
            known = self.batches.setdefault(names[place], [])
            known.append((reader.block(), reader.rest()))
            del known[:-50]

    def _names_of(self, frame: Frame) -> list[str]:
        return self.names.setdefault((frame.source, frame.link), [])

    def falsify(self, frames: list[Frame]) -> list[bytes]:
        """Return what goes out instead of Mallory's frames."""
        out: list[bytes] = []
        for frame in frames:
            self.hear(frame)
            out += self._falsified(frame)
        if self.draw.random() < OFTEN and len(out) > 1:
            self.draw.shuffle(out)
        return out

    def _falsified(self, frame: Frame) -> Iterable[bytes]:
        draw, kind, body = self.draw, frame.kind, frame.body
        names = self._names_of(frame)
        if self._is_own(kind, body, names):
            body = self._own(body)
        if draw.random() > 2 * OFTEN:
            return [wire.pack_frame(kind, body)]
        self.lies += 1
        if draw.random() < 0.5:
            return [wire.pack_frame(kind, body), *self._more(names)]
        how = draw.randrange(6)
        if how == 0:
            return []
        if how == 1:
            return [wire.pack_frame(kind, body)] * 2
        if not self.verifies and self._is_own(kind, body, names):
            return []  # else it says with a wrong seal what only one can take
        if how == 2 and body:
            return [wire.pack_frame(kind, self._damaged(body))]
        if how == 3:
            return [wire.pack_frame(draw.randrange(12), body)]
        if how == 4 and kind == wire.HELLO:
            return [self._false_hello(body)]
        return [wire.pack_frame(kind, body[: draw.randrange(len(body) + 1)])]

    def _is_own(self, kind: int, body: bytes, names: list[str]) -> bool:
        return kind == wire.BATCH and names[ByteReader(body).varint()] == self.host.sender_id

    def _damaged(self, body: bytes) -> bytes:
        damaged = bytearray(body)
        for _ in range(self.draw.randrange(1, 4)):
            damaged[self.draw.randrange(len(damaged))] ^= 1 << self.draw.randrange(8)
        return bytes(damaged)

    def _false_hello(self, body: bytes) -> bytes:
        hello = wire.unpack_hello(body)
        lanes = self.host.observe().members
        frontier = {lane: self.draw.choice((0, 1, 10**6, 2**63)) for lane in lanes}
        return wire.pack_hello(hello._replace(frontier=frontier))

    # -- batches of its own ------------------------------------------------------------------------

    def _own(self, body: bytes) -> bytes:
        """Falsify batches of its own lane: the same for all, unless it equivocates."""
        reader = ByteReader(body)
        place, number = reader.varint(), reader.varint()
        sealed = reader.block(), reader.rest()
        if self.network.equivocates:
            seal, raw = self._forge(number, sealed)
        else:
            key = self.host.sender_id, number
            seal, raw = self.network.forged.get(key) or self._forge(number, sealed)
            self.network.forged[key] = seal, raw
        return varint(place) + varint(number) + block(seal) + raw

    def _forge(self, number: int, sealed: Sealed) -> Sealed:
        draw, me = self.draw, self.host.sender_id
        parts = group_frame.unpack(self.order, sealed[1])
        self.numbers |= {name: at for at, name in parts.names.items()}
        if number < 3 or draw.random() > 0.15:
            return sealed
        self.lies += 1
        victims = [lane for lane in self.host.observe().members if lane != me]
        if not victims:
            return sealed
        victim = draw.choice(victims)
        how = draw.randrange(6)
        if how == 0 and self.order == "idr":  # depends on what is not, or on itself
            message: Any = CODEC.decode(parts.control, parts.payload)
            known = {**self.numbers, me: message.sender}
            who = draw.choice([one for one in (victim, victim, me) if one in known])
            causes = message.causes | unit(known[who], draw.choice((number, 10**6, 2**38)))
            table = {**parts.names, known[who]: who}
            control = CODEC.encode(message._replace(causes=causes))
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
        made = group_frame.pack(parts)
        return _mac(me, number, made), made

    def _payload(self, victim: str) -> bytes:
        draw = self.draw
        changes = [
            Change(ChangeKind.LEFT, victim),
            Change(ChangeKind.JOINED, victim, "nowhere"),
            Change(ChangeKind.LEFT, f"{MALLORY}~{draw.randrange(10**8):08}"),
            Change(ChangeKind.EVICTED, f"x~{draw.randrange(10**8):08}", "why"),
            Change(ChangeKind.JOINED, self.host.sender_id, "x" * 900),
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

    def _more(self, names: list[str]) -> list[bytes]:
        draw, me = self.draw, self.host.sender_id
        if not names:
            return []
        rows = [
            (place, draw.choice((0, 1, 5, 10**6, 2**63, 2**64 - 1)))
            for place in range(len(names))
            if draw.random() < 0.6
        ]
        place = draw.randrange(len(names))
        lane = names[place]
        if lane == me and not self.verifies:
            return []  # as above
        newest = self.host.observe().newest(lane)
        number = draw.choice((0, 1, newest, newest + 1, newest + 1, newest + 2, 10**6))
        forged = varint(place) + varint(number) + block(draw.randbytes(16)) + draw.randbytes(40)
        old = draw.choice(self.pool) if self.pool else b""
        return [
            draw.choice(
                (
                    wire.pack_rows(wire.ACK, rows),
                    wire.pack_rows(wire.NAK, rows),
                    wire.pack_rows(wire.TRUNCATED, rows),
                    wire.pack_frame(wire.PING, varint(draw.getrandbits(60)), bytes(range(place))),
                    wire.pack_frame(wire.PONG, varint(draw.getrandbits(60))),
                    wire.pack_frame(wire.BATCH, forged),
                    wire.pack_frame(wire.BATCH, self._another_number(place, lane, number)),
                    wire.pack_frame(wire.SIGNER, block(lane.encode()), draw.randbytes(9)),
                    wire.pack_names([lane, f"{MALLORY}~{draw.randrange(10**8):08}", "y~00000000"]),
                    wire.pack_frame(wire.BYE, b"evicted from the group: " + lane.encode()),
                    wire.pack_frame(draw.randrange(20), draw.randbytes(draw.randrange(30))),
                    wire.pack_join_reply(
                        wire.JoinReply(b"8" * 8, b"", {}, {me: ""}, (), {}, b"\0")
                    ),
                    old,
                )
            )
        ]

    def _another_number(self, place: int, lane: str, number: int) -> bytes:
        """A batch that is somebody's, under another number, or changed and with its old seal."""
        if not self.batches.get(lane):
            return varint(place) + varint(number)
        seal, raw = self.draw.choice(self.batches[lane])
        raw = raw if self.draw.random() < 0.5 else self._damaged(raw)
        return varint(place) + varint(number) + block(seal) + raw


class ByzantineNetwork(MemoryNetwork):
    """One of its hosts is Mallory's."""

    equivocates = False

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.forged: dict[tuple[str, int], Sealed] = {}
        """What Mallory says under a number of her lane: the same after a restart."""
        self.lanes: dict[str, str] = {}
        self.liar: Liar | None = None
        self.filter, self.new_signatures = self.falsify, self.sign

    def start(self, name: str, join: str = "") -> None:
        if name == MALLORY:
            self.hosts[name].stays = True
            self.liar = Liar(self, f"{self.hosts[name].lives} {self.random.random()}")
        super().start(name, join)

    def sign(self, sender_id: str) -> KeyedSeals:
        """Return the signatures of a member: with a store, the key of its first life."""
        name = member_of(sender_id)
        if self.hosts[name].store is not None:
            sender_id = self.lanes.setdefault(name, sender_id)
        return KeyedSeals(sender_id)

    def falsify(self, frames: list[Frame]) -> list[bytes] | None:
        """Falsify the frames of Mallory, and let her hear those to her."""
        if self.liar is not None and frames[0].source == MALLORY:
            return self.liar.falsify(frames)
        for frame in frames:
            if self.liar is not None and frame.target == MALLORY:
                self.liar.hear(frame)
        return None


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
        return self.network.liar.lies if self.network.liar is not None else 0

    def start(self) -> None:
        network = self.network
        network.meet(self.names)
        network.run(3 * NS)
        for host in self.honest:
            assert host.sender_id
            self.founders.add(host.sender_id)

    def say(self, name: str) -> None:
        if name != MALLORY:
            super().say(name)
            return
        if self.network.hosts[name].is_in_group:
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
                row for row in rows if row[0] == SEND or member_of(row[1].sender_id) != MALLORY
            ]
        try:
            super().judge()
        finally:
            self.network.hosts[MALLORY] = mallory

    def _at_rest(self, host: Host) -> None:
        stuck = self.judgement.stuck
        if not host.is_in_group:
            stuck.append(f"{host.name} is in no group: {host.sender_id and host.observe()}")
            return
        found, lanes = host.observe(), self.list_alive()
        if lanes - found.members.keys():
            stuck.append(f"{host.name} sees {sorted(found.members)}")
        if missing := lanes - found.connected - {found.sender_id}:
            stuck.append(f"{host.name} is not connected with {missing}, {found.last_rejection}")
        held = [one for one in found.held if member_of(one.sender_id) != MALLORY]
        stalled = [lane for lane in found.stalled if member_of(lane) != MALLORY]
        spoiled = [lane for lane in found.distrusted if member_of(lane) != MALLORY]
        if held or stalled or spoiled:
            stuck.append(f"{host.name} holds {held[:2]}, {stalled}, {spoiled}")

    def _events(self) -> list[Event]:
        return [
            Event(kind=kind, id=str(one), member=lane, causes=tuple(map(str, answers)))
            for lane, rows in self.rows.items()
            for kind, one, answers, _ in rows
            if kind in (SEND, DELIVER)
        ]
