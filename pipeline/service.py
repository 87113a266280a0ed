"""What the three services share: stamps, a log of their own, and how they end.

The log says what happened, in the service's own words and without looking at any cause that a stamp
carries: a *control* (one handler, from its beginning to its end) handles messages, sends
messages and follows what another control had done until it put something on a shelf. From these
lines alone `pipeline.check` works out what happened before what.
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

from antecede.core.propagation import ContextPropagator, Past, Stamp, read
from pipeline.transport import Record, open_transport

IDLE_S = 2.0
"""A service ends when no order is placed any more and for so long nothing has come."""
ORDERS_DONE_FILE = "placed"
"""File that says that no order is placed any more."""


class StoredContext(NamedTuple):
    """What must lie beside data in a store: its causes, for the stamp and for the log."""

    past: Past
    control: int
    lines: int


class ServiceConfig(NamedTuple):
    """What a service is told."""

    address: str
    folder: Path
    seed: int
    seconds: float
    skew_ms: float


class Handler:
    """One handler at work: what it sends is stamped and logged."""

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
        """Return what whoever takes the data from the store must `follow`."""
        return StoredContext(self._service.stamp.past, self.number, self.lines)

    def import_context(self, context: StoredContext) -> None:
        """Follow what another control had done when it shelved something."""
        self._service.stamp.join(context.past)
        self.log("follow", other=context.control, lines=context.lines)


class Service:
    """A process that reads the events of others and sends its own; subclasses say how."""

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
        """Handle a record, or begin something new."""
        control = Handler(self, next(self._numbers))
        if record is None:
            with self.stamp.beginning():
                yield control
            return
        with self.stamp.handling(record.headers) as stamp:
            control.log("handle", id=require_stamp(stamp).id)
            yield control

    def send(self, control: Handler, kind: str, customer: str, orders: list[str]) -> None:
        """Stamp, log and send one event."""
        sent_ns = time.time_ns() + round(self.config.skew_ms * 1e6)
        fields = {"kind": kind, "customer": customer, "orders": orders, "sent_ns": sent_ns}
        value = json.dumps({"service": self.name, **fields})
        headers = self.stamp.outgoing()
        control.log("send", id=require_stamp(read(headers)).id, customer=customer, value=value)
        self.transport.send(Record(self.name, customer, value, headers))
        self.transport.flush()

    def write(self, line: dict[str, Any]) -> None:
        """Write a line of the log; lines of several threads do not mix."""
        with self._lock:
            self._log.write(json.dumps(line) + "\n")

    def poll_records(self) -> Iterator[list[Record]]:
        """Give what comes until it is over, also when it is nothing."""
        last = time.monotonic()
        while True:
            records = self.transport.poll(0.05)
            if records or not (self.config.folder / ORDERS_DONE_FILE).exists():
                last = time.monotonic()
            elif time.monotonic() - last > IDLE_S:
                return
            yield records

    def run(self) -> None:
        """Work until it is over."""
        for records in self.poll_records():
            for record in records:
                self.handle(record)

    def handle(self, record: Record) -> None:
        """React to an event."""
        raise NotImplementedError

    def close(self) -> None:
        """End: all sent, the log whole."""
        self.transport.close()
        stats = self.stamp.stats()
        self.write({"do": "end", **stats._asdict()})
        self._log.close()


def require_stamp(stamp: Stamp | None) -> Stamp:
    """Return a stamp that must be there."""
    assert stamp is not None, "a record of the services bears no stamp"
    return stamp
