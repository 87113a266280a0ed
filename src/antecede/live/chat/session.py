"""A peer and its room: what happens is told to the views, what they ask for is done."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from antecede.errors import LocalError
from antecede.formatting import counted
from antecede.live.chat.room import HeldPost, Post, Room
from antecede.live.chat.waits import held_of
from antecede.live.chat.words import MAX_BYTES, name_of, one_line
from antecede.live.events import ChangeKind, Message, MessagesAbandoned, View, member_of
from antecede.live.peer import Peer

LOOK_S: Final = 0.1
"""So often it is looked what is held and who is connected."""
MUCH: Final = 2000
MUCH_S: Final = 5.0
"""With more held messages than that it is looked so often what they are."""


REPLACED: Final = (
    "another life of {name} was in the room: this one has taken its place, and that one is out"
)


class Posted(NamedTuple):
    """Somebody said something, oneself too."""

    post: Post


class Held(NamedTuple):
    """An answer has been held for a while."""

    waiting: HeldPost


class Notice(NamedTuple):
    """Something to be told in words, harmless ones."""

    text: str


class Changed(NamedTuple):
    """What is held, or who is here, is not what it was."""


News = Posted | Held | Notice | Changed
Viewer = Callable[[News], None]


class Chat:
    """One member's chat over a peer that is in a group of order "reply"."""

    def __init__(self, peer: Peer, room: Room) -> None:
        self.peer, self.room = peer, room
        self._views: list[Viewer] = []
        self._looked_s = 0.0

    def attach(self, view: Viewer) -> Callable[[], None]:
        """Tell a view what happens from now on; what is returned ends that."""
        self._views.append(view)
        return lambda: self._views.remove(view)

    def tell(self, news: News) -> None:
        """Tell all views."""
        for view in list(self._views):
            view(news)

    # -- what happens ------------------------------------------------------------------------------

    def begin(self) -> None:
        """Take what is known already: history, or what was said before a restart."""
        for message in self.peer.history:
            self.room.add(message, time.monotonic(), earlier=True)
        self._look_around()

    async def run(self) -> None:
        """Go on until it is cancelled, or the peer cannot: PeerError, StoreError."""
        looking = asyncio.create_task(self._look())
        try:
            async for event in self.peer.events():
                self._happened(event)
        finally:
            looking.cancel()

    def _happened(self, event: Message | View | MessagesAbandoned) -> None:
        if isinstance(event, Message):
            self._came(event)
        elif isinstance(event, View):
            self._look_around()
            if event.change.member != self.room.me:
                self.tell(Notice(one_line(str(event.change))))
            elif (
                event.change.kind is ChangeKind.LEFT
                and event.change.sender_id != self.peer.node.lane
            ):
                self.tell(Notice(REPLACED.format(name=name_of(self.room.me))))
        else:
            self.tell(Notice(_given_up(event)))

    def _came(self, message: Message) -> None:
        if message.is_history and self.room.posts:
            return  # of the history: begun with, or so old by now that newer ones took its place
        before = self.room.members
        self._look_who()
        at_s = None if message.is_history else time.time()
        post = self.room.add(message, time.monotonic(), at_s=at_s, earlier=message.is_history)
        if post is not None:
            self.tell(Posted(post))
            if post.waited_s or self.room.members != before:
                self.tell(Changed())

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            self._look_around()
            for waiting in self.room.long_held(time.monotonic()):
                self.tell(Held(waiting))

    def _look_around(self) -> None:
        """Look who is connected and what is held: that less often where it is much."""
        now, ordering = time.monotonic(), self.peer.node.ordering
        held = ordering.group.stats().held if ordering is not None else 0
        changed = False
        if now - self._looked_s >= (LOOK_S / 2 if held <= MUCH else MUCH_S):
            self._looked_s = now
            changed = self.room.hold(held_of(self.peer.node), now)
        if self._look_who() or changed:
            self.tell(Changed())

    def _look_who(self) -> bool:
        """Tell whose connection came or went; returns whether there is anything new."""
        node, room = self.peer.node, self.room
        before = room.members
        for name, here in room.see(self.peer.members, map(member_of, node.greeted)):
            words = "is connected" if here else "is away: not connected"
            self.tell(Notice(f"{name_of(name)} {words}"))
        return room.members != before

    # -- what is asked for -------------------------------------------------------------------------

    async def say(self, text: str, answers: int | None = None) -> Post:
        """Say something, or answer the message with a number.

        Raises LocalError, in a sentence, for what cannot be said, PeerError where the peer is out.
        """
        payload = text.encode(errors="replace")
        if not text.strip():
            raise LocalError("a message without words")
        if len(payload) > MAX_BYTES:
            raise LocalError(
                f"a message of {len(payload):,} bytes; {MAX_BYTES:,} are the most: nothing was sent"
            )
        answered = () if answers is None else (self.room.post(answers).id,)
        await self.peer.drain()
        sent = self.peer.send_nowait(payload, reply_to=answered)
        message = Message(sent.sender_id, sent.number, payload, answered)
        post = self.room.add(message, time.monotonic(), at_s=time.time())
        assert post is not None  # a number is given out once
        await self.peer.flush()
        self.tell(Posted(post))
        return post

    def ask(self) -> str:
        """Ask again for what is missing; returns, in words, what was done."""
        held = len(self.room.held)
        asked = self.peer.request_missing()
        if asked:
            pairs = sorted((member_of(lane), member_of(of)) for lane, of in asked.items())
            whom = ", ".join(f"{name_of(of)} for {name_of(lane)}'s" for lane, of in pairs)
            return f"asked for messages again: {whom}"
        if not held:
            return "nothing is held, and nothing is known to be missing"
        return (
            f"{counted(held, 'answer')} held: nobody who is connected says that they have what is "
            "missing"
        )

    def put_out(self, name: str) -> str:
        """Put a member out for good. Raises LocalError for who is no other member."""
        self.peer.evict(name)
        return f"{name_of(name)} is put out"


def _given_up(event: MessagesAbandoned) -> str:
    of = " and ".join(name_of(member_of(lane)) for lane in event.missing_sender_ids) or "somebody"
    return (
        f"{counted(event.batches, 'message')} of {name_of(member_of(event.sender_id))} set aside: they "
        f"answer what {of} said last, which nobody has any more"
    )
