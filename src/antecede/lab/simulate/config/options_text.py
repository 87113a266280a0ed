"""Options of a protocol as plain values: `[protocol.options]` and `protocol.without`.

TOML has no None: `without` lists the options that are None. Lists become tuples, and `bounds` a
table of `Bounds` with members as numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from antecede.core.clocks import NS, Bounds
from antecede.errors import LocalError
from antecede.lab.simulate.config import tables

_BOUNDS = ("accuracy_s", "least_s", "most_s", "clocks", "channels")
_CHANNEL = ("from", "to", "least_s", "most_s")


def options_to_values(options: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return `options` and `without` as plain values. Raises ConfigError for other values."""
    given = {
        name: _to_plain(value, f"{key}.options.{name}")
        for name, value in options.items()
        if value is not None
    }
    without = [name for name, value in options.items() if value is None]
    return {**({"options": given} if given else {}), **({"without": without} if without else {})}


def options_from_values(protocol: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return the options of the table `protocol`. Raises ConfigError."""
    given = tables.read_table(protocol.get("options", {}), f"{key}.options")
    without = tables.make_list_reader(tables.read_text)(
        protocol.get("without", []), f"{key}.without"
    )
    for name in without:
        if name in given:
            raise tables.make_error(
                f"{key}.without", f"{name} also has a value in {key}.options; remove one"
            )
    found = {
        name: _read_value(value, f"{key}.options.{name}", name) for name, value in given.items()
    }
    return {**found, **dict.fromkeys(without)}


def _to_plain(value: Any, key: str) -> Any:
    if isinstance(value, Bounds):
        return _bounds_to_values(value)
    if isinstance(value, list | tuple):
        return [_to_plain(one, key) for one in value]
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return {name: _to_plain(one, f"{key}.{name}") for name, one in value.items()}
    if isinstance(value, bool | int | float | str):
        return value
    raise tables.make_error(key, f"unsupported type {type(value).__name__}; expected plain values")


def _read_value(value: Any, key: str, name: str) -> Any:
    if name == "bounds":
        return _read_bounds(value, key)
    if isinstance(value, list | tuple):
        return tuple(_read_value(one, key, "") for one in value)
    if isinstance(value, Mapping):
        return {one: _read_value(item, f"{key}.{one}", "") for one, item in value.items()}
    if isinstance(value, float):
        return tables.read_number(value, key)
    if isinstance(value, bool | int | str):
        return value
    raise tables.make_error(key, f"invalid value {value!r} of an option")


def _bounds_to_values(bounds: Bounds[int]) -> dict[str, Any]:
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


def _read_bounds(value: Any, key: str) -> Bounds[int]:
    given = tables.read_table(value, key)
    tables.check_keys(given, key, _BOUNDS)
    plain: dict[str, Any] = {
        name: tables.read_number(given[name], f"{key}.{name}")
        for name in _BOUNDS[:3]
        if name in given
    }
    clocks: dict[int, float] = {}
    for member, accuracy in tables.read_table(given.get("clocks", {}), f"{key}.clocks").items():
        if not member.isdecimal():
            raise tables.make_error(
                f"{key}.clocks.{member}", "invalid clock; expected the number of a member"
            )
        clocks[int(member)] = tables.read_number(accuracy, f"{key}.clocks.{member}")
    channels = dict(
        tables.make_list_reader(_read_channel)(given.get("channels", []), f"{key}.channels")
    )
    try:
        return Bounds(**plain, clocks=clocks, channels=channels)
    except LocalError as error:
        raise tables.make_error(key, str(error)) from error


def _read_channel(value: Any, key: str) -> tuple[tuple[int, int], tuple[float, float]]:
    given = tables.read_table(value, key)
    tables.check_keys(given, key, _CHANNEL)
    for name in _CHANNEL:
        if name not in given:
            raise tables.make_error(f"{key}.{name}", "missing")
    source, target = (tables.read_integer(given[name], f"{key}.{name}") for name in _CHANNEL[:2])
    least_s, most_s = (tables.read_number(given[name], f"{key}.{name}") for name in _CHANNEL[2:])
    return (source, target), (least_s, most_s)
