"""Parser and writer of scenario files.

A line is a comment (`#`), expected output (`= ...`), a setting (title, source, protocol, members)
or an action. `docs/design/scenarios.md` describes the format.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from antecede.core.clocks import Bounds, down_ns, seconds_text
from antecede.errors import LocalError, ScenarioError
from antecede.lab.check.scenario.actions import (
    Action,
    Arrive,
    Join,
    Leave,
    Lose,
    Send,
    ShowHeld,
    ShowState,
    Tick,
    format_action,
)


class Setup(NamedTuple):
    """Protocol and members, by name."""

    protocol: str
    options: tuple[tuple[str, str], ...] = ()
    members: tuple[str, ...] = ()
    internal: tuple[tuple[str, tuple[str, ...]], ...] = ()
    external: tuple[str, ...] = ()
    bounds: Bounds[str] | None = None
    """The option `bounds` of the protocol."""
    clocks: tuple[tuple[str, int], ...] = ()
    """Offset by member, ns (default: 0)."""
    subscriptions: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Topics by member; the option `subscriptions` of the protocol."""

    def everybody(self) -> tuple[str, ...]:
        """Return all names in the order of a diagram."""
        inner = tuple(name for sp, peers in self.internal for name in (*peers, sp))
        return (*self.members, *inner, *self.external)


class Command(NamedTuple):
    """Action with its line number (from 1) and its expected output."""

    line: int
    action: Action
    expected: tuple[str, ...] = ()


class Scenario(NamedTuple):
    """Parsed scenario file."""

    path: str
    title: str
    source: str
    setup: Setup
    commands: tuple[Command, ...]
    protocol_line: int | None = None

    def list_members(self) -> tuple[str, ...]:
        """Return all names, joining members last."""
        joining = (c.action.at for c in self.commands if isinstance(c.action, Join))
        return tuple(dict.fromkeys((*self.setup.everybody(), *joining)))


def load_scenario(path: str | Path) -> Scenario:
    """Read a scenario file; raises ScenarioError with path and line."""
    return parse_scenario(read_scenario_file(path), str(path))


def read_scenario_file(path: str | Path) -> str:
    """Return the text of a scenario file without byte order mark; raises ScenarioError."""
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ScenarioError(f"cannot be read: {error.strerror}", path=str(path)) from error
    except UnicodeDecodeError as error:
        raise ScenarioError(
            f"is not UTF-8 text (byte {error.start}); scenarios are text files", path=str(path)
        ) from error


def parse_scenario(text: str, path: str = "scenario") -> Scenario:
    """Parse the text of a scenario; raises ScenarioError with path and line."""
    return _ScenarioParser(path).parse(text)


class _ScenarioParser:
    def __init__(self, path: str) -> None:
        self.path = path
        self.line = 0
        self.protocol_line: int | None = None
        self.metadata = {"title": "", "source": ""}
        self.setup = Setup("")
        self.commands: list[Command] = []

    def parse(self, text: str) -> Scenario:
        for self.line, raw in enumerate(text.splitlines(), start=1):
            line = raw.strip()
            if line.startswith("="):
                self._read_expected(line[1:].strip())
            elif line and not line.startswith("#"):
                self._read_line(line)
        self._check_setup()
        commands = tuple(self.commands)
        return Scenario(
            self.path, **self.metadata, setup=self.setup, commands=commands,
            protocol_line=self.protocol_line,
        )  # fmt: skip

    def make_error(self, message: str) -> ScenarioError:
        return ScenarioError(message, path=self.path, line=self.line or None)

    def _check_setup(self) -> None:
        setup, everybody = self.setup, self.setup.everybody()
        if not setup.protocol:
            raise self.make_error("missing protocol; start with, for example, 'protocol fifo'")
        if setup.members and (setup.internal or setup.external):
            raise self.make_error("'members' and 'internal' or 'external' exclude each other")
        if not everybody:
            raise self.make_error("missing members; add, for example, 'members P1 P2 P3'")
        if twice := [name for k, name in enumerate(everybody) if name in everybody[:k]]:
            raise self.make_error(f"{twice[0]} is listed twice; names are unique")

    def _read_expected(self, output: str) -> None:
        if not self.commands:
            raise self.make_error("expected output ('= ...') before the first action")
        last = self.commands[-1]
        self.commands[-1] = last._replace(expected=(*last.expected, output))

    def _read_line(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        arguments = rest.split()
        if word in self.metadata:
            self.metadata[word] = rest.strip()
        elif word in _SETUP:
            if self.commands:
                raise self.make_error(f"'{word}' is a setting; move it before the first action")
            _SETUP[word](self, arguments)
        elif word in _ACTIONS:
            self.commands.append(Command(self.line, _ACTIONS[word](self, arguments)))
        else:
            known = ", ".join((*self.metadata, *_SETUP, *_ACTIONS))
            raise self.make_error(f"unknown command '{word}'; choose from {known}")

    def _read_protocol(self, arguments: Sequence[str]) -> None:
        if not arguments:
            raise self.make_error("write 'protocol NAME [option=value ...]'")
        if self.setup.protocol:
            raise self.make_error("second protocol line; a scenario has one protocol")
        self.protocol_line = self.line
        # The path of a file may contain spaces; the name of its class may not.
        words = next((k for k, one in enumerate(arguments, 1) if ".py:" in one), 1)
        options = []
        for argument in arguments[words:]:
            name, equals, value = argument.partition("=")
            if not (name and equals):
                raise self.make_error(f"option '{argument}': write option=value")
            options.append((name, value))
        protocol = " ".join(arguments[:words])
        self.setup = self.setup._replace(protocol=protocol, options=tuple(options))

    def _read_members(self, arguments: Sequence[str]) -> None:
        if not arguments:
            raise self.make_error("write 'members NAME NAME ...'")
        self.setup = self.setup._replace(members=(*self.setup.members, *arguments))

    def _read_internal(self, arguments: Sequence[str]) -> None:
        head, peers = (arguments[0], arguments[1:]) if arguments else ("", ())
        if not head.endswith(":") or head == ":" or not peers:
            raise self.make_error("write 'internal SUPER_PEER: PEER PEER ...'")
        groups = (*self.setup.internal, (head[:-1], tuple(peers)))
        self.setup = self.setup._replace(internal=groups)

    def _read_external(self, arguments: Sequence[str]) -> None:
        if not arguments:
            raise self.make_error("write 'external PEER PEER ...'")
        self.setup = self.setup._replace(external=(*self.setup.external, *arguments))

    def _read_bounds(self, arguments: Sequence[str]) -> None:
        names = [word for word in arguments if "=" not in word]
        texts = dict(word.split("=", 1) for word in arguments if "=" in word)
        try:
            values = {key: Decimal(text) for key, text in texts.items()}
            bounds = _update_bounds(self.setup.bounds or Bounds(), names, values)
        except (ArithmeticError, ValueError, TypeError):
            raise self.make_error(
                "write 'bounds accuracy=S least=S most=S' for all, 'bounds A accuracy=S' for a "
                "clock, 'bounds A B least=S most=S' for a channel; S in seconds"
            ) from None
        except LocalError as error:
            raise self.make_error(str(error)) from error
        self.setup = self.setup._replace(bounds=bounds)

    def _read_clock(self, arguments: Sequence[str]) -> None:
        match arguments:
            case [at, offset] if _is_number(offset):
                clocks = dict(self.setup.clocks)
                clocks[at] = self._parse_ns(offset, f"the clock of {at}")
                self.setup = self.setup._replace(clocks=tuple(clocks.items()))
                return
        raise self.make_error("write 'clock MEMBER SECONDS' with the offset of its clock")

    def _read_subscribe(self, arguments: Sequence[str]) -> None:
        match arguments:
            case [at, *topics] if topics:
                known = dict(self.setup.subscriptions)
                known[at] = (*known.get(at, ()), *topics)
                self.setup = self.setup._replace(subscriptions=tuple(known.items()))
                return
        raise self.make_error("write 'subscribe MEMBER TOPIC ...'")

    def _read_send(self, arguments: Sequence[str]) -> Action:
        clauses: dict[str, list[str]] = {}
        clause: list[str] | None = None
        for word in arguments[2:]:
            if word in ("to", "about", "after") and word not in clauses:
                clause = clauses.setdefault(word, [])
            elif clause is not None:
                clause.append(word)
        if len(arguments) < 2 or not all(clauses.values()) or (arguments[2:] and not clauses):
            raise self.make_error(
                "write 'send MEMBER MESSAGE [to MEMBER ...] [about TOPIC ...] [after MESSAGE ...]'"
            )
        at, label = arguments[:2]
        after, to, about = (tuple(clauses.get(word, ())) for word in ("after", "to", "about"))
        return Send(at, label, after, to, about)

    def _read_arrive(self, arguments: Sequence[str]) -> Action:
        match arguments:
            case [at, label]:
                return Arrive(at, label)
            case [at, label, "again"]:
                return Arrive(at, label, again=True)
        raise self.make_error("write 'arrive MEMBER MESSAGE [again]'")

    def _read_tick(self, arguments: Sequence[str]) -> Action:
        match arguments:
            case [text] if (
                _is_number(text) and float(text) > 0 and self._parse_ns(text, "the time") > 0
            ):
                return Tick(float(text))
        raise self.make_error("write 'tick SECONDS', a number from 1 nanosecond")

    def _parse_ns(self, seconds: str, what: str) -> int:
        try:
            return down_ns(Decimal(seconds), what)
        except LocalError as error:
            raise self.make_error(str(error)) from error

    def _read_state(self, arguments: Sequence[str]) -> Action:
        match arguments:
            case [at, *fields]:
                return ShowState(at, tuple(fields))
        raise self.make_error("write 'state MEMBER [FIELD ...]'")


def _make_line_reader(
    form: str, action: Callable[..., Action]
) -> Callable[[_ScenarioParser, Sequence[str]], Action]:
    """Return the reader of a line with a fixed form; capitals stand for arguments."""
    words = form.split()[1:]

    def read(parser: _ScenarioParser, arguments: Sequence[str]) -> Action:
        fits = len(arguments) == len(words)
        pairs = list(zip(words, arguments, strict=False))
        if not fits or any(word.islower() and word != one for word, one in pairs):
            raise parser.make_error(f"write '{form}'")
        return action(*(one for word, one in pairs if word.isupper()))

    return read


_SETUP: dict[str, Callable[[_ScenarioParser, Sequence[str]], None]] = {
    "protocol": _ScenarioParser._read_protocol,
    "members": _ScenarioParser._read_members,
    "internal": _ScenarioParser._read_internal,
    "external": _ScenarioParser._read_external,
    "bounds": _ScenarioParser._read_bounds,
    "clock": _ScenarioParser._read_clock,
    "subscribe": _ScenarioParser._read_subscribe,
}
_ACTIONS: dict[str, Callable[[_ScenarioParser, Sequence[str]], Action]] = {
    "send": _ScenarioParser._read_send,
    "arrive": _ScenarioParser._read_arrive,
    "lose": _make_line_reader("lose MEMBER MESSAGE", Lose),
    "join": _make_line_reader("join NEW_MEMBER sponsor MEMBER", Join),
    "leave": _make_line_reader("leave MEMBER", Leave),
    "tick": _ScenarioParser._read_tick,
    "state": _ScenarioParser._read_state,
    "blocked": _make_line_reader("blocked MEMBER", ShowHeld),
}


def _update_bounds(
    bounds: Bounds[str], names: Sequence[str], values: dict[str, Decimal]
) -> Bounds[str]:
    seconds: dict[str, Any] = {f"{key}_s": value for key, value in values.items()}
    parsed: Bounds[str] = Bounds(**seconds)
    match names:
        case []:
            fields = {f"{key}_ns": getattr(parsed, f"{key}_ns") for key in values}
            return replace(bounds, **fields)
        case [at] if values.keys() == {"accuracy"}:
            clocks = {**bounds.clocks_ns, at: parsed.accuracy_ns}
            return replace(bounds, clocks_ns=clocks)
        case [source, target] if values.keys() == {"least", "most"}:
            channels = {**bounds.channels_ns, (source, target): (parsed.least_ns, parsed.most_ns)}
            return replace(bounds, channels_ns=channels)
    raise TypeError


def _format_bounds(bounds: Bounds[str]) -> list[str]:
    text = seconds_text
    delays = f"least={text(bounds.least_ns)} most={text(bounds.most_ns)}"
    lines = [f"bounds accuracy={text(bounds.accuracy_ns)} {delays}"]
    lines += [f"bounds {at} accuracy={text(error)}" for at, error in bounds.clocks_ns.items()]
    for (source, target), (least, most) in bounds.channels_ns.items():
        lines.append(f"bounds {source} {target} least={text(least)} most={text(most)}")
    return lines


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def format_scenario(
    setup: Setup, actions: Iterable[Action], *, title: str = "", source: str = ""
) -> str:
    """Return the text of a scenario file without expected output (see `update_output`)."""
    head = [f"{word} {value}" for word, value in (("title", title), ("source", source)) if value]
    options = "".join(f" {name}={value}" for name, value in setup.options)
    lines = [f"protocol {setup.protocol}{options}"]
    if setup.members:
        lines.append("members " + " ".join(setup.members))
    lines += [f"internal {sp}: {' '.join(peers)}" for sp, peers in setup.internal]
    if setup.external:
        lines.append("external " + " ".join(setup.external))
    lines += _format_bounds(setup.bounds) if setup.bounds is not None else []
    lines += [f"clock {name} {seconds_text(offset)}" for name, offset in setup.clocks if offset]
    lines += [f"subscribe {name} {' '.join(topics)}" for name, topics in setup.subscriptions]
    blocks = [head, lines, [format_action(action) for action in actions]]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def replace_output(text: str, outputs: dict[int, Sequence[str]]) -> str:
    """Return the scenario text with the output after each line (from 1) replaced."""
    lines: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip().startswith("="):
            lines.append(line)
            lines += [f"= {output}".rstrip() for output in outputs.get(number, ())]
    return "\n".join(lines) + "\n"
