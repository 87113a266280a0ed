"""Simulation configurations as TOML files and as plain values.

A configuration defines a run except for its seed. Keys: docs/reference/simulation.md. Scenarios of
the checker (`antecede.lab.check.scenario`) are another format.

`config_mapping` and `config_from` are exact inverses, also through JSON for Spark's
workers. Errors contain path and dotted key:

    run.toml: links.loss: 1.5; expected a probability below 1
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from antecede.errors import ConfigError
from antecede.lab.check import is_file_target
from antecede.lab.simulate.config import keys, tables
from antecede.lab.simulate.config.compatibility import check_fit
from antecede.lab.simulate.config.model import (
    Clocks,
    Links,
    SimulationConfig,
    SnapshotPlan,
    Workload,
)
from antecede.lab.simulate.config.options_text import options_from_values, options_to_values
from antecede.lab.simulate.config.unused_keys import (
    find_unused_keys,
    find_unused_workload_keys,
    remove_keys,
)
from antecede.lab.simulate.topology import TOPOLOGIES, Topology, kind_of

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_AT_LINE = re.compile(r"(.*) \(at line (\d+), column (\d+)\)", re.DOTALL)


def read_config(path: str | Path) -> SimulationConfig:
    """Read a TOML file, without unused keys. Raises ConfigError with path, and line or key."""
    values = read_values(path)
    config = config_from(values, str(path))
    check_keys_used(values, config, str(path))
    return config


def read_values(path: str | Path) -> dict[str, Any]:
    """Return the tables of a TOML file without changes. Raises ConfigError with its path."""
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ConfigError(f"cannot read the file: {error.strerror}", path=str(path)) from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"not UTF-8 text (byte {error.start})", path=str(path)) from error
    except tomllib.TOMLDecodeError as error:
        found = _AT_LINE.fullmatch(str(error))
        what, line = (found[1], int(found[2])) if found else (str(error), None)
        what = f"{what} (column {found[3]})" if found else what
        raise ConfigError(f"invalid TOML: {what}", path=str(path), line=line) from error
    except RecursionError as error:
        raise ConfigError("invalid configuration: nested too deeply", path=str(path)) from error


def files_read(path: str | Path, config: SimulationConfig) -> list[str]:
    """Return the files that a run of the configuration file at `path` reads, that file first."""
    found = [str(path)]
    matrix = read_values(path).get("links", {}).get("matrix")
    if isinstance(matrix, Mapping) and isinstance(matrix.get("path"), str):
        found.append(str(Path(path).parent / matrix["path"]))
    if config.workload.path is not None:
        found.append(config.workload.path)
    if is_file_target(config.protocol):
        found.append(config.protocol.rpartition(":")[0])
    return found


def check_keys_used(
    values: Mapping[str, Any], config: SimulationConfig, path: str | None = None
) -> None:
    """Raise ConfigError for a key of the file without effect on the run."""
    for key, why in find_unused_keys(values, config).items():
        raise ConfigError(f"{key}: {why}", path=path)


def write_config(config: SimulationConfig, path: str | Path) -> None:
    """Write a TOML file for `read_config`, without unused keys. Raises ConfigError."""
    values = config_mapping(config)
    values = remove_keys(values, find_unused_keys(values, config))
    try:
        Path(path).write_text(format_toml(values), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot write the file: {error.strerror}", path=str(path)) from error


def config_from(
    values: Mapping[str, Any], path: str | None = None, *, check_protocol: bool = True
) -> SimulationConfig:
    """Return the configuration of plain values (parsed TOML or JSON). `path` is for errors.

    Relative paths of latency files, traces and a protocol's FILE.py:CLASS are also tried in the
    folder of `path`. Raises ConfigError, with `check_protocol` also for a protocol that does not
    fit (`check_fit`).
    """
    try:
        config = _read_config(values, Path() if path is None else Path(path).parent)
        if check_protocol:
            check_fit(config)
    except ConfigError as error:
        if path is None or error.path == path:
            raise
        where = ":".join(str(part) for part in (error.path, error.line) if part is not None)
        what = f"{where}: {error.message}" if where else error.message
        raise ConfigError(what, path=path) from error
    return config


def config_mapping(config: SimulationConfig) -> dict[str, Any]:
    """Return a configuration as plain values. Raises ConfigError for other options."""
    given = {"name": config.name} if config.name else {}
    workload, usual = tables.to_plain(config.workload), tables.to_plain(Workload())
    for name in find_unused_workload_keys(config):
        if name in usual and workload.get(name) == usual[name]:
            del workload[name]
    return {
        **given,
        "topology": {"kind": kind_of(config.topology), **tables.to_plain(config.topology)},
        "protocol": {
            "name": config.protocol,
            **({"variant": config.variant} if config.variant else {}),
            **options_to_values(config.options, "protocol"),
        },
        "links": tables.to_plain(config.links),
        "workload": workload,
        "clocks": tables.to_plain(config.clocks),
        "run": {name: getattr(config, name) for name in keys.RUN},
        **({} if config.snapshots is None else {"snapshots": tables.to_plain(config.snapshots)}),
    }


def _read_topology(values: Any, key: str) -> Topology:
    given = dict(tables.read_table(values, key))
    if "kind" not in given:
        raise tables.make_error(f"{key}.kind", f"missing; choose from {', '.join(TOPOLOGIES)}")
    kind = keys.make_choice_reader(TOPOLOGIES)(given.pop("kind"), f"{key}.kind")
    make: Callable[..., Topology] = TOPOLOGIES[kind]
    return tables.build_dataclass(make, given, key, keys.topology_of(kind))


def _resolve_protocol_name(name: str, folder: Path) -> str:
    if is_file_target(name) and (folder / name.rpartition(":")[0]).is_file():
        return str(folder / name)
    return name


def _read_config(mapping: Mapping[str, Any], folder: Path) -> SimulationConfig:
    given = tables.read_table(mapping, "")
    tables.check_keys(given, "", keys.TABLES)
    if "topology" not in given:
        raise tables.make_error(
            "topology", f"missing; choose its kind from {', '.join(TOPOLOGIES)}"
        )
    protocol = tables.read_table(given.get("protocol", {}), "protocol")
    tables.check_keys(protocol, "protocol", keys.PROTOCOL)
    run = tables.read_table(given.get("run", {}), "run")
    if "seed" in run or "seeds" in run:
        raise tables.make_error("run.seed", "a configuration has no seed; use the option --seed")
    tables.check_keys(run, "run", keys.RUN)
    parts: dict[str, Any] = {
        "topology": _read_topology(given["topology"], "topology"),
        "protocol": _resolve_protocol_name(
            tables.read_text(protocol.get("name", "idr"), "protocol.name"), folder
        ),
        "variant": tables.read_text(protocol.get("variant", ""), "protocol.variant"),
        "options": options_from_values(protocol, "protocol"),
        "links": tables.build_dataclass(
            Links, given.get("links", {}), "links", keys.links_of(folder)
        ),
        "workload": tables.build_dataclass(
            Workload, given.get("workload", {}), "workload", keys.make_workload_fields(folder)
        ),
        "clocks": tables.build_dataclass(Clocks, given.get("clocks", {}), "clocks", keys.CLOCKS),
        **{name: tables.read_number(value, f"run.{name}") for name, value in run.items()},
        "name": tables.read_text(given.get("name", ""), "name"),
    }
    if "snapshots" in given:
        read = tables.build_dataclass(SnapshotPlan, given["snapshots"], "snapshots", keys.SNAPSHOTS)
        parts["snapshots"] = read
    with tables.prefix_errors(
        "run",
        {
            **{name: f"run.{name}" for name in keys.RUN},
            "silent": "workload.silent",
            "total_hz": "workload.total_hz",
            "at_s": "snapshots.at_s",
        },
    ):
        return SimulationConfig(**parts)


def format_toml(values: Mapping[str, Any]) -> str:
    """Return the TOML text of plain values. Inner tables and lists are inline."""
    return "\n".join(_format_lines(values)).strip("\n") + "\n"


def _format_lines(values: Mapping[str, Any]) -> Iterator[str]:
    below = {key: value for key, value in values.items() if isinstance(value, Mapping)}
    yield from (
        f"{_format_key(k)} = {_format_value(v)}" for k, v in values.items() if k not in below
    )
    for name, inner in below.items():
        yield f"\n[{_format_key(name)}]"
        yield from (f"{_format_key(key)} = {_format_value(value)}" for key, value in inner.items())


def _format_key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _format_text(name)


def _format_text(value: str) -> str:
    # JSON escapes all characters that TOML requires, except DEL.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _format_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _format_text(value)
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Mapping):
        return (
            "{ "
            + ", ".join(f"{_format_key(k)} = {_format_value(v)}" for k, v in value.items())
            + " }"
        )
    inner = [_format_value(one) for one in value]
    if inner and isinstance(value[0], list):  # a matrix: one row per line
        return "[\n" + "".join(f"  {row},\n" for row in inner) + "]"
    return "[" + ", ".join(inner) + "]"
