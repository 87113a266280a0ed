"""Dialer for TCP connections to members, with TLS if there are certificates."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol

from antecede.errors import AntecedeError
from antecede.live.drivers.addresses import split_address
from antecede.live.drivers.door import HANDSHAKE_S

CALL_S: Final = 5.0
Connect = Callable[[str, str, int, dict[str, Any]], Awaitable[object]]
"""Function that connects: address, its host and port, TLS arguments of `create_connection`."""
Called = Callable[[Exception | None], None]
"""Function for the result of a dial. None: success."""


class Secure(Protocol):
    """Interface of certificates: TLS contexts for both ends, names in certificates."""

    def server(self) -> ssl.SSLContext:
        """Return the context for incoming connections."""
        ...

    def client(self) -> ssl.SSLContext:
        """Return the context for outgoing connections."""
        ...

    def name_of(self, certificate: bytes) -> str:
        """Return the member's name in a certificate (DER). Raises RemoteError without one."""
        ...

    def warnings(self, now_s: float) -> list[str]:
        """Return warnings; `now_s`: seconds since 1970."""
        ...


def read_name(secure: Secure | None, transport: asyncio.Transport) -> str:
    """Return the name in the certificate of the other end; "" without certificates. Raises
    RemoteError for a certificate without a name.
    """
    if secure is None:
        return ""
    shown = transport.get_extra_info("ssl_object").getpeercert(binary_form=True)
    return secure.name_of(shown or b"")


class Dialer:
    """Running dials, one at a time to an address."""

    def __init__(self, connect: Connect, secure: Secure | None) -> None:
        self._connect, self._secure = connect, secure
        self._loop = asyncio.get_running_loop()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._closed = False

    def call(self, address: str, done: Called | None = None) -> None:
        """Dial a member, unless a dial is running."""
        if address in self._tasks or self._closed:
            return
        task = self._tasks[address] = self._loop.create_task(self._call(address, done))
        task.add_done_callback(lambda _: self._tasks.pop(address, None))

    async def _call(self, address: str, done: Called | None) -> None:
        error: Exception | None = None
        try:
            host, port = split_address(address)
            context = self._secure.client() if self._secure is not None else None
            more: dict[str, Any] = {"ssl": context}
            if context is not None:
                more |= {"ssl_handshake_timeout": HANDSHAKE_S, "server_hostname": host}
            async with asyncio.timeout(CALL_S):
                await self._connect(address, host, port, more)
        except (OSError, TimeoutError, AntecedeError) as failed:
            error = failed
        if done is not None:
            done(error)

    def cancel(self, address: str) -> None:
        """Cancel a dial."""
        self._tasks[address].cancel()

    def close(self) -> None:
        """Cancel all dials and start no more."""
        self._closed = True
        for task in list(self._tasks.values()):
            task.cancel()


__all__ = ["CALL_S", "Called", "Connect", "Dialer", "Secure", "read_name"]
