"""Exercises of the playground: their scenarios run, their answers agree with the sources.

`PRINTED` holds the values that the sources print. `exercises.golden` holds all other values;
`--rewrite-scenarios` updates it.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from antecede.errors import InputError, ScenarioError
from antecede.lab.check.scenario.parse import parse_scenario
from antecede.lab.check.scenario.run import run_scenario
from antecede.lab.play.answers import compute_fact, describe_fact
from antecede.lab.play.exercise import (
    GROUPS,
    Exercise,
    compute_answer,
    find_exercise,
    list_exercises,
)

GOLDEN = Path(__file__).parent / "exercises.golden"
NAMES = [one.name for one in list_exercises()]

PRINTED = {
    # Sahai et al. 2020, BSS: e31, e21, e22, e12; "Now, suppose": e11, E12
    ("bss-example", 0): ["P3: (0, 0, 1)", "P2: (0, 0, 1)", "after b (0, 1, 1)"],
    ("bss-example", 1): ["C of P1 is (0, 0, 1)", "C becomes (0, 1, 1)"],
    ("bss-overtaking", 0): ["b waits for a", "stays (0, 0, 0)"],
    ("bss-overtaking", 1): ["delivers a, b", "(0, 1, 1)"],
    # SES: e31, e22, e12 as printed; "Now, suppose"
    ("ses-example", 0): ["P3: C = (0, 0, 1); V = (?, (0, 0, 1), ?)", "V = ((0, 1, 1), ?, ?)"],
    ("ses-example", 1): ["C = (1, 1, 1)"],
    ("ses-example", 2): ["As printed it would be (?, ?, ?)"],
    ("ses-overtaking", 0): ["P1's clock is (1, 0, 0)", "d waits for b"],
    ("ses-overtaking", 1): ["C = (1, 2, 1)"],
    # Evropeytsev et al. 2016, 3.1.4
    ("hierarchy-example", 0): ["RV = 11, DV = 01", "DV = Ø"],
    ("hierarchy-example", 1): ["m3 waits for m2", "VTx = (11, 0, 1); CI = Ø", "m2, m3"],
    ("hierarchy-example", 2): ["RV of Pi1 is then 11", "RV = 1111"],
    # Bhavanasi and Iyer, figure 7d and 7e; figure 1
    ("reply-six-steps", 0): ["OL = B1", "<B3, B2> <B4, B3>"],
    ("reply-six-steps", 1): ["B1, B2, B3, B4", "B1-4"],
    ("reply-figure-1", 0): ["BSS: Y2 waits for X2", "S_b: nothing"],
}


@pytest.fixture(params=NAMES)
def exercise(request: pytest.FixtureRequest) -> Exercise:
    return find_exercise(request.param)


def test_there_is_one_for_each_part_of_the_notes_and_each_source() -> None:
    assert {one.group for one in list_exercises()} == set(GROUPS)
    assert [GROUPS.index(one.group) for one in list_exercises()] == sorted(
        GROUPS.index(one.group) for one in list_exercises()
    )
    assert len({(one.group, one.order) for one in list_exercises()}) == len(list_exercises())


def test_its_script_runs_under_each_of_its_protocols(exercise: Exercise) -> None:
    for spec in exercise.protocols:
        lines = exercise.text.splitlines()
        at = next(k for k, line in enumerate(lines) if line.startswith("protocol "))
        lines[at] = f"protocol {spec}"
        assert run_scenario(parse_scenario("\n".join(lines))).results


def test_every_fact_is_used_and_every_name_is_a_fact(exercise: Exercise) -> None:
    for one in exercise.questions:
        assert set(re.findall(r"\{([a-z_0-9]+)\}", one.answer)) == set(one.facts)
        assert one.ask
        assert one.answer


@pytest.mark.few(12)
def test_nothing_that_is_computed_is_written_down_in_the_file(exercise: Exercise) -> None:
    """A vector or list in an answer must be a fact, so that it stays correct."""
    for k, one in enumerate(exercise.questions):
        values = dict(compute_answer(exercise.name, k).facts).values()
        for value in values:
            if len(value) > 12 and value not in ("consistent",):
                assert value not in one.answer, f"{exercise.name} {k}: {value}"


@pytest.mark.parametrize(("name", "question"), PRINTED)
def test_an_answer_says_what_the_source_prints(name: str, question: int) -> None:
    told = compute_answer(name, question).answer
    assert [text for text in PRINTED[name, question] if text not in told] == []


@pytest.mark.slow
def test_answers_are_as_they_were_read(request: pytest.FixtureRequest) -> None:
    told = [
        f"{one.name} {k}: {compute_answer(one.name, k).answer}"
        for one in list_exercises()
        for k in range(len(one.questions))
    ]
    if request.config.getoption("--rewrite-scenarios"):
        GOLDEN.write_text("\n".join(told) + "\n", "utf-8")
    assert told == GOLDEN.read_text("utf-8").splitlines(), "`make goldens`, and read the difference"


def test_a_state_below_and_its_channels_are_of_one_question() -> None:
    """The channels belong to the state that the previous fact computes."""
    facts = find_exercise("states-consistent").questions[2].facts
    text = find_exercise("states-consistent").text
    found = compute_fact(text, facts["greatest"])
    assert facts["inside"] == f"inside {found.replace(', ', ' ')}"


def test_what_there_is_not_is_said() -> None:
    with pytest.raises(
        InputError, match="unknown exercise 'nothing'; choose from channels-overtaking"
    ):
        find_exercise("nothing")
    with pytest.raises(InputError, match="has 3 questions, from 0; question 3 does not exist"):
        compute_answer("bss-example", 3)
    text = find_exercise("bss-example").text
    with pytest.raises(ScenarioError, match="no fact 'hold'; choose from held"):
        compute_fact(text, "hold P1")
    with pytest.raises(ScenarioError, match="after 7: the scenario has 6 actions"):
        compute_fact(text, "held P1 after 7")
    with pytest.raises(ScenarioError, match="no message z is sent"):
        compute_fact(text, "before a z")
    with pytest.raises(InputError, match="position 9 of P1"):
        compute_fact(text, "cut P1=9")


def test_facts_have_words() -> None:
    assert (
        describe_fact("held P1 after 4 with fifo")
        == "messages held back by P1, after step 4, under fifo"
    )
    assert describe_fact("before a b") == "a and b"
    assert describe_fact("cut P=1 Q=2") == "cut P=1 Q=2"
