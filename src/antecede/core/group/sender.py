"""Sending: what the application says becomes packets of bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from antecede.core.clocks import Seconds, group_reading
from antecede.core.group.effects import Part
from antecede.core.group.frames import format as frame
from antecede.core.group.message import Id, Message, Packet, Sent
from antecede.core.group.state import NO_CALL
from antecede.core.protocols import Addressing, Effect, MessageId, Transmit
from antecede.errors import LocalError, ProtocolError
from antecede.formatting import shown

BYTES = bytes, bytearray, memoryview
Answered = Message | Sent | Id | Sequence[Message | Sent | Id]


class Sending(Part):
    """Gives what is said to the protocol, and its messages names and bytes."""

    def send(
        self,
        payload: bytes,
        *,
        to: Sequence[str] | None = None,
        topics: Sequence[str] = (),
        reply_to: Answered = (),
        now: Seconds | None = None,
        now_ns: int | None = None,
    ) -> Sent:
        """Return the bytes that carry `payload`; the same bytes go to all whom it is for.

        That is every other member, unless the order lets it be chosen by `to` (names) or by
        `topics`; the result's `to` tells who they are, its `id` names the message. `reply_to` names
        the message(s) this one answers (order "reply"): a delivered `Message`, what `send`
        returned, or (sender, number). `now` (seconds) or `now_ns` is the own clock's reading, which
        orders by clocks need.

        Raises LocalError when the payload is not bytes or the message would exceed the own
        `max_packet` (without what frames tell of restarts and joins), when a message in `reply_to`
        was never here, when the order does not let receivers be chosen in this way, keeps no
        answers or needs the time, or when the protocol has different bytes for different members:
        then use `post` (the number is out then, and the packets wait in `outgoing`). Topics that no
        other member reads are refused before there is a number. Alone the result's `to` is empty,
        and in orders by clocks it has no bytes.
        """
        state = self._state
        topics = _listed(topics) or ()
        self._check_read(topics)
        packets = self.post(
            payload, to=to, topics=topics, reply_to=reply_to, now=now, now_ns=now_ns
        )
        if not packets:  # alone: what is sent has a number, and nothing to transmit
            message = Message(state.name, state.sent, bytes(payload))
            return Sent(b"", message, ())
        if len(packets) != 1:
            state.outbox = packets + state.outbox
            raise LocalError(
                f"{state.order} has {len(packets)} packets for different members: "
                "they wait in outgoing(); use post() instead of send()"
            )
        wire = packets[0].wire
        assert isinstance(wire, Sent)
        return wire

    def _check_read(self, topics: Sequence[str]) -> None:
        """Raise LocalError, before there is a number, for topics that no other member reads."""
        state = self._state
        subscriptions = getattr(state.protocol, "subscriptions", None)
        sound = isinstance(topics, tuple) and all(isinstance(topic, str) for topic in topics)
        if not topics or subscriptions is None or not sound:  # `_audience` judges what is unsound
            return
        if not subscriptions.targets(topics, state.protocol.others()):
            read = ", ".join(map(repr, topics))
            raise LocalError(
                f"a message of {state.name} for nobody: no other member subscribes to {read}. No "
                "number was given out (post() gives one, and returns an empty list)"
            )

    def post(
        self,
        payload: bytes,
        *,
        to: Sequence[str] | None = None,
        topics: Sequence[str] = (),
        reply_to: Answered = (),
        now: Seconds | None = None,
        now_ns: int | None = None,
    ) -> list[Packet]:
        """Return the packets that carry `payload`, each with the members that it is for.

        The bytes of each are `Sent`. Raises LocalError as `send` does, and when the order does not
        let the receivers be chosen in this way.
        """
        state = self._state
        state.call = NO_CALL
        self._check_payload(payload)
        to, topics = _listed(to), _listed(topics) or ()
        none = type(reply_to) is tuple and not reply_to
        parents = () if none else state.answered(reply_to)
        after = tuple([MessageId(state.number(p), seq) for p, seq in parents]) if parents else ()
        audience = self._audience(to, topics) if to is not None or topics else {}
        reading = None if now is now_ns is None else group_reading(now, now_ns)
        asked, packets = self._made(bytes(payload), reading, after, audience, topics)
        state.tally.sent += 1
        state.sent += 1
        if state.is_total:  # it waits for its turn from now on, maybe until the next line
            for one, _ in packets:
                state.tally.wait(state.protocol.identity(one.message), reading)
        state.inbox += self._effects.deliver(asked, reading)
        own = [self._own(one, packet, parents) for one, packet in packets]
        if state.by_reply:
            state.threads.add((state.name, state.sent), parents)
        if state.keep_log:
            chosen = None if to is None else tuple(to), tuple(topics)
            state.record("post", bytes(payload), *chosen, parents, reading)
        return own

    def _made(
        self,
        payload: bytes,
        reading: int | None,
        after: tuple[MessageId, ...],
        audience: Mapping[str, Any],
        topics: Sequence[str],
    ) -> tuple[Sequence[Effect], list[tuple[Transmit, Packet]]]:
        """Let the protocol number a message; where it is too large, take the number back."""
        state = self._state
        most, protocol = state.limits.max_packet, state.protocol
        beside = self._frames.most_beside(len(after), topics)  # None: see `_check_payload`
        safe = beside is None or len(payload) + beside <= most
        before = None if safe else protocol.snapshot()
        try:
            said = self._frames.wrapped(payload) if state.renumbers else payload
            asked = protocol.send(said, now=reading, after=after, **audience)
        except ProtocolError as error:
            state.say_names(error)
            raise
        frames = self._frames
        packets = [(one, frames.packet(one)) for one in asked if isinstance(one, Transmit)]
        if before is None:
            return asked, packets
        # As everybody counts: the same when it is written again, by whomever (`frame.counted`).
        wires = [packet.wire for _, packet in packets]
        largest = max((frame.counted(frame.unpack(state.order, w)) for w in wires), default=0)
        if largest > most:
            protocol.restore(before)
            raise LocalError(
                f"a payload of {len(payload)} bytes, and {largest - len(payload)} beside it: "
                f"max_packet={most} is the most for both. No number was given out"
            )
        return asked, packets

    def _check_payload(self, payload: bytes) -> None:
        # A number that was given out for nothing would be waited for by everybody for ever.
        if not isinstance(payload, BYTES):
            raise LocalError(f"a payload is bytes, not {type(payload).__name__}: encode it first")
        # What is beside it is counted when the bytes are there (`_made`). Roles whose messages are
        # made anew on their way do not know what they will weigh there: half is left for that.
        unknown = self._state.protocol.control_power is None
        most = self._state.limits.max_packet
        size = memoryview(payload).nbytes  # a view's length counts what it is made of
        if unknown and size > most // 2:
            raise LocalError(
                f"a payload of {size} bytes; {most // 2} can be (half of max_packet=, for what "
                "the way of a message puts beside it is not known here)"
            )
        if size > most:
            raise LocalError(f"a payload of {size} bytes; max_packet={most} is the most")

    def _own(self, effect: Transmit, packet: Packet, parents: tuple[Id, ...]) -> Packet:
        """Return the packet of one's own message, with its bytes as `Sent`."""
        state, inner = self._state, effect.message
        to, wire = packet
        name = state.roster.names[state.protocol.me]
        state.lives.hear(name, state.life, inner.seq)
        if state.renumbers:
            message = Message(name, state.sent, state.message(inner).payload)
        else:
            message = Message(name, inner.seq, inner.payload, (), parents)
        return Packet(to, Sent(wire, message, to))

    def _audience(self, to: Sequence[str] | None, topics: Sequence[str]) -> dict[str, Any]:
        """Return what the protocol's `send` takes to say whom a message is for."""
        state = self._state
        # A list that came out empty must not mean everybody.
        if to is not None and not to:
            raise LocalError("a message to nobody: name a member, or leave out to= for all")
        given: dict[str, Any] = {}
        if isinstance(to, str) or isinstance(topics, str):
            raise LocalError("to and topics are lists of names")
        for word, names, needed in (
            ("to", to, Addressing.MEMBERS),
            ("topics", topics, Addressing.TOPICS),
        ):
            if names and state.protocol.addressing is not needed:
                raise LocalError(f"with order {state.order!r} nobody is chosen by {word}=")
            if names:
                given[word] = tuple(names)
        if topics:
            from antecede.core.protocols.topics import checked_topics

            given["topics"] = checked_topics(topics)
        if to:
            given["to"] = tuple(state.number(name) for name in to)
            if state.protocol.me in given["to"]:
                raise LocalError("a message to oneself needs no group")
        return given


def _listed(names: Any) -> Any:
    """Return names as they will be read twice: a generator is used up by the first reading."""
    if names is None or isinstance(names, str):
        return names
    try:
        return tuple(names)
    except TypeError:
        raise LocalError(f"to and topics are lists of names, not {shown(names)}") from None
