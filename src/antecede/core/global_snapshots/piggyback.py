"""Global snapshots for any transport: markers and numbers are piggybacked on payload bytes.

    snapshots = Snapshots("alice", names, "chandy-lamport", state=lambda: pickled)
    group.send(snapshots.wrap(b"pay 5"))             # instead of group.send(b"pay 5")
    for message in group.receive(wire):
        result = snapshots.unwrap(message.sender, message.payload)
        ...result.payload (None: no application message), result.to_send, result.global_states

Every payload goes to all members. `chandy-lamport` needs an order that is FIFO ("fifo", "causal",
...); `lai-yang` works with any.

    0 stamp payload                  application message with its snapshot number
    1 number (sent per member)       marker, with a count for each member in the order of names
    2 number block(state) channels   part of a member: block(name), count, block(payload) ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from antecede.core.clocks.encoding import ByteReader, block, varint
from antecede.core.global_snapshots.base import (
    Algorithm,
    Complete,
    Content,
    Effect,
    Make,
    Marker,
    Record,
    Tell,
)
from antecede.core.global_snapshots.chandy_lamport import ChandyLamport
from antecede.core.global_snapshots.lai_yang import LaiYang
from antecede.errors import DecodeError, LocalError

MESSAGE, MARKER, PART = range(3)
ALGORITHMS: dict[str, Make] = {"chandy-lamport": ChandyLamport, "lai-yang": LaiYang}
"""Algorithms by name. The first needs FIFO channels."""


class GlobalState(NamedTuple):
    """Consistent global state."""

    number: int
    states: dict[str, bytes]
    channels: dict[tuple[str, str], tuple[bytes, ...]]
    """(sender, receiver) -> payloads in transit; empty channels are omitted."""


class UnwrapResult(NamedTuple):
    """Result of a received payload."""

    payload: bytes | None
    """Application payload; None: the message belongs to a snapshot."""
    to_send: tuple[bytes, ...] = ()
    """Payloads to send now, before anything else."""
    global_states: tuple[GlobalState, ...] = ()
    """Snapshots that are now complete."""


class _Part(NamedTuple):
    state: bytes
    channels: dict[str, tuple[bytes, ...]]


class Snapshots:
    """One member's snapshots; `state` returns the state to record. Raises LocalError."""

    def __init__(
        self, me: str, members: Iterable[str], algorithm: str, state: Callable[[], bytes]
    ) -> None:
        if algorithm not in ALGORITHMS:
            raise LocalError(
                f"unknown algorithm {algorithm!r:.40}; choose from {', '.join(ALGORITHMS)}"
            )
        self._algorithm: Algorithm = ALGORITHMS[algorithm](me, members)
        self._own_state = state
        self._own: dict[int, _Part] = {}
        self._parts: dict[int, dict[str, _Part]] = {}

    @property
    def pending(self) -> tuple[int, ...]:
        """Numbers of snapshots with missing parts."""
        return tuple(sorted({*self._own, *self._parts}))

    def begin(self) -> tuple[bytes, ...]:
        """Begin a snapshot; return the payloads to send now."""
        return self._carry_out(self._algorithm.begin()).to_send

    def wrap(self, payload: bytes) -> bytes:
        """Return an application payload as it is sent to all others."""
        stamps = [self._algorithm.send(name) for name in self._algorithm.others]
        return bytes((MESSAGE,)) + varint(max(stamps, default=0)) + payload

    def unwrap(self, sender: str, data: bytes) -> UnwrapResult:
        """Process a payload of another member. Raise RemoteError."""
        reader = ByteReader(data)
        kind = reader.take(1)[0]
        if kind == MESSAGE:
            stamp = reader.varint()
            payload = reader.rest()
            return self._carry_out(self._algorithm.arrive(sender, stamp, payload), payload)
        if kind == MARKER:
            number = reader.varint()
            counts = [reader.varint() for _ in self._algorithm.members]
            reader.finish()
            mine = counts[self._algorithm.members.index(self._algorithm.me)]
            return self._carry_out(self._algorithm.marker(sender, Marker(number, mine)))
        if kind == PART:
            return self._carry_out((), None, self._read_part(sender, reader))
        raise DecodeError(f"unknown kind of payload, {kind}; expected 0 to {PART}")

    # -- effects -------------------------------------------------------------------------------

    def _carry_out(
        self, effects: Sequence[Effect], payload: bytes | None = None, number: int | None = None
    ) -> UnwrapResult:
        send: list[bytes] = []
        touched = [] if number is None else [number]
        markers: dict[int, dict[str, int]] = {}
        for effect in effects:
            if isinstance(effect, Record):
                self._own[effect.number] = _Part(self._read_own_state(), {})
            elif isinstance(effect, Tell):
                markers.setdefault(effect.marker.number, {})[effect.to] = effect.marker.sent
            elif isinstance(effect, Content):
                messages = tuple(one for one in effect.messages if isinstance(one, bytes))
                self._own[effect.number].channels[effect.source] = messages
            elif isinstance(effect, Complete):
                part = self._own.pop(effect.number)
                self._parts.setdefault(effect.number, {})[self._algorithm.me] = part
                send.append(_pack_part(effect.number, part))
                touched.append(effect.number)
        first = [self._pack_marker(number, sent) for number, sent in markers.items()]
        complete = [state for one in touched if (state := self._assemble(one)) is not None]
        return UnwrapResult(payload, (*first, *send), tuple(complete))

    def _read_own_state(self) -> bytes:
        state = self._own_state()
        if type(state) is not bytes:
            raise LocalError(f"state= returned {type(state).__name__}; expected bytes")
        return state

    def _pack_marker(self, number: int, sent: dict[str, int]) -> bytes:
        counts = (varint(sent.get(name, 0)) for name in self._algorithm.members)
        return bytes((MARKER,)) + varint(number) + b"".join(counts)

    def _read_part(self, sender: str, reader: ByteReader) -> int:
        number, state = reader.varint(), reader.block()
        channels = {}
        for _ in range(min(reader.varint(), len(self._algorithm.members))):
            source = reader.block().decode(errors="replace")
            channels[source] = tuple(reader.block() for _ in range(reader.varint()))
        reader.finish()
        known = self._parts.get(number, {})
        if sender in known or not 1 <= number <= self._algorithm.number:
            raise DecodeError(f"part {number} of {sender} is a duplicate or of an unknown snapshot")
        self._parts.setdefault(number, {})[sender] = _Part(state, channels)
        return number

    def _assemble(self, number: int) -> GlobalState | None:
        parts = self._parts.get(number, {})
        if len(parts) < len(self._algorithm.members):
            return None
        del self._parts[number]
        return GlobalState(
            number,
            {name: part.state for name, part in sorted(parts.items())},
            {
                (source, name): messages
                for name, part in sorted(parts.items())
                for source, messages in sorted(part.channels.items())
                if messages
            },
        )


def _pack_part(number: int, part: _Part) -> bytes:
    channels = [
        block(source.encode()) + varint(len(messages)) + b"".join(map(block, messages))
        for source, messages in part.channels.items()
    ]
    head = bytes((PART,)) + varint(number) + block(part.state) + varint(len(channels))
    return head + b"".join(channels)
