"""Services: orders (one loop), payments (threads), shipping (asyncio).

    python -m pipeline.services NAME ...

A customer places an order, payments takes or rejects the money, and orders confirms or cancels.
Shipping packs a customer's orders into parcels, which follow each of these orders; orders closes
them. Events of a handler follow only the events that it handles.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import time
from collections import defaultdict
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pipeline.service import ORDERS_DONE_FILE, Handler, Service, ServiceConfig, StoredContext
from pipeline.transport import Record

CUSTOMERS = 40
REFUSED_FRACTION = 0.1
"""Fraction of orders that are not paid."""
PARCEL_ORDERS = 2
"""Orders of a customer in a parcel."""


class Orders(Service):
    """Places orders at random times, and handles events between, in one thread."""

    name = "orders"
    reads = ("payments", "shipping")
    per_second = 6.0

    def run(self) -> None:
        """Place orders for the configured time, then handle events until the end."""
        end = time.monotonic() + self.config.seconds
        due, number = time.monotonic(), 0
        for records in self.poll_records():
            for record in records:
                self.handle(record)
            while due < min(time.monotonic(), end):
                self._place_order(number)
                number += 1
                due += self.random.expovariate(self.per_second)
            if time.monotonic() >= end:
                (self.config.folder / ORDERS_DONE_FILE).touch()

    def _place_order(self, number: int) -> None:
        customer = f"c{self.random.randrange(CUSTOMERS):02}"
        with self.open_handler() as control:
            control.send("placed", customer, [f"o{number:05}"])
            control.send("reserved", customer, [f"o{number:05}"])

    def handle(self, record: Record) -> None:
        """Reply to payments and shipping."""
        event = json.loads(record.value)
        answers = {"taken": "confirmed", "refused": "cancelled", "sent": "closed"}
        with self.open_handler(record) as control:
            if event["kind"] in answers:
                control.send(answers[event["kind"]], event["customer"], event["orders"])


class Payments(Service):
    """Handles payments concurrently in threads."""

    name = "payments"
    reads = ("orders",)

    def run(self) -> None:
        """Pass every record to the thread pool."""
        with ThreadPoolExecutor(4) as pool:
            working: list[Future[None]] = []
            for records in self.poll_records():
                working += [pool.submit(self.handle, record) for record in records]
                for done in [future for future in working if future.done()]:
                    done.result()
                    working.remove(done)
            for future in working:
                future.result()

    def handle(self, record: Record) -> None:
        """Take the money of an order, or reject it."""
        event = json.loads(record.value)
        with self.open_handler(record) as control:
            if event["kind"] == "placed":
                chance = random.Random(f"{self.config.seed}:{event['orders']}")
                time.sleep(chance.uniform(0, 0.02))
                kind = "refused" if chance.random() < REFUSED_FRACTION else "taken"
                control.send(kind, event["customer"], event["orders"])


class Shipping(Service):
    """Packs parcels with one task per record; packed orders wait with their causal context."""

    name = "shipping"
    reads = ("orders",)

    def __init__(self, config: ServiceConfig) -> None:
        super().__init__(config)
        self._shelf: dict[str, list[tuple[str, StoredContext]]] = defaultdict(list)

    def run(self) -> None:
        """Run the event loop until the end."""
        asyncio.run(self._run_loop())

    async def _run_loop(self) -> None:
        polled = self.poll_records()
        async with asyncio.TaskGroup() as tasks:
            while (records := await asyncio.to_thread(next, polled, None)) is not None:
                for record in records:
                    tasks.create_task(self._handle_record(record))

    async def _handle_record(self, record: Record) -> None:
        event = json.loads(record.value)
        with self.open_handler(record) as control:
            if event["kind"] == "confirmed":
                await asyncio.sleep(0.005)
                self._pack_order(control, event)

    def _pack_order(self, control: Handler, event: dict[str, Any]) -> None:
        customer = event["customer"]
        shelf = self._shelf[customer]
        shelf.append((event["orders"][0], control.export_context()))
        if len(shelf) == PARCEL_ORDERS:
            for _, shelved in shelf:
                control.import_context(shelved)
            orders = [order for order, _ in shelf]
            shelf.clear()
            control.send("packed", customer, orders)
            control.send("sent", customer, orders)


SERVICES: tuple[type[Service], ...] = (Orders, Payments, Shipping)
TOPICS = tuple(service.name for service in SERVICES)


def main(arguments: list[str] | None = None) -> None:
    """Run one service."""
    parser = argparse.ArgumentParser(prog="python -m pipeline.services")
    parser.add_argument("name", choices=TOPICS)
    parser.add_argument("--address", required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--skew-ms", type=float, required=True)
    given = parser.parse_args(arguments)
    setting = ServiceConfig(given.address, given.folder, given.seed, given.seconds, given.skew_ms)
    service = next(kind for kind in SERVICES if kind.name == given.name)(setting)
    try:
        service.run()
    finally:
        service.close()


if __name__ == "__main__":
    main()
