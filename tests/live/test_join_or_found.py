"""Members that start at once with one list of addresses form one group."""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
from pathlib import Path

import pytest

from antecede.errors import LocalError, PeerError
from antecede.live import Peer
from tests.live.loops import until

NAMES = ("alice", "bob", "carol")


def free_addresses(count: int) -> list[str]:
    with contextlib.ExitStack() as stack:
        sockets = [
            stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)
        ]
        return [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]


def peer(name: str, address: str, **more: object) -> Peer:
    return Peer(name, insecure=True, listen=address, **more)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
async def test_members_that_start_at_once_form_one_group(seed: int) -> None:
    draw, addresses = random.Random(seed), free_addresses(3)
    async with contextlib.AsyncExitStack() as stack:

        async def start(name: str, address: str, delay: float) -> Peer:
            await asyncio.sleep(delay)
            one = await stack.enter_async_context(peer(name, address))
            await one.join(addresses, or_bootstrap=True, timeout_s=30)
            return one

        delays = [draw.uniform(0, 1) for _ in NAMES]
        peers = await asyncio.gather(*map(start, NAMES, addresses, delays))
        await until(lambda: all(one.members == NAMES for one in peers))


@pytest.mark.slow
async def test_a_later_member_founds_where_those_before_it_are_away() -> None:
    addresses = free_addresses(3)
    async with peer("bob", addresses[1]) as bob:
        await bob.join(addresses, or_bootstrap=True, timeout_s=1)
        assert bob.members == ("bob",)
        async with peer("alice", addresses[0]) as alice:
            await alice.join(addresses, or_bootstrap=True, timeout_s=30)
            assert alice.members == ("alice", "bob")


@pytest.mark.slow
async def test_a_later_member_does_not_found_while_one_before_it_is_up() -> None:
    addresses = free_addresses(2)
    async with peer("alice", addresses[0]), peer("bob", addresses[1]) as bob:
        with pytest.raises(PeerError, match="not in a group yet"):
            await bob.join(addresses, or_bootstrap=True, timeout_s=1)
        assert bob.members == ()


@pytest.mark.slow
async def test_the_own_address_is_in_the_list() -> None:
    own, other = free_addresses(2)
    async with peer("alice", own) as alice:
        with pytest.raises(LocalError, match=r"is not in .* give all members the list"):
            await alice.join([other], or_bootstrap=True)
    async with peer("bob", own) as bob:
        await bob.join(own, or_bootstrap=True)
        assert bob.members == ("bob",)


@pytest.mark.slow
async def test_a_member_with_a_store_goes_on_in_its_group(tmp_path: Path) -> None:
    addresses = free_addresses(2)
    for _ in range(2):
        async with peer("alice", addresses[0], store=tmp_path / "alice.db") as alice:
            await alice.join(addresses, or_bootstrap=True)
            assert alice.members == ("alice",)
