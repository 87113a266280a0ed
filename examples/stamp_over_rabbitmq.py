"""Causes over RabbitMQ (AMQP 0-9-1): where the stamp goes in pika's messages; `pip install pika`.

A message's properties have a table of headers, which brokers hand on untouched, also through
exchanges, dead-lettering (which adds headers of its own) and the shovel. A consumer does

    def on_message(channel, method, properties, body):
        with stamp.handling(properties.headers):            # None where there are no headers
            channel.basic_publish(exchange, key, body, properties_of(stamp))
            channel.basic_ack(method.delivery_tag)
"""

from __future__ import annotations

import pika

from antecede.core.propagation import ContextPropagator


def properties_of(stamp: ContextPropagator, **others: object) -> pika.BasicProperties:
    """Return the properties of a new, persistent message, stamped; `others`: properties or headers.

    The message's id goes into the property `message_id` too, which brokers and tools show.
    """
    headers = stamp.outgoing(dict(others.pop("headers", None) or {}))
    return pika.BasicProperties(
        headers=headers, message_id=headers["antecede-id"], delivery_mode=2, **others
    )
