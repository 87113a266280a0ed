"""Receiving of messages: identity checks, limits, and the protocol's decision."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from antecede.core.clocks import OwnClock, Seconds, group_reading
from antecede.core.group.assumptions import Assumptions
from antecede.core.group.effects import Part
from antecede.core.group.frames import format as frame
from antecede.core.group.frames.format import Frame
from antecede.core.group.incarnations import MAX_LIVES, Told
from antecede.core.group.message import Id, Message
from antecede.core.group.state import NO_CALL, RECENT
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
from antecede.formatting import shown

LIFE_BYTES = frame.MAX_NAME_BYTES + 32
SUPERSEDED = "superseded by a newer incarnation of its sender"


class Receiving(Part):
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
        - `expected_id`: sender and number that the transport vouches for (0: a control message).
        - `allowed_members`: unknown members that the message may mention, in an open group.

        Raises DecodeError or another RemoteError for bytes that no member of this group can have
        sent, MismatchError for another group or sender, UnknownMemberError for members not allowed,
        IncarnationError and ConflictError for overlapping incarnations, LimitError at a limit, and
        LocalError if the clock reading is missing. An error changes only the counters of `stats`.
        """
        self._state.call = NO_CALL
        reading = None if now is now_ns is None else group_reading(now, now_ns)
        try:
            delivered = self._take_in(wire, reading, said_by, meet)
        except RemoteError as error:
            self._state.call = NO_CALL
            self._state.tally.refuse(error)
            raise
        if self._state.keep_log:
            self._state.record("receive", bytes(wire), reading)
        return delivered

    def _take_in(
        self,
        wire: bytes,
        now: int | None,
        said_by: Id | None = None,
        meet: Collection[str] | None = None,
    ) -> list[Message]:
        state = self._state
        if not isinstance(wire, bytes):
            wire = frame.as_bytes(wire)
        most = state.limits.max_packet
        large = len(wire) > most
        if large:
            self._check_size(len(wire), most + self._room_for_lives())
        parts, lacking = self._frames.unpack(wire)
        if large:
            self._check_size(frame.counted(parts), most)
        if state.roster.forgotten:
            parts = parts._replace(
                known=tuple(one for one in parts.known if one[0] not in state.roster.forgotten)
            )
        if state.open:
            return self._from_open(parts, now, said_by, meet)
        if lacking and said_by is None:
            return self._keep_ahead(bytes(wire), parts, lacking, now)
        try:
            message = self._frames.decoded(parts)
            if state.roster.forgotten:
                if state.roster.is_forgotten(message.sender):
                    return self._drop_copy()
                message = state.protocol.without(message, state.roster.is_forgotten)
            if said_by is not None:
                self._check_said_by(said_by, message, state.roster.names)
            if lacking:
                return self._keep_ahead(bytes(wire), parts, lacking, now)
            return self._judged(message, parts, now, vouched=said_by is not None)
        except ProtocolError as error:
            state.say_names(error)
            raise

    def _drop_copy(self) -> list[Message]:
        self._state.tally.duplicates += 1
        return []

    def _room_for_lives(self) -> int:
        state = self._state
        return (len(state.roster.numbers) + state.limits.max_members) * MAX_LIVES * LIFE_BYTES

    def _check_size(self, size: int, at_most: int) -> None:
        if size > at_most:
            most = self._state.limits.max_packet
            raise LimitError(f"message of {size} bytes exceeds max_packet={most}")

    def _check_said_by(self, said_by: Id, message: Any, names: Mapping[int, str]) -> None:
        state = self._state
        number = 0 if state.is_note(message) else message.seq
        found = names.get(message.sender), number
        if found != said_by:
            raise MismatchError("sender", f"expected {_named(said_by)}, got {_named(found)}")

    # -- open groups: names in every frame ----------------------------------------------------

    def _from_open(
        self, parts: Frame, now: int | None, said_by: Id | None, meet: Collection[str] | None
    ) -> list[Message]:
        state = self._state
        with state.named_errors(parts.names):
            message = state.protocol.decode(parts.control, parts.payload)
        mentioned = set(state.protocol.mentions(message))
        if unnamed := mentioned - parts.names.keys():
            raise DecodeError(f"control information names member {min(unnamed)} without a name")
        if idle := parts.names.keys() - mentioned:
            raise DecodeError(f"name table has {parts.names[min(idle)]!r}, which is not mentioned")
        if said_by is not None:
            self._check_said_by(said_by, message, parts.names)
        if forgotten := state.roster.forgotten:
            gone = {number for number, name in parts.names.items() if name in forgotten}
            if message.sender in gone:
                return self._drop_copy()
            message = state.protocol.without(message, gone.__contains__)
            names = {number: name for number, name in parts.names.items() if number not in gone}
            parts = parts._replace(names=names)
        known = state.roster.numbers
        new = [name for name in parts.names.values() if name not in known]
        vouched = said_by is not None
        if not new:
            return self._renumbered(message, parts, now, vouched)
        if meet is not None and (strangers := set(new).difference(meet)):
            raise UnknownMemberError(f"message mentions unknown member {min(strangers)!r}")
        if type(state.protocol).unjoin is Protocol.unjoin:
            with state.unchanged_by_errors():
                return self._meet(new) + self._renumbered(message, parts, now, vouched)
        first = state.roster.next_number
        met = self._meet(new)
        try:
            return met + self._renumbered(message, parts, now, vouched)
        except Exception:
            numbers = range(first, first + len(new))
            state.protocol.unjoin(numbers)
            for number in reversed(numbers):
                state.roster.drop(number)
            raise

    def _renumbered(
        self, message: Any, parts: Frame, now: int | None, vouched: bool
    ) -> list[Message]:
        state, known = self._state, self._state.roster.numbers
        numbers = {theirs: known[name] for theirs, name in parts.names.items()}
        message = state.protocol.renumber(message, numbers)
        with state.named_errors():
            return self._judged(message, parts, now, vouched)

    def _meet(self, names: Sequence[str]) -> list[Message]:
        state = self._state
        most = state.limits.max_members
        left = most - len(state.protocol.members)
        if len(names) > left:
            raise LimitError(
                f"{names[max(left, 0)]!r} would be member {most + 1}; the limit is "
                f"max_members={most}"
            )
        new = dict(enumerate(names, start=state.roster.next_number))
        try:
            effects = state.protocol.join_all(tuple(new))
        except LocalError as error:  # the protocol's own limit, exceeded by the sender
            raise UnknownMemberError(f"message mentions {names[-1]!r}: {error}") from error
        met = self._effects.carry_out(effects, None)
        for number, name in new.items():
            state.roster.add(number, name)
        return met

    # -- incarnations and content -------------------------------------------------------------

    def _judged(
        self, message: Any, parts: Frame, now: int | None, vouched: bool = False
    ) -> list[Message]:
        """Check incarnations and content of a message, then pass it to the protocol.

        `vouched`: the transport authenticates senders. Then a frame counts only for its sender,
        since a false report about a third member would be relayed, and that member rejected.
        """
        state, lives = self._state, self._state.lives
        known = () if vouched else parts.known
        name = state.roster.names.get(message.sender)
        note = state.has_notes and state.protocol.is_note(message)
        if name is None or (state.renumbers and note):
            return self._effects.carry_out(self._within_limits(message, now), now)
        if state.renumbers:
            return self._numbered_anew(message, now)
        seq = None if note else message.seq
        # Total orders need every control message, and reject contradictions themselves.
        if not lives.check(name, parts.by, seq) and not state.is_total:
            state.tally.drop(SUPERSEDED)
            return []
        if known:
            self._check_told(known, name)
        if (known or lives.restarted) and not (note or vouched):
            lives.check_causes(state.causes(message), known, name)
        digest = 0 if note else self._digest((name, message.seq), message)
        if state.assumptions is not None and state.assumptions.listens:
            effects = self._listened(message, now, state.assumptions)
        else:
            effects = self._within_limits(message, now)
        for other, life in known:
            lives.learn(other, life)
        lives.hear(name, parts.by, seq or 0)
        for effect in effects:
            if isinstance(effect, Hold) and not vouched:
                lives.hear_of(state.causes(effect.message), known)
        if not note:
            self._remember((name, message.seq), digest)
        return self._effects.carry_out(effects, now)

    def _check_told(self, known: Told, said_by: str) -> None:
        """Reject invalid incarnations and those of unknown members: all are kept and relayed."""
        state = self._state
        numbers, lives, most = state.roster.numbers, state.lives, state.limits.max_members
        told = {name for name, _ in known}
        strangers = told - numbers.keys()
        if strangers and not state.open:
            raise UnknownMemberError(
                f"{said_by} reports an incarnation of unknown member {min(strangers)!r}"
            )
        unmet = (lives.chains.keys() | told) - numbers.keys()
        if strangers and len(state.protocol.members) + len(unmet) > most:
            raise LimitError(
                f"{said_by} reports incarnations of {len(strangers)} unknown members; the limit "
                f"is max_members={most}"
            )
        lives.check_told(known, said_by, state.name)

    def _numbered_anew(self, message: Any, now: int | None) -> list[Message]:
        """Accept a message that relays renumber: only its content is compared."""
        state = self._state
        sender, seq = state.protocol.identity(message)
        key = state.roster.name(sender), seq
        digest = self._digest(key, message)
        effects = self._within_limits(message, now)
        self._remember(key, digest)
        return self._effects.carry_out(effects, now)

    def _digest(self, key: Id, message: Any) -> int:
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
        if len(recent) > RECENT:
            recent.popitem(last=False)

    # -- limits -------------------------------------------------------------------------------

    def _within_limits(self, message: Any, now: int | None) -> Sequence[Effect]:
        """Pass a message to the protocol. At the limit, undo it if one more message is held."""
        state = self._state
        protocol, most = state.protocol, state.limits.max_held
        state.call = message, state.call[1]
        if protocol.held_count() + len(state.ahead) < most:
            return protocol.receive(message, now=now)
        if protocol.would_hold(message, now):
            raise self._full()
        if protocol.comes_first(message):
            return protocol.receive(message, now=now)
        before = protocol.snapshot()
        effects = protocol.receive(message, now=now)
        if state.held > most:
            protocol.restore(before)
            raise self._full()
        return effects

    def _listened(
        self, message: Any, now: int | None, assumptions: Assumptions
    ) -> Sequence[Effect]:
        protocol = self._state.protocol
        if message.sender == protocol.me or self._state.is_note(message):
            return self._within_limits(message, now)
        protocol.would_hold(message, now)  # raises the errors of `receive`
        floors, assumed = assumptions.begin(protocol, message)
        before = protocol.snapshot() if floors else None
        try:
            if before is not None:
                protocol.begin_at(floors)
            effects = self._within_limits(message, now)
        except ProtocolError:
            if before is not None:
                protocol.restore(before)
            raise
        assumptions.note(message, floors, assumed, effects)
        return effects

    def _full(self) -> LimitError:
        most = self._state.limits.max_held
        return LimitError(
            f"{most} messages are held, the limit is max_held={most}: retry when their causes "
            "have arrived (see missing())"
        )

    # -- frames of newer views ----------------------------------------------------------------

    def _keep_ahead(
        self, wire: bytes, parts: Frame, lacking: int, now: int | None
    ) -> list[Message]:
        """Hold a frame whose sender knows of joins not reported here."""
        state = self._state
        if wire in state.ahead:
            state.tally.duplicates += 1
            return []
        most = state.limits.max_held
        if state.held >= most:
            raise LimitError(f"{most} messages are held, the limit is max_held={most}")
        if now is None:
            self._check_timeless()
        message = self._frames.decoded(parts)
        if state.is_note(message):
            shown = Message(state.roster.name(message.sender), 0, parts.payload)
        else:
            shown = Message(*state.message(message)[:3])
        state.ahead[wire] = shown, len(state.roster.joined) + lacking, now
        return []

    def _check_timeless(self) -> None:
        """Raise LocalError if the order needs a clock reading, before the join does."""
        before = self._state.protocol.snapshot()
        try:
            self._state.protocol.tick(None)  # type: ignore[arg-type]
        finally:
            self._state.protocol.restore(before)

    def _decoded_ahead(self) -> list[Any]:
        return [self._frames.decoded(self._frames.unpack(wire)[0]) for wire in self._state.ahead]

    def _take_in_ahead(self) -> list[Message]:
        state, delivered = self._state, list[Message]()
        told = len(state.roster.joined)
        for wire in [wire for wire, (_, joins, _) in state.ahead.items() if joins <= told]:
            now = self._onward(state.ahead.pop(wire)[2])
            try:
                delivered += self._take_in(wire, now)
            except RemoteError as error:
                state.tally.refuse(error)
        return delivered

    def _onward(self, now: int | None) -> int | None:
        """Return the later of an old reading and the clock's last one."""
        clock = getattr(self._state.protocol, "own_clock", None)
        if now is None or not isinstance(clock, OwnClock) or clock.read_ns is None:
            return now
        return max(now, clock.read_ns - clock.shift_ns)


def _named(message: tuple[str | None, int]) -> str:
    sender, number = message
    what = f"message {number}" if number else "a control message"
    return f"{what} of {shown(sender) if sender is not None else 'an unknown member'}"
