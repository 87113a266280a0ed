"""Groups and limits of a check, small ones first, so that counterexamples are small."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, permutations, product
from typing import NamedTuple

from antecede.core.clocks import Bounds
from antecede.core.protocols import Addressing, Protocol, Relation
from antecede.core.protocols.options import options_of
from antecede.lab.check.conformance import SuitePlan
from antecede.lab.check.harness.group_under_test import GroupUnderTest
from antecede.lab.check.harness.timing import compute_step_ns
from antecede.lab.check.model_checker.explorer import SearchLimits
from antecede.lab.check.target import Target

MEMBERS, MESSAGES = 3, 4
ADDRESSED_MESSAGES = 3
"""Messages of addressed groups. Choices of receivers multiply the states."""
TIMED_MESSAGES, HIERARCHY_MESSAGES = 2, 3
RUNS, THOROUGH_RUNS, QUICK_RUNS = 60, 400, 20
TOTAL_STATES = 150_000
MAX_REPLY_STEPS = 5


class SearchSize(NamedTuple):
    """Requested sizes; None: default."""

    members: int | None = None
    messages: int | None = None
    thorough: bool = False
    quick: bool = False


def plan_searches(
    target: Target, size: SearchSize
) -> Iterator[tuple[GroupUnderTest, SearchLimits]]:
    """Yield groups to explore, from the smallest to the requested size."""
    if target.topology is not None:
        yield from _plan_hierarchies(target, size)
        return
    members, messages = size.members or MEMBERS, size.messages or MESSAGES - size.quick
    if target.flat(2).timing.bounds is not None:
        yield from _plan_timed(target, size)
        return
    member = _make_member(target)
    relation = member.guarantee.relation
    addressed = member.addressing is not Addressing.ALL
    if relation in (Relation.BY_TOPIC, Relation.TOTAL) or addressed:
        messages = size.messages or ADDRESSED_MESSAGES - size.quick
    yield target.flat(2), SearchLimits(2, duplicates=1)
    if relation is Relation.TOTAL:
        yield from _plan_total_order(target, members, messages)
    else:
        yield target.flat(min(3, members)), SearchLimits(min(3, messages), duplicates=1)
        yield target.flat(members), SearchLimits(messages)
    if size.thorough:
        yield target.flat(members), SearchLimits(messages, duplicates=1)
        yield target.flat(members + 1), SearchLimits(max(2, messages - 1))


def _plan_total_order(
    target: Target, members: int, messages: int
) -> Iterator[tuple[GroupUnderTest, SearchLimits]]:
    yield target.flat(2), SearchLimits(3)
    yield target.flat(min(3, members)), SearchLimits(min(2, messages), duplicates=1)
    yield target.flat(members), SearchLimits(messages, max_states=TOTAL_STATES)


def _plan_timed(target: Target, size: SearchSize) -> Iterator[tuple[GroupUnderTest, SearchLimits]]:
    members, messages = size.members or MEMBERS, size.messages or TIMED_MESSAGES
    lossy = int(_make_member(target).guarantee.survives_loss)
    # No member can reply before the first copy has arrived.
    first = max(1, min(_compute_min_delay_steps(target, members), MAX_REPLY_STEPS))
    second = first + 1
    for offsets in list_clock_offsets(target, 2):
        yield target.flat(2, offsets), SearchLimits(2, duplicates=1, send_until=first)
        if lossy:
            yield target.flat(2, offsets), SearchLimits(2, losses=1, send_until=first)
    every = list(islice(list_clock_offsets(target, members), 2 if size.quick else None))
    for offsets in every:
        yield target.flat(members, offsets), SearchLimits(messages, send_until=second)
    # A third message shows that no earlier one can arrive; its sender matters, not its name.
    if messages == TIMED_MESSAGES and members > 2 and not size.quick:
        limits = SearchLimits(3, send_until=first, senders=(0, 0, 1), extremes=True)
        for offsets in every:
            yield target.flat(members, offsets), limits
    if size.thorough:
        for offsets in every:
            group = target.flat(members, offsets)
            yield group, SearchLimits(messages, duplicates=1, losses=lossy, send_until=second)
            yield group, SearchLimits(messages + 1, send_until=first)


def _compute_min_delay_steps(target: Target, members: int) -> int:
    group = target.flat(members)
    assert group.timing.bounds is not None
    pairs = permutations(group.names, 2)
    least_ns = min(group.timing.get_min_delay_ns(source, at) for source, at in pairs)
    step = compute_step_ns(group.timing.bounds)
    return least_ns // step if step else 1


def list_clock_offsets(target: Target, members: int) -> Iterator[tuple[int, ...]]:
    """Yield clock offsets, ns: all 0, then each early or late by its accuracy.

    Only differences count: all early equals all late, and equals 0 for equal accuracies.
    """
    bounds = target.flat(members).timing.bounds
    assert bounds is not None
    yield (0,) * members
    widest = [bounds.error_ns(at) for at in range(members)]
    if not any(widest):
        return
    for signs in product((1, -1), repeat=members):
        if len(set(signs)) > 1 or (len(set(widest)) > 1 and signs[0] > 0):
            yield tuple(sign * most for sign, most in zip(signs, widest, strict=True))


def one_against_all(target: Target, members: int) -> Iterator[tuple[int, ...]]:
    """Yield the offsets in which only the first clock is early, or only the first is late."""
    for offsets in list_clock_offsets(target, members):
        first, *others = (offset > 0 for offset in offsets)
        if any(offsets) and set(others) == {not first}:
            yield offsets


def _make_member(target: Target) -> Protocol:
    return next(iter(target.flat(2).make().values()))


def _plan_hierarchies(
    target: Target, size: SearchSize
) -> Iterator[tuple[GroupUnderTest, SearchLimits]]:
    # Without --members: 2 internal and 2 external peers; with it, peers are divided equally.
    peers = size.members or 4
    whole = target.hierarchy((peers - peers // 2,), peers // 2)
    messages = size.messages or HIERARCHY_MESSAGES - size.quick
    yield target.hierarchy((1,), 1), SearchLimits(2, duplicates=1)
    yield whole, SearchLimits(min(2, messages))
    if messages > 2:
        yield target.hierarchy((1,), 2), SearchLimits(3)
    yield whole, SearchLimits(messages)
    if size.thorough:
        yield target.hierarchy((1, 1), 1), SearchLimits(2)
        first, *_, last = whole.names
        yield whole, SearchLimits(4, senders=(last, first, last, first))


def suites(target: Target, size: SearchSize) -> Iterator[tuple[GroupUnderTest, SuitePlan]]:
    """Yield groups and plans for the adversarial network."""
    runs = THOROUGH_RUNS if size.thorough else QUICK_RUNS if size.quick else RUNS
    plan = SuitePlan(runs=runs, parents=target.parents)
    if target.topology is None:
        group = target.flat(4)
        yield group, plan
        if group.timing.bounds is not None:
            for offsets in one_against_all(target, 4):
                yield target.flat(4, offsets), plan
            if "bounds" not in target.options:
                # Delays above the clock accuracy reveal a joining member that replies before the
                # minimum delay has passed.
                slow: Bounds[int] = Bounds(accuracy_s=1, least_s=3, most_s=5)
                far = target._replace(options={**target.options, "bounds": slow})
                early = next(one_against_all(far, 4))
                yield far.flat(4, early), plan._replace(runs=plan.runs // 2)
        return
    shapes = (((2,), 2), ((2, 1), 1), ((1, 1, 1), 1))
    for groups, external in shapes:
        yield target.hierarchy(groups, external), plan
    often = with_notes(target)
    if often is not None:
        yield often.hierarchy((2, 1), 1), plan


def with_notes(target: Target) -> Target | None:
    """Return a hierarchy with more frequent control messages; None: without such options."""
    options = {"flush_after": 2}
    if target.options.get("pruning") != "none":
        options["ack_after"] = 1
    merged = {**options, **target.options}
    if target.topology is None or merged == target.options:
        return None
    if not options.keys() <= options_of(target.factory).keys():
        return None
    return target._replace(options=merged)
