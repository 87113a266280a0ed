"""Edits of a scenario's members: add, rename, remove, reorder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from antecede.lab.check.scenario import Send, Setup, rename
from antecede.lab.play.editable_scenario import (
    EditError,
    Scene,
    changed_head,
    check_name,
    named_in,
    renamed_head,
)

FRESH = "fifo"


def changed_members(scene: Scene, edit: Mapping[str, Any]) -> tuple[Scene, frozenset[str]]:
    """Return the scenario with other members, and the removed ones; their actions remain.

    `edit` has one of `add` (with `role` and `super_peer` in a hierarchy), `rename`, `remove`,
    `order`. Raises EditError.
    """
    asked = [name for name in ("add", "rename", "remove", "order") if name in edit]
    if len(asked) != 1:
        raise EditError("expected exactly one of add, rename, remove, order")
    value = edit[asked[0]]
    if asked == ["add"]:
        return _added(scene, check_name(value), edit), frozenset()
    if asked == ["rename"]:
        return _renamed(scene, value), frozenset()
    if asked == ["remove"]:
        return _removed(scene, value)
    return _ordered(scene, value), frozenset()


def fresh(scene: Scene | None, members: object, path: str) -> Scene:
    """Return a scenario of these members without actions, under the protocol of `scenario`."""
    if not isinstance(members, list) or not members:
        raise EditError("missing members of the new scenario")
    names = [check_name(name) for name in members]
    if twice := [name for k, name in enumerate(names) if name in names[:k]]:
        raise EditError(f"{twice[0]} is listed twice; names are unique")
    setup = scene.setup if scene is not None else None
    flat = setup is not None and bool(setup.members)
    head = [line for line in scene.head if line.split()[:1] == ["protocol"]] if scene else []
    protocol = head[0] if head and flat else f"protocol {FRESH}"
    return Scene(path, (protocol, f"members {' '.join(names)}"), ())


def _check_known(scene: Scene, name: object) -> str:
    if not isinstance(name, str) or name not in scene.members():
        raise EditError(f"unknown member {name}; choose from {', '.join(scene.members())}")
    return name


def _added(scene: Scene, name: str, edit: Mapping[str, Any]) -> Scene:
    if name in scene.members():
        raise EditError(f"{name} is a member already; names are unique")
    setup = scene.setup
    if not (setup.internal or setup.external):
        line = " ".join(("members", *setup.members, name))
        return scene._replace(head=changed_head(scene.head, line))
    if edit.get("role") == "external":
        line = " ".join(("external", *setup.external, name))
        return scene._replace(head=changed_head(scene.head, line))
    if edit.get("role") != "internal":
        raise EditError("missing role of the new peer; choose from internal, external")
    over = check_name(edit.get("super_peer"))
    peers = dict(setup.internal).get(over, ())
    if not peers and over in scene.members():
        raise EditError(f"{over} is not a super peer")
    line = " ".join(("internal", f"{over}:", *peers, name))
    return scene._replace(head=changed_head(scene.head, line))


def _renamed(scene: Scene, value: object) -> Scene:
    if not isinstance(value, list) or len(value) != 2:
        raise EditError("rename needs the old and the new name")
    old, new = _check_known(scene, value[0]), check_name(value[1])
    if new != old and new in scene.members():
        raise EditError(f"{new} is a member already; names are unique")
    head = renamed_head(scene.head, lambda name: new if name == old else name)
    blocks = tuple(one.acting(rename(one.action, {old: new}, {})) for one in scene.blocks)
    return scene._replace(head=head, blocks=blocks)


def _removed(scene: Scene, value: object) -> tuple[Scene, frozenset[str]]:
    name = _check_known(scene, value)
    groups = dict(scene.setup.internal)
    over = next((sp for sp, peers in groups.items() if peers == (name,)), None)
    if over is not None:
        raise EditError(f"{name} is the last internal peer of {over}; remove {over} instead")
    gone = frozenset({name, *groups.get(name, ())})
    left = [one for one in scene.setup.everybody() if one not in gone]
    if not left:
        raise EditError("a scenario needs at least one member")
    return scene._replace(head=renamed_head(scene.head, lambda n: None if n in gone else n)), gone


def _ordered(scene: Scene, value: object) -> Scene:
    setup = scene.setup
    names = value if isinstance(value, list) else []
    there = setup.everybody()
    newcomers = [name for name in scene.members() if name not in there]
    if sorted(map(str, names)) == sorted((*there, *newcomers)):
        if names[len(there) :] != newcomers:
            raise EditError(f"joining members must come last: {', '.join(newcomers)}")
        names = names[: len(there)]
    if sorted(map(str, names)) != sorted(there):
        raise EditError(f"list each member once: {', '.join(there)}")
    if not setup.internal:
        head = changed_head(scene.head, f"members {' '.join(names)}") if setup.members else None
        return scene._replace(head=head or changed_head(scene.head, f"external {' '.join(names)}"))
    return scene._replace(head=_head_in_order(scene.head, setup, names))


def _head_in_order(head: Sequence[str], setup: Setup, names: Sequence[str]) -> tuple[str, ...]:
    place = {name: k for k, name in enumerate(names)}
    groups = sorted(setup.internal, key=lambda group: place[group[0]])
    sorted_groups = [(sp, sorted(peers, key=place.__getitem__)) for sp, peers in groups]
    external = sorted(setup.external, key=place.__getitem__)
    made = [name for sp, peers in sorted_groups for name in (*peers, sp)] + external
    if made != list(names):
        raise EditError(
            "internal peers must precede their super peer, external peers come last; "
            f"the nearest possible order is {', '.join(made)}"
        )
    lines = [f"internal {sp}: {' '.join(peers)}" for sp, peers in sorted_groups]
    first = next(k for k, line in enumerate(head) if line.split()[:1] == ["internal"])
    kept = [line for line in head if line.split()[:1] != ["internal"]]
    head = (*kept[:first], *lines, *kept[first:])
    return changed_head(head, f"external {' '.join(external)}") if external else head


def actions_of(scene: Scene, gone: frozenset[str]) -> set[int]:
    """Return the blocks that are impossible without these members."""
    found = set()
    for k, action in enumerate(scene.actions):
        if isinstance(action, Send):
            lost = action.at in gone or (action.to and gone.issuperset(action.to))
        else:
            lost = not gone.isdisjoint(named_in(action))
        if lost:
            found.add(k)
    return found
