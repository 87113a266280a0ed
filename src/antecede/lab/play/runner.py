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
from antecede.errors import AntecedeError, LocalError, ScriptError
from antecede.lab.check import is_file_target, load_class
from antecede.lab.check.harness import SENT, ImpossibleError, called, in_words, raise_own, watching
from antecede.lab.check.scenario import (
    CommandResult,
    Occurrence,
    Playing,
    Script,
    ScriptRun,
    Setup,
    describe,
    judged,
    parse_script,
    under,
)

CALL_S: Final = 2.0
LIMIT_S: Final = 15.0


class Noted(NamedTuple):
    """State of all members after an action, by name."""

    states: Mapping[str, Mapping[str, str]]
    held: tuple[Occurrence, ...]
    flying: tuple[tuple[str, str, str], ...]
    overheads: Mapping[str, int]


class Played(NamedTuple):
    """Run of one protocol, up to its end or its error."""

    name: str
    """Words after `protocol` in a scenario."""
    script: Script
    """Executed scenario, without printing actions, with the requested options."""
    remarks: tuple[str, ...]
    promised: str
    relation: Relation
    """Relation promised by the protocol."""
    run: ScriptRun | None
    """None: the group could not be created."""
    notes: tuple[Noted, ...]
    """State before the first action, then after each."""
    error: ScriptError | None
    impossible: bool
    """True if the error is an impossible action or a rejection by a member."""


def own_name(setup: Setup) -> str:
    """Return the protocol of a scenario with its options, as scenarios write it."""
    return " ".join((setup.protocol, *(f"{name}={value}" for name, value in setup.options)))


def named_setup(name: str) -> Setup:
    """Parse the words after `protocol`; raises ScenarioError."""
    setup = parse_script(f"protocol {' '.join(name.split())}\nmembers A").setup
    return setup._replace(protocol=ALIASES.get(setup.protocol, setup.protocol))


def play(
    script: Script,
    name: str,
    relation: Relation | None = None,
    until: float | None = None,
    room: int | None = None,
) -> Played:
    """Run a scenario under a protocol, named by the words after `protocol` in a scenario.

    `relation`: check this instead of the promise. `until`: deadline of the monotonic clock.
    `max_copies`: copies in flight and held, summed over the steps (default: no limit).
    """
    run = _Run(script, name, room)
    with watching(CALL_S):
        run.carry_out(monotonic() + LIMIT_S if until is None else until)
    return run.played(relation)


def not_played(script: Script, name: str, why: str) -> Played:
    """Return the run of a protocol that could not be run; nothing of it is loaded."""
    named = named_setup(name)
    setup = script.setup._replace(protocol=named.protocol, options=named.options)
    error = ScriptError(why, path=script.path)
    shown = script._replace(setup=setup, commands=())
    return Played(name, shown, (), "", Relation.NONE, None, (), error, impossible=False)


def as_protocol(script: Script, name: str) -> tuple[Script, tuple[str, ...]]:
    """Return the scenario under a protocol, and remarks on omitted parts.

    Omits printing actions, and bounds and subscriptions that the protocol does not support. Raises
    ScenarioError for an unknown protocol, InputError for an unusable file.
    """
    named = named_setup(name)
    made = under(script, named.protocol)
    setup = made.setup._replace(options=named.options)
    remarks = []
    if setup.bounds is not None and not _takes(script, setup.protocol, "bounds"):
        setup = setup._replace(bounds=None)
        remarks.append(f"{setup.protocol} does not support bounds: omitted")
    if setup.subscriptions and not _takes(script, setup.protocol, "subscriptions"):
        setup = setup._replace(subscriptions=())
        remarks.append(f"{setup.protocol} does not support topics: subscriptions omitted")
    return made._replace(setup=setup), tuple(remarks)


def _takes(script: Script, protocol: str, option: str) -> bool:
    if is_file_target(protocol):
        return option in options_of(load_class(str(Path(script.path).parent / protocol)))
    return protocol not in ENTRIES or option in options_of(ENTRIES[protocol].load())


class _Run:
    def __init__(self, script: Script, name: str, room: int | None) -> None:
        self.asked, self.name, self.room = script, name, room
        self.script = script._replace(commands=())
        self.remarks: tuple[str, ...] = ()
        self.playing: Playing | None = None
        self.promised, self.relation = "", Relation.NONE
        self.results: list[CommandResult] = []
        self.notes: list[Noted] = []
        self.error: ScriptError | None = None
        self.impossible = False
        self.told = 0

    def carry_out(self, until: float) -> None:
        try:
            self.script, self.remarks = as_protocol(self.asked, self.name)
            self._all(until)
        except ScriptError as error:
            self.error = error
            self.impossible = isinstance(error.__cause__, ImpossibleError | LocalError)
        except AntecedeError as error:
            self.error = self._said(str(error))
        except BaseException as error:  # a user's protocol may raise anything
            raise_own(error)
            self.error = self._said(
                f"the protocol fails at a query of its state: {in_words(error)}"
            )
        if self.playing is not None:
            self.results = self.results[: max(len(self.notes) - 1, 0)]

    def _all(self, until: float) -> None:
        self.playing = Playing(self.script)
        self.promised = called(promise, self.playing.world.members)
        self.relation = self.playing.session.relation
        self._note(())
        for result in self.playing.results():
            self.results.append(result)
            self._note(result.occurrences)
            if monotonic() > until:
                raise self._said(f"stopped here: the run exceeds {LIMIT_S:g} s")
            if self.room is not None and self._noted() > self.room:
                raise self._said("stopped here: too many copies are in flight or held; "
                                 "let more of them arrive earlier")  # fmt: skip

    def _noted(self) -> int:
        last = self.notes[-1]
        self.told += len(last.flying) + sum(1 + len(one.others) for one in last.held)
        return self.told

    def _said(self, words: str) -> ScriptError:
        line = self.results[-1].command.line if self.results else None
        return ScriptError(words, path=self.asked.path, line=line)

    def _note(self, occurrences: Sequence[Occurrence]) -> None:
        assert self.playing is not None
        playing = self.playing
        world, names = playing.world, playing.names
        states = {names[at]: called(describe, at, world, names) for at in world.members}
        overheads: dict[str, int] = {}
        for one in (one for one in occurrences if one.kind == SENT):
            at = playing.session.address(one.at)
            copies = (c.message for c in world.in_flight if c.source == at)
            with suppress(LocalError):  # some protocols have no control information
                count = partial(called, world.members[at].control_bytes)
                sizes = [count(m) for m in copies if m.payload == one.label]
                overheads |= {one.label: max(sizes)} if sizes else {}
        self.notes.append(Noted(states, called(playing.held), playing.flying(), overheads))

    def played(self, relation: Relation | None) -> Played:
        run = None
        if self.playing is not None and self.notes:
            last = self.notes[-1]
            run = self.playing.run_of(self.results, last.held, last.flying)
            run = judged(run if relation is None else run._replace(relation=relation))
        return Played(
            *(self.name, self.script, self.remarks, self.promised, self.relation, run),
            *(tuple(self.notes), self.error, self.impossible),
        )
