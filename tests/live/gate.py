"""A super peer in a process of its own, for a test that kills it: `python -m tests.live.gate NAME`.

It founds a mesh, prints its address and stays until it is killed.
"""

from __future__ import annotations

import asyncio
import sys

from antecede.live.peer import Peer


async def stay(name: str) -> None:
    async with Peer(
        *(name,),
        group_name="test",
        order="hierarchical",
        role="super",
        listen="127.0.0.1:0",
        insecure=True,
        heartbeat_s=0.2,
        failure_timeout_s=1.0,
        evict_after_s=1.0,
    ) as peer:
        await peer.bootstrap()
        print(peer.address, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(stay(sys.argv[1]))
