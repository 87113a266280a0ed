"""Keys of a configuration file, with readers derived from type hints.

The page of the keys is docs/reference/simulation.md.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from antecede.errors import ConfigError
from antecede.lab.simulate.config import tables
from antecede.lab.simulate.config.latency_matrix import MATRIX_UNITS, ZEROS, Matrix, read_matrix
from antecede.lab.simulate.config.model import Clocks, Links, SnapshotPlan, Special, Workload
from antecede.lab.simulate.config.tables import Fields, Reader
from antecede.lab.simulate.delays import Delay, parse_delay
from antecede.lab.simulate.topology import TOPOLOGIES, Hierarchy, PubSub

_REPEATED = re.compile(r"(\d{1,7})\s*[x×]\s*(\d{1,9})")


def _read_delay(value: Any, key: str) -> Delay:
    """Read "50-250 ms", or a table of low_s, high_s and kind."""
    if isinstance(value, Mapping):
        return tables.build_dataclass(Delay, value, key, make_fields(Delay))
    if not isinstance(value, str):
        raise tables.make_type_error(value, key, 'a delay with its unit, such as "50-250 ms"')
    with tables.prefix_errors(key, {}):
        return parse_delay(value)


def _read_end(value: Any, key: str) -> str:
    """Read an end of special channels: a role, "group:N", an address, or "any"."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return tables.read_text(value, key)


def _read_sizes(value: Any, key: str) -> tuple[int, ...]:
    """Read sizes of groups: a list, or "1000 x 50" for equal sizes."""
    if isinstance(value, str):
        found = _REPEATED.fullmatch(value.strip())
        if found is None:
            raise tables.make_error(key, f'invalid sizes {value!r}; write [50, 50] or "1000 x 50"')
        return (int(found[2]),) * int(found[1])
    sizes: tuple[int, ...] = tables.make_list_reader(tables.read_integer)(value, key)
    return sizes


def _make_one_or_more_reader(read: Reader) -> Reader:

    def read_all(value: Any, key: str) -> Any:
        return (
            tables.make_list_reader(read)(value, key)
            if isinstance(value, list | tuple)
            else (read(value, key),)
        )

    return read_all


def _make_matrix_reader(folder: Path) -> Callable[[Any, str], Matrix]:

    def read(value: Any, key: str) -> Matrix:
        if isinstance(value, list | tuple):
            rows: Matrix = tables.make_list_reader(tables.make_list_reader(tables.read_number))(
                value, key
            )
            return rows
        if isinstance(value, str):
            value = {"path": value}
        given = tables.read_table(value, key)
        tables.check_keys(given, key, MATRIX)
        for name, meaning in MATRIX.items():
            if name not in given and meaning:
                raise tables.make_error(f"{key}.{name}", f"missing; {meaning}")
        path = folder / tables.read_text(given["path"], f"{key}.path")
        unit = make_choice_reader(MATRIX_UNITS)(given["unit"], f"{key}.unit")
        round_trip = tables.read_flag(given["round_trip"], f"{key}.round_trip")
        zeros = (
            make_choice_reader(ZEROS)(given["zeros"], f"{key}.zeros") if "zeros" in given else None
        )
        try:
            return read_matrix(path, unit, round_trip, zeros)
        except ConfigError as error:
            raise tables.make_error(f"{key}.path", str(error)) from error

    return read


def _make_trace_reader(folder: Path) -> Callable[[Any, str], str]:

    def read(value: Any, key: str) -> str:
        beside = folder / tables.read_text(value, key)
        return str(beside) if value and beside.exists() else str(value)

    return read


def make_choice_reader(allowed: Any) -> Callable[[Any, str], str]:
    """Return the reader of one of several words."""

    def read(value: Any, key: str) -> str:
        if tables.read_text(value, key) not in allowed:
            raise tables.make_error(
                key, f"unknown value {value!r}; {tables.choices(value, allowed)}"
            )
        return str(value)

    return read


def make_fields(made: type) -> Fields:
    """Return the keys of a configuration's dataclass, with readers by type hint."""
    hints, own = get_type_hints(made), SPECIAL_READERS.get(made, {})
    return {
        tables.ATTRIBUTE_KEYS.get(name, name): own.get(name) or _find_reader(hints[name])
        for name in (field.name for field in dataclasses.fields(made))
    }


def _find_reader(hint: Any) -> Reader:
    if hint in READERS:
        return READERS[hint]
    if not get_args(hint):
        return lambda value, key: tables.build_dataclass(hint, value, key, make_fields(hint))
    read = _find_reader(get_args(hint)[0])
    return tables.make_list_reader(read) if get_origin(hint) is tuple else read


READERS: Mapping[Any, Reader] = {
    str: tables.read_text,
    int: tables.read_integer,
    float: tables.read_number,
    bool: tables.read_flag,
    Delay: _read_delay,
}
SPECIAL_READERS: Mapping[type, Mapping[str, Reader]] = {
    Special: {"source": _read_end, "target": _read_end},
    Hierarchy: {"groups": _read_sizes},
    PubSub: {"subgroups": _read_sizes},
    SnapshotPlan: {
        "at_s": _make_one_or_more_reader(tables.read_number),
        "by": _make_one_or_more_reader(tables.read_integer),
    },
}
"""Attributes with their own reader."""
MATRIX = {
    "path": "the file of latencies",
    "unit": f"one of {', '.join(MATRIX_UNITS)}",
    "round_trip": "true: round-trip times, halved here; false: one way",
    "zeros": "",
}
WORKLOAD = make_fields(Workload)
CLOCKS = make_fields(Clocks)
SNAPSHOTS = make_fields(SnapshotPlan)
RUN = ("duration_s", "warm_s", "sample_s")
PROTOCOL = ("name", "variant", "options", "without")
TABLES = ("name", "topology", "protocol", "links", "workload", "clocks", "run", "snapshots")


def make_workload_fields(folder: Path) -> Fields:
    """Return the keys of `workload`. A trace may be in `folder`."""
    return {**WORKLOAD, "path": _make_trace_reader(folder)}


def links_of(folder: Path) -> Fields:
    """Return the keys of `links`. Latency files may be in `folder`."""
    return {**make_fields(Links), "matrix": _make_matrix_reader(folder)}


def topology_of(kind: str) -> Fields:
    """Return the keys of `topology` besides its kind."""
    return make_fields(TOPOLOGIES[kind])
