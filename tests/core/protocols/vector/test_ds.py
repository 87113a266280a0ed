"""DS: sequences of a causal past against sets, the waits of BSS, 8 bytes per process."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from antecede.core.clocks.intervals import Intervals
from antecede.core.protocols.base import Deliver, Hold, MessageId
from antecede.core.protocols.vector.bss import Bss
from antecede.core.protocols.vector.ds import Ds
from tests.core.protocols.sending import send_one
from tests.helpers.network import Network, play


@given(seed=st.integers(0, 2**32), members=st.integers(2, 6))
def test_sequences_are_the_send_numbers_of_the_past(seed: int, members: int) -> None:
    """Evropeytsev et al. 2016, section 3.2, in one-peer groups: one sequence a process, from 1, and
    none is missing.
    """
    network = Network(Ds, members, seed).steps(50)
    for key, message in network.sent.items():
        past = network.truth.past[key]
        sequences = network.members[0].sequences(message)
        exact = {
            k: Intervals.of(seq for sender, seq in past if sender == k) for k in range(members)
        }
        assert sequences == {k: numbers for k, numbers in exact.items() if numbers.bounds}
        assert all(len(numbers.nodes) == 1 for numbers in sequences.values())
        others = [k for k in sequences if k != key[0]]
        assert network.members[0].control_bytes(message) == 8 * len(others)


@given(seed=st.integers(0, 2**32), members=st.integers(2, 5))
def test_bytes_and_deliveries_are_those_of_bss(seed: int, members: int) -> None:
    one, other = play(Ds, seed, members=members), play(Bss, seed, members=members)
    assert one.truth.delivered == other.truth.delivered
    assert (one.holds, one.discards) == (other.holds, other.discards)
    for key, message in one.sent.items():
        assert one.members[0].encode(message) == other.members[0].encode(other.sent[key])


def test_who_said_nothing_is_not_named() -> None:
    group = [Ds(k, range(50)) for k in range(50)]
    first = send_one(group[7])
    assert group[0].control_bytes(first) == 0
    group[9].receive(first)
    answer = send_one(group[9])
    assert group[0].control_bytes(answer) == 8
    assert group[0].sequences(answer) == {7: Intervals.up_to(1)}
    assert len(group[0].encode(answer)) == 1 + 1 + 1 + 2
    assert group[0].receive(answer) == (Hold(answer, (MessageId(7, 1),)),)
    assert list(group[0].receive(first)) == [Deliver(first), Deliver(answer)]
    assert group[0].storage_bytes() == 200
