"""Shrinking of counterexamples: fewest members, then messages, then actions.

A step removes a part of the counterexample and replays the rest without its impossible actions. The
result is kept if it fails in the same way and (members, messages, actions) became smaller. The
steps, in order:

        members   remove one, or assign its actions to another
        messages  remove one with its copies and the references of replies
        joins     make the first joining member a member from the start
        actions   remove ever smaller blocks, at last single ones
        ticks     merge several in a row

It ends when no step helps, or at the limit of replays, `MAX_ACTIONS` or `MAX_TIMEOUTS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import NamedTuple

from antecede.core.clocks import down_ns
from antecede.lab.check.harness.group_under_test import ConstructionError, GroupUnderTest
from antecede.lab.check.results import ENDLESS, TIMED_OUT, Failure
from antecede.lab.check.scenario.actions import (
    Action,
    Arrive,
    Join,
    Leave,
    Lose,
    Send,
    Tick,
    make_tick,
    rename,
)

MAX_TIMEOUTS = 6

MAX_ACTIONS = 400_000
"""Actions of all replays together; timed runs have thousands."""
FOLD_REPLAYS = 100
ENDLESS_REPLAYS = 100

Replay = Callable[[GroupUnderTest, Sequence[Action]], Failure | None]
Extent = tuple[int, int, int]


class GroupFailure(NamedTuple):
    """Counterexample and its group."""

    group: GroupUnderTest
    failure: Failure

    @property
    def size(self) -> Extent:
        """Numbers of members (with joining ones), messages sent, and actions."""
        actions = self.failure.actions
        joins = sum(isinstance(action, Join) for action in actions)
        sends = sum(isinstance(action, Send) for action in actions)
        return len(self.group.names) + joins, sends, len(actions)


def shrink(group: GroupUnderTest, failure: Failure, replay: Replay, replays: int) -> GroupFailure:
    """Return the smallest counterexample found within `replays`; endless runs are cut."""
    shrinking = _Shrinker(GroupFailure(group, failure), replay, replays)
    if failure.what == ENDLESS:
        shrinking.replays_left = min(replays, ENDLESS_REPLAYS)
        found = shrinking.shrink_group()
        return found._replace(failure=found.failure.truncate_endless())
    return shrinking.shrink_all()


def list_candidates(best: GroupFailure) -> Iterator[Candidate]:
    """Yield every candidate without one member, one message or one action."""
    yield from _remove_members(best)
    yield from _remove_messages(best)
    yield from _replace_join(best)
    for position in range(len(best.failure.actions)):
        yield _remove_block(best, position, 1)


def fold_ticks(group: GroupUnderTest, failure: Failure, replay: Replay) -> Failure:
    """Return a counterexample with consecutive ticks merged, if it still fails in the same way."""
    return _Shrinker(GroupFailure(group, failure), replay, FOLD_REPLAYS).fold_ticks()


class Candidate(NamedTuple):
    """Candidate for a smaller counterexample."""

    group: GroupUnderTest
    actions: tuple[Action, ...]


class _Shrinker:
    def __init__(self, best: GroupFailure, replay: Replay, replays: int) -> None:
        self.best, self.replay, self.replays_left = best, replay, replays
        self.actions_left, self.timeouts_left = MAX_ACTIONS, MAX_TIMEOUTS

    def shrink_all(self) -> GroupFailure:
        while (
            self._apply_steps(_remove_members)
            or self._apply_steps(_remove_messages)
            or self._apply_steps(_replace_join)
            or self._remove_actions()
            or self._apply_steps(_merge_ticks)
        ):
            pass
        return self._renumber()

    def _renumber(self) -> GroupFailure:
        group, failure = self.best
        actions = _renumber_labels(failure.actions, {})
        if actions == failure.actions:
            return self.best
        again = self.replay(group, actions)
        same = again is not None and again.what == failure.what and again.actions == actions
        return GroupFailure(group, again) if again is not None and same else self.best

    def fold_ticks(self) -> Failure:
        self._apply_steps(_merge_ticks)
        return self.best.failure

    def shrink_group(self) -> GroupFailure:
        while self._apply_steps(_remove_members) or self._apply_steps(_remove_messages):
            pass
        return self.best

    def _apply_steps(self, steps: Callable[[GroupFailure], Iterator[Candidate]]) -> bool:
        helped = False
        while any(self._try_candidate(one) for one in steps(self.best)):
            helped = True
        return helped

    def _remove_actions(self) -> bool:
        helped = False
        block = max(1, len(self.best.failure.actions) // 2)
        while self.replays_left > 0:
            start, shorter = 0, False
            while start < len(self.best.failure.actions) and self.replays_left > 0:
                if self._try_candidate(_remove_block(self.best, start, block)):
                    shorter = helped = True
                else:
                    start += block
            if block == 1 and not shorter:
                break
            block = max(1, block // 2)
        return helped

    def _try_candidate(self, candidate: Candidate) -> bool:
        if self.replays_left <= 0:
            return False
        self.replays_left -= 1
        try:
            failure = self.replay(candidate.group, candidate.actions)
        except ConstructionError:  # the class may reject so small a group
            return False
        if failure is not None and failure.what == TIMED_OUT:
            self.timeouts_left -= 1
        self.actions_left -= len(candidate.actions if failure is None else failure.actions)
        if self.timeouts_left <= 0 or self.actions_left <= 0:
            self.replays_left = 0
        if failure is None or failure.what != self.best.failure.what:
            return False
        found = GroupFailure(candidate.group, failure)
        # Time that passes before the check can make a run longer.
        if found.size >= self.best.size:
            return False
        self.best = found
        return True


def _remove_block(best: GroupFailure, start: int, length: int) -> Candidate:
    actions = best.failure.actions
    return Candidate(best.group, actions[:start] + actions[start + length :])


def _merge_ticks(best: GroupFailure) -> Iterator[Candidate]:
    actions = best.failure.actions
    for start, first in enumerate(actions):
        if not isinstance(first, Tick):
            continue
        row = list(takewhile(lambda one: isinstance(one, Tick), actions[start:]))
        for length in dict.fromkeys((len(row), 2)):
            if 2 <= length <= len(row):
                ticks = (one for one in row[:length] if isinstance(one, Tick))
                total = make_tick(sum(down_ns(one.seconds) for one in ticks))
                left = actions[start + length :]
                yield Candidate(best.group, (*actions[:start], total, *left))


def _remove_messages(best: GroupFailure) -> Iterator[Candidate]:
    actions = best.failure.actions
    for label in reversed([one.label for one in actions if isinstance(one, Send)]):
        left = (
            _drop_references(one, "", {label})
            for one in actions
            if not (isinstance(one, Send | Arrive | Lose) and one.label == label)
        )
        yield Candidate(best.group, tuple(left))


def _remove_members(best: GroupFailure) -> Iterator[Candidate]:
    actions = best.failure.actions
    joined = [one.at for one in actions if isinstance(one, Join)]
    names = [*best.group.names.values(), *joined]
    for name in reversed(names):
        fewer = best.group.remove_member(name)
        if fewer is None:
            continue
        removed_labels = {one.label for one in actions if isinstance(one, Send) and one.at == name}
        alone = tuple(
            _drop_references(one, name, removed_labels)
            for one in actions
            if getattr(one, "at", "") != name
        )
        yield Candidate(fewer.group, _renumber_labels(alone, fewer.new_names))
        for other in names:
            if other != name:
                staying = (
                    one for one in actions if not (isinstance(one, Join | Leave) and one.at == name)
                )
                taken = tuple(_reassign(one, name, other) for one in staying)
                yield Candidate(fewer.group, _renumber_labels(taken, fewer.new_names))


def _replace_join(best: GroupFailure) -> Iterator[Candidate]:
    actions = best.failure.actions
    first = next((one for one in actions if isinstance(one, Join)), None)
    more = best.group.add_member() if first is not None else None
    if first is not None and more is not None and first.at in more.names.values():
        yield Candidate(more, tuple(one for one in actions if one != first))


def _drop_references(action: Action, name: str, removed: set[str]) -> Action:
    if not isinstance(action, Send):
        return action
    return action._replace(
        to=tuple(one for one in action.to if one != name),
        after=tuple(one for one in action.after if one not in removed),
    )


def _reassign(action: Action, name: str, successor: str) -> Action:
    if isinstance(action, Join) and action.sponsor == name:
        return action._replace(sponsor=successor)
    if isinstance(action, Send):
        at = successor if action.at == name else action.at
        to = dict.fromkeys(successor if one == name else one for one in action.to)
        to.pop(at, None)
        return action._replace(at=at, to=tuple(to))
    at_it = getattr(action, "at", "") == name
    return action._replace(at=successor) if at_it else action  # type: ignore[call-arg]


def _renumber_labels(actions: Sequence[Action], names: Mapping[str, str]) -> tuple[Action, ...]:
    labels: dict[str, str] = {}
    sent: dict[str, int] = {}
    for action in actions:
        if isinstance(action, Send):
            at = names.get(action.at, action.at)
            sent[at] = sent.get(at, 0) + 1
            labels[action.label] = f"{at.lower()}{sent[at]}"
    return tuple(rename(action, names, labels) for action in actions)
