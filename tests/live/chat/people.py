"""People in one room, in one process, over TCP on this machine; and a way to hold things up."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from typing import Any, TypeVar

from antecede.live.chat.room import Room
from antecede.live.chat.session import Chat
from antecede.live.chat.web import Page
from antecede.live.peer import Peer
from tests.live.loops import TIMEOUT_S, until
from tests.live.peer_control import pause_writing

Made = TypeVar("Made")
PATIENT: dict[str, Any] = {"repair_delay_s": 60.0, "failure_timeout_s": 60.0, "heartbeat_s": 30.0}
"""Nobody asks others for what does not come, or gives up a connection, by itself."""


class People:
    """Chats by name."""

    def __init__(self) -> None:
        self.chats: dict[str, Chat] = {}
        self.pages: dict[str, Page] = {}
        self._stack = AsyncExitStack()

    def __getitem__(self, name: str) -> Chat:
        return self.chats[name]

    async def add(
        self, name: str, *, page: bool = False, room: str = "design", **more: Any
    ) -> Chat:
        given = {"listen": "127.0.0.1:0", "insecure": True, "order": "reply", "history": 200}
        peer = await self._stack.enter_async_context(
            Peer(name, group_name=room, **{**given, **more})
        )
        if self.chats:
            await peer.join(next(iter(self.chats.values())).peer.address)
        else:
            await peer.bootstrap()
        chat = Chat(peer, Room(room, name))
        chat.begin()
        if page:
            self.pages[name] = await self._stack.enter_async_context(Page(chat, "127.0.0.1", 0))
        running = asyncio.ensure_future(chat.run())
        self._stack.push_async_callback(_ended, running)
        self.chats[name] = chat
        return chat

    async def all_here(self) -> None:
        """Wait until all see all."""
        count = len(self.chats)
        for chat in self.chats.values():
            await until(lambda chat=chat: sum(m.here for m in chat.room.members) == count)  # type: ignore[misc]

    def stall(self, name: str, other: str) -> Callable[[], None]:
        """Let nothing more go from one to another, as a socket that takes no more; returns how it
        goes on.
        """
        return pause_writing(self[name].peer, other)

    async def close(self) -> None:
        await self._stack.aclose()


async def _ended(task: asyncio.Future[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


@asynccontextmanager
async def people(*names: str, **more: Any) -> AsyncIterator[People]:
    """Have people in a room, who see each other."""
    made = People()
    try:
        for name in names:
            await made.add(name, **more)
        await made.all_here()
        yield made
    finally:
        await made.close()


class Loop:
    """A loop in a thread, for tests that wait for a browser."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()

    def do(self, work: Coroutine[Any, Any, Made]) -> Made:
        """Do something in the loop, and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(TIMEOUT_S)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@contextmanager
def looping() -> Iterator[Loop]:
    loop = Loop()
    try:
        yield loop
    finally:
        loop.close()
