"""SES: the example of Sahai et al. 2020, the rule against sets, co-destinations, sizes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede.core.clocks.encoding.compact import encode_compact
from antecede.core.clocks.encoding.wire import varint
from antecede.core.clocks.lanes import MAX_MEMBER, get, pack, unpack
from antecede.core.protocols.base import Deliver, Discard, Hold, MessageId
from antecede.core.protocols.multicast.ses import Ses
from antecede.core.protocols.multicast.ses_messages import SesMessage
from antecede.errors import DecodeError, LocalError, RemoteError, SequenceError, UnknownMemberError
from antecede.lab.check.scenario.parse import load_scenario
from antecede.lab.check.scenario.run import run_scenario
from tests.core.protocols.sending import send_one
from tests.helpers.network import Network, play
from tests.helpers.unchanged import unchanged

SCENARIOS = Path(__file__).resolve().parents[4] / "scenarios"


def entries(message: SesMessage, members: int) -> dict[int, tuple[int, ...]]:
    return {member: unpack(vector, members) for member, vector in message.entries}


# -- the example of Sahai et al. 2020
# ----------------------------------------------------------------------


def example(**kind: bool) -> tuple[list[Ses], dict[str, SesMessage]]:
    """P1, P2, P3 of Sahai et al. 2020 (members 0, 1, 2) when d has been sent; b and d are on their
    way.
    """
    p1, p2, p3 = group = [Ses(k, range(3), **kind) for k in range(3)]
    a = send_one(p3, "a", to=[1])
    p2.receive(a)
    b = send_one(p2, "b", to=[0])
    c = send_one(p1, "c", to=[2])
    p3.receive(c)
    return group, {"a": a, "b": b, "c": c, "d": send_one(p2, "d", to=[0])}


def test_the_timestamps_of_the_example() -> None:
    """Sahai et al. 2020: t^a, t^b, t^c, t^d, and V^a to V^d, which travel as they were before the
    send.
    """
    _, messages = example()
    stamps = {name: unpack(message.timestamp, 3) for name, message in messages.items()}
    assert stamps == {"a": (0, 0, 1), "b": (0, 1, 1), "c": (1, 0, 0), "d": (0, 2, 1)}
    carried = {name: entries(message, 3) for name, message in messages.items()}
    assert carried == {"a": {}, "b": {}, "c": {}, "d": {0: (0, 1, 1)}}


def test_the_example_in_order() -> None:
    """Sahai et al. 2020, e12 and e13: C_1 = (1, 1, 1), then (1, 2, 1)."""
    (p1, _, _), messages = example()
    assert list(p1.receive(messages["b"])) == [Deliver(messages["b"])]
    assert p1.describe()["C"] == "(1, 1, 1)"
    assert list(p1.receive(messages["d"])) == [Deliver(messages["d"])]
    assert p1.describe() == {"C": "(1, 2, 1)", "V": "(?, ?, (1, 0, 0))"}


def test_the_example_with_d_before_b() -> None:
    """Sahai et al. 2020, "Now, suppose": V^d[1] is compared with the whole C_1, and d is queued."""
    (p1, _, _), messages = example()
    b, d = messages["b"], messages["d"]
    missing = (MessageId(1, 1), MessageId(2, 1))
    assert p1.receive(d) == (Hold(d, missing),)
    assert p1.causes(d) == missing
    assert [(line.message, line.missing) for line in p1.list_held()] == [(d, missing)]
    assert p1.describe()["C"] == "(1, 0, 0)"
    assert list(p1.receive(b)) == [Deliver(b), Deliver(d)]
    assert p1.describe()["C"] == "(1, 2, 1)"


def test_v_as_the_example_prints_it() -> None:
    """Sahai et al. 2020, e12, e32 and e13: V becomes V of the message. e23's entry for P3 is a
    misprint.
    """
    (p1, p2, p3), messages = example(as_published=True)
    assert p3.describe()["V"] == "(?, ?, ?)"
    p1.receive(messages["b"])
    assert p1.describe()["V"] == "(?, ?, ?)"
    assert p2.describe()["V"] == "((0, 2, 1), ?, ?)"
    p1.receive(messages["d"])
    assert p1.describe()["V"] == "((0, 1, 1), ?, ?)"


@pytest.mark.parametrize("name", ["ses-in-order", "ses-printed-example"])
def test_the_scenarios_print_the_clocks_of_001(name: str) -> None:
    run = run_scenario(load_scenario(SCENARIOS / f"{name}.scenario"))
    states = [line for moment in run.results for line in moment.output if line.startswith("C = ")]
    clocks = ["(0, 0, 1)", "(0, 0, 1)", "(0, 1, 1)", "(1, 0, 0)"]
    clocks += ["(1, 1, 1)", "(1, 0, 1)", "(0, 2, 1)", "(1, 2, 1)"]
    assert states == [
        f"C = {clock}" for clock in (clocks if name == "ses-in-order" else clocks[4:])
    ]


# -- the rule --------------------------------------------------------------------------------


@given(seed=st.integers(0, 2**32), members=st.integers(2, 5))
def test_stamps_and_entries_are_those_of_the_definition(seed: int, members: int) -> None:
    network = Network(Ses, members, seed).steps(50)

    def most(ids: Iterable[tuple[int, int]]) -> tuple[int, ...]:
        stamps = [unpack(network.sent[key].timestamp, members) for key in ids]
        return tuple(map(max, zip(*stamps, (0,) * members, strict=True)))

    for key, message in network.sent.items():
        past = network.truth.past[key]
        counts = [sum(sender == k for sender, _ in past | {key}) for k in range(members)]
        assert unpack(message.timestamp, members) == tuple(counts)
        for d in set(range(members)) - {key[0]}:
            to_d = {k for k in past if d in network.sent[k].to}
            told = {k for k in to_d if any(k in network.truth.past[q] for q in past if q[0] == d)}
            found = entries(message, members).get(d, (0,) * members)
            for least, value, largest in zip(most(to_d - told), found, most(to_d), strict=True):
                assert least <= value <= largest


@given(seed=st.integers(0, 2**32))
def test_missing_are_sends_whose_news_has_not_come(seed: int) -> None:
    network = Network(Ses, 4, seed)
    for _ in range(40):
        network.steps(1)
        for at in network.members:
            for key, missing in network.held(at).items():
                assert missing
                past = network.truth.past[key]
                assert set(missing) <= past - network.truth.known[at]
                newest = {k: max(n for s, n in past if s == k) for k, _ in missing}
                assert all(number <= newest[sender] for sender, number in missing)
                for sender, number in network.lacks(at, key):
                    assert any(s == sender and n >= number for s, n in missing)


def test_the_clock_grows_on_sending_only() -> None:
    a, b = Ses(0, range(2)), Ses(1, range(2))
    assert unpack(a.clock, 2) == (0, 0)
    b.receive(send_one(a))
    assert unpack(b.clock, 2) == (1, 0)


def test_a_copy_is_known_by_the_clock_alone() -> None:
    network = play(Ses, 7, steps=120)
    for at, member in network.members.items():
        assert member.published_merge is None
        for key in network.truth.delivered[at]:
            assert isinstance(member.receive(network.sent[key])[0], Discard)


def test_a_departed_destination_has_no_entry_and_gets_none() -> None:
    a, b, c = (Ses(k, range(3)) for k in range(3))
    send_one(a, to=[1, 2])
    a.leave(2, 0)
    assert set(a.entries) == {1}
    b.receive(send_one(c, to=[1]))
    message = send_one(b, to=[0, 2])  # b does not know yet
    a.leave(1, 1)
    a.join(5)
    assert a.entries == {}
    for late in (message, send_one(b, to=[2])):
        a_before = dict(a.entries)
        with pytest.raises(RemoteError):
            a.receive(late)  # c left after 0 messages, and b knows of one
        assert a.entries == a_before
    assert [member for member, _ in send_one(a).entries] == []


def test_entries_for_a_departed_member_are_passed_over() -> None:
    a, b, _ = (Ses(k, range(3)) for k in range(3))
    send_one(b, to=[2])
    message = send_one(b, to=[0, 2])
    assert set(entries(message, 3)) == {2}
    a.leave(2, 0)
    assert list(a.receive(message)) == [Deliver(message)]
    assert a.entries == {}


def test_an_unknown_variant_is_refused() -> None:
    with pytest.raises(LocalError, match="overwriting"):
        Ses(0, range(2), as_published="whatever")


def test_the_variants_survive_a_snapshot() -> None:
    (p1, _, _), messages = example(as_published=True)
    p1.receive(messages["d"])
    again = Ses(0, range(3))
    again.restore(p1.snapshot())
    for member in (p1, again):
        assert list(member.receive(messages["b"])) == [
            Deliver(messages["b"]),
            Deliver(messages["d"]),
        ]
        assert isinstance(member.receive(messages["b"])[0], Discard)
    assert again.snapshot() == p1.snapshot()


# -- refusals --------------------------------------------------------------------------------


def impossible() -> list[tuple[str, dict[str, Any], type[RemoteError]]]:
    return [
        ("its number is not its stamp's", {"seq": 1}, SequenceError),
        ("a stranger in the stamp", {"timestamp": pack([(1, 2), (5, 1)])}, UnknownMemberError),
        ("a gap in the stamp", {"timestamp": pack([(1, 2), (3, 1)])}, UnknownMemberError),
        ("a guard bit in the stamp", {"timestamp": pack([(1, 2)]) | 1 << 39}, UnknownMemberError),
        ("my message that I never sent", {"timestamp": pack([(0, 1), (1, 2)])}, SequenceError),
        ("an entry beyond the stamp", {"entries": ((0, pack([(2, 1)])),)}, SequenceError),
        ("itself among its causes", {"entries": ((0, pack([(1, 2)])),)}, SequenceError),
        ("an entry for a stranger", {"entries": ((9, pack([(1, 1)])),)}, UnknownMemberError),
        ("an entry that names a stranger", {"entries": ((0, pack([(9, 1)])),)}, UnknownMemberError),
        ("a guard bit in an entry", {"entries": ((0, 1 << 39),)}, UnknownMemberError),
        ("an entry twice", {"entries": ((0, 1 << 40), (0, 1 << 40))}, DecodeError),
        ("entries out of order", {"entries": ((2, 1 << 40), (0, 1 << 40))}, DecodeError),
        ("an entry without a send", {"entries": ((0, 0),)}, DecodeError),
    ]


@pytest.mark.parametrize(("what", "change", "error"), impossible(), ids=lambda v: str(v)[:30])
def test_impossible_control_information_is_refused(
    what: str, change: dict[str, Any], error: type[RemoteError]
) -> None:
    a, b = Ses(0, [0, 1, 2, 4]), Ses(1, [0, 1, 2, 4])
    send_one(b, to=[0])
    message = send_one(b, to=[0])
    assert isinstance(a.receive(message)[0], Hold), what
    a = Ses(0, [0, 1, 2, 4])
    with unchanged(a), pytest.raises(error):
        a.receive(message._replace(**change))


def test_bytes_that_no_encoder_writes_are_refused() -> None:
    member = Ses(0, range(3))
    head = varint(1) + varint(3) + bytes((1, 0, 0))  # message 3 of member 1 to member 0
    nothing = encode_compact(0)
    past = encode_compact(pack([(1, 2)]))
    fine = head + nothing + b"\x01" + b"\x00" + past
    assert member.decode(fine, None).entries == ((0, 0),)
    cases: list[tuple[bytes, type[RemoteError]]] = [
        (head + past + b"\x00", DecodeError),  # its own number twice
        (head + nothing + varint(10**9), DecodeError),
        (head + nothing + b"\x01\x00" + encode_compact(pack([(1, 3)])), SequenceError),  # below 0
        (head + nothing + b"\x01\x00" + encode_compact(pack([(2, 1)])), UnknownMemberError),
        (head + nothing + b"\x01" + varint(MAX_MEMBER + 1) + past, UnknownMemberError),
        (varint(1) + varint(0) + bytes((1, 0, 0)) + nothing + b"\x00", SequenceError),
        (varint(MAX_MEMBER + 1) + head[1:] + nothing + b"\x00", UnknownMemberError),
        (varint(1) + varint(3) + b"\x01\x00" + varint(MAX_MEMBER + 1), UnknownMemberError),
    ]
    for control, error in cases:
        with pytest.raises(error):
            member.decode(control, None)


def test_a_small_message_cannot_ask_for_much_memory() -> None:
    wide = encode_compact(pack([(MAX_MEMBER, 1)]))
    head = varint(1) + varint(1) + bytes((1, 0, 0))
    with pytest.raises(DecodeError, match="entries"):
        Ses(0, range(2)).decode(head + wide + varint(5000) + bytes(20_000), None)


# -- sizes -----------------------------------------------------------------------------------


def test_sizes_by_the_accounting() -> None:
    a = Ses(0, range(5))
    assert a.control_bytes(send_one(a, to=[1])) == 4 * (5 + 1)
    assert a.storage_bytes() == 4 * (5 + 6)
    message = send_one(a)
    assert a.control_bytes(message) == 4 * (5 + 4 + 6)
    assert a.storage_bytes() == 4 * (5 + 4 * 6)


@pytest.mark.slow
def test_entries_cost_what_they_are_behind() -> None:
    members = 50
    group = [Ses(k, range(members)) for k in range(members)]
    for _ in range(4):
        for at in group:
            message = send_one(at)
            for other in group:
                if other is not at:
                    other.receive(message)
    message = send_one(group[0])
    assert len(message.entries) == members - 1
    assert group[0].control_bytes(message) > 10_000
    assert len(group[0].encode(message)) < 600
    assert get(message.timestamp, 0) == 5
