"""Claims of Evropeytsev et al. 2016, section 3.1.3 and section 4, by their names.

Lemma 3 is `test_lemma_3_a_bit_is_set_iff_it_is_an_immediate_dependency` in `test_hierarchical`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from antecede.core.clocks.bits import positions
from antecede.core.protocols.hierarchical.messages import PAIR_BYTES, Downward, External, Upward
from antecede.core.protocols.hierarchical.roles import Topology, hierarchical
from antecede.core.protocols.hierarchical.super_peer import SuperPeer
from antecede.lab.check.harness.network import World
from tests.core.protocols.hierarchical.network import HierarchicalNetwork
from tests.core.protocols.hierarchical.test_hierarchical import run, supers
from tests.helpers.truth import Id

SEEDS = range(30)


class Group(NamedTuple):
    """One internal group of a run, and what its super peer numbered."""

    network: HierarchicalNetwork
    super_peer: SuperPeer
    messages: list[Downward]

    def label(self, number: int) -> Id:
        """Return the message that the super peer gave a number."""
        (found,) = {one.payload for one in self.messages if one.seq == number}
        assert isinstance(found, tuple)
        return found

    def own(self) -> list[Downward]:
        """Return the messages that members of the group sent."""
        return [one for one in self.messages if one.sender != self.super_peer.me]


def groups(pruning: str) -> Iterator[Group]:
    for seed in SEEDS:
        network = run(seed, pruning=pruning)
        for super_peer in supers(network):
            mine = [m for at, m in network.carried if at == super_peer.me and type(m) is Downward]
            yield Group(network, super_peer, list(dict.fromkeys(mine)))


@pytest.mark.few(1)
@pytest.mark.parametrize("pruning", ["none", "safe"])
def test_lemma_1_a_set_bit_names_a_message_that_precedes(pruning: str) -> None:
    """Evropeytsev et al. 2016, Lemma 1: if ml.DV[k] is set, then mk -> ml."""
    checked = 0
    for group in groups(pruning):
        for message in group.messages:
            past = group.network.truth.past[message.payload]
            for number in positions(*message.dv):
                assert group.label(number) in past
                checked += 1
    assert checked > 500


@pytest.mark.few(1)
@pytest.mark.parametrize("pruning", ["none", "safe"])
def test_lemma_2_last_names_a_message_of_the_same_sender_that_precedes(pruning: str) -> None:
    """Evropeytsev et al. 2016, Lemma 2: if ml.Last = k, then mk -> ml; both have one sender."""
    checked = 0
    for group in groups(pruning):
        for message in group.messages:
            if message.last:
                before = group.label(message.last)
                assert before in group.network.truth.past[message.payload]
                assert before[0] == message.payload[0]
                checked += 1
    assert checked > 200


@pytest.mark.slow
def test_proposition_1_tt_names_the_external_message_of_a_set_bit() -> None:
    """Evropeytsev et al. 2016, Proposition 1: if ml.DV[k] is set and mk is a message from the
    external group, then TT contains (in, k), where in is the number of mk outside.
    """
    checked = 0
    for group in groups("none"):
        inside = {one.payload for one in group.own()}
        outside = {
            (message.sender, message.seq): message.payload
            for _, message in group.network.carried
            if type(message) is External
        }
        for message in group.own():
            for number in positions(*message.dv):
                if group.label(number) in inside:
                    continue
                process, came_as = group.super_peer.table.origins[number]
                assert outside[process, came_as] == group.label(number)
                assert group.super_peer.table.outs[process][came_as] == number
                checked += 1
    assert checked > 100


@pytest.mark.slow
def test_theorem_1_a_set_bit_names_an_immediate_dependency_of_either_group() -> None:
    """Evropeytsev et al. 2016, Theorem 1: for each set bit in ml.DV[k], k identifies a message of
    the same group, or TT contains (in, out) at position id with k = out, where (id, in) identifies
    a message that has IDR with ml. With it, all messages are delivered in causal order.
    """
    own, translated = 0, 0
    for group in groups("none"):
        past = group.network.truth.past
        inside = {one.payload for one in group.own()}
        for message in group.own():
            before = past[message.payload]
            implied = set().union(*(past[label] for label in before))
            for number in positions(*message.dv):
                label = group.label(number)
                assert label in before - implied, "an immediate dependency"
                assert (label in inside) != (number in group.super_peer.table.origins)
                own += label in inside
                translated += label not in inside
        assert group.network.early == []
    assert min(own, translated) > 100


def overhead(passive: int) -> tuple[list[int], list[int]]:
    """Return control bytes of all messages, and storage of the participants at the end.

    Two internal peers (4, 5) and two external peers (2, 3) talk. `passive` further external peers,
    and a further internal group of so many, only receive.
    """
    more = range(20, 20 + passive)
    listeners = {10: tuple(range(40, 40 + passive))} if passive else {}
    world = World(hierarchical(Topology({1: (4, 5), **listeners}, (2, 3, *more))))
    talkers, labels = (2, 4, 3, 5), [f"m{number}" for number in range(24)]
    for number, label in enumerate(labels):
        world.send(talkers[number % 4], label)
        while world.in_flight:  # every message reaches all members before the next one
            world.hand_over(world.in_flight.pop(0))
    kinds = (Upward, Downward, External)
    sizes = [
        world.members[copy.source].control_bytes(copy.message)
        for label in labels
        for copy in world.sent[label]
        if isinstance(copy.message, kinds) and copy.source != 10
    ]
    return sizes, [world.members[at].storage_bytes() for at in (1, *talkers)]


@pytest.mark.parametrize("passive", [1, 5, 15])
def test_passive_receivers_do_not_increase_the_overhead_of_messages(passive: int) -> None:
    """Evropeytsev et al. 2016, section 4.3: "All of the peers that are passive receivers do not
    increase system overhead." True of messages. VTx has an integer of 4 bytes for each external
    peer, so super peers and external peers store that much more; internal peers do not.
    """
    (sizes, stored), (crowded, more) = overhead(0), overhead(passive)
    assert len(sizes) == 24 + 12 + 24
    assert crowded == sizes
    outside = PAIR_BYTES // 2 * passive
    assert [b - a for a, b in zip(stored, more, strict=True)] == [outside, outside, 0, outside, 0]


def test_several_groups_over_one_network_do_not_share_overhead() -> None:
    """Evropeytsev et al. 2016, section 4.3: if several communication groups exist over the same
    peer-to-peer network, communication and storage overhead depends on the number of peers that
    participate in a group communication, and not on the number of peers in the system.
    """
    first, second = (World(hierarchical(Topology({1: (4, 5)}, (2, 3)))) for _ in range(2))
    control = World(hierarchical(Topology({1: (4, 5)}, (2, 3))))
    for number in range(12):
        at = (2, 4, 3, 5)[number % 4]
        for world in (first, control):
            world.send(at, f"m{number}")
        for extra in range(number):
            second.send((5, 3, 4, 2)[extra % 4], f"n{number}-{extra}")
        for world in (first, second, control):
            while world.in_flight:
                world.hand_over(world.in_flight.pop(0))
    assert len(second.ids) == 66
    assert first.steps == control.steps
    for at, member in first.members.items():
        assert member.snapshot() == control.members[at].snapshot()
        assert member.storage_bytes() == control.members[at].storage_bytes()
