"""Session of scenarios and random runs: impossible actions and effects."""

from __future__ import annotations

import pytest

from antecede.core.protocols.basic.fifo import Fifo
from antecede.lab.check.check import find_target
from antecede.lab.check.checked_run import JudgedRun
from antecede.lab.check.harness.driver import ImpossibleError, Session
from antecede.lab.check.harness.group_under_test import make_flat_group
from antecede.lab.check.scenario.actions import (
    Action,
    Arrive,
    Join,
    Leave,
    Lose,
    Send,
    ShowHeld,
    Tick,
)
from antecede.lab.check.scenario.parse import parse_scenario
from antecede.lab.check.scenario.run import run_scenario


@pytest.mark.parametrize(
    ("action", "why"),
    [
        (Send("Z", "z1"), "unknown member Z; choose from A, B"),
        (Send("C", "c1"), "C has left the group"),
        (Send("A", "a1"), "a1 has been sent already"),
        (Send("A", "a2", ("never",)), "message never has not been sent"),
        (Arrive("B", "b1"), "message b1 has not been sent"),
        (Arrive("A", "a1"), "a1 is not in flight to A; no message is in flight to it"),
        (Arrive("B", "a1", again=True), "no copy of a1 has arrived at B before"),
        (Lose("A", "a1"), "a1 is not in flight to A"),
        (Join("C", "A"), "C is or was in the group"),
        (Leave("C"), "C has left the group"),
        (ShowHeld("A"), "'blocked A' only prints"),
    ],
)
def test_what_cannot_be_is_said_by_a_session_and_passed_over_by_a_judged_run(
    action: Action, why: str
) -> None:
    before: list[Action] = [Leave("C"), Send("A", "a1")]
    session, run = (
        Session(make_flat_group("fifo", Fifo, 3)),
        JudgedRun(make_flat_group("fifo", Fifo, 3)),
    )
    for one in before:
        session.execute(one)
        assert run.take(one)
    with pytest.raises(ImpossibleError, match=why):
        session.execute(action)
    assert not run.take(action)
    assert run.failure is None
    assert (run.actions, run.world.steps) == (before, session.world.steps)


def test_in_groups_with_clocks_time_and_copies_keep_the_bounds() -> None:
    session = Session(find_target("linear").flat(2))
    session.execute(Send("A", "a1"))
    most_ns = session.world.timing.get_max_delay_ns(0, 1)
    assert session.world.timing.get_min_delay_ns(0, 1) > 0
    with pytest.raises(ImpossibleError, match="so soon"):
        session.execute(Arrive("B", "a1"))
    with pytest.raises(ImpossibleError, match="a copy in flight must arrive before"):
        session.execute(Tick(2 * most_ns / 10**9))


def test_super_peers_do_not_send_and_nobody_joins_a_hierarchy() -> None:
    session = Session(find_target("hierarchical").hierarchy((1,), 1))
    with pytest.raises(ImpossibleError, match="S only forwards"):
        session.execute(Send("S", "s1"))
    with pytest.raises(ImpossibleError, match="only flat groups"):
        session.execute(Join("B", "A"))


def test_a_judged_run_lets_nobody_answer_what_it_has_not_and_keeps_two_members() -> None:
    run = JudgedRun(find_target("sb").flat(2))
    assert run.take(Send("A", "a1"))
    assert not run.take(Send("B", "b1", ("a1",)))
    assert not run.take(Leave("A"))
    assert run.take(Arrive("B", "a1"))
    assert run.take(Send("B", "b1", ("a1",)))


def test_a_script_can_bring_a_message_back_to_its_sender() -> None:
    done = run_scenario(parse_scenario("protocol bss\nmembers A B\nsend A m\narrive A m again\n"))
    assert done.results[-1].output == ("A discards m: own message",)


def test_what_a_newcomer_sends_of_its_own_accord_has_its_name_in_scripts_too() -> None:
    text = "protocol matrix recovering=true heartbeat_s=1\nmembers A B\njoin D sponsor A\ntick 2\n"
    done = run_scenario(parse_scenario(text))
    notes = {one.label for one in done.occurrences() if one.kind == "acknowledge"}
    assert notes == {"note-A", "note-B", "note-D"}


def test_topics_of_newcomers_go_by_the_order_in_which_they_join() -> None:
    done = run_scenario(
        parse_scenario(
            "protocol tv\nmembers A B\nbounds accuracy=0 least=0 most=1\n"
            "subscribe A x\nsubscribe B x\nsubscribe E x\nsubscribe D y\n"
            "join D sponsor A\njoin E sponsor A\nsend A m about x\narrive E m\n"
        )
    )
    assert done.recipients == {"m": ("A", "B", "E")}
    assert done.results[2].output == ("m is on its way to B, E",)
    assert done.violations() == ()
