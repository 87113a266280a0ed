"""LoRaWAN uplinks as JSON lines: one message of a device, heard by many gateways.

Two spellings: network servers that list `rxInfo` (`devEUI`, `fCnt`, `fPort`; ChirpStack) and
those that list `hotspots` (`dev_eui`, `fcnt`, `port`; Helium). Each record gives a `send` row,
whose member is the device and whose `arrival` is the archive's time (`_timestamp` in ms, else
`_date`), and a `receive` row for each gateway with its own time, null where it has no clock.
The device has none: there is no `send_time`.

Theory of operation. The frame counter is the device's own number, and its only order: an uplink's
parent is the device's one before it among those heard, looked for in `LOOK_AHEAD` records too,
as a late one comes after its effect. What the counter leaves open:

- 16 bits: after 65,535 follows 0. The numbers go on at 65,536 (`counter_wraps`).
- A device that joins again counts from 0 (`counter_resets`). Its uplinks are then named
  DEVICE/2:0 and so on. Across a reset the counter tells no order, and none is declared.
- The same number with the same payload within an hour is the same uplink, reported again
  (`repeated_records`); its receptions count. With another payload it tells of a reset.
- A number a little lower (`LATE`) that was not heard yet is late (`late_records`).
"""

from __future__ import annotations

import json
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from antecede.errors import InputError
from antecede.trace import text
from antecede.trace.identities import name_of
from antecede.trace.reader import NO_ID, Detail, Item, ReadOptions
from antecede.trace.schema import RECEIVE, SEND, Event, Quarantined

LOOK_AHEAD = 64
"""Records read on before a row is given out, so that an uplink that comes late is a parent."""
LATE = 16
"""By how much the number of an uplink may be lower than one heard before, without a reset."""
COPY_WITHIN_NS = 3600 * 10**9
"""Time in which a network reports one uplink again, by the archive's clock."""
WRAP = 1 << 16
REMEMBERED = 1024
"""Uplinks of a device that are remembered, to know copies by."""
MAX_COUNTER = 1 << 32
MAX_GATEWAYS = 1 << 12
"""Receptions of one uplink: rows of `LOOK_AHEAD` records wait in memory together."""

_FINGERPRINT = ("data", "payload", "raw_packet", "devaddr", "devAddr", "fPort", "port")
_COUNTS = ("counter_wraps", "counter_resets", "repeated_records", "late_records")


class _Spelling(NamedTuple):
    """Names of the fields in one kind of record."""

    gateways: str
    gateway: str
    time: str
    device: str
    counter: str
    port: str
    application: tuple[str, ...]


SPELLINGS = (
    _Spelling(
        "rxInfo", "gatewayID", "time", "devEUI", "fCnt", "fPort", ("applicationName", "_topic")
    ),
    _Spelling("hotspots", "id", "reported_at", "dev_eui", "fcnt", "port", ("app_eui",)),
)


class LoraReader:
    """Reader of uplinks; see the module."""

    name = "lora"
    uses: tuple[str, ...] = ()

    def sniff(self, path: Path, head: bytes) -> float:
        """Recognize a record with a device and its gateways among the first lines."""
        for line in text.decode(head).lstrip("\ufeff").split("\n")[:20]:
            record = _object(line)
            if isinstance(record, dict) and any(
                {s.gateways, s.device, s.counter} <= record.keys() for s in SPELLINGS
            ):
                return 0.95
        return 0.0

    def read(self, path: Path, options: ReadOptions) -> Iterator[Item]:
        """Yield the uplinks and their receptions, in the order of the file."""
        uplinks = _Uplinks(str(path))
        try:
            for number, line in text.lines(path):
                if line.strip():
                    uplinks.take(line, number)
                    yield from uplinks.ready(LOOK_AHEAD)
        except InputError as error:
            if error.line is None:
                raise
            yield from uplinks.ready(0)
            yield Quarantined(str(path), error.line, None, error.message, "")
        yield from uplinks.ready(0)
        for name, count in uplinks.counts.items():
            yield Detail(name, count)


@dataclass(slots=True)
class _Session:
    """A device's uplinks since it last began to count."""

    device: str
    name: str
    """What stands before the number in an uplink's id."""
    base: int = 0
    """What is added to the counter on the air, a multiple of `WRAP`."""
    last: int = -1
    heard: list[int] = field(default_factory=list)
    """Numbers that were heard, in ascending order; the last `REMEMBERED` of them."""
    seen: dict[int, tuple[int, int | None]] = field(default_factory=dict)
    """Fingerprint and archive's time of these."""

    def add(self, number: int, fingerprint: int, at: int | None) -> None:
        insort(self.heard, number)
        self.seen[number] = fingerprint, at
        self.last = max(self.last, number)
        if len(self.heard) > REMEMBERED:
            del self.seen[self.heard.pop(0)]

    def before(self, number: int) -> tuple[str, ...]:
        """Return the id of the uplink before that number, as far as heard."""
        place = bisect_left(self.heard, number)
        return (f"{self.name}:{self.heard[place - 1]}",) if place else ()


class _Row(NamedTuple):
    """A row that waits for its parent to be known; `session` is None where it needs none."""

    item: Item
    session: _Session | None
    record: int


class _Uplinks:
    """What one file says: the devices' sessions, rows that wait, and what was counted."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.sessions: dict[str, _Session] = {}
        self.restarts: dict[str, int] = {}
        self.rows: deque[_Row] = deque()
        self.records = 0
        others = ("other_records", "repeated_receptions", "unreadable_times")
        self.counts = dict.fromkeys((*_COUNTS, *others), 0)

    def ready(self, ahead: int) -> Iterator[Item]:
        """Yield the rows that are at least `ahead` records old."""
        while self.rows and self.rows[0].record <= self.records - ahead:
            item, session, _ = self.rows.popleft()
            if session is not None and isinstance(item, Event) and item.seq is not None:
                item = item._replace(parents=session.before(item.seq))
            yield item

    def take(self, line: str, number: int) -> None:
        """Read one record."""
        self.records += 1
        record = _object(line)
        if isinstance(record, str):
            self._bad(line, number, None, record)
            return
        spelling = next((s for s in SPELLINGS if s.gateways in record), None)
        if spelling is None:
            known = any(s.device in record and s.counter not in record for s in SPELLINGS)
            if known:  # a device's status, a join, a downlink
                self.counts["other_records"] += 1
            else:
                self._bad(line, number, None, "no list of gateways (rxInfo or hotspots)")
            return
        device = name_of(record.get(spelling.device))
        counter = record.get(spelling.counter)
        gateways = record[spelling.gateways]
        if device is None:
            self._bad(line, number, None, NO_ID)
        elif type(counter) is not int or not 0 <= counter < MAX_COUNTER:
            reason = f"the frame counter is no whole number of 32 bits: {str(counter)[:40]}"
            self._bad(line, number, device, reason)
        elif not isinstance(gateways, list):
            self._bad(line, number, device, f"{spelling.gateways} is no list")
        elif len(gateways) > MAX_GATEWAYS:
            reason = f"{spelling.gateways} lists more than {MAX_GATEWAYS:,} gateways"
            self._bad(line, number, device, reason)
        else:
            self._uplink(record, spelling, device, counter, number)

    def _uplink(
        self, record: dict[str, Any], spelling: _Spelling, device: str, counter: int, line: int
    ) -> None:
        arrival = self._time(record.get("_timestamp", record.get("_date")))
        fingerprint = hash(repr([record.get(name) for name in _FINGERPRINT]))
        session, seq, new = self._place(device, counter, fingerprint, arrival)
        port = name_of(record.get(spelling.port))
        found = (name_of(record.get(name)) for name in spelling.application)
        application = next((name for name in found if name is not None), None)
        topics = (application, None if port is None else f"port {port}")
        sent = Event(
            kind=SEND,
            id=f"{session.name}:{seq}",
            member=device,
            seq=seq,
            topics=tuple(topic for topic in topics if topic is not None),
            arrival=arrival,
            text=name_of(record.get("deviceName", record.get("name"))),
            source=self.source,
            line=line,
        )
        if new:
            self._wait(sent, session)
        heard: set[tuple[str, int | None]] = set()
        for gateway in record[spelling.gateways]:
            name = name_of(gateway.get(spelling.gateway)) if isinstance(gateway, dict) else None
            if name is None:
                reason = f"{spelling.gateways} holds a gateway without {spelling.gateway}"
                self._bad(json.dumps(gateway, ensure_ascii=False), line, sent.id, reason)
                continue
            at = self._time(gateway.get(spelling.time))
            if (name, at) in heard:  # a second antenna
                self.counts["repeated_receptions"] += 1
                continue
            heard.add((name, at))
            self._wait(sent._replace(kind=RECEIVE, member=name, seq=None, arrival=at, text=None))

    def _place(
        self, device: str, counter: int, fingerprint: int, at: int | None
    ) -> tuple[_Session, int, bool]:
        """Return the uplink's session, its number in it, and whether it is a new one."""
        session = self.sessions.get(device)
        if session is None:
            session = self.sessions[device] = _Session(device, device)
        near_end = WRAP - REMEMBERED
        if counter < REMEMBERED and near_end <= session.last - session.base < WRAP:
            session.base += WRAP
            self.counts["counter_wraps"] += 1
        seq = session.base + counter
        if near_end <= counter < WRAP and 0 <= session.last - session.base < REMEMBERED:
            seq -= WRAP if session.base else 0  # late, from before the wrap
        known = session.seen.get(seq)
        if known is not None:
            if known[0] == fingerprint and _near(known[1], at):
                self.counts["repeated_records"] += 1
                return session, seq, False
        elif seq > session.last - LATE:
            self.counts["late_records"] += seq < session.last
            session.add(seq, fingerprint, at)
            return session, seq, True
        self.counts["counter_resets"] += 1
        restart = self.restarts[device] = self.restarts.get(device, 1) + 1
        session = self.sessions[device] = _Session(device, f"{device}/{restart}")
        session.add(counter, fingerprint, at)
        return session, counter, True

    def _time(self, value: object) -> int | None:
        """Return milliseconds since 1970, or an ISO time, as ns; count what cannot be read."""
        when = text.iso_time(value) if isinstance(value, str) else None
        if when is None and value is not None:
            when = text.nanoseconds(value, "ms")
        self.counts["unreadable_times"] += when is None and value is not None
        return when

    def _wait(self, item: Item, session: _Session | None = None) -> None:
        self.rows.append(_Row(item, session, self.records))

    def _bad(self, line: str, number: int, identity: str | None, reason: str) -> None:
        raw = text.shorten(line)
        self._wait(Quarantined(self.source, number, identity, reason, raw))


def _near(one: int | None, other: int | None) -> bool:
    return one is None or other is None or abs(one - other) <= COPY_WITHIN_NS


def _object(line: str) -> dict[str, Any] | str:
    """Return the JSON object on a line, or what is wrong with it."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        return f"not JSON: {error}"
    return record if isinstance(record, dict) else "not a JSON object"
