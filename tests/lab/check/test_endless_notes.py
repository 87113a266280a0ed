"""Endless heartbeats or replies: every part of the checker terminates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from antecede.core.clocks.bounds import Bounds
from antecede.core.protocols.base import Deliver, Effect, Guarantee, Protocol, Relation, Transmit
from antecede.lab.check.conformance import SuitePlan, conform
from antecede.lab.check.harness.group_under_test import make_flat_group
from antecede.lab.check.model_checker.explorer import SearchLimits, explore
from antecede.lab.check.results import ENDLESS, SHOWN_ACTIONS
from tests.lab.check import require_failure


class Said(NamedTuple):
    """Application message (seq from 1) or control message (seq 0)."""

    sender: int
    seq: int
    payload: Any


class Chatty(Protocol):
    """Delivers at once and replies to every control message with `answers` control messages."""

    guarantee = Guarantee(Relation.NONE)
    answers = 1

    def __init__(self, me: int, members: Sequence[int], bounds: Bounds[int] | None = None) -> None:
        super().__init__(me, members)
        self.sent = self.heard = 0

    def send(self, payload: Any, **given: Any) -> Sequence[Effect]:
        self.sent += 1
        return [Transmit(self.others(), Said(self.me, self.sent, payload))]

    def receive(self, message: Said, *, now: int | None = None) -> Sequence[Effect]:
        self.heard += 1
        note = Transmit((message.sender,), Said(self.me, 0, self.note_payload))
        deliver = [] if self.is_control(message) else [Deliver(message)]
        return [*deliver, *[note] * self.answers]

    def is_control(self, message: Said) -> bool:
        return message.seq == 0


class Beating(Chatty):
    """The same with replies after a delay."""

    guarantee = Guarantee(Relation.NONE, needs_time=True)


class Doubling(Beating):
    """Two replies to every control message, each a second or more later."""

    answers = 2

    @classmethod
    def trial_options(cls, members: Sequence[int]) -> Mapping[str, Any]:
        return {"bounds": Bounds[int](least_s=1, most_s=2)}


def test_an_answer_to_every_answer_ends_the_search() -> None:
    found = explore(make_flat_group("chatty", Chatty, 2), SearchLimits(1))
    assert found.failure is not None
    assert found.failure.what == ENDLESS
    assert found.transitions < 10_000


def test_an_answer_to_every_answer_ends_a_run_before_time_passes() -> None:
    failure = require_failure(
        conform(
            make_flat_group("beating", Beating, 2), SuitePlan(runs=1, messages=2, twins=False)
        ).failure
    )
    assert failure.what == ENDLESS


def test_ever_more_answers_end_the_search() -> None:
    company = make_flat_group("doubling", Doubling, 2)
    found = explore(company, SearchLimits(1, send_until=20))
    assert found.failure is not None
    assert found.failure.what == ENDLESS
    assert found.states < 10_000
    shown = len(found.failure.actions)
    assert shown == SHOWN_ACTIONS
    assert f"the first {shown} of " in found.failure.sentence()
