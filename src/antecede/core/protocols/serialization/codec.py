"""Serialization of snapshots and invitations, independent of class and module names.

    bytes 0-3   0xA7 "ST", version (1)
    bytes 4-7   CRC-32 of the rest, little endian
    rest        one value

A value is a tag byte and its content. A named tuple has its short name of `KINDS`, the only
link to classes. Later versions read version 1: `tests/golden` has its bytes for every protocol.

The reader trusts no input. Allocations are bounded by the size of the input, and tuples nest at
most `MAX_DEPTH` deep. The fields of a named tuple must have the shapes of the table.
"""

from __future__ import annotations

import importlib
import math
import struct
import zlib
from collections.abc import Hashable
from functools import cache
from typing import Any, NamedTuple

from antecede.core.clocks.encoding import ByteReader, block, varint
from antecede.core.protocols.serialization.schema import (
    ANY,
    BIG,
    BOOL,
    ID,
    MAYBE_SECONDS,
    MAYBE_TIME,
    NUMBER,
    PAIRS,
    TEXT,
    TIME,
    WINDOW,
    Many,
    NamedTupleOf,
    OneOf,
    Shape,
    misfit,
)
from antecede.errors import DecodeError, LocalError

MAGIC = b"\xa7ST"
VERSION = 1
MAX_DEPTH = 64
MAX_BYTES = 1 << 30
"""Size limit of a state, bytes; larger ones are rejected before they are read."""

_NONE, _FALSE, _TRUE, _NUMBER, _INTEGER, _FLOAT, _TEXT, _BYTES, _TUPLE, _NAMED = range(10)


class StoredType(NamedTuple):
    """Named tuple of the stored format: module, class name and shapes of the fields."""

    module: str
    cls: str
    fields: tuple[Shape, ...]


KINDS: dict[str, StoredType] = {
    "id": StoredType("base", "MessageId", (NUMBER, NUMBER)),
    "numbered": StoredType("basic.base", "NumberedMessage", (NUMBER, NUMBER, ANY)),
    "bss": StoredType("vector.bss", "BssMessage", (NUMBER, NUMBER, ANY, BIG)),
    "idr": StoredType("vector.idr", "IdrMessage", (NUMBER, NUMBER, ANY, BIG)),
    "ds": StoredType("vector.ds", "DsMessage", (NUMBER, NUMBER, ANY, BIG)),
    "ses": StoredType(
        "multicast.ses_messages",
        "SesMessage",
        (NUMBER, NUMBER, ANY, Many(NUMBER), BIG, Many((NUMBER, BIG))),
    ),
    "sent": StoredType(
        "multicast.rst_messages", "RstMessage", (NUMBER, NUMBER, ANY, Many(NUMBER), Many(BIG))
    ),
    "matrix": StoredType("matrix.messages", "MatrixMessage", (NUMBER, NUMBER, ANY, BIG, Many(BIG))),
    "matrix-heartbeat": StoredType(
        "matrix.messages", "Heartbeat", (NUMBER, NUMBER, ANY, BIG, Many(BIG))
    ),
    "matrix-request": StoredType(
        "matrix.messages", "MatrixRequest", (NUMBER, NUMBER, ANY, NUMBER, Many(NUMBER))
    ),
    "sb": StoredType("reply.messages", "SbMessage", (NUMBER, NUMBER, Many(ID), ANY)),
    "sb-policy": StoredType(
        "reply.policy",
        "ReplyPolicy",
        (BOOL, TEXT, MAYBE_SECONDS, OneOf(None, NUMBER), TEXT, OneOf(BOOL, TEXT)),
    ),
    "clock": StoredType(
        "clock_based.messages", "StampedMessage", (NUMBER, NUMBER, ANY, NUMBER, NUMBER, TIME)
    ),
    "clock-null": StoredType(
        "clock_based.messages", "NullMessage", (NUMBER, NUMBER, ANY, NUMBER, NUMBER, TIME)
    ),
    "clock-request": StoredType(
        "clock_based.messages", "RetransmissionRequest", (NUMBER, NUMBER, ANY, NUMBER, NUMBER)
    ),
    "clock-gone": StoredType("clock_based.messages", "Gone", (NUMBER, NUMBER, ANY, NUMBER)),
    "clock-taken": StoredType(
        "clock_based.channel", "AcceptedMessage", (NamedTupleOf("StampedMessage"), Many(ID))
    ),
    "own-clock": StoredType("clocks.monotonic_clock", "MonotonicClock", (MAYBE_TIME, TIME)),
    "clock-floor": StoredType("clock_based.relations", "LowerBound", (NUMBER, TIME)),
    "topic": StoredType(
        "topics.messages",
        "TopicMessage",
        (NUMBER, NUMBER, ANY, Many(TEXT), Many((TEXT, NUMBER)), NUMBER, TIME, BIG),
    ),
    "total": StoredType("total.sequencer", "SequencedMessage", (NUMBER, NUMBER, ANY, NUMBER)),
    "total-agreed": StoredType("total.timestamps", "TimedMessage", (NUMBER, NUMBER, ANY, NUMBER)),
    "up": StoredType("hierarchical.messages", "Upward", (NUMBER, NUMBER, WINDOW, NUMBER, ANY)),
    "down": StoredType("hierarchical.messages", "Downward", (NUMBER, NUMBER, NUMBER, WINDOW, ANY)),
    "up-floor": StoredType(
        "hierarchical.messages", "Acknowledgement", (NUMBER, NUMBER, NUMBER, ANY)
    ),
    "flush": StoredType("hierarchical.messages", "Flush", (NUMBER, NUMBER, WINDOW, ANY)),
    "external": StoredType(
        "hierarchical.messages",
        "External",
        (NUMBER, NUMBER, PAIRS, Many((NUMBER, WINDOW)), WINDOW, ANY),
    ),
}
"""Named tuples by stored name. A name keeps its meaning for ever; add a row for a new type."""


@cache
def _class_of(name: str) -> Any:
    kind = KINDS[name]
    return getattr(importlib.import_module(_find_module(kind)), kind.cls)


def _find_module(kind: StoredType) -> str:
    folder = "" if kind.module.startswith("clocks.") else "protocols."
    return f"antecede.core.{folder}{kind.module}"


@cache
def _name_of(cls: type[Any]) -> str:
    for name, kind in KINDS.items():
        if cls.__name__ == kind.cls and cls.__module__ == _find_module(kind):
            return name
    raise LocalError(
        f"cannot store a {cls.__name__}; custom protocols return plain tuples from snapshot()"
    )


# -- writing --------------------------------------------------------------------------------


def pack_state(state: Hashable) -> bytes:
    """Return nested tuples of plain values and messages as bytes. Raises LocalError."""
    out = bytearray()
    _write(state, out)
    return MAGIC + bytes((VERSION,)) + zlib.crc32(out).to_bytes(4, "little") + bytes(out)


def _write(value: Any, out: bytearray) -> None:
    kind = type(value)
    if kind is int:
        _write_int(value, out)
    elif kind is tuple:
        out.append(_TUPLE)
        out += varint(len(value))
        for item in value:
            _write(item, out)
    elif isinstance(value, bytes):
        out.append(_BYTES)
        out += block(value)
    elif value is None or kind is bool:
        out.append(_NONE if value is None else _TRUE if value else _FALSE)
    elif isinstance(value, str):
        out.append(_TEXT)
        out += block(value.encode("utf-8", "surrogatepass"))
    elif kind is float:
        out.append(_FLOAT)
        out += struct.pack("<d", value)
    elif isinstance(value, tuple):
        out.append(_NAMED)
        out += block(_name_of(type(value)).encode())
        for item in value:
            _write(item, out)
    else:
        raise LocalError(f"cannot store a {kind.__name__}: {value!r:.60}")


def _write_int(value: int, out: bytearray) -> None:
    if 0 <= value < 1 << 64:
        out.append(_NUMBER)
        out += varint(value)
    else:
        out.append(_INTEGER)
        out += block(value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True))


# -- reading --------------------------------------------------------------------------------


def unpack_state(data: bytes, *fields: int) -> tuple[Any, ...]:
    """Return the tuple that was packed, of one of these sizes. Raises DecodeError."""
    start = len(MAGIC) + 5
    if not isinstance(data, bytes | bytearray | memoryview):
        raise DecodeError(f"expected bytes of a stored state, got {type(data).__name__}")
    data = bytes(data)
    if data[: len(MAGIC)] != MAGIC:
        raise DecodeError("not a stored state of antecede; expected other first bytes")
    if len(data) > MAX_BYTES:
        raise DecodeError(f"stored state of {len(data)} bytes; the limit is {MAX_BYTES}")
    if data[len(MAGIC) : len(MAGIC) + 1] != bytes((VERSION,)):
        raise DecodeError(
            "stored state of another format version; read it with that version of antecede"
        )
    if zlib.crc32(memoryview(data)[start:]).to_bytes(4, "little") != data[start - 4 : start]:
        raise DecodeError("stored state with a wrong checksum: it was truncated or changed")
    reader = ByteReader(data, start)
    state = _read(reader, 0)
    reader.finish()
    if type(state) is not tuple or len(state) not in fields:
        raise DecodeError("stored state of another kind")
    return state


def _read(reader: ByteReader, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise DecodeError(f"invalid stored state: nested more than {MAX_DEPTH} deep")
    tag = reader.take(1)[0]
    if tag == _NUMBER:
        return reader.varint()
    if tag == _TUPLE:
        count = reader.varint()
        if count > len(reader.data) - reader.offset:  # an item takes at least a byte
            raise DecodeError(f"invalid stored state: a tuple of {count} values exceeds its bytes")
        return tuple([_read(reader, depth + 1) for _ in range(count)])
    if tag == _BYTES:
        return reader.block()
    if tag in (_NONE, _FALSE, _TRUE):
        return (None, False, True)[tag]
    if tag == _TEXT:
        return _decode_text(reader.block())
    if tag == _INTEGER:
        return int.from_bytes(reader.block(), "little", signed=True)
    if tag == _FLOAT:
        return _decode_float(reader.take(8))
    if tag == _NAMED:
        return _read_named(reader, depth)
    raise DecodeError(f"invalid stored state: unknown tag {tag} at byte {reader.offset - 1}")


def _decode_text(raw: bytes) -> str:
    try:
        return raw.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise DecodeError("invalid stored state: text that is not UTF-8") from error


def _decode_float(raw: bytes) -> float:
    value: float = struct.unpack("<d", raw)[0]
    if math.isnan(value):
        raise DecodeError("invalid stored state: a float that is not a number")
    return value


def _read_named(reader: ByteReader, depth: int) -> Any:
    name = _decode_text(reader.block())
    if name not in KINDS:
        raise DecodeError(f"invalid stored state: unknown type {name[:20]!r}")
    values = [_read(reader, depth + 1) for _ in KINDS[name].fields]
    for number, (value, shape) in enumerate(zip(values, KINDS[name].fields, strict=True)):
        if where := misfit(value, shape):
            raise DecodeError(f"invalid stored state: field {number} of {name!r}: {where}")
    return _class_of(name)(*values)
