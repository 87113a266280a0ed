"""Membership rules of all protocols: checks of joins, departures and join states.

A member number is assigned once and never reused (`core.protocols.base`). A departed member stays
known, with the number of its last message, because messages that depend on its own may still
arrive.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from antecede.errors import LocalError, SequenceError

STALE_STATE = "its state is stale: restore a newer snapshot, or let it join under another name"


def make_number_error(claim: str, number: int, member: int, last: int, me: int) -> SequenceError:
    """Return the error for a message with a number above a member's last one; `claim`: its text."""
    which = f"{claim} message {number} of member {member}"
    if member == me:
        return SequenceError(f"{which}, but this member has sent {last}: {STALE_STATE}")
    return SequenceError(f"{which}, whose last message is at most {last}")


def add_members(
    members: tuple[int, ...],
    known: Collection[int],
    new: Iterable[int],
    highest: int | None = None,
) -> tuple[int, ...]:
    """Return the members with new ones added, sorted; `known`: all members ever.

    Raises LocalError for a number that was used before, is negative or above `highest`.
    """
    new = tuple(new)
    for member in new:
        if member in known:
            raise LocalError(f"member number {member} was used before")
    check_numbers(new, highest)
    return tuple(sorted((*members, *new)))


def check_numbers(members: Iterable[int], highest: int | None) -> None:
    """Raise LocalError for a member number below 0 or above `highest`."""
    for member in members:
        if highest is not None and not 0 <= member <= highest:
            raise LocalError(f"member numbers are 0 to {highest}, not {member}")


def remove_members(members: tuple[int, ...], departed: Collection[int]) -> tuple[int, ...]:
    """Return the members except the departed ones."""
    return tuple(member for member in members if member not in departed)


def check_departure(members: Collection[int], me: int, member: int) -> None:
    """Raise LocalError unless `member` is another current member."""
    if member == me or member not in members:
        raise LocalError(f"member {member} is not another member of this group")


def check_last_number(member: int, last: int, newest: int) -> None:
    """Raise LocalError if messages beyond the last one of a departing member are known."""
    if last < newest:
        raise LocalError(f"member {member} left after message {last}, but {newest} is known here")


def check_all_delivered(member: int, last: Mapping[int, int], delivered: int) -> None:
    """Raise LocalError unless the member has left and all its messages are delivered."""
    if last.get(member) != delivered:
        raise LocalError(
            f"member {member} has undelivered messages: {delivered} of {last.get(member)} "
            "are delivered"
        )


def check_unused(sent: int, *received: object) -> None:
    """Raise LocalError if a join state is installed after a message was sent or received."""
    if sent or any(received):
        raise LocalError("a join state must be installed before anything is sent or received")


def check_start_numbers(newest: Mapping[int, int], highest: int) -> None:
    """Raise LocalError for a start number above the highest possible one."""
    for member, number in newest.items():
        if number > highest:
            raise LocalError(
                f"start number {number} of member {member} is too high; the limit is {highest}"
            )


def check_consistency(
    me: int,
    members: tuple[int, ...],
    known: Collection[int],
    last: Collection[int],
    complete_tables: Mapping[str, Collection[int]],
    partial_tables: Mapping[str, Collection[int]],
) -> None:
    """Raise ValueError unless members and tables are consistent; `known`: all others ever.

    Complete tables have all of them as keys, partial tables some.
    """
    others = set(known)
    if me in others or me in last or not others.issuperset(last):
        raise ValueError("departed: unknown members, or this member among the others")
    if tuple(members) != select_current((*others, me), last):
        raise ValueError(f"members {members} are not the known ones without the departed ones")
    for name, table in complete_tables.items():
        if set(table) != others:
            raise ValueError(f"{name}: members {sorted(table)} in place of {sorted(others)}")
    for name, table in partial_tables.items():
        if unknown := set(table) - others:
            raise ValueError(f"{name}: member {min(unknown)} is not another member")


def select_current(known: Iterable[int], last: Collection[int]) -> tuple[int, ...]:
    """Return the current members, sorted: all ever known except the departed ones."""
    return tuple(sorted(set(known).difference(last)))


def counts_to_ranges(counts: Mapping[int, int]) -> Mapping[int, Sequence[int]]:
    """Return the numbers 1 to count by member, as half-open ranges."""
    return {member: (1, count + 1) if count else () for member, count in counts.items()}
