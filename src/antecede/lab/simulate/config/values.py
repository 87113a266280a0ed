"""Values of a configuration set by dotted keys, for sweeps over a configuration file.

    values = read_values("run.toml")
    for r in range(5, 31):
        setting = {"options.r": r, "members": 30}
        config, unused = config_with_settings(values, setting, "run.toml")

Keys are those of configuration files (docs/reference/simulation.md), "TABLE.KEY" and deeper. Short
names:

    options.X    protocol.options.X; the value None adds X to protocol.without
    members      topology.peers of a mesh
    protocol     protocol.name and protocol.variant, as "NAME" or "NAME/VARIANT"
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from antecede.errors import ConfigError
from antecede.lab.check import is_file_target
from antecede.lab.simulate.config import keys
from antecede.lab.simulate.config.file import check_keys_used, config_from, read_values
from antecede.lab.simulate.config.keys import WORKLOAD as WORKLOAD_KEYS
from antecede.lab.simulate.config.model import SimulationConfig
from antecede.lab.simulate.config.tables import check_keys, make_error, read_table
from antecede.lab.simulate.config.unused_keys import (
    find_unused_keys,
    find_unused_options,
    remove_keys,
)
from antecede.lab.simulate.topology import TOPOLOGIES

__all__ = ["config_with_settings", "read_values"]


def _set_value(of: Mapping[str, Any], key: str, value: Any) -> dict[str, Any]:
    values = copy.deepcopy(dict(of))
    if key == "protocol":
        return _set_protocol(values, value)
    steps = _resolve_key(values, key)
    _check_key(values, key, steps)
    if steps[:2] == ["protocol", "options"] and len(steps) == 3:
        _set_option(values, steps[2], value)
        return values
    if value is None:
        raise make_error(key, "None is only allowed for options of a protocol")
    here = values
    for at, step in enumerate(steps[:-1], start=1):
        here[step] = dict(read_table(here.get(step, {}), ".".join(steps[:at])))
        here = here[step]
    here[steps[-1]] = value
    return values


def config_with_settings(
    of: Mapping[str, Any], settings: Mapping[str, Any], path: str | None = None
) -> tuple[SimulationConfig, dict[str, str]]:
    """Return the configuration with settings applied, and the keys that it omits with the reasons.

    Omitted keys have no effect on the run. `path` is the configuration file, for errors and
    relative paths. Raises ConfigError with the dotted key for an unknown key, a setting without
    effect, and an invalid value.
    """
    values = dict(of)
    try:
        for key, value in settings.items():
            values = _set_value(values, key, value)
    except ConfigError as error:
        raise ConfigError(error.message, path=path) from error
    asked = {".".join(_resolve_key(values, key)) for key in settings}
    loose = config_from(values, path, check_protocol=False)
    options = {f"protocol.options.{name}": why for name, why in find_unused_options(loose).items()}
    left = _drop_requested(options, asked)
    values = remove_keys(values, left)
    loose = config_from(values, path)
    more = _drop_requested(find_unused_keys(values, loose), asked)
    values = remove_keys(values, more)
    config = config_from(values, path)
    check_keys_used(values, config, path)
    return config, left | more


def _drop_requested(unused: Mapping[str, str], requested: Collection[str]) -> dict[str, str]:
    return {key: why for key, why in unused.items() if key.partition("[")[0] not in requested}


def _set_protocol(values: dict[str, Any], value: Any) -> dict[str, Any]:
    if not isinstance(value, str) or not value:
        raise make_error("protocol", f'{value!r}; write "NAME", "NAME/VARIANT" or "FILE.py:CLASS"')
    own = is_file_target(value)
    name, _, variant = (value, "", "") if own else value.partition("/")
    protocol = dict(read_table(values.get("protocol", {}), "protocol"))
    protocol.pop("variant", None)
    values["protocol"] = {**protocol, "name": name, **({"variant": variant} if variant else {})}
    return values


def _resolve_key(values: Mapping[str, Any], key: str) -> list[str]:
    if key == "members":
        kind = read_table(values.get("topology", {}), "topology").get("kind")
        if kind != "mesh":
            sizes = " and ".join(f"topology.{name}" for name in _TOPOLOGY_SIZES.get(str(kind), ()))
            raise make_error("members", f"only for a mesh; set {sizes or 'topology.peers'}")
        return ["topology", "peers"]
    if key.startswith("options."):
        return ["protocol", *key.split(".")]
    return key.split(".")


_TOPOLOGY_SIZES = {"hierarchy": ("groups", "external"), "pubsub": ("subgroups",)}


def _check_key(values: Mapping[str, Any], key: str, steps: list[str]) -> None:
    check_keys(steps[:1], "", keys.TABLES)
    if steps == ["name"]:
        return
    if len(steps) < 2:
        raise make_error(key, f"this is a table; write {key}.KEY")
    known = {
        "topology": ("kind",),
        "protocol": keys.PROTOCOL,
        "links": tuple(keys.links_of(Path())),
        "workload": tuple(WORKLOAD_KEYS),
        "clocks": tuple(keys.CLOCKS),
        "run": keys.RUN,
        "snapshots": tuple(keys.SNAPSHOTS),
    }.get(steps[0], ())
    if steps[0] == "topology":
        kind = read_table(values.get("topology", {}), "topology").get("kind")
        known += tuple(keys.topology_of(str(kind))) if kind in TOPOLOGIES else ()
    check_keys(steps[1:2], steps[0], known)


def _set_option(values: dict[str, Any], name: str, value: Any) -> None:
    protocol = dict(read_table(values.get("protocol", {}), "protocol"))
    options = dict(read_table(protocol.get("options", {}), "protocol.options"))
    without = [one for one in protocol.get("without", ()) if one != name]
    options.pop(name, None)
    if value is None:
        without.append(name)
    else:
        options[name] = value
    protocol |= {"options": options, "without": without}
    values["protocol"] = {k: v for k, v in protocol.items() if k != "without" or v}
