"""Comparison of a scenario under several protocols, as plain values for a page.

All runs share a time axis. Checks, diagrams and sentences are those of `antecede draw`.
docs/design/pages.md describes the values. Sizes are limited.
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
    Scenario,
    ScenarioRun,
    Tick,
    Words,
    describe_wait,
    format_action,
    is_query,
    parse_scenario,
)
from antecede.lab.diagram import compute_widths, stack_diagrams
from antecede.lab.play.runner import (
    RUN_TIMEOUT_S,
    ProtocolRun,
    RunState,
    make_failed_run,
    own_name,
    run_protocol,
)
from antecede.lab.play.summary import summarize

LIMITS: Final = {"commands": 400, "members": 40, "protocols": 12, "letters": 200_000}
MAX_STATES: Final = 20_000
"""Commands times members times protocols."""
MAX_COPIES: Final = 600_000
"""Copies in flight and held, summed over the steps."""
OPTION_LINES: Final = {
    "bounds": "the line 'bounds accuracy=0.1 least=0.1 most=0.3' (seconds)",
    "subscriptions": "a line 'subscribe MEMBER TOPIC ...' for each member that reads any",
}
UNTITLED: Final = "playground.scenario"


def compare_protocols(
    text: str,
    protocols: Sequence[str] = (),
    relation: str | None = None,
    path: str = UNTITLED,
    failed: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return the content of the page for a text; raises ScenarioError and InputError.

    `protocols`: as after `protocol` in a scenario (default: the text's own). `relation`: one of
    `RELATIONS` (default: the promises). `path`: name of the text; protocol files are relative to
    it. `failed`: reasons of protocols that are not run.
    """
    scenario = parse_limited(text, path)
    names = choose_protocols(scenario, protocols)
    check_size(scenario, names)
    checked = find_relation(relation)
    until = monotonic() + RUN_TIMEOUT_S
    room = MAX_COPIES // len(names)
    failed = failed or {}
    protocol_runs = [
        make_failed_run(scenario, name, failed[name])
        if name in failed
        else run_protocol(scenario, name, checked, until, room)
        for name in names
    ]
    columns = _make_columns(scenario, [one.run for one in protocol_runs if one.run is not None])
    return {
        "text": text,
        "title": scenario.title,
        "source": scenario.source,
        "protocol": own_name(scenario.setup),
        "members": list(_describe_members(scenario)),
        "commands": [
            _describe_command(k, c.line, c.action) for k, c in enumerate(scenario.commands)
        ],
        "columns": columns,
        "end": (columns[-1]["end"] if columns else 0.0) + 1.0,
        "runs": _describe_runs(scenario, protocol_runs, columns),
    }


def parse_limited(text: str, path: str = UNTITLED) -> Scenario:
    """Parse a text of limited size; raises ScenarioError and InputError."""
    if len(text) > LIMITS["letters"]:
        raise InputError(f"the text is longer than {LIMITS['letters']:,} letters")
    return parse_scenario(text, path)


def find_relation(name: str | None) -> Relation | None:
    """Return the relation of a name; raises InputError for an unknown one."""
    if not name:
        return None
    if name not in JUDGES:
        raise InputError(f"unknown relation '{name}'; choose from {', '.join(JUDGES)}")
    return JUDGES[name]


def choose_protocols(scenario: Scenario, protocols: Sequence[str]) -> list[str]:
    """Return the protocols to run, each once: the named ones, or else the text's own."""
    names = dict.fromkeys(" ".join(name.split()) for name in protocols)
    return [name for name in names if name] or [own_name(scenario.setup)]


def check_size(scenario: Scenario, names: Sequence[str]) -> None:
    """Raise InputError for more than a page can show."""
    members = len(scenario.list_members())
    numbers = {"commands": len(scenario.commands), "members": members, "protocols": len(names)}
    for what, number in numbers.items():
        if number > LIMITS[what]:
            raise InputError(f"{number:,} {what}: the limit is {LIMITS[what]}")
    if (states := members * len(names) * len(scenario.commands)) > MAX_STATES:
        raise InputError(
            f"{len(scenario.commands)} commands of {members} members under {len(names)} protocols "
            f"are {states:,} states: the limit is {MAX_STATES:,}; choose fewer"
        )


def _describe_members(scenario: Scenario) -> Iterator[dict[str, Any]]:
    setup = scenario.setup
    behind = {name: sp for sp, peers in setup.internal for name in peers}
    supers, external = {sp for sp, _ in setup.internal}, set(setup.external)
    for name in scenario.list_members():
        role = "super" if name in supers else "external" if name in external else "member"
        if name in behind:
            yield {"name": name, "role": "internal", "super_peer": behind[name]}
        else:
            yield {"name": name, "role": role}


def _describe_command(index: int, line: int, action: Action) -> dict[str, Any]:
    fields = {name: value for name, value in action._asdict().items() if value}
    if isinstance(action, Tick):
        fields["seconds"] = float(action.seconds)
    kind = type(action).__name__.lower()
    return {"index": index, "line": line, "text": format_action(action), "kind": kind, **fields}


def _make_columns(scenario: Scenario, runs: Sequence[ScenarioRun]) -> list[dict[str, Any]]:
    width, begin, columns = compute_widths(runs), 1.0, []
    moving = (k for k, one in enumerate(scenario.commands) if not is_query(one.action))
    for number, index in enumerate(moving, start=1):
        end = begin + width.get(number, 1) - 1.0
        columns.append({"command": index, "begin": begin, "end": end})
        begin = end + 1.0
    return columns


@cache
def _list_protocols_with(addressing: Addressing) -> tuple[str, ...]:
    flat = (one for one in ENTRIES.values() if one.flat)
    return tuple(one.name for one in flat if one.load().addressing is addressing)


def _suggest_protocols(message: str, scenario: Scenario) -> str:
    if scenario.setup.internal and "has one role" in message:
        able = ", ".join(one.name for one in ENTRIES.values() if not one.flat)
        return f"; the scenario has super peers: use {able}"
    for word, addressing in (("to", Addressing.MEMBERS), ("topics", Addressing.TOPICS)):
        if message.endswith(f"cannot be given {word}"):
            return f"; {', '.join(_list_protocols_with(addressing))} can"
    return ""


def _describe_runs(
    scenario: Scenario, protocol_runs: Sequence[ProtocolRun], columns: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    runs = [one.run for one in protocol_runs if one.run is not None]
    diagrams = iter(
        stack_diagrams(runs, [one.name for one in protocol_runs if one.run is not None])
    )
    index_of = {command.line: index for index, command in enumerate(scenario.commands)}
    described = []
    for one in protocol_runs:
        described_run: dict[str, Any] = _describe_protocol(scenario, one)
        described_run["error"] = _describe_error(scenario, one, index_of)
        if one.run is not None:
            described_run |= _describe_diagram(next(diagrams), columns)
            described_run |= _describe_steps(one, one.run, columns)
        described.append(described_run)
    return described


def _describe_protocol(scenario: Scenario, run: ProtocolRun) -> dict[str, Any]:
    name = run.scenario.setup.protocol
    known = ENTRIES.get(name)
    return {
        "protocol": run.name,
        "name": name,
        "own_file": is_file_target(name),
        "title": known.title if known is not None else name,
        "options": dict(run.scenario.setup.options),
        "variants": list_variants(name),
        "remarks": list(run.remarks),
        "promise": run.promise,
        "promised_relation": run.relation.value,
    }


def list_variants(name: str) -> list[dict[str, Any]]:
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


def _describe_error(
    scenario: Scenario, run: ProtocolRun, index_of: Mapping[int, int]
) -> dict[str, Any] | None:
    if run.error is None:
        return None
    message, line = run.error.message, run.error.line
    message += _suggest_protocols(message, scenario)
    index = index_of.get(line) if line is not None else None
    if run.run is None:
        if run.name != own_name(scenario.setup):
            line = None  # the text does not name this protocol
        lacking = (what for word, what in OPTION_LINES.items() if f"{word}=" in message)
        message += "".join(f"; in a scenario: {what}" for what in lacking)
    return {"message": message, "line": line, "command": index}


def _describe_diagram(diagram: Diagram, columns: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    begins = [column["begin"] for column in columns]

    def command(at: float) -> int | None:
        place = bisect_right(begins, at) - 1
        return columns[place]["command"] if place >= 0 else None

    return {
        "timelines": [
            {"name": lane.name, "begin": lane.begin, "end": lane.end, "forwards": lane.forwards}
            for lane in diagram.lanes
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
            for mark in diagram.marks
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
            for arrow in diagram.arrows
        ],
        "holds": [
            {
                "timeline": held.lane,
                "label": held.label,
                "begin": held.begin,
                "end": held.end,
                "waits_for": held.waits_for,
            }
            for held in diagram.holds
        ],
    }


def _describe_steps(
    one: ProtocolRun, run: ScenarioRun, columns: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    narrative, steps, violations = Words(run.relation), [], []
    delivered: dict[str, list[str]] = {name: [] for name in one.scenario.list_members()}
    for result, note, column in zip(run.results, one.states[1:], columns, strict=False):
        index = column["command"]
        steps.append(
            _describe_step(index, narrative.write_sentences(result), note, delivered, result)
        )
        violations += [
            {
                "command": index,
                "member": wrong.at,
                "label": wrong.label,
                "sentence": f"{Words(run.relation).write_sentence(wrong, 0)}.",
            }
            for wrong in result.events
            if wrong.is_violation
        ]
    return {
        "checked_relation": run.relation.value,
        "start": _describe_state(one.states[0]),
        "steps": steps,
        "violations": violations,
        "events": list(_describe_events(run, columns)),
        "summary": summarize(run),
    }


def _describe_step(
    index: int,
    sentences: list[str],
    state: RunState,
    delivered: dict[str, list[str]],
    result: CommandResult,
) -> dict[str, Any]:
    for done in result.events:
        if done.kind in (DELIVERED, RELEASED):
            delivered.setdefault(done.at, []).append(done.label)
    return {
        "command": index,
        "sentences": sentences,
        **_describe_state(state),
        "delivered": {name: list(labels) for name, labels in delivered.items()},
        "control_bytes": dict(state.control_bytes),
    }


def _describe_state(state: RunState) -> dict[str, Any]:
    held: dict[str, list[dict[str, Any]]] = {}
    for one in state.held:
        message = {"label": one.label, "waits_for": list(one.others), "text": describe_wait(one)}
        held.setdefault(one.at, []).append(message)
    return {
        "states": state.states,
        "held": held,
        "in_flight": [list(copy) for copy in state.in_flight],
    }


def _describe_events(
    run: ScenarioRun, columns: Sequence[Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    for result, column in zip(run.results, columns, strict=False):
        for one in result.events:
            if one.kind in (SENT, ARRIVED):
                kind = "send" if one.kind == SENT else "receive"
                yield {"member": one.at, "kind": kind, "label": one.label,
                       "at": column["begin"], "command": column["command"]}  # fmt: skip
