"""The model of a chat: messages under short numbers, threads, what is held, who is here.

It is told what happens and when, and shows nothing itself; the views draw it. Numbers are this
member's own, from 1 in the order in which messages came here: others have other numbers for the
same messages, so they never travel.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from antecede.core.group import Thread, Threads
from antecede.errors import LocalError
from antecede.live.chat.words import text_of
from antecede.live.events import Id, Message

MOST: Final = 5000
"""Messages that are kept to be shown and answered; the oldest go first."""
NOTICED_S: Final = 0.25
"""So long an answer is held before a view that cannot take words back says so."""


class Post(NamedTuple):
    """A message as it is shown."""

    number: int
    id: Id
    text: str
    """As it was sent: the view makes it harmless."""
    parent: Id | None = None
    """What it answers."""
    lost: bool = False
    """Whether that is nobody's any more: it died with its sender."""
    mine: bool = False
    earlier: bool = False
    """Whether it is from before this member came, or was started again."""
    at_s: float | None = None
    """When it came here, in seconds since 1970; None: not known."""
    waited_s: float = 0.0
    """How long it was held here."""

    @property
    def sender(self) -> str:
        """Name of the member who sent it."""
        return self.id.sender


class HeldPost(NamedTuple):
    """An answer that is held back."""

    id: Id
    parent: Id
    """What it waits for."""
    why: str
    """Where that is, in words; empty: it is held itself."""
    since_s: float
    """When it was first seen held, on the clock of `Room.hold`."""

    @property
    def sender(self) -> str:
        """Name of the member who sent it."""
        return self.id.sender


class Member(NamedTuple):
    """Somebody who is in the group."""

    name: str
    here: bool
    """Whether it is connected."""
    me: bool = False


class Room:
    """What one member sees of a room. `most`: how many messages are kept."""

    def __init__(self, name: str, me: str, most: int = MOST) -> None:
        self.name, self.me, self._most = name, me, most
        self.posts: dict[Id, Post] = {}
        """In the order of their numbers."""
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
        """Take a message; None: it is known. `now_s`: the clock of `hold`, `at_s`: the time."""
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
        """Return the message with a number. Raises LocalError where there is none."""
        one = self._ids.get(number)
        if one is not None:
            return self.posts[one]
        if not self._ids:
            raise LocalError(f"there is no message {number}: nothing was said here yet")
        first, last = min(self._ids), max(self._ids)
        raise LocalError(f"there is no message {number}; there are {first} to {last}")

    def parent(self, post: Post) -> Post | None:
        """Return what a message answers, if it is here."""
        return None if post.parent is None else self.posts.get(post.parent)

    def thread(self, post: Post) -> Thread:
        """Return the whole thread of a message, from where it begins as far as it is here."""
        return self._threads.tree(self._threads.root(post.id))

    def threads(self, most: int | None = None) -> list[Thread]:
        """Return the threads, the one in which something was said last at the end."""
        roots: dict[tuple[str, int], None] = {}
        for one in self.posts:
            root = self._threads.root(one)
            roots.pop(root, None)
            roots[root] = None
        chosen = list(roots) if most is None else list(roots)[-most:]
        return [self._threads.tree(root) for root in chosen]

    # -- what is held ------------------------------------------------------------------------------

    def hold(self, held: Mapping[Id, tuple[Id, str]], now_s: float) -> bool:
        """Note what is held at a moment: id -> (what it waits for, where that is; empty: held too).

        Returns whether something has changed.
        """
        self._since = {one: self._since.get(one, now_s) for one in held}
        self._noticed &= held.keys()
        before = self.held
        self.held = tuple(
            HeldPost(one, parent, why, self._since[one]) for one, (parent, why) in held.items()
        )
        return self.held != before

    def long_held(self, now_s: float) -> Iterator[HeldPost]:
        """Yield, once each, what has been held for a while."""
        for waiting in self.held:
            if waiting.id not in self._noticed and now_s - waiting.since_s >= NOTICED_S:
                self._noticed.add(waiting.id)
                yield waiting

    # -- who is here -------------------------------------------------------------------------------

    def see(self, members: Iterable[str], connected: Iterable[str]) -> list[tuple[str, bool]]:
        """Note who is in the group and who of them is connected; return whose connection changed,
        of those who were in it before as well.
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
