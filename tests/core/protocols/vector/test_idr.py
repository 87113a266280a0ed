"""IDR: only immediate dependencies are sent, against the rule with sets."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from antecede.core.clocks.lanes import items, unpack
from antecede.core.protocols.base import Deliver
from antecede.core.protocols.vector.idr import Idr, IdrMessage
from tests.core.protocols.sending import send_one
from tests.helpers.network import Network


class BySets:
    """Reference: the rule of the text with a dictionary VT and a set CI."""

    def __init__(self, members: int) -> None:
        self.ci: set[tuple[int, int]] = set()

    def send(self) -> set[tuple[int, int]]:
        carried, self.ci = self.ci, set()
        return carried

    def deliver(self, message: IdrMessage) -> None:
        carried = dict(items(message.causes))
        self.ci = {
            (member, number)
            for member, number in self.ci
            if member != message.sender and number > carried.get(member, 0)
        }
        self.ci.add((message.sender, message.seq))


@given(seed=st.integers(0, 2**32), members=st.integers(2, 6))
def test_ci_is_that_of_the_rule_with_sets(seed: int, members: int) -> None:
    group = [Idr(k, range(members)) for k in range(members)]
    rules = [BySets(members) for _ in range(members)]
    flight: list[tuple[int, IdrMessage]] = []
    draw = random.Random(seed)
    for _ in range(60):
        if flight and draw.random() < 0.7:
            target, message = flight.pop(draw.randrange(len(flight)))
            for effect in group[target].receive(message):
                if isinstance(effect, Deliver):
                    rules[target].deliver(effect.message)
            storage = 4 * members + 8 * len(rules[target].ci)
            assert group[target].storage_bytes() == storage
        else:
            at = draw.randrange(members)
            message = send_one(group[at])
            carried = rules[at].send()
            assert set(items(message.causes)) == carried
            assert group[at].control_bytes(message) == 8 * len(carried)
            flight += [(target, message) for target in range(members) if target != at]


@given(seed=st.integers(0, 2**32))
def test_what_travels_is_exactly_the_immediate_dependencies(seed: int) -> None:
    network = Network(Idr, 4, seed).steps(60)
    for key, message in network.sent.items():
        carried = set(items(message.causes))
        own = {(key[0], key[1] - 1)} if key[1] > 1 else set()
        past = network.truth.past[key]
        immediate = {p for p in past if not any(p in network.truth.past[q] for q in past)}
        assert immediate - own <= carried
        assert carried <= past
        for one in carried:
            assert not any(one in network.truth.past[other] for other in carried)


def test_a_chain_carries_one_pair() -> None:
    group = [Idr(k, range(3)) for k in range(3)]
    a = send_one(group[0])
    group[1].receive(a)
    b = send_one(group[1])
    for message in (a, b):
        group[2].receive(message)
    c = send_one(group[2])
    assert unpack(c.causes, 3) == (0, 1, 0)
    assert send_one(group[2]).causes == 0


def test_a_newcomer_depends_on_its_sponsors_frontier() -> None:
    sponsor, other = Idr(0, range(2)), Idr(1, range(2))
    o1 = send_one(other)
    s1 = send_one(sponsor)
    sponsor.receive(o1)
    newcomer = Idr(2, [2])
    newcomer.install_join_state(sponsor.join_state())
    assert unpack(send_one(newcomer).causes, 3) == (s1.seq, o1.seq, 0)
