"""The rules of the papers in their own notation are references for the packed protocols."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede.core.clocks import Bounds, unpack
from antecede.core.protocols.base import Deliver, MessageId, Protocol, Transmit
from antecede.core.protocols.clock_based.relations import (
    ClockTimestamp,
    LinearPhysicalRelation,
    PhysicalRelation,
    Separation,
)
from antecede.core.protocols.hierarchical.internal import InternalPeer
from antecede.core.protocols.hierarchical.messages import Downward
from antecede.core.protocols.multicast.ses import Ses
from antecede.core.protocols.reply.sb import SemanticOrder
from antecede.core.protocols.topics import relations as topic_relations
from antecede.core.protocols.topics.delays import Delays
from antecede.core.protocols.vector.bss import Bss
from antecede.core.protocols.vector.idr import Idr
from examples.papers import bss, hierarchical, idr, linear_physical, sb, ses, topics

N = 3
choices = st.lists(st.integers(0, 999), min_size=5, max_size=60)


def delivered(effects: Any) -> list[Any]:
    return [effect.message.payload for effect in effects if isinstance(effect, Deliver)]


def run_both(
    draws: list[int],
    packed: Sequence[Protocol],
    plain: Sequence[Any],
    send: Callable[[int, int, deque[int]], tuple[Any, Any, tuple[int, ...]]],
) -> int:
    """Send and receive the same messages in the same order on both sides; return deliveries."""
    copies: list[tuple[int, Any, Any]] = []
    numbers, count = deque(range(len(draws))), 0
    draws = [*draws, *range(len(draws) * N)]  # rest: the copies that are still under way
    for step, draw in enumerate(draws):
        at = draw % (N + len(copies))
        if at < N:
            if numbers and step < len(draws) // (N + 1):
                message, rule, to = send(at, numbers.popleft(), deque([draw]))
                copies += [(member, message, rule) for member in to]
            continue
        member, message, rule = copies.pop(at - N)
        mine = delivered(packed[member].receive(message))
        theirs = [m[-1] for m in plain[member].receive(rule)]
        assert sorted(mine) == sorted(theirs)
        count += len(mine)
    return count


def transmitted(effects: Any) -> Any:
    (effect,) = effects
    assert isinstance(effect, Transmit)
    return effect.message


def others(me: int) -> tuple[int, ...]:
    return tuple(member for member in range(N) if member != me)


@given(choices)
def test_bss(draws: list[int]) -> None:
    packed = [Bss(k, range(N)) for k in range(N)]
    plain = [bss.Process(k, N) for k in range(N)]

    def send(me: int, number: int, _: deque[int]) -> tuple[Any, Any, tuple[int, ...]]:
        message = transmitted(packed[me].send(f"m{number}"))
        rule = plain[me].send(f"m{number}")
        causes = enumerate(unpack(message.causes, N))
        assert tuple(message.seq if k == me else x for k, x in causes) == rule.t
        return message, rule, others(me)

    run_both(draws, packed, plain, send)


@given(choices)
def test_idr(draws: list[int]) -> None:
    packed = [Idr(k, range(N)) for k in range(N)]
    plain = [idr.Process(k, N) for k in range(N)]

    def send(me: int, number: int, _: deque[int]) -> tuple[Any, Any, tuple[int, ...]]:
        message = transmitted(packed[me].send(f"m{number}"))
        rule = plain[me].send(f"m{number}")
        assert {(k, x) for k, x in enumerate(unpack(message.causes, N)) if x} == rule.CI
        return message, rule, others(me)

    run_both(draws, packed, plain, send)


@given(choices)
def test_ses(draws: list[int]) -> None:
    packed = [Ses(k, range(N)) for k in range(N)]
    plain = [ses.Process(k, N) for k in range(N)]

    def send(me: int, number: int, draw: deque[int]) -> tuple[Any, Any, tuple[int, ...]]:
        to = others(me)[draw[0] // 7 % (N - 1)]
        message = transmitted(packed[me].send(f"m{number}", to=[to]))
        rule = plain[me].send(f"m{number}", to)
        assert {k: tuple(unpack(v, N)) for k, v in message.entries} == rule.V
        return message, rule, (to,)

    run_both(draws, packed, plain, send)


@given(choices)
def test_sb(draws: list[int]) -> None:
    packed = [SemanticOrder(k, range(N)) for k in range(N)]
    plain = [sb.Process(k, N) for k in range(N)]

    def send(me: int, number: int, draw: deque[int]) -> tuple[Any, Any, tuple[int, ...]]:
        known = [
            (k, s) for k in range(N) for low, high in plain[me].OL[k] for s in range(low, high + 1)
        ]
        mid_p = known[draw[0] // 5 % len(known)] if known and draw[0] % 4 else None
        after = [MessageId(*mid_p)] if mid_p else []
        message = transmitted(packed[me].send(f"m{number}", after=after))
        return message, plain[me].send(f"m{number}", mid_p), others(me)

    run_both(draws, packed, plain, send)


@given(choices)
def test_internal_group_of_the_hierarchical_protocol(draws: list[int]) -> None:
    """Copies of the super peer reach its internal peers in any order."""
    boss = 9
    packed = [InternalPeer(k, [*range(N), boss], boss) for k in range(N)]
    plain = [hierarchical.InternalPeer(k) for k in range(N)]
    super_peer = hierarchical.SuperPeer()

    def send(me: int, number: int, _: deque[int]) -> tuple[Any, Any, tuple[int, ...]]:
        message = transmitted(packed[me].send(f"m{number}"))
        (rule,) = super_peer.receive(plain[me].send(f"m{number}"))
        base, bits = message.dv
        assert {base + 1 + k for k in range(bits.bit_length()) if bits >> k & 1} == rule.DV
        down = Downward(me, rule.SN, rule.Last, message.dv, message.payload)
        return down, rule._replace(Data=message.payload), tuple(range(N))

    run_both(draws, packed, plain, send)


def test_linear_physical() -> None:
    separation = Separation(Bounds(accuracy_ns=1, least_ns=5, most_ns=9), range(N))
    both, by_clock = LinearPhysicalRelation(separation), PhysicalRelation(separation)
    for lt, apart in product(range(3), range(-2, 8)):
        a, b = linear_physical.Message(0, 1, 1, 10), linear_physical.Message(1, 1, lt, 10 + apart)
        stamps = ClockTimestamp(*a), ClockTimestamp(*b)
        assert by_clock.precedes(*stamps) == linear_physical.physical(a, b, 5, 1)
        assert both.precedes(*stamps) == linear_physical.linear_physical(a, b, 5, 1)


def test_linear_time_rises_from_cause_to_effect() -> None:
    p, q = linear_physical.Peer(0), linear_physical.Peer(1)
    question = p.send(10)
    q.receive(question)
    assert linear_physical.linear(question, q.send(10))


events = st.builds(
    topics.Event,
    src=st.integers(0, 2),
    P=st.frozensets(st.sampled_from("xyz"), min_size=1),
    TV=st.fixed_dictionaries({t: st.integers(0, 2) for t in "xyz"}),
    LT=st.integers(0, 3),
    PT=st.integers(0, 12),
)


@pytest.mark.parametrize("name", ["tv", "lt", "pt", "tbc"])
@given(events, events, st.frozensets(st.sampled_from("xyz")))
def test_topics(name: str, a: topics.Event, b: topics.Event, subscription: frozenset[str]) -> None:
    if a.src == b.src:
        return
    e_1, e_2 = (
        topic_relations.TopicTimestamp(e.src, 1, {t: e.TV[t] for t in e.P}, lt=e.LT, pt_ns=e.PT)
        for e in (a, b)
    )
    delays = Delays(Bounds(accuracy_ns=1, least_ns=5, most_ns=9), range(N))
    expected = {
        "tv": lambda: topic_relations.topics_precede(e_1, e_2, subscription),
        "lt": lambda: topic_relations.linear_precedes(e_1, e_2),
        "pt": lambda: topic_relations.physical_precedes(e_1, e_2, delays),
        "tbc": lambda: topic_relations.TopicRelation(delays, linear=True, physical=True).precedes(
            e_1, e_2, subscription
        ),
    }
    rule = {
        "tv": lambda: topics.tv(a, b, subscription),
        "lt": lambda: topics.lt(a, b),
        "pt": lambda: topics.pt(a, b, 5, 1),
        "tbc": lambda: topics.tbc(a, b, subscription, 5, 1),
    }
    assert rule[name]() == expected[name]()
