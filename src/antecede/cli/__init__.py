"""Command line: a table of commands, whose modules are imported when they run.

A module has `add_arguments(parser)` and `run(args) -> int`. It may have `OPTION_RULES`
(`antecede.cli.option_rules`), and `EPILOG`, the text below its help. Exit codes: 0 done, 1 the
answer is "no" (such as a violation), 2 wrong input or call, 130 interrupted, 143 terminated.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import os
import re
import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple, NoReturn

from antecede import __version__
from antecede.cli.option_rules import add_to_help, check_rules, find_given
from antecede.errors import AntecedeError, MissingExtraError
from antecede.formatting import harmless
from antecede.interrupts import Terminated


class CommandEntry(NamedTuple):
    """Module of a subcommand, the extra that it needs, and a line of help."""

    module: str
    extra: str | None
    help: str


GROUPS: Mapping[str, tuple[tuple[str, str, str | None, str], ...]] = {
    "Traces": (
        ("audit", "traces.audit", "trace", "report causality violations and bad data in a trace"),
        ("order", "traces.order", "trace", "sort a trace causally"),
        ("ask", "traces.ask", "trace", "list the causal past, future or paths of an event"),
        ("cut", "traces.cut", "trace", "check a cut; find channel states and recovery lines"),
        ("view", "traces.view", "trace", "explore a trace in the browser"),
        (
            "false-causality",
            "traces.false_causality",
            "trace",
            "count false and missed causality of ordering rules",
        ),
        (
            "convert",
            "traces.convert",
            "trace",
            "convert a trace to ShiViz, Parquet, CSV or JSON lines",
        ),
    ),
    "Protocols": (
        (
            "protocols",
            "protocols.list_protocols",
            None,
            "list protocols with order, guarantees and costs",
        ),
        (
            "check",
            "protocols.check",
            None,
            "model-check and fuzz a protocol, find a counterexample",
        ),
        ("draw", "protocols.draw", None, "draw a scenario as a space-time diagram"),
        ("play", "protocols.play", None, "edit a scenario and run it under several protocols"),
        ("replay", "traces.replay", "trace", "replay logged messages through a protocol"),
    ),
    "Experiments": (
        (
            "simulate",
            "experiments.simulate.command",
            "trace",
            "run a simulation config and print its metrics",
        ),
        (
            "compare",
            "experiments.compare.command",
            "trace",
            "compare protocols in simulation, as a table",
        ),
        ("sweep", "experiments.sweep", "all", "run a simulation over a parameter grid"),
        (
            "reproduce",
            "experiments.reproduce.command",
            "all",
            "reproduce the evaluation of a paper as a page",
        ),
    ),
    "Live groups": (
        ("chat", "live.chat", "live", "chat in a causally ordered room"),
        ("certs", "live.certs", "live", "create test certificates for peers"),
        ("peer-status", "live.peer_status", None, "show the status of a running peer"),
        ("record", "experiments.record", "trace", "run a UDP test group and record a trace"),
    ),
    "Other": (("demo", "experiments.demo", "all", "run the end-to-end demo, write its page"),),
    "": (("compile", "compile", "trace", "compile the kernels now instead of at first use"),),
}
"""Commands by purpose; those of the last group are not listed."""
COMMANDS = {
    name: CommandEntry(f"antecede.cli.{module}", extra, words)
    for group in GROUPS.values()
    for name, module, extra, words in group
}
_HIDDEN = {name for name, *_ in GROUPS[""]}
_NEW_COMMANDS: Mapping[str, str] = {
    "deliver": "replay",
    "study": "reproduce",
    "meter": "false-causality",
    "keys": "certs",
    "status": "peer-status",
    "explain": "draw",
    "snapshot": "check --snapshots",
}
"""Earlier names of commands, for errors."""
_OLD_OPTIONS = """
--thorough=--size_large --save=--output-scenario --svg=--output-svg
--call-limit=--call-timeout --png=--output-png --pdf=--output-pdf --page=--output-html
--csv=--output-csv --save-plot=--output-plot --out=--output --most-states=--max-states
--judge=--relation --delimiter=--run-delimiter --separator=--list-separator --in-run=--run-id
--missing=--list-missing --by=--causality --most=--limit,--max-events,--max-delay
--around=--focus --marked=--marker --against=--truth --each=--per-observer --least=--min-delay
--to-everybody=--broadcast --keys=--certs --put-out=--evict-after --web-for-others=--web-public
--missing-parent=--on-missing-parent --meter=--false-causality --answers=--reply-fraction
--fresh=--no-cache --redraw=--report-only --only=--filter
"""
_NEW_OPTIONS: Mapping[str, str] = dict(pair.split("=") for pair in _OLD_OPTIONS.split())
"""Earlier names of options, for errors; a low line stands for a blank."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return the exit code."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # "?" for characters that it lacks
    arguments = list(sys.argv[1:] if argv is None else argv)
    name = next((word for word in arguments if not word.startswith("-")), None)
    try:
        helps = not {"-h", "--help"}.isdisjoint(arguments)
        parser = _build_parser(name if name in COMMANDS else None, helps=helps)
        parsed = parser.parse_args(arguments)
        if parsed.command is None:
            parser.print_help()
            return 0
        parsed.given = find_given(parser, arguments)
        module = importlib.import_module(COMMANDS[parsed.command].module)
        check_rules(parsed, parser, getattr(module, "OPTION_RULES", ()))
        code = int(module.run(parsed))
        if sys.stdout is not None:
            sys.stdout.flush()  # a full disk or a closed pipe raises here
        return code
    except AntecedeError as error:
        print(f"antecede: {harmless(str(error))}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader (head, less) has closed the pipe. Python would report that at exit.
        _give_up_output()
        return 0
    except OSError as error:
        print(f"antecede: {error}", file=sys.stderr)
        try:
            sys.stdout.flush()
        except (OSError, AttributeError):
            _give_up_output()
        return 2
    except Terminated:
        print("antecede: terminated", file=sys.stderr)
        return 143
    except KeyboardInterrupt:
        print("antecede: interrupted", file=sys.stderr)
        return 130


def _give_up_output() -> None:
    """Discard the rest of the output, which Python would write at exit."""
    with contextlib.suppress(OSError, AttributeError):  # stdout is closed or None
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Parser(argparse.ArgumentParser):
    """Parser with errors of one line; arguments and options may be intermixed."""

    _is_inside = False
    command: str | None = None
    """Name of the command, for errors of the parser above it."""

    def parse_known_args(self, args=None, namespace=None):  # type: ignore[no-untyped-def]
        """Parse intermixed arguments, except in the parser of the subcommands."""
        if self._is_inside or self._subparsers is not None:
            return super().parse_known_args(args, namespace)
        self._is_inside = True  # the parser of intermixed arguments calls this method
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._is_inside = False

    def error(self, message: str) -> NoReturn:
        is_about_command = message.startswith("argument COMMAND")
        for old in re.findall(r"[\w-]+", message.partition("(choose from")[0]):
            new = _NEW_COMMANDS.get(old, "") if is_about_command else self._find_new_name(old)
            if new:
                message += f"; {old} is now {new}"
        prog = f"{self.prog} {self.command}" if self.command else self.prog
        listed = "options" if prog != "antecede" else "commands"
        self.exit(2, f"{prog}: {message}; {prog} --help lists the {listed}\n")

    def _find_new_name(self, old: str) -> str:
        """Return the new name of an option if the command has it, otherwise ""."""
        parser: argparse.ArgumentParser = self
        if self._subparsers is not None and self.command is not None:
            parser = self._subparsers._group_actions[0].choices[self.command]  # type: ignore[index]
        names = [one.replace("_", " ") for one in _NEW_OPTIONS.get(old, "").split(",")]
        known = parser._option_string_actions
        return " or ".join(one for one in names if one.partition(" ")[0] in known)


def _build_parser(loaded: str | None, *, helps: bool = False) -> argparse.ArgumentParser:
    """Return the parser, with the options of the command that will run.

    `helps`: the call asks for help, which needs no extra.
    """
    parser = _Parser(
        prog="antecede",
        usage="antecede [-h] [--version] COMMAND ...",
        description="Causal order of messages and events.\n"
        "antecede COMMAND --help lists the options of a command.",
        epilog=_list_commands(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.command = loaded
    parser.add_argument("--version", action="version", version=f"antecede {__version__}")
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", help=argparse.SUPPRESS, prog="antecede"
    )
    for name, command in COMMANDS.items():
        if name in _HIDDEN and name != loaded:  # errors list the other commands
            continue
        description = f"{command.help[0].upper()}{command.help[1:]}."
        sub = commands.add_parser(name, description=description)
        if name == loaded:
            try:
                module = _load(name, command)
                module.add_arguments(sub)
                add_to_help(sub, getattr(module, "OPTION_RULES", ()))
                sub.epilog = getattr(module, "EPILOG", None)
                if sub.epilog:
                    sub.formatter_class = argparse.RawDescriptionHelpFormatter
            except MissingExtraError as error:
                if not helps:
                    raise
                sub.epilog = f"{error}. This help lists the options once that is installed."
    return parser


def _list_commands() -> str:
    lines = list[str]()
    for group, commands in GROUPS.items():
        if group:
            lines += ["", f"{group}:", *(f"  {name:<16} {words}" for name, _, _, words in commands)]
    return "\n".join(lines).lstrip()


def _load(name: str, command: CommandEntry):  # type: ignore[no-untyped-def]
    try:
        return importlib.import_module(command.module)
    except ModuleNotFoundError as error:
        if command.extra is None or (error.name or "").startswith("antecede"):
            raise
        what = f"antecede {name} ({error.name} is missing)"
        raise MissingExtraError(what, command.extra) from error
