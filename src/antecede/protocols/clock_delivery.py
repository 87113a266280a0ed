"""What `linear`, `physical` and `linear-physical` do: hold until nothing earlier can come.

Source: 002, sections 5 and 6 (receipt buffer RBF, DelCond, Deliver), with the repairs of the
errata. The relations are in `clock_relations`, numbers and recovery in `transmission`.

Theory of operation
-------------------
A message names no causes: its stamp says what may come before it and what cannot. It goes to
the application when nothing held comes before it, and nothing can come any more that does:

    delivery "null"    from every other member something has come, a message or a null message,
                       after which nothing of it can come before this one (DelCond). Needs no
                       bound of the delay; a member that falls silent stops everybody.
    delivery "bound"   so much time has passed that whatever comes before it has arrived, and no
                       gap is known that may hide such a message. Needs true bounds.

`floors[j]` is what all later messages of j have at least: their LT and PT. It rises with what is
taken in of j, so never past a gap.

LT follows arrivals, not deliveries; those of messages ahead of a gap and of discarded ones too,
because all of them are in the causal past of what is sent then.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from antecede.clocks.bounds import Bounds
from antecede.protocols.base import (
    DUPLICATE,
    NOTHING,
    OWN,
    Deliver,
    Discard,
    Effect,
    Hold,
    MessageId,
    Release,
)
from antecede.protocols.clock_relations import Floor, Relation, Separation
from antecede.protocols.held_back import released
from antecede.protocols.receipt_buffer import ReceiptBuffer
from antecede.protocols.transmission import GIVEN_UP, OVERRUN, Taken, Transmission
from antecede.protocols.transmission_messages import (
    AnyMessage,
    Gone,
    Note,
    NullMessage,
    Request,
    StampedMessage,
)

REVEALS = "reveals a gap: dropped, as printed"


class ClockDelivery(ReceiptBuffer):
    """Sends, takes in, holds and delivers; `clock_ordered` makes a whole protocol of it."""

    carries_lt: ClassVar[bool] = True
    carries_pt: ClassVar[bool] = True
    state: ClassVar[tuple[str, ...]] = (
        *Transmission.state,
        *("linear_time", "held", "floors", "heard", "arrived_s", "left_s", "delivered"),
    )
    bounds: Bounds[int] | None
    delivery: str
    recovery_s: float
    relation: Relation
    separation: Separation

    def begin(self) -> None:
        """Set up the state of a member that has heard of nobody."""
        self.linear_time = 0
        """LT: what the next message carries."""
        self.held = {}
        self.floors = dict.fromkeys(self.others(), Floor())
        self.heard: dict[int, NullMessage] = {}
        """By member: the newest null message, while something before it has not come."""
        self.arrived_s = {}
        self.left_s: dict[int, float | None] = {}
        """Who left with messages under way, and my first reading after that."""
        self.delivered = dict.fromkeys(self.others(), 0)
        """DSEQ: number of the last message delivered of each member."""
        self.look_again()

    def look_again(self) -> None:
        """Regard every held message as not looked at; what follows is derived from the state."""
        self.unseen = set(self.held)
        """Held, and to be looked at by the next delivery."""
        self.waits_for: dict[int, set[MessageId]] = {}
        """Held, by one member of which something may still come before it."""
        self.clear: set[MessageId] = set()
        """Held, and nothing can come any more that comes before it."""

    # -- sending ----------------------------------------------------------------------------

    def send(
        self,
        payload: Any,
        *,
        now: float = 0.0,
        after: Sequence[MessageId] = (),
        to: Iterable[int] | None = None,
    ) -> Sequence[Effect]:
        """Stamp and number the message; transmit it to the members in `to`, None meaning all.

        One `Transmit` in a broadcast group; where members were sent different numbers before,
        one for each. Raises LocalError for strangers, oneself, or nobody.
        """
        return self.number(payload, to, now)

    def stamp(self, now: float) -> tuple[int, float]:
        """Return the times of a message that is sent now, and let LT go on by one."""
        times = self.times(now)
        self.linear_time += self.carries_lt
        return times

    def times(self, now: float) -> tuple[int, float]:
        """Return LT and PT as they are now, 0 for what the protocol does not carry."""
        return (self.linear_time, now if self.carries_pt else 0.0)  # LT stays 0 if not carried

    # -- receiving --------------------------------------------------------------------------

    def receive(self, message: AnyMessage, *, now: float = 0.0) -> Sequence[Effect]:
        """Take in a message and deliver what can go; or hold it; ask for what it reveals to miss.

        Raises UnknownMemberError and SequenceError.
        """
        if message.sender == self.me:
            return NOTHING if self.is_note(message) else (Discard(message, OWN),)
        self.check(message)
        if not isinstance(message, StampedMessage):
            return self._receive_note(message, now)
        if self.is_old(message):
            given_up = message.seq <= self.given_up.get(message.sender, 0)
            return (Discard(message, GIVEN_UP if given_up else DUPLICATE),)
        self._advance(message.lt)
        if self._is_full(message):
            return self._overrun(message, now)
        effects = self._make_room(message)
        self._note_arrival(message, now)
        self.ahead[message.sender][message.before] = message
        if message.before <= self.done(message.sender):
            effects += self._take(self.follow(message.sender), now)
        else:
            effects += self._reveal(message.sender, message.before, now)
            if "dropped" in self.printed:
                del self.ahead[message.sender][message.before]
                return (*effects, Discard(message, REVEALS))
            self.high[message.sender] = max(self.high[message.sender], message.seq)
        if self._waits(message):
            effects.append(Hold(message, self.missing(message)))
        return effects

    def _advance(self, lt: int) -> None:
        """Let LT follow the arrival of a message."""
        if "equal-times" in self.printed:
            self.linear_time = max(self.linear_time, lt)
        elif self.carries_lt:
            self.linear_time = max(self.linear_time, lt + 1)

    def _note_arrival(self, message: StampedMessage, now: float) -> None:
        if self.delivery == "bound" and not self.carries_pt:
            self.arrived_s[self.identity(message)] = now

    def _waits(self, message: StampedMessage) -> bool:
        return self._is_ahead(message) or self.identity(message) in self.held

    def _is_ahead(self, message: StampedMessage) -> bool:
        return message.before in self.ahead[message.sender]

    def _reveal(self, sender: int, number: int, now: float) -> list[Effect]:
        """Note that this number is for me; ask for what is missing up to it, when that is new."""
        high = max(self.high[sender], self.done(sender))
        if number <= high:
            return []
        self.high[sender] = number
        return self.ask(sender, [(high + 1, number)], now)

    def _receive_note(self, note: Note, now: float) -> Sequence[Effect]:
        sender = note.sender
        if isinstance(note, Request):
            return self.answer(note)
        if isinstance(note, Gone):
            return self._pass_over(sender, note.last, now)
        self.linear_time = max(self.linear_time, note.lt)
        if note.last > self.done(sender):
            before = self.heard.get(sender, note)
            self.heard[sender] = max(before, note, key=lambda one: (one.last, one.lt, one.pt_s))
            return self._reveal(sender, note.last, now)
        self._raise_floor(sender, note.lt, note.pt_s)
        return self._deliver(now)

    def _pass_over(self, member: int, last: int, now: float) -> list[Effect]:
        """Give up what is missing of a member up to a number, and go on without it."""
        run = self.give_up(member, last)
        self.look_again()
        return self._take(run, now)

    def _take(self, run: Iterable[Taken], now: float) -> list[Effect]:
        """Hold what was taken in, raise the floors, and deliver what can go."""
        for taken in run:
            message = taken.message
            key = self.identity(message)
            self.held[key] = taken
            self.unseen.add(key)
            self._raise_floor(message.sender, message.lt + 1, message.pt_s)
        for sender, note in list(self.heard.items()):
            if note.last <= self.done(sender):
                del self.heard[sender]
                self._raise_floor(sender, note.lt, note.pt_s)
        return self._deliver(now)

    def _raise_floor(self, member: int, lt: int, pt_s: float) -> None:
        floor = self.floors[member]
        self.floors[member] = Floor(max(floor.lt, lt), max(floor.pt_s, pt_s))
        self.unseen |= self.waits_for.pop(member, set())

    def _overrun(self, message: StampedMessage, now: float) -> Sequence[Effect]:
        """Discard a message for which there is no room; it is asked for in `retry_s`."""
        sender = message.sender
        effects: list[Effect] = [Discard(message, OVERRUN)]
        effects += self._reveal(sender, message.before, now)
        self.high[sender] = max(self.high[sender], message.seq)
        self.asked_s.setdefault(sender, now)
        if message.before <= self.done(sender):
            # Nothing earlier comes from its sender: the others may go by that, and make room.
            self._raise_floor(sender, message.lt, message.pt_s)
            effects += self._deliver(now)
        return effects

    # -- delivery -----------------------------------------------------------------------------

    def _deliver(self, now: float) -> list[Effect]:
        """Take out of the buffer what may go, in its order (DelCond, Deliver)."""
        self._look()
        due = {key for key in self.clear if self._is_due(key, now)}
        if not due:
            return []
        free = released(
            self.held,
            lambda one: self.identity(one.message) in due,
            lambda a, b: self._precedes(a.message, b.message),
            lambda one: self._rank(one.message),
        )
        effects: list[Effect] = []
        for message, missing in free:
            key = self.identity(message)
            self.clear.discard(key)
            self.arrived_s.pop(key, None)
            self.delivered[message.sender] = message.seq + ("dseq" in self.printed)
            effects.append(Release(message, missing) if missing else Deliver(message))
        return effects

    def _look(self) -> None:
        """File what is not looked at under one member that it waits for, or as clear.

        Under delivery "bound" a gap may open later: what is clear is asked again when it is due.
        """
        for key in self.unseen:
            member = self._in_the_way(key)
            if member is None:
                self.clear.add(key)
            else:
                self.waits_for.setdefault(member, set()).add(key)
        self.unseen = set()

    def _in_the_way(self, key: MessageId) -> int | None:
        """Return a member of which something may still come before a held message, if any."""
        message = self.held[key].message
        others = (member for member in self.floors if member != message.sender)
        return next((k for k in others if not self._is_clear(k, message)), None)

    def _is_due(self, key: MessageId, now: float) -> bool:
        """Tell whether a clear message has waited for what the delivery asks for."""
        message = self.held[key].message
        if "dseq" in self.printed and self.delivered[message.sender] != message.seq - 1:
            return False
        if self.delivery == "null":
            return True
        return self._has_waited(message, now) and self._in_the_way(key) is None

    def _precedes(self, a: StampedMessage, b: StampedMessage) -> bool:
        if a.sender == b.sender:
            return a.seq < b.seq
        return self.relation.precedes(a, b)

    def _is_clear(self, member: int, message: StampedMessage) -> bool:
        """Tell whether no message of a member can still come before this one."""
        if self.delivery == "bound" and self.first_gap(member) is None:
            return True
        if self.done(member) >= self.last.get(member, self.done(member) + 1):
            return True
        return self.relation.excludes(self.floors[member], member, message)

    def _has_waited(self, message: StampedMessage, now: float) -> bool:
        """Tell whether all that comes before a message must have arrived, if nothing is lost."""
        since_s = message.pt_s if self.carries_pt else self.arrived_s[self.identity(message)]
        return now - since_s > self.wait_s(message.sender)

    def wait_s(self, sender: int) -> float:
        """Return how long a message waits under delivery "bound", in seconds of my clock.

        After its PT; or after its arrival, where it carries none. A cause of a third member k was
        sent the least delay of a path from k to the sender before; the readings differ from
        true time by the accuracies. Causes of the sender itself come by number.
        """
        assert self.bounds is not None
        stretch_s = self.separation.stretch_s(sender, self.me)
        mine_s = self.bounds.accuracy(self.me)
        if self.carries_pt:
            return stretch_s + self.bounds.accuracy(sender) + mine_s + self.recovery_s
        return stretch_s - self.bounds.least(sender, self.me) + 2 * mine_s + self.recovery_s

    # -- time ---------------------------------------------------------------------------------

    def tick(self, now: float) -> Sequence[Effect]:
        """Deliver what has waited long enough; ask again; send null messages."""
        effects = self._close(now)
        if self.delivery == "bound":
            effects += self._deliver(now)
        return (*effects, *self.retries(now), *self.heartbeats(now))

    def _close(self, now: float) -> list[Effect]:
        """Wait for a member that left no longer than its messages can be under way."""
        effects: list[Effect] = []
        for member, left_s in sorted(self.left_s.items()):
            if left_s is None:
                self.left_s[member] = now
            elif now - left_s > self.under_way_s(member):
                del self.left_s[member]
                effects += self._pass_over(member, self.last[member], now)
        return effects

    def under_way_s(self, member: int) -> float:
        """Return how long what a member sent can be under way to me, in seconds of my clock."""
        assert self.bounds is not None
        return self.bounds.most(member, self.me) + 2 * self.bounds.accuracy(self.me)

    # -- explanations -------------------------------------------------------------------------

    def missing(self, message: StampedMessage) -> tuple[MessageId, ...]:
        """Return what a held message waits for, as far as that is known to exist.

        The last message of the first gap: of its sender when it is ahead, else of each other
        member whose gap may hide something before it. Empty: it waits for time, or null messages.
        """
        if self._is_ahead(message):
            gap = self.first_gap(message.sender)
            return (gap,) if gap else ()
        others = (member for member in sorted(self.floors) if member != message.sender)
        gaps = map(self.first_gap, others)
        return tuple(gap for gap in gaps if gap and not self._is_clear(gap.sender, message))
