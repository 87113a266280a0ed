"""Limits of clock lead: a message with an absurd time is rejected alone."""

from __future__ import annotations

from typing import Any

import pytest

from antecede import Group
from antecede.core.clocks.bounds import Bounds
from antecede.core.clocks.nanoseconds import NS
from antecede.core.protocols.base import Deliver, Transmit
from antecede.core.protocols.clock_based.clock_lead import MAX_CLOCK_LEAD, ClockLeadLimits
from antecede.core.protocols.clock_based.linear import Linear
from antecede.core.protocols.clock_based.linear_physical import LinearPhysical
from antecede.core.protocols.clock_based.messages import NullMessage, StampedMessage
from antecede.core.protocols.clock_based.physical import Physical
from antecede.core.protocols.topics.protocols import Htbc, Tv, TvLt, TvPt, TvVt
from antecede.core.protocols.topics.subscriptions import Subscriptions
from antecede.errors import LimitError, LocalError, RemoteError
from tests.core.protocols.seconds import s

BOUNDS: Bounds[int] = Bounds(accuracy_s=0.25, least_s=1, most_s=3)
TOPICS: Any = Subscriptions(dict.fromkeys(range(3), ("x",)))
T0 = s(1_700_000_000)


def member(cls: Any, me: int = 1, **options: Any) -> Any:
    if issubclass(cls, Tv.__mro__[1]):
        options["subscriptions"] = TOPICS
    return cls(me, range(3), bounds=BOUNDS, **options)


def send_one(member: Any, now: int = T0) -> Any:
    topics = {"topics": ["x"]} if hasattr(member, "tv") else {}
    (effect,) = member.send(b"x", now=now, **topics)
    assert isinstance(effect, Transmit)
    return effect.message


def read_rejection(member: Any, message: Any, error: type[RemoteError], now: int = T0) -> str:
    before = member.snapshot()
    with pytest.raises(error) as raised:
        member.receive(message, now=now)
    assert member.snapshot() == before
    return str(raised.value)


@pytest.mark.parametrize("cls", [Linear, LinearPhysical, TvLt, Htbc])
def test_a_linear_time_may_be_so_far_above_ones_own(cls: type) -> None:
    one, other = member(cls), member(cls, 0)
    good = send_one(other)
    text = read_rejection(one, good._replace(lt=MAX_CLOCK_LEAD + 1), LimitError)
    assert text == (
        f"message 1 of member 0 has linear time {MAX_CLOCK_LEAD + 1}, "
        f"{MAX_CLOCK_LEAD + 1} above the known one; the limit is {MAX_CLOCK_LEAD} (max_clock_lead)"
    )
    one.receive(good._replace(lt=MAX_CLOCK_LEAD), now=T0)
    third = member(cls, 2)
    follows = send_one(one)
    read_rejection(third, follows, LimitError)
    third.receive(good._replace(lt=MAX_CLOCK_LEAD), now=T0)
    third.receive(follows, now=T0)  # refused is not lost: offered again it is taken in


@pytest.mark.parametrize("cls", [Tv, TvLt, TvPt, Htbc, TvVt])
def test_a_topic_count_may_be_so_far_above_ones_own(cls: type) -> None:
    one, good = member(cls), send_one(member(cls, 0))
    for topic in ("x", "y"):
        counts = {"x": 1, topic: MAX_CLOCK_LEAD + 1}
        text = read_rejection(one, good._replace(tv=tuple(counts.items())), LimitError)
        assert "message 1 of member 0 has a topic count of" in text
        assert "max_clock_lead" in text
    one.receive(good._replace(tv=(("x", MAX_CLOCK_LEAD),)), now=T0)


def test_a_vector_entry_may_be_so_far_above_ones_own() -> None:
    one, good = member(TvVt), send_one(member(TvVt, 0))
    text = read_rejection(one, good._replace(vt=(MAX_CLOCK_LEAD + 1) << 80), LimitError)
    assert "message 1 of member 0 has a vector entry of" in text


@pytest.mark.parametrize("cls", [Physical, LinearPhysical])
def test_a_physical_time_may_be_so_far_above_the_own_clock(cls: type) -> None:
    most_ns = T0 + s(60.5)  # a minute, and what two clocks err by
    one, good = member(cls), send_one(member(cls, 0))
    text = read_rejection(one, good._replace(pt_ns=most_ns + 1), LimitError)
    assert text.startswith("message 1 of member 0 has physical time 1700000060.500000001 s")
    assert "differ by up to 0.5 s, and the limit is 60 s more" in text
    one.receive(good._replace(pt_ns=most_ns), now=T0)


@pytest.mark.parametrize("cls", [Linear, LinearPhysical])
def test_null_messages_are_believed_no_more(cls: type) -> None:
    text = read_rejection(
        member(cls), NullMessage(0, 0, b"", 0, MAX_CLOCK_LEAD + 1, T0), LimitError
    )
    assert text.startswith("a null message of member 0 has linear time")


@pytest.mark.parametrize("cls", [Linear, Htbc])
def test_the_limits_can_be_chosen_or_left_out(cls: type) -> None:
    good = send_one(member(cls, 0))
    read_rejection(member(cls, max_clock_lead=10), good._replace(lt=11), LimitError)
    member(cls, max_clock_lead=None).receive(good._replace(lt=(1 << 62) - 1), now=T0)


def test_a_limit_of_what_is_not_carried_is_refused() -> None:
    for cls, option in ((Physical, "max_clock_lead"), (Linear, "max_ahead_s")):
        with pytest.raises(LocalError, match=option):
            member(cls, **{option: 5})
    for value in (0, -1, 1.5, True):
        with pytest.raises(LocalError, match="max_clock_lead"):
            member(Linear, max_clock_lead=value)
    with pytest.raises(LocalError, match="max_ahead_s"):
        member(Physical, max_ahead_s=0)
    assert (
        ClockLeadLimits.from_options(
            MAX_CLOCK_LEAD, None, has_counts=True, has_clocks=True
        ).ahead_ns
        is None
    )


@pytest.mark.parametrize("cls", [Linear, Htbc])
def test_a_long_silence_and_a_newcomer_are_no_jump(cls: type) -> None:
    old = member(cls, 0, max_clock_lead=100)
    for k in range(101):
        last = send_one(old, T0 + k * NS)
    read_rejection(member(cls, max_clock_lead=50), last, LimitError, T0 + s(101))
    newcomer = member(cls, 2, max_clock_lead=50)
    newcomer.install_join_state(old.join_state())
    newcomer.receive(last if cls is Linear else send_one(old, T0 + s(102)), now=T0 + s(102))
    silent = member(cls, 1, max_clock_lead=110)
    silent.receive(last, now=T0 + s(102))


def test_a_group_names_the_sender_and_goes_on() -> None:
    names = ("alice", "bob", "carol")
    alice, bob, carol = (Group(name, names, order="linear", heartbeat_s=None) for name in names)
    forged: Any = alice._state.protocol
    forged.linear_time = MAX_CLOCK_LEAD + 5
    wire = alice.send(b"x", now=0)
    with pytest.raises(LimitError, match="message 1 of 'alice' has linear time"):
        bob.receive(wire, now=0)
    bob.receive(carol.send(b"y", now=0), now=0)
    assert [message.payload for message in carol.receive(bob.send(b"z", now=0), now=0)] == []
    assert str(carol.list_held()[0]) == "bob's message 1 waits for any message from alice"


def test_the_numbers_last_for_millions_of_forged_messages() -> None:
    one = member(Linear)
    for seq in range(1, 2001):
        message = StampedMessage(0, seq, b"", seq - 1, one.linear_time + MAX_CLOCK_LEAD)
        one.receive(message, now=T0)
    third = member(Linear, 2)
    third.linear_time = one.linear_time - MAX_CLOCK_LEAD
    effects = third.receive(send_one(one), now=T0)
    assert not any(isinstance(effect, Deliver) for effect in effects)
    assert one.linear_time < (1 << 63) // 50_000
