"""`antecede simulate CONFIG`: runs of a simulation config, and their metrics."""

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
from antecede.cli.files.pages import suggest_view
from antecede.cli.option_rules import check_seeds, needs, refuse_unused
from antecede.cli.text_table import width_of_terminal
from antecede.errors import InputError, MissingExtraError
from antecede.interrupts import interruptible
from antecede.lab import simulate as simulator
from antecede.lab.simulate.config import SimulationConfig, config_mapping, files_read, read_config
from antecede.lab.simulate.outputs import FULL, Result, snapshot_name, wait_counts
from antecede.progress import Progress
from antecede.tables.trace.user_tables import format_of

TEMPLATES = ("mesh", "hierarchy", "pubsub")
SMALL = 200_000
"""Limit of deliveries for the reference engine with --engine auto.

It needs seconds, counts wire bytes and violations too, and loads no compiled kernels.
"""

OPTION_RULES = (needs("force", "trace", "output_plot", why="nothing is written"),)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `antecede simulate`."""
    add = parser.add_argument
    add(
        "file",
        nargs="?",
        metavar="CONFIG",
        help="simulation config (.toml), as in docs/reference/simulation.md",
    )
    add("--template", choices=TEMPLATES, help="print a config to start from, and do not simulate")
    add("--seed", type=int, default=0, metavar="N", help="seed of the first run (default: 0)")
    add("--seeds", type=int, default=1, metavar="N", help="number of runs (default: 1)")
    add(
        "--engine",
        choices=simulator.ENGINES,
        default=simulator.AUTO,
        help=f"simulator; reference counts more metrics (default: {simulator.AUTO}, by size)",
    )
    add("--json", action="store_true", help="print all metrics of all runs as JSON")
    add(
        "--false-causality",
        action="store_true",
        help="count the pairs that the rules of Tsuneizumi et al. and Nakayama 2017 order, order "
        "falsely and miss",
    )
    add("--trace", metavar="FILE", help="file for the trace of the run: .parquet, .csv, .jsonl")
    add("--output-plot", metavar="FILE", help="plot of storage over time to write: .svg, .png")
    add("--force", action="store_true", help="overwrite existing output files")


def run(args: argparse.Namespace) -> int:
    """Run the config with all seeds and print metrics; return 0. Raise InputError."""
    if args.template is not None:
        refuse_unused(args, "--template only prints a config", but=["template"])
        print(template(args.template), end="")
        return 0
    if args.file is None:
        raise InputError("no CONFIG: name a file, or print one with --template mesh")
    _check(args)
    config = read_config(args.file)
    for out in (args.trace, args.output_plot):
        if out is not None:
            check_writable(Path(out), files_read(args.file, config), args.force)
    with _add_path(args.file):
        engine = _choose_engine(args, config)
        simulator.check_memory(config, engine)
        results, seconds, compiled = _run_timed(config, args, engine)
    if args.output_plot is not None:
        _plot(results[0], Path(args.output_plot))
    if args.json:
        print(json.dumps(_to_values(results), indent=2, ensure_ascii=False))
    else:
        print("\n".join(report(results, seconds, width_of_terminal(), compiled)))
        if args.trace is not None:
            print(f"\nTrace: {args.trace}. {suggest_view(args.trace)}")
            if any(one.cut for one in results[0].snapshots):
                number = next(one.number for one in results[0].snapshots if one.cut)
                marked = shlex.quote(snapshot_name(number))
                print(f"Recorded cut: antecede cut {shlex.quote(args.trace)} --marker {marked}")
    sys.stdout.flush()
    return 0


@contextmanager
def _add_path(path: str) -> Iterator[None]:
    """Add the path of the config to errors without a path."""
    try:
        yield
    except InputError as error:
        if error.path is not None:
            raise
        raise InputError(error.message, path=path) from error


def template(kind: str) -> str:
    """Return the text of a config to start from."""
    folder = resources.files("antecede.lab.simulate") / "templates"
    return (folder / f"{kind}.toml").read_text(encoding="utf-8")


def _check(args: argparse.Namespace) -> None:
    check_seeds(args)
    if args.trace is not None and (args.seeds > 1 or args.engine == simulator.COMPILED):
        raise InputError(
            "--trace writes one run of the reference engine: omit --seeds and --engine compiled"
        )
    check_apart(args.trace, args.output_plot)
    for out in (args.trace, args.output_plot):
        if out is not None:
            check_writable(Path(out), [args.file], args.force)
    if args.output_plot is not None and args.seeds > 1:
        raise InputError("--output-plot draws one run: omit --seeds, and choose the run by --seed")
    if args.trace is not None:
        format_of(args.trace)
    if args.output_plot is not None and Path(args.output_plot).suffix not in (".svg", ".png"):
        raise InputError(
            "--output-plot: expected a file name that ends in .svg or .png", path=args.output_plot
        )


def _choose_engine(args: argparse.Namespace, config: SimulationConfig) -> str:
    """Return the engine; "auto" is the reference engine for small or uncompiled configs."""
    if args.trace is not None:
        return simulator.READABLE
    receivers = len(config.topology.senders()) - 1
    small = simulator.estimate_messages(config) * receivers * args.seeds <= SMALL
    if args.engine == simulator.AUTO and (
        small or not simulator.select_compiled_engine(config).name
    ):
        return simulator.READABLE
    return str(args.engine)


def _run_timed(
    config: SimulationConfig, args: argparse.Namespace, engine: str
) -> tuple[list[Result], float, str]:
    if engine == simulator.READABLE and not args.false_causality:  # loads no kernels
        begin = time.monotonic()
        return _run_all(config, args, engine), time.monotonic() - begin, ""
    from antecede.tables.kernels import measure_compile_time

    with measure_compile_time() as spent:
        results = _run_all(config, args, engine)
    return results, spent.working_s, spent.words()


def _run_all(config: SimulationConfig, args: argparse.Namespace, engine: str) -> list[Result]:
    results: list[Result] = []
    with Progress("simulating") as progress:
        for seed in range(args.seed, args.seed + args.seeds):
            done = len(results)

            def follow(part: float, done: int = done) -> None:
                progress((done + part) / args.seeds)

            follow(0)
            if engine == simulator.READABLE:
                reached = simulator.Reached(follow)
                with simulator.within_memory(config, reached=reached):
                    results.append(_run_recorded(config, seed, args.trace, reached))
            else:
                result = interruptible(partial(simulator.simulate, config, seed, engine))
                results.append(
                    result._replace(
                        caveats={**result.caveats, "causal.needless_holds": UNNECESSARY}
                    )
                )
            if args.false_causality:
                results[-1] = _add_pairs(results[-1])
    return results


UNNECESSARY = "counted only by the reference engine; give --engine reference"


def _add_pairs(result: Result) -> Result:
    from antecede.lab.simulate.outputs import meter_figures

    pairs = meter_figures(result.config, result.seed)
    caveats = dict(result.caveats)
    if result.figures.get("control_messages"):
        caveats["false_causality"] = (
            "pairs of each message's first copy to each receiver, without control messages, "
            "retransmissions and relayed copies"
        )
    return result._replace(figures={**result.figures, **pairs}, caveats=caveats)


def _run_recorded(
    config: SimulationConfig, seed: int, trace: str | None, progress: Callable[[float], None]
) -> Result:
    """Run the reference engine, count needless holds, and write the trace."""
    result, recording = simulator.run_readable(config, seed, True, progress)
    seen = wait_counts(recording)
    if trace is not None:
        from antecede.lab.simulate.outputs import write_trace

        with draft_of(Path(trace)) as draft:
            write_trace(recording, draft, format=format_of(trace))
    if seen is None:
        why = f"counted in runs of up to {FULL:,} messages"
        return result._replace(caveats={**result.caveats, "causal.needless_holds": why})
    return result._replace(figures={**result.figures, **seen.figures()})


def _plot(result: Result, out: Path) -> None:
    try:
        from antecede.lab.report import draw_plot
    except ModuleNotFoundError as error:
        raise MissingExtraError(f"--output-plot ({error.name} is missing)", "report") from error
    from antecede.lab.report import Plot, Series

    times = result.series.get("time_s", ())
    lines = [
        Series(name.removesuffix(".storage_bytes"), times, values)
        for name, values in result.series.items()
        if name.endswith(".storage_bytes")
    ]
    if not lines:
        raise InputError("--output-plot: the run has no samples of storage", path=str(out))
    what = Plot("storage", title(result.config), "time (s)", "stored by a member (bytes)", lines)
    drawn = draw_plot(what)
    with draft_of(out) as draft:
        draft.write_bytes(drawn.png if out.suffix == ".png" else drawn.svg.encode())


def _to_values(results: Sequence[Result]) -> dict[str, Any]:
    planned = results[0].config.snapshots is not None
    return {
        "config": config_mapping(results[0].config),
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
