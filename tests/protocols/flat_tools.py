"""An adversarial network for the flat protocols, and an oracle of plain sets.

The network keeps every copy that is still owed and lets any of them arrive at any time, also
again. Members join by a sponsor's frontier and leave; each of the others hears of that at a
time of its own. The oracle is told of nothing but sends and deliveries.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

from antecede.errors import UnknownMemberError
from antecede.protocols.base import (
    DUPLICATE,
    Deliver,
    Discard,
    Effect,
    Hold,
    Protocol,
    Relation,
    Transmit,
)

Make = Callable[[int, Iterable[int]], Protocol]
Id = tuple[int, int]


class Network:
    """Members by number; every delivery is judged at once, `finish` judges the end."""

    def __init__(self, make: Make, members: int, seed: int, *, wire: bool = True) -> None:
        self.make = make
        self.random = random.Random(seed)
        self.wire = wire
        self.members = {k: make(k, range(members)) for k in range(members)}
        self.delivered: dict[int, list[Id]] = {k: [] for k in self.members}
        """What each member regards as delivered, its own and its frontier included."""
        self.sent: dict[Id, Any] = {}
        self.past: dict[Id, frozenset[Id]] = {}
        self.flight: list[tuple[int, Id]] = []
        self.news: list[tuple[int, str, int, int]] = []
        """Who still has to hear of (member, "join" or "leave", whom, last number)."""
        self.holds = 0
        self.duplicates = 0

    # -- what may happen ----------------------------------------------------------------------

    def step(self) -> None:
        """Let one random thing happen."""
        draw = self.random.random()
        if draw < 0.3 or not self.flight:
            self.send(self.random.choice(sorted(self.members)))
        elif draw < 0.9:
            self.arrive(self.random.randrange(len(self.flight)))
        else:
            target, message = self.random.choice(self.flight)
            if target in self.members:
                self.hand_over(target, message)  # a duplicate: the first copy stays in flight

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.step()

    def send(self, at: int) -> Id:
        effects = self.members[at].send(f"from {at}", now=0)
        assert len(effects) == 1
        (transmit,) = effects
        assert isinstance(transmit, Transmit)
        message = transmit.message
        key = (message.sender, message.seq)
        assert key not in self.sent
        self.sent[key] = message
        self.past[key] = self.known(at)
        self.delivered[at].append(key)
        self.flight += [(target, key) for target in transmit.to if target in self.members]
        return key

    def known(self, at: int) -> frozenset[Id]:
        relation = self.members[at].guarantee.relation
        if relation is Relation.NONE:
            return frozenset()
        mine = self.delivered[at]
        if relation is Relation.FIFO:
            return frozenset(key for key in mine if key[0] == at)
        return frozenset(mine).union(*(self.past[key] for key in mine))

    def arrive(self, position: int) -> None:
        target, message = self.flight[position]
        if target not in self.members or self.hand_over(target, message):
            self.flight.pop(position)

    def hand_over(self, target: int, key: Id) -> bool:
        """Give a message to a member; False when the member can not judge it yet."""
        member, message = self.members[target], self.sent[key]
        if self.wire:
            sender = self.members.get(key[0], member)
            message = member.decode(sender.encode(message), message.payload)
            assert message == self.sent[key]
        before = member.snapshot()
        try:
            effects = member.receive(message, now=0)
        except UnknownMemberError:
            assert member.snapshot() == before
            assert any(at == target and kind == "join" for at, kind, *_ in self.news)
            return False
        if self.random.random() < 0.1:
            self.restart(target)
        self.judge(target, key, effects)
        return True

    def restart(self, at: int) -> None:
        state = self.members[at].snapshot()
        fresh = self.make(at, [at, *self.members])
        fresh.restore(state)
        assert fresh.snapshot() == state
        assert fresh.storage_bytes() == self.members[at].storage_bytes()
        assert fresh.blocked_on() == self.members[at].blocked_on()
        self.members[at] = fresh

    # -- joins and leaves ---------------------------------------------------------------------

    def join(self, member: int, sponsor: int) -> None:
        """Let a sponsor take a newcomer in; the others hear of it later."""
        told_first = self.random.random() < 0.5
        if told_first:
            self.members[sponsor].join(member)
        frontier = self.members[sponsor].frontier()
        hash(frontier)
        covered = list(self.delivered[sponsor])
        newcomer = self.make(member, [member])
        newcomer.adopt(frontier)
        if not told_first:
            self.members[sponsor].join(member)
        self.members[member] = newcomer
        self.delivered[member] = covered
        owed = [key for key in self.sent if key not in covered]
        owed += self.random.sample(covered, min(3, len(covered)))  # copies of what it has
        self.flight += [(member, key) for key in owed]
        for other in self.members:
            if other not in (member, sponsor):
                self.news.append((other, "join", member, 0))

    def leave(self, member: int) -> None:
        last = max((seq for sender, seq in self.sent if sender == member), default=0)
        del self.members[member]
        self.news = [news for news in self.news if news[0] != member]
        self.news += [(other, "leave", member, last) for other in self.members]

    def tell(self) -> None:
        """Let everybody hear the news, in random order but a join before a leave."""
        self.random.shuffle(self.news)
        self.news.sort(key=lambda news: news[1])
        for at, kind, whom, last in self.news:
            if kind == "join":
                self.members[at].join(whom)
                # What it sent before it knew the newcomer is owed by the transport.
                mine = [key for key in self.sent if key[0] == at]
                missing = [key for key in mine if key not in self.delivered[whom]]
                self.flight += [(whom, key) for key in missing if (whom, key) not in self.flight]
            else:
                self.members[at].leave(whom, last)
        self.news = []

    # -- judgement ----------------------------------------------------------------------------

    def judge(self, at: int, key: Id, effects: Iterable[Effect]) -> None:
        done = self.delivered[at]
        seen = False
        for effect in effects:
            assert not isinstance(effect, Transmit)
            name = (effect.message.sender, effect.message.seq)
            seen = seen or name == key
            if isinstance(effect, Deliver):
                assert name not in done, "delivered twice"
                assert self.past[name] <= set(done), "delivered early"
                done.append(name)
            elif isinstance(effect, Hold):
                self.holds += 1
                assert not self.past[name] <= set(done), "held without need"
                assert effect.missing
                assert set(effect.missing) <= self.past[name] - set(done)
            else:
                assert isinstance(effect, Discard)
                assert effect.reason == DUPLICATE
                self.duplicates += 1
                held = {(line.message.sender, line.message.seq) for line in self.blocked(at)}
                assert name in done or name in held
        assert seen
        for line in self.blocked(at):
            name = (line.message.sender, line.message.seq)
            assert not self.past[name] <= set(done), "not released"
            assert set(line.missing) <= self.past[name] - set(done)
            assert line.missing

    def blocked(self, at: int) -> Any:
        return self.members[at].blocked_on()

    def finish(self) -> None:
        """Deliver all that is in flight; then nobody waits and everybody has everything."""
        self.tell()
        while self.flight:
            self.arrive(self.random.randrange(len(self.flight)))
        for at in self.members:
            assert self.blocked(at) == ()
            assert set(self.delivered[at]) == set(self.sent)


def play(make: Make, seed: int, *, members: int = 4, steps: int = 60) -> Network:
    """Run a group of constant membership to its end."""
    network = Network(make, members, seed)
    network.run(steps)
    network.finish()
    return network


def play_with_churn(make: Make, seed: int, *, rounds: int = 4) -> Network:
    """Run a group in which members join and leave, told late, to its end."""
    network = Network(make, 3, seed)
    newest = 2
    for _ in range(rounds):
        network.run(network.random.randrange(15))
        newest += 1
        network.join(newest, network.random.choice(sorted(network.members)))
        network.run(network.random.randrange(15))
        if network.random.random() < 0.5:
            network.tell()
            network.leave(network.random.choice(sorted(network.members)))
            network.run(network.random.randrange(10))
        network.tell()
    network.finish()
    return network
