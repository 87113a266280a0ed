"""Normal form of trace and span ids, shared by all readers of spans.

Ids are numbers: 16 bytes for a trace, 8 for a span (W3C Trace Context, Recommendation of
2021-11-23; OpenTelemetry Protocol 1.x). These notations of a number give the same id:

- hexadecimal digits in any case, with or without leading zeros or `0x`; a UUID with hyphens;
- base64 of the bytes (JSON of Protocol Buffers), also URL-safe and without padding;
- base64 of hexadecimal or base64 text (a bytes field filled with text);
- bytes, or bytes that contain hexadecimal text;
- 64-bit integers, signed or unsigned (Datadog, Apache Thrift), also as decimals or as
  floating-point numbers below 2**53 (integer columns with nulls).

The normal form is lower-case hexadecimal: 16 digits below 2**64, else 32. Zero is not an id. Other
text is kept. Other values (fractions, rounded numbers, lists, objects) are unreadable and counted.

The patterns have no anchors, because Java and Python write them differently.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from array import array
from collections.abc import Iterable
from decimal import Decimal
from typing import Final

import numpy as np

from antecede.tables.trace.identities import MAX_EXACT

TRACE_BYTES, SPAN_BYTES = 16, 8
DIGITS: Final = 16
"""Hexadecimal digits of an id below 2**64."""
HEX: Final = r"(?:0[xX])?[0-9a-fA-F]+"
UUID: Final = r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"
_SIGN = "[A-Za-z0-9+/_-]"
BASE64: Final = {
    TRACE_BYTES: rf"{_SIGN}{{22}}==|{_SIGN}{{21}}[AQgw]",
    SPAN_BYTES: rf"{_SIGN}{{11}}=|{_SIGN}{{10}}[AEIMQUYcgkosw048]",
}
"""Base64 of an id; without padding only if the unused bits are zero."""
ENCODED_TEXT: Final = rf"{_SIGN}{{16,47}}={{0,2}}"
"""Base64 that may contain text."""
INNER: Final = {
    TRACE_BYTES: rf"(?:0[xX])?(?:[0-9a-fA-F]{{16}}|[0-9a-fA-F]{{32}})|{_SIGN}{{22}}==",
    SPAN_BYTES: rf"(?:0[xX])?[0-9a-fA-F]{{16}}|{_SIGN}{{11}}=",
}
"""Id as text in base64 or in a bytes field."""

_URL_SAFE = str.maketrans("-_", "+/")


def _compile_whole(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"\A(?:{pattern})\Z")


_HEX, _UUID, _ENCODED_TEXT = _compile_whole(HEX), _compile_whole(UUID), _compile_whole(ENCODED_TEXT)
_BASE64 = {size: _compile_whole(pattern) for size, pattern in BASE64.items()}
_INNER = {size: _compile_whole(pattern) for size, pattern in INNER.items()}


def normalize_id(value: object, size: int) -> str | None:
    """Return an id of `size` bytes in normal form; None for blanks, zero and unreadable values."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float | Decimal) and is_exact(value):
        value = int(value)
    if isinstance(value, int):
        return _normalize_digits(f"{value % (1 << 64) if value < 0 else value:x}", size)
    if isinstance(value, bytes):
        inner = value.decode("latin-1")
        if not _INNER[size].match(inner):
            return _normalize_digits(value.hex(), size)
        value = inner
    if not isinstance(value, str) or not (written := value.strip()):
        return None
    digits = _parse_digits(written, size)
    if digits is None or _ENCODED_TEXT.match(written):
        digits = _parse_digits(_decode_text(written, size) or "", size) or digits
    return written if digits is None else _normalize_digits(digits, size)


def is_exact(value: float | Decimal) -> bool:
    """Return whether a number is whole and not rounded."""
    if isinstance(value, float):
        return value.is_integer() and abs(value) < MAX_EXACT
    return value == value.to_integral_value()


def is_unreadable(value: object) -> bool:
    """Return whether a value is not an id, and neither null, NaN nor blank."""
    if isinstance(value, float | Decimal):
        return not (math.isnan(value) or is_exact(value))
    return isinstance(value, bool) or not (value is None or isinstance(value, str | bytes | int))


def make_span_ids(pairs: Iterable[tuple[object, object]]) -> tuple[list[str], int]:
    """Return the event ids for pairs of trace and span id, and the number of invalid pairs."""
    names = [
        (normalize_id(trace, TRACE_BYTES), normalize_id(span, SPAN_BYTES)) for trace, span in pairs
    ]
    found = [f"{trace}/{span}" for trace, span in names if trace and span]
    return found, len(names) - len(found)


class TraceIds:
    """Trace ids as numbers, to match 64-bit ids with the 128-bit ids that they end."""

    def __init__(self) -> None:
        self._short, self._long, self._high = array("Q"), array("Q"), array("Q")
        self._last = ""

    def add(self, trace: str) -> None:
        """Add the trace of a span."""
        if trace == self._last or len(trace) not in (DIGITS, 2 * DIGITS):
            return
        self._last = trace
        try:
            high, low = int(trace[:-DIGITS] or "0", 16), int(trace[-DIGITS:], 16)
        except ValueError:
            return
        if high:
            self._long.append(low)
            self._high.append(high)
        else:
            self._short.append(low)

    def count_halves(self) -> int:
        """Return the number of short ids that end a longer one."""
        return len(np.intersect1d(np.asarray(self._short), np.asarray(self._long)))

    def find_longer_ids(self) -> dict[str, str]:
        """Return the longer id by short id, for short ids that end exactly one."""
        if not (self._short and self._long):
            return {}
        both = np.stack([np.asarray(self._long), np.asarray(self._high)], axis=1)
        longer = np.unique(both[np.isin(both[:, 0], np.asarray(self._short))], axis=0)
        _, at, count = np.unique(longer[:, 0], return_index=True, return_counts=True)
        return {
            f"{low:0{DIGITS}x}": f"{high:0{DIGITS}x}{low:0{DIGITS}x}"
            for low, high in longer[at[count == 1]].tolist()
        }


def _parse_digits(written: str, size: int) -> str | None:
    if _HEX.match(written):
        return written[2:] if written[1:2] in ("x", "X") else written
    if _UUID.match(written):
        return written.replace("-", "")
    return _decode_base64(written).hex() if _BASE64[size].match(written) else None


def _decode_text(written: str, size: int) -> str | None:
    if _HEX.match(written) or not _ENCODED_TEXT.match(written):
        return None
    inner = _decode_base64(written).decode("latin-1")
    return inner if _INNER[size].match(inner) else None


def _decode_base64(written: str) -> bytes:
    plain = written.rstrip("=").translate(_URL_SAFE)
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError):
        return b""


def _normalize_digits(digits: str, size: int) -> str | None:
    number = digits.lstrip("0").lower()
    if not number:
        return None
    return number.zfill(DIGITS if len(number) <= DIGITS else 2 * size)
