"""What a run shows in one sentence: held, too early, held without need; each figure is counted.

Two protocols are only compared fairly by one yardstick: whatever a protocol promises, it is said
how often it ordered too little for causality, and how often too much.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Final, NamedTuple

from antecede.core.oracle import History
from antecede.core.protocols import Relation
from antecede.formatting import counted
from antecede.lab.check.harness import DELIVERED, FORWARDED, HELD, JOINED, RELEASED, SENT
from antecede.lab.check.scenario import ACKNOWLEDGED, ScriptRun, Send, channel_line, rows_of

_BROKEN: Final[Mapping[Relation, str]] = {
    Relation.FIFO: "out of FIFO order",
    Relation.BY_REPLY: "before what it answers",
    Relation.BY_TOPIC: "before a cause in its topics",
}
"""Relations other than the causality that every run is compared with: what breaks them."""
_GONE: Final = {SENT, DELIVERED, RELEASED, FORWARDED}


class Ordering(NamedTuple):
    """What a run ordered too little or too much, by causality: (member, message), in order."""

    early: tuple[tuple[str, str], ...]
    """Delivered before a message of its causal past."""
    held: tuple[tuple[str, str], ...]
    """Held back; in total order a member's own messages, too, until their turn."""
    needless: tuple[tuple[str, str], ...]
    """Held at a time when all of its causal past, as far as it is for the member, was delivered."""


def ordering(run: ScriptRun) -> Ordering:
    """Compare a run with causality, whatever its protocol promises.

    Causal is what its sender had sent or delivered, and where the run is judged by receipt or by
    topics, what had arrived there (Tsuneizumi et al.; Nakayama 2017). What a super peer forwards
    counts as delivered there.
    """
    receipt = run.relation in (Relation.BY_RECEIPT, Relation.BY_TOPIC)
    relation = (Relation.BY_RECEIPT if receipt else Relation.BY_DELIVERY).value
    history = History(rows_of(run), run.addressed)
    early = tuple((one.member, one.message) for one in history.early(relation))
    return Ordering(early, *_waits(run, history, relation))


def _own(run: ScriptRun) -> set[tuple[str, str]]:
    """Return what members sent and were not free to deliver at once: own messages in total order.

    Any other protocol delivers nothing to its sender.
    """
    sent = {(one.at, one.label) for one in run.occurrences() if one.kind == SENT}
    turn = {(one.at, one.label) for one in run.occurrences() if one.kind == DELIVERED}
    return sent & (turn | {(one.at, one.label) for one in run.held})


def _waits(
    run: ScriptRun, history: History, relation: str
) -> tuple[tuple[tuple[str, str], ...], ...]:
    """Return what was held, and of it what was still held after an action with nothing missing.

    What a super peer held and now passes on is told as sent of its own accord.
    """
    own, ever = _own(run), dict[tuple[str, str], None]()
    pasts = history.pasts(relation)
    there: defaultdict[str, set[str]] = defaultdict(set)  # delivered, or sent or passed on
    held: dict[tuple[str, str], None] = {}
    found: dict[tuple[str, str], None] = {}
    supers = {name for name, _ in run.script.setup.internal}
    for result in run.results:
        for one in result.occurrences:
            if one.kind == HELD or (one.kind == SENT and (one.at, one.label) in own):
                held[one.at, one.label] = None
            elif one.kind == JOINED:
                there[one.at] |= there[one.others[0]]
            elif one.kind in _GONE or (one.kind == ACKNOWLEDGED and one.at in supers):
                held.pop((one.at, one.label), None)
                there[one.at].add(one.label)
        ever |= held
        for member, label in held:
            needed = history.needed(label, pasts.get(label, ()), member, relation)
            if label in pasts and needed <= there[member]:
                found[member, label] = None
    return tuple(ever), tuple(found)


def summary(run: ScriptRun) -> str:
    """Say in a sentence what a run shows; each figure is counted.

    Whatever is promised, what causality was broken by (`Ordering.early`) and what was held that it
    did not ask for (`Ordering.needless`) is said.
    """
    done = list(run.occurrences())
    sent = sum(isinstance(result.command.action, Send) and bool(result.occurrences)
               for result in run.results)  # fmt: skip
    found = ordering(run)
    held = len(found.held)
    needless = f" ({len(found.needless)} without a causal need)" if held else ""
    astray = sum(one.astray for one in done)
    early = sum(bool(one.early_for) for one in done)
    unlike = sum(bool(one.unlike) for one in done)
    parts = [counted(sent, "message"), f"{held} held{needless}"]
    parts += [f"{len(found.early)} before a cause"]
    parts += [f"{early} {_BROKEN[run.relation]}"] if run.relation in _BROKEN else []
    parts += [f"{astray} for others"] if astray else []
    parts += [f"{unlike} in another order than elsewhere"] if unlike else []
    parts += [f"{len(run.held)} still held at the end"] if run.held else []
    parts += [f"{counted(len(run.flying), 'copy', 'copies')} on the way"] if run.flying else []
    return " ".join(filter(None, (", ".join(parts) + ".", channel_line(run))))
