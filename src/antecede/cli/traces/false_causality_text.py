"""Query and output of `antecede false-causality`."""

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
from antecede.formatting import pluralize
from antecede.tables.false_causality import TOPIC_CAUSAL, Summary
from antecede.tables.trace import DELIVER, RECEIVE, time_text
from antecede.tables.trace.user_tables import describe_guessed_columns


class TraceNames(NamedTuple):
    """Kinds, members and topics of a trace."""

    kinds: frozenset[str]
    members: frozenset[str]
    topics: frozenset[str]


class FalseCausalityQuery(NamedTuple):
    """Arguments of the analysis."""

    rules: list[str] | None
    observers: list[str] | None
    bounds: Bounds[str] | None
    subscriptions: Subscriptions[str] | None
    relation: str | None
    truth: str | None
    to_everybody: bool

    def to_arguments(self) -> dict[str, Any]:
        """Return the arguments of both engines, by parameter."""
        return self._asdict()

    def check(self, read_names: Callable[[], TraceNames]) -> None:
        """Raise InputError for names that the trace lacks; read its names only if needed."""
        by_topics = self.truth == TOPIC_CAUSAL or self.subscriptions is not None
        if not (by_topics or self.to_everybody):
            return
        names = read_names()
        if by_topics:
            _check_names(names, self.truth, self.subscriptions)
        if self.to_everybody and not {RECEIVE, DELIVER} & names.kinds:
            raise InputError("--broadcast: the trace has no receive events; omit --broadcast")


def report(args: argparse.Namespace, found: Summary, details: Mapping[str, Any], bad: int) -> None:
    """Print the counts; `details` and `bad`: details and bad records of the reader."""
    found.causes = found.causes.with_read(details)
    if args.json:
        print(json.dumps(found.to_dict(), indent=2, ensure_ascii=False))
        return
    width = width_of_terminal()
    for line in found.lines(each=args.per_observer, witnesses=args.witnesses):
        print(_wrap(line, width))
    if text := describe_guessed_columns(details):
        print(_wrap(f"columns     {text}", width))
    for text in time_text.notes(details):
        print(_wrap(f"times       {text}", width))
    if bad:
        print(f"quarantined {pluralize(bad, 'bad record')}; antecede audit lists them")


LABEL = 12


def _wrap(line: str, width: int) -> str:
    """Wrap a line under its label; a table of several lines stays."""
    if "\n" in line or len(line) <= width:
        return line
    label = line[:LABEL]
    text = textwrap.wrap(line[LABEL:], width - LABEL, break_on_hyphens=False)
    return label + ("\n" + " " * LABEL).join(text)


def _check_names(
    names: TraceNames, truth: str | None, subscriptions: Subscriptions[str] | None
) -> None:
    """Raise InputError for topics and members that the trace lacks: all counts would be 0."""
    if truth == TOPIC_CAUSAL and not names.topics:
        raise InputError(f"--truth {TOPIC_CAUSAL}: no message of the trace has a topic")
    for member, topics in (subscriptions.topics if subscriptions else {}).items():
        if member not in names.members:
            some = ", ".join(sorted(names.members)[:20])
            raise InputError(f"--subscribe: unknown member {member!r}; the trace has {some}")
        if unknown := sorted(set(topics) - names.topics):
            some = ", ".join(sorted(names.topics)[:20]) or "none"
            raise InputError(f"--subscribe: unknown topic {unknown[0]!r}; the trace has {some}")
