"""Addresses of peers: "HOST:PORT"."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterable
from typing import Final

from antecede.errors import LocalError
from antecede.formatting import quote

_OUTSIDE: Final = {socket.AF_INET: "192.0.2.1", socket.AF_INET6: "2001:db8::1"}
"""Documentation addresses (RFC 5737, RFC 3849): their route is the outgoing one."""
_EVERYWHERE: Final = {"0.0.0.0": socket.AF_INET, "::": socket.AF_INET6}
_HERE: Final = {socket.AF_INET: "127.0.0.1", socket.AF_INET6: "::1"}


def split_address(address: str) -> tuple[str, int]:
    """Return host and port of "HOST:PORT" or "[IPv6]:PORT". Raises LocalError for other texts."""
    if not isinstance(address, str):
        raise LocalError(f"invalid address {quote(address)}; expected the text HOST:PORT")
    if (bare := _without_url(address)) != address:
        raise LocalError(
            f"invalid address {address!r:.80}; expected HOST:PORT without scheme and path: "
            f"{bare!r:.80}"
        )
    host, colon, port = address.rpartition(":")
    if not colon or not host or not (port.isascii() and port.isdecimal()) or int(port) > 65535:
        raise LocalError(f"invalid address {address!r:.80}; expected HOST:PORT, ports to 65535")
    bracketed = host.startswith("[") and host.endswith("]")
    inner = host[1:-1] if bracketed else host
    if bracketed != (":" in inner) or "[" in inner or "]" in inner:
        raise LocalError(f"invalid address {address!r:.80}; expected HOST:PORT or [IPv6]:PORT")
    return inner, int(port)


def _without_url(address: str) -> str:
    """Return HOST:PORT of an address written as a URL; else the address."""
    bare = address.partition("://")[2] or address
    bare = bare.partition("/")[0].rpartition("@")[2]
    host, _, port = bare.rpartition(":")
    return bare if host and port.isdecimal() else address


def split_listening(address: str) -> tuple[str, int]:
    """Return host and port of a listening address: ":PORT" means all addresses of this machine.
    "0.0.0.0:PORT" means the same. "*:PORT" raises LocalError, since it is ambiguous for IPv6.
    """
    if isinstance(address, str) and address.startswith("*:"):
        raise LocalError(
            f"invalid address {address!r:.80}; expected HOST:PORT; for all addresses of this "
            'machine "0.0.0.0:PORT", ":PORT", or with IPv6 "[::]:PORT"'
        )
    everywhere = isinstance(address, str) and address.startswith(":") and address[1:].isdecimal()
    return split_address(f"0.0.0.0{address}" if everywhere else address)


def addresses_of(given: object) -> list[str]:
    """Return the addresses of `join`: one text, or several. Raises LocalError."""
    several = [given] if isinstance(given, str) else given
    if not isinstance(several, Iterable) or isinstance(several, bytes):
        raise LocalError(
            f"join: invalid address {quote(given)}; expected HOST:PORT, or several of them"
        )
    found = list(several)
    if not found:
        raise LocalError("join: no address given; expected HOST:PORT")
    for one in found:
        split_address(one)
    return found


def join_address(host: str, port: int) -> str:
    """Return "HOST:PORT" or "[IPv6]:PORT"."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def find_reachable_host(host: str) -> str:
    """Return the host at which others reach a listener. For a listener at all addresses ("0.0.0.0",
    "::") it is the address of the outgoing route, or loopback without a route. No packet is sent.
    """
    family = _EVERYWHERE.get(host)
    if family is None:
        return host
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect((_OUTSIDE[family], 9))
        return str(probe.getsockname()[0])
    return _HERE[family]
