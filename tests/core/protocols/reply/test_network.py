"""S_b on a network that reorders, duplicates and loses, checked by ancestors from sets."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede.core.protocols.base import (
    DUPLICATE,
    Deliver,
    DeliverIncomplete,
    Discard,
    Effect,
    MessageId,
    Transmit,
)
from antecede.core.protocols.reply.messages import SbMessage
from antecede.core.protocols.reply.sb import STORE_FULL, SemanticOrder
from tests.core.protocols.reply.tools import ancestors
from tests.core.protocols.seconds import s

MEMBERS = 4


class Outcome(NamedTuple):
    """Deliveries of a member in order, and its final discards."""

    order: list[MessageId]
    released: dict[MessageId, tuple[MessageId, ...]]
    given_up: set[MessageId]


def conversation(seed: int, several: bool, sends: int = 24) -> list[SbMessage]:
    """Exchange messages over a reliable network; return all of them."""
    rng = random.Random(seed)
    members = [SemanticOrder(k, range(MEMBERS), several_parents=several) for k in range(MEMBERS)]
    seen: list[list[MessageId]] = [[] for _ in members]
    flying: list[tuple[int, SbMessage]] = []
    sent: list[SbMessage] = []
    while len(sent) < sends:
        if flying and rng.random() < 0.7:
            to, message = flying.pop(rng.randrange(len(flying)))
            seen[to] += [_id(e.message) for e in members[to].receive(message) if type(e) is Deliver]
            continue
        at = rng.randrange(MEMBERS)
        count = rng.randint(0, min(3 if several else 1, len(seen[at])))
        (effect,) = members[at].send(len(sent), after=rng.sample(seen[at][-6:], min(count, 6)))
        assert isinstance(effect, Transmit)
        sent.append(effect.message)
        seen[at].append(_id(effect.message))
        flying += [(to, effect.message) for to in effect.to]
    return sent


def _id(message: SbMessage) -> MessageId:
    return MessageId(message.sender, message.seq)


class Watched:
    """Fifth member that only receives, and the outcome of each message."""

    def __init__(self, **options: Any) -> None:
        self.options = options
        self.member = SemanticOrder(MEMBERS, range(MEMBERS + 1), **options)
        self.outcome = Outcome([], {}, set())
        self.refused: list[SbMessage] = []

    def take(self, effects: Iterable[Effect]) -> None:
        order, released, given_up = self.outcome
        for effect in effects:
            match effect:
                case Deliver(message):
                    order.append(_id(message))
                case DeliverIncomplete(message, missing):
                    order.append(_id(message))
                    released[_id(message)] = missing
                case Discard(message, reason) if reason == STORE_FULL:
                    self.refused.append(message)
                case Discard(message, reason) if reason != DUPLICATE:
                    given_up.add(_id(message))

    def restart(self) -> None:
        """Continue in another object, from a snapshot."""
        state = self.member.snapshot()
        self.member = SemanticOrder(MEMBERS, range(MEMBERS + 1), **self.options)
        self.member.restore(state)
        assert self.member.snapshot() == state


def direct(sent: list[SbMessage]) -> dict[MessageId, frozenset[MessageId]]:
    return {_id(message): frozenset(message.parents) for message in sent}


def shuffle(sent: list[SbMessage], rng: random.Random, loss: float = 0.0) -> list[SbMessage]:
    """Lose some messages, duplicate some, and return all in any order."""
    kept = [message for message in sent if rng.random() >= loss]
    arrivals = kept + [message for message in kept if rng.random() < 0.3]
    rng.shuffle(arrivals)
    return arrivals


seeds = st.integers(min_value=0, max_value=1 << 32)


@given(seeds, st.booleans())
def test_safe_live_and_without_unnecessary_wait(seed: int, several: bool) -> None:
    """Theorems 1 and 2, and no unnecessary wait, with restarts in between."""
    rng = random.Random(seed)
    sent = conversation(seed, several)
    above = ancestors(direct(sent))
    watched = Watched(several_parents=several)
    arrived: set[MessageId] = set()
    for message in shuffle(sent, rng):
        watched.take(watched.member.receive(message))
        arrived.add(_id(message))
        deliverable = {mid for mid in arrived if above[mid] <= arrived}
        assert set(watched.outcome.order) == deliverable
        if rng.random() < 0.2:
            watched.restart()
    order = watched.outcome.order
    assert len(order) == len(set(order)) == len(sent)
    assert all(above[mid] <= set(order[:place]) for place, mid in enumerate(order))
    assert watched.member.list_held() == ()
    assert watched.member.store.by_parent == {}


@given(seeds, st.booleans())
def test_what_is_held_is_what_lacks_an_ancestor(seed: int, several: bool) -> None:
    sent = conversation(seed, several)
    above = ancestors(direct(sent))
    watched = Watched(several_parents=several)
    arrivals = shuffle(sent, random.Random(seed), loss=0.2)
    arrived = {_id(message) for message in arrivals}
    for message in arrivals:
        watched.take(watched.member.receive(message))
    delivered = {mid for mid in arrived if above[mid] <= arrived}
    assert set(watched.outcome.order) == delivered
    blocked = {_id(held.message): set(held.missing) for held in watched.member.list_held()}
    parents = direct(sent)
    assert blocked == {mid: parents[mid] - delivered for mid in arrived - delivered}


@pytest.mark.parametrize("several", [False, True])
@given(seed=seeds)
def test_release_hands_over_all_and_marks_exactly_what_lacks_a_parent(
    several: bool, seed: int
) -> None:
    rng = random.Random(seed)
    sent = conversation(seed, several)
    parents = direct(sent)
    watched = Watched(several_parents=several, missing_parent="release", patience_s=3.0)
    arrivals = shuffle(sent, rng, loss=0.2)
    for now, message in enumerate(arrivals):
        watched.take(watched.member.receive(message, now=s(now)))
        watched.take(watched.member.tick(s(now)))
        if rng.random() < 0.2:
            watched.restart()
    watched.take(watched.member.tick(s(len(arrivals) + 3)))
    order, released, given_up = watched.outcome
    assert sorted(order) == sorted({_id(message) for message in arrivals})
    assert not given_up
    for place, mid in enumerate(order):
        lacking = parents[mid] - set(order[:place])
        assert lacking == set(released.get(mid, ()))
    assert watched.member.counts["released"] == len(released)


@pytest.mark.parametrize("several", [False, True])
@given(seed=seeds)
def test_set_aside_is_never_early_and_accounts_for_every_message(several: bool, seed: int) -> None:
    rng = random.Random(seed)
    sent = conversation(seed, several)
    above = ancestors(direct(sent))
    watched = Watched(several_parents=several, missing_parent="set_aside", patience_s=3.0)
    arrivals = shuffle(sent, rng, loss=0.2)
    for now, message in enumerate(arrivals):
        watched.take(watched.member.receive(message, now=s(now)))
        watched.take(watched.member.tick(s(now)))
        if rng.random() < 0.2:
            watched.restart()
    watched.take(watched.member.tick(s(len(arrivals) + 3)))
    order, released, given_up = watched.outcome
    assert all(above[mid] <= set(order[:place]) for place, mid in enumerate(order))
    assert not released
    assert not set(order) & given_up
    assert set(order) | given_up == {_id(message) for message in arrivals}
    assert watched.member.counts["set_aside"] == len(given_up)


@given(seeds, st.integers(min_value=1, max_value=4))
def test_refused_messages_brought_again_are_all_delivered(seed: int, limit: int) -> None:
    sent = conversation(seed, False)
    above = ancestors(direct(sent))
    watched = Watched(store_limit=limit)
    arrivals = shuffle(sent, random.Random(seed))
    while arrivals:
        for message in arrivals:
            watched.take(watched.member.receive(message))
            assert len(watched.member.list_held()) <= limit
        arrivals, watched.refused = watched.refused, []
    order = watched.outcome.order
    assert len(order) == len(sent)
    assert all(above[mid] <= set(order[:place]) for place, mid in enumerate(order))


@given(seeds)
def test_a_newcomer_gets_the_rest_in_order(seed: int) -> None:
    rng = random.Random(seed)
    sent = conversation(seed, False)
    above = ancestors(direct(sent))
    sponsor = Watched()
    arrivals = shuffle(sent, rng)
    cut = rng.randrange(len(arrivals))
    for message in arrivals[:cut]:
        sponsor.take(sponsor.member.receive(message))
    newcomer = SemanticOrder(MEMBERS + 1, range(MEMBERS + 2))
    newcomer.install_join_state(sponsor.member.join_state())
    covered = set(sponsor.outcome.order)
    owed = [message for message in sent if _id(message) not in covered]
    rng.shuffle(owed)
    order: list[MessageId] = []
    for message in owed:
        order += [
            _id(effect.message) for effect in newcomer.receive(message) if type(effect) is Deliver
        ]
    assert len(order) == len(owed)
    assert all(above[mid] <= covered | set(order[:place]) for place, mid in enumerate(order))


def test_the_oracle_on_a_tree_known_by_hand() -> None:
    a, b, c, d = (MessageId(0, seq) for seq in range(1, 5))
    tree = {a: frozenset[MessageId](), b: frozenset({a}), c: frozenset({b}), d: frozenset({a})}
    assert ancestors(tree) == {a: set(), b: {a}, c: {a, b}, d: {a}}
