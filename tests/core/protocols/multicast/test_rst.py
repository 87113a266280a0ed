"""SENT: the matrix against sets, its layout, message ids, rejections, sizes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede.core.clocks.encoding.wire import ByteReader
from antecede.core.clocks.lanes import MAX_VALUE, get, pack
from antecede.core.protocols.base import Deliver, Hold, MessageId
from antecede.core.protocols.multicast.rst import Rst
from antecede.core.protocols.multicast.rst_messages import (
    MAX_SIDE,
    MatrixBytes,
    RstMessage,
    cell_index,
    entries_to_rows,
    index_to_cell,
)
from antecede.errors import LocalError, RemoteError, SequenceError, UnknownMemberError
from antecede.lab.check.scenario.parse import load_scenario
from antecede.lab.check.scenario.run import run_scenario
from tests.core.protocols.sending import send_one
from tests.helpers.network import Network
from tests.helpers.unchanged import unchanged

SCENARIOS = Path(__file__).resolve().parents[4] / "scenarios"


def at(rows: Sequence[int], sender: int, target: int) -> int:
    return get(rows[sender], target) if sender < len(rows) else 0


def rows(entries: dict[tuple[int, int], int]) -> tuple[int, ...]:
    return entries_to_rows((k, d, count) for (k, d), count in entries.items())


# -- the matrix ------------------------------------------------------------------------------


def test_the_members_below_n_fill_the_lanes_below_n_squared() -> None:
    for n in range(1, 20):
        found = {cell_index(k, d) for k in range(n) for d in range(n)}
        assert found == set(range(n * n))


@given(sender=st.integers(0, MAX_SIDE), target=st.integers(0, MAX_SIDE))
def test_entry_is_the_inverse_of_lane(sender: int, target: int) -> None:
    assert index_to_cell(cell_index(sender, target)) == (sender, target)


@given(seed=st.integers(0, 2**32), members=st.integers(2, 5))
def test_the_matrix_counts_what_was_sent_to_whom_in_the_past(seed: int, members: int) -> None:
    network = Network(Rst, members, seed).steps(50)
    for key, message in network.sent.items():
        for k in range(members):
            for d in range(members):
                past = [q for q in network.truth.past[key] if q[0] == k and d in network.sent[q].to]
                assert at(message.matrix, k, d) == len(past)


@given(seed=st.integers(0, 2**32), members=st.integers(2, 5))
def test_deliv_is_the_members_column_and_counts_deliveries(seed: int, members: int) -> None:
    network = Network(Rst, members, seed).steps(50)
    for here, member in network.members.items():
        for k in set(range(members)) - {here}:
            delivered = sum(sender == k for sender, _ in network.truth.delivered[here])
            assert member.delivered[k] == delivered == get(member.matrix[k], here)


@given(seed=st.integers(0, 2**32))
def test_missing_are_the_newest_messages_to_me_by_their_number_in_the_channel(seed: int) -> None:
    network = Network(Rst, 4, seed)
    for _ in range(40):
        network.steps(1)
        for at in network.members:
            for key, missing in network.held(at).items():
                owed = network.lacks(at, key)
                expected = set()
                for sender in {sender for sender, _ in owed}:
                    newest = max(number for k, number in owed if k == sender)
                    message = network.sent[sender, newest]
                    expected.add(network.members[at].identity(message))
                assert set(missing) == expected


@pytest.mark.parametrize("receivers", [1, 8, 9, 19])
def test_few_and_many_destinations_are_counted_alike(receivers: int) -> None:
    a, b = Rst(0, range(20)), Rst(1, range(20))
    to = range(1, receivers + 1)
    b.receive(send_one(a, to=to))
    expected = [pack((d, 1) for d in to)] + [0] * 19
    assert a.matrix == b.matrix == expected


def test_a_join_leaves_the_matrix_where_it_is() -> None:
    a, b = Rst(0, range(2)), Rst(1, range(2))
    a.receive(send_one(b))
    before = list(a.matrix)
    a.join(2)
    a.join(9)
    assert a.matrix == before + [0] * 8
    assert send_one(a).to == (1, 2, 9)
    assert get(a.matrix[0], 9) == 1
    assert get(a.matrix[1], 0) == 1


def test_a_message_is_named_by_its_number_in_the_channel() -> None:
    a, b, c = (Rst(k, range(3)) for k in range(3))
    send_one(a, to=[1])
    send_one(a, to=[1, 2])
    third = send_one(a, to=[2])
    assert third.seq == 3
    assert b.identity(third) == (0, 3)
    assert c.identity(third) == (0, 2)
    assert c.receive(third) == (Hold(third, (MessageId(0, 1),)),)
    assert c.causes(third) == ((0, 1),)


def test_the_example_of_001_with_d_before_b() -> None:
    """Sahai et al. 2020, "Now, suppose": the messages of the SES example; d waits for b alone, by
    its name.
    """
    p1, p2, p3 = (Rst(k, range(3)) for k in range(3))
    p2.receive(send_one(p3, "a", to=[1]))
    b = send_one(p2, "b", to=[0])
    p3.receive(send_one(p1, "c", to=[2]))
    d = send_one(p2, "d", to=[0])
    assert p1.receive(d) == (Hold(d, (MessageId(1, 1),)),)
    assert list(p1.receive(b)) == [Deliver(b), Deliver(d)]


@pytest.mark.parametrize("name", ["example", "triangle", "multicast"])
def test_the_scenarios_hold_and_deliver_as_those_of_ses(name: str) -> None:
    def course(protocol: str) -> list[tuple[str, str, str]]:
        stem = "ses-overtaking" if (protocol, name) == ("ses", "example") else f"{protocol}-{name}"
        run = run_scenario(load_scenario(SCENARIOS / f"{stem}.scenario"))
        kinds = ("hold", "deliver", "release")
        return [(h.at, h.kind, h.label) for h in run.occurrences() if h.kind in kinds]

    assert course("sent") == course("ses")
    assert any(kind == "hold" for _, kind, _ in course("sent"))


# -- refusals --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entries", "error"),
    [
        ({(0, 2): 1}, SequenceError),  # a message of mine that I never sent
        ({(1, 0): 2}, SequenceError),  # itself among its causes
        ({(2, 1): 6}, SequenceError),  # of a member that left after message 5
        ({(1, 1): 1}, UnknownMemberError),  # a member never sends to itself
        ({(3, 0): 1}, UnknownMemberError),  # from an unused number
        ({(1, 3): 1}, UnknownMemberError),  # to an unused number
        ({(9, 0): 1}, UnknownMemberError),  # a number above all
        ({(0, 9): 1}, UnknownMemberError),
        ({(1, 9): 1}, UnknownMemberError),
    ],
)
def test_impossible_matrices_are_refused(
    entries: dict[tuple[int, int], int], error: type[RemoteError]
) -> None:
    a, b = Rst(0, [0, 1, 2, 4]), Rst(1, [0, 1, 2, 4])
    a.leave(2, 5)
    send_one(b, to=[0])
    message = send_one(b, to=[0])._replace(matrix=rows(entries))
    with unchanged(a), pytest.raises(error):
        a.receive(message)
    known = send_one(b, to=[0])._replace(matrix=rows({(2, 1): 5, (1, 4): 1}))
    assert list(a.receive(known)) == [Deliver(known)]


def test_a_leaver_cannot_have_sent_less_than_is_known_of_it() -> None:
    a, b, c = (Rst(k, range(3)) for k in range(3))
    for _ in range(2):
        b.receive(send_one(c, to=[1]))
    a.receive(send_one(b))
    with unchanged(a), pytest.raises(LocalError):
        a.leave(2, 1)
    a.leave(2, 2)


def test_a_matrix_has_at_most_1024_rows() -> None:
    Rst(0, [0, MAX_SIDE - 1])
    with pytest.raises(LocalError, match="1023"):
        Rst(0, [0, MAX_SIDE])
    member = Rst(0, range(2))
    with pytest.raises(LocalError, match="1023"):
        member.join(MAX_SIDE)
    other = RstMessage(1, 1, None, (0,), rows({(1, MAX_SIDE): 1}))
    with pytest.raises(UnknownMemberError):
        member.decode(member.encode(other), None)


# -- impossible rows -------------------------------------------------------------------------


def make_message(entries: dict[tuple[int, int], int], *, by: int = 2, seq: int = 1) -> RstMessage:
    return RstMessage(by, seq, None, (0,), rows(entries))


def test_a_newer_row_that_is_not_above_mine_is_refused() -> None:
    a = Rst(0, range(5))
    a.receive(make_message({(1, 3): 2}))
    with unchanged(a), pytest.raises(SequenceError, match="contradicts the messages of member 1"):
        a.receive(make_message({(1, 3): 1, (1, 4): 1}, by=3))


def test_a_row_that_passes_for_an_older_one_adds_nothing() -> None:
    a = Rst(0, range(5))
    a.receive(make_message({(1, 3): 1, (1, 4): 1}))
    before = a.matrix[1]
    forged = make_message({(1, 3): 7}, by=3)
    assert list(a.receive(forged)) == [Deliver(forged)]
    assert a.matrix[1] == before


def test_rows_that_wait_and_contradict_each_other_merge_by_entries() -> None:
    a, b = Rst(0, range(5)), Rst(1, range(5))
    cause = send_one(b, to=[0])
    one, two = make_message({(1, 0): 1, (1, 3): 2}), make_message({(1, 0): 1, (1, 4): 1}, by=3)
    for message in (one, two):
        assert a.receive(message) == (Hold(message, (MessageId(1, 1),)),)
    assert list(a.receive(cause)) == [Deliver(cause), Deliver(one), Deliver(two)]
    assert a.matrix[1] == pack([(0, 1), (3, 2), (4, 1)])


def test_a_count_that_fills_its_lane_does_not_run_over() -> None:
    a = Rst(0, range(4))
    with pytest.raises(SequenceError, match="counts itself or a later message"):
        a.receive(make_message({(2, 1): MAX_VALUE}))
    a.receive(make_message({(2, 1): MAX_VALUE}, by=3))
    member = Rst(2, range(4))
    for _ in range(2):
        message = send_one(member, to=[0, 1])
        assert list(a.receive(message)) == [Deliver(message)]
    assert a.matrix[2] == pack([(0, 2), (1, MAX_VALUE)])
    assert a.decode(a.encode(send_one(a)), None).matrix[2] == a.matrix[2]


# -- matrices as bytes -----------------------------------------------------------------------

counts = st.one_of(st.just(0), st.integers(0, 3), st.integers(0, 300), st.integers(0, MAX_VALUE))
squares = st.integers(2, 5).flatmap(
    lambda side: st.lists(counts, min_size=side * side, max_size=side * side)
)


@given(st.lists(squares, min_size=1, max_size=6))
def test_matrices_are_read_as_written_whatever_came_before(found: list[list[int]]) -> None:
    writer, reader = MatrixBytes(), MatrixBytes()
    for square in found:
        side = round(len(square) ** 0.5)
        cells = {(n // side, n % side): c for n, c in enumerate(square) if c}
        matrix = rows({k: c for k, c in cells.items() if k[0] != k[1]})
        data = writer.encode(matrix)
        assert data == MatrixBytes().encode(matrix)
        assert reader.read(ByteReader(data)) == matrix


@given(st.lists(st.binary(min_size=1, max_size=20), min_size=1, max_size=4))
def test_a_matrix_has_one_spelling(found: list[bytes]) -> None:
    reader = MatrixBytes()
    for data in (*found, *(bytes((1, 2)) + data[:2] for data in found)):
        source = ByteReader(data)
        try:
            matrix = reader.read(source)
        except RemoteError:
            continue
        assert MatrixBytes().encode(matrix) == data[: source.offset]


# -- sizes -----------------------------------------------------------------------------------


def test_sizes_by_the_accounting() -> None:
    a = Rst(0, range(5))
    assert a.control_bytes(send_one(a, to=[1])) == 4 * (25 + 1)
    assert a.control_bytes(send_one(a)) == 4 * (25 + 4)
    assert a.storage_bytes() == 4 * (25 + 5)


def test_on_the_wire_only_what_is_not_0_or_all_of_it() -> None:
    quiet = [Rst(k, range(50)) for k in range(50)]
    send_one(quiet[7], to=[9])
    assert len(quiet[7].encode(send_one(quiet[7], to=[9]))) < 12
    group = [Rst(k, range(10)) for k in range(10)]
    for at in group:
        message = send_one(at)
        for other in group:
            if other is not at:
                other.receive(message)
    assert 90 < len(group[0].encode(send_one(group[0]))) < 110
