"""Packets that fit no datagram: in parts, each acknowledged, sent again until all have come.

Who receives keeps unfinished parcels within a bound of bytes, the newest ones, and remembers the
finished ones, so that a part that comes again is acknowledged and changes nothing.
"""

from __future__ import annotations

from collections import OrderedDict

from antecede.clocks.wire import Reader, varint
from antecede.errors import DecodeError, LimitError
from antecede.live.datagrams.packets import PART, PARTS, packet

TRIES = 10
"""So often in a row nothing of a parcel is acknowledged before it is given up."""
AT_ONCE = 64
"""Parts of one parcel that are sent without an acknowledgement."""
FINISHED = 256
HEAD = 24
"""Bytes of a part beside what it carries."""


class Outgoing:
    """A parcel on its way to one member."""

    def __init__(self, number: int, whole: bytes, size: int, now: int) -> None:
        self.number, self.whole = number, whole
        parts = [whole[k : k + size] for k in range(0, len(whole), size)]
        self.parts = dict(enumerate(parts))
        """Those that were not acknowledged."""
        self.count = len(parts)
        self.tries = 0
        self.due_ns = now

    def send(self, now: int, again_ns: int) -> list[bytes]:
        """Return the parts that go now; they are due again in a while, ever later."""
        self.due_ns = now + (again_ns << min(self.tries, 4))
        self.tries += 1
        head = varint(self.number)
        return [
            packet(PART, head, varint(index), varint(self.count), self.parts[index])
            for index in list(self.parts)[:AT_ONCE]
        ]

    def acknowledged(self, bits: int, now: int) -> None:
        """So much has come: what is left goes on."""
        before = len(self.parts)
        if bits.bit_length() > self.count:
            raise DecodeError("parts are acknowledged that there are none of")
        window = list(self.parts)[:AT_ONCE]
        self.parts = {k: part for k, part in self.parts.items() if not bits >> k & 1}
        if len(self.parts) < before:
            self.tries = 0
            if not any(k in self.parts for k in window):
                self.due_ns = now


class Incoming:
    """The parcels that come from one member."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: OrderedDict[int, tuple[int, dict[int, bytes]]] = OrderedDict()
        self._finished: OrderedDict[int, int] = OrderedDict()
        self.bytes = 0

    def take(self, reader: Reader) -> tuple[bytes, bytes | None]:
        """Take a part; return the acknowledgement, and the whole packet when this was its last.

        Raises DecodeError and LimitError.
        """
        number, index, count = reader.varint(), reader.varint(), reader.varint()
        part = reader.rest()
        if not index < count or not part:
            raise DecodeError(f"part {index} of {count}, {len(part)} bytes")
        if number in self._finished:
            return self._said(number, self._finished[number]), None
        if count * len(part) > self._most + len(part) or count > self._most // 64:
            raise LimitError(f"a packet in {count} parts; {self._most} bytes are the most")
        known, parts = self._open.setdefault(number, (count, {}))
        if known != count:
            raise DecodeError(f"a packet in {count} parts, and in {known}")
        if index not in parts:
            parts[index] = part
            self.bytes += len(part)
            self._make_room(number)
        if len(parts) < count:
            return self._said(number, count, sum(1 << k for k in parts)), None
        self._forget(number)
        self._finished[number] = count
        if len(self._finished) > FINISHED:
            self._finished.popitem(last=False)
        whole = b"".join(parts[k] for k in range(count))
        return self._said(number, count), whole

    def _make_room(self, but: int) -> None:
        while self.bytes > self._most and len(self._open) > 1:
            self._forget(next(number for number in self._open if number != but))
        if self.bytes > self._most:
            self._forget(but)
            raise LimitError(f"a packet above {self._most} bytes")

    def _forget(self, number: int) -> None:
        _, parts = self._open.pop(number)
        self.bytes -= sum(map(len, parts.values()))

    def _said(self, number: int, count: int, bits: int | None = None) -> bytes:
        found = (1 << count) - 1 if bits is None else bits
        return packet(PARTS, varint(number), found.to_bytes(-(-count // 8), "little"))


def read_parts(reader: Reader) -> tuple[int, int]:
    """Read an acknowledgement: (parcel, bits). Raises DecodeError."""
    return reader.varint(), int.from_bytes(reader.rest(), "little")
