"""That a peer is entered once, and used in the event loop in which that was."""

from __future__ import annotations

import asyncio

from antecede.errors import LocalError


class LoopGuard:
    """Of the peer of this name: in which loop it runs."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.loop: asyncio.AbstractEventLoop | None = None
        """None: it has not begun."""

    def begin(self) -> None:
        """Begin in the running loop. Raises LocalError the second time: a second entering would
        leave what the first one listens at to nobody.
        """
        if self.loop is not None:
            raise LocalError(
                f"{self._name} has begun already, and a peer begins once: make another Peer"
            )
        self.loop = asyncio.get_running_loop()

    def failed(self) -> None:
        """Nothing came of it: it may begin again."""
        self.loop = None

    def check(self) -> None:
        """Raise LocalError before it has begun, and in another loop than its own."""
        if self.loop is None:
            raise LocalError("a peer begins with `async with Peer(...) as peer`")
        try:
            here = asyncio.get_running_loop() is self.loop
        except RuntimeError:
            here = False
        if not here:
            raise LocalError(
                f"{self._name} began in another event loop, and a peer is for one: use it within "
                "the asyncio.run() in which it was entered"
            )
