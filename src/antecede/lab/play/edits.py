"""Edits of a scenario as functions of its text.

An edit that no protocol could run (an arrival before its send) is rejected, or moves other actions
along if the request allows it. Then the first protocol that could run the scenario before runs it.
Edits that remove also remove actions that became impossible; others are rejected.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from antecede.errors import ScenarioError
from antecede.lab.check.scenario import (
    CONTROL_PREFIXES,
    Action,
    Arrive,
    Join,
    Leave,
    Lose,
    Send,
    ShowHeld,
    ShowState,
    format_action,
    parse_scenario,
    rename,
)
from antecede.lab.play.editable_scenario import (
    Block,
    EditableScenario,
    EditError,
    find_constraints,
    find_members,
    format_blocks,
    update_preamble,
)
from antecede.lab.play.members import edit_members, find_member_actions, make_empty
from antecede.lab.play.runner import ProtocolRun, run_protocol
from antecede.lab.play.side_by_side import LIMITS, UNTITLED, choose_protocols

MAX_ARRIVALS: Final = 200


class EditResult(NamedTuple):
    """Edited text, and a note on further changes."""

    text: str
    note: str = ""


class ScenarioChange(NamedTuple):
    """Result of an edit, not yet run."""

    scenario: EditableScenario
    note: str = ""
    removes_impossible: bool = False
    """True: impossible actions are removed. False: they reject the edit."""
    protected_lines: frozenset[str] = frozenset()


def apply_edit(
    text: str, edit: Mapping[str, Any], protocols: Sequence[str] = (), path: str = UNTITLED
) -> EditResult:
    """Return the edited text (kinds: docs/design/pages.md); raises EditError, ScenarioError."""
    kind = str(edit.get("kind"))
    if kind == "fresh":
        scenario = EditableScenario.from_text(text, path) if text.strip() else None
        return EditResult(make_empty(scenario, edit.get("members"), path).to_text())
    if kind not in _EDITS:
        raise EditError(f"unknown edit '{kind}'; choose from {', '.join((*_EDITS, 'fresh'))}")
    scenario = EditableScenario.from_text(text, path)
    if kind == "arrive-all":
        return _add_all_arrivals(scenario, protocols)
    change = _EDITS[kind](scenario, edit)
    return _finish_edit(scenario, change, protocols)


def _finish_edit(
    before: EditableScenario, change: ScenarioChange, protocols: Sequence[str]
) -> EditResult:
    scenario = _reparse(change.scenario)
    if len(scenario.blocks) > LIMITS["commands"]:
        raise EditError(f"a scenario has at most {LIMITS['commands']} actions")
    protocol = _choose_protocol(before, protocols)
    absent = _find_absent_queries(scenario)
    removed = [scenario.blocks[k] for k in absent] if change.removes_impossible else []
    if not change.removes_impossible and len(absent) > len(_find_absent_queries(before)):
        raise EditError(
            f"{scenario.blocks[absent[-1]].quoted}: this member is not in the group at that point"
        )
    if removed:
        scenario = scenario.replace_blocks(
            b for k, b in enumerate(scenario.blocks) if k not in absent
        )
    unanswered: list[Block] = []
    while protocol is not None:
        run = run_protocol(scenario.to_scenario(), protocol)
        if run.error is None:
            break
        failed = _find_failed_block(scenario, run)
        block = scenario.blocks[failed] if failed is not None else None
        if not change.removes_impossible or block is None or block.line in change.protected_lines:
            raise EditError(_format_rejection(run, block))
        without_reply = None
        if isinstance(block.action, Send) and block.action.after:
            without_reply = block.replace_action(block.action._replace(after=()))
        blocks = [without_reply if k == failed else one for k, one in enumerate(scenario.blocks)]
        scenario = scenario.replace_blocks(one for one in blocks if one is not None)
        if without_reply is None:
            removed.append(block)
        else:
            unanswered.append(block)
    notes = [change.note, f"also removed: {format_blocks(removed)}" if removed else ""]
    notes += [f"no longer a reply: {format_blocks(unanswered)}" if unanswered else ""]
    return EditResult(scenario.to_text(), "; ".join(filter(None, notes)))


def _find_absent_queries(scenario: EditableScenario) -> list[int]:
    present, absent = set(scenario.setup.everybody()), []
    for k, action in enumerate(scenario.actions):
        if isinstance(action, Join):
            present.add(action.at)
        elif isinstance(action, Leave):
            present.discard(action.at)
        elif isinstance(action, ShowState | ShowHeld) and action.at not in present:
            absent.append(k)
    return absent


def _reparse(scenario: EditableScenario) -> EditableScenario:
    try:
        again = EditableScenario.from_text(scenario.to_text(), scenario.path)
    except ScenarioError as error:
        raise EditError(error.message) from error
    if again.actions != scenario.actions:
        raise EditError("the edit cannot be written as scenario lines")
    return again


def _choose_protocol(before: EditableScenario, protocols: Sequence[str]) -> str | None:
    parsed = before.to_scenario()
    names = choose_protocols(parsed, protocols)
    return next((name for name in names if run_protocol(parsed, name).error is None), None)


def _find_failed_block(scenario: EditableScenario, run: ProtocolRun) -> int | None:
    if not run.is_impossible or run.error is None:
        return None
    lines = [command.line for command in scenario.to_scenario().commands]
    return lines.index(run.error.line) if run.error.line in lines else None


def _format_rejection(run: ProtocolRun, block: Block | None) -> str:
    where = f"{block.quoted} is impossible then: " if block is not None else ""
    assert run.error is not None
    return f"{where}{run.error.message} (under {run.name})"


def _move_block(scenario: EditableScenario, edit: Mapping[str, Any]) -> ScenarioChange:
    at, to = _read_index(scenario, edit, "command"), _read_index(scenario, edit, "to", behind=True)
    blocks = list(scenario.blocks)
    later = to > at
    among = range(at + 1, to) if later else range(to, at)
    bound = _find_bound_blocks(scenario, at, among, later)
    if bound and not edit.get("carry"):
        why = next(n.reason for n in find_constraints(scenario.actions)
                   if at in n[:2] and {*n[:2]} - {at} <= set(among))  # fmt: skip
        side = "after" if later else "before"
        others = format_blocks([blocks[k] for k in bound])
        raise EditError(f"{blocks[at].quoted} cannot be {side} {others}: {why}")
    passed = [blocks[k] for k in among if k not in bound]
    along = [blocks[k] for k in bound]
    if later:
        reordered = [*blocks[:at], *passed, blocks[at], *along, *blocks[to:]]
    else:
        reordered = [*blocks[:to], *along, blocks[at], *passed, *blocks[at + 1 :]]
    note = f"moved along: {format_blocks(along)}" if along else ""
    return ScenarioChange(scenario.replace_blocks(reordered), note)


def _find_bound_blocks(scenario: EditableScenario, at: int, among: range, later: bool) -> list[int]:
    """Return the blocks in `among` that must stay on their side of block `at`."""
    bound = {at}
    pairs = [need[:2] if later else need[1::-1] for need in find_constraints(scenario.actions)]
    for k in among if later else reversed(among):
        if any(one in bound and other == k for one, other in pairs):
            bound.add(k)
    return sorted(bound - {at})


def _add_block(scenario: EditableScenario, edit: Mapping[str, Any]) -> ScenarioChange:
    at = _read_index(scenario, edit, "at", behind=True)
    block = _parse_block(edit.get("line"))
    _check_names(scenario, block.action)
    blocks = [*scenario.blocks[:at], block, *scenario.blocks[at:]]
    _check_order(blocks)
    return ScenarioChange(scenario.replace_blocks(blocks))


def _remove_blocks(
    scenario: EditableScenario, removed: set[int], members: frozenset[str] = frozenset()
) -> ScenarioChange:
    """Remove blocks and those that depend on them; `members`: removed members."""
    dropped, missing = _find_dependents(scenario, removed, members)
    labels = {one.label for k in dropped if isinstance(one := scenario.blocks[k].action, Send)}
    kept, unanswered = [], []
    for k, block in enumerate(scenario.blocks):
        action = block.action
        if isinstance(action, Send) and k not in dropped:
            after = tuple(one for one in action.after if one not in labels)
            unanswered += [action.label] if after != action.after else []
            to = tuple(one for one in action.to if one not in missing)
            action = action._replace(after=after, to=to)
        kept += [block.replace_action(action)] if k not in dropped else []
    along = [scenario.blocks[k] for k in sorted(dropped - removed)]
    notes = [f"also removed: {format_blocks(along)}" if along else ""]
    notes += [f"{', '.join(unanswered)} no longer a reply to it" if unanswered else ""]
    return ScenarioChange(
        scenario.replace_blocks(kept), "; ".join(filter(None, notes)), removes_impossible=True
    )


def _find_dependents(
    scenario: EditableScenario, removed: set[int], members: frozenset[str]
) -> tuple[set[int], frozenset[str]]:
    dropped = set(removed)
    while True:
        actions = [scenario.blocks[k].action for k in dropped]
        missing = members.union(one.at for one in actions if isinstance(one, Join))
        more = {
            n.later
            for n in find_constraints(scenario.actions)
            if n.is_required and n.earlier in dropped
        }
        more |= find_member_actions(scenario, missing)
        if more <= dropped:
            return dropped, missing
        dropped |= more


def _change_block(scenario: EditableScenario, edit: Mapping[str, Any]) -> ScenarioChange:
    at = _read_index(scenario, edit, "command")
    old, new = scenario.blocks[at], _parse_block(edit.get("line"))
    before = old.action.label if isinstance(old.action, Send) else None
    _check_names(scenario, new.action, before)
    blocks, note = list(scenario.blocks), ""
    if before is not None and isinstance(new.action, Send) and new.action.label != before:
        after = new.action.label
        blocks = [one.replace_action(rename(one.action, {}, {before: after})) for one in blocks]
        note = f"{before} is renamed to {after} everywhere"
    blocks[at] = Block(old.comments, new.action, new.line)
    _check_order(blocks)
    return ScenarioChange(scenario.replace_blocks(blocks), note, True, frozenset({new.line}))


def _change_setting(scenario: EditableScenario, edit: Mapping[str, Any]) -> ScenarioChange:
    line, removes = edit.get("line"), bool(edit.get("remove"))
    return ScenarioChange(
        scenario._replace(preamble=update_preamble(scenario.preamble, _read_line(line), removes))
    )


def _change_members(scenario: EditableScenario, edit: Mapping[str, Any]) -> ScenarioChange:
    edited, removed = edit_members(scenario, edit)
    return (
        _remove_blocks(edited, find_member_actions(edited, removed), removed)
        if removed
        else ScenarioChange(edited)
    )


def _add_all_arrivals(scenario: EditableScenario, protocols: Sequence[str]) -> EditResult:
    protocol = _choose_protocol(scenario, protocols)
    if protocol is None:
        raise EditError("no chosen protocol can run the scenario to its end")
    added = 0
    while True:
        run = run_protocol(scenario.to_scenario(), protocol)
        if run.error is not None:
            raise EditError(_format_rejection(run, None))
        in_flight = run.states[-1].in_flight
        limit = min(MAX_ARRIVALS - added, LIMITS["commands"] - len(scenario.blocks))
        if not in_flight or limit < 1:
            break
        actions = [Arrive(target, label) for _, label, target in in_flight[:limit]]
        more = [Block((), action, format_action(action)) for action in actions]
        scenario, added = scenario.replace_blocks((*scenario.blocks, *more)), added + len(more)
    if not added:
        raise EditError(
            "no copy is in flight" if not in_flight else "the limit of actions is reached"
        )
    note = f"{len(in_flight)} copies are still in flight" if in_flight else ""
    return EditResult(_reparse(scenario).to_text(), note)


_EDITS: Final[Mapping[str, Callable[[EditableScenario, Mapping[str, Any]], ScenarioChange]]] = {
    "move": _move_block,
    "add": _add_block,
    "remove": lambda scenario, edit: _remove_blocks(
        scenario, {_read_index(scenario, edit, "command")}
    ),
    "change": _change_block,
    "member": _change_members,
    "setup": _change_setting,
    "arrive-all": lambda scenario, edit: ScenarioChange(scenario),
}


def _read_index(
    scenario: EditableScenario, edit: Mapping[str, Any], name: str, behind: bool = False
) -> int:
    value, most = edit.get(name), len(scenario.blocks) - (not behind)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise EditError(
            f"{name}={value!r}: the scenario has {len(scenario.blocks)} actions, from 0"
        )
    return value


def _read_line(line: object) -> str:
    if not isinstance(line, str) or not line.strip() or len(line.splitlines()) != 1:
        raise EditError("expected one line of a scenario")
    return line.strip()


def _parse_block(line: object) -> Block:
    text = _read_line(line)
    try:
        commands = parse_scenario(f"protocol fifo\nmembers A\n{text}").commands
    except ScenarioError as error:
        raise EditError(error.message) from error
    if len(commands) != 1:
        raise EditError(f"'{text}' is not an action")
    return Block((), commands[0].action, format_action(commands[0].action))


def _check_names(scenario: EditableScenario, action: Action, old_label: str | None = None) -> None:
    members = scenario.list_members()
    named = [action.sponsor] if isinstance(action, Join) else find_members(action)
    if strangers := [name for name in named if name not in members]:
        raise EditError(f"unknown member {strangers[0]}; choose from {', '.join(members)}")
    if isinstance(action, Join) and action.at in members:
        raise EditError(f"{action.at} is a member already; use another name")
    labels = {one.label for one in scenario.actions if isinstance(one, Send)} - {old_label}
    if isinstance(action, Send) and action.label in labels:
        raise EditError(f"{action.label} is sent already; use another name")


def _check_order(blocks: Sequence[Block]) -> None:
    sent = {one.action.label: k for k, one in enumerate(blocks) if isinstance(one.action, Send)}
    for k, block in enumerate(blocks):
        action = block.action
        needed: tuple[str, ...] = action.after if isinstance(action, Send) else ()
        needed = (action.label,) if isinstance(action, Arrive | Lose) else needed
        for label in needed:
            if sent.get(label, -1) >= k:
                raise EditError(f"{block.quoted} cannot precede {blocks[sent[label]].quoted}")
            if label not in sent and not label.startswith(CONTROL_PREFIXES):
                raise EditError(f"{block.quoted}: no message {label} is sent")
