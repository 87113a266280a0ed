"""From the setting of a scenario to protocol objects: numbers, options, topology.

Flat groups are numbered in the order in which the file names the members, from 0; a newcomer
gets the next number. In a hierarchy super peers come first, from 1, then external and then
internal peers, so that the identifiers of Evropeytsev et al.'s external group come out as printed.
Options are the keyword arguments of the protocol's class; their text is read by the type declared
there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from antecede.check.loader import is_file_target, load_class
from antecede.check.script.parse import Setting
from antecede.check.timing import TimingModel
from antecede.errors import LocalError, OptionError, ScenarioError
from antecede.protocols import build
from antecede.protocols.base import Protocol, Relation
from antecede.protocols.build import Factory, relation_of
from antecede.protocols.options import options_of, read_options
from antecede.protocols.registry import ENTRIES, entry, of_order
from antecede.protocols.topics.subscriptions import Subscriptions


class Cast(NamedTuple):
    """The members of a scenario: protocol objects and names by address."""

    protocols: dict[int, Protocol]
    names: dict[int, str]
    """Everybody who is or was in the group, by address."""
    relation: Relation
    make: Callable[[int, Iterable[int]], Protocol] | None
    """Makes one more flat member from its number and all numbers; None: nobody can join."""
    physics: TimingModel = TimingModel()
    """Clocks as the scenario sets them. Its arrivals are by hand: no delay is enforced."""
    subscriptions: Mapping[str, tuple[str, ...]] = {}
    """Topics by name."""

    def newcomer(self, name: str, present: Iterable[int]) -> tuple[int, Protocol]:
        """Return the address and the protocol object of one more member."""
        if self.make is None:
            raise LocalError("scenarios let members join flat groups only")
        at = max(self.names) + 1
        made = self.make(at, (*present, at))
        self.names[at] = name
        return at, made


def cast_members(setting: Setting, folder: Path = Path()) -> Cast:
    """Make the protocol objects of a setting; raises ScenarioError for what cannot be.

    `folder` is where the FILE.py of a protocol of one's own is looked for; raises InputError
    when it cannot be used.
    """
    try:
        factory, flat = _factory(setting.protocol, folder, setting.options)
    except OptionError as error:
        raise ScenarioError(error.message) from error
    options = _options(factory, setting)
    if flat and not setting.members:
        raise ScenarioError(
            f"all members of {setting.protocol} are alike; name them with 'members NAME ...'"
        )
    if not flat and setting.members:
        raise ScenarioError(
            f"{setting.protocol} has several roles; name them with "
            "'internal SUPER_PEER: PEER ...' and 'external PEER ...'"
        )
    try:
        return _flat(factory, setting, options) if flat else _hierarchy(factory, setting, options)
    except (LocalError, TypeError) as error:
        raise ScenarioError(f"protocol {setting.protocol}: {error}") from error


def _flat(factory: Factory, setting: Setting, options: Mapping[str, Any]) -> Cast:
    names = dict(enumerate(setting.members))
    options = {**options, **_timing(factory, setting)}

    def make(me: int, members: Iterable[int]) -> Protocol:
        return build.member(factory, me, members, options, names.get(me, str(me)))

    protocols = {at: make(at, names) for at in names}
    number = {name: at for at, name in names.items()}
    if strangers := [name for name, _ in setting.clocks if name not in number]:
        raise LocalError(f"a clock is set for {strangers[0]}, who is not in the group")
    physics = TimingModel({number[name]: offset for name, offset in setting.clocks})
    subscribed = dict(setting.subscriptions)
    return Cast(protocols, names, relation_of(protocols), make, physics, subscribed)


def _timing(factory: Factory, setting: Setting) -> dict[str, Any]:
    """Return bounds and subscriptions as options, by number; a newcomer has the next one."""
    numbers = {name: at for at, name in enumerate(setting.members)}
    later = (name for name, _ in setting.subscriptions if name not in numbers)
    everybody = numbers | {name: at for at, name in enumerate(later, start=len(numbers))}
    told: dict[str, Any] = {}
    if setting.bounds is not None:
        told["bounds"] = setting.bounds
    if setting.subscriptions:
        told["subscriptions"] = Subscriptions(dict(setting.subscriptions))
    told = build.numbered(told, everybody)
    if unused := sorted(told.keys() - options_of(factory).keys()):
        raise ScenarioError(f"{setting.protocol} takes no {unused[0]}: leave these lines out")
    return told


def _hierarchy(factory: Factory, setting: Setting, options: Mapping[str, Any]) -> Cast:
    supers = [name for name, _ in setting.internal]
    inner = [name for _, peers in setting.internal for name in peers]
    names = dict(enumerate((*supers, *setting.external, *inner), start=1))
    number = {name: at for at, name in names.items()}
    groups = {number[sp]: tuple(number[peer] for peer in peers) for sp, peers in setting.internal}
    external = tuple(number[name] for name in setting.external)
    protocols = build.hierarchy(factory, groups, external, options, names)
    return Cast(protocols, names, relation_of(protocols), None)


def _factory(
    name: str, folder: Path, options: Iterable[tuple[str, str]] = ()
) -> tuple[Factory, bool]:
    """Return what makes the members, and whether they are all alike."""
    if is_file_target(name):
        return load_class(str(folder / name), options), True
    try:
        found = entry(name)
        return found.load(), found.flat
    except LocalError as error:
        known = of_order(name) or f"there are {', '.join(ENTRIES)}, or your own FILE.py:CLASS"
        raise ScenarioError(f"no protocol is called '{name}'; {known}") from error


def _options(factory: Factory, setting: Setting) -> dict[str, Any]:
    """Return the keyword arguments that the options of the setting stand for."""
    try:
        return read_options(setting.protocol, factory, setting.options)
    except OptionError as error:
        raise ScenarioError(error.message) from error
