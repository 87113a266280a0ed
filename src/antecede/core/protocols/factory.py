"""The members of a group, made by number from a protocol and its options.

A flat protocol is a class, called `factory(me, members, **options)` for each member. One with
several roles is a function that makes all of them at once, `factory(topology, **options)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from antecede.core.protocols.base import Guarantee, Protocol, Relation
from antecede.core.protocols.options.checks import with_trial
from antecede.core.protocols.registry import Entry
from antecede.errors import LocalError

Factory = Callable[..., Any]

MOST_MEMBERS = 10
"""Options of trial are asked for so many members, so that newcomers find themselves in them."""


def member(
    factory: Factory, me: int, everybody: Iterable[int], options: Mapping[str, Any], name: str = ""
) -> Protocol:
    """Return one member of a flat group; `name`: see `label_notes`."""
    made: Protocol = factory(me, tuple(everybody), **options)
    if name:
        label_notes(made, name)
    return made


def flat(
    factory: Factory, everybody: Iterable[int], options: Mapping[str, Any]
) -> dict[int, Protocol]:
    """Return all members of a flat group."""
    numbers = tuple(everybody)
    return {me: member(factory, me, numbers, options) for me in numbers}


def hierarchy(
    factory: Factory,
    groups: Mapping[int, tuple[int, ...]],
    external: Iterable[int],
    options: Mapping[str, Any],
    names: Mapping[int, str] = {},
    topology: Factory | None = None,
) -> dict[int, Protocol]:
    """Return all members of a group with roles: super peer -> internal peers, external peers.

    `names`: see `label_notes`. `topology` makes the factory's argument (None: `Topology`).
    """
    if topology is None:
        from antecede.core.protocols.hierarchical.roles import Topology

        topology = Topology
    made: dict[int, Protocol] = factory(topology(groups, tuple(external)), **options)
    for at, one in made.items() if names else ():
        label_notes(one, names[at])
    return made


def label_notes(made: Protocol, name: str) -> None:
    """Let what a member sends of its own accord carry its name, so that a script can call it."""
    if hasattr(made, "ack_payload"):
        made.ack_payload = f"ack-{name}"
    made.note_payload = f"note-{name}"


def smallest(found: Entry, chosen: Mapping[str, Any]) -> dict[int, Protocol]:
    """Return the smallest group of a built-in protocol, tried with what it asks for itself."""
    factory = found.load()
    if not found.flat:
        return hierarchy(factory, {1: (0,)}, (2,), chosen)
    return flat(factory, range(2), with_trial(factory, range(MOST_MEMBERS), chosen))


def numbered(options: Mapping[str, Any], numbers: Mapping[str, int]) -> dict[str, Any]:
    """Return options with members' numbers for names. Raises LocalError for strangers."""
    return {
        name: value.numbered(numbers) if hasattr(value, "numbered") else value
        for name, value in options.items()
    }


# -- what they promise together -------------------------------------------------------------------


def relation_of(members: Mapping[int, Protocol]) -> Relation:
    """Return the one relation that all members of a group keep; raises LocalError."""
    kept = {member.guarantee.relation for member in members.values()}
    if len(kept) != 1:
        raise LocalError(f"members keep different relations: {sorted(r.value for r in kept)}")
    return kept.pop()


_CLAUSES = {
    "safe": "nothing early",
    "live": "nothing stuck",
    "no_unnecessary_wait": "no unnecessary wait",
    "survives_loss": "survives loss",
    "joins": "members join",
    "leaves": "members leave",
    "needs_time": "waits for time to pass",
}


def promise(members: Mapping[int, Protocol]) -> str:
    """Say in words what all members of a group promise together."""
    guarantees: list[Guarantee] = [member.guarantee for member in members.values()]
    kept = [
        words for field, words in _CLAUSES.items() if all(getattr(g, field) for g in guarantees)
    ]
    remarks = dict.fromkeys(g.remark for g in guarantees if g.remark)
    return f"order by {relation_of(members).value}; " + ", ".join((*kept, *remarks))
