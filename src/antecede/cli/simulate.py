"""`antecede simulate FILE.toml`: one scenario of the simulator, run and told."""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from antecede.cli.columns import Column, columns, explained, short, width_of_terminal
from antecede.cli.output import check_free, check_not_read, draft_of
from antecede.errors import InputError, MissingExtraError
from antecede.progress import Progress
from antecede.simulate.delay_text import delay_words
from antecede.simulate.memory import check_memory, messages_of
from antecede.simulate.readable import run_readable
from antecede.simulate.result import Result
from antecede.simulate.run import AUTO, COMPILED, ENGINES, READABLE, simulate
from antecede.simulate.scenario import Scenario
from antecede.simulate.scenario_file import read_scenario, scenario_mapping
from antecede.simulate.topology import Hierarchy, Mesh, Topology

TEMPLATES = ("mesh", "hierarchy", "pubsub")
ROLES = ("peer", "internal", "external", "super", "idr", "ds")
BY_ROLE = (
    ("overhead_bytes", Column(("overhead", "counted", "B"))),
    ("overhead_bytes_sd", Column(("", "sd", "B"))),
    ("encoded_bytes", Column(("", "encoded", "B"))),
    ("entropy_bytes", Column(("", "entropy", "B"))),
    ("storage_bytes", Column(("stored", "mean", "B"))),
    ("storage_bytes_max", Column(("", "most", "B"))),
)
SMALL = 200_000
"""Deliveries that the readable engine makes within seconds; it tells encoded bytes and violations
too, and loads no compiled kernels."""
METER = ("causal", "ordered", "unnecessary", "missed")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `antecede simulate`."""
    parser.add_argument("file", nargs="?", metavar="FILE", help="a TOML file; docs/simulate.md")
    parser.add_argument(
        "--template", choices=TEMPLATES, help="print a file to start from, and do nothing else"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the first run (default 0)")
    parser.add_argument("--seeds", type=int, default=1, metavar="N", help="runs (default 1)")
    parser.add_argument("--engine", choices=ENGINES, default=AUTO)
    parser.add_argument("--json", action="store_true", help="every figure of every run, as JSON")
    parser.add_argument("--trace", metavar="OUT", help="write the run as a trace (Parquet)")
    parser.add_argument("--save-plot", metavar="OUT", help="storage over time as .svg or .png")
    parser.add_argument("--force", action="store_true", help="replace OUT where it exists")


def run(args: argparse.Namespace) -> int:
    """Run the scenario with every seed; returns 0. Raises InputError for what can not be."""
    if args.template is not None:
        print(template(args.template), end="")
        return 0
    if args.file is None:
        raise InputError("name a scenario file, or print one with --template mesh")
    _check(args)
    scenario = read_scenario(args.file)
    engine = _engine(args, scenario)
    check_memory(scenario, engine)
    results, seconds = _results(scenario, args, engine)
    if args.save_plot is not None:
        _plot(results[0], Path(args.save_plot))
    if args.json:
        print(json.dumps(_plain(results), indent=2, ensure_ascii=False))
    else:
        print("\n".join(report(results, seconds, width_of_terminal())))
    sys.stdout.flush()
    return 0


def template(kind: str) -> str:
    """Return the text of a scenario file to start from."""
    folder = resources.files("antecede.simulate") / "templates"
    return (folder / f"{kind}.toml").read_text(encoding="utf-8")


def _check(args: argparse.Namespace) -> None:
    if args.seeds < 1:
        raise InputError(f"--seeds {args.seeds}: the least is 1")
    if args.seed < 0:
        raise InputError(f"--seed {args.seed}: seeds are 0 or more")
    if args.trace is not None and (args.seeds > 1 or args.engine == COMPILED):
        raise InputError(
            "--trace: one run by the readable engine is written; no --seeds, no engine"
        )
    for out in (args.trace, args.save_plot):
        if out is not None:
            check_free(Path(out), args.force)
            check_not_read(Path(out), [args.file])
    if args.save_plot is not None and Path(args.save_plot).suffix not in (".svg", ".png"):
        raise InputError("--save-plot: name a file that ends in .svg or .png", path=args.save_plot)


def _engine(args: argparse.Namespace, scenario: Scenario) -> str:
    small = messages_of(scenario) * (len(scenario.topology.senders()) - 1) * args.seeds <= SMALL
    if args.trace is not None or (args.engine == AUTO and small):
        return READABLE
    return str(args.engine)


def _results(
    scenario: Scenario, args: argparse.Namespace, engine: str
) -> tuple[list[Result], float]:
    begin = time.monotonic()
    results: list[Result] = []
    with Progress("simulating") as progress:
        for seed in range(args.seed, args.seed + args.seeds):
            progress(len(results) / args.seeds)
            if args.trace is None:
                results.append(simulate(scenario, seed, engine))
            else:
                results.append(_traced(scenario, seed, Path(args.trace)))
    return results, time.monotonic() - begin


def _traced(scenario: Scenario, seed: int, out: Path) -> Result:
    from antecede.simulate.as_trace import write_trace

    result, recording = run_readable(scenario, seed, True)
    with draft_of(out) as draft:
        write_trace(recording, draft)
    return result


def _plot(result: Result, out: Path) -> None:
    try:
        from antecede.report.plots import draw_plot
    except ModuleNotFoundError as error:
        raise MissingExtraError(f"--save-plot ({error.name} is missing)", "report") from error
    from antecede.studies.findings import Plot, Series

    times = result.series.get("time_s", ())
    lines = [
        Series(name.removesuffix(".storage_bytes"), times, values)
        for name, values in result.series.items()
        if name.endswith(".storage_bytes")
    ]
    if not lines:
        raise InputError("--save-plot: the run has no samples of storage", path=str(out))
    what = Plot("storage", _title(result.scenario), "time (s)", "stored by a member (bytes)", lines)
    drawn = draw_plot(what)
    with draft_of(out) as draft:
        draft.write_bytes(drawn.png if out.suffix == ".png" else drawn.svg.encode())


# -- for people ------------------------------------------------------------------------------


def report(results: Sequence[Result], seconds: float, width: int) -> Iterator[str]:
    """Yield the figures in groups; means over the runs, with the standard deviation."""
    figures = _Figures([result.figures for result in results])
    yield from _head(results, seconds)
    yield ""
    pairs = [*_messages(figures), *_waits(figures)]
    yield from explained(pairs, width)
    rows = [_role(figures, role) for role in ROLES if figures.any_of(f"{role}.")]
    shown = [k for k in range(len(BY_ROLE)) if any(row[k + 1] for row in rows)]
    if rows:
        yield ""
        heads = [Column(("", "", "role"), words=True), *(BY_ROLE[k][1] for k in shown)]
        yield from columns(heads, [[row[0], *(row[k + 1] for k in shown)] for row in rows], width)
    rest = [*_judged(figures), *_meter(figures), *figures.left()]
    if rest:
        yield ""
        yield from explained(rest, width)


class _Figures:
    """Means of figures; it knows which have been asked for, so that none is kept back."""

    def __init__(self, runs: Sequence[Mapping[str, float]]) -> None:
        self.runs = runs
        self.names = list(dict.fromkeys(name for run in runs for name in run))
        self.told: set[str] = set()

    def any_of(self, start: str) -> bool:
        return any(name.startswith(start) for name in self.names)

    def mean(self, name: str) -> float | None:
        self.told.add(name)
        found = [run[name] for run in self.runs if name in run]
        return statistics.fmean(found) if found else None

    def words(self, name: str, digits: int = 1) -> str:
        """Return mean and, over several runs, standard deviation; empty where there is none."""
        mean = self.mean(name)
        if mean is None:
            return ""
        found = [run[name] for run in self.runs if name in run]
        if mean == int(mean) and len(found) == 1:
            digits = 0
        spread = f" ± {short(statistics.stdev(found), digits)}" if len(found) > 1 else ""
        return short(mean, digits) + spread

    def count(self, name: str) -> str:
        """Return the mean of what is counted, without its deviation."""
        return short(self.mean(name), 0)

    def total(self, name: str) -> str:
        """Return the sum over all runs."""
        self.told.add(name)
        return short(sum(run.get(name, 0) for run in self.runs), 0)

    def left(self) -> Iterator[tuple[str, str]]:
        for name in self.names:
            if name not in self.told:
                yield name, self.words(name, 2)


def _head(results: Sequence[Result], seconds: float) -> Iterator[str]:
    first = results[0]
    scenario = first.scenario
    yield _title(scenario)
    channels = "FIFO channels" if scenario.links.fifo else "channels reorder"
    lost = f", {scenario.links.loss:.2%} lost" if scenario.links.loss else ""
    places = ", from a matrix and" if scenario.links.matrix else ""
    yield f"delay{places} {delay_words(scenario.links.delay)}, {channels}{lost}"
    warm = f", figures from {scenario.warm_s:g} s on" if scenario.warm_s else ""
    seeds = f"seed {first.seed}"
    if len(results) > 1:
        seeds = f"seeds {first.seed} to {results[-1].seed}, mean ± standard deviation"
    yield f"{scenario.duration_s:g} s of sending{warm}; {seeds}"
    rate = sum(result.figures.get("deliveries", 0) for result in results) / max(seconds, 1e-6)
    yield f"{first.engine} engine, {seconds:.1f} s, {short(rate, 0)} deliveries a second"


def _title(scenario: Scenario) -> str:
    protocol = scenario.protocol + (f"/{scenario.variant}" if scenario.variant else "")
    name = f"{scenario.name}: " if scenario.name else ""
    return f"{name}{protocol}, {_who(scenario.topology)}"


def _who(topology: Topology) -> str:
    if isinstance(topology, Mesh):
        return f"{topology.peers:,} peers in a mesh"
    if isinstance(topology, Hierarchy):
        inside, groups = f"{sum(topology.groups):,}", len(topology.groups)
        return (
            f"{inside} internal peers in {groups:,} group{'s' * (groups > 1)}, "
            f"{topology.external:,} external"
        )
    return (
        f"{topology.size:,} peers in {len(topology.subgroups)} subgroups, {topology.topics} topics"
    )


_COUNTS = {
    "arrivals": "arrivals",
    "deliveries": "deliveries",
    "released": "of these marked as lacking a cause",
    "lost": "copies lost",
    "overruns": "of these for want of room",
    "duplicates": "copies doubled",
    "discarded": "given up by the protocol",
    "refused": "refused as impossible",
    "unsent": "answers never sent",
    "undelivered": "deliveries owed that never happened",
    "held_at_end": "held for ever",
}


def _messages(figures: _Figures) -> Iterator[tuple[str, str]]:
    found = [f"{figures.count('sent')} messages"] if figures.any_of("sent") else []
    for name, words in _COUNTS.items():
        if name in figures.names and (figures.mean(name) or name in ("arrivals", "deliveries")):
            found.append(f"{figures.count(name)} {words}")
        figures.told.add(name)
    yield "sent", ", ".join(found)
    if figures.any_of("notes"):
        text = f"{figures.count('notes')} copies of the protocol's own messages"
        size = figures.count("note_bytes")
        yield "notes", f"{text}, {size} B of control information" if size else text


def _waits(figures: _Figures) -> Iterator[tuple[str, str]]:
    if figures.any_of("wait_ms."):
        mean, p50, p99, most = (
            figures.words(f"wait_ms.{n}") for n in ("mean", "p50", "p99", "max")
        )
        yield "wait", f"mean {mean} ms, p50 {p50} ms, p99 {p99} ms, at most {most} ms"
    if figures.any_of("held."):
        mean, most = figures.words("held.mean", 2), figures.words("held.max")
        yield "held", f"mean {mean} messages a member, at most {most}"
    if figures.any_of("tt."):
        mean, most = figures.words("tt.mean"), figures.words("tt.max")
        yield "TT", f"mean {mean} entries of a super peer's translation table, at most {most}"


def _role(figures: _Figures, role: str) -> list[str]:
    return [role, *(figures.words(f"{role}.{name}") for name, _ in BY_ROLE)]


def _judged(figures: _Figures) -> Iterator[tuple[str, str]]:
    if figures.any_of("violations"):
        early, of = figures.total("violations"), figures.total("violations.checked")
        yield "violations", f"{early} of {of} deliveries came before a cause"
    if figures.any_of("lemma3."):
        missing, extra = figures.total("lemma3.missing"), figures.total("lemma3.extra")
        yield "Lemma 3", f"{missing} bits missing, {extra} too many (000)"


def _meter(figures: _Figures) -> Iterator[tuple[str, str]]:
    rules = dict.fromkeys(
        name.split(".", 1)[1].rpartition(".")[0]
        for name in figures.names
        if name.startswith("meter.")
    )
    for rule in rules:
        counts = (f"{figures.words(f'meter.{rule}.{kind}')} {kind}" for kind in METER)
        yield f"pairs, {rule}", ", ".join(counts)


def _plain(results: Sequence[Result]) -> dict[str, Any]:
    return {
        "scenario": scenario_mapping(results[0].scenario),
        "engine": results[0].engine,
        "runs": [
            {
                "seed": result.seed,
                "figures": {k: _finite(v) for k, v in result.figures.items()},
                "series": {k: list(v) for k, v in result.series.items()},
            }
            for result in results
        ],
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
