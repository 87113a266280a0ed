"""One member that breaks every rule, and what the others say to each other all the same.

It reorders, repeats, leaves out, damages and forges frames by seed: others' batches, its own with
false causes, lives and changes, greetings that lie, last words to others. The oracle judges what
the others say to each other, as if it were not there.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from antecede.core.group.receiver import Receiver
from antecede.live.charges import EvictionVotes
from antecede.live.node import Node
from tests.live.byzantine import ByzantineRun
from tests.live.simulated import REST_S, Plan
from tests.live.test_simulated import SOAK_S

ORDERS = ("causal", "causal", "causal", "reply", "fifo", "bss", "none")
SEEDS = 120
AT_ONCE = 20


def plan_of(seed: int) -> Plan:
    draw = random.Random(seed)
    durable = draw.random() < 0.5
    return Plan(
        seed,
        members=draw.randrange(3, 6),
        order=draw.choice(ORDERS),
        durable=durable,
        faults=draw.randrange(4),
        settings={"verify_all_signatures": draw.random() < 0.5},
    )


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, SEEDS, AT_ONCE))
def test_nothing_between_honest_members_is_early_lost_twice_or_stuck(first: int) -> None:
    lies, messages, refused = 0, 0, Counter[str]()
    for seed in range(first, first + AT_ONCE):
        run = ByzantineRun(plan_of(seed))
        judgement = run.run()
        assert judgement.clean, (plan_of(seed), judgement)
        lies, messages = lies + run.lies, messages + judgement.messages
        for host in run.honest:
            refused += host.observe().rejected
    assert lies > 20 * AT_ONCE  # a rejected liar is dialed less and less often
    assert messages > 30 * AT_ONCE
    kinds = {"DecodeError", "MismatchError", "SequenceError", "IncarnationError"}
    assert len(kinds & refused.keys()) >= 3


@pytest.mark.slow
def test_an_equivocator_with_sound_seals_never_breaks_the_order() -> None:
    """It can hold up those to whom it said otherwise: `docs/design/trust.md` says so."""
    held_up = 0
    for seed in range(2000, 2030):
        judgement = ByzantineRun(plan_of(seed), equivocates=True).run()
        assert not judgement.early, (plan_of(seed), judgement)
        assert not judgement.twice, (plan_of(seed), judgement)
        held_up += bool(judgement.stuck)
    assert held_up, "else more can be promised than is"


@pytest.mark.soak
def test_a_quarter_of_an_hour_of_lies() -> None:
    end, seed = time.monotonic() + SOAK_S / 4, 10**6
    while time.monotonic() < end:
        judgement = ByzantineRun(plan_of(seed)).run()
        assert judgement.clean, (plan_of(seed), judgement)
        seed += 1
    assert seed > 10**6


# -- each guard is needed --------------------------------------------------------------------------


def _believe_one(self: EvictionVotes, members: Any, talking: Any, now: int) -> str:
    return next((words for said in self._by.values() for words in said.values()), "")


def _believe_what_is_said_of_others(self: Receiver, *arguments: Any, **more: Any) -> Any:
    return JUDGED(self, *arguments[:3])


def _believe_a_hello(self: Node, link: Any, what: str, words: str) -> None:
    self.go_out(words)


JUDGED = Receiver._check_and_receive
GUARDS: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "one word that one is out": (EvictionVotes, "outcome", _believe_one),
    "a greeting that knows more than there is": (Node, "add_vote", _believe_a_hello),
    "lives of others": (Receiver, "_check_and_receive", _believe_what_is_said_of_others),
}


@pytest.mark.slow
@pytest.mark.parametrize("guard", GUARDS)
def test_without_a_guard_it_goes_wrong(guard: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, what, instead = GUARDS[guard]
    monkeypatch.setattr(where, what, instead)
    monkeypatch.setattr(ByzantineRun, "least_rest_s", REST_S)  # repeats come late
    for seed in range(60):
        try:
            clean = ByzantineRun(plan_of(seed)).run().clean
        except AssertionError:
            clean = False
        if not clean:
            return
    pytest.fail("nothing went wrong in 60 runs")
