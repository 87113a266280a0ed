"""What a live peer's log says."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from antecede.errors import LimitError, StoreError
from antecede.live.diary import EVENTS, LogEntry, write
from antecede.live.peer import Peer
from antecede.live.settings import MAJORITY, NS, Settings
from antecede.live.store import PeerStore
from tests.live.loops import joined
from tests.live.memory_network import MemoryNetwork


def network(memory: int = 1 << 20, **settings: Any) -> MemoryNetwork:
    """Three members, of which a has a store and so much memory."""
    found = MemoryNetwork(1)
    found.add("a", Settings(max_memory_bytes=memory, **settings), durable=True)
    for name in "bc":
        found.add(name, Settings(**settings))
    found.meet("abc", at_once=True)
    return found


def list_logged(net: MemoryNetwork, name: str = "a") -> list[tuple[str, str | None]]:
    entries = net.log(name)
    assert all(one.event in EVENTS for one in entries)
    return [(one.event, one.fields.get("member")) for one in entries]


def test_who_comes_and_goes_is_said_once() -> None:
    net = network()
    net.run(4 * NS)
    entries = net.log("a")
    assert not any("again" in one.text for one in entries)
    found = [(one.event, one.fields["member"]) for one in entries]
    assert sorted(found) == [(e, m) for e in ("connected", "joined") for m in "bc"]
    assert list_logged(net) == []
    net.crash("b")
    net.run(net.now + NS)
    assert list_logged(net) == [("disconnected", "b")]
    net.evict("a", next(one for one in net.observe("a").members if one[0] == "b"))
    net.run(net.now + NS)
    assert list_logged(net) == [("departed", "b")]
    net.leave("c")
    net.run(net.now + NS)
    assert list_logged(net)[0] == ("departed", "c")


def test_who_ends_is_no_warning_but_who_is_long_unheard() -> None:
    net = network()
    net.run(4 * NS)
    list_logged(net)
    net.leave("c")
    net.crash("b")  # as one with a store that ends: the kernel closes its links
    net.run(net.now + 2 * NS)
    entries = net.log("a")
    assert {one.event for one in entries} == {"disconnected", "departed"}
    assert {one.level for one in entries} == {logging.INFO}
    net.run(net.now + 4 * NS)
    [entry] = net.log("a")
    assert (entry.event, entry.level) == ("unheard", logging.WARNING)
    assert entry.text.startswith("b is silent for 6.")
    net.run(net.now + 9 * NS)
    assert not net.log("a"), "it is said once"


def test_who_was_away_is_connected_again() -> None:
    net = network()
    net.run(4 * NS)
    list_logged(net)
    net.cut("c", "ab")
    net.run(net.now + 6 * NS)
    assert list_logged(net) == [("disconnected", "c"), ("unheard", "c")]
    net.heal()
    net.run(net.now + 3 * NS)
    assert [one.text for one in net.log("a")] == ["connected again to c"]


def test_what_was_refused_is_said_once_or_how_often() -> None:
    net, start = network(), 4 * NS
    net.run(start)
    list_logged(net)
    net.reject("a", "b", LimitError("too long"))
    [entry] = net.log("a")
    assert entry.text == "rejected once (LimitError), b: too long"
    for _ in range(2):
        net.reject("a", "b", LimitError("too long"))
    net.run(start + NS)
    assert not net.log("a")
    net.reject("a", "b", LimitError("too small"))
    net.run(start + 2 * NS)
    [entry] = net.log("a")
    assert entry.text == "rejected 3 times (LimitError), last: b: too small"
    for _ in range(2):
        net.reject("a", "b", LimitError("too long"))
    net.run(start + 301 * NS)
    [entry] = net.log("a")
    assert entry.text == "rejected 2 times (LimitError), last: b: too long"


def test_a_minority_says_that_it_stops_and_that_it_goes_on() -> None:
    net = network(partition=MAJORITY)
    net.run(4 * NS)
    list_logged(net, "c")
    net.cut("c", "ab")
    net.run(net.now + 8 * NS)
    events = {event for event, _ in list_logged(net, "c")}
    assert {"in_minority", "disconnected"} <= events
    net.heal()
    net.run(net.now + 8 * NS)
    assert {event for event, _ in list_logged(net, "c")} == {"connected", "in_majority"}


def test_who_lags_is_said_and_that_it_caught_up() -> None:
    net = network(memory=2000)
    net.run(4 * NS)
    list_logged(net)
    net.cut("c", "ab")
    for _ in range(35):
        net.say("a", bytes(100))
        net.run(net.now + NS // 10)
    assert ("lagging", "c") in list_logged(net)
    net.heal()
    net.run(net.now + 8 * NS)
    assert ("caught_up", "c") in list_logged(net)


def test_what_was_refused_is_said_with_how_often() -> None:
    net = network()
    net.run(4 * NS)
    list_logged(net)
    net.add("d", Settings(group_name="another"))
    net.start("d", join="a")
    net.run(net.now + NS)
    entries = {one.event: one for one in net.log("a")}
    refused = entries["rejected"]
    assert refused.fields["count"] == net.observe("a").rejected["MismatchError"] > 0
    assert refused.fields["reason"] == "MismatchError"
    assert "group_name" in refused.text


def test_words_of_others_cannot_forge_lines(caplog: pytest.LogCaptureFixture) -> None:
    entry = LogEntry("rejected", "x\n2026 CRITICAL all is lost \x1b[2J", {"reason": "x"})
    write(logging.getLogger("antecede.live"), "a", "r", entry)
    [record] = caplog.records
    assert record.message == "a: x?2026 CRITICAL all is lost ?[2J"
    assert vars(record)["antecede_event"] == "rejected"
    assert vars(record)["antecede_group_name"] == "r"


async def test_a_peer_writes_it_down(
    caplog: pytest.LogCaptureFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise StoreError("the disk is gone")

    caplog.set_level(logging.INFO, "antecede.live")
    more: dict[str, Any] = {"listen": "127.0.0.1:0", "insecure": True}
    async with joined(Peer("a", **more), Peer("b", store=tmp_path / "b.db", **more)) as (_, b):
        await asyncio.sleep(0.3)
        monkeypatch.setattr(PeerStore, "write", fail)
        with pytest.raises(StoreError):
            await b.send(b"x")
    said = {(vars(one)["antecede_peer"], vars(one)["antecede_event"]) for one in caplog.records}
    assert {("a", "joined"), ("b", "joined"), ("a", "connected"), ("b", "store_failed")} <= said
