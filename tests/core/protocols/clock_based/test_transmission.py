"""Data transmission procedure of Tsuneizumi et al., section 6: one test per claim."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede.core.clocks.bounds import Bounds
from antecede.core.clocks.encoding.wire import varint
from antecede.core.clocks.intervals import MAX_NUMBER
from antecede.core.clocks.nanoseconds import LONGEST_NS
from antecede.core.protocols.base import (
    Deliver,
    DeliverIncomplete,
    Discard,
    Effect,
    Hold,
    MessageId,
    Transmit,
)
from antecede.core.protocols.clock_based.channel import ABANDONED, BUFFER_FULL
from antecede.core.protocols.clock_based.linear import Linear
from antecede.core.protocols.clock_based.messages import (
    AnyMessage,
    Gone,
    NullMessage,
    RetransmissionRequest,
    StampedMessage,
    control_bytes,
    decode,
    encode,
)
from antecede.errors import DecodeError, LocalError, RemoteError, SequenceError, UnknownMemberError
from tests.core.protocols.seconds import s
from tests.helpers.unchanged import unchanged


def pair(**options: Any) -> tuple[Linear, Linear]:
    """Return two members: there is no third one to wait for, so accepted messages are delivered."""
    return Linear(0, range(2), **options), Linear(1, range(2), **options)


def list_transmitted(effects: Iterable[Effect]) -> list[Any]:
    return [effect.message for effect in effects if isinstance(effect, Transmit)]


def list_delivered(effects: Iterable[Effect]) -> list[Any]:
    return [effect.message for effect in effects if isinstance(effect, Deliver)]


def send_all(member: Linear, count: int = 1, to: Sequence[int] | None = None) -> list[Any]:
    return [one for k in range(count) for one in list_transmitted(member.send(k, to=to, now=0))]


# -- numbers and gaps --------------------------------------------------------------------------


def test_messages_are_numbered_and_stamped_in_the_order_of_sending() -> None:
    me = Linear(0, range(3))
    assert [(m.seq, m.before, m.lt) for m in send_all(me, 3)] == [(1, 0, 0), (2, 1, 1), (3, 2, 2)]


def test_a_broadcast_is_one_transmit_and_a_selective_one_keeps_numbers_by_receiver() -> None:
    me = Linear(0, range(4))
    assert [e.to for e in me.send("a", now=0) if isinstance(e, Transmit)] == [(1, 2, 3)]
    (b,) = me.send("b", to=[3, 1], now=0)
    assert isinstance(b, Transmit)
    assert (b.to, b.message.seq, b.message.before) == ((1, 3), 2, 1)
    both = [e for e in me.send("c", now=0) if isinstance(e, Transmit)]
    assert [(e.to, e.message.seq, e.message.before) for e in both] == [((2,), 3, 1), ((1, 3), 3, 2)]
    assert len(send_all(me)) == 1
    assert [me.control_bytes(e.message) for e in (b, *both)] == [8, 12, 8]


@pytest.mark.parametrize(
    ("to", "words"), [([], "without recipients"), ([7], "7"), ([0], "member 0")]
)
def test_wrong_receivers_are_refused_and_no_number_is_spent(to: list[int], words: str) -> None:
    me = Linear(0, range(3))
    with unchanged(me), pytest.raises(LocalError, match=words):
        me.send("m", to=to, now=0)


def test_a_gap_is_asked_for_at_once_and_the_message_that_reveals_it_is_kept() -> None:
    source, me = pair(retry_s=1.0)
    messages = send_all(source, 5)
    me.receive(messages[0], now=0)
    effects = me.receive(messages[3], now=s(7.0))
    request = RetransmissionRequest(1, 0, b"", 2, 3)
    hold = Hold(messages[3], (MessageId(0, 3),))
    assert effects == [Transmit((0,), request), hold]
    again = list_transmitted(source.receive(request, now=0))
    assert again == messages[1:3]
    for message in again:
        effects = me.receive(message, now=0)
    assert list_delivered(effects) == messages[2:4]
    assert me.receive(messages[4], now=0) == [Deliver(messages[4])]


def test_the_same_gap_is_asked_for_again_every_retry_and_a_new_one_at_once() -> None:
    source, me = pair(retry_s=2.0)
    messages = send_all(source, 7)
    assert list_transmitted(me.receive(messages[1], now=s(10.0))) == [
        RetransmissionRequest(1, 0, b"", 1, 1)
    ]
    assert list_transmitted(me.receive(messages[2], now=s(10.0))) == []
    assert list_transmitted(me.receive(messages[5], now=s(10.5))) == [
        RetransmissionRequest(1, 0, b"", 4, 5)
    ]
    assert list_transmitted(me.tick(s(12.0))) == []
    both = [RetransmissionRequest(1, 0, b"", 1, 1), RetransmissionRequest(1, 0, b"", 4, 5)]
    assert [
        m for m in list_transmitted(me.tick(s(12.5))) if isinstance(m, RetransmissionRequest)
    ] == both
    me.receive(messages[0], now=0)
    assert [
        m for m in list_transmitted(me.tick(s(14.5))) if isinstance(m, RetransmissionRequest)
    ] == both[1:]
    for message in messages[3:5]:
        me.receive(message, now=0)
    assert [
        m for m in list_transmitted(me.tick(s(99.0))) if isinstance(m, RetransmissionRequest)
    ] == []
    assert me.channel.last_request_ns == {}


def test_only_what_was_for_the_asking_member_is_sent_again() -> None:
    source = Linear(0, range(3), retry_s=1.0)
    a, b, c = (send_all(source, to=[to])[0] for to in (1, 2, 1))
    assert list_transmitted(source.receive(RetransmissionRequest(1, 0, b"", 1, 3), now=0)) == [a, c]
    assert list_transmitted(source.receive(RetransmissionRequest(2, 0, b"", 1, 2), now=0)) == [b]


def test_without_recovery_nothing_is_asked_for() -> None:
    source, me = pair()
    a, b = send_all(source, 2)
    assert me.receive(b, now=0) == [Hold(b, (MessageId(0, 1),))]
    assert list_transmitted(me.tick(s(100.0))) == []
    assert me.receive(a, now=0) == [Deliver(a), Deliver(b)]
    assert source.channel.kept == type(source.channel.kept)()


def test_a_member_that_left_is_asked_for_nothing() -> None:
    group = [Linear(k, range(3), retry_s=1.0) for k in range(3)]
    *_, late = send_all(group[1], 3)
    me = group[2]
    me.leave(1, 3)
    assert me.receive(late, now=0) == [Hold(late, (MessageId(1, 2),))]
    assert not any(isinstance(m, RetransmissionRequest) for m in list_transmitted(me.tick(s(50.0))))


def test_gaps_by_receiver_in_a_selective_group() -> None:
    source, me = Linear(0, range(3), retry_s=1.0), Linear(1, range(3), retry_s=1.0)
    a = send_all(source, to=[1])[0]
    send_all(source, 3, to=[2])
    b, c = send_all(source, 2, to=[1])
    assert (b.seq, b.before) == (5, 1)
    assert list_transmitted(me.receive(c, now=0)) == [RetransmissionRequest(1, 0, b"", 1, 5)]
    assert list_transmitted(source.receive(RetransmissionRequest(1, 0, b"", 1, 5), now=0)) == [a, b]
    me.receive(a, now=0)
    assert me.channel.find_first_gap(0) == (0, 5)
    me.receive(b, now=0)
    assert me.channel.find_first_gap(0) is None


# -- null messages ------------------------------------------------------------------------------


def test_a_null_message_follows_silence_and_tells_the_last_number() -> None:
    source, me = pair(retry_s=1.0, heartbeat_s=3.0)
    assert source.tick(s(10.0)) == ()
    assert source.tick(s(12.5)) == ()
    (null,) = list_transmitted(source.tick(s(13.0)))
    assert null == NullMessage(0, 0, b"", 0, 0)
    assert source.tick(s(15.0)) == ()
    (lost,) = list_transmitted(source.send("m", now=s(15.0)))
    assert source.tick(s(17.5)) == ()
    (null,) = list_transmitted(source.tick(s(18.0)))
    assert null == NullMessage(0, 0, b"", 1, 1)
    (request,) = list_transmitted(me.receive(null, now=0))
    assert request == RetransmissionRequest(1, 0, b"", 1, 1)
    assert list_transmitted(source.receive(request, now=0)) == [lost]
    assert list_delivered(me.receive(lost, now=0)) == [lost]


def test_null_messages_go_only_to_those_to_whom_nothing_was_sent() -> None:
    me = Linear(0, range(3), heartbeat_s=2.0)
    me.tick(s(0.0))
    me.send("m", to=[1], now=s(1.0))
    assert [(e.to, e.message.last) for e in me.tick(s(2.0)) if isinstance(e, Transmit)] == [
        ((2,), 0)
    ]
    assert [(e.to, e.message.last) for e in me.tick(s(3.0)) if isinstance(e, Transmit)] == [
        ((1,), 1)
    ]


def test_a_null_message_counts_only_when_all_before_it_has_come() -> None:
    group = [Linear(k, range(3), retry_s=1.0, heartbeat_s=1.0) for k in range(3)]
    (a,) = send_all(group[0])
    group[1].receive(a, now=0)
    (b,) = send_all(group[1])
    group[0].receive(b, now=0)
    group[0].tick(s(0.0))
    null = next(m for m in list_transmitted(group[0].tick(s(1.0))) if isinstance(m, NullMessage))
    assert null.lt > b.lt
    assert isinstance(group[2].receive(b, now=0)[-1], Hold)
    assert list_delivered(group[2].receive(null, now=0)) == []
    assert list_delivered(group[2].receive(a, now=0)) == [a, b]


def test_linear_time_goes_on_with_null_messages_but_does_not_race() -> None:
    one, other = pair(heartbeat_s=1.0)
    send_all(one, 5)
    one.tick(s(0.0))
    (null,) = list_transmitted(one.tick(s(1.0)))
    other.receive(NullMessage(0, 0, b"", 0, null.lt), now=0)
    assert other.linear_time == null.lt == 5


# -- giving up ----------------------------------------------------------------------------------


def test_what_is_kept_no_longer_is_said_and_the_next_message_is_marked() -> None:
    source, me = pair(retry_s=1.0, keep=2)
    messages = send_all(source, 5)
    (request,) = list_transmitted(me.receive(messages[4], now=0))
    gone, *again = list_transmitted(source.receive(request, now=0))
    assert gone == Gone(0, 0, b"", 3)
    assert again == [messages[3]]
    assert me.receive(gone, now=0) == []
    effects = me.receive(messages[3], now=0)
    assert effects == [DeliverIncomplete(messages[3], (MessageId(0, 3),)), Deliver(messages[4])]
    assert me.receive(messages[1], now=0) == (Discard(messages[1], ABANDONED),)
    assert me.tick(s(9.0)) == ()


def test_given_up_between_messages_that_came() -> None:
    source, me = pair(retry_s=1.0, keep=1)
    messages = send_all(source, 6)
    for message in (messages[1], messages[3], messages[5]):
        me.receive(message, now=0)
    effects = me.receive(Gone(0, 0, b"", 5), now=0)
    assert [(type(e), e.message.seq) for e in effects] == [
        (DeliverIncomplete, 2),
        (DeliverIncomplete, 4),
        (DeliverIncomplete, 6),
    ]
    assert [e.missing for e in effects if isinstance(e, DeliverIncomplete)] == [
        ((0, 1),),
        ((0, 3),),
        ((0, 5),),
    ]


def test_a_late_message_that_was_given_up_still_comes_in_order() -> None:
    source, me = pair(retry_s=1.0)
    a, b, c = send_all(source, 3)
    me.receive(NullMessage(0, 0, b"", 2), now=0)
    assert me.receive(Gone(0, 0, b"", 2), now=0) == []
    assert list_delivered(me.receive(a, now=0)) == [a]
    assert me.receive(Gone(0, 0, b"", 2), now=0) == []  # a copy: it is still known how far all went
    assert me.receive(c, now=0) == [DeliverIncomplete(c, (MessageId(0, 2),))]
    assert me.receive(b, now=0) == (Discard(b, ABANDONED),)


def test_without_a_limit_everything_is_kept() -> None:
    source, me = pair(retry_s=1.0, keep=None)
    messages = send_all(source, 1100)
    (request,) = list_transmitted(me.receive(messages[-1], now=0))
    assert list_transmitted(source.receive(request, now=0)) == messages[:-1]


# -- the receipt buffer ---------------------------------------------------------------------------


def test_a_full_buffer_overruns_and_what_is_discarded_is_recovered() -> None:
    source, me = pair(retry_s=1.0, buffer_limit=2)
    messages = send_all(source, 4)
    assert isinstance(me.receive(messages[1], now=0)[-1], Hold)
    assert isinstance(me.receive(messages[2], now=0)[-1], Hold)
    assert list(me.receive(messages[3], now=0)) == [Discard(messages[3], BUFFER_FULL)]
    assert list_delivered(me.receive(messages[0], now=0)) == messages[:3]
    (request,) = [
        m for m in list_transmitted(me.tick(s(5.0))) if isinstance(m, RetransmissionRequest)
    ]
    assert request == RetransmissionRequest(1, 0, b"", 4, 4)
    assert (
        list_delivered(me.receive(*list_transmitted(source.receive(request, now=0)), now=0))
        == messages[3:]
    )


def test_a_message_ahead_makes_room_for_one_that_is_next() -> None:
    group = [Linear(k, range(3), retry_s=1.0, buffer_limit=2) for k in range(3)]
    first, second, third = send_all(group[0], 3)
    group[1].receive(first, now=0)
    (b,) = send_all(group[1])
    me = group[2]
    assert isinstance(me.receive(b, now=0)[-1], Hold)  # waits for member 0
    assert isinstance(me.receive(third, now=0)[-1], Hold)
    (x,) = send_all(group[1])
    discarded, hold = me.receive(x, now=0)
    assert discarded == Discard(third, BUFFER_FULL)
    assert hold == Hold(x, (MessageId(0, 3),))
    assert list_delivered(
        [e for message in (first, second) for e in me.receive(message, now=0)]
    ) == [*(first, b, second, x)]


def test_of_a_discarded_message_no_time_of_arrival_is_kept() -> None:
    options: Any = {"bounds": Bounds[int](), "delivery": "bound", "retry_s": 1.0}
    me = Linear(2, range(3), buffer_limit=2, **options)
    me.receive(StampedMessage(1, 1, "held", 0, 5), now=s(1.0))
    me.receive(StampedMessage(0, 2, "ahead", 1, 1), now=s(1.0))
    assert set(me.arrived_ns) == {(1, 1), (0, 2)}
    me.receive(StampedMessage(1, 2, "next", 1, 6), now=s(1.0))
    assert set(me.arrived_ns) == {(1, 1), (1, 2)}


def test_a_discarded_message_still_tells_that_nothing_earlier_comes() -> None:
    group = [Linear(k, range(3), retry_s=1.0, buffer_limit=1) for k in range(3)]
    b = send_all(group[1])[0]._replace(lt=5)
    late = StampedMessage(0, 1, "late", 0, 6)
    me = group[2]
    assert isinstance(me.receive(b, now=0)[-1], Hold)
    effects = me.receive(late, now=0)
    assert effects[0] == Discard(late, BUFFER_FULL)
    assert list_delivered(effects) == [b]


# -- defects as printed ---------------------------------------------------------------------------


def test_as_printed_the_revealing_message_is_lost_for_good() -> None:
    source, me = pair(as_published=("dropped",), retry_s=1.0, heartbeat_s=None)
    a, b = send_all(source, 2)
    request, discarded = me.receive(b, now=0)
    assert isinstance(discarded, Discard)
    for message in list_transmitted(source.receive(list_transmitted([request])[0], now=0)):
        assert list_delivered(me.receive(message, now=0)) == [a]
    assert list_transmitted(me.tick(s(50.0))) == []
    assert me.list_held() == ()


def test_as_printed_recovery_leaves_out_the_last_lost_message() -> None:
    source, me = pair(as_published=("exclusive-end",), retry_s=1.0)
    a, _, c = send_all(source, 3)
    (request,) = list_transmitted(me.receive(c, now=0))
    assert list_transmitted(source.receive(request, now=0)) == [a]


def test_as_printed_a_delivered_message_blocks_its_senders_next() -> None:
    source, me = pair(as_published=("dseq",))
    a, b, c = send_all(source, 3)
    assert me.receive(a, now=0) == [Deliver(a)]
    assert isinstance(me.receive(b, now=0)[-1], Hold)
    assert isinstance(me.receive(c, now=0)[-1], Hold)


def test_as_printed_an_answer_can_carry_the_time_of_its_question() -> None:
    """`equal-times`, section 4.1: LT := max(LT, m.LT), and then m.LT := LT."""
    for printed, expected in (((), 1), (("equal-times",), 0)):
        one, other = pair(as_published=printed)
        (a,) = send_all(one)
        other.receive(a, now=0)
        assert send_all(other)[0].lt - a.lt == expected


# -- what cannot be -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "error"),
    [
        (StampedMessage(7, 1, "m", 0), UnknownMemberError),
        (NullMessage(7, 0, b"", 0), UnknownMemberError),
        (StampedMessage(0, 0, "m", 0), SequenceError),
        (StampedMessage(0, 3, "m", 3), SequenceError),
        (StampedMessage(0, 3, "m", -1), SequenceError),
        (StampedMessage(0, MAX_NUMBER + 1, "m", MAX_NUMBER), SequenceError),
        (StampedMessage(0, 9, "m", 1), SequenceError),  # 2 came between
        (StampedMessage(0, 6, "m", 4), SequenceError),  # 5 follows 4
        (NullMessage(0, 0, b"", -1), SequenceError),
        (RetransmissionRequest(0, 0, b"", 1, 2), SequenceError),  # one was sent
        (RetransmissionRequest(0, 0, b"", 0, 1), SequenceError),
        (RetransmissionRequest(0, 0, b"", 2, 1), SequenceError),
        (Gone(0, 0, b"", 6), SequenceError),  # number 6 is unknown
        (Gone(0, 0, b"", 0), SequenceError),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(
    message: AnyMessage, error: type[RemoteError]
) -> None:
    source, me = pair(retry_s=1.0)
    a, b, _, _, e = send_all(source, 5)
    send_all(me)
    for known in (a, b, e):
        me.receive(known, now=0)
    with unchanged(me), pytest.raises(error):
        me.receive(message, now=0)


def test_an_absurd_number_costs_one_held_message() -> None:
    _, me = pair(retry_s=1.0)
    size = len(repr(me.snapshot()))
    far = StampedMessage(0, 10**15, "m", 10**15 - 1)
    assert list_transmitted(me.receive(far, now=0)) == [
        RetransmissionRequest(1, 0, b"", 1, 10**15 - 1)
    ]
    assert len(repr(me.snapshot())) < size + 200
    assert len(list_transmitted(me.tick(s(100.0)))) == 1


def test_an_absurd_request_costs_no_more_than_what_is_kept() -> None:
    source, _ = pair(retry_s=1.0, keep=3)
    send_all(source, 10)
    assert (
        len(list_transmitted(source.receive(RetransmissionRequest(1, 0, b"", 1, 10), now=0))) == 4
    )


@pytest.mark.slow
def test_a_long_gap_neither_recurses_nor_rescans() -> None:
    source, me = pair(retry_s=1.0)
    messages = send_all(source, 5000)
    for message in messages[:0:-1]:
        me.receive(message, now=0)
    assert list_delivered(me.receive(messages[0], now=0)) == messages


# -- bytes ----------------------------------------------------------------------------------------

NUMBERS = st.integers(0, MAX_NUMBER)
TIMES = st.integers(-LONGEST_NS, LONGEST_NS)


@st.composite
def any_message(draw: st.DrawFn) -> AnyMessage:
    sender, number, lt, pt_ns = draw(NUMBERS), draw(NUMBERS), draw(NUMBERS), draw(TIMES)
    kind = draw(st.sampled_from(["message", "null", "request", "gone"]))
    if kind == "message":
        return StampedMessage(sender, number + 1, b"", draw(st.integers(0, number)), lt, pt_ns)
    if kind == "null":
        return NullMessage(sender, 0, b"", number, lt, pt_ns)
    if kind == "request":
        return RetransmissionRequest(sender, 0, b"", number, draw(NUMBERS))
    return Gone(sender, 0, b"", number)


@given(message=any_message(), lt=st.booleans(), pt=st.booleans())
def test_the_wire_gives_back_what_it_was_given(message: AnyMessage, lt: bool, pt: bool) -> None:
    if isinstance(message, StampedMessage | NullMessage):
        message = message._replace(lt=message.lt * lt, pt_ns=message.pt_ns if pt else 0)
    if isinstance(message, StampedMessage) and message.seq > MAX_NUMBER:
        return
    control = encode(message, lt=lt, pt=pt)
    assert decode(control, b"", lt=lt, pt=pt) == message
    with pytest.raises(DecodeError):
        decode(control + b"\x00", b"", lt=lt, pt=pt)
    for cut in range(len(control)):
        with pytest.raises(RemoteError):
            decode(control[:cut], b"", lt=lt, pt=pt)


@given(data=st.binary(max_size=40), lt=st.booleans(), pt=st.booleans())
def test_random_bytes_decode_or_are_refused(data: bytes, lt: bool, pt: bool) -> None:
    try:
        message = decode(data, b"", lt=lt, pt=pt)
    except RemoteError:
        return
    assert encode(message, lt=lt, pt=pt) == data


def test_absurd_bytes_are_refused() -> None:
    cases: list[tuple[bytes, type[RemoteError]]] = [
        (b"\x04\x01", DecodeError),  # no such kind
        (b"\x00\x01\x05\x00\x00", SequenceError),  # no number back
        (b"\x00\x01\x05\x06\x00", SequenceError),  # further back than 0
        (b"\x01\x01" + varint(MAX_NUMBER + 1) + b"\x00", SequenceError),
        (b"\x00\x01\x05\x01" + varint(MAX_NUMBER + 1), SequenceError),
    ]
    for control, error in cases:
        with pytest.raises(error):
            decode(control, b"", lt=True, pt=False)
    for pt_ns in (LONGEST_NS + 1, -(1 << 63)):
        bad = encode(NullMessage(1, 0, b"", 1, 0, pt_ns), lt=False, pt=True)
        with pytest.raises(DecodeError, match="146 years"):
            decode(bad, b"", lt=False, pt=True)


def test_control_bytes_by_the_fields_of_section_6() -> None:
    message = StampedMessage(0, 7, "m", 6, 9, 1)
    sizes = {
        (lt, pt): control_bytes(message, lt=lt, pt=pt)
        for lt in (False, True)
        for pt in (False, True)
    }
    assert [sizes[times] for times in sorted(sizes)] == [4, 12, 8, 16]
    assert control_bytes(message._replace(before=3), lt=True, pt=True) == 20
    assert control_bytes(RetransmissionRequest(0, 0, b"", 1, 2), lt=True, pt=True) == 8
    assert control_bytes(Gone(0, 0, b"", 1), lt=True, pt=True) == 4


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"heartbeat_s": 0}, "heartbeat_s"),
        ({"retry_s": -1.0}, "retry_s"),
        ({"keep": 0}, "keep"),
        ({"buffer_limit": 0, "retry_s": 1.0}, "buffer_limit"),
        ({"buffer_limit": 5}, "needs recovery"),
        ({"delivery": "never"}, "null or bound"),
        ({"delivery": "bound"}, "needs bounds"),
        ({"recovery_s": -1.0}, "recovery_s"),
        ({"as_published": ("rule-1b",)}, "choose from dropped, dseq, equal-times"),
    ],
)
def test_options_that_mean_nothing_are_refused(options: Any, words: str) -> None:
    with pytest.raises(LocalError, match=words):
        Linear(0, range(2), **options)
