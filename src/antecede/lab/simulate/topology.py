"""Members of a simulated group: addresses, roles and groups.

Addresses count from 0. Meshes and publish/subscribe groups have only peers. In a hierarchy
(Evropeytsev et al. 2016) super peers come first, then internal peers by group, then external peers.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from antecede.errors import ConfigError

PEER, SUPER, INTERNAL, EXTERNAL = "peer", "super", "internal", "external"


class _Peers(abc.ABC):
    @property
    @abc.abstractmethod
    def size(self) -> int: ...

    def role(self, address: int) -> str:
        """Return the role of an address."""
        return PEER

    def senders(self) -> range:
        """Return the addresses with an application."""
        return range(self.size)


@dataclass(frozen=True)
class Mesh(_Peers):
    """Peers that all send to each other directly. Raises ConfigError."""

    peers: int

    def __post_init__(self) -> None:
        _check_minimum("peers", self.peers, 1)

    @property
    def size(self) -> int:
        """Number of addresses."""
        return self.peers

    def group(self, address: int) -> int:
        """Return the number of the address's group."""
        return 0


@dataclass(frozen=True)
class Hierarchy:
    """Internal groups with a super peer each, and external peers (Evropeytsev et al. 2016)."""

    groups: tuple[int, ...]
    external: int = 0

    def __post_init__(self) -> None:
        if not self.groups:
            raise ConfigError("groups: empty; a hierarchy needs an internal group")
        for size in self.groups:
            _check_minimum("groups", size, 1)
        _check_minimum("external", self.external, 0)

    @property
    def super_peers(self) -> range:
        """Addresses of the super peers. That of group g has the address g."""
        return range(len(self.groups))

    @property
    def size(self) -> int:
        """Number of addresses, including super peers."""
        return len(self.groups) + sum(self.groups) + self.external

    def members(self, group: int) -> range:
        """Return the addresses of the internal peers of a group."""
        first = len(self.groups) + sum(self.groups[:group])
        return range(first, first + self.groups[group])

    def external_peers(self) -> range:
        """Return the addresses of the external peers."""
        return range(self.size - self.external, self.size)

    def role(self, address: int) -> str:
        """Return the role of an address."""
        if address < len(self.groups):
            return SUPER
        return EXTERNAL if address >= self.size - self.external else INTERNAL

    def group(self, address: int) -> int:
        """Return the number of the address's group. External peers form the last group."""
        if address < len(self.groups):
            return address
        first = len(self.groups)
        for number, size in enumerate(self.groups):
            first += size
            if address < first:
                return number
        return len(self.groups)

    def senders(self) -> range:
        """Return the addresses with an application: all but the super peers."""
        return range(len(self.groups), self.size)


@dataclass(frozen=True)
class PubSub(_Peers):
    """Subgroups of these sizes that share `topics` topics (Nakayama 2017, section 3).

    Every peer subscribes to 1 to `subscribed` of them (None: all), drawn by seed (h_i, at most xt).
    """

    subgroups: tuple[int, ...]
    topics: int
    subscribed: int | None = None

    def __post_init__(self) -> None:
        if not self.subgroups:
            raise ConfigError("subgroups: empty; expected at least one")
        for size in self.subgroups:
            _check_minimum("subgroups", size, 1)
        _check_minimum("topics", self.topics, 1)
        if self.subscribed is not None and not 1 <= self.subscribed <= self.topics:
            raise ConfigError(
                f"subscribed: {self.subscribed}; expected 1 to {self.topics} (topics)"
            )

    @property
    def size(self) -> int:
        """Number of addresses."""
        return sum(self.subgroups)

    def group(self, address: int) -> int:
        """Return the number of the address's subgroup."""
        first = 0
        for number, size in enumerate(self.subgroups):
            first += size
            if address < first:
                return number
        raise ConfigError(f"unknown address {address}; choose from 0 to {self.size - 1}")


Topology: TypeAlias = Mesh | Hierarchy | PubSub
TOPOLOGIES: Mapping[str, type[Topology]] = {"mesh": Mesh, "hierarchy": Hierarchy, "pubsub": PubSub}
"""Names of topologies in configuration files."""


def list_names(topology: Topology) -> list[str]:
    """Return the names of the addresses in traces: role and number."""
    return [f"{topology.role(at)}{at}" for at in range(topology.size)]


def kind_of(topology: Topology) -> str:
    """Return the name of a topology in configuration files."""
    return next(kind for kind, made in TOPOLOGIES.items() if isinstance(topology, made))


def _check_minimum(key: str, value: int, minimum: int) -> None:
    if value < minimum:
        raise ConfigError(f"{key}: {value}; expected {minimum} or more")
