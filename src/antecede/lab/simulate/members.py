"""Protocol objects of a run, from the registry or from a user's file.

Options are those of the variant, then those of the configuration. Constructors that accept `bounds`
of clocks and channels (`clocks.compute_bounds`) or `subscriptions` get them. Protocols that need
ticks get one each `tick_us`: an eighth of the largest delay of any channel, 1 to 50 ms.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from antecede.core.protocols import Addressing, Factory, Protocol, Relation, entry, relation_of
from antecede.core.protocols import factory as build
from antecede.core.protocols.options import options_of, plain_options
from antecede.core.protocols.topics import Subscriptions
from antecede.errors import ConfigError, InputError, LocalError
from antecede.lab.check import is_file_target, load_class, not_made
from antecede.lab.simulate.clocks import compute_bounds
from antecede.lab.simulate.config.compatibility import check_fit
from antecede.lab.simulate.config.model import SimulationConfig
from antecede.lab.simulate.config.tables import make_error
from antecede.lab.simulate.network import Channels, make_channels
from antecede.lab.simulate.topology import Hierarchy, Mesh, PubSub
from antecede.lab.simulate.workload import draw_subscriptions

MIN_TICK_US, MAX_TICK_US, TICKS_PER_DELAY = 1_000, 50_000, 8


class RunMembers(NamedTuple):
    """The members of a run by address."""

    members: Mapping[int, Protocol]
    relation: Relation
    tick_us: int | None  # None: no member needs ticks
    idle_timeout_us: int  # Time without progress after which waiting members wait forever
    can_repeat: bool  # A copy can arrive at a member more than once


def make_members(config: SimulationConfig, seed: int) -> RunMembers:
    """Make the members. Raises ConfigError for a protocol that does not fit the configuration."""
    channels = make_channels(config.topology, config.links)
    own = is_file_target(config.protocol)
    try:
        members = (
            _make_user_members(config, seed, channels)
            if own
            else _make_registered_members(config, seed, channels)
        )
        relation = relation_of(members)
    except (LocalError, TypeError) as error:
        raise ConfigError(f"protocol.options: {config.protocol}: {error}") from error
    timed = any(member.needs_ticks for member in members.values())
    recovers = any(member.guarantee.survives_loss for member in members.values())
    max_delay_us = int(channels.quantiles.max()) + int(channels.location_delays_us.max())
    tick_us = min(max(max_delay_us // TICKS_PER_DELAY, MIN_TICK_US), MAX_TICK_US) if timed else None
    repeats = own or recovers or timed or config.links.duplicate > 0
    return RunMembers(
        members,
        relation,
        tick_us,
        _compute_idle_timeout_us(config, max_delay_us, recovers),
        repeats,
    )


def _make_registered_members(
    config: SimulationConfig, seed: int, channels: Channels
) -> Mapping[int, Protocol]:
    check_fit(config)
    found = entry(config.protocol)
    options = {**found.options(config.variant), **config.options}
    tree = config.topology
    if isinstance(tree, Hierarchy):
        groups = {at: tuple(tree.members(at)) for at in tree.super_peers}
        return build.hierarchy(found.load(), groups, tree.external_peers(), options)
    return _make_flat_members(
        found.load(),
        config,
        {**_make_run_options(found.load(), config, seed, channels), **options},
    )


def _make_user_members(
    config: SimulationConfig, seed: int, channels: Channels
) -> Mapping[int, Protocol]:
    try:
        made = load_class(config.protocol)
    except InputError as error:
        raise make_error("protocol.name", str(error)) from error
    stand_in = "tv" if made.addressing is Addressing.TOPICS else "unordered"
    if made.addressing is Addressing.MEMBERS:
        stand_in = "ses"
    # Check topology, workload and links with a protocol of the same kind.
    check_fit(replace(config, protocol=stand_in, variant="", options={}))
    try:
        return _make_flat_members(
            made,
            config,
            {**_make_run_options(made, config, seed, channels), **config.options},
        )
    except MemoryError:
        raise  # not caused by the class
    except Exception as error:  # a user's constructor may raise anything
        file = config.protocol.rpartition(":")[0]
        what = str(not_made(made, file, config.options, error))
        raise make_error("protocol.options" if config.options else "protocol.name", what) from error


def _make_run_options(
    factory: Factory, config: SimulationConfig, seed: int, channels: Channels
) -> dict[str, Any]:
    accepted = options_of(factory)
    given: dict[str, Any] = {}
    if "bounds" in accepted and "bounds" not in config.options:
        given["bounds"] = compute_bounds(config, channels)
    if "subscriptions" in accepted and isinstance(config.topology, PubSub):
        topics = enumerate(draw_subscriptions(config.topology, seed))
        given["subscriptions"] = Subscriptions(dict(topics))
    return given


def _make_flat_members(
    factory: Factory, config: SimulationConfig, options: Mapping[str, Any]
) -> Mapping[int, Protocol]:
    assert isinstance(config.topology, Mesh | PubSub)
    return build.flat(factory, range(config.topology.size), plain_options(options))


def _compute_idle_timeout_us(config: SimulationConfig, max_delay_us: int, recovers: bool) -> int:
    options = config.options
    if not is_file_target(config.protocol):
        options = {**entry(config.protocol).options(config.variant), **options}
    spans = [value for name, value in options.items() if name.endswith("_s")]
    longest_s = max([2.0, *(float(one) for one in spans if isinstance(one, int | float))])
    waits_us = 4 * (max_delay_us + round(2e6 * config.clocks.accuracy_s))
    return round((10 if recovers else 3) * longest_s * 1e6) + waits_us
