"""Narrative of a scenario run in sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from antecede.core.protocols import Relation
from antecede.lab.check.scenario.actions import Send, Tick
from antecede.lab.check.scenario.execution import NEWS_OF, CommandResult, Occurrence

_ORDERS: Final[Mapping[Relation, str]] = {
    Relation.FIFO: "FIFO order",
    Relation.BY_REPLY: "order of replies",
    Relation.BY_TOPIC: "order by topic",
}
"""Names of the checked orders other than the causal order."""


class Words:
    """Sentences on the steps of a run, in order; `relation`: the checked one."""

    def __init__(self, relation: Relation = Relation.BY_DELIVERY) -> None:
        self.order = _ORDERS.get(relation, "causal order")
        self.sender: dict[str, str] = {}
        self.held_since: dict[tuple[str, str], int] = {}
        self.topics: tuple[str, ...] = ()

    def of(self, result: CommandResult) -> str:
        """Return the effect of an action as one text."""
        return " ".join(self.sentences(result))

    def sentences(self, result: CommandResult) -> list[str]:
        """Return the sentences on an action."""
        action = result.command.action
        self.topics = action.topics if isinstance(action, Send) else ()
        sentences = [self.sentence(one, result.number) for one in result.occurrences]
        if not result.occurrences:
            lines = [line[:1].upper() + line[1:] for line in result.output]
            sentences = lines or ["Nothing happens"]
        if isinstance(action, Tick):
            passed = f"{action.seconds:g} s pass"
            sentences = [passed, *sentences] if result.occurrences else [passed]
        return [f"{sentence}." for sentence in sentences]

    def sentence(self, one: Occurrence, number: int) -> str:
        """Return the sentence on an event of action `number`, without a full stop."""
        key = (one.at, one.label)
        match one.kind:
            case "send":
                self.sender[one.label] = one.at
                answer = f" in reply to {listed(one.answers)}" if one.answers else ""
                about = f" about {listed(self.topics)}" if self.topics else ""
                return f"{one.at} sends {one.label}{about}{answer} to {listed(one.others)}"
            case "forward":
                if self.sender.get(one.label) == one.at:
                    return f"{one.at} sends {one.label} again, to {listed(one.others)}"
                return f"{one.at} forwards {one.label} to {listed(one.others)}"
            case "acknowledge":
                return f"{one.label} is on its way from {one.at} to {listed(one.others)}"
            case "arrive":
                return f"{one.label} arrives at {one.at}"
            case "hold":
                self.held_since[key] = number
                return f"{one.at} holds it: {self.waits(one)}"
            case "discard":
                return f"{one.at} discards {one.label}: {listed(one.others)}"
            case "lose":
                return f"{one.label} to {one.at} is lost on the way"
            case "join":
                return f"{one.at} joins and begins from what {one.others[0]} has delivered"
            case "leave":
                return f"{one.at} leaves"
        return self._delivery(one, key)

    def _delivery(self, one: Occurrence, key: tuple[str, str]) -> str:
        since = self.held_since.pop(key, None)
        held = f", held since step {since}" if since is not None else ""
        if one.astray:
            return f"{one.at} delivers {one.label}{held}, WHICH IS FOR OTHERS"
        if one.early_for:
            return (
                f"{one.at} delivers {one.label}{held} BEFORE {self._causes(one.early_for)}: "
                f"the {self.order} is violated"
            )
        if one.unlike:
            other, first = one.unlike
            return (
                f"{one.at} delivers {one.label}{held} AFTER {first}, {other} BEFORE IT: "
                "the total order is violated"
            )
        if one.others:
            return f"{one.at} releases {one.label}{held} without {listed(one.others)}"
        return f"{one.at} delivers {one.label}{held}"

    def waits(self, held: Occurrence) -> str:
        """Return the missing causes with their senders."""
        causes = self._causes(held.others) if held.others else "unknown causes"
        return f"it waits for {causes}"

    def _causes(self, labels: tuple[str, ...]) -> str:
        return listed(tuple(map(self._cause, labels)))

    def _cause(self, label: str) -> str:
        sender = self.sender.get(label.removeprefix(NEWS_OF))
        return label if sender is None else f"{label} from {sender}"


def listed(names: tuple[str, ...]) -> str:
    """Return "a, b and c"; "nobody" without names."""
    if not names:
        return "nobody"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
