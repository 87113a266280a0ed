"""Hierarchical protocol: joins, leaves, snapshots."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede.core.protocols.base import AFTER_LEAVE, Discard, Protocol, Transmit
from antecede.core.protocols.hierarchical.external import ExternalPeer
from antecede.core.protocols.hierarchical.internal import InternalPeer
from antecede.core.protocols.hierarchical.messages import External, Upward
from antecede.core.protocols.hierarchical.roles import Topology, hierarchical
from antecede.core.protocols.hierarchical.super_peer import SuperPeer
from antecede.core.protocols.hierarchical.translation import SAFE, TranslationTable
from antecede.errors import LocalError, SequenceError
from tests.core.protocols.hierarchical.network import HierarchicalNetwork, make_skewed_delay
from tests.helpers.network import FOREVER_S

TOPOLOGY = Topology({1: (10, 11), 2: (20, 21)}, (30, 31, 32))


class MembershipChanges:
    """Random joins and leaves of peers; every group keeps a peer."""

    def __init__(self, network: HierarchicalNetwork, pruning: str) -> None:
        self.network = network
        self.pruning = pruning
        self.next = 100
        self.joined = self.left = 0

    def change(self) -> None:
        draw = self.network.random.random()
        if draw < 0.1:
            self.join()
        elif draw < 0.2:
            self.leave()

    def join(self) -> None:
        network, me = self.network, self.next
        self.next += 1
        self.joined += 1
        if network.random.random() < 0.5:
            super_peer = network.random.choice((1, 2))
            pruning = self.pruning
            network.join_internal(
                InternalPeer(me, (me, super_peer), super_peer, pruning=pruning, ack_after=2)
            )
        else:
            sponsors = [m.me for m in network.members.values() if isinstance(m, ExternalPeer)]
            network.join_external(ExternalPeer(me, (me,), (1, 2)), network.random.choice(sponsors))

    def leave(self) -> None:
        members = self.network.members
        outside = [m.me for m in members.values() if isinstance(m, ExternalPeer)][1:]
        inside = [at for s in (1, 2) for at in self.group(s)[1:]]
        if gone := outside + inside:
            self.network.leave(self.network.random.choice(gone))
            self.left += 1

    def group(self, super_peer: int) -> tuple[int, ...]:
        member = self.network.members[super_peer]
        assert isinstance(member, SuperPeer)
        return member.group


def run_changes(seed: int, pruning: str) -> tuple[HierarchicalNetwork, MembershipChanges]:
    rng = random.Random(seed)
    skew = {at: rng.choice((0.2, 1.0, 5.0)) for at in range(400)}
    members = hierarchical(TOPOLOGY, pruning=pruning, ack_after=0 if pruning == "none" else 2)
    network = HierarchicalNetwork(
        members, seed, delay=make_skewed_delay(lambda a, b: skew[(a * 7 + b) % 400])
    )
    changing = MembershipChanges(network, pruning)
    for _ in range(50):
        changing.change()
        network.send(network.anyone())
        network.steps(network.random.randrange(20), sends=0.0)
    return network, changing


@pytest.mark.slow
@given(seed=st.integers(0, 2**32), pruning=st.sampled_from(("safe", "none")))
def test_joins_and_leaves_keep_the_order_and_lose_nothing(seed: int, pruning: str) -> None:
    network, _ = run_changes(seed, pruning)
    assert network.finish().early == []


def test_joins_and_leaves_do_happen() -> None:
    changes = [run_changes(seed, "safe")[1] for seed in range(10)]
    assert sum(change.joined for change in changes) > 20
    assert sum(change.left for change in changes) > 20


def test_a_newcomer_of_a_group_begins_where_its_super_peer_is() -> None:
    members = hierarchical(Topology({1: (4,)}, (2, 3)))
    super_peer = members[1]
    assert isinstance(super_peer, SuperPeer)
    super_peer.receive(External(2, 1, (), (), (0, 0), "x"))
    super_peer.receive(External(3, 1, ((2, 1),), (), (0, 0), "y"))
    newcomer = InternalPeer(5, (1, 4, 5), 1)
    newcomer.install_join_state(super_peer.join_state())
    super_peer.join(5)
    assert newcomer.describe() == {"SN": "0", "RV": "11", "DV": "01"}
    (up,) = newcomer.send("hello")
    outward = super_peer.receive(up.message)[1]
    assert outward.message.counts == ((3, 1),)


def test_a_newcomer_outside_begins_from_its_sponsors_vtx_and_ci() -> None:
    members = hierarchical(Topology({1: (4,)}, (2, 3)))
    sponsor = members[2]
    sponsor.send("x")
    sponsor.receive(External(1, 1, (), (), (0, 0), "a"))
    newcomer = ExternalPeer(5, (2, 3, 5), (1,))
    newcomer.install_join_state(sponsor.join_state())
    assert newcomer.describe() == {"VTx": "(1, 1, 0, 0)", "CI": "<1, 1>, <2, 1>"}
    assert newcomer.others() == (1, 2, 3)


def test_after_a_leave_the_last_number_is_the_limit() -> None:
    members = hierarchical(Topology({1: (4, 5)}, (2, 3)))
    super_peer, outside = members[1], members[3]
    super_peer.leave(4, 1)
    with pytest.raises(SequenceError, match="left after 1"):
        super_peer.receive(Upward(4, 2, (0, 0), 0, "late"))
    assert len(super_peer.receive(Upward(4, 1, (0, 0), 0, "last"))) == 2
    for member in (super_peer, outside):
        member.leave(2, 1)
        with pytest.raises(SequenceError, match="left after message 1"):
            member.receive(External(2, 2, (), (), (0, 0), "late"))
        member.receive(External(2, 1, (), (), (0, 0), "last"))


def test_a_peer_that_left_blocks_no_pruning() -> None:
    members = hierarchical(Topology({1: (4, 5)}, (2,)))
    super_peer = members[1]
    assert isinstance(super_peer, SuperPeer)
    super_peer.receive(External(2, 1, (), (), (0, 0), "x"))
    super_peer.receive(Upward(4, 1, (0, 1), 1, "a"))
    assert list(super_peer.table.origins) == [1]
    super_peer.leave(5, 0)
    assert list(super_peer.table.origins) == []


@pytest.mark.parametrize(
    ("at", "call", "arguments"),
    [
        (4, "join", (5,)),
        (4, "leave", (1, 0)),
        (4, "leave", (9, 0)),
        (1, "join", (5,)),
        (1, "join_external", (2,)),
        (1, "leave", (9, 0)),
        (2, "join", (3,)),
        (2, "leave", (2, 0)),
        (2, "leave", (9, 0)),
        (2, "join_super_peer", (1,)),
        (1, "join_super_peer", (3,)),
        (2, "adopt_of_super", ()),
    ],
)
def test_wrong_membership_calls_change_nothing(
    at: int, call: str, arguments: tuple[int, ...]
) -> None:
    member: Protocol = hierarchical(Topology({1: (4, 5)}, (2, 3)))[at]
    before = member.snapshot()
    if call == "adopt_of_super":
        call, arguments = "leave", (3, -1)
    with pytest.raises(LocalError):
        getattr(member, call)(*arguments)
    assert member.snapshot() == before


@pytest.mark.slow
@given(seed=st.integers(0, 2**32), pruning=st.sampled_from(("safe", "none", "published")))
def test_snapshot_and_restore_at_any_point_change_nothing(seed: int, pruning: str) -> None:

    def fresh() -> dict[int, Protocol]:
        return hierarchical(TOPOLOGY, pruning=pruning, ack_after=0 if pruning == "none" else 2)

    tolerant = pruning == "published"
    plain, restored = (
        HierarchicalNetwork(fresh(), seed, copies=0.2, tolerant=tolerant) for _ in range(2)
    )
    for _ in range(25):
        plain.steps(12, sends=0.08)
        for at, member in restored.members.items():
            state = member.snapshot()
            hash(state)
            other = fresh()[at]
            other.restore(state)
            assert other.snapshot() == state
            restored.members[at] = other
        restored.steps(12, sends=0.08)
    assert plain.run(FOREVER_S).truth.delivered == restored.run(FOREVER_S).truth.delivered
    for at, member in plain.members.items():
        assert member.snapshot() == restored.members[at].snapshot()


def test_a_late_word_of_a_peer_neither_lowers_its_floor_nor_brings_it_back() -> None:
    table = TranslationTable(1, (4, 5), (), SAFE)
    table.raise_lower_bound(4, 5)
    table.raise_lower_bound(4, 3)
    assert table.lower_bounds == {4: 5, 5: 0}
    del table.lower_bounds[4]
    table.raise_lower_bound(4, 9)
    assert table.lower_bounds == {5: 0}


# -- super peers that come and go ------------------------------------------------------------


class SuperPeerChanges(MembershipChanges):
    """Random joins and leaves of super peers, too."""

    def __init__(self, network: HierarchicalNetwork, pruning: str) -> None:
        super().__init__(network, pruning)
        self.supers_joined = self.supers_left = 0

    def supers(self) -> list[int]:
        return [at for at, one in self.network.members.items() if isinstance(one, SuperPeer)]

    def change(self) -> None:
        network, draw = self.network, self.network.random
        outside = [a for a, m in network.members.items() if isinstance(m, SuperPeer | ExternalPeer)]
        kind = draw.random()
        self.next += 1
        if kind < 0.1:
            made = SuperPeer(
                *(self.next, (), (), (self.next,)), pruning=self.pruning, even_to_nobody=True
            )
            network.join_super_peer(made, draw.choice(outside))
            self.supers_joined += 1
        elif kind < 0.3:
            super_peer, me = draw.choice(self.supers()), self.next
            network.join_internal(
                InternalPeer(me, (me, super_peer), super_peer, pruning=self.pruning, ack_after=2)
            )
        elif kind < 0.4:
            network.join_external(ExternalPeer(self.next, (self.next,), ()), draw.choice(outside))
        elif kind < 0.6 and len(self.supers()) > 1:
            super_peer = draw.choice(self.supers())
            for at in self.group(super_peer):
                network.leave(at)
            self.supers_left += network.leave_super_peer(super_peer)


def run_super_peer_changes(seed: int, pruning: str) -> tuple[HierarchicalNetwork, SuperPeerChanges]:
    members = hierarchical(TOPOLOGY, pruning=pruning, ack_after=0 if pruning == "none" else 2)
    for at in (1, 2):
        members[at].sends_to_empty_groups = True  # type: ignore[attr-defined]
    network = HierarchicalNetwork(members, seed)
    changing = SuperPeerChanges(network, pruning)
    for _ in range(50):
        changing.change()
        network.send(network.anyone())
        network.steps(network.random.randrange(20), sends=0.0)
    return network, changing


@pytest.mark.slow
@given(seed=st.integers(0, 2**32), pruning=st.sampled_from(("safe", "none")))
def test_super_peers_come_and_go_in_order_and_lose_nothing(seed: int, pruning: str) -> None:
    network, _ = run_super_peer_changes(seed, pruning)
    assert network.finish().early == []


def test_super_peers_do_come_and_go() -> None:
    changes = [run_super_peer_changes(seed, "safe")[1] for seed in range(10)]
    assert sum(change.supers_joined for change in changes) > 20
    assert sum(change.supers_left for change in changes) > 20


def mesh_of_three() -> tuple[SuperPeer, ExternalPeer, ExternalPeer]:
    members = hierarchical(Topology({1: (10,)}, (2, 3)))
    super_peer, one, other = members[1], members[2], members[3]
    assert isinstance(super_peer, SuperPeer)
    assert isinstance(one, ExternalPeer)
    assert isinstance(other, ExternalPeer)
    return super_peer, one, other


def test_a_new_super_peer_makes_its_group_follow_what_its_sponsor_has() -> None:
    _, sponsor, other = mesh_of_three()
    (x,) = sponsor.send("x")
    newcomer = SuperPeer(4, (), (), (4,), even_to_nobody=True)
    newcomer.install_join_state(sponsor.join_state())
    other.join_super_peer(4)
    newcomer.join(20)
    inside = InternalPeer(20, (20, 4), 4)
    inside.install_join_state(newcomer.join_state())
    (up,) = inside.send("after x")
    outward = newcomer.receive(up.message)[1]
    assert isinstance(outward, Transmit)
    assert outward.to == (1, 2, 3)
    assert [e.message.payload for e in other.receive(outward.message)] == ["after x"]
    assert other.list_held()[0].missing == ((2, 1),)
    effects = other.receive(x.message)
    assert [e.message.payload for e in effects] == ["x", "after x"]


def test_a_super_peer_is_as_good_a_sponsor_as_an_external_peer() -> None:
    super_peer, one, other = mesh_of_three()
    (x,) = one.send("x")
    super_peer.receive(x.message)
    inside = InternalPeer(10, (10, 1), 1)
    (up,) = inside.send("a")
    _, a = super_peer.receive(up.message)
    newcomer = ExternalPeer(5, (5,), ())
    newcomer.install_join_state(super_peer.outer_frontier())
    other.join(5)
    (after,) = newcomer.send("after both")
    assert after.message.counts == ((2, 1),)
    assert after.message.vectors == ((1, (1, 1)),)  # a is the second of that group
    other.receive(after.message)
    assert set(other.list_held()[0].missing) == {(2, 1), (1, 2)}
    other.receive(a.message)
    delivered = other.receive(x.message)
    assert [e.message.payload for e in delivered] == ["x", "after both"]


def test_a_super_peer_that_left_says_nothing_more_and_stays_known() -> None:
    _, one, other = mesh_of_three()
    one.receive(External(1, 1, (), (), (0, 0), "its last"))
    held = External(1, 3, (), ((1, (1, 1)),), (0, 0), "held for number 2")
    one.receive(held)
    assert list(one.leave(1, 1)) == [Discard(held, AFTER_LEAVE)]
    with pytest.raises(SequenceError, match="it left after 1"):
        one.receive(External(1, 2, (), (), (0, 0), "late"))
    assert one.others() == (3,)
    (said,) = one.send("it is still named")
    other.receive(External(1, 1, (), (), (0, 0), "its last"))
    assert [e.message.payload for e in other.receive(said.message)] == ["it is still named"]


def test_who_sponsors_a_super_peer_tells_what_it_must_know_of_those_who_left() -> None:
    _, one, _ = mesh_of_three()
    one.leave(3, 0)
    newcomer = SuperPeer(4, (), (), (4,))
    newcomer.install_join_state(one.join_state())
    with pytest.raises(SequenceError, match="left after message 0"):
        newcomer.receive(External(3, 1, (), (), (0, 0), "late"))
    newcomer.join(20)
    with pytest.raises(LocalError, match="join state must be installed before"):
        newcomer.install_join_state(one.join_state())


def test_to_nobody_is_transmitted_where_that_is_asked_for() -> None:
    for sends_to_empty_groups in (False, True):
        super_peer = SuperPeer(1, (), (), (1,), even_to_nobody=sends_to_empty_groups)
        super_peer.join(10)
        super_peer.leave(10, 1)
        effects = super_peer.receive(Upward(10, 1, (0, 0), 0, "said before it left"))
        assert [e.to for e in effects if isinstance(e, Transmit)] == [
            (),
            (),
        ] * sends_to_empty_groups
