"""Byte encoding of control information: unsigned LEB128 varints and length-prefixed blocks.

Decoders check lengths before they allocate, so that received numbers do not determine memory use.
`DecodeError` names the byte offset.
"""

from __future__ import annotations

from antecede.errors import DecodeError

MAX_VARINT_BYTES = 10
_ONE_BYTE = tuple(bytes((value,)) for value in range(0x80))


def varint(value: int) -> bytes:
    """Encode an integer from 0 to 2**64 - 1 in 1 to 10 bytes."""
    if 0 <= value < 0x80:
        return _ONE_BYTE[value]
    out = bytearray()
    while value > 0x7F:
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def varints(*values: int) -> bytes:
    """Encode numbers one after another."""
    out = b""
    for value in values:
        out += _ONE_BYTE[value] if 0 <= value < 0x80 else varint(value)
    return out


def varint_size(value: int) -> int:
    """Return the number of bytes of `varint(value)`."""
    return max(1, (value.bit_length() + 6) // 7)


def block(data: bytes) -> bytes:
    """Encode bytes with their length in front."""
    return varint(len(data)) + data


class ByteReader:
    """Cursor over encoded bytes."""

    __slots__ = ("data", "offset")

    def __init__(self, data: bytes, offset: int = 0) -> None:
        self.data = data
        self.offset = offset

    def varint(self) -> int:
        """Read a varint. Raise DecodeError if it is truncated or above 64 bits."""
        data, offset = self.data, self.offset
        if offset < len(data) and data[offset] < 0x80:
            self.offset = offset + 1
            return data[offset]
        result = shift = 0
        for count in range(MAX_VARINT_BYTES):
            if offset >= len(data):
                raise DecodeError(f"varint at byte {self.offset} is truncated")
            byte = data[offset]
            offset += 1
            result |= (byte & 0x7F) << shift
            if byte < 0x80:
                if count and not byte:
                    raise DecodeError(f"varint at byte {self.offset} is padded with zeros")
                if result >> 64:
                    break
                self.offset = offset
                return result
            shift += 7
        raise DecodeError(f"varint at byte {self.offset} exceeds 64 bits")

    def take(self, count: int) -> bytes:
        """Read `count` raw bytes. Raise DecodeError if fewer are left."""
        end = self.offset + count
        if end > len(self.data):
            left = len(self.data) - self.offset
            raise DecodeError(f"{count} bytes announced at byte {self.offset}, but {left} left")
        chunk = self.data[self.offset : end]
        self.offset = end
        return chunk

    def block(self) -> bytes:
        """Read length-prefixed bytes."""
        return self.take(self.varint())

    def rest(self) -> bytes:
        """Read all remaining bytes."""
        return self.take(len(self.data) - self.offset)

    def finish(self) -> None:
        """Raise DecodeError if bytes are left."""
        if self.offset != len(self.data):
            raise DecodeError(f"{len(self.data) - self.offset} bytes after the end")


def read_varints(data: bytes, count: int) -> tuple[list[int], bytes]:
    """Read `count` varints; return them and the remaining bytes. Raise DecodeError."""
    numbers, offset, end = [], 0, len(data)
    for _ in range(count):
        if offset < end and data[offset] < 0x80:
            numbers.append(data[offset])
            offset += 1
        else:
            reader = ByteReader(data, offset)
            numbers.append(reader.varint())
            offset = reader.offset
    return numbers, data[offset:]
