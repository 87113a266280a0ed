"""Synthetic messages, for protocols whose groups take long to simulate."""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable
from typing import Any

from antecede.core.clocks import lanes
from antecede.core.clocks.lanes import pack
from antecede.core.protocols.base import MessageId, Protocol
from antecede.core.protocols.hierarchical.internal import InternalPeer, follow
from antecede.core.protocols.hierarchical.messages import EMPTY, Downward
from antecede.core.protocols.matrix.matrix import Matrix
from antecede.core.protocols.matrix.messages import MatrixMessage
from antecede.core.protocols.multicast.rst import Rst
from antecede.core.protocols.multicast.ses import Ses
from antecede.core.protocols.reply.messages import SbMessage
from antecede.core.protocols.reply.sb import SemanticOrder
from bench.traffic import MessageStream

RECENT = 50
REPLY_FRACTION = 0.7
LANES = 60_000
"""Limit of lanes: the number of multicast messages decreases with the group size."""
MATRICES = 120
"""Limit of messages with a matrix: 90,000 entries each for 300 members."""
COUNTS = (100, 120)


def make_replies(members: int, messages: int) -> MessageStream:
    """Return messages of which 7 in 10 reply to one of the last 50; the others start a thread."""
    rng = random.Random(1)
    numbers = [0] * members
    ids: list[MessageId] = []
    stream = []
    for place in range(messages):
        sender = rng.randrange(1, members)
        numbers[sender] += 1
        parents = (rng.choice(ids[-RECENT:]),) if ids and rng.random() < REPLY_FRACTION else ()
        ids.append(MessageId(sender, numbers[sender]))
        stream.append(SbMessage(*ids[-1], parents, place))
    return MessageStream(lambda: SemanticOrder(0, range(members)), stream)


def make_downward(members: int, messages: int) -> MessageStream:
    """Return messages to peer 1 of an internal group from its super peer 0.

    A sender has delivered all but the last 50 messages. Its DV follows the rule of real peers.
    """
    rng = random.Random(1)
    stream: list[Downward] = []
    last = [0] * (members + 1)
    seen = [0] * (members + 1)
    for seq in range(1, messages + 1):
        sender = rng.randrange(2, members + 1)
        dv = EMPTY
        upto = max(0, seq - RECENT)
        for earlier in stream[max(seen[sender], upto - 4 * members) : upto]:
            if earlier.sender != sender:
                dv = follow(dv, earlier)
        seen[sender] = upto
        stream.append(Downward(sender, seq, last[sender], dv, seq))
        last[sender] = seq
    return MessageStream(lambda: InternalPeer(1, range(members + 1), 0), stream)


def make_matrix(members: int, messages: int) -> MessageStream:
    """Return messages with matrices; each member sends once per round, so a round changes every
    row.

    The messages of the first round warm up the observer.
    """
    rows: tuple[int, ...] = (0,) * members
    counts, stream = 0, []
    for k in range(members + min(messages, MATRICES)):
        sender = 1 + k % (members - 1)
        seq = lanes.get(counts, sender) + 1
        causes = lanes.put(counts, sender, 0)
        counts = lanes.put(counts, sender, seq)
        others = (*rows[:sender], 0, *rows[sender + 1 :])
        stream.append(MatrixMessage(sender, seq, None, causes, others))
        rows = (*rows[:sender], counts, *rows[sender + 1 :])

    def warm() -> Protocol:
        observer = Matrix(0, range(members))
        for message in stream[:members]:
            observer.receive(message)
        return observer

    return MessageStream(warm, stream[members:])


def make_rst(members: int, messages: int) -> MessageStream:
    """Return multicasts of members that start with the same matrix."""
    rng = random.Random(1)
    matrix = tuple(
        pack((d, rng.randint(*COUNTS)) for d in range(members) if d != k) for k in range(members)
    )
    count = COUNTS[1] * members
    return _make_multicast(
        lambda me: _warm_member(Rst(me, range(members)), count, matrix), members, messages
    )


def make_ses(members: int, messages: int) -> MessageStream:
    """Return multicasts of members that start with the same C; V is slightly behind it."""
    rng = random.Random(1)
    clock = [rng.randint(*COUNTS) * members for _ in range(members)]
    behind = [
        (d, pack((k, count - rng.randint(0, 3)) for k, count in enumerate(clock)))
        for d in range(members)
    ]

    def make(me: int) -> Protocol:
        entries = tuple((d, vector) for d, vector in behind if d != me)
        own = pack(enumerate(clock)), entries, False, ()
        return _warm_member(Ses(me, range(members)), clock[me], own)

    return _make_multicast(make, members, messages)


def _make_multicast(make: Callable[[int], Protocol], members: int, messages: int) -> MessageStream:
    """Let a random member send to the observer and two others, which receive at once."""
    rng = random.Random(1)
    group: list[Any] = [make(k) for k in range(members)]
    stream = []
    for _ in range(min(messages, LANES // members)):
        sender, *others = rng.sample(range(1, members), 3)
        message = group[sender].send(None, to=(0, *others))[0].message
        for other in others:
            group[other].receive(message)
        stream.append(message)
    return MessageStream(lambda: make(0), stream)


def _warm_member(member: Protocol, count: int, own: Hashable) -> Protocol:
    """Return the member with the knowledge of some hundred messages per channel."""
    member.restore(((member.me, member.members, count, (), ()), own))
    return member
