"""Guard: a peer is entered once and used only in that event loop."""

from __future__ import annotations

import asyncio

from antecede.errors import LocalError


class LoopGuard:
    """Guard of the peer with a name."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.loop: asyncio.AbstractEventLoop | None = None
        """Loop of the peer. None: not entered."""

    def begin(self) -> None:
        """Bind to the running loop. Raises LocalError the second time, which would leak the
        listener.
        """
        if self.loop is not None:
            raise LocalError(f"{self._name} was entered already; create another Peer")
        self.loop = asyncio.get_running_loop()

    def unbind(self) -> None:
        """Unbind after a failed start."""
        self.loop = None

    def check(self) -> None:
        """Raise LocalError before the start and in other loops."""
        if self.loop is None:
            raise LocalError("the peer is not entered; use `async with Peer(...) as peer`")
        try:
            here = asyncio.get_running_loop() is self.loop
        except RuntimeError:
            here = False
        if not here:
            raise LocalError(
                f"{self._name} was entered in another event loop; use it within the asyncio.run() "
                "in which it was entered"
            )
