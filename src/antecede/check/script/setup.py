"""From the setting of a scenario to protocol objects: numbers, options, topology.

Flat groups are numbered in the order in which the file names the members, from 0; a newcomer
gets the next number. In a hierarchy super peers come first, from 1, then external and then
internal peers, so that the identifiers of Evropeytsev et al.'s external group come out as printed.
Options are the keyword arguments of the protocol's class; their text is read by the type declared
there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from antecede.check.group_under_test import GroupUnderTest
from antecede.check.loader import is_file_target, load_class
from antecede.check.script.actions import Join
from antecede.check.script.parse import Scenario, Setting
from antecede.check.timing import TimingModel
from antecede.errors import LocalError, ScenarioError
from antecede.protocols import build
from antecede.protocols.base import Protocol
from antecede.protocols.build import Factory
from antecede.protocols.options import options_of, read_options
from antecede.protocols.registry import ENTRIES, entry, of_order
from antecede.protocols.topics.subscriptions import Subscriptions


def group_of(scenario: Scenario) -> GroupUnderTest:
    """Return the group of a scenario; raises ScenarioError and LocalError for what cannot be.

    FILE.py of a protocol of one's own is looked for beside the scenario; raises InputError when
    it cannot be used, OptionError for an option that it does not have. Arrivals are by hand: no
    delay is enforced.
    """
    setting = scenario.setting
    factory, flat = _factory(setting, Path(scenario.path).parent)
    options = read_options(setting.protocol, factory, setting.options)
    if flat and not setting.members:
        raise ScenarioError(
            f"all members of {setting.protocol} are alike; name them with 'members NAME ...'"
        )
    if not flat and setting.members:
        raise ScenarioError(
            f"{setting.protocol} has several roles; name them with "
            "'internal SUPER_PEER: PEER ...' and 'external PEER ...'"
        )
    if not flat:
        return _hierarchy(factory, setting, options)
    joining = [one.action.at for one in scenario.commands if isinstance(one.action, Join)]
    return _flat(factory, setting, options, joining)


def _flat(
    factory: Factory, setting: Setting, options: Mapping[str, Any], joining: Iterable[str]
) -> GroupUnderTest:
    names = dict(enumerate(setting.members))
    subscribers = (name for name, _ in setting.subscriptions)
    # A newcomer has the next number; who subscribes and never joins comes last.
    everybody = dict.fromkeys((*setting.members, *joining, *subscribers))
    number = {name: at for at, name in enumerate(everybody)}
    told = {**options, **_told(factory, setting, number)}

    def newcomer(me: int, members: Iterable[int], name: str) -> Protocol:
        return build.member(factory, me, members, told, name)

    def make() -> dict[int, Protocol]:
        return {at: newcomer(at, names, name) for at, name in names.items()}

    if strangers := [name for name, _ in setting.clocks if name not in setting.members]:
        raise LocalError(f"a clock is set for {strangers[0]}, who is not in the group")
    return GroupUnderTest(
        setting.protocol,
        names,
        make,
        newcomer,
        setting.options,
        physics=TimingModel({number[name]: offset for name, offset in setting.clocks}),
        subscriptions={number[at]: frozenset(topics) for at, topics in setting.subscriptions},
    )


def _told(factory: Factory, setting: Setting, number: Mapping[str, int]) -> dict[str, Any]:
    """Return bounds and subscriptions as options, by number."""
    told: dict[str, Any] = {}
    if setting.bounds is not None:
        told["bounds"] = setting.bounds
    if setting.subscriptions:
        told["subscriptions"] = Subscriptions(dict(setting.subscriptions))
    if unused := sorted(told.keys() - options_of(factory).keys()):
        raise ScenarioError(f"{setting.protocol} takes no {unused[0]}: leave these lines out")
    return build.numbered(told, number)


def _hierarchy(factory: Factory, setting: Setting, options: Mapping[str, Any]) -> GroupUnderTest:
    supers = [name for name, _ in setting.internal]
    inner = [name for _, peers in setting.internal for name in peers]
    names = dict(enumerate((*supers, *setting.external, *inner), start=1))
    number = {name: at for at, name in names.items()}
    groups = {number[sp]: tuple(number[peer] for peer in peers) for sp, peers in setting.internal}
    external = tuple(number[name] for name in setting.external)
    make = partial(build.hierarchy, factory, groups, external, options, names)
    return GroupUnderTest(
        setting.protocol, names, make, None, setting.options, tuple(setting.internal)
    )


def _factory(setting: Setting, folder: Path) -> tuple[Factory, bool]:
    """Return what makes the members, and whether they are all alike."""
    name = setting.protocol
    if is_file_target(name):
        return load_class(str(folder / name), setting.options), True
    try:
        known = entry(name)
    except LocalError as error:
        there = of_order(name) or f"there are {', '.join(ENTRIES)}, or your own FILE.py:CLASS"
        raise ScenarioError(f"no protocol is called '{name}'; {there}") from error
    return known.load(), known.flat
