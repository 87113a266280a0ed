"""Delay caused by recovery: the required `recovery_s`, by the lost messages."""

from __future__ import annotations

from typing import Any

import pytest

from antecede.core.clocks.bounds import Bounds
from antecede.core.protocols.base import Deliver, Effect, Transmit
from antecede.core.protocols.clock_based.linear_physical import LinearPhysical
from antecede.core.protocols.clock_based.messages import NullMessage, StampedMessage
from tests.core.protocols.seconds import s

BOUNDS = Bounds[int](accuracy_s=0, least_s=1, most_s=1)
HEARTBEAT_S, RETRY_S, STEP_S = 10.0, 1.0, 0.25


def run_group(nulls_lost: int, recovery_s: float) -> list[Any]:
    """Return the deliveries of 2, which loses a of 0 and the null messages that would reveal it; b
    of 1 replies to a.
    """
    options: Any = {"bounds": BOUNDS, "delivery": "bound", "heartbeat_s": HEARTBEAT_S}
    options |= {"retry_s": RETRY_S, "recovery_s": recovery_s}
    members = {k: LinearPhysical(k, range(3), **options) for k in range(3)}
    flight: list[tuple[int, int, Any]] = []
    order: list[Any] = []
    lost = 0

    def carry_out(at: int, effects: Any, now: int) -> None:
        nonlocal lost
        effect: Effect
        for effect in effects:
            if isinstance(effect, Deliver) and at == 2:
                order.append(effect.message.payload)
            if not isinstance(effect, Transmit):
                continue
            message = effect.message
            tells = isinstance(message, StampedMessage | NullMessage)
            told = isinstance(message, StampedMessage) or getattr(message, "last", 0) == 1
            for to in effect.to:
                if (at, to) == (0, 2) and tells and told and lost <= nulls_lost:
                    lost += 1
                else:
                    flight.append((now + s(1), to, message))

    for k, member in members.items():
        carry_out(k, member.tick(0), 0)
    carry_out(0, members[0].send("a", now=0), 0)
    for step in range(400):
        now = step * s(STEP_S)
        for copy in [copy for copy in flight if copy[0] <= now]:
            flight.remove(copy)
            carry_out(copy[1], members[copy[1]].receive(copy[2], now=now), now)
        if now == s(1):
            carry_out(1, members[1].send("b", now=now), now)
        for k, member in members.items():
            carry_out(k, member.tick(now), now)
    return order


@pytest.mark.parametrize("nulls_lost", [0, 1, 2])
def test_a_heartbeat_more_for_each_lost_null_message(nulls_lost: int) -> None:
    budget = (1 + nulls_lost) * HEARTBEAT_S + 2 * BOUNDS.most_s + 2 * STEP_S
    assert run_group(nulls_lost, budget) == ["a", "b"]


def test_a_retry_and_two_delays_do_not_make_up_for_a_lost_null_message() -> None:
    budget = HEARTBEAT_S + 2 * BOUNDS.most_s + RETRY_S + 2 * BOUNDS.most_s + 2 * STEP_S
    assert run_group(1, budget) == ["b", "a"]
