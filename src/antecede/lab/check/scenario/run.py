"""Scenario runner, and golden output of the actions.

Golden files hold the output of an action behind `= `. `check_output` compares it, `update_output`
rewrites it. The oracle marks violations from the steps alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from antecede.core.group import ALIASES
from antecede.core.protocols import Relation
from antecede.errors import LocalError, OptionError, RemoteError, ScenarioError
from antecede.lab.check.harness.driver import ImpossibleError, Session
from antecede.lab.check.harness.effects import ContractError
from antecede.lab.check.harness.guarded_calls import CallTimeout, in_words, raise_own, watch_calls
from antecede.lab.check.harness.network import FORWARDED, HELD, SENT, Step
from antecede.lab.check.harness.timing import InFlight
from antecede.lab.check.scenario.actions import Action, Send, ShowHeld, ShowState, is_query
from antecede.lab.check.scenario.execution import (
    CONTROL_SENT,
    NEWS_OF,
    CommandResult,
    ScenarioEvent,
    ScenarioRun,
    check_run,
    describe_wait,
)
from antecede.lab.check.scenario.parse import (
    Scenario,
    parse_scenario,
    read_scenario_file,
    replace_output,
)
from antecede.lab.check.scenario.setup import make_group
from antecede.lab.check.scenario.state_text import describe_state

WAITS_FOR_TIME = "time to pass"
"""Reason of a hold that ends when no earlier message can be in flight."""


def run_scenario(
    scenario: Scenario, *, states: bool = False, relation: Relation | None = None
) -> ScenarioRun:
    """Execute all actions; `states`: record states; `relation`: check this, not the promise."""
    with watch_calls():
        playing = ScenarioRunner(scenario, states)
        results = list(playing.run_commands())
        run = playing.make_run(results, playing.list_held(), playing.list_in_flight())
    return check_run(run if relation is None else run._replace(relation=relation))


def under(scenario: Scenario, protocol: str) -> Scenario:
    """Return a scenario under another protocol, without options and printing actions."""
    moving = tuple(c for c in scenario.commands if not is_query(c.action))
    commands = tuple(command._replace(expected=()) for command in moving)
    name = ALIASES.get(protocol, protocol)
    setup = scenario.setup._replace(protocol=name, options=())
    return scenario._replace(setup=setup, commands=commands)


def check_output(run: ScenarioRun) -> tuple[str, ...]:
    """Return a line for each command that did not print its expected output."""
    path = run.scenario.path
    return tuple(
        f"{path}:{result.command.line}: expected {list(result.command.expected)}, "
        f"got {list(result.output)}"
        for result in run.results
        if result.command.expected != result.output
    )


def update_output(text: str, path: str = "scenario") -> str:
    """Return the scenario text with the expected output replaced by the actual one."""
    run = run_scenario(parse_scenario(text, path))
    return replace_output(text, {result.command.line: result.output for result in run.results})


def update_file(path: str | Path) -> None:
    """Replace the expected output in a scenario file by the actual one."""
    target = Path(path)
    target.write_text(update_output(read_scenario_file(target), str(path)), encoding="utf-8")


def _start_session(scenario: Scenario) -> Session:
    try:
        return Session(make_group(scenario))
    except (ScenarioError, OptionError, LocalError, TypeError) as error:
        what = f"protocol {scenario.setup.protocol}: {error}"
        if isinstance(error, ScenarioError | OptionError):
            what = error.message
        raise ScenarioError(what, path=scenario.path, line=scenario.protocol_line) from error


class ScenarioRunner:
    """Runner of a scenario, action by action; `states` as in `run_scenario`."""

    def __init__(self, scenario: Scenario, states: bool = False) -> None:
        self.scenario, self.states = scenario, states
        self.line: int | None = None
        self.session = _start_session(scenario)
        self.network, self.names = self.session.world, self.session.names
        self.before: set[int] = set()
        self.recipients: dict[str, frozenset[str]] = {}

    def run_commands(self) -> Iterator[CommandResult]:
        """Yield the result of each command, deliveries not checked; raises ScenarioError."""
        number = 0
        for command in self.scenario.commands:
            self.line = command.line
            action = command.action
            if isinstance(action, ShowState | ShowHeld):
                yield CommandResult(0, command, (), self._print_query(action))
                continue
            number += 1
            occurrences, refused = self._execute(action)
            states = self._describe_states(occurrences) if self.states else {}
            yield CommandResult(number, command, occurrences, refused, states)

    def make_run(
        self,
        results: Sequence[CommandResult],
        held: tuple[ScenarioEvent, ...],
        in_flight: tuple[tuple[str, str, str], ...],
    ) -> ScenarioRun:
        """Return the results so far as a run; deliveries are not checked."""
        addressed = {
            label: tuple(self.names[at] for at in to)
            for label, to in self.session.recipients.items()
        }
        relation, subscribed = self.session.relation, dict(self.scenario.setup.subscriptions)
        done = tuple(results)
        return ScenarioRun(self.scenario, done, relation, held, addressed, subscribed, in_flight)

    def _describe_states(self, events: Sequence[ScenarioEvent]) -> dict[str, dict[str, str]]:
        touched = {one.at for one in events}
        return {
            name: describe_state(at, self.network, self.names)
            for at, name in self.names.items()
            if name in touched and at in self.network.members
        }

    def list_in_flight(self) -> tuple[tuple[str, str, str], ...]:
        """Return (source, label, target) of every copy in flight, the oldest first."""
        return tuple(
            (self.names[copy.source], str(copy.message.payload), self.names[copy.target])
            for copy in self.network.in_flight
            if copy.source in self.names and copy.target in self.names
        )

    def make_error(self, message: str) -> ScenarioError:
        """Return an error at the current action."""
        return ScenarioError(message, path=self.scenario.path, line=self.line)

    def _execute(self, action: Action) -> tuple[tuple[ScenarioEvent, ...], tuple[str, ...]]:
        if isinstance(action, Send) and action.to:
            self.recipients[action.label] = frozenset(action.to)
        flying = list(self.network.in_flight)  # kept alive, so that ids stay unique
        self.before = {id(copy) for copy in flying}
        try:
            steps = self.session.execute(action)
        except RemoteError as error:
            return (), (f"rejected: {error}",)
        except (ImpossibleError, LocalError, ContractError) as error:
            raise self.make_error(str(error)) from error
        except BaseException as error:  # a user's protocol may raise anything
            raise_own(error)
            what = (
                in_words(error) if isinstance(error, CallTimeout) else f"raised {in_words(error)}"
            )
            raise self.make_error(f"the protocol {what}") from error
        reported = {(step.at, step.label) for step in steps if step.kind in (SENT, FORWARDED)}
        return (*map(self._to_event, steps), *self._list_control_events(reported)), ()

    def _to_event(self, step: Step) -> ScenarioEvent:
        name = self.names[step.at]
        match step.kind:
            case "send" | "forward":
                to = self._list_targets(step.at, step.label)
                return ScenarioEvent(name, step.kind, step.label, to, step.detail)
            case "arrive" | "join" | "lose":
                (source,) = step.detail
                return ScenarioEvent(name, step.kind, step.label, (self.names[int(source)],))
            case "hold":
                reasons = self._find_reasons(step.at, step.detail, step.reason)
                return ScenarioEvent(name, step.kind, step.label, reasons)
        return ScenarioEvent(name, step.kind, step.label, step.detail)

    def _find_reasons(self, at: int, missing: tuple[str, ...], reason: str) -> tuple[str, ...]:
        """Return the causes of a hold, or its reason as text. Messages for others never arrive."""
        waits = self.network.members[at].guarantee.needs_time
        everybody = frozenset((self.names[at],))
        named = tuple(
            label if self.names[at] in self.recipients.get(label, everybody) else NEWS_OF + label
            for label in missing
        )
        return named or ((reason,) if reason else (WAITS_FOR_TIME,) if waits else ())

    def _list_new_copies(self) -> list[InFlight]:
        return [copy for copy in self.network.in_flight if id(copy) not in self.before]

    def _list_targets(self, at: int, label: str) -> tuple[str, ...]:
        return tuple(
            self.names[copy.target]
            for copy in self._list_new_copies()
            if copy.source == at and copy.message.payload == label
        )

    def _list_control_events(self, reported: set[tuple[int, str]]) -> list[ScenarioEvent]:
        new = dict.fromkeys((copy.source, copy.message.payload) for copy in self._list_new_copies())
        return [
            ScenarioEvent(self.names[at], CONTROL_SENT, label, self._list_targets(at, label))
            for at, label in new
            if (at, label) not in reported
        ]

    def _print_query(self, action: ShowState | ShowHeld) -> tuple[str, ...]:
        try:
            at = self.session.find_address(action.at)
        except ImpossibleError as error:
            raise self.make_error(str(error)) from error
        if isinstance(action, ShowHeld):
            waiting = [one for one in self.list_held() if one.at == action.at]
            return tuple(describe_wait(one) for one in waiting) or ("nothing",)
        fields = describe_state(at, self.network, self.names)
        if unknown := [field for field in action.fields if field not in fields]:
            raise self.make_error(
                f"{action.at} has no field {unknown[0]}; it has {', '.join(fields)}"
            )
        return tuple(f"{field} = {fields[field]}" for field in action.fields or fields)

    def list_held(self) -> tuple[ScenarioEvent, ...]:
        """Return the held messages with their missing causes."""
        return tuple(
            ScenarioEvent(
                self.names[at],
                HELD,
                held.message.payload,
                self._find_reasons(at, self.network.find_labels(at, held.missing), held.reason),
            )
            for at, member in self.network.members.items()
            for held in member.list_held()
        )
