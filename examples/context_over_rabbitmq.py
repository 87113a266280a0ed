"""Causes over RabbitMQ (AMQP 0-9-1) with pika: `pip install pika`.

A message's properties have a table of headers, which brokers preserve, also through exchanges,
dead-lettering (which adds its own headers) and the shovel. A consumer does

    def on_message(channel, method, properties, body):
        with propagator.handle(properties.headers):            # None without headers
            channel.basic_publish(exchange, key, body, properties_of(propagator))
            channel.basic_ack(method.delivery_tag)
"""

from __future__ import annotations

import pika

from antecede.core.propagation import ContextPropagator


def properties_of(propagator: ContextPropagator, **others: object) -> pika.BasicProperties:
    """Return the properties of a new, persistent message with its causal context.

    `others`: further properties or headers. The message's id is also in the property `message_id`,
    which brokers and tools show.
    """
    headers = propagator.make_headers(dict(others.pop("headers", None) or {}))
    return pika.BasicProperties(
        headers=headers, message_id=headers["antecede-id"], delivery_mode=2, **others
    )
