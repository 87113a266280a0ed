"""Construction of group members from a protocol and its options.

A flat protocol is a class: `factory(me, members, **options)` makes one member. A protocol with
roles is a function: `factory(topology, **options)` makes all members at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from antecede.core.protocols.base import Guarantee, Protocol, Relation
from antecede.core.protocols.options.checks import with_trial
from antecede.core.protocols.registry import ProtocolEntry
from antecede.errors import LocalError

Factory = Callable[..., Any]

MOST_MEMBERS = 10
"""Group size for which trial options are requested, so that they cover joining members."""


def member(
    factory: Factory, me: int, members: Iterable[int], options: Mapping[str, Any], name: str = ""
) -> Protocol:
    """Return one member of a flat group; `name` as in `label_control_messages`."""
    made: Protocol = factory(me, tuple(members), **options)
    if name:
        label_control_messages(made, name)
    return made


def flat(
    factory: Factory, members: Iterable[int], options: Mapping[str, Any]
) -> dict[int, Protocol]:
    """Return all members of a flat group."""
    numbers = tuple(members)
    return {me: member(factory, me, numbers, options) for me in numbers}


def hierarchy(
    factory: Factory,
    groups: Mapping[int, tuple[int, ...]],
    external: Iterable[int],
    options: Mapping[str, Any],
    names: Mapping[int, str] = {},
    topology: Factory | None = None,
) -> dict[int, Protocol]:
    """Return all members of a group with roles; `groups`: internal peers by super peer."""
    if topology is None:
        from antecede.core.protocols.hierarchical.roles import Topology

        topology = Topology
    made: dict[int, Protocol] = factory(topology(groups, tuple(external)), **options)
    for at, one in made.items() if names else ():
        label_control_messages(one, names[at])
    return made


def label_control_messages(member: Protocol, name: str) -> None:
    """Put the member's name into its control messages, so that a scenario can name them."""
    if hasattr(member, "ack_payload"):
        member.ack_payload = f"ack-{name}"
    member.note_payload = f"note-{name}"


def smallest(entry: ProtocolEntry, options: Mapping[str, Any]) -> dict[int, Protocol]:
    """Return the smallest group of a built-in protocol, with its trial options."""
    factory = entry.load()
    if not entry.flat:
        return hierarchy(factory, {1: (0,)}, (2,), options)
    return flat(factory, range(2), with_trial(factory, range(MOST_MEMBERS), options))


def replace_names(options: Mapping[str, Any], numbers: Mapping[str, int]) -> dict[str, Any]:
    """Return options with member numbers for names. Raises LocalError for unknown names."""
    return {
        name: value.replace_names(numbers) if hasattr(value, "replace_names") else value
        for name, value in options.items()
    }


# -- guarantees of a group ------------------------------------------------------------------------


def relation_of(members: Mapping[int, Protocol]) -> Relation:
    """Return the relation that all members guarantee. Raises LocalError if they differ."""
    kept = {member.guarantee.relation for member in members.values()}
    if len(kept) != 1:
        raise LocalError(f"the members have different relations: {sorted(r.value for r in kept)}")
    return kept.pop()


_CLAUSES = {
    "safe": "no order violation",
    "live": "no message stuck",
    "no_unnecessary_wait": "no unnecessary wait",
    "survives_loss": "survives loss",
    "joins": "members join",
    "leaves": "members leave",
    "needs_time": "waits for time",
}


def promise(members: Mapping[int, Protocol]) -> str:
    """Describe the properties that all members of a group guarantee."""
    guarantees: list[Guarantee] = [member.guarantee for member in members.values()]
    kept = [
        words for field, words in _CLAUSES.items() if all(getattr(g, field) for g in guarantees)
    ]
    remarks = dict.fromkeys(g.remark for g in guarantees if g.remark)
    return f"order by {relation_of(members).value}; " + ", ".join((*kept, *remarks))
