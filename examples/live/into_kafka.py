"""Causes that begin in a live group and end in a topic: needs `antecede[live]`, and no broker.

A shop, a till and a warehouse are peers of one group and talk there. What they did goes to topics
as well, each on its own way and in its own time, so a parcel's row may come before the order's. Two
things in the rows' headers put them in order again (`antecede order`, `antecede.spark.order`):

- a row about a live message that was handled names that message as its cause (`message.past`);
- a row that *is* a live message, written by who sent it, has that message's id and names what its
  sender followed (`peer.past()`). Where no such row is written the chain ends at the live message.

`python -m examples.live.into_kafka` prints the rows as they came, and what each names.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

from antecede.core.propagation import ContextPropagator, read
from antecede.live import Message, Peer

Headers = list[tuple[str, bytes]]
Produce = Callable[[str, str, Headers], None]
"""Takes topic, value and headers, as `producer.produce` of a Kafka client does."""
ORDERS = 3


async def say(peer: Peer, stamp: ContextPropagator, text: str) -> Headers:
    """Say something in the group; returns the headers of the row that tells of it."""
    with stamp.resume(peer.past()):
        sent = await peer.send(text.encode())
        return stamp.make_headers(id=sent.token)


async def shop(peer: Peer, produce: Produce) -> None:
    """Say what was ordered, and write the rows of it last of all."""
    stamp = ContextPropagator("shop")
    rows = {}
    for number in range(1, ORDERS + 1):
        text = f"order {number}"
        rows[text] = await say(peer, stamp, text)
    async for message in said(peer, "parcel"):
        if message.payload == b"parcel %d" % ORDERS:
            break
    for text, headers in rows.items():
        produce("orders", text, headers)


async def till(peer: Peer, produce: Produce) -> None:
    """Write an invoice for each order, then say that it is paid."""
    stamp = ContextPropagator("till")
    async for message in said(peer, "order"):
        number = message.payload.decode().split()[1]
        with stamp.resume(message.past):  # follows this order, and no other
            produce("payments", f"invoice {number}", stamp.make_headers())
        produce("payments", f"paid {number}", await say(peer, stamp, f"paid {number}"))


async def warehouse(peer: Peer, produce: Produce) -> None:
    """Send a parcel for each payment."""
    stamp = ContextPropagator("warehouse")
    async for message in said(peer, "paid"):
        text = message.payload.decode().replace("paid", "parcel")
        produce("shipping", text, await say(peer, stamp, text))


async def said(peer: Peer, what: str) -> AsyncIterator[Message]:
    """Yield the messages that begin with a word."""
    async for message in peer:
        if message.payload.startswith(what.encode()):
            yield message


@asynccontextmanager
async def group(*names: str) -> AsyncIterator[dict[str, Peer]]:
    """Run some peers in this process, connected; for a try, without certificates."""
    async with AsyncExitStack() as stack:
        peers = [Peer(name, listen="127.0.0.1:0", insecure=True) for name in names]
        for peer in peers:
            await stack.enter_async_context(peer)
            await (peer.join(peers[0].address) if peer is not peers[0] else peer.found())
        while any(len(peer.members) < len(peers) for peer in peers):
            await asyncio.sleep(0.01)
        yield {peer.name: peer for peer in peers}


async def run(produce: Produce) -> None:
    """Let the three of them work off some orders."""
    async with group("shop", "till", "warehouse") as peers:
        others = [
            asyncio.ensure_future(till(peers["till"], produce)),
            asyncio.ensure_future(warehouse(peers["warehouse"], produce)),
        ]
        await shop(peers["shop"], produce)
        for task in others:
            task.cancel()


def main() -> None:
    """Print the rows as they came, and what each names."""
    rows: list[tuple[str, str, Headers]] = []
    asyncio.run(run(lambda *row: rows.append(row)))
    for topic, value, headers in rows:
        found = read(headers)
        assert found is not None
        print(f"{topic:9} {value:10} {found.id} after {', '.join(found.causes) or 'nothing'}")


if __name__ == "__main__":
    main()
