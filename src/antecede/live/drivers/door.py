"""TCP listener. A client has a few seconds to present a certificate.

Clients before that are in a bounded list, and a new one closes the oldest. So ten thousand
half-open connections cost no more than a few hundred, and honest clients are still accepted.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable
from typing import Any, Final

HALF_OPEN: Final = 256
"""Connections without a certificate, at most."""
HANDSHAKE_S: Final = 5.0
BACKLOG: Final = 512
ACCEPTED_AT_ONCE: Final = 64


class Listener:
    """Listener. `connection` makes the protocol of a client; `failed` gets rejected handshakes."""

    def __init__(
        self,
        context: Callable[[], ssl.SSLContext] | None,
        connection: Callable[[], asyncio.Protocol],
        failed: Callable[[Exception], None],
    ) -> None:
        self._context = context() if context is not None else None
        self._connection, self._failed = connection, failed
        self._loop = asyncio.get_running_loop()
        self._sockets: list[socket.socket] = []
        self._half_open: dict[socket.socket, asyncio.Task[None]] = {}
        self.dropped = 0
        """Clients closed for newer ones before the handshake."""

    async def open(self, host: str, port: int) -> int:
        """Listen; return the port. Raises OSError."""
        found = await self._loop.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, _, _, _, address = found[0]
        listening = socket.create_server((str(address[0]), port), family=family, backlog=BACKLOG)
        listening.setblocking(False)
        self._sockets.append(listening)
        self._loop.add_reader(listening, self._accept, listening)
        bound: int = listening.getsockname()[1]
        return bound

    def close(self) -> None:
        """Stop listening."""
        for listening in self._sockets:
            self._loop.remove_reader(listening)
            listening.close()
        for task in list(self._half_open.values()):
            task.cancel()

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                caller, _ = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:  # no file descriptors left: close the oldest
                self._drop_oldest()
                self._failed(error)
                return
            caller.setblocking(False)
            if len(self._half_open) >= HALF_OPEN:
                self._drop_oldest()
            self._half_open[caller] = self._loop.create_task(self._let_in(caller))

    def _drop_oldest(self) -> None:
        if self._half_open:
            self.dropped += 1
            oldest = next(iter(self._half_open))
            self._half_open.pop(oldest).cancel()

    async def _first_bytes(self, caller: socket.socket) -> None:
        """Wait for the first bytes: until then a client costs a socket, but no TLS buffers. Raises
        TimeoutError after HANDSHAKE_S, OSError if the client disconnects.
        """
        readable = asyncio.Event()
        self._loop.add_reader(caller, readable.set)
        try:
            async with asyncio.timeout(HANDSHAKE_S):
                await readable.wait()
            if not caller.recv(1, socket.MSG_PEEK):
                raise ConnectionResetError
        finally:
            self._loop.remove_reader(caller)

    async def _let_in(self, caller: socket.socket) -> None:
        more: dict[str, Any] = {}
        has_transport = False
        if self._context is not None:
            more = {"ssl": self._context, "ssl_handshake_timeout": HANDSHAKE_S}
        try:
            if self._context is not None:
                await self._first_bytes(caller)
            has_transport = True
            await self._loop.connect_accepted_socket(self._connection, caller, **more)
        except (OSError, TimeoutError) as error:
            self._failed(error)
            with contextlib.suppress(OSError):
                caller.close()
        except asyncio.CancelledError:
            # A transport closes its socket itself. If it is closed here, another socket gets the
            # descriptor that the transport still reads.
            with contextlib.suppress(OSError):
                caller.shutdown(socket.SHUT_RDWR) if has_transport else caller.close()
        finally:
            self._half_open.pop(caller, None)
