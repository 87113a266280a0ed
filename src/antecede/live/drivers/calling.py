"""Calling a member: a connection to it, without waiting for the kernel to try again.

A kernel that gets no answer sends the first packet of a connection again after 1 s, 3 s and 7 s.
Who calls across a partition would so find out up to four seconds too late that it is over. So
another attempt is made beside those under way, and the first that is answered counts.
"""

from __future__ import annotations

import asyncio
import socket
from itertools import cycle
from typing import Any, Final

AGAIN_S: Final = 0.4
"""After so long without an answer another attempt is made beside."""
AT_ONCE: Final = 8
"""Attempts under way at most: the oldest is given up for a new one."""


async def reach(host: str, port: int) -> socket.socket:
    """Return a connected socket. Tries for ever, unless all addresses refuse: raises OSError."""
    loop = asyncio.get_running_loop()
    addresses = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    attempts: list[asyncio.Task[socket.socket]] = []
    refused = 0
    try:
        for family, _, _, _, address in cycle(addresses):
            attempts.append(loop.create_task(_attempt(family, address)))
            if len(attempts) > AT_ONCE:
                attempts.pop(0).cancel()
            await asyncio.wait(attempts, timeout=AGAIN_S, return_when=asyncio.FIRST_COMPLETED)
            for one in [one for one in attempts if one.done()]:
                attempts.remove(one)
                if (error := one.exception()) is None:
                    return one.result()
                refused += 1
                if not attempts and refused >= len(addresses):
                    raise error
        raise OSError(f"no address of {host}")
    finally:
        for one in attempts:
            _drop(one)


async def _attempt(family: int, address: Any) -> socket.socket:
    calling = socket.socket(family, socket.SOCK_STREAM)
    try:
        calling.setblocking(False)
        await asyncio.get_running_loop().sock_connect(calling, address)
    except BaseException:
        calling.close()
        raise
    return calling


def _drop(attempt: asyncio.Task[socket.socket]) -> None:
    """Give an attempt up, though it may have come through in this turn."""
    if not attempt.done():
        attempt.cancel()
    elif not attempt.cancelled() and attempt.exception() is None:
        attempt.result().close()
