"""Common guarantees of linear, physical and linear-physical on clocks and delays in bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antecede.core.clocks.bounds import Bounds
from antecede.core.protocols.base import (
    AFTER_LEAVE,
    DUPLICATE,
    Deliver,
    Discard,
    Hold,
    MessageId,
    Transmit,
)
from antecede.core.protocols.clock_based.base import ClockOrdered
from antecede.core.protocols.clock_based.channel import BUFFER_FULL
from antecede.core.protocols.clock_based.linear import Linear
from antecede.core.protocols.clock_based.linear_physical import LinearPhysical
from antecede.core.protocols.clock_based.messages import (
    NullMessage,
    RetransmissionRequest,
    StampedMessage,
)
from antecede.core.protocols.clock_based.physical import Physical
from antecede.errors import LocalError, RemoteError, SequenceError
from tests.core.protocols.seconds import s
from tests.helpers.network import Network
from tests.helpers.unchanged import unchanged

NEAR: Bounds[int] = Bounds(accuracy_s=0.5, least_s=0.25, most_s=2)
FAR: Bounds[int] = Bounds(accuracy_s=0.5, least_s=1.25, most_s=3)
UNLIKE: Bounds[int] = Bounds(
    accuracy_s=0.25,
    least_s=1,
    most_s=2,
    clocks={0: 0.125, 2: 0.375},
    channels={(0, 1): (0.75, 1.5), (1, 0): (2, 3), (2, 1): (0.75, 0.75), (1, 2): (3, 4)},
)
KINDS: dict[str, tuple[type[ClockOrdered], Bounds[int]]] = {
    "linear": (Linear, NEAR),
    "physical": (Physical, FAR),
    "linear-physical": (LinearPhysical, NEAR),
}
TALK = 1 / 6
"""The share of sendings among all that happens, ticks too: some four messages a second."""
every = pytest.mark.parametrize("name", KINDS)
both = pytest.mark.parametrize("delivery", ["null", "bound"])


def maker(
    name: str, bounds: Bounds[int] | None = None, **options: Any
) -> Callable[[int, Iterable[int]], ClockOrdered]:
    kind, usual = KINDS[name]
    return lambda me, members: kind(me, members, bounds=bounds or usual, **options)


def send_one(member: ClockOrdered, now: int = 0, to: Iterable[int] | None = None) -> Any:
    (effect,) = member.send("m", now=now, to=to)
    assert isinstance(effect, Transmit)
    return effect.message


# -- whole runs ------------------------------------------------------------------------------


@pytest.mark.few(2)
@every
@both
@given(seed=st.integers(0, 2**32), members=st.integers(2, 5), selective=st.booleans())
@settings(max_examples=25)
def test_order_is_kept_and_everything_comes(
    name: str, delivery: str, seed: int, members: int, selective: bool
) -> None:
    make, bounds = maker(name, delivery=delivery), KINDS[name][1]
    network = Network(make, members, seed, bounds, narrow=0.6 * selective)
    network.steps(150, sends=TALK).finish()


@pytest.mark.few(1)
@every
@both
@given(seed=st.integers(0, 2**32))
@settings(max_examples=25)
def test_clocks_and_channels_may_be_unlike(name: str, delivery: str, seed: int) -> None:
    network = Network(maker(name, UNLIKE, delivery=delivery), 4, seed, UNLIKE)
    network.steps(150, sends=TALK).finish()


@pytest.mark.slow
@every
@given(seed=st.integers(0, 2**32), limit=st.sampled_from([None, 1, 2, 3]))
@settings(max_examples=25)
def test_what_is_lost_or_overruns_the_buffer_is_recovered(
    name: str, seed: int, limit: int | None
) -> None:
    """Tsuneizumi et al., sections 2 and 6: any share of all copies lost, null messages and requests
    too.
    """
    make = maker(name, retry_s=1.0, buffer_limit=limit)
    network = Network(make, 3, seed, KINDS[name][1], losses=0.3)
    network.steps(90, sends=TALK)
    network.losses = 0.0
    network.finish(120)


@pytest.mark.slow
@every
@both
@given(seed=st.integers(0, 2**32))
@settings(max_examples=25)
def test_members_come_and_go(name: str, delivery: str, seed: int) -> None:
    network = Network(maker(name, delivery=delivery), 3, seed, KINDS[name][1])
    network.steps(48, sends=TALK)
    network.join(3, network.anyone())
    network.steps(48, sends=TALK)
    network.leave(network.anyone())
    network.steps(48, sends=TALK).run(2)
    network.join(4, network.anyone())
    network.steps(48, sends=TALK).finish()


@every
def test_the_network_is_adversarial(name: str) -> None:
    make, bounds = maker(name, retry_s=1.0, buffer_limit=2), KINDS[name][1]
    networks = [
        Network(make, 3, seed, bounds, losses=0.3).steps(90, sends=TALK).run(20)
        for seed in range(4)
    ]
    requests = [
        m
        for network in networks
        for _, m in network.carried
        if isinstance(m, RetransmissionRequest)
    ]
    assert sum(network.holds for network in networks) > 20
    assert len(requests) > 20
    assert sum(network.discards[BUFFER_FULL] for network in networks) > 5


# -- when a message may go -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "wait_s"),
    [
        # largest - least by path - least to me + 2 lambda: 2 - 0.25 - 0.25 + 1
        ("linear", 2.5),
        # largest - least by path + lambda_j + lambda_me: 3 - 1.25 + 1
        ("physical", 2.75),
        ("linear-physical", 2.75),
    ],
)
def test_the_bound_is_met_by_the_worst_case_and_not_a_moment_later(
    name: str, wait_s: float
) -> None:
    group = {k: maker(name, delivery="bound")(k, range(3)) for k in range(3)}
    bounds = KINDS[name][1]
    behind, ahead = s(50 - 0.5), s(50 + 0.5)
    a = send_one(group[0], now=behind)
    group[1].receive(a, now=behind + bounds.least_ns)
    b = send_one(group[1], now=behind + bounds.least_ns)
    b_arrives = 2 * bounds.least_ns + (behind if name == "linear" else ahead)
    a_arrives = bounds.most_ns + ahead
    me = group[2]
    assert me.receive(b, now=b_arrives) == [Hold(b, ())]
    since = b.pt_ns if me.carries_pt else b_arrives
    assert a_arrives - since == s(wait_s) == me.wait_ns(1)
    copy = maker(name, delivery="bound")(2, range(3))
    copy.restore(me.snapshot())
    assert me.tick(a_arrives) == ()
    assert me.receive(a, now=a_arrives)[0] in (Deliver(a), Hold(a, ()))
    assert [e.message for e in me.tick(a_arrives + s(99)) if isinstance(e, Deliver)][-1] == b
    assert copy.tick(a_arrives + 1) == (Deliver(b),)


@every
def test_recovery_makes_the_bound_longer(name: str) -> None:
    plain = maker(name, delivery="bound")(0, range(3))
    patient = maker(name, delivery="bound", retry_s=1.0, recovery_s=7.0)(0, range(3))
    assert patient.wait_ns(1) == plain.wait_ns(1) + s(7)


def test_a_wait_above_146_years_is_refused_with_its_recovery() -> None:
    year_s = 365 * 86_400
    far = Bounds[int](most_s=146 * year_s)
    alone = Linear(0, range(3), bounds=far, delivery="bound", retry_s=1)
    assert alone.wait_ns(1) == s(146 * year_s)
    with_recovery = Linear(
        0, range(3), bounds=far, delivery="bound", retry_s=1, recovery_s=100.0 * year_s
    )
    with pytest.raises(LocalError, match=r"the wait is 7757856000 s; the limit is 146 years"):
        with_recovery.wait_ns(1)


@every
def test_a_wait_by_its_former_name_is_refused(name: str) -> None:
    kind, bounds = KINDS[name]
    own = type("Own", (kind,), {"wait_s": lambda self, sender: 0})
    with pytest.raises(LocalError, match=r"Own\.wait_s has no effect; define wait_ns"):
        own(0, range(3), bounds=bounds)


@every
def test_two_members_need_no_wait(name: str) -> None:
    member, other = (maker(name, delivery="bound")(k, range(2)) for k in range(2))
    assert member.receive(send_one(other), now=s(0.0))[0] == Deliver(
        send_one(maker(name)(1, range(2)))
    )


@every
def test_a_known_gap_holds_back_what_it_may_precede_whatever_the_bound_says(name: str) -> None:
    make = maker(name, delivery="bound", retry_s=1.0, recovery_s=1.0)
    group = {k: make(k, range(3)) for k in range(3)}
    a = send_one(group[0], now=s(10))
    null = NullMessage(0, 0, b"", 1, 1, s(10))
    group[1].receive(a, now=s(12))
    b = send_one(group[1], now=s(12))
    me = group[2]
    me.receive(null, now=s(13))
    assert me.receive(b, now=s(13))[-1] == Hold(b, (MessageId(0, 1),))
    assert not any(isinstance(e, Deliver) for e in me.tick(s(99)))
    assert [line.missing for line in me.list_held()] == [((0, 1),)]
    effects = [*me.receive(a, now=s(99)), *me.tick(s(199))]
    assert [e.message for e in effects if isinstance(e, Deliver)] == [a, b]


@every
def test_a_later_gap_of_its_own_sender_holds_nothing_back(name: str) -> None:
    other, me = maker(name)(1, range(3)), maker(name)(2, range(3))
    other.receive(NullMessage(0, 0, b"", 0, 5, s(8)), now=s(10))
    first, _, third = (send_one(other, now=s(10)) for _ in range(3))
    assert me.receive(first, now=s(12)) == [Hold(first, ())]
    assert me.receive(third, now=s(12)) == [Hold(third, (MessageId(1, 2),))]
    assert [line.missing for line in me.list_held()] == [(), ((1, 2),)]


@every
def test_del_cond_waits_for_something_of_every_member(name: str) -> None:
    """Tsuneizumi et al., DelCond: "if there is a message m_k in RBF for every peer p_k"; null
    messages do.
    """
    group = {k: maker(name)(k, range(4)) for k in range(4)}
    a = send_one(group[0], now=s(10))
    group[1].receive(a, now=s(12))
    b = send_one(group[1], now=s(12))
    me = group[3]
    me.receive(a, now=s(13))
    me.receive(b, now=s(13))
    assert {line.message for line in me.list_held()} >= {b}
    group[0].receive(b, now=s(14))
    group[2].receive(b, now=s(14))
    for k in (0, 2):
        group[k].tick(s(14))
        for effect in group[k].tick(s(16)):
            assert isinstance(effect, Transmit)
            done = me.receive(effect.message, now=s(17))
    assert [e.message for e in done if isinstance(e, Deliver)][-1] == b
    assert me.list_held() == ()


@every
def test_senders_messages_come_by_number_even_when_their_times_are_equal(name: str) -> None:
    """Errata: same-sender pairs are called concurrent by rule 1(b)."""
    source, me = (maker(name)(k, range(2)) for k in range(2))
    messages = [send_one(source, now=s(5.0)) for _ in range(3)]
    for message in messages[:0:-1]:
        assert isinstance(me.receive(message, now=0)[-1], Hold)
    assert me.receive(messages[0], now=0) == [Deliver(m) for m in messages]


def test_physical_leaves_near_pairs_alone_and_linear_orders_them() -> None:
    assert [
        maker(name, FAR)(2, range(3)).relation.precedes(
            StampedMessage(0, 1, "a", 0, 1, s(10)), StampedMessage(1, 1, "b", 0, 2, s(10.2))
        )
        for name in KINDS
    ] == [True, False, False]


# -- promises -------------------------------------------------------------------------------------


@every
@pytest.mark.parametrize(
    ("options", "withdrawn", "words"),
    [
        ({}, set(), ""),
        ({"heartbeat_s": None}, {"live"}, "no null messages"),
        ({"heartbeat_s": None, "retry_s": 1.0, "delivery": "bound"}, {"safe"}, "last"),
        ({"retry_s": 1.0, "delivery": "bound"}, {"safe"}, "no time for recovery"),
        ({"retry_s": 1.0, "keep": 2}, {"safe", "live"}, "2 newer ones"),
        ({"retry_s": 1.0, "delivery": "bound", "recovery_s": 9.0}, set(), "more than 9 s"),
    ],
)
def test_what_does_not_hold_is_not_promised(
    name: str, options: Any, withdrawn: set[str], words: str
) -> None:
    promise = maker(name, **options)(0, range(3)).guarantee
    assert {field for field in ("safe", "live") if not getattr(promise, field)} == withdrawn
    assert words in promise.remark
    assert bool(words) == bool(promise.remark)
    assert promise.needs_time
    assert not promise.no_unnecessary_wait


@pytest.mark.few(1)
@every
@given(seed=st.integers(0, 2**32))
@settings(max_examples=15)
def test_under_loss_the_bound_holds_when_the_budget_is_enough(name: str, seed: int) -> None:
    make = maker(name, delivery="bound", retry_s=1.0, recovery_s=20.0)
    network = Network(make, 3, seed, KINDS[name][1], losses=0.4)
    network.steps(24, sends=0.25)
    network.losses = 0.0
    network.finish(120)


def test_under_loss_the_bound_fails_without_a_budget() -> None:
    make = maker("linear", delivery="bound", retry_s=1.0)
    group = {k: make(k, range(3)) for k in range(3)}
    a = send_one(group[0])
    group[1].receive(a, now=0)
    b = send_one(group[1])
    group[2].receive(b, now=s(1.0))
    assert Deliver(b) in group[2].tick(s(99.0))


# -- members --------------------------------------------------------------------------------------


@every
def test_a_newcomer_is_sent_what_comes_after_its_join(name: str) -> None:
    old = [maker(name)(k, range(2)) for k in range(2)]
    early = send_one(old[0])
    old[1].receive(early, now=0)
    newcomer = maker(name)(2, [2])
    newcomer.install_join_state(old[1].join_state())
    assert newcomer.members == (0, 1, 2)
    assert newcomer.linear_time == old[1].linear_time
    for member in old:
        assert member.join(2) == ()
    effects = old[0].send("m", now=0)
    assert [(e.to, e.message.before) for e in effects if isinstance(e, Transmit)] == [
        ((2,), 0),
        ((1,), 1),
    ]
    assert len(old[0].send("n", now=0)) == 1


def test_a_newcomer_whose_clock_is_too_coarse_is_refused() -> None:
    bounds = Bounds[int](0.5, 1.25, 3, {2: 1})
    member = Physical(0, range(2), bounds=bounds)
    with unchanged(member), pytest.raises(LocalError, match="members 0 and 2"):
        member.join(2)


@every
def test_after_a_leave_late_messages_count_and_later_ones_are_refused(name: str) -> None:
    member, gone = (maker(name)(k, range(3)) for k in range(2))
    messages = [send_one(gone, now=k) for k in range(4)]
    member.receive(messages[3], now=s(4))
    assert member.leave(1, 2) == [Discard(messages[3], AFTER_LEAVE)]
    assert member.members == (0, 2)
    with unchanged(member), pytest.raises(SequenceError, match="numbers are 1 to 2"):
        member.receive(messages[2], now=s(4))
    for message in messages[:2]:
        member.receive(message, now=s(5))
    member.leave(2, 0)
    assert member.list_held() == ()
    assert member.receive(messages[1], now=s(5)) == (Discard(messages[1], DUPLICATE),)


@every
def test_nobody_waits_for_a_member_that_left(name: str) -> None:
    make, bounds = maker(name), KINDS[name][1]
    group = {k: make(k, range(3)) for k in range(3)}
    others = send_one(group[1], now=s(10), to=[2])  # member 0 will never get this number
    a = send_one(group[2], now=s(10), to=[0])._replace(lt=5)
    me = group[0]
    assert isinstance(me.receive(a, now=s(13))[-1], Hold)
    assert not any(isinstance(e, Deliver) for e in me.leave(1, others.seq))
    me.tick(s(20))
    assert not any(isinstance(e, Deliver) for e in me.tick(s(21) + bounds.most_ns))
    assert Deliver(a) in me.tick(s(21) + bounds.most_ns + 1)


# -- refusals, bytes, words -----------------------------------------------------------------------


@every
def test_an_own_null_message_has_no_effect(name: str) -> None:
    member = maker(name)(0, range(2))
    send_one(member)
    with unchanged(member):
        assert member.receive(NullMessage(0, 0, b"", 0), now=0) == ()


@pytest.mark.parametrize("ahead", [False, True])
@every
def test_the_reading_at_any_arrival_is_remembered(name: str, ahead: bool) -> None:
    source, member = maker(name)(1, range(2)), maker(name)(0, range(2))
    messages = [send_one(source, now=s(10)) for _ in range(2)]
    member.receive(messages[ahead], now=s(10))
    assert member.own_clock.read_ns == s(10)


@every
def test_inside_its_accuracy_the_clock_stands_and_does_not_begin_again(name: str) -> None:
    member = maker(name)(0, range(2))
    member.tick(s(10))
    member.tick(s(9))  # set back by twice its accuracy
    assert member.own_clock == (s(10), 0)


@every
@given(data=st.binary(max_size=40))
def test_random_bytes_are_refused_whole_or_taken_in(name: str, data: bytes) -> None:
    member = maker(name, retry_s=1.0)(0, range(4))
    before = member.snapshot()
    try:
        member.receive(member.decode(data, b""), now=0)
    except RemoteError:
        assert member.snapshot() == before


@every
def test_sizes_by_the_accounting_of_002(name: str) -> None:
    for members in (3, 300):
        member = maker(name)(0, range(members))
        message = send_one(member)
        each = {"linear": 8, "physical": 12, "linear-physical": 16}[name]
        assert member.control_bytes(message) == each
        own = 4 if name == "physical" else 8
        assert member.storage_bytes() == own + (members - 1) * (4 + each)


@every
def test_states_that_behave_alike_are_equal(name: str) -> None:
    group = {k: maker(name)(k, range(3)) for k in range(3)}
    a, b = send_one(group[1]), send_one(group[1])
    c = send_one(group[2])
    one, two = (maker(name)(0, range(3)) for _ in range(2))
    for message in (b, a, c):
        one.receive(message, now=0)
    for message in (c, a, b):
        two.receive(message, now=0)
    assert one.snapshot() == two.snapshot()
    assert hash(one.snapshot()) == hash(two.snapshot())


@every
def test_causes_and_closed_groups(name: str) -> None:
    member = maker(name)(0, range(2))
    first, second = send_one(member), send_one(member)
    assert member.causes(first) == ()
    assert member.causes(second) == (MessageId(0, 1),)
    assert member.causes(NullMessage(0, 0, b"", 3)) == ()
    with pytest.raises(LocalError, match="closed group"):
        member.mentions(first)


def test_the_state_in_the_words_of_section_6() -> None:
    group = {k: maker("linear")(k, range(3)) for k in range(3)}
    a, b = send_one(group[1]), send_one(group[1])
    group[0].receive(b, now=0)
    names = {0: "P1", 1: "P2", 2: "P3"}
    assert group[0].describe(names) == {
        "LT": "2",
        "SEQ": "1",
        "REQ": "P2: 1, P3: 1",
        "DSEQ": "P2: 0, P3: 0",
        "RBF": "m",
    }
    group[0].receive(a, now=0)
    assert group[0].describe(names)["REQ"] == "P2: 3, P3: 1"
    assert group[0].describe(names)["DSEQ"] == "P2: 1, P3: 0"
