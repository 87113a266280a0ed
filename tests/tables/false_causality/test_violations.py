"""Causal violations, against the oracle's sets."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede.core.oracle.history import History
from antecede.errors import CycleError, InputError
from antecede.tables.false_causality.violations import find_in_events, find_violations
from antecede.tables.trace.schema import DELIVER, RECEIVE, SEND, Event
from tests.core.oracle.executions import executions
from tests.tables.events import moves, table_of

RELATIONS = ("delivery", "receipt")


def find_addressees(execution: list[Event]) -> dict[str, set[str]]:
    """Return the addressees of messages, by the rows."""
    found: dict[str, set[str]] = {row.id: set() for row in execution if row.kind == SEND}
    for row in execution:
        if row.kind != SEND and row.id in found:
            found[row.id].add(row.member or "")
    return found


def once(execution: list[Event]) -> list[Event]:
    """Drop repeated deliveries."""
    kept: dict[object, Event] = {}
    for at, row in enumerate(execution):
        kept.setdefault((row.member, row.id) if row.kind == DELIVER else at, row)
    return list(kept.values())


def check(execution: list[Event], relation: str, extra: Mapping[str, set[str]]) -> int:
    """Compare with the oracle; return the number of violations."""
    addressed = find_addressees(execution)
    for message, members in extra.items():
        addressed[message] |= members
    wanted = {
        (early.message, early.member): early.missing
        for early in History(once(execution), addressed).early(relation)
    }
    found = find_violations(table_of(execution), relation, extra).to_pylist()
    assert {(row["message"], row["member"]) for row in found} == wanted.keys()
    assert len(found) == len(wanted)
    first = {
        (row.member, row.id): at
        for at, row in reversed(list(enumerate(execution)))
        if row.kind == DELIVER
    }
    for early in found:
        assert early["cause"] in wanted[early["message"], early["member"]]
        assert early["file_order"] == first[early["member"], early["message"]]
        assert early["cause_order"] == first.get((early["member"], early["cause"]))
        assert early["cause_order"] is None or early["cause_order"] > early["file_order"]
    assert [row["file_order"] for row in found] == sorted(row["file_order"] for row in found)
    return len(found)


@given(executions(), st.sampled_from(RELATIONS), st.booleans())
def test_they_are_the_oracles(execution: list[Event], relation: str, broadcast: bool) -> None:
    kinds = {row.kind for row in execution}
    if DELIVER not in kinds:
        assert broadcast or not find_violations(
            table_of([row for row in execution if row.kind == SEND])
        )
        return
    sent = [row for row in execution if row.kind == SEND]
    everyone = {row.member or "" for row in execution}
    extra = {row.id: everyone - {row.member or ""} for row in sent} if broadcast else {}
    check(execution, relation, extra)


def multicast(seed: int) -> list[Event]:
    """Return a run in which messages go to subsets, arrive and are delivered in any order."""
    rng = random.Random(seed)
    names = "PQRST"
    found: list[Event] = []
    flying: list[tuple[str, str]] = []
    here: list[tuple[str, str]] = []
    for number in range(60):
        what = rng.choice((SEND, RECEIVE, RECEIVE, DELIVER, DELIVER))
        if what == SEND:
            sender = rng.choice(names)
            others = [name for name in names if name != sender]
            found.append(Event(kind=SEND, id=f"m{number}", member=sender))
            flying += [(f"m{number}", name) for name in rng.sample(others, rng.randint(1, 3))]
        elif what == RECEIVE and flying:
            here.append(flying.pop(rng.randrange(min(4, len(flying)))))
            found.append(Event(kind=RECEIVE, id=here[-1][0], member=here[-1][1]))
        elif here:
            message, member = here.pop(rng.randrange(min(4, len(here))))
            found.append(Event(kind=DELIVER, id=message, member=member))
    return found


@pytest.mark.parametrize("relation", RELATIONS)
def test_subsets_of_receivers(relation: str) -> None:
    total = 0
    for seed in range(40):
        execution = multicast(seed)
        names = "PQRST"
        rng = random.Random(seed)
        sent = [row for row in execution if row.kind == SEND]
        extra = {row.id: {rng.choice(names)} - {row.member or ""} for row in sent[::3]}
        total += check(execution, relation, extra)
    assert total > 50


def test_causality_goes_through_members_that_did_not_receive() -> None:
    """b is not for R, but tells c of a, which is."""
    found = find_violations(table_of(moves("P!a Q.a Q!b S.b S!c R.c R.a"))).to_pylist()
    assert [(row["member"], row["message"], row["cause"]) for row in found] == [("R", "c", "a")]
    assert found[0]["cause_order"] == 6


def test_what_is_not_addressed_is_not_owed() -> None:
    assert not len(find_violations(table_of(moves("P!a Q.a Q!b R.b"))))


def test_a_cause_that_never_came_is_owed_where_it_is_addressed() -> None:
    execution = table_of(moves("P!a Q.a Q!b R.b"))
    found = find_violations(execution, addressed={"a": ["Q", "R"]}).to_pylist()
    assert [(row["message"], row["cause"], row["cause_order"]) for row in found] == [
        ("b", "a", None)
    ]
    with pytest.raises(InputError, match="unknown message 'z' in addressed"):
        find_violations(execution, addressed={"z": ["Q"]})


def test_what_arrived_and_was_held_for_ever_is_owed() -> None:
    found = find_violations(table_of(moves("P!a Q.a Q!b R?a R.b"))).to_pylist()
    assert [(row["member"], row["cause"], row["cause_order"]) for row in found] == [
        ("R", "a", None)
    ]


def test_receipts_are_judged_where_nothing_is_delivered() -> None:
    (found,) = find_in_events(table_of(moves("P!a Q?a Q!b R?b R?a")))
    assert found.run.relation == "receipt"
    assert found.checked == 3
    assert found.table["message"].to_pylist() == ["b"]


def test_the_relation_decides_what_is_a_cause() -> None:
    """Q had received a but not delivered it when it sent b (Evropeytsev et al. 2016 and Sahai et
    al. 2020 against Tsuneizumi et al. and Nakayama 2017).
    """
    execution = table_of(moves("P!a Q?a Q!b R.b R.a Q.a"))
    assert not len(find_violations(execution, "delivery"))
    assert find_violations(execution, "receipt")["message"].to_pylist() == ["b"]


def test_runs_are_judged_one_by_one() -> None:
    early, fine = moves("P!a Q.a Q!b R.b R.a"), moves("P!a Q.a Q!b R.a R.b")
    both = [row._replace(run="x") for row in early] + [row._replace(run="y") for row in fine]
    found = find_violations(table_of(both)).to_pylist()
    assert [(row["run"], row["message"]) for row in found] == [("x", "b")]


def test_a_trace_without_deliveries_has_no_violations() -> None:
    assert not len(find_violations(table_of(moves("P!a P!b"))))
    assert not list(find_in_events(table_of([Event(id="a"), Event(id="b", causes=("a",))])))


def test_receipts_before_their_sends_in_a_circle_are_refused() -> None:
    with pytest.raises(CycleError, match="precede their sends in a cycle"):
        find_violations(table_of(moves("P.b P!a Q.a Q!b")))


@pytest.mark.parametrize("seed", range(30))
def test_declared_causes_are_the_oracles(seed: int) -> None:
    """Bhavanasi and Iyer: a message depends on its parents, some of which are not addressed."""
    rng = random.Random(seed)
    execution, sent = [], list[str]()
    for row in multicast(seed):
        if row.kind == SEND:
            causes = tuple(rng.sample(sent, min(len(sent), rng.randint(0, 2))))
            sent.append(row.id)
            row = row._replace(causes=causes)
        execution.append(row)
    if DELIVER in {row.kind for row in execution}:
        check(execution, "reply", {})


def test_an_early_answer_names_the_cause_that_came_last() -> None:
    execution = moves("P!a P!b<a P!c<b Q.c Q.a Q.b")
    found = find_violations(table_of(execution), "reply").to_pylist()
    assert [(row["message"], row["cause"], row["cause_order"]) for row in found] == [("c", "b", 5)]
