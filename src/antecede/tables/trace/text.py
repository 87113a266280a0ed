"""Bounded readers of untrusted files: lines, numbers, times.

Gzip is detected by content and decompressed. The length of a line is bounded. Invalid UTF-8 becomes
backslash escapes.
"""

from __future__ import annotations

import codecs
import datetime
import gzip
import io
import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

from antecede.errors import InputError

HEAD_BYTES = 1 << 18
MAX_LINE_BYTES = 1 << 24
MAX_RAW = 500

_INT64 = 1 << 63
_UNITS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_FRACTION = re.compile(r"[.,](\d+)")


def open_bytes(path: Path) -> IO[bytes]:
    """Return an open file, decompressed if it is gzip. Raise InputError if it is unreadable."""
    if path.is_fifo():  # format detection would consume it
        raise InputError("pipes are not supported; write the data to a file first", path=str(path))
    try:
        with path.open("rb") as file:
            is_gzip = file.read(2) == b"\x1f\x8b"
        return cast("IO[bytes]", gzip.open(path) if is_gzip else path.open("rb"))
    except OSError as error:
        raise InputError(f"cannot read: {error.strerror or error}", path=str(path)) from error


def files_below(folder: Path) -> list[Path]:
    """Return the files below a folder by name, without names that begin with "_" or "."."""
    return [
        part
        for part in sorted(folder.rglob("*"))
        if part.is_file()
        and not any(piece.startswith(("_", ".")) for piece in part.relative_to(folder).parts)
    ]


def read_bytes(path: Path, size: int | None = None) -> tuple[bytes, str]:
    """Return the first `size` bytes (None: all) and the reason of a truncation, or ""."""
    found = bytearray()
    with open_bytes(path) as file:
        try:
            while size is None or len(found) < size:
                part = cast("io.BufferedReader", file).read1(1 << 20)
                if not part:
                    break
                found += part
        except (EOFError, OSError, zlib.error) as error:
            return bytes(found[:size]), f"truncated or damaged file: {error}"
    return bytes(found[:size]), ""


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, line without its end), at most `MAX_LINE_BYTES` of each line.

    Raise InputError after the last readable line of a damaged file.
    """
    number = 0
    with open_bytes(path) as file:
        while True:
            try:
                raw = read_bounded_line(file)
            except (EOFError, OSError, zlib.error) as error:
                message = f"truncated or damaged file after line {number}: {error}"
                raise InputError(message, path=str(path), line=number + 1) from error
            if not raw:
                return
            number += 1
            if number == 1:
                raw = raw.removeprefix(b"\xef\xbb\xbf")
            yield number, decode(raw).rstrip("\r\n")


def read_bounded_line(file: IO[bytes]) -> bytes:
    """Return the first `MAX_LINE_BYTES` of the next line; b"" at the end."""
    raw = part = file.readline(MAX_LINE_BYTES)
    while len(part) == MAX_LINE_BYTES and part[-1:] != b"\n":
        part = file.readline(MAX_LINE_BYTES)
    return raw


def parse_json_object(line: str) -> dict[str, Any] | str:
    """Return the JSON object on a line, or its defect as text."""
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        return f"invalid JSON: {error.msg} at column {error.colno}"
    except (ValueError, RecursionError) as error:
        return f"invalid JSON: {error}"
    return record if isinstance(record, dict) else "not a JSON object"


def decode(raw: bytes) -> str:
    """Return UTF-8 bytes as text; invalid bytes become backslash escapes."""
    return raw.decode("utf-8", errors="backslashreplace")


def find_encoding_defect(head: bytes) -> str:
    """Return the message for the first bytes of a file that is not UTF-8, "" if they are."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)  # the last character may be cut
    except UnicodeDecodeError as error:
        line = head.count(b"\n", 0, error.start) + 1
        return (
            f"line {line} has the byte 0x{head[error.start]:02x}, which is not UTF-8; convert the "
            "file first, for example: iconv -f ISO-8859-1 -t UTF-8"
        )
    return ""


def shorten(text: str) -> str:
    """Return at most `MAX_RAW` characters of `text`, encodable as UTF-8."""
    short = text if len(text) <= MAX_RAW else text[: MAX_RAW - 3] + "..."
    return short.encode("utf-8", "backslashreplace").decode("utf-8")


def parse_int64(value: object) -> int | None:
    """Return a value as a 64-bit integer; None for other values, such as True and 1.5."""
    if isinstance(value, str) and len(value) < 32:
        try:
            value = int(value)
        except ValueError:
            return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and -_INT64 <= value < _INT64:
        return value
    return None


def parse_nanoseconds(value: object, unit: str) -> int | None:
    """Return a time since 1970 in `unit` (s, ms, us, ns) as ns; None if out of range."""
    factor = _UNITS[unit]
    if isinstance(value, str) and len(value) < 40:
        value = _parse_number(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, float):
        if not -9.3e18 < value * factor < 9.3e18:  # also NaN
            return None
        whole = int(value // 1)
        return parse_int64(whole * factor + round((value - whole) * factor))
    return parse_int64(value * factor)


def _parse_number(text: str) -> int | float | None:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None


MAX_TIME = 9.2e18
"""Limit of numbers that are times in some unit; more exceeds 64 bits in ns."""


def guess_unit(value: float) -> str:
    """Return the unit of a time since 1970, guessed by its size: 1e11 s is the year 5138."""
    for unit, limit in (("s", 1e11), ("ms", 1e14), ("us", 1e17)):
        if abs(value) < limit:
            return unit
    return "ns"


def parse_iso_time(text: str) -> int | None:
    """Return an ISO 8601 time as ns since 1970 (no zone: UTC); None if it is invalid."""
    fraction = _FRACTION.search(text)
    plain = text if fraction is None else text[: fraction.start()] + text[fraction.end() :]
    try:
        when = datetime.datetime.fromisoformat(plain.strip())
    except ValueError:
        return None
    below_second = int(fraction[1][:9].ljust(9, "0")) if fraction else 0
    return datetime_to_nanoseconds(when, below_second)


def datetime_to_nanoseconds(when: datetime.datetime, below_second: int) -> int | None:
    """Return a time plus `below_second` ns as ns since 1970 (no zone: UTC), if in range."""
    if when.tzinfo is None:
        when = when.replace(tzinfo=datetime.UTC)
    try:
        span = when - _EPOCH
    except OverflowError:
        return None
    return parse_int64((span.days * 86400 + span.seconds) * 10**9 + below_second)
