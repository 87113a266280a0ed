"""Matrix: causal broadcast by matrix clocks, with recovery of lost messages.

Source: Sahai et al. 2020, "Matrix Time" (see `matrix.base` for order and stability). Recovery is
not part of the source.

Theory of operation
-------------------
With `recovering`, a member that has sent nothing for `heartbeat_s` sends its matrix as a heartbeat:
a message without a number, with the sender's principal vector as causes. R2 is applied when these
are delivered. Until then the newest heartbeat of each member names messages that are missing here.
Held messages and the last numbers of departed members name missing messages too.

Messages that are missing for `retry_s` are requested, all gaps of an origin in one request. The
request goes first to the origin, then in turn to every member that is known to have them, again
every `retry_s`. The answer is taken from the buffer. A member counts as having a message only after
it received it. So every message stays buffered at some member that has it until all do.

Only messages that reached no other member before their sender left are lost. They and their
dependents are discarded after `MAX_TRIES` requests without a member to ask. If a member turns out
to have such a message, it is requested again.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from antecede.core.clocks import MonotonicClock, intervals, lanes, span_ns
from antecede.core.protocols.base import (
    NOTHING,
    OWN,
    Discard,
    Effect,
    Guarantee,
    MessageId,
    Relation,
    Transmit,
)
from antecede.core.protocols.matrix import messages as wire
from antecede.core.protocols.matrix.base import MatrixBase
from antecede.core.protocols.matrix.messages import (
    AnyMessage,
    Heartbeat,
    MatrixMessage,
    MatrixRequest,
)
from antecede.core.protocols.options.checks import ANY_VALUE, Requires
from antecede.errors import SequenceError, UnknownMemberError

MAX_TRIES = 4
LATE_CONTROL = "control message of a departed member"
LOST = "depends on a message that was lost with its sender"
CLOCK_USER = "matrix with recovery"


class Matrix(MatrixBase):
    """Member of a group with causal order; `recovering` tolerates message loss.

    `heartbeat_s`: longest silence. `retry_s`: time until a missing message is requested (again).
    Both are in seconds of the member's clock, above 0. Raises LocalError.
    """

    def __init__(
        self,
        me: int,
        members: Iterable[int],
        *,
        differences: bool = False,
        recovering: bool = False,
        heartbeat_s: float = 1.0,
        retry_s: float = 2.0,
    ) -> None:
        super().__init__(me, members, differences=differences)
        self.recovering = recovering
        self.heartbeat_ns = span_ns(heartbeat_s, "heartbeat_s")
        self.retry_ns = span_ns(retry_s, "retry_s")
        self.own_clock = MonotonicClock()
        self.last_sent_ns = 0
        self.heartbeats: dict[int, Heartbeat] = {}
        """Newest heartbeat of each member that has messages which are missing here."""
        self.requests: dict[int, tuple[int, int]] = {}
        """Origin -> (time when its gap was found or last requested, number of requests)."""
        if recovering:
            self.guarantee = Guarantee(
                Relation.BY_DELIVERY,
                joins=True,
                leaves=True,
                survives_loss=True,
                needs_time=True,
                remark="needs ticks; messages that reached no other member before their sender "
                "left are abandoned",
            )

    dependent_options: ClassVar[tuple[Requires, ...]] = (
        Requires("heartbeat_s", (("recovering", ANY_VALUE),)),
        Requires("retry_s", (("recovering", ANY_VALUE),)),
    )

    @classmethod
    def trial_options(cls, members: Sequence[int]) -> Mapping[str, Any]:
        return {"heartbeat_s": 20.0, "retry_s": 20.0}

    def send(
        self, payload: Any, *, now: int | None = None, after: Sequence[MessageId] = ()
    ) -> Sequence[Effect]:
        if self.recovering:
            self.last_sent_ns, self.own_clock = self.own_clock.at(now, CLOCK_USER)
        return super().send(payload, now=now, after=after)

    def receive(self, message: AnyMessage, *, now: int | None = None) -> Sequence[Effect]:
        if self.recovering:
            self.own_clock.at(now, CLOCK_USER)  # only to raise LocalError without `now`
        if isinstance(message, MatrixMessage):
            return super().receive(message, now=now)
        if message.sender == self.me:
            return (Discard(message, OWN),)
        if message.sender in self.last:
            return (Discard(message, LATE_CONTROL),)
        if isinstance(message, MatrixRequest):
            return self._answer(message)
        self._check_heartbeat(message)
        return self._receive_heartbeat(message)

    def would_hold(self, message: Any, now: int | None = None) -> bool:
        if self.recovering:
            self.own_clock.at(now, CLOCK_USER)
        return isinstance(message, MatrixMessage) and super().would_hold(message, now)

    def _check_heartbeat(self, note: Heartbeat) -> None:
        self.check(note._replace(seq=lanes.get(note.causes, note.sender) + 1))

    def _receive_heartbeat(self, note: Heartbeat) -> Sequence[Effect]:
        if self._covers(note.causes):
            self.learn(note)
            return NOTHING
        older = self.heartbeats.get(note.sender)
        if older is None or lanes.dominates(note.causes, older.causes, self.guard):
            self.heartbeats[note.sender] = note
        return NOTHING

    def _answer(self, request: MatrixRequest) -> Sequence[Effect]:
        sender, origin, last = request.sender, request.origin, request.bounds[-1] - 1
        if sender not in self.counts:
            raise UnknownMemberError(f"request from member {sender}, who is not in the group")
        if origin != self.me and origin not in self.counts:
            raise UnknownMemberError(
                f"member {sender} requests messages of member {origin}, who is not in the group"
            )
        if origin == self.me and last > self.sent:
            raise SequenceError(
                f"member {sender} requests message {last} of this member, which has sent "
                f"{self.sent}"
            )
        wanted = [
            k for k in self.buffer.list_numbers(origin) if intervals.contains(request.bounds, k)
        ]
        return tuple(Transmit((sender,), self.buffer.get(origin, k)) for k in wanted)

    def list_undelivered(self) -> Iterable[Any]:
        return (*super().list_undelivered(), *self.heartbeats.values())

    def _covers(self, vector: int) -> bool:
        return (self.clock - vector) & self.guard == self.guard

    # -- time -------------------------------------------------------------------------------

    def tick(self, now: int) -> Sequence[Effect]:
        now, self.own_clock = self.own_clock.at(now, CLOCK_USER)
        for sender in sorted(self.heartbeats):
            if self._covers(self.heartbeats[sender].causes):
                self.learn(self.heartbeats.pop(sender))
        self.sweep()
        if not self.recovering:
            return NOTHING
        effects = self._request_missing(now)
        if now - self.last_sent_ns >= self.heartbeat_ns and self.others():
            self.last_sent_ns = now
            vector, rows = self.clock ^ self.guard, self.select_rows()
            note = Heartbeat(self.me, 0, self.note_payload, vector, rows)
            effects.append(Transmit(self.others(), note))
        return effects

    def _request_missing(self, now: int) -> list[Effect]:
        lacking = self.find_missing_ranges()
        self.requests = {origin: at for origin, at in self.requests.items() if origin in lacking}
        effects: list[Effect] = []
        for origin, bounds in sorted(lacking.items()):
            since, tries = self.requests.setdefault(origin, (now, 0))
            if now - since < self.retry_ns:
                continue
            self.requests[origin] = now, tries + 1
            holders = self.list_holders(origin, bounds[0])
            if holders:
                request = MatrixRequest(self.me, 0, self.note_payload, origin, bounds)
                effects.append(Transmit((holders[tries % len(holders)],), request))
            elif tries >= MAX_TRIES:
                effects += self._abandon(origin, bounds[0])
        return effects

    def find_missing_ranges(self) -> dict[int, tuple[int, ...]]:
        """Return the messages by origin that are known to exist and not here, as ranges."""
        known = lanes.pack(self.last.items())
        for vector in self._list_vectors().values():
            known = lanes.merge(known, vector, self.guard)
        lacking = {}
        for origin, last in lanes.items(known):
            done = self.sent if origin == self.me else self.counts[origin]
            here = sorted(seq for sender, seq in self.held if sender == origin)
            bounds: list[int] = []
            for seq in (*here, last + 1):
                if done + 1 < seq <= last + 1:
                    bounds += (done + 1, seq)
                done = max(done, seq)
            if bounds:
                lacking[origin] = tuple(bounds)
        return lacking

    def _list_vectors(self) -> dict[tuple[int, int], int]:
        """Return the vectors of heartbeats (number 0) and held messages by (sender, number)."""
        heard = {(sender, 0): note.causes for sender, note in self.heartbeats.items()}
        return heard | {key: wire.principal(message) for key, message in self.held.items()}

    def list_holders(self, origin: int, number: int) -> list[int]:
        """Return the members to ask for a message: its origin, then those known to have it."""
        known = {
            sender
            for (sender, _), vector in self._list_vectors().items()
            if lanes.get(vector, origin) >= number
        }
        first = [origin] if origin in self.members else []
        return first + sorted((known & {*self.members}) - {origin, self.me})

    def _abandon(self, origin: int, number: int) -> list[Effect]:
        """Discard the held messages that depend on a message which no member has."""
        # Current members among the senders would have been asked.
        needs = {key: wire.principal(message) for key, message in self.held.items()}
        hopeless = sorted(key for key in needs if lanes.get(needs[key], origin) >= number)
        effects: list[Effect] = [Discard(self.held.pop(key), LOST) for key in hopeless]
        if effects:
            self._rebuild_index()
        return effects

    # -- membership and snapshot --------------------------------------------------------------

    def leave(self, member: int, last: int) -> Sequence[Effect]:
        effects = super().leave(member, last)
        self.heartbeats.pop(member, None)
        return effects

    def extra_state(self) -> Hashable:
        notes = tuple(note for _, note in sorted(self.heartbeats.items()))
        return (
            super().extra_state(),
            self.last_sent_ns,
            notes,
            tuple(sorted(self.requests.items())),
            self.own_clock,
        )

    def set_extra_state(self, extra: Any) -> None:
        rows, self.last_sent_ns, notes, asked, self.own_clock = extra
        super().set_extra_state(rows)
        self.heartbeats = {note.sender: note for note in notes}
        self.requests = dict(asked)

    def check_whole(self) -> None:
        super().check_whole()
        for note in self.heartbeats.values():
            if note.sender in self.last or note.seq:
                raise ValueError(f"heartbeats: one of member {note.sender}")
            self._check_heartbeat(note)
        known = {*self.counts, self.me}
        if not known.issuperset(self.requests):
            raise ValueError(f"asked: members {sorted(self.requests)}")

    def is_control(self, message: AnyMessage) -> bool:
        return not isinstance(message, MatrixMessage)
