"""The hierarchical protocol in an adversarial network, and the smallest published failures."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede.core.clocks.bits import positions
from antecede.core.protocols.base import Discard, Protocol
from antecede.core.protocols.hierarchical.external import ExternalPeer
from antecede.core.protocols.hierarchical.internal import InternalPeer
from antecede.core.protocols.hierarchical.messages import (
    Acknowledgement,
    Downward,
    External,
    Upward,
)
from antecede.core.protocols.hierarchical.roles import Topology, hierarchical
from antecede.core.protocols.hierarchical.super_peer import OVERTAKEN, SuperPeer
from antecede.errors import LocalError
from antecede.lab.check.harness.network import DELIVERED, HELD, World
from tests.core.protocols.hierarchical.network import HierarchicalNetwork, make_skewed_delay
from tests.helpers.network import FOREVER_S, anyhow

MESSAGES = 40


def random_topology(rng: random.Random) -> Topology:
    addresses = list(range(40))
    rng.shuffle(addresses)
    groups: dict[int, tuple[int, ...]] = {}
    for _ in range(rng.randint(1, 4)):
        super_peer = addresses.pop()
        groups[super_peer] = tuple(addresses.pop() for _ in range(rng.randint(1, 3)))
    return Topology(groups, tuple(addresses.pop() for _ in range(rng.randint(0, 3))))


def run(seed: int, *, tolerant: bool = False, **options: Any) -> HierarchicalNetwork:
    """Run a random system in a network of skewed, reordering, duplicating links."""
    rng = random.Random(seed)
    members = hierarchical(random_topology(rng), **options)
    skew = {(a, b): rng.choice((0.2, 1.0, 5.0)) for a in members for b in members}
    delay = make_skewed_delay(lambda a, b: skew[a, b])
    sends = rng.choice((0.05, 0.1, 0.3))
    network = HierarchicalNetwork(members, seed, delay=delay, tolerant=tolerant)
    return network.steps(round(MESSAGES / sends), sends=sends).run(FOREVER_S)


def supers(network: HierarchicalNetwork) -> list[SuperPeer]:
    return [m for m in network.members.values() if isinstance(m, SuperPeer)]


@given(seed=st.integers(0, 2**32), ack_after=st.sampled_from((0, 1, 3)))
def test_safe_pruning_is_causal_and_delivers_all(seed: int, ack_after: int) -> None:
    assert run(seed, pruning="safe", ack_after=ack_after).finish().early == []


@pytest.mark.slow
@given(seed=st.integers(0, 2**32))
def test_no_pruning_is_causal_and_delivers_all(seed: int) -> None:
    assert run(seed, pruning="none").finish().early == []


@pytest.mark.parametrize(
    "options",
    [{"pruning": "published"}, {"as_published": ("listing6",)}, {"as_published": ("listing12",)}],
    ids=str,
)
def test_each_published_defect_shows(options: dict[str, Any]) -> None:
    assert any(run(seed, tolerant=True, **options).early for seed in range(60))


@pytest.mark.slow
def test_safe_pruning_and_acknowledgements_do_shorten_tt() -> None:
    entries = {"none": 0, "safe": 0}
    for pruning, ack_after in (("none", 0), ("safe", 1)):
        for seed in range(20):
            network = run(seed, pruning=pruning, ack_after=ack_after)
            entries[pruning] += sum(len(s.table.origins) for s in supers(network))
    assert entries["safe"] < entries["none"] / 2


@given(seed=st.integers(0, 2**32))
def test_external_peers_never_wait_unnecessaryly_and_internal_peers_only_for_their_own(
    seed: int,
) -> None:
    network = run(seed)
    outside = [at for at, _ in network.idle if isinstance(network.members[at], ExternalPeer)]
    assert outside == []


@pytest.mark.slow
def test_without_own_copies_under_way_internal_peers_never_wait_unnecessaryly() -> None:

    def own_at_once(draw: random.Random, source: int, target: int, message: Any) -> int:
        own = isinstance(message, Downward) and message.payload[0] == target
        return 0 if own or isinstance(message, Upward) else anyhow(draw, source, target, message)

    for seed in range(40):
        members = hierarchical(random_topology(random.Random(seed)))
        network = HierarchicalNetwork(members, seed, delay=own_at_once, copies=0.0)
        for _ in range(MESSAGES):
            network.send(network.anyone())
            network.run(round(0.6 * network.random.random(), 9))
        assert network.finish().early == [] == network.idle
        assert network.carried


@pytest.mark.slow
@given(seed=st.integers(0, 2**32))
def test_lemma_3_a_bit_is_set_iff_it_is_an_immediate_dependency(seed: int) -> None:
    """Evropeytsev et al. 2016, Lemma 3, judged by the pasts as sets: DV of every message inside its
    group.
    """
    network = run(seed, pruning="none")
    for super_peer in supers(network):
        down = [m for at, m in network.carried if at == super_peer.me and type(m) is Downward]
        labels = {m.seq: m.payload for m in down}
        for message in down:
            past = network.truth.past[message.payload]
            implied = set().union(*(network.truth.past[label] for label in past))
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


def make_published_pruning(pruning: str) -> World:
    """Run one internal peer and two external peers with three messages: x, y of 2, and a of 4
    between.

    Peer 4 sends `a` after x, then delivers y, which names x. The super peer learns of that out of
    band and forgets x. Then it gets `a`, which names x.
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
    world = make_published_pruning("published")
    assert [step.kind for step in world.arrive(3, "a")] == ["arrive", DELIVERED]  # before x


@pytest.mark.parametrize("pruning", ["safe", "none"])
def test_the_same_with_the_repair_waits(pruning: str) -> None:
    world = make_published_pruning(pruning)
    assert [(step.kind, step.detail) for step in world.arrive(3, "a")][1:] == [("hold", ("x",))]
    assert [step.label for step in world.arrive(3, "x") if step.kind == DELIVERED] == ["x", "a"]


def test_published_pruning_by_acknowledgements_fails_alike() -> None:
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


@pytest.mark.parametrize("printed", [(), ("listing6",)])
def test_listing_6_without_not_violates_causality_with_three_messages(
    printed: tuple[str, ...],
) -> None:
    world = World(hierarchical(Topology({1: (4, 5, 6)}), as_published=printed))
    world.send(4, "a")
    world.send(6, "b")
    for at, label in ((1, "a"), (1, "b"), (5, "a"), (5, "b")):
        world.arrive(at, label)
    world.send(5, "c")
    world.arrive(1, "c")
    world.arrive(6, "b")
    kinds = [step.kind for step in world.arrive(6, "c")]
    assert kinds == ["arrive", DELIVERED if printed else HELD]


@pytest.mark.parametrize("printed", [(), ("listing12",)])
def test_listing_12_without_not_violates_causality_with_three_messages(
    printed: tuple[str, ...],
) -> None:
    world = World(hierarchical(Topology({1: (4,)}, (2, 3)), as_published=printed))
    for label in ("a", "b"):
        world.send(4, label)
        world.arrive(1, label)
        world.arrive(2, label)
    world.send(2, "c")
    world.arrive(3, "a")
    kinds = [step.kind for step in world.arrive(3, "c")]
    assert kinds == ["arrive", DELIVERED if printed else HELD]


def test_the_unnecessary_wait_an_own_number_is_not_known_before_the_copy_comes() -> None:
    world = World(hierarchical(Topology({1: (4, 5)})))
    world.send(4, "a")
    for at, label in ((1, "a"), (5, "a")):
        world.arrive(at, label)
    world.send(5, "b")
    world.arrive(1, "b")
    assert [(step.kind, step.detail) for step in world.arrive(4, "b")][1:] == [(HELD, ("a",))]
    assert [step.kind for step in world.arrive(4, "a")] == ["arrive", "discard", DELIVERED]
    assert not InternalPeer.guarantee.no_unnecessary_wait
    assert ExternalPeer.guarantee.no_unnecessary_wait


# -- safe pruning and acknowledgements -----------------------------------------------------------


def external(sender: int, seq: int, payload: str, *counts: tuple[int, int]) -> External:
    return External(sender, seq, counts, (), (0, 0), payload)


def test_an_acknowledgement_does_not_disown_what_the_peer_may_still_name() -> None:
    members = hierarchical(Topology({1: (4,)}, (2, 3)), ack_after=1)
    peer, super_peer = members[4], members[1]
    assert isinstance(super_peer, SuperPeer)
    for seq, counts in ((1, ()), (2, ())):
        (down,) = super_peer.receive(external(2, seq, f"x{seq}", *counts))
        for effect in peer.receive(down.message):
            if hasattr(effect, "to"):
                assert effect.message.lower_bound == seq - 1
                super_peer.receive(effect.message)
    # x2 names x1 (Last), so x1 is deleted; x2 is in DV and stays.
    assert list(super_peer.table.origins) == [2]
    (up,) = peer.send("a")
    _, outward = super_peer.receive(up.message)
    assert outward.message.counts == ((2, 2),)
    assert not super_peer.table.origins


def test_an_acknowledgement_that_overtakes_a_message_is_set_aside() -> None:
    members = hierarchical(Topology({1: (4,)}, (2, 3)))
    super_peer = members[1]
    assert isinstance(super_peer, SuperPeer)
    super_peer.receive(external(2, 1, "x"))
    note = Acknowledgement(4, 1, 1, b"")
    before = super_peer.snapshot()
    assert super_peer.receive(note) == (Discard(note, OVERTAKEN),)
    assert super_peer.snapshot() == before
    super_peer.receive(Upward(4, 1, (0, 1), 0, "a"))
    super_peer.receive(note)
    assert not super_peer.table.origins


def test_silent_peers_do_not_let_tt_grow() -> None:
    members = hierarchical(Topology({1: (4, 5)}, (2,)), ack_after=8)
    super_peer = members[1]
    assert isinstance(super_peer, SuperPeer)
    for seq in range(1, 400):
        for effect in super_peer.receive(external(2, seq, "x")):
            for peer in (4, 5):
                for answer in members[peer].receive(effect.message):
                    if hasattr(answer, "to"):
                        super_peer.receive(answer.message)
        assert len(super_peer.table.origins) <= 9


def test_a_group_without_peers_keeps_only_what_a_newcomer_could_name() -> None:
    super_peer = hierarchical(Topology({1: ()}, (2,)))[1]
    assert isinstance(super_peer, SuperPeer)
    for seq in range(1, 50):
        assert super_peer.receive(external(2, seq, "x")) == []
    assert list(super_peer.table.origins) == [49]


# -- wrong calls ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [{"pruning": "fast"}, {"as_published": ("listing7",)}, {"as_published": ("listing6", "x")}],
)
def test_unknown_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(LocalError, match=r"fast|listing7|'x'"):
        hierarchical(Topology({1: (2,)}), **options)


@pytest.mark.parametrize(
    "topology", [Topology({1: (2, 2)}), Topology({1: (2,)}, (1,)), Topology({1: (-3,)})]
)
def test_bad_topologies_are_refused(topology: Topology) -> None:
    with pytest.raises(LocalError, match="distinct"):
        hierarchical(topology)


def test_a_super_peer_sends_nothing_of_its_own() -> None:
    member: Protocol = hierarchical(Topology({1: (2,)}))[1]
    assert not member.application
    with pytest.raises(LocalError, match="super peer"):
        member.send("hello")


def test_published_pruning_refuses_impossible_knowledge() -> None:
    member = hierarchical(Topology({1: (2,)}), pruning="published")[1]
    assert isinstance(member, SuperPeer)
    for peer, prefix in ((3, 0), (2, 1), (2, -1)):
        with pytest.raises(LocalError, match="prefix"):
            member.learn_delivered(peer, prefix)


def test_an_acknowledgement_is_sent_only_when_the_floor_has_risen() -> None:
    peer = hierarchical(Topology({1: (4, 5)}), ack_after=1)[4]

    def kinds(seq: int) -> list[str]:
        effects = peer.receive(Downward(1, seq, 0, (0, 0), "x"))
        return [type(effect).__name__ for effect in effects]

    assert kinds(2) == ["Deliver"]  # RV has a gap at 1
    assert kinds(1) == ["Deliver"]  # no gap up to 2, but DV names 1
    peer.send("a")
    assert kinds(3) == ["Deliver"]  # told by the message itself: 2


def test_i_is_sent_again_with_each_message_that_names_a_translated_one() -> None:
    """Listing 14 line 8: the first receiver of this message need not have I before."""
    super_peer = hierarchical(Topology({1: (4, 5)}, (2,)))[1]
    super_peer.receive(external(2, 1, "x"))
    super_peer.receive(external(2, 2, "y"))
    sent = []
    for peer, dv in ((4, (0, 0b1)), (5, (0, 0b1))):
        sent.append(super_peer.receive(Upward(peer, 1, dv, 0, "a"))[1])
    assert [effect.message.translated for effect in sent] == [(0, 0b11), (0, 0b1)]
