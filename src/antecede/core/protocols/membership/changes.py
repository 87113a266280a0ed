"""Rules of membership that all protocols keep: present, former and departed members.

A member is a number that is given out once and never again (`core.protocols.base`). Whoever was in
the group stays known, because messages that depend on its own may still come; with those that left
stands the number of their last message. What else a protocol keeps of a member (a count, intervals,
a row) is its own; that a number may come in, that a member may leave, and what a frontier may
begin from, is judged here, in the same words for all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from antecede.errors import LocalError, SequenceError

STALE = (
    "was it restored from a snapshot that is too old, or begun again without one? Restore it from "
    "a newer snapshot, or let it join under another name"
)


def beyond(what: str, number: int, member: int, last: int, me: int) -> SequenceError:
    """Return the error for a message that speaks of a number above a member's last one.

    `what`: message and verb. An own number means that this member's state is too old.
    """
    which = f"{what} message {number} of member {member}"
    if member == me:
        return SequenceError(f"{which}, which is this member and has sent {last}: {STALE}")
    return SequenceError(f"{which}, whose last can only be {last}")


def with_newcomers(
    members: tuple[int, ...],
    known: Collection[int],
    newcomers: Iterable[int],
    highest: int | None = None,
) -> tuple[int, ...]:
    """Return the members with newcomers, sorted; `known`: everybody who ever was.

    Raises LocalError for a number given out before, below 0 or above `highest`.
    """
    newcomers = tuple(newcomers)
    for member in newcomers:
        if member in known:
            raise LocalError(f"member number {member} has been given out before")
    check_numbers(newcomers, highest)
    return tuple(sorted((*members, *newcomers)))


def check_numbers(members: Iterable[int], highest: int | None) -> None:
    """Raise LocalError for a member's number below 0, or above the greatest there can be."""
    for member in members:
        if highest is not None and not 0 <= member <= highest:
            raise LocalError(f"member numbers are 0 to {highest}, not {member}")


def without(members: tuple[int, ...], gone: Collection[int]) -> tuple[int, ...]:
    """Return the members without some of them."""
    return tuple(member for member in members if member not in gone)


def check_leaver(members: Collection[int], me: int, member: int) -> None:
    """Raise LocalError unless it is another member that is in the group."""
    if member == me or member not in members:
        raise LocalError(f"member {member} is not another member of the group")


def check_last(member: int, last: int, newest: int) -> None:
    """Raise LocalError when more than the last message of a member that leaves is known."""
    if last < newest:
        raise LocalError(f"member {member} left after message {last}, but {newest} is known here")


def check_delivered(member: int, last: Mapping[int, int], delivered: int) -> None:
    """Raise LocalError unless a member left and all its messages are delivered."""
    if last.get(member) != delivered:
        raise LocalError(
            f"member {member} is forgotten only when all its messages are here: {delivered} of "
            f"{last.get(member)} are"
        )


def check_new(sent: int, *come: object) -> None:
    """Raise LocalError when a frontier comes too late: after a message was sent, or one came."""
    if sent or any(come):
        raise LocalError("a frontier is adopted before anything is sent or received")


def check_begin(newest: Mapping[int, int], highest: int) -> None:
    """Raise LocalError for a number to begin at that is above the greatest there can be."""
    for member, number in newest.items():
        if number > highest:
            raise LocalError(f"{number} is no number of member {member}: {highest} is the greatest")


def check_whole(
    me: int,
    members: tuple[int, ...],
    known: Collection[int],
    last: Collection[int],
    whole: Mapping[str, Collection[int]],
    some: Mapping[str, Collection[int]],
) -> None:
    """Raise ValueError unless members and tables of a restored state fit together.

    `known`: all others ever; `whole` tables have all of them, `some` no strangers.
    """
    others = set(known)
    if me in others or me in last or not others.issuperset(last):
        raise ValueError("members left that never came, or this member itself is among the others")
    if tuple(members) != still_here((*others, me), last):
        raise ValueError(f"members {members} are not those that came and did not leave")
    for name, table in whole.items():
        if set(table) != others:
            raise ValueError(f"{name}: members {sorted(table)} in place of {sorted(others)}")
    for name, table in some.items():
        if strangers := set(table) - others:
            raise ValueError(f"{name}: member {min(strangers)} is not another member")


def still_here(known: Iterable[int], last: Collection[int]) -> tuple[int, ...]:
    """Return who is in the group: everybody who ever was, but those that left, sorted."""
    return tuple(sorted(set(known).difference(last)))


def runs_of(counts: Mapping[int, int]) -> Mapping[int, Sequence[int]]:
    """Return the numbers 1 up to a count, by member, as bounds (first, past the last)."""
    return {member: (1, count + 1) if count else () for member, count in counts.items()}
