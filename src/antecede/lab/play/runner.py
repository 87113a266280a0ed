"""Run of a scenario under one protocol, with the state after each action.

An error of the protocol or the scenario ends the run and is stored in it. Calls have a timeout.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Final, NamedTuple

from antecede.core.group import ALIASES
from antecede.core.protocols import ENTRIES, Relation, promise
from antecede.core.protocols.options import options_of
from antecede.errors import AntecedeError, LocalError, ScenarioError
from antecede.lab.check import is_file_target, load_class
from antecede.lab.check.harness import (
    SENT,
    ImpossibleError,
    call_guarded,
    in_words,
    raise_own,
    watch_calls,
)
from antecede.lab.check.scenario import (
    CommandResult,
    Scenario,
    ScenarioEvent,
    ScenarioRun,
    ScenarioRunner,
    Setup,
    check_run,
    describe_state,
    parse_scenario,
    under,
)

CALL_TIMEOUT_S: Final = 2.0
RUN_TIMEOUT_S: Final = 15.0


class RunState(NamedTuple):
    """State of all members after an action, by name."""

    states: Mapping[str, Mapping[str, str]]
    held: tuple[ScenarioEvent, ...]
    in_flight: tuple[tuple[str, str, str], ...]
    control_bytes: Mapping[str, int]


class ProtocolRun(NamedTuple):
    """Run of one protocol, up to its end or its error."""

    name: str
    """Words after `protocol` in a scenario."""
    scenario: Scenario
    """Executed scenario, without printing actions, with the requested options."""
    remarks: tuple[str, ...]
    promise: str
    relation: Relation
    run: ScenarioRun | None
    """None: the group could not be created."""
    states: tuple[RunState, ...]
    """State before the first action, then after each."""
    error: ScenarioError | None
    is_impossible: bool
    """True if the error is an impossible action or a rejection by a member."""


def own_name(setup: Setup) -> str:
    """Return the protocol of a scenario with its options, as scenarios write it."""
    return " ".join((setup.protocol, *(f"{name}={value}" for name, value in setup.options)))


def parse_protocol(name: str) -> Setup:
    """Parse the words after `protocol`; raises ScenarioError."""
    setup = parse_scenario(f"protocol {' '.join(name.split())}\nmembers A").setup
    return setup._replace(protocol=ALIASES.get(setup.protocol, setup.protocol))


def run_protocol(
    scenario: Scenario,
    name: str,
    relation: Relation | None = None,
    until: float | None = None,
    max_copies: int | None = None,
) -> ProtocolRun:
    """Run a scenario under a protocol, named by the words after `protocol`.

    `relation`: check this instead of the promise. `until`: deadline of the monotonic clock.
    `max_copies`: limit of copies in flight and held, summed over the steps.
    """
    run = _ProtocolRunner(scenario, name, max_copies)
    with watch_calls(CALL_TIMEOUT_S):
        run.execute(monotonic() + RUN_TIMEOUT_S if until is None else until)
    return run.make_result(relation)


def make_failed_run(scenario: Scenario, name: str, reason: str) -> ProtocolRun:
    """Return the run of a protocol that could not be run; nothing of it is loaded."""
    named = parse_protocol(name)
    setup = scenario.setup._replace(protocol=named.protocol, options=named.options)
    error = ScenarioError(reason, path=scenario.path)
    shown = scenario._replace(setup=setup, commands=())
    return ProtocolRun(name, shown, (), "", Relation.NONE, None, (), error, is_impossible=False)


def adapt_scenario(scenario: Scenario, name: str) -> tuple[Scenario, tuple[str, ...]]:
    """Return the scenario under a protocol, and remarks on omitted bounds and subscriptions."""
    named = parse_protocol(name)
    adapted = under(scenario, named.protocol)
    setup = adapted.setup._replace(options=named.options)
    remarks = []
    if setup.bounds is not None and not _has_option(scenario, setup.protocol, "bounds"):
        setup = setup._replace(bounds=None)
        remarks.append(f"{setup.protocol} does not support bounds: omitted")
    if setup.subscriptions and not _has_option(scenario, setup.protocol, "subscriptions"):
        setup = setup._replace(subscriptions=())
        remarks.append(f"{setup.protocol} does not support topics: subscriptions omitted")
    return adapted._replace(setup=setup), tuple(remarks)


def _has_option(scenario: Scenario, protocol: str, option: str) -> bool:
    if is_file_target(protocol):
        return option in options_of(load_class(str(Path(scenario.path).parent / protocol)))
    return protocol not in ENTRIES or option in options_of(ENTRIES[protocol].load())


class _ProtocolRunner:
    def __init__(self, scenario: Scenario, name: str, max_copies: int | None) -> None:
        self.original, self.name, self.max_copies = scenario, name, max_copies
        self.scenario = scenario._replace(commands=())
        self.remarks: tuple[str, ...] = ()
        self.runner: ScenarioRunner | None = None
        self.promise, self.relation = "", Relation.NONE
        self.results: list[CommandResult] = []
        self.states: list[RunState] = []
        self.error: ScenarioError | None = None
        self.is_impossible = False
        self.copies = 0

    def execute(self, until: float) -> None:
        try:
            self.scenario, self.remarks = adapt_scenario(self.original, self.name)
            self._run_all(until)
        except ScenarioError as error:
            self.error = error
            self.is_impossible = isinstance(error.__cause__, ImpossibleError | LocalError)
        except AntecedeError as error:
            self.error = self._make_error(str(error))
        except BaseException as error:  # a user's protocol may raise anything
            raise_own(error)
            self.error = self._make_error(
                f"the protocol fails at a query of its state: {in_words(error)}"
            )
        if self.runner is not None:
            self.results = self.results[: max(len(self.states) - 1, 0)]

    def _run_all(self, until: float) -> None:
        self.runner = ScenarioRunner(self.scenario)
        self.promise = call_guarded(promise, self.runner.network.members)
        self.relation = self.runner.session.relation
        self._record_state(())
        for result in self.runner.run_commands():
            self.results.append(result)
            self._record_state(result.events)
            if monotonic() > until:
                raise self._make_error(f"stopped here: the run exceeds {RUN_TIMEOUT_S:g} s")
            if self.max_copies is not None and self._count_copies() > self.max_copies:
                raise self._make_error("stopped here: too many copies are in flight or held; "
                                 "let more of them arrive earlier")  # fmt: skip

    def _count_copies(self) -> int:
        last = self.states[-1]
        self.copies += len(last.in_flight) + sum(1 + len(one.others) for one in last.held)
        return self.copies

    def _make_error(self, words: str) -> ScenarioError:
        line = self.results[-1].command.line if self.results else None
        return ScenarioError(words, path=self.original.path, line=line)

    def _record_state(self, events: Sequence[ScenarioEvent]) -> None:
        assert self.runner is not None
        playing = self.runner
        world, names = playing.network, playing.names
        states = {names[at]: call_guarded(describe_state, at, world, names) for at in world.members}
        overheads: dict[str, int] = {}
        for one in (one for one in events if one.kind == SENT):
            at = playing.session.find_address(one.at)
            copies = (c.message for c in world.in_flight if c.source == at)
            with suppress(LocalError):  # some protocols have no control information
                count = partial(call_guarded, world.members[at].control_bytes)
                sizes = [count(m) for m in copies if m.payload == one.label]
                overheads |= {one.label: max(sizes)} if sizes else {}
        self.states.append(
            RunState(states, call_guarded(playing.list_held), playing.list_in_flight(), overheads)
        )

    def make_result(self, relation: Relation | None) -> ProtocolRun:
        run = None
        if self.runner is not None and self.states:
            last = self.states[-1]
            run = self.runner.make_run(self.results, last.held, last.in_flight)
            run = check_run(run if relation is None else run._replace(relation=relation))
        return ProtocolRun(
            *(self.name, self.scenario, self.remarks, self.promise, self.relation, run),
            *(tuple(self.states), self.error, self.is_impossible),
        )
