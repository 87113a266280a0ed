"""The text of a script file, read into a `Script` and written from one.

A line is a comment (`#`), an expected line of output (`= ...`) or a command; some commands set
the scene (title, source, protocol, members), all others are actions. The format is described in
`docs/design/scenarios.md`. Nothing here knows what a protocol does; `antecede.check.script.run`
carries the actions out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

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
    line_of,
)
from antecede.clocks.bounds import Bounds
from antecede.clocks.nanoseconds import down_ns, seconds_text
from antecede.errors import LocalError, ScriptError


class Setup(NamedTuple):
    """Who takes part, by name, and under which protocol."""

    protocol: str
    options: tuple[tuple[str, str], ...] = ()
    members: tuple[str, ...] = ()
    """Flat groups: everybody. Empty where `internal` and `external` say who takes part."""
    internal: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Super peer -> the internal peers behind it."""
    external: tuple[str, ...] = ()
    bounds: Bounds[str] | None = None
    """What is promised of clocks and delays, by name; goes to the protocol as `bounds`."""
    clocks: tuple[tuple[str, int], ...] = ()
    """By how many nanoseconds a member's clock is off; who is not named is not."""
    subscriptions: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Topics by member; go to the protocol as `subscriptions`."""

    def everybody(self) -> tuple[str, ...]:
        """Return all names in the order in which a diagram shows them."""
        inner = tuple(name for sp, peers in self.internal for name in (*peers, sp))
        return (*self.members, *inner, *self.external)


class Command(NamedTuple):
    """One action, the line it stands on (from 1), and the output that the file expects."""

    line: int
    action: Action
    expected: tuple[str, ...] = ()


class Script(NamedTuple):
    """A script file as values."""

    path: str
    title: str
    source: str
    setup: Setup
    commands: tuple[Command, ...]
    protocol_line: int | None = None
    """Where the protocol and its options are named."""


def load_script(path: str | Path) -> Script:
    """Read a script file; raises ScriptError with path, line and what to do."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise ScriptError(f"cannot be read: {error.strerror}", path=str(path)) from error
    except UnicodeDecodeError as error:
        raise ScriptError(
            f"is not UTF-8 text (byte {error.start}); scripts are text files", path=str(path)
        ) from error
    return parse_script(text, str(path))


def parse_script(text: str, path: str = "script") -> Script:
    """Read the text of a script; raises ScriptError with path, line and what to do."""
    return _Parser(path).parse(text)


class _Parser:
    def __init__(self, path: str) -> None:
        self.path = path
        self.line = 0
        self.protocol_line: int | None = None
        self.head: dict[str, str] = {}
        self.options: tuple[tuple[str, str], ...] = ()
        self.members: tuple[str, ...] = ()
        self.internal: list[tuple[str, tuple[str, ...]]] = []
        self.external: tuple[str, ...] = ()
        self.bounds: Bounds[str] | None = None
        self.clocks: dict[str, int] = {}
        self.subscriptions: dict[str, tuple[str, ...]] = {}
        self.commands: list[Command] = []

    def parse(self, text: str) -> Script:
        for self.line, raw in enumerate(text.splitlines(), start=1):
            line = raw.strip()
            if line.startswith("="):
                self._expect(line[1:].strip())
            elif line and not line.startswith("#"):
                self._command(line)
        setup = self._setup()
        title, source = self.head.get("title", ""), self.head.get("source", "")
        commands = tuple(self.commands)
        return Script(self.path, title, source, setup, commands, self.protocol_line)

    def error(self, message: str) -> ScriptError:
        return ScriptError(message, path=self.path, line=self.line or None)

    def _setup(self) -> Setup:
        if "protocol" not in self.head:
            raise self.error("no protocol is named; begin with, for example, 'protocol fifo'")
        setup = Setup(
            self.head["protocol"],
            self.options,
            self.members,
            tuple(self.internal),
            self.external,
            self.bounds,
            tuple(self.clocks.items()),
            tuple(self.subscriptions.items()),
        )
        everybody = setup.everybody()
        if self.members and (self.internal or self.external):
            raise self.error("a group has either 'members', or 'internal' and 'external' peers")
        if not everybody:
            raise self.error("nobody takes part; add, for example, 'members P1 P2 P3'")
        if twice := [name for k, name in enumerate(everybody) if name in everybody[:k]]:
            raise self.error(f"{twice[0]} takes part twice; names are unique")
        return setup

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
        elif word in _SETUP:
            if self.commands:
                raise self.error(f"'{word}' sets the scene and must stand before the first action")
            _SETUP[word](self, arguments)
        elif word in _ACTIONS:
            self.commands.append(Command(self.line, _ACTIONS[word](self, arguments)))
        else:
            known = ", ".join(("title", "source", *_SETUP, *_ACTIONS))
            raise self.error(f"unknown command '{word}'; known are {known}")

    # -- the scene --------------------------------------------------------------------------

    def _protocol(self, arguments: Sequence[str]) -> None:
        if not arguments:
            raise self.error("write 'protocol NAME [option=value ...]'")
        if "protocol" in self.head:
            raise self.error("the protocol is named already; a script has one")
        self.protocol_line = self.line
        # The path of a file may have spaces; its class does not.
        words = next((k for k, one in enumerate(arguments, 1) if ".py:" in one), 1)
        self.head["protocol"] = " ".join(arguments[:words])
        for argument in arguments[words:]:
            name, equals, _ = argument.partition("=")
            if not (name and equals):
                raise self.error(f"'{argument}' is not an option; write option=value")
        pairs = (argument.partition("=") for argument in arguments[words:])
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

    def _bounds(self, arguments: Sequence[str]) -> None:
        names = [word for word in arguments if "=" not in word]
        given = dict(word.split("=", 1) for word in arguments if "=" in word)
        try:
            values = {key: Decimal(text) for key, text in given.items()}
            self.bounds = _with_bounds(self.bounds or Bounds(), names, values)
        except (ArithmeticError, ValueError, TypeError):
            raise self.error(
                "write 'bounds accuracy=S least=S most=S' for all, 'bounds A accuracy=S' for a "
                "clock, 'bounds A B least=S most=S' for a channel; S in seconds"
            ) from None
        except LocalError as error:
            raise self.error(str(error)) from error

    def _clock(self, arguments: Sequence[str]) -> None:
        match arguments:
            case [at, offset] if _number(offset):
                self.clocks[at] = down_ns(Decimal(offset), f"the clock of {at}")
                return
        raise self.error("write 'clock MEMBER SECONDS': by how much its clock is off")

    def _subscribe(self, arguments: Sequence[str]) -> None:
        match arguments:
            case [at, *topics] if topics:
                self.subscriptions[at] = (*self.subscriptions.get(at, ()), *topics)
                return
        raise self.error("write 'subscribe MEMBER TOPIC ...'")

    # -- the actions ------------------------------------------------------------------------

    def _send(self, arguments: Sequence[str]) -> Action:
        clauses: dict[str, list[str]] = {}
        clause: list[str] | None = None
        for word in arguments[2:]:
            if word in ("to", "about", "after") and word not in clauses:
                clause = clauses.setdefault(word, [])
            elif clause is not None:
                clause.append(word)
        if len(arguments) < 2 or not all(clauses.values()) or (arguments[2:] and not clauses):
            raise self.error(
                "write 'send MEMBER MESSAGE [to MEMBER ...] [about TOPIC ...] [after MESSAGE ...]'"
            )
        at, label = arguments[:2]
        after, to, about = (tuple(clauses.get(word, ())) for word in ("after", "to", "about"))
        return Send(at, label, after, to, about)

    def _arrive(self, arguments: Sequence[str]) -> Action:
        match arguments:
            case [at, label]:
                return Arrive(at, label)
            case [at, label, "again"]:
                return Arrive(at, label, again=True)
        raise self.error("write 'arrive MEMBER MESSAGE [again]'")

    def _lose(self, arguments: Sequence[str]) -> Action:
        match arguments:
            case [at, label]:
                return Lose(at, label)
        raise self.error("write 'lose MEMBER MESSAGE'")

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


_SETUP: dict[str, Callable[[_Parser, Sequence[str]], None]] = {
    "protocol": _Parser._protocol,
    "members": _Parser._members,
    "internal": _Parser._internal,
    "external": _Parser._external,
    "bounds": _Parser._bounds,
    "clock": _Parser._clock,
    "subscribe": _Parser._subscribe,
}
_ACTIONS: dict[str, Callable[[_Parser, Sequence[str]], Action]] = {
    "send": _Parser._send,
    "arrive": _Parser._arrive,
    "lose": _Parser._lose,
    "join": _Parser._join,
    "leave": _Parser._leave,
    "tick": _Parser._tick,
    "state": _Parser._state,
    "blocked": _Parser._blocked,
}


def _with_bounds(
    bounds: Bounds[str], names: Sequence[str], values: dict[str, Decimal]
) -> Bounds[str]:
    """Return bounds with some replaced; raises TypeError for words that fit no form."""
    seconds: dict[str, Any] = {f"{key}_s": value for key, value in values.items()}
    said: Bounds[str] = Bounds(**seconds)
    match names:
        case []:
            fields = {f"{key}_ns": getattr(said, f"{key}_ns") for key in values}
            return replace(bounds, **fields)
        case [at] if values.keys() == {"accuracy"}:
            clocks = {**bounds.clocks_ns, at: said.accuracy_ns}
            return replace(bounds, clocks_ns=clocks)
        case [source, target] if values.keys() == {"least", "most"}:
            channels = {**bounds.channels_ns, (source, target): (said.least_ns, said.most_ns)}
            return replace(bounds, channels_ns=channels)
    raise TypeError


def _bounds_lines(bounds: Bounds[str]) -> list[str]:
    text = seconds_text
    delays = f"least={text(bounds.least_ns)} most={text(bounds.most_ns)}"
    lines = [f"bounds accuracy={text(bounds.accuracy_ns)} {delays}"]
    lines += [f"bounds {at} accuracy={text(error)}" for at, error in bounds.clocks_ns.items()]
    for (source, target), (least, most) in bounds.channels_ns.items():
        lines.append(f"bounds {source} {target} least={text(least)} most={text(most)}")
    return lines


def _number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _positive(text: str) -> bool:
    return _number(text) and float(text) > 0


def script_text(
    setup: Setup, actions: Iterable[Action], *, title: str = "", source: str = ""
) -> str:
    """Return the text of a script file, without expected output.

    `antecede.check.script.run.with_output` adds what the actions print.
    """
    head = [f"{word} {value}" for word, value in (("title", title), ("source", source)) if value]
    options = "".join(f" {name}={value}" for name, value in setup.options)
    lines = [f"protocol {setup.protocol}{options}"]
    if setup.members:
        lines.append("members " + " ".join(setup.members))
    lines += [f"internal {sp}: {' '.join(peers)}" for sp, peers in setup.internal]
    if setup.external:
        lines.append("external " + " ".join(setup.external))
    lines += _bounds_lines(setup.bounds) if setup.bounds is not None else []
    lines += [f"clock {name} {seconds_text(offset)}" for name, offset in setup.clocks if offset]
    lines += [f"subscribe {name} {' '.join(topics)}" for name, topics in setup.subscriptions]
    blocks = [head, lines, [line_of(action) for action in actions]]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def replace_output(text: str, outputs: dict[int, Sequence[str]]) -> str:
    """Return the script text with the output after each line (from 1) replaced."""
    lines: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip().startswith("="):
            lines.append(line)
            lines += [f"= {output}".rstrip() for output in outputs.get(number, ())]
    return "\n".join(lines) + "\n"
