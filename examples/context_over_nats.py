"""Causes over NATS, with `nats-py` and a running server: `python examples/context_over_nats.py`.

A shop calls a stock by request and reply, and publishes sales on a stream of JetStream that an
audit reads later. NATS supports headers in core messages, replies and streams; the causal context
is two of them. A message without headers has `headers` None.
"""

from __future__ import annotations

import asyncio
import sys

import nats
from nats.aio.client import Client
from nats.aio.msg import Msg

from antecede.core.propagation import ContextPropagator, MessageContext, read

ADDRESS = "nats://127.0.0.1:4222"


async def answer(stock: ContextPropagator, client: Client) -> None:
    """Reply to every request; the reply follows the request."""

    async def reserve(message: Msg) -> None:
        with stock.handle(message.headers):
            await client.publish(message.reply, b"reserved", headers=stock.make_headers({}))

    await client.subscribe("stock.reserve", cb=reserve)


async def ask(
    shop: ContextPropagator, client: Client
) -> tuple[MessageContext | None, MessageContext | None]:
    """Send a request, and merge the context of its reply; return both stamps."""
    headers = shop.make_headers({})
    reply = await client.request("stock.reserve", b"2 apples", timeout=5, headers=headers)
    return read(headers), shop.receive(reply.headers)


async def main(address: str = ADDRESS) -> list[MessageContext | None]:
    """Return the stamps of a request, its reply, and a sale as read from the stream."""
    shop, stock = (ContextPropagator(name, incarnation="demo") for name in ("shop", "stock"))
    async with await nats.connect(address) as client:
        stream = client.jetstream()
        await stream.add_stream(name="sales", subjects=["sold.*"], storage="memory")
        try:
            await answer(stock, client)
            with shop.begin():
                asked = await ask(shop, client)
                await stream.publish("sold.apples", b"2", headers=shop.make_headers({}))
            audit = await stream.subscribe("sold.*", ordered_consumer=True)
            sale = await audit.next_msg(timeout=5)
            await audit.unsubscribe()
        finally:
            await stream.delete_stream("sales")
        return [*asked, read(sale.headers)]


if __name__ == "__main__":
    for sent in asyncio.run(main(*sys.argv[1:])):
        print(
            "no context"
            if sent is None
            else f"{sent.id} after {', '.join(sent.causes) or 'nothing'}"
        )
