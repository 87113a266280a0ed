"""Total order: the checker finds members that deliver messages in different orders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from antecede.core.protocols.base import Deliver, Effect, Guarantee, Relation, Transmit
from antecede.core.protocols.total.sequencer import Sequencer
from antecede.core.protocols.total.timestamps import AgreedTimestamps
from antecede.core.protocols.vector.idr import Idr
from antecede.lab.check.causal_past import find_disagreement
from antecede.lab.check.conformance import SuitePlan, conform
from antecede.lab.check.harness.group_under_test import make_flat_group
from antecede.lab.check.model_checker.explorer import SearchLimits, explore
from antecede.lab.check.results import EARLY, ORDER_DISAGREEMENT, STUCK
from antecede.lab.check.scenario.parse import parse_scenario
from antecede.lab.check.scenario.run import run_scenario
from tests.lab.check import require_failure


class CausalAtOnce(Idr):
    """Claims total order, but delivers in causal order, own messages at the send."""

    guarantee = Guarantee(Relation.TOTAL, no_unnecessary_wait=False)

    def send(self, payload: Any, **more: Any) -> Sequence[Effect]:
        (transmit,) = super().send(payload, **more)
        assert isinstance(transmit, Transmit)
        return transmit, Deliver(transmit.message)


class Silent(CausalAtOnce):
    def send(self, payload: Any, **more: Any) -> Sequence[Effect]:
        return super().send(payload, **more)[:1]


class NoGaps(AgreedTimestamps):
    """Counts an acknowledgement although messages before it are missing."""

    def _promise(self, note: Any) -> None:
        self.floors[note.sender] = max(self.floors[note.sender], note.lt)

    def _check(self, message: Any) -> None:
        pass


class AnyOrderOfASender(Sequencer):
    """Sequencer that numbers messages in arrival order, despite gaps."""

    def _place(self, message: Any) -> Sequence[Effect]:
        self.counts[message.sender] = message.seq - 1
        return super()._place(message)


@pytest.mark.parametrize(
    ("cls", "what"), [(CausalAtOnce, ORDER_DISAGREEMENT), (Silent, STUCK), (NoGaps, EARLY)]
)
def test_the_explorer_and_the_network_find_it(cls: Any, what: str) -> None:
    group = make_flat_group("toy", cls, 2 if cls is not NoGaps else 3)
    found = require_failure(explore(group, SearchLimits(2 if cls is not NoGaps else 3)).failure)
    assert found.what == what
    assert what != ORDER_DISAGREEMENT or len(found.missing) == 1
    suite = conform(make_flat_group("toy", cls, 4), SuitePlan(runs=60, twins=False))
    assert suite.failure is not None
    # A delivery before an own message, or before one of the same sender, is a violation too.
    assert suite.failure.what in (what, EARLY, ORDER_DISAGREEMENT)


def test_a_sequencer_that_lets_a_sender_overtake_itself_is_early() -> None:
    found = require_failure(
        explore(make_flat_group("toy", AnyOrderOfASender, 2), SearchLimits(2)).failure
    )
    assert found.what == EARLY


def test_what_only_one_member_delivers_says_nothing() -> None:
    assert find_disagreement({1: "abc", 2: "b", 3: "ac", 4: ""}) is None
    assert find_disagreement({1: "abc", 2: "bx", 3: "cyb"}) == (1, 3, "b", "c")


def test_a_scenario_marks_the_delivery_that_differs(tmp_path: Any) -> None:
    (tmp_path / "toy.py").write_text(
        "from tests.lab.check.test_agreement import CausalAtOnce as Toy\n", encoding="utf-8"
    )
    text = f"protocol {tmp_path / 'toy.py'}:Toy\nmembers A B\nsend A a1\nsend B b1\n"
    run = run_scenario(parse_scenario(text + "arrive B a1\narrive A b1\n"))
    (wrong,) = [one for one in run.occurrences() if one.is_violation]
    assert (wrong.at, wrong.label, wrong.order_conflict) == ("A", "b1", ("B", "a1"))
    lines = [line for moment in run.results for line in moment.output]
    assert sum("VIOLATION" in line for line in lines) == 1
