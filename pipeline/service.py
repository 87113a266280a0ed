"""Base of the three services: causal contexts, logs, shutdown.

The log is independent of the causal contexts in headers. A *handler* (from its start to its end)
handles messages, sends messages, and follows the lines of another handler that stored a context.
`pipeline.check` computes happened-before from these lines.
"""

from __future__ import annotations

import itertools
import json
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from antecede.core.propagation import CausalContext, ContextPropagator, MessageContext, read
from pipeline.transport import Record, open_transport

IDLE_S = 2.0
"""Time without records, after the last order, until a service ends."""
ORDERS_DONE_FILE = "placed"
"""File that marks the end of orders."""


class StoredContext(NamedTuple):
    """Causal context and log position, stored with data."""

    past: CausalContext
    control: int
    lines: int


class ServiceConfig(NamedTuple):
    """Configuration of a service."""

    address: str
    folder: Path
    seed: int
    seconds: float
    skew_ms: float


class Handler:
    """One active handler: its events get causes and are logged."""

    def __init__(self, service: Service, number: int) -> None:
        self._service, self.number, self.lines = service, number, 0

    def send(self, kind: str, customer: str, orders: list[str]) -> None:
        """Send an event of this service."""
        self._service.send(self, kind, customer, orders)

    def log(self, do: str, **fields: Any) -> None:
        """Write a line of the log."""
        self._service.write({"control": self.number, "do": do, **fields})
        self.lines += 1

    def export_context(self) -> StoredContext:
        """Return the context that a reader of the stored data must import."""
        return StoredContext(self._service.stamp.past, self.number, self.lines)

    def import_context(self, context: StoredContext) -> None:
        """Follow the handler that stored a context."""
        self._service.stamp.join(context.past)
        self.log("follow", other=context.control, lines=context.lines)


class Service:
    """Process that reads events of others and sends its own; subclasses implement `handle`."""

    name = ""
    reads: tuple[str, ...] = ()

    def __init__(self, config: ServiceConfig) -> None:
        self.config = config
        self.stamp = ContextPropagator(self.name)
        self.random = random.Random(f"{config.seed}:{self.name}")
        self.transport = open_transport(config.address, self.name, self.reads)
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._log = (config.folder / f"{self.name}.jsonl").open("w", encoding="utf-8")

    @contextmanager
    def open_handler(self, record: Record | None = None) -> Iterator[Handler]:
        """Open a handler of a record, or of a new activity."""
        control = Handler(self, next(self._numbers))
        if record is None:
            with self.stamp.begin():
                yield control
            return
        with self.stamp.handle(record.headers) as stamp:
            control.log("handle", id=require_stamp(stamp).id)
            yield control

    def send(self, control: Handler, kind: str, customer: str, orders: list[str]) -> None:
        """Add causes, log and send one event."""
        sent_ns = time.time_ns() + round(self.config.skew_ms * 1e6)
        fields = {"kind": kind, "customer": customer, "orders": orders, "sent_ns": sent_ns}
        value = json.dumps({"service": self.name, **fields})
        headers = self.stamp.make_headers()
        control.log("send", id=require_stamp(read(headers)).id, customer=customer, value=value)
        self.transport.send(Record(self.name, customer, value, headers))
        self.transport.flush()

    def write(self, line: dict[str, Any]) -> None:
        """Write a line of the log; thread-safe."""
        with self._lock:
            self._log.write(json.dumps(line) + "\n")

    def poll_records(self) -> Iterator[list[Record]]:
        """Yield new records, possibly none, until the service ends."""
        last = time.monotonic()
        while True:
            records = self.transport.poll(0.05)
            if records or not (self.config.folder / ORDERS_DONE_FILE).exists():
                last = time.monotonic()
            elif time.monotonic() - last > IDLE_S:
                return
            yield records

    def run(self) -> None:
        """Handle records until the end."""
        for records in self.poll_records():
            for record in records:
                self.handle(record)

    def handle(self, record: Record) -> None:
        """React to an event."""
        raise NotImplementedError

    def close(self) -> None:
        """Flush everything and close the log."""
        self.transport.close()
        stats = self.stamp.stats()
        self.write({"do": "end", **stats._asdict()})
        self._log.close()


def require_stamp(stamp: MessageContext | None) -> MessageContext:
    """Return a stamp that must exist."""
    assert stamp is not None, "a record of the services has no causal context"
    return stamp
