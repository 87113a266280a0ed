"""Summary sentence of a run: held messages, causal violations, needless holds.

All protocols are compared with causality, whatever they promise.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Final, NamedTuple

from antecede.core.oracle import History
from antecede.core.protocols import Relation
from antecede.formatting import pluralize
from antecede.lab.check.harness import DELIVERED, FORWARDED, HELD, JOINED, RELEASED, SENT
from antecede.lab.check.scenario import CONTROL_SENT, ScenarioRun, Send, channel_line, run_to_events

_VIOLATION_TEXT: Final[Mapping[Relation, str]] = {
    Relation.FIFO: "out of FIFO order",
    Relation.BY_REPLY: "before the message it replies to",
    Relation.BY_TOPIC: "before a cause in its topics",
}
_RELEASING: Final = {SENT, DELIVERED, RELEASED, FORWARDED}


class Deviations(NamedTuple):
    """Deviations from causality: (member, message), in order."""

    violations: tuple[tuple[str, str], ...]
    held: tuple[tuple[str, str], ...]
    """Held messages; in total order also own messages until their turn."""
    needless: tuple[tuple[str, str], ...]
    """Held although all causes for the member were delivered."""


def find_deviations(run: ScenarioRun) -> Deviations:
    """Compare a run with causality.

    The past of a message is what its sender had sent or delivered. Runs checked by receipt or
    topics also count arrivals (Tsuneizumi et al.; Nakayama 2017). Forwarded messages count as
    delivered.
    """
    receipt = run.relation in (Relation.BY_RECEIPT, Relation.BY_TOPIC)
    relation = (Relation.BY_RECEIPT if receipt else Relation.BY_DELIVERY).value
    history = History(run_to_events(run), run.recipients)
    early = tuple((one.member, one.message) for one in history.early(relation))
    return Deviations(early, *_find_holds(run, history, relation))


def _find_own_messages(run: ScenarioRun) -> set[tuple[str, str]]:
    sent = {(one.at, one.label) for one in run.occurrences() if one.kind == SENT}
    turn = {(one.at, one.label) for one in run.occurrences() if one.kind == DELIVERED}
    return sent & (turn | {(one.at, one.label) for one in run.held})


def _find_holds(
    run: ScenarioRun, history: History, relation: str
) -> tuple[tuple[tuple[str, str], ...], ...]:
    """Return held messages, and those still held after an action without missing causes."""
    own, ever = _find_own_messages(run), dict[tuple[str, str], None]()
    pasts = history.pasts(relation)
    there: defaultdict[str, set[str]] = defaultdict(set)  # delivered, sent or forwarded
    held: dict[tuple[str, str], None] = {}
    needless: dict[tuple[str, str], None] = {}
    supers = {name for name, _ in run.scenario.setup.internal}
    for result in run.results:
        for one in result.events:
            if one.kind == HELD or (one.kind == SENT and (one.at, one.label) in own):
                held[one.at, one.label] = None
            elif one.kind == JOINED:
                there[one.at] |= there[one.others[0]]
            elif one.kind in _RELEASING or (one.kind == CONTROL_SENT and one.at in supers):
                held.pop((one.at, one.label), None)
                there[one.at].add(one.label)
        ever |= held
        for member, label in held:
            needed = history.find_needed(label, pasts.get(label, ()), member, relation)
            if label in pasts and needed <= there[member]:
                needless[member, label] = None
    return tuple(ever), tuple(needless)


def summarize(run: ScenarioRun) -> str:
    """Return the summary sentence."""
    done = list(run.occurrences())
    sent = sum(isinstance(result.command.action, Send) and bool(result.events)
               for result in run.results)  # fmt: skip
    deviations = find_deviations(run)
    held = len(deviations.held)
    needless = f" ({len(deviations.needless)} without a causal need)" if held else ""
    astray = sum(one.is_wrong_recipient for one in done)
    early = sum(bool(one.missing_causes) for one in done)
    unlike = sum(bool(one.order_conflict) for one in done)
    parts = [pluralize(sent, "message"), f"{held} held{needless}"]
    parts += [f"{len(deviations.violations)} before a cause"]
    parts += [f"{early} {_VIOLATION_TEXT[run.relation]}"] if run.relation in _VIOLATION_TEXT else []
    parts += [f"{astray} to wrong receivers"] if astray else []
    parts += [f"{unlike} in another order than elsewhere"] if unlike else []
    parts += [f"{len(run.held)} still held at the end"] if run.held else []
    parts += (
        [f"{pluralize(len(run.in_flight), 'copy', 'copies')} in flight"] if run.in_flight else []
    )
    return " ".join(filter(None, (", ".join(parts) + ".", channel_line(run))))
