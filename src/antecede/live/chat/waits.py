"""What a held answer waits for, in words: where its parent is, and what is done about it."""

from __future__ import annotations

from antecede.live.chat.words import name_of
from antecede.live.events import Id, member_of
from antecede.live.node import Node

MOST = 500
"""Held messages that are looked at one by one."""
STRANGER = "speaks of somebody whose own first words are not here, or there is no room for it"


def held_of(node: Node) -> dict[Id, tuple[Id, str]]:
    """Return the held answers: id -> (what it waits for, where that is; empty: held itself).

    What waits for itself is the next of a member whose messages wait all together.
    """
    ordering = node.ordering
    if ordering is None:
        return {}
    found: dict[Id, tuple[Id, str]] = {}
    for lane, number in ordering.stalled().items():
        found[Id(lane, number)] = Id(lane, number), STRANGER
    blocked = ordering.group.list_held()[:MOST] if ordering.group.stats().held else []
    held = {Id(*one.message.id) for one in blocked}
    for one in blocked:
        if one.waits_for:
            parent = Id(*one.waits_for[0])
            why = "" if parent in held else _why(node, parent)
            found[Id(*one.message.id)] = parent, why
    return found


def _why(node: Node, parent: Id) -> str:
    """Say where a message is that is not here."""
    ordering = node.active
    owner = name_of(parent.sender)
    having = sorted(
        member_of(lane)
        for lane in node.greeted
        if ordering.lanes.heard.get(lane, {}).get(parent.lane, 0) >= parent.number
    )
    if having:
        return f"{_names(having)} can give it, and {'is' if len(having) == 1 else 'are'} asked"
    if parent.lane in node.greeted:
        return f"{owner} is connected, and it is on its way"
    away = sorted(map(member_of, node.upkeep.unheard()))
    if parent.lane in ordering.members:
        return f"{owner} is away; nobody who is here has it"
    if away:
        return f"{owner} is gone; {_names(away)}, away now, may have it"
    return f"{owner} is gone; whether anybody has it is being asked"


def _names(names: list[str]) -> str:
    shown = [name_of(name) for name in names[:3]]
    if len(names) > len(shown):
        shown.append(f"{len(names) - len(shown)} more")
    *first, last = shown
    return f"{', '.join(first)} and {last}" if first else last
