"""Missing parents of held replies, as text: their location and the request."""

from __future__ import annotations

from antecede.live.chat.words import name_of
from antecede.live.events import Id, member_of
from antecede.live.node import Node

MOST = 500
STRANGER = "refers to a member whose first messages are missing, or there is no capacity for it"


def list_held(node: Node) -> dict[Id, tuple[Id, str]]:
    """Return the held replies: id -> (missing parent, its location; empty: held too). A message
    that waits for itself is the next of a stalled sender.
    """
    ordering = node.ordering
    if ordering is None:
        return {}
    found: dict[Id, tuple[Id, str]] = {}
    for lane, number in ordering.list_stalled().items():
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
    """Return the location of a message that is not here."""
    ordering = node.active
    owner = name_of(parent.sender)
    having = sorted(
        member_of(lane)
        for lane in node.greeted
        if ordering.lanes.heard.get(lane, {}).get(parent.sender_id, 0) >= parent.number
    )
    if having:
        return f"requested from {_names(having)}"
    if parent.sender_id in node.greeted:
        return f"{owner} is connected and sends it"
    away = sorted(map(member_of, node.timers.unheard()))
    if parent.sender_id in ordering.members:
        return f"{owner} is disconnected; no connected member has it"
    if away:
        return f"{owner} has departed; {_names(away)}, disconnected, may have it"
    return f"{owner} has departed; all members are being checked"


def _names(names: list[str]) -> str:
    shown = [name_of(name) for name in names[:3]]
    if len(names) > len(shown):
        shown.append(f"{len(names) - len(shown)} more")
    *first, last = shown
    return f"{', '.join(first)} and {last}" if first else last
