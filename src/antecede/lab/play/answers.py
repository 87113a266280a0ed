"""Facts of exercises, computed from their scenarios and checked by the oracle.

A fact is a line of words:

        held M [after N]                   messages that M holds back, with missing causes
        delivered M [after N]              deliveries of M, in order
        state M [FIELD ...] [after N]      state of M, in the source's notation
        in-flight [after N]                copies in flight
        violations                         deliveries that break the protocol's promise
        causal-violations                  deliveries before a cause
        channels                           channel models of arrivals and deliveries
        before A B                         happened-before of two messages
        cut M=N ...                        consistency of a cut, with a witness
        inside M=N ...                     channel contents of a cut
        greatest M=N ...                   greatest consistent cut at or below
        check PROTOCOL [VARIANT] [members=N] [messages=N]     result of `antecede check`
        snapshot ALGORITHM CHANNELS [members=N] [messages=N]  the same for a snapshot algorithm

`after N`: after the N-th action. All but the last two may end in `with PROTOCOL [option=value
...]`, which runs the scenario under another protocol. Positions count sends and arrivals of a
member.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple

from antecede.core.global_snapshots import ALGORITHMS
from antecede.core.oracle import LOST, RECEIVE, SEND, Cuts, History, Witness
from antecede.core.protocols import Relation
from antecede.errors import ScenarioError
from antecede.formatting import pluralize
from antecede.lab.check import explore, run_check
from antecede.lab.check.harness import DELIVERED, RELEASED
from antecede.lab.check.scenario import (
    VIOLATION,
    Command,
    Scenario,
    ScenarioRun,
    ShowState,
    channel_line,
    describe_wait,
    is_query,
    parse_scenario,
    run_scenario,
    run_to_events,
    under,
)

NOTHING: Final = "nothing"
_SEARCH_LIMITS: Final = {"members", "messages"}


def describe_fact(fact: str) -> str:
    """Return the subject of a fact as text."""
    query = _parse_fact(fact)
    kind, *rest = query.words
    subject = _FACTS[kind][0].format(*rest[:1], rest=", ".join(rest[1:]), all=" ".join(rest))
    subject = subject.replace(", : ", ": ").removesuffix(": ")
    if query.after is not None:
        subject += f", after step {query.after}"
    if query.protocol is not None:
        subject += f", under {' '.join((query.protocol, *map('='.join, query.options)))}"
    return subject


class _FactQuery(NamedTuple):
    words: tuple[str, ...]
    after: int | None
    protocol: str | None
    options: tuple[tuple[str, str], ...]


@cache
def compute_fact(text: str, fact: str) -> str:
    """Return the value of a fact about a scenario; raises ScenarioError."""
    query = _parse_fact(fact)
    if query.words[0] not in _FACTS:
        raise ScenarioError(f"no fact '{query.words[0]}'; choose from {', '.join(_FACTS)}")
    return _FACTS[query.words[0]][1](_make_scenario(text, query), query)


def _parse_fact(fact: str) -> _FactQuery:
    subject, _, override = fact.partition(" with ")
    words = subject.split()
    after = None
    if "after" in words:
        place = words.index("after")
        after = int(words[place + 1])
        words = words[:place]
    protocol, *options = override.split() or [""]
    pairs = tuple((name, value) for name, _, value in (one.partition("=") for one in options))
    return _FactQuery(tuple(words), after, protocol or None, pairs)


def _make_scenario(text: str, query: _FactQuery) -> Scenario:
    made = parse_scenario(text)
    commands = tuple(c for c in made.commands if not is_query(c.action))
    if query.protocol is not None:
        made = under(made, query.protocol)
        setup = made.setup._replace(options=query.options)
        made = made._replace(setup=setup)
    if query.after is not None and not 0 <= query.after <= len(commands):
        raise ScenarioError(f"after {query.after}: the scenario has {len(commands)} actions")
    return made._replace(commands=commands[: query.after])


def _compute_held(scenario: Scenario, query: _FactQuery) -> str:
    member = query.words[1]
    held = [describe_wait(one) for one in run_scenario(scenario).held if one.at == member]
    return "; ".join(held) or NOTHING


def _compute_delivered(scenario: Scenario, query: _FactQuery) -> str:
    done = run_scenario(scenario).occurrences()
    kinds = DELIVERED, RELEASED
    labels = [one.label for one in done if one.at == query.words[1] and one.kind in kinds]
    return ", ".join(labels) or NOTHING


def _compute_state(scenario: Scenario, query: _FactQuery) -> str:
    _, member, *fields = query.words
    asks = Command(0, ShowState(member, tuple(fields)))
    run = run_scenario(scenario._replace(commands=(*scenario.commands, asks)))
    lines = run.results[-1].output
    if len(fields) == 1:
        return lines[0].partition(" = ")[2]
    return "; ".join(lines)


def _compute_in_flight(scenario: Scenario, query: _FactQuery) -> str:
    copies = run_scenario(scenario).in_flight
    return ", ".join(f"{label} from {source} to {to}" for source, label, to in copies) or NOTHING


def _compute_violations(
    scenario: Scenario, query: _FactQuery, relation: Relation | None = None
) -> str:
    run = run_scenario(scenario, relation=relation)
    lines = (line for result in run.results for line in result.output)
    wrong = [line.removeprefix(VIOLATION) for line in lines if line.startswith(VIOLATION)]
    return "; ".join(wrong) or "none"


def _compute_causal_violations(scenario: Scenario, query: _FactQuery) -> str:
    return _compute_violations(scenario, query, Relation.BY_DELIVERY)


def _compute_channels(scenario: Scenario, query: _FactQuery) -> str:
    return channel_line(run_scenario(scenario))


def _compute_order(scenario: Scenario, query: _FactQuery) -> str:
    first, second = query.words[1:]
    run = run_scenario(scenario)
    relation = run.relation
    if relation in (Relation.NONE, Relation.FIFO, Relation.BY_REPLY):
        relation = Relation.BY_DELIVERY  # happened-before, whatever the protocol promises
    pasts = History(run_to_events(run)).pasts(relation.value)
    if unknown := [one for one in (first, second) if one not in pasts]:
        raise ScenarioError(f"no message {unknown[0]} is sent in this scenario")
    if first in pasts[second]:
        return f"{first} happened before {second}"
    if second in pasts[first]:
        return f"{second} happened before {first}"
    return f"{first} and {second} are concurrent"


def _build_cuts(run: ScenarioRun) -> Cuts:
    return Cuts(row for row in run_to_events(run) if row.kind in (SEND, RECEIVE))


def _parse_counts(words: Sequence[str]) -> dict[str, int]:
    return {name: int(count) for name, _, count in (one.partition("=") for one in words)}


def _compute_consistency(scenario: Scenario, query: _FactQuery) -> str:
    wrong = _build_cuts(run_scenario(scenario)).why_not(_parse_counts(query.words[1:]))
    return "consistent" if wrong is None else f"not consistent: {_describe_witness(wrong)}"


def _describe_witness(witness: Witness) -> str:
    if witness.what == LOST:
        return f"{witness.id} of {witness.source} to {witness.target}: {witness.what}"
    return f"{witness.id} is {witness.what} (from {witness.source}, to {witness.target})"


def _compute_channel_contents(scenario: Scenario, query: _FactQuery) -> str:
    run = run_scenario(scenario)
    contents = _build_cuts(run).in_channels(_parse_counts(query.words[1:]), _find_recipients(run))
    lines = [f"{ends.source} to {ends.target}: {', '.join(ids)}" for ends, ids in contents.items()]
    return "; ".join(lines) or NOTHING


def _find_recipients(run: ScenarioRun) -> Mapping[str, tuple[str, ...]]:
    everybody = tuple(run.scenario.setup.everybody())
    sent = (one.label for one in run.occurrences() if one.kind == SEND)
    return {label: run.recipients.get(label, everybody) for label in sent}


def _compute_greatest(scenario: Scenario, query: _FactQuery) -> str:
    cut = _build_cuts(run_scenario(scenario)).greatest_consistent(_parse_counts(query.words[1:]))
    return ", ".join(f"{name}={count}" for name, count in cut.items())


def _parse_limits(words: Sequence[str]) -> tuple[list[str], dict[str, int]]:
    plain = [word for word in words if "=" not in word]
    limits = _parse_counts([word for word in words if "=" in word])
    if unknown := limits.keys() - _SEARCH_LIMITS:
        raise ScenarioError(
            f"a search takes members and messages, not {', '.join(sorted(unknown))}"
        )
    return plain, limits


def _compute_check(scenario: Scenario, query: _FactQuery) -> str:
    (name, *variant), limits = _parse_limits(query.words[1:])
    members, messages = limits.get("members"), limits.get("messages")
    verdict = run_check(name, variant="".join(variant), members=members, messages=messages)
    if verdict.ok:
        return f"nothing in {pluralize(verdict.states, 'state')} breaks its promise"
    return "; ".join(" ".join(one.sentence().split()) for one in verdict.failures)


def _compute_snapshot_check(scenario: Scenario, query: _FactQuery) -> str:
    (algorithm, channels), limits = _parse_limits(query.words[1:])
    search = explore(ALGORITHMS[algorithm], channels, **limits)
    if search.failure is not None:
        failure = search.failure
        what = (
            failure.why
            if failure.witness is None
            else f"message {_describe_witness(failure.witness)}"
        )
        return f"after {pluralize(len(failure.moves), 'step')}, {what}"
    return f"all {search.ends:,} ends of {pluralize(search.plans, 'plan')} are consistent"


_FACTS: Final[Mapping[str, tuple[str, Callable[[Scenario, _FactQuery], str]]]] = {
    "held": ("messages held back by {0}", _compute_held),
    "delivered": ("deliveries of {0}", _compute_delivered),
    "state": ("state of {0}: {rest}", _compute_state),
    "in-flight": ("copies in flight", _compute_in_flight),
    "violations": ("violations of the promise", _compute_violations),
    "causal-violations": ("deliveries before a cause", _compute_causal_violations),
    "channels": ("channel models", _compute_channels),
    "before": ("{0} and {rest}", _compute_order),
    "cut": ("cut {all}", _compute_consistency),
    "inside": ("channels in {all}", _compute_channel_contents),
    "greatest": ("greatest consistent cut below {all}", _compute_greatest),
    "check": ("search: antecede check {all}", _compute_check),
    "snapshot": ("every interleaving: antecede check --snapshots {all}", _compute_snapshot_check),
}
