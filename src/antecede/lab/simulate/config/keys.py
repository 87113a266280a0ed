"""Keys of a scenario file with the readers of their values, derived from type hints.

The meaning of every key: docs/simulate.md.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from antecede.errors import ScenarioError
from antecede.lab.simulate.config import tables
from antecede.lab.simulate.config.latency_matrix import MATRIX_UNITS, ZEROS, Matrix, read_matrix
from antecede.lab.simulate.config.model import Clocks, Links, SnapshotPlan, Special, Workload
from antecede.lab.simulate.config.tables import Fields, Read
from antecede.lab.simulate.delays import Delay, parse_delay
from antecede.lab.simulate.topology import TOPOLOGIES, Hierarchy, PubSub

_MANY = re.compile(r"(\d{1,7})\s*[x×]\s*(\d{1,9})")


def _delay(value: Any, key: str) -> Delay:
    """Read "50-250 ms", or a table of low_s, high_s and kind."""
    if isinstance(value, Mapping):
        return tables.build(Delay, value, key, fields_of(Delay))
    if not isinstance(value, str):
        raise tables.wrong(value, key, 'a delay with its unit, such as "50-250 ms"')
    with tables.under(key, {}):
        return parse_delay(value)


def _end(value: Any, key: str) -> str:
    """Read one end of special channels: a role, "group:N", an address, or "any"."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return tables.text(value, key)


def _sizes(value: Any, key: str) -> tuple[int, ...]:
    """Read sizes of groups: a list, or "1000 x 50" for so many alike."""
    if isinstance(value, str):
        found = _MANY.fullmatch(value.strip())
        if found is None:
            raise tables.fault(key, f'{value!r}: write [50, 50] or, for many alike, "1000 x 50"')
        return (int(found[2]),) * int(found[1])
    sizes: tuple[int, ...] = tables.listed(tables.whole)(value, key)
    return sizes


def _one_or_more(read: Read) -> Read:
    """Return the reader of a list that may also be its single value."""

    def read_all(value: Any, key: str) -> Any:
        return (
            tables.listed(read)(value, key)
            if isinstance(value, list | tuple)
            else (read(value, key),)
        )

    return read_all


def _matrix_beside(folder: Path) -> Callable[[Any, str], Matrix]:
    """Return the reader of `links.matrix`, which looks for files in a folder."""

    def read(value: Any, key: str) -> Matrix:
        if isinstance(value, list | tuple):
            rows: Matrix = tables.listed(tables.listed(tables.number))(value, key)
            return rows
        if isinstance(value, str):
            value = {"path": value}
        given = tables.table(value, key)
        tables.check_keys(given, key, MATRIX)
        for name, meaning in MATRIX.items():
            if name not in given and meaning:
                raise tables.fault(f"{key}.{name}", f"is missing; {meaning}")
        path = folder / tables.text(given["path"], f"{key}.path")
        unit = one_of(MATRIX_UNITS)(given["unit"], f"{key}.unit")
        round_trip = tables.flag(given["round_trip"], f"{key}.round_trip")
        zeros = one_of(ZEROS)(given["zeros"], f"{key}.zeros") if "zeros" in given else None
        try:
            return read_matrix(path, unit, round_trip, zeros)
        except ScenarioError as error:
            raise tables.fault(f"{key}.path", str(error)) from error

    return read


def _trace_beside(folder: Path) -> Callable[[Any, str], str]:
    """Return the reader of `workload.path`, which looks for the trace in a folder first."""

    def read(value: Any, key: str) -> str:
        beside = folder / tables.text(value, key)
        return str(beside) if value and beside.exists() else str(value)

    return read


def one_of(allowed: Any) -> Callable[[Any, str], str]:
    """Return the reader of one word of several."""

    def read(value: Any, key: str) -> str:
        if tables.text(value, key) not in allowed:
            raise tables.fault(key, f"{value!r}; {tables.choices(value, allowed)}")
        return str(value)

    return read


def fields_of(made: type) -> Fields:
    """Return the keys of a dataclass of scenarios, each read as its type hint says."""
    hints, own = get_type_hints(made), READ_OTHERWISE.get(made, {})
    return {
        tables.KEYS.get(name, name): own.get(name) or _reader(hints[name])
        for name in (one.name for one in dataclasses.fields(made))
    }


def _reader(hint: Any) -> Read:
    """Return the reader of a type: of one below, of a tuple or of what may be None, too."""
    if hint in READERS:
        return READERS[hint]
    if not get_args(hint):
        return lambda value, key: tables.build(hint, value, key, fields_of(hint))
    read = _reader(get_args(hint)[0])
    return tables.listed(read) if get_origin(hint) is tuple else read


READERS: Mapping[Any, Read] = {
    str: tables.text,
    int: tables.whole,
    float: tables.number,
    bool: tables.flag,
    Delay: _delay,
}
READ_OTHERWISE: Mapping[type, Mapping[str, Read]] = {
    Special: {"source": _end, "target": _end},
    Hierarchy: {"groups": _sizes},
    PubSub: {"subgroups": _sizes},
    SnapshotPlan: {"at_s": _one_or_more(tables.number), "by": _one_or_more(tables.whole)},
}
"""Keys with a reader of their own."""
MATRIX = {
    "path": "the file of latencies",
    "unit": f"one of {', '.join(MATRIX_UNITS)}",
    "round_trip": "true: times there and back, halved here; false: one way",
    "zeros": "",
}
WORKLOAD = fields_of(Workload)
CLOCKS = fields_of(Clocks)
SNAPSHOTS = fields_of(SnapshotPlan)
RUN = ("duration_s", "warm_s", "sample_s")
PROTOCOL = ("name", "variant", "options", "without")
TABLES = ("name", "topology", "protocol", "links", "workload", "clocks", "run", "snapshots")


def workload_of(folder: Path) -> Fields:
    """Return the keys of `workload`; a trace is looked for in a folder."""
    return {**WORKLOAD, "path": _trace_beside(folder)}


def links_of(folder: Path) -> Fields:
    """Return the keys of `links`; files of latencies are looked for in a folder."""
    return {**fields_of(Links), "matrix": _matrix_beside(folder)}


def topology_of(kind: str) -> Fields:
    """Return the keys of `topology` beside its kind."""
    return fields_of(TOPOLOGIES[kind])
