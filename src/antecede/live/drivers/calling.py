"""Dial of an address with several attempts at once, without the kernel's long retries.

The kernel repeats the first packet of a connection after 1 s, 3 s and 7 s. After a partition a dial
would so succeed up to four seconds late. So further attempts start beside the running ones, and the
first success counts.
"""

from __future__ import annotations

import asyncio
import socket
from itertools import cycle
from typing import Any, Final

AGAIN_S: Final = 0.4
"""Time without an answer before another attempt starts."""
AT_ONCE: Final = 8
"""Running attempts, at most: the oldest is cancelled for a new one."""


async def reach(host: str, port: int) -> socket.socket:
    """Return a connected socket. Repeats until all addresses refuse. Raises OSError."""
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
        raise OSError(f"{host} has no address")
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
    """Cancel an attempt, or close its socket if it has just succeeded."""
    if not attempt.done():
        attempt.cancel()
    elif not attempt.cancelled() and attempt.exception() is None:
        attempt.result().close()
