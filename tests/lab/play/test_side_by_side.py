"""Comparison of protocols: equal to the runs of the checker."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antecede.errors import InputError, ScenarioError
from antecede.lab.check.scenario.actions import ShowHeld, ShowState
from antecede.lab.check.scenario.execution import JUDGES, channel_line, describe_wait
from antecede.lab.check.scenario.narrative import Words
from antecede.lab.check.scenario.parse import Command, parse_scenario
from antecede.lab.check.scenario.run import run_scenario, under
from antecede.lab.diagram.scenario_diagram import stack_diagrams
from antecede.lab.play.exercise import list_exercises
from antecede.lab.play.side_by_side import LIMITS, MAX_COPIES, MAX_STATES, compare_protocols
from tests.lab.play.scenes import FLAT, JOINING, Making, scenes

SCENARIOS = sorted((Path(__file__).parents[3] / "scenarios").rglob("*.scenario"))
TWO = "protocol bss\nmembers A B C\n\nsend A m\narrive B m\nsend B n\narrive C n\n"
BROKEN = """
from antecede.core.protocols.basic.unordered import Unordered

class Raises(Unordered):
    def receive(self, message, *, now=None):
        raise ValueError("not today")

class Hangs(Unordered):
    def receive(self, message, *, now=None):
        while True:
            pass

class Mute(Unordered):
    def list_held(self):
        raise RuntimeError("nobody asks me that")
"""


def compare_runs(text: str, *protocols: str, judge: str | None = None) -> list[dict[str, Any]]:
    runs: list[dict[str, Any]] = json.loads(json.dumps(compare_protocols(text, protocols, judge)))[
        "runs"
    ]
    return runs


@settings(max_examples=40, deadline=None)
@given(scenes(lossy=True), st.lists(st.sampled_from(FLAT), min_size=1, max_size=4, unique=True))
def test_runs_are_those_of_the_checker(made: Making, names: list[str]) -> None:
    same_as_checker(made.text(), names)


@settings(max_examples=25, deadline=None)
@given(scenes(moving=True), st.lists(st.sampled_from(JOINING), min_size=1, max_size=3, unique=True))
def test_runs_with_newcomers_are_those_of_the_checker(made: Making, names: list[str]) -> None:
    same_as_checker(made.text("idr"), names)


def same_as_checker(text: str, names: list[str]) -> None:
    scenario = parse_scenario(text)
    scenarios = [under(scenario, name) for name in names]
    told = compare_runs(text, *names)
    whole = [
        run_scenario(one) for one, run in zip(scenarios, told, strict=True) if not run["error"]
    ]
    diagrams = iter(stack_diagrams(whole, [""] * len(whole)))
    if all(not run["error"] for run in told):
        for run in told:
            drawn = next(diagrams)
            assert [mark["at"] for mark in run["marks"]] == [mark.at for mark in drawn.marks]
            assert [arrow["arrived"] for arrow in run["arrows"]] == [
                arrow.arrived for arrow in drawn.arrows
            ]
            assert [held["begin"] for held in run["holds"]] == [held.begin for held in drawn.holds]
    done = iter(whole)
    for alone, run in zip(scenarios, told, strict=True):
        if run["error"]:
            with pytest.raises(ScenarioError) as caught:
                run_scenario(alone)
            assert run["error"]["message"] == caught.value.message
            assert run["error"]["line"] == caught.value.line
            continue
        found = next(done)
        words = Words(found.relation)
        assert [step["sentences"] for step in run["steps"]] == [
            words.write_sentences(result) for result in found.results
        ]
        assert len(run["violations"]) == len(found.violations())
        assert channel_line(found) in run["summary"]
        if run["steps"]:
            end = run["steps"][-1]
            assert [tuple(copy) for copy in end["in_flight"]] == list(found.in_flight)
            held = [one["text"] for all_ in end["held"].values() for one in all_]
            assert sorted(held) == sorted(map(describe_wait, found.held))
            for name, states in end["states"].items():
                asks = Command(0, ShowState(name))
                asked = run_scenario(alone._replace(commands=(*alone.commands, asks)))
                assert [f"{k} = {v}" for k, v in states.items()] == list(asked.results[-1].output)


def test_each_mark_belongs_to_its_action() -> None:
    made = compare_protocols(TWO, ["unordered", "bss"])
    assert [column["command"] for column in made["columns"]] == [0, 1, 2, 3]
    free, kept = made["runs"]
    assert [(mark["kind"], mark["label"], mark["command"]) for mark in free["marks"]] == [
        ("send", "m", 0), ("deliver", "m", 1), ("send", "n", 2), ("deliver", "n", 3),
    ]  # fmt: skip
    assert kept["marks"][-1]["kind"] == "hold"
    waiting = {"label": "n", "waits_for": ["m"], "text": "n waits for m"}
    assert kept["steps"][-1]["held"] == {"C": [waiting]}
    flying = [arrow for arrow in kept["arrows"] if arrow["in_flight"]]
    assert [(arrow["label"], arrow["arrive_command"]) for arrow in flying] == [
        ("m", None), ("n", None),
    ]  # fmt: skip
    assert [(one["member"], one["kind"], one["label"]) for one in free["events"]] == [
        ("A", "send", "m"), ("B", "receive", "m"), ("B", "send", "n"), ("C", "receive", "n"),
    ]  # fmt: skip
    assert kept["start"]["states"]["A"] == {"C": "(0, 0, 0)"}
    assert kept["steps"][0]["control_bytes"]["m"] > 0


def test_a_judge_marks_what_the_protocol_does_not_promise() -> None:
    assert compare_runs(TWO, "unordered")[0]["violations"] == []
    (judged,) = compare_runs(TWO, "unordered", judge="causal")
    assert judged["violations"][0]["command"] == 3
    assert "BEFORE m" in judged["violations"][0]["sentence"]
    assert (judged["promised_relation"], judged["checked_relation"]) == (
        "none",
        JUDGES["causal"].value,
    )
    assert "1 before a cause" in judged["summary"]
    with pytest.raises(InputError, match="unknown relation 'loud'; choose from causal"):
        compare_protocols(TWO, ["bss"], "loud")


def test_each_run_says_what_it_ordered_too_little_and_too_much_by_causality() -> None:
    text = f"{TWO}arrive C m\n"
    none, fifo, bss, total = compare_runs(text, "unordered", "fifo", "bss", "total")
    assert none["summary"].startswith("2 messages, 0 held, 1 before a cause, 1 copy in flight.")
    assert "0 held, 1 before a cause, 0 out of FIFO order" in fifo["summary"]
    assert "1 held (0 without a causal need), 0 before a cause, 1 copy" in bss["summary"]
    # after m has arrived, C still holds n: the sequencer A has not numbered n;
    # B holds its own n
    assert "2 held (2 without a causal need), 0 before a cause" in total["summary"]
    assert "2 still held at the end" in total["summary"]
    answered = compare_runs("protocol sb\nmembers A B\n\nsend A m\nsend A n\narrive B n\n")[0]
    assert "1 before a cause, 0 before the message it replies to" in answered["summary"]


def test_what_is_violated_is_called_by_the_order_that_is_judged_by() -> None:
    for text, judge, order in (
        (f"{TWO}arrive C m\n", "causal", "causal order"),
        ("protocol fifo\nmembers A B\n\nsend A m\nsend A n\narrive B n\n", "fifo", "FIFO order"),
        (f"{TWO}".replace("send B n", "send B n after m"), "reply", "order of replies"),
    ):
        (run,) = compare_runs(text, "unordered", judge=judge)
        (wrong,) = run["violations"]
        assert wrong["sentence"].endswith(f" BEFORE m: the {order} is violated.")
        said = " ".join(one for step in run["steps"] for one in step["sentences"])
        assert f"the {order} is violated." in said
    topics = next(one for one in list_exercises() if one.name == "topics-rule-3")
    (run,) = compare_runs(topics.text, "tv-pt as_published=true")
    assert "the order by topic is violated" in run["violations"][0]["sentence"]


def test_total_order_says_what_it_keeps() -> None:
    text = f"{TWO}arrive C m\n"
    given, agreed = compare_runs(text, "total", "total-agreed")
    assert given["steps"][-1]["states"]["C"] == {
        "sequencer": "A", "global number": "1", "C": "(1, 0, 0)", "assigned": "Ø",
    }  # fmt: skip
    assert agreed["steps"][-1]["states"]["C"] == {
        "LT": "2", "lower bounds": "A: 1, B: 2", "queue": "n (2, B)",
    }  # fmt: skip
    gap = "protocol total-agreed\nmembers A B\n\nsend A m\nsend A n\narrive B n\n"
    assert compare_runs(gap)[0]["steps"][-1]["states"]["B"]["after gap"] == "n"
    known = "protocol total\nmembers A B C\n\nsend B m\narrive A m\narrive C note-A\n"
    assert compare_runs(known)[0]["steps"][-1]["states"]["C"]["assigned"] == "1: B 1"


def test_what_waits_for_time_alone_is_needless_though_nothing_else_happens_to_its_member() -> None:
    scene = next(one for one in list_exercises() if one.name == "topics-unrelated")
    (run,) = compare_runs(scene.text, "tv-vt")
    # a at P2, and a at P3 after b; b and c lack a while they are held
    said = "4 held (2 without a causal need), 1 before a cause, 0 before a cause in its topics"
    assert said in run["summary"]


def test_a_super_peer_forwards_and_a_newcomer_takes_over() -> None:
    # forwarded messages and those of the sponsor are delivered, so no hold is needless
    inside = (
        "protocol hierarchical\ninternal S: A\nexternal X Y\n\nsend X x1\narrive Y x1\n"
        "send Y y1\narrive S y1\narrive S x1\n"
    )
    assert (
        "1 held (0 without a causal need), 0 before a cause" in compare_runs(inside)[0]["summary"]
    )
    late = (
        "protocol idr\nmembers A B\n\nsend A m\narrive B m\njoin C sponsor B\nsend A n\n"
        "send A o\narrive C o\narrive C n\n"
    )
    assert "1 held (0 without a causal need), 0 before a cause" in compare_runs(late)[0]["summary"]


def test_a_protocol_that_cannot_play_it_says_so_and_the_others_are_shown() -> None:
    wrong, unknown, odd, right = compare_runs(TWO, "hierarchical", "fofi", "bss loud=1", "bss")
    assert "several roles; list its members with" in wrong["error"]["message"]
    assert "unknown protocol 'fofi'" in unknown["error"]["message"]
    assert "options are: differences" in odd["error"]["message"]
    assert "steps" not in wrong
    assert all(run["error"]["line"] is None for run in (wrong, unknown, odd))
    assert right["error"] is None
    assert len(right["steps"]) == 4


def test_who_can_play_super_peers_is_said() -> None:
    inside = "protocol hierarchical\ninternal S: A\nexternal X Y\n\nsend X x1\n"
    (flat,) = compare_runs(inside, "bss")
    assert flat["error"]["message"].endswith("the scenario has super peers: use hierarchical")


def test_a_run_goes_as_far_as_it_can() -> None:
    text = f"{TWO}state B\narrive A n\narrive A n\nsend A o\n"
    (run,) = compare_runs(text)
    assert "message n is not in flight to A" in run["error"]["message"]
    assert (run["error"]["line"], run["error"]["command"]) == (10, 6)
    assert [step["command"] for step in run["steps"]] == [0, 1, 2, 3, 5]
    assert [column["command"] for column in compare_protocols(text)["columns"]] == [
        0,
        1,
        2,
        3,
        5,
        6,
        7,
    ]


def test_promises_that_a_protocol_does_not_take_are_left_out_and_told() -> None:
    head = "protocol linear\nmembers A B\nbounds accuracy=0.1 least=0.1 most=0.3\n"
    own, other = compare_runs(f"{head}send A m\narrive B m\n", "linear", "bss")
    assert (own["error"], own["remarks"]) == (None, [])
    assert other["error"] is None
    assert other["remarks"] == ["bss does not support bounds: omitted"]
    bounds = "bounds accuracy=0.1 least=0.1 most=0.3\n"
    topics = f"protocol tv\nmembers A B\n{bounds}subscribe B x\nsend A m about x\n"
    (lacking,) = compare_runs(topics.replace(bounds, ""))
    assert "in a scenario: the line 'bounds accuracy=0.1" in lacking["error"]["message"]
    tv, bss = compare_runs(topics, "tv", "bss")
    assert tv["error"] is None
    assert "topics" in bss["error"]["message"]
    assert bss["error"]["command"] == 0


def test_who_takes_receivers_is_told() -> None:
    text = "protocol ses\nmembers A B C\nsend A m to B\narrive B m\n"
    ses, fifo = compare_runs(text, "ses", "fifo")
    assert ses["error"] is None
    assert fifo["error"]["message"].endswith(
        "cannot be given to; ses, sent, linear, physical, linear-physical can"
    )
    for name in ("ses", "sent"):
        assert compare_runs(text, name)[0]["error"] is None


def test_roles_and_variants_are_told() -> None:
    text = "protocol hierarchical\ninternal S: A B\nexternal X\nsend A m\n"
    made = compare_protocols(text)
    assert made["members"] == [
        {"name": "A", "role": "internal", "super_peer": "S"},
        {"name": "B", "role": "internal", "super_peer": "S"},
        {"name": "S", "role": "super"},
        {"name": "X", "role": "external"},
    ]
    (run,) = compare_runs(TWO, "bss as_published=true")
    assert run["options"] == {"as_published": "true"}
    assert {"name": "as-published", "protocol": "bss as_published=true", "defective": True} in (
        run["variants"]
    )


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_every_scenario_plays(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    made = compare_protocols(text, path=str(path))
    (run,) = made["runs"]
    scenario = parse_scenario(text, str(path))
    moving = [c for c in scenario.commands if not isinstance(c.action, ShowState | ShowHeld)]
    assert run["error"] is None
    assert len(run["steps"]) == len(made["columns"]) == len(moving)
    assert made["protocol"].split()[0] == scenario.setup.protocol


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("Raises", "raised ValueError: not today"),
        ("Hangs", "did not return within"),
        ("Mute", "the protocol fails at a query of its state: RuntimeError: nobody asks me that"),
    ],
)
def test_whatever_an_own_class_does_is_told(tmp_path: Path, name: str, says: str) -> None:
    (tmp_path / "own.py").write_text(BROKEN, encoding="utf-8")
    text = f"protocol own.py:{name}\nmembers A B\nsend A m\narrive B m\n"
    made = compare_protocols(text, [f"own.py:{name}", "fifo"], path=str(tmp_path / "x.scenario"))
    own, fifo = made["runs"]
    assert says in own["error"]["message"]
    assert own["own_file"]
    assert fifo["error"] is None


def test_an_own_class_is_loaded_anew(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(BROKEN, encoding="utf-8")
    text = "protocol own.py:Raises\nmembers A B\nsend A m\narrive B m\n"
    assert compare_protocols(text, path=str(tmp_path / "x"))["runs"][0]["error"] is not None
    better = BROKEN.replace('raise ValueError("not today")', "return super().receive(message)")
    file.write_text(better, encoding="utf-8")
    assert compare_protocols(text, path=str(tmp_path / "x"))["runs"][0]["error"] is None


def test_too_much_is_refused_in_words() -> None:
    head = "protocol fifo\nmembers A B\n"
    many = head + "".join(f"send A m{k}\n" for k in range(LIMITS["commands"] + 1))
    with pytest.raises(InputError, match="401 commands: the limit is 400"):
        compare_protocols(many)
    with pytest.raises(InputError, match="the limit is 40"):
        compare_protocols(f"protocol fifo\nmembers {' '.join(f'P{k}' for k in range(41))}\n")
    with pytest.raises(InputError, match="13 protocols"):
        compare_protocols(head, [f"linear window={k + 1}" for k in range(13)])
    with pytest.raises(InputError, match="longer than 200,000 letters"):
        compare_protocols(head + "#" * LIMITS["letters"])
    members = " ".join(f"P{k}" for k in range(40))
    wide = f"protocol fifo\nmembers {members}\n" + "tick 1\n" * 300
    with pytest.raises(InputError, match=f"the limit is {MAX_STATES:,}"):
        compare_protocols(wide, ["fifo", "bss"])
    with pytest.raises(ScenarioError, match="unknown command"):
        compare_protocols(head + "dance\n")


def test_what_is_delivered_late_is_delivered_and_bytes_are_of_their_own_message() -> None:
    text = TWO.replace("arrive C n", "arrive C n\narrive C m\narrive A n")
    steps = compare_protocols(text)["runs"][0]["steps"]
    assert steps[-3]["delivered"] == {"A": [], "B": ["m"], "C": []}
    assert steps[-1]["delivered"] == {"A": ["n"], "B": ["m"], "C": ["m", "n"]}
    text = "protocol idr\nmembers A B\n\nsend B x\narrive A x\nsend A a\nsend A b\n"
    steps = compare_protocols(text)["runs"][0]["steps"]
    of_a, of_b = steps[2]["control_bytes"]["a"], steps[3]["control_bytes"]["b"]
    assert of_b < of_a  # a carries x, b carries no further cause
    assert [sorted(step["control_bytes"]) for step in steps] == [["x"], [], ["a"], ["b"]]


@pytest.mark.slow
def test_a_run_with_too_much_under_way_is_told_up_to_there() -> None:
    names = [f"P{k}" for k in range(40)]
    sends = [f"send {names[k % 40]} m{k}\n" for k in range(LIMITS["commands"])]
    text = f"protocol fifo\nmembers {' '.join(names)}\n" + "".join(sends)
    (run,) = compare_protocols(text)["runs"]
    assert run["error"]["message"].startswith("stopped here: too many copies are in flight")
    assert run["error"]["line"] == run["steps"][-1]["command"] + 3
    told = sum(len(step["in_flight"]) for step in run["steps"])
    assert MAX_COPIES < told < MAX_COPIES + 40 * LIMITS["commands"]
    two = "protocol fifo\nmembers A B\n" + "".join(f"send A m{k}\n" for k in range(400))
    assert [one["error"] for one in compare_protocols(two, ["fifo", "bss"])["runs"]] == [None, None]
