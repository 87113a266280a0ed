"""Factory of group members: one place for all callers, with names and trial options."""

from __future__ import annotations

from typing import Any

import pytest

from antecede.core.clocks.bounds import Bounds
from antecede.core.protocols import factory as build
from antecede.core.protocols.base import Relation
from antecede.core.protocols.basic.fifo import Fifo
from antecede.core.protocols.basic.unordered import Unordered
from antecede.core.protocols.hierarchical import (
    ExternalPeer,
    InternalPeer,
    SuperPeer,
    hierarchical,
)
from antecede.core.protocols.registry import ENTRIES
from antecede.core.protocols.topics.subscriptions import Subscriptions
from antecede.core.protocols.vector.bss import Bss
from antecede.errors import LocalError


def test_members_of_a_flat_group_know_each_other_and_their_options() -> None:
    made = build.flat(Bss, (2, 0, 5), {"differences": True})
    assert {at: (one.me, one.members) for at, one in made.items()} == {
        at: (at, (0, 2, 5)) for at in (2, 0, 5)
    }
    assert all(isinstance(one, Bss) and one.differences for one in made.values())


def test_roles_stand_where_the_topology_says_and_notes_have_names() -> None:
    names = {1: "S", 2: "A", 3: "X"}
    made = build.hierarchy(hierarchical, {1: (2,)}, [3], {"ack_after": 1}, names)
    kinds = {at: type(one) for at, one in made.items()}
    assert kinds == {1: SuperPeer, 2: InternalPeer, 3: ExternalPeer}
    assert [made[at].note_payload for at in names] == ["note-S", "note-A", "note-X"]
    inner = made[2]
    assert isinstance(inner, InternalPeer)
    assert inner.ack_payload == "ack-A"


def test_without_a_name_notes_carry_what_the_protocol_gives_them() -> None:
    assert build.member(Fifo, 0, (0, 1), {}).note_payload == b""
    assert build.member(Fifo, 0, (0, 1), {}, "A").note_payload == "note-A"


@pytest.mark.parametrize("name", ENTRIES)
def test_the_smallest_group_has_every_role_and_one_relation(name: str) -> None:
    made = build.smallest(ENTRIES[name], {})
    assert len(made) == (2 if ENTRIES[name].flat else 3)
    assert build.relation_of(made) in Relation
    assert build.promise(made).startswith(f"order by {build.relation_of(made).value}; ")


def test_a_group_keeps_one_relation() -> None:
    with pytest.raises(LocalError, match=r"different relations: .*fifo.*none"):
        build.relation_of({0: Fifo(0, (0, 1)), 1: Unordered(1, (0, 1))})


def test_names_in_options_become_numbers() -> None:
    options: dict[str, Any] = {
        "bounds": Bounds(clocks={"b": 1}),
        "subscriptions": Subscriptions({"a": ["x"]}),
    }
    told = build.replace_names({**options, "keep": 3}, {"a": 0, "b": 1})
    assert told == {
        "bounds": Bounds(clocks={1: 1}),
        "subscriptions": Subscriptions({0: ["x"]}),
        "keep": 3,
    }
    with pytest.raises(LocalError, match="not in the group"):
        build.replace_names(options, {"b": 1})
