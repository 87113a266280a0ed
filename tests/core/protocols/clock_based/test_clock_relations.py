"""Relations of Tsuneizumi et al. on small grids of send times, clock errors and delays.

A case is two messages of different members: a is sent at true time 0 by i, reaches j after some
delay, and j sends b at some true time. a causally precedes b when it has arrived by then. Each
property of the text is checked for all cases: it holds, or the smallest counterexample is named.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations, product
from typing import Any, NamedTuple

import pytest

from antecede.core.clocks.bounds import Bounds
from antecede.core.protocols.clock_based.linear_physical import LinearPhysical
from antecede.core.protocols.clock_based.published_relations import (
    ConverseRelation,
    PrintedRelation,
    PublishedOrder,
    apply_published_rules,
    find_reading_range,
    linearly_precedes,
    surely_causal,
    temporally_concurrent,
    temporally_precedes,
)
from antecede.core.protocols.clock_based.relations import (
    ClockRelation,
    ClockTimestamp,
    LinearPhysicalRelation,
    LinearRelation,
    LowerBound,
    PhysicalRelation,
    Separation,
)
from antecede.errors import LocalError
from tests.core.protocols.seconds import s


class Case(NamedTuple):
    a: ClockTimestamp
    b: ClockTimestamp
    sent_apart: int
    """True time of b's sending less that of a's."""
    receipt_apart: int
    """PT_j at the receipt of a less a.PT."""
    causal: bool


def list_cases(bounds: Bounds[int], horizon: int = 9) -> Iterator[Case]:
    """Yield all pairs, with LT of the repaired clock if b depends on a, else any LT."""
    mine, other = int(bounds.error_ns(0)), int(bounds.error_ns(1))
    delays = range(int(bounds.least_delay_ns(0, 1)), int(bounds.most_delay_ns(0, 1)) + 1)
    errors = product(range(-mine, mine + 1), range(-other, other + 1))
    for (i_off, j_off), delay, sent in product(errors, delays, range(-horizon, horizon + 1)):
        causal = sent >= delay
        for lt in (2,) if causal else (0, 1, 2):
            a = ClockTimestamp(0, 1, 1, 20 + i_off)
            b = ClockTimestamp(1, 1, lt, 20 + sent + j_off)
            yield Case(a, b, sent, delay + j_off - i_off, causal)


GROUPS = [
    Bounds[int](accuracy_ns=accuracy, least_ns=least, most_ns=most)
    for accuracy, least, most in product((0, 1, 2), (0, 1, 2, 3, 5), (1, 3, 5))
    if least <= most
]
UNLIKE = Bounds[int](
    most_ns=1, clocks_ns={0: 1, 1: 2}, channels_ns={(0, 1): (2, 4), (1, 0): (1, 5)}
)
each = pytest.mark.parametrize("bounds", [*GROUPS, UNLIKE])


# -- properties (2) to (7), section 4.2 ----------------------------------------------------------


@each
def test_property_2_the_readings_of_a_receipt(bounds: Bounds[int]) -> None:
    low, high = find_reading_range(0, 1, bounds)
    seen = [case.receipt_apart for case in list_cases(bounds)]
    assert (min(seen), max(seen)) == (low, high)


def test_property_2_as_printed_has_one_delay_on_both_sides() -> None:
    bounds = Bounds[int](accuracy_ns=1, least_ns=1, most_ns=4)
    printed_low = bounds.most_ns - 2 * bounds.accuracy_ns
    assert any(case.receipt_apart < printed_low for case in list_cases(bounds))


@each
def test_properties_3_and_5_temporal_precedence(bounds: Bounds[int]) -> None:
    for case in list_cases(bounds):
        if temporally_precedes(case.a, case.b, bounds):
            assert case.sent_apart > 0
        if temporally_precedes(case.b, case.a, bounds):
            assert case.sent_apart < 0


@each
def test_property_6_exactly_one_of_before_after_and_concurrent(bounds: Bounds[int]) -> None:
    for case in list_cases(bounds):
        said = (
            temporally_precedes(case.a, case.b, bounds),
            temporally_precedes(case.b, case.a, bounds),
            temporally_concurrent(case.a, case.b, bounds),
        )
        assert sum(said) == 1


@each
def test_properties_4_and_7_and_the_theorem(bounds: Bounds[int]) -> None:
    for case in list_cases(bounds):
        if surely_causal(case.a, case.b, bounds):
            assert case.causal


def test_property_7_with_its_absolute_value_fails() -> None:
    bounds = Bounds[int](accuracy_ns=0, least_ns=1, most_ns=1)
    case = next(c for c in list_cases(bounds) if abs(c.b.pt_ns - c.a.pt_ns) > 1 and not c.causal)
    assert case.sent_apart == -9


def test_the_converse_of_property_7_fails() -> None:
    bounds = Bounds[int](accuracy_ns=1, least_ns=3, most_ns=4)
    near = [
        case for case in list_cases(bounds) if case.causal and not surely_causal(*case[:2], bounds)
    ]
    assert min(case.b.pt_ns - case.a.pt_ns for case in near) == 1


@each
def test_section_4_2_causal_pairs_have_rising_physical_times_by_the_least_delay(
    bounds: Bounds[int],
) -> None:
    enough = bounds.least_delay_ns(0, 1) > bounds.error_ns(0) + bounds.error_ns(1)
    rising = all(case.b.pt_ns > case.a.pt_ns for case in list_cases(bounds) if case.causal)
    assert rising == enough


def test_section_3_temporally_concurrent_messages_may_be_causal() -> None:
    bounds = Bounds[int](accuracy_ns=1, least_ns=1, most_ns=2)
    assert any(c.causal and temporally_concurrent(c.a, c.b, bounds) for c in list_cases(bounds))


# -- the relations to order by ---------------------------------------------------------------------


@each
def test_sound_relations_miss_no_causal_pair(bounds: Bounds[int]) -> None:
    separation = Separation(bounds, (0, 1))
    for case in list_cases(bounds):
        if case.causal:
            assert LinearRelation().precedes(case.a, case.b)
            assert PhysicalRelation(separation).precedes(case.a, case.b)
            assert LinearPhysicalRelation(separation).precedes(case.a, case.b)


@each
def test_the_separation_is_the_least_that_occurs(bounds: Bounds[int]) -> None:
    apart = min(case.b.pt_ns - case.a.pt_ns for case in list_cases(bounds) if case.causal)
    assert apart == Separation(bounds, (0, 1)).between_ns(0, 1)


@each
def test_figure_7_the_inclusions_that_hold(bounds: Bounds[int]) -> None:
    separation = Separation(bounds, (0, 1))
    both, physical = LinearPhysicalRelation(separation), PhysicalRelation(separation)
    for case in list_cases(bounds):
        if both.precedes(case.a, case.b):
            assert linearly_precedes(case.a, case.b)
            assert physical.precedes(case.a, case.b)
        if surely_causal(case.a, case.b, bounds):
            assert temporally_precedes(case.a, case.b, bounds)


@pytest.mark.parametrize("claim", ["-> if |->", "|-> if =>", "-> if LT less"])
def test_figure_7_the_inclusions_of_the_text_that_fail(claim: str) -> None:
    bounds = Bounds[int](accuracy_ns=1, least_ns=3, most_ns=4)

    def is_ordered(case: Case) -> bool:
        return apply_published_rules(case.a, case.b, 1, 4) is PublishedOrder.BEFORE

    broken = {
        "-> if |->": lambda c: is_ordered(c) and not c.causal,
        "|-> if =>": lambda c: temporally_precedes(c.a, c.b, bounds) and not is_ordered(c),
        "-> if LT less": lambda c: linearly_precedes(c.a, c.b) and not c.causal,
    }[claim]
    assert any(map(broken, list_cases(bounds)))


@pytest.mark.parametrize("bounds", [g for g in GROUPS if g.most_ns > 2 * g.accuracy_ns])
def test_rule_1b_is_sound_only_when_the_least_delay_exceeds_4_lambda(bounds: Bounds[int]) -> None:
    missed = [
        case
        for case in list_cases(bounds)
        if case.causal
        and apply_published_rules(case.a, case.b, bounds.accuracy_ns, bounds.most_ns)
        is not PublishedOrder.BEFORE
    ]
    assert bool(missed) == (bounds.least_ns <= 4 * bounds.accuracy_ns)


@pytest.mark.parametrize("bounds", [g for g in GROUPS if g.most_ns <= 2 * g.accuracy_ns])
def test_rule_1a_misses_no_causal_pair(bounds: Bounds[int]) -> None:
    for case in list_cases(bounds):
        if case.causal:
            order = apply_published_rules(case.a, case.b, bounds.accuracy_ns, bounds.most_ns)
            assert order is PublishedOrder.BEFORE


def test_every_branch_of_the_printed_rules() -> None:
    def find_order(lt_a: int, lt_b: int, apart: int, accuracy: int, delay: int) -> PublishedOrder:
        return apply_published_rules(
            ClockTimestamp(0, 1, lt_a), ClockTimestamp(1, 1, lt_b, apart), accuracy, delay
        )

    assert find_order(1, 2, -3, 2, 1) is PublishedOrder.BEFORE  # 1(a): LT alone
    assert find_order(2, 1, 3, 2, 1) is PublishedOrder.AFTER
    assert find_order(1, 1, 4, 2, 1) is PublishedOrder.CONCURRENT
    assert find_order(1, 1, 5, 2, 1) is PublishedOrder.UNDEFINED
    assert find_order(1, 2, 2, 1, 3) is PublishedOrder.CONCURRENT  # 1(b): within 2 lambda
    assert find_order(1, 2, 5, 1, 3) is PublishedOrder.BEFORE
    assert find_order(2, 1, 5, 1, 3) is PublishedOrder.CONCURRENT
    assert find_order(2, 1, -3, 1, 3) is PublishedOrder.AFTER
    assert find_order(1, 2, -3, 1, 3) is PublishedOrder.CONCURRENT
    assert find_order(2, 1, 6, 1, 3) is PublishedOrder.BEFORE  # 2: PT alone
    assert find_order(1, 2, -6, 1, 3) is PublishedOrder.AFTER


@pytest.mark.parametrize("bounds", [*GROUPS, UNLIKE])
def test_what_a_floor_excludes_can_not_come_before(bounds: Bounds[int]) -> None:
    separation = Separation(bounds, (0, 1))
    relations: list[ClockRelation] = [LinearRelation(), PhysicalRelation(separation)]
    relations += [LinearPhysicalRelation(separation), ConverseRelation(bounds)]
    if bounds.homogeneous:
        relations.append(PrintedRelation(bounds))
    b = ClockTimestamp(1, 1, 3, 20)
    for relation, lt, pt in product(relations, range(6), range(8, 32)):
        later = [ClockTimestamp(0, 2, lt + more, pt + on) for more in range(3) for on in range(3)]
        excluded = relation.excludes(LowerBound(lt, pt), 0, b)
        assert excluded == (not any(relation.precedes(one, b) for one in later)) or (
            # Rule 2 orders by PT alone: a floor is only ever too careful there.
            isinstance(relation, PrintedRelation) and not excluded
        )


@pytest.mark.parametrize("kind", [LinearRelation, PhysicalRelation, LinearPhysicalRelation])
def test_the_relations_have_no_cycles(kind: type) -> None:
    bounds = Bounds[int](0, 5, 9, {0: 1, 1: 2}, {(0, 1): (4, 9), (1, 2): (4, 5)})
    separation = Separation(bounds, (0, 1, 2))
    relation = kind() if kind is LinearRelation else kind(separation)
    for times in product(product(range(3), range(0, 9, 2)), repeat=3):
        stamps = [ClockTimestamp(member, 1, lt, pt) for member, (lt, pt) in enumerate(times)]
        for a, b, c in permutations(stamps):
            assert not (relation.precedes(a, b) and relation.precedes(b, a))
            round_ = relation.precedes(a, b) and relation.precedes(b, c)
            assert not (round_ and relation.precedes(c, a))


# -- bounds by pair -------------------------------------------------------------------------------


def test_the_least_delay_is_that_of_the_fastest_path() -> None:
    bounds = Bounds[int](0, 1, 9, {2: 0.3}, {(0, 1): (5, 9), (2, 1): (2, 3)})
    separation = Separation(bounds, (0, 1, 2))
    assert separation.path_ns(0, 1) == s(3)  # 0 to 2 to 1
    assert separation.path_ns(1, 1) == 0
    assert separation.between_ns(0, 2) == s(0.7)
    for i, j in product(range(3), repeat=2):
        assert separation.path_ns(i, j) == bounds.least_path_ns(i, j, (0, 1, 2))


def test_the_stretch_is_the_worst_third_member() -> None:
    bounds = Bounds[int](0, 1, 4, {}, {(2, 0): (1, 9)})
    assert Separation(bounds, (0, 1, 2, 3)).stretch_ns(1, 0) == s(8)  # by 2: 9 - 1
    assert Separation(bounds, (0, 1)).stretch_ns(1, 0) is None


@pytest.mark.parametrize(
    ("bounds", "figures"),
    [
        (Bounds[int](accuracy_s=1, least_s=2, most_s=4), "least delay is 2 s.*up to 2 s"),
        (Bounds[int](1, 3, 4, {2: 2}), "members 0 and 2.*up to 3 s"),
        (Bounds[int](1, 3, 4, {}, {(2, 1): (1.5, 4)}), "members 2 and 1.*least delay is 1.5 s"),
    ],
)
def test_too_coarse_clocks_are_refused_with_the_figures(bounds: Bounds[int], figures: str) -> None:
    with pytest.raises(LocalError, match=f"{figures}.*use linear-physical"):
        Separation(bounds, (0, 1, 2)).check_positive()
    Separation(Bounds[int](1, 2.5, 4), (0, 1, 2)).check_positive()


def test_the_printed_rules_are_for_homogeneous_groups() -> None:
    with pytest.raises(LocalError, match="homogeneous"):
        PrintedRelation(UNLIKE)


def test_where_all_channels_are_alike_two_members_have_no_third_to_wait_for() -> None:
    bounds = Bounds[int](least_s=1, most_s=3)
    assert Separation(bounds, (0, 1)).stretch_ns(1, 0) is None
    assert Separation(bounds, (0, 1, 2)).stretch_ns(1, 0) == s(2)


@pytest.mark.parametrize("first", list(product(range(3), repeat=2)))
def test_a_separation_is_that_of_its_pair_whichever_was_asked_for_first(
    first: tuple[int, int],
) -> None:
    bounds = Bounds[int](accuracy_s=0.1, least_s=1, most_s=4)
    separation = Separation(bounds, range(3))
    separation.between_ns(*first)
    for i, j in product(range(3), repeat=2):
        assert separation.between_ns(i, j) == (s(-0.2) if i == j else s(0.8))
    b = ClockTimestamp(1, 2, 3, s(5))
    floor = LowerBound(2, s(5))
    assert not LinearPhysicalRelation(separation).excludes(floor, 1, b)  # of the sender itself
    assert LinearPhysicalRelation(separation).excludes(floor, 0, b)


def test_a_separation_by_its_former_name_is_refused() -> None:
    bounds = Bounds[int](accuracy_s=0.1, least_s=1, most_s=4)
    own = type("Own", (Separation,), {"between_s": lambda self, source, target: 0})
    with pytest.raises(LocalError, match=r"Own\.between_s has no effect; define between_ns"):
        own(bounds, range(3))


def test_a_relation_that_sets_a_separation_by_its_former_name_is_refused() -> None:
    class Own(LinearPhysical):
        def relate(self, separation: Any) -> ClockRelation:
            separation.between_s = lambda source, target: 0
            return super().relate(separation)

    with pytest.raises(LocalError, match=r"Separation\.between_s has no effect"):
        Own(0, range(3), bounds=Bounds[int](accuracy_s=0.1, least_s=1, most_s=4))


def test_a_separation_of_ones_own_is_asked_for_every_pair() -> None:
    class Own(Separation):
        def between_ns(self, source: int, target: int) -> int:
            return 10 * source + target

    own = Own(Bounds[int](accuracy_s=0.1, least_s=1, most_s=4), range(3))
    assert not own.is_uniform
    assert own.least_between_ns() is None
    for i, j in product(range(3), repeat=2):
        assert own.between_ns(i, j) == 10 * i + j
