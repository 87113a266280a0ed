"""Words of a scenario run in sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from antecede.core.protocols import Relation
from antecede.lab.check.scenario.actions import Send, Tick
from antecede.lab.check.scenario.execution import NEWS_OF, CommandResult, ScenarioEvent

_ORDER_NAMES: Final[Mapping[Relation, str]] = {
    Relation.FIFO: "FIFO order",
    Relation.BY_REPLY: "order of replies",
    Relation.BY_TOPIC: "order by topic",
}


class Words:
    """Sentences on the steps of a run, in order; `relation`: the checked one."""

    def __init__(self, relation: Relation = Relation.BY_DELIVERY) -> None:
        self.order = _ORDER_NAMES.get(relation, "causal order")
        self.sender: dict[str, str] = {}
        self.held_since: dict[tuple[str, str], int] = {}
        self.topics: tuple[str, ...] = ()

    def of(self, result: CommandResult) -> str:
        """Return the effect of an action as one text."""
        return " ".join(self.write_sentences(result))

    def write_sentences(self, result: CommandResult) -> list[str]:
        """Return the sentences on an action."""
        action = result.command.action
        self.topics = action.topics if isinstance(action, Send) else ()
        sentences = [self.write_sentence(one, result.number) for one in result.events]
        if not result.events:
            lines = [line[:1].upper() + line[1:] for line in result.output]
            sentences = lines or ["Nothing happens"]
        if isinstance(action, Tick):
            passed = f"{action.seconds:g} s pass"
            sentences = [passed, *sentences] if result.events else [passed]
        return [f"{sentence}." for sentence in sentences]

    def write_sentence(self, event: ScenarioEvent, number: int) -> str:
        """Return the sentence on an event of action `number`, without a full stop."""
        key = (event.at, event.label)
        match event.kind:
            case "send":
                self.sender[event.label] = event.at
                answer = f" in reply to {list_names(event.replied_to)}" if event.replied_to else ""
                about = f" about {list_names(self.topics)}" if self.topics else ""
                return (
                    f"{event.at} sends {event.label}{about}{answer} to {list_names(event.others)}"
                )
            case "forward":
                if self.sender.get(event.label) == event.at:
                    return f"{event.at} sends {event.label} again, to {list_names(event.others)}"
                return f"{event.at} forwards {event.label} to {list_names(event.others)}"
            case "acknowledge":
                return f"{event.label} is on its way from {event.at} to {list_names(event.others)}"
            case "arrive":
                return f"{event.label} arrives at {event.at}"
            case "hold":
                self.held_since[key] = number
                return f"{event.at} holds it: {self.waits(event)}"
            case "discard":
                return f"{event.at} discards {event.label}: {list_names(event.others)}"
            case "lose":
                return f"{event.label} to {event.at} is lost on the way"
            case "join":
                return f"{event.at} joins and begins from what {event.others[0]} has delivered"
            case "leave":
                return f"{event.at} leaves"
        return self._describe_delivery(event, key)

    def _describe_delivery(self, event: ScenarioEvent, key: tuple[str, str]) -> str:
        since = self.held_since.pop(key, None)
        held = f", held since step {since}" if since is not None else ""
        if event.is_wrong_recipient:
            return f"{event.at} delivers {event.label}{held}, WHICH IS FOR OTHERS"
        if event.missing_causes:
            return (
                f"{event.at} delivers {event.label}{held} "
                f"BEFORE {self._format_causes(event.missing_causes)}: "
                f"the {self.order} is violated"
            )
        if event.order_conflict:
            other, first = event.order_conflict
            return (
                f"{event.at} delivers {event.label}{held} AFTER {first}, {other} BEFORE IT: "
                "the total order is violated"
            )
        if event.others:
            return f"{event.at} releases {event.label}{held} without {list_names(event.others)}"
        return f"{event.at} delivers {event.label}{held}"

    def waits(self, held: ScenarioEvent) -> str:
        """Return the missing causes with their senders."""
        causes = self._format_causes(held.others) if held.others else "unknown causes"
        return f"it waits for {causes}"

    def _format_causes(self, labels: tuple[str, ...]) -> str:
        return list_names(tuple(map(self._format_cause, labels)))

    def _format_cause(self, label: str) -> str:
        sender = self.sender.get(label.removeprefix(NEWS_OF))
        return label if sender is None else f"{label} from {sender}"


def list_names(names: tuple[str, ...]) -> str:
    """Return "a, b and c"; `nobody` without names."""
    if not names:
        return "nobody"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
