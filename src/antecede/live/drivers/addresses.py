"""Where a peer is reached: "HOST:PORT", and what to say of one that listens everywhere."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterable
from typing import Final

from antecede.errors import LocalError
from antecede.formatting import shown

_OUTSIDE: Final = {socket.AF_INET: "192.0.2.1", socket.AF_INET6: "2001:db8::1"}
"""Addresses that are nobody's (RFC 5737, RFC 3849): the way to them is the way out."""
_EVERYWHERE: Final = {"0.0.0.0": socket.AF_INET, "::": socket.AF_INET6}
_HERE: Final = {socket.AF_INET: "127.0.0.1", socket.AF_INET6: "::1"}


def split_address(address: str) -> tuple[str, int]:
    """Return host and port of "HOST:PORT" or "[IPv6]:PORT". Raises LocalError for all else."""
    if not isinstance(address, str):
        raise LocalError(f"an address is a text, HOST:PORT, not {shown(address)}")
    if (bare := _without_url(address)) != address:
        raise LocalError(
            f"an address is HOST:PORT alone, without scheme and path: {bare!r:.80}, not "
            f"{address!r:.80}"
        )
    host, colon, port = address.rpartition(":")
    if not colon or not host or not (port.isascii() and port.isdecimal()) or int(port) > 65535:
        raise LocalError(f"an address is HOST:PORT, not {address!r:.80}")
    bracketed = host.startswith("[") and host.endswith("]")
    inner = host[1:-1] if bracketed else host
    if bracketed != (":" in inner) or "[" in inner or "]" in inner:
        raise LocalError(f"an address is HOST:PORT, or [IPv6]:PORT, not {address!r:.80}")
    return inner, int(port)


def _without_url(address: str) -> str:
    """Return HOST:PORT of an address that was written as a URL; else what was given."""
    bare = address.partition("://")[2] or address
    bare = bare.partition("/")[0].rpartition("@")[2]
    host, _, port = bare.rpartition(":")
    return bare if host and port.isdecimal() else address


def split_listening(address: str) -> tuple[str, int]:
    """As `split_address`, of where one listens: ":PORT" is at every address of this machine.

    So is "0.0.0.0:PORT"; "*:PORT" is refused, since nobody could tell whether IPv6 is meant.
    """
    if isinstance(address, str) and address.startswith("*:"):
        raise LocalError(
            f"an address is HOST:PORT, not {address!r:.80}: every address of this machine is "
            '"0.0.0.0:PORT", or ":PORT", or with IPv6 "[::]:PORT"'
        )
    everywhere = isinstance(address, str) and address.startswith(":") and address[1:].isdecimal()
    return split_address(f"0.0.0.0{address}" if everywhere else address)


def addresses_of(given: object) -> list[str]:
    """Return the addresses that `join` is given: one text, or several. Raises LocalError."""
    several = [given] if isinstance(given, str) else given
    if not isinstance(several, Iterable) or isinstance(several, bytes):
        raise LocalError(f"join needs an address, HOST:PORT, or several, not {shown(given)}")
    found = list(several)
    if not found:
        raise LocalError("join needs an address: HOST:PORT")
    for one in found:
        split_address(one)
    return found


def joined_address(host: str, port: int) -> str:
    """Return the text that `split_address` splits."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def reached_at(host: str) -> str:
    """Return the host under which others reach who listens at this one.

    Who listens at all addresses of a machine ("0.0.0.0", "::") is told by none of them: then it is
    the one from which this machine speaks to the outside, or the loopback where nothing leads out.
    Nothing is sent to find that out.
    """
    family = _EVERYWHERE.get(host)
    if family is None:
        return host
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect((_OUTSIDE[family], 9))
        return str(probe.getsockname()[0])
    return _HERE[family]
