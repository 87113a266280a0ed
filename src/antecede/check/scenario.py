"""Carry out a scenario: every action, what it caused, and the golden output beside it.

Theory of operation
-------------------
`run_scenario` builds the members of the setting, drives them through `World`, and returns one
`Moment` an action: the steps it caused and these steps as lines of output. A golden file holds
these lines behind `= `; `check_output` compares, `with_output` rewrites them. A delivery before
a message of its causal past (in the relation that the protocol promises) is marked VIOLATION
by `antecede.check.watch`, from sets and not from the protocol's own state.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, NoReturn

from antecede.check.actions import (
    Action,
    Arrive,
    Blocked,
    Join,
    Leave,
    Send,
    State,
    Tick,
)
from antecede.check.describe import describe
from antecede.check.scenario_parse import (
    Command,
    Scenario,
    parse_scenario,
    replace_output,
)
from antecede.check.setting import Cast, cast_members
from antecede.check.watch import Watch
from antecede.check.world import (
    ARRIVED,
    DELIVERED,
    DISCARDED,
    FORWARDED,
    HELD,
    JOINED,
    LEFT,
    RELEASED,
    SENT,
    InFlight,
    Step,
    World,
)
from antecede.errors import LocalError, RemoteError, ScenarioError


class Happening(NamedTuple):
    """One step with the names and reasons that people want to read."""

    at: str
    kind: str
    """A kind of `antecede.check.world`."""
    label: str
    others: tuple[str, ...] = ()
    """send, forward: the members it is on its way to; arrive, join: where it came from (the
    sponsor); hold, release: labels of the messages it waits for; discard: the reason."""
    early_for: tuple[str, ...] = ()
    """deliver: labels of its causal past that were not delivered here before: a violation."""


class Moment(NamedTuple):
    """One action, numbered from 1 over all that move something (0: it only prints)."""

    number: int
    command: Command
    happenings: tuple[Happening, ...]
    output: tuple[str, ...]


class Run(NamedTuple):
    """A scenario that was carried out."""

    scenario: Scenario
    moments: tuple[Moment, ...]
    held: tuple[Happening, ...]
    """What is held back at the end, with what it waits for."""

    def happenings(self) -> Iterator[Happening]:
        """Yield everything that happened, in order."""
        for moment in self.moments:
            yield from moment.happenings

    def violations(self) -> tuple[Happening, ...]:
        """Return the deliveries that came before their causes."""
        return tuple(one for one in self.happenings() if one.early_for)


def run_scenario(scenario: Scenario) -> Run:
    """Carry out all actions; raises ScenarioError when one asks for the impossible."""
    return _Runner(scenario).run()


def check_output(run: Run) -> tuple[str, ...]:
    """Return one line for each command whose expected output is not what it printed."""
    path = run.scenario.path
    return tuple(
        f"{path}:{moment.command.line}: expected {list(moment.command.expected)}, "
        f"got {list(moment.output)}"
        for moment in run.moments
        if moment.command.expected != moment.output
    )


def with_output(text: str, path: str = "scenario") -> str:
    """Return the scenario text with every expected line replaced by what is printed now."""
    run = run_scenario(parse_scenario(text, path))
    return replace_output(text, {moment.command.line: moment.output for moment in run.moments})


def rewrite(path: str | Path) -> None:
    """Replace the expected output in a scenario file by what is printed now."""
    target = Path(path)
    target.write_text(with_output(target.read_text(encoding="utf-8"), str(path)), encoding="utf-8")


class _Runner:
    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.line: int | None = None
        try:
            self.cast: Cast = cast_members(scenario.setting)
        except ScenarioError as error:
            raise ScenarioError(str(error), path=scenario.path) from error
        self.world = World(self.cast.protocols)
        self.watch = Watch(self.cast.relation, self.cast.applications)
        self.now = 0.0
        self.arrived: dict[tuple[int, str], InFlight] = {}

    def run(self) -> Run:
        moments = []
        number = 0
        for command in self.scenario.commands:
            self.line = command.line
            action = command.action
            if isinstance(action, State | Blocked):
                moments.append(Moment(0, command, (), self._printed(action)))
                continue
            number += 1
            happenings, output = self._moved(action)
            moments.append(Moment(number, command, happenings, output))
        return Run(self.scenario, tuple(moments), self._held())

    def fail(self, message: str) -> NoReturn:
        raise ScenarioError(message, path=self.scenario.path, line=self.line)

    # -- actions ----------------------------------------------------------------------------

    def _moved(self, action: Action) -> tuple[tuple[Happening, ...], tuple[str, ...]]:
        """Carry out an action; returns what happened, and it again as lines of output."""
        self.before = list(self.world.in_flight)
        try:
            steps, source = self._carry_out(action)
        except RemoteError as error:
            return (), (f"refused: {error}",)
        except LocalError as error:
            self.fail(str(error))
        happenings = tuple(self._happening(step, source) for step in steps)
        return happenings, tuple(line for one in happenings for line in _lines(one))

    def _carry_out(self, action: Action) -> tuple[list[Step], str]:
        match action:
            case Send(at, label, after):
                return self._send(self._address(at), label, after), ""
            case Arrive(at, label, again):
                return self._arrive(self._address(at), label, again)
            case Join(at, sponsor):
                return self._join(at, self._address(sponsor)), sponsor
            case Leave(at):
                return self.world.leave(self._address(at), name=at), ""
            case Tick(seconds):
                self.now += seconds
                return self.world.tick(self.now), ""
        raise AssertionError(action)

    def _send(self, at: int, label: str, after: tuple[str, ...]) -> list[Step]:
        if label in self.world.ids:
            self.fail(f"message {label} has been sent already; give every message its own name")
        if unknown := [parent for parent in after if parent not in self.world.ids]:
            self.fail(f"'after {unknown[0]}': no such message has been sent before this line")
        if not self.world.members[at].application:
            self.fail(f"{self.cast.names[at]} only forwards; let another member send")
        return self.world.send(at, label, after=after, now=self.now)

    def _arrive(self, at: int, label: str, again: bool) -> tuple[list[Step], str]:
        copy = self.arrived.get((at, label)) if again else self._next_copy(at, label)
        if copy is None:
            self._no_copy(at, label, again)
        if again:
            return self.world.hand_over(copy, now=self.now), self.cast.names[copy.source]
        self.arrived[at, label] = copy
        return self.world.arrive(at, label, now=self.now), self.cast.names[copy.source]

    def _next_copy(self, at: int, label: str) -> InFlight | None:
        flying = self.world.in_flight
        return next((c for c in flying if c.target == at and c.message.payload == label), None)

    def _no_copy(self, at: int, label: str, again: bool) -> NoReturn:
        name = self.cast.names[at]
        if label not in self.world.ids:
            self.fail(f"no message {label} has been sent before this line")
        if again:
            self.fail(f"no copy of {label} has arrived at {name} before; leave out 'again'")
        flying = [c.message.payload for c in self.world.in_flight if c.target == at]
        what = f"in flight to it: {', '.join(flying)}" if flying else "nothing is in flight to it"
        self.fail(f"message {label} is not in flight to {name}; {what}")

    def _join(self, name: str, sponsor: int) -> list[Step]:
        if name in self.cast.names.values():
            self.fail(f"{name} is or was in the group; a newcomer needs a name of its own")
        at, newcomer = self.cast.newcomer(name, tuple(self.world.members))
        steps = self.world.join(at, newcomer, sponsor, name=name)
        self.watch.join(at, sponsor)
        return steps

    def _address(self, name: str) -> int:
        for address, known in self.cast.names.items():
            if known == name and address in self.world.members:
                return address
        if name in self.cast.names.values():
            self.fail(f"{name} has left the group")
        present = ", ".join(self.cast.names[address] for address in self.world.members)
        self.fail(f"unknown member {name}; in the group are {present}")

    # -- what happened ----------------------------------------------------------------------

    def _happening(self, step: Step, source: str) -> Happening:
        name, others, early = self.cast.names[step.at], step.detail, ()
        if step.kind in (SENT, FORWARDED):
            others = self._on_its_way(step)
        elif step.kind in (ARRIVED, JOINED):
            others = (source,)
        if step.kind != FORWARDED:
            early = self.watch.step(step)
        return Happening(name, step.kind, step.label, others, early)

    def _on_its_way(self, step: Step) -> tuple[str, ...]:
        known = {id(copy) for copy in self.before}
        return tuple(
            self.cast.names[copy.target]
            for copy in self.world.in_flight
            if id(copy) not in known
            and copy.source == step.at
            and copy.message.payload == step.label
        )

    def _printed(self, action: State | Blocked) -> tuple[str, ...]:
        member = self.world.members[self._address(action.at)]
        if isinstance(action, Blocked):
            waiting = [one for one in self._held() if one.at == action.at]
            return tuple(_waits(one) for one in waiting) or ("nothing",)
        fields = describe(member, self.world, self._address(action.at), self.cast.names)
        if unknown := [field for field in action.fields if field not in fields]:
            self.fail(f"{action.at} has no field {unknown[0]}; it has {', '.join(fields)}")
        return tuple(f"{field} = {fields[field]}" for field in action.fields or fields)

    def _held(self) -> tuple[Happening, ...]:
        return tuple(
            Happening(
                self.cast.names[at],
                HELD,
                held.message.payload,
                tuple(self.world.name(at, missing) for missing in held.missing),
            )
            for at, member in self.world.members.items()
            for held in member.blocked_on()
        )


def _waits(one: Happening) -> str:
    return f"{one.label} waits for {_missing(one)}"


def _missing(one: Happening) -> str:
    return ", ".join(one.others) or "causes it can not name"


def _lines(one: Happening) -> Iterator[str]:
    """Yield the lines of output for one thing that happened; none for an arrival."""
    match one.kind:
        case "send":
            yield f"{one.label} is on its way to {', '.join(one.others) or 'nobody'}"
        case "forward":
            yield f"{one.at} forwards {one.label} to {', '.join(one.others) or 'nobody'}"
        case "deliver":
            yield f"{one.at} delivers {one.label}"
        case "hold":
            yield f"{one.at} holds {one.label}: it waits for {_missing(one)}"
        case "release":
            yield f"{one.at} releases {one.label} without {', '.join(one.others)}"
        case "discard":
            yield f"{one.at} discards {one.label}: {', '.join(one.others)}"
        case "join":
            yield f"{one.label} joins, {one.others[0]} is its sponsor"
        case "leave":
            yield f"{one.label} leaves"
    if one.early_for:
        yield f"VIOLATION: {one.at} delivers {one.label} before {', '.join(one.early_for)}"
