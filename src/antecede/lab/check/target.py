"""Targets of a check: a built-in protocol, FILE.py:CLASS, or the result of FILE.py:FUNCTION."""

from __future__ import annotations

import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from antecede.core.protocols import MOST_MEMBERS, Factory, Guarantee, Protocol
from antecede.core.protocols import factory as build
from antecede.core.protocols.options import read_options, with_trial
from antecede.errors import InputError, LocalError
from antecede.lab.check.harness.group_under_test import GroupUnderTest, hierarchy, make_flat_group
from antecede.lab.check.harness.guarded_calls import (
    call_guarded,
    format_error,
    in_words,
    raise_own,
    watch_calls,
)

LOAD_TIMEOUT_S = 60.0
_HINT = (
    "derive it from antecede.core.protocols.base.Protocol; docs/design/checking.md has an example"
)
_EXAMPLE = "docs/own-protocol.md has an example"
_SMALLEST = {1: (0,)}, (2,)
_ROLES = {0: "internal peer", 1: "super peer", 2: "external peer"}


class Target(NamedTuple):
    """Protocol under test, and its factory."""

    name: str
    factory: Factory
    """The class, or with `topology` a function (topology, options) -> {address: process}."""
    topology: Factory | None = None
    """Function (internal peers by super peer, external peers), by address."""
    options: Mapping[str, Any] = {}

    @property
    def parents(self) -> int:
        """Maximum number of messages that one message may reply to."""
        return 2 if self.options.get("several_parents") else 1

    def flat(self, size: int, offsets: tuple[int, ...] = ()) -> GroupUnderTest:
        """Return a group of `size` identical members; `offsets`: of their clocks, ns."""
        return make_flat_group(self.name, self.factory, size, self.options, offsets)

    def hierarchy(self, groups: tuple[int, ...], external: int) -> GroupUnderTest:
        """Return internal groups of these sizes, each with a super peer, and external peers."""
        assert self.topology is not None
        return hierarchy(self.name, self.factory, self.topology, groups, external, self.options)


def load_target(text: str, options: Iterable[tuple[str, str]] = ()) -> Target:
    """Return the target of FILE.py:CLASS or FILE.py:FUNCTION; `options`: names and texts.

    Raises InputError for an unusable file, class or function, OptionError for an unknown option.
    """
    parsed_options = tuple(options)
    if not inspect.isfunction(function := load_object(text)):
        cls = load_class(text, parsed_options)
        return Target(text, cls, None, read_options(text, cls, parsed_options))
    file = text.rpartition(":")[0]
    result = _call_factory(function, file)
    try:
        chosen = {**result.options, **read_options(text, result.factory, parsed_options)}
    except LocalError as error:
        raise InputError(str(error), path=file) from error
    target = result._replace(name=text, options=chosen)
    _try_target(target, function.__name__, file)
    return target


def _call_factory(function: Callable[..., Any], file: str) -> Target:
    name, line = function.__name__, function.__code__.co_firstlineno
    try:
        inspect.signature(function).bind()
    except TypeError as error:
        what = f"{name}{inspect.signature(function)} takes arguments; it is called without any"
        hint = f"return Target(name, {name}, Topology) from a function without arguments"
        raise InputError(f"{what}: {hint}; {_EXAMPLE}", path=file, line=line) from error
    try:
        with watch_calls():
            result = call_guarded(function)
    except BaseException as error:
        raise_own(error)
        at = find_line(error, Path(file)) or line
        raise InputError(f"{name}() fails: {format_error(error)}", path=file, line=at) from error
    if not isinstance(result, Target):
        kind = type(result).__name__
        what = f"{name}() returns a {kind}, not an antecede.lab.check.target.Target; {_EXAMPLE}"
        raise InputError(what, path=file, line=line)
    for part, is_called in (("factory", True), ("topology", result.topology is not None)):
        if is_called and not callable(getattr(result, part)):
            what = f"the {part} of the Target of {name}() is {getattr(result, part)!r}"
            raise InputError(f"{what}; expected a class or a function", path=file, line=line)
    return result


def _try_target(target: Target, name: str, file: str) -> None:
    if target.topology is None:
        make = target.flat(2).make
    else:
        groups = target.factory, *_SMALLEST, target.options
        make = partial(build.hierarchy, *groups, topology=target.topology)
    try:
        with watch_calls():
            made = call_guarded(make)
    except BaseException as error:
        raise_own(error)
        what = f"construction of the smallest group of {name}() failed: {format_error(error)}"
        raise InputError(what, path=file, line=find_line(error, Path(file))) from error
    if not isinstance(made, Mapping):
        what = f"the factory of {name}() returns a {type(made).__name__}, not address -> process"
        raise InputError(what, path=file)
    if target.topology is not None and made.keys() != _ROLES.keys():
        lacking = [f"{at} ({role})" for at, role in _ROLES.items() if at not in made]
        more = [str(at) for at in made if at not in _ROLES]
        what = f"lacks address {', '.join(lacking)}" if lacking else f"adds {', '.join(more)}"
        raise InputError(
            f"the factory of {name}() must return one process per address: for the topology with "
            f"super peer 1, internal peer 0 and external peer 2 it {what}",
            path=file,
        )
    for at, member in made.items():
        role = f"{_ROLES[at]} of {name}()" if target.topology is not None else f"{name}()"
        check_member(member, role, file)


def is_file_target(target: str) -> bool:
    """Return True if a target names a user's file, not a built-in protocol."""
    return ".py" in target


def load_class(target: str, options: Iterable[tuple[str, str]] = ()) -> type[Protocol]:
    """Return the class of FILE.py:CLASS, tried once with `options` (names and texts).

    Raises OptionError for an unknown option, and InputError for a missing or failing file.
    InputError also if the class is not derived from `Protocol`, lacks `send` or `receive`, cannot
    be called as CLASS(me, members), or has no hashable snapshot.
    """
    file, _, name = target.rpartition(":")
    cls = load_object(target)
    if inspect.isfunction(cls):
        what = f"{name} is a function; expected a class"
        raise InputError(f"{what}; only `antecede check` and scenarios take functions", path=file)
    if not isinstance(cls, type) or not issubclass(cls, Protocol):
        raise InputError(f"{name} is not a protocol class: {_HINT}", path=file)
    lacking = [m for m in ("send", "receive") if getattr(cls, m) is getattr(Protocol, m)]
    if lacking:
        raise InputError(f"{name} does not implement {' and '.join(lacking)}", path=file)
    try:
        given = read_options(target, cls, options)
    except LocalError as error:
        raise InputError(
            str(error), path=file, line=_find_definition_line(cls, Path(file))
        ) from error
    _try_class(cls, file, given)
    return cls


def load_object(target: str) -> Any:
    """Return the class or function of FILE.py:NAME; raises InputError."""
    file, _, name = target.rpartition(":")
    if not file or not name:
        raise InputError("missing class name; write FILE.py:CLASS", path=target)
    loaded = getattr(_import_file(Path(file)), name, None)
    if loaded is None:
        raise InputError(f"unknown class or function {name}", path=file)
    return loaded


def _import_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise InputError("file not found", path=str(path))
    name = f"antecede_checked_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InputError("is not a Python file", path=str(path))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        with watch_calls(LOAD_TIMEOUT_S):
            call_guarded(spec.loader.exec_module, module)
    except BaseException as error:  # a file may call sys.exit
        raise_own(error)
        line = getattr(error, "lineno", None) or find_line(error, path)
        what = f"does not run: {format_error(error)}"
        raise InputError(what, path=str(path), line=line) from error
    return module


def _try_class(cls: type[Protocol], file: str, options: Mapping[str, Any]) -> None:
    try:
        # The class declares its required options (bounds, subscriptions).
        with watch_calls():
            tried = call_guarded(with_trial, cls, range(MOST_MEMBERS), options)
            member = call_guarded(cls, 0, (0, 1), **tried)
            call_guarded(member.snapshot)
    except BaseException as error:
        raise_own(error)
        raise not_made(cls, file, options, error) from error
    check_member(member, cls.__name__, file)


def check_member(member: Any, name: str, file: str) -> None:
    """Raise InputError unless a member is a protocol with a guarantee and a hashable snapshot."""
    if not isinstance(member, Protocol):
        raise InputError(f"{name} is a {type(member).__name__}, not a protocol: {_HINT}", path=file)
    needed = ("send", "receive") if member.application else ("receive",)
    lacking = [m for m in needed if getattr(type(member), m) is getattr(Protocol, m)]
    if lacking:
        raise InputError(f"{name} does not implement {' and '.join(lacking)}", path=file)
    if not isinstance(member.guarantee, Guarantee):
        what = f"{name}.guarantee is a {type(member.guarantee).__name__}, not a Guarantee"
        raise InputError(what, path=file)
    try:
        with watch_calls():
            hash(call_guarded(member.snapshot))
    except TypeError as error:
        what = f"the snapshot of {name} is not hashable ({error}); use tuples"
        raise InputError(what, path=file) from error


def not_made(
    cls: type[Protocol], file: str, options: Mapping[str, Any], error: BaseException
) -> InputError:
    """Return an InputError for a member that could not be constructed, with its line."""
    line = find_line(error, Path(file))
    given = "".join(f", {name}={value!r}" for name, value in options.items())
    # A LocalError is about the class, wherever it is raised.
    clear = line is not None or isinstance(error, LocalError)
    words = format_error(error) if clear else in_words(error)
    what = f"{cls.__name__}(me, members{given}) fails: {words}"
    return InputError(what, path=file, line=line or _find_definition_line(cls, Path(file)))


def _find_definition_line(cls: type[Protocol], path: Path) -> int | None:
    code = getattr(vars(cls).get("__init__"), "__code__", None)
    if code is not None and Path(code.co_filename) == path.absolute():
        return int(code.co_firstlineno)
    try:
        return inspect.getsourcelines(cls)[1]
    except (OSError, TypeError):  # a class without source text
        return None


def find_line(error: BaseException, path: Path) -> int | None:
    """Return the last line of the user's file in an error's traceback."""
    own = path.absolute()
    passed = traceback.walk_tb(error.__traceback__)
    lines = [line for frame, line in passed if Path(frame.f_code.co_filename) == own]
    return lines[-1] if lines else None
