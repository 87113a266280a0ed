"""Limits, options, table of names and stored shapes of a `Group`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import pairwise
from types import NoneType
from typing import Any, NamedTuple

from antecede.core.clocks import MAX_NUMBER as GREATEST
from antecede.core.clocks import Bounds, plain
from antecede.core.group.counters import SHAPE as TALLIES
from antecede.core.group.frames import format as frame
from antecede.core.group.incarnations import Lives, Roster, canonical, fingerprint
from antecede.core.protocols import ENTRIES, Protocol, Relation, flat_class
from antecede.core.protocols import factory as build
from antecede.core.protocols.options import options_of, plain_options
from antecede.core.protocols.serialization import (
    ANY,
    BOOL,
    BYTES,
    NUMBER,
    SIGNED,
    TEXT,
    Many,
    OneOf,
    Shape,
    misfit,
)
from antecede.core.protocols.topics import Subscriptions
from antecede.errors import DecodeError, LocalError
from antecede.formatting import shown

ALIASES = {"causal": "idr", "reply": "sb", "none": "unordered"}
"""Orders by what they mean; a protocol's own name works too."""

BY_NAME: Mapping[str, type] = {"bounds": Bounds, "subscriptions": Subscriptions}
"""Options that speak of members by name, and their types."""

MAX_NUMBER = 1 << 16
"""Members' numbers in stored bytes are at most this."""


class Limits(NamedTuple):
    """What a group takes in at most; what exceeds it is refused with LimitError."""

    max_members: int = 1000
    """Open groups: members that are met. Closed groups grow by `join` alone."""
    max_held: int = 100_000
    """Messages that wait, for causes or for a join."""
    max_packet: int = 1 << 26
    """Bytes of a message: of others' when they come, of one's own before a number is given out.
    Payload, control information, names and the head of the frame are counted; what a frame tells
    of restarts and joins is not, since it grows when the message is written again (retransmissions,
    `held`). Each member goes by its own limit alone, so all should give the same: what is refused
    by a member with a smaller one, that member waits for in vain. In the hierarchical
    roles a payload of one's own may have half, since messages are made anew on their way."""
    threads: int = 1000
    """Messages whose answers are remembered for `thread` (order "reply")."""


def list_of(name: str, members: Iterable[str] | None) -> list[str]:
    """Return the names of the first members, sorted.

    Raises LocalError for a text in place of a list, a name twice, or a list without `name`.
    """
    if isinstance(members, str | bytes):
        raise LocalError(f"members is a list of names, not the text {members!r}")
    if members is not None and not isinstance(members, Iterable):
        raise LocalError(f"members is a list of names, not {shown(members)}")
    names = sorted(map(checked, (name,) if members is None else members))
    if twice := [one for one, after in pairwise(names) if one == after]:
        raise LocalError(f"a name stands twice in the list of members: {twice[0]!r}")
    if checked(name) not in names:
        raise LocalError(f"{name!r} is not in the list of members {names}")
    return names


def resolved(order: str) -> str:
    """Return the name of a protocol; raises LocalError with the names there are."""
    name = ALIASES.get(order, order) if isinstance(order, str) else None
    if name is None or name not in ENTRIES:
        aliases = ", ".join(f"{alias} (= {one})" for alias, one in ALIASES.items())
        raise LocalError(
            f"no protocol is called {shown(order)}; there are {aliases}, and {', '.join(ENTRIES)}"
        )
    return name


def limits_of(
    options: Mapping[str, Any], order: str, is_open: bool
) -> tuple[Limits, dict[str, Any]]:
    """Tell the limits from the options of the protocol.

    Raises LocalError for what is no limit, and for a limit that this group would never use.
    """
    options = plain_options(options)
    given = {name: options[name] for name in Limits._fields if name in options}
    for name, value in given.items():
        least = int(name != "threads")
        if type(value) is not int or value < least:
            raise LocalError(f"{name} is {shown(value)}; it is a whole number of {least} or more")
    if "max_members" in given and not is_open:
        raise LocalError("max_members= is for open groups; this one has a list of members")
    if "threads" in given and flat_class(order).guarantee.relation is not Relation.BY_REPLY:
        raise LocalError(f"threads= is for order 'reply'; order {order!r} keeps no answers")
    rest = {name: value for name, value in options.items() if name not in given}
    return Limits(**given), rest


def by_number(order: str, options: Mapping[str, Any], numbers: Mapping[str, int]) -> dict[str, Any]:
    """Return the options with members' numbers for names. Raises LocalError for strangers."""
    given = dict(options)
    for name in flat_class(order).member_options & given.keys():
        member = given[name]
        if isinstance(member, str):
            if member not in numbers:
                raise LocalError(
                    f"{name} is {shown(member)}, who is not in the list of members {[*numbers]}"
                )
            given[name] = numbers[member]
        elif member is not None and (type(member) is not int or member not in numbers.values()):
            raise LocalError(
                f"{name} is {shown(member)}; it is the name of a member, or its number (its place "
                "in the sorted list of names, from 0)"
            )
    return given


def made(order: str, me: int, numbers: Mapping[str, int], options: Mapping[str, Any]) -> Protocol:
    """Return a protocol object; options that speak of members by name get their numbers."""
    protocol_class = flat_class(order)
    known = options_of(protocol_class)
    if unknown := [name for name in options if name not in known]:
        own = f"its options are {', '.join(known)}" if known else "it has none of its own"
        also = next((f" ({alias!r})" for alias, name in ALIASES.items() if name == order), "")
        raise LocalError(
            f"order {order!r}{also} has no option {unknown[0]!r}; {own}. Every group takes room, "
            f"incarnation, keep_log, {', '.join(Limits._fields)}"
        )
    for name, kind in BY_NAME.items():
        if not isinstance(options.get(name), (kind, NoneType)):
            what = type(options[name]).__name__
            raise LocalError(f"{name} is antecede.{kind.__name__}(...), not {what}")
    given = build.numbered(options, numbers)
    try:
        return build.member(protocol_class, me, numbers.values(), given)
    except LocalError as error:
        table = {number: name for name, number in numbers.items()}
        error.args = (with_names(str(error), table), *error.args[1:])
        raise
    except TypeError as error:  # Python's own words name the option
        raise LocalError(f"order {order!r}: {error}".replace(".__init__()", "")) from error


def can_be_open(protocol: Protocol) -> bool:
    """Tell whether a protocol's messages say of whom they speak."""
    told = type(protocol).mentions is not Protocol.mentions
    return told and (protocol.in_lanes or not protocol.needs_lanes)


def room_code(room: str) -> int:
    """Return the fingerprint of `room=`. Raises LocalError unless it is text."""
    if not isinstance(room, str):
        raise LocalError(f"room= is a text that all members give alike, not {shown(room)}")
    return fingerprint(_encoded(room, "room="))


def options_code(order: str, common: Mapping[str, Any]) -> int:
    """Return the fingerprint of an order and of the options that must agree."""
    return fingerprint(_encoded(f"{order} {canonical(common)}", "order="), 2)


GROUP: Shape = TEXT, BOOL, NUMBER, NUMBER
_NAMES_TABLE: tuple[Shape, ...] = Many((NUMBER, TEXT)), NUMBER, Many(NUMBER)
_FORGOTTEN: tuple[Shape, ...] = (Many(NUMBER), NUMBER), Many((TEXT, NUMBER))
TABLE: Shape = OneOf(_NAMES_TABLE, (*_NAMES_TABLE, *_FORGOTTEN))
_IDS: Shape = Many((TEXT, NUMBER))
SNAPSHOT: tuple[Shape, ...] = (
    GROUP,
    TEXT,
    TABLE,
    (NUMBER, (NUMBER, NUMBER, NUMBER), Lives.SHAPE),
    Many((Many(TEXT), BYTES)),
    Many((TEXT, NUMBER, BYTES, _IDS, _IDS)),
    Many((BYTES, TEXT, NUMBER, BYTES, NUMBER, OneOf(None, SIGNED))),
    TALLIES,
    Many(((TEXT, NUMBER), _IDS)),
    ANY,
)


def roster_of(table: Any) -> Roster:
    """Return a table of names, as it is stored; raises DecodeError."""
    if where := misfit(table, TABLE):
        raise DecodeError(f"stored bytes without a table of names: {where}")
    rows, first, joined, *rest = table
    names: dict[int, str] = dict(rows)
    sound = all(map(can_be_name, names.values()))
    if not sound or max(names, default=MAX_NUMBER + 1) > MAX_NUMBER or first >= 1 << 32:
        raise DecodeError("stored bytes without a table of names, or with one that cannot be")
    if rest:
        return _with_forgotten(names, first, joined, *rest)
    begun = len(rows) - len(joined)
    if len(set(names.values())) < len(rows) or [*names][begun:] != [*joined]:
        raise DecodeError("a table of names with one that stands twice, or with other joins")
    roster = Roster(dict(rows[:begun]), first)
    for number in joined:
        roster.add(number, names[number])
    return roster


def _with_forgotten(
    names: dict[int, str], first: int, joined: tuple[int, ...], given: Any, forgotten: Any
) -> Roster:
    """Return a table of names from which members that left were dropped; raises DecodeError."""
    digests, highest = given
    gone = dict(forgotten)
    once = len({*names.values(), *gone}) == len(names) + len(gone)
    known = {*names, *gone.values()}
    whole = (
        len(digests) == len(joined) + 1 and digests[0] == first and len(set(joined)) == len(joined)
    )
    if not (once and whole and known) or not max((*known, *joined)) <= highest <= MAX_NUMBER:
        raise DecodeError("a table of names with forgotten members that cannot be")
    if any(one >= 1 << 32 for one in digests) or not all(map(can_be_name, gone)):
        raise DecodeError("a table of names with forgotten members that cannot be")
    roster = Roster(names, first)
    roster.digests, roster.joined = list(digests), list(joined)
    roster.forgotten, roster.given = gone, highest
    return roster


_NUMBERED = re.compile(r"\bmembers? (\d+)\b(?! of)(?: and (\d+)\b)?")
_LISTED = re.compile(r"(?<=others )(are )?\((\d+(?:, \d+)*),?\)")


def with_names(text: str, names: Mapping[int, str]) -> str:
    """Return an error's text, or a reason, with names in place of members' numbers."""

    def named(found: re.Match[str]) -> str:
        numbers = [int(number) for number in found.groups() if number is not None]
        if not all(number in names for number in numbers):
            return found[0]
        return " and ".join(repr(names[number]) for number in numbers)

    def listed(found: re.Match[str]) -> str:
        numbers = [int(number) for number in found[2].split(",")]
        if not all(number in names for number in numbers):
            return found[0]
        return (found[1] or "") + ", ".join(repr(names[number]) for number in numbers)

    return _LISTED.sub(listed, _NUMBERED.sub(named, text))


def is_id(value: Any) -> bool:
    """Tell whether a value is (sender, number), from 1 to the greatest that a member gives out."""
    return (
        type(value) is tuple
        and len(value) == 2
        and isinstance(value[0], str)
        and type(value[1]) is int
        and 1 <= value[1] <= GREATEST
    )


def checked(name: str) -> str:
    """Return a member's name, as Python's own text. Raises LocalError for what can be none."""
    if not isinstance(name, str):
        raise LocalError(f"a member's name is text, not {type(name).__name__}")
    if not can_be_name(name):
        raise LocalError(
            f"a member's name has 1 to {frame.MAX_NAME_BYTES} bytes as UTF-8, not {shown(name)}"
        )
    return str(plain(name))


def can_be_name(name: str) -> bool:
    """Tell whether a text can be a member's name; half a surrogate pair has no bytes."""
    try:
        return 0 < len(name.encode()) <= frame.MAX_NAME_BYTES
    except UnicodeEncodeError:
        return False


def _encoded(text: str, what: str) -> bytes:
    """Return a text as UTF-8. Raises LocalError for one that has no bytes."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise LocalError(
            f"{what} is {shown(text)}, which cannot be written as UTF-8: {error.reason}"
        ) from None
