"""Targets of a check: a built-in protocol, FILE.py:CLASS, or what FILE.py:FUNCTION returns."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from antecede.core.protocols import Factory
from antecede.core.protocols import factory as build
from antecede.core.protocols.options import read_options
from antecede.errors import InputError, LocalError
from antecede.lab.check.harness.group_under_test import GroupUnderTest, flat, hierarchy
from antecede.lab.check.harness.guarded_calls import called, is_own, said, watching
from antecede.lab.check.loader import check_member, line_in, load_class, load_named

_EXAMPLE = "docs/own-protocol.md has an example"
_SMALLEST = {1: (0,)}, (2,)
_ROLES = {0: "internal peer", 1: "super peer", 2: "external peer"}


class Target(NamedTuple):
    """What is to be judged, and how to make it."""

    name: str
    factory: Factory
    """The class, or with `topology` the function that makes all roles.

    Such a function is called with a topology and the options, and returns address -> process.
    """
    topology: Factory | None = None
    """Called with super peer -> internal peers, and external peers, all by address."""
    options: Mapping[str, Any] = {}

    @property
    def parents(self) -> int:
        """Most messages that one message may answer."""
        return 2 if self.options.get("several_parents") else 1

    def flat(self, size: int, offsets: tuple[int, ...] = ()) -> GroupUnderTest:
        """Return a group of so many alike members, whose clocks are off by this."""
        return flat(self.name, self.factory, size, self.options, offsets)

    def hierarchy(self, groups: tuple[int, ...], external: int) -> GroupUnderTest:
        """Return internal groups of these sizes, a super peer each, and external peers."""
        assert self.topology is not None
        return hierarchy(self.name, self.factory, self.topology, groups, external, self.options)


def load_target(text: str, options: Iterable[tuple[str, str]] = ()) -> Target:
    """Return the target of FILE.py:CLASS or FILE.py:FUNCTION; `options` by name and text.

    Raises InputError for a file, class or function that cannot be used, and OptionError for an
    option that there is not.
    """
    given = tuple(options)
    if not inspect.isfunction(function := load_named(text)):
        made = load_class(text, given)
        return Target(text, made, None, read_options(text, made, given))
    file = text.rpartition(":")[0]
    found = _returned(function, file)
    try:
        chosen = {**found.options, **read_options(text, found.factory, given)}
    except LocalError as error:
        raise InputError(str(error), path=file) from error
    target = found._replace(name=text, options=chosen)
    _try(target, function.__name__, file)
    return target


def _returned(function: Callable[..., Any], file: str) -> Target:
    """Return what a function of the user's gives back. Raises InputError if it is no target."""
    name, line = function.__name__, function.__code__.co_firstlineno
    try:
        inspect.signature(function).bind()
    except TypeError as error:
        what = f"{name}{inspect.signature(function)} takes arguments, and is called without any"
        hint = f"return Target(name, {name}, Topology) from a function without arguments"
        raise InputError(f"{what}: {hint}; {_EXAMPLE}", path=file, line=line) from error
    try:
        with watching():
            found = called(function)
    except BaseException as error:
        if is_own(error):
            raise
        at = line_in(error, Path(file)) or line
        raise InputError(f"{name}() fails: {said(error)}", path=file, line=at) from error
    if not isinstance(found, Target):
        kind = type(found).__name__
        what = f"{name}() returns a {kind}, not an antecede.lab.check.target.Target; {_EXAMPLE}"
        raise InputError(what, path=file, line=line)
    for part, is_called in (("factory", True), ("topology", found.topology is not None)):
        if is_called and not callable(getattr(found, part)):
            what = f"the {part} of the Target of {name}() is {getattr(found, part)!r}"
            raise InputError(f"{what}; it is a class or a function", path=file, line=line)
    return found


def _try(target: Target, name: str, file: str) -> None:
    """Make the smallest group, so that misfits are named before any search."""
    if target.topology is None:
        make = target.flat(2).make
    else:
        groups = target.factory, *_SMALLEST, target.options
        make = partial(build.hierarchy, *groups, topology=target.topology)
    try:
        with watching():
            made = called(make)
    except BaseException as error:
        if is_own(error):
            raise
        what = f"the smallest group of {name}() cannot be made: {said(error)}"
        raise InputError(what, path=file, line=line_in(error, Path(file))) from error
    if not isinstance(made, Mapping):
        what = f"the factory of {name}() returns a {type(made).__name__}, not address -> process"
        raise InputError(what, path=file)
    if target.topology is not None and made.keys() != _ROLES.keys():
        lacking = [f"{at} ({role})" for at, role in _ROLES.items() if at not in made]
        more = [str(at) for at in made if at not in _ROLES]
        what = f"lacks address {', '.join(lacking)}" if lacking else f"adds {', '.join(more)}"
        raise InputError(
            f"the factory of {name}() makes no process for each address: of the topology with "
            f"super peer 1, internal peer 0 and external peer 2 it {what}",
            path=file,
        )
    for at, member in made.items():
        role = f"{_ROLES[at]} of {name}()" if target.topology is not None else f"{name}()"
        check_member(member, role, file)
