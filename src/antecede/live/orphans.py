"""What waits for messages that died with their senders, and are nobody's any more.

Order "reply": an answer waits for its parent. Where the parent's sender is gone, all members are
connected and have the same of it (`upkeep`), the parent is not to come: every member ends that lane
where it is and does the same with what waited: hands it over, marked with what is missing, or sets
it aside with all that answers it. Both follow from the inputs alone, so a store replays them.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from contextlib import suppress

from antecede.core.group import Group
from antecede.core.group import message as group_message
from antecede.errors import RemoteError
from antecede.live.events import GivenUp, Id, is_lane
from antecede.live.settings import SET_ASIDE

Ends = dict[str, tuple[int, tuple[str, ...]]]
"""Lane -> (its last batch that counts, lanes of which something is missing)."""


def hopeless(group: Group, gone: Container[str], newest: Callable[[str], int]) -> Ends:
    """Return, for lanes of gone members, behind which batch nothing can be delivered, and what is
    lacking: in orders in which all waits for its causes. `newest`: of a lane, what there is of it.
    """
    dead: dict[Id, set[str]] = {}
    waiting = {Id(*one.message.id): one.waits_for for one in group.list_held()}

    def lacking(waits_for: Iterable[tuple[str, int]]) -> set[str]:
        found = {lane for lane, number in waits_for if lane in gone and number > newest(lane)}
        return found.union(*(dead.get(Id(*one), ()) for one in waits_for))

    while more := {
        one: found
        for one, waits_for in waiting.items()
        if one not in dead and (found := lacking(waits_for))
    }:
        dead |= more
    ends: Ends = {}
    for one in sorted(dead, reverse=True):
        if one.lane in gone:
            ends[one.lane] = one.number - 1, tuple(sorted(dead[one]))
    return ends


def ended(
    group: Group, gone: Container[str], newest: Mapping[str, int], cuts: Container[str]
) -> Ends:
    """Return, for lanes of gone members that held answers need more of than is here: the number of
    their last batch, and the lane itself as what is lacking.
    """
    lanes = {
        lane
        for one in group.list_held()
        for lane, number in one.waits_for
        if lane in gone and lane not in cuts and number > newest.get(lane, 0)
    }
    return {lane: (newest.get(lane, 0), (lane,)) for lane in sorted(lanes)}


def released(group: Group, cuts: Mapping[str, int]) -> list[group_message.Message]:
    """Return what waited for nothing but what lies behind the end of a lane, and what follows."""
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


def strangers(group: Group, waiting: Iterable[bytes], known: Container[str]) -> Ends:
    """Return the lanes that nobody who is here has heard of, and what waits answers, as `ended`.

    `waiting`: batches of members that are gone, which the group does not take since they speak of
    others that have not begun here. Nothing of these is here, so their lanes end at once.
    """
    found: Ends = {}
    for wire in waiting:
        with suppress(RemoteError):
            for lane, _ in group.inspect(wire).reply_to:
                if is_lane(lane) and lane not in known:
                    found[lane] = 0, (lane,)
    return found


class Orphans:
    """What becomes of an answer without a parent, by the policy of the group."""

    def __init__(self, policy: str, aside: Iterable[Id] = ()) -> None:
        self._policy = policy
        self.aside = set(aside)
        """Messages that were set aside."""

    def set_aside(self, message: group_message.Message) -> GivenUp | None:
        """Return what to tell the application instead of a message; None: hand it over."""
        if self._policy != SET_ASIDE:
            return None
        lost = [*message.missing, *(one for one in message.reply_to if Id(*one) in self.aside)]
        if not lost:
            return None
        self.aside.add(Id(*message.id))
        return GivenUp(message.sender, 1, tuple(sorted({lane for lane, _ in lost})))
