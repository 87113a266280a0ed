"""`antecede draw SCENARIO`: events as text, then the space-time diagram."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from antecede.cli.files.output import (
    check_apart,
    check_ending,
    check_writable,
    draft_of,
    save_text,
)
from antecede.cli.option_rules import needs, refuse_unused
from antecede.core.clocks import seconds_text, seconds_with_sign
from antecede.core.diagram_model import Diagram
from antecede.errors import FormatError, InputError, MissingExtraError, ScenarioError
from antecede.formatting import pluralize
from antecede.lab.check.scenario import (
    JUDGES,
    Scenario,
    ScenarioRun,
    Setup,
    Words,
    channel_line,
    check_output,
    find_changed_states,
    list_names,
    load_scenario,
    run_scenario,
    under,
)
from antecede.lab.diagram import LIGHT, THEMES, draw_stacked, draw_text, stack_diagrams

MIN_WIDTH, MAX_WIDTH = 40, 100
SVG, PNG, PDF = "svg", "png", "pdf"

OPTION_RULES = (
    needs("force theme", "output_svg", "output_png", "output_pdf", why="no image is written"),
)
EPILOG = """\
The scenario may also be a vector-clock log.
Example: antecede draw scenarios/bss-overtaking.scenario
Exit code: 1 if the output differs from what the scenario expects, else 0.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `antecede draw`."""
    add = parser.add_argument
    add("scenario", metavar="SCENARIO", help="scenario file (.scenario), or a vector-clock log")
    add(
        "--protocol",
        metavar="NAME,...",
        help="protocols in place of the scenario's, as diagrams on one axis",
    )
    add(
        "--relation",
        choices=tuple(JUDGES),
        help="relation whose violations are marked (default: the protocol's promise)",
    )
    add("--states", action="store_true", help="print states of members after each change")
    for format in (SVG, PNG, PDF):
        add(f"--output-{format}", metavar="FILE", help=f"diagram as {format.upper()}")
    add("--theme", choices=THEMES, help=f"colours of these images (default: {LIGHT})")
    add("--force", action="store_true", help="overwrite existing output files")
    add("--no-color", action="store_true", help="print without colours")
    add(
        "--width",
        type=int,
        metavar="N",
        help=f"columns of the text, {MIN_WIDTH} or more (default: the terminal's)",
    )
    log = parser.add_argument_group("vector-clock logs")
    log.add_argument(
        "--regex", metavar="REGEX", help="pattern with the groups host, clock and event"
    )
    log.add_argument("--run-delimiter", metavar="REGEX", help="pattern between runs")
    log.add_argument("--run-id", metavar="RUN", help="run to draw, if there are several")


def run(args: argparse.Namespace) -> int:
    """Print the text and diagrams, write the images; return the exit code."""
    if args.width is not None and args.width < MIN_WIDTH:
        raise InputError(f"--width {args.width}: expected {MIN_WIDTH} or more")
    outs = {
        format: Path(out)
        for format in (SVG, PNG, PDF)
        if (out := getattr(args, f"output_{format}"))
    }
    for format, out in outs.items():
        check_writable(out, [args.scenario], args.force)
        check_ending(f"--output-{format}", str(out), f".{format}")
    check_apart(*outs.values())
    if args.regex is not None or not _is_scenario(args.scenario):
        return _draw_log(args, outs)
    why = f"{args.scenario} is a scenario, not a log"
    refuse_unused(args, why, unused=["regex", "run_delimiter", "run_id"])
    return _draw_scenario(args, outs)


def _draw_scenario(args: argparse.Namespace, outs: Mapping[str, Path]) -> int:
    scenario = _load_scenario(args.scenario)
    names = [name.strip() for name in (args.protocol or "").split(",") if name.strip()]
    if args.protocol is not None and not names:
        raise InputError("--protocol: expected NAME,...")
    relation = JUDGES[args.relation] if args.relation else None
    scenarios = [under(scenario, name) for name in names] or [scenario]
    done = [run_scenario(one, states=args.states, relation=relation) for one in scenarios]
    for one in done:
        for line in explain(one):
            print(textwrap.fill(line, _width(args), subsequent_indent=" " * 6) if line else "")
        print()
    titles = [""]
    if names:
        wrong = [pluralize(len(one.violations()), "violation") for one in done]
        titles = [
            one.scenario.setup.protocol + (f": {found}" if one.violations() else "")
            for one, found in zip(done, wrong, strict=True)
        ]
    diagrams = stack_diagrams(done, titles)
    _show(args, outs, diagrams)
    # The expected output of a scenario holds for its own relation.
    own = [run_scenario(one) for one in scenarios] if relation else done
    differs = [
        line
        for one in own
        if any(m.command.expected for m in one.results)
        for line in check_output(one)
    ]
    for line in differs:
        print(f"antecede: {line}", file=sys.stderr)
    return 1 if differs else 0


def _draw_log(args: argparse.Namespace, outs: Mapping[str, Path]) -> int:
    why = f"{args.scenario} is a log, not a scenario"
    refuse_unused(args, why, unused=["protocol", "relation", "states"])
    try:
        from antecede.tables.causality import from_clocks
        from antecede.tables.trace import ReadOptions, read
    except ModuleNotFoundError as error:
        raise MissingExtraError("logs", "trace") from error
    options = ReadOptions(regex=args.regex, delimiter=args.run_delimiter)
    try:
        trace = read([args.scenario], "shiviz", options)
    except FormatError:
        if args.regex is None:
            _load_scenario(args.scenario)  # raises the error of scenarios
        raise
    title = Path(args.scenario).name
    _show(args, outs, [from_clocks(trace, args.run_id, title)])
    if aside := len(trace.quarantine):
        print(f"\n{pluralize(aside, 'bad line')} excluded; antecede audit lists the reasons")
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
        print(f"Diagram as {format.upper()}: {out}")


def _width(args: argparse.Namespace) -> int:
    width: int = args.width or min(MAX_WIDTH, shutil.get_terminal_size().columns)
    return max(MIN_WIDTH, width)


def _is_scenario(path: str) -> bool:
    """Return whether a file is a scenario, by its ending or content."""
    if Path(path).suffix == ".scenario" or not Path(path).is_file():
        return True
    try:
        load_scenario(path)
    except ScenarioError:
        return False
    return True


def _load_scenario(path: str) -> Scenario:
    """Return the scenario. Raise ScenarioError, which names the commands for other files."""
    try:
        return load_scenario(path)
    except ScenarioError as error:
        named = Path(path).suffix == ".scenario" or not Path(path).is_file()
        if named or not ("unknown command" in error.message or "UTF-8" in error.message):
            raise
        raise ScenarioError(
            "is not a scenario (commands such as protocol, members, send); for logs, traces and "
            "tables use antecede audit, order or convert (--regex for your own log format)",
            path=path,
        ) from error


def explain(done: ScenarioRun) -> Iterator[str]:
    """Yield the scenario as text: heading, a numbered line per action, held messages.

    The lines after an action are the states that it changed, if the run recorded them.
    """
    scenario = done.scenario
    if scenario.title:
        yield scenario.title
    setup = scenario.setup
    options = "".join(f", {name}={value}" for name, value in setup.options)
    source = f" · {scenario.source}" if scenario.source else ""
    yield f"protocol {setup.protocol}{options}{source}"
    yield from _describe_bounds(setup)
    yield ""
    words = Words(done.relation)
    states: dict[int, list[str]] = {}
    for result, name, fields in find_changed_states(done.results):
        text = ", ".join(f"{field} = {value}" for field, value in fields.items())
        states.setdefault(result.number, []).append(f"      {name} keeps {text}")
    for result in done.results:
        if result.number:
            yield f"{result.number:4}  {words.of(result)}"
            yield from states.get(result.number, ())
    for held in done.held:
        yield f"      At the end {held.at} still holds {held.label}: {words.waits(held)}."
    if line := channel_line(done):
        yield f"      {line}"


def _describe_bounds(setup: Setup) -> Iterator[str]:
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
        yield f"clocks: {list_names(tuple(off))}"
    if setup.subscriptions:
        read = (f"{at} reads {list_names(topics)}" for at, topics in setup.subscriptions)
        yield f"topics: {'; '.join(read)}"
