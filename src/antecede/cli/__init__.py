"""Command line: a table of commands, whose modules are loaded when they run.

A module has `add_arguments(parser)` and `run(args) -> int`, and may have `OPTION_RULES`
(`antecede.cli.option_rules`). Exit codes: 0 done, 1 the answer is "no" (a violation, a strict
audit), 2 wrong input or call, 130 interrupted, 143 terminated.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import os
import sys
from collections.abc import Sequence
from typing import NamedTuple, NoReturn

from antecede import __version__
from antecede.cli.option_rules import add_to_help, check_rules, given_of
from antecede.errors import AntecedeError, MissingExtraError
from antecede.formatting import harmless
from antecede.interrupts import Terminated


class Command(NamedTuple):
    """One subcommand: its module in `antecede.cli`, the extra it needs, one line of help."""

    module: str
    extra: str | None
    help: str


_COMMANDS = (
    ("check", "protocols.check", None, "judge a protocol: built-in, or your own FILE.py:CLASS"),
    (
        "snapshot",
        "protocols.check_snapshots",
        None,
        "judge a snapshot algorithm over every interleaving",
    ),
    (
        "protocols",
        "protocols.list_protocols",
        None,
        "list the protocols: order, promise, costs, variants",
    ),
    ("explain", "protocols.draw", None, "draw a scenario: who waits for what, and why"),
    ("play", "protocols.play", None, "move a scene by hand in the browser, protocols side by side"),
    ("audit", "traces.audit", "trace", "what a trace says: orders, inversions, defects"),
    ("ask", "traces.ask", "trace", "what led to an event, what it could have influenced, and why"),
    ("cut", "traces.cut", "trace", "is a global state consistent, what is under way, recovery"),
    ("view", "traces.view", "trace", "look: a trace as a page to explore, findings beside it"),
    (
        "meter",
        "traces.false_causality",
        "trace",
        "pairs that a rule orders without need, or misses",
    ),
    ("order", "traces.order", "trace", "write a trace in causal order"),
    ("deliver", "traces.replay", "trace", "what a protocol would have delivered of logged bytes"),
    (
        "convert",
        "traces.convert",
        "trace",
        "write a trace as a log for ShiViz, Parquet, CSV, JSON lines",
    ),
    ("keys", "live.certs", "live", "make certificates for the members of a live group"),
    ("chat", "live.chat", "live", "talk in a room: threads, in the terminal and in a browser"),
    ("status", "live.peer_status", None, "ask a live peer how it is doing"),
    (
        "record",
        "experiments.record",
        "trace",
        "let processes talk over UDP and write what happened",
    ),
    (
        "simulate",
        "experiments.simulate.command",
        "trace",
        "run a scenario file: overhead, storage, waits, violations",
    ),
    (
        "compare",
        "experiments.compare.command",
        "trace",
        "the same messages under several protocols, as a table",
    ),
    (
        "study",
        "experiments.reproduce.command",
        "all",
        "run a source's evaluation on Spark: figures, plots, page",
    ),
    (
        "sweep",
        "experiments.sweep",
        "all",
        "a scenario file over a grid of its keys: table, plots, page",
    ),
    ("compile", "compile", "trace", "compile the kernels now, once, instead of at first use"),
    ("demo", "experiments.demo", "all", "the tour: record, order, compare, explain"),
)
COMMANDS = {
    name: Command(f"antecede.cli.{module}", extra, words)
    for name, module, extra, words in _COMMANDS
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a question mark for what the encoding lacks
    arguments = list(sys.argv[1:] if argv is None else argv)
    name = next((word for word in arguments if not word.startswith("-")), None)
    try:
        helps = not {"-h", "--help"}.isdisjoint(arguments)
        parser = _parser(name if name in COMMANDS else None, helps=helps)
        parsed = parser.parse_args(arguments)
        if parsed.command is None:
            parser.print_help()
            return 0
        parsed.given = given_of(parser, arguments)
        module = importlib.import_module(COMMANDS[parsed.command].module)
        check_rules(parsed, parser, getattr(module, "OPTION_RULES", ()))
        code = int(module.run(parsed))
        if sys.stdout is not None:
            sys.stdout.flush()  # so that a full disk or a closed pipe is met here
        return code
    except AntecedeError as error:
        print(f"antecede: {harmless(str(error))}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader (head, less) has gone: not an error, but Python would complain at exit.
        _give_up_output()
        return 0
    except OSError as error:
        print(f"antecede: {error}", file=sys.stderr)
        try:
            sys.stdout.flush()  # what was said before
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
    """Let what is left to print go nowhere: Python would try once more at exit, and complain."""
    with contextlib.suppress(OSError, AttributeError):  # nothing behind it, or nothing there
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Parser(argparse.ArgumentParser):
    """Parser with errors of one line, whose arguments and options may be intermixed."""

    _is_inside = False

    def parse_known_args(self, args=None, namespace=None):  # type: ignore[no-untyped-def]
        """Parse options first and arguments then, but where a subcommand is one of these."""
        if self._is_inside or self._subparsers is not None:
            return super().parse_known_args(args, namespace)
        self._is_inside = True  # the parser of intermixed arguments calls this method
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._is_inside = False

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; {self.prog} --help lists the options\n")


def _parser(loaded: str | None, *, helps: bool = False) -> argparse.ArgumentParser:
    """Return the parser, with the options of the command that will run.

    `helps`: help is asked for, which a command gives without its extra, too.
    """
    parser = _Parser(prog="antecede", description="Messages in the order their causes demand.")
    parser.add_argument("--version", action="version", version=f"antecede {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, command in COMMANDS.items():
        sub = commands.add_parser(name, help=command.help, description=command.help)
        if name == loaded:
            try:
                module = _load(name, command)
                module.add_arguments(sub)
                add_to_help(sub, getattr(module, "OPTION_RULES", ()))
            except MissingExtraError as error:
                if not helps:
                    raise
                sub.epilog = f"{error}. Its other options are listed here once that is installed."
    return parser


def _load(name: str, command: Command):  # type: ignore[no-untyped-def]
    try:
        return importlib.import_module(command.module)
    except ModuleNotFoundError as error:
        if command.extra is None or (error.name or "").startswith("antecede"):
            raise
        what = f"antecede {name} ({error.name} is missing)"
        raise MissingExtraError(what, command.extra) from error
