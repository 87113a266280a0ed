"""Check of clocks and delays against the promised bounds, without access to a clock.

Source: Tsuneizumi et al., section 4.2, property (2), with the repair of the errata: the least delay
on the left, the largest on the right. A message with sending time S on the sender's clock is
received at R on the receiver's clock. With clock accuracies a and b,

    least - (a + b)  <=  R - S  <=  most + (a + b)

or a bound of a delay or of a clock is violated. Each batch contains the accuracy that the sender's
system reports. Without a report the promised accuracy counts. By the same inequality the delay is
between R - S - (a + b) and R - S + (a + b). So the least and the largest delay of each channel are
intervals.

Theory of operation
-------------------

The driver reports the system clock (`shows`) beside a monotonic clock. The reading of the order
never falls. When the system clock is set back, the reading continues at half speed until the clock
catches up. Its lead counts as an error of the own clock. A clock that jumps by more than twice its
promised accuracy violates its bound.

Violations are reported once a second for each kind and member, with their number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from antecede.core.clocks import LONGEST_NS, Bounds, seconds_text
from antecede.core.protocols.serialization import (
    NUMBER,
    SIGNED,
    TEXT,
    Many,
    misfit,
    pack_state,
    unpack_state,
)
from antecede.errors import DecodeError, LocalError
from antecede.live.clock_check import ClockCheck
from antecede.live.events import Id, member_of
from antecede.live.heads import Head
from antecede.live.settings import NS

LATE, EARLY, ACCURACY, UNKNOWN = "late", "early", "accuracy", "unknown_accuracy"
SET_BACK, SET_AHEAD = "set_back", "set_ahead"
NOT_FOLLOWED, STAMPED_AHEAD = "not_followed", "stamped_ahead"
KINDS: Final = (
    *(LATE, EARLY, ACCURACY, UNKNOWN, SET_BACK, SET_AHEAD),
    *(NOT_FOLLOWED, STAMPED_AHEAD),
)
RATE: Final = 1000
"""Drift allowed before a difference is a jump: one part in this many."""
AGAIN_NS: Final = NS
"""Time before the same violation is reported again."""
MEASURED: Final = Many((TEXT, NUMBER, SIGNED, SIGNED, SIGNED, SIGNED))


class BoundViolation(NamedTuple):
    """Violated bound of the order, which is then not guaranteed."""

    kind: str
    """Kind of the violation.

    - late, early: a delay or clock violates property (2) of the source.
    - accuracy: a clock is less accurate than promised; unknown_accuracy: its system reports none.
    - set_back, set_ahead: the own clock jumped.
    - not_followed: it jumped ahead, other clocks did not, and the order ignores it.
    - stamped_ahead: own messages are so far ahead of other clocks that members hold them.
    """
    member: str
    """Member whose batch or clock it was."""
    by_s: float
    """Largest excess; 0 if there is no such number."""
    id: Id | None
    """Sender id and number of the first such batch. None: without a batch."""
    times: int
    """Number since the last report."""

    def __str__(self) -> str:
        what, by = (
            f" (batch {self.id})" if self.id else "",
            f"{seconds_text(int(self.by_s * NS))} s",
        )
        times = f", {self.times} times" if self.times > 1 else ""
        words = {
            LATE: f"a batch of {self.member} is {by} later than the bounds allow",
            EARLY: f"a batch of {self.member} is {by} earlier than the bounds allow",
            ACCURACY: f"the clock error of {self.member} exceeds the promised one by {by}",
            UNKNOWN: f"the clock error of {self.member} is unknown",
            SET_BACK: f"the clock of {self.member} went back by {by}",
            SET_AHEAD: f"the clock of {self.member} went ahead by {by}",
            NOT_FOLLOWED: f"the clock of {self.member} is {by} ahead of the others and is "
            "ignored; correct it",
            STAMPED_AHEAD: f"messages of {self.member} are {by} ahead of the clocks of "
            "the others, which hold them until then",
        }
        return f"{words[self.kind]}{what}{times}: the order is not guaranteed meanwhile"


class Delays(NamedTuple):
    """Measured delays from one member to this one, ns."""

    batches: int
    """Batches received directly."""
    least_ns: tuple[int, int]
    """Interval that contains the least delay."""
    most_ns: tuple[int, int]
    """Interval that contains the largest delay."""

    def with_one(self, delay_ns: int, error_ns: int) -> Delays:
        """Return these delays with one more, known up to an error."""
        low, high = max(0, delay_ns - error_ns), max(0, delay_ns + error_ns)
        (a, b), (c, d) = self.least_ns, self.most_ns
        return Delays(self.batches + 1, (min(a, low), min(b, high)), (max(c, low), max(d, high)))


NONE: Final = Delays(0, (LONGEST_NS, LONGEST_NS), (0, 0))


class ClockMonitor:
    """Own clock as the order uses it, other clocks, delays and bound violations."""

    def __init__(self, name: str, bounds: Bounds[Any] | None) -> None:
        self.name, self.bounds = name, bounds
        self.reading: int | None = None
        """Reading that the order uses. None: no clock reported yet."""
        self.error_ns: int | None = None
        """Largest error by the system. None: unknown."""
        self.source = ""
        self.delays: dict[str, Delays] = {}
        self.accuracies: dict[str, int | None] = {}
        """Member -> accuracy in its newest batch."""
        self.counts: Counter[str] = Counter()
        """Violations by kind, in this incarnation."""
        self.last = ""
        self.check = ClockCheck()
        self._contradicted = self._stamped_ahead = False
        self._wall_ns = self._now = 0
        self._waiting: dict[tuple[str, str], BoundViolation] = {}
        self._told_ns: dict[tuple[str, str], int] = {}
        self._off: set[str] = set()
        """Members with inaccurate or unknown clocks, reported at the beginning of that."""

    # -- own clock ---------------------------------------------------------------------------------

    def shows(self, wall_ns: int, now: int, *, alone: bool = True) -> int:
        """Take the time of the system clock at `now`, ns of a monotonic clock. `alone`: the group
        has no other member. Returns the reading for the order.
        """
        if self.reading is None:
            self.reading = wall_ns
        else:
            passed = max(0, now - self._now)
            self._judge(wall_ns - self._wall_ns - passed, passed)
            if not self.check.follows(wall_ns, self.reading + passed, now, alone=alone):
                self._say_contradicted(wall_ns - self.reading - passed)
                self._wall_ns, self._now = wall_ns, now
                self.reading += passed
                return self.reading
            self._contradicted = False
            if wall_ns < self.reading:
                wall_ns, self._wall_ns = self.reading + passed // 2, wall_ns
                self._now, self.reading = now, wall_ns
                return wall_ns
            self.reading = wall_ns
        self._wall_ns, self._now = wall_ns, now
        return wall_ns

    def _say_contradicted(self, by_ns: int) -> None:
        if self.check.is_contradicted and not self._contradicted:
            self._contradicted = True
            self._record_violation(NOT_FOLLOWED, self.name, by_ns, None)

    def find_lead_ns(self) -> int:
        """Return the lead of own messages over other clocks if members reject them; else 0."""
        by_ns = self.check.ahead_of_others(self.reading or 0, self._now)
        if by_ns and not self._stamped_ahead:
            self._record_violation(STAMPED_AHEAD, self.name, by_ns, None)
        self._stamped_ahead = bool(by_ns)
        return by_ns

    def _judge(self, jump_ns: int, passed_ns: int) -> None:
        if self.bounds is None:
            return
        slack_ns = 2 * self.bounds.accuracy_ns + passed_ns // RATE
        if abs(jump_ns) > slack_ns:
            self._record_violation(
                SET_BACK if jump_ns < 0 else SET_AHEAD, self.name, abs(jump_ns), None
            )

    def resume(self, reading: int | None, now: int) -> None:
        """Continue with the last reading of the order after a restart."""
        self.reading, self._now = reading, now
        self._wall_ns = reading or 0

    @property
    def ahead_ns(self) -> int:
        """Lead of the order's reading over the system clock that was set back."""
        return max(0, (self.reading or 0) - self._wall_ns)

    def system_says(self, error_ns: int | None, source: str) -> None:
        """Take the largest error of the system clock and its source."""
        self.error_ns, self.source = error_ns, source
        self._check_accuracy(self.name, self.accuracy_ns, None)

    @property
    def system_clock_ns(self) -> int:
        """Last time of the system clock."""
        return self._wall_ns

    @property
    def accuracy_ns(self) -> int | None:
        """Accuracy of the own clock in own batches."""
        return None if self.error_ns is None else self.error_ns + self.ahead_ns

    # -- receiving ---------------------------------------------------------------------------------

    def check_batch(self, lane: str, number: int, head: Head, *, direct: bool) -> None:
        """Check a received batch; `direct`: from its sender."""
        if self.reading is None or self.bounds is None:
            return
        member = member_of(lane)
        self._check_accuracy(member, head.accuracy_ns, Id(lane, number))
        self.accuracies[member] = head.accuracy_ns
        promised = self.bounds.accuracy_ns
        ours, theirs = self.accuracy_ns, head.accuracy_ns
        error_ns = (promised if ours is None else ours) + (promised if theirs is None else theirs)
        took_ns = self.reading - head.sent_ns
        if number == 1:  # first batch of a joining member, sent while connections are made
            direct = False
        elif took_ns > self.bounds.most_ns + error_ns:
            by_ns = took_ns - self.bounds.most_ns - error_ns
            self._record_violation(LATE, member, by_ns, Id(lane, number))
        if took_ns < self.bounds.least_ns - error_ns:
            by_ns = self.bounds.least_ns - error_ns - took_ns
            self._record_violation(EARLY, member, by_ns, Id(lane, number))
        if direct:
            self.delays[member] = self.delays.get(member, NONE).with_one(took_ns, error_ns)

    def _check_accuracy(self, member: str, accuracy_ns: int | None, batch: Id | None) -> None:
        if self.bounds is None:
            return
        by_ns = 0 if accuracy_ns is None else accuracy_ns - self.bounds.accuracy_ns
        if accuracy_ns is not None and by_ns <= 0:
            self._off.discard(member)
        elif member not in self._off:
            self._off.add(member)
            self._record_violation(
                UNKNOWN if accuracy_ns is None else ACCURACY, member, by_ns, batch
            )

    @property
    def off(self) -> tuple[str, ...]:
        """Members whose clocks are inaccurate or of unknown accuracy."""
        return tuple(sorted(self._off))

    # -- bound violations --------------------------------------------------------------------------

    def _record_violation(self, kind: str, member: str, by_ns: int, batch: Id | None) -> None:
        self.counts[kind] += 1
        before = self._waiting.get((kind, member))
        if before is None:
            one = BoundViolation(kind, member, by_ns / NS, batch, 1)
        else:
            by_s = max(before.by_s, by_ns / NS)
            one = before._replace(by_s=by_s, times=before.times + 1)
        self._waiting[kind, member] = one

    def take_violations(self, now: int) -> Iterator[BoundViolation]:
        """Yield the violations to report at `now` (ns), once each."""
        for key in list(self._waiting):
            told = self._told_ns.get(key)
            if told is None or now - told >= AGAIN_NS:
                self._told_ns[key] = now
                one = self._waiting.pop(key)
                self.last = str(one)
                yield one

    # -- store -------------------------------------------------------------------------------------

    def pack_delays(self) -> bytes:
        """Return the delays as bytes."""
        rows = (
            (name, one.batches, *one.least_ns, *one.most_ns)
            for name, one in sorted(self.delays.items())
        )
        return pack_state((tuple(rows),))

    def remember(self, data: bytes) -> None:
        """Restore the delays of `measured`. Raises DecodeError."""
        fields = unpack_state(data, 1)
        if where := misfit(fields, (MEASURED,)):
            raise DecodeError(f"invalid delays: {where}")
        self.delays = {name: Delays(count, (a, b), (c, d)) for name, count, a, b, c, d in fields[0]}


def propose_bounds(
    delays: Iterable[Delays] | Mapping[str, Delays], accuracy_s: float, *, margin: float = 2.0
) -> Bounds[Any]:
    """Return bounds for an order by clocks, from measured delays.

    The upper bound is the largest possible delay times `margin`: later messages violate the order.
    The lower bound is the least possible delay. `accuracy_s`: accuracy of the worst clock. Later
    delays may differ: watch the bound violations. Raises LocalError without measured delays, and
    for a margin below 1.
    """
    known = [
        one for one in (delays.values() if isinstance(delays, Mapping) else delays) if one.batches
    ]
    if not known:
        raise LocalError("no delays were measured; exchange messages first")
    if not margin >= 1:
        raise LocalError(f"margin={margin} is invalid; expected 1 or more")
    least_ns = max(0, min(one.least_ns[0] for one in known))
    most_ns = round(margin * max(one.most_ns[1] for one in known))
    return Bounds(accuracy_s=accuracy_s, least_ns=least_ns, most_ns=max(least_ns, most_ns))
