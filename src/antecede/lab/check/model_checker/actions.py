"""Enabled actions of a state: sends, arrivals, losses, steps of time.

Time passes in the steps of `lab.check.harness.timing`, while no copy becomes overdue. Control
messages take exactly the minimum delay, which keeps the states few. The adversarial network tries
longer delays.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from antecede.core.protocols import Addressing, Relation
from antecede.lab.check.causal_past import iter_bits
from antecede.lab.check.harness.group_under_test import GroupUnderTest
from antecede.lab.check.harness.timing import compute_instants_ns, compute_step_ns, list_delays_ns
from antecede.lab.check.model_checker.invariants import Checker, CheckerRecord
from antecede.lab.check.model_checker.transitions import Recipients, TransitionCache

MAX_TOPICS = 2


class SearchLimits(NamedTuple):
    """Size of a search, and ignored failures."""

    messages: int
    duplicates: int = 0
    """Arrivals after which the copy stays in flight."""
    senders: tuple[int, ...] = ()
    """Addresses of the senders in order; empty: any order."""
    ignored: frozenset[str] = frozenset()
    """Ignored kinds of failures (constants of `lab.check.results`)."""
    max_states: int = 2_000_000
    losses: int = 0
    send_until: int = 2
    """Groups with clocks: last step of time with a send; 0: at once."""
    extremes: bool = False
    """Groups with clocks: copies take the minimum or the maximum delay only."""


class SearchAction(NamedTuple):
    """Send (copy is -1), arrival or loss of a copy, or step of time (slot -1)."""

    slot: int
    label: int
    after: int = -1
    copy: int = -1
    keeps_copy: bool = False
    recipients: Recipients = Recipients()
    is_loss: bool = False
    until_ns: int = 0

    @property
    def is_tick(self) -> bool:
        """True for a step of time."""
        return self.slot < 0


class StateParts(NamedTuple):
    """State, unpacked."""

    group: tuple[int, ...]
    in_flight: tuple[int, ...]
    record: CheckerRecord


class EnabledActions:
    """Generator of the enabled actions of one search."""

    def __init__(
        self, group: GroupUnderTest, limits: SearchLimits, cache: TransitionCache, checker: Checker
    ) -> None:
        self.group, self.limits, self.cache, self.checker = group, limits, cache, checker
        self.addresses = tuple(member.me for member in cache.members)
        self.slot = {at: slot for slot, at in enumerate(self.addresses)}
        self.timed = cache.timed
        self.until_ns = self.horizon_ns = self.step_ns = self.longest_ns = 0
        self.instants: tuple[int, ...] = ()
        bounds = group.timing.bounds
        if bounds is not None:
            self.step_ns, self.instants = compute_step_ns(bounds), compute_instants_ns(bounds)
            self.longest_ns = list_delays_ns(bounds)[-1] if list_delays_ns(bounds) else self.step_ns
            last = min(limits.send_until, len(self.instants) - 1)
            self.until_ns = limits.send_until * self.step_ns or self.instants[last]
            pairs = [(a, b) for a in self.addresses for b in self.addresses if a != b]
            most_ns = max(bounds.most_delay_ns(a, b) for a, b in pairs)
            self.horizon_ns = self.until_ns + most_ns
        self.recipient_choices = {
            slot: tuple(self._list_recipient_choices(slot)) for slot in checker.senders
        }

    def _list_recipient_choices(self, slot: int) -> Iterator[Recipients]:
        addressing = self.cache.members[slot].addressing
        if addressing is Addressing.TOPICS:
            topics = self.group.list_topics()
            for size in range(1, MAX_TOPICS + 1):
                for chosen in combinations(topics, size):
                    if set(self.group.find_subscribers(chosen, self.addresses)) - {
                        self.addresses[slot]
                    }:
                        yield Recipients(topics=chosen)
            return
        yield Recipients()
        if addressing is Addressing.MEMBERS:
            others = [self.addresses[other] for other in self.checker.senders if other != slot]
            for size in range(len(others) - 1, 0, -1):
                yield from (Recipients(to=members) for members in combinations(others, size))

    def find_targets(self, slot: int, recipients: Recipients) -> Sequence[int]:
        """Return the slots of a message's receivers."""
        if recipients.topics:
            addresses = self.group.find_subscribers(recipients.topics, self.addresses)
        else:
            addresses = recipients.to or tuple(
                self.addresses[other] for other in self.checker.senders
            )
        return [self.slot[at] for at in addresses if at != self.addresses[slot]]

    def list_enabled(self, parts: StateParts) -> Iterator[SearchAction]:
        """Yield every enabled action of a state."""
        note = self._find_due_control(parts)
        if note is not None:
            yield note
            return
        yield from self._list_sends(parts.record)
        yield from self._list_arrivals(parts)
        if self.timed and self.can_tick(parts) and parts.record.now_ns < self.horizon_ns:
            yield self.make_tick(parts)

    def _list_sends(self, record: CheckerRecord) -> Iterator[SearchAction]:
        senders = self.checker.senders
        sent = [self.checker.get_sent_labels(record, slot).bit_count() for slot in senders]
        total = sum(sent)
        late = self.timed and record.now_ns > self.until_ns
        if total == self.limits.messages or late:
            return
        given = self.limits.senders
        for index, slot in enumerate(senders):
            if given and given[total] != self.addresses[slot]:
                continue
            label = index * self.limits.messages + sent[index]
            for audience in self.recipient_choices[slot]:
                yield SearchAction(slot, label, recipients=audience)
            if self.checker.relation is Relation.BY_REPLY:
                for cause in iter_bits(record.done[slot]):
                    yield SearchAction(slot, label, after=cause)

    def _list_arrivals(self, parts: StateParts) -> Iterator[SearchAction]:
        record = parts.record
        for copy in dict.fromkeys(parts.in_flight):
            known = self.cache.copies.value[copy]
            slot, label = self.slot[known.target], self.cache.copy_label[copy]
            # The time of a loss is irrelevant: copies are lost at the time of sending.
            if record.losses and label >= 0 and known.sent_ns == record.now_ns:
                yield SearchAction(slot, label, copy=copy, is_loss=True)
            if self._can_arrive(copy, record.now_ns):
                yield SearchAction(slot, label, copy=copy)
                if record.duplicates:
                    yield SearchAction(slot, label, copy=copy, keeps_copy=True)

    def _find_next_ns(self, parts: StateParts) -> int:
        now_ns = parts.record.now_ns
        if self.step_ns:
            return now_ns + self.step_ns
        later = bisect_right(self.instants, now_ns)
        until_ns = self.instants[later] if later < len(self.instants) else now_ns + self.longest_ns
        return self._limit_to_arrivals(parts, until_ns)

    def _limit_to_arrivals(self, parts: StateParts, until_ns: int) -> int:
        dues = (self._get_latest_ns(copy) for copy in parts.in_flight)
        return min([until_ns, *(due for due in dues if due > parts.record.now_ns)])

    def _get_latest_ns(self, copy: int) -> int:
        return self.group.timing.get_latest_ns(self.cache.copies.value[copy])

    def make_tick(self, parts: StateParts, times: int = 1) -> SearchAction:
        """Return a step of time, or `times` steps, in which no copy becomes overdue."""
        until_ns = self._find_next_ns(parts)
        if times > 1:
            now_ns = parts.record.now_ns
            until_ns = self._limit_to_arrivals(parts, now_ns + times * (until_ns - now_ns))
        return SearchAction(-1, -1, until_ns=until_ns)

    def _can_arrive(self, copy: int, now_ns: int) -> bool:
        if not self.timed:
            return True
        from_ns = self.group.timing.get_earliest_ns(self.cache.copies.value[copy])
        if self.limits.extremes and not self.cache.is_control[copy]:
            return now_ns in (from_ns, self._get_latest_ns(copy))
        return now_ns >= from_ns

    def _find_due_control(self, parts: StateParts) -> SearchAction | None:
        if not self.timed:
            return None
        for copy in parts.in_flight:
            if self.cache.is_control[copy] and self._can_arrive(copy, parts.record.now_ns):
                target = self.cache.copies.value[copy].target
                return SearchAction(self.slot[target], self.cache.copy_label[copy], copy=copy)
        return None

    def find_overdue(self, parts: StateParts) -> SearchAction | None:
        """Return the arrival of a copy that must arrive within the next step."""
        until_ns = self._find_next_ns(parts)
        for copy in parts.in_flight:
            if until_ns > self._get_latest_ns(copy):
                known = self.cache.copies.value[copy]
                return SearchAction(self.slot[known.target], self.cache.copy_label[copy], copy=copy)
        return None

    def can_tick(self, parts: StateParts) -> bool:
        """Return True if time can pass without a copy becoming overdue."""
        return self.find_overdue(parts) is None

    def is_at_end(self, parts: StateParts) -> bool:
        """Return True if no message is in flight and none can be sent."""
        if not self.timed or parts.record.now_ns < self.horizon_ns:
            return False
        return all(self.cache.copy_label[copy] < 0 for copy in parts.in_flight)
