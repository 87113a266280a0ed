"""An adversarial network for protocols whose messages have destinations; an oracle of plain sets.

Any copy in flight may arrive at any time, also again, and also at members that it is not for.
Members join by a sponsor's frontier and leave; each of the others hears of that at a time of
its own. The oracle is told of nothing but sends, with their destinations, and deliveries.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

from antecede.errors import UnknownMemberError
from antecede.protocols.base import DUPLICATE, Deliver, Discard, Effect, Hold, Protocol, Transmit
from antecede.protocols.multicast.base import NOT_ADDRESSED

Make = Callable[[int, Iterable[int]], Protocol]
Id = tuple[int, int]


class Network:
    """Members by number; every step is judged at once, `finish` judges the end."""

    def __init__(self, make: Make, members: int, seed: int, *, widest: int | None = None) -> None:
        self.make = make
        self.widest = widest
        """Most destinations of a message; None: any number, and now and then all."""
        self.random = random.Random(seed)
        self.members: dict[int, Any] = {k: make(k, range(members)) for k in range(members)}
        self.past_of: dict[int, frozenset[Id]] = {k: frozenset() for k in self.members}
        """Everything that each member sent or had delivered, and their pasts."""
        self.delivered: dict[int, set[Id]] = {k: set() for k in self.members}
        self.sent: dict[Id, Any] = {}
        self.past: dict[Id, frozenset[Id]] = {}
        self.flight: list[tuple[int, Id]] = []
        self.news: list[tuple[int, str, int, int]] = []
        self.holds = self.duplicates = self.strays = 0

    def run(self, steps: int) -> None:
        for _ in range(steps):
            draw = self.random.random()
            if draw < 0.3 or not self.flight:
                self.send(self.random.choice(sorted(self.members)))
            elif draw < 0.88:
                self.arrive(self.random.randrange(len(self.flight)))
            else:  # a second copy, or one that went astray
                target, key = self.random.choice(self.flight)
                strangers = self.members.keys() - {key[0], *self.sent[key].to}
                if draw > 0.97 and strangers:
                    target = self.random.choice(sorted(strangers))
                if target in self.members:
                    self.hand_over(target, key)

    def send(self, at: int, to: Iterable[int] | None = None) -> Id:
        member = self.members[at]
        others = [k for k in member.others() if k in self.members]
        if to is None and others and (self.widest is not None or self.random.random() < 0.8):
            most = min(self.widest or len(others), len(others))
            to = self.random.sample(others, self.random.randint(1, most))
        effects = member.send(f"from {at}", to=to)
        (transmit,) = effects
        assert isinstance(transmit, Transmit)
        message = transmit.message
        assert transmit.to == message.to == tuple(sorted(to if to is not None else member.others()))
        key = (message.sender, message.seq)
        assert key not in self.sent
        self.sent[key] = message
        self.past[key] = self.past_of[at]
        self.past_of[at] |= {key}
        self.flight += [(target, key) for target in message.to if target in self.members]
        return key

    def arrive(self, position: int) -> None:
        target, key = self.flight[position]
        if target not in self.members or self.hand_over(target, key):
            self.flight.pop(position)

    def hand_over(self, target: int, key: Id) -> bool:
        """Give a message to a member; False when the member can not judge it yet."""
        member, message = self.members[target], self.sent[key]
        sender = self.members.get(key[0], member)
        assert member.decode(sender.encode(message), message.payload) == message
        before = member.snapshot()
        try:
            effects = member.receive(message)
        except UnknownMemberError:
            assert member.snapshot() == before
            assert any(at == target and kind == "join" for at, kind, *_ in self.news)
            return False
        self.judge(target, key, effects)
        if self.random.random() < 0.1:
            self.restart(target)
        return True

    def restart(self, at: int) -> None:
        state = self.members[at].snapshot()
        hash(state)
        fresh = self.make(at, [at, *self.members])
        fresh.restore(state)
        assert fresh.snapshot() == state
        assert fresh.storage_bytes() == self.members[at].storage_bytes()
        assert fresh.blocked_on() == self.members[at].blocked_on()
        self.members[at] = fresh

    # -- joins and leaves ---------------------------------------------------------------------

    def join(self, member: int, sponsor: int) -> None:
        frontier = self.members[sponsor].frontier()
        hash(frontier)
        newcomer = self.make(member, [member])
        newcomer.adopt(frontier)
        self.members[sponsor].join(member)
        self.members[member] = newcomer
        self.past_of[member] = self.past_of[sponsor]
        self.delivered[member] = set()
        others = self.members.keys() - {member, sponsor}
        self.news += [(other, "join", member, 0) for other in others]

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
            else:
                self.members[at].leave(whom, last)
        self.news = []

    # -- judgement ----------------------------------------------------------------------------

    def owed(self, at: int, key: Id) -> set[Id]:
        """Return the messages to a member in a message's past that it has not delivered."""
        return {k for k in self.past[key] - self.delivered[at] if at in self.sent[k].to}

    def judge(self, at: int, key: Id, effects: Iterable[Effect]) -> None:
        seen = False
        for effect in effects:
            assert not isinstance(effect, Transmit)
            name = (effect.message.sender, effect.message.seq)
            seen = seen or name == key
            if isinstance(effect, Deliver):
                assert at in effect.message.to, "delivered to somebody else"
                assert name not in self.delivered[at], "delivered twice"
                assert not self.owed(at, name), "delivered early"
                self.delivered[at].add(name)
                self.past_of[at] |= self.past[name] | {name}
            elif isinstance(effect, Hold):
                self.holds += 1
                assert self.owed(at, name), "held without need"
                assert effect.missing == self.lines(at)[name]
            else:
                assert isinstance(effect, Discard)
                if effect.reason == NOT_ADDRESSED:
                    self.strays += 1
                    assert at not in effect.message.to
                else:
                    assert effect.reason == DUPLICATE
                    self.duplicates += 1
                    assert name in self.delivered[at] or name in self.lines(at)
        assert seen
        for name, missing in self.lines(at).items():
            assert self.owed(at, name), "not released"
            assert missing

    def lines(self, at: int) -> dict[Id, Any]:
        held = self.members[at].blocked_on()
        return {(line.message.sender, line.message.seq): line.missing for line in held}

    def finish(self) -> None:
        """Deliver all that is in flight; then nobody waits and everybody has what is for it."""
        self.tell()
        while self.flight:
            self.arrive(self.random.randrange(len(self.flight)))
        for at in self.members:
            assert self.lines(at) == {}
            theirs = {key for key, message in self.sent.items() if at in message.to}
            assert self.delivered[at] == theirs


def play(
    make: Make, seed: int, *, members: int = 4, steps: int = 60, widest: int | None = None
) -> Network:
    """Run a group of constant membership to its end."""
    network = Network(make, members, seed, widest=widest)
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
