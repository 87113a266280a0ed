"""Scenario runner, and golden output of the actions.

Golden files hold the output of an action behind `= `. `check_output` compares it, `update_output`
rewrites it. The oracle marks violations from the steps alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from antecede.core.group import ALIASES
from antecede.core.protocols import Relation
from antecede.errors import LocalError, OptionError, RemoteError, ScriptError
from antecede.lab.check.harness.driver import ImpossibleError, Session
from antecede.lab.check.harness.effects import MisuseError
from antecede.lab.check.harness.guarded_calls import Hung, in_words, raise_own, watching
from antecede.lab.check.harness.network import FORWARDED, HELD, SENT, Step
from antecede.lab.check.harness.timing import InFlight
from antecede.lab.check.scenario.actions import Action, Blocked, Send, State, prints
from antecede.lab.check.scenario.execution import (
    ACKNOWLEDGED,
    NEWS_OF,
    CommandResult,
    Occurrence,
    ScriptRun,
    judged,
    waits,
)
from antecede.lab.check.scenario.parse import Script, parse_script, replace_output, script_file
from antecede.lab.check.scenario.setup import group_of
from antecede.lab.check.scenario.state_text import describe

FOR_TIME = "time to pass"
"""Reason of a hold that ends when no earlier message can be in flight."""


def run_script(
    script: Script, *, states: bool = False, relation: Relation | None = None
) -> ScriptRun:
    """Execute all actions; raises ScenarioError for an impossible one.

    `states`: record the states of touched members. `relation`: check this relation instead of the
    promised one.
    """
    with watching():
        playing = Playing(script, states)
        results = list(playing.results())
        run = playing.run_of(results, playing.held(), playing.flying())
    return judged(run if relation is None else run._replace(relation=relation))


def under(script: Script, protocol: str) -> Script:
    """Return a scenario under another protocol, without options and printing actions.

    The result may name an unknown protocol, or one that cannot run it.
    """
    moving = tuple(c for c in script.commands if not prints(c.action))
    commands = tuple(command._replace(expected=()) for command in moving)
    name = ALIASES.get(protocol, protocol)
    setup = script.setup._replace(protocol=name, options=())
    return script._replace(setup=setup, commands=commands)


def check_output(run: ScriptRun) -> tuple[str, ...]:
    """Return a line for each command that did not print its expected output."""
    path = run.script.path
    return tuple(
        f"{path}:{result.command.line}: expected {list(result.command.expected)}, "
        f"got {list(result.output)}"
        for result in run.results
        if result.command.expected != result.output
    )


def with_output(text: str, path: str = "script") -> str:
    """Return the scenario text with the expected output replaced by the actual one."""
    run = run_script(parse_script(text, path))
    return replace_output(text, {result.command.line: result.output for result in run.results})


def rewrite(path: str | Path) -> None:
    """Replace the expected output in a scenario file by the actual one."""
    target = Path(path)
    target.write_text(with_output(script_file(target), str(path)), encoding="utf-8")


def _begun(script: Script) -> Session:
    try:
        return Session(group_of(script))
    except (ScriptError, OptionError, LocalError, TypeError) as error:
        what = f"protocol {script.setup.protocol}: {error}"
        if isinstance(error, ScriptError | OptionError):
            what = error.message
        raise ScriptError(what, path=script.path, line=script.protocol_line) from error


class Playing:
    """Runner of a scenario, action by action; `states` as in `run_scenario`."""

    def __init__(self, script: Script, states: bool = False) -> None:
        self.script, self.states = script, states
        self.line: int | None = None
        self.session = _begun(script)
        self.world, self.names = self.session.world, self.session.names
        self.before: set[int] = set()
        self.recipients: dict[str, frozenset[str]] = {}
        """Names of the receivers, by label of an addressed message."""

    def results(self) -> Iterator[CommandResult]:
        """Yield the result of each command, deliveries not checked; raises ScenarioError."""
        number = 0
        for command in self.script.commands:
            self.line = command.line
            action = command.action
            if isinstance(action, State | Blocked):
                yield CommandResult(0, command, (), self._printed(action))
                continue
            number += 1
            occurrences, refused = self._moved(action)
            states = self._states(occurrences) if self.states else {}
            yield CommandResult(number, command, occurrences, refused, states)

    def run_of(
        self,
        results: Sequence[CommandResult],
        held: tuple[Occurrence, ...],
        flying: tuple[tuple[str, str, str], ...],
    ) -> ScriptRun:
        """Return the results so far as a run; deliveries are not checked."""
        addressed = {
            label: tuple(self.names[at] for at in to)
            for label, to in self.session.addressed.items()
        }
        relation, subscribed = self.session.relation, dict(self.script.setup.subscriptions)
        done = tuple(results)
        return ScriptRun(self.script, done, relation, held, addressed, subscribed, flying)

    def _states(self, occurrences: Sequence[Occurrence]) -> dict[str, dict[str, str]]:
        touched = {one.at for one in occurrences}
        return {
            name: describe(at, self.world, self.names)
            for at, name in self.names.items()
            if name in touched and at in self.world.members
        }

    def flying(self) -> tuple[tuple[str, str, str], ...]:
        """Return (source, label, target) of every copy in flight, the oldest first."""
        return tuple(
            (self.names[copy.source], str(copy.message.payload), self.names[copy.target])
            for copy in self.world.in_flight
            if copy.source in self.names and copy.target in self.names
        )

    def error(self, message: str) -> ScriptError:
        """Return an error at the current action."""
        return ScriptError(message, path=self.script.path, line=self.line)

    def _moved(self, action: Action) -> tuple[tuple[Occurrence, ...], tuple[str, ...]]:
        if isinstance(action, Send) and action.to:
            self.recipients[action.label] = frozenset(action.to)
        flying = list(self.world.in_flight)  # kept alive, so that ids stay unique
        self.before = {id(copy) for copy in flying}
        try:
            steps = self.session.carry_out(action)
        except RemoteError as error:
            return (), (f"rejected: {error}",)
        except (ImpossibleError, LocalError, MisuseError) as error:
            raise self.error(str(error)) from error
        except BaseException as error:  # a user's protocol may raise anything
            raise_own(error)
            what = in_words(error) if isinstance(error, Hung) else f"raised {in_words(error)}"
            raise self.error(f"the protocol {what}") from error
        told = {(step.at, step.label) for step in steps if step.kind in (SENT, FORWARDED)}
        return (*map(self._occurrence, steps), *self._acknowledged(told)), ()

    def _occurrence(self, step: Step) -> Occurrence:
        name = self.names[step.at]
        match step.kind:
            case "send" | "forward":
                to = self._on_its_way(step.at, step.label)
                return Occurrence(name, step.kind, step.label, to, step.detail)
            case "arrive" | "join" | "lose":
                (source,) = step.detail
                return Occurrence(name, step.kind, step.label, (self.names[int(source)],))
            case "hold":
                reasons = self._reasons(step.at, step.detail, step.reason)
                return Occurrence(name, step.kind, step.label, reasons)
        return Occurrence(name, step.kind, step.label, step.detail)

    def _reasons(self, at: int, missing: tuple[str, ...], reason: str) -> tuple[str, ...]:
        """Return the causes of a hold, or its reason as text.

        A message for others never arrives here. The member waits for another message that depends
        on it.
        """
        waits = self.world.members[at].guarantee.needs_time
        everybody = frozenset((self.names[at],))
        named = tuple(
            label if self.names[at] in self.recipients.get(label, everybody) else NEWS_OF + label
            for label in missing
        )
        return named or ((reason,) if reason else (FOR_TIME,) if waits else ())

    def _new(self) -> list[InFlight]:
        return [copy for copy in self.world.in_flight if id(copy) not in self.before]

    def _on_its_way(self, at: int, label: str) -> tuple[str, ...]:
        return tuple(
            self.names[copy.target]
            for copy in self._new()
            if copy.source == at and copy.message.payload == label
        )

    def _acknowledged(self, told: set[tuple[int, str]]) -> list[Occurrence]:
        new = dict.fromkeys((copy.source, copy.message.payload) for copy in self._new())
        return [
            Occurrence(self.names[at], ACKNOWLEDGED, label, self._on_its_way(at, label))
            for at, label in new
            if (at, label) not in told
        ]

    def _printed(self, action: State | Blocked) -> tuple[str, ...]:
        try:
            at = self.session.address(action.at)
        except ImpossibleError as error:
            raise self.error(str(error)) from error
        if isinstance(action, Blocked):
            waiting = [one for one in self.held() if one.at == action.at]
            return tuple(waits(one) for one in waiting) or ("nothing",)
        fields = describe(at, self.world, self.names)
        if unknown := [field for field in action.fields if field not in fields]:
            raise self.error(f"{action.at} has no field {unknown[0]}; it has {', '.join(fields)}")
        return tuple(f"{field} = {fields[field]}" for field in action.fields or fields)

    def held(self) -> tuple[Occurrence, ...]:
        """Return the held messages with their missing causes."""
        return tuple(
            Occurrence(
                self.names[at],
                HELD,
                held.message.payload,
                self._reasons(at, self.world.named(at, held.missing), held.reason),
            )
            for at, member in self.world.members.items()
            for held in member.blocked_on()
        )
