"""Cuts of a run, compared with the definition over all cuts."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from antecede.core.oracle.cuts import Cuts
from antecede.errors import InputError
from antecede.lab.check.scenario.execution import ScenarioRun, run_to_events
from antecede.lab.check.scenario.parse import parse_scenario
from antecede.lab.check.scenario.run import run_scenario
from antecede.lab.play.cuts import (
    CutExecution,
    build_execution,
    describe_cut,
    find_greatest_below,
    find_least_above,
)
from antecede.tables.trace.schema import RECEIVE, SEND
from tests.lab.play.scenes import Making, scenes

TEXT = """protocol {}
members A B C

send A m
arrive B m
send B n
arrive C n
arrive C m
send C o
"""


def run_of(text: str) -> ScenarioRun:
    return run_scenario(parse_scenario(text))


def make_execution(text: str, *, deliveries: bool = False) -> CutExecution:
    run = run_of(text)
    joined = tuple(one.label for one in run.occurrences() if one.kind == "join")
    members = (*run.scenario.setup.everybody(), *joined)
    return build_execution(run, members, deliveries=deliveries)


def all_cuts(of: CutExecution) -> Iterator[dict[str, int]]:
    lengths = of.lengths
    for counts in product(*(range(lengths[name] + 1) for name in of.lengths)):
        yield dict(zip(of.lengths, counts, strict=True))


def slow(run: ScenarioRun, cut: dict[str, int], received: str) -> bool:
    """Return whether no message is received inside and sent outside, from the events alone."""
    passed = dict.fromkeys(cut, 0)
    sent_inside: set[str] = set()
    got_inside: set[str] = set()
    for one in run.occurrences():
        if one.kind in ("send", received):
            passed[one.at] += 1
            if passed[one.at] <= cut[one.at]:
                (sent_inside if one.kind == "send" else got_inside).add(one.label)
    return got_inside <= sent_inside


@settings(max_examples=30, deadline=None)
@given(scenes(12, lossy=True), st.booleans())
def test_every_cut_is_what_the_definition_says(made: Making, deliveries: bool) -> None:
    run = run_of(made.text("bss"))
    of = build_execution(run, tuple(made.members), deliveries=deliveries)
    everything = list(all_cuts(of))
    assume(len(everything) <= 3_000)
    received = "deliver" if deliveries else "arrive"
    good = [cut for cut in everything if slow(run, cut, received)]
    assert [cut for cut in everything if describe_cut(of, cut)["consistent"]] == good
    for cut in everything[:: max(1, len(everything) // 40)]:
        lower = [one for one in good if all(one[m] <= cut[m] for m in cut)]
        upper = [one for one in good if all(one[m] >= cut[m] for m in cut)]
        assert find_greatest_below(of, cut) == {m: max(one[m] for one in lower) for m in cut}
        assert find_least_above(of, cut) == {m: min(one[m] for one in upper) for m in cut}


@settings(max_examples=30, deadline=None)
@given(scenes(12), st.data())
def test_cuts_and_channels_are_those_of_the_oracle(made: Making, data: Any) -> None:
    run = run_of(made.text("unordered"))
    of = build_execution(run, tuple(made.members))
    cut = {name: data.draw(st.integers(0, n)) for name, n in of.lengths.items()}
    oracle = Cuts(row for row in run_to_events(run) if row.kind in (SEND, RECEIVE))
    told = describe_cut(of, cut)
    if any(cut.values()):
        known = {name: n for name, n in cut.items() if n}
        assert told["consistent"] == oracle.consistent(known)
    if told["consistent"]:
        sent = [one.label for one in run.occurrences() if one.kind == "send"]
        audience = dict.fromkeys(sent, tuple(made.members))
        found = oracle.in_channels(cut, audience)
        assert {(c["source"], c["target"]): sorted(c["labels"]) for c in told["channels"]} == {
            (ends.source, ends.target): sorted(ids) for ends, ids in found.items() if ids
        }


def test_what_is_said_of_a_cut() -> None:
    of = make_execution(TEXT.format("bss"))
    good = describe_cut(of, {"A": 1, "B": 2})
    assert good["sentences"] == [
        "Consistent: the group can have been in this state.",
        "From A to C: m.", "From B to A: n.", "From B to C: n.",
    ]  # fmt: skip
    bad = describe_cut(of, {"B": 1, "C": 1})
    assert bad["sentences"] == [
        "Not consistent: the group cannot have been in this state.",
        "m is received inside by B, and sent outside by A.",
        "n is received inside by C, and sent outside by B.",
        "The nearest consistent cuts: below A=0, B=0, C=0; above A=1, B=2, C=1.",
    ]
    assert bad["crossing"] == [["m", "A", "B"], ["n", "B", "C"]]
    assert describe_cut(of, {})["sentences"][-1] == "The channels are empty."


def test_by_deliveries_what_is_held_is_in_the_channel() -> None:
    text = TEXT.format("bss").replace("arrive C m\nsend C o\n", "")
    held = describe_cut(make_execution(text, deliveries=True), {"A": 1, "B": 2})
    assert {"source": "B", "target": "C", "labels": ["n"]} in held["channels"]
    assert make_execution(text, deliveries=True).lengths == {"A": 1, "B": 2, "C": 0}
    assert make_execution(text).lengths == {"A": 1, "B": 2, "C": 1}


def test_what_a_super_peer_hands_on_comes_from_there() -> None:
    of = make_execution(
        "protocol hierarchical\ninternal S: A B\nexternal X\n\nsend A m\narrive S m\n"
        "arrive B m\narrive X m\n"
    )
    told = describe_cut(of, {"A": 1, "B": 1})
    assert told["crossing"] == [["m", "S", "B"]]
    assert told["above"] == {"A": 1, "B": 1, "S": 1, "X": 0}


def test_each_note_of_a_member_is_sent_where_it_was() -> None:
    of = make_execution(
        "protocol total-agreed\nmembers A B C\n\nsend C m\narrive A m\narrive B m\n"
        "arrive B note-A\nsend B n\narrive A note-B\narrive A n\narrive B note-A\n"
    )
    sent = [(c.target, c.sent, c.received) for c in of.copies if c.label == "note-A"]
    assert sent == [("B", 1, 2), ("B", 3, 4), ("C", 1, None), ("C", 3, None)]
    told = describe_cut(of, {"A": 1, "B": 4, "C": 1})
    assert told["crossing"] == [["note-A", "A", "B"]]
    assert told["above"] == {"A": 3, "B": 4, "C": 1}


def test_a_newcomer_needs_what_its_sponsor_had() -> None:
    of = make_execution(
        "protocol fifo\nmembers A B\n\nsend A m\njoin N sponsor A\nsend N n\narrive A n\n"
    )
    told = describe_cut(of, {"N": 1})
    assert not told["consistent"]
    assert told["sentences"][1] == "N is inside, and the past of its sponsor A is not."
    assert told["above"]["A"] == 1
    assert told["below"]["N"] == 0
    assert describe_cut(of, {"A": 1, "N": 1})["consistent"]


def test_a_newcomer_is_owed_nothing_before_it_joins() -> None:
    of = make_execution("protocol fifo\nmembers A B\n\nsend A m\narrive B m\njoin N sponsor B\n")
    assert describe_cut(of, {"A": 1, "B": 1})["channels"] == []
    of = make_execution(
        "protocol fifo\nmembers A B\n\nsend B k\nsend A m\njoin N sponsor B\narrive N m\n"
    )
    assert {"source": "A", "target": "N", "labels": ["m"]} not in (
        describe_cut(of, {"A": 1})["channels"]
    )
    assert {"source": "A", "target": "N", "labels": ["m"]} in (
        describe_cut(of, {"A": 1, "B": 1})["channels"]
    )


def test_what_is_lost_is_told() -> None:
    told = describe_cut(
        make_execution("protocol fifo\nmembers A B\n\nsend A m\nlose B m\n"), {"A": 1}
    )
    assert told["channels"] == [{"source": "A", "target": "B", "labels": ["m (lost)"]}]


@pytest.mark.parametrize(
    ("counts", "says"),
    [
        ({"Z": 1}, "unknown member Z; choose from A, B, C"),
        ({"A": 2}, "A=2: A has 1 event in this run"),
        ({"A": -1}, "A=-1"),
        ({"A": True}, "A=True"),
        ({"A": "1"}, "A='1'"),
        (None, "counts must be an object"),
        ([1], "counts must be an object"),
    ],
)
def test_cuts_that_cannot_be_are_refused(counts: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        describe_cut(make_execution(TEXT.format("bss")), counts)
