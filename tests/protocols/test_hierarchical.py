"""The hierarchical protocol in an adversarial network, and the smallest published failures."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede.check.world import DELIVERED, World
from antecede.clocks.bits import positions
from antecede.errors import LocalError
from antecede.protocols.base import Discard, Protocol
from antecede.protocols.hierarchical import Topology, hierarchical
from antecede.protocols.hierarchical_external import ExternalPeer
from antecede.protocols.hierarchical_internal import InternalPeer
from antecede.protocols.hierarchical_messages import Acknowledgement, Downward, External, Upward
from antecede.protocols.hierarchical_super import OVERTAKEN, SuperPeer
from tests.protocols.hierarchical_network import Network

MESSAGES = 40


def random_topology(rng: random.Random) -> Topology:
    addresses = list(range(40))
    rng.shuffle(addresses)
    groups: dict[int, tuple[int, ...]] = {}
    for _ in range(rng.randint(1, 4)):
        super_peer = addresses.pop()
        groups[super_peer] = tuple(addresses.pop() for _ in range(rng.randint(1, 3)))
    return Topology(groups, tuple(addresses.pop() for _ in range(rng.randint(0, 3))))


def run(seed: int, copies: float = 0.2, **options: Any) -> Network:
    """Run a random system in a network of skewed, reordering, duplicating links."""
    rng = random.Random(seed)
    members = hierarchical(random_topology(rng), **options)
    skew = {(a, b): rng.choice((0.2, 1.0, 5.0)) for a in members for b in members}
    network = Network(members, seed, slow=lambda a, b: skew[a, b], copies=copies)
    network.chatter(MESSAGES, rate=rng.choice((0.5, 2.0, 5.0)))
    return network


def supers(network: Network) -> list[SuperPeer]:
    return [m for m in network.members.values() if isinstance(m, SuperPeer)]


@given(seed=st.integers(0, 2**32), ack_after=st.sampled_from((0, 1, 3)))
def test_safe_pruning_is_causal_and_delivers_all(seed: int, ack_after: int) -> None:
    network = run(seed, pruning="safe", ack_after=ack_after)
    assert network.early == []
    assert network.stuck() == []
    assert all(member.blocked_on() == () for member in network.members.values())


@given(seed=st.integers(0, 2**32))
def test_no_pruning_is_causal_and_delivers_all(seed: int) -> None:
    network = run(seed, pruning="none")
    assert network.early == []
    assert network.stuck() == []


@pytest.mark.parametrize(
    "options",
    [{"pruning": "published"}, {"printed": ("listing6",)}, {"printed": ("listing12",)}],
    ids=str,
)
def test_each_published_defect_shows(options: dict[str, Any]) -> None:
    assert any(run(seed, **options).early for seed in range(60))


def test_safe_pruning_and_acknowledgements_do_shorten_tt() -> None:
    entries = {"none": 0, "safe": 0}
    for pruning in entries:
        for seed in range(20):
            network = run(seed, pruning=pruning, ack_after=1)
            entries[pruning] += sum(len(s.table.origins) for s in supers(network))
    assert entries["safe"] < entries["none"] / 2


@given(seed=st.integers(0, 2**32))
def test_external_peers_never_wait_needlessly_and_internal_peers_only_for_their_own(
    seed: int,
) -> None:
    network = run(seed)
    outside = [
        at for at, _ in network.idle if isinstance(network.members[at], ExternalPeer)
    ]
    assert outside == []


def test_without_own_copies_under_way_internal_peers_never_wait_needlessly() -> None:
    """The only needless wait is the one for the number of an own message."""
    waits = 0
    for seed in range(40):
        rng = random.Random(seed)
        members = hierarchical(random_topology(rng))
        network = Network(members, seed)
        send = network.send

        def send_and_return(at: int, label: str, network: Network = network, send: Any = send) -> None:
            send(at, label)
            if not isinstance(network.members[at], InternalPeer):
                return
            # The way up and the way of the own copy take no time; all else is as before.
            for _ in range(2):
                entry = next(
                    e
                    for e in network.queue
                    if e[4].payload == label and (e[3] == at or isinstance(e[4], Upward))
                )
                network.queue.remove(entry)
                network._carry_out(entry[3], network.members[entry[3]].receive(entry[4]))

        network.send = send_and_return  # type: ignore[method-assign]
        network.chatter(MESSAGES, rate=3.0)
        assert network.idle == []
        assert network.stuck() == [] == network.early
        waits += len(network.carried)
    assert waits


@given(seed=st.integers(0, 2**32))
def test_lemma_3_a_bit_is_set_iff_it_is_an_immediate_dependency(seed: int) -> None:
    """000, Lemma 3, judged by the pasts as sets: DV of every message inside its group."""
    network = run(seed, pruning="none")
    for super_peer in supers(network):
        down = [m for at, m in network.carried if at == super_peer.me and type(m) is Downward]
        labels = {m.seq: m.payload for m in down}
        for message in down:
            past = network.past[message.payload]
            implied = set().union(*(network.past[label] for label in past))
            named = {labels[p] for p in positions(*message.dv)} | {
                labels[message.last] if message.last else message.payload
            }
            named.discard(message.payload)
            here = past & set(labels.values())
            assert here - implied <= named <= here
            if message.sender != super_peer.me:  # DV as the peer sent it, without Last
                own_last = {labels[message.last]} if message.last else set()
                exact = {labels[p] for p in positions(*message.dv)}
                assert exact - own_last == (here - implied) - own_last


def published_pruning_world(pruning: str) -> World:
    """One internal peer, two external peers, three messages: x, y of 2, and a of 4 between.

    Peer 4 sends `a` after x, then delivers y, which names x. When the super peer hears of that
    out of band it forgets x, and then gets `a`, which names x.
    """
    world = World(hierarchical(Topology({1: (4,)}, (2, 3)), pruning=pruning, ack_after=0))
    super_peer = world.members[1]
    assert isinstance(super_peer, SuperPeer)
    world.send(2, "x")
    world.arrive(1, "x")
    world.arrive(4, "x")
    world.send(4, "a")
    world.send(2, "y")
    world.arrive(1, "y")
    world.arrive(4, "y")
    super_peer.learn_delivered(4, 2)
    world.arrive(1, "a")
    return world


def test_published_pruning_violates_causality_with_three_messages() -> None:
    world = published_pruning_world("published")
    assert [step.kind for step in world.arrive(3, "a")] == ["arrive", DELIVERED]  # before x


@pytest.mark.parametrize("pruning", ["safe", "none"])
def test_the_same_with_the_repair_waits(pruning: str) -> None:
    world = published_pruning_world(pruning)
    assert [(step.kind, step.detail) for step in world.arrive(3, "a")][1:] == [("hold", ("x",))]
    assert [step.label for step in world.arrive(3, "x") if step.kind == DELIVERED] == ["x", "a"]


def test_published_pruning_by_acknowledgements_fails_alike() -> None:
    """The peer's word is a message of its own; nothing orders it after the peer's data."""
    members = hierarchical(
        Topology({1: (4,)}, (2, 3)), pruning="published", ack_payload="acknowledgement"
    )
    world = World(members)
    world.send(2, "x")
    world.arrive(1, "x")
    world.arrive(4, "x")
    world.send(4, "a")
    world.send(2, "y")
    world.arrive(1, "y")
    world.arrive(4, "y")
    world.arrive(1, "acknowledgement")
    world.arrive(1, "acknowledgement")
    world.arrive(1, "a")
    assert [step.kind for step in world.arrive(3, "a")] == ["arrive", DELIVERED]


@pytest.mark.parametrize(("printed", "at"), [("listing6", 5), ("listing12", 3)])
def test_a_lost_not_is_a_violation(printed: str, at: int) -> None:
    """a and b are concurrent; c follows both; without the NOT, c names only the later one."""
    a, b, c, judge = (4, 6, 5, 7) if printed == "listing6" else (2, 5, 3, 4)
    groups = {1: (4, 5, 6, 7)} if printed == "listing6" else {1: ()}
    external = () if printed == "listing6" else (2, 3, 4, 5)
    for wrong in (False, True):
        options: dict[str, Any] = {"printed": (printed,) if wrong else ()}
        network = Network(hierarchical(Topology(groups, external), **options), 0)
        assert c == at
        del judge
        judge = 7 if printed == "listing6" else 4
        early = sum(
            bool(Network_of(groups, external, options, (a, b, c), seed).early)
            for seed in range(200)
        )
        assert network.early == []
        assert (early > 0) == (wrong and printed == "listing6")
