"""`antecede explain SCENARIO`: the events in words, then the space-time diagram.

Exit code 0, also for a script that shows a published defect; 1 for unexpected output.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from antecede.cli.files.output import check_writable, draft_of, save_text
from antecede.cli.option_rules import needs, refuse_unused
from antecede.core.clocks import seconds_text, seconds_with_sign
from antecede.core.diagram_model import Diagram
from antecede.errors import FormatError, InputError, MissingExtraError, ScriptError
from antecede.formatting import counted
from antecede.lab.check import scenario
from antecede.lab.diagram import LIGHT, THEMES, draw_stacked, draw_text, stack_diagrams

MIN_WIDTH, MAX_WIDTH = 40, 100
SVG, PNG, PDF = "svg", "png", "pdf"

OPTION_RULES = (needs("force theme", SVG, PNG, PDF, why="no picture is written"),)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Fill in the options of `antecede explain`."""
    add = parser.add_argument
    add("script", metavar="SCENARIO", help="scenario file (scenarios/*.scenario), or a log")
    add(
        "--protocol",
        metavar="NAME,...",
        help="play it under these protocols instead of its own, one below the other on one axis",
    )
    add(
        "--judge",
        choices=tuple(scenario.JUDGES),
        help="mark what comes before a cause by this relation, whatever the protocol promises",
    )
    add(
        "--states",
        action="store_true",
        help="states of members (vectors, bits) after each step that changes them",
    )
    for format in (SVG, PNG, PDF):
        add(f"--{format}", metavar="OUT", help=f"also write it as {format.upper()}")
    add("--theme", choices=THEMES, help=f"colours of these pictures ({LIGHT}); print: without")
    add("--force", action="store_true", help="replace OUT where it exists")
    add("--no-color", action="store_true", help="plain text, also on a terminal")
    add("--width", type=int, metavar="N", help="columns to use, at least 40")
    log = parser.add_argument_group("vector-clock logs")
    log.add_argument("--regex", metavar="R", help="expression with groups host, clock and event")
    log.add_argument("--delimiter", metavar="R", help="expression between executions")
    log.add_argument("--in-run", metavar="RUN", help="which execution, where there are several")


def run(args: argparse.Namespace) -> int:
    """Print the explanation, write the pictures; returns the exit code."""
    if args.width is not None and args.width < MIN_WIDTH:
        raise InputError(f"--width {args.width}: {MIN_WIDTH} columns or more")
    outs = {format: Path(out) for format in (SVG, PNG, PDF) if (out := getattr(args, format))}
    for out in outs.values():
        check_writable(out, [args.script], args.force)
    if len({out.absolute() for out in outs.values()}) < len(outs):
        raise InputError("two pictures would have one name")
    if args.regex is not None or not _is_script(args.script):
        return _explain_log(args, outs)
    why = "a scenario is no log"
    refuse_unused(args, why, unused=["regex", "delimiter", "in_run"])
    return _explain_script(args, outs)


def _explain_script(args: argparse.Namespace, outs: Mapping[str, Path]) -> int:
    script = _loaded(args.script)
    names = [name.strip() for name in (args.protocol or "").split(",") if name.strip()]
    if args.protocol is not None and not names:
        raise InputError("--protocol names no protocol")
    relation = scenario.JUDGES[args.judge] if args.judge else None
    scripts = [scenario.under(script, name) for name in names] or [script]
    done = [scenario.run_script(one, states=args.states, relation=relation) for one in scripts]
    for one in done:
        for line in explain(one):
            print(textwrap.fill(line, _width(args), subsequent_indent=" " * 6) if line else "")
        print()
    titles = [""]
    if names:
        wrong = [counted(len(one.violations()), "violation") for one in done]
        titles = [
            one.script.setup.protocol + (f": {found}" if one.violations() else "")
            for one, found in zip(done, wrong, strict=True)
        ]
    diagrams = stack_diagrams(done, titles)
    _show(args, outs, diagrams)
    # What a script expects, it expects of its own judge.
    own = [scenario.run_script(one) for one in scripts] if relation else done
    differs = [
        line
        for one in own
        if any(m.command.expected for m in one.results)
        for line in scenario.check_output(one)
    ]
    for line in differs:
        print(f"antecede: {line}", file=sys.stderr)
    return 1 if differs else 0


def _explain_log(args: argparse.Namespace, outs: Mapping[str, Path]) -> int:
    why = "a log has happened: it is not played"
    refuse_unused(args, why, unused=["protocol", "judge", "states"])
    try:
        from antecede.tables.causality import from_clocks
        from antecede.tables.trace import ReadOptions, read
    except ModuleNotFoundError as error:
        raise MissingExtraError("logs", "trace") from error
    options = ReadOptions(regex=args.regex, delimiter=args.delimiter)
    try:
        trace = read([args.script], "shiviz", options)
    except FormatError:
        if args.regex is None:
            _loaded(args.script)  # says what it is not, and who reads it
        raise
    title = Path(args.script).name
    _show(args, outs, [from_clocks(trace, args.in_run, title)])
    if aside := len(trace.quarantine):
        print(f"\n{counted(aside, 'bad line')} left out: antecede audit says why")
    return 0


def _show(args: argparse.Namespace, outs: Mapping[str, Path], diagrams: Sequence[Diagram]) -> None:
    color = not args.no_color and sys.stdout.isatty() and "NO_COLOR" not in os.environ
    for k, diagram in enumerate(diagrams):
        head = f"{diagram.title}\n\n" if len(diagrams) > 1 else ""
        print(("\n" if k else "") + head + draw_text(diagram, width=_width(args), color=color))
    if not outs:
        return
    svg = draw_stacked(diagrams, args.theme or LIGHT)
    print()
    for format, out in outs.items():
        if format == SVG:
            save_text(out, svg)
        else:
            from antecede.lab.report import as_picture

            with draft_of(out) as draft:
                draft.write_bytes(as_picture(svg, format))
        print(f"The diagram as {format.upper()}: {out}")


def _width(args: argparse.Namespace) -> int:
    width: int = args.width or min(MAX_WIDTH, shutil.get_terminal_size().columns)
    return max(MIN_WIDTH, width)


def _is_script(path: str) -> bool:
    """Tell whether a file is to be read as a script: by its name, else as it begins."""
    if Path(path).suffix == ".scenario" or not Path(path).is_file():
        return True
    try:
        scenario.load_script(path)
    except ScriptError:
        return False
    return True


def _loaded(path: str) -> scenario.Script:
    """Read the script; where the file is something else, say which command reads that."""
    try:
        return scenario.load_script(path)
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


def explain(done: scenario.ScriptRun) -> Iterator[str]:
    """Yield the script in words: a heading, a numbered line for each action, held messages.

    Below an action stand the states that it changed, if the run noted them.
    """
    script = done.script
    if script.title:
        yield script.title
    setup = script.setup
    options = "".join(f", {name}={value}" for name, value in setup.options)
    source = f" · {script.source}" if script.source else ""
    yield f"protocol {setup.protocol}{options}{source}"
    yield from _promises(setup)
    yield ""
    words = scenario.Words(done.relation)
    states: dict[int, list[str]] = {}
    for result, name, fields in scenario.find_changed_states(done.results):
        text = ", ".join(f"{field} = {value}" for field, value in fields.items())
        states.setdefault(result.number, []).append(f"      {name} keeps {text}")
    for result in done.results:
        if result.number:
            yield f"{result.number:4}  {words.of(result)}"
            yield from states.get(result.number, ())
    for held in done.held:
        yield f"      At the end {held.at} still holds {held.label}: {words.waits(held)}."
    if line := scenario.channel_line(done):
        yield f"      {line}"


def _promises(setup: scenario.Setup) -> Iterator[str]:
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
    if off := [
        f"{at}'s is {seconds_with_sign(offset)} s off" for at, offset in setup.clocks if offset
    ]:
        yield f"clocks: {scenario.list_names(tuple(off))}"
    if setup.subscriptions:
        read = (f"{at} reads {scenario.list_names(topics)}" for at, topics in setup.subscriptions)
        yield f"topics: {'; '.join(read)}"
