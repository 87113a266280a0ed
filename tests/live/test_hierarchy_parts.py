"""Parts of a live hierarchy by themselves: places, origins, frames, entries of the mesh."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede.core.clocks.encoding.wire import ByteReader
from antecede.core.protocols.hierarchical.messages import Upward
from antecede.errors import (
    DecodeError,
    MismatchError,
    RemoteError,
    SequenceError,
    UnknownMemberError,
)
from antecede.live import batches, wire
from antecede.live.batches import Batch
from antecede.live.events import SentBatch
from antecede.live.hierarchy import origin, star
from antecede.live.hierarchy.internal import InternalNode
from antecede.live.hierarchy.mesh import INSIDE, ExternalNode
from antecede.live.hierarchy.mesh_group import EXTERNAL, SUPER, MeshGroup
from antecede.live.hierarchy.origin import Origin, Place, Places
from antecede.live.hierarchy.settings import HierarchySettings
from antecede.live.hierarchy.super_peer import SuperNode

LANES = ["s1~00000000", "e1~00000000"]
OUTSIDE = 9
"""Number of the super peer's connection to an external peer."""
PLACES = st.lists(st.tuples(st.sampled_from(LANES), st.integers(1, 40)), max_size=60)


def of(some: list[tuple[str, int]]) -> Places:
    found = Places()
    for lane, number in some:
        found.add(Place(lane, number))
    return found


@given(one=PLACES, other=PLACES)
def test_places_are_a_set(one: list[tuple[str, int]], other: list[tuple[str, int]]) -> None:
    ours, theirs = of(one), of(other)
    assert all((place in ours) == (place in set(one)) for place in [*one, *other])
    lacking = set(other) - set(one)
    found = dict(ours.lacks(theirs))
    assert found == {lane: max(n for name, n in lacking if name == lane) for lane, _ in lacking}
    assert Places.read(ByteReader(ours.pack())).windows == ours.windows
    assert not list(ours.lacks(ours.copy()))


@given(numbers=st.permutations(range(1, 13)), notes=st.sets(st.integers(1, 12), max_size=6))
def test_notes_leave_no_holes(numbers: list[int], notes: set[int]) -> None:
    found, last = Places(), max(set(numbers) - notes)
    for number in numbers:
        if number not in notes:
            before = 0
            while number - 1 - before in notes:
                before += 1
            found.add(Place(LANES[0], number, before))
    assert found.windows == {LANES[0]: (last, 0)}


@given(data=st.binary(max_size=60))
def test_whatever_bytes_are_read_they_are_refused_in_words_or_right(data: bytes) -> None:
    readers: list[Callable[[], object]] = [
        lambda: Places.read(ByteReader(data)),
        lambda: origin.unpack(data),
        lambda: star.unpack_hello(data),
        lambda: star.unpack_join_reply(data),
        lambda: star.unpack_down(data, LANES),
        lambda: star.unpack_supers(data),
        lambda: MeshGroup(LANES[0], EXTERNAL, data or b"?"),
    ]
    for read in readers:
        try:
            read()
        except RemoteError:
            continue


def test_places_that_somebody_made_up_cost_no_memory() -> None:
    far = Places({LANES[0]: (1 << 60, 0b10)})
    assert list(of([(LANES[0], 1)]).lacks(far)) == [(LANES[0], (1 << 60) + 2)]
    assert not list(far.lacks(of([(LANES[0], 5)])))
    for place in (Place(LANES[0], 1 << 60), Place(LANES[0], 1 << 60, 1 << 59)):
        with pytest.raises(SequenceError, match="too far ahead of 0"):
            of([]).add(place)


def test_an_origin_travels_with_its_batch() -> None:
    batch = batches.pack(Batch(7, [b"a", b"b"]))
    who, same = origin.unpack(origin.pack("x~abcdefgh", batch))
    assert (who, same) == (Origin("x~abcdefgh", 7, 2), batch)
    assert who.last == 8
    for wrong in (b"", b"\x01x" + batch, origin.pack("x~abcdefgh", batches.pack(Batch(1, [])))):
        with pytest.raises(DecodeError):
            origin.unpack(wrong)


def test_frames_of_the_star_come_back_as_they_went() -> None:
    places = of([(LANES[0], 1), (LANES[1], 3)])
    tags = b"r" * 8, b"o" * 8 + b"partition merge", b"g" * 8
    hello = star.InternalHello(*tags, "i~00000000", b"owner", LANES[0], 3, 70, 2, places)
    read = star.unpack_hello(body(star.pack_hello(hello)))
    assert read[:-1] == hello[:-1]
    assert read.places.windows == places.windows
    welcome = star.InternalJoinReply(
        b"g" * 8, LANES[0], 3, False, 0, 9, (7, 0b101), 5, 8, of([(LANES[0], 2)])
    )
    again = star.unpack_join_reply(body(star.pack_join_reply(welcome)))
    assert again[:-1] == welcome[:-1]
    assert star.unpack_down(body(star.pack_down(1, 9, 2, b"control", b"data")), LANES) == (
        *(Place(LANES[1], 9, 2), b"control", b"data"),
    )
    supers = {LANES[0]: "host:1"}
    assert star.unpack_supers(body(star.pack_supers(supers.items()))) == supers
    with pytest.raises(MismatchError, match="version 0"):
        star.unpack_hello(b"\x00")


def body(frame: bytes) -> bytes:
    """Return what stands behind length and kind of a frame."""
    reader = ByteReader(frame)
    reader.varint()
    reader.take(1)
    return reader.rest()


def test_the_first_frame_tells_who_calls_however_it_is_cut() -> None:
    frame = star.pack_supers((lane, "host:1") for lane in LANES * 9)  # its length takes two bytes
    kinds = [star.kind_of(frame[:length]) for length in range(6)]
    assert kinds == [None, None, None, star.SUPERS, star.SUPERS, star.SUPERS]
    assert star.kind_of(b"\xff" * 5) == -1


# -- the mesh by itself ----------------------------------------------------------------------


class Mesh:
    """Groups of a mesh without nodes: entries go by hand, in any order of lanes."""

    def __init__(self, **roles: str) -> None:
        self.groups: dict[str, MeshGroup] = {}
        self.lanes: dict[str, list[bytes]] = {}
        self.fed: dict[tuple[str, str], int] = {}
        for name, role in roles.items():
            self.join(f"{name}~00000000", role)

    def join(self, lane: str, role: str, sponsor: str = "") -> MeshGroup:
        sponsor = sponsor or next(iter(self.groups), "")
        invitation = self.groups[sponsor].invite(lane) if sponsor else b""
        made = self.groups[lane] = MeshGroup(lane, role, invitation)
        for other in self.lanes:
            done = dict(self.groups[sponsor].progress.list_done()).get(other, 0)
            self.fed[lane, other] = done
        self.lanes[lane] = []
        for other in self.groups:
            self.fed.setdefault((other, lane), 0)
        self.keep(lane, made.send(batches.pack(Batch(1, []))))
        return made

    def keep(self, lane: str, entry: bytes) -> None:
        self.lanes[lane].append(bytes(entry))

    def say(self, lane: str, number: int) -> None:
        said = Batch(number, [f"{lane} {number}".encode()])
        self.keep(lane, self.groups[lane].send(batches.pack(said)))

    def forward(self, lane: str, number: int) -> None:
        """Let a peer inside say something."""
        group = self.groups[lane]
        if number == 1:
            group.protocol.join(1)
        said = batches.pack(Batch(number, [f"inside {lane} {number}".encode()]))
        group.forward(Upward(1, number, (0, 0), 0, origin.pack(f"i-{lane}", said)))
        self.keep(lane, group.outgoing.pop())

    def feed(self, to: str, lane: str) -> list[bytes] | None:
        """Give a group the next entry of a lane; None: there is none, or it has to wait."""
        number = self.fed[to, lane]
        if number == len(self.lanes[lane]) or to == lane:
            return None
        group = self.groups[to]
        meet = (lane,) if number == 0 else ()
        try:
            given = group.receive(self.lanes[lane][number], said_by=(lane, number + 1), meet=meet)
        except UnknownMemberError:
            return None
        self.fed[to, lane] += 1
        for entry in group.outgoing:
            self.keep(to, entry)
        group.outgoing.clear()
        return [one.payload for one in given]


@given(seed=st.integers(0, 2**32))
def test_a_mesh_delivers_all_to_all_in_order_with_newcomers_in_between(seed: int) -> None:
    draw = random.Random(seed)
    mesh = Mesh(s1=SUPER, e1=EXTERNAL, e2=EXTERNAL)
    got: dict[str, list[bytes]] = {}
    numbers = dict.fromkeys(mesh.groups, 0)
    came = 0
    for _ in range(150):
        kind = draw.random()
        lane = draw.choice(sorted(mesh.groups))
        if kind < 0.15 and mesh.groups[lane].role == EXTERNAL:
            numbers[lane] += 1
            mesh.say(lane, numbers[lane])
        elif kind < 0.1:
            mesh.groups[lane].say_moved("i1~00000000", 1)
            mesh.keep(lane, mesh.groups[lane].outgoing.pop())
        elif kind < 0.15:
            numbers[lane] += 1
            mesh.forward(lane, numbers[lane])
        elif kind < 0.18 and came < 3:
            came += 1
            role = draw.choice((SUPER, EXTERNAL))
            mesh.join(f"n{came}~00000000", role, lane)
            numbers[f"n{came}~00000000"] = 0
        else:
            got.setdefault(lane, []).extend(mesh.feed(lane, draw.choice(sorted(mesh.lanes))) or [])
    moved = True
    while moved:
        moved = False
        for to in mesh.groups:
            for lane in mesh.lanes:
                given = mesh.feed(to, lane)
                moved = moved or given is not None
                got.setdefault(to, []).extend(given or [])
    assert all(group.stats().held == 0 for group in mesh.groups.values())
    windows = [group.given.windows for group in mesh.groups.values()]
    assert all(one == windows[0] for one in windows)
    assert not any(any(group.progress.waiting.values()) for group in mesh.groups.values())
    for lane, group in mesh.groups.items():
        assert {n: f for n, f in group.progress.fed.items() if n != lane} == {
            n: len(entries) for n, entries in mesh.lanes.items() if n != lane
        }
    for name in ("e1~00000000", "e2~00000000"):
        said = [data for data in got[name] if batches.unpack(data).said]
        assert len(said) == sum(numbers.values()) - numbers[name]


def test_a_member_that_speaks_as_what_it_is_not_is_refused() -> None:
    mesh = Mesh(e1=EXTERNAL, e2=EXTERNAL)
    one, other = "e1~00000000", "e2~00000000"
    assert mesh.feed(one, other) is not None
    note = mesh.groups[other].send(batches.pack(Batch(2, [])))
    forged = b"\x02" + bytes(note)[1:]
    with pytest.raises(DecodeError, match="another role"):
        mesh.groups[one].receive(forged, said_by=(other, 2))
    with pytest.raises(DecodeError, match="unknown entry kind"):
        mesh.groups[one].receive(b"\x09", said_by=(other, 2))


def test_nobody_speaks_in_the_name_of_another_member_of_the_mesh() -> None:
    mesh = Mesh(s1=SUPER, e1=EXTERNAL, e2=EXTERNAL)
    one, other, forger = "e1~00000000", "e2~00000000", "s1~00000000"
    assert mesh.feed(one, other) is not None
    for who, number in ((other, 1), ("i~00000000", 2)):
        said = origin.pack(who, batches.pack(Batch(1, [b"?"])))
        group = mesh.groups[forger]
        if number == 1:
            group.protocol.join(1)
        group.forward(Upward(1, number, (0, 0), 0, said))
        mesh.keep(forger, group.outgoing.pop())
        if who == other:
            with pytest.raises(DecodeError, match="sent a message of e2~00000000"):
                mesh.feed(one, forger)
            mesh.fed[one, forger] += 1  # as if that had not been
        else:
            assert mesh.feed(one, forger) is not None


# -- a super peer and those inside, without a network ------------------------------------------


class Hand:
    """Carries bytes between a super peer and peers inside, and ends turns when it is told to."""

    def __init__(self) -> None:
        settings = HierarchySettings(role="super")
        self.super_peer = SuperNode("s", settings, "00000000", "s")
        self.super_peer.bootstrap(b"g" * 8)
        self.super_peer.turn()
        self.inside: list[InternalNode] = []
        self.outside: list[tuple[int, bytes]] = []
        """Frames to an external peer."""

    def call_outside(self) -> None:
        """Let an external peer join."""
        node = ExternalNode("e", HierarchySettings(role="external"), "00000000", "e")
        self.super_peer.link_up(OUTSIDE, "e", 0, dialed=False)
        node.link_up(1, "s", 0, dialed=True)
        for _ in range(4):
            node.turn()
            self.super_peer.receive(OUTSIDE, b"".join(node.pull(1, 1 << 16, 0)), 0)
            self.super_peer.turn()
            node.receive(1, self.pull_outside(), 0)

    def pull_outside(self) -> bytes:
        """Return what is written to the external peer now."""
        data = b"".join(self.super_peer.pull(OUTSIDE, 1 << 16, 0))
        self.outside += [(kind, data[start:end]) for kind, start, end in wire.split_frames(data)[0]]
        return data

    def call(self) -> int:
        """Let another peer call; returns its link, from 1."""
        number = len(self.inside) + 1
        settings = HierarchySettings(role="internal")
        node = InternalNode(f"i{number}", settings, "00000000")
        self.inside.append(node)
        self.super_peer.link_up(number, node.name, 0, dialed=False)
        node.link_up(1, "s", 0, dialed=True)
        return number

    def up(self, number: int) -> None:
        """Carry what a peer writes."""
        node = self.inside[number - 1]
        node.turn()
        self.super_peer.receive(number, b"".join(node.pull(1, 1 << 16, 0)), 0)

    def down(self, number: int) -> list[bytes]:
        """Carry what is written to a peer; return what it delivers."""
        node = self.inside[number - 1]
        node.receive(1, b"".join(self.super_peer.pull(number, 1 << 16, 0)), 0)
        said = (one for one in node.take_delivered() if isinstance(one, SentBatch))
        return [payload for one in said for payload in one.payloads]


def test_who_comes_amid_a_turn_lacks_nothing_of_it() -> None:
    hand = Hand()
    first = hand.call()
    hand.up(first)
    hand.super_peer.turn()
    assert hand.down(first) == []
    hand.inside[0].send(b"numbered, and in no log yet", ())
    second = hand.call()
    hand.up(first)
    hand.up(second)  # no turn in between
    hand.super_peer.turn()
    assert hand.down(second) == [b"numbered, and in no log yet"]


def test_what_is_in_no_log_yet_is_not_told_to_be_had_by_all_inside() -> None:
    hand = Hand()
    hand.call_outside()
    first, second = hand.call(), hand.call()
    for number in (first, second):
        hand.up(number)
    hand.super_peer.turn()
    for number in (first, second):
        hand.down(number)
    hand.inside[0].send(b"numbered, and in no log yet", ())
    hand.up(first)
    hand.super_peer.tick(10**9)
    hand.pull_outside()
    names, told = list[str](), dict[str, int]()
    for kind, body in hand.outside:
        if kind == wire.SENDER_IDS:
            names += wire.read_names(body, wire.MAX_LANES)
        elif kind == INSIDE:
            told |= wire.read_rows(body, names)
    assert told["s~00000000"] == 1  # that it is here; what was said is the second
