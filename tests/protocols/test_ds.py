"""DS: the sequences of a causal past, by sets; the same waits as BSS; 8 bytes a process."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from antecede.clocks.intervals import Intervals
from antecede.protocols.base import Deliver, Hold, MessageId, Transmit
from antecede.protocols.vector.bss import Bss
from antecede.protocols.vector.ds import Ds, DsMessage
from tests.protocols.flat_tools import Network


def sent(member: Ds, payload: object = None) -> DsMessage:
    (effect,) = member.send(payload)
    assert isinstance(effect, Transmit)
    message: DsMessage = effect.message
    return message


@given(seed=st.integers(0, 2**32), members=st.integers(2, 6))
def test_sequences_are_the_send_numbers_of_the_past(seed: int, members: int) -> None:
    """Evropeytsev et al. 2016, section 3.2, in one-peer groups: one sequence a process, from 1, and
    none is missing.
    """
    network = Network(Ds, members, seed)
    network.run(50)
    for key, message in network.sent.items():
        past = network.past[key]
        sequences = network.members[0].sequences(message)  # type: ignore[attr-defined]
        exact = {
            k: Intervals.of(seq for sender, seq in past if sender == k) for k in range(members)
        }
        assert sequences == {k: numbers for k, numbers in exact.items() if numbers.bounds}
        assert all(len(numbers.nodes) == 1 for numbers in sequences.values())
        others = [k for k in sequences if k != key[0]]
        assert network.members[0].control_bytes(message) == 8 * len(others)


@given(seed=st.integers(0, 2**32), members=st.integers(2, 5))
def test_bytes_and_deliveries_are_those_of_bss(seed: int, members: int) -> None:
    draw = random.Random(seed)
    ds = [Ds(k, range(members)) for k in range(members)]
    bss = [Bss(k, range(members)) for k in range(members)]
    flight: list[tuple[int, tuple[Any, Any]]] = []
    for _ in range(60):
        if flight and draw.random() < 0.7:
            target, (one, other) = flight.pop(draw.randrange(len(flight)))
            answers = ds[target].receive(one), bss[target].receive(other)
            shown = [[(type(e), *e.message[:3]) for e in answer] for answer in answers]
            assert shown[0] == shown[1]
        else:
            at = draw.randrange(members)
            pair = ds[at].send(None)[0].message, bss[at].send(None)[0].message
            assert ds[at].encode(pair[0]) == bss[at].encode(pair[1])
            flight += [(target, pair) for target in range(members) if target != at]


def test_who_said_nothing_is_not_named() -> None:
    group = [Ds(k, range(50)) for k in range(50)]
    first = sent(group[7])
    assert group[0].control_bytes(first) == 0
    group[9].receive(first)
    answer = sent(group[9])
    assert group[0].control_bytes(answer) == 8
    assert group[0].sequences(answer) == {7: Intervals.up_to(1)}
    assert len(group[0].encode(answer)) == 1 + 1 + 1 + 2
    assert group[0].receive(answer) == (Hold(answer, (MessageId(7, 1),)),)
    assert list(group[0].receive(first)) == [Deliver(first), Deliver(answer)]
    assert group[0].storage_bytes() == 200
