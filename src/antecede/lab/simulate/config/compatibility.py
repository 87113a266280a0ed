"""Compatibility of a protocol with topology, workload and links of a configuration.

| protocol                          | topology    | workload                                     |
|-----------------------------------|-------------|----------------------------------------------|
| hierarchical                      | Hierarchy   | every member gets every message              |
| by topic (tv, tv-lt, ..., htbc)   | PubSub      | 1 to `topics` topics per message             |
| to chosen members (ses, sent)     | Mesh        | `fanout` addressees, or all                  |
| all others                        | Mesh        | every member gets every message              |

Errors contain the key of the file ("protocol.name: ...").
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from antecede.core.protocols import ENTRIES, Addressing, ProtocolEntry, of_order
from antecede.core.protocols import factory as build
from antecede.core.protocols.options import with_trial
from antecede.errors import LocalError
from antecede.lab.check import is_file_target
from antecede.lab.simulate.config.model import SimulationConfig
from antecede.lab.simulate.config.tables import choices, make_error
from antecede.lab.simulate.topology import (
    EXTERNAL,
    INTERNAL,
    PEER,
    SUPER,
    Hierarchy,
    PubSub,
    Topology,
    kind_of,
)


def check_fit(config: SimulationConfig) -> None:
    """Raise ConfigError for an invalid combination. The engine checks a user's protocol
    itself.
    """
    _check_links(config)
    _check_snapshots(config)
    if is_file_target(config.protocol):
        return
    found = _find_entry(config.protocol)
    if config.variant and config.variant not in found.variants:
        near = choices(config.variant, found.variants)
        raise make_error(
            "protocol.variant", f"{found.name} has no variant {config.variant!r}; {near}"
        )
    _check_topology(found, config.topology)
    _check_options(found, config)
    _check_workload(found, config)


def find_reference_only_reason(config: SimulationConfig) -> str | None:
    """Return why only the reference engine may run a configuration (None: others may)."""
    if config.snapshots is not None:
        return "only the reference engine records snapshots"
    if config.workload.kind == "replay":
        return "only the reference engine delays replies of a replay"
    if is_file_target(config.protocol) or config.protocol not in ENTRIES:
        return None
    options = {**_find_entry(config.protocol).options(config.variant), **config.options}
    if options.get("pruning") == "published":
        return "the published pruning violates causal order; only the reference engine supports it"
    return None


def topologies_of(name: str) -> tuple[str, ...]:
    """Return the kinds of topology of a protocol in the registry."""
    found = _find_entry(name)
    if not found.flat:
        return ("hierarchy",)
    return ("pubsub",) if found.load().addressing is Addressing.TOPICS else ("mesh",)


def _find_entry(name: str) -> ProtocolEntry:
    if name not in ENTRIES:
        near = of_order(name) or choices(name, ENTRIES)
        raise make_error("protocol.name", f"unknown protocol {name!r}; {near}")
    return ENTRIES[name]


def _check_topology(entry: ProtocolEntry, topology: Topology) -> None:
    kind, able = kind_of(topology), topologies_of(entry.name)
    if kind not in able:
        others = ", ".join(name for name in ENTRIES if kind in topologies_of(name))
        raise make_error(
            "protocol.name",
            f"{entry.name} needs topology.kind = {' or '.join(map(repr, able))}; protocols for "
            f"{kind!r}: {others}",
        )


def _check_options(entry: ProtocolEntry, config: SimulationConfig) -> None:
    made = entry.load()
    known = [
        name
        for name, parameter in inspect.signature(made).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    ]
    for name in config.options:
        if name not in known:
            raise make_error(
                f"protocol.options.{name}",
                f"unknown option of {entry.name}; {choices(name, known)}",
            )
    options = {**entry.options(config.variant), **config.options}
    try:
        _build_any_group(entry, options, config.topology.size)
    except (LocalError, TypeError, ValueError, AttributeError) as error:
        raise make_error(
            "protocol.options", f"{entry.name} rejects the options: {error}"
        ) from error


def _build_any_group(entry: ProtocolEntry, options: Mapping[str, Any], size: int) -> None:
    try:
        build.smallest(entry, options)
    except LocalError:
        if not entry.flat or size <= 2:
            raise
        # An option may be the id of a member (a sequencer).
        factory = entry.load()
        build.member(factory, 0, range(size), with_trial(factory, range(size), options))


def _check_workload(entry: ProtocolEntry, config: SimulationConfig) -> None:
    workload, topology = config.workload, config.topology
    if workload.fanout is not None:
        if not _has_addressees(entry):
            able = ", ".join(name for name, one in ENTRIES.items() if _has_addressees(one))
            raise make_error(
                "workload.fanout",
                f"{entry.name} has no addressees; protocols with addressees: {able}",
            )
        if workload.fanout >= topology.size:
            raise make_error(
                "workload.fanout",
                f"{workload.fanout} addressees; expected at most {topology.size - 1}",
            )
    topics = topology.topics if isinstance(topology, PubSub) else 1
    if workload.topics > topics:
        where = (
            f"expected at most {topics}"
            if isinstance(topology, PubSub)
            else "only pubsub has topics"
        )
        raise make_error("workload.topics", f"{workload.topics} topics per message; {where}")


def _has_addressees(entry: ProtocolEntry) -> bool:
    return entry.flat and entry.load().addressing is Addressing.MEMBERS


def _check_links(config: SimulationConfig) -> None:
    topology = config.topology
    for number, special in enumerate(config.links.special, start=1):
        for key, end in (("from", special.source), ("to", special.target)):
            if not _is_end(end, topology):
                raise make_error(
                    f"links.special[{number}].{key}",
                    f'unknown address {end!r}; write "any", {_describe_ends(topology)}',
                )
    for number, partition in enumerate(config.links.partitions, start=1):
        key = f"links.partitions[{number}].side"
        _check_addresses(partition.side, key, topology)
        if len(set(partition.side)) == topology.size:
            what = f"contains all {topology.size} addresses; leave one on the other side"
            raise make_error(key, what)


def _check_addresses(addresses: Iterable[int], key: str, topology: Topology) -> None:
    for address in addresses:
        if not 0 <= address < topology.size:
            raise make_error(
                key, f"unknown address {address}; choose from 0 to {topology.size - 1}"
            )


def _check_snapshots(config: SimulationConfig) -> None:
    plan, topology = config.snapshots, config.topology
    if plan is None:
        return
    if isinstance(topology, Hierarchy):
        raise make_error(
            "snapshots",
            "a hierarchy has no channels between all members, which snapshots need; use mesh or "
            "pubsub",
        )
    _check_addresses(plan.by, "snapshots.by", topology)


def _is_end(end: str, topology: Topology) -> bool:
    head, colon, number = end.partition(":")
    if colon:
        return head == "group" and number.isdecimal() and int(number) < _count_groups(topology)
    return (
        end == "any"
        or end in _list_roles(topology)
        or (end.isdecimal() and int(end) < topology.size)
    )


def _count_groups(topology: Topology) -> int:
    if isinstance(topology, Hierarchy):
        return len(topology.groups) + 1  # the last group: external peers
    return len(topology.subgroups) if isinstance(topology, PubSub) else 1


def _list_roles(topology: Topology) -> tuple[str, ...]:
    return (SUPER, INTERNAL, EXTERNAL) if isinstance(topology, Hierarchy) else (PEER,)


def _describe_ends(topology: Topology) -> str:
    roles = ", ".join(f'"{role}"' for role in _list_roles(topology))
    return (
        f'a role ({roles}), "group:N" with N up to {_count_groups(topology) - 1}, '
        f"or an address up to {topology.size - 1}"
    )
