"""Room as lines of sanitized text with a limited width."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from antecede.core.group import Thread
from antecede.formatting import duration, pluralize
from antecede.live.chat.room import HeldPost, Post, Room
from antecede.live.chat.words import cells, name_of, one_line, sanitize, shorten, wrap_lines
from antecede.live.events import Id

MOST_LINES: Final = 40
MOST_CHARACTERS: Final = 4000
QUOTE_CELLS: Final = 24
DEEPEST: Final = 8
"""Levels of a drawn tree on wide lines; deeper messages quote their parent."""
BRANCH, LAST, BAR, BLANK = "├── ", "└── ", "│   ", "    "


def format_post(room: Room, post: Post, width: int | None = None) -> list[str]:
    """Return a new message as lines, with its parent."""
    head = f"{post.number:>4}  {name_of(post.sender)}"
    if post.parent is not None:
        head += f" ↳ {describe_parent(room, post)}"
    return _with_text(f"{head}: ", " " * 6, f"{sanitize(post.text)}{_format_wait(post)}", width)


def describe_parent(room: Room, post: Post) -> str:
    """Return the parent of a message as a short text."""
    parent, one = room.parent(post), post.parent
    if one is None:
        return "no message"
    if parent is None:
        return _not_here(one, lost=post.lost)
    quote = shorten(one_line(parent.text), QUOTE_CELLS)
    return f"{parent.number} {name_of(parent.sender)} “{quote}”"


def _not_here(one: Id, *, lost: bool) -> str:
    why = "that is lost" if lost else "from before"
    return f"a message of {name_of(one.sender)} {why}"


def _format_wait(post: Post) -> str:
    return f"  [waited {duration(1000 * post.waited_s)}]" if post.waited_s >= 0.1 else ""


def tree(room: Room, thread: Thread, width: int | None = None) -> Iterator[str]:
    """Yield a thread as a tree, without recursion, since threads can be deep."""
    deepest = DEEPEST if width is None else max(1, min(DEEPEST, (width - 60) // 4))
    waiting: list[tuple[Thread, str, str, int]] = [(thread, "", "", 0)]
    while waiting:
        part, first, rest, depth = waiting.pop()
        post = room.posts.get(Id(*part.id))
        below = bool(part.answers)
        stem = rest + (BAR if below and depth < deepest else BLANK)
        if post is None:
            yield f"      {first}({_of_unknown(room, part)})"
        else:
            deep = f" ↳ {describe_parent(room, post)}" if depth > deepest else ""
            head = f"{post.number:>4}  {first}{name_of(post.sender)}{deep}: "
            yield from _with_text(
                head, " " * 6 + stem, sanitize(post.text) + _format_wait(post), width
            )
        for k, answer in enumerate(reversed(part.answers)):
            last = k == 0
            if depth < deepest:
                first_below, rest_below = rest + (LAST if last else BRANCH), rest
                rest_below += BLANK if last else BAR
            else:
                first_below, rest_below = first, rest
            waiting.append((answer, first_below, rest_below, depth + 1))


def _of_unknown(room: Room, part: Thread) -> str:
    answers = [room.posts.get(Id(*one.id)) for one in part.answers]
    lost = any(one is not None and one.lost for one in answers)
    return _not_here(Id(*part.id), lost=lost)


def threads(room: Room, most: int | None = None, width: int | None = None) -> Iterator[str]:
    """Yield the threads as trees."""
    for thread in room.threads(most):
        yield from tree(room, thread, width)


def describe_held(waiting: HeldPost, now_s: float | None = None) -> str:
    """Return a held reply and its missing parent; `now_s`: with the time held. Messages that are
    not here have no number, so they appear by sender.
    """
    whose = name_of(waiting.parent.sender)
    waits = "waits" if now_s is None else f"has waited {duration(1000 * (now_s - waiting.since_s))}"
    if waiting.parent == waiting.id:
        return f"the next message of {whose} {waits}: it {waiting.why}"
    text = f"{name_of(waiting.sender)}'s reply {waits} for "
    if not waiting.why:
        return f"{text}{whose}'s reply, which is held itself"
    return f"{text}a message of {whose} that is not here: {waiting.why}"


def describe_all_held(room: Room, now_s: float) -> Iterator[str]:
    """Yield all held replies."""
    for waiting in room.held:
        yield describe_held(waiting, now_s)
    if not room.held:
        yield "no reply is held"


def list_members(room: Room) -> Iterator[str]:
    """Yield the members."""
    for one in room.members:
        where = "you" if one.me else "here" if one.here else "away: not connected"
        yield f"{name_of(one.name)}  ({where})"


def summary(room: Room) -> str:
    """Return the state of the room as one line."""
    here = sum(one.here for one in room.members)
    away = len(room.members) - here
    waits = f", {pluralize(len(room.held), 'reply', 'replies')} held" if room.held else ""
    return f"{here} here{f', {away} away' if away else ''}{waits}"


def _with_text(head: str, indent: str, text: str, width: int | None) -> list[str]:
    """Return a text behind a head, with its further lines indented."""
    room = None if width is None else width - max(cells(head), cells(indent))
    first, *more = wrap_lines(text[:MOST_CHARACTERS], room)
    if len(more) >= MOST_LINES or len(text) > MOST_CHARACTERS:
        more = [*more[: MOST_LINES - 2], "[... the rest of this message is hidden]"]
    return [head + first, *(indent + line for line in more)]
