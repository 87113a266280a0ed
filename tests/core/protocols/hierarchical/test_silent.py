"""Groups that send nothing for long: I is flushed, and all state stays bounded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from antecede.core.clocks.bits import MAX_SPAN
from antecede.core.protocols.base import AFTER_LEAVE, Deliver, Discard, Protocol, Transmit
from antecede.core.protocols.hierarchical import ExternalPeer, Topology, hierarchical
from antecede.core.protocols.hierarchical.messages import External, Flush, Upward
from antecede.core.protocols.hierarchical.super_peer import FLUSH_AFTER
from antecede.errors import DecodeError, LocalError, SequenceError, UnknownMemberError
from antecede.lab.check.conformance import SuitePlan, conform
from antecede.lab.check.harness.group_under_test import hierarchy
from antecede.lab.check.model_checker.explorer import SearchLimits, explore
from tests.helpers.unchanged import unchanged

SMALL = Topology({1: (4,)}, (2, 3))


def carry(
    members: dict[int, Protocol], effects: Sequence[Any], later: list[Any] | None = None
) -> list[Any]:
    """Carry out effects over the wire; append flushes to `later` if it is given."""
    seen = list(effects)
    for effect in effects:
        if not isinstance(effect, Transmit):
            continue
        for target in effect.to:
            if isinstance(effect.message, Flush) and later is not None:
                later.append((target, effect.message))
                continue
            wire = members[target].encode(effect.message)
            message = members[target].decode(wire, effect.message.payload)
            assert message == effect.message
            seen += carry(members, members[target].receive(message), later)
    return seen


def flushes(effects: Sequence[Any]) -> list[Flush]:
    return [e.message for e in effects if isinstance(e, Transmit) and isinstance(e.message, Flush)]


def spans(members: dict[int, Protocol]) -> tuple[int, int]:
    super_peer, external = members[1], members[3]
    fresh = super_peer.table.fresh[1]  # type: ignore[attr-defined]
    vtx = external.clock.vectors[1][1]  # type: ignore[attr-defined]
    return fresh.bit_length(), vtx.bit_length()


def test_a_silent_group_flushes_every_so_often_and_is_heard_at_once_when_it_speaks() -> None:
    members = hierarchical(SMALL, flush_after=8)
    notes: list[Flush] = []
    for _ in range(100):
        notes += flushes(carry(members, members[2].send(b"x")))
        assert max(spans(members)) < 8
    assert [note.translated for note in notes] == [(8 * k, 255) for k in range(12)]
    assert members[1].control_bytes(notes[0]) == 1
    assert members[1].is_control(notes[0])
    assert members[3].is_control(notes[0])
    spoken = carry(members, members[4].send(b"hello"))
    assert [e.message.payload for e in spoken if isinstance(e, Deliver)] == [b"hello"] * 2
    outward = next(
        e.message for e in spoken if isinstance(e, Transmit) and isinstance(e.message, External)
    )
    assert outward.seq == 101
    assert outward.translated == (96, 15)
    assert spans(members) == (0, 0)


def test_flushes_that_come_late_or_twice_change_nothing_but_what_is_kept() -> None:
    members = hierarchical(SMALL, flush_after=4)
    late: list[Any] = []
    for _ in range(10):
        carry(members, members[2].send(b"x"), late)
    spoken = carry(members, members[4].send(b"hello"), late)
    assert [e.message.payload for e in spoken if isinstance(e, Deliver)] == [b"hello"] * 2
    assert spans(members)[1] == 11
    for target, note in reversed(late * 2):
        assert list(members[target].receive(note)) == []
    assert spans(members) == (0, 0)


def test_a_larger_i_of_an_older_state_goes_out_in_pieces() -> None:
    members = hierarchical(SMALL, flush_after=4)
    members[1].flush_after = 1000  # type: ignore[attr-defined]
    for _ in range(10):
        carry(members, members[2].send(b"x"))
    members[1].flush_after = 4  # type: ignore[attr-defined]
    notes = flushes(carry(members, members[2].send(b"x")))
    assert [note.translated for note in notes] == [(0, 15), (4, 15)]
    assert spans(members) == (3, 0)


def test_other_super_peers_are_told_and_forward_nothing_for_it() -> None:
    topology = Topology({1: (4,), 5: (6,)}, (2,))
    members = hierarchical(topology, flush_after=1)
    seen = carry(members, members[2].send(b"x"))
    assert len(flushes(seen)) == 2
    assert members[5].clock.vectors == {1: (1, 0)}  # type: ignore[attr-defined]
    assert [e.message.payload for e in seen if isinstance(e, Deliver)] == [b"x", b"x"]


@pytest.mark.few(1)
@pytest.mark.parametrize("groups", [(1,), (1, 1)])
def test_with_flushes_all_promises_are_kept(groups: tuple[int, ...]) -> None:
    company = hierarchy("hierarchical", hierarchical, Topology, groups, 1, {"flush_after": 1})
    found = explore(company, SearchLimits(2, max_states=20_000)).failure
    assert found is None, found.sentence()
    company = hierarchy("hierarchical", hierarchical, Topology, groups, 2, {"flush_after": 2})
    suite = conform(company, SuitePlan(runs=25))
    assert suite.failure is None, suite.failure.sentence()


@pytest.mark.parametrize(
    ("note", "error"),
    [
        (Flush(2, 0, (0, 1), b""), UnknownMemberError),
        (Flush(9, 0, (0, 1), b""), UnknownMemberError),
        (Flush(1, 0, (0, 0), b""), SequenceError),
        (Flush(1, 0, (0, (1 << MAX_SPAN + 1) - 1), b""), SequenceError),
        (Flush(1, 0, (MAX_SPAN + 1, 1), b""), SequenceError),
    ],
)
def test_a_flush_that_cannot_be_is_refused_and_changes_nothing(note: Flush, error: Any) -> None:
    peer = hierarchical(SMALL)[3]
    with unchanged(peer), pytest.raises(error):
        peer.receive(note)


def test_i_wider_than_the_wire_takes_is_refused_before_the_wire_too() -> None:
    n = MAX_SPAN + 10
    message = External(1, n + 1, (), (), (0, (1 << n) - 1), b"x")
    with pytest.raises(SequenceError, match="wide"):
        hierarchical(SMALL)[3].receive(message)


def test_the_bound_has_room_for_flushes_that_are_overtaken() -> None:
    assert FLUSH_AFTER * 16 == MAX_SPAN
    for most in (0, FLUSH_AFTER + 1):
        with pytest.raises(LocalError, match="flush_after"):
            hierarchical(SMALL, flush_after=most)
    with pytest.raises(DecodeError, match="flush of I with number"):
        hierarchical(SMALL)[3].decode(b"\x04\x01\x05" + b"\x00", b"")


# -- who left -----------------------------------------------------------------------------------


def external(seq: int) -> External:
    return External(2, seq, (), (), (0, 0), b"%d" % seq)


def test_an_external_peer_discards_what_is_held_beyond_the_last_message() -> None:
    peer = hierarchical(SMALL)[3]
    late = external(2)
    peer.receive(late)
    peer.receive(external(4))
    assert list(peer.leave(2, 2)) == [Discard(external(4), AFTER_LEAVE)]
    restored = hierarchical(SMALL)[3]
    restored.restore(peer.snapshot())
    for one in (peer, restored):
        assert [e.message.seq for e in one.receive(external(1))] == [1, 2]
        assert one.list_held() == ()


def test_a_super_peer_discards_what_is_held_beyond_the_last_message_on_both_sides() -> None:
    super_peer = hierarchical(SMALL)[1]
    upward = Upward(4, 2, (0, 0), 0, b"2")
    super_peer.receive(upward)
    assert list(super_peer.leave(4, 1)) == [Discard(upward, AFTER_LEAVE)]
    effects = super_peer.receive(upward._replace(seq=1))
    assert [e.message.payload for e in effects if isinstance(e, Transmit)] == [b"2"]
    assert not super_peer.table.lower_bounds  # type: ignore[attr-defined]
    super_peer.receive(external(2))
    assert list(super_peer.leave(2, 1)) == [Discard(external(2), AFTER_LEAVE)]
    assert len(super_peer.receive(external(1))) == 0  # the group is empty
    assert super_peer.list_held() == ()


def test_a_newcomer_learns_who_left_and_after_which_message() -> None:
    sponsor = hierarchical(Topology({1: (4,)}, (2, 3, 5)))[3]
    sponsor.receive(external(1))
    sponsor.leave(2, 1)
    newcomer = ExternalPeer(9, (9,), (1,))
    newcomer.install_join_state(sponsor.join_state())
    with pytest.raises(SequenceError, match="left after message 1"):
        newcomer.receive(external(2))
    with pytest.raises(LocalError, match="is not another member"):
        newcomer.leave(2, 1)
    with pytest.raises(SequenceError, match="names message 2 of 2"):
        newcomer.receive(External(5, 1, ((2, 2),), (), (0, 0), b""))
