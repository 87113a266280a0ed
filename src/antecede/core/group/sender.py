"""Sending of application messages as packets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from antecede.core.clocks import Seconds, parse_reading
from antecede.core.group.effects import GroupPart
from antecede.core.group.frames import format as frame
from antecede.core.group.message import Id, Message, Packet, Sent
from antecede.core.group.state import NO_CALL
from antecede.core.protocols import Addressing, Effect, MessageId, Transmit
from antecede.errors import LocalError, ProtocolError
from antecede.formatting import quote

BYTES_TYPES = bytes, bytearray, memoryview
ReplyTargets = Message | Sent | Id | Sequence[Message | Sent | Id]


class Sender(GroupPart):
    """Passes messages to the protocol, and encodes the result."""

    def send(
        self,
        payload: bytes,
        *,
        to: Sequence[str] | None = None,
        topics: Sequence[str] = (),
        reply_to: ReplyTargets = (),
        now: Seconds | None = None,
        now_ns: int | None = None,
    ) -> Sent:
        """Return the bytes of a message; pass the same bytes to all its receivers.

        **Parameters:**

        - `payload`: bytes of the message.
        - `to`: names of the receivers, in orders that allow it. (default: all other members)
        - `topics`: topics of the message, in topic orders.
        - `reply_to`: answered messages, in order "reply": a delivered `Message`, a result of
          `send`, or (sender, number); one or a list.
        - `now`, `now_ns`: local clock reading in seconds or ns, for orders by clocks.

        The result's `to` has the receivers, its `id` the message id. Without other members `to` is
        empty, and orders by clocks return no bytes.

        Raises LocalError for an invalid payload or one beyond `max_packet`, for unknown answered
        messages, for arguments that the order does not support or lacks, and for topics without
        other subscribers. Then no number is used. Also raises LocalError if receivers need
        different bytes: then the number is used, and packets wait in `outgoing`; use
        `post` instead.
        """
        state = self._state
        topics = _to_tuple(topics) or ()
        self._check_subscribers(topics)
        packets = self.send_packets(
            payload, to=to, topics=topics, reply_to=reply_to, now=now, now_ns=now_ns
        )
        if not packets:  # no other member: the message has a number but no packet
            message = Message(state.name, state.sent, bytes(payload))
            return Sent(b"", message, ())
        if len(packets) != 1:
            state.outbox = packets + state.outbox
            raise LocalError(
                f"order {state.order!r} has {len(packets)} packets for different members: they "
                "wait in outgoing(); use post() instead of send()"
            )
        wire = packets[0].wire
        assert isinstance(wire, Sent)
        return wire

    def _check_subscribers(self, topics: Sequence[str]) -> None:
        """Raise LocalError for topics without other subscribers, before a number is used."""
        state = self._state
        subscriptions = getattr(state.protocol, "subscriptions", None)
        sound = isinstance(topics, tuple) and all(isinstance(topic, str) for topic in topics)
        if (
            not topics or subscriptions is None or not sound
        ):  # `_check_receivers` judges what is unsound
            return
        if not subscriptions.targets(topics, state.protocol.others()):
            read = ", ".join(map(repr, topics))
            raise LocalError(
                f"message of {state.name} has no receivers: no other member subscribes to {read}; "
                "no number was used (post() uses one and returns an empty list)"
            )

    def send_packets(
        self,
        payload: bytes,
        *,
        to: Sequence[str] | None = None,
        topics: Sequence[str] = (),
        reply_to: ReplyTargets = (),
        now: Seconds | None = None,
        now_ns: int | None = None,
    ) -> list[Packet]:
        """Return packets with their receivers and `Sent`. Raise LocalError as `send` does."""
        state = self._state
        state.last_call = NO_CALL
        self._check_payload(payload)
        to, topics = _to_tuple(to), _to_tuple(topics) or ()
        no_reply = type(reply_to) is tuple and not reply_to
        parents = () if no_reply else state.check_reply_to(reply_to)
        after = tuple([MessageId(state.number(p), seq) for p, seq in parents]) if parents else ()
        receivers = self._check_receivers(to, topics) if to is not None or topics else {}
        reading = None if now is now_ns is None else parse_reading(now, now_ns)
        effects, packets = self._send_within_limit(
            bytes(payload), reading, after, receivers, topics
        )
        state.counters.sent += 1
        state.sent += 1
        if state.is_total:  # held until its turn, which may come at once
            for effect, _ in packets:
                state.counters.record_hold(state.protocol.identity(effect.message), reading)
        state.inbox += self._effects.deliver(effects, reading)
        own = [self._make_own_packet(effect, packet, parents) for effect, packet in packets]
        if state.by_reply:
            state.threads.add((state.name, state.sent), parents)
        if state.keep_log:
            chosen = None if to is None else tuple(to), tuple(topics)
            state.record("post", bytes(payload), *chosen, parents, reading)
        return own

    def _send_within_limit(
        self,
        payload: bytes,
        reading: int | None,
        after: tuple[MessageId, ...],
        receivers: Mapping[str, Any],
        topics: Sequence[str],
    ) -> tuple[Sequence[Effect], list[tuple[Transmit, Packet]]]:
        """Let the protocol number a message; undo it if the result is too large."""
        state = self._state
        most, protocol = state.limits.max_packet, state.protocol
        overhead = self._codec.estimate_overhead(len(after), topics)  # None: see `_check_payload`
        safe = overhead is None or len(payload) + overhead <= most
        before = None if safe else protocol.snapshot()
        try:
            content = self._codec.wrap_original(payload) if state.renumbers else payload
            effects = protocol.send(content, now=reading, after=after, **receivers)
        except ProtocolError as error:
            state.insert_names(error)
            raise
        frames = self._codec
        packets = [
            (effect, frames.make_packet(effect))
            for effect in effects
            if isinstance(effect, Transmit)
        ]
        if before is None:
            return effects, packets
        # As receivers count, independent of who encodes the message again.
        wires = [packet.wire for _, packet in packets]
        largest = max(
            (frame.measure_limited(frame.unpack(state.order, w)) for w in wires), default=0
        )
        if largest > most:
            protocol.restore(before)
            raise LocalError(
                f"payload of {len(payload)} bytes with {largest - len(payload)} bytes of overhead "
                f"exceeds max_packet={most}; no number was used"
            )
        return effects, packets

    def _check_payload(self, payload: bytes) -> None:
        # Other members would wait for a used number without message forever.
        if not isinstance(payload, BYTES_TYPES):
            raise LocalError(f"payload is {type(payload).__name__}; encode it as bytes")
        # The overhead is counted after encoding. Roles whose messages are encoded again on the way
        # do not know it: half is reserved.
        unknown = self._state.protocol.control_power is None
        most = self._state.limits.max_packet
        size = memoryview(payload).nbytes  # len() of a view counts items
        if unknown and size > most // 2:
            raise LocalError(
                f"payload of {size} bytes exceeds {most // 2} (half of max_packet=, since the "
                "overhead on the way is unknown here)"
            )
        if size > most:
            raise LocalError(f"payload of {size} bytes exceeds max_packet={most}")

    def _make_own_packet(
        self, effect: Transmit, packet: Packet, reply_to: tuple[Id, ...]
    ) -> Packet:
        state, inner = self._state, effect.message
        to, wire = packet
        name = state.roster.names[state.protocol.me]
        state.incarnations.record_message(name, state.incarnation, inner.seq)
        if state.renumbers:
            message = Message(name, state.sent, state.to_message(inner).payload)
        else:
            message = Message(name, inner.seq, inner.payload, (), reply_to)
        return Packet(to, Sent(wire, message, to))

    def _check_receivers(self, to: Sequence[str] | None, topics: Sequence[str]) -> dict[str, Any]:
        state = self._state
        # An empty list must not mean all members.
        if to is not None and not to:
            raise LocalError("to= is empty; name a member, or omit it for all members")
        arguments: dict[str, Any] = {}
        if isinstance(to, str) or isinstance(topics, str):
            raise LocalError("to= and topics= expect lists of names, got text")
        for word, names, required in (
            ("to", to, Addressing.MEMBERS),
            ("topics", topics, Addressing.TOPICS),
        ):
            if names and state.protocol.addressing is not required:
                raise LocalError(f"order {state.order!r} does not support {word}=; omit it")
            if names:
                arguments[word] = tuple(names)
        if topics:
            from antecede.core.protocols.topics import normalize_topics

            arguments["topics"] = normalize_topics(topics)
        if to:
            arguments["to"] = tuple(state.number(name) for name in to)
            if state.protocol.me in arguments["to"]:
                raise LocalError(f"to= has this member, {state.name!r}; name other members")
        return arguments


def _to_tuple(names: Any) -> Any:
    """Return names as a tuple, since a generator can be read only once."""
    if names is None or isinstance(names, str):
        return names
    try:
        return tuple(names)
    except TypeError:
        raise LocalError(f"to= and topics= expect lists of names, got {quote(names)}") from None
