"""Carry out a scenario: every action, what it caused, and the golden output beside it.

Theory of operation
-------------------
`run_scenario` builds the members of the setting, drives them through `World`, and returns one
`Moment` an action: the steps it caused and these steps as lines of output. A golden file holds
these lines behind `= `; `check_output` compares, `with_output` rewrites them. A delivery before
a message of its causal past (in the relation that the protocol promises) is marked VIOLATION
by `antecede.oracle`, from what happened alone and not from the protocol's own state.
"""

from __future__ import annotations

from pathlib import Path

from antecede.check.calls import Hung, in_words, is_own, watching
from antecede.check.effects import MisuseError
from antecede.check.script.actions import (
    Action,
    Arrive,
    Blocked,
    Join,
    Leave,
    Lose,
    Send,
    State,
    Tick,
)
from antecede.check.script.describe import describe
from antecede.check.script.execution import ACKNOWLEDGED, Moment, Occurrence, Run, judged, waits
from antecede.check.script.parse import (
    Scenario,
    parse_scenario,
    replace_output,
)
from antecede.check.script.setup import Cast, cast_members
from antecede.check.world import (
    FORWARDED,
    HELD,
    SENT,
    InFlight,
    Step,
    World,
)
from antecede.errors import LocalError, RemoteError, ScenarioError
from antecede.protocols.base import Addressing

FOR_TIME = "time to pass"
"""What a message waits for that may go when nothing before it can be under way any more."""


def run_scenario(scenario: Scenario) -> Run:
    """Carry out all actions; raises ScenarioError when one asks for the impossible."""
    with watching():
        return judged(_Runner(scenario).run())


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
            self.cast: Cast = cast_members(scenario.setting, Path(scenario.path).parent)
        except ScenarioError as error:
            line = scenario.protocol_line
            raise ScenarioError(str(error), path=scenario.path, line=line) from error
        self.world = World(self.cast.protocols, self.cast.physics)
        self.before: set[int] = set()
        self.addressed: dict[str, tuple[str, ...]] = {}
        self.arrived: dict[tuple[int, str], InFlight] = {}

    def run(self) -> Run:
        """Carry out every command; deliveries are not judged yet."""
        moments = []
        number = 0
        for command in self.scenario.commands:
            self.line = command.line
            action = command.action
            if isinstance(action, State | Blocked):
                moments.append(Moment(0, command, (), self._printed(action)))
                continue
            number += 1
            happenings, refused = self._moved(action)
            moments.append(Moment(number, command, happenings, refused))
        return Run(
            self.scenario,
            tuple(moments),
            self.cast.relation,
            self._held(),
            self.addressed,
            self.cast.subscriptions,
        )

    def error(self, message: str) -> ScenarioError:
        return ScenarioError(message, path=self.scenario.path, line=self.line)

    # -- actions ----------------------------------------------------------------------------

    def _moved(self, action: Action) -> tuple[tuple[Occurrence, ...], tuple[str, ...]]:
        """Carry out an action; returns what happened, or why the message was refused."""
        flying = list(self.world.in_flight)  # kept alive, so that ids stay unique
        self.before = {id(copy) for copy in flying}
        try:
            steps, source = self._carry_out(action)
        except RemoteError as error:
            return (), (f"refused: {error}",)
        except LocalError as error:
            raise self.error(str(error)) from error
        except ScenarioError:
            raise
        except MisuseError as error:
            raise self.error(str(error)) from error
        except BaseException as error:  # a protocol of the user's own may raise anything
            if is_own(error):
                raise
            what = in_words(error) if isinstance(error, Hung) else f"raised {in_words(error)}"
            raise self.error(f"the protocol {what}") from error
        told = {(step.at, step.label) for step in steps if step.kind in (SENT, FORWARDED)}
        happenings = [self._happening(step, source) for step in steps]
        return (*happenings, *self._acknowledged(told)), ()

    def _carry_out(self, action: Action) -> tuple[list[Step], str]:
        match action:
            case Send(at, label):
                return self._send(self._address(at), action), ""
            case Arrive(at, label, again):
                return self._arrive(self._address(at), label, again)
            case Lose(at, label):
                return self._lose(self._address(at), label)
            case Join(at, sponsor):
                return self._join(at, self._address(sponsor)), sponsor
            case Leave(at):
                return self.world.leave(self._address(at), name=at), ""
            case Tick(seconds):
                return self.world.tick(seconds), ""
        raise AssertionError(action)

    def _send(self, at: int, action: Send) -> list[Step]:
        label, after = action.label, action.after
        if label in self.world.ids:
            raise self.error(f"{label} has been sent already; give every message its own name")
        if unknown := [parent for parent in after if parent not in self.world.ids]:
            raise self.error(f"no message {unknown[0]} has been sent before this line")
        if not self.world.members[at].application:
            raise self.error(f"{self.cast.names[at]} only forwards; let another member send")
        to = tuple(map(self._address, action.to))
        if self.world.members[at].addressing is not Addressing.ALL:
            self.addressed[label] = self._audience(action)
        return self.world.send(at, label, after=after, to=to, topics=action.topics)

    def _audience(self, action: Send) -> tuple[str, ...]:
        """Return by name whom a message is for, from what the scenario says alone."""
        present = tuple(self.cast.names[at] for at in self.world.members)
        if not action.topics:
            return action.to or present
        wanted, subscribed = set(action.topics), self.cast.subscriptions
        return tuple(name for name in present if wanted & set(subscribed.get(name, ())))

    def _lose(self, at: int, label: str) -> tuple[list[Step], str]:
        copy = self._next_copy(at, label)
        if copy is None:
            raise self._no_copy(at, label, False)
        return self.world.lose(at, label), self.cast.names[copy.source]

    def _arrive(self, at: int, label: str, again: bool) -> tuple[list[Step], str]:
        copy = self.arrived.get((at, label)) if again else self._next_copy(at, label)
        if copy is None:
            raise self._no_copy(at, label, again)
        if again:
            return self.world.hand_over(copy), self.cast.names[copy.source]
        self.arrived[at, label] = copy
        return self.world.arrive(at, label), self.cast.names[copy.source]

    def _next_copy(self, at: int, label: str) -> InFlight | None:
        flying = self.world.in_flight
        return next((c for c in flying if c.target == at and c.message.payload == label), None)

    def _no_copy(self, at: int, label: str, again: bool) -> ScenarioError:
        name = self.cast.names[at]
        if label not in self.world.ids:
            return self.error(f"no message {label} has been sent before this line")
        if again:
            return self.error(f"no copy of {label} has arrived at {name} before; leave out 'again'")
        flying = [c.message.payload for c in self.world.in_flight if c.target == at]
        what = f"in flight to it: {', '.join(flying)}" if flying else "nothing is in flight to it"
        return self.error(f"message {label} is not in flight to {name}; {what}")

    def _join(self, name: str, sponsor: int) -> list[Step]:
        if name in self.cast.names.values():
            raise self.error(f"{name} is or was in the group; a newcomer needs a name of its own")
        at, newcomer = self.cast.newcomer(name, tuple(self.world.members))
        return self.world.join(at, newcomer, sponsor, name=name)

    def _address(self, name: str) -> int:
        for address, known in self.cast.names.items():
            if known == name and address in self.world.members:
                return address
        if name in self.cast.names.values():
            raise self.error(f"{name} has left the group")
        present = ", ".join(self.cast.names[address] for address in self.world.members)
        raise self.error(f"unknown member {name}; in the group are {present}")

    # -- what happened ----------------------------------------------------------------------

    def _happening(self, step: Step, source: str) -> Occurrence:
        name = self.cast.names[step.at]
        match step.kind:
            case "send" | "forward":
                to = self._on_its_way(step.at, step.label)
                return Occurrence(name, step.kind, step.label, to, step.detail)
            case "arrive" | "join" | "lose":
                return Occurrence(name, step.kind, step.label, (source,))
        if step.kind == HELD:
            return Occurrence(
                name, step.kind, step.label, self._reasons(step.at, step.detail, step.reason)
            )
        return Occurrence(name, step.kind, step.label, step.detail)

    def _reasons(self, at: int, missing: tuple[str, ...], reason: str) -> tuple[str, ...]:
        """Return what a held message waits for, in words where it is for no message."""
        waits = self.world.members[at].guarantee.needs_time
        return missing or ((reason,) if reason else (FOR_TIME,) if waits else ())

    def _new(self) -> list[InFlight]:
        return [copy for copy in self.world.in_flight if id(copy) not in self.before]

    def _on_its_way(self, at: int, label: str) -> tuple[str, ...]:
        return tuple(
            self.cast.names[copy.target]
            for copy in self._new()
            if copy.source == at and copy.message.payload == label
        )

    def _acknowledged(self, told: set[tuple[int, str]]) -> list[Occurrence]:
        """Return what members sent of their own accord, or what is owed to a newcomer."""
        new = dict.fromkeys((copy.source, copy.message.payload) for copy in self._new())
        return [
            Occurrence(self.cast.names[at], ACKNOWLEDGED, label, self._on_its_way(at, label))
            for at, label in new
            if (at, label) not in told
        ]

    def _printed(self, action: State | Blocked) -> tuple[str, ...]:
        at = self._address(action.at)
        if isinstance(action, Blocked):
            waiting = [one for one in self._held() if one.at == action.at]
            return tuple(waits(one) for one in waiting) or ("nothing",)
        fields = describe(at, self.world, self.cast.names)
        if unknown := [field for field in action.fields if field not in fields]:
            raise self.error(f"{action.at} has no field {unknown[0]}; it has {', '.join(fields)}")
        return tuple(f"{field} = {fields[field]}" for field in action.fields or fields)

    def _held(self) -> tuple[Occurrence, ...]:
        return tuple(
            Occurrence(
                self.cast.names[at],
                HELD,
                held.message.payload,
                self._reasons(
                    at, tuple(self.world.name(at, one) for one in held.missing), held.reason
                ),
            )
            for at, member in self.world.members.items()
            for held in member.blocked_on()
        )
