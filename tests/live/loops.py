"""What tests of peers do in an asyncio loop: run for a bounded time, wait, take messages."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from antecede.live.events import Message
from antecede.live.peer import Peer

TIMEOUT_S, WAIT_S = 120.0, 40.0


def run(work: Callable[[], Awaitable[Any]], seconds: float = TIMEOUT_S) -> None:
    """Run a test's coroutine, not for ever."""

    async def bounded() -> None:
        async with asyncio.timeout(seconds):
            await work()

    asyncio.run(bounded())


async def take(one: Peer, count: int) -> list[Message]:
    """Return the next so many messages."""
    found: list[Message] = []
    if count:
        async for message in one:
            found.append(message)
            if len(found) == count:
                break
    return found


async def until(true: Callable[[], Any], seconds: float = WAIT_S) -> None:
    """Wait until something is so."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it does not come to that"
        await asyncio.sleep(0.005)


@asynccontextmanager
async def joined(*peers: Peer) -> AsyncIterator[tuple[Peer, ...]]:
    """Peers of one group: the first founds it, and the others join it."""
    async with AsyncExitStack() as stack:
        for one in peers:
            await stack.enter_async_context(one)
        await peers[0].bootstrap()
        for one in peers[1:]:
            await one.join(peers[0].address)
        yield peers
