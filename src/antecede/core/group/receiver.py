"""Receiving of messages: identity checks, limits, and the protocol's decision."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from antecede.core.clocks import MonotonicClock, Seconds, parse_reading
from antecede.core.group.assumptions import Assumptions
from antecede.core.group.effects import GroupPart
from antecede.core.group.frames import format as frame
from antecede.core.group.frames.format import Frame
from antecede.core.group.incarnations import MAX_INCARNATIONS, KnownIncarnations
from antecede.core.group.message import Id, Message
from antecede.core.group.state import MAX_RECENT, NO_CALL
from antecede.core.protocols import Effect, Hold, Protocol
from antecede.errors import (
    ConflictError,
    DecodeError,
    LimitError,
    LocalError,
    MismatchError,
    ProtocolError,
    RemoteError,
    UnknownMemberError,
)
from antecede.formatting import quote

INCARNATION_BYTES = frame.MAX_NAME_BYTES + 32
SUPERSEDED = "superseded by a newer incarnation of its sender"


class Receiver(GroupPart):
    """Accepts messages, or rejects them without a change."""

    def receive(
        self,
        wire: bytes,
        *,
        now: Seconds | None = None,
        now_ns: int | None = None,
        said_by: Id | None = None,
        meet: Collection[str] | None = None,
    ) -> list[Message]:
        """Process a message of another member; return messages that become deliverable, in order.

        **Parameters:**

        - `wire`: bytes of the message.
        - `now`, `now_ns`: local clock reading in seconds or ns, for orders by clocks.
        - `said_by`: sender and number that the transport vouches for (0: a control message).
        - `meet`: unknown members that the message may mention, in an open group.

        Raises DecodeError or another RemoteError for bytes that no member of this group can have
        sent. MismatchError: another group or sender. UnknownMemberError: members not allowed.
        IncarnationError and ConflictError: overlapping incarnations. LimitError: at a limit.
        LocalError: the clock reading is missing. An error changes only the counters of `stats`.
        """
        self._state.last_call = NO_CALL
        reading = None if now is now_ns is None else parse_reading(now, now_ns)
        try:
            delivered = self._process(wire, reading, said_by, meet)
        except RemoteError as error:
            self._state.last_call = NO_CALL
            self._state.counters.count_rejection(error)
            raise
        if self._state.keep_log:
            self._state.record("receive", bytes(wire), reading)
        return delivered

    def _process(
        self,
        wire: bytes,
        now: int | None,
        expected_id: Id | None = None,
        allowed_members: Collection[str] | None = None,
    ) -> list[Message]:
        state = self._state
        if not isinstance(wire, bytes):
            wire = frame.to_bytes(wire)
        most = state.limits.max_packet
        is_large = len(wire) > most
        if is_large:
            self._check_size(len(wire), most + self._estimate_incarnation_bytes())
        parts, unknown_joins = self._codec.unpack(wire)
        if is_large:
            self._check_size(frame.measure_limited(parts), most)
        if state.roster.forgotten:
            parts = parts._replace(
                known=tuple(
                    entry for entry in parts.known if entry[0] not in state.roster.forgotten
                )
            )
        if state.is_open:
            return self._process_open(parts, now, expected_id, allowed_members)
        if unknown_joins and expected_id is None:
            return self._hold_newer_view(bytes(wire), parts, unknown_joins, now)
        try:
            message = self._codec.decode(parts)
            if state.roster.forgotten:
                if state.roster.is_forgotten(message.sender):
                    return self._count_duplicate()
                message = state.protocol.without(message, state.roster.is_forgotten)
            if expected_id is not None:
                self._check_expected_id(expected_id, message, state.roster.names)
            if unknown_joins:
                return self._hold_newer_view(bytes(wire), parts, unknown_joins, now)
            return self._check_and_receive(message, parts, now, vouched=expected_id is not None)
        except ProtocolError as error:
            state.insert_names(error)
            raise

    def _count_duplicate(self) -> list[Message]:
        self._state.counters.duplicates += 1
        return []

    def _estimate_incarnation_bytes(self) -> int:
        state = self._state
        return (
            (len(state.roster.numbers) + state.limits.max_members)
            * MAX_INCARNATIONS
            * INCARNATION_BYTES
        )

    def _check_size(self, size: int, at_most: int) -> None:
        if size > at_most:
            most = self._state.limits.max_packet
            raise LimitError(f"message of {size} bytes exceeds max_packet={most}")

    def _check_expected_id(self, expected_id: Id, message: Any, names: Mapping[int, str]) -> None:
        state = self._state
        number = 0 if state.is_control(message) else message.seq
        actual = names.get(message.sender), number
        if actual != expected_id:
            raise MismatchError(
                "sender", f"expected {_describe_id(expected_id)}, got {_describe_id(actual)}"
            )

    # -- open groups: names in every frame ----------------------------------------------------

    def _process_open(
        self,
        parts: Frame,
        now: int | None,
        expected_id: Id | None,
        allowed_members: Collection[str] | None,
    ) -> list[Message]:
        state = self._state
        with state.translate_errors(parts.names):
            message = state.protocol.decode(parts.control, parts.payload)
        mentioned = set(state.protocol.mentions(message))
        if unnamed := mentioned - parts.names.keys():
            raise DecodeError(f"control information names member {min(unnamed)} without a name")
        if unmentioned := parts.names.keys() - mentioned:
            raise DecodeError(
                f"name table has {parts.names[min(unmentioned)]!r}, which is not mentioned"
            )
        if expected_id is not None:
            self._check_expected_id(expected_id, message, parts.names)
        if forgotten := state.roster.forgotten:
            forgotten_numbers = {
                number for number, name in parts.names.items() if name in forgotten
            }
            if message.sender in forgotten_numbers:
                return self._count_duplicate()
            message = state.protocol.without(message, forgotten_numbers.__contains__)
            names = {
                number: name
                for number, name in parts.names.items()
                if number not in forgotten_numbers
            }
            parts = parts._replace(names=names)
        known = state.roster.numbers
        new = [name for name in parts.names.values() if name not in known]
        vouched = expected_id is not None
        if not new:
            return self._renumber_and_accept(message, parts, now, vouched)
        if allowed_members is not None and (unknown := set(new).difference(allowed_members)):
            raise UnknownMemberError(f"message mentions unknown member {min(unknown)!r}")
        if type(state.protocol).unjoin is Protocol.unjoin:
            with state.rollback_on_error():
                return self._add_members(new) + self._renumber_and_accept(
                    message, parts, now, vouched
                )
        first = state.roster.next_number
        delivered = self._add_members(new)
        try:
            return delivered + self._renumber_and_accept(message, parts, now, vouched)
        except Exception:
            numbers = range(first, first + len(new))
            state.protocol.unjoin(numbers)
            for number in reversed(numbers):
                state.roster.drop(number)
            raise

    def _renumber_and_accept(
        self, message: Any, parts: Frame, now: int | None, vouched: bool
    ) -> list[Message]:
        state, known = self._state, self._state.roster.numbers
        numbers = {theirs: known[name] for theirs, name in parts.names.items()}
        message = state.protocol.renumber(message, numbers)
        with state.translate_errors():
            return self._check_and_receive(message, parts, now, vouched)

    def _add_members(self, names: Sequence[str]) -> list[Message]:
        state = self._state
        most = state.limits.max_members
        free = most - len(state.protocol.members)
        if len(names) > free:
            raise LimitError(
                f"{names[max(free, 0)]!r} would be member {most + 1}; the limit is "
                f"max_members={most}"
            )
        new = dict(enumerate(names, start=state.roster.next_number))
        try:
            effects = state.protocol.join_all(tuple(new))
        except LocalError as error:  # the protocol's own limit, exceeded by the sender
            raise UnknownMemberError(f"message mentions {names[-1]!r}: {error}") from error
        delivered = self._effects.carry_out(effects, None)
        for number, name in new.items():
            state.roster.add(number, name)
        return delivered

    # -- incarnations and content -------------------------------------------------------------

    def _check_and_receive(
        self, message: Any, parts: Frame, now: int | None, vouched: bool = False
    ) -> list[Message]:
        """Check incarnations and content of a message, then pass it to the protocol.

        `vouched`: the transport authenticates senders. Then a frame counts only for its sender,
        since a false report about a third member would be relayed, and that member rejected.
        """
        state, incarnations = self._state, self._state.incarnations
        known = () if vouched else parts.known
        name = state.roster.names.get(message.sender)
        note = state.has_control and state.protocol.is_control(message)
        if name is None or (state.renumbers and note):
            return self._effects.carry_out(self._receive_within_limits(message, now), now)
        if state.renumbers:
            return self._accept_by_origin(message, now)
        seq = None if note else message.seq
        # Total orders need every control message, and reject contradictions themselves.
        if not incarnations.check(name, parts.by, seq) and not state.is_total:
            state.counters.count_discard(SUPERSEDED)
            return []
        if known:
            self._check_known(known, name)
        if (known or incarnations.restarted_members) and not (note or vouched):
            incarnations.check_causes(state.find_causes(message), known, name)
        digest = 0 if note else self._check_digest((name, message.seq), message)
        if state.assumptions is not None and state.assumptions.starts_at_first_heard:
            effects = self._receive_first_heard(message, now, state.assumptions)
        else:
            effects = self._receive_within_limits(message, now)
        for member, incarnation in known:
            incarnations.add(member, incarnation)
        incarnations.record_message(name, parts.by, seq or 0)
        for effect in effects:
            if isinstance(effect, Hold) and not vouched:
                incarnations.record_causes(state.find_causes(effect.message), known)
        if not note:
            self._remember((name, message.seq), digest)
        return self._effects.carry_out(effects, now)

    def _check_known(self, known: KnownIncarnations, reporter: str) -> None:
        """Reject invalid incarnations and those of unknown members: all are kept and relayed."""
        state = self._state
        numbers, incarnations, most = (
            state.roster.numbers,
            state.incarnations,
            state.limits.max_members,
        )
        reported = {name for name, _ in known}
        unknown = reported - numbers.keys()
        if unknown and not state.is_open:
            raise UnknownMemberError(
                f"{reporter} reports an incarnation of unknown member {min(unknown)!r}"
            )
        unknown_in_all = (incarnations.by_member.keys() | reported) - numbers.keys()
        if unknown and len(state.protocol.members) + len(unknown_in_all) > most:
            raise LimitError(
                f"{reporter} reports incarnations of {len(unknown)} unknown members; the limit "
                f"is max_members={most}"
            )
        incarnations.check_known(known, reporter, state.name)

    def _accept_by_origin(self, message: Any, now: int | None) -> list[Message]:
        """Accept a message that relays renumber: only its content is compared."""
        state = self._state
        sender, seq = state.protocol.identity(message)
        key = state.roster.name(sender), seq
        digest = self._check_digest(key, message)
        effects = self._receive_within_limits(message, now)
        self._remember(key, digest)
        return self._effects.carry_out(effects, now)

    def _check_digest(self, key: Id, message: Any) -> int:
        """Return a hash of a message. Raise ConflictError if its number has other content."""
        digest = hash(message)
        if self._state.recent.get(key, digest) != digest:
            raise ConflictError(
                f"message {key[1]} of {key[0]} is known with other content: it used the number "
                "twice, or another member sends in its name"
            )
        return digest

    def _remember(self, key: Id, digest: int) -> None:
        recent = self._state.recent
        recent[key] = digest
        if len(recent) > MAX_RECENT:
            recent.popitem(last=False)

    # -- limits -------------------------------------------------------------------------------

    def _receive_within_limits(self, message: Any, now: int | None) -> Sequence[Effect]:
        """Pass a message to the protocol. At the limit, undo it if one more message is held."""
        state = self._state
        protocol, most = state.protocol, state.limits.max_held
        state.last_call = message, state.last_call[1]
        if protocol.count_held() + len(state.newer_view_frames) < most:
            return protocol.receive(message, now=now)
        if protocol.would_hold(message, now):
            raise self._make_limit_error()
        if protocol.comes_first(message):
            return protocol.receive(message, now=now)
        before = protocol.snapshot()
        effects = protocol.receive(message, now=now)
        if state.held > most:
            protocol.restore(before)
            raise self._make_limit_error()
        return effects

    def _receive_first_heard(
        self, message: Any, now: int | None, assumptions: Assumptions
    ) -> Sequence[Effect]:
        protocol = self._state.protocol
        if message.sender == protocol.me or self._state.is_control(message):
            return self._receive_within_limits(message, now)
        protocol.would_hold(message, now)  # raises the errors of `receive`
        floors, assumed = assumptions.find_assumed(protocol, message)
        before = protocol.snapshot() if floors else None
        try:
            if before is not None:
                protocol.start_from(floors)
            effects = self._receive_within_limits(message, now)
        except ProtocolError:
            if before is not None:
                protocol.restore(before)
            raise
        assumptions.record(message, floors, assumed, effects)
        return effects

    def _make_limit_error(self) -> LimitError:
        most = self._state.limits.max_held
        return LimitError(
            f"{most} messages are held, the limit is max_held={most}: retry when their causes "
            "have arrived (see missing())"
        )

    # -- frames of newer views ----------------------------------------------------------------

    def _hold_newer_view(
        self, wire: bytes, parts: Frame, unknown_joins: int, now: int | None
    ) -> list[Message]:
        """Hold a frame whose sender knows of joins not reported here."""
        state = self._state
        if wire in state.newer_view_frames:
            state.counters.duplicates += 1
            return []
        most = state.limits.max_held
        if state.held >= most:
            raise LimitError(f"{most} messages are held, the limit is max_held={most}")
        if now is None:
            self._check_timeless()
        message = self._codec.decode(parts)
        if state.is_control(message):
            shown = Message(state.roster.name(message.sender), 0, parts.payload)
        else:
            shown = Message(*state.to_message(message)[:3])
        state.newer_view_frames[wire] = shown, len(state.roster.joins) + unknown_joins, now
        return []

    def _check_timeless(self) -> None:
        """Raise LocalError if the order needs a clock reading, before the join does."""
        before = self._state.protocol.snapshot()
        try:
            self._state.protocol.tick(None)  # type: ignore[arg-type]
        finally:
            self._state.protocol.restore(before)

    def _decode_newer_view(self) -> list[Any]:
        return [
            self._codec.decode(self._codec.unpack(wire)[0])
            for wire in self._state.newer_view_frames
        ]

    def _process_newer_view(self) -> list[Message]:
        state, delivered = self._state, list[Message]()
        known_joins = len(state.roster.joins)
        for wire in [
            wire for wire, (_, joins, _) in state.newer_view_frames.items() if joins <= known_joins
        ]:
            now = self._latest_reading(state.newer_view_frames.pop(wire)[2])
            try:
                delivered += self._process(wire, now)
            except RemoteError as error:
                state.counters.count_rejection(error)
        return delivered

    def _latest_reading(self, now: int | None) -> int | None:
        """Return the later of an old reading and the clock's last one."""
        clock = getattr(self._state.protocol, "own_clock", None)
        if now is None or not isinstance(clock, MonotonicClock) or clock.read_ns is None:
            return now
        return max(now, clock.read_ns - clock.shift_ns)


def _describe_id(message: tuple[str | None, int]) -> str:
    sender, number = message
    what = f"message {number}" if number else "a control message"
    return f"{what} of {quote(sender) if sender is not None else 'an unknown member'}"
