"""Edits of a scenario's members: add, rename, remove, reorder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from antecede.lab.check.scenario import Send, Setup, rename
from antecede.lab.play.editable_scenario import (
    EditableScenario,
    EditError,
    check_name,
    find_members,
    rename_in_preamble,
    update_preamble,
)

DEFAULT_PROTOCOL = "fifo"


def edit_members(
    scenario: EditableScenario, edit: Mapping[str, Any]
) -> tuple[EditableScenario, frozenset[str]]:
    """Return the edited scenario, and the removed members, whose actions remain.

    `edit` has one of `add` (with `role` and `super_peer` in a hierarchy), `rename`, `remove`,
    `order`.
    """
    given = [name for name in ("add", "rename", "remove", "order") if name in edit]
    if len(given) != 1:
        raise EditError("expected exactly one of add, rename, remove, order")
    value = edit[given[0]]
    if given == ["add"]:
        return _add_member(scenario, check_name(value), edit), frozenset()
    if given == ["rename"]:
        return _rename_member(scenario, value), frozenset()
    if given == ["remove"]:
        return _remove_member(scenario, value)
    return _reorder_members(scenario, value), frozenset()


def make_empty(scenario: EditableScenario | None, members: object, path: str) -> EditableScenario:
    """Return a scenario of these members without actions, under the protocol of `scenario`."""
    if not isinstance(members, list) or not members:
        raise EditError("missing members of the new scenario")
    names = [check_name(name) for name in members]
    if twice := [name for k, name in enumerate(names) if name in names[:k]]:
        raise EditError(f"{twice[0]} is listed twice; names are unique")
    setup = scenario.setup if scenario is not None else None
    flat = setup is not None and bool(setup.members)
    head = (
        [line for line in scenario.preamble if line.split()[:1] == ["protocol"]] if scenario else []
    )
    protocol = head[0] if head and flat else f"protocol {DEFAULT_PROTOCOL}"
    return EditableScenario(path, (protocol, f"members {' '.join(names)}"), ())


def _check_known(scenario: EditableScenario, name: object) -> str:
    if not isinstance(name, str) or name not in scenario.list_members():
        raise EditError(f"unknown member {name}; choose from {', '.join(scenario.list_members())}")
    return name


def _add_member(scenario: EditableScenario, name: str, edit: Mapping[str, Any]) -> EditableScenario:
    if name in scenario.list_members():
        raise EditError(f"{name} is a member already; names are unique")
    setup = scenario.setup
    if not (setup.internal or setup.external):
        line = " ".join(("members", *setup.members, name))
        return scenario._replace(preamble=update_preamble(scenario.preamble, line))
    if edit.get("role") == "external":
        line = " ".join(("external", *setup.external, name))
        return scenario._replace(preamble=update_preamble(scenario.preamble, line))
    if edit.get("role") != "internal":
        raise EditError("missing role of the new peer; choose from internal, external")
    over = check_name(edit.get("super_peer"))
    peers = dict(setup.internal).get(over, ())
    if not peers and over in scenario.list_members():
        raise EditError(f"{over} is not a super peer")
    line = " ".join(("internal", f"{over}:", *peers, name))
    return scenario._replace(preamble=update_preamble(scenario.preamble, line))


def _rename_member(scenario: EditableScenario, value: object) -> EditableScenario:
    if not isinstance(value, list) or len(value) != 2:
        raise EditError("rename needs the old and the new name")
    old, new = _check_known(scenario, value[0]), check_name(value[1])
    if new != old and new in scenario.list_members():
        raise EditError(f"{new} is a member already; names are unique")
    head = rename_in_preamble(scenario.preamble, lambda name: new if name == old else name)
    blocks = tuple(
        one.replace_action(rename(one.action, {old: new}, {})) for one in scenario.blocks
    )
    return scenario._replace(preamble=head, blocks=blocks)


def _remove_member(
    scenario: EditableScenario, value: object
) -> tuple[EditableScenario, frozenset[str]]:
    name = _check_known(scenario, value)
    groups = dict(scenario.setup.internal)
    over = next((sp for sp, peers in groups.items() if peers == (name,)), None)
    if over is not None:
        raise EditError(f"{name} is the last internal peer of {over}; remove {over} instead")
    removed = frozenset({name, *groups.get(name, ())})
    left = [one for one in scenario.setup.everybody() if one not in removed]
    if not left:
        raise EditError("a scenario needs at least one member")
    return scenario._replace(
        preamble=rename_in_preamble(scenario.preamble, lambda n: None if n in removed else n)
    ), removed


def _reorder_members(scenario: EditableScenario, value: object) -> EditableScenario:
    setup = scenario.setup
    names = value if isinstance(value, list) else []
    there = setup.everybody()
    newcomers = [name for name in scenario.list_members() if name not in there]
    if sorted(map(str, names)) == sorted((*there, *newcomers)):
        if names[len(there) :] != newcomers:
            raise EditError(f"joining members must come last: {', '.join(newcomers)}")
        names = names[: len(there)]
    if sorted(map(str, names)) != sorted(there):
        raise EditError(f"list each member once: {', '.join(there)}")
    if not setup.internal:
        head = (
            update_preamble(scenario.preamble, f"members {' '.join(names)}")
            if setup.members
            else None
        )
        return scenario._replace(
            preamble=head or update_preamble(scenario.preamble, f"external {' '.join(names)}")
        )
    return scenario._replace(preamble=_reorder_preamble(scenario.preamble, setup, names))


def _reorder_preamble(
    preamble: Sequence[str], setup: Setup, names: Sequence[str]
) -> tuple[str, ...]:
    place = {name: k for k, name in enumerate(names)}
    groups = sorted(setup.internal, key=lambda group: place[group[0]])
    sorted_groups = [(sp, sorted(peers, key=place.__getitem__)) for sp, peers in groups]
    external = sorted(setup.external, key=place.__getitem__)
    possible = [name for sp, peers in sorted_groups for name in (*peers, sp)] + external
    if possible != list(names):
        raise EditError(
            "internal peers must precede their super peer, external peers come last; "
            f"the nearest possible order is {', '.join(possible)}"
        )
    lines = [f"internal {sp}: {' '.join(peers)}" for sp, peers in sorted_groups]
    first = next(k for k, line in enumerate(preamble) if line.split()[:1] == ["internal"])
    kept = [line for line in preamble if line.split()[:1] != ["internal"]]
    preamble = (*kept[:first], *lines, *kept[first:])
    return update_preamble(preamble, f"external {' '.join(external)}") if external else preamble


def find_member_actions(scenario: EditableScenario, removed: frozenset[str]) -> set[int]:
    """Return the blocks that are impossible without these members."""
    indexes = set()
    for k, action in enumerate(scenario.actions):
        if isinstance(action, Send):
            lost = action.at in removed or (action.to and removed.issuperset(action.to))
        else:
            lost = not removed.isdisjoint(find_members(action))
        if lost:
            indexes.add(k)
    return indexes
