"""Claims of Bhavanasi and Iyer by their names: Theorem 1, Figure 6, the time bounds of section VI.

Theorem 2 is `test_safe_live_and_without_unnecessary_wait` in `test_sb_network`.
"""

from __future__ import annotations

import itertools
import random
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import antecede.core.protocols.reply
from antecede.core.clocks import intervals
from antecede.core.protocols.base import Deliver, Hold, MessageId, Transmit
from antecede.core.protocols.reply.messages import SbMessage
from antecede.core.protocols.reply.sb import SemanticOrder
from tests.core.protocols.reply.test_network import MEMBERS, conversation, direct, shuffle
from tests.core.protocols.reply.tools import ancestors

SEEDS = range(40)
PACKAGE = str(Path(antecede.core.protocols.reply.__file__).parent)


def key(message: SbMessage) -> MessageId:
    return MessageId(message.sender, message.seq)


@pytest.mark.parametrize("several", [False, True])
def test_theorem_1_messages_are_delivered_after_all_before_them_in_s_b(several: bool) -> None:
    """Bhavanasi and Iyer, Theorem 1: the S_b protocol preserves S_b ordering. On every path from
    the root of the ordering tree, each member delivers in the order of the path.
    """
    held = 0
    for seed in SEEDS:
        sent = conversation(seed, several)
        above = ancestors(direct(sent))
        member = SemanticOrder(MEMBERS, range(MEMBERS + 1), several_parents=several)
        order: list[MessageId] = []
        for message in shuffle(sent, random.Random(seed)):
            effects = member.receive(message)
            order += [key(one.message) for one in effects if isinstance(one, Deliver)]
            held += any(isinstance(one, Hold) for one in effects)
        assert len(order) == len(sent)
        for place, one in enumerate(order):
            assert above[one] <= set(order[:place])
    assert held > 100, "messages came out of order"


class Figure6:
    """The state diagram, as section IV.C describes it, over plain sets."""

    def __init__(self) -> None:
        self.tree: set[MessageId] = set()
        """OT."""
        self.store: list[SbMessage] = []
        """OSMS, in the order of arrival."""
        self.path = ["INITIAL", "LISTEN"]

    def receive(self, message: SbMessage) -> set[MessageId]:
        """Return what is delivered."""
        self.path.append("RECEIVE")
        if not self.tree.issuperset(message.parents):
            self.path += ["RCVOutSequenceMSG", "LISTEN"]
            self.store.append(message)
            return set()
        self.path += ["RCVDeliverableMSG", "LISTEN"]
        delivered = {key(message)}
        self.tree |= delivered
        while ready := [one for one in self.store if self.tree.issuperset(one.parents)]:
            self.store = [one for one in self.store if one not in ready]
            fresh = {key(one) for one in ready}
            self.tree |= fresh
            delivered |= fresh
        return delivered

    def respond(self, me: int, seq: int) -> None:
        self.path += ["RESPOND", "LISTEN"]
        self.tree.add(MessageId(me, seq))


def test_figure_6_every_state_does_what_the_diagram_says() -> None:
    """Bhavanasi and Iyer, Fig. 6 and IV.C: from LISTEN, a message leads through RECEIVE either to
    RCVDeliverableMSG, which delivers it and its children in the store, or to RCVOutSequenceMSG,
    which stores it. RESPOND numbers and broadcasts a message. All lead back to LISTEN.
    """
    seen: set[tuple[str, str]] = set()
    for seed in SEEDS:
        draw = random.Random(seed)
        member, figure = SemanticOrder(MEMBERS, range(MEMBERS + 1)), Figure6()
        for message in dict.fromkeys(shuffle(conversation(seed, False), draw)):
            effects = member.receive(message)
            delivered = [key(one.message) for one in effects if isinstance(one, Deliver)]
            expected = figure.receive(message)
            assert (set(delivered), len(delivered)) == (expected, len(expected))
            holds = [one.message for one in effects if isinstance(one, Hold)]
            assert holds == ([message] if figure.path[-2] == "RCVOutSequenceMSG" else [])
            waiting = {key(one.message) for one in member.list_held()}
            assert waiting == {key(one) for one in figure.store}
            if figure.tree and draw.random() < 0.3:
                parent = draw.choice(sorted(figure.tree))
                before = member.sent
                (effect,) = member.send("answer", after=[parent])
                assert isinstance(effect, Transmit)
                assert effect.message == SbMessage(MEMBERS, before + 1, (parent,), "answer")
                figure.respond(MEMBERS, before + 1)
        seen |= set(zip(figure.path, figure.path[1:], strict=False))
    assert seen == {
        ("INITIAL", "LISTEN"),
        ("LISTEN", "RECEIVE"),
        ("RECEIVE", "RCVDeliverableMSG"),
        ("RECEIVE", "RCVOutSequenceMSG"),
        ("RCVDeliverableMSG", "LISTEN"),
        ("RCVOutSequenceMSG", "LISTEN"),
        ("LISTEN", "RESPOND"),
        ("RESPOND", "LISTEN"),
    }


def lines_of(act: Callable[[], Any]) -> int:
    """Return the number of executed lines of the protocol and of its interval lists."""
    count = 0

    def look(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        file = frame.f_code.co_filename
        if not file.startswith(PACKAGE) and file != intervals.__file__:
            return None
        count += event == "line"
        return look

    before = sys.gettrace()
    sys.settrace(look)
    try:
        act()
    finally:
        sys.settrace(before)
    return count


def member_with(nodes: int, rows: int) -> SemanticOrder:
    """Return a member with `nodes` intervals in its ordering list and `rows` held messages.

    It has every second message of member 1. Each held message replies to the previous one, the
    first one to the missing message 1 of member 2.
    """
    member = SemanticOrder(0, range(4))
    for seq in range(1, 2 * nodes, 2):
        member.receive(SbMessage(1, seq, (), "x"))
    parent = MessageId(2, 1)
    for seq in range(1, rows + 1):
        member.receive(SbMessage(3, seq, (parent,), "x"))
        parent = MessageId(3, seq)
    return member


SIZES = (25, 50, 100, 200)


def test_time_bound_of_sending_is_constant() -> None:
    found = set()
    for size in SIZES:
        member = member_with(size, size)
        found.add(lines_of(partial(member.send, "x", after=[MessageId(1, 1)])))
    assert len(found) == 1
    assert found.pop() > 3


@pytest.mark.parametrize(
    ("message", "nodes", "rows"),
    [
        (SbMessage(1, 2, (MessageId(1, 1),), "x"), True, False),  # IsPresentInOL, InsertInOL
        (SbMessage(2, 5, (MessageId(2, 4),), "x"), False, True),  # InsertInOSMT
    ],
    ids=["O(m): a message that can be delivered", "O(q): one that cannot"],
)
def test_time_bound_of_one_message_is_linear(message: SbMessage, nodes: bool, rows: bool) -> None:
    members = [member_with(s if nodes else 1, s if rows else 0) for s in SIZES]
    found = [lines_of(partial(member.receive, message)) for member in members]
    for smaller, larger in itertools.pairwise(found):
        assert smaller > 3
        assert larger <= 2 * smaller, found


def test_time_bound_of_the_protocol_is_quadratic_and_kept_with_room() -> None:
    missing = SbMessage(2, 1, (), "x")
    found = []
    for size in SIZES:
        member = member_with(size, size)
        found.append(lines_of(partial(member.receive, missing)))
        assert member.list_held() == ()
    for smaller, larger in itertools.pairwise(found):
        assert larger <= 4 * smaller, "the bound of the source"
        assert larger <= 2.2 * smaller, found
    assert found[-1] > found[0]
