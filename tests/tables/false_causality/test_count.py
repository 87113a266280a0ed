"""Pair counts against the readable predicates of Tsuneizumi et al. and Nakayama 2017, and against
all pairs one by one.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede.core.clocks.bounds import Bounds
from antecede.core.protocols.topics.subscriptions import Subscriptions
from antecede.errors import InputError, LocalError
from antecede.tables.false_causality.count import (
    RuleCounts,
    count_pairs,
    make_message_columns,
    make_plan,
)
from antecede.tables.false_causality.kernels.counts import (
    count_causal,
    count_ordered,
    group_by_sender,
)
from antecede.tables.false_causality.measure import measure, select_observed
from antecede.tables.false_causality.rules import RULES, TOPIC_CAUSAL
from antecede.tables.false_causality.timestamps import Stamps, limits_of
from antecede.tables.false_causality.trace import runs_of
from antecede.tables.kernels import Graph
from antecede.tables.trace.schema import RECEIVE
from tests.reference.meter_pairs import count_all_pairs
from tests.tables.events import table_of
from tests.tables.false_causality.runs import (
    ALIKE,
    COARSE,
    GOOD,
    GROUPS,
    NAMES,
    UNLIKE,
    Run,
    naive,
    random_run,
)

SOUND = [name for name, rule in RULES.items() if ":" not in name and not rule.total]


def name_members(bounds: Bounds[int]) -> Bounds[str]:
    return bounds.replace_names(dict(enumerate(NAMES)))


def count_rows(run: Run, relation: str = "receipt") -> dict[tuple[str, str], RuleCounts]:
    found = measure(
        table_of(run.rows),
        bounds=name_members(run.bounds),
        subscriptions=Subscriptions(run.subscribed),
        relation=relation,
    )
    return {
        (row["observer"], row["rule"]): RuleCounts(
            row["ordered"], row["causal"], row["false_pairs"], row["missed_pairs"], row["events"]
        )
        for row in found.to_pylist()
    }


PREDICATES = [
    (group, rule)
    for group, bounds in GROUPS.items()
    for rule in RULES
    if bounds.homogeneous or rule != "linear-physical:published"  # is said of such groups alone
]


@pytest.mark.few(6)
@pytest.mark.parametrize(("group", "rule"), PREDICATES)
def test_every_rule_counts_what_its_predicate_says(group: str, rule: str) -> None:
    for seed in range(8):
        run = random_run(seed, GROUPS[group], back=seed % 2 == 1)
        found = count_rows(run)
        for observer in NAMES:
            assert tuple(found[observer, rule]) == tuple(naive(run, observer, rule))


@given(st.integers(0, 10_000), st.sampled_from(sorted(RULES)), st.booleans())
def test_causality_by_delivery_counts_what_was_delivered(seed: int, rule: str, back: bool) -> None:
    run = random_run(seed, ALIKE, back=back, deliver=True)
    found = count_rows(run, "delivery")
    for observer in NAMES:
        if run.arrived[observer]:
            assert tuple(found[observer, rule]) == tuple(naive(run, observer, rule, "delivery"))


@st.composite
def stamps(draw: st.DrawFn) -> Stamps:
    """Return timestamps of a part of a run, with clocks that may go back."""
    bounds = draw(st.sampled_from((ALIKE, COARSE, GOOD, UNLIKE)))
    seed, messages = draw(st.integers(0, 10_000)), draw(st.integers(1, 60))
    run = random_run(seed, bounds, messages, back=draw(st.booleans()))
    if not any(row.kind == RECEIVE for row in run.rows):
        return draw(stamps())  # one message, of a topic that only its sender has
    seen = [
        one.timestamps
        for execution in runs_of(table_of(run.rows), "receipt")
        for one in select_observed(execution, None, name_members(bounds))
    ]
    if not seen:
        return draw(stamps())
    one = draw(st.sampled_from(seen))
    keep = np.array(draw(st.lists(st.booleans(), min_size=1, max_size=60)))
    keep = np.flatnonzero(np.resize(keep, len(one.sender)))
    columns = ["sender", "seq", "lt", "pt_us", "vector", "arrival", "topics", "counts"]
    taken = {name: getattr(one, name)[keep] for name in [*columns, "lt_printed"]}
    return one._replace(**taken, subscription=draw(st.integers(0, 7)))


@pytest.mark.slow
@given(stamps(), st.sampled_from(sorted(RULES)), st.booleans())
def test_counting_by_lanes_is_counting_all_pairs(one: Stamps, rule: str, by_topic: bool) -> None:
    truth = TOPIC_CAUSAL if by_topic else "causal"
    facts, plan = make_message_columns(one), make_plan(one, RULES[rule])
    ordered, causal, both = count_all_pairs(facts, plan, by_topic=by_topic)
    found = count_pairs(one, rule, truth)
    assert found == RuleCounts(ordered, causal, ordered - both, causal - both, len(one.sender))


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("truth", ["causal", TOPIC_CAUSAL])
def test_every_rule_against_both_truths_is_counting_all_pairs(truth: str, back: bool) -> None:
    for bounds in (ALIKE, GOOD, UNLIKE):
        execution = next(runs_of(table_of(random_run(5, bounds, 80, back=back).rows), "receipt"))
        for one in select_observed(execution, None, name_members(bounds)):
            for rule in RULES.values():
                facts, plan = make_message_columns(one.timestamps), make_plan(one.timestamps, rule)
                ordered, causal, both = count_all_pairs(facts, plan, by_topic=truth == TOPIC_CAUSAL)
                found = count_pairs(one.timestamps, rule, truth)
                assert found[:4] == (ordered, causal, ordered - both, causal - both)


@pytest.mark.parametrize("rule", ["linear", "arrival", "timestamp", "htbc"])
def test_vectors_that_fall_are_counted_too(rule: str) -> None:
    """No execution produces them, but they are accepted: limits decrease as well."""
    rng = np.random.default_rng(7)
    execution = next(runs_of(table_of(random_run(5, ALIKE, 80, back=True).rows), "receipt"))
    for one in select_observed(execution, None, name_members(ALIKE)):
        vector = rng.integers(0, 20, one.timestamps.vector.shape).astype(np.int32)  # type: ignore[union-attr]
        vector[np.arange(len(vector)), one.timestamps.sender] = one.timestamps.seq
        fallen = one.timestamps._replace(vector=vector)
        facts, plan = make_message_columns(fallen), make_plan(fallen, RULES[rule])
        for by_topic in (False, True):
            ordered, causal, both = count_all_pairs(facts, plan, by_topic=by_topic)
            found = count_pairs(fallen, rule, TOPIC_CAUSAL if by_topic else "causal")
            assert found[:4] == (ordered, causal, ordered - both, causal - both)


def test_clocks_that_go_back_are_counted_by_the_tree() -> None:
    """Otherwise the test above would not reach the tree."""
    run = random_run(3, COARSE, 60, back=True)
    execution = next(iter(runs_of(table_of(run.rows), "receipt")))
    fell = False
    for one in select_observed(execution, None, name_members(COARSE)):
        order = np.lexsort((one.timestamps.seq, one.timestamps.sender))
        same = np.diff(one.timestamps.sender[order]) == 0
        fell |= bool((np.diff(one.timestamps.pt_us[order])[same] < 0).any())
    assert fell


@pytest.mark.few(1)
@pytest.mark.parametrize("rule", SOUND)
def test_the_repaired_rules_miss_nothing(rule: str) -> None:
    """Errata of Tsuneizumi et al. and Nakayama 2017: within the bounds every causal pair is
    ordered.
    """
    for group in GROUPS.values():
        for seed in range(10):
            for (_, name), counts in count_rows(random_run(seed, group)).items():
                if name == rule:
                    assert counts.missed_pairs == 0
                    assert counts.causal + counts.false_pairs == counts.ordered


@pytest.mark.parametrize(
    ("rule", "group"),
    [
        ("linear:published", ALIKE),  # 4.1: equal times
        ("physical:published", GOOD),  # 5: property (7) read both ways
        ("linear-physical:published", GOOD),  # rule 1(b)
        ("tv-pt:published", ALIKE),  # Nakayama 2017, rule 3: nothing nearer than maxd + 2 epsilon
        ("htbc:published", ALIKE),
        ("arrival", ALIKE),
        ("timestamp", COARSE),
    ],
)
def test_the_printed_rules_and_the_total_orders_miss_causal_pairs(
    rule: str, group: Bounds[int]
) -> None:
    found = (of.items() for of in (count_rows(random_run(seed, group)) for seed in range(10)))
    assert any(counts.missed_pairs for of in found for (_, name), counts in of if name == rule)


def test_004_section_3_the_protocols_order_less_the_more_they_carry() -> None:
    """TV_VT is exact; HTBC orders no more than TV_LT and TV_PT, these no more than TV."""
    total = dict.fromkeys(RULES, 0)
    for seed in range(10):
        for (_, name), counts in count_rows(random_run(seed, GOOD)).items():
            total[name] += counts.false_pairs
    assert total["tv-vt"] == 0
    assert total["htbc"] <= min(total["tv-lt"], total["tv-pt"]) < total["tv"]


def test_a_rule_can_be_held_against_topics_that_it_does_not_read() -> None:
    run = random_run(1, ALIKE)
    found = measure(
        table_of(run.rows),
        ["arrival"],
        ["P"],
        subscriptions=Subscriptions(run.subscribed),
        relation="receipt",
        truth=TOPIC_CAUSAL,
    ).to_pylist()[0]
    assert found["causal"] == naive(run, "P", "tv-vt").causal
    assert found["ordered"] == naive(run, "P", "arrival").ordered
    assert found["truth"] == TOPIC_CAUSAL


def test_per_event_is_by_the_messages_of_the_observer() -> None:
    counts = RuleCounts(12, 8, 6, 2, 4)
    assert counts.average_per_event() == (3.0, 2.0, 1.5, 0.5)
    assert RuleCounts(0, 0, 0, 0, 0).average_per_event() == (0.0, 0.0, 0.0, 0.0)


def test_nothing_received_is_nothing_counted() -> None:
    empty = np.zeros(0, np.int64)
    none = Stamps(empty, empty, empty, empty, np.zeros((0, 0), np.int32), empty)
    for rule in ("linear", "arrival", "timestamp"):
        assert count_pairs(none, rule) == RuleCounts(0, 0, 0, 0, 0)
    facts = make_message_columns(none)
    for by_topic in (False, True):
        lanes = group_by_sender(facts, by_topic=by_topic)
        assert count_causal(lanes) == 0
        assert count_ordered(lanes, make_plan(none, RULES["linear"]), causal=True) == 0


# -- limits ----------------------------------------------------------------------------------


def test_a_path_may_lead_through_members_that_send_nothing() -> None:
    """Errata of Tsuneizumi et al.: the least delay over any path, not that of the channel."""
    bounds = Bounds[int](
        accuracy_s=0.002, least_s=1, most_s=2, channels={(0, 1): (0.1, 2), (1, 2): (0.2, 2)}
    )
    found = limits_of(bounds, range(3), [0, 2])
    assert found.path.tolist() == [[0, 300_000], [1_000_000, 0]]
    assert found.least.tolist() == [[1_000_000] * 2] * 2
    assert found.accuracy.tolist() == [2_000, 2_000]


# -- refusals --------------------------------------------------------------------------------


def two(**changes: object) -> Stamps:
    """Two messages of one sender."""
    one = Stamps(
        np.array([0, 0]),
        np.array([1, 2]),
        np.array([0, 1]),
        np.array([0, 0]),
        np.array([[1], [2]], np.int32),
        np.array([0, 1]),
    )
    return one._replace(**changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("stamps", "message"),
    [
        (two(seq=np.array([1])), "column seq has 1 rows, but column sender has 2"),
        (two(seq=np.array([1, 1])), "seq does not grow from message 1 of sender 0"),
        (two(lt=np.array([1, 1])), "lt does not grow"),
        (two(sender=np.array([0, 1])), "unknown sender; expected 0 to 0"),
        (two(vector=np.array([[1], [3]], np.int32)), "has 3 as its own entry"),
        (two(vector=None), "give either vector or past"),
        (
            two(vector=None, lt=np.array([1, 1]), past=Graph(np.array([0, 0, 1]), np.array([0]))),
            "lt does not grow from every cause to its effect",
        ),
        (
            two(topics=np.ones(2, np.uint64), counts=np.ones((2, 1), np.int32)),
            "topic 0 does not grow",
        ),
    ],
)
def test_stamps_that_no_execution_gives_are_refused(stamps: Stamps, message: str) -> None:
    with pytest.raises(LocalError, match=message):
        count_pairs(stamps, "linear")


def test_a_rule_says_what_it_lacks() -> None:
    with pytest.raises(LocalError, match="needs physical time; give limits"):
        count_pairs(two(), "physical")
    with pytest.raises(LocalError, match="needs topics; give topics and counts"):
        count_pairs(two(), "tv")
    with pytest.raises(InputError, match="unknown rule 'lamport'; choose from linear, "):
        count_pairs(two(), "lamport")


def test_measure_says_what_the_trace_lacks() -> None:
    events = table_of(random_run(0, ALIKE).rows)
    with pytest.raises(InputError, match="cannot measure physical at P: no bounds"):
        measure(events, ["physical"], ["P"], relation="receipt")
    with pytest.raises(InputError, match="'Z' received nothing; observers: "):
        measure(events, None, ["Z"], relation="receipt")
    with pytest.raises(InputError, match="which is no member of the trace"):
        measure(events, bounds=Bounds(clocks={"Z": 1.0}), relation="receipt")
    without = measure(events, relation="receipt")["rule"].to_pylist()
    assert set(without) == {name for name, rule in RULES.items() if not rule.physical}
