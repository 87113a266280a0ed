"""Group of a scenario: numbers, options, topology.

Flat groups are numbered from 0 in the order of the file, then joining members. In a hierarchy super
peers come first, from 1, then external and internal peers, as in the external group of Evropeytsev
et al.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from antecede.core.protocols import ENTRIES, Factory, Protocol, entry, of_order
from antecede.core.protocols import factory as build
from antecede.core.protocols.options import options_of, read_options
from antecede.core.protocols.topics import Subscriptions
from antecede.errors import LocalError, ScenarioError
from antecede.lab.check.harness.group_under_test import GroupUnderTest
from antecede.lab.check.harness.timing import TimingModel
from antecede.lab.check.scenario.actions import Join
from antecede.lab.check.scenario.parse import Scenario, Setup
from antecede.lab.check.target import Target, is_file_target, load_target


def make_group(scenario: Scenario) -> GroupUnderTest:
    """Return the group of a scenario; a user's file is relative to the scenario."""
    setup = scenario.setup
    target, flat = _load_protocol(setup, Path(scenario.path).parent)
    if flat and not setup.members:
        raise ScenarioError(
            f"{setup.protocol} has one role; list its members with 'members NAME ...'"
        )
    if not flat and setup.members:
        raise ScenarioError(
            f"{setup.protocol} has several roles; list its members with "
            "'internal SUPER_PEER: PEER ...' and 'external PEER ...'"
        )
    if not flat:
        return _make_hierarchy(target, setup)
    joining = [one.action.at for one in scenario.commands if isinstance(one.action, Join)]
    return _make_flat_group(target, setup, joining)


def _make_flat_group(target: Target, setup: Setup, joining: Iterable[str]) -> GroupUnderTest:
    names = dict(enumerate(setup.members))
    subscribers = (name for name, _ in setup.subscriptions)
    # Joining members follow in order, then subscribers that never join.
    everybody = dict.fromkeys((*setup.members, *joining, *subscribers))
    number = {name: at for at, name in enumerate(everybody)}
    options = {**target.options, **_make_options(target.factory, setup, number)}

    def newcomer(me: int, members: Iterable[int], name: str) -> Protocol:
        return build.member(target.factory, me, members, options, name)

    def make() -> dict[int, Protocol]:
        return {at: newcomer(at, names, name) for at, name in names.items()}

    if strangers := [name for name, _ in setup.clocks if name not in setup.members]:
        raise LocalError(f"clock is set for {strangers[0]}, which is not a member")
    return GroupUnderTest(
        setup.protocol,
        names,
        make,
        newcomer,
        setup.options,
        timing=TimingModel({number[name]: offset for name, offset in setup.clocks}),
        subscriptions={number[at]: frozenset(topics) for at, topics in setup.subscriptions},
    )


def _make_options(factory: Factory, setup: Setup, number: Mapping[str, int]) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if setup.bounds is not None:
        options["bounds"] = setup.bounds
    if setup.subscriptions:
        options["subscriptions"] = Subscriptions(dict(setup.subscriptions))
    if unused := sorted(options.keys() - options_of(factory).keys()):
        raise ScenarioError(f"{setup.protocol} does not support {unused[0]}; omit these lines")
    return build.replace_names(options, number)


def _make_hierarchy(target: Target, setup: Setup) -> GroupUnderTest:
    supers = [name for name, _ in setup.internal]
    inner = [name for _, peers in setup.internal for name in peers]
    names = dict(enumerate((*supers, *setup.external, *inner), start=1))
    number = {name: at for at, name in names.items()}
    groups = {number[sp]: tuple(number[peer] for peer in peers) for sp, peers in setup.internal}
    external = tuple(number[name] for name in setup.external)
    factory, topology = target.factory, target.topology
    make = partial(build.hierarchy, factory, groups, external, target.options, names, topology)
    return GroupUnderTest(setup.protocol, names, make, None, setup.options, tuple(setup.internal))


def _load_protocol(setup: Setup, folder: Path) -> tuple[Target, bool]:
    name = setup.protocol
    if is_file_target(name):
        own = load_target(str(folder / name), setup.options)
        return own, own.topology is None
    try:
        known = entry(name)
    except LocalError as error:
        there = of_order(name) or f"choose from {', '.join(ENTRIES)}, or your own FILE.py:CLASS"
        raise ScenarioError(f"unknown protocol '{name}'; {there}") from error
    factory = known.load()
    options = read_options(setup.protocol, factory, setup.options)
    return Target(name, factory, None, options), known.flat
