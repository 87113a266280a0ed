"""`antecede simulate FILE.toml`: one scenario of the simulator, run and told."""

from __future__ import annotations

import argparse
import json
import math
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any

from antecede.cli.experiments.simulate.report import report, title
from antecede.cli.experiments.simulate.snapshots import plain_state
from antecede.cli.files.output import check_apart, check_writable, draft_of
from antecede.cli.files.pages import look
from antecede.cli.option_rules import check_seeds, needs, refuse_unused
from antecede.cli.text_table import width_of_terminal
from antecede.errors import InputError, MissingExtraError
from antecede.interrupts import interruptible
from antecede.lab import simulate as simulator
from antecede.lab.simulate.config import Scenario, files_read, read_scenario, scenario_mapping
from antecede.lab.simulate.outputs import FULL, Result, snapshot_name, wait_counts
from antecede.progress import Progress
from antecede.tables.trace.user_tables import format_of

TEMPLATES = ("mesh", "hierarchy", "pubsub")
SMALL = 200_000
"""Deliveries that the reference engine makes within seconds; it tells encoded bytes and violations
too, and loads no compiled kernels."""

OPTION_RULES = (needs("force", "trace", "save_plot", why="nothing is written"),)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `antecede simulate`."""
    add = parser.add_argument
    add("file", nargs="?", metavar="FILE", help="a TOML file; docs/simulate.md")
    add("--template", choices=TEMPLATES, help="print a file to start from, and do nothing else")
    add("--seed", type=int, default=0, help="of the first run (default 0)")
    add("--seeds", type=int, default=1, metavar="N", help="runs (default 1)")
    add("--engine", choices=simulator.ENGINES, default=simulator.AUTO)
    add("--json", action="store_true", help="every figure of every run, as JSON")
    add(
        "--meter",
        action="store_true",
        help=(
            "pairs that each rule of Tsuneizumi et al. and Nakayama 2017 orders, orders "
            "without need, and misses"
        ),
    )
    add("--trace", metavar="OUT", help="write the run as a trace: .parquet, .csv, .jsonl")
    add("--save-plot", metavar="OUT", help="storage over time as .svg or .png")
    add("--force", action="store_true", help="replace OUT where it exists")


def run(args: argparse.Namespace) -> int:
    """Run the scenario with every seed; returns 0. Raises InputError for what can not be."""
    if args.template is not None:
        refuse_unused(args, "--template prints a file and does nothing else", but=["template"])
        print(template(args.template), end="")
        return 0
    if args.file is None:
        raise InputError("name a scenario file, or print one with --template mesh")
    _check(args)
    scenario = read_scenario(args.file)
    for out in (args.trace, args.save_plot):
        if out is not None:
            check_writable(Path(out), files_read(args.file, scenario), args.force)
    with _said_of(args.file):
        engine = _engine(args, scenario)
        simulator.check_memory(scenario, engine)
        results, seconds, compiled = _timed(scenario, args, engine)
    if args.save_plot is not None:
        _plot(results[0], Path(args.save_plot))
    if args.json:
        print(json.dumps(_plain(results), indent=2, ensure_ascii=False))
    else:
        print("\n".join(report(results, seconds, width_of_terminal(), compiled)))
        if args.trace is not None:
            print(f"\nThe trace: {args.trace}. {look(args.trace)}")
            if any(one.cut for one in results[0].snapshots):
                number = next(one.number for one in results[0].snapshots if one.cut)
                marked = shlex.quote(snapshot_name(number))
                print(f"A recorded cut: antecede cut {shlex.quote(args.trace)} --marked {marked}")
    sys.stdout.flush()
    return 0


@contextmanager
def _said_of(path: str) -> Iterator[None]:
    """Name the scenario file in what is found wrong with it only when it is to run."""
    try:
        yield
    except InputError as error:
        if error.path is not None:
            raise
        raise InputError(error.message, path=path) from error


def template(kind: str) -> str:
    """Return the text of a scenario file to start from."""
    folder = resources.files("antecede.lab.simulate") / "templates"
    return (folder / f"{kind}.toml").read_text(encoding="utf-8")


def _check(args: argparse.Namespace) -> None:
    check_seeds(args)
    if args.trace is not None and (args.seeds > 1 or args.engine == simulator.COMPILED):
        raise InputError(
            "--trace: one run by the reference engine is written; no --seeds, no engine"
        )
    check_apart(args.trace, args.save_plot)
    for out in (args.trace, args.save_plot):
        if out is not None:
            check_writable(Path(out), [args.file], args.force)
    if args.save_plot is not None and args.seeds > 1:
        raise InputError("--save-plot draws one run: leave out --seeds, and choose it by --seed")
    if args.trace is not None:
        format_of(args.trace)
    if args.save_plot is not None and Path(args.save_plot).suffix not in (".svg", ".png"):
        raise InputError("--save-plot: name a file that ends in .svg or .png", path=args.save_plot)


def _engine(args: argparse.Namespace, scenario: Scenario) -> str:
    """Return the engine that runs it; what "auto" would leave to the readable one goes there."""
    if args.trace is not None:
        return simulator.READABLE
    receivers = len(scenario.topology.senders()) - 1
    small = simulator.estimate_messages(scenario) * receivers * args.seeds <= SMALL
    if args.engine == simulator.AUTO and (
        small or not simulator.select_compiled_engine(scenario).name
    ):
        return simulator.READABLE
    return str(args.engine)


def _timed(
    scenario: Scenario, args: argparse.Namespace, engine: str
) -> tuple[list[Result], float, str]:
    if engine == simulator.READABLE and not args.meter:  # loads no kernels
        begin = time.monotonic()
        return _results(scenario, args, engine), time.monotonic() - begin, ""
    from antecede.tables.kernels import measure_compile_time

    with measure_compile_time() as spent:
        results = _results(scenario, args, engine)
    return results, spent.working_s, spent.words()


def _results(scenario: Scenario, args: argparse.Namespace, engine: str) -> list[Result]:
    results: list[Result] = []
    with Progress("simulating") as progress:
        for seed in range(args.seed, args.seed + args.seeds):
            done = len(results)

            def follow(part: float, done: int = done) -> None:
                progress((done + part) / args.seeds)

            follow(0)
            if engine == simulator.READABLE:
                reached = simulator.Reached(follow)
                with simulator.within_memory(scenario, reached=reached):
                    results.append(_recorded(scenario, seed, args.trace, reached))
            else:
                result = interruptible(partial(simulator.simulate, scenario, seed, engine))
                results.append(
                    result._replace(
                        caveats={**result.caveats, "causal.needless_holds": UNNECESSARY}
                    )
                )
            if args.meter:
                results[-1] = _metered(results[-1])
    return results


UNNECESSARY = "only what the reference engine records tells it; give --engine reference"


def _metered(result: Result) -> Result:
    from antecede.lab.simulate.outputs import meter_figures

    pairs = meter_figures(result.scenario, result.seed)
    caveats = dict(result.caveats)
    if result.figures.get("control_messages"):
        caveats["false_causality"] = (
            "pairs are of each message's one copy to each receiver; what the protocol sends "
            "besides, again or by a detour is not among them"
        )
    return result._replace(figures={**result.figures, **pairs}, caveats=caveats)


def _recorded(
    scenario: Scenario, seed: int, trace: str | None, progress: Callable[[float], None]
) -> Result:
    """Run by the reference engine; unnecessary waits are told too, and the trace written."""
    result, recording = simulator.run_readable(scenario, seed, True, progress)
    seen = wait_counts(recording)
    if trace is not None:
        from antecede.lab.simulate.outputs import write_trace

        with draft_of(Path(trace)) as draft:
            write_trace(recording, draft, format=format_of(trace))
    if seen is None:
        why = f"looked for in runs of up to {FULL:,} messages"
        return result._replace(caveats={**result.caveats, "causal.needless_holds": why})
    return result._replace(figures={**result.figures, **seen.figures()})


def _plot(result: Result, out: Path) -> None:
    try:
        from antecede.lab.report import draw_plot
    except ModuleNotFoundError as error:
        raise MissingExtraError(f"--save-plot ({error.name} is missing)", "report") from error
    from antecede.lab.report import Plot, Series

    times = result.series.get("time_s", ())
    lines = [
        Series(name.removesuffix(".storage_bytes"), times, values)
        for name, values in result.series.items()
        if name.endswith(".storage_bytes")
    ]
    if not lines:
        raise InputError("--save-plot: the run has no samples of storage", path=str(out))
    what = Plot("storage", title(result.scenario), "time (s)", "stored by a member (bytes)", lines)
    drawn = draw_plot(what)
    with draft_of(out) as draft:
        draft.write_bytes(drawn.png if out.suffix == ".png" else drawn.svg.encode())


def _plain(results: Sequence[Result]) -> dict[str, Any]:
    planned = results[0].scenario.snapshots is not None
    return {
        "scenario": scenario_mapping(results[0].scenario),
        "engine": results[0].engine,
        "runs": [
            {
                "seed": result.seed,
                "metrics": {k: v if math.isfinite(v) else None for k, v in result.figures.items()},
                "series": {k: list(v) for k, v in result.series.items()},
                "caveats": dict(result.caveats),
                **({"snapshots": list(map(plain_state, result.snapshots))} if planned else {}),
            }
            for result in results
        ],
    }
