"""Chat session: a peer and its room, with events for views."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from antecede.errors import LocalError
from antecede.formatting import pluralize
from antecede.live.chat.room import HeldPost, Post, Room
from antecede.live.chat.waits import list_held
from antecede.live.chat.words import MAX_BYTES, name_of, one_line
from antecede.live.events import ChangeKind, Message, MessagesAbandoned, View, member_of
from antecede.live.peer import Peer

LOOK_S: Final = 0.1
MUCH: Final = 2000
MUCH_S: Final = 5.0
"""Interval with more than MUCH held messages."""


REPLACED: Final = "this incarnation has replaced another one of {name} in the room"


class Posted(NamedTuple):
    """Event: a new message, own ones included."""

    post: Post


class HeldNotice(NamedTuple):
    """Event: a reply has been held for a while."""

    waiting: HeldPost


class Notice(NamedTuple):
    """Event: a sanitized text for the user."""

    text: str


class RoomChanged(NamedTuple):
    """Event: held replies or members changed."""


News = Posted | HeldNotice | Notice | RoomChanged
Viewer = Callable[[News], None]


class Chat:
    """Chat of one member over a peer in a group of order "reply"."""

    def __init__(self, peer: Peer, room: Room) -> None:
        self.peer, self.room = peer, room
        self._views: list[Viewer] = []
        self._looked_s = 0.0

    def attach(self, view: Viewer) -> Callable[[], None]:
        """Send events to a view from now on; the returned function detaches it."""
        self._views.append(view)
        return lambda: self._views.remove(view)

    def notify(self, news: News) -> None:
        """Send an event to all views."""
        for view in list(self._views):
            view(news)

    # -- events ------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Add the history, or the messages from before a restart."""
        for message in self.peer.history:
            self.room.add(message, time.monotonic(), earlier=True)
        self._look_around()

    async def run(self) -> None:
        """Run until cancelled. Raises PeerError and StoreError of the peer."""
        looking = asyncio.create_task(self._look())
        try:
            async for event in self.peer.events():
                self._handle_event(event)
        finally:
            looking.cancel()

    def _handle_event(self, event: Message | View | MessagesAbandoned) -> None:
        if isinstance(event, Message):
            self._came(event)
        elif isinstance(event, View):
            self._look_around()
            if event.change.member != self.room.me:
                self.notify(Notice(one_line(str(event.change))))
            elif (
                event.change.kind is ChangeKind.LEFT
                and event.change.sender_id != self.peer.node.lane
            ):
                self.notify(Notice(REPLACED.format(name=name_of(self.room.me))))
        else:
            self.notify(Notice(_describe_abandoned(event)))

    def _came(self, message: Message) -> None:
        if message.is_history and self.room.posts:
            return  # history from the start, or older than the kept messages
        before = self.room.members
        self._look_who()
        at_s = None if message.is_history else time.time()
        post = self.room.add(message, time.monotonic(), at_s=at_s, earlier=message.is_history)
        if post is not None:
            self.notify(Posted(post))
            if post.waited_s or self.room.members != before:
                self.notify(RoomChanged())

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            self._look_around()
            for waiting in self.room.long_held(time.monotonic()):
                self.notify(HeldNotice(waiting))

    def _look_around(self) -> None:
        """Check connections, and held replies: less often if there are many."""
        now, ordering = time.monotonic(), self.peer.node.ordering
        held = ordering.group.stats().held if ordering is not None else 0
        changed = False
        if now - self._looked_s >= (LOOK_S / 2 if held <= MUCH else MUCH_S):
            self._looked_s = now
            changed = self.room.hold(list_held(self.peer.node), now)
        if self._look_who() or changed:
            self.notify(RoomChanged())

    def _look_who(self) -> bool:
        """Report changed connections; return whether anything changed."""
        node, room = self.peer.node, self.room
        before = room.members
        for name, here in room.see(self.peer.members, map(member_of, node.greeted)):
            words = "is connected" if here else "is disconnected"
            self.notify(Notice(f"{name_of(name)} {words}"))
        return room.members != before

    # -- commands ----------------------------------------------------------------------------------

    async def say(self, text: str, answers: int | None = None) -> Post:
        """Send a message, or a reply to the message with a number. Raises LocalError for invalid
        input, PeerError if the peer has left the group.
        """
        payload = text.encode(errors="replace")
        if not text.strip():
            raise LocalError("the message is empty")
        if len(payload) > MAX_BYTES:
            raise LocalError(
                f"message of {len(payload):,} bytes was not sent; the limit is {MAX_BYTES:,}"
            )
        answered = () if answers is None else (self.room.post(answers).id,)
        await self.peer.drain()
        sent = self.peer.send_nowait(payload, reply_to=answered)
        message = Message(sent.sender_id, sent.number, payload, answered)
        post = self.room.add(message, time.monotonic(), at_s=time.time())
        assert post is not None  # numbers are unique
        await self.peer.flush()
        self.notify(Posted(post))
        return post

    def request_missing(self) -> str:
        """Request missing messages again; return the result as text."""
        held = len(self.room.held)
        asked = self.peer.request_missing()
        if asked:
            pairs = sorted((member_of(lane), member_of(of)) for lane, of in asked.items())
            whom = ", ".join(f"those of {name_of(lane)} from {name_of(of)}" for lane, of in pairs)
            return f"requested messages: {whom}"
        if not held:
            return "no reply is held, and no message is missing"
        replies = pluralize(held, "reply", "replies")
        return f"{replies} held; no connected member has the missing messages"

    def evict(self, name: str) -> str:
        """Evict a member for good. Raises LocalError for an unknown name."""
        self.peer.evict(name)
        return f"{name_of(name)} is evicted"


def _describe_abandoned(event: MessagesAbandoned) -> str:
    of = (
        " and ".join(name_of(member_of(lane)) for lane in event.missing_sender_ids)
        or "a departed member"
    )
    return (
        f"{pluralize(event.batches, 'message')} of {name_of(member_of(event.sender_id))} dropped: "
        f"the last messages of {of}, which they reply to, are lost"
    )
