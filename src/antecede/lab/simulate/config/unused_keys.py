"""Keys of a configuration file without effect on its run, with the reason.

Such a key is an error in a file for one run (`config.file.check_keys_used`). A sweep omits the key
for settings without a use for it, and reports that (`config.values.config_with_settings`).

A partition after the end of the run has an effect only if a message can be sent later: members
recover lost messages, use total order, or forward.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from antecede.core.protocols import ENTRIES, Protocol, Relation
from antecede.core.protocols.options import idle, options_of, with_trial
from antecede.errors import InputError
from antecede.lab.check import is_file_target, load_class
from antecede.lab.simulate.config.model import SimulationConfig

_RATE_TEXTS = {
    "periodic": "it sends by interval or total_hz",
    "poisson": "it sends by rate_hz or total_hz",
    "random": "it sends that number until run.duration_s",
    "replay": "it sends at the times of the trace",
}


def find_unused_workload_keys(config: SimulationConfig) -> Mapping[str, str]:
    """Return the workload's keys without effect, with the reason."""
    load = config.workload
    kind = load.kind
    says = {
        "interval": ("periodic", f"has no interval; {_RATE_TEXTS[kind]}"),
        "rate_hz": ("poisson", f"has no rate of a peer; {_RATE_TEXTS[kind]}"),
        "total_hz": ("periodic poisson", f"has no rate; {_RATE_TEXTS[kind]}"),
        "messages": (
            "random",
            f"has no number of messages; {_RATE_TEXTS[kind]}, until run.duration_s",
        ),
        "path": ("replay", "reads no trace"),
        "reply_fraction": ("periodic poisson random", "takes replies from the trace"),
        "recent": ("periodic poisson random", "takes replies from the trace"),
    }
    found = {name: what for name, (kinds, what) in says.items() if kind not in kinds.split()}
    if not load.reply_fraction:
        found.setdefault("recent", "without replies uses no recent messages")
    if load.total_hz is not None:
        found.setdefault("rate_hz", "with total_hz has no rate of a peer")
    return found


def find_unused_keys(values: Mapping[str, Any], config: SimulationConfig) -> dict[str, str]:
    """Return the keys of these values without effect (options: `find_unused_options`)."""
    workload, links, clocks = (values.get(one, {}) for one in ("workload", "links", "clocks"))
    kind = config.workload.kind
    unused = find_unused_workload_keys(config)
    found = {
        f"workload.{name}": f"a {kind} workload {unused[name]}"
        for name in workload
        if name in unused
    }
    if "buffer" in links and not config.links.service_s:
        found["links.buffer"] = (
            "no effect without service_s: a receiver without service time never fills it"
        )
    if clocks.get("resync_s") and not config.clocks.drift_ppm:
        found["clocks.resync_s"] = "no effect without drift_ppm: only drifting clocks are set anew"
    if "partitions" in links and not _can_send_later(config):
        found |= dict(_find_late_partitions(config))
    return found


def find_unused_options(config: SimulationConfig) -> dict[str, str]:
    """Return unknown and unused options, with the reason; none if the protocol fails to load."""
    found = _load_protocol(config)
    if found is None:
        return {}
    made, variant = found
    known = options_of(made)
    lacking = {
        name: f"unknown option of {config.protocol}" for name in config.options if name not in known
    }
    chosen = {**variant, **config.options}
    without = {
        name: f"no effect {one.words}"
        for name, one in idle(made, chosen).items()
        if name in config.options
    }
    return lacking | without


def _load_protocol(config: SimulationConfig) -> tuple[Any, Mapping[str, Any]] | None:
    if is_file_target(config.protocol):
        try:
            file = Path(config.protocol.rpartition(":")[0])
            return _load_user_class(config.protocol, file.stat().st_mtime_ns), {}
        except (OSError, InputError):
            return None
    found = ENTRIES.get(config.protocol)
    if found is None or (config.variant and config.variant not in found.variants):
        return None
    return found.load(), found.options(config.variant)


@lru_cache(maxsize=16)
def _load_user_class(target: str, changed_ns: int) -> type[Protocol]:
    del changed_ns  # part of the cache key: a sweep calls this for each setting
    return load_class(target)


def remove_keys(values: Mapping[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    """Return plain values of a configuration without these keys."""
    gone = set(keys)
    found = {name: _remove_from_table(name, one, gone) for name, one in values.items()}
    protocol = found.get("protocol")
    if isinstance(protocol, Mapping):
        left = {"options": _remove_from_table("protocol.options", protocol.get("options"), gone)}
        names = protocol.get("without", ())
        left["without"] = [one for one in names if f"protocol.options.{one}" not in gone]
        found["protocol"] = {
            **protocol,
            **{key: one for key, one in left.items() if key in protocol},
        }
    links = found.get("links")
    if isinstance(links, Mapping) and "partitions" in links:
        numbered = enumerate(links["partitions"], start=1)
        cuts = [one for at, one in numbered if _make_partition_key(at) not in gone]
        found["links"] = {**links, "partitions": cuts}
    return found


def _remove_from_table(key: str, table: Any, removed: set[str]) -> Any:
    if not isinstance(table, Mapping):
        return table
    return {name: value for name, value in table.items() if f"{key}.{name}" not in removed}


def _make_partition_key(number: int) -> str:
    return f"links.partitions[{number}]"


def _find_late_partitions(config: SimulationConfig) -> Iterator[tuple[str, str]]:
    end_s = config.duration_s
    for number, one in enumerate(config.links.partitions, start=1):
        if one.start_s >= end_s:
            why = (
                f"starts at {one.start_s:g} s, after the last send before run.duration_s = "
                f"{end_s:g} s"
            )
            yield _make_partition_key(number), why


def _can_send_later(config: SimulationConfig) -> bool:
    found = ENTRIES.get(config.protocol)
    if is_file_target(config.protocol) or config.workload.kind == "replay" or found is None:
        return True
    if not found.flat:
        return True  # super peers forward
    made: type[Protocol] = found.load()
    options = {**found.options(config.variant), **config.options}
    member = made(0, (0, 1), **with_trial(made, (0, 1), options))
    if member.guarantee.relation is Relation.TOTAL:
        return True  # sequence numbers or acknowledgements follow arrivals
    spans = (getattr(member, name, None) for name in ("heartbeat_ns", "retry_ns"))
    return member.needs_ticks and any(span is not None for span in spans)
