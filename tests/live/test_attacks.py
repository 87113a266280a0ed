"""What somebody with a sound certificate can do over TLS, and what not; `docs/design/trust.md`.

Each attack is followed by honest members talking: nothing of theirs is lost, forged or held up.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from antecede.core.clocks.encoding.wire import block, varint
from antecede.core.group.frames import format as frame
from antecede.errors import LimitError, PeerError
from antecede.live import batches, wire
from antecede.live.batches import Batch
from antecede.live.events import Change, ChangeKind
from antecede.live.lanes import SignedBatch
from antecede.live.ordering import Ordering
from antecede.live.peer import Peer
from antecede.live.settings import Settings
from tests.live import peer_control
from tests.live.attacker import Attacker, Line, honest, make_keys, peer, settled, talk
from tests.live.loops import take, until
from tests.live.observation import observe
from tests.live.peer_control import pause_writing, read_batch, watch_connection


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_keys(tmp_path_factory.mktemp("keys"))


@contextlib.asynccontextmanager
async def attacked(
    folder: Path, **more: Any
) -> AsyncIterator[tuple[Peer, Peer, Attacker, Line, Line]]:
    """Alice and Bob, and Mallory, who is a member and connected with both."""
    async with honest(folder, "alice", "bob", **more) as (alice, bob):
        mallory = Attacker(folder)
        try:
            to_alice, to_bob = await mallory.join(alice, bob)
            yield alice, bob, mallory, to_alice, to_bob
        finally:
            mallory.close()


# -- in another's name -----------------------------------------------------------------------------


@pytest.mark.parametrize("forgery", ["invented", "another number", "changed", "own seal"])
async def test_nobody_speaks_in_anothers_lane(folder: Path, forgery: str) -> None:
    async with attacked(folder) as (alice, bob, mallory, _, to_bob):
        await talk((alice, bob))
        lane = alice.status().sender_id
        await alice.send(b"the newest")
        await settled(alice, bob)
        newest = observe(alice).newest(lane)
        sealed = read_batch(alice, lane, newest)
        false = {
            "invented": SignedBatch(b"x" * 64, b"invented"),
            "another number": sealed,
            "changed": SignedBatch(sealed.seal, sealed.wire[:-1] + b"!"),
            "own seal": mallory.seal(newest + 1, sealed.wire),
        }[forgery]
        before = observe(bob).rejected.total()
        await to_bob.say(mallory.batch(lane, newest + 1, false))
        await until(lambda: observe(bob).rejected.total() > before)
        assert "invalid signature" in bob.status().last_rejection
        assert observe(bob).newest(lane) == newest
        assert [m.payload for m in await take(bob, 1)] == [b"the newest"]
        await talk((alice, bob))


async def test_nobody_greets_as_another(folder: Path) -> None:
    async with honest(folder, "alice", "bob") as (alice, bob):
        mallory = Attacker(folder)
        line = await mallory.call(bob)
        await line.say(mallory.hello(lane=alice.status().sender_id, group=observe(alice).group_id))
        assert "mallory uses the sender id alice" in await line.last_word()
        await talk((alice, bob))


async def test_a_lane_is_shown_by_its_owner_alone(folder: Path) -> None:
    async with attacked(folder) as (alice, bob, mallory, _, to_bob):
        lane = "carol~00000000"
        own = mallory.seals.owner(mallory.lane)
        before = observe(bob).rejected.total()
        await to_bob.say(wire.pack_frame(wire.SIGNER, block(lane.encode()), own))
        await until(lambda: observe(bob).rejected.total() > before)
        assert "has the certificate of mallory" in bob.status().last_rejection
        await talk((alice, bob))


# -- what was said before, or elsewhere ------------------------------------------------------------


@pytest.mark.slow
async def test_what_comes_again_is_not_delivered_again(folder: Path) -> None:
    async with attacked(folder) as (alice, bob, mallory, _, to_bob):
        await talk((alice, bob))
        lane = alice.status().sender_id
        await alice.send(b"once")
        await settled(alice, bob)
        number = observe(alice).newest(lane)
        sealed = read_batch(alice, lane, number)
        mallory.say(b"mine")
        place = bob.status().delivered
        await to_bob.say(mallory.own(2), mallory.own(2))
        for _ in range(50):
            await to_bob.say(mallory.batch(lane, number, sealed), mallory.own(1))
        await until(lambda: bob.status().delivered >= place + 1)
        await talk((alice, bob))
        assert bob.status().delivered == place + 1 + 3
        await alice.leave(timeout_s=1)
        await until(lambda: "alice" not in bob.members)
        await to_bob.say(mallory.batch(lane, number, sealed))
        await to_bob.say(wire.pack_frame(wire.PING, varint(7)))
        await to_bob.until(wire.PONG)
        assert bob.status().delivered == place + 4
        assert set(observe(bob).rejected) <= {"MismatchError"}, "alice, if she called once more"


@pytest.mark.parametrize("what", ["room", "order", "options", "group"])
async def test_another_rooms_or_groups_greeting_is_refused(folder: Path, what: str) -> None:
    setting = "group_name" if what == "room" else what
    async with honest(folder, "alice", "bob") as (alice, bob):
        mallory = Attacker(folder)
        line = await mallory.call(bob)
        other: dict[str, Any] = {what: "fifo" if what == "order" else b"8 others"}
        await line.say(mallory.hello(**other))
        word = await line.last_word()
        assert (
            "bootstrapped separately" in word
            if what == "group"
            else f"its {setting}= differs" in word
        )
        assert alice.members == bob.members == ("alice", "bob")
        await talk((alice, bob))


# -- too long, too slow, too many ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "size", "greeted"),
    [
        (wire.HELLO, wire.MAX_FIRST + 1, False),
        (wire.BATCH, wire.MAX_FRAME + 1, True),
        (wire.BATCH, 2**40, True),
    ],
)
async def test_a_frame_too_long_is_refused_by_its_length(
    folder: Path, kind: int, size: int, greeted: bool
) -> None:
    async with honest(folder, "alice", "bob") as (alice, bob):
        mallory = Attacker(folder)
        line = (await mallory.join(bob))[0] if greeted else await mallory.call(bob)
        await line.say(varint(size) + bytes((kind,)))
        assert "frame" in await line.last_word()
        assert observe(bob).rejected["LimitError"] == 1
        await talk((alice, bob))
        mallory.close()


def another_number(mallory: Attacker) -> bytes:
    mallory.say(b"two"), mallory.say(b"three")
    return mallory.batch(mallory.lane, 2, mallory.seal(2, mallory.sealed(3).wire))


def another_room(mallory: Attacker) -> bytes:
    mallory.say()
    parts = mallory.parts(2)
    raw = frame.pack(parts._replace(room=parts.room ^ 1))
    return mallory.batch(mallory.lane, 2, mallory.seal(2, raw))


def gap(mallory: Attacker) -> bytes:
    mallory.say(b"two"), mallory.say(b"three")
    return mallory.own(3)


def too_many_lanes(mallory: Attacker) -> bytes:
    return wire.pack_names([f"y~{k:08}" for k in range(wire.MAX_LANES)])


def too_long(kind: int, mallory: Attacker) -> bytes:
    return wire.pack_frame(kind, bytes(wire.MAX_CONTROL + 1))


SHORT = wire.ACK, wire.NAK, wire.TRUNCATED, wire.PING, wire.SIGNER, wire.BYE
WRONG = {
    "message 2 of": another_number,
    "another room": another_room,
    "after batch 1": gap,
    "sender ids on a connection": too_many_lanes,
    **{f"frame of kind {kind}": partial(too_long, kind) for kind in SHORT},
}


@pytest.mark.parametrize(("words", "wrong"), WRONG.items(), ids=WRONG)
async def test_a_frame_that_cannot_be_ends_the_link_and_holds_up_nothing(
    folder: Path, words: str, wrong: Callable[[Attacker], bytes]
) -> None:
    async with attacked(folder) as (alice, bob, mallory, _, to_bob):
        await to_bob.say(wrong(mallory))
        assert words in await to_bob.last_word()
        assert observe(bob).newest(mallory.lane) == 1
        await talk((alice, bob))


@pytest.mark.slow
async def test_bytes_that_drip_hold_up_nobody(folder: Path) -> None:
    async with honest(folder, "alice", "bob", handshake_timeout_s=0.6) as (alice, bob):
        mallory = Attacker(folder)
        (member,) = await mallory.join(bob)
        mallory.say(b"in drops")
        slow, dripping = await mallory.call(bob), True

        async def drip(line: Line, data: bytes) -> None:
            for k in range(len(data)):
                if not dripping:
                    return
                await line.say(data[k : k + 1])
                await asyncio.sleep(0.02)

        whole = mallory.own(2)
        before = asyncio.create_task(drip(slow, mallory.hello(lane="mallory~11111111")))
        amid = asyncio.create_task(drip(member, whole))
        assert await slow.last_word() == "no HELLO in time"
        await talk((alice, bob))
        await amid
        await until(lambda: observe(bob).newest(mallory.lane) == 2)
        dripping = False
        await before
        mallory.close()


async def test_connections_that_never_greet_are_bounded(folder: Path) -> None:
    async with honest(folder, "alice", "bob", handshake_timeout_s=30) as (alice, bob):
        mallory = Attacker(folder)
        for _ in range(peer_control.SILENT + 20):
            await mallory.call(bob)
        await until(lambda: observe(bob).rejected["LimitError"] >= 20)
        silent = [one for one in peer_control.observe_connections(bob) if not one.is_greeted]
        assert len([one for one in silent if not one.is_closing]) <= peer_control.SILENT
        carol = Attacker(folder, name="carol")
        await carol.join(bob, alice)
        await talk((alice, bob))
        carol.close()
        mallory.close()


@pytest.mark.slow
async def test_lives_of_one_member_are_connected_a_few_at_a_time(folder: Path) -> None:
    async with honest(folder, "alice", "bob") as (alice, bob):
        some = [Attacker(folder, f"{k:08}") for k in range(12)]
        for one in some:
            one.group_tag = observe(bob).group_id
            line = await one.call(bob)
            await line.say(one.hello(frontier={f"x~{k:08}": 5 for k in range(200)}))
            await line.until(wire.ACK)
        await until(lambda: len(observe(bob).connected) <= 1 + peer_control.OF_ONE_NAME)
        assert len(observe(bob).acknowledged) <= 1 + peer_control.OF_ONE_NAME
        await talk((alice, bob))
        for one in some:
            one.close()
        await until(lambda: len(observe(bob).acknowledged) == 1)


# -- bombs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["nested", "long", "no group"])
async def test_a_newcomer_refuses_a_welcome_that_cannot_be(folder: Path, what: str) -> None:
    one = Attacker(folder)

    async def sponsor(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = Line(reader, writer)
        await line.until(wire.HELLO)
        invitation = {
            "nested": b"\x08\x01" * 500_000,
            "long": varint(2**60) * 1000,
            "no group": b"",
        }[what]
        welcome = wire.JoinReply(b"8" * 8, invitation, {}, {one.lane: ""}, (), {}, b"\0")
        await line.say(one.hello(group=b"8" * 8), wire.pack_join_reply(welcome))
        await line.until(-1)
        writer.close()

    server = await asyncio.start_server(sponsor, "127.0.0.1", 0, ssl=one.tls.server())
    port = server.sockets[0].getsockname()[1]
    async with peer(folder, "carol") as carol:
        with pytest.raises(Exception, match=r"cannot join the group at"):
            await carol.join(f"127.0.0.1:{port}", timeout_s=1)
        assert not carol.members
    server.close()


async def test_a_welcome_that_nobody_asked_for_is_refused(folder: Path) -> None:
    async with peer(folder, "carol") as carol:
        mallory = Attacker(folder)
        line = await mallory.call(carol)
        welcome = wire.JoinReply(b"8" * 8, b"", {}, {mallory.lane: ""}, (), {}, b"\0")
        await line.say(mallory.hello(group=b"8" * 8), wire.pack_join_reply(welcome))
        assert "not asked" in await line.last_word()
        assert not carol.members


# -- false causes ----------------------------------------------------------------------------------


@pytest.mark.parametrize("cause", ["what is to come", "a stranger", "itself"])
async def test_false_causes_hold_up_nobody_else(folder: Path, cause: str) -> None:
    async with attacked(folder) as (alice, bob, mallory, to_alice, to_bob):
        for _ in range(20):
            mallory.say(b"held for ever")
        false_cause = {
            "what is to come": (alice.status().sender_id, 10**9),
            "a stranger": ("nobody~00000000", 1),
            "itself": (mallory.lane, 2),
        }[cause]
        for line in (to_alice, to_bob):
            false = mallory.seal_with_cause(2, false_cause)
            await line.say(mallory.batch(mallory.lane, 2, false))
            await line.say(*(mallory.own(k) for k in range(3, 21)))
        await until(lambda: all(observe(one).newest(mallory.lane) == 20 for one in (alice, bob)))
        await talk((alice, bob))
        for one in (alice, bob):
            assert one.status().held <= 20
            assert one.status().delivered == 3, "nothing of Mallory's is delivered"


async def test_lives_of_others_are_not_believed(folder: Path) -> None:
    async with attacked(folder) as (alice, bob, mallory, to_alice, to_bob):
        mallory.say(b"alice began anew")
        parts = mallory.parts(2)
        life = frame.Incarnation(1, 7, 2)
        raw = frame.pack(parts._replace(known=((alice.status().sender_id, life),)))
        for line in (to_alice, to_bob):
            await line.say(mallory.batch(mallory.lane, 2, mallory.seal(2, raw)))
        await until(lambda: all(observe(one).newest(mallory.lane) == 2 for one in (alice, bob)))
        await talk((alice, bob))
        await talk((alice, bob))
        assert not observe(alice).rejected.total() + observe(bob).rejected.total()


# -- floods ----------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_questions_whose_answers_are_not_read_end_the_link(folder: Path) -> None:
    async with attacked(folder) as (alice, bob, mallory, _, to_bob):
        look = watch_connection(bob, mallory.lane)
        pings = b"".join(wire.pack_frame(wire.PING, varint(2**62)) for _ in range(500))
        to_bob.pause_reading()
        for _ in range(20_000):
            to_bob.writer.write(pings)
            await asyncio.sleep(0)
            if look().is_closing:
                break
        await until(lambda: mallory.lane not in observe(bob).connected)
        assert "not read" in bob.status().last_rejection
        assert look().queued_frames <= peer_control.UNREAD + (1 << 18) // 12
        await talk((alice, bob))


async def test_asking_for_all_again_and_again_costs_what_it_reads(folder: Path) -> None:
    async with attacked(folder) as (alice, bob, mallory, _, to_bob):
        await talk((alice, bob))
        look = watch_connection(bob, mallory.lane)
        rows = [(place, 0) for place in range(len(mallory.names))]
        for _ in range(300):
            await to_bob.say(wire.pack_rows(wire.NAK, rows))
        await to_bob.say(wire.pack_frame(wire.PING, varint(7)))
        await to_bob.until(wire.PONG)
        assert look().relayed <= len(mallory.names)
        assert look().queued_frames < 400
        await talk((alice, bob))


@pytest.mark.slow
async def test_lanes_that_are_invented_are_not_asked_for_without_end(folder: Path) -> None:
    async with attacked(folder, repair_delay_s=0.1) as (alice, bob, mallory, _, to_bob):
        for start in range(0, 60_000, 5000):
            names = [f"y~{k:08}" for k in range(start, start + 5000)]
            first_place = len(mallory.names)
            mallory.names += names
            rows = [(first_place + k, 2**63) for k in range(5000)]
            await to_bob.say(wire.pack_names(names), wire.pack_rows(wire.ACK, rows))
        await until(lambda: peer_control.count_named_senders(bob) > peer_control.ASKED_STRANGERS)
        await asyncio.sleep(0.5)
        assert peer_control.count_named_senders(bob) <= peer_control.ASKED_STRANGERS + 10
        heard = observe(bob).acknowledged[mallory.lane]
        assert len(heard) <= peer_control.REPORTED_STRANGERS + 10
        await talk((alice, bob))
        look = watch_connection(alice, bob.status().sender_id)
        assert look().named <= peer_control.ASKED_STRANGERS + 10


async def test_lives_without_end_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_control.MAX_INCARNATIONS, 12)
    async with attacked(folder) as (alice, bob, *_):
        words = []
        for k in range(1, 20):
            one = Attacker(folder, f"{k:08}")
            line = await one.call(bob)
            await line.say(one.hello())
            kind, body = await line.frame()
            while kind not in (wire.JOIN_REPLY, wire.BYE, -1):
                kind, body = await line.frame()
            words.append(body.decode(errors="replace") if kind == wire.BYE else "")
            one.close()
        assert not any(words[:10])
        assert "has had 12 incarnations" in words[-1]
        assert len(observe(bob).admitted) <= 1
        assert peer_control.count_incarnations(bob) <= 14
        await talk((alice, bob))


def test_lives_that_begin_over_one_link_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings()

    def begun(lane: str, invitation: bytes = b"") -> Ordering:
        made = Ordering(lane, settings, lambda number, raw: b"", invitation)
        made.change(Change(ChangeKind.JOINED, lane))
        made.flush()
        return made

    ordering = begun("a~00000000")
    lanes = [f"m~{k:08}" for k in range(14)]
    firsts = [begun(one, ordering.invite(one).invitation).lanes.by_name[one] for one in lanes]
    monkeypatch.setattr(peer_control.MAX_INCARNATIONS, 12)
    for lane, first in zip(lanes[:12], firsts, strict=False):
        assert ordering.take(lane, 1, first.get(1))
    with pytest.raises(LimitError, match="has had 12 incarnations"):
        ordering.take(lanes[12], 1, firsts[12].get(1))
    assert len(ordering.members) == 13


async def test_saying_that_strangers_are_gone_is_bounded(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peer_control.MAX_EVICTED_STRANGERS, 50)
    async with attacked(folder) as (alice, bob, mallory, to_alice, to_bob):
        strangers = [f"y~{k:08}" for k in range(200)]
        mallory.announce(*(Change(ChangeKind.EVICTED, one, "no reason") for one in strangers))
        for line in (to_alice, to_bob):
            await line.say(mallory.own(2))
        await until(lambda: len(observe(bob).departed) == 50)
        carol = Attacker(folder, name="carol")
        await carol.join(bob, alice)
        await talk((alice, bob))
        assert len(observe(bob).departed) == 50
        carol.close()


async def test_changes_that_change_nothing_are_no_views(folder: Path) -> None:
    async with attacked(folder) as (alice, bob, mallory, _, to_bob):
        mallory.announce(*[Change(ChangeKind.JOINED, mallory.lane, "127.0.0.1:1")] * 500)
        before = observe(bob).undelivered_events
        await to_bob.say(mallory.own(2))
        await until(lambda: observe(bob).newest(mallory.lane) == 2)
        assert observe(bob).undelivered_events <= before + 1
        await talk((alice, bob))


# -- lies about oneself and others -----------------------------------------------------------------


async def test_one_word_puts_nobody_out(folder: Path) -> None:
    async with honest(folder, "alice", "bob", "carol") as (alice, bob, carol):
        mallory = Attacker(folder)
        lines = await mallory.join(alice, bob, carol)
        for line in lines:
            await line.say(wire.pack_frame(wire.BYE, b"evicted from the group: you are out"))
        await until(lambda: not any(mallory.lane in observe(p).connected for p in (alice, bob)))
        for one in (alice, bob, carol):
            line = await mallory.call(one)
            await line.say(mallory.hello(frontier={one.status().sender_id: 10**6}))
            await line.until(wire.NAK)
            await line.say(wire.pack_frame(wire.BYE, b"the store is an old copy: says mallory"))
            await line.until(-1)
        await talk((alice, bob, carol))
        assert not any(observe(one).end_reason for one in (alice, bob, carol))
        mallory.close()


async def test_a_stranger_with_a_certificate_puts_nobody_out(folder: Path) -> None:
    async with honest(folder, "alice", "bob") as (alice, bob):
        stranger = Attacker(folder, name="carol")
        for one in (alice, bob):
            line = await stranger.call(one)
            await line.say(wire.pack_frame(wire.BYE, b"evicted from the group: you are out"))
        await talk((alice, bob))
        assert not observe(alice).end_reason + observe(bob).end_reason


async def test_who_is_put_out_and_stays_is_not_heard(folder: Path) -> None:
    async with attacked(folder) as (alice, bob, mallory, _, to_bob):
        alice.evict("mallory", "a test")
        await until(lambda: bob.members == ("alice", "bob"))
        mallory.say(b"still here")
        await to_bob.say(mallory.own(2))
        await until(lambda: mallory.lane not in observe(bob).connected)
        again = await mallory.call(bob)
        await again.say(mallory.hello(), wire.pack_names(mallory.names), mallory.own(2))
        assert "evicted from the group" in await again.last_word()
        await talk((alice, bob))


@pytest.mark.few(1)
@pytest.mark.parametrize("how", ["acknowledges nothing", "unknown member", "says what waits"])
async def test_who_makes_others_keep_much_is_sent_away_itself(
    folder: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peer_control.FALLBACK_BYTES, 1 << 20)
    more = {"max_memory_bytes": 1 << 20, "evict_slow_after_s": 1.0}
    async with honest(folder, "alice", "bob", **more) as (alice, bob):
        mallory = Attacker(folder)
        mallory.settings = alice.settings
        if how == "unknown member":
            mallory.group_tag = observe(bob).group_id
            line = await mallory.call(bob)
            await line.say(mallory.hello(frontier={f"y~{k:08}": 2**50 for k in range(9)}))
            await line.until(wire.ACK)
        else:
            _, line = await mallory.join(alice, bob)
        await until(lambda: mallory.lane in observe(bob).connected)
        draining = asyncio.create_task(line.until(-1))
        if how == "says what waits":
            for _ in range(40):
                mallory.say(bytes(100_000))
            for k in range(2, 42):
                false = mallory.seal_with_cause(k, (alice.status().sender_id, 10**9))
                await line.say(mallory.batch(mallory.lane, k, false))
        else:
            taking = asyncio.create_task(_take_up_to(alice, b"\x27"))
            for k in range(40):
                await bob.send(bytes([k]) * 100_000)
            await taking
        await until(lambda: mallory.lane not in observe(bob).connected)
        await until(lambda: bob.members == alice.members == ("alice", "bob"))
        assert not observe(alice).end_reason + observe(bob).end_reason
        await talk((alice, bob))
        draining.cancel()
        mallory.close()


async def _take_up_to(one: Peer, first: bytes) -> None:
    async for message in one:
        if message.payload[:1] == first:
            break


async def test_acknowledging_what_one_has_not_hurts_oneself(folder: Path) -> None:
    async with honest(folder, "alice", "bob") as (alice, bob):
        mallory = Attacker(folder)
        lines = await mallory.join(alice, bob)
        rows = [(place, 2**64 - 1) for place in range(len(mallory.names))]
        for line in lines:
            await line.say(wire.pack_rows(wire.ACK, rows))
        await talk((alice, bob))
        await talk((alice, bob))
        await until(lambda: not observe(alice).unacknowledged_by)
        await until(lambda: not observe(bob).logs[bob.status().sender_id].retained_bytes)
        await lines[1].say(wire.pack_rows(wire.NAK, [(k, 0) for k in range(len(rows))]))
        await talk((alice, bob))
        carol = Attacker(folder, name="carol")
        await carol.join(bob, alice)
        await talk((alice, bob))
        carol.close()
        mallory.close()


@pytest.mark.slow
async def test_who_does_not_read_is_not_waited_for(folder: Path) -> None:
    more = {"heartbeat_s": 0.1, "failure_timeout_s": 1.0}
    async with attacked(folder, **more) as (alice, bob, mallory, _, to_bob):
        to_bob.pause_reading()
        lane = bob.status().sender_id
        for _ in range(80):
            await bob.send(bytes(100_000))
        async for message in alice:
            if observe(bob).newest(lane) == observe(alice).newest(lane):
                assert message.payload
                break
        await until(lambda: mallory.lane not in observe(bob).connected)
        assert "mallory" in bob.members


async def test_who_says_otherwise_to_others_is_found_where_both_meet(folder: Path) -> None:
    async with attacked(folder) as (alice, bob, mallory, to_alice, to_bob):
        mallory.say(b"yes")
        yes = mallory.sealed(2)
        parts = frame.unpack("idr", yes.wire)
        raw = frame.pack(parts._replace(payload=batches.pack(Batch(1, [b"no"]))))
        no = mallory.seal(2, raw)
        await to_alice.say(mallory.batch(mallory.lane, 2, yes))
        await to_bob.say(mallory.batch(mallory.lane, 2, no))
        await until(lambda: all(observe(one).newest(mallory.lane) == 2 for one in (alice, bob)))
        assert [[m.payload for m in await take(one, 1)] for one in (alice, bob)] == [
            [b"yes"],
            [b"no"],
        ], "until then each has what it was told"
        carol = Attacker(folder, name="carol")
        carol.group_tag, carol.names = observe(bob).group_id, [mallory.lane]
        line = await carol.call(bob)
        handed_on = carol.batch(mallory.lane, 2, yes)
        await line.say(carol.hello(), wire.pack_names(carol.names), handed_on)
        await until(lambda: observe(bob).equivocations)
        assert peer_control.find_equivocation(bob, mallory.lane) == (2, no, yes)
        assert observe(bob).rejected["ConflictError"] == 1
        assert carol.lane in observe(bob).connected, "who hands it on is not blamed"
        assert "proven faulty" in bob.status().last_rejection
        bob.evict("mallory", "it says otherwise to others")
        await until(lambda: alice.members == bob.members == ("alice", "bob"))
        await talk((alice, bob))


async def test_a_forged_contradiction_proves_nothing(folder: Path) -> None:
    async with attacked(folder) as (alice, bob, mallory, _, to_bob):
        await alice.send(b"said once")
        await settled(alice, bob)
        lane = alice.status().sender_id
        number = observe(bob).newest(lane)
        sealed = read_batch(bob, lane, number)
        false = SignedBatch(sealed.seal, sealed.wire[:-1] + b"!")
        await to_bob.say(mallory.batch(lane, number, false))
        await until(lambda: observe(bob).rejected["ConflictError"] == 1)
        assert "without proof" in bob.status().last_rejection
        assert not observe(bob).equivocations
        await talk((alice, bob))
        assert "alice" in bob.members


async def test_what_a_batch_says_of_others_is_not_heeded(folder: Path) -> None:
    async with attacked(folder) as (alice, bob, mallory, to_alice, to_bob):
        mallory.announce(
            Change(ChangeKind.LEFT, alice.status().sender_id),
            Change(ChangeKind.JOINED, "carol~00000000", "127.0.0.1:1"),
        )
        for line in (to_alice, to_bob):
            await line.say(mallory.own(2))
        await until(lambda: all(mallory.lane in observe(one).distrusted for one in (alice, bob)))
        assert alice.members == bob.members == ("alice", "bob", "mallory")
        await talk((alice, bob))
        mallory.say(b"nobody hears this")
        await to_bob.say(mallory.own(3))
        await until(lambda: observe(bob).newest(mallory.lane) == 3)
        await talk((alice, bob))


def test_numbers_of_messages_are_bounded() -> None:
    raw = batches.pack(Batch(batches.MAX_FIRST + 1, [b"x"]))
    with pytest.raises(Exception, match="invalid message number"):
        batches.unpack(raw)


# -- handed on after a restart ---------------------------------------------------------------------


async def test_who_was_restarted_from_its_store_can_hand_on_what_it_kept(
    folder: Path, tmp_path: Path
) -> None:
    stored = {"repair_delay_s": 0.2, "store": tmp_path / "bob.db"}
    bob = peer(folder, "bob", **stored)
    await bob.__aenter__()
    await bob.bootstrap()
    async with peer(folder, "alice") as alice, peer(folder, "carol", repair_delay_s=0.2) as carol:
        await alice.join(bob.address)
        await carol.join(bob.address)
        await settled(alice, bob, carol)
        lane = alice.status().sender_id
        pause_writing(alice, "carol")
        await alice.send(b"the last")
        await settled(alice, bob)
        await bob.flush()
        await until(lambda: observe(bob).logs[lane].stored == observe(alice).newest(lane))
        await alice.close()
        await bob.close()
        assert observe(carol).newest(lane) < observe(bob).newest(lane)
        async with peer(folder, "bob", listen=bob.address, **stored) as again:
            async with asyncio.timeout(20):
                assert [m.payload for m in await take(carol, 1)] == [b"the last"]
            for one in (carol, again):  # a call to whom one has called meanwhile is let go
                assert not observe(one).rejected.keys() - {"handshake"}
            await again.leave()


# -- another life ----------------------------------------------------------------------------------


async def test_who_is_replaced_is_told_by_its_next_life(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peer_control.EVICTION_VOTE_NS, 10**15)
    async with honest(folder, "alice", "bob", "carol", "mallory") as (alice, bob, *others):
        for one in others:
            await one.close()
        await until(
            lambda: not {one.status().sender_id for one in others} & observe(alice).connected
        )
        async with peer(folder, "alice") as again:
            await again.join(bob.address)
            await until(lambda: observe(alice).end_reason)
            assert observe(alice).end_reason == "another incarnation of alice has started"
            with pytest.raises(PeerError, match="out of the group: another incarnation of alice"):
                await alice.send(b"still here")
            assert again.members == bob.members == ("alice", "bob", "carol", "mallory")
            assert not observe(again).end_reason
            assert not observe(again).rejected.total()


@pytest.mark.parametrize("listens", [True, False])
async def test_who_is_replaced_is_told_why_by_the_others(folder: Path, listens: bool) -> None:
    where = "127.0.0.1:0" if listens else None
    async with (
        honest(folder, "bob", "carol") as (bob, carol),
        peer(folder, "alice", listen=where) as alice,
    ):
        await alice.join(carol.address)
        await until(lambda: len(observe(alice).connected) == 2)
        async with peer(folder, "alice") as again:
            peer_control.keep_quiet_to_replaced(again)
            await again.join(bob.address)
            await until(lambda: observe(alice).end_reason)
            assert observe(alice).end_reason == "another incarnation of alice has started"
