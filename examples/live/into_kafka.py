"""Causes from a live group in the headers of a topic, without a broker (`antecede[live]`).

A shop, a till and a warehouse are peers of a group. Each also writes rows to a topic, in its own
time, so a parcel's row may arrive before the order's. Two kinds of headers restore the order
(`antecede order`, `antecede.spark.order`):

- a row about a handled live message has that message as its cause (`message.causal_context`);
- a row that *is* a live message, written by its sender, has that message's id and its sender's
  context (`peer.causal_context()`). Without such a row the chain ends at the live message.

`python -m examples.live.into_kafka` prints the rows as they arrive, with their causes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

from antecede.core.propagation import ContextPropagator, read
from antecede.live import Message, Peer

Headers = list[tuple[str, bytes]]
Produce = Callable[[str, str, Headers], None]
"""Function of topic, value and headers, as `producer.produce` of a Kafka client."""
ORDERS = 3


async def say(peer: Peer, stamp: ContextPropagator, text: str) -> Headers:
    """Send a message to the group; return the headers of its row."""
    with stamp.resume(peer.causal_context()):
        sent = await peer.send(text.encode())
        return stamp.make_headers(id=sent.encode())


async def shop(peer: Peer, produce: Produce) -> None:
    """Send the orders, and write their rows last."""
    stamp = ContextPropagator("shop")
    rows = {}
    for number in range(1, ORDERS + 1):
        text = f"order {number}"
        rows[text] = await say(peer, stamp, text)
    async for message in read_messages(peer, "parcel"):
        if message.payload == b"parcel %d" % ORDERS:
            break
    for text, headers in rows.items():
        produce("orders", text, headers)


async def till(peer: Peer, produce: Produce) -> None:
    """Write an invoice for each order, then confirm its payment."""
    stamp = ContextPropagator("till")
    async for message in read_messages(peer, "order"):
        number = message.payload.decode().split()[1]
        with stamp.resume(message.causal_context):  # depends on this order only
            produce("payments", f"invoice {number}", stamp.make_headers())
        produce("payments", f"paid {number}", await say(peer, stamp, f"paid {number}"))


async def warehouse(peer: Peer, produce: Produce) -> None:
    """Send a parcel for each payment."""
    stamp = ContextPropagator("warehouse")
    async for message in read_messages(peer, "paid"):
        text = message.payload.decode().replace("paid", "parcel")
        produce("shipping", text, await say(peer, stamp, text))


async def read_messages(peer: Peer, what: str) -> AsyncIterator[Message]:
    """Yield the messages that begin with a word."""
    async for message in peer:
        if message.payload.startswith(what.encode()):
            yield message


@asynccontextmanager
async def group(*names: str) -> AsyncIterator[dict[str, Peer]]:
    """Run connected peers in this process, without certificates."""
    async with AsyncExitStack() as stack:
        peers = [Peer(name, listen="127.0.0.1:0", insecure=True) for name in names]
        for peer in peers:
            await stack.enter_async_context(peer)
            await (peer.join(peers[0].address) if peer is not peers[0] else peer.bootstrap())
        while any(len(peer.members) < len(peers) for peer in peers):
            await asyncio.sleep(0.01)
        yield {peer.name: peer for peer in peers}


async def run(produce: Produce) -> None:
    """Process some orders."""
    async with group("shop", "till", "warehouse") as peers:
        others = [
            asyncio.ensure_future(till(peers["till"], produce)),
            asyncio.ensure_future(warehouse(peers["warehouse"], produce)),
        ]
        await shop(peers["shop"], produce)
        for task in others:
            task.cancel()


def main() -> None:
    """Print the rows as they arrive, with their causes."""
    rows: list[tuple[str, str, Headers]] = []
    asyncio.run(run(lambda *row: rows.append(row)))
    for topic, value, headers in rows:
        found = read(headers)
        assert found is not None
        print(f"{topic:9} {value:10} {found.id} after {', '.join(found.causes) or 'nothing'}")


if __name__ == "__main__":
    main()
