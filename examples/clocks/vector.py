"""Vector clock as a value, over members that come and go.

Source: Sahai et al. 2020, vector time; membership is our own.

Theory of operation
-------------------
The entry of a member is absent, a counter 0, 1, 2, ..., or gone. `with_member` lifts absent
to 0, `advance` counts, `forget` makes the entry gone: everything of that member counts as
covered. So each entry only climbs one chain, absent < 0 < 1 < ... < gone, and merging (maximum)
never brings a departed member back, whatever old clock arrives. The clocks are a product of
chains: `<=` is a partial order, `merge` its least upper bound.

The chain is stored in packed lanes (`clocks.lanes`): 0 is absent, counter + 1 is present, and
a full lane is gone; so `<=` and `merge` are the lane operations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from antecede.core.clocks import Intervals, encode_bounds, lanes, read_bounds
from antecede.core.clocks.encoding import ByteReader, varint, varint_size
from antecede.errors import DecodeError, LocalError, SequenceError, UnknownMemberError

INTEGER_BYTES = 4
GONE = lanes.MAX_VALUE
MAX_COUNTER = GONE - 2


@dataclass(frozen=True, slots=True)
class VectorClock:
    """Counters by member number. Make one with `of`; `lanes` is the packed chain."""

    lanes: int = 0

    @classmethod
    def of(cls, counters: Mapping[int, int], gone: Iterable[int] = ()) -> VectorClock:
        """Return the clock with these counters and departed members.

        Raises LocalError for a number below 0 or too large, or a member in both.
        """
        departed = set(gone)
        for member in (*counters, *departed):
            _own(member)
        for member, counter in counters.items():
            if not 0 <= counter <= MAX_COUNTER:
                raise LocalError(f"counter {counter} of member {member} is out of range")
        if not departed.isdisjoint(counters):
            raise LocalError("a member can not have a counter and be gone")
        entries = [(member, counter + 1) for member, counter in counters.items()]
        entries += [(member, GONE) for member in departed]
        return cls(lanes.pack(entries))

    @property
    def counters(self) -> dict[int, int]:
        """The counters of the present members, by member number."""
        return {m: entry - 1 for m, entry in lanes.items(self.lanes) if entry != GONE}

    @property
    def gone(self) -> tuple[int, ...]:
        """The departed members, ascending."""
        return tuple(m for m, entry in lanes.items(self.lanes) if entry == GONE)

    def __getitem__(self, member: int) -> int:
        """Return a member's counter. Raises LocalError when it is absent or gone."""
        entry = lanes.get(self.lanes, member)
        if entry in (0, GONE):
            raise LocalError(f"member {member} {'has left' if entry else 'is not in the clock'}")
        return entry - 1

    def with_member(self, member: int) -> VectorClock:
        """Return the clock with the member present, from 0. Raises LocalError when it left."""
        entry = lanes.get(self.lanes, _own(member))
        if entry == GONE:
            raise LocalError(f"member {member} has left; numbers are never used again")
        return self if entry else VectorClock(self.lanes + lanes.unit(member))

    def forget(self, member: int) -> VectorClock:
        """Return the clock with the member gone: all that it sent counts as covered."""
        return VectorClock(lanes.put(self.lanes, _own(member), GONE))

    def advance(self, member: int, by: int = 1) -> VectorClock:
        """Return the clock with one counter raised. Raises LocalError as `[]` does."""
        if not 0 <= by <= MAX_COUNTER - self[member]:
            raise LocalError(f"counter {self[member]} of member {member} can not advance by {by}")
        return VectorClock(self.lanes + lanes.unit(member, by))

    def merge(self, other: VectorClock) -> VectorClock:
        """Return the least clock that covers both."""
        return VectorClock(lanes.merge(self.lanes, other.lanes, self._guard(other)))

    def __le__(self, other: VectorClock) -> bool:
        """Return whether every entry is at or below that of `other`."""
        return lanes.dominates(other.lanes, self.lanes, self._guard(other))

    def __lt__(self, other: VectorClock) -> bool:
        """Return whether this is at or below `other` and differs: it happened before."""
        return self.lanes != other.lanes and self <= other

    def concurrent(self, other: VectorClock) -> bool:
        """Return whether neither is at or below the other."""
        return not self <= other and not other <= self

    def _guard(self, other: VectorClock) -> int:
        width = max(self.lanes.bit_length(), other.lanes.bit_length())
        return lanes.guards(-(-width // lanes.LANE_BITS))

    @property
    def storage_bytes(self) -> int:
        """The size by the accounting of the sources: 4 bytes a present member."""
        return INTEGER_BYTES * len(self.counters)

    def encode(self) -> bytes:
        """Encode the number of members, then each member's gap and counter, then the gone."""
        out = bytearray()
        counters = self.counters
        out += varint(len(counters))
        before = -1
        for member, counter in counters.items():
            out += varint(member - before - 1) + varint(counter)
            before = member
        return bytes(out) + encode_bounds(self._make_gone_bounds())

    @property
    def encoded_size(self) -> int:
        """The length of `encode()`, without making it."""
        counters = self.counters
        gaps = zip((-1, *counters), counters, strict=False)
        size = varint_size(len(counters)) + sum(varint_size(m - b - 1) for b, m in gaps)
        gone = len(encode_bounds(self._make_gone_bounds()))
        return size + sum(map(varint_size, counters.values())) + gone

    def _make_gone_bounds(self) -> tuple[int, ...]:
        return Intervals.of(member + 1 for member in self.gone).bounds

    @classmethod
    def decode(cls, data: bytes) -> VectorClock:
        """Return what `encode` wrote.

        Raises DecodeError, UnknownMemberError for a member above MAX_MEMBER and SequenceError
        for a counter above MAX_COUNTER.
        """
        reader = ByteReader(data)
        counters: dict[int, int] = {}
        member = -1
        for _ in range(reader.varint()):
            member += reader.varint() + 1
            counters[_member(member)] = counter = reader.varint()
            if counter > MAX_COUNTER:
                raise SequenceError(f"counter {counter} of member {member} is absurd")
        bounds = read_bounds(reader)
        reader.finish()
        _member(bounds[-1] - 2 if bounds else 0)
        gone = [number - 1 for number in Intervals(tuple(bounds))]
        if not counters.keys().isdisjoint(gone):
            raise DecodeError("a member has a counter and is gone")
        return cls.of(counters, gone)


def _own(member: int) -> int:
    if not 0 <= member <= lanes.MAX_MEMBER:
        raise LocalError(f"member {member} is not in 0 to {lanes.MAX_MEMBER}")
    return member


def _member(member: int) -> int:
    if member > lanes.MAX_MEMBER:
        raise UnknownMemberError(f"member {member} is above {lanes.MAX_MEMBER}")
    return member
