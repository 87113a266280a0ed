"""Reader of LoRaWAN uplinks as JSON lines: messages of devices, received by many gateways.

A record (`lora_spellings`) gives a `send` row of the device and a `receive` row per gateway. The
`arrival` of a send is the archive's time (`_timestamp` in ms, else `_date`, else the server's), of
a receipt the gateway's. Devices have no clock, so there is no `send_time`.

The frame counter orders the uplinks of a device: the cause of an uplink is the previous received
one. Late uplinks count if they are among the next `LOOK_AHEAD` records. Counters are ambiguous:

- 0 follows 65,535: numbers continue at 65,536 (`counter_wraps`).
- A device that joins again restarts at 0 (`counter_resets`). Ids become DEVICE/2:0 and so on. A
  reset starts a new order, as does a new server session (device address, session key).
- The same number and payload within an hour is the same uplink (`repeated_records`), and its
  receipts count. Another payload means a reset.
- A slightly lower number (`MAX_LATE`) that is new is a late uplink (`late_records`).
"""

from __future__ import annotations

import json
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from antecede.tables.trace import text
from antecede.tables.trace.formats.lora_spellings import FIELDS, Fields, is_other_record, unwrap
from antecede.tables.trace.identities import name_of
from antecede.tables.trace.reader import NO_ID, Detail, Item, ReadOptions, quarantine_break
from antecede.tables.trace.schema import RECEIVE, SEND, Event, Quarantined

LOOK_AHEAD = 64
"""Records read ahead, so that a late uplink becomes a cause."""
MAX_LATE = 16
"""Limit of a late number's distance to the highest; a larger distance is a reset."""
MAX_COPY_AGE_NS = 3600 * 10**9
"""Limit of the time between reports of an uplink, by the archive's clock."""
WRAP = 1 << 16
MAX_REMEMBERED = 1024
MAX_SESSIONS = 4
MAX_COUNTER = 1 << 32
MAX_GATEWAYS = 1 << 12
"""Limit of receipts per uplink; bounds the memory of `LOOK_AHEAD` records."""

_COUNTS = ("counter_wraps", "counter_resets", "repeated_records", "late_records")


class LoraReader:
    """Reader of LoRaWAN uplinks."""

    name = "lora"
    uses: tuple[str, ...] = ()

    def sniff(self, path: Path, head: bytes) -> float:
        """Recognize a record with a device and gateways among the first lines."""
        for line in text.decode(head).lstrip("\ufeff").split("\n")[:20]:
            record = text.parse_json_object(line)
            if isinstance(record, dict):
                record = unwrap(record)
                if any(fields.fits(record) and fields.is_uplink(record) for fields in FIELDS):
                    return 0.95
        return 0.0

    def read(self, path: Path, options: ReadOptions) -> Iterator[Item]:
        """Yield the uplinks and their receipts in the order of the file."""
        uplinks = _UplinkReader(str(path))
        yield from quarantine_break(uplinks.read(path), path)
        yield from uplinks.take_ready(0)
        for name, count in uplinks.counts.items():
            yield Detail(name, count)


@dataclass(slots=True)
class _Session:
    """Uplinks of a device since its last counter reset."""

    device: str
    name: str
    """Prefix of the ids of uplinks."""
    base: int = 0
    """Offset of the transmitted counter, a multiple of `WRAP`."""
    last: int = -1
    heard: list[int] = field(default_factory=list)
    """Last `MAX_REMEMBERED` numbers, ascending."""
    seen: dict[int, tuple[int, int | None]] = field(default_factory=dict)
    """Payload hashes and archive times of these numbers."""

    def add(self, number: int, fingerprint: int, at: int | None) -> None:
        insort(self.heard, number)
        self.seen[number] = fingerprint, at
        self.last = max(self.last, number)
        if len(self.heard) > MAX_REMEMBERED:
            del self.seen[self.heard.pop(0)]

    def find_previous(self, number: int) -> tuple[str, ...]:
        place = bisect_left(self.heard, number)
        return (f"{self.name}:{self.heard[place - 1]}",) if place else ()


class _QueuedRow(NamedTuple):
    item: Item
    session: _Session | None
    record: int


class _UplinkReader:
    def __init__(self, source: str) -> None:
        self.source = source
        self.sessions: dict[str, dict[str | None, _Session]] = {}
        self.restarts: dict[str, int] = {}
        self.rows: deque[_QueuedRow] = deque()
        self.records = 0
        others = ("other_records", "repeated_receptions", "unreadable_times")
        self.counts = dict.fromkeys((*_COUNTS, *others), 0)

    def read(self, path: Path) -> Iterator[Item]:
        """Yield the rows of a file except those of the last `LOOK_AHEAD` records."""
        for number, line in text.read_lines(path):
            if line.strip():
                self.add_line(line, number)
                yield from self.take_ready(LOOK_AHEAD)

    def take_ready(self, ahead: int) -> Iterator[Item]:
        while self.rows and self.rows[0].record <= self.records - ahead:
            item, session, _ = self.rows.popleft()
            if session is not None and isinstance(item, Event) and item.seq is not None:
                item = item._replace(causes=session.find_previous(item.seq))
            yield item

    def add_line(self, line: str, number: int) -> None:
        self.records += 1
        record = text.parse_json_object(line)
        if isinstance(record, str):
            self._quarantine(line, number, None, record)
            return
        record = unwrap(record)
        listed = [fields for fields in FIELDS if fields.select("gateways", record) is not None]
        if not listed:
            if is_other_record(record):
                self.counts["other_records"] += 1
            else:
                names = ", ".join(dict.fromkeys(one.spelling.gateways for one in FIELDS))
                self._quarantine(
                    line, number, None, f"no list of gateways; expected one of {names}"
                )
            return
        fields = next((one for one in listed if one.fits(record)), listed[0])
        device = name_of(fields.select("device", record))
        counter = fields.select("counter", record)
        if counter is None and fields.spelling.is_zero_omitted:
            counter = 0
        gateways = fields.select("gateways", record)
        if device is None:
            self._quarantine(line, number, None, NO_ID)
        elif type(counter) is not int or not 0 <= counter < MAX_COUNTER:
            reason = f"invalid frame counter: {str(counter)[:40]}; expected a whole 32-bit number"
            self._quarantine(line, number, device, reason)
        elif not isinstance(gateways, list):
            self._quarantine(line, number, device, f"{fields.spelling.gateways} is not a list")
        elif len(gateways) > MAX_GATEWAYS:
            reason = f"{fields.spelling.gateways} has more than {MAX_GATEWAYS:,} gateways"
            self._quarantine(line, number, device, reason)
        else:
            self._add_uplink(record, fields, device, counter, number)

    def _add_uplink(
        self, record: dict[str, Any], fields: Fields, device: str, counter: int, line: int
    ) -> None:
        arrival = self._parse_time(fields.select("arrival", record))
        fingerprint = hash(repr(fields.select("payload", record)))
        key = name_of(fields.select("session", record))
        session, seq, new = self._find_session(device, key, counter, fingerprint, arrival)
        port = name_of(fields.select("port", record))
        application = name_of(fields.select("application", record))
        topics = (application, None if port is None else f"port {port}")
        sent = Event(
            kind=SEND,
            id=f"{session.name}:{seq}",
            member=device,
            seq=seq,
            topics=tuple(topic for topic in topics if topic is not None),
            arrival=arrival,
            text=name_of(fields.select("name", record)),
            source=self.source,
            line=line,
        )
        if new:
            self._queue_row(sent, session)
        heard: set[tuple[str, int | None]] = set()
        for gateway in fields.select("gateways", record):
            name = name_of(fields.select("gateway", gateway))
            if name is None:
                listed = fields.spelling
                reason = f"{listed.gateways} has a gateway without {listed.gateway}"
                self._quarantine(json.dumps(gateway, ensure_ascii=False), line, sent.id, reason)
                continue
            at = self._parse_time(fields.select("time", gateway))
            if (name, at) in heard:  # a second antenna
                self.counts["repeated_receptions"] += 1
                continue
            heard.add((name, at))
            self._queue_row(
                sent._replace(kind=RECEIVE, member=name, seq=None, arrival=at, text=None)
            )

    def _find_session(
        self, device: str, key: str | None, counter: int, fingerprint: int, at: int | None
    ) -> tuple[_Session, int, bool]:
        """Return the session of an uplink, its number there, and whether it is new."""
        session = self.sessions.get(device, {}).get(key)
        if session is None and key is not None and device in self.restarts:
            session = self._start_session(device, key)
        elif session is None:
            self.restarts.setdefault(device, 1)
            session = self.sessions.setdefault(device, {})[key] = _Session(device, device)
        near_end = WRAP - MAX_REMEMBERED
        if counter < MAX_REMEMBERED and near_end <= session.last - session.base < WRAP:
            session.base += WRAP
            self.counts["counter_wraps"] += 1
        seq = session.base + counter
        if near_end <= counter < WRAP and 0 <= session.last - session.base < MAX_REMEMBERED:
            seq -= WRAP if session.base else 0  # late uplink from before the wrap
        known = session.seen.get(seq)
        if known is not None:
            if known[0] == fingerprint and _is_near(known[1], at):
                self.counts["repeated_records"] += 1
                return session, seq, False
        elif seq > session.last - MAX_LATE:
            self.counts["late_records"] += seq < session.last
            session.add(seq, fingerprint, at)
            return session, seq, True
        session = self._start_session(device, key)
        session.add(counter, fingerprint, at)
        return session, counter, True

    def _start_session(self, device: str, key: str | None) -> _Session:
        self.counts["counter_resets"] += 1
        self.restarts[device] += 1
        mine = self.sessions[device]
        mine.pop(key, None)
        if len(mine) >= MAX_SESSIONS:
            del mine[next(iter(mine))]
        session = mine[key] = _Session(device, f"{device}/{self.restarts[device]}")
        return session

    def _parse_time(self, value: object) -> int | None:
        """Return an ISO time, or ms since 1970, as ns; count unreadable times."""
        when = text.parse_iso_time(value) if isinstance(value, str) else None
        if when is None and value is not None:
            when = text.parse_nanoseconds(value, "ms")
        self.counts["unreadable_times"] += when is None and value is not None
        return when

    def _queue_row(self, item: Item, session: _Session | None = None) -> None:
        self.rows.append(_QueuedRow(item, session, self.records))

    def _quarantine(self, line: str, number: int, identity: str | None, reason: str) -> None:
        raw = text.shorten(line)
        self._queue_row(Quarantined(self.source, number, identity, reason, raw))


def _is_near(one: int | None, other: int | None) -> bool:
    return one is None or other is None or abs(one - other) <= MAX_COPY_AGE_NS
