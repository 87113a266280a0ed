"""Options of a `Group`: validation, limits, member table, snapshot schema."""

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
from antecede.core.group.incarnations import IncarnationTable, Roster, canonicalize, fingerprint
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
from antecede.formatting import quote

ALIASES = {"causal": "idr", "reply": "sb", "none": "unordered"}

NAMED_OPTION_TYPES: Mapping[str, type] = {"bounds": Bounds, "subscriptions": Subscriptions}

MAX_MEMBER_NUMBER = 1 << 16


class Limits(NamedTuple):
    """Limits of a group, the same at all members. A message beyond them raises LimitError."""

    max_members: int = 1000
    """Members of an open group. A closed group grows only by `join`."""
    max_held: int = 100_000
    """Messages that wait for causes or a join."""
    max_packet: int = 1 << 26
    """Bytes of a message, without restart and join information. Hierarchical roles limit own
    payloads to half, since other roles encode them again."""
    threads: int = 1000
    """Messages kept for `Group.thread` (order "reply")."""


def check_members(name: str, members: Iterable[str] | None) -> list[str]:
    """Return the sorted names of the first members. Raise LocalError."""
    if isinstance(members, str | bytes):
        raise LocalError(f"members= is the text {members!r}; expected a list of names")
    if members is not None and not isinstance(members, Iterable):
        raise LocalError(f"members= is {quote(members)}; expected a list of names")
    names = sorted(map(check_name, (name,) if members is None else members))
    if duplicates := [
        name_before for name_before, after in pairwise(names) if name_before == after
    ]:
        raise LocalError(f"members= has a duplicate name: {duplicates[0]!r}")
    if check_name(name) not in names:
        raise LocalError(f"members= lacks this member, {name!r}: {names}")
    return names


def resolve_order(order: str) -> str:
    """Return the protocol name of an order. Raise LocalError."""
    name = ALIASES.get(order, order) if isinstance(order, str) else None
    if name is None or name not in ENTRIES:
        aliases = ", ".join(f"{alias} (= {one})" for alias, one in ALIASES.items())
        raise LocalError(
            f"unknown order {quote(order)}; choose from {aliases}, {', '.join(ENTRIES)}"
        )
    return name


def split_limits(
    options: Mapping[str, Any], order: str, is_open: bool
) -> tuple[Limits, dict[str, Any]]:
    """Split options into limits and protocol options. Raise LocalError."""
    options = plain_options(options)
    given = {name: options[name] for name in Limits._fields if name in options}
    for name, value in given.items():
        least = int(name != "threads")
        if type(value) is not int or value < least:
            raise LocalError(f"{name}={quote(value)}: expected an integer of {least} or more")
    if "max_members" in given and not is_open:
        raise LocalError("max_members= has no effect in a closed group; omit it or members=")
    if "threads" in given and flat_class(order).guarantee.relation is not Relation.BY_REPLY:
        raise LocalError(f"threads= has no effect with order {order!r}; use order 'reply'")
    rest = {name: value for name, value in options.items() if name not in given}
    return Limits(**given), rest


def number_member_options(
    order: str, options: Mapping[str, Any], numbers: Mapping[str, int]
) -> dict[str, Any]:
    """Return the options with member numbers for names. Raise LocalError for unknown members."""
    given = dict(options)
    for name in flat_class(order).member_options & given.keys():
        member = given[name]
        if isinstance(member, str):
            if member not in numbers:
                raise LocalError(
                    f"{name}={quote(member)}: unknown member; choose from {[*numbers]}"
                )
            given[name] = numbers[member]
        elif member is not None and (type(member) is not int or member not in numbers.values()):
            raise LocalError(
                f"{name}={quote(member)}: expected a member name, or its number (index in the "
                "sorted list of names, from 0)"
            )
    return given


def make_protocol(
    order: str, me: int, numbers: Mapping[str, int], options: Mapping[str, Any]
) -> Protocol:
    """Return a new protocol object. Raise LocalError for unknown or invalid options."""
    protocol_class = flat_class(order)
    known = options_of(protocol_class)
    if unknown := [name for name in options if name not in known]:
        own = f"choose from {', '.join(known)}" if known else "it has no options"
        also = next((f" ({alias!r})" for alias, name in ALIASES.items() if name == order), "")
        raise LocalError(
            f"order {order!r}{also} has no option {unknown[0]!r}; {own}. Options of every group: "
            f"room, incarnation, keep_log, {', '.join(Limits._fields)}"
        )
    for name, kind in NAMED_OPTION_TYPES.items():
        if not isinstance(options.get(name), (kind, NoneType)):
            what = type(options[name]).__name__
            raise LocalError(f"{name}= is {what}; expected antecede.{kind.__name__}(...)")
    given = build.replace_names(options, numbers)
    try:
        return build.member(protocol_class, me, numbers.values(), given)
    except LocalError as error:
        table = {number: name for name, number in numbers.items()}
        error.args = (insert_names(str(error), table), *error.args[1:])
        raise
    except TypeError as error:  # its text names the option
        raise LocalError(f"order {order!r}: {error}".replace(".__init__()", "")) from error


def can_be_open(protocol: Protocol) -> bool:
    """Return whether a protocol's messages contain the members that they mention."""
    names_members = type(protocol).mentions is not Protocol.mentions
    return names_members and (protocol.in_lanes or not protocol.needs_lanes)


def room_code(room: str) -> int:
    """Return the fingerprint of `room=`. Raise LocalError unless it is text."""
    if not isinstance(room, str):
        raise LocalError(f"room= is {quote(room)}; expected text, the same at all members")
    return fingerprint(_encode_text(room, "room="))


def options_code(order: str, common: Mapping[str, Any]) -> int:
    """Return the fingerprint of an order and its shared options."""
    return fingerprint(_encode_text(f"{order} {canonicalize(common)}", "order="), 2)


GROUP_SHAPE: Shape = TEXT, BOOL, NUMBER, NUMBER
_NAMES_TABLE: tuple[Shape, ...] = Many((NUMBER, TEXT)), NUMBER, Many(NUMBER)
_FORGOTTEN: tuple[Shape, ...] = (Many(NUMBER), NUMBER), Many((TEXT, NUMBER))
TABLE_SHAPE: Shape = OneOf(_NAMES_TABLE, (*_NAMES_TABLE, *_FORGOTTEN))
_IDS: Shape = Many((TEXT, NUMBER))
SNAPSHOT_SHAPE: tuple[Shape, ...] = (
    GROUP_SHAPE,
    TEXT,
    TABLE_SHAPE,
    (NUMBER, (NUMBER, NUMBER, NUMBER), IncarnationTable.SHAPE),
    Many((Many(TEXT), BYTES)),
    Many((TEXT, NUMBER, BYTES, _IDS, _IDS)),
    Many((BYTES, TEXT, NUMBER, BYTES, NUMBER, OneOf(None, SIGNED))),
    TALLIES,
    Many(((TEXT, NUMBER), _IDS)),
    ANY,
)


def read_member_table(table: Any) -> Roster:
    """Return a member table from stored form. Raise DecodeError."""
    if where := misfit(table, TABLE_SHAPE):
        raise DecodeError(f"invalid stored member table: {where}")
    rows, first, joined, *rest = table
    names: dict[int, str] = dict(rows)
    sound = all(map(can_be_name, names.values()))
    if (
        not sound
        or max(names, default=MAX_MEMBER_NUMBER + 1) > MAX_MEMBER_NUMBER
        or first >= 1 << 32
    ):
        raise DecodeError("invalid stored member table: names or numbers are out of range")
    if rest:
        return _read_forgotten(names, first, joined, *rest)
    begun = len(rows) - len(joined)
    if len(set(names.values())) < len(rows) or [*names][begun:] != [*joined]:
        raise DecodeError("invalid stored member table: duplicate name or inconsistent joins")
    roster = Roster(dict(rows[:begun]), first)
    for number in joined:
        roster.add(number, names[number])
    return roster


def _read_forgotten(
    names: dict[int, str], first: int, joined: tuple[int, ...], numbering: Any, forgotten: Any
) -> Roster:
    digests, highest = numbering
    forgotten_numbers = dict(forgotten)
    is_unique = len({*names.values(), *forgotten_numbers}) == len(names) + len(forgotten_numbers)
    known = {*names, *forgotten_numbers.values()}
    is_complete = (
        len(digests) == len(joined) + 1 and digests[0] == first and len(set(joined)) == len(joined)
    )
    if (
        not (is_unique and is_complete and known)
        or not max((*known, *joined)) <= highest <= MAX_MEMBER_NUMBER
    ):
        raise DecodeError("invalid stored member table: inconsistent forgotten members")
    if any(digest >= 1 << 32 for digest in digests) or not all(map(can_be_name, forgotten_numbers)):
        raise DecodeError("invalid stored member table: inconsistent forgotten members")
    roster = Roster(names, first)
    roster.digests, roster.joins = list(digests), list(joined)
    roster.forgotten, roster.highest_number = forgotten_numbers, highest
    return roster


_NUMBERED = re.compile(r"\bmembers? (\d+)\b(?! of)(?: and (\d+)\b)?")
_LISTED = re.compile(r"(?<=others )(are )?\((\d+(?:, \d+)*),?\)")


def insert_names(text: str, names: Mapping[int, str]) -> str:
    """Return a text with names in place of member numbers."""

    def replace_pair(match: re.Match[str]) -> str:
        numbers = [int(number) for number in match.groups() if number is not None]
        if not all(number in names for number in numbers):
            return match[0]
        return " and ".join(repr(names[number]) for number in numbers)

    def replace_list(match: re.Match[str]) -> str:
        numbers = [int(number) for number in match[2].split(",")]
        if not all(number in names for number in numbers):
            return match[0]
        return (match[1] or "") + ", ".join(repr(names[number]) for number in numbers)

    return _LISTED.sub(replace_list, _NUMBERED.sub(replace_pair, text))


def is_id(value: Any) -> bool:
    """Return whether a value is a message id."""
    return (
        type(value) is tuple
        and len(value) == 2
        and isinstance(value[0], str)
        and type(value[1]) is int
        and 1 <= value[1] <= GREATEST
    )


def check_name(name: str) -> str:
    """Return a member name as built-in str. Raise LocalError."""
    if not isinstance(name, str):
        raise LocalError(f"member name is {type(name).__name__}; expected text")
    if not can_be_name(name):
        raise LocalError(
            f"member name {quote(name)} is invalid; expected 1 to {frame.MAX_NAME_BYTES} bytes "
            "as UTF-8"
        )
    return str(plain(name))


def can_be_name(name: str) -> bool:
    """Return whether a text is a valid member name. Lone surrogates have no UTF-8."""
    try:
        return 0 < len(name.encode()) <= frame.MAX_NAME_BYTES
    except UnicodeEncodeError:
        return False


def _encode_text(text: str, what: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise LocalError(
            f"{what} is {quote(text)}; expected text with an UTF-8 encoding ({error.reason})"
        ) from None
