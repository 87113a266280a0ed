"""The keys of a scenario file: how the value of each is read and written.

`scenario.file` puts the tables together; the meaning of every key: docs/simulate.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from antecede.errors import ScenarioError
from antecede.simulate.delays import Delay
from antecede.simulate.scenario.delay_text import parse_delay
from antecede.simulate.scenario.latency_matrix import MATRIX_UNITS, ZEROS, Matrix, read_matrix
from antecede.simulate.scenario.model import Partition, Special
from antecede.simulate.scenario.tables import (
    Field,
    Fields,
    build,
    check_keys,
    choices,
    fault,
    flag,
    listed,
    number,
    table,
    text,
    unbuild,
    under,
    whole,
    wrong,
)
from antecede.simulate.topology import Hierarchy, Mesh, PubSub, Topology

_MANY = re.compile(r"(\d{1,7})\s*[x×]\s*(\d{1,9})")


def _delay(value: Any, key: str) -> Delay:
    """Read "50-250 ms", or a table of low_s, high_s and kind."""
    if isinstance(value, Mapping):
        return build(Delay, value, key, DELAY)
    if not isinstance(value, str):
        raise wrong(value, key, 'a delay with its unit, such as "50-250 ms"')
    with under(key, {}):
        return parse_delay(value)


def _delay_table(delay: Delay) -> dict[str, Any]:
    return unbuild(delay, DELAY)


def _end(value: Any, key: str) -> str:
    """Read one end of special channels: a role, "group:N", an address, or "any"."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return text(value, key)


def _sizes(value: Any, key: str) -> tuple[int, ...]:
    """Read sizes of groups: a list, or "1000 x 50" for so many alike."""
    if isinstance(value, str):
        found = _MANY.fullmatch(value.strip())
        if found is None:
            raise fault(key, f'{value!r}: write [50, 50] or, for many alike, "1000 x 50"')
        return (int(found[2]),) * int(found[1])
    sizes: tuple[int, ...] = listed(whole)(value, key)
    return sizes


def _matrix_beside(folder: Path) -> Callable[[Any, str], Matrix]:
    """Return the reader of `links.matrix`, which looks for files in a folder."""

    def read(value: Any, key: str) -> Matrix:
        if isinstance(value, list | tuple):
            rows: Matrix = listed(listed(number))(value, key)
            return rows
        if isinstance(value, str):
            value = {"path": value}
        given = table(value, key)
        check_keys(given, key, MATRIX)
        for name, meaning in MATRIX.items():
            if name not in given and meaning:
                raise fault(f"{key}.{name}", f"is missing; {meaning}")
        path = folder / text(given["path"], f"{key}.path")
        unit = one_of(MATRIX_UNITS)(given["unit"], f"{key}.unit")
        round_trip = flag(given["round_trip"], f"{key}.round_trip")
        zeros = one_of(ZEROS)(given["zeros"], f"{key}.zeros") if "zeros" in given else None
        try:
            return read_matrix(path, unit, round_trip, zeros)
        except ScenarioError as error:
            raise fault(f"{key}.path", str(error)) from error

    return read


def _trace_beside(folder: Path) -> Callable[[Any, str], str]:
    """Return the reader of `workload.path`, which looks for the trace in a folder first."""

    def read(value: Any, key: str) -> str:
        beside = folder / text(value, key)
        return str(beside) if value and beside.exists() else str(value)

    return read


def one_of(allowed: Any) -> Callable[[Any, str], str]:
    """Return the reader of one word of several."""

    def read(value: Any, key: str) -> str:
        if text(value, key) not in allowed:
            raise fault(key, f"{value!r}; {choices(value, allowed)}")
        return str(value)

    return read


def _specials(value: Any, key: str) -> tuple[Special, ...]:
    found: tuple[Special, ...] = listed(lambda one, at: build(Special, one, at, SPECIAL))(
        value, key
    )
    return found


def _partitions(value: Any, key: str) -> tuple[Partition, ...]:
    found: tuple[Partition, ...] = listed(lambda one, at: build(Partition, one, at, PARTITION))(
        value, key
    )
    return found


MATRIX = {
    "path": "the file of latencies",
    "unit": f"one of {', '.join(MATRIX_UNITS)}",
    "round_trip": "true: times there and back, halved here; false: one way",
    "zeros": "",
}
DELAY: Fields = {"low_s": Field(number), "high_s": Field(number), "kind": Field(text)}
SPECIAL: Fields = {
    "from": Field(_end, attribute="source"),
    "to": Field(_end, attribute="target"),
    "delay": Field(_delay, _delay_table),
}
PARTITION: Fields = {
    "start_s": Field(number),
    "end_s": Field(number),
    "side": Field(listed(whole), list),
    "lost": Field(flag),
}
WORKLOAD: Fields = {
    "kind": Field(text),
    "interval": Field(_delay, _delay_table),
    "rate_hz": Field(number),
    "total_hz": Field(number),
    "messages": Field(whole),
    "silent": Field(whole),
    "fanout": Field(whole),
    "topics": Field(whole),
    "answers": Field(number),
    "recent": Field(whole),
    "path": Field(text),
}
CLOCKS: Fields = {
    "accuracy_s": Field(number),
    "drift_ppm": Field(number),
    "resync_s": Field(number),
}
RUN: Fields = {"duration_s": Field(number), "warm_s": Field(number), "sample_s": Field(number)}
PROTOCOL = ("name", "variant", "options", "without")
TOPOLOGIES: Mapping[str, tuple[str, Callable[..., Topology], Fields]] = {
    kind: (kind, make, fields)
    for kind, make, fields in (
        ("mesh", Mesh, {"peers": Field(whole)}),
        ("hierarchy", Hierarchy, {"groups": Field(_sizes, list), "external": Field(whole)}),
        (
            "pubsub",
            PubSub,
            {
                "subgroups": Field(_sizes, list),
                "topics": Field(whole),
                "subscribed": Field(whole),
            },
        ),
    )
}
TABLES = ("name", "topology", "protocol", "links", "workload", "clocks", "run")


def workload_of(folder: Path) -> Fields:
    """Return the keys of `workload`; a trace is looked for in a folder."""
    return {**WORKLOAD, "path": Field(_trace_beside(folder))}


def links_of(folder: Path) -> Fields:
    """Return the keys of `links`; files of latencies are looked for in a folder."""
    return {
        "delay": Field(_delay, _delay_table),
        "special": Field(_specials, lambda all_: [unbuild(one, SPECIAL) for one in all_]),
        "matrix": Field(_matrix_beside(folder), lambda rows: [list(row) for row in rows]),
        "fifo": Field(flag),
        "loss": Field(number),
        "duplicate": Field(number),
        "partitions": Field(_partitions, lambda all_: [unbuild(one, PARTITION) for one in all_]),
        "buffer": Field(whole),
        "service_s": Field(number),
    }
