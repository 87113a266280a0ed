"""A chat over peers on this machine: what its views are told, what they ask for."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from antecede.errors import LocalError, PeerError
from antecede.live.chat.room import Room
from antecede.live.chat.session import Chat, HeldNotice, News, Notice, Posted, RoomChanged
from antecede.live.peer import Peer
from tests.live import peer_control
from tests.live.chat.people import PATIENT, People, people
from tests.live.loops import until
from tests.live.observation import observe, put_out


def told(chat_of: People, name: str) -> list[News]:
    found: list[News] = []
    chat_of[name].attach(found.append)
    return found


def texts(room: People, name: str) -> list[str]:
    return [one.text for one in room[name].room.posts.values()]


async def test_words_and_answers_under_each_ones_own_numbers() -> None:
    async with people("alice", "bob") as room:
        news = told(room, "alice")
        await room["bob"].say("mine first")
        await until(lambda: texts(room, "alice") == ["mine first"])
        post = await room["alice"].say("lunch?")
        await until(lambda: "lunch?" in texts(room, "bob"))
        answer = await room["bob"].say("yes", 2)
        await until(lambda: len(texts(room, "alice")) == 3)
        got = room["alice"].room.post(3)
        assert (got.id, got.parent, got.mine) == (answer.id, post.id, False)
        assert [one.post.text for one in news if isinstance(one, Posted)] == [
            *("mine first", "lunch?", "yes")
        ]


async def test_a_held_answer_is_told_with_what_it_waits_for_and_comes_when_asked_for() -> None:
    async with people("alice", "bob", "carol", **PATIENT) as room:
        news = told(room, "bob")
        go_on = room.stall("carol", "bob")
        await room["carol"].say("a question")
        await until(lambda: texts(room, "alice") == ["a question"])
        await room["alice"].say("an answer", 1)
        await until(lambda: [one for one in news if isinstance(one, HeldNotice)])
        [waiting] = room["bob"].room.held
        assert (waiting.sender, waiting.parent.sender) == ("alice", "carol")
        known = "requested from alice"
        await until(lambda: [one.why for one in room["bob"].room.held] == [known])
        assert not texts(room, "bob")
        assert room["bob"].request_missing() == "requested messages: those of carol from alice"
        await until(lambda: texts(room, "bob") == ["a question", "an answer"])
        assert room["bob"].room.post(2).waited_s > 0.2
        assert not room["bob"].room.held
        assert isinstance(news[-1], RoomChanged)
        go_on()
        assert room["bob"].request_missing() == "no reply is held, and no message is missing"


@pytest.mark.slow
async def test_an_answer_to_what_died_with_its_sender_is_marked() -> None:
    more = {**PATIENT, "repair_delay_s": 4.0}
    async with people("alice", "bob", "carol", "dan", **more) as room:
        for name in ("alice", "bob"):
            room.stall("dan", name)
        room.stall("carol", "bob")
        await room["dan"].say("last words")
        await until(lambda: texts(room, "carol") == ["last words"])
        await room["carol"].say("what do you mean?", 1)
        await until(lambda: room["alice"].room.held)
        for name in ("carol", "dan"):
            peer_control.abort_connections(room[name].peer)
            await room[name].peer.close()
        await until(lambda: [one for one in room["alice"].room.members if not one.here])
        [waiting] = room["alice"].room.held
        await until(
            lambda: (
                room["alice"].room.held[0].why
                == ("dan is disconnected; no connected member has it")
            )
        )
        for name in ("carol", "dan"):
            assert room["alice"].evict(name) == f"{name} is evicted"
        await until(lambda: texts(room, "alice") == ["what do you mean?"])
        post = room["alice"].room.post(1)
        assert (post.parent, post.lost) == (waiting.parent, True)
        await until(lambda: texts(room, "bob") == ["what do you mean?"])
        assert room["bob"].room.post(1).lost
        await room["bob"].say("we do not know", 1)
        await until(lambda: texts(room, "alice")[-1] == "we do not know")


def peer(name: str, **more: Any) -> Peer:
    return Peer(name, group_name="design", insecure=True, order="reply", **more)


async def test_a_newcomer_sees_what_was_said_and_answers_it() -> None:
    async with people("alice", "bob") as room:
        for k in range(5):
            await room["alice"].say(f"{k}", k or None)
        await until(lambda: len(texts(room, "bob")) == 5)
        carol = await room.add("carol", history=200)
        assert texts(room, "carol") == ["0", "1", "2", "3", "4"]
        assert all(one.earlier for one in carol.room.posts.values())
        assert carol.room.parent(carol.room.post(5)) == carol.room.post(4)
        await carol.say("to the third", 3)
        await until(lambda: texts(room, "bob")[-1] == "to the third")
        bob = room["bob"].room
        assert bob.parent(bob.post(6)) == bob.post(3)


async def test_a_newcomer_that_keeps_little_sees_the_newest_in_order() -> None:
    async with people("alice", "bob") as room:
        for k in range(8):
            await room["alice"].say(f"{k}")
        await room["alice"].say("to one", 2)
        async with peer("carol", history=3) as carol:
            await carol.join(room["alice"].peer.address)
            await room["alice"].say("new")
            await until(lambda: carol.history[-1].payload == b"new")
            chat = Chat(carol, Room("design", "carol"))
            chat.begin()
            running = asyncio.ensure_future(chat.run())
            await room["alice"].say("newer")
            await until(lambda: any(p.text == "newer" for p in chat.room.posts.values()))
            running.cancel()
            shown = [p.text for p in chat.room.posts.values()]
            assert shown == ["7", "to one", "new", "newer"]


async def test_who_takes_the_place_of_a_former_life_says_so() -> None:
    async with people("bob") as room, peer("alice") as former, peer("alice") as again:
        told: list[News] = []
        await former.join(room["bob"].peer.address)
        await again.join(room["bob"].peer.address)
        chat = Chat(again, Room("design", "alice"))
        chat.begin()
        chat.attach(told.append)
        running = asyncio.ensure_future(chat.run())
        await until(lambda: observe(former).end_reason)
        assert observe(former).end_reason == "another incarnation of alice has started"
        text = "this incarnation has replaced another one of alice"
        await until(lambda: any(isinstance(n, Notice) and text in n.text for n in told))
        running.cancel()


async def test_of_two_that_come_at_once_the_one_that_stays_alone_says_so() -> None:
    async with people("bob") as room, peer("alice") as one, peer("alice") as two:
        alices, heard = (one, two), dict[str, list[News]]()
        learning = [peer_control.join_beside_others(alice) for alice in alices]
        await asyncio.gather(*(x.join(room["bob"].peer.address) for x in alices))
        running = []
        for alice in alices:
            chat = Chat(alice, Room("design", "alice"))
            chat.begin()
            chat.attach(heard.setdefault(alice.status().sender_id, []).append)
            running.append(asyncio.ensure_future(chat.run()))
        lanes = {x.status().sender_id for x in alices}
        await until(lambda: all(lanes <= observe(x).members.keys() for x in alices))
        await asyncio.sleep(0.3)
        assert not any(heard.values())
        for learn in learning:
            learn()
        stays, goes = sorted(alices, key=lambda x: x.status().sender_id, reverse=True)
        await until(lambda: observe(goes).end_reason == "another incarnation of alice has started")
        await until(lambda: any("has replaced" in str(n) for n in heard[stays.status().sender_id]))
        assert not any("has replaced" in str(n) for n in heard[goes.status().sender_id])
        assert not observe(stays).end_reason
        for task in running:
            task.cancel()


async def test_who_comes_goes_and_is_away() -> None:
    async with people("alice", "bob") as room:
        news = told(room, "alice")
        carol = await room.add("carol")
        await until(lambda: Notice("carol joined") in news)
        await carol.peer.leave()
        await until(lambda: Notice("carol left") in news)
        await room["bob"].peer.close()
        await until(lambda: Notice("bob is disconnected") in news)
        assert room["alice"].evict("bob") == "bob is evicted"
        await until(lambda: Notice("bob was evicted: requested by alice") in news)
        assert [one.name for one in room["alice"].room.members] == ["alice"]


async def test_what_cannot_be_said_is_a_sentence_and_sends_nothing() -> None:
    async with people("alice") as room:
        alice = room["alice"]
        with pytest.raises(LocalError, match="70,000 bytes was not sent; the limit is 65,536"):
            await alice.say("x" * 70_000)
        with pytest.raises(LocalError, match="the room has no messages yet"):
            await alice.say("x", 1)
        with pytest.raises(LocalError, match="is empty"):
            await alice.say(" \n ")
        with pytest.raises(LocalError, match="unknown member"):
            alice.evict("alice")
        assert not texts(room, "alice")
        put_out(alice.peer, "for the test")
        with pytest.raises(PeerError, match="for the test"):
            await alice.say("x")


async def test_what_is_shown_as_said_survives_a_crash(tmp_path: Path) -> None:
    async with people("alice", store=tmp_path / "alice.db") as room:
        for k in range(3):
            post = await room["alice"].say(f"{k}")
            log = observe(room["alice"].peer).logs[post.id.sender_id]
            assert log.stored >= post.id.number


async def test_what_programs_send_is_shown_as_text() -> None:
    async with people("alice", "bob") as room:
        await room["bob"].peer.send(b"\xff\x00")
        await room["bob"].peer.send(b"x" * 70_000)
        await until(lambda: len(texts(room, "alice")) == 2)
        first, second = texts(room, "alice")
        assert first == "\ufffd\x00"
        assert second.endswith("[... 4,464 more bytes]")
