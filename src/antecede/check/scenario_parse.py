"""The text of a scenario file, read into a `Scenario` and written from one.

A line is a comment (`#`), an expected line of output (`= ...`) or a command; some commands set
the scene (title, source, protocol, members), all others are actions. The format is described in
`docs/design/scenarios.md`. Nothing here knows what a protocol does; `antecede.check.scenario`
carries the actions out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from antecede.check.actions import (
    Action,
    Arrive,
    Blocked,
    Join,
    Leave,
    Send,
    State,
    Tick,
    words,
)
from antecede.errors import ScenarioError


class Setting(NamedTuple):
    """Who takes part, by name, and under which protocol."""

    protocol: str
    options: tuple[tuple[str, str], ...] = ()
    members: tuple[str, ...] = ()
    """Flat groups: everybody. Empty where `internal` and `external` say who takes part."""
    internal: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Super peer -> the internal peers behind it."""
    external: tuple[str, ...] = ()

    def everybody(self) -> tuple[str, ...]:
        """Return all names in the order in which a diagram shows them."""
        inner = tuple(name for sp, peers in self.internal for name in (*peers, sp))
        return (*self.members, *inner, *self.external)


class Command(NamedTuple):
    """One action, the line it stands on (from 1), and the output that the file expects."""

    line: int
    action: Action
    expected: tuple[str, ...] = ()


class Scenario(NamedTuple):
    """A scenario file as values."""

    path: str
    title: str
    source: str
    setting: Setting
    commands: tuple[Command, ...]


def load_scenario(path: str | Path) -> Scenario:
    """Read a scenario file; raises ScenarioError with path, line and what to do."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise ScenarioError(f"cannot be read: {error.strerror}", path=str(path)) from error
    except UnicodeDecodeError as error:
        raise ScenarioError(
            f"is not UTF-8 text (byte {error.start}); scenarios are text files", path=str(path)
        ) from error
    return parse_scenario(text, str(path))


def parse_scenario(text: str, path: str = "scenario") -> Scenario:
    """Read the text of a scenario; raises ScenarioError with path, line and what to do."""
    return _Parser(path).parse(text)


class _Parser:
    def __init__(self, path: str) -> None:
        self.path = path
        self.line = 0
        self.head: dict[str, str] = {}
        self.options: tuple[tuple[str, str], ...] = ()
        self.members: tuple[str, ...] = ()
        self.internal: list[tuple[str, tuple[str, ...]]] = []
        self.external: tuple[str, ...] = ()
        self.commands: list[Command] = []

    def parse(self, text: str) -> Scenario:
        for self.line, raw in enumerate(text.splitlines(), start=1):
            line = raw.strip()
            if line.startswith("="):
                self._expect(line[1:].strip())
            elif line and not line.startswith("#"):
                self._command(line)
        setting = self._setting()
        title, source = self.head.get("title", ""), self.head.get("source", "")
        return Scenario(self.path, title, source, setting, tuple(self.commands))

    def error(self, message: str) -> ScenarioError:
        return ScenarioError(message, path=self.path, line=self.line or None)

    def _setting(self) -> Setting:
        if "protocol" not in self.head:
            raise self.error("no protocol is named; begin with, for example, 'protocol fifo'")
        setting = Setting(
            self.head["protocol"],
            self.options,
            self.members,
            tuple(self.internal),
            self.external,
        )
        everybody = setting.everybody()
        if self.members and (self.internal or self.external):
            raise self.error("a group has either 'members', or 'internal' and 'external' peers")
        if not everybody:
            raise self.error("nobody takes part; add, for example, 'members P1 P2 P3'")
        if twice := [name for k, name in enumerate(everybody) if name in everybody[:k]]:
            raise self.error(f"{twice[0]} takes part twice; names are unique")
        return setting

    def _expect(self, output: str) -> None:
        if not self.commands:
            raise self.error("expected output ('= ...') stands before the first action")
        last = self.commands[-1]
        self.commands[-1] = last._replace(expected=(*last.expected, output))

    def _command(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        arguments = rest.split()
        if word in ("title", "source"):
            self.head[word] = rest.strip()
        elif word in _SETTING:
            if self.commands:
                raise self.error(f"'{word}' sets the scene and must stand before the first action")
            _SETTING[word](self, arguments)
        elif word in _ACTIONS:
            self.commands.append(Command(self.line, _ACTIONS[word](self, arguments)))
        else:
            known = ", ".join(("title", "source", *_SETTING, *_ACTIONS))
            raise self.error(f"unknown command '{word}'; known are {known}")

    # -- the scene --------------------------------------------------------------------------

    def _protocol(self, arguments: Sequence[str]) -> None:
        if not arguments:
            raise self.error("write 'protocol NAME [option=value ...]'")
        if "protocol" in self.head:
            raise self.error("the protocol is named already; a scenario has one")
        self.head["protocol"] = arguments[0]
        for argument in arguments[1:]:
            name, equals, value = argument.partition("=")
            if not (name and equals and value):
                raise self.error(f"'{argument}' is not an option; write option=value")
        pairs = (argument.partition("=") for argument in arguments[1:])
        self.options = tuple((name, value) for name, _, value in pairs)

    def _members(self, arguments: Sequence[str]) -> None:
        if not arguments:
            raise self.error("write 'members NAME NAME ...'")
        self.members = (*self.members, *arguments)

    def _internal(self, arguments: Sequence[str]) -> None:
        head, peers = (arguments[0], arguments[1:]) if arguments else ("", ())
        if not head.endswith(":") or head == ":" or not peers:
            raise self.error("write 'internal SUPER_PEER: PEER PEER ...'")
        self.internal.append((head[:-1], tuple(peers)))

    def _external(self, arguments: Sequence[str]) -> None:
        if not arguments:
            raise self.error("write 'external PEER PEER ...'")
        self.external = (*self.external, *arguments)

    # -- the actions ------------------------------------------------------------------------

    def _send(self, arguments: Sequence[str]) -> Action:
        match arguments:
            case [at, label]:
                return Send(at, label)
            case [at, label, "after", *after] if after:
                return Send(at, label, tuple(after))
        raise self.error("write 'send MEMBER MESSAGE [after MESSAGE ...]'")

    def _arrive(self, arguments: Sequence[str]) -> Action:
        match arguments:
            case [at, label]:
                return Arrive(at, label)
            case [at, label, "again"]:
                return Arrive(at, label, again=True)
        raise self.error("write 'arrive MEMBER MESSAGE [again]'")

    def _join(self, arguments: Sequence[str]) -> Action:
        match arguments:
            case [at, "sponsor", sponsor]:
                return Join(at, sponsor)
        raise self.error("write 'join NEW_MEMBER sponsor MEMBER'")

    def _leave(self, arguments: Sequence[str]) -> Action:
        match arguments:
            case [at]:
                return Leave(at)
        raise self.error("write 'leave MEMBER'")

    def _tick(self, arguments: Sequence[str]) -> Action:
        match arguments:
            case [seconds] if _positive(seconds):
                return Tick(float(seconds))
        raise self.error("write 'tick SECONDS', a number above 0")

    def _state(self, arguments: Sequence[str]) -> Action:
        match arguments:
            case [at, *fields]:
                return State(at, tuple(fields))
        raise self.error("write 'state MEMBER [FIELD ...]'")

    def _blocked(self, arguments: Sequence[str]) -> Action:
        match arguments:
            case [at]:
                return Blocked(at)
        raise self.error("write 'blocked MEMBER'")


_SETTING: dict[str, Callable[[_Parser, Sequence[str]], None]] = {
    "protocol": _Parser._protocol,
    "members": _Parser._members,
    "internal": _Parser._internal,
    "external": _Parser._external,
}
_ACTIONS: dict[str, Callable[[_Parser, Sequence[str]], Action]] = {
    "send": _Parser._send,
    "arrive": _Parser._arrive,
    "join": _Parser._join,
    "leave": _Parser._leave,
    "tick": _Parser._tick,
    "state": _Parser._state,
    "blocked": _Parser._blocked,
}


def _positive(text: str) -> bool:
    try:
        return 0 < float(text) < math.inf
    except ValueError:
        return False


def scenario_text(
    setting: Setting, actions: Iterable[Action], *, title: str = "", source: str = ""
) -> str:
    """Return the text of a scenario file, without expected output.

    `antecede.check.scenario.with_output` adds what the actions print.
    """
    head = [f"{word} {value}" for word, value in (("title", title), ("source", source)) if value]
    options = "".join(f" {name}={value}" for name, value in setting.options)
    scene = [f"protocol {setting.protocol}{options}"]
    if setting.members:
        scene.append("members " + " ".join(setting.members))
    scene += [f"internal {sp}: {' '.join(peers)}" for sp, peers in setting.internal]
    if setting.external:
        scene.append("external " + " ".join(setting.external))
    blocks = [head, scene, [words(action) for action in actions]]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def replace_output(text: str, outputs: dict[int, Sequence[str]]) -> str:
    """Return the scenario text with the output after each line (from 1) replaced."""
    lines: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip().startswith("="):
            lines.append(line)
            lines += [f"= {output}".rstrip() for output in outputs.get(number, ())]
    return "\n".join(lines) + "\n"
