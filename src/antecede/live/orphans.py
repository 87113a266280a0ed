"""Messages whose causes were lost with departed senders.

Order "reply": a reply waits for its parent. The parent is lost if its sender has departed, and all
members are connected and have the same batches of it (`upkeep`). Then every member ends that log
and treats the waiting replies alike. It delivers them, marked with the lost parent, or drops them
with all replies to them. Both follow from the inputs, so a store replays them.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from contextlib import suppress

from antecede.core.group import Group
from antecede.core.group import message as group_message
from antecede.errors import RemoteError
from antecede.live.events import Id, MessagesAbandoned, is_lane
from antecede.live.settings import DROP

Ends = dict[str, tuple[int, tuple[str, ...]]]
"""Sender id -> (its last valid batch, senders with missing batches)."""


def find_hopeless(group: Group, gone: Container[str], newest: Callable[[str], int]) -> Ends:
    """Return the ends of departed senders' logs in orders where all messages wait for causes.
    `newest`: newest batch here by sender.
    """
    dead: dict[Id, set[str]] = {}
    waiting = {Id(*one.message.id): one.waits_for for one in group.list_held()}

    def find_lacking(waits_for: Iterable[tuple[str, int]]) -> set[str]:
        found = {lane for lane, number in waits_for if lane in gone and number > newest(lane)}
        return found.union(*(dead.get(Id(*one), ()) for one in waits_for))

    while more := {
        one: found
        for one, waits_for in waiting.items()
        if one not in dead and (found := find_lacking(waits_for))
    }:
        dead |= more
    ends: Ends = {}
    for one in sorted(dead, reverse=True):
        if one.sender_id in gone:
            ends[one.sender_id] = one.number - 1, tuple(sorted(dead[one]))
    return ends


def find_ended(
    group: Group, gone: Container[str], newest: Mapping[str, int], cuts: Container[str]
) -> Ends:
    """Return the ends of departed senders' logs whose later batches held replies need."""
    lanes = {
        lane
        for one in group.list_held()
        for lane, number in one.waits_for
        if lane in gone and lane not in cuts and number > newest.get(lane, 0)
    }
    return {lane: (newest.get(lane, 0), (lane,)) for lane in sorted(lanes)}


def release_lost(group: Group, cuts: Mapping[str, int]) -> list[group_message.Message]:
    """Return the messages that waited only for batches behind the ends, and their dependents."""
    found: list[group_message.Message] = []
    while group.stats().held:
        lost = {
            (lane, number)
            for one in group.list_held()
            for lane, number in one.waits_for
            if number > cuts.get(lane, number)
        }
        more = group.declare_lost(sorted(lost)) if lost else []
        if not more:
            break
        found += more
    return found


def find_unknown_senders(group: Group, waiting: Iterable[bytes], known: Container[str]) -> Ends:
    """Return, as `ended`, the unknown senders that waiting messages reply to. `waiting`: batches of
    departed members that the group rejects, since they refer to senders that never started here. No
    batch of these is here, so their logs end at once.
    """
    found: Ends = {}
    for wire in waiting:
        with suppress(RemoteError):
            for lane, _ in group.inspect(wire).reply_to:
                if is_lane(lane) and lane not in known:
                    found[lane] = 0, (lane,)
    return found


class LostCauses:
    """Treatment of replies without a parent, by the policy of the group."""

    def __init__(self, policy: str, aside: Iterable[Id] = ()) -> None:
        self._policy = policy
        self.aside = set(aside)

    def drop(self, message: group_message.Message) -> MessagesAbandoned | None:
        """Return the event that replaces a dropped message. None: deliver it."""
        if self._policy != DROP:
            return None
        lost = [*message.missing, *(one for one in message.reply_to if Id(*one) in self.aside)]
        if not lost:
            return None
        self.aside.add(Id(*message.id))
        return MessagesAbandoned(message.sender, 1, tuple(sorted({lane for lane, _ in lost})))
