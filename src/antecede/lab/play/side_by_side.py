"""Comparison of a scenario under several protocols, as plain values for a page.

All runs share a time axis. Checks, diagrams and sentences are those of `antecede draw`.
docs/design/play.md describes the values. Sizes are limited.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from time import monotonic
from typing import Any, Final

from antecede.core.diagram_model import Diagram
from antecede.core.protocols import ENTRIES, Addressing, Relation
from antecede.core.protocols.options import option_text
from antecede.errors import InputError
from antecede.lab.check import is_file_target
from antecede.lab.check.harness import ARRIVED, DELIVERED, RELEASED, SENT
from antecede.lab.check.scenario import (
    JUDGES,
    Action,
    CommandResult,
    Script,
    ScriptRun,
    Tick,
    Words,
    line_of,
    parse_script,
    prints,
    waits,
)
from antecede.lab.diagram import stacked, widths
from antecede.lab.play.runner import LIMIT_S, Noted, Played, not_played, own_name, play
from antecede.lab.play.summary import summary

MOST: Final = {"commands": 400, "members": 40, "protocols": 12, "letters": 200_000}
MOST_STATES: Final = 20_000
"""Commands times members times protocols."""
MOST_COPIES: Final = 600_000
"""Copies in flight and held, summed over the steps."""
LINES: Final = {
    "bounds": "the line 'bounds accuracy=0.1 least=0.1 most=0.3' (seconds)",
    "subscriptions": "a line 'subscribe MEMBER TOPIC ...' for each member that reads any",
}
"""Options that are settings lines of a scenario."""
UNTITLED: Final = "playground.scenario"


def bench(
    text: str,
    protocols: Sequence[str] = (),
    judge: str | None = None,
    path: str = UNTITLED,
    failed: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return the content of the page for a text.

    `protocols`: as after `protocol` in a scenario (default: the text's own). `relation`: one of
    `RELATIONS` (default: the promises). `path`: name of the text; protocol files are relative to
    it. `failed`: protocols that are not run, and why. Raises ScenarioError and InputError.
    """
    script = parsed(text, path)
    names = chosen(script, protocols)
    check_size(script, names)
    relation = relation_of(judge)
    until = monotonic() + LIMIT_S
    room = MOST_COPIES // len(names)
    failed = failed or {}
    played = [
        not_played(script, name, failed[name])
        if name in failed
        else play(script, name, relation, until, room)
        for name in names
    ]
    columns = _columns(script, [one.run for one in played if one.run is not None])
    return {
        "text": text,
        "title": script.title,
        "source": script.source,
        "protocol": own_name(script.setup),
        "members": list(_members(script)),
        "commands": [_command(k, c.line, c.action) for k, c in enumerate(script.commands)],
        "columns": columns,
        "end": (columns[-1]["end"] if columns else 0.0) + 1.0,
        "runs": _runs(script, played, columns),
    }


def parsed(text: str, path: str = UNTITLED) -> Script:
    """Parse a text of limited size; raises ScenarioError and InputError."""
    if len(text) > MOST["letters"]:
        raise InputError(f"the text is longer than {MOST['letters']:,} letters")
    return parse_script(text, path)


def relation_of(judge: str | None) -> Relation | None:
    """Return the relation of a name; raises InputError for an unknown one."""
    if not judge:
        return None
    if judge not in JUDGES:
        raise InputError(f"no judge is called '{judge}'; there are {', '.join(JUDGES)}")
    return JUDGES[judge]


def chosen(script: Script, protocols: Sequence[str]) -> list[str]:
    """Return the protocols to run, each once: the named ones, or else the text's own."""
    names = dict.fromkeys(" ".join(name.split()) for name in protocols)
    return [name for name in names if name] or [own_name(script.setup)]


def check_size(script: Script, names: Sequence[str]) -> None:
    """Raise InputError for more than a page can show."""
    members = len(script.everybody())
    numbers = {"commands": len(script.commands), "members": members, "protocols": len(names)}
    for what, number in numbers.items():
        if number > MOST[what]:
            raise InputError(f"{number:,} {what}: the limit is {MOST[what]}")
    if (states := members * len(names) * len(script.commands)) > MOST_STATES:
        raise InputError(
            f"{len(script.commands)} commands of {members} members under {len(names)} protocols "
            f"are {states:,} states: the limit is {MOST_STATES:,}; choose fewer"
        )


def _members(script: Script) -> Iterator[dict[str, Any]]:
    setup = script.setup
    behind = {name: sp for sp, peers in setup.internal for name in peers}
    supers, external = {sp for sp, _ in setup.internal}, set(setup.external)
    for name in script.everybody():
        role = "super" if name in supers else "external" if name in external else "member"
        if name in behind:
            yield {"name": name, "role": "internal", "super_peer": behind[name]}
        else:
            yield {"name": name, "role": role}


def _command(index: int, line: int, action: Action) -> dict[str, Any]:
    fields = {name: value for name, value in action._asdict().items() if value}
    if isinstance(action, Tick):
        fields["seconds"] = float(action.seconds)
    kind = type(action).__name__.lower()
    return {"index": index, "line": line, "text": line_of(action), "kind": kind, **fields}


def _columns(script: Script, runs: Sequence[ScriptRun]) -> list[dict[str, Any]]:
    width, begin, columns = widths(runs), 1.0, []
    moving = (k for k, one in enumerate(script.commands) if not prints(one.action))
    for number, index in enumerate(moving, start=1):
        end = begin + width.get(number, 1) - 1.0
        columns.append({"command": index, "begin": begin, "end": end})
        begin = end + 1.0
    return columns


@cache
def _taking(addressing: Addressing) -> tuple[str, ...]:
    flat = (one for one in ENTRIES.values() if one.flat)
    return tuple(one.name for one in flat if one.load().addressing is addressing)


def _others(message: str, script: Script) -> str:
    if script.setup.internal and "are alike" in message:
        able = ", ".join(one.name for one in ENTRIES.values() if not one.flat)
        return f"; the scenario has super peers: use {able}"
    for word, addressing in (("to", Addressing.MEMBERS), ("topics", Addressing.TOPICS)):
        if message.endswith(f"cannot be given {word}"):
            return f"; {', '.join(_taking(addressing))} can"
    return ""


def _runs(
    script: Script, played: Sequence[Played], columns: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    runs = [one.run for one in played if one.run is not None]
    diagrams = iter(stacked(runs, [one.name for one in played if one.run is not None]))
    index_of = {command.line: index for index, command in enumerate(script.commands)}
    told = []
    for one in played:
        shown: dict[str, Any] = _head(script, one)
        shown["error"] = _error(script, one, index_of)
        if one.run is not None:
            shown |= _drawn(next(diagrams), columns)
            shown |= _told(one, one.run, columns)
        told.append(shown)
    return told


def _head(script: Script, one: Played) -> dict[str, Any]:
    name = one.script.setup.protocol
    known = ENTRIES.get(name)
    return {
        "protocol": one.name,
        "name": name,
        "own_file": is_file_target(name),
        "title": known.title if known is not None else name,
        "options": dict(one.script.setup.options),
        "variants": variants_of(name),
        "remarks": list(one.remarks),
        "promise": one.promised,
        "promised_relation": one.relation.value,
    }


def variants_of(name: str) -> list[dict[str, Any]]:
    """Return the variants of a built-in protocol, and how scenarios write them."""
    known = ENTRIES.get(name)
    if known is None:
        return []
    return [
        {
            "name": variant,
            "protocol": " ".join(
                (name, *(f"{key}={option_text(value)}" for key, value in options.items()))
            ),
            "defective": variant in known.defective,
        }
        for variant, options in known.variants.items()
    ]


def _error(script: Script, one: Played, index_of: Mapping[int, int]) -> dict[str, Any] | None:
    if one.error is None:
        return None
    message, line = one.error.message, one.error.line
    message += _others(message, script)
    index = index_of.get(line) if line is not None else None
    if one.run is None:
        if one.name != own_name(script.setup):
            line = None  # the text does not name this protocol
        lacking = (what for word, what in LINES.items() if f"{word}=" in message)
        message += "".join(f"; in a scene: {what}" for what in lacking)
    return {"message": message, "line": line, "command": index}


def _drawn(drawn: Diagram, columns: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    begins = [column["begin"] for column in columns]

    def command(at: float) -> int | None:
        place = bisect_right(begins, at) - 1
        return columns[place]["command"] if place >= 0 else None

    return {
        "timelines": [
            {"name": lane.name, "begin": lane.begin, "end": lane.end, "forwards": lane.forwards}
            for lane in drawn.lanes
        ],
        "marks": [
            {
                "timeline": mark.lane,
                "at": mark.at,
                "kind": mark.kind,
                "label": mark.label,
                "note": mark.note,
                "wrong": mark.wrong,
                "command": command(mark.at),
            }
            for mark in drawn.marks
        ],
        "arrows": [
            {
                "label": arrow.label,
                "source": arrow.source,
                "sent": arrow.sent,
                "target": arrow.target,
                "arrived": arrow.arrived,
                "in_flight": arrow.flying,
                "send_command": command(arrow.sent),
                "arrive_command": None if arrow.flying else command(arrow.arrived),
            }
            for arrow in drawn.arrows
        ],
        "holds": [
            {
                "timeline": held.lane,
                "label": held.label,
                "begin": held.begin,
                "end": held.end,
                "waits_for": held.waits_for,
            }
            for held in drawn.holds
        ],
    }


def _told(one: Played, run: ScriptRun, columns: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    words, steps, violations = Words(run.relation), [], []
    delivered: dict[str, list[str]] = {name: [] for name in one.script.everybody()}
    for result, note, column in zip(run.results, one.notes[1:], columns, strict=False):
        index = column["command"]
        steps.append(_step(index, words.sentences(result), note, delivered, result))
        violations += [
            {
                "command": index,
                "member": wrong.at,
                "label": wrong.label,
                "sentence": f"{Words(run.relation).sentence(wrong, 0)}.",
            }
            for wrong in result.occurrences
            if wrong.wrong
        ]
    return {
        "checked_relation": run.relation.value,
        "start": _state(one.notes[0]),
        "steps": steps,
        "violations": violations,
        "events": list(_events(run, columns)),
        "summary": summary(run),
    }


def _step(
    index: int,
    sentences: list[str],
    note: Noted,
    delivered: dict[str, list[str]],
    result: CommandResult,
) -> dict[str, Any]:
    for done in result.occurrences:
        if done.kind in (DELIVERED, RELEASED):
            delivered.setdefault(done.at, []).append(done.label)
    return {
        "command": index,
        "sentences": sentences,
        **_state(note),
        "delivered": {name: list(labels) for name, labels in delivered.items()},
        "control_bytes": dict(note.overheads),
    }


def _state(note: Noted) -> dict[str, Any]:
    held: dict[str, list[dict[str, Any]]] = {}
    for one in note.held:
        told = {"label": one.label, "waits_for": list(one.others), "text": waits(one)}
        held.setdefault(one.at, []).append(told)
    return {"states": note.states, "held": held, "in_flight": [list(copy) for copy in note.flying]}


def _events(run: ScriptRun, columns: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    for result, column in zip(run.results, columns, strict=False):
        for one in result.occurrences:
            if one.kind in (SENT, ARRIVED):
                kind = "send" if one.kind == SENT else "receive"
                yield {"member": one.at, "kind": kind, "label": one.label,
                       "at": column["begin"], "command": column["command"]}  # fmt: skip
