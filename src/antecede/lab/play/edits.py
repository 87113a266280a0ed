"""Edits of a scenario as functions of its text.

An edit that no protocol could run (an arrival before its send) is rejected, or moves other actions
along if the request allows it. Then the first protocol that could run the scenario before runs it.
Edits that remove also remove actions that became impossible; others are rejected.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from antecede.errors import ScriptError
from antecede.lab.check.scenario import (
    OWN_LABELS,
    Action,
    Arrive,
    Blocked,
    Join,
    Leave,
    Lose,
    Send,
    State,
    line_of,
    parse_script,
    rename,
)
from antecede.lab.play.editable_scenario import (
    Block,
    EditError,
    Scene,
    changed_head,
    list_of,
    named_in,
    needs,
)
from antecede.lab.play.members import actions_of, changed_members, fresh
from antecede.lab.play.runner import Played, play
from antecede.lab.play.side_by_side import MOST, UNTITLED, chosen

MOST_ARRIVALS: Final = 200


class Edited(NamedTuple):
    """Edited text, and a note on further changes."""

    text: str
    note: str = ""


class Change(NamedTuple):
    """Result of an edit, not yet run."""

    scene: Scene
    note: str = ""
    prunes: bool = False
    """True: impossible actions are removed. False: they reject the edit."""
    spared: frozenset[str] = frozenset()
    """Lines of the request, which are never removed."""


def edited(
    text: str, edit: Mapping[str, Any], protocols: Sequence[str] = (), path: str = UNTITLED
) -> Edited:
    """Return the edited text (kinds: docs/design/play.md), and a note on further changes.

    Raises EditError for an impossible edit, ScenarioError for an invalid text.
    """
    kind = str(edit.get("kind"))
    if kind == "fresh":
        scene = Scene.of(text, path) if text.strip() else None
        return Edited(fresh(scene, edit.get("members"), path).text())
    if kind not in _KINDS:
        raise EditError(f"unknown edit '{kind}'; choose from {', '.join((*_KINDS, 'fresh'))}")
    scene = Scene.of(text, path)
    if kind == "arrive-all":
        return _arrived(scene, protocols)
    change = _KINDS[kind](scene, edit)
    return _looked_at(scene, change, protocols)


def _looked_at(before: Scene, change: Change, protocols: Sequence[str]) -> Edited:
    scene = _written(change.scene)
    if len(scene.blocks) > MOST["commands"]:
        raise EditError(f"a scenario has at most {MOST['commands']} actions")
    judge = _judge(before, protocols)
    absent = _absent(scene)
    gone = [scene.blocks[k] for k in absent] if change.prunes else []
    if not change.prunes and len(absent) > len(_absent(before)):
        raise EditError(
            f"{scene.blocks[absent[-1]].said}: this member is not in the group at that point"
        )
    if gone:
        scene = scene.with_actions(b for k, b in enumerate(scene.blocks) if k not in absent)
    unanswered: list[Block] = []
    while judge is not None:
        done = play(scene.script(), judge)
        if done.error is None:
            break
        place = _place(scene, done)
        broken = scene.blocks[place] if place is not None else None
        if not change.prunes or broken is None or broken.line in change.spared:
            raise EditError(_refusal(done, broken))
        rest = None
        if isinstance(broken.action, Send) and broken.action.after:
            rest = broken.acting(broken.action._replace(after=()))
        blocks = [rest if k == place else one for k, one in enumerate(scene.blocks)]
        scene = scene.with_actions(one for one in blocks if one is not None)
        if rest is None:
            gone.append(broken)
        else:
            unanswered.append(broken)
    notes = [change.note, f"also removed: {list_of(gone)}" if gone else ""]
    notes += [f"no longer a reply: {list_of(unanswered)}" if unanswered else ""]
    return Edited(scene.text(), "; ".join(filter(None, notes)))


def _absent(scene: Scene) -> list[int]:
    """Return the blocks that print the state of an absent member, which no protocol notices."""
    present, found = set(scene.setup.everybody()), []
    for k, action in enumerate(scene.actions):
        if isinstance(action, Join):
            present.add(action.at)
        elif isinstance(action, Leave):
            present.discard(action.at)
        elif isinstance(action, State | Blocked) and action.at not in present:
            found.append(k)
    return found


def _written(scene: Scene) -> Scene:
    """Return the scenario parsed again from its text; raises EditError if its actions differ."""
    try:
        again = Scene.of(scene.text(), scene.path)
    except ScriptError as error:
        raise EditError(error.message) from error
    if again.actions != scene.actions:
        raise EditError("the edit cannot be written as scenario lines")
    return again


def _judge(before: Scene, protocols: Sequence[str]) -> str | None:
    script = before.script()
    names = chosen(script, protocols)
    return next((name for name in names if play(script, name).error is None), None)


def _place(scene: Scene, done: Played) -> int | None:
    if not done.impossible or done.error is None:
        return None
    lines = [command.line for command in scene.script().commands]
    return lines.index(done.error.line) if done.error.line in lines else None


def _refusal(done: Played, broken: Block | None) -> str:
    where = f"{broken.said} is impossible then: " if broken is not None else ""
    assert done.error is not None
    return f"{where}{done.error.message} (under {done.name})"


def _move(scene: Scene, edit: Mapping[str, Any]) -> Change:
    at, to = _index(scene, edit, "command"), _index(scene, edit, "to", behind=True)
    blocks = list(scene.blocks)
    later = to > at
    among = range(at + 1, to) if later else range(to, at)
    bound = _bound(scene, at, among, later)
    if bound and not edit.get("carry"):
        why = next(n.why for n in needs(scene.actions)
                   if at in n[:2] and {*n[:2]} - {at} <= set(among))  # fmt: skip
        side = "after" if later else "before"
        others = list_of([blocks[k] for k in bound])
        raise EditError(f"{blocks[at].said} cannot be {side} {others}: {why}")
    passed = [blocks[k] for k in among if k not in bound]
    along = [blocks[k] for k in bound]
    if later:
        made = [*blocks[:at], *passed, blocks[at], *along, *blocks[to:]]
    else:
        made = [*blocks[:to], *along, blocks[at], *passed, *blocks[at + 1 :]]
    note = f"moved along: {list_of(along)}" if along else ""
    return Change(scene.with_actions(made), note)


def _bound(scene: Scene, at: int, among: range, later: bool) -> list[int]:
    """Return the blocks in `among` that must stay on their side of block `at`."""
    found = {at}
    pairs = [need[:2] if later else need[1::-1] for need in needs(scene.actions)]
    for k in among if later else reversed(among):
        if any(one in found and other == k for one, other in pairs):
            found.add(k)
    return sorted(found - {at})


def _add(scene: Scene, edit: Mapping[str, Any]) -> Change:
    at = _index(scene, edit, "at", behind=True)
    block = _block(edit.get("line"))
    _check_names(scene, block.action)
    blocks = [*scene.blocks[:at], block, *scene.blocks[at:]]
    _check_order(blocks)
    return Change(scene.with_actions(blocks))


def _without(scene: Scene, removed: set[int], members: frozenset[str] = frozenset()) -> Change:
    """Remove blocks and those that depend on them.

    `members`: removed members; messages to them go to the other receivers.
    """
    gone, missing = _closure(scene, removed, members)
    labels = {one.label for k in gone if isinstance(one := scene.blocks[k].action, Send)}
    kept, unanswered = [], []
    for k, block in enumerate(scene.blocks):
        action = block.action
        if isinstance(action, Send) and k not in gone:
            after = tuple(one for one in action.after if one not in labels)
            unanswered += [action.label] if after != action.after else []
            to = tuple(one for one in action.to if one not in missing)
            action = action._replace(after=after, to=to)
        kept += [block.acting(action)] if k not in gone else []
    along = [scene.blocks[k] for k in sorted(gone - removed)]
    notes = [f"also removed: {list_of(along)}" if along else ""]
    notes += [f"{', '.join(unanswered)} no longer a reply to it" if unanswered else ""]
    return Change(scene.with_actions(kept), "; ".join(filter(None, notes)), prunes=True)


def _closure(
    scene: Scene, removed: set[int], members: frozenset[str]
) -> tuple[set[int], frozenset[str]]:
    gone = set(removed)
    while True:
        actions = [scene.blocks[k].action for k in gone]
        missing = members.union(one.at for one in actions if isinstance(one, Join))
        more = {n.later for n in needs(scene.actions) if n.exists and n.earlier in gone}
        more |= actions_of(scene, missing)
        if more <= gone:
            return gone, missing
        gone |= more


def _change(scene: Scene, edit: Mapping[str, Any]) -> Change:
    at = _index(scene, edit, "command")
    old, new = scene.blocks[at], _block(edit.get("line"))
    before = old.action.label if isinstance(old.action, Send) else None
    _check_names(scene, new.action, before)
    blocks, note = list(scene.blocks), ""
    if before is not None and isinstance(new.action, Send) and new.action.label != before:
        after = new.action.label
        blocks = [one.acting(rename(one.action, {}, {before: after})) for one in blocks]
        note = f"{before} is renamed to {after} everywhere"
    blocks[at] = Block(old.lead, new.action, new.line)
    _check_order(blocks)
    return Change(scene.with_actions(blocks), note, True, frozenset({new.line}))


def _setup(scene: Scene, edit: Mapping[str, Any]) -> Change:
    line, removes = edit.get("line"), bool(edit.get("remove"))
    return Change(scene._replace(head=changed_head(scene.head, _one_line(line), removes)))


def _member(scene: Scene, edit: Mapping[str, Any]) -> Change:
    made, gone = changed_members(scene, edit)
    return _without(made, actions_of(made, gone), gone) if gone else Change(made)


def _arrived(scene: Scene, protocols: Sequence[str]) -> Edited:
    """Add arrivals of all copies in flight, in the order of sending, until none is left."""
    judge = _judge(scene, protocols)
    if judge is None:
        raise EditError("no chosen protocol can run the scenario to its end")
    added = 0
    while True:
        done = play(scene.script(), judge)
        if done.error is not None:
            raise EditError(_refusal(done, None))
        flying = done.notes[-1].flying
        room = min(MOST_ARRIVALS - added, MOST["commands"] - len(scene.blocks))
        if not flying or room < 1:
            break
        actions = [Arrive(target, label) for _, label, target in flying[:room]]
        more = [Block((), action, line_of(action)) for action in actions]
        scene, added = scene.with_actions((*scene.blocks, *more)), added + len(more)
    if not added:
        raise EditError("no copy is in flight" if not flying else "the limit of actions is reached")
    note = f"{len(flying)} copies are still in flight" if flying else ""
    return Edited(_written(scene).text(), note)


_KINDS: Final[Mapping[str, Callable[[Scene, Mapping[str, Any]], Change]]] = {
    "move": _move,
    "add": _add,
    "remove": lambda scene, edit: _without(scene, {_index(scene, edit, "command")}),
    "change": _change,
    "member": _member,
    "setup": _setup,
    "arrive-all": lambda scene, edit: Change(scene),
}


def _index(scene: Scene, edit: Mapping[str, Any], name: str, behind: bool = False) -> int:
    """Return an index of an action; `behind`: the end is allowed."""
    value, most = edit.get(name), len(scene.blocks) - (not behind)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise EditError(f"{name}={value!r}: the scenario has {len(scene.blocks)} actions, from 0")
    return value


def _one_line(line: object) -> str:
    if not isinstance(line, str) or not line.strip() or len(line.splitlines()) != 1:
        raise EditError("expected one line of a scenario")
    return line.strip()


def _block(line: object) -> Block:
    text = _one_line(line)
    try:
        commands = parse_script(f"protocol fifo\nmembers A\n{text}").commands
    except ScriptError as error:
        raise EditError(error.message) from error
    if len(commands) != 1:
        raise EditError(f"'{text}' is not an action")
    return Block((), commands[0].action, line_of(commands[0].action))


def _check_names(scene: Scene, action: Action, old_label: str | None = None) -> None:
    there = scene.members()
    asked = [action.sponsor] if isinstance(action, Join) else named_in(action)
    if strangers := [name for name in asked if name not in there]:
        raise EditError(f"unknown member {strangers[0]}; choose from {', '.join(there)}")
    if isinstance(action, Join) and action.at in there:
        raise EditError(f"{action.at} is a member already; use another name")
    labels = {one.label for one in scene.actions if isinstance(one, Send)} - {old_label}
    if isinstance(action, Send) and action.label in labels:
        raise EditError(f"{action.label} is sent already; use another name")


def _check_order(blocks: Sequence[Block]) -> None:
    sent = {one.action.label: k for k, one in enumerate(blocks) if isinstance(one.action, Send)}
    for k, block in enumerate(blocks):
        action = block.action
        asked: tuple[str, ...] = action.after if isinstance(action, Send) else ()
        asked = (action.label,) if isinstance(action, Arrive | Lose) else asked
        for label in asked:
            if sent.get(label, -1) >= k:
                raise EditError(f"{block.said} cannot precede {blocks[sent[label]].said}")
            if label not in sent and not label.startswith(OWN_LABELS):
                raise EditError(f"{block.said}: no message {label} is sent")
