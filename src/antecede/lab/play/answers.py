"""Facts of exercises, computed from their scenarios and checked by the oracle.

A fact is a line of words:

    held M [after N]                   messages that M holds back, with missing causes
    delivered M [after N]              deliveries of M, in order
    state M [FIELD ...] [after N]      state of M, in the source's notation
    flying [after N]                   copies in flight
    violations                         deliveries that break the protocol's promise
    early                              deliveries before a cause
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
from antecede.errors import ScriptError
from antecede.formatting import counted
from antecede.lab.check import explore, run_check
from antecede.lab.check.harness import DELIVERED, RELEASED
from antecede.lab.check.scenario import (
    VIOLATION,
    Command,
    Script,
    ScriptRun,
    State,
    channel_line,
    parse_script,
    prints,
    rows_of,
    run_script,
    under,
    waits,
)

NOTHING: Final = "nothing"
_LIMITS: Final = {"members", "messages"}


def words_of(fact: str) -> str:
    """Return the subject of a fact as text."""
    asked = _taken_apart(fact)
    kind, *rest = asked.words
    told = _FACTS[kind][0].format(*rest[:1], rest=", ".join(rest[1:]), all=" ".join(rest))
    told = told.replace(", : ", ": ").removesuffix(": ")
    if asked.after is not None:
        told += f", after step {asked.after}"
    if asked.protocol is not None:
        told += f", under {' '.join((asked.protocol, *map('='.join, asked.options)))}"
    return told


class _Asked(NamedTuple):
    words: tuple[str, ...]
    after: int | None
    protocol: str | None
    options: tuple[tuple[str, str], ...]


@cache
def value_of(text: str, fact: str) -> str:
    """Return the value of a fact about a scenario; raises ScenarioError."""
    asked = _taken_apart(fact)
    if asked.words[0] not in _FACTS:
        raise ScriptError(f"no fact '{asked.words[0]}'; choose from {', '.join(_FACTS)}")
    return _FACTS[asked.words[0]][1](_script(text, asked), asked)


def _taken_apart(fact: str) -> _Asked:
    head, _, played = fact.partition(" with ")
    words = head.split()
    after = None
    if "after" in words:
        place = words.index("after")
        after = int(words[place + 1])
        words = words[:place]
    protocol, *options = played.split() or [""]
    pairs = tuple((name, value) for name, _, value in (one.partition("=") for one in options))
    return _Asked(tuple(words), after, protocol or None, pairs)


def _script(text: str, asked: _Asked) -> Script:
    script = parse_script(text)
    commands = tuple(c for c in script.commands if not prints(c.action))
    if asked.protocol is not None:
        script = under(script, asked.protocol)
        setup = script.setup._replace(options=asked.options)
        script = script._replace(setup=setup)
    if asked.after is not None and not 0 <= asked.after <= len(commands):
        raise ScriptError(f"after {asked.after}: the scenario has {len(commands)} actions")
    return script._replace(commands=commands[: asked.after])


def _held(script: Script, asked: _Asked) -> str:
    member = asked.words[1]
    held = [waits(one) for one in run_script(script).held if one.at == member]
    return "; ".join(held) or NOTHING


def _delivered(script: Script, asked: _Asked) -> str:
    done = run_script(script).occurrences()
    kinds = DELIVERED, RELEASED
    labels = [one.label for one in done if one.at == asked.words[1] and one.kind in kinds]
    return ", ".join(labels) or NOTHING


def _state(script: Script, asked: _Asked) -> str:
    _, member, *fields = asked.words
    asks = Command(0, State(member, tuple(fields)))
    run = run_script(script._replace(commands=(*script.commands, asks)))
    lines = run.results[-1].output
    if len(fields) == 1:
        return lines[0].partition(" = ")[2]
    return "; ".join(lines)


def _flying(script: Script, asked: _Asked) -> str:
    copies = run_script(script).flying
    return ", ".join(f"{label} from {source} to {to}" for source, label, to in copies) or NOTHING


def _violations(script: Script, asked: _Asked, relation: Relation | None = None) -> str:
    run = run_script(script, relation=relation)
    lines = (line for result in run.results for line in result.output)
    wrong = [line.removeprefix(VIOLATION) for line in lines if line.startswith(VIOLATION)]
    return "; ".join(wrong) or "none"


def _early(script: Script, asked: _Asked) -> str:
    return _violations(script, asked, Relation.BY_DELIVERY)


def _channels(script: Script, asked: _Asked) -> str:
    return channel_line(run_script(script))


def _before(script: Script, asked: _Asked) -> str:
    first, second = asked.words[1:]
    run = run_script(script)
    relation = run.relation
    if relation in (Relation.NONE, Relation.FIFO, Relation.BY_REPLY):
        relation = Relation.BY_DELIVERY  # happened-before, whatever the protocol promises
    pasts = History(rows_of(run)).pasts(relation.value)
    if unknown := [one for one in (first, second) if one not in pasts]:
        raise ScriptError(f"no message {unknown[0]} is sent in this scenario")
    if first in pasts[second]:
        return f"{first} happened before {second}"
    if second in pasts[first]:
        return f"{second} happened before {first}"
    return f"{first} and {second} are concurrent"


def _cuts(run: ScriptRun) -> Cuts:
    return Cuts(row for row in rows_of(run) if row.kind in (SEND, RECEIVE))


def _positions(words: Sequence[str]) -> dict[str, int]:
    return {name: int(count) for name, _, count in (one.partition("=") for one in words)}


def _cut(script: Script, asked: _Asked) -> str:
    wrong = _cuts(run_script(script)).why_not(_positions(asked.words[1:]))
    return "consistent" if wrong is None else f"not consistent: {_witness(wrong)}"


def _witness(wrong: Witness) -> str:
    if wrong.what == LOST:
        return f"{wrong.id} of {wrong.source} to {wrong.target}: {wrong.what}"
    return f"{wrong.id} is {wrong.what} (from {wrong.source}, to {wrong.target})"


def _inside(script: Script, asked: _Asked) -> str:
    run = run_script(script)
    found = _cuts(run).in_channels(_positions(asked.words[1:]), _audience(run))
    lines = [f"{ends.source} to {ends.target}: {', '.join(ids)}" for ends, ids in found.items()]
    return "; ".join(lines) or NOTHING


def _audience(run: ScriptRun) -> Mapping[str, tuple[str, ...]]:
    everybody = tuple(run.script.setup.everybody())
    sent = (one.label for one in run.occurrences() if one.kind == SEND)
    return {label: run.addressed.get(label, everybody) for label in sent}


def _greatest(script: Script, asked: _Asked) -> str:
    found = _cuts(run_script(script)).greatest_consistent(_positions(asked.words[1:]))
    return ", ".join(f"{name}={count}" for name, count in found.items())


def _limits(words: Sequence[str]) -> tuple[list[str], dict[str, int]]:
    plain = [word for word in words if "=" not in word]
    given = _positions([word for word in words if "=" in word])
    if unknown := given.keys() - _LIMITS:
        raise ScriptError(f"a search takes members and messages, not {', '.join(sorted(unknown))}")
    return plain, given


def _check(script: Script, asked: _Asked) -> str:
    (name, *variant), limits = _limits(asked.words[1:])
    members, messages = limits.get("members"), limits.get("messages")
    verdict = run_check(name, variant="".join(variant), members=members, messages=messages)
    if verdict.ok:
        return f"nothing in {counted(verdict.states, 'state')} breaks its promise"
    return "; ".join(" ".join(one.sentence().split()) for one in verdict.failures)


def _snapshot(script: Script, asked: _Asked) -> str:
    (algorithm, channels), limits = _limits(asked.words[1:])
    found = explore(ALGORITHMS[algorithm], channels, **limits)
    if found.failure is not None:
        failure = found.failure
        what = failure.why if failure.witness is None else f"message {_witness(failure.witness)}"
        return f"after {counted(len(failure.moves), 'step')}, {what}"
    return f"all {found.ends:,} ends of {counted(found.plans, 'plan')} are consistent"


_FACTS: Final[Mapping[str, tuple[str, Callable[[Script, _Asked], str]]]] = {
    "held": ("messages held back by {0}", _held),
    "delivered": ("deliveries of {0}", _delivered),
    "state": ("state of {0}: {rest}", _state),
    "flying": ("copies in flight", _flying),
    "violations": ("violations of the promise", _violations),
    "early": ("deliveries before a cause", _early),
    "channels": ("channel models", _channels),
    "before": ("{0} and {rest}", _before),
    "cut": ("cut {all}", _cut),
    "inside": ("channels in {all}", _inside),
    "greatest": ("greatest consistent cut below {all}", _greatest),
    "check": ("search: antecede check {all}", _check),
    "snapshot": ("every interleaving: antecede snapshot {all}", _snapshot),
}
