"""Sweep: a configuration file over a grid of its keys, with several seeds per setting.

    sweep = read_sweep("run.toml", ["options.r=5..30", "members=10,30"], seeds=(1, 2, 3))
    done = conduct(sweep_study(sweep), engine, folder)

A sweep becomes a `Study`. A run's digest covers the configuration, the protocol's own file with its
imported neighbours, and the trace of a replay. Results become stale if one of them changes.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from antecede.errors import ConfigError, InputError
from antecede.lab.reproductions.framework.deviation import join_words
from antecede.lab.reproductions.framework.runs import Run
from antecede.lab.reproductions.framework.study import Study, make_simulation_run, simulate_run
from antecede.lab.reproductions.sweeps.findings import build_findings, describe_source
from antecede.lab.simulate.config import SimulationConfig, config_with_settings, read_values

MAX_RUNS = 100_000
KIND = "sweep"
OVER = "over."  # Prefix of swept keys among the parameters of a run
_RANGE = re.compile(r"(-?\d+)\.\.(-?\d+)(?:\.\.([1-9]\d*))?")


class Sweep(NamedTuple):
    """A configuration file, a grid and seeds."""

    path: Path
    values: Mapping[str, Any]
    over: Mapping[str, tuple[Any, ...]]  # Key -> its values, in the order given
    seeds: tuple[int, ...]
    left_out: tuple[str, ...] = ()  # Texts on keys of the file without effect in some settings


def read_sweep(path: str | Path, over: Sequence[str], seeds: Sequence[int]) -> Sweep:
    """Return the sweep, with every setting checked. Raises InputError, ConfigError."""
    grid: dict[str, tuple[Any, ...]] = {}
    for text in over:
        key, values = parse_axis(text)
        if key in grid:
            raise InputError(f"--over {key}: given twice; write all values in one option")
        grid[key] = values
    if not grid:
        raise InputError("no grid; use --over KEY=VALUES, for example --over options.r=5..30")
    sweep = Sweep(Path(path), read_values(path), grid, tuple(seeds))
    number = len(sweep.seeds) * math.prod(map(len, grid.values()))
    if number > MAX_RUNS:
        raise InputError(f"too many runs: {number:,}; the limit is {MAX_RUNS:,}")
    return sweep._replace(left_out=tuple(_find_unused_keys(sweep)))


def _find_unused_keys(sweep: Sweep) -> Iterator[str]:
    """Yield keys without effect in some settings. Raises ConfigError for one without any
    effect.
    """
    found: dict[str, list[tuple[Mapping[str, Any], str]]] = {}
    count = 0
    for setting in iterate_settings(sweep):
        count += 1
        for key, why in _make_config(sweep, setting)[1].items():
            found.setdefault(key, []).append((setting, why))
    for key, idle in found.items():
        whys = "; ".join(dict.fromkeys(why for _, why in idle))
        if len(idle) == count:
            what = f"{key}: no effect in any setting of this sweep: {whys}"
            raise ConfigError(what, path=str(sweep.path))
        where = _describe_settings(sweep, [setting for setting, _ in idle])
        yield f"{key} of the file is not used with {where}: {whys}"


def _describe_settings(sweep: Sweep, settings: Sequence[Mapping[str, Any]]) -> str:
    total = math.prod(map(len, sweep.over.values()))
    here = {
        key: [value for value in values if any(_is_same(one[key], value) for one in settings)]
        for key, values in sweep.over.items()
    }
    if len(settings) == math.prod(map(len, here.values())):
        few = {key: found for key, found in here.items() if len(found) < len(sweep.over[key])}
        return _format_setting({key: " or ".join(map(str, found)) for key, found in few.items()})
    return f"{_format_setting(settings[0])} and {len(settings) - 1} more of {total} settings"


def _format_setting(setting: Mapping[str, Any]) -> str:
    return " ".join(f"{key}={value}" for key, value in setting.items())


def parse_axis(text: str) -> tuple[str, tuple[Any, ...]]:
    """Parse "options.r=5..30", "members=10,30" or "protocol=bss,idr". Raises InputError."""
    key, equals, given = (part.strip() for part in text.partition("="))
    if not (key and equals and given):
        raise InputError(
            f"--over {text!r}: expected KEY=VALUES, for example members=10,30 or options.r=5..30"
        )
    values: list[Any] = []
    for part in _split_values(given):
        found = _RANGE.fullmatch(part)
        if found is None:
            values.append(_parse_value(part))
            continue
        first, last, step = int(found[1]), int(found[2]), int(found[3] or 1)
        if last < first:
            raise InputError(f"--over {key}: empty range {part}; write the smaller number first")
        if (last - first) // step >= MAX_RUNS:
            raise InputError(f"--over {key}: {part} has more than {MAX_RUNS:,} values")
        values += range(first, last + 1, step)
    twice = [value for value in values if sum(_is_same(value, one) for one in values) > 1]
    if twice:
        raise InputError(f"--over {key}: duplicate value {twice[0]!r}")
    return key, tuple(values)


def _is_same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and bool(a == b)


def _split_values(text: str) -> list[str]:
    parts, depth, quoted = [""], 0, ""
    for sign in text:
        if quoted:
            quoted = "" if sign == quoted else quoted
        elif sign in "\"'":
            quoted = sign
        else:
            depth += (sign in "[{(") - (sign in "]})")
        if sign == "," and not depth and not quoted:
            parts.append("")
        else:
            parts[-1] += sign
    return [part.strip() for part in parts]


def _parse_value(text: str) -> Any:
    """Return a number, a boolean, None, a list, or the text itself."""
    import tomllib

    if text in ("none", "None"):
        return None
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        if not text or "\n" in text:
            raise InputError(f"--over: invalid value {text!r}") from None
        return text


def iterate_settings(sweep: Sweep) -> Iterator[dict[str, Any]]:
    """Yield every combination of values. The last key changes fastest."""
    for values in itertools.product(*sweep.over.values()):
        yield dict(zip(sweep.over, values, strict=True))


def _make_config(
    sweep: Sweep, setting: Mapping[str, Any]
) -> tuple[SimulationConfig, dict[str, str]]:
    try:
        return config_with_settings(sweep.values, setting, str(sweep.path))
    except ConfigError as error:
        words = _format_setting(setting)
        raise ConfigError(f"{error.message} (with {words})", path=error.path) from error


def sweep_study(sweep: Sweep) -> Study:
    """Return the sweep as a study. Raises InputError for a protocol file that fails to load."""
    return Study(
        "sweep",
        f"{sweep.path.name} over {join_words(list(sweep.over))}",
        describe_source(sweep.path.name),
        functools.partial(_list_runs, sweep),
        simulate_run,
        functools.partial(build_findings, sweep.over, unused_keys=sweep.left_out),
    )


def _list_runs(sweep: Sweep, quick: bool) -> list[Run]:
    del quick  # a sweep has no quick version
    found = []
    for setting in iterate_settings(sweep):
        config = _make_config(sweep, setting)[0]
        cost_s = 0.05 + _estimate_copies(config) * 2e-5
        words = "/".join(f"{key}={value}" for key, value in setting.items())
        for seed in sweep.seeds:
            run = make_simulation_run(f"{words}/seed {seed}", config, seed, cost_s, KIND)
            picked_by = {f"{OVER}{key}": value for key, value in setting.items()}
            found.append(run._replace(parameters={**run.parameters, **picked_by}))
    return found


def _estimate_copies(config: SimulationConfig) -> float:
    load, senders = config.workload, len(config.topology.senders())
    rate = {"periodic": 1 / load.interval.mean_s, "poisson": load.rate_hz}.get(load.kind, 1.0)
    if load.kind == "random":
        return float(load.messages or 0) * config.topology.size
    return (load.total_hz or rate * senders) * config.duration_s * config.topology.size
