"""Texts of the command meter."""

from __future__ import annotations

import argparse
import json
import textwrap
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from antecede.cli.text_table import width_of_terminal
from antecede.core.clocks import Bounds
from antecede.core.protocols.topics import Subscriptions
from antecede.errors import InputError
from antecede.formatting import counted
from antecede.tables.false_causality import TOPIC_CAUSAL, Summary
from antecede.tables.trace import DELIVER, RECEIVE, time_text
from antecede.tables.trace.user_tables import describe_guessed_columns


class Known(NamedTuple):
    """Names that a trace has."""

    kinds: frozenset[str]
    members: frozenset[str]
    topics: frozenset[str]


class Asked(NamedTuple):
    """Arguments of a call of the meter."""

    rules: list[str] | None
    observers: list[str] | None
    bounds: Bounds[str] | None
    subscriptions: Subscriptions[str] | None
    relation: str | None
    against: str | None
    to_everybody: bool

    def arguments(self) -> dict[str, Any]:
        """Return what both engines are asked, by the names of their parameters."""
        found = self._asdict()
        return {"truth": found.pop("against"), **found}

    def check(self, known_in: Callable[[], Known]) -> None:
        """Raise InputError for what the trace does not have; asks for its names only if needed."""
        by_topics = self.against == TOPIC_CAUSAL or self.subscriptions is not None
        if not (by_topics or self.to_everybody):
            return
        known = known_in()
        if by_topics:
            _check_known(known, self.against, self.subscriptions)
        if self.to_everybody and not {RECEIVE, DELIVER} & known.kinds:
            raise InputError("--to-everybody: this trace tells of nothing that was received")


def report(args: argparse.Namespace, found: Summary, details: Mapping[str, Any], bad: int) -> None:
    """Print what was found; `details` and the number of bad records are those of reading."""
    found.causes = found.causes.with_read(details)
    if args.json:
        print(json.dumps(found.to_dict(), indent=2, ensure_ascii=False))
        return
    width = width_of_terminal()
    for line in found.lines(each=args.each, witnesses=args.witnesses):
        print(_wrapped(line, width))
    if said := describe_guessed_columns(details):
        print(_wrapped(f"columns     {said}", width))
    for said in time_text.notes(details):
        print(_wrapped(f"times       {said}", width))
    if bad:
        print(f"quarantined {counted(bad, 'bad record')}; antecede audit names them")


LABEL = 12


def _wrapped(line: str, width: int) -> str:
    """Wrap a line of words under its label; a table has several lines, and stays."""
    if "\n" in line or len(line) <= width:
        return line
    label = line[:LABEL]
    text = textwrap.wrap(line[LABEL:], width - LABEL, break_on_hyphens=False)
    return label + ("\n" + " " * LABEL).join(text)


def _check_known(
    known: Known, against: str | None, subscriptions: Subscriptions[str] | None
) -> None:
    """Refuse topics and members that the trace does not have: all counts would be 0."""
    if against == TOPIC_CAUSAL and not known.topics:
        raise InputError(f"--against {TOPIC_CAUSAL}: no message of this trace has a topic")
    for member, topics in (subscriptions.topics if subscriptions else {}).items():
        if member not in known.members:
            raise InputError(f"--subscribe: there is no member {member!r} in this trace")
        if unknown := sorted(set(topics) - known.topics):
            some = ", ".join(sorted(known.topics)[:20]) or "none"
            raise InputError(f"--subscribe: no message is about {unknown[0]!r}; topics: {some}")
