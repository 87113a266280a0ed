"""From the setting of a scenario to protocol objects: numbers, options, topology.

Members are numbered in the order in which the file names them, from 0; a newcomer gets the
next number. Options are keyword arguments of the protocol's class; their text is read by the
type that the class declares.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, get_type_hints

from antecede.check.scenario_parse import Setting
from antecede.errors import LocalError, ScenarioError
from antecede.protocols.base import Protocol, Relation

_WORDS: Mapping[str, Any] = {"true": True, "false": False, "none": None}


class Cast(NamedTuple):
    """The members of a scenario: protocol objects and names by address."""

    protocols: dict[int, Protocol]
    names: dict[int, str]
    """Everybody who is or was in the group, by address."""
    relation: Relation
    make: Callable[[int, Iterable[int]], Protocol]
    """Makes one more flat member from its number and the numbers of all members."""

    @property
    def applications(self) -> tuple[int, ...]:
        """Return the addresses of members that send and deliver."""
        return tuple(at for at, member in self.protocols.items() if member.application)

    def newcomer(self, name: str, present: Iterable[int]) -> tuple[int, Protocol]:
        """Return the address and the protocol object of one more member."""
        at = max(self.names) + 1
        self.names[at] = name
        return at, self.make(at, (*present, at))


def cast_members(setting: Setting) -> Cast:
    """Make the protocol objects of a setting; raises ScenarioError for what cannot be."""
    cls = _find(setting.protocol)
    options = _options(cls, setting)
    names = dict(enumerate(setting.members))

    def make(me: int, members: Iterable[int]) -> Protocol:
        try:
            return cls(me, members, **options)
        except LocalError as error:
            raise ScenarioError(f"protocol {setting.protocol}: {error}") from error

    protocols = {at: make(at, names) for at in names}
    return Cast(protocols, names, cls.guarantee.relation, make)


def _options(cls: type[Protocol], setting: Setting) -> dict[str, Any]:
    """Return the keyword arguments that the options of the setting stand for."""
    accepted = {
        name: parameter
        for name, parameter in inspect.signature(cls).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    }
    hints = get_type_hints(cls.__init__)
    found: dict[str, Any] = {}
    for name, text in setting.options:
        if name not in accepted:
            known = ", ".join(accepted) or "none"
            raise ScenarioError(
                f"protocol {setting.protocol} has no option '{name}'; options are: {known}"
            )
        found[name] = _value(name, text, hints.get(name, str))
    return found


def _value(name: str, text: str, hint: Any) -> Any:
    """Read the text of an option by its type: true, false, none, a number, or a word."""
    word = text.lower()
    if word in _WORDS:
        return _WORDS[word]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    if hint in (bool, int, float):
        allowed = "true or false" if hint is bool else "a number"
        raise ScenarioError(f"option {name}={text}: {allowed} is allowed")
    return text


def _find(name: str) -> type[Protocol]:
    from antecede.protocols.fifo import Fifo
    from antecede.protocols.sb import SemanticOrder
    return {"fifo": Fifo, "sb": SemanticOrder}[name]
