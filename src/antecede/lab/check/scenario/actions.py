"""Actions of scenarios and counterexamples."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

from antecede.core.clocks import NS, Seconds, down_ns, seconds_text


class Send(NamedTuple):
    """Member `at` sends `label` to members, subscribers of topics or all, in reply to `after`."""

    at: str
    label: str
    after: tuple[str, ...] = ()
    to: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()


class Arrive(NamedTuple):
    """The oldest copy of `label` in flight to `at` arrives; `again`: a copy that arrived before."""

    at: str
    label: str
    again: bool = False


class Lose(NamedTuple):
    """The oldest copy of `label` in flight to `at` is lost."""

    at: str
    label: str


class Join(NamedTuple):
    """A new member `at` joins with the state of `sponsor`."""

    at: str
    sponsor: str


class Leave(NamedTuple):
    """Member `at` leaves; the others learn the number of its last message."""

    at: str


class Tick(NamedTuple):
    """The clock of every member advances by `seconds`."""

    seconds: Seconds


class ShowState(NamedTuple):
    """Print the state of member `at`: the named fields, or all of them."""

    at: str
    fields: tuple[str, ...] = ()


class ShowHeld(NamedTuple):
    """Print the messages that member `at` holds back, and their missing causes."""

    at: str


def make_tick(ns: int) -> Tick:
    """Return a tick of exactly so many nanoseconds."""
    return Tick(Fraction(ns, NS) if ns % NS else ns / NS)


Action: TypeAlias = Send | Arrive | Lose | Join | Leave | Tick | ShowState | ShowHeld


def is_query(action: Action) -> bool:
    """Return True if an action only prints."""
    return isinstance(action, ShowState | ShowHeld)


CONTROL_PREFIXES = ("note-", "ack-")
"""Prefixes of the labels of control messages; the name of the member follows."""


def rename(action: Action, members: Mapping[str, str], messages: Mapping[str, str]) -> Action:
    """Return an action with new names of members and messages, also in control labels."""
    own = {
        f"{word}{old}": f"{word}{new}" for old, new in members.items() for word in CONTROL_PREFIXES
    }
    labels = {**own, **messages}
    tables = {"at": members, "sponsor": members, "to": members, "label": labels, "after": labels}

    def rename_field(field: str, value: Any) -> Any:
        table = tables.get(field, {})
        if isinstance(value, tuple):
            return tuple(table.get(one, one) for one in value)
        return table.get(value, value)

    return type(action)(*(rename_field(*one) for one in action._asdict().items()))


def format_action(action: Action) -> str:
    """Return the line of a scenario file for an action."""
    match action:
        case Send(at, label, after, to, topics):
            parts = (("to", to), ("about", topics), ("after", after))
            clauses = (part for word, names in parts if names for part in (word, *names))
            return " ".join(("send", at, label, *clauses))
        case Arrive(at, label, again):
            return f"arrive {at} {label}{' again' if again else ''}"
        case Lose(at, label):
            return f"lose {at} {label}"
        case Join(at, sponsor):
            return f"join {at} sponsor {sponsor}"
        case Leave(at):
            return f"leave {at}"
        case Tick(seconds):
            return f"tick {seconds_text(down_ns(seconds))}"
        case ShowState(at, fields):
            return " ".join(("state", at, *fields))
        case ShowHeld(at):
            return f"blocked {at}"
