"""Test network: protocol objects and the messages in flight between them.

Applies effects and records every step, without knowledge of any protocol. Labels name application
messages. As payloads they survive renumbering.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from antecede.core.clocks import NS, Seconds, exact, up_ns
from antecede.core.protocols import (
    Addressing,
    Deliver,
    DeliverIncomplete,
    Discard,
    Effect,
    Hold,
    MessageId,
    Protocol,
    Relation,
    Transmit,
)
from antecede.errors import LocalError
from antecede.lab.check.harness.effects import check_effects, check_transmitted
from antecede.lab.check.harness.guarded_calls import call_guarded
from antecede.lab.check.harness.timing import InFlight, TimingModel

SENT, ARRIVED, DELIVERED, HELD = "send", "arrive", "deliver", "hold"
RELEASED, DISCARDED, FORWARDED = "release", "discard", "forward"
JOINED, LEFT, LOST = "join", "leave", "lose"


class Step(NamedTuple):
    """Step of one member."""

    at: int
    kind: str
    label: str
    detail: tuple[str, ...] = ()
    """hold, release: missing labels; discard: reason; send: labels replied to; arrive, lose:
    address of the source; join: address of the sponsor."""
    reason: str = ""


class World:
    """Members by address, copies in flight, past steps, and the true time in ns."""

    def __init__(self, members: Mapping[int, Protocol], timing: TimingModel | None = None) -> None:
        self.members = dict(members)
        self.timing = timing or TimingModel()
        self.now_ns = 0
        self.in_flight: list[InFlight] = []
        self.steps: list[Step] = []
        self.ids: dict[str, MessageId] = {}
        self.labels_by_id: dict[tuple[int, MessageId], str] = {}
        """Labels by (receiver, id as used by that receiver)."""
        self.covered: dict[int, set[str]] = {at: set() for at in self.members}
        """Labels that a member has sent, delivered, or received with its join state."""
        self.copy_counts: dict[str, int] = {}
        self.control_count = 0
        """Copies of control messages put in flight since the last tick."""
        self.sent: dict[str, list[InFlight]] = {}
        """One copy of each transmission by label, for joining members."""
        self.last_seq: dict[int, int] = {}

    def read_clock(self, at: int) -> int:
        """Return the clock reading of a member."""
        return self.timing.read_clock(at, self.now_ns)

    def can_arrive(self, copy: InFlight) -> bool:
        """Return True if a copy has been in flight for the minimum delay of its channel."""
        return self.now_ns >= self.timing.get_earliest_ns(copy)

    def can_tick(self, seconds: Seconds) -> bool:
        """Return True if time can pass without a copy in flight becoming overdue."""
        until_ns = self.now_ns + seconds_to_ns(seconds)
        return all(self.timing.get_latest_ns(copy) >= until_ns for copy in self.in_flight)

    def tick(self, seconds: Seconds) -> list[Step]:
        """Let time pass, a whole number of ns, and call `tick` of every member."""
        mark = len(self.steps)
        self.now_ns += seconds_to_ns(seconds)
        self.control_count = 0
        for at in self.members:
            self._apply_effects(
                at, self._call_member(at, "tick", lambda m: m.tick(self.read_clock(m.me)))
            )
        return self.steps[mark:]

    def send(
        self,
        at: int,
        label: str,
        *,
        after: tuple[str, ...] = (),
        to: tuple[int, ...] = (),
        topics: tuple[str, ...] = (),
    ) -> list[Step]:
        """Let a member send; raises LocalError for unsupported `to` or `topics`."""
        parents = tuple(self.ids[parent] for parent in after)
        mark = len(self.steps)
        member = self.members[at]
        audience = make_recipient_arguments(member, to, topics)
        now = self.read_clock(at)
        effects = self._call_member(
            at, "send", lambda m: m.send(label, now=now, after=parents, **audience)
        )
        check_transmitted(effects, label, member)
        self.steps.append(Step(at, SENT, label, after))
        if member.guarantee.relation is not Relation.TOTAL:
            self.covered[at].add(label)
        self._apply_effects(at, effects)
        if label in self.ids:
            self.last_seq[at] = self.ids[label].seq
        return self.steps[mark:]

    def arrive(self, at: int, label: str) -> list[Step]:
        """Let the oldest copy of the message in flight to that member arrive."""
        return self.hand_over(self._remove_in_flight(at, label))

    def lose(self, at: int, label: str) -> list[Step]:
        """Lose the oldest copy of the message in flight to that member."""
        self.steps.append(Step(at, LOST, label, (str(self._remove_in_flight(at, label).source),)))
        return self.steps[-1:]

    def _remove_in_flight(self, at: int, label: str) -> InFlight:
        for position, copy in enumerate(self.in_flight):
            if copy.target == at and copy.message.payload == label:
                return self.in_flight.pop(position)
        raise LocalError(f"no copy of {label} is in flight to member {at}")

    def hand_over(self, copy: InFlight) -> list[Step]:
        """Pass a copy to its target, in flight or not (for duplicates)."""
        mark = len(self.steps)
        self.steps.append(Step(copy.target, ARRIVED, copy.message.payload, (str(copy.source),)))
        now = self.read_clock(copy.target)
        effects = self._call_member(
            copy.target, "receive", lambda m: m.receive(copy.message, now=now)
        )
        self._apply_effects(copy.target, effects)
        return self.steps[mark:]

    def join(self, at: int, newcomer: Protocol, sponsor: int, *, name: str = "") -> list[Step]:
        """Let a member join with the state of its sponsor; the others are notified at once.

        The joining member gets a copy of each other message that can still be in flight.
        """
        mark = len(self.steps)
        call_guarded(newcomer.install_join_state, call_guarded(self.members[sponsor].join_state))
        call_guarded(newcomer.enter)  # no time passes between join and the next send
        self.covered[at] = set(self.covered[sponsor])
        self.steps.append(Step(at, JOINED, name or str(at), (str(sponsor),)))
        first_copies = [copies[0]._replace(target=at) for copies in self.sent.values()]
        owed = first_copies if newcomer.addressing is Addressing.ALL else []
        for other in self.members:
            self._apply_effects(other, self._call_member(other, "join", lambda m: m.join(at)))
        self.members[at] = newcomer
        for copy in owed:
            if copy.message.payload in self.covered[at]:
                self.labels_by_id[at, newcomer.identity(copy.message)] = copy.message.payload
            elif self.timing.get_latest_ns(copy) >= self.now_ns:
                self._add_in_flight(copy)
        return self.steps[mark:]

    def leave(self, at: int, *, name: str = "") -> list[Step]:
        """Let a member leave; the others learn its last number. Copies to it are dropped."""
        mark = len(self.steps)
        del self.members[at]
        self.steps.append(Step(at, LEFT, name or str(at)))
        last = self.last_seq.get(at, 0)
        self.in_flight = [copy for copy in self.in_flight if copy.target != at]
        for other in self.members:
            self._apply_effects(
                other, self._call_member(other, "leave", lambda m: m.leave(at, last))
            )
        return self.steps[mark:]

    def _call_member(self, at: int, method: str, act: Callable[[Any], Any]) -> list[Effect]:
        member = self.members[at]
        return call_guarded(lambda: check_effects(act(member), member, method, self.covered))

    def _apply_effects(self, at: int, effects: Sequence[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Deliver):
                self.steps.append(Step(at, DELIVERED, effect.message.payload))
                self.covered[at].add(effect.message.payload)
            elif isinstance(effect, Transmit):
                self._transmit(at, effect)
            elif isinstance(effect, Hold):
                names = self.find_labels(at, effect.missing)
                self.steps.append(Step(at, HELD, effect.message.payload, names, effect.reason))
            elif isinstance(effect, DeliverIncomplete):
                names = self.find_labels(at, effect.missing)
                self.steps.append(Step(at, RELEASED, effect.message.payload, names))
                self.covered[at].add(effect.message.payload)
            elif isinstance(effect, Discard):
                reason = (effect.reason,)
                self.steps.append(Step(at, DISCARDED, effect.message.payload, reason))

    def _transmit(self, at: int, effect: Transmit) -> None:
        message = effect.message
        label = message.payload
        note = self.members[at].is_control(message)
        if label not in self.ids:
            self.ids[label] = MessageId(message.sender, message.seq)
        elif not note and self.steps[-1].kind == ARRIVED:
            self.steps.append(Step(at, FORWARDED, label))
        if not note:
            self.sent.setdefault(label, []).append(InFlight(at, at, message, self.now_ns))
        for target in effect.to:
            if target in self.members:
                self._add_in_flight(InFlight(at, target, message, self.now_ns))

    def _add_in_flight(self, copy: InFlight) -> None:
        member, message = self.members[copy.target], copy.message
        identity = member.identity(message)
        if not member.is_control(message):
            self.labels_by_id[copy.target, identity] = message.payload
            self.copy_counts[message.payload] = self.copy_counts.get(message.payload, 0) + 1
        else:
            self.labels_by_id.setdefault((copy.target, identity), message.payload)
            self.control_count += 1
        self.in_flight.append(copy)

    def find_labels(self, at: int, missing: Iterable[MessageId]) -> tuple[str, ...]:
        """Return the labels of a member's ids (`find_label`)."""
        return tuple(self.find_label(at, one) for one in missing)

    def find_label(self, at: int, missing: MessageId) -> str:
        """Return the label of a member's id, or the id itself if it is unknown (`ses`)."""
        if (at, missing) in self.labels_by_id:
            return self.labels_by_id[at, missing]
        member = self.members[at]
        if not member.renumbers and type(member).identity is Protocol.identity:
            for label, origin in self.ids.items():
                if origin == missing:
                    return label
        return f"{missing.sender}:{missing.seq}"


def seconds_to_ns(seconds: Seconds) -> int:
    """Convert seconds to nanoseconds; raises LocalError for fractions of a nanosecond."""
    if (exact(seconds) * NS).denominator != 1:
        raise LocalError(f"{seconds} s: expected a whole number of nanoseconds")
    return up_ns(seconds)


def make_recipient_arguments(
    member: Protocol, to: tuple[int, ...], topics: tuple[str, ...]
) -> dict[str, tuple[int, ...] | tuple[str, ...]]:
    """Return the arguments of `send` for these receivers; raises LocalError."""
    supported = {Addressing.MEMBERS: "to", Addressing.TOPICS: "topics"}.get(member.addressing, "")
    arguments = {name: value for name, value in (("to", to), ("topics", topics)) if value}
    for name in arguments:
        if name != supported:
            what = f"takes {supported}" if supported else "sends every message to all members"
            raise LocalError(f"{type(member).__name__} {what}; it cannot be given {name}")
    return arguments
