"""Parts of a peer over datagrams: envelopes, parcels, pacing, agreement, settings; bad bytes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antecede.clocks.bounds import Bounds
from antecede.clocks.wire import Reader, block, varint
from antecede.errors import DecodeError, LimitError, LocalError, MismatchError, PeerError
from antecede.live.datagrams import packets, parcels
from antecede.live.datagrams.agreement import Agreement, Step, pack_step, read_step
from antecede.live.datagrams.departures import Closing
from antecede.live.datagrams.envelopes import HEAD_BYTES, TAG_BYTES, Envelope, Envelopes, Offer
from antecede.live.datagrams.node import DatagramNode, Moment
from antecede.live.datagrams.pacing import Pace
from antecede.live.datagrams.settings import DatagramSettings
from antecede.live.drivers.lossy import MS, LossyNetwork, Weather
from antecede.live.events import Change, ChangeKind, GivenUp, Id, Message, View
from antecede.live.settings import NS

RECOVERING = {"recovering": True, "heartbeat_s": 0.2, "retry_s": 0.2}


def offers(seed: int = 1) -> tuple[Offer, Offer]:
    draw = random.Random(seed)
    return Offer.draw(draw.randbytes), Offer.draw(draw.randbytes)


def ends(*, secure: bool = True) -> tuple[Envelopes, Envelopes]:
    """Return both ends of a session, each of which calls it 1."""
    one, other = offers()
    a, b = Envelopes(), Envelopes()
    a.add(1, Envelope(one, other, called=True, secure=secure))
    b.add(1, Envelope(other, one, called=False, secure=secure))
    return a, b


# -- envelopes ------------------------------------------------------------------------------------


def sealed(end: Envelopes, data: bytes) -> bytes:
    datagram = end.seal(1, data)
    assert datagram is not None
    return datagram


@pytest.mark.parametrize("secure", [True, False])
def test_what_one_end_seals_the_other_opens(secure: bool) -> None:
    a, b = ends(secure=secure)
    for k in range(5):
        assert b.open(sealed(a, b"to b %d" % k)) == (1, b"to b %d" % k)
        assert a.open(sealed(b, b"to a %d" % k)) == (1, b"to a %d" % k)
    datagram = sealed(a, b"secret words")
    assert (b"secret words" in datagram) is not secure
    assert len(datagram) == len(b"secret words") + HEAD_BYTES + TAG_BYTES * secure


@settings(max_examples=200)
@given(st.binary(max_size=100), st.data())
def test_no_other_bytes_open(data: bytes, draw: st.DataObject) -> None:
    a, b = ends()
    datagram = sealed(a, data)
    at, flip = draw.draw(st.integers(0, len(datagram) - 1)), draw.draw(st.integers(1, 255))
    forged = datagram[:at] + bytes((datagram[at] ^ flip,)) + datagram[at + 1 :]
    assert b.open(forged) is None
    assert b.open(datagram[:at]) is None
    assert b.open(datagram + b"x") is None
    assert a.open(datagram) is None  # sent back to who sent it
    # a forged counter of nought is a number long past: dropped before its tag is looked at
    before = b.dropped["replayed"]
    assert b.open(datagram) == (1, data)  # none of these was in its way
    assert b.open(datagram) is None
    assert b.dropped["replayed"] == before + 1
    assert b.dropped.total() == 4


def test_order_does_not_matter_and_what_is_too_old_is_dropped() -> None:
    a, b = ends()
    all_of_them = [sealed(a, b"%d" % k) for k in range(5000)]
    mixed = all_of_them[1:]
    random.Random(1).shuffle(mixed)
    # a window of 4,096 behind the newest: what came within it is taken once, the rest not at all
    taken = [b.open(one) for one in sorted(mixed, key=mixed.index)]
    opened = {one for one in taken if one is not None}
    assert len(opened) + b.dropped["replayed"] == len(mixed)
    assert not any(b.open(one) for one in all_of_them if one in mixed)
    assert b.open(all_of_them[0]) is None


def test_every_counter_is_used_once_and_keys_differ_by_direction() -> None:
    a, b = ends()
    heads = {sealed(a, b"same")[:HEAD_BYTES] for _ in range(100)}
    assert len(heads) == 100
    assert sealed(a, b"same")[HEAD_BYTES:] != sealed(b, b"same")[HEAD_BYTES:]
    one, other = offers(1)
    again = Envelope(*offers(2), called=True, secure=True).seal(b"same")
    assert again[HEAD_BYTES:] != Envelope(one, other, called=True, secure=True).seal(b"same")


def test_a_session_that_is_forgotten_opens_nothing() -> None:
    a, b = ends()
    datagram = sealed(a, b"x")
    b.forget(1)
    assert b.open(datagram) is None
    assert b.dropped == {"stranger": 1}
    with pytest.raises(DecodeError, match="an offer of 3 bytes"):
        Offer.read(b"abc")


# -- parcels --------------------------------------------------------------------------------------


def test_a_large_packet_comes_whole_over_any_loss() -> None:
    draw = random.Random(5)
    whole = draw.randbytes(200_000)
    outgoing, incoming = parcels.Outgoing(7, whole, 1176, 0), parcels.Incoming(1 << 20)
    got: list[bytes] = []
    for now in range(0, 60 * NS, 50 * MS):
        if outgoing.due_ns > now:
            continue
        for part in outgoing.send(now, 50 * MS):
            if draw.random() < 0.4:
                continue
            answer, done = incoming.take(Reader(part, 1))
            if done is not None:
                got.append(done)
            if draw.random() >= 0.4:
                outgoing.acknowledged(parcels.read_parts(Reader(answer, 1))[1], now)
        if not outgoing.parts:
            break
    assert got == [whole]
    assert not outgoing.parts
    assert incoming.bytes == 0


def part(number: int, index: int, count: int, data: bytes) -> Reader:
    return Reader(varint(number) + varint(index) + varint(count) + data)


def test_unfinished_parcels_are_bounded() -> None:
    incoming = parcels.Incoming(10_000)
    for number in range(100):
        incoming.take(part(number, 0, 9, bytes(1000)))
        assert incoming.bytes <= 10_000
    for wrong in (part(200, 0, 1 << 60, b"x"), part(201, 0, 100, bytes(1000))):
        with pytest.raises(LimitError, match="are the most"):
            incoming.take(wrong)
    for wrong in (part(202, 9, 9, b"x"), part(203, 0, 0, b"x"), part(204, 0, 2, b"")):
        with pytest.raises(DecodeError):
            incoming.take(wrong)
    incoming.take(part(300, 0, 3, b"abc"))
    with pytest.raises(DecodeError, match="in 4 parts, and in 3"):
        incoming.take(part(300, 1, 4, b"abc"))
    assert incoming.take(part(301, 0, 1, b"whole"))[1] == b"whole"
    answer, again = incoming.take(part(301, 0, 1 << 60, b"whole"))
    assert again is None
    assert len(answer) < 8


# -- pacing ---------------------------------------------------------------------------------------


def test_no_more_goes_at_once_than_a_burst_and_no_faster_than_the_rate() -> None:
    pace = Pace(rate=100_000, burst=5000, datagram=1000)
    pace.take(0)
    for k in range(100):
        pace.add(bytes((k,)) * 900)
    first = pace.take(1)
    assert 5000 <= sum(map(len, first)) <= 6000
    assert pace.take(1) == []
    due = pace.due(1)
    assert due is not None
    assert pace.take(due - 1) == []
    assert len(pace.take(due)) == 1
    sent = sum(len(one) for now in range(0, NS, 10 * MS) for one in pace.take(now + due))
    assert sent == pytest.approx(85_000, abs=6000) or pace.due(NS) is None


def test_small_packets_share_a_datagram_and_urgent_ones_go_first() -> None:
    pace = Pace(rate=1 << 20, burst=1 << 16, datagram=300)
    for k in range(10):
        pace.add(bytes((k,)) * 50)
    pace.add(b"urgent", urgent=True)
    pace.add(bytes((3,)) * 50)  # waits already
    datagrams = pace.take(0)
    assert all(len(one) <= 300 for one in datagrams)
    assert len(datagrams) == 2
    found = [one for datagram in datagrams for one in packets.packets(datagram)]
    assert found == [b"urgent", *(bytes((k,)) * 50 for k in range(10))]
    assert pace.bytes == 0


def test_a_queue_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("antecede.live.datagrams.pacing.MOST_QUEUED", 1000)
    pace = Pace(rate=1 << 20, burst=1 << 16, datagram=300)
    for k in range(20):
        pace.add(bytes((k,)) * 100)
    assert (pace.bytes, pace.dropped) == (1000, 10)


# -- agreement ------------------------------------------------------------------------------------


class Table:
    """Members who agree over a bad network; each wants something."""

    def __init__(self, seed: int, count: int, loss: float) -> None:
        self.draw, self.loss, self.now = random.Random(seed), loss, 0
        self.deaf: set[int] = set()
        self.reached = {k: self.draw.randrange(10) for k in range(count)}
        self.done: dict[int, list[Step]] = {k: [] for k in range(count)}
        self.parts = {k: self._part(k, count) for k in range(count)}
        self.under_way: list[tuple[int, int, int, bytes]] = []

    def _part(self, me: int, count: int) -> Agreement:
        return Agreement(
            *(me, 0, range(count), count),
            reached=lambda number: self.reached[me],
            hears=lambda number: number not in self.deaf,
            again_ns=50 * MS,
        )

    def run(self, wants: dict[int, Callable[[Agreement], None]], end_ns: int) -> None:
        """Let everybody want something, again while it has not happened."""
        while self.now < end_ns:
            self.now += 10 * MS
            for k, part in self.parts.items():
                if k in self.deaf:
                    continue
                if part.attempt is None and k in wants:
                    wants[k](part)
                part.tick(self.now)
                self._post(k, part)
            due = [one for one in self.under_way if one[0] <= self.now]
            self.under_way = [one for one in self.under_way if one[0] > self.now]
            for _, source, target, packet in due:
                if target not in self.deaf:
                    part = self.parts[target]
                    part.receive(source, Reader(packet, 1), self.now)
                    self._post(target, part)
            for k, part in self.parts.items():  # as HAVE does
                other = self.parts[self.draw.choice([*self.parts])]
                if (
                    k not in self.deaf
                    and other.me not in self.deaf
                    and part.changes > other.changes
                ):
                    part.tell(other.me, other.changes)
                self.done[k] += part.fresh
                part.fresh.clear()

    def _post(self, source: int, part: Agreement) -> None:
        for target, packet in part.out:
            if self.draw.random() >= self.loss:
                when = self.now + self.draw.randrange(1, 60) * MS
                self.under_way.append((when, source, target, packet))
        part.out.clear()


@pytest.mark.parametrize("seed", range(30))
def test_all_make_the_same_changes_in_one_order(seed: int) -> None:
    table = Table(seed, 5, loss=0.3)

    def joining(k: int) -> Callable[[Agreement], None]:
        def want(part: Agreement) -> None:
            lane = f"guest{k}~00000000"
            if not any(one.lane == lane for one in table.done[k]):
                part.want(Step(ChangeKind.LEFT, lane, sponsor=k), table.now)

        return want

    table.run({k: joining(k) for k in range(5)}, 60 * NS)
    first = table.done[0]
    assert sorted({one.sponsor for one in first}) == [0, 1, 2, 3, 4]
    assert len(first) == 5
    assert all(done == first for done in table.done.values())


@pytest.mark.parametrize("seed", range(20))
def test_who_is_put_out_has_the_last_number_that_anybody_has(seed: int) -> None:
    table = Table(seed, 5, loss=0.3)
    table.deaf = {2, 4}

    def want(part: Agreement) -> None:
        if not table.done[part.me]:
            part.want(Step(ChangeKind.PUT_OUT, "a~00000000", "silent"), table.now, {2, 4})

    table.run(dict.fromkeys((0, 1, 3), want), 20 * NS)
    last = max(table.reached[k] for k in (0, 1, 3))
    for k in (0, 1, 3):
        [step] = table.done[k]
        assert step.last == {2: last, 4: last}
        assert table.parts[k].members == {0, 1, 3}
        assert not table.parts[k].frozen


def test_nobody_is_put_out_whom_somebody_hears_unless_by_hand() -> None:
    table = Table(1, 3, loss=0)
    step = Step(ChangeKind.PUT_OUT, "a~00000000", "why")
    table.parts[0].want(step, 0, {2})
    table.run({}, 5 * NS)
    assert not table.done[1]
    table.parts[0].give_up()
    table.parts[0].want(step, table.now, {2}, by_hand=True)
    table.run({}, 10 * NS)
    assert [one.kind for one in table.done[1]] == [ChangeKind.PUT_OUT]


def test_less_than_a_quorum_decides_nothing() -> None:
    table = Table(1, 4, loss=0)
    table.deaf = {0, 1}
    part = table.parts[2]
    assert not part.is_quorum({2, 3})
    assert part.is_quorum({0, 3})
    assert part.is_quorum({1, 2, 3})
    part.want(Step(ChangeKind.JOINED, "x~00000000", "h:1", 2), 0)
    table.run({}, 5 * NS)
    assert not any(table.done.values())


def test_a_step_is_read_as_it_was_written() -> None:
    step = Step(ChangeKind.PUT_OUT, "a~00000000", "why", 3, {1: 5, 7: 0})
    assert read_step(pack_step(step)) == step
    with pytest.raises(DecodeError, match="unknown kind"):
        read_step(b"\x07" + pack_step(step)[1:])


# -- settings -------------------------------------------------------------------------------------

BOUNDS = Bounds[Any](accuracy_s=0.001, least_s=0.01, most_s=1)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"order": "causal"}, "does not recover what is lost"),
        ({"order": "reply"}, "does not recover what is lost"),
        ({"order": "no such"}, "does not recover what is lost"),
        ({"options": {}}, '"recovering": True'),
        ({"options": {**RECOVERING, "colour": 1}}, "no option 'colour'"),
        ({"order": "linear", "options": {"bounds": BOUNDS}}, "with retry_s alone"),
        ({"order": "linear", "options": {"retry_s": 1.0}}, "needs bounds"),
        (
            {"order": "linear", "options": {"retry_s": 1.0, "bounds": Bounds(clocks={"a": 1})}},
            "single members",
        ),
        (
            {"order": "linear", "options": {"retry_s": 1.0, "bounds": BOUNDS, "buffer_limit": 5}},
            "buffer_limit",
        ),
        (
            {"order": "linear", "options": {"retry_s": 1.0, "bounds": BOUNDS, "heartbeat_s": None}},
            "null messages",
        ),
        (
            {"order": "linear", "options": {"retry_s": 1.0, "bounds": BOUNDS, "keep": 100}},
            "twice the window",
        ),
        ({"datagram": 100}, "datagram is 256 to 65000"),
        ({"burst": 500}, "burst is at least a datagram"),
        ({"largest": 1 << 24}, "half of reassembly"),
        ({"put_out_ns": 5}, "at least silence_s="),
        ({"silence_ns": 5}, "above heartbeat_s="),
        ({"window": 0}, "window= is above 0"),
    ],
)
def test_settings_that_cannot_be_are_refused(more: dict[str, Any], why: str) -> None:
    with pytest.raises(LocalError, match=why):
        DatagramSettings(**{"options": RECOVERING, **more})


def test_fingerprints_differ_by_what_all_must_give_alike_alone() -> None:
    def tags(**more: Any) -> tuple[bytes, bytes]:
        options = {"retry_s": 1.0, "bounds": BOUNDS, **more}
        return DatagramSettings(order="linear", options=options).tags()

    assert tags() == tags(keep=5000)  # each member's own
    assert tags() != tags(retry_s=2.0)


# -- nodes ----------------------------------------------------------------------------------------


def group(count: int = 3, **more: Any) -> LossyNetwork:
    """Return a network without faults in which so many members are in a group."""
    network = LossyNetwork(1, Weather())
    made = DatagramSettings(**{"room": "r", "options": RECOVERING, **more})
    for k in range(count):
        network.add("abcdefgh"[k], "abcdefgh"[k], made)
    network.found("a")
    for name in list(network.hosts)[1:]:
        network.join(name, "a")
    network.run(2 * NS)
    assert all(len(host.node.membership.members) == count for host in network.hosts.values())
    return network


def said(network: LossyNetwork, name: str) -> list[bytes]:
    return [one.payload for one in network.hosts[name].events if isinstance(one, Message)]


def say(network: LossyNetwork, name: str, payload: bytes) -> Id:
    host = network.hosts[name]
    sent = host.node.say(payload)
    network.turn(host)
    return sent


def test_views_and_messages_reach_the_application() -> None:
    network = group()
    sent = say(network, "a", b"hi")
    say(network, "a", b"x" * 5000)
    network.run(network.now + NS)
    got = network.hosts["b"].events
    assert next(str(one.change) for one in got if isinstance(one, View)) == "b joined"
    messages = [one for one in got if isinstance(one, Message)]
    assert [one.payload for one in messages] == [b"hi", b"x" * 5000]
    assert messages[0].id == sent
    host = network.hosts["b"]
    host.node.membership.departures.leave(network.moment(host), 3 * NS)
    network.run(network.now + 2 * NS)
    assert host.node.membership.departures.over
    last = [one for one in network.hosts["c"].events if isinstance(one, View)][-1]
    assert (str(last.change), last.members) == ("b left", ("a", "c"))
    with pytest.raises(PeerError, match="out of the group"):
        host.node.say(b"more")


def test_who_is_put_out_learns_it_and_the_others_go_on() -> None:
    network = group()
    a = network.hosts["a"].node
    lane = network.hosts["c"].node.lane
    a.membership.departures.put_out(lane, "a test")
    with pytest.raises(LocalError, match="not another member"):
        a.membership.departures.put_out(a.lane, "oneself")
    network.run(network.now + NS)
    assert network.hosts["c"].node.membership.out == "put out of the group: a test"
    assert lane not in a.membership.members
    say(network, "b", b"still here")
    network.run(network.now + NS)
    assert said(network, "a") == [b"still here"]
    assert said(network, "c") == []


def test_of_who_is_to_be_put_out_nothing_is_taken_meanwhile() -> None:
    network = group()
    a, c = network.hosts["a"].node, network.hosts["c"].node
    agreement, number = a.membership.agreement, a.membership.numbers[c.lane]
    assert agreement is not None
    b = a.membership.numbers[network.hosts["b"].node.lane]
    about = b"\x00" + varint(agreement.changes) + b"\x01" + varint(b) + b"\x01\x01"
    agreement.receive(b, Reader(about + varint(number)), 1)  # b asks for the promise, by hand
    assert agreement.frozen == {number}
    say(network, "c", b"too late, or early")
    network.run(network.now + 300 * MS)
    assert said(network, "a") == []
    assert said(network, "b") == [b"too late, or early"]
    network.run(network.now + 5 * NS)  # b never goes on; a change that changes nothing ends it
    assert said(network, "a") == [b"too late, or early"]
    assert not agreement.frozen
    assert set(a.membership.members) == {host.node.lane for host in network.hosts.values()}


def test_what_is_held_without_a_gap_counts_as_reached() -> None:
    network = group()
    network.cut("b", "a", one_way=True)
    say(network, "b", b"cause")
    network.run(network.now + 40 * MS)
    say(network, "c", b"effect")
    network.run(network.now + 40 * MS)
    a, c = network.hosts["a"].node, network.hosts["c"].node
    number = a.membership.numbers[c.lane]
    assert said(network, "a") == []
    assert a.reached().get(c.lane, 0) == 0
    assert a.membership.departures.reached(number) == 1


@pytest.mark.parametrize("order", ["linear", "linear-physical"])
def test_what_a_dead_member_gave_to_one_all_get(order: str) -> None:
    options = {"retry_s": 0.2, "heartbeat_s": 0.2, "bounds": BOUNDS}
    network = group(order=order, options=options, put_out_ns=2 * NS)
    network.cut("c", "a", one_way=True)
    say(network, "c", b"last words")
    network.run(network.now + 40 * MS)
    network.crash("c")
    network.run(network.now + 6 * NS)
    assert said(network, "a") == said(network, "b") == [b"last words"]
    assert network.hosts["b"].node.handed_on == 1
    for name in "ab":
        host = network.hosts[name]
        assert [str(one.change) for one in host.events if isinstance(one, View)][-1] == (
            "c was put out: silent"
        )
        assert not [one for one in host.events if isinstance(one, GivenUp)]


def test_a_copy_for_a_newcomer_is_no_copy_for_others() -> None:
    options = {"retry_s": 0.2, "heartbeat_s": 0.2, "bounds": BOUNDS}
    network = group(order="linear", options=options)
    network.cut("c", "a", one_way=True)
    say(network, "c", b"lost")
    network.run(network.now + 40 * MS)
    late = network.add("late", "late", network.hosts["a"].node.settings)
    network.join("late", "b")
    network.run(network.now + 1500 * MS)
    assert late.node.group is not None
    say(network, "c", b"for the newcomer too")
    network.run(network.now + 40 * MS)
    a, c, x = network.hosts["a"].node, network.hosts["c"].node, late.node
    assert x.kept[c.lane].keys() == {2}
    change = Change(ChangeKind.LEFT, c.lane)
    a.membership.departures.closing[c.lane] = Closing(change, 2, 1 << 62, told=False)
    copy = packets.packet(packets.HANDED, block(c.lane.encode()), varint(2), x.kept[c.lane][2])
    a.receive(a.routes[x.lane].number, block(copy), network.moment(network.hosts["a"]))
    assert a.refused["another's copy"] == 1
    assert a.membership.departures.reached(a.membership.numbers[c.lane]) == 0


def test_a_member_that_does_not_keep_up_stops_the_others_until_it_is_put_out() -> None:
    network = group(window=10, pending=1000, put_out_ns=2 * NS)
    network.crash("c")
    node = network.hosts["a"].node
    for k in range(100):
        say(network, "a", b"%02d" % k) if node.waiting_bytes < 100 else None
    assert not node.has_room
    assert node.newest < 15
    for _ in range(1000):
        if node.waiting_bytes + 500 > 1000:
            break
        node.say(bytes(400))
    with pytest.raises(PeerError, match="pending=1000"):
        node.say(bytes(900))
    network.run(network.now + 6 * NS)
    assert node.has_room
    assert not node.waiting_bytes
    assert said(network, "b")[:2] == [b"00", b"01"]


def test_an_application_that_is_behind_is_not_told_of_as_further() -> None:
    network = group(window=10)
    network.hosts["c"].node.behind = True
    for k in range(100):
        say(network, "a", b"%02d" % k)
        network.run(network.now + 10 * MS)
    assert not network.hosts["a"].node.has_room
    network.hosts["c"].node.behind = False
    network.run(network.now + 2 * NS)
    assert len(said(network, "c")) == 100


@pytest.mark.parametrize(
    ("more", "differs"),
    [({"room": "other"}, "room"), ({"options": {**RECOVERING, "retry_s": 3.0}}, "options")],
)
def test_whoever_is_of_another_group_is_not_let_in(more: dict[str, Any], differs: str) -> None:
    network = group()
    other = DatagramSettings(**{"room": "r", "options": RECOVERING, **more})
    host = network.add("x", "x", other)
    network.join("x", "a")
    network.run(network.now + NS)
    assert host.node.group is None
    assert f"its {differs}= differs" in host.node.last_refusal
    with pytest.raises(MismatchError, match="speaks as"):
        network.hosts["a"].node.check(network.hosts["b"].node.hello(b""), "mallory")


def test_of_two_groups_founded_apart_none_lets_the_other_in() -> None:
    one, other = group(2), DatagramSettings(room="r", options=RECOVERING)
    node = DatagramNode("z", other, b"seed", "z")
    node.found(b"12345678", Moment(1, 1))
    with pytest.raises(MismatchError, match="founded apart"):
        one.hosts["a"].node.check(node.hello(b""), "z")


def every_packet(network: LossyNetwork) -> Iterator[bytes]:
    """Yield packets of each kind, as they were really sent."""
    node = network.hosts["a"].node
    lane = network.hosts["b"].node.lane
    yield packets.pack_have(packets.Have(3, 5, 7, 9, {0: 1, 1: 2}))
    yield packets.packet(packets.JOIN, block(b"h:1"))
    yield packets.packet(packets.REFUSED, block(b"no"))
    yield packets.packet(packets.WANT, block(lane.encode()), varint(1), varint(5))
    yield packets.packet(packets.HOLDS, block(lane.encode()), b"\x01\x01\x01")
    yield packets.packet(packets.PART, varint(1), varint(0), varint(2), b"part")
    yield packets.packet(packets.PARTS, varint(1), b"\x01")
    assert node.group is not None
    welcome = packets.Welcome(b"12345678", node.group.snapshot(), 3, {0: (lane, "h:1")}, 4)
    yield packets.pack_welcome(welcome)
    wire = bytes(node.group.post(b"\x01\x01\x01x", now_ns=1)[0].wire)
    yield packets.packet(packets.FRAME, varint(1), wire)
    yield packets.packet(packets.HANDED, block(lane.encode()), varint(1), wire)
    step = pack_step(Step(ChangeKind.PUT_OUT, lane, "x", 0, {0: 4}))
    for kind in range(7):
        yield packets.packet(packets.AGREE, bytes((kind,)), varint(3), b"\x09\x01", step)


@cache
def victim() -> tuple[LossyNetwork, list[bytes]]:
    network = group()
    return network, [*every_packet(network)]


@settings(max_examples=400, deadline=None)
@given(
    base=st.integers(0, 40),
    noise=st.binary(max_size=80),
    at=st.integers(0, 4000),
    more=st.binary(max_size=6),
    cut=st.integers(0, 4),
    framed=st.booleans(),
)
def test_no_bytes_of_a_member_make_a_node_fail(
    base: int, noise: bytes, at: int, more: bytes, cut: int, framed: bool
) -> None:
    """A member may lie about members, as the page says; nothing raises, nothing else is held."""
    network, known = victim()
    node = network.hosts["a"].node
    session = node.routes[network.hosts["c"].node.lane].number
    packet = known[base] if base < len(known) else noise
    at %= len(packet) + 1
    changed = packet[:at] + more + packet[at + cut :]
    node.receive(session, block(changed) if framed else changed, Moment(1, 1))
    node.tick(Moment(2, 2))
    assert all(one.incoming.bytes <= 16 << 20 for one in node.sessions.values())


def test_a_member_speaks_for_nobody_else() -> None:
    network = group()
    a, b = network.hosts["a"].node, network.hosts["b"].node
    assert b.group is not None
    wire = b.group.post(b"\x01\x01\x02hi", now_ns=network.now)[0].wire
    session = a.routes[network.hosts["c"].node.lane].number
    a.receive(session, block(packets.packet(packets.FRAME, varint(1), wire)), Moment(1, 1))
    assert not [one for one in a.delivered if not isinstance(one, View | GivenUp)]
    assert a.refused["MismatchError"] == 1
    assert "was announced" in a.last_refusal
