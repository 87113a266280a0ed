"""Whether clocks and delays are as the order was promised: a part of the node, without a clock.

Source: Tsuneizumi et al., section 4.2, property (2), with the repair of the errata: the least delay
on the left, the largest on the right. Who receives at its reading R what was sent at the sender's
reading S, with accuracies a and b, knows

    least - (a + b)  <=  R - S  <=  most + (a + b)

or a bound is broken: of a delay or of a clock. a and b are what the members' systems say of their
clocks now, as each batch carries it; where a system says nothing, the accuracy that the order was
promised. By the same inequality the delay itself is within R - S - (a + b) and R - S + (a + b): the
least and the largest of each channel are kept as intervals.

Theory of operation
-------------------
The driver says what the system's clock shows (`shows`), beside a clock that never goes back. What
the order goes by never falls either: where the system's clock is set back, it goes on at half its
pace until that has caught up, so nothing stands still for long, and how far it is ahead counts as
an error of one's own. A clock that moves by more than twice its promised accuracy is an alarm.

Alarms are told once a second for each kind and member, with how many there were.
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
"""A clock may gain or lose one part in so many beside the other one before that is a jump."""
AGAIN_NS: Final = NS
"""So long after an alarm the same one is not told again."""
MEASURED: Final = Many((TEXT, NUMBER, SIGNED, SIGNED, SIGNED, SIGNED))


class BoundViolation(NamedTuple):
    """A bound of the order does not hold, so its promise does not either."""

    kind: str
    """late, early: a delay (or a clock) is not as promised, by property (2) of Tsuneizumi et al.;
    accuracy: a clock may be further from true time than promised; unknown_accuracy: its system
    does not say how far it is; set_back, set_ahead: one's own clock jumped; not_followed: it jumped
    ahead, the others' clocks did not, and the order goes on without it; stamped_ahead: the own
    messages are stamped so far ahead of the others' clocks that these do not take them."""
    member: str
    """Whose batch or clock it was."""
    by_s: float
    """By how much, the most of them; 0 where there is no such number."""
    id: Id | None
    """The batch by which it was first seen (lane and number of the batch); None: a clock alone."""
    times: int
    """How often since it was last told."""

    def __str__(self) -> str:
        what, by = (
            f" (batch {self.id})" if self.id else "",
            f"{seconds_text(int(self.by_s * NS))} s",
        )
        times = f", {self.times} times" if self.times > 1 else ""
        words = {
            LATE: f"what {self.member} sent came {by} later than the bounds of the order allow",
            EARLY: f"what {self.member} sent came {by} sooner than the bounds of the order allow",
            ACCURACY: f"the clock of {self.member} may be off by {by} more than the order was "
            "promised",
            UNKNOWN: f"the system of {self.member} does not say how far its clock may be off",
            SET_BACK: f"the clock of {self.member} went back by {by}",
            SET_AHEAD: f"the clock of {self.member} went ahead by {by}",
            NOT_FOLLOWED: f"the clock of {self.member} is ahead by {by}, and the others' are not: "
            "the order goes on without it; set it right",
            STAMPED_AHEAD: f"messages of {self.member} are stamped {by} ahead of the others' clocks"
            ", which take none of them until then",
        }
        return f"{words[self.kind]}{what}{times}: the order is not promised meanwhile"


class Delays(NamedTuple):
    """What is known of the delays from one member to this one, in nanoseconds."""

    batches: int
    """Those that came over its own link."""
    least_ns: tuple[int, int]
    """The least delay of them was within these."""
    most_ns: tuple[int, int]
    """The largest was within these."""

    def with_one(self, delay_ns: int, error_ns: int) -> Delays:
        """Return the same with one more, which is known up to an error."""
        low, high = max(0, delay_ns - error_ns), max(0, delay_ns + error_ns)
        (a, b), (c, d) = self.least_ns, self.most_ns
        return Delays(self.batches + 1, (min(a, low), min(b, high)), (max(c, low), max(d, high)))


NONE: Final = Delays(0, (LONGEST_NS, LONGEST_NS), (0, 0))


class ClockMonitor:
    """The own clock as the order goes by it, others' clocks, delays, and alarms."""

    def __init__(self, name: str, bounds: Bounds[Any] | None) -> None:
        self.name, self.bounds = name, bounds
        self.reading: int | None = None
        """What the order goes by; None: no clock was shown yet."""
        self.error_ns: int | None = None
        """How far the system says that its clock may be off; None: it does not."""
        self.source = ""
        """Who says so."""
        self.delays: dict[str, Delays] = {}
        """By member, from it to this one."""
        self.accuracies: dict[str, int | None] = {}
        """By member: what its newest batch said."""
        self.counts: Counter[str] = Counter()
        """Alarms by kind, of this life."""
        self.last = ""
        """The newest alarm in words."""
        self.check = ClockCheck()
        """The others' clocks."""
        self._contradicted = self._stamped_ahead = False
        """True if that was logged."""
        self._wall_ns = self._now = 0
        self._waiting: dict[tuple[str, str], BoundViolation] = {}
        self._told_ns: dict[tuple[str, str], int] = {}
        self._off: set[str] = set()
        """Members whose clocks are worse than promised, or unknown: said when it begins."""

    # -- one's own clock ---------------------------------------------------------------------------

    def shows(self, wall_ns: int, now: int, *, alone: bool = True) -> int:
        """The system's clock shows this, at a moment (ns) of one that never goes back.

        `alone`: no other member is in the group. Returns the reading that the order goes by.
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
            self._alarm(NOT_FOLLOWED, self.name, by_ns, None)

    def stamped_ahead_ns(self) -> int:
        """Return by how much the own messages are stamped ahead of most others' clocks, if so far
        that these do not take them; 0: they do.
        """
        by_ns = self.check.ahead_of_others(self.reading or 0, self._now)
        if by_ns and not self._stamped_ahead:
            self._alarm(STAMPED_AHEAD, self.name, by_ns, None)
        self._stamped_ahead = bool(by_ns)
        return by_ns

    def _judge(self, jump_ns: int, passed_ns: int) -> None:
        if self.bounds is None:
            return
        slack_ns = 2 * self.bounds.accuracy_ns + passed_ns // RATE
        if abs(jump_ns) > slack_ns:
            self._alarm(SET_BACK if jump_ns < 0 else SET_AHEAD, self.name, abs(jump_ns), None)

    def resume(self, reading: int | None, now: int) -> None:
        """After a restart: the order went by this reading last."""
        self.reading, self._now = reading, now
        self._wall_ns = reading or 0

    @property
    def ahead_ns(self) -> int:
        """How far the order's reading is ahead of the system's clock, which was set back."""
        return max(0, (self.reading or 0) - self._wall_ns)

    def system_says(self, error_ns: int | None, source: str) -> None:
        """How far the system says that its clock may be off, and who says so."""
        self.error_ns, self.source = error_ns, source
        self._check_accuracy(self.name, self.accuracy_ns, None)

    @property
    def system_clock_ns(self) -> int:
        """Last time of the system clock."""
        return self._wall_ns

    @property
    def accuracy_ns(self) -> int | None:
        """What one's own batches say of one's own clock."""
        return None if self.error_ns is None else self.error_ns + self.ahead_ns

    # -- what comes --------------------------------------------------------------------------------

    def received(self, lane: str, number: int, head: Head, *, direct: bool) -> None:
        """A batch has come now; `direct`: over a link of its sender."""
        if self.reading is None or self.bounds is None:
            return
        member = member_of(lane)
        self._check_accuracy(member, head.accuracy_ns, Id(lane, number))
        self.accuracies[member] = head.accuracy_ns
        promised = self.bounds.accuracy_ns
        ours, theirs = self.accuracy_ns, head.accuracy_ns
        error_ns = (promised if ours is None else ours) + (promised if theirs is None else theirs)
        took_ns = self.reading - head.sent_ns
        if number == 1:  # of a newcomer that says no more than that it is here: links are made yet
            direct = False
        elif took_ns > self.bounds.most_ns + error_ns:
            by_ns = took_ns - self.bounds.most_ns - error_ns
            self._alarm(LATE, member, by_ns, Id(lane, number))
        if took_ns < self.bounds.least_ns - error_ns:
            by_ns = self.bounds.least_ns - error_ns - took_ns
            self._alarm(EARLY, member, by_ns, Id(lane, number))
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
            self._alarm(UNKNOWN if accuracy_ns is None else ACCURACY, member, by_ns, batch)

    @property
    def off(self) -> tuple[str, ...]:
        """Members whose clocks are, by what they say, worse than promised, or not known."""
        return tuple(sorted(self._off))

    # -- alarms ------------------------------------------------------------------------------------

    def _alarm(self, kind: str, member: str, by_ns: int, batch: Id | None) -> None:
        self.counts[kind] += 1
        before = self._waiting.get((kind, member))
        if before is None:
            one = BoundViolation(kind, member, by_ns / NS, batch, 1)
        else:
            by_s = max(before.by_s, by_ns / NS)
            one = before._replace(by_s=by_s, times=before.times + 1)
        self._waiting[kind, member] = one

    def take_alarms(self, now: int) -> Iterator[BoundViolation]:
        """Yield, once, the alarms that are to be told at a moment (ns)."""
        for key in list(self._waiting):
            told = self._told_ns.get(key)
            if told is None or now - told >= AGAIN_NS:
                self._told_ns[key] = now
                one = self._waiting.pop(key)
                self.last = str(one)
                yield one

    # -- through a store ---------------------------------------------------------------------------

    def measured(self) -> bytes:
        """Return the delays as bytes."""
        rows = (
            (name, one.batches, *one.least_ns, *one.most_ns)
            for name, one in sorted(self.delays.items())
        )
        return pack_state((tuple(rows),))

    def remember(self, data: bytes) -> None:
        """Go on with the delays that `measured` returned. Raises DecodeError."""
        fields = unpack_state(data, 1)
        if where := misfit(fields, (MEASURED,)):
            raise DecodeError(f"no delays of a live peer: {where}")
        self.delays = {name: Delays(count, (a, b), (c, d)) for name, count, a, b, c, d in fields[0]}


def propose_bounds(
    delays: Iterable[Delays] | Mapping[str, Delays], accuracy_s: float, *, margin: float = 2.0
) -> Bounds[Any]:
    """Return bounds for an order by clocks, from delays that peers measured.

    The largest delay is the largest that can have been, times `margin`: what comes later than that
    is out of order. The least is the least that can have been. `accuracy_s`: of all clocks, that of
    the worst. Measured delays are no promise of later ones: watch the alarms. Raises LocalError
    where nothing was measured, or the margin is below 1.
    """
    known = [
        one for one in (delays.values() if isinstance(delays, Mapping) else delays) if one.batches
    ]
    if not known:
        raise LocalError("no delays were measured: let the peers talk first")
    if not margin >= 1:
        raise LocalError(
            f"margin={margin}: the largest delay that was measured is the least to allow"
        )
    least_ns = max(0, min(one.least_ns[0] for one in known))
    most_ns = round(margin * max(one.most_ns[1] for one in known))
    return Bounds(accuracy_s=accuracy_s, least_ns=least_ns, most_ns=max(least_ns, most_ns))
