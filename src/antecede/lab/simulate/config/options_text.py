"""Options of a protocol as plain values: `[protocol.options]` and `protocol.without`.

TOML has no None: `without` names the options that are None. Lists are read as tuples, tables as
dicts, `bounds` as a table of `Bounds` with members as numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from antecede.core.clocks import NS, Bounds
from antecede.errors import LocalError
from antecede.lab.simulate.config import tables

_BOUNDS = ("accuracy_s", "least_s", "most_s", "clocks", "channels")
_CHANNEL = ("from", "to", "least_s", "most_s")


def options_table(options: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return `options` and `without` as plain values; raises ScenarioError for what has none."""
    given = {
        name: _plain(value, f"{key}.options.{name}")
        for name, value in options.items()
        if value is not None
    }
    without = [name for name, value in options.items() if value is None]
    return {**({"options": given} if given else {}), **({"without": without} if without else {})}


def options_from(protocol: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return the options of the table `protocol`. Raises ScenarioError."""
    given = tables.table(protocol.get("options", {}), f"{key}.options")
    without = tables.listed(tables.text)(protocol.get("without", []), f"{key}.without")
    for name in without:
        if name in given:
            raise tables.fault(f"{key}.without", f"{name} has a value in {key}.options")
    found = {name: _value(value, f"{key}.options.{name}", name) for name, value in given.items()}
    return {**found, **dict.fromkeys(without)}


def _plain(value: Any, key: str) -> Any:
    if isinstance(value, Bounds):
        return _bounds_table(value)
    if isinstance(value, list | tuple):
        return [_plain(one, key) for one in value]
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return {name: _plain(one, f"{key}.{name}") for name, one in value.items()}
    if isinstance(value, bool | int | float | str):
        return value
    raise tables.fault(key, f"a {type(value).__name__} can not be written as plain values")


def _value(value: Any, key: str, name: str) -> Any:
    if name == "bounds":
        return _bounds(value, key)
    if isinstance(value, list | tuple):
        return tuple(_value(one, key, "") for one in value)
    if isinstance(value, Mapping):
        return {one: _value(item, f"{key}.{one}", "") for one, item in value.items()}
    if isinstance(value, float):
        return tables.number(value, key)
    if isinstance(value, bool | int | str):
        return value
    raise tables.fault(key, f"{value!r} is no value of an option")


def _bounds_table(bounds: Bounds[int]) -> dict[str, Any]:
    return {
        "accuracy_s": bounds.accuracy_s,
        "least_s": bounds.least_s,
        "most_s": bounds.most_s,
        "clocks": {str(member): error / NS for member, error in bounds.clocks_ns.items()},
        "channels": [
            {"from": source, "to": target, "least_s": least / NS, "most_s": most / NS}
            for (source, target), (least, most) in bounds.channels_ns.items()
        ],
    }


def _bounds(value: Any, key: str) -> Bounds[int]:
    given = tables.table(value, key)
    tables.check_keys(given, key, _BOUNDS)
    plain: dict[str, Any] = {
        name: tables.number(given[name], f"{key}.{name}") for name in _BOUNDS[:3] if name in given
    }
    clocks: dict[int, float] = {}
    for member, accuracy in tables.table(given.get("clocks", {}), f"{key}.clocks").items():
        if not member.isdecimal():
            raise tables.fault(f"{key}.clocks.{member}", "a clock is named by its member's number")
        clocks[int(member)] = tables.number(accuracy, f"{key}.clocks.{member}")
    channels = dict(tables.listed(_channel)(given.get("channels", []), f"{key}.channels"))
    try:
        return Bounds(**plain, clocks=clocks, channels=channels)
    except LocalError as error:
        raise tables.fault(key, str(error)) from error


def _channel(value: Any, key: str) -> tuple[tuple[int, int], tuple[float, float]]:
    given = tables.table(value, key)
    tables.check_keys(given, key, _CHANNEL)
    for name in _CHANNEL:
        if name not in given:
            raise tables.fault(f"{key}.{name}", "is missing")
    source, target = (tables.whole(given[name], f"{key}.{name}") for name in _CHANNEL[:2])
    least_s, most_s = (tables.number(given[name], f"{key}.{name}") for name in _CHANNEL[2:])
    return (source, target), (least_s, most_s)
