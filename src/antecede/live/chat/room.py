"""Model of a chat room: numbered messages, threads, held replies, members.

Views draw it. Numbers are local, from 1 in the order of delivery. Other members have other numbers,
so numbers are never sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from antecede.core.group import Thread, Threads
from antecede.errors import LocalError
from antecede.live.chat.words import text_of
from antecede.live.events import Id, Message

MOST: Final = 5000
"""Messages kept for display and replies; the oldest are dropped."""
NOTICED_S: Final = 0.25
"""Time held before a terminal, which cannot take lines back, shows it."""


class Post(NamedTuple):
    """Displayed message."""

    number: int
    id: Id
    text: str
    """Text as sent; the view sanitizes it."""
    parent: Id | None = None
    """Message that it replies to."""
    lost: bool = False
    """True if the parent is lost with its sender."""
    mine: bool = False
    earlier: bool = False
    """True for history and messages from before a restart."""
    at_s: float | None = None
    """Time of delivery, seconds since 1970. None: unknown."""
    waited_s: float = 0.0

    @property
    def sender(self) -> str:
        """Name of the member that sent it."""
        return self.id.sender


class HeldPost(NamedTuple):
    """Held reply."""

    id: Id
    parent: Id
    """Missing parent."""
    why: str
    """Location of the parent as text. Empty: it is held too."""
    since_s: float
    """Time since which it is held, on the clock of `Room.hold`."""

    @property
    def sender(self) -> str:
        """Name of the member that sent it."""
        return self.id.sender


class Member(NamedTuple):
    """Member of the group."""

    name: str
    here: bool
    me: bool = False


class Room:
    """Room as one member sees it. `most`: number of messages kept."""

    def __init__(self, name: str, me: str, most: int = MOST) -> None:
        self.name, self.me, self._most = name, me, most
        self.posts: dict[Id, Post] = {}
        self.held: tuple[HeldPost, ...] = ()
        self.members: tuple[Member, ...] = (Member(me, here=True, me=True),)
        self._threads = Threads(most)
        self._ids: dict[int, Id] = {}
        self._number = 0
        self._since: dict[Id, float] = {}
        self._noticed: set[Id] = set()

    # -- messages ----------------------------------------------------------------------------------

    def add(
        self, message: Message, now_s: float, *, at_s: float | None = None, earlier: bool = False
    ) -> Post | None:
        """Add a message. None: it is known. `now_s`: clock of `hold`; `at_s`: system clock."""
        one = message.id
        if one in self.posts:
            return None
        self._number += 1
        since = self._since.pop(one, None)
        self._noticed.discard(one)
        self.held = tuple(waiting for waiting in self.held if waiting.id != one)
        post = Post(
            *(self._number, one, text_of(message.payload)),
            parent=message.reply_to[0] if message.reply_to else None,
            lost=bool(message.missing_ids),
            mine=one.sender == self.me,
            earlier=earlier,
            at_s=at_s,
            waited_s=0.0 if since is None else max(0.0, now_s - since),
        )
        self.posts[one] = post
        self._ids[post.number] = one
        self._threads.add(one, message.reply_to[:1])
        if len(self.posts) > self._most:
            oldest = self.posts.pop(next(iter(self.posts)))
            del self._ids[oldest.number]
        return post

    def post(self, number: int) -> Post:
        """Return the message with a number. Raises LocalError for an unknown one."""
        one = self._ids.get(number)
        if one is not None:
            return self.posts[one]
        if not self._ids:
            raise LocalError(f"unknown message {number}; the room has no messages yet")
        first, last = min(self._ids), max(self._ids)
        raise LocalError(f"there is no message {number}; there are {first} to {last}")

    def parent(self, post: Post) -> Post | None:
        """Return the parent of a message, if it is here."""
        return None if post.parent is None else self.posts.get(post.parent)

    def thread(self, post: Post) -> Thread:
        """Return the thread of a message, from its oldest known message."""
        return self._threads.tree(self._threads.root(post.id))

    def threads(self, most: int | None = None) -> list[Thread]:
        """Return the threads; the one with the newest message is last."""
        roots: dict[tuple[str, int], None] = {}
        for one in self.posts:
            root = self._threads.root(one)
            roots.pop(root, None)
            roots[root] = None
        chosen = list(roots) if most is None else list(roots)[-most:]
        return [self._threads.tree(root) for root in chosen]

    # -- held replies ------------------------------------------------------------------------------

    def hold(self, held: Mapping[Id, tuple[Id, str]], now_s: float) -> bool:
        """Set the held replies: id -> (missing parent, its location; empty: held too). Returns
        whether they changed.
        """
        self._since = {one: self._since.get(one, now_s) for one in held}
        self._noticed &= held.keys()
        before = self.held
        self.held = tuple(
            HeldPost(one, parent, why, self._since[one]) for one, (parent, why) in held.items()
        )
        return self.held != before

    def long_held(self, now_s: float) -> Iterator[HeldPost]:
        """Yield the replies that have been held for a while, once each."""
        for waiting in self.held:
            if waiting.id not in self._noticed and now_s - waiting.since_s >= NOTICED_S:
                self._noticed.add(waiting.id)
                yield waiting

    # -- members -----------------------------------------------------------------------------------

    def see(self, members: Iterable[str], connected: Iterable[str]) -> list[tuple[str, bool]]:
        """Set members and connected members; return (name, connected) of earlier members with
        changes.
        """
        there = set(connected)
        before = {one.name: one.here for one in self.members}
        names = sorted({*members, self.me})
        self.members = tuple(
            Member(name, name == self.me or name in there, name == self.me) for name in names
        )
        after = {one.name: one.here for one in self.members}
        return [
            (name, here) for name, here in after.items() if name in before and before[name] != here
        ]
