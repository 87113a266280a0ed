"""Checks of encoding: random, damaged, truncated and extended bytes of every protocol."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from antecede.core.protocols.base import Protocol
from antecede.errors import DecodeError, RemoteError
from tests.core.protocols.seconds import s


def check_random_bytes(member: Protocol, data: bytes) -> None:
    """Decode random bytes: they encode to the same bytes, or are rejected without a change."""
    before = member.snapshot()
    try:
        message: Any = member.decode(data, None)
    except RemoteError:
        return
    assert member.encode(message) == data
    try:
        member.receive(message, now=s(4_000_000_000))
    except RemoteError:
        assert member.snapshot() == before


def check_damage(member: Protocol, messages: Iterable[Any], where: float, byte: int) -> None:
    """Replace one byte of each message, at `where` (0 to 1) of its length."""
    for message in messages:
        control = bytearray(member.encode(message))
        control[int(where * (len(control) - 1))] = byte
        before = member.snapshot()
        try:
            read: Any = member.decode(bytes(control), message.payload)
            assert member.encode(read) == control
            member.receive(read, now=s(4_000_000_000))
        except RemoteError:
            assert member.snapshot() == before


def check_length_changes(member: Protocol, messages: Iterable[Any]) -> None:
    """Append a byte to each message, and truncate it at every place."""
    for message in messages:
        control = member.encode(message)
        with pytest.raises(DecodeError):
            member.decode(control + b"\x00", None)
        for cut in range(len(control)):
            with pytest.raises(RemoteError):
                member.decode(control[:cut], None)
