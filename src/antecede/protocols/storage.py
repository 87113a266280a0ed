"""Snapshots and frontiers as bytes: nested tuples of plain values and of protocol messages.

Pickle's format, read by an unpickler that makes nothing but tuples of plain values and the
named tuples of `antecede.protocols` (its messages and ids). Bytes from outside that name anything
else are refused before they can do anything. So are all instructions that `pack_state` never
writes: some of them make the unpickler allocate as much memory as a number in the bytes says.
"""

from __future__ import annotations

import importlib
import io
import pickle
import pickletools
import zlib
from collections.abc import Hashable
from typing import Any

from antecede.errors import DecodeError

_ALLOWED = "antecede.protocols."
_MAGIC = b"antecede-state-1\n"
_INSTRUCTIONS = """
    PROTO FRAME STOP MARK MEMOIZE BINGET LONG_BINGET
    NONE NEWTRUE NEWFALSE BININT BININT1 BININT2 LONG1 LONG4 BINFLOAT
    SHORT_BINBYTES BINBYTES BINBYTES8 SHORT_BINUNICODE BINUNICODE BINUNICODE8
    EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 FROZENSET STACK_GLOBAL NEWOBJ
"""
"""What the pickler writes for tuples, named tuples and plain values."""


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module.startswith(_ALLOWED) and name.isidentifier():
            found = getattr(importlib.import_module(module), name, None)
            if isinstance(found, type) and issubclass(found, tuple) and found is not tuple:
                return found
        raise pickle.UnpicklingError(f"{module}.{name} has no place in a stored state")


def pack_state(state: Hashable) -> bytes:
    """Return nested tuples as bytes, with a checksum."""
    body = pickle.dumps(state, protocol=5)
    return _MAGIC + zlib.crc32(body).to_bytes(4, "little") + body


def unpack_state(data: bytes, fields: int) -> tuple[Any, ...]:
    """Return what `pack_state` was given, a tuple of `fields` values. Raises DecodeError."""
    start = len(_MAGIC) + 4
    if data[: len(_MAGIC)] != _MAGIC:
        raise DecodeError("not a stored state of antecede")
    body = data[start:]
    if zlib.crc32(body).to_bytes(4, "little") != data[len(_MAGIC) : start]:
        raise DecodeError("a stored state that was cut short or changed")
    try:
        _check_instructions(body)
        state = _Unpickler(io.BytesIO(body)).load()
    except Exception as error:  # a forged body may raise anything while it is read
        raise DecodeError(f"a stored state that cannot be read: {error}") from error
    if not isinstance(state, tuple) or len(state) != fields:
        raise DecodeError("a stored state of another kind")
    return state


def _check_instructions(body: bytes) -> None:
    allowed = frozenset(_INSTRUCTIONS.split())
    for instruction, _, at in pickletools.genops(body):
        if instruction.name not in allowed:
            raise pickle.UnpicklingError(f"instruction {instruction.name} at byte {at}")
