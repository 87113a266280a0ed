"""Which moves a state of the explorer allows: sends, arrivals, losses, and the passing of time.

In groups with clocks time is whole seconds. A copy may arrive from the least to the largest
delay of its channel; time passes only while no copy would become later than it can be. To keep
the number of states down, a heartbeat or request takes exactly the least delay: that it may be
slower is left to the adversarial network.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from antecede.check.company import Company
from antecede.check.judge import Judge, Record, bits
from antecede.check.reactions import Audience, Bench
from antecede.clocks.nanoseconds import NS
from antecede.protocols.base import Addressing, Relation

MOST_TOPICS = 2
"""Topics of one message, at most."""


class Limits(NamedTuple):
    """How far a search goes, and what it looks for."""

    messages: int
    """Messages sent in all."""
    duplicates: int = 0
    """Arrivals after which the copy stays in flight, in all."""
    script: tuple[int, ...] = ()
    """Addresses of the senders in the order in which they send; empty: anybody, any time."""
    ignored: frozenset[str] = frozenset()
    """Kinds of failure (constants of `verdict`) to pass over."""
    max_states: int = 2_000_000
    losses: int = 0
    """Copies of messages that may be lost, in all."""
    send_until_s: int = 2
    """In groups with clocks: the last second in which anything is sent."""
    extremes: bool = False
    """In groups with clocks: copies take the least or the largest delay, nothing between."""


class Move(NamedTuple):
    """A step from one state to the next.

    A send (copy is -1), the arrival or the loss of a copy, or a second that passes (slot -1).
    """

    slot: int
    label: int
    after: int = -1
    copy: int = -1
    stays: bool = False
    audience: Audience = Audience()
    lost: bool = False


SECOND = Move(-1, -1)


class Parts(NamedTuple):
    """A state unpacked."""

    group: tuple[int, ...]
    """By slot: the number of the member's snapshot."""
    flight: tuple[int, ...]
    """Numbers of the copies in flight, ascending; equal copies stand side by side."""
    record: Record


class Moves:
    """The moves of one search."""

    def __init__(self, company: Company, limits: Limits, bench: Bench, judge: Judge) -> None:
        self.company, self.limits, self.bench, self.judge = company, limits, bench, judge
        self.addresses = tuple(member.me for member in bench.members)
        self.slot = {at: slot for slot, at in enumerate(self.addresses)}
        self.timed = bench.timed
        self.horizon_s = limits.send_until_s
        bounds = company.physics.bounds
        if bounds is not None:
            pairs = [(a, b) for a in self.addresses for b in self.addresses if a != b]
            self.horizon_s += max(bounds.most_delay_ns(a, b) for a, b in pairs) // NS
        self.audiences = {slot: tuple(self._audiences(slot)) for slot in judge.senders}

    def _audiences(self, slot: int) -> Iterator[Audience]:
        """Yield whom a member's messages can be for."""
        addressing = self.bench.members[slot].addressing
        if addressing is Addressing.TOPICS:
            yield from self._publications(slot)
            return
        yield Audience()
        if addressing is Addressing.MEMBERS:
            others = [self.addresses[other] for other in self.judge.senders if other != slot]
            for size in range(len(others) - 1, 0, -1):
                yield from (Audience(to=chosen) for chosen in combinations(others, size))

    def _publications(self, slot: int) -> Iterator[Audience]:
        topics = self.company.topics()
        for size in range(1, MOST_TOPICS + 1):
            for chosen in combinations(topics, size):
                if set(self.company.readers(chosen, self.addresses)) - {self.addresses[slot]}:
                    yield Audience(topics=chosen)

    def targets(self, slot: int, audience: Audience) -> Sequence[int]:
        """Return the slots that a message is for."""
        if audience.topics:
            found = self.company.readers(audience.topics, self.addresses)
        else:
            found = audience.to or tuple(self.addresses[other] for other in self.judge.senders)
        return [self.slot[at] for at in found if at != self.addresses[slot]]

    # -- what may happen --------------------------------------------------------------------

    def possible(self, parts: Parts) -> Iterator[Move]:
        """Yield every move from a state."""
        note = self._note_due(parts)
        if note is not None:
            yield note
            return
        yield from self._sends(parts.record)
        yield from self._arrivals(parts)
        if self.timed and self.may_pass(parts) and parts.record.now_s < self.horizon_s:
            yield SECOND

    def _sends(self, record: Record) -> Iterator[Move]:
        senders = self.judge.senders
        sent = [self.judge.sent(record, slot).bit_count() for slot in senders]
        total = sum(sent)
        late = self.timed and record.now_s > self.limits.send_until_s
        if total == self.limits.messages or late:
            return
        script = self.limits.script
        for index, slot in enumerate(senders):
            if script and script[total] != self.addresses[slot]:
                continue
            label = index * self.limits.messages + sent[index]
            for audience in self.audiences[slot]:
                yield Move(slot, label, audience=audience)
            if self.judge.relation is Relation.BY_REPLY:
                for cause in bits(record.done[slot]):
                    yield Move(slot, label, after=cause)

    def _arrivals(self, parts: Parts) -> Iterator[Move]:
        record = parts.record
        for copy in dict.fromkeys(parts.flight):
            known = self.bench.copies.value[copy]
            slot, label = self.slot[known.target], self.bench.copy_label[copy]
            # It makes no difference when a copy is lost, so it is lost as soon as it is sent.
            if record.losses and label >= 0 and known.sent_s == record.now_s:
                yield Move(slot, label, copy=copy, lost=True)
            if self._may_arrive(copy, record.now_s):
                yield Move(slot, label, copy=copy)
                if record.duplicates:
                    yield Move(slot, label, copy=copy, stays=True)

    # -- time -------------------------------------------------------------------------------

    def _may_arrive(self, copy: int, now_s: int) -> bool:
        if not self.timed:
            return True
        known = self.bench.copies.value[copy]
        physics, under_way_ns = self.company.physics, (now_s - known.sent_s) * NS
        least_ns = physics.least_ns(known.source, known.target)
        if self.limits.extremes and not self.bench.is_note[copy]:
            return under_way_ns in (least_ns, physics.most_ns(known.source, known.target))
        return under_way_ns >= least_ns

    def _note_due(self, parts: Parts) -> Move | None:
        if not self.timed:
            return None
        for copy in parts.flight:
            if self.bench.is_note[copy] and self._may_arrive(copy, parts.record.now_s):
                target = self.bench.copies.value[copy].target
                return Move(self.slot[target], self.bench.copy_label[copy], copy=copy)
        return None

    def overdue(self, parts: Parts) -> Move | None:
        """Return the arrival of a copy that can be under way no longer."""
        physics, now_s = self.company.physics, parts.record.now_s
        for copy in parts.flight:
            known = self.bench.copies.value[copy]
            if (now_s + 1 - known.sent_s) * NS > physics.most_ns(known.source, known.target):
                return Move(self.slot[known.target], self.bench.copy_label[copy], copy=copy)
        return None

    def may_pass(self, parts: Parts) -> bool:
        """Tell whether a second can pass without a copy being later than it can be."""
        return self.overdue(parts) is None

    def at_end(self, parts: Parts) -> bool:
        """Tell whether nothing more is sent and nothing of the application is under way."""
        if not self.timed or parts.record.now_s < self.horizon_s:
            return False
        return all(self.bench.copy_label[copy] < 0 for copy in parts.flight)
