"""Replay of one member's log through its `Group`: the outcome of each row.

Theory of operation
-------------------
The rows of one (group, observer) come in order of arrival. Time passes up to each row; then
`Group.receive` gets its bytes. Each of `Group.effects` is assigned to the row of its message: a
held row, or the current one.

**Own messages.** A row marked as sent is sent again by `Group.send_packets`. Protocols are
deterministic, so other bytes mean an incomplete log, which the row's reason notes. Further copies
of the last sent message are not sent again. Control messages (acknowledgements, heartbeats) are
generated here.

**Time** is in whole nanoseconds and never goes back: earlier rows are taken at the current clock.
Protocols that need ticks get them at the multiples of `tick_s`; `Group.tick_range` finds the first
with an effect. Of ticks that only send heartbeats, the first `MAX_IDLE_TICKS` of a gap are
replayed.

**Total order.** An observer's own messages are delivered in the total order. So the row of a
sending is held like a received one and leaves, as sent, with the position of that delivery. In
other orders such a row leaves at once, without a position.

**Patience.** A row whose patience is over leaves, but the protocol still holds its message. A later
delivery gives no row, and positions stay without gaps.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, TypeAlias

from antecede.core.clocks import LONGEST_NS, Seconds, seconds_text, span_ns, up_ns
from antecede.core.group import GroupEffect, HeldMessage, Id, Message
from antecede.core.protocols import DUPLICATE, OWN, Relation
from antecede.core.protocols.serialization import (
    BYTES,
    NUMBER,
    SIGNED,
    TEXT,
    TIME,
    Many,
    OneOf,
    Shape,
    misfit,
    pack_state,
    unpack_state,
)
from antecede.errors import DecodeError, LocalError, ProtocolError
from antecede.tables.order.replay.spec import DeliverSpec, DeliverStatus

Key: TypeAlias = tuple[int, int]
"""Name of a message at its member, as in `Group.effects` and `Group.map_held_by_id`."""
NS_PER_MS = 10**6
MAX_IDLE_TICKS = 1000
"""Number of ticks in a row with heartbeats only, after which heartbeats are not replayed."""
_FIELDS = 9
_SCHEMA: Shape = (
    *(BYTES, OneOf(None, TIME), SIGNED, NUMBER, NUMBER),
    Many(((NUMBER, NUMBER), NUMBER, TIME, Many(TEXT), OneOf(None, TEXT))),
    Many((NUMBER, NUMBER)),
    *(Many(BYTES), Many(BYTES)),
)


class LoggedRow(NamedTuple):
    """Row of an observer; `to` and `topics` are arguments that the bytes do not contain."""

    ticket: int
    time_ns: int
    wire: bytes | None
    sent: bool = False
    to: tuple[str, ...] | None = None  # recipients, where the bytes lack them
    topics: tuple[str, ...] | None = None  # topics of an own message without bytes


class RowOutcome(NamedTuple):
    """Outcome of a row; None where a field does not apply."""

    ticket: int
    status: DeliverStatus
    position: int | None = None
    waited_ms: float | None = None
    waits_for: tuple[str, ...] | None = None
    reason: str | None = None
    sender: str | None = None
    seq: int | None = None
    payload: bytes | None = None


class HeldRow(NamedTuple):
    """Held row with its missing messages at arrival; `reason` is kept for its outcome."""

    arrival_number: int
    since_ns: int
    waits_for: tuple[str, ...]
    reason: str | None = None


class ReplayedMember:
    """Group of one observer, and the rows that it holds back. Raises LocalError without a group."""

    def __init__(self, spec: DeliverSpec, name: str, group: Any = None) -> None:
        self.group = spec.group_of(name, group)
        self._needs_ticks = self.group.needs_ticks
        self._is_total_order = self.group.guarantee.relation is Relation.TOTAL
        """Own messages are delivered in their total order, so that their rows wait."""
        self._tick_ns = span_ns(spec.tick_s, "tick_s")
        self._patience_ns = (
            None if spec.patience_s is None else up_ns(spec.patience_s, "patience_s")
        )
        self._now_ns: int | None = None
        self._last_tick = 0
        self._next_position = 0
        self._held: dict[Key, HeldRow] = {}
        self._expired: set[Key] = set()
        self._sent_wires: tuple[bytes, ...] = ()
        self._unlogged_wires: tuple[bytes, ...] = ()
        self.tickets = 0

    @property
    def waiting(self) -> frozenset[int]:
        """Arrival numbers of the held rows."""
        return frozenset(waiting.arrival_number for waiting in self._held.values())

    # -- rows and time ----------------------------------------------------------------------

    def process_row(self, row: LoggedRow) -> list[RowOutcome]:
        """Let time pass up to a row and process it; return all rows that leave."""
        left = self.advance(row.time_ns)
        now = self._now_ns or 0
        try:
            if row.wire is None and not (row.sent and row.topics is not None):
                raise LocalError("no bytes")
            if row.sent:
                return [*left, *self._resend(row, now)]
            assert row.wire is not None
            ahead = self.group.stats().ahead
            self.group.receive(row.wire, now_ns=now)
            if self.group.stats().ahead > ahead:
                raise DecodeError("its sender knows a member that members= lacks")
        except ProtocolError as error:
            return [*left, RowOutcome(row.ticket, DeliverStatus.REJECTED, reason=str(error))]
        self.group.take_control_packets()
        return [*left, *self._collect_received(row.ticket)]

    def advance(self, until_ns: int) -> list[RowOutcome]:
        """Let time pass up to an instant; return the rows that leave."""
        if self._now_ns is None:
            self._now_ns, self._last_tick = until_ns, until_ns // self._tick_ns
        left: list[RowOutcome] = []
        while self._now_ns < until_ns or self._is_overdue(self._now_ns):
            stop = min(until_ns, self._find_deadline(until_ns))
            if self._needs_ticks:
                left += self._tick_up_to(stop)
            self._now_ns = max(self._now_ns, stop)
            left += self._expire_rows()
        return left

    def finish(self, finish_s: Seconds) -> list[RowOutcome]:
        """Let this time pass, then return the held rows as HELD."""
        left = []
        if self._now_ns is not None:
            left += self.advance(self._now_ns + up_ns(finish_s, "finish_s"))
        blocked = self.group.map_held_by_id() if self._held else {}
        for key, waiting in self._held.items():
            left.append(self._make_held_outcome(waiting, blocked.get(key), DeliverStatus.HELD))
        self._held = {}
        return left

    def due(self) -> int | None:
        """Return a time before which time alone changes nothing; None: there is none."""
        if not self._held or self._now_ns is None:
            return None
        if self._needs_ticks:
            return (self._last_tick + 1) * self._tick_ns
        return None if self._patience_ns is None else self._find_deadline(4 * LONGEST_NS)

    # -- time -------------------------------------------------------------------------------

    def _find_deadline(self, otherwise: int) -> int:
        if self._patience_ns is None or not self._held:
            return otherwise
        return next(iter(self._held.values())).since_ns + self._patience_ns

    def _is_overdue(self, now: int) -> bool:
        return self._find_deadline(now + 1) <= now

    def _tick_up_to(self, stop: int) -> list[RowOutcome]:
        left: list[RowOutcome] = []
        last, idle = stop // self._tick_ns, 0
        while self._last_tick < last:
            multiples = range(
                (self._last_tick + 1) * self._tick_ns, last * self._tick_ns + 1, self._tick_ns
            )
            reading, _ = self.group.tick_range(multiples, notes=idle < MAX_IDLE_TICKS)
            self._last_tick = reading // self._tick_ns
            self._now_ns = max(self._now_ns or 0, reading)
            about = any(effect.kind != "sent" for effect in self.group.effects())
            idle = 0 if about else idle + 1
            left += self._assign_effects(None)
            self.group.take_control_packets()
        return left

    def _expire_rows(self) -> list[RowOutcome]:
        left: list[RowOutcome] = []
        blocked: dict[Key, HeldMessage] = {}
        while self._now_ns is not None and self._is_overdue(self._now_ns):
            blocked = blocked or self.group.map_held_by_id()
            key = next(iter(self._held))
            waiting = self._held.pop(key)
            self._expired.add(key)
            left.append(self._make_held_outcome(waiting, blocked.get(key), DeliverStatus.EXPIRED))
        return left

    # -- effects and rows -------------------------------------------------------------------

    def _collect_received(self, arrival_number: int) -> list[RowOutcome]:
        left = self._assign_effects(arrival_number)
        named = any(outcome.ticket == arrival_number for outcome in left)
        held = (
            bool(self._held)
            and next(reversed(self._held.values())).arrival_number == arrival_number
        )
        if not named and not held:
            left.append(RowOutcome(arrival_number, DeliverStatus.CONTROL))
        return left

    def _assign_effects(self, arrival_number: int | None) -> list[RowOutcome]:
        left = []
        for effect in self.group.effects():
            key = effect.id
            if effect.kind == "sent" or key is None:
                continue
            if effect.kind == "held":
                # Roles that only forward report holding a message, not its release.
                if arrival_number is not None and self.group.has_application:
                    self._held[key] = HeldRow(
                        arrival_number, self._now_ns or 0, _format_ids(effect.waits_for)
                    )
                continue
            waiting = self._held.get(key)
            current = effect.arrived and arrival_number is not None
            copy = current and effect.kind == "discarded"
            if waiting is not None and (not copy or waiting.arrival_number == arrival_number):
                del self._held[key]
                left.append(self._make_outcome(effect, waiting))
            elif key in self._expired and not copy:
                self._expired.discard(key)
            elif current and arrival_number is not None:
                left.append(
                    self._make_outcome(effect, HeldRow(arrival_number, self._now_ns or 0, ()))
                )
        return left

    def _make_outcome(self, effect: GroupEffect, waiting: HeldRow) -> RowOutcome:
        message = effect.message
        assert message is not None
        waited_ms = ((self._now_ns or 0) - waiting.since_ns) / NS_PER_MS
        if effect.kind == "discarded":
            twice = effect.reason in (DUPLICATE, OWN)
            status = DeliverStatus.DUPLICATE if twice else DeliverStatus.DISCARDED
            outcome = RowOutcome(waiting.arrival_number, status, reason=effect.reason)
            return outcome._replace(sender=message.sender, seq=message.seq, payload=message.payload)
        own = self._is_total_order and message.sender == self.group.name
        status = DeliverStatus.SENT if own else DeliverStatus.DELIVERED
        waits_for = waiting.waits_for
        if effect.kind == "delivered_incomplete":
            status, waits_for = DeliverStatus.RELEASED, _format_ids(effect.waits_for)
        position, self._next_position = self._next_position, self._next_position + 1
        fields = waits_for, waiting.reason, *_read_fields(message)
        return RowOutcome(waiting.arrival_number, status, position, waited_ms, *fields)

    def _make_held_outcome(
        self, waiting: HeldRow, held: HeldMessage | None, status: DeliverStatus
    ) -> RowOutcome:
        waited_ms = ((self._now_ns or 0) - waiting.since_ns) / NS_PER_MS
        arrival_number, waits_for, reason = (
            waiting.arrival_number,
            waiting.waits_for,
            waiting.reason,
        )
        if held is None:
            return RowOutcome(arrival_number, status, None, waited_ms, waits_for, reason)
        reasons = (
            reason,
            held.reason or _describe_silent(held),
            _describe_early(held, self._now_ns or 0),
        )
        reason = "; ".join(text for text in reasons if text) or None
        fields = _read_fields(held.message)
        return RowOutcome(
            arrival_number, status, None, waited_ms, _format_ids(held.waits_for), reason, *fields
        )

    # -- own messages -----------------------------------------------------------------------

    def _resend(self, arrival: LoggedRow, now: int) -> list[RowOutcome]:
        arrival_number, wire = arrival.ticket, arrival.wire
        if wire is not None and wire in self._sent_wires:
            if wire not in self._unlogged_wires:
                return [RowOutcome(arrival_number, DeliverStatus.DUPLICATE, reason=DUPLICATE)]
            self._unlogged_wires = tuple(other for other in self._unlogged_wires if other != wire)
            return [RowOutcome(arrival_number, DeliverStatus.SENT)]
        payload = b""
        logged = {"to": arrival.to, "topics": arrival.topics}
        chosen: dict[str, Any] = {n: value for n, value in logged.items() if value is not None}
        if wire is not None:
            arguments = self.group.decode_own(wire)
            if arguments is None:  # a control message, which the protocol generates again
                return [RowOutcome(arrival_number, DeliverStatus.CONTROL)]
            payload, chosen = arguments.payload, {**arguments._asdict(), **chosen}
            del chosen["payload"]
            self.group.resume_incarnation(wire)
        packets = self.group.send_packets(payload, now_ns=now, **chosen)
        self.group.take_control_packets(), self.group.take_own_deliveries()
        self._sent_wires = tuple(packet.wire for packet in packets)
        self._unlogged_wires = tuple(other for other in self._sent_wires if other != wire)
        same = wire in self._sent_wires if wire is not None else not packets
        reason = None if same else "the protocol sends other bytes here: the log may be incomplete"
        return self._collect_sent(arrival_number, reason, payload)

    def _collect_sent(
        self, arrival_number: int, reason: str | None, payload: bytes
    ) -> list[RowOutcome]:
        sent = [effect for effect in self.group.effects() if effect.kind == "sent" and effect.id]
        if self._is_total_order and sent:
            assert sent[0].id is not None
            self._held[sent[0].id] = HeldRow(arrival_number, self._now_ns or 0, (), reason)
            return self._assign_effects(None)
        own = sent[0].message if sent else None
        fields = _read_fields(own) if own else (self.group.name, None, payload)
        outcome = RowOutcome(arrival_number, DeliverStatus.SENT, None, None, None, reason, *fields)
        return [outcome, *self._assign_effects(None)]

    # -- snapshot ---------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return the whole state as bytes."""
        counts = self._now_ns, self._last_tick, self._next_position, self.tickets
        held = tuple((key, *waiting) for key, waiting in self._held.items())
        expired = tuple(sorted(self._expired))
        state = (
            self.group.snapshot(),
            *counts,
            held,
            expired,
            self._sent_wires,
            self._unlogged_wires,
        )
        return pack_state(state)

    def restore(self, state: bytes) -> None:
        """Restore a snapshot in an observer made with the same arguments."""
        parts = unpack_state(state, _FIELDS)
        if where := misfit(parts, _SCHEMA):
            raise DecodeError(f"invalid stored state of an observer: {where}")
        group, *counts, held, expired, posted, unclaimed = parts
        self.group.restore(group, resume=True)
        self._sent_wires, self._unlogged_wires = posted, unclaimed
        self._now_ns, self._last_tick, self._next_position, self.tickets = counts
        self._held = {key: HeldRow(*waiting) for key, *waiting in held}
        self._expired = set(expired)


def _read_fields(message: Message) -> tuple[str, int, bytes]:
    return message.sender, message.seq, message.payload


def _format_ids(ids: Iterable[Id]) -> tuple[str, ...]:
    return tuple(f"{sender}:{seq}" for sender, seq in ids)


def _describe_early(held: HeldMessage, now_ns: int) -> str | None:
    left_ns = 0 if held.until_ns is None else held.until_ns - now_ns
    return f"{seconds_text(left_ns)} s before its earliest release" if left_ns > 0 else None


def _describe_silent(held: HeldMessage) -> str | None:
    names = ", ".join(held.silent)
    return f"waits for a message of {names}" if names else None
