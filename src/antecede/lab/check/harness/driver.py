"""Driver that executes actions on a group: random runs, replays, scenarios."""

from __future__ import annotations

from collections.abc import Iterable

from antecede.core.oracle import DELIVER, RECEIVE, SEND, OracleEvent
from antecede.core.protocols import Addressing, Relation, relation_of
from antecede.errors import EarlyError
from antecede.lab.check.harness import network
from antecede.lab.check.harness.group_under_test import GroupUnderTest
from antecede.lab.check.harness.network import Step, World
from antecede.lab.check.harness.timing import InFlight
from antecede.lab.check.scenario.actions import (
    Action,
    Arrive,
    Join,
    Leave,
    Lose,
    Send,
    Tick,
    format_action,
)

_KINDS = {
    network.SENT: SEND,
    network.ARRIVED: RECEIVE,
    network.DELIVERED: DELIVER,
    network.RELEASED: DELIVER,
}


class ImpossibleError(Exception):
    """Impossible action; the group is unchanged."""


class Session:
    """Group under test with the actions executed so far. Errors of members pass through."""

    def __init__(self, group: GroupUnderTest) -> None:
        self.group = group
        members = group.make()
        self.relation: Relation = relation_of(members)
        self.world = World(members, group.timing)
        self.names = dict(group.names)
        self.arrived: list[InFlight] = []
        self.sent_labels: set[str] = set()
        self.recipients: dict[str, tuple[int, ...]] = {}
        self.topics: dict[str, tuple[str, ...]] = {}

    def execute(self, action: Action) -> list[Step]:
        """Execute an action and return its steps; raises ImpossibleError."""
        match action:
            case Send(at):
                return self._send(self.find_address(at), action)
            case Arrive(at, label, again):
                return self._arrive(self.find_address(at), label, again)
            case Lose(at, label):
                self._find_in_flight(self.find_address(at), label)
                return self.world.lose(self.find_address(at), label)
            case Join(at, sponsor):
                return self._join(at, self.find_address(sponsor))
            case Leave(at):
                return self.world.leave(self.find_address(at), name=at)
            case Tick(seconds) if self.world.can_tick(seconds):
                return self.world.tick(seconds)
            case Tick(seconds):
                raise ImpossibleError(
                    f"a copy in flight must arrive before {seconds} s have passed"
                )
        raise ImpossibleError(f"'{format_action(action)}' only prints")

    def find_address(self, name: str) -> int:
        """Return the address of a member; raises ImpossibleError for an absent one."""
        for at, known in self.names.items():
            if known == name and at in self.world.members:
                return at
        if name in self.names.values():
            raise ImpossibleError(f"{name} has left the group")
        present = ", ".join(self.names[at] for at in self.world.members)
        raise ImpossibleError(f"unknown member {name}; choose from {present}")

    def _send(self, at: int, action: Send) -> list[Step]:
        label, after, topics = action.label, action.after, action.topics
        member = self.world.members[at]
        if label in self.world.ids:
            raise ImpossibleError(f"{label} has been sent already; use another name")
        if unknown := [parent for parent in after if parent not in self.world.ids]:
            raise ImpossibleError(f"message {unknown[0]} has not been sent before this line")
        if not member.application:
            raise ImpossibleError(f"{action.at} only forwards; choose another sender")
        to = tuple(map(self.find_address, action.to))
        try:
            steps = self.world.send(at, label, after=after, to=to, topics=topics)
        except EarlyError as error:  # a joining member must wait
            raise ImpossibleError(str(error)) from error
        if member.addressing is not Addressing.ALL:
            self.topics[label] = topics
            present = tuple(self.world.members)
            readers = self.group.find_subscribers(topics, present) if topics else to or present
            self.recipients[label] = readers
        self.sent_labels.add(label)
        return steps

    def _arrive(self, at: int, label: str, again: bool) -> list[Step]:
        if again:
            return self.world.hand_over(self._find_arrived(at, label))
        copy = self._find_in_flight(at, label)
        if not self.world.can_arrive(copy):
            raise ImpossibleError(
                f"no copy of {label} can have arrived at {self.names[at]} so soon"
            )
        self.arrived.append(copy)
        return self.world.arrive(at, label)

    def _find_in_flight(self, at: int, label: str) -> InFlight:
        copy = _find_copy(self.world.in_flight, at, label)
        if copy is not None:
            return copy
        self._check_sent(label)
        flying = [c.message.payload for c in self.world.in_flight if c.target == at]
        what = (
            f"in flight to it: {', '.join(flying)}" if flying else "no message is in flight to it"
        )
        raise ImpossibleError(f"message {label} is not in flight to {self.names[at]}; {what}")

    def _find_arrived(self, at: int, label: str) -> InFlight:
        copy = _find_copy(self.arrived, at, label)
        if copy is not None:
            return copy
        self._check_sent(label)
        sent = self.world.sent.get(label, [])
        if self.group.internal or not sent or sent[0].source != at:
            raise ImpossibleError(
                f"no copy of {label} has arrived at {self.names[at]} before; omit 'again'"
            )
        return sent[0]

    def _check_sent(self, label: str) -> None:
        if label not in self.world.ids:
            raise ImpossibleError(f"message {label} has not been sent before this line")

    def _join(self, name: str, sponsor: int) -> list[Step]:
        if name in self.names.values():
            raise ImpossibleError(f"{name} is or was in the group; use another name")
        if self.group.make_member is None:
            raise ImpossibleError("only flat groups support join")
        at = max(self.names) + 1
        newcomer = self.group.make_member(at, (*self.world.members, at), name)
        steps = self.world.join(at, newcomer, sponsor, name=name)
        self.names[at] = name
        return steps


def _find_copy(copies: Iterable[InFlight], at: int, label: str) -> InFlight | None:
    return next((c for c in copies if c.target == at and c.message.payload == label), None)


def steps_to_events(steps: Iterable[tuple[str, str, str, tuple[str, ...]]]) -> list[OracleEvent]:
    """Convert steps to events; a joining member has the deliveries of its sponsor."""
    rows: list[OracleEvent] = []
    known: dict[str, list[str]] = {}
    for member, kind, label, detail in steps:
        had = known.setdefault(member, [])
        if kind == network.JOINED:
            (sponsor,) = detail
            had += known.get(sponsor, ())
            rows += [OracleEvent(kind=DELIVER, id=one, member=member) for one in had]
        elif kind in _KINDS:
            causes = detail if kind == network.SENT else ()
            rows.append(OracleEvent(kind=_KINDS[kind], id=label, member=member, causes=causes))
            if kind != network.ARRIVED:
                had.append(label)
    return rows
