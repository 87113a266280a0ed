"""Status server of a peer."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from antecede.errors import PeerError
from antecede.live.drivers.addresses import find_reachable_host, join_address, split_listening
from antecede.live.status import Status

if TYPE_CHECKING:
    from antecede.live.endpoint import StatusRoutes


class StatusServer:
    """Server of a peer's status at "HOST:PORT"; None: no server. Raises LocalError."""

    def __init__(self, name: str, at: str | None) -> None:
        self._name, self._at = name, None if at is None else split_listening(at)
        self._endpoint: StatusRoutes | None = None
        self.address = ""
        """Address of the server. Empty: none, or not started."""

    async def begin(self, status: Callable[[], Status]) -> None:
        """Start the server. Raises PeerError if it cannot listen."""
        if self._at is None:
            return
        from antecede.live.endpoint import StatusRoutes  # needs the extra

        host, port = self._at
        self._endpoint = StatusRoutes(status)
        try:
            bound = await self._endpoint.open(host, port)
        except OSError as error:
            raise PeerError(
                f"{self._name} cannot serve status at {host}:{port}: {error}"
            ) from error
        self.address = join_address(find_reachable_host(host), bound)

    def close(self) -> None:
        """Stop the server."""
        if self._endpoint is not None:
            self._endpoint.close()


__all__ = ["StatusServer"]
