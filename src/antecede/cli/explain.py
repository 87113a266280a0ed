"""`antecede explain SCENARIO`: what happened in words, then the space-time diagram.

Exit code 0, also for a script that shows a published defect: it explains, it does not judge.
1 when the file expects other output than it gets.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

from antecede.check.script.actions import Send, Tick
from antecede.check.script.channels import channel_line
from antecede.check.script.execution import CommandResult, Occurrence, ScriptRun
from antecede.check.script.parse import Script, Setup, load_script
from antecede.check.script.run import check_output, run_script
from antecede.cli.files.output import check_writable, save_text
from antecede.cli.unused import refuse_unused
from antecede.clocks.nanoseconds import seconds_text, signed_text
from antecede.diagram.steps import from_run
from antecede.diagram.svg import draw_svg
from antecede.diagram.text import draw_text
from antecede.errors import InputError, ScriptError

MIN_WIDTH, MAX_WIDTH = 40, 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Fill in the options of `antecede explain`."""
    parser.add_argument("script", metavar="SCENARIO", help="scenario file (scenarios/*.scenario)")
    parser.add_argument("--svg", metavar="OUT", help="also write the diagram as SVG")
    parser.add_argument("--force", action="store_true", help="replace OUT where it exists")
    parser.add_argument("--no-color", action="store_true", help="plain text, also on a terminal")
    parser.add_argument("--width", type=int, metavar="N", help="columns to use, at least 40")


def run(args: argparse.Namespace) -> int:
    """Print the explanation, write the SVG; returns the exit code."""
    if args.width is not None and args.width < MIN_WIDTH:
        raise InputError(f"--width {args.width}: {MIN_WIDTH} columns or more")
    svg = Path(args.svg) if args.svg else None
    if svg is not None:
        check_writable(svg, [args.script], args.force)
    else:
        refuse_unused(args, "without --svg nothing is written", unused=["force"])
    done = run_script(_loaded(args.script))
    diagram = from_run(done)
    width = args.width or min(MAX_WIDTH, shutil.get_terminal_size().columns)
    color = not args.no_color and sys.stdout.isatty() and "NO_COLOR" not in os.environ
    width = max(MIN_WIDTH, width)
    for line in explain(done):
        print(textwrap.fill(line, width, subsequent_indent=" " * 6) if line else "")
    print()
    print(draw_text(diagram, width=width, color=color))
    if svg is not None:
        write_svg(svg, draw_svg(diagram))
        print(f"\nThe diagram as SVG: {svg}")
    differences = check_output(done) if any(m.command.expected for m in done.results) else ()
    for difference in differences:
        print(f"antecede: {difference}", file=sys.stderr)
    return 1 if differences else 0


def _loaded(path: str) -> Script:
    """Read the script; where the file is something else, say which command reads that."""
    try:
        return load_script(path)
    except ScriptError as error:
        named = Path(path).suffix == ".scenario" or not Path(path).is_file()
        if named or not ("unknown command" in error.message or "UTF-8" in error.message):
            raise
        raise ScriptError(
            "is no script (a text of commands: protocol, members, send, arrive). Logs, traces "
            "and tables of messages are read by antecede audit FILE (is the order causal?), "
            "antecede order FILE and antecede convert FILE (--regex for a log of your own)",
            path=path,
        ) from error


def write_svg(path: Path, text: str) -> None:
    """Write a diagram whole or not at all; raises InputError for what the system says."""
    save_text(path, text)


def explain(done: ScriptRun) -> Iterator[str]:
    """Yield the script in words: a heading, one numbered line an action, and what is left."""
    script = done.script
    if script.title:
        yield script.title
    setup = script.setup
    options = "".join(f", {name}={value}" for name, value in setup.options)
    source = f" · {script.source}" if script.source else ""
    yield f"protocol {setup.protocol}{options}{source}"
    yield from _promises(setup)
    yield ""
    words = _Words()
    for result in done.results:
        if result.number:
            yield f"{result.number:4}  {words.of(result)}"
    for held in done.held:
        yield f"      At the end {held.at} still holds {held.label}: {words.waits(held)}."
    if line := channel_line(done):
        yield f"      {line}"


def _promises(setup: Setup) -> Iterator[str]:
    """Yield what the scene says of clocks, delays and topics."""
    bounds = setup.bounds
    if bounds is not None:
        delays = f"delays {seconds_text(bounds.least_ns)} to {seconds_text(bounds.most_ns)} s"
        delays += "".join(
            f", {source} to {target} {seconds_text(least)} to {seconds_text(most)} s"
            for (source, target), (least, most) in bounds.channels_ns.items()
        )
        accuracy = f"clocks right within {seconds_text(bounds.accuracy_ns)} s"
        accuracy += "".join(
            f", {at}'s within {seconds_text(own)} s" for at, own in bounds.clocks_ns.items()
        )
        yield f"promised: {delays}; {accuracy}"
    if off := [f"{at}'s is {signed_text(offset)} s off" for at, offset in setup.clocks if offset]:
        yield f"clocks: {_list(tuple(off))}"
    if setup.subscriptions:
        read = (f"{at} reads {_list(topics)}" for at, topics in setup.subscriptions)
        yield f"topics: {'; '.join(read)}"


class _Words:
    """Says what happened; remembers who sent a message and when it came to be held."""

    def __init__(self) -> None:
        self.sender: dict[str, str] = {}
        self.held_since: dict[tuple[str, str], int] = {}
        self.topics: tuple[str, ...] = ()

    def of(self, result: CommandResult) -> str:
        action = result.command.action
        self.topics = action.topics if isinstance(action, Send) else ()
        sentences = [self.sentence(one, result.number) for one in result.occurrences]
        if not result.occurrences:
            sentences = [_capital(line) for line in result.output] or ["Nothing happens"]
        if isinstance(result.command.action, Tick):
            passed = f"{result.command.action.seconds:g} s pass"
            sentences = [passed, *sentences] if result.occurrences else [passed]
        return ". ".join(sentences) + "."

    def sentence(self, one: Occurrence, number: int) -> str:
        key = (one.at, one.label)
        match one.kind:
            case "send":
                self.sender[one.label] = one.at
                answer = f" in answer to {_list(one.answers)}" if one.answers else ""
                about = f" about {_list(self.topics)}" if self.topics else ""
                return f"{one.at} sends {one.label}{about}{answer} to {_list(one.others)}"
            case "forward":
                if self.sender.get(one.label) == one.at:
                    return f"{one.at} sends {one.label} again, to {_list(one.others)}"
                return f"{one.at} forwards {one.label} to {_list(one.others)}"
            case "acknowledge":
                return f"{one.label} is on its way from {one.at} to {_list(one.others)}"
            case "arrive":
                return f"{one.label} arrives at {one.at}"
            case "hold":
                self.held_since[key] = number
                return f"{one.at} holds it: {self.waits(one)}"
            case "discard":
                return f"{one.at} discards {one.label}: {_list(one.others)}"
            case "lose":
                return f"{one.label} to {one.at} is lost on the way"
            case "join":
                return f"{one.at} joins and begins from what {one.others[0]} has delivered"
            case "leave":
                return f"{one.at} leaves"
        return self._delivery(one, key)

    def _delivery(self, one: Occurrence, key: tuple[str, str]) -> str:
        since = self.held_since.pop(key, None)
        held = f", held since step {since}" if since is not None else ""
        if one.astray:
            return f"{one.at} delivers {one.label}{held}, WHICH IS FOR OTHERS"
        if one.early_for:
            return (
                f"{one.at} delivers {one.label}{held} BEFORE {self._causes(one.early_for)}: "
                "the causal order is violated"
            )
        if one.unlike:
            other, first = one.unlike
            return (
                f"{one.at} delivers {one.label}{held} AFTER {first}, {other} BEFORE IT: "
                "the total order is violated"
            )
        if one.others:
            return f"{one.at} releases {one.label}{held} without {_list(one.others)}"
        return f"{one.at} delivers {one.label}{held}"

    def waits(self, held: Occurrence) -> str:
        """Say what a message waits for, and from whom."""
        causes = self._causes(held.others) if held.others else "causes that it can not name"
        return f"it waits for {causes}"

    def _causes(self, labels: tuple[str, ...]) -> str:
        return _list(
            tuple(
                f"{label} from {self.sender[label]}" if label in self.sender else label
                for label in labels
            )
        )


def _list(names: tuple[str, ...]) -> str:
    if not names:
        return "nobody"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _capital(line: str) -> str:
    return line[:1].upper() + line[1:]
