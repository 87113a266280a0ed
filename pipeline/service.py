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
PLACED = "placed"
"""File that says that no order is placed any more."""


class Shelved(NamedTuple):
    """What must lie beside data in a store: its causes, for the stamp and for the log."""

    past: Past
    control: int
    lines: int


class Setting(NamedTuple):
    """What a service is told."""

    address: str
    folder: Path
    seed: int
    seconds: float
    skew_ms: float


class Control:
    """One handler at work: what it sends is stamped and logged."""

    def __init__(self, service: Service, number: int) -> None:
        self._service, self.number, self.lines = service, number, 0

    def send(self, kind: str, customer: str, orders: list[str]) -> None:
        """Send an event of this service."""
        self._service.send(self, kind, customer, orders)

    def note(self, do: str, **fields: Any) -> None:
        """Write a line of the log."""
        self._service.write({"control": self.number, "do": do, **fields})
        self.lines += 1

    def shelve(self) -> Shelved:
        """Return what whoever takes the data from the store must `follow`."""
        return Shelved(self._service.stamp.past, self.number, self.lines)

    def follow(self, shelved: Shelved) -> None:
        """Follow what another control had done when it shelved something."""
        self._service.stamp.join(shelved.past)
        self.note("follow", other=shelved.control, lines=shelved.lines)


class Service:
    """A process that reads the events of others and sends its own; subclasses say how."""

    name = ""
    reads: tuple[str, ...] = ()

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.stamp = ContextPropagator(self.name)
        self.random = random.Random(f"{setting.seed}:{self.name}")
        self.transport = open_transport(setting.address, self.name, self.reads)
        self._controls = itertools.count()
        self._lock = threading.Lock()
        self._log = (setting.folder / f"{self.name}.jsonl").open("w", encoding="utf-8")

    @contextmanager
    def control(self, record: Record | None = None) -> Iterator[Control]:
        """Handle a record, or begin something new."""
        control = Control(self, next(self._controls))
        if record is None:
            with self.stamp.beginning():
                yield control
            return
        with self.stamp.handling(record.headers) as stamp:
            control.note("handle", id=known(stamp).id)
            yield control

    def send(self, control: Control, kind: str, customer: str, orders: list[str]) -> None:
        """Stamp, log and send one event."""
        sent_ns = time.time_ns() + round(self.setting.skew_ms * 1e6)
        fields = {"kind": kind, "customer": customer, "orders": orders, "sent_ns": sent_ns}
        value = json.dumps({"service": self.name, **fields})
        headers = self.stamp.outgoing()
        control.note("send", id=known(read(headers)).id, customer=customer, value=value)
        self.transport.send(Record(self.name, customer, value, headers))
        self.transport.flush()

    def write(self, line: dict[str, Any]) -> None:
        """Write a line of the log; lines of several threads do not mix."""
        with self._lock:
            self._log.write(json.dumps(line) + "\n")

    def polled(self) -> Iterator[list[Record]]:
        """Give what comes until it is over, also when it is nothing."""
        last = time.monotonic()
        while True:
            records = self.transport.poll(0.05)
            if records or not (self.setting.folder / PLACED).exists():
                last = time.monotonic()
            elif time.monotonic() - last > IDLE_S:
                return
            yield records

    def run(self) -> None:
        """Work until it is over."""
        for records in self.polled():
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


def known(stamp: Stamp | None) -> Stamp:
    """Return a stamp that must be there."""
    assert stamp is not None, "a record of the services bears no stamp"
    return stamp
